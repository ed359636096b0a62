"""Walk a graph without recursion, in an order that does not depend on the process.

Knows nodes and edges only: what a node *is* stands in :mod:`autograd_lens.graph`.

The order is the one in which the engine runs the nodes: a node comes after everything that sends it
a gradient, and among those ready the one created last comes first (``CompareNodeTaskTime`` in
``torch/csrc/autograd/engine.h`` compares sequence numbers the same way). Where the engine has no
rule, neither has this: leaves that become ready together are listed as they were found, and
operations recorded by several threads, or run on several devices, may run in another order.
"""

from __future__ import annotations

import heapq
import threading
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

from . import _torch

BAND = 500
"""Levels between two guards. A level costs 200 to 270 bytes of C stack when a graph is freed on
torch 2.13, and a thread may have as little as 512 kB."""


UNGUARDED = 1500
"""Nodes up to which a graph can be freed in one recursion, whatever its depth."""


class _Guard:
    """Lets a walked graph be freed band by band instead of in one deep recursion.

    Since torch 2.13 a node owns its Python wrapper, so freeing a chain whose nodes Python has seen
    goes through one nested deallocation per node and overflows the C stack at about 40,000 nodes
    (4,000 on a 1 MB stack). A guard sits in the ``metadata`` of a node and holds the nodes where
    the next band begins. When its node dies the guard's ``__del__`` takes them over, the recursion
    ends there, and the outermost guard frees band after band in a loop. Nothing lives longer than
    it would have: the held nodes were reachable from the guarded one anyway. Each thread frees what
    dies in it.
    """

    __slots__ = ("held",)
    _here = threading.local()

    def __init__(self, held: list[Any]):
        self.held = held

    def __del__(self) -> None:
        here = self._here
        held = self.held
        del self.held
        if hasattr(here, "waiting"):
            here.waiting.append(held)
            return
        here.waiting = [held]
        try:
            while here.waiting:
                held = here.waiting.pop()
                while held:
                    held.pop()
        finally:
            del here.waiting


@dataclass(frozen=True)
class Edges:
    """The edges of many nodes in little memory, by number of the node.

    The edges of node ``k`` are the positions ``bounds[k]`` to ``bounds[k + 1]``; ``targets`` holds
    node numbers (-1 where an input needs no gradient), ``input_nrs`` the output they lead to.
    """

    bounds: array[int]
    targets: array[int]
    input_nrs: array[int]

    def of(self, number: int) -> Iterator[tuple[int, int]]:
        """Yield ``(target, input_nr)`` of one node."""
        for place in range(self.bounds[number], self.bounds[number + 1]):
            yield self.targets[place], self.input_nrs[place]


@dataclass(frozen=True)
class Found:
    """A walked graph in numbers: nodes are numbered as they were met.

    ``lengths`` says how many edges each node has; ``targets`` are as in :class:`Edges`;
    ``input_nrs`` by place of the edge, where it is not 0.
    """

    lengths: list[int]
    targets: list[int]
    input_nrs: dict[int, int]
    sequence_nrs: list[int]

    @cached_property
    def engine_order(self) -> tuple[array[int], Edges, list[int]]:
        """The order, the edges between nodes in it, and the depth of each node in it."""
        bounds = array("q", accumulate(self.lengths, initial=0))
        count, targets = len(self.lengths), self.targets
        waiting_for = array("q", bytes(8 * count))
        for target in targets:
            if target >= 0:
                waiting_for[target] += 1
        priority = [-nr for nr in self.sequence_nrs]
        depth = array("q", bytes(8 * count))
        ready = [(priority[k], k) for k, waiting in enumerate(waiting_for) if waiting == 0]
        heapq.heapify(ready)
        order = array("q")
        while ready:
            number = heapq.heappop(ready)[1]
            order.append(number)
            below = depth[number] + 1
            for target in targets[bounds[number] : bounds[number + 1]]:
                if target < 0:
                    continue
                if below > depth[target]:
                    depth[target] = below
                waiting_for[target] -= 1
                if waiting_for[target] == 0:
                    heapq.heappush(ready, (priority[target], target))
        if len(order) < count:  # a cycle would starve the queue; PyTorch builds none
            order.extend(sorted(set(range(count)) - set(order)))
        return order, self._in(order, bounds), [depth[k] for k in order]

    def _in(self, order: array[int], bounds: array[int]) -> Edges:
        """The edges when node ``order[k]`` is called ``k``."""
        rank = array("q", bytes(8 * len(order)))
        for position, number in enumerate(order):
            rank[number] = position
        edges = Edges(array("q", [0]), array("q"), array("q"))
        for number in order:
            for place in range(bounds[number], bounds[number + 1]):
                target = self.targets[place]
                edges.targets.append(target if target < 0 else rank[target])
                edges.input_nrs.append(self.input_nrs.get(place, 0))
            edges.bounds.append(len(edges.targets))
        return edges


def engine_order(roots: Iterable[Any]) -> tuple[list[Any], Edges]:
    """Return every node reachable from ``roots`` in engine order, and the edges between them.

    Dropping the nodes is safe at any depth: guards have been laid.
    """
    live, found = _safely(list(roots), BAND)
    order, edges, _ = found.engine_order
    return [live[k] for k in order], edges


def discover(roots: Iterable[Any]) -> tuple[list[Any], Found]:
    """Return every node reachable from ``roots``, as they were met, and the graph in numbers.

    Dropping the nodes is safe at any depth: guards have been laid, also if this is interrupted.
    """
    return _safely(list(roots), UNGUARDED)


def _safely(roots: list[Any], most: int) -> tuple[list[Any], Found]:
    try:
        return _guarded(roots, most)
    except BaseException:
        _guarded(roots, most)  # what Python has met must not stay without guards
        raise


def _guarded(roots: list[Any], most: int) -> tuple[list[Any], Found]:
    """Walk; a graph of more than ``most`` nodes gets guards where it is deep."""
    live, found = _discover(roots)
    if len(live) > most:
        order, edges, depth = found.engine_order
        if max(depth) >= BAND:
            _lay_guards([live[k] for k in order], edges, depth)
    return live, found


def _discover(roots: list[Any]) -> tuple[list[Any], Found]:
    numbers: dict[Any, int] = {None: -1}  # where an input needs no gradient there is no node
    live = list(dict.fromkeys(roots))
    numbers.update(zip(live, range(len(live)), strict=True))
    lengths: list[int] = []
    targets: list[int] = []
    input_nrs: dict[int, int] = {}
    add_length, add_target = lengths.append, targets.append
    add_node, number_of = live.append, numbers.get
    for node in live:  # it grows on the way
        following = node.next_functions
        add_length(len(following))
        for target, input_nr in following:
            if input_nr:
                input_nrs[len(targets)] = input_nr
            number = number_of(target)
            if number is None:
                number = numbers[target] = len(live)
                add_node(target)
            add_target(number)
    return live, Found(lengths, targets, input_nrs, _torch.sequence_nrs(live))


def _lay_guards(live: list[Any], edges: Edges, depth: list[int]) -> None:
    """Put guards so that no path of the graph is longer than about ``BAND`` between two of them.

    A node is an anchor when an edge reaches it from an earlier band. Each guarded node (those on
    top and the anchors) holds the anchors that can be reached first from it.
    """
    held: dict[int, dict[int, None]] = {k: {} for k, level in enumerate(depth) if level == 0}
    owners: dict[int, dict[int, None]] = {k: {k: None} for k in held}
    for number in range(len(live)):
        mine = owners.pop(number, {})
        band = depth[number] // BAND
        for target, _ in edges.of(number):
            if target < 0 or edges.bounds[target] == edges.bounds[target + 1]:
                continue  # a leaf frees nothing
            if depth[target] // BAND > band:
                held.setdefault(target, {})
                owners[target] = {target: None}
                for owner in mine:
                    held[owner][target] = None
            elif target not in held:
                owners.setdefault(target, {}).update(mine)
    for number, anchors in held.items():
        if anchors:
            live[number].metadata["autograd_lens.guard"] = _Guard([live[k] for k in anchors])

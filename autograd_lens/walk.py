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
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from . import _torch

BAND = 500
"""Levels between two guards. A level costs some 200 bytes of C stack when a graph is freed on
torch 2.13, and a thread may have as little as 1 MB."""


class _Guard:
    """Lets a walked graph be freed band by band instead of in one deep recursion.

    Since torch 2.13 a node owns its Python wrapper, so freeing a chain whose nodes Python has seen
    goes through one nested deallocation per node and overflows the C stack at about 40,000 nodes
    (4,000 on a 1 MB stack). A guard sits in the ``metadata`` of a node and holds the nodes where
    the next band begins. When its node dies the guard's ``__del__`` takes them over, the recursion
    ends there, and the outermost guard frees band after band in a loop. Nothing lives longer than
    it would have: the held nodes were reachable from the guarded one anyway.
    """

    __slots__ = ("held",)
    _waiting: list[list[Any]] = []
    _draining = False

    def __init__(self, held: list[Any]):
        self.held = held

    def __del__(self) -> None:
        cls = type(self)
        cls._waiting.append(self.held)
        del self.held
        if cls._draining:
            return
        cls._draining = True
        try:
            while cls._waiting:
                held = cls._waiting.pop()
                while held:
                    held.pop()
        finally:
            cls._draining = False


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


def engine_order(roots: Iterable[Any]) -> tuple[list[Any], Edges]:
    """Return every node reachable from ``roots`` in engine order, and the edges between them.

    Dropping the nodes is safe at any depth: guards have been laid.
    """
    live, edges = _discover(dict.fromkeys(roots))
    bounds, targets = edges.bounds, edges.targets
    waiting_for = array("q", bytes(8 * len(live)))
    for target in targets:
        if target >= 0:
            waiting_for[target] += 1
    priority = [-nr for nr in _torch.sequence_nrs(live)]
    depth = array("q", bytes(8 * len(live)))
    ready = [(priority[k], k) for k, waiting in enumerate(waiting_for) if waiting == 0]
    heapq.heapify(ready)
    order = array("q")
    while ready:
        number = heapq.heappop(ready)[1]
        order.append(number)
        below = depth[number] + 1
        for place in range(bounds[number], bounds[number + 1]):
            target = targets[place]
            if target < 0:
                continue
            if below > depth[target]:
                depth[target] = below
            waiting_for[target] -= 1
            if waiting_for[target] == 0:
                heapq.heappush(ready, (priority[target], target))
    if len(order) < len(live):  # a cycle would starve the queue; PyTorch builds none, a bug might
        order.extend(sorted(set(range(len(live))) - set(order)))
    live, edges = [live[k] for k in order], _renumbered(edges, order)
    if max(depth) >= BAND:
        _lay_guards(live, edges, [depth[k] for k in order])
    return live, edges


def _discover(roots: dict[Any, None]) -> tuple[list[Any], Edges]:
    """Number the reachable nodes as they are expanded, and their edges."""
    found = {root: number for number, root in enumerate(roots)}
    starts, ends = array("q"), array("q")
    targets, input_nrs = array("q"), array("q")
    starts.extend([0] * len(found))
    ends.extend([0] * len(found))
    pending = list(reversed(found))
    while pending:
        node = pending.pop()
        number = found[node]
        starts[number] = len(targets)
        for target, input_nr in node.next_functions:
            input_nrs.append(input_nr)
            if target is None:
                targets.append(-1)
                continue
            new = len(found)
            known = found.setdefault(target, new)
            targets.append(known)
            if known == new:
                starts.append(0)
                ends.append(0)
                pending.append(target)
        ends[number] = len(targets)
    return list(found), _packed(starts, ends, targets, input_nrs, range(len(found)), None)


def _renumbered(edges: Edges, order: array[int]) -> Edges:
    """The same edges when node ``order[k]`` is called ``k``."""
    rank = array("q", bytes(8 * len(order)))
    for position, number in enumerate(order):
        rank[number] = position
    return _packed(edges.bounds, edges.bounds[1:], edges.targets, edges.input_nrs, order, rank)


def _packed(
    starts: array[int],
    ends: array[int],
    targets: array[int],
    input_nrs: array[int],
    order: Iterable[int],
    rank: array[int] | None,
) -> Edges:
    """Put the edges of the nodes one after the other, in ``order``, with new target numbers."""
    packed = Edges(array("q", [0]), array("q"), array("q"))
    for number in order:
        for place in range(starts[number], ends[number]):
            target = targets[place]
            packed.targets.append(target if rank is None or target < 0 else rank[target])
            packed.input_nrs.append(input_nrs[place])
        packed.bounds.append(len(packed.targets))
    return packed


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

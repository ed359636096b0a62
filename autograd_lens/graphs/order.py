"""Walk a graph without recursion, in an order that does not depend on the process.

Knows nodes and edges only. The order is the one in which the engine runs the nodes: a node comes
after everything that sends it a gradient, and among those ready the one created last comes first
(``CompareNodeTaskTime`` in ``torch/csrc/autograd/engine.h`` compares sequence numbers the same
way). Where the engine has no rule, this order has none: leaves that become ready together are
listed as they were found, and operations that several threads recorded, or that run on several
devices, may run in another order.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterable
from itertools import accumulate
from typing import Any

from .. import _torch
from .deallocation import BAND, lay_guards
from .links import Edges


def engine_order(roots: Iterable[Any]) -> tuple[list[Any], Edges]:
    """Return every node reachable from ``roots`` in engine order, and the edges between them.

    Dropping the nodes is safe at any depth: guards are laid, also if this is interrupted.
    """
    roots = list(roots)
    try:
        return _ordered(roots)
    except BaseException:
        _ordered(roots)  # nodes that Python has seen must have guards
        raise


def _ordered(roots: list[Any]) -> tuple[list[Any], Edges]:
    met, found = _discover(roots)
    order, depth = _sorted(found, _torch.sequence_nrs(met))
    live, edges = [met[number] for number in order], _renumbered(found, order)
    if len(live) > BAND and max(depth) >= BAND:
        lay_guards(live, edges, [depth[number] for number in order])
    return live, edges


def _discover(roots: list[Any]) -> tuple[list[Any], Edges]:
    """The nodes as they were met, and the edges between them."""
    numbers: dict[Any, int] = {None: -1}  # where an input needs no gradient there is no node
    met = list(dict.fromkeys(roots))
    numbers.update(zip(met, range(len(met)), strict=True))
    lengths = array("q")
    targets, input_nrs = array("q"), array("q")
    for node in met:  # it grows on the way
        following = node.next_functions
        lengths.append(len(following))
        for target, input_nr in following:
            number = numbers.get(target)
            if number is None:
                number = numbers[target] = len(met)
                met.append(target)
            targets.append(number)
            input_nrs.append(input_nr)
    return met, Edges(array("q", accumulate(lengths, initial=0)), targets, input_nrs)


def _sorted(edges: Edges, sequence_nrs: list[int]) -> tuple[array[int], array[int]]:
    """The order in which the engine runs the nodes, and the depth of each by number."""
    count = len(sequence_nrs)
    waiting_for = array("q", bytes(8 * count))
    for target in edges.targets:
        if target >= 0:
            waiting_for[target] += 1
    depth = array("q", bytes(8 * count))
    ready = [(-sequence_nrs[k], k) for k, waiting in enumerate(waiting_for) if waiting == 0]
    heapq.heapify(ready)
    order = array("q")
    while ready:
        number = heapq.heappop(ready)[1]
        order.append(number)
        below = depth[number] + 1
        for target in edges.targets[edges.bounds[number] : edges.bounds[number + 1]]:
            if target < 0:
                continue
            if below > depth[target]:
                depth[target] = below
            waiting_for[target] -= 1
            if waiting_for[target] == 0:
                heapq.heappush(ready, (-sequence_nrs[target], target))
    if len(order) < count:  # a cycle would starve the queue; PyTorch builds none
        order.extend(sorted(set(range(count)) - set(order)))
    return order, depth


def _renumbered(edges: Edges, order: array[int]) -> Edges:
    """The same edges when node ``order[k]`` is called ``k``."""
    rank = array("q", bytes(8 * len(order)))
    for position, number in enumerate(order):
        rank[number] = position
    renumbered = Edges(array("q", [0]), array("q"), array("q"))
    for number in order:
        for target, input_nr in edges.of(number):
            renumbered.targets.append(target if target < 0 else rank[target])
            renumbered.input_nrs.append(input_nr)
        renumbered.bounds.append(len(renumbered.targets))
    return renumbered

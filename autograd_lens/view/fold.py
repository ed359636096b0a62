"""Make a graph small enough to look at: join nodes by group, fold the middle, say how much."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from ..graphs.grad_graph import GradGraph

FOLDED = "folded"
"""Title of the stretch that was too much; no group of the reader's has it."""


@dataclass(frozen=True)
class Joined:
    """Several nodes drawn as one: why, and which (indices)."""

    title: str
    indices: tuple[int, ...]


@dataclass(frozen=True)
class Folded:
    """A graph of items: single nodes, and joined ones. An item goes by the index of its first node.

    Attributes:
        items: all of them, in engine order of their first nodes.
        item_of: the item of every node.
        joined: the items of several nodes; every other item is the node itself.
        links: the edges to draw: those between different items, and only one between the same two
            if either is joined.
    """

    items: Sequence[int]
    item_of: Sequence[int]
    joined: Mapping[int, Joined]
    links: Sequence[int]


def fold(graph: GradGraph, max_nodes: int | None) -> Folded:
    """Join the nodes that ``graph.shown.group`` joins, then fold the middle down to ``max_nodes``.

    The fold is one stretch of the engine order, so the folded graph has no cycle. A quarter of the
    room is kept for the end, where the leaves are.
    """
    if graph.shown.group is None and (max_nodes is None or len(graph.nodes) <= max_nodes):
        every = range(len(graph.nodes))
        return Folded(every, every, {}, range(len(graph.edges)))
    keys = _keys(graph, max_nodes)
    first: dict[Hashable, int] = {}
    members: dict[int, list[int]] = {}
    for index, key in enumerate(keys):
        members.setdefault(first.setdefault(key, index), []).append(index)
    item_of = [first[key] for key in keys]
    joined = {
        item: Joined(keys[item][1], tuple(indices))
        for item, indices in members.items()
        if isinstance(keys[item], tuple)
    }
    links, drawn = [], set()
    for number, edge in enumerate(graph.edges):
        ends = item_of[edge.source], item_of[edge.target]
        if ends[0] == ends[1]:
            continue
        if ends[0] in joined or ends[1] in joined:
            if ends in drawn:
                continue
            drawn.add(ends)
        links.append(number)
    return Folded(list(members), item_of, joined, links)


def _keys(graph: GradGraph, max_nodes: int | None) -> list[Hashable]:
    """A key per node, equal for nodes that become one item: its index, or ``(why, title)``."""
    keys: list[Hashable] = list(range(len(graph.nodes)))
    if graph.shown.group is not None:
        for node in graph.nodes:
            key = graph.shown.group(node)
            if key is not None:
                keys[node.index] = ("group", str(key))
    distinct = list(dict.fromkeys(keys))
    if max_nodes is not None and len(distinct) > max_nodes:
        tail = max_nodes // 4
        hidden = set(distinct[max_nodes - tail - 1 : len(distinct) - tail])
        keys = [("fold", FOLDED) if key in hidden else key for key in keys]
    return keys

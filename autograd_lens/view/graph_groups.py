"""Which nodes of a graph are drawn as one box: those of one module, or of one key of the reader's.

Modules that follow each other, have the same nodes and save as much are one box with their number:
``layers.1 … layers.10, ×10``. Each module opens into its own picture, where the others stay boxes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..graphs.grad_graph import GradGraph
from .folding import Folded, Group, fold

BOXES = 40
"""The automatic depth is the deepest that makes at most so many boxes."""
INSIDE = 60
"""A module of more nodes opens into the boxes of the modules inside of it."""
OPENING = 40
"""At most so many modules open: each is a picture of its own on a page."""


def folded(graph: GradGraph, opened: str = "", most: int | None = None) -> Folded:
    """The graph as it is drawn; ``opened`` is the path of the module that is open."""
    shown = graph.shown
    links = [(edge.source, edge.target) for edge in graph.edges]
    if shown.group == "module":
        groups = Modules(graph).groups(opened)
    elif shown.group is not None:
        keys = ((node.index, shown.group(node)) for node in graph.nodes)
        groups = {index: Group(str(key)) for index, key in keys if key is not None}
    else:
        groups = {}
    return fold(len(graph.nodes), links, groups, most or shown.max_nodes)


@dataclass(frozen=True)
class Modules:
    """The modules of a graph, down to some depth."""

    graph: GradGraph

    @cached_property
    def depth(self) -> int:
        """The depth that was asked for, else the deepest that makes few boxes."""
        if self.graph.shown.depth is not None:
            return self.graph.shown.depth
        deepest = max(path.count(".") + 1 for path in self._paths)
        for depth in range(deepest, 1, -1):
            if len(set(self._titles(self._members(depth)).values())) <= BOXES:
                return depth
        return 1

    @cached_property
    def members(self) -> dict[str, list[int]]:
        """The nodes of each module that is a box, by its path."""
        return self._members(self.depth)

    @cached_property
    def opening(self) -> tuple[str, ...]:
        """The modules that open, as they ran: all, or one of each box if they are too many."""
        if len(self.members) <= OPENING:
            return tuple(reversed(self.members))
        titles = self._titles(self.members)
        first = {title: path for path, title in titles.items()}
        return tuple(path for path in reversed(titles) if first[titles[path]] == path)[:OPENING]

    def groups(self, opened: str = "") -> dict[int, Group]:
        """The group of each node that is no box of its own."""
        closed = {path: nodes for path, nodes in self.members.items() if path != opened}
        titles = self._titles(closed)
        found = {}
        for path, nodes in closed.items():
            of_box = [one for one in self.opening if titles.get(one) == titles[path]]
            number = self.opening.index(of_box[0]) + 1 if of_box else 0
            found |= dict.fromkeys(nodes, Group(titles[path], number))
        inside = self.members.get(opened, ())
        if len(inside) > INSIDE:
            deeper = opened.count(".") + 2
            for index in inside:
                path = _cut(self.graph.nodes[index].module or "", deeper)
                if path != opened:
                    found[index] = Group(path)
        return found

    @property
    def _paths(self) -> list[str]:
        return [node.module or "" for node in self.graph.nodes]

    def _members(self, depth: int) -> dict[str, list[int]]:
        members: dict[str, list[int]] = {}
        for index, path in enumerate(self._paths):
            if path:
                members.setdefault(_cut(path, depth), []).append(index)
        return members

    def _titles(self, members: Mapping[str, Sequence[int]]) -> dict[str, str]:
        """The title of each module's box: its path, or that of the run of equal ones it is in."""
        titles = {}
        for run in self._runs(members):
            title = run[0] if len(run) == 1 else f"{run[0]} … {run[-1]}, ×{len(run)}"
            titles |= dict.fromkeys(run, title)
        return titles

    def _runs(self, members: Mapping[str, Sequence[int]]) -> Iterator[list[str]]:
        """Modules with consecutive numbers and equal content, in the order of their numbers."""
        numbered = sorted(members, key=_place)
        run: list[str] = []
        for path in numbered:
            if run and not (self._follows(run[-1], path) and self._equal(members, run[-1], path)):
                yield run
                run = []
            run.append(path)
        if run:
            yield run

    @staticmethod
    def _follows(path: str, other: str) -> bool:
        (parent, number), (next_parent, next_number) = _place(path), _place(other)
        return parent == next_parent and 0 <= number == next_number - 1

    def _equal(self, members: Mapping[str, Sequence[int]], path: str, other: str) -> bool:
        return self._content(members[path]) == self._content(members[other])

    def _content(self, nodes: Sequence[int]) -> list[tuple[str, int]]:
        """What tells modules apart: their operations, and the bytes that each saved."""
        found = (self.graph.nodes[index] for index in nodes)
        return sorted((node.name, sum(s.bytes for s in node.saved)) for node in found)


def _cut(path: str, depth: int) -> str:
    """The first ``depth`` parts of a path; of a path of two modules, both are cut."""
    cut = (".".join(one.split(".")[:depth]) for one in path.split(" = "))
    return " = ".join(dict.fromkeys(cut))


def _place(path: str) -> tuple[str, int]:
    """The path before a number at its end, and that number; -1 where there is none."""
    match = re.fullmatch(r"(.*?)(\d+)", path)
    return (match[1], int(match[2])) if match else (path, -1)

"""Which nodes of a graph are drawn as one box: those of one module, or of one key of the reader's.

Modules that follow each other in name and graph, and are equal in nodes and saved bytes, are one
box: ``layers.1 … layers.10, ×10``. Each module opens into its own picture, where the others stay
boxes. A box adds no cycle to the picture: nodes of a module between which others run are drawn as
several boxes, or singly. Where modules are a guess, such others are taken into the box if they were
only said to be of what is around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ..graphs.grad_graph import GradGraph
from .folding import Folded, Group, fold

BOXES = 40
"""The automatic depth is the deepest that makes at most so many boxes."""
INSIDE = 60
"""A module of more nodes opens into the boxes of the modules inside of it."""
PICTURES = 600
"""Each module that opens is a picture of its own on a page; together they have so many items."""
OPENING = 40
"""At most so many modules open."""


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
            if sum(1 for _ in self._runs(self._members(depth))) <= BOXES:
                return depth
        return 1

    @cached_property
    def members(self) -> dict[str, list[int]]:
        """The nodes of each module that is a box, by its path."""
        return self._members(self.depth)

    @cached_property
    def opening(self) -> tuple[str, ...]:
        """The modules that open, as they ran: all, or one of each box, or as many as have room."""
        runs = list(self._runs(self.members))
        groups = self._boxes(self.members)
        boxed = len(groups) - len(set(groups.values()))
        room = min(OPENING, PICTURES // (len(self.graph.nodes) - boxed))
        every = tuple(reversed(self.members))
        if len(every) <= room:
            return every
        first = {run[0] for run in runs}
        return tuple(path for path in every if path in first)[:room]

    def groups(self, opened: str = "") -> dict[int, Group]:
        """The group of each node that is no box of its own."""
        found = self._boxes({p: nodes for p, nodes in self.members.items() if p != opened})
        numbers = {path: number for number, path in enumerate(self.opening, 1)}
        found = {
            index: replace(group, opens=numbers.get(group.title.split(" … ")[0], 0))
            for index, group in found.items()
            if index not in self.members.get(opened, ())
        }
        inside = self.members.get(opened, ())
        if len(inside) > INSIDE:
            deeper: dict[str, list[int]] = {}
            for index in inside:
                path = _cut(self.graph.nodes[index].module or "", opened.count(".") + 2)
                deeper.setdefault(path, []).append(index)
            for path, nodes in deeper.items():
                if path != opened:
                    found |= self._in_boxes(path, [path], nodes)
        return found

    def _boxes(self, members: Mapping[str, Sequence[int]]) -> dict[int, Group]:
        """The group of each node of these modules, and of those that their boxes take in."""
        found: dict[int, Group] = {}
        for run in sorted(self._runs(members), key=lambda run: -run[0].count(".")):
            title = run[0] if len(run) == 1 else f"{run[0]} … {run[-1]}, ×{len(run)}"
            nodes = [n for path in run for n in members[path] if n not in found]
            if nodes:
                found |= self._in_boxes(title, run, nodes)
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

    def _in_boxes(self, title: str, run: list[str], nodes: Sequence[int]) -> dict[int, Group]:
        """Nodes in as few boxes as make no cycle; those left over are in none."""
        pieces = [whole] if (whole := self._whole(run, nodes)) else self._connected(nodes)
        boxes = [p for p in pieces if whole or (len(p) > 1 and not self._between(p))]
        return {n: Group(title, 0, part) for part, piece in enumerate(boxes) for n in piece}

    def _whole(self, run: list[str], nodes: Sequence[int]) -> list[int]:
        """The nodes and those that their box takes in; empty if they can't be one box."""
        between = self._between(nodes)
        if between and self.graph.reading.modules != "guessed":
            return []
        around = all(
            _contains(self.graph.nodes[index].module, path) for index in between for path in run
        )
        return [*nodes, *between] if around else []

    def _between(self, nodes: Sequence[int]) -> set[int]:
        """Other nodes on a way out of these and back in. Edges lead to larger indices."""
        inside, after, before = set(nodes), set(), set()
        stretch = range(min(nodes), max(nodes))
        for index in stretch:
            if index in inside or index in after:
                after.update(t for t in self._targets[index] if t not in inside)
        for index in reversed(stretch):
            if index not in inside and any(
                t in inside or t in before for t in self._targets[index]
            ):
                before.add(index)
        return after & before

    def _connected(self, nodes: Sequence[int]) -> list[list[int]]:
        """The nodes in parts that edges among them connect."""
        inside = set(nodes)
        part = {index: index for index in nodes}

        def root(index: int) -> int:
            while part[index] != index:
                part[index] = part[part[index]]
                index = part[index]
            return index

        for index in nodes:
            for target in self._targets[index]:
                if target in inside:
                    part[root(target)] = root(index)
        found: dict[int, list[int]] = {}
        for index in nodes:
            found.setdefault(root(index), []).append(index)
        return list(found.values())

    @cached_property
    def _targets(self) -> list[list[int]]:
        targets: list[list[int]] = [[] for _ in self.graph.nodes]
        for edge in self.graph.edges:
            targets[edge.source].append(edge.target)
        return targets

    def _runs(self, members: Mapping[str, Sequence[int]]) -> Iterator[list[str]]:
        """Modules with consecutive numbers and equal content that may be one box."""
        run: list[str] = []
        for path in sorted(members, key=_place):
            if run and not self._joins(members, run[-1], path):
                yield from self._checked(members, run)
                run = []
            run.append(path)
        if run:
            yield from self._checked(members, run)

    def _joins(self, members: Mapping[str, Sequence[int]], path: str, other: str) -> bool:
        return (
            self._follows(path, other)
            and self._equal(members, path, other)
            and bool(self._whole([path, other], [*members[path], *members[other]]))
        )

    def _checked(self, members: Mapping[str, Sequence[int]], run: list[str]) -> Iterator[list[str]]:
        """The run, if a way around its middle does not lead back into it; else its modules."""
        if len(run) > 2 and not self._whole(run, [n for path in run for n in members[path]]):
            yield from ([path] for path in run)
        else:
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


def _contains(module: str | None, path: str) -> bool:
    """Whether ``path`` leads into a module that is given by its own path; the model holds all."""
    return module is not None and (not module or f"{path}.".startswith(f"{module}."))


def _cut(path: str, depth: int) -> str:
    """The first ``depth`` parts of a path; of a path of two modules, both are cut."""
    cut = (".".join(one.split(".")[:depth]) for one in path.split(" = "))
    return " = ".join(dict.fromkeys(cut))


def _place(path: str) -> tuple[str, int]:
    """The path before a number at its end, and that number; -1 where there is none."""
    match = re.fullmatch(r"(.*?)(\d+)", path)
    return (match[1], int(match[2])) if match else (path, -1)

"""A graph as Graphviz source: where boxes and edges stand, and which are left out.

A film draws the same picture many times with other :class:`Looks`; everything that will ever be
written has its place from the start, so nothing moves between frames.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from math import ceil

from ..graphs.grad_graph import GradGraph
from ..graphs.record import Node
from .dot import DotPicture
from .folding import Folded
from .graph_boxes import ACROSS, ROW, SPARE, STILL, Looks, box
from .graph_facts import is_detailed
from .graph_groups import folded as folded_graph
from .sketch import width_of
from .tables import cell, table
from .tables import words as written
from .text import clip
from .theme import FONT, light

LONGEST = 6
"""Edges one after the other. The boxes of a longer way would not have room beside each other."""


def picture(graph: GradGraph, folded: Folded, looks: Looks | None = None) -> DotPicture:
    """Return the picture of ``graph``: outputs at the top, leaves at the bottom.

    A short graph offers a wide layout, which reads in the same order: outputs at the left, leaves
    at the right. In both, arrows show the way of the gradient.
    """
    looks = looks or Looks()
    starts, ends = _ends(graph, folded)
    short = max(_height(starts, ends, len(graph.nodes)), default=0) <= LONGEST
    across = DotPicture(_source(graph, folded, replace(looks, direction=ACROSS))) if short else None
    return DotPicture(_source(graph, folded, looks), wide=across)


def source(graph: GradGraph, folded: Folded | None = None, looks: Looks | None = None) -> str:
    """Return DOT source for ``graph``, folded by its own settings unless ``folded`` is given."""
    return _source(graph, folded or folded_graph(graph), looks or Looks())


def _source(graph: GradGraph, folded: Folded, looks: Looks) -> str:
    detailed = is_detailed(folded)
    as_rows = set() if detailed else _leaves_as_rows(graph, folded)
    starts, ends = _ends(graph, folded)
    below = _height(starts, ends, len(graph.nodes))
    rows: dict[int, list[Node]] = {}
    boxed = set()
    for start, end in zip(starts, ends, strict=True) if as_rows else ():
        if end in as_rows and start not in folded.joined:
            rows.setdefault(start, []).append(graph.nodes[end])
        elif end in as_rows:
            boxed.add(end)  # a fold uses it, too: an edge from there leads to its box

    def statements() -> Iterator[str]:
        way = looks.direction
        apart = 0.15 if looks.edges else way.apart  # labels of a film's edges keep boxes apart
        yield f"digraph {{ rankdir={way.rankdir} ranksep={apart} {_SETTINGS}"
        if not detailed:
            yield "mclimit=0.3"
        for item in folded.items:
            if item not in as_rows or item in boxed:
                yield box(graph, folded, item, rows.get(item, ()), looks, detailed)
        for number, start, end in zip(folded.links, starts, ends, strict=True):
            if end not in as_rows or start in folded.joined:
                # A heavier edge is drawn straighter: so is then the longest way down.
                spine = below[start] == below[end] + 1
                yield _edge(graph, number, start, end, looks, spine)
        yield "}"

    return "\n".join(_in_chunks(statements()))


def _in_chunks(lines: Iterator[str], size: int = 1000) -> Iterator[str]:
    """Join every ``size`` lines: hundreds of thousands of small strings would double the memory."""
    while chunk := "\n".join(islice(lines, size)):
        yield chunk


def _ends(graph: GradGraph, folded: Folded) -> tuple[array[int], array[int]]:
    """The items that each edge in the picture leaves and reaches."""
    starts = array("q", (folded.item_of[graph.edges[k].source] for k in folded.links))
    ends = array("q", (folded.item_of[graph.edges[k].target] for k in folded.links))
    return starts, ends


def _height(starts: array[int], ends: array[int], size: int) -> array[int]:
    """Number of edges on the longest way down from each item (a cycle of groups is cut)."""
    height = array("q", bytes(8 * size))
    for start, end in zip(reversed(starts), reversed(ends), strict=True):  # in order of sources
        if end > start:
            height[start] = max(height[start], height[end] + 1)
    return height


_SETTINGS = (
    "nodesep=0.25 bgcolor=transparent "
    f'node [fontname="{FONT}" fontsize={ROW} shape=box style="rounded,filled" margin="0.1,0.03" '
    f'color="{light("line")}" fillcolor="{light("paper")}" fontcolor="{light("ink")}" '
    'class="op" id="\\N"] '
    f'edge [fontname="{FONT}" fontsize={ROW} arrowsize=0.7 color="{light("line")}" '
    f'fontcolor="{light("muted")}" class="edge"]'
)


def _leaves_as_rows(graph: GradGraph, folded: Folded) -> set[int]:
    """The leaves that are a row in each single node that uses them."""
    targets = {graph.edges[number].target for number in folded.links}
    return {
        target
        for target in targets
        if graph.nodes[target].leaf is not None and folded.item_of[target] not in folded.joined
    }


def _edge(
    graph: GradGraph, number: int, from_item: int, to_item: int, looks: Looks, spine: bool
) -> str:
    edge = graph.edges[number]
    look = looks.edges.get(number, STILL)
    start, end = f"node{from_item}", f"node{to_item}"
    words = [f"output {edge.input_nr}"] if len(graph.nodes[edge.target].outputs) > 1 else []
    words += [look.text] if look.text else []
    weight = " weight=8" if spine else ""
    if not words and not look.state:
        return f"{start} -> {end} [id=edge{number}{weight}]"
    attributes = [f"id=edge{number}{weight}"]
    if look.state:
        attributes.append(f'class="edge {look.state}"')
    if words:
        said = clip(": ".join(words), 44)
        attributes.append(f"label=<{_label(said)}>")
    if look.state in ("now", "done"):
        width = 2.2 if look.state == "now" else 1.2
        colour = light("gradient")
        attributes.append(f'color="{colour}" fontcolor="{colour}" penwidth={width}')
    elif look.state == "wait":
        attributes.append("style=dashed fontcolor=transparent")
    elif look.state == "none":
        attributes.append("style=dotted")
    return f"{start} -> {end} [{' '.join(attributes)}]"


def _label(said: str) -> str:
    """The label of an edge, a little away from it."""
    room = ceil(width_of(said, ROW)) + SPARE
    cells = [cell(width=4), cell(written(said), align="LEFT", width=room)]
    return table([cells], cellborder=0, cellspacing=0, cellpadding=0)

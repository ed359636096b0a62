"""The boxes of a graph's picture: how an operation, a leaf or a fold looks.

Operations are rounded boxes, leaves square ones. What an operation saved stands in it as filled
rows. Graphviz measures with its own font, and the page draws with another. So every row asks for
the width that its text takes in a wide font.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from ..graphs.grad_graph import GradGraph
from ..graphs.record import Node
from ..saving.record import SavedTensor
from .dot import quoted
from .folding import Folded, Joined
from .graph_facts import Fact, facts, gone, has_note, joined_facts
from .sketch import width_of
from .tables import cell, table, words
from .text import clip, short_name
from .theme import light


@dataclass(frozen=True)
class Look:
    """How a node or an edge looks in one frame.

    Attributes:
        state: ``"now"``, ``"done"``, ``"wait"``, or ``""`` for a still picture; ``"none"`` for an
            edge that carried nothing.
        freed: fields whose rows are shown as let go.
        text: the last line of a leaf, or the label of an edge; on an edge it keeps its place while
            the edge waits.
        room: points to keep free for that line.
    """

    state: str = ""
    freed: frozenset[str] = frozenset()
    text: str = ""
    room: float = 0


STILL = Look()


@dataclass(frozen=True)
class Direction:
    """Which way a picture goes from an output to the leaves.

    Attributes:
        rankdir: Graphviz's word for it.
        beside: the most letters in the first line of a box: a name and what stands beside it.
        apart: inches between a box and the next one.
    """

    rankdir: str
    beside: int
    apart: float


DOWN = Direction("TB", beside=34, apart=0.25)
ACROSS = Direction("LR", beside=18, apart=0.2)


@dataclass(frozen=True)
class Looks:
    """The looks of one frame: by item of the folded graph, and by edge index."""

    items: Mapping[int, Look] = field(default_factory=dict)
    edges: Mapping[int, Look] = field(default_factory=dict)
    direction: Direction = DOWN


def box(
    graph: GradGraph,
    folded: Folded,
    item: int,
    uses: Sequence[Node],
    looks: Looks,
    detailed: bool,
) -> str:
    """The DOT statement for one item; ``uses`` are leaves drawn as rows in it."""
    look = looks.items.get(item, STILL)
    name = f"node{item}"
    if item in folded.joined:
        return _joined(graph, folded.joined[item], name, look)
    node = graph.nodes[item]
    if node.kind == "leaf":
        return _leaf(graph, node, name, look, looks.direction)
    return _operation(graph, node, name, uses, look, looks.direction, detailed)


_STATE = {
    # state: (border, fill, width, dashed)
    "": ("line", "paper", 1, False),
    "wait": ("line", "paper", 1, True),
    "now": ("gradient", "gradient-fill", 2.5, False),
    "done": ("done", "done-fill", 1.2, False),
}
_KIND_BORDER = {"custom": "forward", "compiled": "forward", "opaque": "muted"}


def _operation(
    graph: GradGraph,
    node: Node,
    name: str,
    uses: Sequence[Node],
    look: Look,
    direction: Direction,
    detailed: bool,
) -> str:
    special = node.saved or node.hooks or node.kind != "op" or look.state or uses
    if not detailed and not special:
        if not any(output.name or output.given for output in node.outputs):
            return f"{name} [{_plain(node)}]"
    title, known = _titled(node, facts(graph, node, detailed), direction)
    rows = [_row(fact, look) for fact in known if fact.brief]
    rows += [_cell(_leaf_words(graph, leaf), frame="parameter") for leaf in uses]
    border, fill, width, dashed = _STATE[look.state]
    if not look.state:
        border = _KIND_BORDER.get(node.kind, border)
        width = 1.6 if node.kind in _KIND_BORDER else width
    kind = node.kind if node.kind != "op" else ""
    noted = "noted" if has_note(node, detailed) else ""
    attributes = [f"class={quoted(' '.join(filter(None, ('op', kind, look.state, noted))))}"]
    if border != "line" or width != 1:
        attributes.append(f'color="{light(border)}" penwidth={width}')
    if fill != "paper":
        attributes.append(f'fillcolor="{light(fill)}"')
    if dashed:
        attributes.append('style="rounded,filled,dashed"')
    label = f"label=<{_table([title, *rows])}>" if rows or len(known) else _plain(node)
    return f"{name} [{label} {' '.join(attributes)}]"


def _plain(node: Node) -> str:
    """The label of a node of which only the name is said."""
    name = short_name(node.label)
    return f"label={quoted(name)} fontsize={TITLE} width={(width_of(name, TITLE) + SPARE) / 72:.2f}"


def _titled(node: Node, known: list[Fact], direction: Direction) -> tuple[str, list[Fact]]:
    """The first row of a node, and the facts for the others.

    What an operation makes, and shape and version of a leaf stand beside the name where there is
    room.
    """
    name = short_name(node.label)
    beside = [fact for fact in known if fact.kind in ("output", "shape", "version")]
    said = ", ".join(fact.brief for fact in beside)
    if not beside or len(node.outputs) > 1 or len(name) + len(said) > direction.beside:
        return _title(name), known
    return _title(name, said, _COLOUR.get(beside[0].kind, "ink")), [
        fact for fact in known if fact not in beside
    ]


_COLOUR = {
    "output": "forward",
    "formula": "muted",
    "attribute": "muted",
    "version": "muted",
    "storage": "muted",
    "opaque": "muted",
    "hook": "gradient",
}


def _row(fact: Fact, look: Look) -> str:
    """The row of a fact; what was saved is a filled row."""
    if fact.saved is not None:
        return _saved(fact.saved, fact.brief, look)
    if fact.kind == "grad":
        return _cell(look.text or fact.brief, room=look.room)
    return _cell(fact.brief, colour=_COLOUR.get(fact.kind, "ink"))


def _saved(saved: SavedTensor, held: str, look: Look) -> str:
    freed = saved.freed or saved.field in look.freed
    fill = None if freed else "error-fill" if saved.stale else "saved-fill"
    return _cell(
        gone(saved) if freed else held,
        colour="muted" if freed else "error" if saved.stale else "ink",
        fill=fill,
        room=max(width_of(held, ROW), width_of(gone(saved), ROW)) if look.state else 0,
    )


def _leaf(graph: GradGraph, node: Node, name: str, look: Look, direction: Direction) -> str:
    title, known = _titled(node, facts(graph, node, True), direction)
    rows = [title, *(_row(fact, look) for fact in known)]
    border = "parameter" if not look.state or look.state == "wait" else _STATE[look.state][0]
    fill = _STATE[look.state][1]
    width = 2.5 if look.state == "now" else 1.8
    style = "filled,dashed" if look.state == "wait" else "filled"
    classes = " ".join(filter(None, ("leaf", look.state)))
    return (
        f'{name} [label=<{_table(rows)}> class={quoted(classes)} style="{style}" '
        f'color="{light(border)}" fillcolor="{light(fill)}" penwidth={width}]'
    )


def _leaf_words(graph: GradGraph, node: Node) -> str:
    """A leaf as one row of a node that uses it."""
    shape, grad, *more = facts(graph, node, True)
    words = [f"↓ {short_name(node.label, 40)} {shape.brief}"]
    words += [grad.brief] if node.leaf.grad is not None else []
    return clip(" ".join((*words, *(fact.brief for fact in more))), 60)


def _joined(graph: GradGraph, joined: Joined, name: str, look: Look) -> str:
    size, *saved = joined_facts(graph, joined)
    rows = [_title(short_name(joined.group.title)), _cell(size, colour="muted")]
    rows += [_cell(words, fill="saved-fill") for words in saved]
    border, fill, width, _ = _STATE[look.state]
    opens = f"opens opens_{joined.group.opens}" if joined.group.opens else ""
    classes = " ".join(filter(None, ("joined", opens, look.state)))
    return (
        f"{name} [label=<{_table(rows)}> class={quoted(classes)} "
        f'style="rounded,filled,dashed" color="{light(border)}" fillcolor="{light(fill)}" '
        f"penwidth={width}]"
    )


TITLE, ROW = 12, 10.5
"""Sizes of the name of a node and of what is said of it, in points.

Inside of a label Graphviz takes whole numbers only, so the second one is the size of the label.
"""

PADDING = 1
SPARE = 6
"""Points that stay free at the right of every text."""


def _table(cells: list[str]) -> str:
    return table(([one] for one in cells), cellborder=0, cellspacing=1, cellpadding=PADDING)


def _title(name: str, beside: str = "", colour: str = "ink") -> str:
    """The name of a node in bold, and something at the right end of its line.

    Each has a cell of its own: in a wide font the first would run into the second. What is aligned
    at the right ends there in every font, and the margin of the box keeps it from the border.
    """
    said = f"<B>{words(name, point_size=TITLE)}</B>"
    if not beside:
        return cell(said, align="LEFT", width=_room(_bold_width(name)))
    both = [
        cell(said, align="LEFT", width=ceil(_bold_width(name)) + SPARE),
        cell(words(beside, color=colour), align="RIGHT", width=ceil(width_of(beside, ROW))),
    ]
    return cell(table([both], cellborder=0, cellspacing=0, cellpadding=0))


def _bold_width(text: str) -> float:
    """How wide a title is at most, in points."""
    return 1.12 * width_of(text, TITLE)


def _room(width: float) -> int:
    """The width of a cell for a text of this width."""
    return ceil(width) + 2 * PADDING + SPARE


def _cell(
    text: str,
    *,
    colour: str = "ink",
    fill: str | None = None,
    frame: str | None = None,
    room: float = 0,
) -> str:
    return cell(
        words(text, color=colour),
        align="LEFT",
        bgcolor=fill,
        border=1 if frame else None,
        color=frame,
        width=_room(max(room, width_of(text, ROW))),
    )

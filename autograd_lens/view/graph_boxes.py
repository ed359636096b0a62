"""The boxes of a graph's picture: how an operation, a leaf or a fold looks.

Operations are rounded boxes, leaves square ones. What an operation saved stands in it as filled
rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..graphs.grad_graph import GradGraph
from ..graphs.record import Node
from ..saving.record import SavedTensor
from .dot import quoted
from .folding import Folded, Joined
from .graph_facts import Fact, facts, joined_facts
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
        reserve: characters to keep free for that line.
    """

    state: str = ""
    freed: frozenset[str] = frozenset()
    text: str = ""
    reserve: int = 0


STILL = Look()


@dataclass(frozen=True)
class Looks:
    """The looks of one frame: by item of the folded graph, and by edge index."""

    items: Mapping[int, Look] = field(default_factory=dict)
    edges: Mapping[int, Look] = field(default_factory=dict)


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
        return _leaf(graph, node, name, look)
    return _operation(graph, node, name, uses, look, detailed)


_STATE = {
    # state: (border, fill, width, dashed)
    "": ("line", "paper", 1, False),
    "wait": ("line", "paper", 1, True),
    "now": ("gradient", "gradient-fill", 2.5, False),
    "done": ("done", "done-fill", 1.2, False),
}
_KIND_BORDER = {"custom": "forward", "compiled": "forward", "opaque": "muted"}


def _operation(
    graph: GradGraph, node: Node, name: str, uses: Sequence[Node], look: Look, detailed: bool
) -> str:
    special = node.saved or node.hooks or node.kind != "op" or look.state or uses
    if not detailed and not special:
        if not any(output.name or output.given for output in node.outputs):
            return f"{name} [label={quoted(short_name(node.label))}]"
    rows = [_row(fact, look) for fact in facts(graph, node, detailed)]
    rows += [_cell(_leaf_words(graph, leaf), frame="parameter") for leaf in uses]
    border, fill, width, dashed = _STATE[look.state]
    if not look.state:
        border = _KIND_BORDER.get(node.kind, border)
        width = 1.6 if node.kind in _KIND_BORDER else width
    classes = " ".join(filter(None, ("op", node.kind if node.kind != "op" else "", look.state)))
    attributes = [f"class={quoted(classes)}"]
    if border != "line" or width != 1:
        attributes.append(f'color="{light(border)}" penwidth={width}')
    if fill != "paper":
        attributes.append(f'fillcolor="{light(fill)}"')
    if dashed:
        attributes.append('style="rounded,filled,dashed"')
    if rows:
        label = f"<{_table([_cell(short_name(node.label), bold=True, size=12)] + rows)}>"
    else:
        label = quoted(short_name(node.label))
    return f"{name} [label={label} {' '.join(attributes)}]"


_COLOUR = {
    "output": "forward",
    "formula": "muted",
    "attribute": "muted",
    "version": "muted",
    "opaque": "muted",
    "hook": "gradient",
}


def _row(fact: Fact, look: Look) -> str:
    """The row of a fact; what was saved is a filled row."""
    if fact.saved is not None:
        return _saved(fact.saved, fact.brief, fact.place, look)
    if fact.kind == "grad":
        return _cell(look.text or fact.brief, reserve=look.reserve)
    return _cell(fact.brief, colour=_COLOUR.get(fact.kind, "ink"))


def _saved(saved: SavedTensor, held: str, place: int, look: Look) -> str:
    gone = f"✓ {short_name(saved.field, 40)} freed"
    freed = saved.freed or saved.field in look.freed
    if saved.empty and not freed:
        return _cell(held, colour="muted")
    fill = None if freed else "error-fill" if saved.stale else "saved-fill"
    return _cell(
        gone if freed else held,
        colour="muted" if freed else "error" if saved.stale else "ink",
        fill=fill,
        port=f"s{place}",
        reserve=max(len(held), len(gone)) if look.state else 0,
    )


def _leaf(graph: GradGraph, node: Node, name: str, look: Look) -> str:
    rows = [_cell(short_name(node.label), bold=True, size=12)]
    rows += [_row(fact, look) for fact in facts(graph, node, True)]
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
    rows = [_cell(short_name(joined.group.title), bold=True, size=12), _cell(size, colour="muted")]
    rows += [_cell(words, fill="saved-fill") for words in saved]
    border, fill, width, _ = _STATE[look.state]
    opens = f"opens opens_{joined.group.opens}" if joined.group.opens else ""
    classes = " ".join(filter(None, ("joined", opens, look.state)))
    return (
        f"{name} [label=<{_table(rows)}> class={quoted(classes)} "
        f'style="rounded,filled,dashed" color="{light(border)}" fillcolor="{light(fill)}" '
        f"penwidth={width}]"
    )


def _table(cells: list[str]) -> str:
    return table(([one] for one in cells), cellborder=0, cellspacing=1, cellpadding=2)


def _cell(
    text: str,
    *,
    bold: bool = False,
    size: int = 10,
    colour: str = "ink",
    fill: str | None = None,
    frame: str | None = None,
    port: str | None = None,
    reserve: int = 0,
) -> str:
    said = words(text, point_size=size, color=colour)
    return cell(
        f"<B>{said}</B>" if bold else said,
        align="LEFT",
        bgcolor=fill,
        border=1 if frame else None,
        color=frame,
        port=port,
        width=min(600, int(reserve * 6.2)) or None,
    )

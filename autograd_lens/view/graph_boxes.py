"""The boxes of a graph's picture: how an operation, a leaf or a fold looks.

Operations are rounded boxes, leaves square ones. What an operation saved stands in it as filled
rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..graphs.grad_graph import GradGraph
from ..graphs.record import Node
from ..saving.record import SavedTensor
from .dot import escaped, quoted
from .folding import Folded, Joined
from .graph_text import hook_words
from .text import clip, count, grad_words, shape_words, short_bytes
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
        return _leaf(node, name, look)
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
            return f'{name} [label="{node.label}"]'
    rows = _operation_rows(graph, node, look, detailed)
    rows += [_cell(_leaf_words(leaf), frame="parameter") for leaf in uses]
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
        label = f"<{_table([_cell(node.label, bold=True, size=12)] + rows)}>"
    else:
        label = quoted(node.label)
    return f"{name} [label={label} {' '.join(attributes)}]"


def _operation_rows(graph: GradGraph, node: Node, look: Look, detailed: bool) -> list[str]:
    rows = []
    for number, output in enumerate(node.outputs):
        if output.name or output.given:
            which = f"output {number}: " if len(node.outputs) > 1 else ""
            words = f"{which}{output.name or 'output'} {shape_words(output.shape)}"
            rows.append(_cell(clip(words, 40), colour="forward"))
    if detailed:
        rows += [_cell(clip(words, 38), colour="muted") for words in formula_words(graph, node)[:2]]
    for name, text in node.attributes if detailed else ():
        if not name.endswith(("_sizes", "_strides", "_options")):
            rows.append(_cell(clip(f"{name} = {text}", 38), colour="muted"))
    rows += [_saved(graph, saved, k, look) for k, saved in enumerate(node.saved) if _shown(saved)]
    rows += [_cell(f"⚑ {words}", colour="gradient") for words in hook_words(node)]
    if node.kind == "opaque":
        rows.append(_cell("(opaque: shows nothing of what it saved)", colour="muted"))
    return rows


def _shown(saved: SavedTensor) -> bool:
    return saved.freed or not saved.empty


def _saved(graph: GradGraph, saved: SavedTensor, place: int, look: Look) -> str:
    held = saved_words(graph, saved)
    gone = f"✓ {saved.field} freed"
    freed = saved.freed or saved.field in look.freed
    fill = None if freed else "error-fill" if saved.stale else "saved-fill"
    return _cell(
        gone if freed else held,
        colour="muted" if freed else "error" if saved.stale else "ink",
        fill=fill,
        port=f"s{place}",
        reserve=max(len(held), len(gone)) if look.state else 0,
    )


def saved_words(graph: GradGraph, saved: SavedTensor) -> str:
    """One saved tensor in a few words: field, whose memory, shape, bytes, version if changed."""
    words = [saved.field]
    words += [names[0] for n in saved.storages if (names := graph.storages[n].names)][:1]
    if saved.packed:
        words.append(f"packed as {saved.kind}")
    else:
        words.append(shape_words(saved.shape))
    words.append(short_bytes(saved.bytes))
    if saved.stale:
        words.append(f"version {saved.version}, saved at {saved.saved_version}")
    elif saved.version:
        words.append(f"version {saved.version}")
    return clip(" ".join(words), 60)


def _leaf(node: Node, name: str, look: Look) -> str:
    leaf = node.leaf
    rows = [_cell(clip(node.label, 60), bold=True, size=12)]
    if leaf is not None:
        rows.append(_cell(shape_words(leaf.shape)))
        grad = look.text or f".grad {grad_words(leaf.grad, leaf.grad_values)}"
        rows.append(_cell(grad, reserve=look.reserve))
        if leaf.version:
            rows.append(_cell(f"version {leaf.version}", colour="muted"))
    rows += [_cell(f"⚑ {words}", colour="gradient") for words in hook_words(node)]
    border = "parameter" if not look.state or look.state == "wait" else _STATE[look.state][0]
    fill = _STATE[look.state][1]
    width = 2.5 if look.state == "now" else 1.8
    style = "filled,dashed" if look.state == "wait" else "filled"
    classes = " ".join(filter(None, ("leaf", look.state)))
    return (
        f'{name} [label=<{_table(rows)}> class={quoted(classes)} style="{style}" '
        f'color="{light(border)}" fillcolor="{light(fill)}" penwidth={width}]'
    )


def _leaf_words(node: Node) -> str:
    leaf = node.leaf
    words = f"↓ {node.label} {shape_words(leaf.shape)}"
    if leaf.grad is not None:
        words += f" .grad {grad_words(leaf.grad, leaf.grad_values)}"
    return clip(" ⚑ ".join((words, *hook_words(node))), 60)


def _joined(graph: GradGraph, joined: Joined, name: str, look: Look) -> str:
    held = {n for index in joined.indices for s in graph.nodes[index].saved for n in s.storages}
    size = sum(graph.storages[n].bytes for n in held)
    rows = [
        _cell(clip(joined.title, 60), bold=True, size=12),
        _cell(count(len(joined.indices), "node"), colour="muted"),
    ]
    if size:
        rows.append(_cell(f"saved {short_bytes(size)}", fill="saved-fill"))
    border, fill, width, _ = _STATE[look.state]
    classes = " ".join(filter(None, ("joined", look.state)))
    return (
        f"{name} [label=<{_table(rows)}> class={quoted(classes)} "
        f'style="rounded,filled,dashed" color="{light(border)}" fillcolor="{light(fill)}" '
        f"penwidth={width}]"
    )


def formula_words(graph: GradGraph, node: Node) -> list[str]:
    """The formulas of the inputs that need a gradient, in brief."""
    skipped: set[str] = set()
    inputs = list(node.formula)
    if len(inputs) == graph.fan_out(node.index) + len(node.no_grad_inputs):
        skipped = {inputs[slot] for slot in node.no_grad_inputs}
    return [f"{name}: {brief(text)}" for name, text in node.formula.items() if name not in skipped]


_OBVIOUS = re.compile(
    r"\w+(?:->|\.)"
    r"(?:sym_sizes|sym_strides|sym_numel|sym_size|layout|scalar_type|options|dim)\([^()]*\)"
)
_CALL = re.compile(r"(\w+)\(([^()]*)\)")


def brief(formula: str) -> str:
    """A formula without what only carries sizes and types, and without its check for "undefined".

    >>> brief("mm_mat2_backward(grad, self, mat2.sym_sizes(), mat2.sym_strides(), alpha)")
    'mm_mat2_backward(grad, self, alpha)'
    """
    if " ? " in formula:
        formula = formula.split(" ? ", 1)[1].split(" : ", 1)[0]
    marked = _OBVIOUS.sub("§", formula)
    complex_to_real = re.fullmatch(r"handle_r_to_c\(§, (.*)\)", marked)
    if complex_to_real:
        marked = complex_to_real[1]

    def keep(match: re.Match[str]) -> str:
        arguments = [a for a in match[2].split(", ") if a != "§"]
        if match[2] and not arguments:
            arguments = ["…"]
        return f"{match[1]}({', '.join(arguments)})"

    return _CALL.sub(keep, marked).replace("§", "…")


def _table(cells: list[str]) -> str:
    rows = "".join(f"<TR>{cell}</TR>" for cell in cells)
    return f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="1" CELLPADDING="2">{rows}</TABLE>'


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
    attributes = 'ALIGN="LEFT"'
    if fill:
        attributes += f' BGCOLOR="{light(fill)}"'
    if frame:
        attributes += f' BORDER="1" COLOR="{light(frame)}"'
    if port:
        attributes += f' PORT="{port}"'
    if reserve:
        attributes += f' WIDTH="{min(600, int(reserve * 6.2))}"'
    words = f'<FONT POINT-SIZE="{size}" COLOR="{light(colour)}">{escaped(text) or " "}</FONT>'
    return f"<TD {attributes}>{f'<B>{words}</B>' if bold else words}</TD>"

"""A graph as text, from the facts that its picture is made of."""

from __future__ import annotations

from ..graphs.grad_graph import GradGraph
from ..graphs.record import Node
from .folding import Folded, Joined
from .graph_facts import Fact, facts, is_detailed, joined_facts
from .text import count, short_name


def head(graph: GradGraph) -> str:
    """One line on the whole graph."""
    leaves = len(graph.leaves)
    line = (
        f"graph of {count(len(graph.nodes), 'node')} ({count(leaves, 'leaf', 'leaves')}), "
        f"{count(len(graph.edges), 'edge')}, depth {graph.depth:,}, saves {graph.saved_bytes:,} B"
    )
    if graph.plain_outputs:
        line += f"; {count(graph.plain_outputs, 'output')} without a graph"
    if graph.unreached:
        line += f"; no gradient reaches {some([short_name(name) for name in graph.unreached])}"
    return line


def text(graph: GradGraph, folded: Folded) -> str:
    """One line per item in engine order, and one for each fact of a single node."""
    following: dict[int, list[str]] = {}
    for number in folded.links:
        edge = graph.edges[number]
        start, end = folded.item_of[edge.source], folded.item_of[edge.target]
        several = len(graph.nodes[edge.target].outputs) > 1 and end not in folded.joined
        following.setdefault(start, []).append(f"{end}.{edge.input_nr}" if several else f"{end}")
    width = len(str(len(graph.nodes) - 1))
    detailed = is_detailed(folded)
    lines = []
    for item in folded.items:
        to = f" -> {some(following[item])}" if item in following else ""
        if item in folded.joined:
            lines.append(f"{item:>{width}} {joined_words(graph, folded.joined[item])}{to}")
            continue
        node = graph.nodes[item]
        known = facts(graph, node, detailed)
        lines.append(f"{node.index:>{width}} {node_words(node, known)}{to}")
        lines += [f"{'':>{width}}   {fact.words}" for fact in known if fact.kind not in ON_THE_LINE]
    return "\n".join(lines)


ON_THE_LINE = ("output", "shape", "grad")
"""Facts that stand beside the label of a node."""

TARGETS = 12
"""A line names at most so many nodes to which edges lead."""


def some(targets: list[str]) -> str:
    """The targets of a node; of very many, the first and how many more."""
    if len(targets) <= TARGETS:
        return ", ".join(targets)
    return f"{', '.join(targets[: TARGETS - 1])} and {len(targets) - TARGETS + 1:,} more"


def node_words(node: Node, known: list[Fact]) -> str:
    """The node in one line: label, kind if it is special, what it makes."""
    beside = [fact.words for fact in known if fact.kind in ON_THE_LINE]
    label = short_name(node.label)
    if node.leaf is not None:
        return f"{label}: leaf {', '.join(beside)}"
    words = label if node.kind == "op" else f"{label} [{node.kind}]"
    return " ".join((words, *beside))


def joined_words(graph: GradGraph, joined: Joined) -> str:
    """Several nodes in one line: what they are, how many, and what they keep alive."""
    return f"[{short_name(joined.group.title)}: {', '.join(joined_facts(graph, joined))}]"

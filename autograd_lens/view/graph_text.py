"""A graph as text: the twin of its picture, line for line."""

from __future__ import annotations

from collections import Counter

from ..graphs.grad_graph import GradGraph
from ..graphs.record import Node
from ..saving.record import SavedTensor
from .folding import Folded
from .graph_groups import folded as folded_graph
from .text import count, grad_words, shape_words


def head(graph: GradGraph) -> str:
    """One line on the whole graph."""
    leaves = len(graph.leaves)
    line = (
        f"graph of {count(len(graph.nodes), 'node')} ({count(leaves, 'leaf', 'leaves')}), "
        f"{count(len(graph.edges), 'edge')}, depth {graph.depth:,}, saves {graph.saved_bytes:,} B"
    )
    if graph.plain_outputs:
        line += f"; {count(graph.plain_outputs, 'output')} without a graph"
    return line


def twin(graph: GradGraph, folded: Folded | None = None) -> str:
    """One line per node in engine order, one more for each saved tensor."""
    folded = folded or folded_graph(graph)
    following: dict[int, list[str]] = {}
    for number in folded.links:
        edge = graph.edges[number]
        start, end = folded.item_of[edge.source], folded.item_of[edge.target]
        several = len(graph.nodes[edge.target].outputs) > 1 and end not in folded.joined
        following.setdefault(start, []).append(f"{end}.{edge.input_nr}" if several else f"{end}")
    width = len(str(len(graph.nodes) - 1))
    lines = []
    for item in folded.items:
        to = f" -> {', '.join(following[item])}" if item in following else ""
        if item in folded.joined:
            joined = folded.joined[item]
            size = count(len(joined.indices), "node")
            lines.append(f"{item:>{width}} [{joined.group.title}: {size}]{to}")
            continue
        node = graph.nodes[item]
        lines.append(f"{node.index:>{width}} {node_words(node)}{to}")
        lines += [f"{'':>{width}}   {words}" for words in detail_words(graph, node)]
    return "\n".join(lines)


def node_words(node: Node) -> str:
    """The node in one line: label, kind if it is special, what it makes."""
    if node.kind == "leaf" and node.leaf is not None:
        grad = grad_words(node.leaf.grad, node.leaf.grad_values)
        return f"{node.label}: leaf {shape_words(node.leaf.shape)}, .grad {grad}"
    words = node.label if node.kind == "op" else f"{node.label} [{node.kind}]"
    for number, output in enumerate(node.outputs):
        if output.name or output.given:
            which = f" output {number}" if len(node.outputs) > 1 else ""
            words += f"{which} = {output.name or 'output'} {shape_words(output.shape)}".rstrip()
    return words


def detail_words(graph: GradGraph, node: Node) -> list[str]:
    """What stands below the node's line: attributes, saved tensors, hooks."""
    lines = [
        f"{name} = {text}"
        for name, text in node.attributes
        if not name.endswith(("_sizes", "_strides", "_options"))
    ]
    lines += [f"saved {saved_words(graph, saved)}" for saved in node.saved]
    if node.leaf is not None and node.leaf.version:
        lines.append(f"version {node.leaf.version}")
    lines += [f"hook: {words}" for words in hook_words(node)]
    if node.kind == "opaque":
        lines.append("opaque: shows nothing of what it saved")
    return lines


def hook_words(node: Node) -> list[str]:
    """The hooks of a node: how many of each kind, and on which tensor unless it is the leaf's."""
    counts = Counter((hook.kind, hook.target) for hook in node.hooks)
    words = []
    for (kind, target), number in counts.items():
        if kind == "retain_grad":
            words.append(f"{target} retains its grad")
        else:
            where = "" if node.leaf is not None else f" on {target}"
            words.append(count(number, f"{kind} hook") + where)
    return words


def saved_words(graph: GradGraph, saved: SavedTensor) -> str:
    """One saved tensor: field, shape, bytes, storage and whose it is, versions."""
    if saved.empty:
        return f"{saved.field}: {'freed' if saved.freed else 'not needed'}"
    what = f"packed as {saved.kind}" if saved.packed else shape_words(saved.shape)
    parts = [f"{saved.field}: {what}", f"{saved.bytes:,} B"]
    for number in saved.storages:
        names = graph.storages[number].names
        parts.append(f"storage {number}" + (f" of {names[0]}" if names else ""))
    if saved.stale:
        parts.append(f"CHANGED: version {saved.version}, saved at {saved.saved_version}")
    elif saved.version:
        parts.append(f"version {saved.version}")
    return ", ".join(parts)

"""The still picture of a graph."""

from __future__ import annotations

from ..graphs.grad_graph import GradGraph
from .dot import DotPicture
from .figure import Figure, Frame
from .fold import FOLDED, fold
from .graph_dot import shares_storage, source
from .graph_text import head, twin
from .text import count


def figure(graph: GradGraph) -> Figure:
    """Return the figure of ``graph``: one frame."""
    return Figure(
        title="Autograd graph",
        draw=lambda: frame(graph),
        legend=legend(graph),
        head=head(graph),
    )


def frame(graph: GradGraph) -> Frame:
    """The graph as one frame."""
    folded = fold(graph, graph.shown.max_nodes)
    hidden = sum(len(j.indices) for j in folded.joined.values() if j.title == FOLDED)
    caption = head(graph)
    if hidden:
        caption += f"; {count(hidden, 'node')} folded"
    return Frame(twin(graph, folded), DotPicture(source(graph, folded)), caption=caption)


def legend(graph: GradGraph, max_nodes: int | None = None) -> dict[str, str]:
    """The roles that occur in the picture, with their words."""
    roles = {}
    if any(not s.empty and not s.stale for node in graph.nodes for s in node.saved):
        roles["saved"] = "saved tensor"
    if any(s.stale for node in graph.nodes for s in node.saved):
        roles["error"] = "changed since it was saved"
    if graph.leaves:
        roles["parameter"] = "leaf"
    if shares_storage(graph, max_nodes):
        roles["shared"] = "same storage"
    return roles

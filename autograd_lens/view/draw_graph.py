"""The picture of a graph: one frame, and one for each module that opens."""

from __future__ import annotations

from ..graphs.grad_graph import GradGraph
from .figure import Choice, Figure, Frame
from .folding import Group, Joined
from .graph_dot import picture
from .graph_facts import joined_facts, notes
from .graph_groups import Modules, folded
from .graph_text import head, text
from .text import count, short_name

CLOSED = "all closed"


def figure(graph: GradGraph) -> Figure:
    """Return the figure of ``graph``; its text is that of the first frame."""
    choices: tuple[Choice, ...] = ()
    if graph.shown.group == "module":
        opening = Modules(graph).opening
        choices = (Choice("open", ("", *opening), "menu", (CLOSED, *map(short_name, opening))),)
    return Figure(
        title="Autograd graph",
        draw=lambda open="": frame(graph, open),
        choices=choices,
        legend=legend(graph),
        head=head(graph),
        variants=True,
    )


def frame(graph: GradGraph, opened: str = "") -> Frame:
    """The graph as one frame; ``opened`` is the path of the module that is open."""
    shown = folded(graph, opened)
    caption, numbers = "", head(graph)
    if shown.hidden:
        numbers += f"; {count(shown.hidden, 'node')} folded"
    if opened:
        inside = Joined(Group(opened), tuple(Modules(graph).members[opened]))
        caption = f"{', '.join(joined_facts(graph, inside))}; boxes in it are its own modules."
    return Frame(
        text(graph, shown),
        lambda: picture(graph, shown),
        short_name(opened),
        caption=caption,
        numbers="" if opened else numbers,
        notes=notes(graph, shown),
    )


def legend(graph: GradGraph) -> dict[str, str]:
    """The roles that occur in the picture, with their words."""
    roles = {}
    if any(not s.empty and not s.stale for node in graph.nodes for s in node.saved):
        roles["saved"] = "saved tensor"
    if any(s.stale for node in graph.nodes for s in node.saved):
        roles["error"] = "changed since it was saved"
    if graph.leaves:
        roles["parameter"] = "leaf"
    return roles

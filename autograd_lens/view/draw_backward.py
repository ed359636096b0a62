"""The film of a backward: one frame before it, one for each step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..backprop.gradient import Gradient
from ..backprop.steps import BackwardRecording, BackwardStep, Written
from ..graphs.record import Edge
from .draw_graph import legend
from .figure import Choice, Figure, Frame, Meter
from .folding import Folded
from .graph_boxes import ROW, Look, Looks
from .graph_dot import picture
from .graph_facts import notes
from .graph_groups import folded
from .graph_text import head
from .sketch import width_of
from .text import clip, count, grad_words, nested, shape_words, short_name

MAX_ITEMS = 40
"""A film of more items than this is folded: every frame is a whole picture."""


def figure(recording: BackwardRecording) -> Figure:
    """Return the film. Steps inside a fold make one frame together."""
    film = _Film(recording)
    last = len(film.scenes) - 1
    labels = tuple(f"{k} of {last}" for k in range(last + 1))
    return Figure(
        title="Backward, step by step",
        draw=film.frame,
        choices=(Choice("step", tuple(range(last + 1)), "film", labels, start=min(1, last)),),
        legend={"gradient": "gradient", **legend(recording.graph), "done": "done"},
        head=f"backward over a {head(recording.graph)}",
    )


NOTHING = "none"
"""Label of an edge along which no gradient was sent."""


class _Film:
    """Which steps make which frame, and how everything looks then."""

    def __init__(self, recording: BackwardRecording):
        self.recording = recording
        self.graph = recording.graph
        self.folded: Folded = folded(self.graph, most=MAX_ITEMS)
        self.notes = notes(self.graph, self.folded)
        self.scenes: list[list[BackwardStep]] = [[]]
        for step in recording.steps:
            item = self.folded.item_of[step.node]
            joins = (
                self.scenes[-1]
                and item in self.folded.joined
                and self.folded.item_of[self.scenes[-1][-1].node] == item
            )
            if joins:
                self.scenes[-1].append(step)
            else:
                self.scenes.append([step])
        self.edges_of: dict[int, list[tuple[int, Edge]]] = {}
        for number, edge in enumerate(self.graph.edges):
            self.edges_of.setdefault(edge.source, []).append((number, edge))

    def frame(self, step: int) -> Frame:
        """The frame after scene ``step``; 0 is before the first."""
        scene = self.scenes[step]
        held = scene[-1].saved_bytes if scene else self.recording.saved_bytes
        total = self.recording.saved_bytes
        return Frame(
            text=self.text(step),
            paint=lambda: picture(self.graph, self.folded, self.looks(step)),
            where=f"step {step} of {len(self.scenes) - 1}",
            caption=self.caption(scene),
            notes=self.notes,
            meter=Meter(f"still saved: {held:,} of {total:,} B", held, total) if total else None,
        )

    def looks(self, step: int) -> Looks:
        """States of items and edges in one frame."""
        done = [s for scene in self.scenes[:step] for s in scene]
        now = self.scenes[step]
        items: dict[int, Look] = {}
        room = self._widest()
        for item in self.folded.items:
            items[item] = Look("wait", room=room.get(item, 0))
        edges = dict.fromkeys(range(len(self.graph.edges)), Look("wait"))  # some may never run
        edges |= {
            number: Look("wait", text=text)
            for number, text in self._edge_texts(self.recording.steps)
        }
        for state, steps in (("done", done), ("now", now)):
            for ran in steps:
                item = self.folded.item_of[ran.node]
                text = f".grad {_grad_words(ran.written)}" if ran.written else ""
                items[item] = Look(state, frozenset(ran.freed), text, room.get(item, 0))
            for number, text in self._edge_texts(steps):
                edges[number] = Look(state if text != NOTHING else "none", text=text)
        return Looks(items, edges)

    def _edge_texts(self, steps: Any) -> Iterator[tuple[int, str]]:
        for step in steps:
            for number, edge in self.edges_of.get(step.node, ()):
                gradient = step.outgoing[edge.slot] if edge.slot < len(step.outgoing) else None
                yield number, _short(gradient) if gradient else NOTHING

    def _widest(self) -> dict[int, float]:
        """Room for the last line of each leaf, so that boxes keep their size through the film."""
        room = {}
        for step in self.recording.steps:
            leaf = self.graph.nodes[step.node].leaf
            if leaf is not None and step.written:
                before = grad_words(leaf.grad, leaf.grad_values)
                both = (f".grad {words}" for words in (before, _grad_words(step.written)))
                room[self.folded.item_of[step.node]] = max(width_of(one, ROW) for one in both)
        return room

    def caption(self, scene: list[BackwardStep]) -> str:
        """What just happened, in one or two sentences."""
        if not scene:
            held = self.recording.saved_bytes
            return f"Before the first step: the saved tensors hold {held:,} B."
        if len(scene) > 1:
            names = f"{short_name(scene[0].label)} to {short_name(scene[-1].label)}"
            return f"{count(len(scene), 'node')} of the fold run, {names}."
        step = scene[0]
        came = ", ".join(_short(g) if g else "nothing" for g in step.incoming)
        if self.graph.nodes[step.node].leaf is not None:
            return " ".join(_written_sentence(written, came) for written in step.written)
        sent = [
            f"{_short(g) if g else 'nothing'} to {self._target(step, slot)}"
            for slot, g in enumerate(step.outgoing)
            if self._target(step, slot)
        ]
        words = (
            f"{short_name(step.label)} receives {came} and sends {' and '.join(sent) or 'nothing'}."
        )
        if step.freed:
            words += f" Then it lets go of {', '.join(map(short_name, step.freed))}."
        for written in step.written:
            if written.grad is not None:
                words += f" {short_name(written.name)} keeps its gradient."
        return words

    def _target(self, step: BackwardStep, slot: int) -> str:
        for _, edge in self.edges_of.get(step.node, ()):
            if edge.slot == slot:
                return short_name(self.graph.nodes[edge.target].label)
        return ""

    def text(self, step: int) -> str:
        """The facts of one frame as text."""
        scene = self.scenes[step]
        if not scene:
            return f"step 0  before: {self.recording.saved_bytes:,} B saved"
        if len(scene) > 1:
            numbers = f"{scene[0].number} to {scene[-1].number}"
            return f"steps {numbers}  folded\n  saved {scene[-1].saved_bytes:,} B"
        ran = scene[0]
        lines = [f"step {ran.number}  {short_name(ran.label)}"]
        for number, gradient in enumerate(ran.incoming):
            which = f"in {number}" if len(ran.incoming) > 1 else "in"
            lines.append(f"  {which}  {_long(gradient)}")
        for slot, gradient in enumerate(ran.outgoing):
            target = self._target(ran, slot)
            if target:
                lines.append(f"  to {target}  {_long(gradient)}")
        for written in ran.written:
            lines.append(f"  {short_name(written.name)}.grad  {written.how}: {_long(written.grad)}")
        if ran.freed:
            lines.append(f"  let go: {', '.join(map(short_name, ran.freed))}")
        lines.append(f"  saved {ran.saved_bytes:,} B")
        return "\n".join(lines)


_HOW = {
    "stolen": "{name}.grad takes over the memory of the incoming {came}: nothing is copied.",
    "copied": "{name}.grad becomes a copy of the incoming {came}.",
    "added in place": "The incoming {came} is added to {name}.grad in place.",
    "added out of place": "{name}.grad is replaced by a new tensor, the old one plus {came}.",
    "retained": "{name} keeps its gradient {came}.",
    "left alone": "No gradient arrives, and {name}.grad is left as it was.",
    "taken by a hook": "{name}.grad was written and taken away again by a hook.",
    "beside another thread": "{name}.grad gets {came}; another thread writes it at the same time.",
}


def _written_sentence(written: Written, came: str) -> str:
    return _HOW[written.how].format(came=came, name=short_name(written.name))


def _grad_words(written: tuple[Written, ...]) -> str:
    return _short(written[-1].grad) if written[-1].grad else "None"


def _short(gradient: Gradient) -> str:
    """Values if they are few, else shape and norm; for a picture."""
    return clip(_long(gradient, few=4), 40)


def _long(gradient: Gradient | None, few: int = 16) -> str:
    if gradient is None:
        return "none"
    elements = 1
    for size in gradient.shape:
        elements *= size if isinstance(size, int) else few + 1
    if gradient.values is not None and elements <= few:
        return nested(gradient.values)
    norm = "" if gradient.norm is None else f", norm {gradient.norm:.4g}"
    return f"{shape_words(gradient.shape)}{norm}"

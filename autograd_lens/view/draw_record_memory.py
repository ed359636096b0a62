"""The film of a recording of memory: the curve, and what is alive at each moment of it."""

from __future__ import annotations

from dataclasses import dataclass

from ..memory.recording import MemoryRecording
from .figure import Choice, Figure, Frame, Meter
from .lanes import nearest
from .memory_picture import LISTED, Curve, Ruler, curve, picture
from .memory_text import block_words, lines, table, text
from .text import short_bytes

FRAMES = 48
"""Number of moments on a page: about as many as a slider on a phone can tell apart."""


@dataclass(frozen=True)
class MemoryFigure(Figure):
    """A figure whose text is that of the recording, and not one paragraph per moment.

    The moments depend on the number of events, and that may depend on the number of threads. And
    nobody reads fifty tables.
    """

    summary: str = ""

    def text(self) -> str:
        """The phases, the peak, and what lived then."""
        return self.summary


def figure(recording: MemoryRecording) -> Figure:
    """Return the film."""
    film = _Film(recording, curve(recording))
    events = moments(recording)
    labels = tuple(f"{k} of {len(events) - 1}" for k in range(len(events)))
    return MemoryFigure(
        title="Memory, event by event",
        draw=film.frame,
        choices=(Choice("moment", tuple(events), "film", labels, start=min(1, len(events) - 1)),),
        head=table(recording),
        summary=text(recording),
    )


def moments(recording: MemoryRecording) -> list[int]:
    """Events to stop at: the first, the last, the ends of phases, the peak, and others between.

    The others are evenly spread. Of each stretch it is the event with the largest change.
    """
    ends = [phase.stop - 1 for phase in recording.phases if phase.stop > phase.start]
    chosen = {-1, recording.peak_event, *nearest(ends, FRAMES // 2)}
    between = Ruler(recording).evenly(FRAMES)
    largest = [max(one, key=lambda k: abs(recording.samples[k].change)) for one in between]
    chosen |= set(nearest([k for k in largest if k not in chosen], FRAMES - len(chosen)))
    return sorted(chosen)


class _Film:
    def __init__(self, recording: MemoryRecording, drawn: Curve):
        self.recording, self.curve = recording, drawn
        self.place = Ruler(recording)
        self.ends = {p.stop - 1: p.name for p in recording.phases if p.stop > p.start}

    def label(self, event: int) -> str:
        """A few words for a moment, shown beside the slider."""
        if event == self.recording.peak_event:
            return "peak"
        if event in self.ends:
            return f"end of {self.ends[event]}" if self.ends[event] != "after" else "end"
        return self.recording.at(event).phase or "before"

    def frame(self, moment: int) -> Frame:
        """The picture and the words for one event."""
        sample = self.recording.at(moment)
        live = self.recording.live_at(moment)
        bars = tuple(sample.by_role.get(role, 0) for role in self.curve.roles)
        peak = self.recording.peak_bytes
        what = (
            _what(sample.change, sample.op, sample.role) if moment >= 0 else "nothing has run yet"
        )
        text = "\n".join(
            [
                f"{self.label(moment)}: {sample.total:,} bytes are alive ({what})",
                *(f"  {role}: {n:,}" for role, n in zip(self.curve.roles, bars, strict=True) if n),
                "the largest:",
                *lines(live),
            ]
        )
        return Frame(
            text=text,
            paint=lambda: picture(
                self.curve,
                self.place(moment),
                bars,
                tuple(
                    (block.role, f"{short_bytes(block.bytes)}  {block_words(block)}")
                    for block in live[:LISTED]
                ),
            ),
            where=self.label(moment),
            caption=f"{what}.",
            meter=Meter(f"{sample.total:,} of {peak:,} bytes", sample.total, peak),
        )


def _what(change: int, op: str, role: str) -> str:
    words = f"{abs(change):,} bytes ({role})"
    if change > 0:
        return f"{op} took {words}" if op else f"{words} were taken"
    return f"{op or 'Python'} let go of {words}"

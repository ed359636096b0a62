"""The picture of live memory: the curve by role, and what is alive at one moment.

The horizontal axis counts events, not time. The width of a phase is proportional to the square root
of its number of events. An optimizer's step may have ten times as many events as the forward, and
little happens in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

from ..memory.recording import MemoryRecording
from ..memory.roles import ROLES
from .axis import Axis, fitted
from .canvas import WIDE_POINTS
from .line_labels import spread
from .sketch import Area, Mark, Sketch, Spot, Stroke, Words, box, cut, width_of
from .text import short_bytes

LOOKS = {
    "parameter": ("parameter-fill", "parameter"),
    "buffer": ("panel", "state"),
    "input": ("forward-fill", "forward"),
    "optimizer": ("state-fill", "state"),
    "gradient": ("gradient-fill", "gradient"),
    "activation": ("saved-fill", "saved"),
    "kept": ("line", "ink"),
    "temporary": ("panel", "muted"),
}
"""Fill and edge of each role. The name of the role stands beside its bar."""
assert tuple(LOOKS) == ROLES

POINTS = 110
"""Points of the curve. More would be finer than a pixel on a phone, and make the page larger."""

LISTED = 4
"""Number of blocks that are listed below the bars."""


@dataclass(frozen=True)
class Layout:
    """Where things are in one layout, in points.

    Attributes:
        width: of the picture.
        letters: size of the text.
        left, right: the ends of the horizontal axis.
        top, bottom: the ends of the vertical axis.
        row: height of a row of bars or of the list.
        bars: the upper left corner of the bars; names of roles stand left of it.
        listed: left side of the list of the largest blocks.
    """

    width: float
    letters: float
    left: float
    right: float
    top: float
    bottom: float
    row: float
    bars: tuple[float, float]
    listed: float


NARROW = Layout(252, 9, left=52, right=246, top=33, bottom=178, row=14, bars=(66, 206), listed=4)
WIDE = Layout(
    WIDE_POINTS, 10, left=56, right=300, top=37, bottom=205, row=16, bars=(386, 18), listed=318
)


class Ruler:
    """The place of events on the horizontal axis: 0 is before the first event, 1 is the last."""

    def __init__(self, recording: MemoryRecording):
        self.spans: list[tuple[int, int, float, float]] = []
        widths = [math.sqrt(phase.stop - phase.start) for phase in recording.phases]
        total, left = sum(widths) or 1.0, 0.0
        for phase, width in zip(recording.phases, widths, strict=True):
            right = left + width / total
            self.spans.append((phase.start, phase.stop, left, right))
            left = right

    def __call__(self, event: int) -> float:
        """The place of one event."""
        for start, stop, left, right in self.spans:
            if start <= event < stop:
                return left + (right - left) * (event + 1 - start) / (stop - start)
        return 0.0

    def evenly(self, wanted: int) -> list[range]:
        """Cut the events into about ``wanted`` ranges of equal width; none is empty."""
        cut = []
        for start, stop, left, right in self.spans:
            if start == stop:  # a backward in which nothing was allocated or freed
                continue
            pieces = min(stop - start, max(1, round(wanted * (right - left))))
            ends = [start + (stop - start) * k // pieces for k in range(pieces + 1)]
            cut += [range(a, b) for a, b in zip(ends, ends[1:], strict=False) if a < b]
        return cut


@dataclass(frozen=True)
class Curve:
    """The curve of a recording in few points, as plain numbers.

    Attributes:
        roles: those that occur, from the bottom of the stack to its top.
        xs: places of the points.
        stacked: for each role the top edge of its band, in bytes.
        phases: name, left end and right end of each.
        peak: its place, and its bytes.
        steps: whether to draw it in steps. With many points, steps can't be seen.
    """

    roles: tuple[str, ...]
    xs: tuple[float, ...]
    stacked: tuple[tuple[int, ...], ...]
    phases: tuple[tuple[str, float, float], ...]
    peak: tuple[float, int]
    steps: bool


def curve(recording: MemoryRecording) -> Curve:
    """Choose events for the curve: of each stretch the lowest and the highest, in order."""
    ruler = Ruler(recording)
    total = recording.series()
    chosen = {-1, len(recording.samples) - 1}
    for stretch in ruler.evenly(POINTS // 2):
        chosen |= {
            min(stretch, key=lambda k: total[k + 1]),
            max(stretch, key=lambda k: total[k + 1]),
        }
    events = sorted(chosen)
    roles = tuple(role for role in recording.roles if any(recording.series(role)))
    below, stacked = [0] * len(events), []
    for role in roles:
        series = recording.series(role)
        below = [low + series[event + 1] for low, event in zip(below, events, strict=True)]
        stacked.append(tuple(below))
    return Curve(
        roles=roles,
        xs=tuple(map(ruler, events)),
        stacked=tuple(stacked),
        phases=tuple(
            (phase.name, left, right)
            for phase, (_, _, left, right) in zip(recording.phases, ruler.spans, strict=True)
        ),
        peak=(ruler(recording.peak_event), recording.peak_bytes),
        steps=len(recording.samples) <= POINTS,
    )


def picture(
    curve: Curve, now: float, bars: tuple[int, ...], largest: tuple[tuple[str, str], ...]
) -> Sketch:
    """Draw the curve with a moment marked on it, and what is alive then.

    On a phone the bars stand below the curve, on a desk beside it: the result offers that layout as
    ``wide``.

    Args:
        curve: the curve.
        now: place of the moment.
        bars: bytes of each of the curve's roles at that moment.
        largest: role and words for the largest blocks.
    """
    narrow, wide = (
        Sketch(
            (layout.width, max(layout.bottom + 20, _rows_end(layout, len(bars)))),
            (
                *_curve(curve, layout),
                *_here(curve, layout, now, sum(bars)),
                *_bars(curve, layout, bars),
                *_list(layout, layout.bars[1] + layout.row * len(bars) + 6, largest),
            ),
        )
        for layout in (NARROW, WIDE)
    )
    return replace(narrow, wide=wide)


def _rows_end(layout: Layout, bars: int) -> float:
    return layout.bars[1] + layout.row * (bars + LISTED + 1) + 2


def _bars(curve: Curve, layout: Layout, bars: tuple[int, ...]) -> list[Mark]:
    """What is alive, one bar for each role; the longest possible one leaves room for its number."""
    (left, top), size = layout.bars, layout.letters
    longest = layout.width - left - width_of("999.9 MB", size) - 6
    marks: list[Mark] = []
    for row, (role, alive) in enumerate(zip(curve.roles, bars, strict=True)):
        y = top + layout.row * row
        width = max(longest * alive / (curve.peak[1] or 1), 0.5)
        marks.append(Words((left - 5, y), role, size=size, anchor="end"))
        marks.append(box((left, y), (width, 8.6), *LOOKS[role]))
        marks.append(Words((left + width + 4, y), short_bytes(alive), size=size))
    return marks


def _list(layout: Layout, top: float, largest: tuple[tuple[str, str], ...]) -> list[Mark]:
    size, left = layout.letters, layout.listed
    marks: list[Mark] = [Words((left, top), "the largest", "muted", size)]
    for row, (role, words) in enumerate(largest, 1):
        y = top + layout.row * row
        marks.append(box((left, y), (7, 7), *LOOKS[role]))
        marks.append(Words((left + 12, y), cut(words, layout.width - left - 14, size), size=size))
    return marks


def _axis(curve: Curve) -> Axis:
    return fitted((0,), (0, 1.16 * curve.peak[1] or 1), words="bytes")


def _at(curve: Curve, layout: Layout, place: float, size: float) -> tuple[float, float]:
    across = layout.left + (layout.right - layout.left) * place
    return across, layout.bottom - (layout.bottom - layout.top) * _axis(curve).share(size)


@lru_cache(maxsize=16)
def _curve(curve: Curve, layout: Layout) -> tuple[Mark, ...]:
    """What is the same in all frames."""
    marks: list[Mark] = []
    size, left, right, bottom = layout.letters, layout.left, layout.right, layout.bottom
    for value, label in _axis(curve).ticks(7):
        _, y = _at(curve, layout, 0, value)
        marks.append(Stroke((left, y), (right, y), "line", 0.35))
        marks.append(Words((left - 5, y), label, size=size, anchor="end"))
    # Bands are drawn from the top one down, and each reaches to the axis. A later one covers the
    # lower part of those before it. A band between two edges would need twice as many points.
    for role, tops in reversed(list(zip(curve.roles, curve.stacked, strict=True))):
        edge = [_at(curve, layout, x, top) for x, top in zip(curve.xs, tops, strict=True)]
        if curve.steps:
            corners = [(x, y) for (_, y), (x, _) in zip(edge, edge[1:], strict=False)]
            edge = [point for pair in zip(edge, corners, strict=False) for point in pair] + edge[
                -1:
            ]
        points = ((left, bottom), *edge, (edge[-1][0], bottom))
        marks.append(Area(tuple(points), *LOOKS[role]))
    named = []
    for name, start, end in curve.phases:
        x, stop = (_at(curve, layout, place, 0)[0] for place in (start, end))
        if start:
            marks.append(Stroke((x, layout.top), (x, bottom), "muted", 0.8, dashed=True))
        if stop - x > 0.7 * width_of(name, size):
            named.append((name, (x + stop) / 2, width_of(name, size) + 2))
    if named:  # a name that is a little too wide moves aside
        names, middles, widths = zip(*named, strict=True)
        for name, x in zip(names, spread(middles, widths, left - 20, right + 4), strict=True):
            marks.append(Words((x, layout.top - 7), name, size=size, anchor="middle"))
    marks.append(Stroke((left, bottom), (right, bottom), "line"))
    marks.append(Words((2, layout.top - 24), "bytes alive", size=size))
    across = "allocations and frees, in order"
    below = (left + right) / 2, bottom + 4 + size / 2
    marks.append(Words(below, across, "muted", size, "middle"))
    return tuple(marks)


def _here(curve: Curve, layout: Layout, now: float, total: int) -> list[Mark]:
    """The mark of the peak, and over it the mark of the moment."""
    place, peak = curve.peak
    x, y = _at(curve, layout, place, peak)
    words = f"peak {short_bytes(peak)}"
    fits = x + 7 + width_of(words, layout.letters) <= layout.right
    side, anchor = (7, "start") if fits else (-9, "end")
    here = _at(curve, layout, now, total)
    return [
        Spot((x, y - 4), "error", "node-peak", f"peak: {peak:,} bytes", "down"),
        Words((x + side, y - 4), words, "error", layout.letters, anchor),
        Stroke((here[0], layout.top), (here[0], layout.bottom), "ink", 1.2),
        Spot(here, "ink", "node-now", f"here: {total:,} bytes"),
    ]

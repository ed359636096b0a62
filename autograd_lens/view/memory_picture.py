"""The picture of live memory: the curve by role, and below it what is alive at one moment.

The horizontal axis counts events, not time. The width of a phase is proportional to the square root
of its number of events. An optimizer's step may have ten times as many events as the forward, and
little happens in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from ..memory.recording import MemoryRecording
from ..memory.roles import ROLES
from .sketch import Area, Mark, Sketch, Spot, Stroke, Words, box
from .text import short_bytes

LOOKS = {
    "parameter": ("parameter-fill", "parameter"),
    "buffer": ("panel", "parameter"),
    "input": ("forward-fill", "forward"),
    "optimizer": ("done-fill", "done"),
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

LEFT, RIGHT, TOP, BOTTOM, ROW = 60.0, 318.0, 18.0, 160.0, 14.0
"""The place of the axes, and the height of a row below them, in points. As wide as other charts."""

_UNITS = ((10**9, "GB"), (10**6, "MB"), (10**3, "kB"), (1, "bytes"))


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

    Args:
        curve: the curve.
        now: place of the moment.
        bars: bytes of each of the curve's roles at that moment.
        largest: role and words for the largest blocks.
    """
    marks = [*_curve(curve), *_here(curve, now, sum(bars))]
    top = BOTTOM + 24.0
    for row, (role, size) in enumerate(zip(curve.roles, bars, strict=True)):
        y = top + ROW * row
        width = (RIGHT - LEFT) / 1.22 * size / (curve.peak[1] or 1)
        marks.append(Words((LEFT - 5, y), role, size=9.5, anchor="end"))
        marks.append(box((LEFT, y), (max(width, 0.5), 8.6), *LOOKS[role]))
        marks.append(Words((LEFT + width + 4, y), short_bytes(size)))
    top += ROW * len(bars) + 3
    marks.append(Words((LEFT - 5, top), "largest", "muted", 9.5, "end"))
    for row, (role, words) in enumerate(largest):
        marks.append(box((LEFT, top + ROW * row), (7, 7), *LOOKS[role]))
        marks.append(Words((LEFT + 12, top + ROW * row), words))
    return Sketch((RIGHT + 8.0, top + ROW * LISTED), tuple(marks))


def _at(curve: Curve, place: float, size: float) -> tuple[float, float]:
    share = size / (1.16 * curve.peak[1] or 1)
    return LEFT + (RIGHT - LEFT) * place, BOTTOM - (BOTTOM - TOP) * share


@lru_cache(maxsize=8)
def _curve(curve: Curve) -> tuple[Mark, ...]:
    """What is the same in all frames."""
    marks: list[Mark] = []
    peak = curve.peak[1]
    size, unit = next(pair for pair in _UNITS if peak >= pair[0] or pair[0] == 1)
    for value in _ticks(peak / size):
        _, y = _at(curve, 0, value * size)
        marks.append(Stroke((LEFT, y), (RIGHT, y), "line", 0.35))
        marks.append(Words((LEFT - 5, y), f"{value:g}", size=9.5, anchor="end"))
    # Bands are drawn from the top one down, and each reaches to the axis. A later one covers the
    # lower part of those before it. A band between two edges would need twice as many points.
    for role, tops in reversed(list(zip(curve.roles, curve.stacked, strict=True))):
        edge = [_at(curve, x, top) for x, top in zip(curve.xs, tops, strict=True)]
        if curve.steps:
            corners = [(x, y) for (_, y), (x, _) in zip(edge, edge[1:], strict=False)]
            edge = [point for pair in zip(edge, corners, strict=False) for point in pair] + edge[
                -1:
            ]
        points = ((LEFT, BOTTOM), *edge, (edge[-1][0], BOTTOM))
        marks.append(Area(tuple(points), *LOOKS[role]))
    for name, left, right in curve.phases:
        x, end = (_at(curve, place, 0)[0] for place in (left, right))
        if left:
            marks.append(Stroke((x, TOP), (x, BOTTOM), "muted", 0.8, dashed=True))
        if end - x > 5 * len(name):
            marks.append(Words(((x + end) / 2, TOP - 7), name, anchor="middle"))
    marks.append(Stroke((LEFT, BOTTOM), (RIGHT, BOTTOM), "line"))
    marks.append(Words((12, (TOP + BOTTOM) / 2), f"{unit} alive", size=10, anchor="middle",
                       upright=False))  # fmt: skip
    across = "allocations and frees, in order"
    marks.append(Words(((LEFT + RIGHT) / 2, BOTTOM + 9), across, "muted", anchor="middle"))
    return tuple(marks)


def _here(curve: Curve, now: float, total: int) -> list[Mark]:
    """The mark of the peak, and over it the mark of the moment."""
    place, peak = curve.peak
    x, y = _at(curve, place, peak)
    side, anchor = (7, "start") if place < 0.7 else (-7, "end")
    here = _at(curve, now, total)
    return [
        Spot((x, y - 4), "error", "node-peak", f"peak: {peak:,} bytes", "down"),
        Words((x + side, y - 4), f"peak {short_bytes(peak)}", "error", anchor=anchor),
        Stroke((here[0], TOP), (here[0], BOTTOM), "ink", 1.2),
        Spot(here, "ink", "node-now", f"here: {total:,} bytes"),
    ]


def _ticks(most: float) -> list[float]:
    """Three to six round numbers from 0 up to ``most``."""
    step = 10.0 ** math.floor(math.log10(most)) if most > 0 else 1.0
    step = next(step * k for k in (0.2, 0.5, 1, 2) if most / (step * k) < 6)
    return [step * k for k in range(int(most / step) + 1)]

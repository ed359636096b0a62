"""The picture of a chart: axes, lines with hollow markers, and their names.

It is laid out twice, for a phone and for a desk, from the same facts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

from ..charts import Chart, ChartDrawing, Line
from .axis import Axis, fitted
from .canvas import WIDE_POINTS
from .coincidence import covers_of_points, covers_of_segments
from .line_labels import LEADING, EndLabels, end_labels, legend, words
from .sketch import Mark, Sketch, Stroke, Words, width_of, wrapped
from .text import number
from .traces import LOOKS, Marker, Point, Stroked, Trace


@dataclass(frozen=True)
class Layout:
    """Sizes of one layout, in points.

    Attributes:
        width: of the picture.
        height: of the axes.
        letters: size of the text.
        left: the least room for the labels of the vertical axis.
        unbroken: the most room at the right for names of lines that are one line of text each.
        names: the most room for names in several lines of text.
        apart: the least distance of ticks on the vertical axis.
    """

    width: float
    height: float
    letters: float
    left: float
    unbroken: float
    names: float
    apart: float


NARROW = Layout(width=252, height=165, letters=9, left=30, names=96, unbroken=72, apart=26)
WIDE = Layout(width=WIDE_POINTS, height=226, letters=10, left=42, names=144, unbroken=144, apart=32)

EDGE = 7.0
"""Room for half a marker at the ends of the axes."""

BELOW = 8.0
"""Room for half a large marker above the labels of the horizontal axis."""

STROKE, WIDER = 1.8, 3.8
"""Width of a line, and how much wider it is for each later line that runs on it."""

RADIUS, LARGER = 2.9, 2.2
"""Radius of a marker, and how much larger it is for each later one at its place."""


DOT = 0.6
"""Radius of a marker where points are dense: it lies within its line."""


@lru_cache(maxsize=64)
def picture(chart: Chart, drawing: ChartDrawing) -> Sketch:
    """Draw ``chart``; the result offers the layout for a desk as ``wide``.

    Charts are equal even if they are drawn differently, so ``drawing`` is an argument.
    """
    narrow, wide = (_laid_out(chart, drawing, layout) for layout in (NARROW, WIDE))
    return replace(narrow, wide=wide)


def _laid_out(chart: Chart, drawing: ChartDrawing, layout: Layout) -> Sketch:
    size = layout.letters
    names = [line.label for line in chart.lines]
    if names == [chart.y]:  # the title of the axis says it
        names = []
    beside = end_labels(names, layout.unbroken, layout.names, layout.height, size)
    marks, top = legend(names, layout.width, size) if not beside else ([], 0.0)
    title = wrapped(chart.y, layout.width - 4, size)
    top += len(title) * size * LEADING + 3
    marks += words((2, top - len(title) * size * LEADING / 2 - 1), title, size)
    axes = _axes(chart, drawing, layout, beside, top + EDGE)
    marks += [*axes.grid(), *axes.traces(chart.lines, drawing.digits)]
    if beside:
        marks += beside.marks(axes.right, axes.ends(chart.lines), axes.top - 6, axes.bottom + 3)
    below = wrapped(chart.x, layout.width - 4, size)
    middle = axes.bottom + size * LEADING + BELOW + 1 + len(below) * size * LEADING / 2
    half = max(width_of(line, size) for line in below) / 2
    across = min(max((axes.left + axes.right) / 2, half), layout.width - half)
    marks += words((across, middle), below, size, "middle")
    height = middle + len(below) * size * LEADING / 2 + 2
    return Sketch((layout.width, height), tuple(marks))


def _axes(
    chart: Chart, drawing: ChartDrawing, layout: Layout, beside: EndLabels | None, top: float
) -> _Axes:
    xs, ys = zip(*[p for line in chart.lines for p in line.points if p[1] == p[1]], strict=True)
    xs = tuple(x for line in chart.lines for x, _ in line.points)
    x = fitted(xs, drawing.x_range, log="x" in drawing.log, words=chart.x)
    y = fitted(ys, drawing.y_range, log="y" in drawing.log, words=chart.y, from_zero=True)
    size, high = layout.letters, y.ticks(max(2, int(layout.height / layout.apart) + 1))
    widest = max(width_of(label, size) for _, label in high)
    left = max(layout.left, 6 * math.ceil((widest + 6) / 6)) + EDGE
    right = layout.width - (beside.room if beside else EDGE + 3)
    for most in range(10, 1, -1):
        low = x.ticks(most)
        places = [left + (right - left) * x.share(value) for value, _ in low]
        halves = [width_of(label, size) / 2 for _, label in low]
        right = min(right, layout.width - halves[-1])
        if all(
            b - a >= one + other + 8
            for a, b, one, other in zip(places, places[1:], halves, halves[1:], strict=False)
        ):
            break
    return _Axes(x, y, left, right, top, top + layout.height - EDGE, tuple(low), tuple(high), size)


@dataclass(frozen=True)
class _Axes:
    """Where values lie in a picture."""

    x: Axis
    y: Axis
    left: float
    right: float
    top: float
    bottom: float
    below: tuple[tuple[float, str], ...]
    beside: tuple[tuple[float, str], ...]
    size: float

    def across(self, value: float) -> float:
        """The place of a value of the horizontal axis."""
        return self.left + (self.right - self.left) * self.x.share(value)

    def up(self, value: float) -> float:
        """The place of a value of the vertical axis."""
        return self.bottom - (self.bottom - self.top) * self.y.share(value)

    def grid(self) -> list[Mark]:
        """The ticks with their labels, and the axes."""
        marks: list[Mark] = []
        low, high, start, end = self.left - EDGE, self.right, self.top - EDGE, self.bottom
        for value, label in self.beside:
            y = self.up(value)
            marks.append(Stroke((low, y), (high, y), "line", 0.35))
            marks.append(Words((low - 5, y), label, size=self.size, anchor="end"))
        for value, label in self.below:
            x = self.across(value)
            marks.append(Stroke((x, start), (x, end), "line", 0.35))
            marks.append(Words((x, end + BELOW + self.size * LEADING / 2), label, size=self.size,
                               anchor="middle"))  # fmt: skip
        return [*marks, Stroke((low, end), (high, end), "line"),
                Stroke((low, start), (low, end), "line")]  # fmt: skip

    def ends(self, lines: tuple[Line, ...]) -> list[Point]:
        """The last point of each line; of a line of gaps a place in the middle."""
        ends = []
        for line in lines:
            here = [(self.across(x), self.up(y)) for x, y in line.points if y == y]
            ends.append(max(here) if here else (self.left, (self.top + self.bottom) / 2))
        return ends

    def traces(self, lines: tuple[Line, ...], digits: int) -> list[Trace]:
        """The lines. Where later ones run on a line, or lie on its markers, it is larger."""
        pieces = [self._pieces(line) for line in lines]
        points = [[place for piece in line for place in piece] for line in pieces]
        most = max(len(line.points) for line in lines)
        radius = max(DOT, min(RADIUS, (self.right - self.left) / most * 0.4))
        made = []
        for place, line in enumerate(lines):
            later = slice(place + 1, None)
            strokes = [
                stroke
                for piece, covers in zip(
                    pieces[place], covers_of_segments(pieces[place], pieces[later]), strict=True
                )
                for stroke in _strokes(piece, covers)
            ]
            titles = [
                f"{line.label}: {number(x, 6)}, {number(y, digits)}"
                for x, y in line.points
                if y == y
            ]
            markers = [
                Marker(at, radius + min(RADIUS, radius) / RADIUS * LARGER * covers, title)
                for at, covers, title in zip(
                    points[place],
                    covers_of_points(points[place], points[later]),
                    titles,
                    strict=True,
                )
            ]
            made.append(Trace(f"line-{place}", LOOKS[place], tuple(strokes), tuple(markers)))
        return made

    def _pieces(self, line: Line) -> list[list[Point]]:
        """The places of a line's points, cut at its gaps."""
        pieces: list[list[Point]] = [[]]
        for x, y in line.points:
            if y == y:
                pieces[-1].append((self.across(x), self.up(y)))
            elif pieces[-1]:
                pieces.append([])
        return pieces


def _strokes(piece: list[Point], covers: list[int]) -> list[Stroked]:
    """A piece of a line, cut where its width changes."""
    strokes: list[Stroked] = []
    start = 0
    for k in range(1, len(covers) + 1):
        if k == len(covers) or covers[k] != covers[start]:
            strokes.append(Stroked(tuple(piece[start : k + 1]), STROKE + WIDER * covers[start]))
            start = k
    return strokes

"""The names of lines beside their ends, or above the axes where they have no room there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .sketch import Mark, Words, width_of, wrapped
from .traces import LOOKS, Marker, Point, Stroked, Trace

LEADING = 1.25
"""Height of a line of text, as a multiple of its size."""

KEY = 17.0
"""Room for a marker before a name at the end of a line, in points."""

SAMPLE = 26.0
"""Room for a piece of a line before a name above the axes, in points."""

MOST_LINES_OF_A_NAME = 3
"""Lines of text that a name at the end of a line takes at most."""

STEP = 24.0
"""The room at the right grows in such steps, so that the axes of a film seldom move."""


@dataclass(frozen=True)
class EndLabels:
    """Names that have room beside the ends of their lines.

    Attributes:
        lines: each name as the lines of text it is broken into.
        room: the width they take, in points.
        size: the size of the text.
    """

    lines: tuple[tuple[str, ...], ...]
    room: float
    size: float

    def heights(self) -> list[float]:
        """The height of each name."""
        return [len(lines) * self.size * LEADING + 2 for lines in self.lines]

    def marks(self, x: float, ends: Sequence[Point], top: float, bottom: float) -> list[Mark]:
        """The names, right of ``x`` and near the ``ends`` of their lines; no two overlap.

        Where one is not beside its end, each has the marker of its line.
        """
        marks: list[Mark] = []
        places = spread([y for _, y in ends], self.heights(), top, bottom)
        beside = all(
            x - end[0] < 1 and abs(y - end[1]) < self.size / 2
            for y, end in zip(places, ends, strict=True)
        )
        for place, (y, lines, end) in enumerate(zip(places, self.lines, ends, strict=True)):
            key = (x + KEY - 6, y)
            strokes = (Stroked((end, key), 0.9),) if x - end[0] < 1 else ()
            markers = () if beside else (Marker(key, 2.6),)
            marks.append(Trace("", replace(LOOKS[place], dashes=()), strokes, markers))
            marks += words((x + KEY, y), lines, self.size)
        return marks


def end_labels(
    names: Sequence[str], unbroken: float, most: float, height: float, size: float
) -> EndLabels | None:
    """The names beside the ends of lines, or None if they have no room there.

    Args:
        names: one for each line.
        unbroken: the width that they may take if each is one line of text.
        most: the width that they may take at all.
        height: the height that they may take.
        size: the size of their text.
    """
    for most_lines in range(1, MOST_LINES_OF_A_NAME + 1) if names else ():
        for steps in range(1, int((unbroken if most_lines == 1 else most) / STEP) + 1):
            room = steps * STEP - KEY - 2
            if any(width_of(word, size) > room for name in names for word in name.split()):
                continue
            lines = tuple(tuple(wrapped(name, room, size)) for name in names)
            labels = EndLabels(lines, steps * STEP, size)
            if max(map(len, lines)) <= most_lines and sum(labels.heights()) <= height:
                return labels
    return None


def spread(
    wanted: Sequence[float], heights: Sequence[float], top: float, bottom: float
) -> list[float]:
    """Middles of boxes near the ``wanted`` ones, between ``top`` and ``bottom``, none on another.

    Boxes that would overlap become one block, whose middle is the mean of what they wanted.
    """
    order = sorted(range(len(wanted)), key=lambda k: (wanted[k], k))
    blocks: list[tuple[float, list[int]]] = []

    def total(block: list[int]) -> float:
        return sum(heights[k] for k in block)

    for k in order:
        blocks.append((wanted[k], [k]))
        while True:
            middle, block = blocks[-1]
            half = total(block) / 2
            middle = min(max(middle, top + half), bottom - half)
            blocks[-1] = middle, block
            if len(blocks) < 2:
                break
            before, others = blocks[-2]
            if before + total(others) / 2 <= middle - half + 1e-9:
                break
            joined = others + block
            share = (before * len(others) + middle * len(block)) / len(joined)
            blocks[-2:] = [(share, joined)]
    places = [0.0] * len(wanted)
    for middle, block in blocks:
        y = middle - total(block) / 2
        for k in block:
            places[k] = y + heights[k] / 2
            y += heights[k]
    return places


def legend(names: Sequence[str], width: float, size: float) -> tuple[list[Mark], float]:
    """The names in rows of this ``width``, and the height that they take."""
    marks: list[Mark] = []
    x = y = row = 0.0
    for place, name in enumerate(names):
        lines = wrapped(name, width - SAMPLE - 2, size)
        wide = SAMPLE + max(width_of(line, size) for line in lines) + 12
        if x and x + wide - 12 > width:
            x, y, row = 0.0, y + row, 0.0
        row = max(row, len(lines) * size * LEADING + 3)
        middle = y + row / 2
        line = Stroked(((x + 1, middle), (x + SAMPLE - 5, middle)), 1.8)
        key = Marker((x + (SAMPLE - 4) / 2, middle), 2.9)
        marks.append(Trace("", LOOKS[place], (line,), (key,)))
        marks += words((x + SAMPLE, middle), lines, size)
        x += wide
    return marks, y + row


def words(
    at: tuple[float, float], lines: Sequence[str], size: float, anchor: str = "start"
) -> list[Words]:
    """Lines of text whose common middle is at ``at``."""
    x, y = at
    first = y - (len(lines) - 1) * size * LEADING / 2
    return [
        Words((x, first + k * size * LEADING), line, size=size, anchor=anchor)
        for k, line in enumerate(lines)
    ]

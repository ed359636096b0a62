"""The room that pictures take on a stage, so that nothing jumps from one frame to the next.

A picture that offers a ``wide`` layout stands on the stage twice. ``figure.css`` shows the wide one
where the stage has room for it, and the other one elsewhere; what is not shown is not read aloud.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

SMALLEST, LARGEST = 11.0, 16.0
"""Limits of the size of text on a page, in pixels, between which a picture shrinks and grows."""

WIDE, WIDER = 580, 635
"""Room on a stage, in pixels, from which ``figure.css`` shows a wide layout.

The second one is for a layout that is too wide for the first. A chart is drawn for the first one.
"""

WIDE_POINTS = int(WIDE * 10 / SMALLEST)
"""Points across a wide layout whose text has 10 points: on a stage of ``WIDE`` it can be read."""

PIXELS = 4 / 3
"""Pixels in a point: Graphviz and we measure in points."""

_BOX = re.compile(r'viewBox="(-?[\d.]+) (-?[\d.]+) ([\d.]+) ([\d.]+)"')
_LETTERS = re.compile(r'font-size="([\d.]+)(?:px|pt)?"')


def box_of(svg: str) -> tuple[float, float, float, float]:
    """Left, top, width and height of an SVG, in points."""
    found = _BOX.search(svg)
    if not found:
        raise ValueError("an SVG has no viewBox")
    left, top, width, height = map(float, found.groups())
    return left, top, width, height


@dataclass(frozen=True)
class Canvas:
    """What holds each of several pictures.

    Attributes:
        width, height: its size in points.
        letters: the smallest size of a text on it, in points; infinite without a text.
        most: how many times as large it may be drawn where there is room.
    """

    width: float = 0.0
    height: float = 0.0
    letters: float = math.inf
    most: float = 1.0

    def around(self, svgs: Iterable[str]) -> Canvas:
        """A canvas for these SVGs that is at least as large as this one. Empty ones don't count."""
        width, height, letters = self.width, self.height, self.letters
        for svg in filter(None, svgs):
            _, _, wide, high = box_of(svg)
            width, height = max(width, wide), max(height, high)
            letters = min([letters, *map(float, _LETTERS.findall(svg))])
        return Canvas(width, height, letters)

    def grown(self) -> Canvas:
        """The same canvas, drawn until its smallest text is as large as on a page."""
        large = math.isfinite(self.letters) and LARGEST / (self.letters * PIXELS)
        return replace(self, most=max(1.0, large))

    @property
    def least(self) -> float:
        """The pixels that it takes across, shrunk as far as its text can still be read."""
        natural = self.width * PIXELS
        return max(min(250, natural), natural * SMALLEST / (self.letters * PIXELS))

    def style(self) -> str:
        """CSS for what is drawn on it: as large as it may be, and as there is room."""
        largest = max(self.width * PIXELS * self.most, self.least)
        return f"max-width:{largest:.0f}px;min-width:{self.least:.0f}px"

    def room(self) -> str:
        """An empty element of its size."""
        ratio = f"aspect-ratio:{self.width:.6g}/{self.height:.6g}"
        return f'<div style="{ratio};{self.style()}"></div>'


@dataclass(frozen=True)
class Stage:
    """The canvas of a figure, and the one of its wide layouts.

    The second one is empty where nothing was drawn yet, and None where one layout serves every
    width.
    """

    narrow: Canvas = Canvas()
    wide: Canvas | None = Canvas()

    def room(self) -> str:
        """What takes the place of a picture; empty if no frame has a picture."""
        if not self.narrow.width:
            return ""
        if not self.wide:
            return self.narrow.room()
        return self.both(self.narrow.room(), self.wide.room())

    def both(self, narrow: str, wide: str) -> str:
        """Two layouts of the same facts, of which a page shows one."""
        later = " lens-later" if self.wide.least > WIDE else ""
        each = (("narrow", narrow), ("wide", wide))
        return "".join(f'<div class="lens-{name}{later}">{svg}</div>' for name, svg in each)

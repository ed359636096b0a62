"""The room that pictures take on a stage, so that nothing jumps from one frame to the next.

A picture that offers a ``wide`` layout stands on the stage twice. ``figure.css`` shows the wide one
where the stage has room for it, and the other one elsewhere; what is not shown is not read aloud.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

SMALLEST, LARGEST = 11.0, 16.0
"""Limits of the size of text on a page, in pixels, between which a picture shrinks and grows."""

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
    """

    width: float = 0.0
    height: float = 0.0
    letters: float = math.inf

    def around(self, svgs: Iterable[str]) -> Canvas:
        """A canvas for these SVGs that is at least as large as this one. Empty ones don't count."""
        width, height, letters = self.width, self.height, self.letters
        for svg in filter(None, svgs):
            _, _, wide, high = box_of(svg)
            width, height = max(width, wide), max(height, high)
            letters = min([letters, *map(float, _LETTERS.findall(svg))])
        return Canvas(width, height, letters)

    def style(self, most: float = 1.0) -> str:
        """CSS for what is drawn on it: as large as it is, or ``most`` times as large.

        Where there is less room, it shrinks as far as its text can still be read.
        """
        natural = self.width * PIXELS
        scale = SMALLEST / (self.letters * PIXELS)
        least = max(min(250, natural), natural * scale)
        return f"max-width:{max(natural * most, least):.0f}px;min-width:{least:.0f}px"

    def room(self, most: float = 1.0) -> str:
        """An empty element of its size."""
        ratio = f"aspect-ratio:{self.width:.6g}/{self.height:.6g}"
        return f'<div style="{ratio};{self.style(most)}"></div>'

    def growth(self) -> float:
        """How much larger it can be until its smallest text is as large as on a page."""
        return max(1.0, LARGEST / (self.letters * PIXELS)) if math.isfinite(self.letters) else 1.0


@dataclass(frozen=True)
class Stage:
    """The canvas of a figure, and the one of its wide layouts if there are any."""

    narrow: Canvas = Canvas()
    wide: Canvas = Canvas()

    def room(self) -> str:
        """What takes the place of a picture; empty if no frame has a picture."""
        if not self.narrow.width:
            return ""
        if not self.wide.width:
            return self.narrow.room()
        return both(self.narrow.room(self.narrow.growth()), self.wide.room(self.wide.growth()))


def both(narrow: str, wide: str) -> str:
    """Two layouts of the same facts, of which a page shows one."""
    return f'<div class="lens-narrow">{narrow}</div><div class="lens-wide">{wide}</div>'

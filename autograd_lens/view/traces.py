"""A line of a chart as one mark: strokes through its points, and a hollow marker at each.

Its colour, the shape of its markers and its dashes each tell it from the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from ..printable import printable
from .theme import light

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Look:
    """How a line differs from the others: colour, shape of its markers, dashes in points."""

    role: str
    shape: str
    dashes: tuple[float, ...] = ()


LOOKS = (
    Look("series-1", "circle"),
    Look("series-2", "square", (6, 2.5)),
    Look("series-3", "up", (2, 2)),
    Look("series-4", "diamond", (9, 2.5, 2, 2.5)),
    Look("series-5", "down", (12, 3)),
    Look("series-6", "plus", (5, 2, 1.5, 2, 1.5, 2)),
)
"""The looks of the first line, the second, and so on."""

THIRD = math.sqrt(3) / 2
SHAPES: dict[str, tuple[Point, ...]] = {
    "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    "up": ((0, -1.25), (1.25 * THIRD, 0.7), (-1.25 * THIRD, 0.7)),
    "diamond": ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
    "down": ((0, 1.25), (1.25 * THIRD, -0.7), (-1.25 * THIRD, -0.7)),
    "plus": (
        (-0.42, -1.2), (0.42, -1.2), (0.42, -0.42), (1.2, -0.42), (1.2, 0.42), (0.42, 0.42),
        (0.42, 1.2), (-0.42, 1.2), (-0.42, 0.42), (-1.2, 0.42), (-1.2, -0.42), (-0.42, -0.42),
    ),
}  # fmt: skip
"""Corners of a marker of radius 1. What is not here is a circle."""


EDGE, RAIL = 1.5, 1.1
"""Width of the edge of a marker, and of each edge of a hollow stroke, in points."""


@dataclass(frozen=True, slots=True)
class Stroked:
    """A part of a line without a gap, in one width. A wide one is hollow."""

    points: tuple[Point, ...]
    width: float


@dataclass(frozen=True, slots=True)
class Marker:
    """A marker at ``at``. A pointer that rests on it shows its title."""

    at: Point
    radius: float
    title: str = ""


@dataclass(frozen=True, slots=True)
class Trace:
    """A line. Its ``name`` becomes the ``data-lens`` of its group, which has the class ``line``."""

    name: str
    look: Look
    strokes: tuple[Stroked, ...]
    markers: tuple[Marker, ...]

    def written(self) -> str:
        """The group, as SVG."""
        colour = light(self.look.role)
        dashes = " ".join(f"{length:g}" for length in self.look.dashes)
        dashes = f' stroke-dasharray="{dashes}"' if dashes else ""
        parts = [f'<g data-lens="{self.name}" class="line">'] if self.name else ["<g>"]
        for stroke in self.strokes:
            path = path_of(stroke.points)
            for width, role, gaps in self._layers(stroke, dashes):
                parts.append(
                    f'<path d="{path}" fill="none" stroke="{light(role)}" '
                    f'stroke-width="{width:g}" stroke-linejoin="round"{gaps}/>'
                )
        if self.markers:
            paint = (
                f'fill="{light(self.inside())}" stroke="{colour}" stroke-width="{self.edge():.3g}"'
            )
            markers = "".join(_written(marker, self.look.shape) for marker in self.markers)
            parts.append(f"<g {paint}>{markers}</g>")
        return "".join(parts) + "</g>"

    def paint(self, axes: Any) -> None:
        """The same by Matplotlib, onto axes in points."""
        for stroke in self.strokes:
            for width, role, gaps in self._layers(stroke, self.look.dashes):
                # Matplotlib measures dashes by the width of the line.
                dashes = tuple(length / width for length in gaps)
                axes.plot(*zip(*stroke.points, strict=True), color=light(role), linewidth=width,
                          linestyle=(0, dashes) if dashes else "-", dash_capstyle="butt",
                          solid_capstyle="butt")  # fmt: skip
        for marker in self.markers:
            (x, y), corners = marker.at, SHAPES.get(self.look.shape) or _circle()
            places = [(x + marker.radius * a, y + marker.radius * b) for a, b in corners]
            axes.fill(*zip(*places, strict=True), facecolor=light(self.inside()), zorder=2,
                      edgecolor=light(self.look.role), linewidth=self.edge())  # fmt: skip

    def edge(self) -> float:
        """Width of the edges of its markers. Where points are dense, markers are small dots."""
        return min(EDGE, min(marker.radius for marker in self.markers) / 2)

    def inside(self) -> str:
        """Role of the inside of its markers: small dots are filled, or a line would have holes."""
        return "paper" if self.edge() > 0.8 else self.look.role

    def _layers(self, stroke: Stroked, dashes: Any) -> list[tuple[float, str, Any]]:
        """Width, role and dashes of what makes a stroke: a wide one is hollow, as a marker is."""
        inside = stroke.width - 2 * RAIL
        layers = [(stroke.width, self.look.role, dashes)]
        return layers + [(inside, "paper", dashes[:0])] * (inside > 0)


def _written(marker: Marker, shape: str) -> str:
    (x, y), corners = marker.at, SHAPES.get(shape)
    title = f"<title>{escape(printable(marker.title))}</title>" if marker.title else ""
    if corners is None:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{marker.radius:.3g}">{title}</circle>'
    path = path_of([(a * marker.radius, b * marker.radius) for a, b in corners])
    return f'<path transform="translate({x:.1f} {y:.1f})" d="{path}z">{title}</path>'


def path_of(points: Sequence[Point]) -> str:
    """The path through ``points``, to a tenth of a point.

    Each place is written as its distance from the one before. That is half as long, so that the
    frames of a film are short enough for ``gzip`` to see that the last one was almost the same.
    """
    (x, y), *rest = [(round(10 * x), round(10 * y)) for x, y in points]
    parts = [f"M{_tenths(x)} {_tenths(y)}"]
    for a, b in rest:
        across, down = _tenths(a - x), _tenths(b - y)
        if a == x or b == y:
            parts.append(f"h{across}" if a != x else f"v{down}" if b != y else "")
        else:
            parts.append(f"l{across}{'' if down.startswith('-') else ' '}{down}")
        x, y = a, b
    return "".join(parts)


def _tenths(number: int) -> str:
    return f"{number / 10:g}"


def _circle() -> list[Point]:
    turns = (k * math.tau / 24 for k in range(24))
    return [(math.cos(turn), math.sin(turn)) for turn in turns]

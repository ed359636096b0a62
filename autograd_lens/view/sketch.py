"""Pictures from a list of marks, for films with many frames.

Every mark has its place in points, from the top left, so a frame takes a millisecond. Matplotlib
takes 200 for the layout of its axes. The marks become an SVG as they stand. Matplotlib draws them
for a PNG.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from html import escape
from typing import Any

from ..printable import printable
from .figure import Picture
from .theme import FONT, light
from .traces import Trace, path_of


@dataclass(frozen=True, slots=True)
class Area:
    """A filled polygon. ``fill`` and ``edge`` are roles of the theme.

    A ``name`` becomes its ``data-lens`` and its ``class``.
    """

    points: tuple[tuple[float, float], ...]
    fill: str
    edge: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Stroke:
    """A straight line between two points."""

    start: tuple[float, float]
    end: tuple[float, float]
    role: str
    width: float = 0.8
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Words:
    """Text whose middle height is at ``at``.

    ``anchor`` says which part of it is there: ``"start"``, ``"middle"`` or ``"end"``.
    """

    at: tuple[float, float]
    text: str
    role: str = "ink"
    size: float = 9.0
    anchor: str = "start"
    upright: bool = True


@dataclass(frozen=True, slots=True)
class Spot:
    """A marker, a ``"circle"`` or one that points ``"down"``.

    Its name becomes ``data-lens`` and ``class``. A pointer that rests on it shows its title.
    """

    at: tuple[float, float]
    role: str
    name: str
    title: str
    shape: str = "circle"


def box(
    at: tuple[float, float], size: tuple[float, float], fill: str, edge: str, name: str = ""
) -> Area:
    """A box of ``size``; ``at`` is the middle of its left side."""
    (x, y), (width, height) = at, size
    low, high = y - height / 2, y + height / 2
    return Area(((x, low), (x + width, low), (x + width, high), (x, high)), fill, edge, name)


def width_of(text: str, size: float = 9.0) -> float:
    """How wide a text of this size is at most, in points.

    The page chooses the font, so a box around a text has to have room for a wide one.
    """
    return size * sum(map(_share, printable(text)))


def _share(character: str) -> float:
    """The width of a character as a share of the size of its font."""
    if character in " .,:;'|!ijlI()[]{}":
        return 0.4
    if character in "⁰¹²³⁴⁵⁶⁷⁸⁹⁻":
        return 0.75
    if character in "·ⁿᵀ′":
        return 0.55
    if character in "mwMW@%" or not character.isascii():
        return 1.0
    return 0.64 if character.islower() or character.isdigit() else 0.84


def cut(text: str, room: float, size: float = 9.0) -> str:
    """As much of a text as has a ``room`` of this many points, with an ellipsis if that is less."""
    if width_of(text, size) <= room:
        return text
    while text and width_of(text + "…", size) > room:
        text = text[:-1]
    return text.rstrip() + "…"


def wrapped(text: str, room: float, size: float = 9.0) -> list[str]:
    """The lines of a text in a ``room`` of this many points. A word that is too long is broken."""
    lines = [""]
    for word in text.split():
        joined = f"{lines[-1]} {word}".strip()
        if width_of(joined, size) <= room:
            lines[-1] = joined
            continue
        lines += [""] * bool(lines[-1])
        for character in word:
            if lines[-1] and width_of(lines[-1] + character, size) > room:
                lines.append("")
            lines[-1] += character
    return lines


Mark = Area | Stroke | Words | Spot | Trace


@dataclass(frozen=True)
class Sketch(Picture):
    """Marks on a canvas of ``size`` points, painted in order.

    On the canvas of a figure with wider pictures, it stands in the middle, or else at the left.
    """

    size: tuple[float, float]
    marks: tuple[Mark, ...]
    wide: Sketch | None = None
    centred: bool = True

    def svg(self) -> str:
        """Write the marks. This needs no program."""
        width, height = self.size
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}pt" height="{height:g}pt" '
            f'viewBox="0 0 {width:g} {height:g}" font-family="{FONT}">'
            f"{''.join(map(_written, self.marks))}</svg>"
        )

    def png(self) -> bytes:
        """Draw the marks at twice their natural size."""
        from matplotlib.figure import Figure

        width, height = self.size
        figure = Figure(figsize=(width / 72, height / 72), facecolor=light("paper"))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, width), ylim=(height, 0))
        axes.axis("off")
        for mark in self.marks:
            _paint(axes, mark)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=192)
        return buffer.getvalue()


def _written(mark: Mark) -> str:
    if isinstance(mark, Trace):
        return mark.written()
    if isinstance(mark, Area):
        named = f' data-lens="{mark.name}" class="{mark.name}"' if mark.name else ""
        return (
            f'<path{named} d="{path_of(mark.points)}z" fill="{light(mark.fill)}" '
            f'stroke="{light(mark.edge)}"/>'
        )
    if isinstance(mark, Stroke):
        dashes = ' stroke-dasharray="3 2"' * mark.dashed
        (x1, y1), (x2, y2) = mark.start, mark.end
        return (
            f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" fill="none" '
            f'stroke="{light(mark.role)}" stroke-width="{mark.width:g}"{dashes}/>'
        )
    x, y = mark.at
    if isinstance(mark, Words):
        turn = "" if mark.upright else f' transform="rotate(-90 {x:.1f} {y:.1f})"'
        return (
            f'<text x="{x:.1f}" y="{y:.1f}" dy=".34em" font-size="{mark.size:g}" '
            f'text-anchor="{mark.anchor}" fill="{light(mark.role)}"{turn}>'
            f"{escape(printable(mark.text))}</text>"
        )
    shape = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2"'
    if mark.shape == "down":
        shape = f'<path d="M{x - 4:.1f} {y - 4:.1f}h8l-4 7z"'
    end = "</path>" if mark.shape == "down" else "</circle>"
    return (
        f'<g data-lens="{mark.name}" class="{mark.name}">{shape} fill="{light(mark.role)}">'
        f"<title>{escape(printable(mark.title))}</title>{end}</g>"
    )


def _paint(axes: Any, mark: Mark) -> None:
    if isinstance(mark, Trace):
        mark.paint(axes)
    elif isinstance(mark, Area):
        axes.fill(*zip(*mark.points, strict=True), facecolor=light(mark.fill),
                  edgecolor=light(mark.edge), linewidth=1)  # fmt: skip
    elif isinstance(mark, Stroke):
        axes.plot(*zip(mark.start, mark.end, strict=True), color=light(mark.role),
                  linewidth=mark.width, linestyle=(0, (3, 2)) if mark.dashed else "-")  # fmt: skip
    elif isinstance(mark, Words):
        side = {"start": "left", "middle": "center", "end": "right"}[mark.anchor]
        axes.text(*mark.at, printable(mark.text), color=light(mark.role), fontsize=mark.size,
                  ha=side, va="center", rotation=0 if mark.upright else 90,
                  rotation_mode="anchor", parse_math=False)  # fmt: skip
    else:
        axes.plot(*mark.at, "v" if mark.shape == "down" else "o", color=light(mark.role))

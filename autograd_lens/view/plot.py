"""Pictures of data over axes: drawn by Matplotlib, rewritten for a page.

Matplotlib's SVG holds ids, references and styles that would clash on a page with several pictures.
Here its paths and texts are kept. Their colours become attributes that can follow a theme.
"""

from __future__ import annotations

import io
import logging
import math
import re
from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from typing import Any
from xml.etree import ElementTree

from ..printable import printable
from .figure import Picture
from .theme import light

SIZE = (4.5, 2.9)
"""Width and height in inches. A phone shows it at three quarters of that, still legible."""

STYLE = {
    "axes.axisbelow": True,
    "axes.edgecolor": light("line"),
    "axes.facecolor": "none",
    "axes.labelcolor": light("ink"),
    "axes.labelsize": 10,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": "none",
    "font.size": 9.5,
    "grid.color": light("line"),
    "grid.linewidth": 0.35,
    "axes.grid": True,
    "legend.fontsize": 9.5,
    "legend.labelcolor": light("ink"),
    "lines.linewidth": 1.8,
    "lines.markersize": 5.5,
    "savefig.facecolor": "none",
    "savefig.edgecolor": "none",
    "svg.fonttype": "none",  # text stays text: readable aloud, in the page's font
    "text.color": light("ink"),
    "text.parse_math": False,  # a dollar is a dollar
    "xtick.color": light("line"),
    "xtick.labelcolor": light("ink"),
    "ytick.color": light("line"),
    "ytick.labelcolor": light("ink"),
}


@dataclass(frozen=True)
class Plot(Picture):
    """A picture drawn by Matplotlib. A subclass says what stands on the axes.

    An artist whose gid is in :meth:`points` becomes a group with the gid as ``data-lens``.
    """

    @abstractmethod
    def paint(self, axes: Any) -> None:
        """Draw onto ``axes``, in the colours of :func:`~autograd_lens.view.theme.light`."""

    def points(self) -> dict[str, list[str]]:
        """For each gid, what its markers stand for. A pointer that rests on one shows it."""
        return {}

    def svg(self) -> str:
        """Draw; see :meth:`Picture.svg`."""
        return _svg(self)

    def png(self) -> bytes:
        """Draw; see :meth:`Picture.png`."""
        return _drawn(self, "png", dpi=192, facecolor=light("paper"))


@lru_cache(maxsize=64)
def _svg(plot: Plot) -> str:
    return rewritten(_drawn(plot, "svg", metadata={"Date": None}).decode(), plot.points())


def _drawn(plot: Plot, form: str, **options: Any) -> bytes:
    # On a new machine Matplotlib takes seconds to list the fonts, and logs that.
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    import matplotlib.style
    from matplotlib.figure import Figure
    from matplotlib.text import Text

    # The style starts from the defaults. The reader's own settings are for the reader's own plots.
    with matplotlib.style.context(["default", STYLE]):
        figure = Figure(figsize=SIZE, layout="constrained")
        plot.paint(figure.subplots())
        for text in figure.findobj(Text):
            text.set_text(printable(text.get_text()))
        buffer = io.BytesIO()
        figure.savefig(buffer, format=form, **options)
    return buffer.getvalue()


def label_ticks(axis: Any, log: bool) -> None:
    """Label the ticks of an axis whose ends are known. No two labels look alike."""
    low, high = axis.get_view_interval()
    if log:
        axis.set_minor_formatter(lambda *_: "")
        if math.floor(math.log10(high)) > math.ceil(math.log10(low)):
            axis.set_major_formatter(tick)
            return
        # With less than two powers of ten in view, there would be no label: use linear steps.
        from matplotlib.ticker import MaxNLocator

        axis.set_major_locator(MaxNLocator(5))
    largest = max(abs(low), abs(high))
    digits = max(6, 3 - math.floor(math.log10(high / largest - low / largest)))
    axis.set_major_formatter(lambda value, _: f"{value:.{digits}g}")


def tick(value: float, _position: int = 0) -> str:
    """A label at a logarithmic axis: ``10⁻³``, ``0.1``, ``1000``. Empty between powers of ten."""
    power = math.log10(value)
    if abs(power - round(power)) > 1e-6:
        return ""
    power = round(power)
    if -1 <= power <= 3:
        return f"{10.0**power:g}"
    return "10" + str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


_NS = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"
_KEPT = (
    "fill",
    "stroke",
    "stroke-width",
    "stroke-dasharray",
    "stroke-linecap",
    "stroke-linejoin",
    "text-anchor",
)


def rewritten(svg: str, points: dict[str, list[str]]) -> str:
    """Matplotlib's SVG without ids, references, styles and clipping."""
    root = ElementTree.fromstring(svg)
    shapes = {
        f"#{path.get('id')}": path
        for defs in root.iter(f"{_NS}defs")
        for path in defs.iter(f"{_NS}path")
    }
    body = "".join(_element(child, shapes, points) for child in root)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{root.get("width")}" '
        f'height="{root.get("height")}" viewBox="{root.get("viewBox")}">{body}</svg>'
    )


def _element(element: Any, shapes: dict[str, Any], points: dict[str, list[str]]) -> str:
    kind = element.tag.removeprefix(_NS)
    if kind == "path":
        if not element.get("d"):  # a line whose points are all gaps
            return ""
        return f'<path d="{_short(element.get("d"))}"{_paint(_style(element))}/>'
    if kind == "use":
        return _marker(element, shapes, "")
    if kind == "text":
        return _text(element)
    if kind != "g":  # metadata, style sheets, shapes that are used elsewhere
        return ""
    gid = element.get("id", "")
    if gid not in points:
        return "".join(_element(child, shapes, points) for child in element)
    stroke = "".join(_element(child, shapes, {}) for child in element if child.tag == f"{_NS}path")
    markers = "".join(
        _marker(use, shapes, words)
        for use, words in zip(element.iter(f"{_NS}use"), points[gid], strict=True)
    )
    return f'<g data-lens="{gid}" class="line">{stroke}{markers}</g>'


def _text(element: Any) -> str:
    style = _style(element)
    size = re.search(r"([\d.]+)px", style.get("font") or style.get("font-size", ""))[1]
    x, y = (_short(element.get(name)) for name in "xy")
    turn = element.get("transform", "")
    turn = "" if turn.startswith("rotate(-0 ") else f' transform="{_short(turn)}"'
    # Matplotlib leaves out the colour of black text. The page's style then says ink.
    return (
        f'<text x="{x}" y="{y}"{turn} font-size="{size}"{_paint(style)}>'
        f"{escape(''.join(element.itertext()))}</text>"
    )


def _marker(use: Any, shapes: dict[str, Any], words: str) -> str:
    """A marker as a shape of its own, because a reference to a shared one needs an id."""
    shape = shapes[use.get(_HREF)]
    x, y = (_short(use.get(name)) for name in "xy")
    paint = _paint(_style(shape) | _style(use))
    title = f"<title>{escape(printable(words))}</title>" if words else ""
    path = _short(shape.get("d"))
    if path.count("C") > 4:  # a circle, which Matplotlib draws as eight curves
        radius = max(float(number) for number in re.findall(r"[\d.]+", path))
        return f'<circle cx="{x}" cy="{y}" r="{radius:g}"{paint}>{title}</circle>'
    return f'<path transform="translate({x} {y})" d="{path}"{paint}>{title}</path>'


def _style(element: Any) -> dict[str, str]:
    pairs = (part.split(":", 1) for part in element.get("style", "").split(";") if ":" in part)
    return {name.strip(): value.strip() for name, value in pairs}


def _paint(style: dict[str, str]) -> str:
    """The attributes of a style that matter on a page."""
    return "".join(f' {name}="{style[name]}"' for name in _KEPT if name in style)


def _short(numbers: str) -> str:
    """Coordinates to a tenth of a point, on one line."""
    short = re.sub(r"-?\d+\.\d+", lambda m: f"{float(m[0]):.1f}".removesuffix(".0"), numbers)
    return " ".join(short.split())

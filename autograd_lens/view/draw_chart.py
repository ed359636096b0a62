"""The figure of a :class:`~autograd_lens.charts.Chart`: lines with markers, and their table."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from ..charts import MOST_LINES, Chart, ChartDrawing, Line
from .figure import Figure, Frame
from .plot import Plot, label_ticks
from .tables import text_table
from .text import short_name, short_title
from .theme import light

# Colour and marker of each line. A colour never stands alone.
LOOKS = (
    ("forward", "o"),
    ("gradient", "s"),
    ("saved", "^"),
    ("parameter", "D"),
    ("done", "v"),
    ("muted", "P"),
)
assert len(LOOKS) == MOST_LINES

WIDE = 50
"""Characters that fit over the axes, and below them."""

HIGH = 40
"""Characters that fit beside the axes."""

LOGARITHMIC = {
    "": "",
    "x": "horizontal axis logarithmic",
    "y": "vertical axis logarithmic",
    "xy": "both axes logarithmic",
}


def figure(chart: Chart) -> Figure:
    """Return the figure of ``chart``: one frame."""
    chart = _with_short_names(chart)
    return Figure(
        chart.title,
        lambda: Frame(table(chart), lambda: ChartPlot(chart, chart.drawing), caption=words(chart)),
    )


def _with_short_names(chart: Chart) -> Chart:
    lines = tuple(Line(short_name(line.label, WIDE), line.points) for line in chart.lines)
    x, y = short_name(chart.x, WIDE), short_name(chart.y, HIGH)
    default = chart.title == f"{chart.y} against {chart.x}"
    title = f"{y} against {x}" if default else short_title(chart.title)
    return replace(chart, title=title, lines=lines, x=x, y=y)


def words(chart: Chart) -> str:
    """What the axes show, unless the title says it, and which of them are logarithmic."""
    over, log = f"{chart.y} against {chart.x}", chart.drawing.log
    said = [over] * (over != chart.title) + [LOGARITHMIC[log]] * bool(log)
    text = ", ".join(said)
    return text and f"{text[0].upper()}{text[1:]}."


def table(chart: Chart) -> str:
    """A table with one row for each x, in the order of the lines, and one column for each line."""
    digits = chart.drawing.digits
    columns = [dict[float, list[float]]() for _ in chart.lines]
    for column, line in zip(columns, chart.lines, strict=True):
        for x, y in line.points:
            column.setdefault(x, []).append(y)
    places = list(dict.fromkeys(x for column in columns for x in column))
    rows = [[chart.x, *(line.label for line in chart.lines)]]
    for x in places:
        cells = [column.get(x, []) for column in columns]
        for again in range(max(map(len, cells))):  # a line may have several y at one x
            ys = (number(c[again], digits) if again < len(c) else "" for c in cells)
            rows.append([number(x, 6), *ys])
    head = f"{chart.y}:" if len(chart.lines) > 1 or chart.lines[0].label != chart.y else ""
    return "\n".join([head] * bool(head) + [text_table(rows, range(len(rows[0])))])


def number(value: float, digits: int) -> str:
    """A whole number in full, another one with so many significant digits, NaN as ``nan``."""
    if math.isfinite(value) and value == round(value) and abs(value) < 1e15:
        return str(round(value))
    return f"{value:.{digits}g}"


@dataclass(frozen=True)
class ChartPlot(Plot):
    """The lines of a chart over their axes.

    Charts are equal even if they are drawn differently, so the picture compares ``drawing`` too.
    """

    chart: Chart
    drawing: ChartDrawing

    def paint(self, axes: Any) -> None:
        """Draw the grid, the lines and their markers. Several lines also get a legend."""
        chart, drawing = self.chart, self.drawing
        for name in drawing.log:
            getattr(axes, f"set_{name}scale")("log")
        axes.tick_params(which="both", length=0)
        for place, (line, (role, marker)) in enumerate(zip(chart.lines, LOOKS, strict=False)):
            axes.plot(
                *zip(*line.points, strict=True),
                color=light(role),
                marker=marker,
                label=line.label,
                gid=f"line-{place}",
                clip_on=False,
            )
        axes.set(xlabel=chart.x, ylabel=chart.y, xlim=drawing.x_range, ylim=drawing.y_range)
        for name, axis in ("x", axes.xaxis), ("y", axes.yaxis):
            label_ticks(axis, name in drawing.log)
        if len(chart.lines) > 1:
            # The legend stands above the axes, where it never covers a line.
            longest = max(len(line.label) for line in chart.lines)
            columns = max(1, min(3, WIDE // (longest + 6)))
            axes.figure.legend(
                handles=axes.lines,
                labels=[line.get_label() for line in axes.lines],  # also one like "_a"
                loc="outside upper center",
                ncols=columns,
                frameon=False,
                borderpad=0,
            )

    def points(self) -> dict[str, list[str]]:
        """For each line, the label and the place of every marker."""
        digits = self.drawing.digits
        return {
            f"line-{place}": [
                f"{line.label}: {number(x, 6)}, {number(y, digits)}"
                for x, y in line.points
                if y == y
            ]
            for place, line in enumerate(self.chart.lines)
        }

"""The figure of a :class:`~autograd_lens.charts.Chart`: lines with markers, and their table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..charts import MOST_LINES, Chart, ChartDrawing
from .figure import Figure, Frame
from .plot import Plot, label_ticks
from .text import clip
from .theme import light

# Colour and marker of each line: a colour never stands alone.
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
"""Characters that fit over the axes."""

LOGARITHMIC = {
    "": "",
    "x": "horizontal axis logarithmic",
    "y": "vertical axis logarithmic",
    "xy": "both axes logarithmic",
}


def figure(chart: Chart) -> Figure:
    """Return the figure of ``chart``: one frame."""
    return Figure(
        chart.title,
        lambda: Frame(table(chart), lambda: ChartPlot(chart, chart.drawing), caption=words(chart)),
    )


def words(chart: Chart) -> str:
    """What is drawn over what, unless the title says so; and how the axes are divided."""
    over, log = f"{chart.y} against {chart.x}", chart.drawing.log
    said = [over] * (over != chart.title) + [LOGARITHMIC[log]] * bool(log)
    text = ", ".join(said)
    return text and f"{text[0].upper()}{text[1:]}."


def table(chart: Chart) -> str:
    """One row for each x, in the order in which the lines have them; one column for each line."""
    digits = chart.drawing.digits
    columns = [dict[float, list[float]]() for _ in chart.lines]
    for column, line in zip(columns, chart.lines, strict=True):
        for x, y in line.points:
            column.setdefault(x, []).append(y)
    places = list(dict.fromkeys(x for column in columns for x in column))
    rows = [[chart.x, *(line.label for line in chart.lines)]]
    for x in places:
        cells = [column.get(x, []) for column in columns]
        for again in range(max(map(len, cells))):  # a line may come back to the same x
            ys = (number(c[again], digits) if again < len(c) else "" for c in cells)
            rows.append([number(x, 6), *ys])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.rjust, row, widths)).rstrip() for row in rows)
    head = f"{chart.y}:" if len(chart.lines) > 1 or chart.lines[0].label != chart.y else ""
    return "\n".join([head] * bool(head) + list(lines))


def number(value: float, digits: int) -> str:
    """Whole numbers in full, others with so many significant digits, NaN as ``nan``."""
    if math.isfinite(value) and value == round(value) and abs(value) < 1e15:
        return str(round(value))
    return f"{value:.{digits}g}"


@dataclass(frozen=True)
class ChartPlot(Plot):
    """The lines of a chart over their axes. Drawn otherwise, equal charts are other pictures."""

    chart: Chart
    drawing: ChartDrawing

    def paint(self, axes: Any) -> None:
        """Draw grid, lines, markers and, where there are several lines, their names."""
        chart, drawing = self.chart, self.drawing
        for name in drawing.log:
            getattr(axes, f"set_{name}scale")("log")
        axes.tick_params(which="both", length=0)
        for place, (line, (role, marker)) in enumerate(zip(chart.lines, LOOKS, strict=False)):
            axes.plot(
                *zip(*line.points, strict=True),
                color=light(role),
                marker=marker,
                label=clip(line.label, WIDE),
                gid=f"line-{place}",
                clip_on=False,
            )
        axes.set(xlabel=chart.x, ylabel=chart.y, xlim=drawing.x_range, ylim=drawing.y_range)
        for name, axis in ("x", axes.xaxis), ("y", axes.yaxis):
            label_ticks(axis, name in drawing.log)
        if len(chart.lines) > 1:
            # Beside the axes, so that it never lies on a line.
            longest = max(len(clip(line.label, WIDE)) for line in chart.lines)
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
        """By line, label and place of every marker."""
        digits = self.drawing.digits
        return {
            f"line-{place}": [
                f"{line.label}: {number(x, 6)}, {number(y, digits)}"
                for x, y in line.points
                if y == y
            ]
            for place, line in enumerate(self.chart.lines)
        }

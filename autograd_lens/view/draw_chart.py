"""The figure of a :class:`~autograd_lens.charts.Chart`: lines with markers, and their table."""

from __future__ import annotations

from dataclasses import replace

from ..charts import MOST_LINES, Chart, Line
from .chart_picture import picture
from .figure import Figure, Frame
from .tables import text_table
from .text import number, short_name, short_title
from .traces import LOOKS

assert len(LOOKS) == MOST_LINES

WIDE = 50
"""Characters that fit over the axes, and below them."""

HIGH = 40
"""Characters of the title of the vertical axis."""

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
        lambda: Frame(table(chart), lambda: picture(chart, chart.drawing), caption=words(chart)),
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

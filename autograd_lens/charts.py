"""Lines over a common axis: what was measured, as a chart and as a table.

Knows numbers and labels, and nothing of autograd or of drawing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .printable import printable
from .result import Result

if TYPE_CHECKING:
    from .view.figure import Figure

MOST_LINES = 6
"""Lines in one chart: as many as there are colours that can be told apart."""


@dataclass(frozen=True)
class Line:
    """One line of a chart.

    Attributes:
        label: its name.
        points: ``(x, y)`` in the order given; ``y`` may be NaN, which leaves a gap.
    """

    label: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class ChartDrawing:
    """How a chart is drawn; no part of what was measured.

    Attributes:
        log: which axes are logarithmic: ``""``, ``"x"``, ``"y"`` or ``"xy"``.
        digits: significant digits of ``y`` in the text.
        x_range, y_range: the ends of an axis, or None to fit the points.
    """

    log: str = ""
    digits: int = 4
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None


@dataclass(frozen=True, repr=False)
class Chart(Result):
    """Lines over one horizontal axis.

    Attributes:
        title: what is shown.
        lines: from one to ``MOST_LINES`` of them.
        x, y: what the axes measure, with its unit.
        drawing: how it is drawn.
    """

    title: str
    lines: tuple[Line, ...]
    x: str
    y: str
    drawing: ChartDrawing = field(default=ChartDrawing(), compare=False)

    def figure(self) -> Figure:
        """Return the lines over their axis."""
        from .view.draw_chart import figure

        return figure(self)


def chart(
    lines: Mapping[str, Any],
    *,
    x: str,
    y: str,
    title: str = "",
    log: str = "",
    digits: int = 4,
    x_range: tuple[float, float] | None = None,
    y_range: tuple[float, float] | None = None,
) -> Chart:
    """Return a chart of one or more lines; its text is the table of their points.

    Args:
        lines: for each label ``(xs, ys)``, two sequences (or tensors of one dimension) of equal
            length. A NaN in ``ys`` leaves a gap; a line of one point is a marker.
        x: what the horizontal axis measures.
        y: what the vertical axis measures.
        title: what is shown; by default ``y against x``.
        log: ``"x"``, ``"y"`` or ``"xy"`` for logarithmic axes.
        digits: significant digits of ``y`` in the table. What differs between processors in its
            last digits needs few; whole numbers are always written out.
        x_range: both ends of the horizontal axis, so that the frames of an explorer share it.
        y_range: the same for the vertical axis.

    Raises:
        TypeError: ``lines`` is no mapping to pairs of sequences of real numbers.
        ValueError: no line, no point, nothing but NaN, too many lines, labels that look alike,
            lengths that differ, a value that an axis can't show or that lies outside its range, or
            an unknown ``log``.
    """
    if not isinstance(lines, Mapping):
        raise TypeError(
            f"lines must map labels to pairs (xs, ys), like {{'loss': (steps, losses)}}, "
            f"not {type(lines).__name__}"
        )
    if log not in ("", "x", "y", "xy"):
        raise ValueError(f'log must be "", "x", "y" or "xy", not {log!r}')
    if not isinstance(digits, int) or isinstance(digits, bool) or not 1 <= digits <= 17:
        raise ValueError(f"digits must be a whole number from 1 to 17, not {digits!r}")
    if not 1 <= len(lines) <= MOST_LINES:
        raise ValueError(f"a chart takes 1 to {MOST_LINES} lines, not {len(lines)}")
    x, y = _words("x", x), _words("y", y)
    drawing = ChartDrawing(
        log,
        digits,
        x_range=_range("x_range", x_range, "x" in log),
        y_range=_range("y_range", y_range, "y" in log),
    )
    drawn = tuple(_line(label, lines[key], log) for key, label in _labels(lines).items())
    if all(math.isnan(value) for line in drawn for _, value in line.points):
        raise ValueError("every y is NaN, so there is nothing to draw")
    _refuse_outside("x", drawing.x_range, drawn, 0)
    _refuse_outside("y", drawing.y_range, drawn, 1)
    return Chart(_words("title", title) or f"{y} against {x}", drawn, x, y, drawing)


def _labels(lines: Mapping[Any, Any]) -> dict[Any, str]:
    """How each label is written; no two may be written alike, or a reader can't tell the lines."""
    written: dict[Any, str] = {}
    for key in lines:
        label = _words("a label", str(key))
        for other, before in written.items():
            if before == label:
                raise ValueError(f"the labels {other!r} and {key!r} look alike: both are {label!r}")
        written[key] = label
    return written


def _words(name: str, text: Any) -> str:
    """A text on one line: the table and the axes have one line for it."""
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a text that says what is shown, not {text!r:.40}")
    return printable(" ".join(text.split()))


def _refuse_outside(name: str, ends: tuple[float, float] | None, lines: Any, axis: int) -> None:
    """A point that would not be seen is an error and no gap."""
    for line in lines:
        for point in line.points:
            if ends and not math.isnan(point[axis]) and not ends[0] <= point[axis] <= ends[1]:
                raise ValueError(
                    f"the line {line.label!r} has {name} = {point[axis]:g}, outside {name}_range "
                    f"({ends[0]:g}, {ends[1]:g})"
                )


def _line(label: str, pair: Any, log: str) -> Line:
    if isinstance(pair, (str, bytes, Mapping)) or not isinstance(pair, Sequence) or len(pair) != 2:
        raise TypeError(f"the line {label!r} must be a pair (xs, ys)")
    xs, ys = (_numbers(label, axis, values) for axis, values in zip("xy", pair, strict=True))
    if len(xs) != len(ys):
        raise ValueError(f"the line {label!r} has {len(xs)} x and {len(ys)} y")
    if not xs:
        raise ValueError(f"the line {label!r} has no points")
    for axis, values in ("x", xs), ("y", ys):
        for value in values:
            if math.isinf(value) or (axis == "x" and math.isnan(value)):
                raise ValueError(f"the line {label!r} has {axis} = {value}, which has no place")
            if axis in log and value <= 0:
                raise ValueError(
                    f"the line {label!r} has {axis} = {value:g}; a logarithmic axis takes "
                    "positive numbers only"
                )
    return Line(label, tuple(zip(xs, ys, strict=True)))


def _numbers(label: str, axis: str, values: Any) -> list[float]:
    """The values as floats; tensors and arrays of one dimension are read too."""
    if hasattr(values, "tolist"):
        values = values.tolist()
    if isinstance(values, (str, bytes, Mapping)) or not hasattr(values, "__iter__"):
        raise TypeError(f"{axis} of the line {label!r} must be a sequence, not {values!r:.40}")
    try:
        return [_number(value) for value in values]
    except OverflowError:
        raise ValueError(f"{axis} of the line {label!r} has a number beyond any float") from None
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"{axis} of the line {label!r} must hold real numbers only") from None


def _number(value: Any) -> float:
    # A loss that was kept as a tensor is read without PyTorch's warning about its graph.
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, (str, bytes, bytearray)):  # float() would read digits
        raise TypeError("a text is no number")
    return float(value)


def _range(name: str, ends: Any, log: bool) -> tuple[float, float] | None:
    if ends is None:
        return None
    try:
        low, high = map(_number, ends)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"{name} must be (low, high), two numbers in this order, not {ends!r}")
    if log and low <= 0:
        raise ValueError(
            f"{name} starts at {low:g}; a logarithmic axis takes positive numbers only"
        )
    return low, high

"""Numbers, shapes and sizes in words, the same in every text and picture."""

from __future__ import annotations

import math
from typing import Any


def count(number: int, noun: str, plural: str | None = None) -> str:
    """``1 node``, ``2 nodes``, ``12,000 nodes``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def short_bytes(number: int) -> str:
    """``8 B``, ``12.3 kB``, ``1.06 MB``: three digits and a decimal unit, for pictures."""
    if number < 1000:
        return f"{number} B"
    size = float(number)
    units = iter(("kB", "MB", "GB", "TB"))
    unit = next(units)
    size /= 1000
    while size >= 999.5 and unit != "TB":
        size, unit = size / 1000, next(units)
    return f"{size:.3g} {unit}"


def number(value: float, digits: int) -> str:
    """A whole number in full, another one with so many significant digits, NaN as ``nan``."""
    if math.isfinite(value) and value == round(value) and abs(value) < 1e15:
        return str(round(value))
    return f"{value:.{digits}g}"


def exact_bytes(number: int) -> str:
    """``8 B``, ``12,345 B (12.3 kB)``: the exact number, and beside it one that is quickly read."""
    return f"{number:,} B" + (f" ({short_bytes(number)})" if number >= 1000 else "")


def clip(text: str, width: int) -> str:
    """``text``, cut to ``width`` characters with an ellipsis when longer."""
    return text if len(text) <= width else text[: width - 1] + "…"


def short_name(name: str, width: int = 60) -> str:
    """A name as it is shown: a long one without its middle.

    The names of one model often begin alike, and differ at their end.
    """
    if len(name) <= width:
        return name
    end = width // 3
    return f"{name[: width - end - 1]}…{name[-end:]}"


def short_title(title: str) -> str:
    """A title as it is shown; a title may be a sentence."""
    return short_name(title, 120)


def indent(text: str, by: int) -> str:
    """``text`` with every line moved right by ``by`` blanks."""
    return "\n".join(" " * by + line for line in text.splitlines())


def nested(values: Any) -> str:
    """Nested tuples of numbers as ``[[0.5, 0], [1, 2]]``, four digits each."""
    if isinstance(values, tuple):
        return f"[{', '.join(map(nested, values))}]"
    if isinstance(values, complex):
        return f"{values.real:.4g}{values.imag:+.4g}j"
    return f"{values:.4g}"


def shape_words(shape: tuple | None) -> str:
    """``(2, 3)``. Empty if there is no shape."""
    return "" if shape is None else str(tuple(shape)).replace("'", "")


def grad_words(shape: tuple | None, values: Any, few: int = 4) -> str:
    """A ``.grad`` in words: ``None``, its values if they are few, else its shape."""
    if shape is None:
        return "None"
    elements = 1
    for size in shape:
        elements *= size if isinstance(size, int) else few + 1
    return nested(values) if values is not None and elements <= few else shape_words(shape)

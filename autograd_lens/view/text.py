"""Numbers, shapes and sizes in words, the same in every twin and picture."""

from __future__ import annotations


def count(number: int, noun: str, plural: str | None = None) -> str:
    """``1 node``, ``2 nodes``, ``12,000 nodes``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def short_bytes(number: int) -> str:
    """``8 B``, ``12.3 kB``, ``1.06 MB``: three digits, decimal units, for pictures."""
    if number < 1000:
        return f"{number} B"
    size = float(number)
    units = iter(("kB", "MB", "GB", "TB"))
    unit = next(units)
    size /= 1000
    while size >= 999.5 and unit != "TB":
        size, unit = size / 1000, next(units)
    return f"{size:.3g} {unit}"


def clip(text: str, width: int) -> str:
    """``text``, cut to ``width`` characters with an ellipsis when longer."""
    return text if len(text) <= width else text[: width - 1] + "…"


def indent(text: str, by: int) -> str:
    """``text`` with every line moved right by ``by`` blanks."""
    return "\n".join(" " * by + line for line in text.splitlines())

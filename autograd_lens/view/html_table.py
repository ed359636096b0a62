"""Tables of a page: as data, and as HTML that a reader can sort, with no kernel.

Knows nothing of what stands in them. Where a page is narrow, each row is a card (``table.css``).
Without its script (``table.js``) a table is complete, in the order in which it was given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from .figure import Picture, Shown


@dataclass(frozen=True)
class Column(Shown):
    """A column. Numbers stand at the right, and are sorted with the largest first."""

    heading: str
    numeric: bool = False


@dataclass(frozen=True)
class Cell(Shown):
    """What stands in one place of a table.

    Attributes:
        text: its words.
        more: a second line, less prominent.
        key: the number that it is sorted by; without one it is sorted by its words.
        role: the role of its colour in the theme, shown as the key of a legend.
        state: ``"error"`` or ``"muted"``: words that must be seen, or can be overlooked.
        bars: pieces of a bar, as role and per cent of the whole width.
    """

    text: str = ""
    more: str = ""
    key: float | None = None
    role: str = ""
    state: str = ""
    bars: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Row:
    """Cells, one for each column. The first names the row; ``inside`` is what it opens."""

    cells: tuple[Cell, ...]
    inside: Table | None = None


@dataclass(frozen=True)
class Table(Shown):
    """Rows below headings.

    Attributes:
        name: what the rows are, for a screen reader.
        columns, rows: the table; its first row is shown first.
        below: lines of text below it.
        sorted_by: the column that the rows are in order of, and ``"ascending"`` or
            ``"descending"``; None where no column says the order.
    """

    name: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    below: tuple[str, ...] = ()
    sorted_by: tuple[int, str] | None = None


@dataclass(frozen=True)
class TablePicture(Picture):
    """A table on a page; ``drawn`` makes the picture of it that a file gets."""

    table: Table
    drawn: Callable[[], Picture]

    def svg(self) -> str:
        """The picture for a file; see :meth:`Picture.svg`."""
        return self.drawn().svg()

    def png(self) -> bytes:
        """The picture for a file; see :meth:`Picture.png`."""
        return self.drawn().png()

    @classmethod
    def markups(cls, pictures: Sequence[TablePicture]) -> list[str]:
        """The tables as HTML, each with room for the longest, so that the page does not jump."""
        longest = max(len(picture.table.rows) for picture in pictures)
        return [markup(picture.table, longest) for picture in pictures]


FALLS = " data-falls"
"""Marks a heading whose first click sorts the largest to the top."""


def markup(table: Table, room: int = 0) -> str:
    """The table as HTML, with room for so many rows."""
    height = f' style="--rows:{room}"' if room > len(table.rows) else ""
    heads = "".join(
        _heading(column, f'<button type="button">{escape(column.heading)}</button>', order)
        for column, order in zip(table.columns, _orders(table), strict=True)
    )
    return (
        f'<div class="lens-table" data-rows="{max(room, len(table.rows))}"{height}>'
        f"{_table(table, heads, 'lens-sorts')}</div>"
    )


def _orders(table: Table) -> list[str]:
    """For each column, what a screen reader hears of the order."""
    number, order = table.sorted_by or (-1, "")
    return [f' aria-sort="{order}"' if k == number else "" for k in range(len(table.columns))]


def _table(table: Table, heads: str, kind: str) -> str:
    rows = "".join(_row(table, row) for row in table.rows)
    below = "".join(f"<p>{escape(line)}</p>" for line in table.below)
    return (
        f'<table class="{kind}" aria-label="{escape(table.name)}"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table>{below}"
    )


def _heading(column: Column, words: str, order: str = "") -> str:
    falls = f' class="lens-number"{FALLS}' if column.numeric else ""
    return f'<th scope="col"{falls}{order}>{words}</th>'


def _row(table: Table, row: Row) -> str:
    name, *others = zip(table.columns, row.cells, strict=True)
    words = _words(name[1])
    if row.inside is not None:
        words = f"<details><summary>{words}</summary></details>"
    cells = f'<th scope="row"{_key(name[1])}>{words}</th>'
    cells += "".join(_cell(column, cell) for column, cell in others)
    return f"<tr>{cells}</tr>" + (_inside(row.inside) if row.inside is not None else "")


def _inside(table: Table) -> str:
    """A table that a row opens. It stands in a row of its own, and is not sorted."""
    heads = "".join(_heading(column, escape(column.heading)) for column in table.columns)
    return f'<tr class="lens-inside"><td colspan="9">{_table(table, heads, "")}</td></tr>'


def _cell(column: Column, cell: Cell) -> str:
    kind = ' class="lens-number"' if column.numeric else ""
    label = f' data-label="{escape(column.heading)}"'
    return f"<td{kind}{label}{_key(cell)}>{_words(cell)}</td>"


def _key(cell: Cell) -> str:
    return "" if cell.key is None else f' data-key="{cell.key:.15g}"'


LONG = 16
"""Words of more characters may be broken. Each break is an element, and a phone holds them all."""


def breakable(text: str, longest: int = LONG) -> str:
    """The text as HTML. A longer word may be broken where a word in it begins, or else anywhere."""

    def pieces(word: re.Match[str]) -> str:
        found = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[._])(?=\w)", "\0", word[0]).split("\0")
        return "\0".join(re.sub(r".{12}(?=.{6})", "\\g<0>\0", piece) for piece in found)

    broken = re.sub(rf"\S{{{longest + 1},}}", pieces, text)
    return "<wbr>".join(map(escape, broken.split("\0")))


def _words(cell: Cell) -> str:
    words = breakable(cell.text, 12)
    if cell.state:
        words = f'<span class="lens-{cell.state}-words">{words}</span>'
    if cell.role:
        words = f'<i class="lens-key lens-{cell.role}"></i>{words}'
    if cell.more:
        words += f" <small>{escape(cell.more)}</small>"
    if cell.bars:
        pieces = "".join(f'<i class="lens-{r}" style="width:{w:.3g}%"></i>' for r, w in cell.bars)
        words += f'<span class="lens-bar">{pieces}</span>'
    return words

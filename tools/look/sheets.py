"""Contact sheets: pictures of a page beside each other, for an image viewer.

Knows sizes, labels and where things stand on a sheet. Does not know a browser, nor what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import matplotlib
from PIL import Image, ImageDraw, ImageFont

WIDE, HIGH = 2400, 4000
"""The largest sheet: an image viewer shows it, and its text can be read."""

GAP = 16
LINE = 32
"""Height of a label."""

COLUMN = HIGH - 2 * LINE - GAP
"""What a column of a page's sheet holds."""

GROUND, INK, ALARM = "#c9ced6", "#10151c", "#b3123f"
"""The ground is neither light nor dark, so that the edges of both kinds of figures show."""


@dataclass(frozen=True)
class Row:
    """One state of a figure in every look; the note is written in the colour of an alarm."""

    label: str
    pictures: tuple[Image.Image, ...]
    note: str = ""


def figure_sheets(title: str, columns: tuple[str, ...], rows: list[Row]) -> Iterator[Image.Image]:
    """Sheets with a row for each state of each figure, below the names of the columns."""
    if not rows:
        return
    widths = _widths([row.pictures for row in rows])
    rows = [Row(row.label, _fitted(row.pictures, widths), row.note) for row in rows]
    top = 2 * LINE + GAP
    for number, some in enumerate(_filled(rows, HIGH - top, _height), start=1):
        size = sum(widths) + GAP * (len(widths) + 1), top + sum(map(_height, some))
        sheet = _Sheet(size, f"{title}, figures, sheet {number}")
        for column, left in zip(columns, _lefts(widths), strict=True):
            sheet.write((left, LINE), column)
        y = top
        for row in some:
            sheet.write((GAP, y), row.label, row.note)
            for picture, left in zip(row.pictures, _lefts(widths), strict=True):
                sheet.image.paste(picture, (left, y + LINE))
            y += _height(row)
        yield sheet.image


def page_sheets(title: str, strips: Iterable[tuple[str, Image.Image]]) -> Iterator[Image.Image]:
    """Sheets with whole pages, cut into columns; a strip is the page in one look."""
    columns = [
        (f"{label}, {number}" if number > 1 else label, part)
        for label, strip in strips
        for number, part in enumerate(_cut(strip, COLUMN), start=1)
    ]
    for number, some in enumerate(_filled(columns, WIDE - GAP, _breadth), start=1):
        height = HIGH - COLUMN + max(part.height for _, part in some)
        sheet = _Sheet((GAP + sum(map(_breadth, some)), height), f"{title}, sheet {number}")
        left = GAP
        for label, part in some:
            sheet.write((left, LINE), label)
            sheet.image.paste(part, (left, 2 * LINE))
            left += part.width + GAP
        yield sheet.image


def write(sheets: Iterable[Image.Image], folder: Path, stem: str) -> list[Path]:
    """Write sheets as `STEM-01.png` and so on."""
    paths = []
    for number, sheet in enumerate(sheets, start=1):
        paths.append(folder / f"{stem}-{number:02}.png")
        sheet.save(paths[-1], compress_level=2)
    return paths


class _Sheet:
    """An empty sheet with a title, to write and to paste on."""

    def __init__(self, size: tuple[int, int], title: str):
        self.image = Image.new("RGB", size, GROUND)
        self.pen = ImageDraw.Draw(self.image)
        self.write((GAP, 0), title)

    def write(self, at: tuple[int, int], words: str, note: str = "") -> None:
        """A line of text whose top left is `at`, and a note behind it."""
        x, y = at[0], at[1] + 4
        self.pen.text((x, y), words, INK, _font())
        if note:
            self.pen.text(
                (x + self.pen.textlength(f"{words}   ", _font()), y), note, ALARM, _font()
            )


@cache
def _font() -> ImageFont.FreeTypeFont:
    """DejaVu Sans, which comes with Matplotlib and has the arrows and powers of our titles."""
    return ImageFont.truetype(f"{matplotlib.get_data_path()}/fonts/ttf/DejaVuSans.ttf", 18)


def _widths(rows: list[tuple[Image.Image, ...]]) -> list[int]:
    """Widths of the columns: as wide as their pictures, the widest less where there's no room."""
    widths = [max(picture.width for picture in column) for column in zip(*rows, strict=True)]
    room = WIDE - GAP * (len(widths) + 1)
    while sum(widths) > room:
        broad = max(widths)
        many = widths.count(broad)
        rest = sum(widths) - many * broad
        next_broad = max([width for width in widths if width < broad], default=0)
        width = max((room - rest) // many, next_broad, 1)
        widths = [width if old == broad else old for old in widths]
    return widths


def _fitted(pictures: tuple[Image.Image, ...], widths: list[int]) -> tuple[Image.Image, ...]:
    """Pictures made smaller where a column or a sheet is."""
    room = HIGH - 3 * LINE - 3 * GAP
    fitted = []
    for picture, width in zip(pictures, widths, strict=True):
        scale = min(1, width / picture.width, room / picture.height)
        size = max(1, int(picture.width * scale)), max(1, int(picture.height * scale))
        fitted.append(picture if scale == 1 else picture.resize(size, Image.Resampling.LANCZOS))
    return tuple(fitted)


def _lefts(widths: list[int]) -> list[int]:
    return [GAP + sum(widths[:k]) + GAP * k for k in range(len(widths))]


def _height(row: Row) -> int:
    return LINE + max(picture.height for picture in row.pictures) + GAP


def _breadth(column: tuple[str, Image.Image]) -> int:
    return column[1].width + GAP


def _cut(strip: Image.Image, height: int) -> Iterator[Image.Image]:
    for top in range(0, strip.height, height):
        yield strip.crop((0, top, strip.width, min(top + height, strip.height)))


def _filled(things: list, room: int, size) -> Iterator[list]:
    """Cut a list where no more fits; what is too large alone stands alone."""
    some, used = [], 0
    for thing in things:
        if some and used + size(thing) > room:
            yield some
            some, used = [], 0
        some.append(thing)
        used += size(thing)
    if some:
        yield some

"""The picture of a storage layout: strips of cells, and below them a grid for each tensor.

All blocks stand on the same columns, and begin at the same left edge. So a cell of a storage, the
index that reads it and an element of a tensor are equally wide, and stand below each other. What
stands in the cells is settled in ``storage_layout_cells``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from .canvas import WIDE_POINTS
from .sketch import Mark, Sketch, Words, box, width_of, wrapped
from .storage_layout_cells import DOTS, Block, Plane, Row, Slot
from .text import short_name


@dataclass(frozen=True)
class Form:
    """One of the two layouts, in points: how wide it is, and how large its letters are."""

    width: float
    letters: float


NARROW = Form(256, 9)
WIDE = Form(WIDE_POINTS, 10)

GAP = 2
"""Points between two cells."""

PADDING = 3
"""Points between a text and the frame of its cell."""

LEAST = 2.4
"""Width of a column at least, in letters."""


def picture(strips: Sequence[Block], grids: Sequence[Block]) -> Sketch:
    """Draw the blocks; the result offers the layout for a desk as ``wide``."""
    narrow, wide = (_Page(form, strips, grids).sketch() for form in (NARROW, WIDE))
    return replace(narrow, wide=wide)


@dataclass
class _Page:
    """One layout of all blocks, and the columns that they share."""

    form: Form
    strips: Sequence[Block]
    grids: Sequence[Block]
    marks: list[Mark] = field(default_factory=list)
    right: float = 0.0

    def __post_init__(self) -> None:
        size = self.form.letters
        self.line, self.gap = 1.3 * size, 0.9 * size
        labels = [self.label(row) for block in self.strips for row in block.rows()]
        self.left = math.ceil(max(width_of(label, size) for label in labels) + 6)
        cell, element = self.room(self.strips), self.room(self.grids)
        # Where an element takes the room of two cells, two cells stand above it.
        self.cells = max(1, int(element // cell))
        self.step = math.ceil(max(cell, element))
        self.columns = max(3, int((self.form.width - self.left) // self.step))

    def room(self, blocks: Sequence[Block]) -> float:
        """Points that the widest text of these blocks needs, with its frame."""
        slots = (slot for block in blocks for row in block.rows() for slot in row.slots)
        texts = (text for slot in slots for text, _ in slot.lines)
        size = self.form.letters
        widest = max((width_of(text, size) for text in texts), default=0)
        return max(widest + 2 * PADDING + GAP, LEAST * size)

    def label(self, row: Row) -> str:
        """The name at the left of a row, without its middle where it would take too much room."""
        length = len(row.label)
        while width_of(short_name(row.label, length), self.form.letters) > self.form.width / 4:
            length -= 1
        return short_name(row.label, length)

    def sketch(self) -> Sketch:
        """All blocks below each other; grids also beside each other where there is room."""
        y = 0.0
        for strip in self.strips:
            y = self.strip(strip, y) + self.gap
        column, bottom = 0, y
        for grid in self.grids:
            wide = self.columns_of(grid)
            if column and column + wide > self.columns:
                column, y = 0, bottom
            bottom = max(bottom, self.grid(grid, column, y) + self.gap)
            column += wide + 1
        return Sketch((self.right + 1, bottom - self.gap + 1), tuple(self.marks), centred=False)

    def at(self, column: int) -> float:
        """Where a column begins."""
        return self.left + column * self.step

    def columns_of(self, grid: Block) -> int:
        """How many columns a grid takes; its title may need more than its planes."""
        room = self.form.width - self.left
        lines = [line for line, _ in self.titles(grid, room)]
        title = max(width_of(line, self.form.letters) for line in lines)
        planes = max((self.across(group.planes) for group in grid.groups), default=1)
        return max(planes, math.ceil((title - GAP) / self.step))

    def across(self, planes: Sequence[Plane]) -> int:
        """Columns of as many planes as stand beside each other."""
        wide = self.widest(planes)
        return self.beside(wide, len(planes)) * (wide + 1) - 1

    def widest(self, planes: Sequence[Plane]) -> int:
        """Columns of the widest plane."""
        return max(len(self.fitting(row).slots) for plane in planes for row in plane.rows)

    def fitting(self, row: Row) -> Row:
        """A row of which only a part is shown anyway shows no more than there is room for."""
        if len(row.slots) <= self.columns or row.slots[-1] != DOTS:
            return row
        return replace(row, slots=(*row.slots[: self.columns - 1], DOTS))

    def beside(self, wide: int, number: int) -> int:
        """How many planes of this many columns stand beside each other."""
        return max(1, min(number, (self.columns + 1) // (wide + 1)))

    def titles(self, block: Block, room: float) -> list[tuple[str, str]]:
        """The lines above a block, and their colours."""
        said = [(block.title, block.role), (block.more, "muted")]
        return [
            (line, role)
            for text, role in said
            if text
            for line in wrapped(text, max(room, self.step), self.form.letters)
        ]

    def title(self, block: Block, x: float, y: float) -> float:
        """Write the title; return where it ends."""
        for line, role in self.titles(block, self.form.width - x):
            self.words(x, y + self.line / 2, line, role)
            y += self.line
        return y + 3

    def strip(self, block: Block, y: float) -> float:
        """Cells in lines of nearly one length, and below each cell who reads it."""
        y = self.title(block, self.left, y)
        rows = block.rows()
        number, most = len(rows[0].slots), self.columns * self.cells
        long = math.ceil(number / max(1, math.ceil(number / most)))
        for first in range(0, number, max(1, long)):
            for row in rows:
                part = replace(row, slots=row.slots[first : first + long])
                y = self.row(part, self.left, self.step / self.cells, y)
            y += self.line / 2 * (first + long < number)
        return y

    def grid(self, block: Block, column: int, y: float) -> float:
        """The planes of a tensor."""
        y = self.title(block, self.at(column), y)
        lines = max((len(slot.lines) for row in block.rows() for slot in row.slots), default=1)
        for group in block.groups:
            wide = self.widest(group.planes)
            beside = self.beside(wide, len(group.planes))
            for first in range(0, len(group.planes), beside):
                ends = []
                for k, plane in enumerate(group.planes[first : first + beside]):
                    there, below = column + k * (wide + 1), y
                    if plane.label:
                        self.words(self.at(there), y + self.line / 2, plane.label, "muted")
                        below += self.line
                    for row in plane.rows:
                        below = self.row(self.fitting(row), self.at(there), self.step, below, lines)
                    ends.append(below)
                y = max(ends) + 4
        return y - 4 * bool(block.groups)

    def row(self, row: Row, x: float, step: float, y: float, lines: int = 1) -> float:
        """A row of cells with room for so many lines, its label at the left of all columns.

        Return where it ends.
        """
        lines = max([lines, *(len(slot.lines) for slot in row.slots)])
        height = lines * 1.15 * self.form.letters + 2 * PADDING
        middle = y + height / 2
        if row.label:
            self.words(self.left - 6, middle, self.label(row), "muted", "end")
        for k, slot in enumerate(row.slots):
            self.slot(slot, (x + k * step, middle), (step - GAP, height))
        return y + height + GAP

    def slot(self, slot: Slot, at: tuple[float, float], size: tuple[float, float]) -> None:
        """A cell and its lines of text; ``at`` is the middle of its left side."""
        (x, middle), (width, _) = at, size
        if slot.role:
            self.marks.append(box(at, size, slot.fill, slot.role))
        self.right = max(self.right, x + width)
        for k, (text, role) in enumerate(slot.lines):
            y = middle + (k - (len(slot.lines) - 1) / 2) * 1.15 * self.form.letters
            self.marks.append(Words((x + width / 2, y), text, role, self.form.letters, "middle"))

    def words(self, x: float, y: float, text: str, role: str, anchor: str = "start") -> None:
        """A text beside the cells."""
        self.marks.append(Words((x, y), text, role, self.form.letters, anchor))
        if anchor == "start":
            self.right = max(self.right, x + width_of(text, self.form.letters))

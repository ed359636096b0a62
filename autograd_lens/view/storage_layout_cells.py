"""What stands in the cells of a storage layout's picture, whatever room there is to draw them.

Of a storage: its cells, and by which index each tensor reads them. Of a tensor: for each index its
value, and its place in the storage. Only a part of a large storage or tensor is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product

from ..layouts.layout import Index, StorageLayout, TensorLayout
from ..layouts.readers import Readers
from .storage_layout_text import Cell, cut, index_word, is_shared
from .text import count, shape_words, short_name
from .theme import COLOURS

ROLES = ("series-1", "series-2", "series-3", "series-6", "muted")
"""Colours of the tensors, in their order. As in a chart, none has a meaning.

After the last colour comes the first one again.
"""

SIDE = 8
"""Number of indices of a dimension in a grid. Of the outer dimensions it shows half as many."""


@dataclass(frozen=True)
class Slot:
    """One cell: lines of text, each with its colour, and the colour of its frame if it has one."""

    lines: tuple[tuple[str, str], ...]
    role: str = ""

    @property
    def fill(self) -> str:
        """The ground of the frame's colour."""
        return f"{self.role}-fill" if f"{self.role}-fill" in COLOURS else "panel"


@dataclass(frozen=True)
class Row:
    """Cells beside each other, and what stands at their left."""

    slots: tuple[Slot, ...]
    label: str = ""


@dataclass(frozen=True)
class Plane:
    """The last two dimensions of a tensor; the label says the indices of the others."""

    rows: tuple[Row, ...]
    label: str = ""


@dataclass(frozen=True)
class Group:
    """Planes that stand beside each other where there is room."""

    planes: tuple[Plane, ...]


@dataclass(frozen=True)
class Block:
    """A storage, whose one plane is a strip, or a tensor; ``more`` stands below its title."""

    title: str
    role: str
    groups: tuple[Group, ...]
    more: str = ""

    def rows(self) -> list[Row]:
        """All rows of all planes."""
        return [row for group in self.groups for plane in group.planes for row in plane.rows]


def role(number: int) -> str:
    """The colour of a tensor."""
    return ROLES[number % len(ROLES)]


DOTS = Slot((("…", "muted"),))
"""Stands for what is not shown."""

HOLE = Slot((("·", "muted"),))
"""Stands below a cell that a tensor does not read."""


def strip(layout: StorageLayout, storage: int, cells: list[Cell]) -> Block:
    """The cells of a storage, and for each tensor a row that says by which index it reads them."""
    title = f"storage {storage}" if len(layout.storages) > 1 else "storage"
    title += f": {count(layout.storages[storage].cells, 'cell')}{cut(layout, storage)}"
    rows = [Row(tuple(Slot(((str(one.number), "muted"),), "line") for one in cells), "cell")]
    for number, tensor in enumerate(layout.tensors):
        if tensor.storage == storage:
            slots = tuple(_reading(one.readers[number], number) for one in cells)
            rows.append(Row(slots, short_name(tensor.name)))
    return Block(title, "ink", (Group((Plane(tuple(rows)),)),))


def _reading(readers: Readers, number: int) -> Slot:
    """Who reads a cell: an index in each line, since several beside each other are wide."""
    words = [index_word(index) for index in readers.indices]
    if readers.number is None:
        words.append("more")
    elif more := readers.number - len(readers.indices):
        words.append(f"+{more:,}" if more < 10_000 else f"+{more:.1e}")
    if not words:
        return HOLE
    colour = "error" if is_shared(readers) else role(number)
    return Slot(tuple((word, colour) for word in words), colour)


def grid(layout: StorageLayout, number: int) -> Block:
    """What a tensor has at each index. Each plane of its last two dimensions stands for itself."""
    tensor = layout.tensors[number]
    title = f"{short_name(tensor.name)} {shape_words(tensor.shape)}"
    more = f"strides {shape_words(tensor.stride)}"
    if tensor.begins:
        more += f", from cell {layout.cells_at(0, number).start}"
    more += f", read {tensor.reads}" * bool(tensor.reads)
    if not tensor.numel:
        return Block(title, role(number), (), f"{more}, no elements")
    planes = _Planes(tensor, number)
    outer = (1, 1, *tensor.shape)[-4:-2] if len(tensor.shape) > 2 else (1, 1)
    half = SIDE // 2
    dots = Plane((Row((DOTS,)),))
    groups = []
    for a in range(min(outer[0], half)):
        beside = [planes.plane((a, b)[4 - len(tensor.shape) :]) for b in range(min(outer[1], half))]
        groups.append(Group((*beside, *[dots] * (outer[1] > half))))
    groups += [Group((dots,))] * (outer[0] > half)
    return Block(title, role(number), tuple(groups), more + planes.note())


_PARTS = re.compile(r"(?<=\d)(?=[+-].*j$)")
"""Splits a complex number into two lines: ``1.5e+10`` and ``-2e-05j``."""


class _Planes:
    """The planes of one tensor. Each index shows its value, if it is known, and its place."""

    def __init__(self, tensor: TensorLayout, number: int):
        self.tensor = tensor
        self.role = role(number)
        self.readers_at = cache(tensor.readers_at)

    def note(self) -> str:
        """What a number without a place means, if there is one, as in ``torch.arange``."""
        alike = sum(self.says_both(index) for index in shown_indices(self.tensor))
        if not alike:
            return ""
        every = alike == sum(1 for _ in shown_indices(self.tensor))
        return ", values = places" if every else ", values = places or @"

    def says_both(self, index: Index) -> bool:
        """Whether the value of an element is the number of its place, too."""
        offset = self.tensor.offset_of(index)
        return offset < self.tensor.held and self.tensor.values.get(index) == str(offset)

    def plane(self, front: Index) -> Plane:
        """The plane behind the outer indices ``front``."""
        shape = self.tensor.shape
        high, wide = ((1, 1) + shape)[-2:] if len(shape) > 1 else (1, *(shape or (1,)))
        rows = []
        for i in range(min(high, SIDE)):
            indices = ((*front, i, j)[-len(shape) :] for j in range(min(wide, SIDE)))
            slots = [self.element(index if shape else ()) for index in indices]
            rows.append(Row((*slots, *[DOTS] * (wide > SIDE))))
        if high > SIDE:
            rows.append(Row((DOTS,)))
        return Plane(tuple(rows), str(list(front)) if front else "")

    def element(self, index: Index) -> Slot:
        """The cell of one index. A question mark says that the storage ends before its element."""
        offset = self.tensor.offset_of(index)
        inside = offset < self.tensor.held
        colour = "error" if is_shared(self.readers_at(offset)) else self.role
        value = self.tensor.values.get(index, "") if inside else "?"
        lines = [(part, "ink") for part in _PARTS.split(value) if part]
        if not self.says_both(index):
            lines.append((f"@{offset}", "muted"))
        return Slot(tuple(lines), colour)


def shown_indices(tensor: TensorLayout) -> Iterator[Index]:
    """The indices that a grid shows."""
    most = (SIDE // 2, SIDE // 2, SIDE, SIDE)[4 - len(tensor.shape) :]
    return product(*(range(min(n, m)) for n, m in zip(tensor.shape, most, strict=True)))

"""The figure of a storage layout: a strip of cells, and below it a grid for each tensor.

The strip has a row for each tensor, which says by which index the tensor reads a cell. The grid of
a tensor says for each index which cell it reads. Only a part of a large storage or tensor is shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import chain, product

from ..layouts.layout import Index, StorageLayout, TensorLayout
from ..layouts.readers import Readers
from .dot import DotPicture
from .figure import Figure, Frame
from .storage_layout_text import (
    Cell,
    all_shown,
    caption,
    cut,
    is_shared,
    readers_word,
    text,
)
from .tables import cell, document, node, table, words
from .text import count, shape_words, short_name
from .theme import COLOURS

ROLES = ("forward", "parameter", "done", "saved", "muted")
"""Colours of the tensors, in their order. After the last colour comes the first one again."""

SIDE = 8
"""Number of indices of a dimension in a grid. Of the outer dimensions it shows half as many."""


def figure(layout: StorageLayout) -> Figure:
    """Return the figure: one frame."""
    roles = {
        role(k): short_name(tensor.name) for k, tensor in enumerate(layout.tensors[: len(ROLES)])
    }
    shown = all_shown(layout)
    in_strips = (found for cells in shown for cell in cells for found in cell.readers.values())
    if any(map(is_shared, chain(in_strips, *map(_in_grid, layout.tensors)))):
        roles["error"] = "read by two indices"
    return Figure(
        "Storage layout",
        lambda: Frame(
            text(layout, shown),
            lambda: DotPicture(source(layout, shown)),
            caption=caption(layout),
        ),
        legend=roles,
    )


def _in_grid(tensor: TensorLayout) -> Iterator[Readers]:
    """For each index in the grid, all indices that read the same element.

    Empty for a tensor whose indices all read different elements.
    """
    if tensor.overlaps is not False:
        most = (SIDE // 2, SIDE // 2, SIDE, SIDE)[4 - len(tensor.shape) :]
        for index in product(*(range(min(n, m)) for n, m in zip(tensor.shape, most, strict=True))):
            yield tensor.readers_at(tensor.offset_of(index))


def role(number: int) -> str:
    """The colour of a tensor."""
    return ROLES[number % len(ROLES)]


def source(layout: StorageLayout, shown: list[list[Cell]]) -> str:
    """DOT source of the picture: the strips, and below them the grids."""
    blocks = [_strip(layout, number, cells) for number, cells in enumerate(shown)]
    blocks += [_grid(layout, number) for number in range(len(layout.tensors))]
    nodes = [node(k, kind, content) for k, (kind, content) in enumerate(blocks)]
    order = " -> ".join(f"node{k}" for k in range(len(blocks)))
    statements = "\n".join(["edge [style=invis]", *nodes, order])
    return document(statements, fontsize=11, settings="ranksep=0.15 ")


def _words(text: str, colour: str, size: float = 11) -> str:
    return words(text, color=colour, point_size=size)


def _heading(text: str, colour: str, span: int | None = None) -> str:
    return cell(_words(text, colour), border=0, colspan=span, align="LEFT")


def _plain(text: str, size: float = 10) -> str:
    """A cell without a frame."""
    return cell(_words(text, "muted", size), border=0, cellpadding=3)


def _framed(text: str, colour: str) -> str:
    return _cell(_words(text, colour, 10), colour)


def _cell(content: str, colour: str) -> str:
    """A cell in a frame, on the ground of its colour."""
    ground = f"{colour}-fill" if f"{colour}-fill" in COLOURS else "panel"
    return cell(content, color=colour, bgcolor=ground, cellpadding=3)


def _table(rows: list[list[str]]) -> str:
    return table(rows, cellborder=1, cellspacing=2, cellpadding=0)


def _strip(layout: StorageLayout, storage: int, cells: list[Cell]) -> tuple[str, str]:
    """The cells of a storage in lines, and under each cell who reads it."""
    who = [k for k, tensor in enumerate(layout.tensors) if tensor.storage == storage]
    deep = max((len(layout.tensors[k].shape) for k in who), default=0)
    long = {3: 8, 4: 6}.get(deep, 12)  # longer indices, fewer cells that fit on a phone
    title = f"storage {storage}" if len(layout.storages) > 1 else "storage"
    title += f": {count(layout.storages[storage].cells, 'cell')}{cut(layout, storage)}"
    rows = [[_heading(title, "ink", long + 1)]]
    for first in range(0, len(cells), long):
        line = cells[first : first + long]
        rows.append([_plain("cell", 9), *(_framed(str(one.number), "muted") for one in line)])
        for k in who:
            marks = [_plain(short_name(layout.tensors[k].name, 32), 9)]
            for one in line:
                colour = "error" if is_shared(one.readers[k]) else role(k)
                word = readers_word(one.readers[k])
                marks.append(_framed(word, colour) if word else _plain("·"))
            rows.append(marks)
    return "storage", _table(rows)


def _grid(layout: StorageLayout, number: int) -> tuple[str, str]:
    """The grid of one tensor. Each plane of its last two dimensions is a table of its own."""
    tensor = layout.tensors[number]
    outer = (1, 1, *tensor.shape)[-4:-2] if len(tensor.shape) > 2 else (1, 1)
    name = short_name(tensor.name)
    title = f"{name}  {shape_words(tensor.shape)}, strides {shape_words(tensor.stride)}"
    if tensor.begins:
        title += f", from cell {layout.cells_at(0, number).start}"
    title += f", read {tensor.reads}" * bool(tensor.reads)
    plane = _Planes(tensor, number)
    title += ", values = places" * plane.agree
    rows = [[_heading(title, role(number), SIDE)]]
    if not tensor.numel:
        rows.append([_heading("no elements", "muted")])
        return "grid", _table(rows)
    half = SIDE // 2
    for a in range(min(outer[0], half)):
        planes = [
            cell(plane.table((a, b)[4 - len(tensor.shape) :]), border=0)
            for b in range(min(outer[1], half))
        ]
        rows.append(planes + [_plain("…")] * (outer[1] > half))
    if outer[0] > half:
        rows.append([_plain("…")])
    return "grid", _table(rows)


class _Planes:
    """The planes of one tensor. Each index shows its value, if it is known, and its element."""

    def __init__(self, tensor: TensorLayout, number: int):
        self.tensor = tensor
        self.role = role(number)
        self.readers_at = cache(tensor.readers_at)
        places = {index: str(tensor.offset_of(index)) for index in tensor.values}
        # As in torch.arange: each element would say one number twice.
        self.agree = len(places) == tensor.numel > 0 and places == dict(tensor.values)

    def table(self, front: Index) -> str:
        """The plane behind the outer indices ``front``."""
        shape = self.tensor.shape
        high, wide = ((1, 1) + shape)[-2:] if len(shape) > 1 else (1, *(shape or (1,)))
        rows = []
        if front:
            rows.append([cell(_words(str(list(front)), "muted", 9), border=0, colspan=SIDE)])
        for i in range(min(high, SIDE)):
            indices = ((*front, i, j)[-len(shape) :] for j in range(min(wide, SIDE)))
            elements = [self.element(index if shape else ()) for index in indices]
            rows.append(elements + [_plain("…")] * (wide > SIDE))
        if high > SIDE:
            rows.append([_plain("…")])
        return _table(rows)

    def element(self, index: Index) -> str:
        """The cell of one index. A question mark says that the storage ends before its element."""
        offset = self.tensor.offset_of(index)
        inside = offset < self.tensor.held
        colour = "error" if is_shared(self.readers_at(offset)) else self.role
        value = self.tensor.values.get(index, "") if inside else "?"
        if self.agree and inside:
            return _cell(_words(value, "ink", 11), colour)
        said = _words(value, "ink", 11) + " " if value else ""
        return _cell(said + _words(f"@{offset}", "muted", 9), colour)

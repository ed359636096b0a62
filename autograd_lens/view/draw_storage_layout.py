"""The figure of a storage layout: a strip of cells above, the grid of each tensor's indices below.

In the strip each tensor has a row that says which of its indices reads a cell; in its grid each
index says which cell it reads. Large storages and large tensors are cut to what can be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import chain, product

from ..layouts.layout import Index, StorageLayout, TensorLayout
from ..layouts.readers import Readers
from .dot import DotPicture, escaped
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
from .text import count, shape_words
from .theme import FONT, light

ROLES = ("forward", "parameter", "done", "saved", "muted")
"""Colours of the tensors, in their order; more tensors than colours start again."""

SIDE = 8
"""Indices of one dimension in a grid; of the outer dimensions, half as many."""


def figure(layout: StorageLayout) -> Figure:
    """Return the figure: one frame."""
    roles = {role(k): tensor.name for k, tensor in enumerate(layout.tensors[: len(ROLES)])}
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
    """For each index that its grid shows, all that read the same element, if there can be two."""
    if tensor.overlaps is not False:
        most = (SIDE // 2, SIDE // 2, SIDE, SIDE)[4 - len(tensor.shape) :]
        for index in product(*(range(min(n, m)) for n, m in zip(tensor.shape, most, strict=True))):
            yield tensor.readers_at(tensor.offset_of(index))


def role(number: int) -> str:
    """The colour of a tensor."""
    return ROLES[number % len(ROLES)]


def source(layout: StorageLayout, shown: list[list[Cell]]) -> str:
    """The picture in DOT: strips, then grids, one below the other."""
    blocks = [_strip(layout, number, cells) for number, cells in enumerate(shown)]
    blocks += [_grid(layout, number) for number in range(len(layout.tensors))]
    nodes = "".join(
        f'node{k} [id=node{k} class="{kind}" label=<{label}>]\n'
        for k, (kind, label) in enumerate(blocks)
    )
    order = " -> ".join(f"node{k}" for k in range(len(blocks)))
    return (
        f'digraph {{ bgcolor=transparent ranksep=0.15 node [shape=plain fontname="{FONT}" '
        f'fontsize=11 fontcolor="{light("ink")}"] edge [style=invis]\n{nodes}{order} }}'
    )


def _font(text: str, colour: str, size: float = 11) -> str:
    return f'<FONT COLOR="{light(colour)}" POINT-SIZE="{size}">{escaped(text)}</FONT>'


def _cell(text: str, colour: str = "", *, fill: bool = False, size: float = 10) -> str:
    """A table cell; a colour paints its frame and text, and its ground where it is filled."""
    paint = f'COLOR="{light(colour)}"' if colour else 'BORDER="0"'
    ground = colour if f"{colour}-fill" in _FILLS else "panel"
    paint += f' BGCOLOR="{light(_FILLS.get(ground + "-fill", "panel"))}"' if fill else ""
    return f'<TD {paint} CELLPADDING="3">{_font(text, colour or "muted", size) or " "}</TD>'


_FILLS = {f"{name}-fill": f"{name}-fill" for name in (*ROLES[:4], "error")}


def _table(rows: list[str]) -> str:
    inner = "".join(f"<TR>{row}</TR>" for row in rows)
    return f'<TABLE BORDER="0" CELLBORDER="1" CELLSPACING="2" CELLPADDING="0">{inner}</TABLE>'


def _strip(layout: StorageLayout, storage: int, cells: list[Cell]) -> tuple[str, str]:
    """The cells of a storage in lines, and under each cell who reads it."""
    who = [k for k, tensor in enumerate(layout.tensors) if tensor.storage == storage]
    deep = max((len(layout.tensors[k].shape) for k in who), default=0)
    long = {3: 8, 4: 6}.get(deep, 12)  # longer indices, fewer cells that fit on a phone
    title = f"storage {storage}" if len(layout.storages) > 1 else "storage"
    title += f": {count(layout.storages[storage].cells, 'cell')}{cut(layout, storage)}"
    rows = [f'<TD BORDER="0" COLSPAN="{long + 1}" ALIGN="LEFT">{_font(title, "ink")}</TD>']
    for first in range(0, len(cells), long):
        line = cells[first : first + long]
        numbers = (_cell(str(cell.number), "muted", fill=True) for cell in line)
        rows.append(_cell("cell", size=9) + "".join(numbers))
        for k in who:
            marks = [_cell(layout.tensors[k].name, size=9)]
            for cell in line:
                colour = "error" if is_shared(cell.readers[k]) else role(k)
                word = readers_word(cell.readers[k])
                marks.append(_cell(word, colour, fill=True) if word else _cell("·"))
            rows.append("".join(marks))
    return "storage", _table(rows)


def _grid(layout: StorageLayout, number: int) -> tuple[str, str]:
    """The indices of one tensor: planes of the last two dimensions, in rows and columns."""
    tensor = layout.tensors[number]
    outer = (1, 1, *tensor.shape)[-4:-2] if len(tensor.shape) > 2 else (1, 1)
    title = f"{tensor.name}  {shape_words(tensor.shape)}, strides {shape_words(tensor.stride)}"
    if tensor.begins:
        title += f", from cell {layout.cells_at(0, number).start}"
    title += f", read {tensor.reads}" * bool(tensor.reads)
    rows = [f'<TD BORDER="0" COLSPAN="{SIDE}" ALIGN="LEFT">{_font(title, role(number))}</TD>']
    if not tensor.numel:
        rows.append(f'<TD BORDER="0" ALIGN="LEFT">{_font("no elements", "muted")}</TD>')
        return "grid", _table(rows)
    plane = _Planes(tensor, number)
    half = SIDE // 2
    for a in range(min(outer[0], half)):
        planes = [
            f'<TD BORDER="0">{plane.table((a, b)[4 - len(tensor.shape) :])}</TD>'
            for b in range(min(outer[1], half))
        ]
        rows.append("".join(planes) + (_cell("…") if outer[1] > half else ""))
    if outer[0] > half:
        rows.append(_cell("…"))
    return "grid", _table(rows)


class _Planes:
    """The planes of one tensor: each index with its value, where it is known, and its element."""

    def __init__(self, tensor: TensorLayout, number: int):
        self.tensor = tensor
        self.role = role(number)
        self.readers_at = cache(tensor.readers_at)

    def table(self, front: Index) -> str:
        """The plane behind the outer indices ``front``."""
        shape = self.tensor.shape
        high, wide = ((1, 1) + shape)[-2:] if len(shape) > 1 else (1, *(shape or (1,)))
        rows = []
        if front:
            rows.append(
                f'<TD BORDER="0" COLSPAN="{SIDE}">{_font(str(list(front)), "muted", 9)}</TD>'
            )
        for i, j in product(range(min(high, SIDE)), range(min(wide, SIDE))):
            if j == 0:
                rows.append("")
            rows[-1] += self.element((*front, i, j)[-len(shape) :] if shape else ())
            if j == SIDE - 1 and wide > SIDE:
                rows[-1] += _cell("…")
        if high > SIDE:
            rows.append(_cell("…"))
        return _table(rows)

    def element(self, index: Index) -> str:
        """One index; a question mark where its element lies beyond the end of the storage."""
        offset = self.tensor.offset_of(index)
        inside = offset < self.tensor.held
        colour = "error" if is_shared(self.readers_at(offset)) else self.role
        value = self.tensor.values.get(index, "") if inside else "?"
        ground = light(_FILLS.get(f"{colour}-fill", "panel"))
        return (
            f'<TD COLOR="{light(colour)}" BGCOLOR="{ground}" CELLPADDING="3">'
            + (_font(value, "ink", 11) + " " if value else "")
            + _font(f"@{offset}", "muted", 9)
            + "</TD>"
        )

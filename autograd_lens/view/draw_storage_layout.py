"""The figure of a storage layout: a strip of cells above, the grid of each tensor's indices below.

In the strip each tensor has a row that says which of its indices reads a cell; in its grid each
index says which cell it reads. Large storages and large tensors are cut to what can be read.
"""

from __future__ import annotations

from itertools import product

from ..layouts import Index, StorageLayout, TensorLayout
from .dot import DotPicture, escaped
from .figure import Figure, Frame
from .text import count, shape_words
from .theme import FONT, light

ROLES = ("forward", "parameter", "done", "saved", "muted")
"""Colours of the tensors, in their order; more tensors than colours start again."""

CELLS = 48
"""Cells of one storage in a picture."""

SIDE = 8
"""Indices of one dimension in a grid; of the outer dimensions, half as many."""

Readers = dict[tuple[int, int], list[tuple[int, Index]]]


def figure(layout: StorageLayout) -> Figure:
    """Return the figure: one frame."""
    roles = {role(k): tensor.name for k, tensor in enumerate(layout.tensors[: len(ROLES)])}
    met = readers(layout)
    if any(len(indices) > 1 for indices in _by_tensor(met).values()):
        roles["error"] = "read by two indices"
    return Figure(
        "Storage layout",
        lambda: Frame(twin(layout, met), DotPicture(source(layout, met)), caption=caption(layout)),
        legend=roles,
    )


def role(number: int) -> str:
    """The colour of a tensor."""
    return ROLES[number % len(ROLES)]


def window(layout: StorageLayout, storage: int) -> range:
    """The cells that are shown: all of a small storage, else from the first that is read."""
    cells = layout.storages[storage].cells
    first = 0
    if cells > CELLS:
        spans = [
            layout.cells_of((0,) * len(t.shape), k).start
            for k, t in enumerate(layout.tensors)
            if t.storage == storage and t.numel
        ]
        first = min(spans, default=0)
        if layout.start is not None and storage == 0:
            first = layout.start
    return range(first, min(first + CELLS, cells))


def readers(layout: StorageLayout) -> Readers:
    """By storage and cell, which index of which tensor reads it, for the cells that are shown."""
    shown = [window(layout, storage) for storage in range(len(layout.storages))]
    met: Readers = {(s, cell): [] for s, cells in enumerate(shown) for cell in cells}
    for number, tensor in enumerate(layout.tensors):
        for index in _reaching(layout, number, shown[tensor.storage]):
            for cell in layout.cells_of(index, number):
                if (tensor.storage, cell) in met:
                    met[tensor.storage, cell].append((number, index))
    return met


def _reaching(layout: StorageLayout, number: int, cells: range) -> list[Index]:
    """The indices of a tensor that read one of the cells, without going through all of them.

    A dimension at a time, keeping the beginnings of indices that can still get there.
    """
    tensor = layout.tensors[number]
    if not tensor.numel or not cells:
        return []
    wide = tensor.itemsize // layout.storages[tensor.storage].cell
    low, high = cells.start // wide, (cells.stop - 1) // wide
    rest = [0] * (len(tensor.shape) + 1)  # how far the dimensions from here on can reach
    for d in reversed(range(len(tensor.shape))):
        rest[d] = rest[d + 1] + (tensor.shape[d] - 1) * tensor.stride[d]
    partial: list[tuple[Index, int]] = [((), tensor.storage_offset)]
    for d, (size, step) in enumerate(zip(tensor.shape, tensor.stride, strict=True)):
        grown = []
        for index, at in partial:
            first, last = 0, size - 1
            if step:
                first = max(0, -((at + rest[d + 1] - low) // step))
                last = min(last, (high - at) // step)
            # Indices that all read one cell (stride 0) are as many as the dimension is long.
            grown += [((*index, i), at + i * step) for i in range(first, min(last, first + 63) + 1)]
        partial = grown
    return [index for index, at in partial if low <= at <= high]


def _by_tensor(met: Readers) -> dict[tuple[int, int, int], list[Index]]:
    """By storage, cell and tensor, the indices that read it."""
    found: dict[tuple[int, int, int], list[Index]] = {}
    for (storage, cell), pairs in met.items():
        for number, index in pairs:
            found.setdefault((storage, cell, number), []).append(index)
    return found


def index_word(index: Index) -> str:
    """``1,0``; ``()`` for the one index of a tensor without dimensions."""
    return ",".join(map(str, index)) or "()"


def indices_word(indices: list[Index]) -> str:
    """One index, or several that read the same cell, at most three of them."""
    words = [index_word(index) for index in indices[:3]]
    return " ".join(words) + (f" +{len(indices) - 3}" if len(indices) > 3 else "")


def describe(layout: StorageLayout, number: int) -> str:
    """A line on one tensor: what it is, and how it lies."""
    tensor = layout.tensors[number]
    order = " and ".join(tensor.formats) if tensor.formats else "not contiguous"
    head = (
        f"{tensor.name}: {tensor.dtype} {shape_words(tensor.shape)}, strides "
        f"{shape_words(tensor.stride)}, offset {tensor.storage_offset}, {order}"
    )
    if tensor.span is None:
        return f"{head}; it has no elements"
    elements = count(tensor.span[1] - tensor.span[0] + 1, "element")
    if tensor.distinct is None:
        return f"{head}; it spans {elements}"
    said = [count(tensor.holes, "hole")] * bool(tensor.holes)
    said += [f"{tensor.numel - tensor.distinct:,} read again"] * bool(tensor.overlaps)
    return f"{head}; it spans {elements}, {', '.join(said)}" if said else head


def caption(layout: StorageLayout) -> str:
    """What the reader says, and how many tensors share how many storages."""
    said = f"{layout.note} " * bool(layout.note)
    tensors, storages = len(layout.tensors), len(layout.storages)
    cells = " and ".join(count(storage.cells, "cell") for storage in layout.storages)
    if tensors == 1:
        return f"{said}{describe(layout, 0)}. The storage has {cells}."
    how = "one storage" if storages == 1 else f"{storages} storages"
    return f"{said}{tensors} tensors over {how} of {cells}."


def twin(layout: StorageLayout, met: Readers) -> str:
    """The tensors, then each storage as a table: a row per cell, a column per tensor."""
    lines = [layout.note] * bool(layout.note)
    lines += [describe(layout, number) for number in range(len(layout.tensors))]
    by_tensor = _by_tensor(met)
    for number, storage in enumerate(layout.storages):
        cells = window(layout, number)
        cut = "" if len(cells) == storage.cells else f", {cells.start} to {cells.stop - 1} shown"
        unit = count(storage.cell, "byte")
        lines.append(f"storage {number}: {count(storage.cells, 'cell')} of {unit}{cut}")
        who = [k for k, tensor in enumerate(layout.tensors) if tensor.storage == number]
        values = _values(layout, number, met)
        rows = [["cell", *["value"] * bool(values), *(layout.tensors[k].name for k in who)]]
        for cell in cells:
            reads = (indices_word(by_tensor.get((number, cell, k), [])) or "-" for k in who)
            rows.append([str(cell), *[values.get(cell, "-")] * bool(values), *reads])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines += ["  " + "  ".join(map(str.rjust, row, widths)) for row in rows]
    return "\n".join(lines)


def _values(layout: StorageLayout, storage: int, met: Readers) -> dict[int, str]:
    """What the cells hold, as far as an element of exactly one cell was copied."""
    found: dict[int, str] = {}
    for (where, cell), pairs in met.items():
        for number, index in pairs if where == storage else ():
            tensor = layout.tensors[number]
            if tensor.itemsize == layout.storages[storage].cell and index in tensor.values:
                found.setdefault(cell, tensor.values[index])
    return found


def source(layout: StorageLayout, met: Readers) -> str:
    """The picture in DOT: strips, then grids, one below the other."""
    blocks = [_strip(layout, number, met) for number in range(len(layout.storages))]
    blocks += [_grid(layout, number, met) for number in range(len(layout.tensors))]
    nodes = "".join(
        f'node{k} [id=node{k} class="{kind}" label=<{label}>]\n'
        for k, (kind, label) in enumerate(blocks)
    )
    chain = " -> ".join(f"node{k}" for k in range(len(blocks)))
    return (
        f'digraph {{ bgcolor=transparent ranksep=0.15 node [shape=plain fontname="{FONT}" '
        f'fontsize=11 fontcolor="{light("ink")}"] edge [style=invis]\n{nodes}{chain} }}'
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


def _strip(layout: StorageLayout, storage: int, met: Readers) -> tuple[str, str]:
    """The cells of a storage in lines, and under each cell who reads it."""
    cells = window(layout, storage)
    who = [k for k, tensor in enumerate(layout.tensors) if tensor.storage == storage]
    deep = max((len(layout.tensors[k].shape) for k in who), default=0)
    long = {3: 8, 4: 6}.get(deep, 12)  # longer indices, fewer cells that fit on a phone
    by_tensor = _by_tensor(met)
    total = layout.storages[storage].cells
    title = f"storage {storage}" if len(layout.storages) > 1 else "storage"
    title += f": {count(total, 'cell')}" + (
        f", {cells.start} to {cells.stop - 1} shown" if len(cells) < total else ""
    )
    rows = [f'<TD BORDER="0" COLSPAN="{long + 1}" ALIGN="LEFT">{_font(title, "ink")}</TD>']
    for first in range(cells.start, cells.stop, long):
        line = range(first, min(first + long, cells.stop))
        rows.append(
            _cell("cell", size=9) + "".join(_cell(str(c), "muted", fill=True) for c in line)
        )
        for k in who:
            marks = [_cell(layout.tensors[k].name, size=9)]
            for cell in line:
                indices = by_tensor.get((storage, cell, k), [])
                colour = "error" if len(indices) > 1 else role(k)
                marks.append(
                    _cell(indices_word(indices), colour, fill=True) if indices else _cell("·")
                )
            rows.append("".join(marks))
    return "storage", _table(rows)


def _grid(layout: StorageLayout, number: int, met: Readers) -> tuple[str, str]:
    """The indices of one tensor: planes of the last two dimensions, in rows and columns."""
    tensor = layout.tensors[number]
    outer = (1, 1, *tensor.shape)[-4:-2] if len(tensor.shape) > 2 else (1, 1)
    title = f"{tensor.name}  {shape_words(tensor.shape)}, strides {shape_words(tensor.stride)}"
    rows = [f'<TD BORDER="0" COLSPAN="{SIDE}" ALIGN="LEFT">{_font(title, role(number))}</TD>']
    if not tensor.numel:
        rows.append(f'<TD BORDER="0" ALIGN="LEFT">{_font("no elements", "muted")}</TD>')
        return "grid", _table(rows)
    twice = {
        i
        for (_, _, k), found in _by_tensor(met).items()
        if k == number and len(found) > 1
        for i in found
    }
    half = SIDE // 2
    for a in range(min(outer[0], half)):
        planes = [
            f'<TD BORDER="0">{_plane(tensor, number, (a, b)[4 - len(tensor.shape) :], twice)}</TD>'
            for b in range(min(outer[1], half))
        ]
        rows.append("".join(planes) + (_cell("…") if outer[1] > half else ""))
    if outer[0] > half:
        rows.append(_cell("…"))
    return "grid", _table(rows)


def _plane(tensor: TensorLayout, number: int, front: Index, twice: set[Index]) -> str:
    """One plane: each index with its value, where it is known, and the element it reads."""
    high, wide = (
        ((1, 1) + tensor.shape)[-2:] if len(tensor.shape) > 1 else (1, *(tensor.shape or (1,)))
    )
    rows = []
    if front:
        rows.append(f'<TD BORDER="0" COLSPAN="{SIDE}">{_font(str(list(front)), "muted", 9)}</TD>')
    for i, j in product(range(min(high, SIDE)), range(min(wide, SIDE))):
        if j == 0:
            rows.append("")
        index = (*front, i, j)[-len(tensor.shape) :] if tensor.shape else ()
        colour = "error" if index in twice else role(number)
        value = tensor.values.get(index, "")
        ground = light(_FILLS.get(f"{colour}-fill", "panel"))
        rows[-1] += (
            f'<TD COLOR="{light(colour)}" BGCOLOR="{ground}" CELLPADDING="3">'
            + (_font(value, "ink", 11) + " " if value else "")
            + _font(f"@{tensor.offset_of(index)}", "muted", 9)
            + "</TD>"
        )
        if j == SIDE - 1 and wide > SIDE:
            rows[-1] += _cell("…")
    if high > SIDE:
        rows.append(_cell("…"))
    return _table(rows)

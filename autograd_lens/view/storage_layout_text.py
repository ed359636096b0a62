"""A storage layout as text: what each tensor is, and which indices read each cell.

Of a large storage it shows some cells only. The work depends on their number, and not on the size
of the storage.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..layouts.layout import Index, StorageLayout, TensorLayout
from ..layouts.readers import Readers
from .tables import text_table
from .text import count, indent, shape_words, short_name

CELLS = 48
"""Number of cells of one storage that are shown."""


@dataclass(frozen=True)
class Cell:
    """A cell that is shown, and for each tensor the indices that read it."""

    storage: int
    number: int
    readers: dict[int, Readers]


def window(layout: StorageLayout, storage: int) -> range:
    """The cells that are shown: all of a small storage, else those from the first that is read."""
    cells = layout.storages[storage].cells
    first = 0
    if cells > CELLS:
        spans = [
            layout.cells_at(t.storage_offset, k).start
            for k, t in enumerate(layout.tensors)
            if t.storage == storage and t.numel and t.storage_offset < t.held
        ]
        first = min(spans, default=0)
        if layout.drawing.start is not None and storage == 0:
            first = layout.drawing.start
    return range(first, min(first + CELLS, cells))


def shown_cells(layout: StorageLayout, storage: int) -> list[Cell]:
    """The cells of a storage that are shown, with the indices that read them."""
    who = [(k, t) for k, t in enumerate(layout.tensors) if t.storage == storage]
    return [
        Cell(storage, cell, {k: t.readers_at(layout.element_at(cell, k)) for k, t in who})
        for cell in window(layout, storage)
    ]


def all_shown(layout: StorageLayout) -> list[list[Cell]]:
    """For each storage, the cells that are shown."""
    return [shown_cells(layout, storage) for storage in range(len(layout.storages))]


def is_shared(readers: Readers) -> bool:
    """Whether several indices of a tensor read the same element; True if they were not counted."""
    return readers.number is None or readers.number > 1


def index_word(index: Index) -> str:
    """An index as ``1,0``. A tensor without dimensions has the index ``()``."""
    return ",".join(map(str, index)) or "()"


def readers_word(readers: Readers) -> str:
    """The indices that read a cell. Empty for a hole."""
    words = [index_word(index) for index in readers.indices]
    if readers.number is None:
        words.append("and more")
    elif readers.number > len(readers.indices):
        words.append(f"+{readers.number - len(readers.indices):,}")
    return " ".join(words)


def describe(layout: StorageLayout, number: int) -> str:
    """A line on one tensor: what it is, where its elements lie, and what is special about it."""
    tensor = layout.tensors[number]
    order = " and ".join(tensor.formats) if tensor.formats else "not contiguous"
    head = (
        f"{short_name(tensor.name)}: {tensor.dtype} {shape_words(tensor.shape)}, strides "
        f"{shape_words(tensor.stride)}, offset {tensor.storage_offset}, {order}"
    )
    if tensor.begins:
        head += f", in a storage of its own that begins at cell {layout.cells_at(0, number).start}"
    return "; ".join([head, *_span_words(tensor), *_memory_words(tensor)])


def _span_words(tensor: TensorLayout) -> list[str]:
    """How many elements a tensor spans, if there are holes or overlaps among them."""
    if tensor.span is None:
        return ["it has no elements"]
    elements = count(tensor.span[1] - tensor.span[0] + 1, "element")
    if tensor.distinct is None:
        return [f"it spans {elements}"]
    said = [count(tensor.holes, "hole")] * bool(tensor.holes)
    said += [f"{tensor.numel - tensor.distinct:,} read again"] * bool(tensor.overlaps)
    return [f"it spans {elements}, {', '.join(said)}"] if said else []


def _memory_words(tensor: TensorLayout) -> list[str]:
    """What shape and strides don't tell: conjugation, too short a storage, hidden values."""
    said = [f"it reads every element {tensor.reads}"] * bool(tensor.reads)
    if tensor.span and tensor.span[1] >= tensor.held:
        said.append(
            f"it reaches element {tensor.span[1]:,}, and its storage ends after "
            f"{count(tensor.held, 'element')}"
        )
    if not tensor.has_values:
        said.append(f"values of {tensor.dtype} can't be shown")
    return said


def caption(layout: StorageLayout) -> str:
    """The reader's note, and the tensor, or how many tensors lie in how many storages."""
    said = f"{layout.note} " * bool(layout.note)
    tensors, storages = len(layout.tensors), len(layout.storages)
    cells = " and ".join(count(storage.cells, "cell") for storage in layout.storages)
    if tensors == 1:
        return f"{said}{describe(layout, 0)}. The storage has {cells}."
    how = "one storage" if storages == 1 else f"{storages} storages"
    return f"{said}{tensors} tensors over {how} of {cells}."


def text(layout: StorageLayout, shown: list[list[Cell]]) -> str:
    """A line per tensor, then a table per storage with a row per cell and a column per tensor."""
    lines = [layout.note] * bool(layout.note)
    lines += [describe(layout, number) for number in range(len(layout.tensors))]
    for number, cells in enumerate(shown):
        storage = layout.storages[number]
        unit = count(storage.cell, "byte")
        total = count(storage.cells, "cell")
        lines.append(f"storage {number}: {total} of {unit}{cut(layout, number)}")
        rows = _rows(layout, number, cells)
        lines.append(indent(text_table(rows, range(len(rows[0]))), 2))
    return "\n".join(lines)


def cut(layout: StorageLayout, storage: int) -> str:
    """Which cells are shown. Empty if all are."""
    cells, total = window(layout, storage), layout.storages[storage].cells
    return "" if len(cells) == total else f", {cells.start} to {cells.stop - 1} shown"


def _rows(layout: StorageLayout, storage: int, cells: list[Cell]) -> list[list[str]]:
    who = [k for k, tensor in enumerate(layout.tensors) if tensor.storage == storage]
    values = _values(layout, storage, cells)
    several = len({layout.tensors[k].dtype for k in who}) > 1
    heads = [f"value as {dtype}" if several else "value" for dtype in values]
    rows = [["cell", *heads, *(short_name(layout.tensors[k].name) for k in who)]]
    for cell in cells:
        held = (column.get(cell.number, "-") for column in values.values())
        reads = (readers_word(cell.readers[k]) or "-" for k in who)
        rows.append([str(cell.number), *held, *reads])
    return rows


def _values(layout: StorageLayout, storage: int, cells: list[Cell]) -> dict[str, dict[int, str]]:
    """The values of cells, by dtype, since the same bytes are another number in another dtype.

    Known are those that were copied from a tensor whose elements are as large as a cell.
    """
    found: dict[str, dict[int, str]] = {}
    for cell in cells:
        for number, readers in cell.readers.items():
            tensor = layout.tensors[number]
            values = [tensor.values[index] for index in readers.indices if index in tensor.values]
            if values and tensor.itemsize == layout.storages[storage].cell:
                found.setdefault(tensor.dtype, {}).setdefault(cell.number, values[0])
    return found

"""Where the elements of tensors lie: which cell of which storage each index reads.

Knows shapes, strides and offsets, and a few values that were copied; keeps no tensor. Reads nothing
of the graph. The memory of a tensor is read in ``storage_layout_tensors``, and who reads a cell is
worked out in ``storage_layout_readers``. The address formula is that of ``TensorImpl``
(c10/core/TensorImpl.h): element ``(i, j, …)`` lies ``storage_offset + i * stride[0] + j * stride[1]
+ …`` elements from the start of the storage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import torch

from ..result import Result
from ..saving.names import Names
from . import tensors as memory
from .readers import (
    Index,
    Readers,
    all_readers_at,
    as_index,
    distinct,
    integer,
    reach,
    readers_at,
    refuse_outside,
)

if TYPE_CHECKING:
    from ..view.figure import Figure

FORMATS = (
    ("contiguous", torch.contiguous_format, None),
    ("channels_last", torch.channels_last, 4),
)


@dataclass(frozen=True)
class TensorLayout:
    """One tensor over its storage. Counts are in elements of its own dtype.

    Attributes:
        name: the reader's name for it, else ``tensor 0``, ``tensor 1``, …
        shape, stride, storage_offset: as PyTorch gives them.
        dtype: such as ``float32``.
        itemsize: bytes of one element.
        storage: which of :attr:`StorageLayout.storages` it reads.
        begins: bytes from there to the start of its own storage: more than 0 where NumPy or DLPack
            made it one that begins in the middle.
        held: elements that its own storage has room for: fewer than it reads after a ``resize_``.
        formats: the memory formats in which it is contiguous; several where a dimension has size 1.
        distinct: how many elements of the storage it reads; None where overlap is too large to
            count.
        has_values: whether PyTorch can tell the value of one element; not of ``uint4``, for one.
        reads: ``"conjugated"``, ``"negated"``, both, or nothing: what it does with what it reads.
        values: by index, what lies in memory there, as text; empty for a large tensor.
    """

    name: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    storage_offset: int
    dtype: str
    itemsize: int
    storage: int
    begins: int
    held: int
    formats: tuple[str, ...]
    distinct: int | None
    has_values: bool
    reads: str
    values: dict[Index, str]

    @property
    def numel(self) -> int:
        """How many indices there are."""
        return prod(self.shape)

    @property
    def contiguous(self) -> bool:
        """Whether the elements lie in the order of their indices, without a gap."""
        return "contiguous" in self.formats

    @property
    def span(self) -> tuple[int, int] | None:
        """The first and the last element of the storage that it reads; None if it has none."""
        if not self.numel:
            return None
        return self.storage_offset, self.storage_offset + reach(self.shape, self.stride)

    @property
    def overlaps(self) -> bool | None:
        """Whether two indices read the same element; None where that is not known."""
        return None if self.distinct is None else self.distinct < self.numel

    @property
    def holes(self) -> int | None:
        """Elements between its first and its last that no index of it reads."""
        if self.span is None:
            return 0
        return None if self.distinct is None else self.span[1] - self.span[0] + 1 - self.distinct

    def offset_of(self, index: Sequence[int] | int) -> int:
        """Elements from the start of its own storage to its element at ``index``.

        Negative indices count from the end, as in PyTorch.

        Raises:
            TypeError: it is no integer and no sequence of integers.
            IndexError: the index has another length than the shape, or is out of range.
        """
        index = as_index(index)
        if len(index) != len(self.shape):
            raise IndexError(f"{self.name} has {len(self.shape)} dimensions, not {len(index)}")
        offset = self.storage_offset
        for i, n, s in zip(index, self.shape, self.stride, strict=True):
            if not -n <= i < n:
                raise IndexError(f"index {index} is out of range for shape {self.shape}")
            offset += (i % n) * s
        return offset

    def readers_at(self, offset: int) -> Readers:
        """Which of its indices read the element at ``offset``; none beyond the storage's end."""
        if not 0 <= offset < self.held:
            return Readers((), 0)
        return readers_at(self.shape, self.stride, offset - self.storage_offset)

    def indices(self) -> Iterator[Index]:
        """Every index, the last dimension fastest."""
        return product(*map(range, self.shape))


@dataclass(frozen=True)
class StorageInfo:
    """One storage, or several over one memory.

    Attributes:
        nbytes: its size in bytes.
        cell: bytes of one cell: the smallest element of the tensors that read it, or less where
            they begin in the middle of it.
    """

    nbytes: int
    cell: int

    @property
    def cells(self) -> int:
        """Its size in cells."""
        return self.nbytes // self.cell


@dataclass(frozen=True)
class LayoutDrawing:
    """How a layout is drawn; no part of what is known.

    Attributes:
        start: the cell of the first storage at which its picture begins, or None for the first one
            that is read.
    """

    start: int | None = None


@dataclass(frozen=True, repr=False)
class StorageLayout(Result):
    """Tensors and the storages that they read.

    Attributes:
        tensors: in the order given.
        storages: in the order in which the tensors first read them.
        note: what the reader says about it.
        drawing: how it is drawn.
    """

    tensors: tuple[TensorLayout, ...]
    storages: tuple[StorageInfo, ...]
    note: str = ""
    drawing: LayoutDrawing = field(default=LayoutDrawing(), compare=False)

    def offset_of(self, index: Sequence[int] | int, tensor: int = 0) -> int:
        """Elements from the start of a tensor's own storage to its element at ``index``.

        Raises:
            TypeError: an index is no integer and no sequence of integers.
            IndexError: there is no such tensor, or no such index.
        """
        return self._tensor(tensor).offset_of(index)

    def cells_of(self, index: Sequence[int] | int, tensor: int = 0) -> range:
        """The cells of the storage that an element covers: one, or more of a wider dtype."""
        return self.cells_at(self.offset_of(index, tensor), tensor)

    def cells_at(self, offset: int, tensor: int = 0) -> range:
        """The cells that the element at ``offset`` in a tensor's own storage covers."""
        reader = self._tensor(tensor)
        cell = self.storages[reader.storage].cell
        first = (reader.begins + offset * reader.itemsize) // cell
        return range(first, first + reader.itemsize // cell)

    def element_at(self, cell: int, tensor: int) -> int:
        """The element of a tensor's own storage that covers a cell; negative before its start."""
        reader = self._tensor(tensor)
        return (cell * self.storages[reader.storage].cell - reader.begins) // reader.itemsize

    def readers(self, cell: int, storage: int = 0) -> list[tuple[int, Index]]:
        """Which index of which tensor reads a cell; an empty list is a hole.

        Raises:
            TypeError: ``cell`` or ``storage`` is no integer.
            IndexError: there is no such storage, or no such cell in it.
        """
        cell, storage = integer("cell", cell), integer("storage", storage)
        refuse_outside("storages", storage, len(self.storages))
        refuse_outside(f"cells in storage {storage}", cell, self.storages[storage].cells)
        found = []
        for number, tensor in enumerate(self.tensors):
            at = self.element_at(cell, number)
            if tensor.storage == storage and 0 <= at < tensor.held:
                address = at - tensor.storage_offset
                indices = all_readers_at(tensor.shape, tensor.stride, address)
                found += [(number, index) for index in indices]
        return found

    def shares(self, a: int, b: int) -> bool:
        """Whether two tensors read the same storage (not: whether they read a common cell)."""
        return self._tensor(a).storage == self._tensor(b).storage

    def _tensor(self, number: int) -> TensorLayout:
        refuse_outside("tensors", integer("tensor", number), len(self.tensors))
        return self.tensors[number]

    def figure(self) -> Figure:
        """Return the picture of the storages."""
        from ..view.draw_storage_layout import figure

        return figure(self)


def storage_layout(
    tensor: torch.Tensor,
    *more: torch.Tensor,
    names: Any = None,
    start: int | None = None,
    note: str = "",
) -> StorageLayout:
    """Return how tensors of up to four dimensions lie in memory.

    Sizes are in elements, unless they are called bytes. Rests on ``c10/core/TensorImpl.h`` (sizes,
    strides, storage offset) and ``c10/core/MemoryFormat.h`` (memory formats).

    Args:
        tensor, more: strided tensors. What they share is seen from the addresses of their storages.
        names: a mapping name → tensor or a Module, as for :func:`autograd_lens.graph`.
        start: the cell of the first storage at which its picture begins, where that shows a part.
        note: a sentence of yours on what is seen here; in a film, on what just happened.

    Raises:
        TypeError: an argument is no tensor, or one that has no strides or no memory of its own
            (sparse, nested, meta, inside a transform, a subclass); the message says which, why, and
            what to pass. Or ``start`` is no integer, or ``note`` no text.
        ValueError: a tensor has more than four dimensions or its storage was freed, or ``start``
            lies outside the storage.
    """
    tensors = (tensor, *more)
    for number, one in enumerate(tensors):
        memory.refuse(one, number)
    if not isinstance(note, str):
        raise TypeError(f"note must be a text, not {note!r:.40}")
    known = Names(names)
    places = memory.memories(tensors)
    begins = [memory.begins_at(one, at[1]) for one, at in zip(tensors, places, strict=True)]
    storages = []
    for number in range(len(set(places))):
        over = [k for k, place in enumerate(places) if place[0] == number]
        cell = memory.cell_bytes([tensors[k] for k in over], [begins[k] for k in over])
        _, first, end = places[over[0]]
        storages.append(StorageInfo(end - first, cell))
    layouts = tuple(
        _layout(one, known.of(one) or f"tensor {number}", places[number][0], begins[number])
        for number, one in enumerate(tensors)
    )
    drawing = LayoutDrawing(_start(start, storages[0].cells))
    return StorageLayout(layouts, tuple(storages), note, drawing)


def _start(start: Any, cells: int) -> int | None:
    if start is None:
        return None
    start = integer("start", start)
    if not 0 <= start < max(cells, 1):
        raise ValueError(f"start must be a cell from 0 to {cells - 1}, not {start}")
    return start


def _layout(tensor: torch.Tensor, name: str, storage: int, begins: int) -> TensorLayout:
    shape, stride = tuple(tensor.shape), tuple(tensor.stride())
    return TensorLayout(
        name=name,
        shape=shape,
        stride=stride,
        storage_offset=tensor.storage_offset(),
        dtype=str(tensor.dtype).removeprefix("torch."),
        itemsize=tensor.element_size(),
        storage=storage,
        begins=begins,
        held=memory.held(tensor),
        formats=tuple(
            word
            for word, form, dim in FORMATS
            if dim in (None, tensor.dim()) and tensor.is_contiguous(memory_format=form)
        ),
        distinct=distinct(shape, stride),
        has_values=memory.has_values(tensor),
        reads=memory.reads(tensor),
        values=memory.values(tensor),
    )

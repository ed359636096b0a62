"""Where the elements of tensors lie: which cell of which storage each index reads.

Knows shapes, strides and offsets, and copies a few values to show; keeps no tensor. Reads nothing
of the graph. The address formula is that of ``TensorImpl`` (c10/core/TensorImpl.h): element
``(i, j, …)`` lies ``storage_offset + i * stride[0] + j * stride[1] + …`` elements from the start of
the storage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import torch

from . import _torch
from .result import Result
from .saving.names import Names
from .saving.storages import storages_of

if TYPE_CHECKING:
    from .view.figure import Figure

Index = tuple[int, ...]

MOST_DIMENSIONS = 4
"""Dimensions of a tensor that can be laid out: four are a grid of grids."""

COUNTED = 1 << 22
"""Elements up to which overlapping indices are counted one by one."""

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
        formats: the memory formats in which it is contiguous; several where a dimension has size 1.
        distinct: how many elements of the storage it reads; None where overlap is too large to
            count.
        values: by index, the values of a small tensor as text; empty for a large one.
    """

    name: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    storage_offset: int
    dtype: str
    itemsize: int
    storage: int
    formats: tuple[str, ...]
    distinct: int | None
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
        reach = sum((n - 1) * s for n, s in zip(self.shape, self.stride, strict=True))
        return self.storage_offset, self.storage_offset + reach

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

    def offset_of(self, index: Sequence[int]) -> int:
        """Elements from the start of the storage to the element at ``index``.

        Negative indices count from the end, as in PyTorch.

        Raises:
            IndexError: the index has another length than the shape, or is out of range.
        """
        if len(index) != len(self.shape):
            raise IndexError(f"{self.name} has {len(self.shape)} dimensions, not {len(index)}")
        offset = self.storage_offset
        for i, n, s in zip(index, self.shape, self.stride, strict=True):
            if not -n <= i < n:
                raise IndexError(f"index {tuple(index)} is out of range for shape {self.shape}")
            offset += (i % n) * s
        return offset

    def indices(self) -> Iterator[Index]:
        """Every index, the last dimension fastest."""
        return product(*map(range, self.shape))


@dataclass(frozen=True)
class StorageInfo:
    """One storage.

    Attributes:
        nbytes: its size in bytes.
        cell: bytes of one cell: the smallest element of the tensors that read it.
    """

    nbytes: int
    cell: int

    @property
    def cells(self) -> int:
        """Its size in cells."""
        return self.nbytes // self.cell


@dataclass(frozen=True, repr=False)
class StorageLayout(Result):
    """Tensors and the storages that they read.

    Attributes:
        tensors: in the order given.
        storages: in the order in which the tensors first read them.
        start: the cell at which the picture begins, or None for the first one that is read.
        note: what the reader says about it.
    """

    tensors: tuple[TensorLayout, ...]
    storages: tuple[StorageInfo, ...]
    start: int | None = None
    note: str = ""

    def offset_of(self, index: Sequence[int] | int, tensor: int = 0) -> int:
        """Elements from the start of the storage to ``index`` of a tensor.

        Raises:
            IndexError: there is no such tensor, or no such index.
        """
        if not 0 <= tensor < len(self.tensors):
            raise IndexError(f"there are {len(self.tensors)} tensors; {tensor} is not among them")
        return self.tensors[tensor].offset_of((index,) if isinstance(index, int) else index)

    def cells_of(self, index: Sequence[int] | int, tensor: int = 0) -> range:
        """The cells of the storage that an element covers: one, or more of a wider dtype."""
        wide = self.tensors[tensor].itemsize // self.storages[self.tensors[tensor].storage].cell
        first = self.offset_of(index, tensor) * wide
        return range(first, first + wide)

    def readers(self, cell: int, storage: int = 0) -> list[tuple[int, Index]]:
        """Which index of which tensor reads a cell; an empty list is a hole.

        Looks at every index: for tensors that fit into a picture.
        """
        return [
            (number, index)
            for number, tensor in enumerate(self.tensors)
            if tensor.storage == storage
            for index in tensor.indices()
            if cell in self.cells_of(index, number)
        ]

    def shares(self, a: int, b: int) -> bool:
        """Whether two tensors read the same storage (not: whether they read a common cell)."""
        return self.tensors[a].storage == self.tensors[b].storage

    def figure(self) -> Figure:
        """Return the picture of the storages."""
        from .view.draw_storage_layout import figure

        return figure(self)


def storage_layout(
    tensor: torch.Tensor,
    *more: torch.Tensor,
    names: Any = None,
    start: int | None = None,
    note: str = "",
) -> StorageLayout:
    """Return how tensors of up to four dimensions lie in memory.

    Args:
        tensor, more: strided tensors. What they share is seen from their storages.
        names: a mapping name → tensor or a Module, as for :func:`autograd_lens.graph`.
        start: in a large storage, the cell at which the picture begins.
        note: a sentence of yours on what is seen here; in a film, on what just happened.

    Raises:
        TypeError: an argument is no tensor, or one that has no strides (sparse, nested, meta, or
            another backend without a storage that can be read); the message says which and why.
        ValueError: a tensor has more than four dimensions, or ``start`` lies outside the storage.
    """
    tensors = (tensor, *more)
    for number, one in enumerate(tensors):
        _refuse(one, number)
    known = Names(names)
    numbers: dict[int, int] = {}
    storage_of = [numbers.setdefault(_place(one), len(numbers)) for one in tensors]
    storages = []
    for number in range(len(numbers)):
        over = [one for one, s in zip(tensors, storage_of, strict=True) if s == number]
        nbytes = max(one.untyped_storage().nbytes() for one in over)
        storages.append(StorageInfo(nbytes, cell=min(one.element_size() for one in over)))
    if start is not None and not 0 <= start < max(storages[0].cells, 1):
        raise ValueError(f"start must be a cell from 0 to {storages[0].cells - 1}, not {start}")
    layouts = tuple(
        _layout(one, known.of(one) or f"tensor {number}", storage)
        for number, (one, storage) in enumerate(zip(tensors, storage_of, strict=True))
    )
    return StorageLayout(layouts, tuple(storages), start, note)


def _place(tensor: torch.Tensor) -> int:
    """Where the storage begins: the same for two storage objects over one memory, as with NumPy."""
    storage = tensor.untyped_storage()
    return storage.data_ptr() or -_torch.storage_key(storage)


def _refuse(tensor: Any, number: int) -> None:
    """Raise for what has no layout of cells, saying why."""
    which = f"argument {number}"
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{which} must be a tensor, not {type(tensor).__name__}")
    if tensor.is_nested:
        raise TypeError(
            f"{which} is a nested tensor: its rows have lengths of their own, so no stride leads "
            "from one to the next. Look at its parts: tensor.unbind()"
        )
    if tensor.layout != torch.strided:
        raise TypeError(
            f"{which} has layout {tensor.layout}: it stores indices and values apart and has no "
            "strides. Look at its parts, such as tensor.values(), or at tensor.to_dense()"
        )
    if tensor.is_meta:
        raise TypeError(
            f"{which} is a meta tensor: it has shape {tuple(tensor.shape)} and strides "
            f"{tuple(tensor.stride())}, and no memory behind them"
        )
    if len(storages_of(tensor)) != 1 or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        raise TypeError(
            f"{which} is a {type(tensor).__name__}, whose memory is not one storage of its own"
        )
    if tensor.dim() > MOST_DIMENSIONS:
        raise ValueError(
            f"{which} has {tensor.dim()} dimensions, and a picture shows {MOST_DIMENSIONS}: "
            "select() or flatten() some"
        )


def _layout(tensor: torch.Tensor, name: str, storage: int) -> TensorLayout:
    shape, stride = tuple(tensor.shape), tuple(tensor.stride())
    return TensorLayout(
        name=name,
        shape=shape,
        stride=stride,
        storage_offset=tensor.storage_offset(),
        dtype=str(tensor.dtype).removeprefix("torch."),
        itemsize=tensor.element_size(),
        storage=storage,
        formats=tuple(
            word
            for word, form, dim in FORMATS
            if dim in (None, tensor.dim()) and tensor.is_contiguous(memory_format=form)
        ),
        distinct=_distinct(shape, stride),
        values=_values(tensor),
    )


def _distinct(shape: tuple[int, ...], stride: tuple[int, ...]) -> int | None:
    """How many different elements the indices read.

    Dimensions with stride 0 add none. If, from the smallest stride up, each stride reaches over all
    that the smaller ones cover, no two indices meet; otherwise they are counted.
    """
    if not prod(shape):
        return 0
    steps = sorted((s, n) for n, s in zip(shape, stride, strict=True) if n > 1 and s)
    covered = 1
    for step, size in steps:
        if step < covered:
            break
        covered = step * (size - 1) + covered
    else:
        return prod(size for _, size in steps)
    if prod(size for _, size in steps) > COUNTED:
        return None
    places = torch.zeros(1, dtype=torch.int64, device="cpu")
    for step, size in steps:
        places = (places[:, None] + torch.arange(size, device="cpu") * step).flatten().unique()
    return len(places)


SHOWN = 256
"""Elements up to which a tensor's values are copied."""


def _values(tensor: torch.Tensor) -> dict[Index, str]:
    if tensor.numel() > SHOWN:
        return {}
    flat = tensor.detach().resolve_conj().resolve_neg().cpu().flatten().tolist()
    indices = product(*map(range, tensor.shape))
    return {index: _word(value) for index, value in zip(indices, flat, strict=True)}


def _word(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, (float, complex)) else str(value)

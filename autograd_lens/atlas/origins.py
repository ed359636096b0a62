"""Where a saved tensor comes from, and whether it is an index.

A saved tensor is compared with what went in and what came out by storage, and then by shape,
strides and offset: the same storage read in another way is a view. What is in neither was made in
between.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import torch

from .. import _torch
from ..saving.names import Names
from ..saving.storages import storages_of


@dataclass(frozen=True)
class Known:
    """A tensor that was there before the call, or that the call returned.

    Attributes:
        kind: ``"input"``, ``"parameter"``, ``"buffer"`` or ``"output"``.
        name: its number among those of its kind, or its name in the module.
        tensor: the tensor itself: not to be held on to.
    """

    kind: str
    name: str
    tensor: torch.Tensor


def numbered(kind: str, tensors: Iterable[torch.Tensor]) -> list[Known]:
    """The tensors of one kind, named by their numbers."""
    return [Known(kind, str(number), tensor) for number, tensor in enumerate(tensors)]


def of_module(module: torch.nn.Module | None) -> list[Known]:
    """The parameters and buffers of a module, each once; none without a module."""
    names = Names(module)
    single = {id(tensor): tensor for _, tensor in names.pairs}.values()
    return [
        Known("buffer" if id(one) in names.buffers else "parameter", names.of(one), one)
        for one in single
    ]


def origin(tensor: torch.Tensor, known: list[Known]) -> tuple[str, str]:
    """The kind of a saved tensor, and in words which tensor it is or of which it is a view."""
    for matches, prefix in ((is_same, ""), (shares_memory, "view of ")):
        for one in known:
            if matches(tensor, one.tensor):
                return one.kind, f"{prefix}{one.kind} {one.name}"
    return "intermediate", "intermediate"


def shares_memory(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors have a storage in common that is not empty."""
    return not _keys(tensor).isdisjoint(_keys(other))


def is_same(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors read the same storage in the same way."""
    if tensor.layout != other.layout or tensor.shape != other.shape:
        return False
    if not shares_memory(tensor, other):
        return False
    if tensor.layout != torch.strided or tensor.is_nested:
        return True
    return (tensor.dtype, tensor.stride(), tensor.storage_offset()) == (
        other.dtype,
        other.stride(),
        other.storage_offset(),
    )


def _keys(tensor: torch.Tensor) -> set[int]:
    return {_torch.storage_key(storage) for storage in storages_of(tensor) if storage.nbytes()}


INDEX_DTYPES = (torch.int64, torch.int32)
"""The types in which PyTorch's operations take and return indices."""

_INDEX = re.compile(
    r"\w+\.(index|indices|pivots|offsets)(\[\d+\])?"
    r"|(NllLoss|NllLoss2D|MultiMarginLoss|MultilabelMarginLoss|CtcLoss|CudnnCtcLoss)Backward\d"
    r"\.targets?"
    r"|(AdaptiveMaxPool[23]D|FractionalMaxPool[23]D|MaxPool[23]DWithIndices|SparseMmReduceImpl)"
    r"Backward\d\.result1"
    r"|EmbeddingBagBackward\d\.result[13]"
)
"""Nodes and their places that hold positions: of elements, rows, classes or segments.

The names are those of ``derivatives.yaml``. It calls a result that has no name in
``native_functions.yaml`` ``result1``; of ``embedding_bag`` these are the bag of each index and the
index of each maximum."""


def is_index(node: str, place: str, dtype: torch.dtype) -> bool:
    """Whether what ``node`` keeps in ``place`` chooses elements.

    Other integers are numbers to calculate with (a count, an exponent) or the state of a random
    number generator. Of a tensor that a Python ``Function`` saved this can't be told: False.
    """
    return dtype in INDEX_DTYPES and _INDEX.fullmatch(f"{node}.{place}") is not None

"""What a node saved, as data: numbers and names, no tensor.

How it is read without touching it stands in :mod:`autograd_lens.raw`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .raw import Row, rows, saves
from .storages import Storages


@dataclass(frozen=True, slots=True)
class Saved:
    """One tensor that a node keeps for its backward, or the empty place where it was.

    Attributes:
        field: name in the node, as in ``_saved_self``: ``"self"``; entries of a list are
            ``"tensors[0]"``; an attribute set on ``ctx`` is ``"ctx.name"``.
        shape, dtype, device: of the tensor; None when there is none, or a hook packed it.
        bytes: what its elements occupy (elements times item size; all components if sparse).
        storages: numbers of the storages behind it, counted from 0 in the order of the graph;
            equal numbers mean shared memory. If a hook packed it, those of all tensors that the
            packed object and the unpack hook keep alive (a checkpoint: its inputs).
        storage_bytes: size of those storages in bytes: what is really kept alive.
        version: value of the version counter now, or None where there is none.
        saved_version: its value when the tensor was saved. If the two differ, this node raises
            when it runs. None when it can't be told (packed by a hook, put on ``ctx``, or one of
            several in a list: a result, and on torch 2.11 any that was changed).
        freed: a backward has let it go.
        packed: a saved-tensor hook put something else in its place; ``kind`` says what.
        kind: the type of what is kept: ``"Tensor"``, or what the pack hook returned.
    """

    field: str
    shape: tuple[int, ...] | None = None
    dtype: torch.dtype | None = None
    device: str | None = None
    bytes: int = 0
    storages: tuple[int, ...] = ()
    storage_bytes: int = 0
    version: int | None = None
    saved_version: int | None = None
    freed: bool = False
    packed: bool = False
    kind: str = ""

    @property
    def stale(self) -> bool:
        """True when the tensor was changed in place after it was saved."""
        return self.saved_version is not None and self.saved_version != self.version

    @property
    def empty(self) -> bool:
        """True when nothing is kept here: it was freed, or never needed."""
        return not self.kind


def read_saved(node: Any, storages: Storages) -> tuple[Saved, ...]:
    """Return what ``node`` saved, one entry per place, in the order of its fields."""
    if not saves(type(node)):
        return ()
    return tuple([saved_from(row, storages.sizes) for row in rows(node, storages)])


def saved_from(row: Row, sizes: Sequence[int]) -> Saved:
    """The :class:`Saved` of a row; ``sizes`` are those of the storages by number."""
    place, shape, dtype, device, size, numbers, *rest = row
    return Saved(
        place,
        None if shape is None else tuple(shape),
        dtype,
        None if device is None else str(device),
        size,
        numbers,
        sum([sizes[number] for number in numbers]),
        *rest,
    )

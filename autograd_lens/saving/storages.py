"""Which memory a tensor lives in, and how much of it there is.

Each storage gets a number. Equal numbers mean shared memory, and no tensor is kept for that.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from .. import _torch
from .reachable import array_root, is_array


class Storages:
    """Numbers storages in the order in which they are met; valid while their owners live."""

    def __init__(self) -> None:
        self.keys: list[Any] = []
        "The identity of each storage, by number."
        self.sizes: list[int] = []
        "Bytes of each storage, by number."
        self._numbers: dict[Any, int] = {}

    def of(self, one: Any) -> tuple[int, ...]:
        """The numbers of the storages behind a tensor (several for a sparse one) or an array."""
        numbers: dict[int, None] = {}
        for key, size in memory_of(one):
            number = self._numbers.get(key)
            if number is None:
                number = self._numbers[key] = len(self.keys)
                self.keys.append(key)
                self.sizes.append(size)
            numbers[number] = None
        return tuple(numbers)

    def of_all(self, several: Iterable[Any]) -> tuple[int, ...]:
        """The numbers of the storages behind all of them, each once."""
        return tuple(dict.fromkeys(number for one in several for number in self.of(one)))


def memory_of(one: Any) -> list[tuple[Any, int]]:
    """Identity and bytes of each piece of memory behind a tensor, a storage, an array or bytes."""
    if isinstance(one, torch.Tensor):
        return [(_torch.storage_key(each), each.nbytes()) for each in storages_of(one)]
    if isinstance(one, torch.UntypedStorage):
        return [(_torch.storage_key(one), one.nbytes())]
    if is_array(one):
        one = array_root(one)
        return [(("array", id(one)), one.nbytes)]
    return [(("bytes", id(one)), len(one))]


def storages_of(tensor: torch.Tensor) -> list[torch.UntypedStorage]:
    """Return every storage behind ``tensor``: one if strided, those of its parts otherwise.

    An empty list means that it can't be seen (an opaque backend), or is not there yet (a parameter
    of a lazy module).
    """
    parts = _torch.inner_tensors(tensor)
    if parts:
        return [storage for part in parts for storage in storages_of(part)]
    try:
        return [tensor.untyped_storage()]
    except (RuntimeError, NotImplementedError, ValueError):
        return []


def element_bytes(one: Any) -> int:
    """Bytes of the elements of a tensor (of all its parts if it is made of several) or an array."""
    if not isinstance(one, torch.Tensor):
        return one.nbytes if is_array(one) else memory_of(one)[0][1]
    parts = _torch.inner_tensors(one)
    if parts:
        return sum(map(element_bytes, parts))
    try:
        return int(one.numel()) * one.element_size()
    except RuntimeError:
        return 0


def shape_of(tensor: torch.Tensor) -> tuple[int | str, ...]:
    """The shape as plain numbers; a size that is not a number (``j1``) as text."""
    try:
        return tuple(int(s) if isinstance(s, int) else str(s) for s in tensor.shape)
    except RuntimeError:  # a strided nested tensor has no shape
        return ("?",) * tensor.dim()

"""Which memory a tensor lives in, and how much of it there is.

Numbers storages, so that who shares memory can be told without keeping any of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from . import _torch
from .kept import tensors_kept
from .record_saved import Recorded


@dataclass
class Storages:
    """Numbers storages in the order in which they are met; valid while their owners live.

    ``further`` collects the nodes that a kept tensor leads to: it keeps its own graph alive too.
    ``recorded`` collects what a recorder put in the place of tensors.
    """

    numbers: dict[int, int] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)
    hooks: dict[int, tuple[int, ...]] = field(default_factory=dict)
    further: list[Any] = field(default_factory=list)
    recorded: set[Recorded] = field(default_factory=set)

    def of(self, tensor: torch.Tensor) -> tuple[int, ...]:
        """Return the numbers of the storages behind ``tensor`` (several for a sparse one)."""
        return tuple(dict.fromkeys(map(self.number, storages_of(tensor))))

    def met(self, tensor: torch.Tensor) -> list[int]:
        """The numbers of those storages behind ``tensor`` that have one."""
        keys = _torch.storage_keys(storages_of(tensor))
        return [self.numbers[key] for key in keys if key in self.numbers]

    def met_each(self, tensors: Collection[torch.Tensor]) -> list[tuple[int, int]]:
        """The same for several tensors: position of the tensor, number of a storage behind it."""
        behind = _torch.plain_storages(tensors)
        if behind is None:
            return [(k, number) for k, tensor in enumerate(tensors) for number in self.met(tensor)]
        numbers = map(self.numbers.get, _torch.storage_keys(behind))
        return [(k, number) for k, number in enumerate(numbers) if number is not None]

    def of_packed(self, packed: Any, hook: Any) -> tuple[int, ...]:
        """Those of the tensors that a packed object and its unpack hook keep alive."""
        if id(hook) not in self.hooks:  # a hook serves many tensors
            self.hooks[id(hook)] = self.of_all(tensors_kept(hook))
        return tuple(dict.fromkeys(self.of_all(tensors_kept(packed)) + self.hooks[id(hook)]))

    def of_all(self, tensors: Iterable[torch.Tensor]) -> tuple[int, ...]:
        """The numbers behind several tensors, whose graphs are followed."""
        numbers: dict[int, None] = {}
        for tensor in tensors:
            numbers |= dict.fromkeys(self.of(tensor))
            self.follow(tensor)
        return tuple(numbers)

    def follow(self, tensor: torch.Tensor) -> None:
        """Remember the graph that ``tensor`` keeps alive."""
        node = _torch.with_graph(tensor).grad_fn
        if node is not None:
            self.further.append(node)

    def number(self, storage: torch.UntypedStorage) -> int:
        """The number of a storage, a new one if it was not met."""
        return self.all([storage])[0]

    def all(self, storages: Sequence[torch.UntypedStorage]) -> list[int]:
        """The numbers of several storages."""
        numbers, sizes = self.numbers, self.sizes
        found = []
        each = zip(_torch.storage_keys(storages), map(_BYTES, storages), strict=True)
        for key, size in each:
            number = numbers.setdefault(key, len(sizes))
            if number == len(sizes):
                sizes.append(size)
            found.append(number)
        return found


_BYTES = torch.UntypedStorage.nbytes


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


def tensor_bytes(tensor: torch.Tensor) -> int:
    """Bytes of the elements of ``tensor``; of all its parts if it is made of several."""
    parts = _torch.inner_tensors(tensor)
    if parts:
        return sum(tensor_bytes(part) for part in parts)
    try:
        return int(tensor.numel()) * tensor.element_size()
    except RuntimeError:
        return 0


def shape_of(tensor: torch.Tensor) -> tuple[int | str, ...]:
    """The shape as plain numbers; a size that is not a number (``j1``) as text."""
    try:
        return tuple(int(s) if isinstance(s, int) else str(s) for s in tensor.shape)
    except RuntimeError:  # a strided nested tensor has no shape
        return ("?",) * tensor.dim()

"""Whose memory a storage is: of a parameter, a buffer, an input, or of nobody that is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .names import Names
from .record import Storage
from .storages import Storages, memory_of

Named = Sequence[tuple[str, torch.Tensor]]


class Owners:
    """Role and names by storage. The first claim to a role counts; names add up.

    A named tensor is a parameter if it is an ``nn.Parameter``, or a leaf of the graph that is no
    given input. A leaf without a name is a parameter, too, unless a Module was given. Then the leaf
    does not belong to the model, and counts as an input.
    """

    def __init__(self, known: Names, inputs: Named, leaves: Named):
        self._roles: dict[Any, str] = {}
        self._names: dict[Any, dict[str, None]] = {}
        given = {id(tensor) for _, tensor in inputs}
        trained = {id(leaf) for _, leaf in leaves} - given
        for name, tensor in known.pairs:
            role = None
            if id(tensor) in known.buffers:
                role = "buffer"
            elif id(tensor) in trained or isinstance(tensor, torch.nn.Parameter):
                role = "parameter"
            self._claim(tensor, role, name)
        for name, tensor in inputs:
            role = "parameter" if isinstance(tensor, torch.nn.Parameter) else "input"
            self._claim(tensor, role, known.of(tensor) or name)
        for label, leaf in leaves:
            own = known.module is None or isinstance(leaf, torch.nn.Parameter)
            self._claim(leaf, "parameter" if own else "input", "")
            for key in _keys(leaf):
                self._names.setdefault(key, {label: None})

    def role(self, key: Any) -> str:
        """The role of the storage with this key."""
        return self._roles.get(key, "activation")

    def names(self, key: Any) -> tuple[str, ...]:
        """The names of what lies in the storage with this key."""
        return tuple(self._names.get(key, ()))

    def of(self, storages: Storages) -> tuple[Storage, ...]:
        """The storages as data, by number."""
        sized = zip(storages.keys, storages.sizes, strict=True)
        return tuple(Storage(size, self.role(key), self.names(key)) for key, size in sized)

    def _claim(self, tensor: torch.Tensor, role: str | None, name: str) -> None:
        for key in _keys(tensor):
            if name:
                self._names.setdefault(key, {})[name] = None
            if role:
                self._roles.setdefault(key, role)


def _keys(tensor: torch.Tensor) -> list[Any]:
    return [key for key, _ in memory_of(tensor)]

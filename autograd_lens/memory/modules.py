"""The modules of a recording, and the tensors that belong to them, as they are at the moment."""

from __future__ import annotations

import weakref
from collections.abc import Iterator

import torch

from ..saving.names import held_as_attributes

Named = tuple[str, torch.Tensor]


class KnownModules:
    """Modules with the prefix of their names. Holds them weakly."""

    def __init__(self) -> None:
        self._known: list[tuple[str, weakref.ref[torch.nn.Module]]] = []

    def add(self, prefix: str, module: torch.nn.Module) -> None:
        """Remember a module. Its tensors may get new memory, so they are looked up each time."""
        self._known.append((prefix, weakref.ref(module)))

    def parameters(self) -> Iterator[Named]:
        """Every parameter, by name."""
        for prefix, module in self._alive():
            for name, tensor in module.named_parameters():
                yield prefix + name, tensor

    def buffers(self) -> Iterator[Named]:
        """Every registered buffer, by name."""
        for prefix, module in self._alive():
            for name, tensor in module.named_buffers():
                yield prefix + name, tensor

    def attributes(self) -> Iterator[Named]:
        """Every tensor that a module holds as a plain attribute, as many hold tables and masks."""
        for prefix, module in self._alive():
            for name, tensor in held_as_attributes(module):
                yield prefix + name, tensor

    def _alive(self) -> Iterator[tuple[str, torch.nn.Module]]:
        for prefix, reference in self._known:
            module = reference()
            if module is not None:
                yield prefix, module

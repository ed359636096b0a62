"""The modules of a recording, and the tensors that belong to them, as they are at the moment."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from .memory_reach import MOST

_OF_EVERY_MODULE = frozenset(vars(torch.nn.Module()))
"""Attributes that PyTorch itself gives a module; registered tensors are in them."""

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
        """Every tensor that a module holds as a plain attribute, as many hold tables and masks.

        Also in a list, tuple or dict. Not those that require grad: they belong to a graph, or are
        leaves that somebody trains.
        """
        for prefix, module in self._alive():
            for place, part in module.named_modules():
                inside = f"{prefix}{place}." if place else prefix
                for name, value in list(vars(part).items()):
                    if name not in _OF_EVERY_MODULE:
                        yield from _plain(inside + name, value)

    def _alive(self) -> Iterator[tuple[str, torch.nn.Module]]:
        for prefix, reference in self._known:
            module = reference()
            if module is not None:
                yield prefix, module


def _plain(name: str, value: Any) -> Iterator[Named]:
    if isinstance(value, torch.Tensor):
        pairs: Any = [(name, value)]
    elif isinstance(value, Mapping) and len(value) <= MOST:
        pairs = [(f"{name}[{key!r}]", one) for key, one in value.items()]
    elif isinstance(value, (list, tuple)) and len(value) <= MOST:
        pairs = [(f"{name}[{number}]", one) for number, one in enumerate(value)]
    else:
        return
    for words, one in pairs:
        if isinstance(one, torch.Tensor) and not one.requires_grad:
            yield words, one

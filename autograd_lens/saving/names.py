"""Names for tensors, as far as the reader gave any."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

from ..printable import printable

_ASK = (
    "names must be a torch.nn.Module, a mapping of name to tensor, or pairs such as "
    "model.named_parameters()"
)


class Names:
    """Looks up the name of a leaf by the tensor, and of an intermediate by its place in the graph.

    The name of a tensor with several names (tied weights) consists of all of them: ``"a = b"``.

    Attributes:
        module: the Module that was given, or None.
        pairs: ``(name, tensor)`` of every name.
        buffers: ids of the tensors that belong to the Module and are no parameters: its buffers,
            and tensors that it keeps as plain attributes (masks, tables of positions).
        intermediates: the named tensors that have a graph.
    """

    def __init__(self, names: Any = None):
        """Take a Module, a mapping name → tensor, pairs (name, tensor), or None.

        Raises:
            TypeError: ``names`` is something else, or a value in it is not a tensor.
        """
        self.module = names if isinstance(names, torch.nn.Module) else None
        buffers: list[tuple[str, torch.Tensor]] = []
        if self.module is not None:
            buffers = [*names.named_buffers(remove_duplicate=False), *held_as_attributes(names)]
            pairs = [*names.named_parameters(remove_duplicate=False), *buffers]
        else:
            pairs = list(_pairs(names))
        pairs = [(printable(name), tensor) for name, tensor in pairs]
        self.pairs = pairs  # kept, so that ids stay valid as long as this lives
        self.buffers = {id(buffer) for _, buffer in buffers}
        self._by_id: dict[int, list[str]] = {}
        self._by_edge: dict[tuple[Any, int], list[str]] = {}
        self.intermediates: list[torch.Tensor] = []
        for name, tensor in self.pairs:
            self._by_id.setdefault(id(tensor), []).append(name)
            if tensor.grad_fn is not None:
                place = (tensor.grad_fn, tensor.output_nr)
                self._by_edge.setdefault(place, []).append(name)
                self.intermediates.append(tensor)

    def of(self, tensor: torch.Tensor) -> str | None:
        """The name of this very tensor object, or None."""
        return _joined(self._by_id.get(id(tensor)))

    def all_of(self, tensor: torch.Tensor) -> list[str]:
        """Every name of this very tensor object."""
        return list(self._by_id.get(id(tensor), ()))

    def at(self, node: Any, output_nr: int) -> str | None:
        """The name of the tensor that output ``output_nr`` of ``node`` belongs to, or None."""
        return _joined(self._by_edge.get((node, output_nr))) if self._by_edge else None


_OF_EVERY_MODULE = frozenset(vars(torch.nn.Module()))
"""Attributes that PyTorch itself gives a module; registered tensors are in them."""

MOST = 1000
"""Containers with more items are not searched."""


def held_as_attributes(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Every tensor that a module holds as a plain attribute: a mask, or a table of positions.

    Lists, tuples and dicts are searched, too. Tensors that require grad are left out: they belong
    to a graph, or are leaves that somebody trains.
    """
    for path, part in module.named_modules():
        inside = f"{path}." if path else ""
        for name, value in list(vars(part).items()):
            if name not in _OF_EVERY_MODULE:
                yield from _plain(inside + name, value)


def _plain(name: str, value: Any) -> Iterator[tuple[str, torch.Tensor]]:
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


def _joined(names: list[str] | None) -> str | None:
    return " = ".join(dict.fromkeys(names)) if names else None


def _pairs(names: Any) -> Iterable[tuple[str, torch.Tensor]]:
    if names is None:
        return
    if isinstance(names, (torch.Tensor, str, bytes)) or not isinstance(names, Iterable):
        raise TypeError(f"{_ASK}, not {type(names).__name__}")
    for entry in names.items() if isinstance(names, Mapping) else names:
        if not isinstance(entry, (tuple, list)) or len(entry) != 2:
            raise TypeError(f"{_ASK}; one entry is a {type(entry).__name__}")
        name, tensor = entry
        if not isinstance(name, str):
            raise TypeError(f"{_ASK}; one name is a {type(name).__name__}")
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{_ASK}; {name!r} is a {type(tensor).__name__}")
        yield name, tensor

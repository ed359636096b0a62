"""Read what a node saved without touching it.

No unpack hook runs, nothing is recomputed, nothing raises on a freed graph or a changed tensor,
and nothing is kept: a :class:`Saved` holds numbers and names, no tensor.

Rests on ``torch/csrc/autograd/saved_variable.cpp`` (versions, hooks, release) and
``torch/csrc/autograd/python_function.cpp`` (``ctx`` of a Python ``Function``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from . import _torch


@dataclass(frozen=True, slots=True)
class Saved:
    """One tensor that a node keeps for its backward, or the empty place where it was.

    Attributes:
        field: name in the node, as in ``_saved_self``: ``"self"``; entries of a list are
            ``"tensors[0]"``; an attribute set on ``ctx`` is ``"ctx.name"``.
        shape, dtype, device: of the tensor; None when there is none, or a hook packed it.
        bytes: what its elements occupy (elements times item size; all components if sparse).
        storages: numbers of the storages behind it, counted from 0 in the order of the graph;
            equal numbers mean shared memory.
        storage_bytes: size of those storages in bytes: what is really kept alive.
        version: value of the version counter now, or None where there is none.
        saved_version: its value when the tensor was saved. If the two differ, this node raises
            when it runs. None when it can't be told (packed by a hook, put on ``ctx``, or one of
            several in a list).
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


@dataclass
class Storages:
    """Numbers storages in the order in which they are met; valid while their owners live."""

    numbers: dict[int, int] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)

    def of(self, tensor: torch.Tensor) -> tuple[int, ...]:
        """Return the numbers of the storages behind ``tensor`` (several for a sparse one)."""
        met = []
        for storage in storages_of(tensor):
            number = self.numbers.setdefault(_torch.storage_key(storage), len(self.sizes))
            if number == len(self.sizes):
                self.sizes.append(storage.nbytes())
            met.append(number)
        return tuple(met)


def storages_of(tensor: torch.Tensor) -> list[torch.UntypedStorage]:
    """Return every storage behind ``tensor``: one if strided, those of its parts otherwise.

    An empty list means that it can't be seen (an opaque backend).
    """
    parts = _torch.inner_tensors(tensor)
    if parts:
        return [storage for part in parts for storage in storages_of(part)]
    try:
        return [tensor.untyped_storage()]
    except (RuntimeError, NotImplementedError):
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


def read_saved(node: Any, storages: Storages) -> tuple[Saved, ...]:
    """Return what ``node`` saved, one entry per place, in the order of its fields."""
    entries: list[Saved] = []
    for name in _torch.raw_fields(type(node)):
        entries += _read_field(node, name, storages)
    if isinstance(node, torch.autograd.function.BackwardCFunction):
        entries += _read_ctx(node, storages)
    return tuple(entries)


def held(node: Any) -> dict[str, list[torch.UntypedStorage]]:
    """The storages that ``node`` keeps alive now, by place; only places that keep one.

    Asks for raw entries only, so it is quick and nothing raises. Let go of the result at once: it
    keeps the storages alive too.
    """
    found: dict[str, list[torch.UntypedStorage]] = {}
    for place, data in raw_entries(node):
        for tensor in _torch.tensors_in(data):
            found.setdefault(place, []).extend(storages_of(tensor))
    return found


def raw_entries(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield ``(place, what stands there)`` for what ``node`` keeps; not to be held on to."""
    kind = type(node)
    for name in _torch.raw_fields(kind):
        try:
            raw = _torch.raw_saved(node, name)
        except RuntimeError:  # a released Python Function
            continue
        if isinstance(raw, (tuple, list)):
            yield from ((f"{name}[{k}]", one.data) for k, one in enumerate(raw) if one is not None)
        elif raw is not None:
            yield name, raw.data
    if issubclass(kind, torch.autograd.function.BackwardCFunction):
        for name, value in vars(node).items():
            yield f"ctx.{name}", value


def _read_field(node: Any, name: str, storages: Storages) -> list[Saved]:
    try:
        raw = _torch.raw_saved(node, name)
    except RuntimeError:  # a Python Function refuses once released, and only then
        return [Saved(name, freed=True)]
    many = isinstance(raw, (tuple, list))
    raws = list(raw) if many else [raw]
    places = [f"{name}[{i}]" for i in range(len(raws))] if many else [name]
    if not raws:  # a list is emptied when it is freed
        return [Saved(name, freed=True)] if _refuses(node, name) else []
    versions = _saved_versions(node, name, raws)
    entries = []
    for place, one, saved_version in zip(places, raws, versions, strict=True):
        data = None if one is None else one.data
        packed = one is not None and one.unpack_hook is not None
        if data is None and not packed:
            # In a list that still has entries this one was None; asking would unpack the others.
            entries.append(Saved(place, freed=not many and _refuses(node, name)))
        elif packed:
            entries.append(_describe_packed(place, data, storages))
        else:
            entries.append(_describe(place, data, storages, saved_version))
    return entries


def _describe(
    place: str, tensor: torch.Tensor, storages: Storages, saved_version: int | None
) -> Saved:
    numbers = storages.of(tensor)
    return Saved(
        place,
        shape_of(tensor),
        tensor.dtype,
        str(tensor.device),
        tensor_bytes(tensor),
        numbers,
        sum(storages.sizes[n] for n in numbers),
        _torch.version(tensor),
        saved_version,
        kind="Tensor",
    )


def _describe_packed(place: str, packed: Any, storages: Storages) -> Saved:
    """What a pack hook left: its type, and the bytes of the tensors in it."""
    inside = _torch.tensors_in(packed)
    numbers = tuple(dict.fromkeys(n for tensor in inside for n in storages.of(tensor)))
    return Saved(
        place,
        bytes=sum(map(tensor_bytes, inside)),
        storages=numbers,
        storage_bytes=sum(storages.sizes[n] for n in numbers),
        packed=True,
        kind=type(packed).__name__,
    )


def _read_ctx(node: Any, storages: Storages) -> list[Saved]:
    """Tensors that a Python Function put on ``ctx`` itself: kept, but watched by nobody."""
    entries = []
    for name, value in vars(node).items():
        inside = _torch.tensors_in(value)
        for number, tensor in enumerate(inside):
            place = f"ctx.{name}" if isinstance(value, torch.Tensor) else f"ctx.{name}[{number}]"
            entries.append(_describe(place, tensor, storages, None))
    return entries


def _refuses(node: Any, name: str) -> bool:
    """True when the public access raises: that tells a freed place from one never filled."""
    try:
        _torch.saved_value(node, name)
    except (RuntimeError, AttributeError):
        return True
    return False


_MOVED = re.compile(r"is at version (\d+); expected version (\d+)")


def _saved_versions(node: Any, name: str, raws: list[Any]) -> list[int | None]:
    """Version of each tensor when it was saved.

    PyTorch keeps that number to itself but compares it on unpacking, so unpacking either
    confirms the current version or names the old one. With a hook in place we must not unpack,
    and PyTorch does not compare either.
    """
    unknown: list[int | None] = [None] * len(raws)
    if any(one is None or one.unpack_hook is not None for one in raws):
        return unknown
    now = [_torch.version(one.data) if one.data is not None else None for one in raws]
    if all(version is None for version in now):
        return unknown
    try:
        _torch.saved_value(node, name)
    except RuntimeError as error:
        moved = _MOVED.search(str(error))
        if moved is None:
            return unknown
        current, expected = int(moved[1]), int(moved[2])
        if now.count(current) > 1:  # the message does not say which tensor of a list it means
            return unknown
        return [expected if version == current else None for version in now]
    return now

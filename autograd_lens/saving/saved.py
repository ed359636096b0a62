"""Read what a node saved without touching it: one record for each place.

Looks at raw entries: no unpack hook runs, nothing is recomputed, nothing raises on a freed graph or
a changed tensor, and no record holds a tensor.

Rests on ``torch/csrc/autograd/saved_variable.cpp`` (versions, hooks, release) and
``torch/csrc/autograd/python_function.cpp`` (``ctx`` of a Python ``Function``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import torch

from .. import _torch
from .owners import Owners
from .reachable import memory_kept, tensors_kept
from .record import ROLES, SavedTensor
from .recorder import Recorded
from .storages import Storages, element_bytes, shape_of


class Reader:
    """Reads the nodes of one graph, and numbers their storages.

    Attributes:
        storages: those that were met.
        further: the ``grad_fn`` of every kept tensor: it keeps a graph of its own alive.
        recorded: what stood in the place of tensors because a recorder had packed them.
    """

    def __init__(self, owners: Owners):
        self.storages = Storages()
        self.further: list[Any] = []
        self.recorded: set[Recorded] = set()
        self._owners = owners
        self._hooks: dict[int, tuple[int, ...]] = {}

    def saved(self, index: int, name: str, node: Any) -> list[SavedTensor]:
        """What ``node`` saved, in the order of its fields; what is on ``ctx`` comes last.

        A place that was never filled has a record, too: it is not freed, and its kind is empty.
        """
        of_node = (index, name)
        found: list[SavedTensor] = []
        for field, raw in raw_entries(node):
            if raw is None:
                found.append(SavedTensor(*of_node, field, freed=True))
            elif type(raw) is tuple:
                found += self._list(of_node, node, field, raw)
            elif raw.data is None and raw.unpack_hook is None:
                found.append(SavedTensor(*of_node, field, freed=_refuses(node, field)))
            else:
                found.append(self._entry(of_node, node, field, raw))
        found += self._ctx(of_node, node)
        if _torch.is_python(type(node)):
            for tensor in _torch.raw_data(node):  # it may have saved what has a graph of its own
                if isinstance(tensor, torch.Tensor):
                    self._follow(tensor)
        return found

    def recorded_tensor(self, index: int, name: str, place: str, one: Recorded) -> SavedTensor:
        """The record of a tensor that a recorder packed."""
        self.recorded.add(one)
        now = _torch.version(one.tensor)
        return self._tensor((index, name), place, one.tensor, now, one.saved_version)

    def _entry(self, of_node: tuple[int, str], node: Any, field: str, raw: Any) -> SavedTensor:
        """The record of a filled place outside of a list."""
        if type(raw.data) is Recorded:
            return self.recorded_tensor(*of_node, field, raw.data)
        if raw.unpack_hook is not None:
            return self._packed(of_node, field, raw)
        now = _torch.version(raw.data)
        return self._tensor(of_node, field, raw.data, now, saved_version(node, field, now))

    def _list(
        self, of_node: tuple[int, str], node: Any, field: str, raws: tuple[Any, ...]
    ) -> Iterator[SavedTensor]:
        if not raws:  # a list is emptied when it is freed
            if _refuses(node, field):
                yield SavedTensor(*of_node, field, freed=True)
            return
        versions = _list_versions(node, field, raws)
        for number, (raw, (now, then)) in enumerate(zip(raws, versions, strict=True)):
            place = f"{field}[{number}]"
            if raw is not None and type(raw.data) is Recorded:
                yield self.recorded_tensor(*of_node, place, raw.data)
            elif raw is not None and raw.unpack_hook is not None:
                yield self._packed(of_node, place, raw)
            elif raw is None or raw.data is None:
                # The list is not freed, so this entry was None. Asking would unpack the others.
                yield SavedTensor(*of_node, place)
            else:
                yield self._tensor(of_node, place, raw.data, now, then)

    def _ctx(self, of_node: tuple[int, str], node: Any) -> Iterator[SavedTensor]:
        """What a Python Function put on ``ctx`` itself: PyTorch does not check its version."""
        for place, one in kept_on_ctx(node):
            if isinstance(one, torch.Tensor):
                self._follow(one)
                yield self._tensor(of_node, place, one, _torch.version(one), None)
            else:
                kept, kind = self._kept(self.storages.of(one)), type(one).__name__
                yield SavedTensor(
                    *of_node, place, bytes=element_bytes(one), kind=kind, packed=True, **kept
                )

    def _tensor(
        self,
        of_node: tuple[int, str],
        place: str,
        tensor: torch.Tensor,
        now: int | None,
        then: int | None,
    ) -> SavedTensor:
        return SavedTensor(
            *of_node,
            place,
            shape_of(tensor),
            tensor.dtype,
            str(tensor.device),
            element_bytes(tensor),
            version=now,
            saved_version=then,
            kind="Tensor",
            **self._kept(self.storages.of(tensor)),
        )

    def _packed(self, of_node: tuple[int, str], place: str, raw: Any) -> SavedTensor:
        """What a pack hook left: its type, and the bytes of what it holds."""
        held = memory_kept(raw.data)
        numbers = self._numbers(held) + self._numbers_of_hook(raw.unpack_hook)
        return SavedTensor(
            *of_node,
            place,
            bytes=sum(map(element_bytes, held)),
            packed=True,
            kind=type(raw.data).__name__,
            **self._kept(tuple(dict.fromkeys(numbers))),
        )

    def _numbers_of_hook(self, hook: Any) -> tuple[int, ...]:
        """The storages that an unpack hook keeps alive; it may serve many tensors."""
        if id(hook) not in self._hooks:
            self._hooks[id(hook)] = self._numbers(memory_kept(hook))
        return self._hooks[id(hook)]

    def _numbers(self, held: list[Any]) -> tuple[int, ...]:
        for one in held:
            if isinstance(one, torch.Tensor):
                self._follow(one)
        return self.storages.of_all(held)

    def _kept(self, numbers: tuple[int, ...]) -> dict[str, Any]:
        """Size, role and owner of what an entry keeps alive."""
        keys, sizes = self.storages.keys, self.storages.sizes
        owners = [keys[number] for number in numbers]
        roles = [self._owners.role(key) for key in owners] or ["activation"]
        names = (self._owners.names(key) for key in owners)
        return {
            "storages": numbers,
            "storage_bytes": sum([sizes[number] for number in numbers]),
            "role": min(roles, key=ROLES.index),
            "owner": next((" = ".join(several) for several in names if several), None),
        }

    def _follow(self, tensor: torch.Tensor) -> None:
        """Remember the graph that ``tensor`` keeps alive."""
        node = _torch.with_graph(tensor).grad_fn
        if node is not None:
            self.further.append(node)


def raw_entries(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield each field of ``node`` with its raw entry: a tuple for a list, None once released."""
    for field, read in _torch.raw_readers(type(node)):
        try:
            raw = read(node)
        except RuntimeError:  # only a list refuses, and only once it is released
            raw = None
        yield field, raw


def kept_on_ctx(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield all memory that a Python ``Function`` put on ``ctx`` itself, with its place."""
    if not _torch.is_python(type(node)):
        return
    for name, value in vars(node).items():
        for number, one in enumerate(memory_kept(value)):
            yield (f"ctx.{name}" if one is value else f"ctx.{name}[{number}]"), one


def kept_by(node: Any, met: set[int]) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield every tensor that ``node`` keeps alive, with its place; not to be held on to.

    An unpack hook may serve many nodes. What it holds, such as the inputs of a checkpoint, is
    yielded once: ``met`` takes the ids of the hooks that were looked at.
    """
    for field, raw in raw_entries(node):
        for number, one in enumerate(raw if type(raw) is tuple else (raw,)):
            if one is None:
                continue
            place = f"{field}[{number}]" if type(raw) is tuple else field
            yield from ((place, tensor) for tensor in tensors_kept(one.data))
            hook = one.unpack_hook
            if hook is not None and id(hook) not in met:
                met.add(id(hook))
                yield from ((f"{place}, by its hook", tensor) for tensor in tensors_kept(hook))
    for place, one in kept_on_ctx(node):
        if isinstance(one, torch.Tensor):
            yield place, one


def _refuses(node: Any, field: str) -> bool:
    """True when the public access raises: that tells a freed place from one never filled."""
    try:
        _torch.saved_value(node, field)
    except (RuntimeError, AttributeError):
        return True
    return False


_MISMATCH = re.compile(r"is at version (\d+); expected version (\d+)")


def saved_version(node: Any, field: str, now: int | None) -> int | None:
    """The version of a tensor when it was saved, if it stands in no list and no hook packed it.

    PyTorch keeps that number to itself but compares it on unpacking. So unpacking either confirms
    the current version or names the old one.
    """
    if not now:  # a version counter never falls
        return now
    try:
        _torch.saved_value(node, field)
    except RuntimeError as error:
        mismatch = _MISMATCH.search(str(error))
        return None if mismatch is None else int(mismatch[2])
    return now


def _list_versions(node: Any, field: str, raws: Any) -> list[tuple[int | None, int | None]]:
    """Version of each tensor of a list now and when it was saved; None where it is unknown.

    Where a hook packed a tensor we must not unpack it, and PyTorch does not compare either.
    """
    plain = [one is not None and one.unpack_hook is None for one in raws]
    tensors = [one.data if is_plain else None for one, is_plain in zip(raws, plain, strict=True)]
    now = [_torch.version(t) if isinstance(t, torch.Tensor) else None for t in tensors]
    then = [
        version if not version else _entry_version(one)
        for one, version in zip(raws, now, strict=True)
    ]
    if all(plain) and None in then and any(now):
        try:
            _torch.saved_value(node, field)
            then = now
        except RuntimeError as error:
            mismatch = _MISMATCH.search(str(error))
            current, expected = (int(mismatch[1]), int(mismatch[2])) if mismatch else (-1, -1)
            # The message is about the first changed tensor, but does not say which one that is.
            meant = [k for k, version in enumerate(now) if then[k] is None and version == current]
            if len(meant) == 1 and (current, expected) not in zip(now, then, strict=True):
                then[meant[0]] = expected
    return list(zip(now, then, strict=True))


def _entry_version(raw: Any) -> int | None:
    """The version of one tensor of a list when it was saved; None where the entry can't tell."""
    try:
        _torch.unpacked(raw)
    except RuntimeError as error:
        mismatch = _MISMATCH.search(str(error))
        return int(mismatch[2]) if mismatch else None
    return _torch.version(raw.data)

"""Read what a node keeps without touching it: one row of numbers and names for each place.

Looks at raw entries: no unpack hook runs, nothing is recomputed, nothing raises on a freed graph or
a changed tensor, and no row holds a tensor.

Rests on ``torch/csrc/autograd/saved_variable.cpp`` (versions, hooks, release) and
``torch/csrc/autograd/python_function.cpp`` (``ctx`` of a Python ``Function``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import torch

from . import _torch
from .kept import tensors_kept
from .record_saved import Recorded
from .storages import Storages, shape_of, tensor_bytes

Row = tuple[Any, ...]
"""Place, shape, dtype, device, bytes, numbers of the storages, version now, version when saved,
freed, packed, kind: what :class:`autograd_lens.saved.Saved` has, shape and device as PyTorch has
them. A tuple, since making one takes a fifth of the time."""


def saves(kind: type) -> bool:
    """False for the nodes of a class that keeps no tensor."""
    return bool(_torch.raw_fields(kind)) or _torch.is_python(kind)


def rows(node: Any, storages: Storages) -> list[Row]:
    """One row for each place of ``node``, in the order of its fields; what is on ``ctx`` last.

    A place where nothing was needed has a row too: one that is neither freed nor of any kind.
    """
    found: list[Row] = []
    for name, read in _torch.raw_readers(type(node)):
        try:
            raw = read(node)
        except RuntimeError:  # a list refuses once released, and only then
            found.append(_empty(name, True))
            continue
        if type(raw) is tuple:
            found += _list_rows(node, name, raw, storages)
            continue
        tensor = raw.data
        if type(tensor) is Recorded:
            found.append(recorded_row(name, tensor, storages))
        elif raw.unpack_hook is not None:
            found.append(_packed_row(name, tensor, raw.unpack_hook, storages))
        elif tensor is None:
            found.append(_empty(name, refuses(node, name)))
        else:
            now = _torch.version(tensor)
            found.append(_row(name, tensor, now, version_then(node, name, now), storages))
    if _torch.is_python(type(node)):
        found += _ctx_rows(node, storages)
        for tensor in _torch.raw_data(node):  # it may have saved what has a graph of its own
            if isinstance(tensor, torch.Tensor):
                storages.follow(tensor)
    return found


def kept_by(node: Any, met: set[int]) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield every tensor that ``node`` keeps alive, with its place; not to be held on to.

    What an unpack hook holds, such as the inputs of a checkpoint, is told once: ``met`` takes the
    hooks that were looked at.
    """
    for name, read in _torch.raw_readers(type(node)):
        try:
            raw = read(node)
        except RuntimeError:  # a released list
            continue
        for number, one in enumerate(raw if type(raw) is tuple else (raw,)):
            if one is None:
                continue
            place = f"{name}[{number}]" if type(raw) is tuple else name
            yield from ((place, tensor) for tensor in tensors_kept(one.data))
            hook = one.unpack_hook
            if hook is not None and id(hook) not in met:
                met.add(id(hook))
                yield from ((f"{place}, by its hook", tensor) for tensor in tensors_kept(hook))
    if _torch.is_python(type(node)):
        for name, value in vars(node).items():
            single = isinstance(value, torch.Tensor)
            for number, tensor in enumerate(tensors_kept(value)):
                yield (f"ctx.{name}" if single else f"ctx.{name}[{number}]"), tensor


def _row(
    place: str, tensor: torch.Tensor, now: int | None, then: int | None, storages: Storages
) -> Row:
    shape, dtype, device = shape_of(tensor), tensor.dtype, tensor.device
    size, numbers = tensor_bytes(tensor), storages.of(tensor)
    return (place, shape, dtype, device, size, numbers, now, then, False, False, "Tensor")


def recorded_row(place: str, recorded: Recorded, storages: Storages) -> Row:
    """What stands under a recorder in place of a tensor: that tensor."""
    storages.recorded.add(recorded)
    now = _torch.version(recorded.tensor)
    return _row(place, recorded.tensor, now, recorded.saved_version, storages)


def _empty(place: str, freed: bool) -> Row:
    return (place, None, None, None, 0, (), None, None, freed, False, "")


def _packed_row(place: str, packed: Any, hook: Any, storages: Storages) -> Row:
    """What a pack hook left: its type, and the bytes of the tensors in it."""
    size = sum(map(tensor_bytes, tensors_kept(packed)))
    numbers = storages.of_packed(packed, hook)
    kind = type(packed).__name__
    return (place, None, None, None, size, numbers, None, None, False, True, kind)


def _ctx_rows(node: Any, storages: Storages) -> list[Row]:
    """Tensors that a Python Function put on ``ctx`` itself: kept, but watched by nobody."""
    found = []
    for name, value in vars(node).items():
        if isinstance(value, torch.Tensor):
            storages.follow(value)
            found.append(_row(f"ctx.{name}", value, _torch.version(value), None, storages))
            continue
        for number, tensor in enumerate(tensors_kept(value)):
            place, now = f"ctx.{name}[{number}]", _torch.version(tensor)
            storages.follow(tensor)
            found.append(_row(place, tensor, now, None, storages))
    return found


def _list_rows(node: Any, name: str, raws: Any, storages: Storages) -> list[Row]:
    if not raws:  # a list is emptied when it is freed
        return [_empty(name, True)] if refuses(node, name) else []
    versions = _versions(node, name, raws)
    found = []
    for number, (one, (now, then)) in enumerate(zip(raws, versions, strict=True)):
        place = f"{name}[{number}]"
        if one is not None and type(one.data) is Recorded:
            found.append(recorded_row(place, one.data, storages))
        elif one is not None and one.unpack_hook is not None:
            found.append(_packed_row(place, one.data, one.unpack_hook, storages))
        elif one is None or one.data is None:
            # In a list that still has entries this one was None; asking would unpack the others.
            found.append(_empty(place, False))
        else:
            found.append(_row(place, one.data, now, then, storages))
    return found


def refuses(node: Any, name: str) -> bool:
    """True when the public access raises: that tells a freed place from one never filled."""
    try:
        _torch.saved_value(node, name)
    except (RuntimeError, AttributeError):
        return True
    return False


_MOVED = re.compile(r"is at version (\d+); expected version (\d+)")


def version_then(node: Any, name: str, now: int | None) -> int | None:
    """The version of a tensor when it was saved, if it stands in no list and no hook packed it.

    PyTorch keeps that number to itself but compares it on unpacking, so unpacking either confirms
    the current version or names the old one.
    """
    if not now:
        return now
    try:
        _torch.saved_value(node, name)
    except RuntimeError as error:
        moved = _MOVED.search(str(error))
        return None if moved is None else int(moved[2])
    return now


def _versions(node: Any, name: str, raws: Any) -> list[tuple[int | None, int | None]]:
    """Version of each tensor of a list now and when it was saved; None where it can't be told.

    Where a hook packed a tensor we must not unpack it, and PyTorch does not compare either.
    """
    plain = [one is not None and one.unpack_hook is None for one in raws]
    tensors = [one.data if is_plain else None for one, is_plain in zip(raws, plain, strict=True)]
    now = [_torch.version(t) if isinstance(t, torch.Tensor) else None for t in tensors]
    then = [
        version if not version else _version_of(one) for one, version in zip(raws, now, strict=True)
    ]
    if all(plain) and None in then and any(now):
        try:
            _torch.saved_value(node, name)
            then = now
        except RuntimeError as error:
            moved = _MOVED.search(str(error))
            current, expected = (int(moved[1]), int(moved[2])) if moved else (-1, -1)
            # It is the first that was changed; which one that is, the message does not say.
            meant = [k for k, version in enumerate(now) if then[k] is None and version == current]
            if len(meant) == 1 and (current, expected) not in zip(now, then, strict=True):
                then[meant[0]] = expected
    return list(zip(now, then, strict=True))


def _version_of(raw: Any) -> int | None:
    """The version of a tensor of a list when it was saved; None where the entry can't tell."""
    try:
        _torch.unpacked(raw)
    except RuntimeError as error:
        moved = _MOVED.search(str(error))
        return int(moved[2]) if moved else None
    return _torch.version(raw.data)

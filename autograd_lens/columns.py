"""Read what many nodes keep at once.

Most nodes of most graphs keep tensors of one piece, packed by no hook. Such nodes are read in half
the time when each question is put to all of their tensors in one go; what was read stays in columns
until somebody asks for rows. Whatever needs a closer look is read node by node
(:mod:`autograd_lens.raw`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from math import prod
from operator import not_
from typing import Any

import torch

from . import _torch
from .raw import Row, refuses, rows, version_then
from .storages import Storages

Groups = Mapping[type, Sequence[int]]
"""Numbers of nodes by the class of the nodes."""

Filled = Iterable[tuple[int, Row]]
"""Rows of places that are or were filled, each with the number of its node."""

BAND = 1000
"""Nodes that are read at once: one that needs a closer look slows down so many."""


@dataclass(frozen=True)
class _Columns:
    """Rows of tensors of one piece, in columns; those of one node are in the order of its fields.

    Attributes:
        nodes: number of the node. fields: name of the place in it.
        facts: shape, dtype and device. storages: number of the storage.
        versions: version now. moved: version when saved where that is another, by position.
    """

    nodes: Sequence[int]
    fields: Sequence[str]
    facts: Sequence[tuple[torch.Size, torch.dtype, torch.device]]
    storages: Sequence[int]
    versions: Sequence[int]
    moved: Mapping[int, int | None]

    def __iter__(self) -> Iterator[tuple[int, Row]]:
        every = zip(self.nodes, self.fields, self.facts, self.storages, self.versions, strict=True)
        for k, (node, field, (shape, dtype, device), storage, now) in enumerate(every):
            size, then = prod(shape) * dtype.itemsize, self.moved.get(k, now)
            row = (field, shape, dtype, device, size, (storage,), now, then, False, False, "Tensor")
            yield node, row


def filled(groups: Groups, live: Sequence[Any], storages: Storages) -> list[Filled]:
    """What the nodes of ``groups`` keep or have let go; numbers are places in ``live``."""
    plain: list[tuple[Sequence[Any], Sequence[int]]] = []
    closely: list[int] = []
    for kind, numbers in groups.items():
        readers = _READERS.get(kind)
        if readers is None and not _torch.is_python(kind):  # such a class comes and goes
            readers = _READERS[kind] = _readers(live[numbers[0]])
        if readers:
            plain.append((readers, numbers))
        else:
            closely += numbers
    columns = _columns(plain, live, storages)
    if columns is None:
        closely += chain.from_iterable(numbers for _, numbers in plain)
    every = [(number, row) for number in closely for row in rows(live[number], storages)]
    taken = [one for one in every if one[1][10] or one[1][8]]
    return [taken] if columns is None else [columns, taken]


_READERS: dict[type, Sequence[tuple[str, Any]]] = {}
"""By class of C++ nodes how to read their fields; empty where each node needs a closer look."""


def _readers(node: Any) -> Sequence[tuple[str, Any]]:
    readers = _torch.raw_readers(type(node))
    try:
        lists = any(type(read(node)) is tuple for _, read in readers)
    except RuntimeError:  # a list that was released
        return ()
    return () if lists else readers


def _columns(
    groups: Iterable[tuple[Sequence[Any], Sequence[int]]], live: Sequence[Any], storages: Storages
) -> _Columns | None:
    """The columns, or None where one of the nodes needs a closer look; nothing is numbered then."""
    nodes: list[int] = []
    fields: list[str] = []
    raws: list[Any] = []
    for readers, numbers in groups:
        several = list(map(live.__getitem__, numbers))
        for field, read in readers:
            raws += map(read, several)
            nodes += numbers
            fields += [field] * len(numbers)
    tensors = [raw.data for raw in raws if raw.unpack_hook is None]
    if len(tensors) < len(raws):
        return None
    full = [tensor is not None for tensor in tensors]
    if not all(full):
        for node, field in compress(zip(nodes, fields, strict=True), map(not_, full)):
            if refuses(live[node], field):  # freed
                return None
        nodes, fields = list(compress(nodes, full)), list(compress(fields, full))
        tensors = list(compress(tensors, full))
    behind = _torch.plain_storages(tensors)
    if behind is None:
        return None
    try:
        facts = list(map(_torch.facts, tensors))
        versions = list(map(_torch.plain_version, tensors))
    except RuntimeError:
        return None
    moved = {}
    for k in [k for k, now in enumerate(versions) if now]:
        # A version counter never falls: one at 0 was at 0, and there is no need to ask.
        node, field = live[nodes[k]], fields[k]
        try:
            _torch.public_reader(field)(node)
        except RuntimeError:
            moved[k] = version_then(node, field, versions[k])
    return _Columns(nodes, fields, facts, storages.all(behind), versions, moved)

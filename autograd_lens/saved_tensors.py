"""The ledger: what a graph keeps alive for its backward, tensor by tensor, to the byte.

Knows what each node saved, whose memory that is and how large it is, at the moment of the call.
Reads raw saved tensors: no unpack hook runs, nothing is recomputed, nothing raises on a freed graph
or a changed tensor. Keeps no node and no tensor.

Bytes are those of whole storages, since that is what a saved tensor keeps alive: a view of one row
pins all rows. A storage that several nodes saved counts once.

Not known: which tensors were inputs (the caller gives them), and which module ran a node that uses
no parameter (see :mod:`autograd_lens.modules`). Not visible from Python: what ``CopySlices`` and
``_foreach_*`` nodes saved, and nodes of C++ extensions and of TorchScript. They are listed in
:attr:`SavedTensors.opaque`; those of PyTorch's own operations are counted where a recorder watched
the forward (:mod:`autograd_lens.record_saved`). A checkpoint's random state is seen, in the closure
of its hook.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass, fields
from functools import cached_property
from operator import itemgetter
from typing import Any

import torch

from . import _torch
from .base import View
from .capture import no_tensor
from .ledger import Reading, hooks_see, is_in_place, read
from .printable import printable
from .raw import Row
from .record_saved import SavedRecorder
from .saved import saved_from

ROLES = ("activation", "parameter", "buffer", "input")
"""Whose memory a saved tensor is; an activation is what is none of the others."""


@dataclass(frozen=True, slots=True)
class SavedEntry:
    """One tensor that a node keeps, or the place where it was.

    Attributes:
        node: index of the node in engine order, as in ``lens.graph``; ``name`` its
            ``grad_fn.name()``, ``label`` the same without a C++ namespace.
        module: path of the module that the node belongs to, ``""`` for the model itself; None
            where ``names`` was no Module.
        field: name of the place in the node: ``"self"``, ``"tensors[0]"``, ``"ctx.name"``;
            ``"recorded[0]"`` for what a recorder saw an opaque node save.
        shape, dtype, device: of the tensor; None when it was freed, or a hook packed it.
        bytes: what its elements occupy.
        storages: numbers of the storages behind it; equal numbers mean shared memory.
        storage_bytes: size of those storages: what the entry keeps alive.
        role: one of ``ROLES``; None when nothing is kept.
        owner: name of the parameter, buffer, input or named tensor whose memory it is, or None.
        saved_version, version: the version counter when it was saved, and now; None where there is
            none, or where PyTorch does not compare it (packed by a hook, put on ``ctx``). The first
            may be None for one of several in a list, too: for a result, and on torch 2.11.
        freed: a backward has let it go.
        packed: a saved-tensor hook put something else in its place; ``kind`` says what.
        kind: the type of what is kept.
    """

    node: int
    name: str
    label: str
    module: str | None
    field: str
    shape: tuple[int | str, ...] | None
    dtype: torch.dtype | None
    device: str | None
    bytes: int
    storages: tuple[int, ...]
    storage_bytes: int
    role: str | None
    owner: str | None
    saved_version: int | None
    version: int | None
    freed: bool
    packed: bool
    kind: str

    @property
    def stale(self) -> bool:
        """Changed in place since it was saved: this node will raise when it runs."""
        return self.saved_version is not None and self.saved_version != self.version

    def to_dict(self) -> dict[str, Any]:
        """All of it as numbers, strings and lists, ready for JSON or a data frame."""
        row = {f.name: getattr(self, f.name) for f in fields(self)} | {"stale": self.stale}
        row["shape"] = None if self.shape is None else list(self.shape)
        row["dtype"] = None if self.dtype is None else str(self.dtype).removeprefix("torch.")
        row["storages"] = list(self.storages)
        return row


ORDERS: dict[str, Callable[[SavedEntry], Any]] = {
    "node": lambda entry: entry.node,
    "bytes": lambda entry: -entry.storage_bytes,
    "name": lambda entry: entry.label,
    "module": lambda entry: natural(entry.module or ""),
    "role": lambda entry: ROLES.index(entry.role) if entry.role else len(ROLES),
    "field": lambda entry: entry.field,
    "dtype": lambda entry: str(entry.dtype),
}
"""Orders of the entries by name; within one, that of the engine."""


def natural(text: str) -> list[tuple[int, str]]:
    """A key that sorts ``blocks.2`` before ``blocks.10``."""
    return [
        (int(part or 0), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", text)
    ]


@dataclass(frozen=True, slots=True)
class OpaqueNode:
    """A node that saved what can't be seen.

    Attributes:
        node: its index in engine order; ``name`` its ``grad_fn.name()``.
        reason: why, in words.
        recorded: a recorder saw what it saved: that is among the entries.
    """

    node: int
    name: str
    reason: str
    recorded: bool = False

    @property
    def recordable(self) -> bool:
        """A recorder around the forward would see what it saves; False if that is not known."""
        return hooks_see(self.name)

    @property
    def at_most(self) -> int | None:
        """Bytes by which the total may be short because of it; None where nothing is known.

        Of PyTorch's operations in C++ only one thing never reaches a hook: an operand that is a
        Python number, 8 bytes, 16 if complex. A Python ``Function`` that writes into a view may
        keep more on its ``ctx``, and nothing tells that there is one.
        """
        if not self.recorded:
            return None
        return 16 if is_in_place(self.name) else 0


@dataclass(frozen=True, slots=True)
class SavedGroup:
    """Entries with something in common.

    Attributes:
        key: what they have in common.
        nodes, entries: how many nodes and entries there are in it.
        bytes: of the storages that it keeps alive, each counted once.
        shared_bytes: the part of ``bytes`` that other groups keep alive too.
        by_role: ``bytes`` by role, only roles that occur.
    """

    key: str
    nodes: int
    entries: int
    bytes: int
    shared_bytes: int
    by_role: dict[str, int]


class SavedTensors(View):
    """What a graph keeps alive.

    Attributes:
        entries: one for each tensor that a node keeps or has let go, in engine order.
        opaque: the nodes that can't be seen, each named.
        storages: size in bytes of each storage, by its number.
        roles: role of each storage, by its number.
        nodes: how many nodes the graph has.
        by: in which order the entries are.
    """

    def __init__(self, reading: Reading, by: str = "node"):
        self._reading = reading
        self.by = by
        self.nodes = reading.nodes

    @cached_property
    def _rows(self) -> list[tuple[int, Row]]:
        """Node in engine order, row; numbers of storages are those of the reading."""
        ranks = self._reading.ranks
        return sorted(((ranks[n], row) for n, row in self._reading.rows), key=itemgetter(0))

    @cached_property
    def _numbers(self) -> dict[int, int]:
        """The number of each storage of the reading, counted in the order of the rows."""
        met = dict.fromkeys(number for _, row in self._rows for number in row[5])
        return {number: k for k, number in enumerate(met)}

    @cached_property
    def storages(self) -> tuple[int, ...]:
        """Size in bytes of each storage, by its number."""
        return tuple(self._reading.sizes[number] for number in self._numbers)

    @cached_property
    def roles(self) -> tuple[str, ...]:
        """Role of each storage, by its number."""
        return tuple(map(self._reading.role, self._numbers))

    @cached_property
    def entries(self) -> tuple[SavedEntry, ...]:
        """One for each tensor that a node keeps or has let go, in the order ``by``."""
        names = dict(zip(self._reading.ranks, self._reading.names, strict=True))
        entries = [self._entry(node, names[node], row) for node, row in self._rows]
        return tuple(sorted(entries, key=ORDERS[self.by]))

    def _entry(self, node: int, name: str, row: Row) -> SavedEntry:
        reading = self._reading
        saved = saved_from(row, reading.sizes)
        roles = [reading.role(number) for number in saved.storages] or ["activation"]
        owners = filter(None, map(reading.owner, saved.storages))
        return SavedEntry(
            node=node,
            name=name,
            label=name.rpartition("::")[2],
            module=reading.modules[node] if reading.modules else None,
            field=saved.field,
            shape=saved.shape,
            dtype=saved.dtype,
            device=saved.device,
            bytes=saved.bytes,
            storages=tuple(self._numbers[n] for n in saved.storages),
            storage_bytes=saved.storage_bytes,
            role=None if saved.empty else min(roles, key=ROLES.index),
            owner=next(owners, None),
            saved_version=saved.saved_version,
            version=saved.version,
            freed=saved.freed,
            packed=saved.packed,
            kind=saved.kind,
        )

    @cached_property
    def opaque(self) -> tuple[OpaqueNode, ...]:
        """The nodes that can't be seen, in engine order."""
        ranks = self._reading.ranks
        why = "a C++ node that shows nothing of what it saved"
        recorded = self._reading.recorded
        return tuple(
            OpaqueNode(rank, name, why, closed)
            for rank, name, closed in sorted(
                (ranks[n], name, n in recorded) for n, name in self._reading.opaque.items()
            )
        )

    @property
    def short_by(self) -> int | None:
        """At most so many bytes may be missing in the total, because of opaque nodes.

        0 without such nodes; None where they were not recorded, so that nothing is known.
        """
        limits = [one.at_most for one in self.opaque]
        return None if None in limits else sum(limits)

    def _bytes(self, role: str) -> int:
        reading = self._reading
        return sum(n for k, n in enumerate(reading.sizes) if reading.role(k) == role)

    @property
    def activation_bytes(self) -> int:
        """Bytes of what is neither parameter, buffer nor given input."""
        return self._bytes("activation")

    @property
    def parameter_bytes(self) -> int:
        """Bytes of the parameters that are kept alive."""
        return self._bytes("parameter")

    @property
    def buffer_bytes(self) -> int:
        """Bytes of the buffers that are kept alive."""
        return self._bytes("buffer")

    @property
    def input_bytes(self) -> int:
        """Bytes of the given inputs that are kept alive."""
        return self._bytes("input")

    @property
    def total_bytes(self) -> int:
        """Bytes of everything that the graph keeps alive."""
        return sum(self._reading.sizes)

    @property
    def stale(self) -> tuple[SavedEntry, ...]:
        """The entries that were changed in place, as far as it can be told; their nodes will raise.

        It can't be told where ``saved_version`` is None: see :class:`SavedEntry`.
        """
        return tuple(entry for entry in self.entries if entry.stale)

    def sorted(self, by: str = "bytes") -> SavedTensors:
        """The same ledger with its entries in another order.

        Args:
            by: ``"bytes"`` (what is kept alive, largest first), ``"node"`` (engine order), or
                ``"name"``, ``"module"``, ``"role"``, ``"field"``, ``"dtype"``.
        """
        if not isinstance(by, str) or by not in ORDERS:
            raise ValueError(f"sort by one of {', '.join(ORDERS)}, not {by!r:.40}")
        return SavedTensors(self._reading, by)

    def by_node_kind(self) -> SavedGroups:
        """The bytes by the name of the node, such as ``MmBackward0``; largest first."""
        return self.grouped(lambda entry: entry.label, "node kind")

    def by_module(self, depth: int | None = None) -> SavedGroups:
        """The bytes by module; largest first.

        Args:
            depth: put modules together down to so many levels: 2 makes ``blocks.0`` of
                ``blocks.0.mlp.2``. None keeps every path whole.

        Raises:
            ValueError: ``names`` was no Module, so nothing is known of modules.
        """
        if depth is not None and (type(depth) is not int or depth < 1):
            raise ValueError(f"depth must be a whole number of at least 1, or None, not {depth!r}")
        if any(entry.module is None for entry in self.entries):
            raise ValueError("no modules are known: pass the model, saved_tensors(outputs, model)")

        def path(entry: SavedEntry) -> str:
            paths = [".".join(one.split(".")[:depth]) for one in entry.module.split(" = ")]
            return " = ".join(dict.fromkeys(paths)) or "(model)"

        return self.grouped(path, "module")

    def grouped(self, key: Callable[[SavedEntry], Hashable], title: str = "group") -> SavedGroups:
        """The bytes by any function of an entry; entries with the key None are left out."""
        if not callable(key):
            raise TypeError(f"group by a function of an entry, not {key!r:.40}")
        members: dict[str, list[SavedEntry]] = {}
        for entry in self.entries:
            found = key(entry)
            if found is not None and not entry.freed:
                members.setdefault(str(found), []).append(entry)
        held = {k: {n for e in group for n in e.storages} for k, group in members.items()}
        uses: dict[int, int] = {}
        for numbers in held.values():
            for number in numbers:
                uses[number] = uses.get(number, 0) + 1
        groups = []
        for name, group in members.items():
            by_role = {
                role: sum(self.storages[n] for n in held[name] if self.roles[n] == role)
                for role in ROLES
                if any(self.roles[n] == role for n in held[name])
            }
            groups.append(
                SavedGroup(
                    name,
                    len({entry.node for entry in group}),
                    len(group),
                    sum(by_role.values()),
                    sum(self.storages[n] for n in held[name] if uses[n] > 1),
                    by_role,
                )
            )
        groups.sort(key=lambda group: (-group.bytes, natural(group.key)))
        return SavedGroups(title, tuple(groups), self.total_bytes)

    def to_dicts(self) -> list[dict[str, Any]]:
        """One dictionary per entry, of numbers, strings and lists."""
        return [entry.to_dict() for entry in self.entries]


@dataclass(frozen=True, repr=False)
class SavedGroups(View):
    """What groups of entries keep alive, largest first.

    Attributes:
        title: what the groups are: ``"node kind"``, ``"module"``.
        groups: one for each key.
        total_bytes: of the whole ledger; less than the sum where groups share storages.
    """

    title: str
    groups: tuple[SavedGroup, ...]
    total_bytes: int

    def figure(self) -> Any:
        """Return the bar chart of the groups."""
        from .view.draw_saved_tensors import groups_figure

        return groups_figure(self)

    def to_dicts(self) -> list[dict[str, Any]]:
        """One dictionary per group."""
        return [{f.name: getattr(group, f.name) for f in fields(group)} for group in self.groups]


def saved_tensors(
    outputs: Any, names: Any = None, *, inputs: Any = (), recorder: SavedRecorder | None = None
) -> SavedTensors:
    """Return the ledger of what the nodes of the graph behind ``outputs`` have saved.

    Nothing is run, and nothing need be installed before the forward pass. What is kept alive in
    other ways is not counted: a leaf that no node saved, the closure of a tensor hook, the modules
    that a checkpoint would run again.

    Args:
        outputs: a tensor, a ``grad_fn``, or any pytree of them.
        names: a ``torch.nn.Module``, which tells parameters and buffers apart and gives entries
            their module; or a mapping from name to tensor. Leaves of the graph are parameters in
            any case, unless they are given as inputs; parameters that need no gradient are none
            of its leaves and are known by ``names`` only.
        inputs: a tensor or a pytree of tensors that were there before the forward pass. The graph
            can't tell them from activations.
        recorder: the :func:`lens.record_saved <autograd_lens.record_saved.record_saved>` under
            which the forward ran. Only a graph with opaque nodes needs one.

    Raises:
        TypeError: ``outputs`` holds neither tensor nor node, or an argument has the wrong type.
        ValueError: no output has a graph; the message says why, as far as that can be known.
    """
    if not (recorder is None or isinstance(recorder, SavedRecorder)):
        raise TypeError(
            "recorder is what `with lens.record_saved() as recorder:` gave, not "
            f"{type(recorder).__name__}"
        )
    return SavedTensors(read(outputs, names, _given(inputs), recorder))


def _given(inputs: Any) -> list[tuple[str, torch.Tensor]]:
    """The inputs with names: their keys in a mapping, ``input`` or ``input 1``, … otherwise."""
    if inputs is None:
        return []
    if isinstance(inputs, torch.nn.Module):
        raise TypeError("inputs are tensors; pass the model as names: saved_tensors(loss, model)")
    if isinstance(inputs, dict) and all(isinstance(t, torch.Tensor) for t in inputs.values()):
        return [(printable(str(name)), tensor) for name, tensor in inputs.items()]
    tensors = _torch.tensors_in(inputs)
    if not tensors and not (isinstance(inputs, (tuple, list, dict)) and not inputs):
        raise no_tensor(inputs, "inputs must be")
    if len(tensors) == 1:
        return [("input", tensors[0])]
    return [(f"input {k}", tensor) for k, tensor in enumerate(tensors, 1)]

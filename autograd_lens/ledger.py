"""Reads the ledger of :mod:`autograd_lens.saved_tensors` from live nodes.

The reading is a list of tuples, made in one pass over the nodes and complete: numbers and names, no
node and no tensor. What takes longer and needs no node is done when it is asked for: engine order,
modules, entries.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from . import _gc, _torch
from .capture import find_roots, kind_of
from .modules import modules_by_node
from .names import Names
from .raw import Row, filled_rows, recorded_row, saves
from .record_saved import SavedRecorder, kept_by_opaque
from .storages import Storages
from .walk import UNGUARDED, Found, discover, engine_order


@dataclass(frozen=True)
class Reading:
    """What was read from a graph. Nodes are numbered as they were met.

    Attributes:
        rows: ``(node, row)`` for each place that is or was filled.
        names: ``grad_fn.name()`` of each node.
        found: the graph in numbers.
        sizes: bytes of each storage. roles: its role, unless it is an activation. titles: the names
            of what lies in it.
        leaves: the nodes of leaves. leaf_of: by storage, the leaf that lies in it.
        opaque: the nodes that can't be seen; ``recorded`` are those of them of which a recorder
            has seen everything.
        leaf_names: by node, the names of a leaf's parameter; None where no Module was given.
    """

    rows: Sequence[tuple[int, Row]]
    names: Sequence[str]
    found: Found
    sizes: Sequence[int]
    roles: Mapping[int, str]
    titles: Mapping[int, Collection[str]]
    leaves: Sequence[int]
    leaf_of: Mapping[int, int]
    opaque: Sequence[int]
    recorded: frozenset[int]
    leaf_names: Mapping[int, Sequence[str]] | None

    def role(self, storage: int) -> str:
        """The role of a storage."""
        return self.roles.get(storage, "activation")

    def owner(self, storage: int) -> str | None:
        """The reader's name for what lies in a storage; a leaf without one is numbered."""
        name = " = ".join(self.titles.get(storage, ())) or None
        if name is None and storage in self.leaf_of:
            name = f"leaf {self._ordinals[self.leaf_of[storage]]}"
        return name

    @cached_property
    def _ordinals(self) -> dict[int, int]:
        """Leaves are counted as ``lens.graph`` counts them."""
        in_order = sorted(self.leaves, key=self.ranks.__getitem__)
        return {node: k for k, node in enumerate(in_order, 1)}

    @cached_property
    def ranks(self) -> list[int]:
        """The index of each node in engine order."""
        ranks = [0] * len(self.names)
        for index, number in enumerate(self._ordered[0]):
            ranks[number] = index
        return ranks

    @cached_property
    def modules(self) -> list[str] | None:
        """The module of each node, by its index in engine order."""
        if self.leaf_names is None:
            return None
        order, edges, _ = self._ordered
        leaves = {self.ranks[number]: names for number, names in self.leaf_names.items()}
        return modules_by_node([self.names[number] for number in order], edges, leaves)

    @cached_property
    def _ordered(self) -> Any:
        return self.found.in_engine_order()


def read(
    outputs: Any,
    names: Any,
    inputs: Sequence[tuple[str, torch.Tensor]],
    recorder: SavedRecorder | None = None,
) -> Reading:
    """Read the graph; see :func:`autograd_lens.saved_tensors.saved_tensors` for the arguments."""
    known = Names(names)
    given, _ = find_roots(outputs)
    _torch.require()
    roots = [node for node, _ in given]
    with _gc.paused():
        live, reading, further = _read(roots, known, inputs, names, recorder)
        asked = set(live) if further else set()
        while further:  # a kept tensor has a graph that no edge leads to
            roots += further
            _, reading, further = _read(roots, known, inputs, names, recorder, asked)
    return reading


def _read(
    roots: Sequence[Any],
    known: Names,
    inputs: Sequence[tuple[str, torch.Tensor]],
    names: Any,
    recorder: SavedRecorder | None,
    asked: set[Any] | None = None,
) -> tuple[list[Any], Reading, list[Any]]:
    """Read the graph below ``roots``; return also its nodes, and those outside that it keeps alive.

    If ``asked`` is given, only leaves among those nodes are parameters.
    """
    live, found = discover(roots)
    storages = Storages()
    keeping: list[tuple[int, Any]] = []
    names_of: list[str] = []
    leaves: dict[int, torch.Tensor] = {}
    opaque: list[int] = []
    for number, (node, kind) in enumerate(zip(live, map(type, live), strict=True)):
        trait = _TRAITS.get(kind)
        if trait is None:
            trait = _TRAITS[kind] = (node.name(), _trait(node))
        name, what = trait
        if what == "leaf":
            leaf = node.variable
            if leaf is not None and (asked is None or node in asked):
                leaves[number] = leaf
        elif what == "keeps":
            keeping.append((number, node))
        elif what == "many names":
            name = node.name()
            if kind_of(node) == "opaque":
                opaque.append(number)
        names_of.append(name)
    taken = filled_rows(keeping, storages)
    recorded: frozenset[int] = frozenset()
    if recorder is not None and opaque:
        numbers = {found.sequence_nrs[number]: number for number in opaque}
        taken += _rows_of_opaque(numbers, names_of, recorder, storages)
        recorded = frozenset(
            number
            for nr, number in numbers.items()
            if recorder.covers(nr) and _is_recordable(nr, number, numbers, names_of)
        )
    if len(live) > UNGUARDED:
        engine_order(roots)
    leaf_names = None
    if isinstance(names, torch.nn.Module):
        leaf_names = {n: known.all_of(leaf) for n, leaf in leaves.items() if known.of(leaf)}
    owners = _Owners(storages, known, inputs, leaves, names)
    reading = Reading(
        taken,
        names_of,
        found,
        storages.sizes,
        owners.roles,
        owners.titles,
        list(leaves),
        owners.leaf_of,
        opaque,
        recorded,
        leaf_names,
    )
    inside = set(live) if storages.further else ()
    return live, reading, [node for node in dict.fromkeys(storages.further) if node not in inside]


_TRAITS: dict[type, tuple[str, str]] = {}
"""By class of nodes their name and what there is to do with each of them."""


def _trait(node: Any) -> str:
    """What the nodes of one class have in common: what there is to do with each of them."""
    if kind_of(node) == "leaf":
        return "leaf"
    if saves(type(node)):
        return "keeps"
    return "many names" if type(node).__name__ in ("CppFunction", "CopySlices") else "nothing"


def is_in_place(name: str) -> bool:
    """True for the name of a ``CopySlices``, which a write into a view leaves."""
    return name.endswith("CopySlices")


def hooks_see(name: str) -> bool:
    """True for opaque nodes of PyTorch's own operations, which save through hooks.

    Of nodes of C++ extensions and of TorchScript it is not known what they keep besides.
    """
    return is_in_place(name) or "Foreach" in name


def _is_recordable(nr: int, number: int, opaque: Mapping[int, int], names: Sequence[str]) -> bool:
    """True where what a node keeps went through hooks and can be told from what others keep.

    A ``_foreach_*_`` on views makes a ``CopySlices`` for each and saves for all of them before and
    after: one has the number after the next of another, since each view gets a new node.
    """
    near = (opaque.get(nr - 2), opaque.get(nr + 2)) if is_in_place(names[number]) else ()
    twins = [other for other in near if other is not None and is_in_place(names[other])]
    return hooks_see(names[number]) and not twins


def _rows_of_opaque(
    opaque: Mapping[int, int],
    names: Sequence[str],
    recorder: SavedRecorder,
    storages: Storages,
) -> list[tuple[int, Row]]:
    """What a recorder saw opaque nodes save; those are given by their sequence number."""
    in_place = {nr: number for nr, number in opaque.items() if is_in_place(names[number])}
    others = {nr: number for nr, number in opaque.items() if nr not in in_place}
    places = dict.fromkeys(opaque.values(), 0)
    found: list[tuple[int, Row]] = []
    for number, one in kept_by_opaque(recorder, in_place, others):
        if one not in storages.recorded:
            found.append((number, recorded_row(f"recorded[{places[number]}]", one, storages)))
            places[number] += 1
    return found


class _Owners:
    """Finds whose memory a storage is. The first claim to a role counts; names add up."""

    def __init__(
        self,
        storages: Storages,
        known: Names,
        inputs: Sequence[tuple[str, torch.Tensor]],
        leaves: Mapping[int, torch.Tensor],
        names: Any,
    ):
        self.roles: dict[int, str] = {}
        self.titles: dict[int, dict[str, None]] = {}
        given = {id(tensor) for _, tensor in inputs}
        parameters = {id(leaf) for leaf in leaves.values()} - given
        buffers: set[int] = set()
        if isinstance(names, torch.nn.Module):
            buffers = {id(buffer) for buffer in names.buffers()}
        met = storages.met_each([tensor for _, tensor in known.pairs])
        for (name, tensor), numbers in zip(known.pairs, met, strict=True):
            if id(tensor) in buffers:
                self._claim(numbers, "buffer", name)
            elif id(tensor) in parameters or isinstance(tensor, torch.nn.Parameter):
                self._claim(numbers, "parameter", name)
            else:
                self._claim(numbers, None, name)
        for name, tensor in inputs:
            role = "parameter" if isinstance(tensor, torch.nn.Parameter) else "input"
            self._claim(storages.met(tensor), role, known.of(tensor) or name)
        self.leaf_of: dict[int, int] = {}
        for node, numbers in zip(leaves, storages.met_each(leaves.values()), strict=True):
            for number in numbers:
                self.roles.setdefault(number, "parameter")
                self.leaf_of.setdefault(number, node)

    def _claim(self, numbers: Sequence[int], role: str | None, name: str | None) -> None:
        for number in numbers:
            if name:
                self.titles.setdefault(number, {})[name] = None
            if role:
                self.roles.setdefault(number, role)

"""Reads the ledger of :mod:`autograd_lens.saved_tensors` from live nodes.

The reading is a list of tuples, made in one pass over the nodes and complete: numbers and names, no
node and no tensor. What takes longer and needs no node is done when it is asked for: engine order,
modules, entries.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import torch

from . import _gc, _torch
from .capture import find_roots, kind_of
from .columns import BAND, Filled, filled
from .modules import modules_by_node
from .names import Names
from .raw import Row, recorded_row, saves
from .record_saved import SavedRecorder, kept_by_opaque
from .storages import Storages
from .walk import Found, discover


@dataclass(frozen=True)
class Reading:
    """What was read from a graph. Nodes are numbered as they were met.

    Attributes:
        taken: what was read of the nodes, in parts.
        named: names of the nodes: ``grad_fn.name()``, and the numbers of those that have it.
        found: the graph in numbers.
        sizes: bytes of each storage. roles: its role, unless it is an activation. titles: the names
            of what lies in it.
        leaves: the nodes of leaves. leaf_of: by storage, the leaf that lies in it.
        opaque: the nodes that can't be seen, with their names; ``recorded`` are those of them of
            which a recorder has seen everything.
        leaf_names: by node, the names of a leaf's parameter; None where no Module was given.
    """

    taken: Sequence[Filled]
    named: Sequence[tuple[str, Sequence[int]]]
    found: Found
    sizes: Sequence[int]
    roles: Mapping[int, str]
    titles: Mapping[int, Collection[str]]
    leaves: Sequence[int]
    leaf_of: Mapping[int, int]
    opaque: Mapping[int, str]
    recorded: frozenset[int]
    leaf_names: Mapping[int, Sequence[str]] | None

    @property
    def nodes(self) -> int:
        """How many nodes the graph has."""
        return len(self.found.lengths)

    @cached_property
    def rows(self) -> list[tuple[int, Row]]:
        """``(node, row)`` for each place that is or was filled."""
        return list(chain.from_iterable(self.taken))

    @cached_property
    def names(self) -> list[str]:
        """``grad_fn.name()`` of each node."""
        names = [""] * self.nodes
        for name, numbers in self.named:
            for number in numbers:
                names[number] = name
        return names

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
        ranks = [0] * self.nodes
        for index, number in enumerate(self.found.engine_order[0]):
            ranks[number] = index
        return ranks

    @cached_property
    def modules(self) -> list[str] | None:
        """The module of each node, by its index in engine order."""
        if self.leaf_names is None:
            return None
        order, edges, _ = self.found.engine_order
        leaves = {self.ranks[number]: names for number, names in self.leaf_names.items()}
        return modules_by_node([self.names[number] for number in order], edges, leaves)


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
    held = _Held(live, storages)
    leaves, opaque = held.leaves, held.opaque
    if asked is not None:
        leaves = {number: leaf for number, leaf in leaves.items() if live[number] in asked}
    taken = held.taken
    recorded: frozenset[int] = frozenset()
    if recorder is not None and opaque:
        by_nr = {found.sequence_nrs[number]: number for number in opaque}
        taken.append(_rows_of_opaque(by_nr, opaque, recorder, storages))
        recorded = frozenset(
            number
            for nr, number in by_nr.items()
            if recorder.covers(nr) and _is_recordable(nr, number, by_nr, opaque)
        )
    leaf_names = None
    if isinstance(names, torch.nn.Module):
        of_leaves = ((number, known.all_of(leaf)) for number, leaf in leaves.items())
        leaf_names = {number: several for number, several in of_leaves if several}
    owners = _Owners(storages, known, inputs, leaves)
    reading = Reading(
        taken,
        held.named,
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


class _Held:
    """What the nodes are and hold; they are given by their place in ``live``.

    Attributes:
        taken, named, opaque: as in :class:`Reading`. leaves: the tensor of each leaf.
    """

    def __init__(self, live: Sequence[Any], storages: Storages):
        self.taken: list[Filled] = []
        self.named: list[tuple[str, Sequence[int]]] = []
        self.leaves: dict[int, torch.Tensor] = {}
        self.opaque: dict[int, str] = {}
        for first in range(0, len(live), BAND):
            groups: dict[type, list[int]] = defaultdict(list)
            for number, kind in enumerate(map(type, live[first : first + BAND]), first):
                groups[kind].append(number)
            keeping = {kind: each for kind, each in groups.items() if self._look(kind, each, live)}
            self.taken += filled(keeping, live, storages)

    def _look(self, kind: type, numbers: Sequence[int], live: Sequence[Any]) -> bool:
        """Note the nodes of one class; say whether they keep something."""
        trait = _TRAITS.get(kind)
        if trait is None:
            trait = _trait(live[numbers[0]])
            if not _torch.is_python(kind):  # such a class comes and goes
                _TRAITS[kind] = trait
        name, what = trait
        if what == "many names":
            for number in numbers:
                name = live[number].name()
                self.named.append((name, (number,)))
                if kind_of(live[number]) == "opaque":
                    self.opaque[number] = name
            return False
        self.named.append((name, numbers))
        if what == "leaf":
            self.leaves |= {
                number: leaf for number in numbers if (leaf := live[number].variable) is not None
            }
        return what == "keeps"


_TRAITS: dict[type, tuple[str, str]] = {}
"""By class of C++ nodes their name and what there is to do with each of them."""


def _trait(node: Any) -> tuple[str, str]:
    """What the nodes of one class have in common: name, and what there is to do with each."""
    what = "nothing"
    if kind_of(node) == "leaf":
        what = "leaf"
    elif saves(type(node)):
        what = "keeps"
    elif type(node).__name__ in ("CppFunction", "CopySlices"):
        what = "many names"
    return node.name(), what


def is_in_place(name: str) -> bool:
    """True for the name of a ``CopySlices``, which a write into a view leaves."""
    return name.endswith("CopySlices")


def hooks_see(name: str) -> bool:
    """True for opaque nodes of PyTorch's own operations, which save through hooks.

    Of nodes of C++ extensions and of TorchScript it is not known what they keep besides.
    """
    return is_in_place(name) or "Foreach" in name


def _is_recordable(
    nr: int, number: int, by_nr: Mapping[int, int], names: Mapping[int, str]
) -> bool:
    """True where what a node keeps went through hooks and can be told from what others keep.

    A ``_foreach_*_`` on views makes a ``CopySlices`` for each and saves for all of them before and
    after: one has the number after the next of another, since each view gets a new node.
    """
    near = (by_nr.get(nr - 2), by_nr.get(nr + 2)) if is_in_place(names[number]) else ()
    twins = [other for other in near if other is not None and is_in_place(names[other])]
    return hooks_see(names[number]) and not twins


def _rows_of_opaque(
    by_nr: Mapping[int, int],
    names: Mapping[int, str],
    recorder: SavedRecorder,
    storages: Storages,
) -> list[tuple[int, Row]]:
    """What a recorder saw opaque nodes save; those are given by their sequence number."""
    in_place = {nr: number for nr, number in by_nr.items() if is_in_place(names[number])}
    others = {nr: number for nr, number in by_nr.items() if nr not in in_place}
    places = dict.fromkeys(by_nr.values(), 0)
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
    ):
        self.roles: dict[int, str] = {}
        self.titles: dict[int, dict[str, None]] = {}
        if known.pairs:
            given = {id(tensor) for _, tensor in inputs}
            parameters = {id(leaf) for leaf in leaves.values()} - given
            for place, number in storages.met_each([tensor for _, tensor in known.pairs]):
                name, tensor = known.pairs[place]
                role = None
                if id(tensor) in known.buffers:
                    role = "buffer"
                elif id(tensor) in parameters or isinstance(tensor, torch.nn.Parameter):
                    role = "parameter"
                self._claim(number, role, name)
        for name, tensor in inputs:
            role = "parameter" if isinstance(tensor, torch.nn.Parameter) else "input"
            for number in storages.met(tensor):
                self._claim(number, role, known.of(tensor) or name)
        nodes = list(leaves)
        # Backwards, so that the first leaf counts where several lie in one storage.
        in_leaves = reversed(storages.met_each(leaves.values()))
        self.leaf_of = {number: nodes[place] for place, number in in_leaves}
        self.roles = dict.fromkeys(self.leaf_of, "parameter") | self.roles

    def _claim(self, number: int, role: str | None, name: str) -> None:
        if name:
            self.titles.setdefault(number, {})[name] = None
        if role:
            self.roles.setdefault(number, role)

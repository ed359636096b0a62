"""Reads live nodes into a :class:`~autograd_lens.graphs.record.Reading`: the one place that does.

Nothing is run: no hook, no recomputation, no gradient. What is read are numbers and names; no node
and no tensor is kept.

Rests on ``torch/csrc/autograd/node.h``, ``edge.h`` and, for saved tensors,
:mod:`autograd_lens.saving.saved`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .. import _torch
from ..saving.names import Names
from ..saving.owners import Named, Owners
from ..saving.record import SavedTensor
from ..saving.recorder import SavedRecorder, kept_by_opaque
from ..saving.saved import Reader
from .describe import Describer, hooks_of_intermediates
from .kinds import is_in_place_on_view, kind_of, saves_through_hooks
from .links import Edges
from .modules import modules_by_node
from .order import engine_order
from .record import Edge, Reading
from .roots import find_roots


def read(
    outputs: Any, names: Any = None, inputs: Named = (), recorder: SavedRecorder | None = None
) -> Reading:
    """Read the graph behind ``outputs``.

    Args:
        outputs: a tensor, a ``grad_fn``, or any pytree of them.
        names: a Module, a mapping name → tensor, or pairs.
        inputs: names and tensors that were there before the forward pass.
        recorder: what ``lens.record_saved`` gave for the forward pass, or None.

    Raises:
        TypeError, ValueError: as :func:`autograd_lens.graph` has them.
    """
    return read_live(outputs, names, inputs, recorder).reading


@dataclass(frozen=True)
class Live:
    """A reading with what it was read from: not to be kept.

    Attributes:
        reading: the record.
        known: the names that were given.
        nodes: the ``grad_fn`` objects of ``reading.nodes``.
        storage_keys: the identity of each storage, by number.
    """

    reading: Reading
    known: Names
    nodes: list[Any]
    storage_keys: list[Any]


def read_live(
    outputs: Any, names: Any, inputs: Named = (), recorder: SavedRecorder | None = None
) -> Live:
    """The same as :func:`read`, and the live nodes."""
    roots, plain = find_roots(outputs)
    known = Names(names)
    _torch.require()
    live, links = engine_order(node for node, _ in roots)
    kinds = list(map(kind_of, live))
    leaves = _labelled_leaves(live, kinds, known)
    owners = Owners(known, inputs, list(leaves.values()))
    reader = Reader(owners)
    saved = [reader.saved(k, node.name(), node) for k, node in enumerate(live)]
    beyond = _read_beyond(reader, live, saved)
    every = live + beyond
    recorded = frozenset[int]()
    if recorder is not None:
        opaque = [k for k, node in enumerate(every) if kind_of(node) == "opaque"]
        recorded = _add_recorded(reader, every, opaque, saved, recorder)
    kept = len(reader.storages.keys)
    how, modules = _modules(known, recorder, every, links, leaves, saved)
    edges, no_grad_inputs = _edges(links, len(live))
    describe = Describer(roots, known, hooks_of_intermediates(known), reader.storages)
    nodes = tuple(
        describe(k, node, kinds[k], modules[k], saved[k], no_grad_inputs.get(k, ()), leaves.get(k))
        for k, node in enumerate(live)
    )
    more = tuple(
        describe(k, node, kind_of(node), modules[k], saved[k], (), None)
        for k, node in enumerate(beyond, len(live))
    )
    reading = Reading(
        nodes,
        more,
        edges,
        owners.of(reader.storages),
        kept,
        how,
        _unreached(known, leaves.values()),
        recorded,
        len(plain),
    )
    return Live(reading, known, live, reader.storages.keys)


def _labelled_leaves(
    live: Sequence[Any], kinds: Sequence[str], known: Names
) -> dict[int, tuple[str, torch.Tensor]]:
    """Label and tensor of each leaf, by its index. Those without a name are numbered."""
    leaves: dict[int, tuple[str, torch.Tensor]] = {}
    for index, node in enumerate(live):
        variable = node.variable if kinds[index] == "leaf" else None
        if variable is not None:
            leaves[index] = (known.of(variable) or f"leaf {len(leaves) + 1}", variable)
    return leaves


def _read_beyond(reader: Reader, live: Sequence[Any], saved: list[list[SavedTensor]]) -> list[Any]:
    """Read the graphs that saved tensors keep alive and no edge leads to; return their nodes."""
    met, beyond = set(live) if reader.further else set(), []
    while reader.further:
        found, _ = engine_order(dict.fromkeys(reader.further))
        reader.further = []
        for node in found:
            if node not in met:
                met.add(node)
                beyond.append(node)
                saved.append(reader.saved(len(saved), node.name(), node))
    return beyond


def _edges(links: Edges, count: int) -> tuple[tuple[Edge, ...], dict[int, tuple[int, ...]]]:
    """The edges as data, and by node the slots where none leaves."""
    edges, missing = [], {}
    indices = list(range(count))  # the same number objects in all edges
    for source in indices:
        for slot, (target, input_nr) in enumerate(links.of(source)):
            if target < 0:
                missing[source] = (*missing.get(source, ()), slot)
            else:
                edges.append(Edge(source, indices[target], slot, input_nr))
    return tuple(edges), missing


def _add_recorded(
    reader: Reader,
    live: Sequence[Any],
    opaque: Sequence[int],
    saved: list[list[SavedTensor]],
    recorder: SavedRecorder,
) -> frozenset[int]:
    """Add what a recorder saw opaque nodes save; return those of which it has seen everything."""
    numbers = _torch.sequence_nrs([live[index] for index in opaque])
    by_nr = dict(zip(numbers, opaque, strict=True))
    names = {index: live[index].name() for index in opaque}
    in_place = {nr: index for nr, index in by_nr.items() if is_in_place_on_view(names[index])}
    others = {nr: index for nr, index in by_nr.items() if nr not in in_place}
    for index, one in kept_by_opaque(recorder, in_place, others):
        if one not in reader.recorded:
            place = f"recorded[{len(saved[index])}]"
            saved[index].append(reader.recorded_tensor(index, names[index], place, one))
    return frozenset(
        index
        for nr, index in by_nr.items()
        if recorder.covers(nr)
        and saves_through_hooks(names[index])
        and not (nr in in_place and (nr - 2 in in_place or nr + 2 in in_place))
    )


def _modules(
    known: Names,
    recorder: SavedRecorder | None,
    live: Sequence[Any],
    links: Edges,
    leaves: Mapping[int, tuple[str, torch.Tensor]],
    saved: Sequence[Sequence[SavedTensor]],
) -> tuple[str, Sequence[str | None]]:
    """How the modules of the nodes were found, and the module of each."""
    if known.module is None:
        return "", [None] * len(live)
    names_of_leaves = {
        index: names for index, (_, leaf) in leaves.items() if (names := known.all_of(leaf))
    }
    if recorder is not None:
        paths = recorder.modules(known.module, _torch.sequence_nrs(live))
        for index, names in names_of_leaves.items():
            paths[index] = names[0].rpartition(".")[0]
        return "recorded", paths
    own = {name for name, _ in known.pairs}
    used = {
        index: names
        for index, places in enumerate(saved)
        if (names := [n for s in places if s.owner for n in s.owner.split(" = ") if n in own])
    }
    count = len(links.bounds) - 1
    guessed = modules_by_node([n.name() for n in live[:count]], links, names_of_leaves, used)
    return "guessed", [*guessed, *[None] * (len(live) - count)]


def _unreached(known: Names, leaves: Iterable[tuple[str, torch.Tensor]]) -> tuple[str, ...]:
    """Parameters of the Module that require grad and that no gradient reaches."""
    if known.module is None:
        return ()
    reached = {id(leaf) for _, leaf in leaves}
    return tuple(
        name
        for name, parameter in known.module.named_parameters()
        if parameter.requires_grad and id(parameter) not in reached
    )

"""Makes the ledger of :mod:`autograd_lens.saved_tensors` from live nodes."""

from __future__ import annotations

from typing import Any

import torch

from . import _gc, _torch
from .capture import find_roots, kind_of
from .modules import modules_by_node
from .names import Names
from .saved import Saved, Storages, read_saved, storages_of
from .saved_tensors import OpaqueNode, SavedEntry, SavedTensors
from .walk import Edges, engine_order


def read(outputs: Any, names: Any, inputs: list[tuple[str, torch.Tensor]]) -> SavedTensors:
    """Read the ledger; see :func:`autograd_lens.saved_tensors.saved_tensors`."""
    known = Names(names)
    roots, _ = find_roots(outputs)
    _torch.require()
    with _gc.paused():
        live, edges = engine_order(node for node, _ in roots)
        storages = Storages()
        saved = [
            (number, one) for number, node in enumerate(live) for one in read_saved(node, storages)
        ]
        leaves = {
            number: node.variable
            for number, node in enumerate(live)
            if type(node).__name__ == "AccumulateGrad" and node.variable is not None
        }
        owners = _owners(storages, known, inputs, leaves, names)
        modules = _modules(live, edges, leaves, known, names)
        entries = []
        for number, one in saved:
            if one.kind or one.freed:
                name = live[number].name()
                module = modules[number] if modules else None
                entries.append(_entry(number, name, module, one, owners))
        opaque = tuple(
            OpaqueNode(number, node.name(), "a C++ node that shows nothing of what it saved")
            for number, node in enumerate(live)
            if kind_of(node) == "opaque"
        )
        roles = tuple(owners.get(n, ("activation", None))[0] for n in range(len(storages.sizes)))
        return SavedTensors(tuple(entries), opaque, tuple(storages.sizes), roles, len(live))


def _entry(
    number: int,
    name: str,
    module: str | None,
    saved: Saved,
    owners: dict[int, tuple[str, str | None]],
) -> SavedEntry:
    whose = [owners.get(n, ("activation", None)) for n in saved.storages]
    role = None
    if saved.kind:
        role = next(
            (r for r, _ in whose if r == "activation"), whose[0][0] if whose else "activation"
        )
    return SavedEntry(
        number,
        name,
        name.rpartition("::")[2],
        module,
        saved.field,
        saved.shape,
        saved.dtype,
        saved.device,
        saved.bytes,
        saved.storages,
        saved.storage_bytes,
        role,
        next((owner for _, owner in whose if owner), None),
        saved.saved_version,
        saved.version,
        saved.freed,
        saved.packed,
        saved.kind,
    )


def _owners(
    storages: Storages,
    known: Names,
    inputs: list[tuple[str, torch.Tensor]],
    leaves: dict[int, torch.Tensor],
    names: Any,
) -> dict[int, tuple[str, str | None]]:
    """Role and name of the storages that are not plain activations. The first claim counts."""
    owners: dict[int, tuple[str, str | None]] = {}
    titles: dict[int, list[str]] = {}
    parameters = {id(t) for t in leaves.values()}
    given = {id(tensor) for _, tensor in inputs}
    buffers: set[int] = set()
    if isinstance(names, torch.nn.Module):
        parameters |= {id(t) for t in names.parameters()}
        buffers = {id(t) for t in names.buffers()}

    def claim(tensor: torch.Tensor, role: str | None, name: str | None) -> None:
        for storage in storages_of(tensor):
            number = storages.numbers.get(_torch.storage_key(storage))
            if number is None:
                continue
            if name and name not in titles.setdefault(number, []):
                titles[number].append(name)
            if role:
                owners.setdefault(number, (role, None))

    for name, tensor in known.pairs:
        if id(tensor) in buffers:
            claim(tensor, "buffer", name)
        elif isinstance(tensor, torch.nn.Parameter) or (
            id(tensor) in parameters and id(tensor) not in given
        ):
            claim(tensor, "parameter", name)
        else:
            claim(tensor, None, name)
    for name, tensor in inputs:
        role = "parameter" if isinstance(tensor, torch.nn.Parameter) else "input"
        claim(tensor, role, known.of(tensor) or name)
    unnamed = 0
    for leaf in leaves.values():
        unnamed_leaf = known.of(leaf) is None and id(leaf) not in given
        unnamed += unnamed_leaf
        claim(leaf, "parameter", f"leaf {unnamed}" if unnamed_leaf else None)
    return {
        number: (
            owners.get(number, ("activation", None))[0],
            " = ".join(titles.get(number, [])) or None,
        )
        for number in {*owners, *titles}
    }


def _modules(
    live: list[Any], edges: Edges, leaves: dict[int, torch.Tensor], known: Names, names: Any
) -> list[str] | None:
    if not isinstance(names, torch.nn.Module):
        return None
    paths: dict[int, list[str]] = {}
    for name, tensor in known.pairs:
        paths.setdefault(id(tensor), []).append(name)
    return modules_by_node(
        [node.name() for node in live],
        edges,
        {number: paths[id(leaf)] for number, leaf in leaves.items() if id(leaf) in paths},
    )

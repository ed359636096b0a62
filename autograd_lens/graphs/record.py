"""What was read of a graph, as plain data: nodes, edges, hooks, leaves, outputs, storages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from ..saving.record import SavedTensor, Storage


@dataclass(frozen=True, slots=True)
class Output:
    """One output of the operation that a node recorded: where a gradient comes in.

    Attributes:
        shape, dtype: of the tensor in the forward pass; shape is None where it has none.
        name: the reader's name for that tensor, or None.
        given: the tensor is one of the ``outputs`` that the graph was asked for.
    """

    shape: tuple[int, ...] | None
    dtype: torch.dtype | None
    name: str | None = None
    given: bool = False


@dataclass(frozen=True, slots=True)
class Leaf:
    """The tensor behind an ``AccumulateGrad`` node.

    Attributes:
        shape, dtype, device: of the tensor.
        bytes: size of its storages in bytes; ``storages`` their numbers in this graph.
        parameter: it is a ``torch.nn.Parameter``.
        version: its version counter, None if it has none.
        grad: shape of its ``.grad``, or None when ``.grad`` is None.
        grad_values: the elements of ``.grad`` as nested tuples if there are few, else None.
    """

    shape: tuple[int, ...]
    dtype: torch.dtype
    device: str
    bytes: int
    storages: tuple[int, ...]
    parameter: bool
    version: int | None
    grad: tuple[int, ...] | None
    grad_values: Any = None


@dataclass(frozen=True, slots=True)
class Hook:
    """A hook that a tensor carries.

    Attributes:
        kind: ``"tensor"`` (``register_hook``), ``"post-accumulate"``
            (``register_post_accumulate_grad_hook``) or ``"retain_grad"``.
        target: the name of the tensor.
        order: its place among the hooks of its kind and target: 0 is called first.
        function: the qualified name of what is called; empty where nothing of the reader's is.
    """

    kind: str
    target: str
    order: int
    function: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """One node of the graph.

    Attributes:
        index: position in engine order (see :mod:`autograd_lens.graphs.order`); edges go from a
            smaller index to a larger one.
        name: ``grad_fn.name()``.
        kind: ``"op"``, ``"leaf"``, ``"custom"`` (a Python Function), ``"compiled"``
            (``torch.compile``) or ``"opaque"`` (a C++ node that shows nothing of itself).
        label: what to call it: the leaf's name, else the node's own.
        module: path of the module that made it, ``""`` for the model itself; None where nothing is
            known of modules. Exact under a recorder, else a guess: see ``Reading.modules``.
        sequence_nr: creation number in its thread, by which the engine orders ready nodes;
            None for a leaf, which runs as soon as it is ready.
        formula: ``{input: formula}`` from the installed ``derivatives.yaml``.
        hooks: hooks of the leaf, or of named tensors that it made; others can't be seen.
        saved: what it saved, one entry per place.
        attributes: what it keeps besides tensors, as ``(name, text)``.
        outputs: the outputs of its operation, by number.
        no_grad_inputs: positions of the inputs that need no gradient (no edge leaves there).
        leaf: the tensor, for a leaf.
    """

    index: int
    name: str
    kind: str
    label: str
    module: str | None
    sequence_nr: int | None
    formula: Mapping[str, str]
    hooks: tuple[Hook, ...]
    saved: tuple[SavedTensor, ...]
    attributes: tuple[tuple[str, str], ...]
    outputs: tuple[Output, ...]
    no_grad_inputs: tuple[int, ...]
    leaf: Leaf | None


@dataclass(frozen=True, slots=True)
class Edge:
    """The way of a gradient from node ``source`` to node ``target`` (indices).

    Attributes:
        slot: position among the gradients that ``source`` returns.
        input_nr: which output of ``target``'s operation the gradient belongs to.
    """

    source: int
    target: int
    slot: int
    input_nr: int


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read of a graph, once: graph, ledger and recording are views of it.

    Attributes:
        nodes: all that can be reached from the outputs, in engine order.
        beyond: nodes that no edge leads to, and that a saved tensor keeps alive with its own graph;
            their indices go on after those of ``nodes``.
        edges: those between ``nodes``, in order of source and slot.
        storages: by number: first those of saved tensors, in the order of the nodes, then those of
            leaves that nobody saved.
        kept: how many of the storages saved tensors keep alive: the first ones.
        modules: how ``Node.module`` was found: ``"recorded"``, ``"guessed"``, or ``""``.
        unreached: names of parameters of the given Module that require grad and are not in the
            graph.
        recorded: indices of the opaque nodes of which a recorder has seen everything.
        plain_outputs: how many of the given outputs have no graph.
    """

    nodes: tuple[Node, ...]
    beyond: tuple[Node, ...]
    edges: tuple[Edge, ...]
    storages: tuple[Storage, ...]
    kept: int
    modules: str
    unreached: tuple[str, ...]
    recorded: frozenset[int]
    plain_outputs: int

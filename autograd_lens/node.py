"""What a graph is made of, as plain data: nodes, edges, leaves, outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from .saved import Saved


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
class Node:
    """One node of the graph.

    Attributes:
        index: position in engine order (see :mod:`autograd_lens.walk`); edges go from a smaller
            index to a larger one.
        name: ``grad_fn.name()``.
        kind: ``"op"``, ``"leaf"``, ``"custom"`` (a Python Function), ``"compiled"``
            (``torch.compile``) or ``"opaque"`` (a C++ node that shows nothing of itself).
        label: what to call it: the leaf's name, else the node's own.
        sequence_nr: creation number in its thread, by which the engine orders ready nodes;
            None for a leaf, which runs as soon as it is ready.
        formula: ``{input: formula}`` from the installed ``derivatives.yaml``.
        hooks: hooks that can be seen, in words.
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
    sequence_nr: int | None
    formula: Mapping[str, str]
    hooks: tuple[str, ...]
    saved: tuple[Saved, ...]
    attributes: tuple[tuple[str, str], ...]
    outputs: tuple[Output, ...]
    no_grad_inputs: tuple[int, ...]
    leaf: Leaf | None


@dataclass(frozen=True, slots=True)
class Edge:
    """A gradient's way: from node ``source`` to node ``target`` (indices).

    Attributes:
        slot: position among the gradients that ``source`` returns.
        input_nr: which output of ``target``'s operation the gradient belongs to.
    """

    source: int
    target: int
    slot: int
    input_nr: int

"""Run one call and say what its backward will hold: the rows of the atlas are made by this.

Knows tensors and nodes, and nothing of the op database. What a node saves is compared with what
went in and what came out by storage, and then by shape, strides and offset: the same storage read
in another way is a view. What is in neither was made in between.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.autograd import forward_ad

from .. import _torch
from ..graphs.order import engine_order
from ..saving.saved import kept_by
from ..saving.storages import Storages, element_bytes, shape_of, storages_of

KINDS = ("input", "output", "intermediate", "indices", "mask")
"""What a saved tensor can be. The first three say where it comes from, and every saved tensor is
one of them; the last two say that it holds integers or booleans, wherever it comes from."""


class NoGraph(ValueError):
    """The call recorded no graph; the message says why."""


@dataclass(frozen=True)
class Observed:
    """What one call recorded.

    Attributes:
        nodes: ``(name, {field: what it is})`` in the order of backward, without leaves.
            ``"input 0 float64 (5, 5)"`` is the first tensor that went in, ``"view of output 1 …"``
            another reading of the second that came out, ``"intermediate …"`` neither.
        kinds: those of :data:`KINDS` that are saved; empty when nothing is.
        bytes: of the saved storages, each counted once, by where they come from.
        output_bytes: of the elements of all outputs.
        view: what the outputs are: ``"new"`` memory, a ``"view"`` of an input, the ``"input"``
            itself; several words where outputs differ.
        backward: whether backward runs; there are nodes that only raise.
        double: whether backward can be differentiated once more. None where its result has no
            graph: nothing depends on the input or on the gradient that comes in.
        forward: whether forward-mode differentiation gives a tangent.
    """

    nodes: tuple[tuple[str, dict[str, str]], ...]
    kinds: tuple[str, ...]
    bytes: dict[str, int] = field(default_factory=dict)
    output_bytes: int = 0
    view: str = "new"
    backward: bool = False
    double: bool | None = False
    forward: bool = False


def observe(
    call: Callable[..., Any],
    *args: Any,
    differentiated: Callable[[Any], Any] = lambda result: result,
    **kwargs: Any,
) -> Observed:
    """Run ``call(*args, **kwargs)`` and return what its backward holds.

    ``differentiated`` turns the result into what may be differentiated, where not all of it may:
    an eigenvector has a gradient only up to its phase.

    Raises:
        NoGraph: no output of the call has a graph.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on prototypes and on names that will go
        inputs = _torch.tensors_in((args, kwargs))
        if not inputs:
            raise NoGraph("takes no tensor")
        if not _differentiable(inputs):
            raise NoGraph("has no input that requires grad")
        result = call(*args, **kwargs)
        outputs = _torch.tensors_in(result)
        roots = [tensor.grad_fn for tensor in outputs if tensor.grad_fn is not None]
        if not roots:
            raise NoGraph(_why_no_graph(inputs, outputs))
        nodes, kinds, sizes = _saved(roots, inputs, outputs)
        backward, double = _backward(call, args, kwargs, differentiated)
        return Observed(
            nodes,
            kinds,
            sizes,
            sum(map(element_bytes, outputs)),
            _view(inputs, outputs),
            backward,
            double,
            _forward(call, args, kwargs),
        )


def _why_no_graph(inputs: list[torch.Tensor], outputs: list[torch.Tensor]) -> str:
    if not outputs:
        return "returns no tensor"
    if not any(tensor.is_floating_point() or tensor.is_complex() for tensor in outputs):
        return "returns integers or booleans only"
    if all(any(output is tensor for tensor in inputs) for output in outputs):
        return "returns its input itself"
    return "returns new numbers without a graph"


def _saved(
    roots: list[Any], inputs: list[torch.Tensor], outputs: list[torch.Tensor]
) -> tuple[tuple[tuple[str, dict[str, str]], ...], tuple[str, ...], dict[str, int]]:
    """Nodes with what they save, the kinds of it, and bytes by origin."""
    storages, order = Storages(), engine_order(dict.fromkeys(roots))[0]
    origins: dict[int, str] = {}
    for word, tensors in (("input", inputs), ("output", outputs)):
        for tensor in tensors:
            for number in storages.of(tensor):
                origins.setdefault(number, word)
    nodes, kinds, sizes = [], set(), {}
    for node in order:
        if node.name() == "torch::autograd::AccumulateGrad":
            continue
        found = {}
        for place, tensor in kept_by(node, set()):
            words = _what(tensor, inputs, outputs)
            found[place] = f"{words} {str(tensor.dtype)[6:]} {shape_of(tensor)}"
            kinds.add(words.split()[-2] if words[-1].isdigit() else words)
            if tensor.dtype == torch.bool:
                kinds.add("mask")
            elif not (tensor.is_floating_point() or tensor.is_complex()):
                kinds.add("indices")
            for number in storages.of(tensor):
                sizes[number] = storages.sizes[number]
        nodes.append((node.name(), dict(sorted(found.items()))))
    by_origin: dict[str, int] = {}
    for number, size in sizes.items():
        origin = origins.get(number, "intermediate")
        by_origin[origin] = by_origin.get(origin, 0) + size
    return (
        tuple(nodes),
        tuple(kind for kind in KINDS if kind in kinds),
        dict(sorted(by_origin.items())),
    )


def _what(tensor: torch.Tensor, inputs: list[torch.Tensor], outputs: list[torch.Tensor]) -> str:
    """Which input or output a saved tensor is, or of which it is a view."""
    for same, word in ((_same, ""), (_shares, "view of ")):
        for name, tensors in (("input", inputs), ("output", outputs)):
            for number, other in enumerate(tensors):
                if same(tensor, other):
                    return f"{word}{name} {number}"
    return "intermediate"


def _keys(tensor: torch.Tensor) -> set[int]:
    return {_torch.storage_key(storage) for storage in storages_of(tensor) if storage.nbytes()}


def _shares(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    return not _keys(tensor).isdisjoint(_keys(other))


def _same(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors read the same storage in the same way."""
    if tensor.layout != other.layout or tensor.shape != other.shape or not _shares(tensor, other):
        return False
    if tensor.layout != torch.strided or tensor.is_nested:
        return True
    return (tensor.dtype, tensor.stride(), tensor.storage_offset()) == (
        other.dtype,
        other.stride(),
        other.storage_offset(),
    )


def _view(inputs: list[torch.Tensor], outputs: list[torch.Tensor]) -> str:
    words = set()
    for output in outputs:
        if any(output is tensor for tensor in inputs):
            words.add("input")
        elif any(_shares(output, tensor) for tensor in inputs):
            words.add("view")
        else:
            words.add("new")
    return " or ".join(sorted(words))


def _differentiable(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    return [tensor for tensor in tensors if tensor.requires_grad]


def _backward(call: Any, args: Any, kwargs: Any, differentiated: Any) -> tuple[bool, bool | None]:
    """Run backward; then again, to differentiate it by the inputs and by what came in."""
    inputs = _differentiable(_torch.tensors_in((args, kwargs)))

    def first(again: bool) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        result = differentiated(call(*args, **kwargs))
        outputs = [one for one in _torch.tensors_in(result) if one.grad_fn is not None]
        incoming = [torch.ones_like(one).requires_grad_(again) for one in outputs]
        found = torch.autograd.grad(
            outputs, inputs, incoming, create_graph=again, allow_unused=True
        )
        return incoming, _differentiable([one for one in found if one is not None])

    try:
        first(again=False)
    except RuntimeError:
        return False, False
    try:
        incoming, gradients = first(again=True)
        if not gradients:
            return True, None
        ones = [torch.ones_like(one) for one in gradients]
        torch.autograd.grad(gradients, [*inputs, *incoming], ones, allow_unused=True)
    except RuntimeError:
        return True, False
    return True, True


def _forward(call: Any, args: Any, kwargs: Any) -> bool:
    """Whether a tangent that goes in with every differentiable input comes out."""

    def dual(tensor: Any) -> Any:
        if not isinstance(tensor, torch.Tensor) or not tensor.requires_grad:
            return tensor
        plain = tensor.detach()
        return forward_ad.make_dual(plain, torch.ones_like(plain))

    with forward_ad.dual_level():
        try:
            args, kwargs = _torch.tree_map(dual, (args, kwargs))
            outputs = _torch.tensors_in(call(*args, **kwargs))
            return any(forward_ad.unpack_dual(one).tangent is not None for one in outputs)
        except RuntimeError:  # NotImplementedError is one
            return False

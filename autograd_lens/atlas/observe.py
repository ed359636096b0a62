"""Run one call and say what its backward will hold: the rows of the atlas are made by this.

Knows tensors and nodes, and nothing of the op database. Nodes are read by
:func:`autograd_lens.saving.saved.kept_by`; :mod:`autograd_lens.atlas.origins` says which tensor it
is that a node keeps.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.autograd import forward_ad

from .. import _torch
from ..graphs.kinds import kind_of
from ..graphs.order import engine_order
from ..saving.saved import kept_by
from ..saving.storages import Storages, element_bytes, shape_of
from .origins import Known, is_index, numbered, of_module, origin, shares_memory

KINDS = (
    "input",
    "parameter",
    "buffer",
    "output",
    "intermediate",
    "indices",
    "mask",
    "hidden",
)
"""What a saved tensor can be. The first five say where it comes from, and every saved tensor is
one of them. ``"indices"`` says that it chooses elements, ``"mask"`` that it holds booleans,
wherever it comes from. ``"hidden"`` says that a node does not show what it saves; ``CopySlices`` is
one."""

HIDDEN = {"hidden": "this node does not show what it saves"}
"""What stands in place of the fields of such a node."""


class NoGraph(ValueError):
    """The call recorded no graph; the message says why."""


@dataclass(frozen=True)
class Observed:
    """What one call recorded.

    Attributes:
        nodes: ``(name, {field: what it is})`` in the order of backward, without leaves and without
            what was recorded before the call. ``"input 0 float64 (5, 5)"`` is the first tensor
            that went in, ``"parameter weight …"`` that of the module which was called, ``"view of
            output 1 …"`` another reading of the second that came out, ``"intermediate …"`` none of
            these. A node that does not show what it saves has :data:`HIDDEN` for its fields.
        kinds: those of :data:`KINDS` that are saved; empty when nothing is.
        bytes: of the saved storages, each counted once, by where they come from. What is hidden is
            not among them.
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

    The call runs four times, so it must not write to what goes in. Where ``call`` is a
    ``torch.nn.Module``, its parameters and buffers are told by their names; the parameters go in
    like the inputs.

    ``differentiated`` turns the result into what may be differentiated, where not all of it may:
    an eigenvector has a gradient only up to its phase.

    Raises:
        NoGraph: no output of the call has a graph.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on prototypes and on names that will go
        inputs = _torch.tensors_in((args, kwargs))
        module = of_module(call if isinstance(call, torch.nn.Module) else None)
        _refuse_without_inputs([*inputs, *(one.tensor for one in module)])
        before = set(_nodes(inputs))
        result = call(*args, **kwargs)
        outputs = _torch.tensors_in(result)
        nodes = [node for node in _nodes(outputs) if node not in before]
        if not any(output.grad_fn is not None for output in outputs):
            raise NoGraph(_why_no_graph(inputs, outputs))
        known = [*numbered("input", inputs), *module]
        known += numbered("parameter", _other_leaves(nodes, known))
        fields, kinds, sizes = _saved(nodes, [*known, *numbered("output", outputs)])
        asked = _differentiable(one.tensor for one in known)
        backward, double = _backward(lambda: differentiated(call(*args, **kwargs)), asked)
        return Observed(
            fields,
            kinds,
            sizes,
            sum(map(element_bytes, outputs)),
            _view(inputs, outputs),
            backward,
            double,
            _forward(call, args, kwargs),
        )


def _refuse_without_inputs(inputs: list[torch.Tensor]) -> None:
    if not inputs:
        raise NoGraph("takes no tensor")
    if not _differentiable(inputs):
        raise NoGraph("has no input that requires grad")


def _why_no_graph(inputs: list[torch.Tensor], outputs: list[torch.Tensor]) -> str:
    if not outputs:
        return "returns no tensor"
    if not any(tensor.is_floating_point() or tensor.is_complex() for tensor in outputs):
        return "returns integers or booleans only"
    if all(any(output is tensor for tensor in inputs) for output in outputs):
        return "returns its input itself"
    return "returns new numbers without a graph"


def _nodes(tensors: list[torch.Tensor]) -> list[Any]:
    """The nodes behind tensors, in the order of backward."""
    roots = [tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None]
    return engine_order(dict.fromkeys(roots))[0] if roots else []


def _other_leaves(nodes: list[Any], known: list[Known]) -> list[torch.Tensor]:
    """Leaves of the graph that were not given: a function has them from elsewhere."""
    given = {id(one.tensor) for one in known}
    leaves = [node.variable for node in nodes if kind_of(node) == "leaf"]
    return [leaf for leaf in leaves if id(leaf) not in given]


def _saved(
    nodes: list[Any], known: list[Known]
) -> tuple[tuple[tuple[str, dict[str, str]], ...], tuple[str, ...], dict[str, int]]:
    """Nodes with what they save, the kinds of it, and bytes by origin."""
    storages = Storages()
    origins: dict[int, str] = {}
    for one in known:
        for number in storages.of(one.tensor):
            origins.setdefault(number, one.kind)
    found, kinds, sizes = [], set(), {}
    for node in nodes:
        kind = kind_of(node)
        if kind == "leaf":
            continue
        fields = dict(HIDDEN) if kind == "opaque" else {}
        kinds.update(fields)
        for place, tensor in kept_by(node, set()):
            comes_from, words = origin(tensor, known)
            fields[place] = f"{words} {str(tensor.dtype)[6:]} {shape_of(tensor)}"
            kinds.add(comes_from)
            if tensor.dtype == torch.bool:
                kinds.add("mask")
            elif is_index(node.name(), place, tensor.dtype):
                kinds.add("indices")
            for number in storages.of(tensor):
                sizes[number] = storages.sizes[number]
        found.append((node.name(), dict(sorted(fields.items()))))
    by_origin: dict[str, int] = {}
    for number, size in sizes.items():
        kind = origins.get(number, "intermediate")
        by_origin[kind] = by_origin.get(kind, 0) + size
    return (
        tuple(found),
        tuple(kind for kind in KINDS if kind in kinds),
        dict(sorted(by_origin.items())),
    )


def _view(inputs: list[torch.Tensor], outputs: list[torch.Tensor]) -> str:
    words = set()
    for output in outputs:
        if any(output is tensor for tensor in inputs):
            words.add("input")
        elif any(shares_memory(output, tensor) for tensor in inputs):
            words.add("view")
        else:
            words.add("new")
    return " or ".join(sorted(words))


def _differentiable(tensors: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    return [tensor for tensor in tensors if tensor.requires_grad]


def _backward(call: Callable[[], Any], inputs: list[torch.Tensor]) -> tuple[bool, bool | None]:
    """Run backward; then again, to differentiate it by the inputs and by what came in."""

    def first(again: bool) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        outputs = [one for one in _torch.tensors_in(call()) if one.grad_fn is not None]
        incoming = [torch.ones_like(one).requires_grad_(again) for one in outputs]
        found = torch.autograd.grad(
            outputs, inputs, incoming, create_graph=again, allow_unused=True
        )
        return incoming, _differentiable(one for one in found if one is not None)

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
            if isinstance(call, torch.nn.Module):
                parameters = {name: dual(one) for name, one in call.named_parameters()}
                result = torch.func.functional_call(call, parameters, args, kwargs)
            else:
                result = call(*args, **kwargs)
            outputs = _torch.tensors_in(result)
            return any(forward_ad.unpack_dual(one).tangent is not None for one in outputs)
        except RuntimeError:  # NotImplementedError is one
            return False

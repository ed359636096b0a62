"""From live nodes to data: describe everything reachable from some outputs.

Rests on ``torch/csrc/autograd/node.h`` and ``edge.h``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import torch

from . import _gc, _torch
from .formulas import formula
from .gradient import small_values
from .names import Names
from .node import Edge, Leaf, Node, Output
from .saved import read_saved
from .storages import Storages, shape_of
from .walk import Edges, engine_order


@dataclass(frozen=True)
class Captured:
    """A graph as data, with the live nodes in the same order: not to be kept.

    Attributes:
        nodes, edges, storage_bytes, storage_names: as in :class:`autograd_lens.graph.GradGraph`.
        live: the ``grad_fn`` objects, by index.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    storage_bytes: tuple[int, ...]
    storage_names: dict[int, str]
    live: list[Any]


def find_roots(outputs: Any) -> tuple[list[tuple[Any, int]], list[torch.Tensor]]:
    """Return ``(node, output_nr)`` of each output with a graph, and the outputs without one.

    Raises:
        TypeError, ValueError: as :func:`autograd_lens.graph.graph` has them.
    """
    tensors, nodes = _torch.tensors_and_nodes_in(outputs)
    if not tensors and not nodes:
        raise no_tensor(outputs)
    tensors = [_torch.with_graph(tensor) for tensor in tensors]
    roots = [(node, 0) for node in nodes]
    roots += [(t.grad_fn, t.output_nr) for t in tensors if t.grad_fn is not None]
    plain = [t for t in tensors if t.grad_fn is None]
    if not roots:
        raise ValueError(_why_no_graph(plain))
    for leaf in [t for t in plain if t.requires_grad]:
        edge = torch.autograd.graph.get_gradient_edge(leaf)
        roots.append((edge.node, edge.output_nr))
    return list(dict.fromkeys(roots)), [t for t in plain if not t.requires_grad]


def no_tensor(outputs: Any, what: str = "pass") -> TypeError:
    """The error for ``outputs`` in which there is nothing to look at."""
    kind = type(outputs).__name__
    empty = isinstance(outputs, (list, tuple, dict))
    return TypeError(
        f"{what} a tensor, or any nesting of lists, tuples and dicts with tensors in it; "
        + (f"in this {kind} there is none" if empty else f"not {kind}")
    )


def _why_no_graph(tensors: list[torch.Tensor]) -> str:
    tensor = tensors[0]
    several = f"none of the {len(tensors)} tensors has a graph to show: of the first, "
    if tensor.is_inference():
        why = "it is an inference tensor, made under torch.inference_mode(), which records nothing"
    elif not (tensor.is_floating_point() or tensor.is_complex()):
        why = f"its dtype is {tensor.dtype}, and only floating-point and complex tensors have one"
    elif tensor.requires_grad:
        why = "it is a leaf, so nothing has been computed from it yet; pass a result"
    else:
        why = (
            "it does not require grad: it was made from tensors that don't, or under "
            "torch.no_grad(), or detached"
        )
    return ("the tensor has no graph to show: " if len(tensors) == 1 else several) + why


def capture(roots: list[tuple[Any, int]], known: Names) -> Captured:
    """Describe the graph below ``roots``, the ``(node, output_nr)`` of the outputs."""
    _torch.require()
    with _gc.paused():
        live, links = engine_order(node for node, _ in roots)
        hooks = _tensor_hooks(known)
        storages = Storages()
        describe = _Describer(known, set(roots), storages)
        indices = list(range(len(live)))  # the same number objects in nodes and edges
        edges, no_grad_inputs = _edges(links, indices)
        numbers = _torch.sequence_nrs(live)
        nodes = tuple(
            [
                describe(k, node, no_grad_inputs.get(k, ()), hooks.get(node, ()), nr)
                for k, node, nr in zip(indices, live, numbers, strict=True)
            ]
        )
        sizes = tuple(storages.sizes)
        return Captured(nodes, edges, sizes, _storage_names(nodes, known, storages), live)


def _edges(links: Edges, indices: list[int]) -> tuple[tuple[Edge, ...], dict[int, tuple[int, ...]]]:
    """The edges as data, and by node the slots where none leaves."""
    edges, missing = [], {}
    bounds, targets, input_nrs = links.bounds, links.targets, links.input_nrs
    for source in indices:
        start = bounds[source]
        for place in range(start, bounds[source + 1]):
            if targets[place] < 0:
                missing[source] = (*missing.get(source, ()), place - start)
            else:
                target = indices[targets[place]]
                edges.append(Edge(source, target, place - start, input_nrs[place]))
    return tuple(edges), missing


class _Describer:
    """Makes a :class:`Node` of a live one; counts leaves for those without a name."""

    def __init__(self, known: Names, given: set[tuple[Any, int]], storages: Storages):
        self._known = known
        self._given = given
        self._given_nodes = {node for node, _ in given}
        self._storages = storages
        self._leaves = 0
        # Most nodes of a large graph are alike: equal parts of them are stored once.
        self._plain: dict[Any, tuple[Output, ...]] = {}
        self._alike: dict[Any, Any] = {}

    def __call__(
        self,
        index: int,
        node: Any,
        no_grad_inputs: tuple[int, ...],
        hooks: tuple[str, ...],
        sequence_nr: int,
    ) -> Node:
        has_attributes = _traits(type(node))[1]
        name = label = node.name()
        if "::" in name:
            label = name.rpartition("::")[2]
        kind = kind_of(node)
        variable = node.variable if kind == "leaf" else None
        if variable is not None:
            self._leaves += 1
            label = self._known.of(variable) or f"leaf {self._leaves}"
            hooks += _count_hooks(variable, "")
        return Node(
            index,
            name,
            kind,
            label,
            sequence_nr if sequence_nr < 2**63 else None,
            formula(name),
            hooks,
            read_saved(node, self._storages),
            self._alike.setdefault(kept := _attributes(node), kept) if has_attributes else (),
            self._outputs(node),
            no_grad_inputs,
            None if variable is None else _leaf(variable, self._storages),
        )

    def _outputs(self, node: Any) -> tuple[Output, ...]:
        described = _torch.outputs_of(node)
        if self._known.intermediates or node in self._given_nodes:
            return tuple(
                Output(*one, self._known.at(node, nr), (node, nr) in self._given)
                for nr, one in enumerate(described)
            )
        if described not in self._plain:
            self._plain[described] = tuple(Output(*one) for one in described)
        return self._plain[described]


_EMPTY = re.compile(
    r"(torch::autograd::)?(Copy|Identity|GraphRoot|UndefinedGrad|(Warn)?NotImplemented|(Delayed)?Error"
    r"|Scatter|Gather)(Backwards?)?$"
)
"""C++ nodes without fields that save no tensor. Of any other it is not known: ``CopySlices``, those
of ``_foreach_*``, of C++ extensions and of TorchScript do save some, and don't show them."""


def kind_of(node: Any) -> str:
    """The kind of a live node, as :class:`Node` has it."""
    kind = _traits(type(node))[0]
    if kind == "c++":
        return "op" if _EMPTY.match(node.name()) else "opaque"
    return kind


def _traits(kind: type) -> tuple[str, bool]:
    """What nodes of this class have in common: kind, and whether they keep more than tensors."""
    if _torch.is_python(kind):
        word = "compiled" if kind.__name__ == "CompiledFunctionBackward" else "custom"
    else:
        special = {"AccumulateGrad": "leaf", "CopySlices": "c++", "CppFunction": "c++"}
        word = special.get(kind.__name__, "op")
    return word, bool(_torch.plain_fields(kind))


def _storage_names(nodes: tuple[Node, ...], known: Names, storages: Storages) -> dict[int, str]:
    """Whose memory a storage is, for the storages of the graph."""
    named: dict[int, str] = {}
    met = len(storages.sizes)
    for name, tensor in known.pairs:
        for number in storages.of(tensor):
            if number < met:  # else the graph does not use it
                named.setdefault(number, name)
    for node in nodes:
        if node.leaf is not None:
            for number in node.leaf.storages:
                named.setdefault(number, node.label)
    return named


def _leaf(variable: torch.Tensor, storages: Storages) -> Leaf:
    numbers = storages.of(variable)
    grad = variable.grad
    return Leaf(
        shape_of(variable),
        variable.dtype,
        str(variable.device),
        sum(storages.sizes[n] for n in numbers),
        numbers,
        isinstance(variable, torch.nn.Parameter),
        _torch.version(variable),
        None if grad is None else shape_of(grad),
        None if grad is None else small_values(grad),
    )


def _attributes(node: Any) -> tuple[tuple[str, str], ...]:
    found = []
    for name in _torch.plain_fields(type(node)):
        try:
            value = _torch.plain_value(node, name)
        except RuntimeError:  # released with the tensors
            continue
        found.append((name, repr(_signed(value))))
    return tuple(found)


def _signed(value: Any) -> Any:
    """PyTorch hands a negative dimension out as an unsigned number."""
    if isinstance(value, tuple):
        return tuple(map(_signed, value))
    return value - 2**64 if isinstance(value, int) and value >= 2**63 else value


def _tensor_hooks(known: Names) -> dict[Any, tuple[str, ...]]:
    """Hooks of the intermediate tensors that the reader named: only the tensor tells of them."""
    found: dict[Any, tuple[str, ...]] = {}
    for tensor in known.intermediates:
        name = known.at(tensor.grad_fn, tensor.output_nr)
        words = _count_hooks(tensor, f" on {name}")
        if tensor.retains_grad:
            words += (f"{name} retains its grad",)
        found[tensor.grad_fn] = found.get(tensor.grad_fn, ()) + words
    return found


def _count_hooks(tensor: torch.Tensor, where: str) -> tuple[str, ...]:
    words = zip(_torch.hook_counts(tensor), ("tensor hook", "post-accumulate hook"), strict=True)
    return tuple(f"{n} {word}{'s' if n > 1 else ''}{where}" for n, word in words if n)

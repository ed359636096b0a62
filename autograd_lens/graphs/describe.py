"""Makes a :class:`~autograd_lens.graphs.record.Node` of a live one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from .. import _torch
from ..saving.names import Names
from ..saving.record import SavedTensor
from ..saving.storages import Storages, shape_of
from ..saving.values import small_values
from .formulas import formula
from .record import Hook, Leaf, Node, Output


class Describer:
    """Describes the nodes of one graph; equal parts of them are stored once."""

    def __init__(
        self,
        roots: Sequence[tuple[Any, int]],
        known: Names,
        hooks: Mapping[Any, tuple[Hook, ...]],
        storages: Storages,
    ):
        self._given = set(roots)
        self._given_nodes = {node for node, _ in roots}
        self._known = known
        self._hooks = hooks
        self._storages = storages
        self._plain: dict[Any, tuple[Output, ...]] = {}
        self._alike: dict[Any, Any] = {}

    def __call__(
        self,
        index: int,
        node: Any,
        kind: str,
        module: str | None,
        saved: Sequence[SavedTensor],
        no_grad_inputs: tuple[int, ...],
        leaf: tuple[str, torch.Tensor] | None,
    ) -> Node:
        """The node as data; ``leaf`` is the label and the tensor of a leaf."""
        name = node.name()
        number = _torch.sequence_nrs([node])[0]
        hooks = self._hooks.get(node, ())
        if leaf is not None:
            hooks += hooks_of(leaf[1], leaf[0])
        return Node(
            index,
            name,
            kind,
            leaf[0] if leaf else name.rpartition("::")[2],
            module,
            number if number < 2**63 else None,
            formula(name),
            hooks,
            tuple(saved),
            self._once(_attributes(node)),
            self._outputs(node),
            no_grad_inputs,
            self._leaf(leaf[1]) if leaf else None,
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

    def _leaf(self, variable: torch.Tensor) -> Leaf:
        numbers, grad = self._storages.of(variable), variable.grad
        return Leaf(
            shape_of(variable),
            variable.dtype,
            str(variable.device),
            sum(self._storages.sizes[number] for number in numbers),
            numbers,
            isinstance(variable, torch.nn.Parameter),
            _torch.version(variable),
            None if grad is None else shape_of(grad),
            None if grad is None else small_values(grad),
        )

    def _once(self, part: Any) -> Any:
        """An equal part that was met before; most nodes of a large graph are alike."""
        return self._alike.setdefault(part, part)


def _attributes(node: Any) -> tuple[tuple[str, str], ...]:
    """What a node keeps besides tensors, as text."""
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


def hooks_of_intermediates(known: Names) -> dict[Any, tuple[Hook, ...]]:
    """Hooks of the named intermediate tensors, by node: only the tensor tells of them."""
    found: dict[Any, tuple[Hook, ...]] = {}
    for tensor in known.intermediates:
        name = known.at(tensor.grad_fn, tensor.output_nr)
        hooks = hooks_of(tensor, name)
        if tensor.retains_grad:
            hooks += (Hook("retain_grad", name, 0),)
        found[tensor.grad_fn] = found.get(tensor.grad_fn, ()) + hooks
    return found


def hooks_of(tensor: torch.Tensor, name: str) -> tuple[Hook, ...]:
    """The hooks that a tensor carries."""
    kinds = zip(("tensor", "post-accumulate"), _torch.hooks(tensor), strict=True)
    return tuple(
        Hook(kind, name, order, _function(hook))
        for kind, hooks in kinds
        for order, hook in enumerate(hooks)
    )


def _function(hook: Callable[..., Any]) -> str:
    return getattr(hook, "__qualname__", type(hook).__qualname__)

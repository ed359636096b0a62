"""What memory is for: snapshots of the storages that tensors of a known role have now.

A snapshot names storages by address and keeps no tensor. Roles are told by who holds the memory:
a module or an optimizer its parameters, ``.grad`` a gradient, an optimizer its state, a graph its
activations. What a node keeps out of sight (``CopySlices``, ``_foreach_*``) is not seen here.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from . import _torch
from .names import Names
from .raw import kept_by
from .storages import shape_of, storages_of
from .walk import engine_order

ROLES = (
    "parameter",
    "buffer",
    "input",
    "optimizer",
    "gradient",
    "activation",
    "kept",
    "temporary",
)
"""All roles, from what lives longest to what lives shortest."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Whose memory a storage is: role, words for it, and the tensor that was seen."""

    role: str
    bytes: int
    name: str
    shape: tuple[int | str, ...] | None
    dtype: torch.dtype | None


Claims = dict[int, Claim]
"""Claims by address of the storage."""


class Roles:
    """Takes snapshots on one device, and remembers parameters and their names, weakly."""

    def __init__(
        self, device: str, known: Names, met: Callable[[str, int, torch.UntypedStorage], None]
    ):
        """Take the names, and a function to tell of each storage: role, address, storage."""
        self.device = device
        self.met = met
        self._named: dict[int, tuple[weakref.ref, str]] = {}
        self._leaves: dict[int, weakref.ref] = {}
        for name, tensor in known.pairs:
            self.name(tensor, name)

    def name(self, tensor: torch.Tensor, name: str) -> None:
        """Remember a name, unless the tensor has one."""
        if not self.name_of(tensor):
            self._named[id(tensor)] = weakref.ref(tensor), name

    def name_of(self, tensor: torch.Tensor) -> str:
        """The name of this tensor object, or an empty text."""
        who, name = self._named.get(id(tensor), (None, ""))
        return name if who is not None and who() is tensor else ""

    def parameters(self, tensors: Iterable[torch.Tensor], claims: Claims) -> None:
        """Claim tensors as parameters, and their ``.grad`` as gradients."""
        for tensor in tensors:
            self._leaves[id(tensor)] = weakref.ref(tensor)
            self.tensor("parameter", tensor, self.name_of(tensor), claims)
            self._grad(tensor, claims)

    def gradients(self, claims: Claims) -> None:
        """Claim the ``.grad`` of every parameter that was ever met."""
        for reference in self._leaves.values():
            tensor = reference()
            if tensor is not None:
                self._grad(tensor, claims)

    def _grad(self, tensor: torch.Tensor, claims: Claims) -> None:
        if tensor.is_leaf and tensor.grad is not None:
            of = self.name_of(tensor)
            self.tensor("gradient", tensor.grad, f"grad of {of}" if of else "grad", claims)

    def optimizer(self, optimizer: torch.optim.Optimizer, claims: Claims) -> None:
        """Claim the parameters of an optimizer, their gradients, and its state."""
        for group in optimizer.param_groups:
            self.parameters(group["params"], claims)
        for of, state in optimizer.state.items():
            owner = self.name_of(of) if isinstance(of, torch.Tensor) else ""
            values = state.items() if isinstance(state, Mapping) else [("state", state)]
            for name, value in values:
                for tensor in _torch.tensors_in(value):
                    words = f"{name} of {owner}" if owner else str(name)
                    self.tensor("optimizer", tensor, words, claims)

    def graph(self, outputs: Any, claims: Claims) -> None:
        """Claim the leaves of the graph behind ``outputs``, and what its nodes keep."""
        tensors, roots = _torch.tensors_and_nodes_in(outputs)
        tensors = [_torch.with_graph(tensor) for tensor in tensors]
        roots += [tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None]
        nodes = engine_order(roots)[0] if roots else []
        leaves = [node.variable for node in nodes if hasattr(node, "variable")]
        self.parameters([*leaves, *(t for t in tensors if t.requires_grad and t.is_leaf)], claims)
        hooks: set[int] = set()
        for node in nodes:
            for place, tensor in kept_by(node, hooks):
                self.tensor("activation", tensor, f"{node.name()}.{place}", claims)

    def tensor(self, role: str, tensor: torch.Tensor, name: str, claims: Claims) -> None:
        """Claim every storage behind ``tensor``."""
        for storage in storages_of(tensor):
            try:
                address, size = storage.data_ptr(), storage.nbytes()
            except RuntimeError:  # a fake tensor has no memory
                continue
            if address and size and address not in claims and str(storage.device) == self.device:
                claims[address] = Claim(role, size, name, shape_of(tensor), tensor.dtype)
                self.met(role, address, storage)

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

from .. import _torch
from ..graphs.order import engine_order
from ..printable import printable
from ..saving.names import Names
from ..saving.saved import kept_by
from ..saving.storages import shape_of, storages_of

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
    """Whose memory a storage is: role, words for it, and the tensor that was seen.

    ``older``: a node keeps it that was made before the recording.
    """

    role: str
    bytes: int
    name: str
    shape: tuple[int | str, ...] | None
    dtype: torch.dtype | None
    older: bool = False


Claims = dict[int, Claim]
"""Claims by address of the storage."""


class Roles:
    """Takes snapshots on one device, and remembers modules, parameters and names, weakly."""

    def __init__(
        self, device: str, known: Names, met: Callable[[Claim, int, torch.UntypedStorage], None]
    ):
        """Take the names, and a function to tell of each storage: claim, address, storage."""
        self.device = device
        self.met = met
        self._since: int | None = None
        self._modules: list[tuple[str, weakref.ref]] = []
        self._places: dict[int, tuple[weakref.ref, list[int]]] = {}
        self._named: dict[int, tuple[weakref.ref, str]] = {}
        self._leaves: dict[int, weakref.ref] = {}
        for name, tensor in known.pairs:
            self.name(tensor, name)

    def begins(self) -> None:
        """From now on, what is new is told from what is older."""
        self._since = _torch.next_sequence_nr()

    def module(self, prefix: str, module: torch.nn.Module) -> None:
        """Remember a module, whose parameters and buffers may get new memory."""
        self._modules.append((prefix, weakref.ref(module)))

    def modules(self, claims: Claims) -> set[int]:
        """Claim the parameters of every module, their gradients, and the buffers; return ids."""
        parameters: list[tuple[str, torch.Tensor]] = []
        buffers: list[tuple[str, torch.Tensor]] = []
        for prefix, reference in self._modules:
            module = reference()
            if module is not None:
                parameters += [(prefix + name, one) for name, one in module.named_parameters()]
                buffers += [(prefix + name, one) for name, one in module.named_buffers()]
        for name, tensor in parameters + buffers:
            self.name(tensor, name)
        self.parameters([tensor for _, tensor in parameters], claims)
        for _, tensor in buffers:
            self._owned("buffer", tensor, claims)
        return {id(tensor) for _, tensor in parameters}

    def name(self, tensor: torch.Tensor, name: str) -> None:
        """Remember a name, unless the tensor has one."""
        if not self.name_of(tensor):
            self._named[id(tensor)] = weakref.ref(tensor), printable(name)

    def name_of(self, tensor: torch.Tensor) -> str:
        """The name of this tensor object, or an empty text."""
        who, name = self._named.get(id(tensor), (None, ""))
        return name if who is not None and who() is tensor else ""

    def parameters(self, tensors: Iterable[torch.Tensor], claims: Claims) -> None:
        """Claim tensors as parameters, and their ``.grad`` as gradients."""
        for tensor in tensors:
            self._leaves[id(tensor)] = weakref.ref(tensor)
            self._owned("parameter", tensor, claims)
            self._grad(tensor, claims)

    def _owned(self, role: str, tensor: torch.Tensor, claims: Claims) -> None:
        """Claim the memory of a parameter or a buffer, unless it was claimed for it already."""
        place = list(map(_torch.storage_key, storages_of(tensor)))
        who, where = self._places.get(id(tensor), (None, None))
        if who is None or who() is not tensor or where != place:
            self._places[id(tensor)] = weakref.ref(tensor), place
            self.tensor(role, tensor, self.name_of(tensor), claims)

    def known(self, claims: Claims) -> None:
        """Claim what modules and all parameters that were ever met have now, and gradients."""
        done = self.modules(claims)
        met = [reference() for key, reference in self._leaves.items() if key not in done]
        self.parameters([tensor for tensor in met if tensor is not None], claims)

    def gradients(self, claims: Claims) -> None:
        """Claim the ``.grad`` of every parameter that was ever met."""
        for reference in list(self._leaves.values()):
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
        for node, number in zip(nodes, _torch.sequence_nrs(nodes), strict=True):
            older = self._since is not None and number < self._since
            for place, tensor in kept_by(node, hooks):
                self.tensor("activation", tensor, f"{node.name()}.{place}", claims, older)

    def tensor(
        self, role: str, tensor: torch.Tensor, name: str, claims: Claims, older: bool = False
    ) -> None:
        """Claim every storage behind ``tensor``."""
        for storage in storages_of(tensor):
            if str(storage.device) != self.device:  # that of a fake tensor is "meta"
                continue
            if self._since is not None and not storage.resizable():
                continue  # made by NumPy, say: the allocator did not tell when
            try:
                address, size = storage.data_ptr(), storage.nbytes()
            except RuntimeError:  # a wrapper, whose memory is behind it
                continue
            if address and size and address not in claims:
                claim = Claim(role, size, name, shape_of(tensor), tensor.dtype, older)
                claims[address] = claim
                self.met(claim, address, storage)

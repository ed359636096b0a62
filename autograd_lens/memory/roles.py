"""What memory is for: snapshots of the storages that tensors of a known role have now.

A snapshot names storages by address and keeps no tensor. The role follows from who holds the
memory: a module or an optimizer its parameters, ``.grad`` a gradient, an optimizer its state, a
graph its activations. What some nodes hide (``CopySlices``, ``_foreach_*``) is not found here.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from .. import _torch
from ..graphs.order import engine_order
from ..printable import printable
from ..saving.names import Names
from ..saving.saved import kept_by
from ..saving.storages import shape_of, storages_of
from .modules import KnownModules

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
"""All roles, from the longest-lived to the shortest-lived."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Whose memory a storage is: its role, a name for it, and the tensor that was seen.

    ``role_if_older``: the role if the memory turns out to be older than the recording.
    """

    role: str
    role_if_older: str
    bytes: int
    name: str
    shape: tuple[int | str, ...] | None
    dtype: torch.dtype | None


Claims = dict[int, Claim]
"""Claims by address of the storage."""

Role = tuple[str, str]
"""The role of a tensor's memory, and its role if it is older than the recording."""

PARAMETER: Role = ("parameter", "parameter")
BUFFER: Role = ("buffer", "buffer")
INPUT: Role = ("input", "input")
OPTIMIZER: Role = ("optimizer", "optimizer")
GRADIENT: Role = ("gradient", "gradient")
SAVED: Role = ("activation", "input")
SAVED_BY_OLDER: Role = ("activation", "activation")
PLAIN_LEAF: Role = ("activation", "parameter")
"""A leaf that requires grad, found in a graph: neither an ``nn.Parameter`` nor an argument."""


class Roles:
    """Takes snapshots on one device. Remembers modules, leaves and names, weakly."""

    def __init__(
        self, device: str, known: Names, met: Callable[[Claim, int, torch.UntypedStorage], None]
    ):
        """Take the names, and a function to call with each claim, its address and its storage."""
        self.device = device
        self.met = met
        self.modules = KnownModules()
        self._since: int | None = None
        self._owned: dict[int, tuple[weakref.ref, Role, list[int]]] = {}
        self._named: dict[int, tuple[weakref.ref, str]] = {}
        self._leaves: dict[int, tuple[weakref.ref, Role]] = {}
        self._indices: list[tuple[torch.Tensor, str]] = []
        self._same: dict[Any, Any] = {}
        for name, tensor in known.pairs:
            self.name(tensor, name)

    def begins(self) -> None:
        """From now on, new graph nodes and new memory are told from older ones."""
        self._since = _torch.next_sequence_nr()

    # Names

    def name(self, tensor: torch.Tensor, name: str) -> None:
        """Remember a name, unless the tensor has one."""
        if not self.name_of(tensor):
            self._named[id(tensor)] = weakref.ref(tensor), printable(name)

    def name_of(self, tensor: torch.Tensor) -> str:
        """The name of this tensor object, or an empty text."""
        who, name = self._named.get(id(tensor), (None, ""))
        return name if who is not None and who() is tensor else ""

    # Modules, leaves, gradients, optimizers

    def registered(self, claims: Claims) -> set[int]:
        """Claim the parameters of every known module, their gradients, and registered buffers.

        Return the ids of the parameters.
        """
        done = set()
        for name, tensor in self.modules.parameters():
            self.name(tensor, name)
            self.leaf(PARAMETER, tensor, claims)
            done.add(id(tensor))
        for name, tensor in self.modules.buffers():
            self.name(tensor, name)
            self.owned(BUFFER, tensor, claims)
        return done

    def attributes(self, claims: Claims) -> None:
        """Claim the tensors that modules hold as plain attributes."""
        for name, tensor in self.modules.attributes():
            self.name(tensor, name)
            self.owned(BUFFER, tensor, claims)

    def leaf(self, role: Role, tensor: torch.Tensor, claims: Claims) -> None:
        """Claim the memory of a leaf, and its ``.grad``. From now on it is followed.

        It keeps the role that it was given first, unless it turns out to be a parameter.
        """
        who, known = self._leaves.get(id(tensor), (None, role))
        if who is not None and who() is tensor and role != PARAMETER:
            role = known
        self._leaves[id(tensor)] = weakref.ref(tensor), role
        self.owned(role, tensor, claims)
        self._grad(tensor, claims)

    def owned(self, role: Role, tensor: torch.Tensor, claims: Claims) -> None:
        """Claim the memory of a tensor, unless it was claimed already and has not moved."""
        place = list(map(_torch.storage_key, storages_of(tensor)))
        who, *before = self._owned.get(id(tensor), (None,))
        if who is None or who() is not tensor or before != [role, place]:
            self._owned[id(tensor)] = weakref.ref(tensor), role, place
            self.tensor(role, tensor, self.name_of(tensor), claims)

    def known(self, claims: Claims) -> None:
        """Claim what modules and all leaves that were ever met have now, and gradients."""
        done = self.registered(claims)
        self.attributes(claims)
        for key, (reference, role) in list(self._leaves.items()):
            tensor = reference()
            if tensor is not None and key not in done:
                self.leaf(role, tensor, claims)

    def gradients(self, claims: Claims) -> None:
        """Claim the ``.grad`` of every leaf that was ever met."""
        for reference, _ in list(self._leaves.values()):
            tensor = reference()
            if tensor is not None:
                self._grad(tensor, claims)

    def _grad(self, tensor: torch.Tensor, claims: Claims) -> None:
        if not tensor.is_leaf or tensor.grad is None:
            return
        of, grad = self.name_of(tensor), tensor.grad
        name = f"grad of {of}" if of else "grad"
        parts = _torch.inner_tensors(grad)
        if not parts:
            self.tensor(GRADIENT, grad, name, claims)
        for part in parts:
            if part.dtype == grad.dtype:
                self._claim(GRADIENT, part, name, grad, claims)
            else:  # indices or offsets, often those of the input
                self._indices.append((part, name))

    def indices(self, claims: Claims) -> None:
        """Claim the indices of sparse gradients, now that whoever shares their memory has claimed.

        To be called at the end of a snapshot.
        """
        for part, name in self._indices:
            self.tensor(GRADIENT, part, name, claims)
        self._indices.clear()

    def optimizer(self, optimizer: torch.optim.Optimizer, claims: Claims) -> None:
        """Claim the parameters of an optimizer, their gradients, and its state."""
        for group in optimizer.param_groups:
            for tensor in group["params"]:
                self.leaf(PARAMETER, tensor, claims)
        for of, state in optimizer.state.items():
            owner = self.name_of(of) if isinstance(of, torch.Tensor) else ""
            values = state.items() if isinstance(state, Mapping) else [("state", state)]
            for name, value in values:
                for tensor in _torch.tensors_in(value):
                    words = f"{name} of {owner}" if owner else str(name)
                    self.tensor(OPTIMIZER, tensor, words, claims)

    # Graphs

    def graph(self, outputs: Any, claims: Claims) -> None:
        """Claim the leaves of the graph behind ``outputs``, and what its nodes keep."""
        tensors, roots = _torch.tensors_and_nodes_in(outputs)
        tensors = [_torch.with_graph(tensor) for tensor in tensors]
        roots += [tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None]
        nodes = engine_order(roots)[0] if roots else []
        leaves = [node.variable for node in nodes if hasattr(node, "variable")]
        for leaf in [*leaves, *(t for t in tensors if t.requires_grad and t.is_leaf)]:
            registered = isinstance(leaf, torch.nn.Parameter)
            self.leaf(PARAMETER if registered else PLAIN_LEAF, leaf, claims)
        hooks: set[int] = set()
        for node, number in zip(nodes, _torch.sequence_nrs(nodes), strict=True):
            role = SAVED_BY_OLDER if self._since is None or number < self._since else SAVED
            for place, tensor in kept_by(node, hooks):
                self.tensor(role, tensor, f"{node.name()}.{place}", claims)

    # Tensors

    def tensor(self, role: Role, tensor: torch.Tensor, name: str, claims: Claims) -> None:
        """Claim every storage behind ``tensor``."""
        self._claim(role, tensor, name, tensor, claims)

    def _claim(
        self, role: Role, part: torch.Tensor, name: str, whole: torch.Tensor, claims: Claims
    ) -> None:
        """Claim every storage behind a part of a tensor."""
        for storage in storages_of(part):
            if str(storage.device) != self.device:  # that of a fake tensor is "meta"
                continue
            if self._since is not None and not storage.resizable():
                continue  # made by NumPy, say: the allocator knows nothing of it
            try:
                address, size = storage.data_ptr(), storage.nbytes()
            except RuntimeError:  # a wrapper, whose memory is behind it
                continue
            if address and size and address not in claims:
                name, shape = self._once(name), self._once(shape_of(whole))
                claims[address] = Claim(*role, size, name, shape, whole.dtype)
                self.met(claims[address], address, storage)

    def _once(self, value: Any) -> Any:
        """The first object that was equal to this one: many tensors have the same name or shape."""
        return self._same.setdefault(value, value)

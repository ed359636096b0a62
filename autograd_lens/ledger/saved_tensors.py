"""The ledger: what a graph keeps alive for its backward, tensor by tensor, to the byte.

Bytes are those of whole storages, since that is what a saved tensor keeps alive: a view of one row
pins all rows. A storage that several nodes saved counts once.

Not known: which tensors were inputs (the caller gives them). Not visible from Python: what
``CopySlices`` and ``_foreach_*`` nodes saved, and nodes of C++ extensions and of TorchScript. They
are listed in :attr:`SavedTensors.opaque`. Those of PyTorch's own operations are counted where a
recorder watched the forward (:mod:`autograd_lens.saving.recorder`). A checkpoint's random state is
seen, in the closure of its hook.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch

from .. import _torch
from ..graphs.kinds import is_in_place_on_view, saves_through_hooks
from ..graphs.reading import read
from ..graphs.record import Node, Reading
from ..graphs.roots import no_tensor
from ..printable import printable
from ..result import Result
from ..saving.record import ROLES, SavedTensor
from ..saving.recorder import SavedRecorder, checked
from .groups import SavedGroups, grouped, natural

if TYPE_CHECKING:
    from ..view.figure import Figure


ORDERS: dict[str, Callable[[SavedTensor], Any]] = {
    "node": lambda entry: entry.node,
    "bytes": lambda entry: -entry.storage_bytes,
    "name": lambda entry: entry.label,
    "role": lambda entry: ROLES.index(entry.role) if entry.role else len(ROLES),
    "field": lambda entry: entry.field,
    "dtype": lambda entry: str(entry.dtype),
}
"""Orders of the entries by name; within one, that of the engine."""


@dataclass(frozen=True, slots=True)
class OpaqueNode:
    """A node that saved what can't be seen.

    Attributes:
        node: its index in engine order; ``name`` its ``grad_fn.name()``.
        reason: why, in words.
        recorded: a recorder saw what the node saved, and the entries contain it.
    """

    node: int
    name: str
    reason: str
    recorded: bool = False

    @property
    def recordable(self) -> bool:
        """A recorder around the forward would see what it saves; False if that is not known."""
        return saves_through_hooks(self.name)

    @property
    def at_most(self) -> int | None:
        """The most bytes that the total may lack because of it; None where nothing is known.

        Only one operand of PyTorch's C++ operations never reaches a hook: a Python number, of 8
        bytes, or 16 if it is complex. A Python ``Function`` that writes into a view may keep more
        on its ``ctx``, and the graph does not show that there is such a ``Function``.
        """
        if not self.recorded:
            return None
        return 16 if is_in_place_on_view(self.name) else 0


class SavedTensors(Result):
    """What a graph keeps alive. Bytes are those of whole storages, each counted once.

    Attributes:
        reading: everything that was read of the graph.
        by: in which order the entries are.
    """

    def __init__(self, reading: Reading, by: str = "node"):
        self.reading = reading
        self.by = by

    @property
    def nodes(self) -> int:
        """How many nodes the graph has."""
        return len(self._nodes)

    @cached_property
    def _nodes(self) -> tuple[Node, ...]:
        return self.reading.nodes + self.reading.beyond

    @cached_property
    def storages(self) -> tuple[int, ...]:
        """Size in bytes of each storage that is kept, by its number (as in ``lens.graph``)."""
        return tuple(one.bytes for one in self.reading.storages[: self.reading.kept])

    @cached_property
    def roles(self) -> tuple[str, ...]:
        """Role of each storage that is kept, by its number."""
        return tuple(one.role for one in self.reading.storages[: self.reading.kept])

    @cached_property
    def entries(self) -> tuple[SavedTensor, ...]:
        """One for each tensor that a node keeps or has freed, in the order ``by``."""
        every = (saved for node in self._nodes for saved in node.saved)
        return tuple(sorted((s for s in every if s.freed or not s.empty), key=self._order()))

    def _order(self) -> Callable[[SavedTensor], Any]:
        if self.by == "module":
            return lambda entry: natural(self.module_of(entry) or "")
        return ORDERS[self.by]

    def module_of(self, entry: SavedTensor) -> str | None:
        """Path of the module that made the node of ``entry``, as ``lens.graph`` has it."""
        return self._nodes[entry.node].module

    @cached_property
    def opaque(self) -> tuple[OpaqueNode, ...]:
        """The nodes that don't show what they saved, in engine order."""
        why = "a C++ node that shows nothing of what it saved"
        recorded = self.reading.recorded
        return tuple(
            OpaqueNode(node.index, node.name, why, node.index in recorded)
            for node in self._nodes
            if node.kind == "opaque"
        )

    @property
    def short_by(self) -> int | None:
        """The most bytes that ``total_bytes`` may lack because of opaque nodes.

        0 without such nodes; None where they were not recorded, so that nothing is known.
        """
        limits = [one.at_most for one in self.opaque]
        return None if None in limits else sum(limits)

    def _bytes(self, role: str) -> int:
        pairs = zip(self.storages, self.roles, strict=True)
        return sum(size for size, its_role in pairs if its_role == role)

    @property
    def activation_bytes(self) -> int:
        """Bytes of what is neither parameter, buffer nor given input."""
        return self._bytes("activation")

    @property
    def parameter_bytes(self) -> int:
        """Bytes of the parameters that are kept alive."""
        return self._bytes("parameter")

    @property
    def buffer_bytes(self) -> int:
        """Bytes of the buffers that are kept alive."""
        return self._bytes("buffer")

    @property
    def input_bytes(self) -> int:
        """Bytes of the given inputs that are kept alive."""
        return self._bytes("input")

    @property
    def total_bytes(self) -> int:
        """Bytes of everything that the graph keeps alive."""
        return sum(self.storages)

    @property
    def stale(self) -> tuple[SavedTensor, ...]:
        """The entries that are known to be changed in place; their nodes will raise.

        Nothing is known where ``saved_version`` is None: see :class:`SavedTensor`.
        """
        return tuple(entry for entry in self.entries if entry.stale)

    def sorted(self, by: str = "bytes") -> SavedTensors:
        """The same ledger with its entries in another order.

        Args:
            by: ``"bytes"`` (what is kept alive, largest first), ``"node"`` (engine order), or
                ``"name"``, ``"module"``, ``"role"``, ``"field"``, ``"dtype"``.

        Raises:
            ValueError: ``by`` is none of these.
        """
        if not isinstance(by, str) or by not in (*ORDERS, "module"):
            raise ValueError(f"sort by one of {', '.join(ORDERS)}, module, not {by!r:.40}")
        return SavedTensors(self.reading, by)

    def by_node_kind(self) -> SavedGroups:
        """The bytes by the name of the node, such as ``MmBackward0``; largest first."""
        return self.grouped(lambda entry: entry.label, "node kind")

    def by_module(self, depth: int | None = None) -> SavedGroups:
        """The bytes by module; largest first.

        Args:
            depth: put modules together down to so many levels: 2 makes ``blocks.0`` of
                ``blocks.0.mlp.2``. None keeps every path whole.

        Raises:
            ValueError: ``names`` was no Module, so nothing is known of modules; or ``depth`` is no
                whole number of at least 1.
        """
        if depth is not None and (type(depth) is not int or depth < 1):
            raise ValueError(f"depth must be a whole number of at least 1, or None, not {depth!r}")
        if not self.reading.modules:
            raise ValueError("no modules are known: pass the model, saved_tensors(outputs, model)")

        def path(entry: SavedTensor) -> str:
            module = self.module_of(entry)
            if module is None:
                return "(outside)"
            paths = [".".join(one.split(".")[:depth]) for one in module.split(" = ")]
            return " = ".join(dict.fromkeys(paths)) or "(model)"

        return self.grouped(path, "module")

    def grouped(self, key: Callable[[SavedTensor], Hashable], title: str = "group") -> SavedGroups:
        """The bytes by any function of an entry; entries with the key None are left out.

        Raises:
            TypeError: ``key`` can't be called.
        """
        if not callable(key):
            raise TypeError(f"group by a function of an entry, not {key!r:.40}")
        return grouped(self.entries, self.storages, self.roles, key, title)

    def to_dicts(self) -> list[dict[str, Any]]:
        """One dictionary per entry, of numbers, strings and lists."""
        return [entry.to_dict() | {"module": self.module_of(entry)} for entry in self.entries]

    def figure(self) -> Figure:
        """Return the table of the entries."""
        from ..view.draw_saved_tensors import figure

        return figure(self)


def saved_tensors(
    outputs: Any, names: Any = None, *, inputs: Any = (), recorder: SavedRecorder | None = None
) -> SavedTensors:
    """Return the ledger of what the nodes of the graph behind ``outputs`` have saved.

    Nothing is run, and nothing need be installed before the forward pass. What is kept alive in
    other ways is not counted: a leaf that no node saved, the closure of a tensor hook, the modules
    that a checkpoint would run again. Sizes are in bytes, of whole storages.

    Rests on ``torch/csrc/autograd/saved_variable.cpp`` and, for ``ctx``, ``python_function.cpp``.

    Args:
        outputs: a tensor, a ``grad_fn``, or any pytree of them.
        names: a ``torch.nn.Module``, which tells parameters and buffers apart and gives entries
            their module; or a mapping from name to tensor. Leaves of the graph are parameters in
            any case, unless they are given as inputs; parameters that need no gradient are none
            of its leaves and are known by ``names`` only.
        inputs: a tensor or a pytree of tensors that were there before the forward pass. The graph
            can't tell them from activations.
        recorder: the :func:`lens.record_saved <autograd_lens.record_saved>` under
            which the forward ran. Only a graph with opaque nodes needs one.

    Raises:
        TypeError: ``outputs`` holds neither tensor nor node, or an argument has the wrong type.
        ValueError: no output has a graph; the message says why, as far as that can be known.
        LensUnsupported: this PyTorch lacks something that the lens reads.
    """
    return SavedTensors(read(outputs, names, _given(inputs), checked(recorder)))


def _given(inputs: Any) -> list[tuple[str, torch.Tensor]]:
    """The inputs with names: their keys in a mapping, ``input`` or ``input 1``, … otherwise."""
    if inputs is None:
        return []
    if isinstance(inputs, torch.nn.Module):
        raise TypeError("inputs are tensors; pass the model as names: saved_tensors(loss, model)")
    if isinstance(inputs, dict) and all(isinstance(t, torch.Tensor) for t in inputs.values()):
        return [(printable(str(name)), tensor) for name, tensor in inputs.items()]
    tensors = _torch.tensors_in(inputs)
    if not tensors and not (isinstance(inputs, (tuple, list, dict)) and not inputs):
        raise no_tensor(inputs, "inputs must be")
    if len(tensors) == 1:
        return [("input", tensors[0])]
    return [(f"input {k}", tensor) for k, tensor in enumerate(tensors, 1)]

"""Record one real backward: what ran, in which order, with which gradients.

A pre-hook and a hook on every node take numbers and keep no tensor. If they kept a gradient,
``AccumulateGrad`` would copy it into ``.grad``; a saved tensor that they kept would not be freed.
All hooks are removed afterwards, whatever happens.

Other threads may use PyTorch meanwhile. PyTorch calls a hook in every backward that reaches its
node, in whichever thread. A call counts only if its backward carries the recorder's sign
(:class:`autograd_lens._torch.threads.Sign`). All other calls go to
:class:`~autograd_lens.backprop.other_threads.OtherThreads`.

Not seen: the nodes inside a re-entrant checkpoint, which runs a backward of its own (a leaf that
is also used outside of it is seen, as a step in between), and the node inside ``CopySlices``.

Rests on ``torch/csrc/autograd/engine.cpp`` (order, hooks, release of saved tensors) and
``torch/csrc/autograd/functions/accumulate_grad.h`` (how ``.grad`` is written).
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from .. import _torch
from ..graphs.grad_graph import GradGraph
from ..graphs.reading import Live
from ..saving.owners import Owners
from ..saving.record import SavedTensor
from ..saving.saved import Reader
from ..saving.storages import storages_of
from .gradient import describe
from .other_threads import OtherThreads
from .steps import BackwardStep, Written

_registering = threading.Lock()
"""Held while hooks are put on a node: two first hooks at once would move the node's list of hooks
under an engine that reads it."""


class Recorder:
    """Hooks on every node, and the numbers they took.

    Attributes:
        graph: the graph as it was before.
        held_bytes: bytes that its saved tensors hold now.
    """

    def __init__(self, live: Live):
        self.graph = GradGraph(live.reading)
        self._live = live.nodes
        self._retained: dict[Any, list[tuple[str, torch.Tensor]]] = {}
        known = live.known
        for tensor in known.intermediates:
            if tensor.retains_grad:
                name = known.at(tensor.grad_fn, tensor.output_nr)
                self._retained.setdefault(tensor.grad_fn, []).append((name, tensor))
        self._owners = Owners(known, (), ())
        sizes = [storage.bytes for storage in live.reading.storages]
        self._held = [_held(node.saved, live.storage_keys, sizes) for node in self.graph.nodes]
        self._size = {key: size for places in self._held for _, key, size in places}
        self._uses = Counter(key for places in self._held for _, key, _ in places)
        self.held_bytes = sum(self._size.values())
        self._steps: list[dict[str, Any]] = []
        # Steps whose node has not returned yet, by node: a re-entrant checkpoint runs other nodes
        # in between, and devices have threads of their own.
        self._running: dict[int, list[dict[str, Any]]] = {}
        # Steps whose node has returned, by thread: a thread releases what a node saved before it
        # runs the next one.
        self._returned: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)
        self._sign = _torch.Sign()
        self._others = OtherThreads()
        self._reading = threading.RLock()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Hooks on every node until the block ends, for the backwards that this thread starts."""
        handles: list[Any] = []
        try:
            for index, node in enumerate(self._live):
                with _registering:
                    handles.append(node.register_prehook(self._before(index, node)))
                    handles.append(node.register_hook(self._after(index, node)))
            with self._sign.on_backwards():
                yield
        finally:
            for handle in handles:
                handle.remove()

    def finished(self) -> tuple[BackwardStep, ...]:
        """The steps; to be called when the backward is over.

        Raises:
            RuntimeError: another thread ran nodes of this graph.
        """
        if self._others.shared:
            label = self.graph.nodes[min(self._others.shared)].label
            raise RuntimeError(
                f"another thread ran a backward through the same graph meanwhile ({label}), so "
                "what its nodes hold can't be told; run forward again, for a graph of its own"
            )
        for step in self._steps:
            self._settle(step)
        self._end_last()
        return tuple(BackwardStep(number, **step) for number, step in enumerate(self._steps, 1))

    def _before(self, index: int, node: Any) -> Any:
        variable = self._leaf_of(index, node)

        def prehook(grads: tuple[torch.Tensor | None, ...]) -> None:
            if not self._sign.here():
                if variable is None:
                    with self._reading:  # the other backward may free what is being read
                        self._others.shared.add(index)
                self._others.come(index)
                return
            returned = self._returned[threading.get_ident()]
            while returned:
                self._settle(returned.pop())
            self._end_last()
            step: dict[str, Any] = {"node": index}
            self._steps.append(step)
            step |= {
                "label": self.graph.nodes[index].label,
                "incoming": tuple(map(describe, grads)),
                "outgoing": (),
                "saved_bytes": self.held_bytes,
                "freed": (),
                "written": tuple(
                    Written(name, "retained", describe(tensor.grad))
                    for name, tensor in self._retained.get(node, ())
                ),
            }
            arrived = None
            if variable is not None:
                alone, grad = self._others.none_at(index), variable.grad
                memory = None if grads[0] is None else _memory(grads[0])
                arrived = (alone, memory, id(grad), _memory(grad))
            self._running.setdefault(index, []).append((step, arrived))

        return prehook

    def _after(self, index: int, node: Any) -> Any:
        variable = self._leaf_of(index, node)

        def hook(sent: tuple[torch.Tensor | None, ...], _: Any) -> None:
            if not self._sign.here():
                self._others.go(index)
                return
            step, arrived = self._running[index].pop()
            step["outgoing"] = tuple(map(describe, sent))
            if variable is not None:
                grad, (alone, *before) = variable.grad, arrived
                alone = alone and not self._others.came_to(index)
                how = _how_written(grad, *before) if alone else "beside another thread"
                step["written"] += (Written(step["label"], how, describe(grad)),)
            self._returned[threading.get_ident()].append(step)

        return hook

    def _leaf_of(self, index: int, node: Any) -> torch.Tensor | None:
        return node.variable if self.graph.nodes[index].leaf is not None else None

    def _held_now(self, index: int) -> list[tuple[str, Any, int]]:
        """The same as ``_held`` of the node, read again."""
        reader = Reader(self._owners)
        saved = reader.saved(index, "", self._live[index])
        return _held(saved, reader.storages.keys, reader.storages.sizes)

    def _settle(self, step: dict[str, Any]) -> None:
        """Subtract what a node freed. The engine frees after the hook, so this runs later."""
        index = step["node"]
        with self._reading:
            had = self._held[index]
            if not had or index in self._others.shared:
                return
            left = set(self._held_now(index))
            gone = [entry for entry in had if entry not in left]
            step["freed"] += tuple(dict.fromkeys(place for place, _, _ in gone))
            for _, key, size in gone:
                self._uses[key] -= 1
                if self._uses[key] == 0:
                    self.held_bytes -= size
            self._held[index] = [entry for entry in had if entry in left]

    def _end_last(self) -> None:
        """End the last step where the next one begins, also if its node goes on around that."""
        if self._steps:
            self._steps[-1]["saved_bytes"] = self.held_bytes


def _held(
    saved: Sequence[SavedTensor], keys: Sequence[Any], sizes: Sequence[int]
) -> list[tuple[str, Any, int]]:
    """Field, key and size of each storage that the saved tensors of a node keep alive."""
    return [(one.field, keys[n], sizes[n]) for one in saved for n in one.storages]


def _memory(tensor: torch.Tensor | None) -> tuple[int, ...]:
    """Which storages a tensor lives in; comparable while they are alive."""
    return () if tensor is None else tuple(map(_torch.storage_key, storages_of(tensor)))


def _how_written(
    grad: torch.Tensor | None,
    arrived: tuple[int, ...] | None,
    old: int,
    old_memory: tuple[int, ...],
) -> str:
    if arrived is None:
        return "left alone"
    if grad is None:
        return "taken by a hook"
    if not old_memory:
        return "stolen" if _memory(grad) == arrived else "copied"
    same = id(grad) == old and _memory(grad) == old_memory
    return "added in place" if same else "added out of place"

"""Record one real backward: what ran, in which order, with which gradients.

A pre-hook and a hook on every node watch it; they take numbers and keep no tensor: of a kept
gradient ``AccumulateGrad`` would make a copy for ``.grad``, and a kept saved tensor would not be
freed. All of them are removed afterwards, whatever happens.

Other threads may use PyTorch meanwhile. PyTorch calls a hook in every backward that reaches its
node, in whichever thread. A call counts only if its backward carries the recorder's sign
(:class:`autograd_lens._torch.Sign`); the rest is told to
:class:`~autograd_lens.other_threads.OtherThreads`.

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
from dataclasses import dataclass
from typing import Any

import torch

from . import _torch
from .base import View
from .capture import capture, find_roots, no_tensor
from .gradient import Gradient, describe
from .graph import GradGraph
from .names import Names
from .other_threads import OtherThreads
from .raw import rows, saves
from .storages import Storages, storages_of


@dataclass(frozen=True, slots=True)
class Written:
    """A ``.grad`` that a step wrote.

    Attributes:
        name: of the tensor.
        how: ``"stolen"`` (``.grad`` has the memory of the incoming tensor), ``"copied"`` (it has
            memory of its own), ``"added in place"``, ``"added out of place"`` (a new tensor
            replaced it), ``"retained"`` (of an intermediate, by ``retain_grad``), ``"taken by a
            hook"`` (a post-accumulate hook removed it again), ``"left alone"`` (no gradient
            arrived), ``"beside another thread"`` (which accumulated into it at the same time).
            Read after post-accumulate hooks: one that puts a tensor of its own into ``.grad``
            makes it look copied.
        grad: the value of ``.grad`` after the step, None if there is none. What other threads
            accumulated until then is part of it.
    """

    name: str
    how: str
    grad: Gradient | None


@dataclass(frozen=True, slots=True)
class BackwardStep:
    """One node that ran.

    Attributes:
        number: 1, 2, … in the order of the engine.
        node: index of the node in ``recording.graph``.
        label: what the graph calls it.
        incoming: one gradient per output of the node's operation; None where none arrived.
        outgoing: one gradient per input, as it is sent on: reduced to the shape of the input where
            the operation broadcast it, and changed by hooks of the reader's. None where there is
            none.
        saved_bytes: bytes that saved tensors of the whole graph still held after this step.
        freed: fields of this node whose tensor was let go.
        written: the ``.grad`` fields it wrote.
    """

    number: int
    node: int
    label: str
    incoming: tuple[Gradient | None, ...]
    outgoing: tuple[Gradient | None, ...]
    saved_bytes: int
    freed: tuple[str, ...]
    written: tuple[Written, ...]


@dataclass(frozen=True, repr=False)
class BackwardRecording(View):
    """A backward, step by step.

    Attributes:
        graph: the graph as it was before.
        steps: every node that ran, in order.
        saved_bytes: bytes that saved tensors held before the first step.
    """

    graph: GradGraph
    steps: tuple[BackwardStep, ...]
    saved_bytes: int


def record_backward(
    output: Any,
    gradient: Any = None,
    names: Any = None,
    *,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> BackwardRecording:
    """Run ``torch.autograd.backward`` on ``output`` and return what happened.

    It is a real backward: it writes ``.grad``, runs the reader's hooks, and spends the graph unless
    ``retain_graph=True``. Backwards of other threads are not recorded, also where they write the
    same ``.grad``.

    Args:
        output: a tensor, or any nesting of lists, tuples and dicts with tensors in it.
        gradient: the gradient of ``output`` (the vector of the VJP); may be left out if it is a
            scalar. One per tensor if there are several.
        names: names for tensors, as in :func:`autograd_lens.graph`.
        retain_graph, create_graph, inputs: as in ``torch.autograd.backward``.

    Raises:
        TypeError: ``output`` or ``gradient`` holds no tensor.
        ValueError: ``output`` has no graph.
        RuntimeError: another thread ran a backward through the same graph meanwhile. (It may do so
            through other graphs with the same leaves.)
        Exception: whatever the backward itself raises; all hooks are removed by then.
    """
    known = Names(names)
    outputs = _torch.tensors_in(output)
    if not outputs:
        raise no_tensor(output)
    if not _all_tensors(gradient):
        raise TypeError(
            f"gradient must be a tensor, or one per output, not {type(gradient).__name__}; "
            "names for tensors go in names="
        )
    roots, plain = find_roots(outputs)
    captured = capture(roots, known)
    graph = GradGraph.of(captured, len(plain))
    recorder = _Recorder(graph, captured.live, known)
    before = recorder.held_bytes
    with recorder.watching():
        torch.autograd.backward(outputs, gradient, retain_graph, create_graph, inputs=inputs)
    return BackwardRecording(graph, recorder.finished(), before)


def _all_tensors(gradient: Any) -> bool:
    several = gradient if isinstance(gradient, (list, tuple)) else (gradient,)
    return all(one is None or isinstance(one, torch.Tensor) for one in several)


_registering = threading.Lock()
"""Held while hooks are put on a node: two first hooks at once would move the node's list of hooks
under an engine that reads it."""


class _Recorder:
    """Hooks on every node, and the numbers they took."""

    def __init__(self, graph: GradGraph, live: Sequence[Any], known: Names):
        self._graph = graph
        self._live = live
        self._retained: dict[Any, list[tuple[str, torch.Tensor]]] = {}
        for tensor in known.intermediates:
            if tensor.retains_grad:
                name = known.at(tensor.grad_fn, tensor.output_nr)
                self._retained.setdefault(tensor.grad_fn, []).append((name, tensor))
        self._held = [_held_keys(node) for node in live]
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
            label = self._graph.nodes[min(self._others.shared)].label
            raise RuntimeError(
                f"another thread ran a backward through the same graph meanwhile ({label}), so "
                "what its nodes hold can't be told; run forward again, for a graph of its own"
            )
        for step in self._steps:
            self._settle(step)
        return tuple(BackwardStep(number, **step) for number, step in enumerate(self._steps, 1))

    def _before(self, index: int, node: Any) -> Any:
        variable = self._leaf_of(index, node)

        def prehook(grads: tuple[torch.Tensor | None, ...]) -> None:
            if not self._sign.here():
                if variable is None:
                    with self._reading:  # the other backward may let go what is being read
                        self._others.shared.add(index)
                self._others.come(index)
                return
            returned = self._returned[threading.get_ident()]
            while returned:
                self._settle(returned.pop())
            step: dict[str, Any] = {"node": index}
            self._steps.append(step)
            step |= {
                "label": self._graph.nodes[index].label,
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
        return node.variable if self._graph.nodes[index].leaf is not None else None

    def _settle(self, step: dict[str, Any]) -> None:
        """Count what a node let go: the engine releases after the hook, so this is read later."""
        index = step["node"]
        with self._reading:
            had = self._held[index]
            if not had or index in self._others.shared:
                return
            left = set(_held_keys(self._live[index]))
            gone = [entry for entry in had if entry not in left]
            step["freed"] += tuple(dict.fromkeys(place for place, _, _ in gone))
            for _, key, size in gone:
                self._uses[key] -= 1
                if self._uses[key] == 0:
                    self.held_bytes -= size
            self._held[index] = [entry for entry in had if entry in left]
            step["saved_bytes"] = self.held_bytes


def _held_keys(node: Any) -> list[tuple[str, int, int]]:
    """Place, key and size of each storage that the saved tensors of ``node`` keep alive."""
    if not saves(type(node)):
        return []
    storages = Storages()
    read = rows(node, storages)
    keys = list(storages.numbers)
    return [(row[0], keys[n], storages.sizes[n]) for row in read for n in row[5]]


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

"""A recorder around a forward pass, for the nodes that show nothing of what they saved.

``CopySlices`` and the nodes of ``_foreach_*`` functions have no ``_raw_saved_*`` fields, so the
ledger of a finished graph can only name them. While this recorder is active every saved tensor goes
through a pack hook, theirs too, and the ledger counts those that are still kept.

A hook does not learn for which node it packs. :func:`kept_by_opaque` finds that out from the
creation numbers of nodes. Rests on ``torch/csrc/autograd/saved_variable.cpp`` (hooks; PyTorch
compares versions only of tensors without hooks, so the recorder compares versions itself),
``torch/csrc/autograd/function.h`` (sequence numbers) and on what generated code does around an
in-place operation (``tools/autograd/gen_variable_type.py``): make the node, save operands, save a
clone of what is overwritten, write, make a ``CopySlices`` around the node, save the result.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.autograd.graph import saved_tensors_hooks

from .. import _torch
from .module_calls import ModuleCalls

# The code of Function.apply, where that is written in Python: not on 2.15.
_APPLY = getattr(getattr(torch.autograd.Function.apply, "__func__", None), "__code__", None)


class Recorded:
    """What stands in a node in place of a tensor that was saved under a recorder.

    Attributes:
        tensor: the tensor; one that has a history is detached (same storage and version counter),
            since a result that was saved as it is would keep its own node alive forever.
        saved_version: its version counter when it was saved.
        next_nr: the number that the next new node would have got; None where no node saved it.
        view_nr: the number of the ``CopySlices`` that saved this; None where another node did.
        call: where the operation was called; equal for tensors that one call saved.
        cloned: the tensor is a clone that was made after the call had saved another tensor.
    """

    __slots__ = (
        "__weakref__",
        "call",
        "cloned",
        "next_nr",
        "saved_version",
        "tensor",
        "view_nr",
    )

    def __init__(self, tensor: torch.Tensor, frame: Any, last: Recorded | None):
        self.next_nr: int | None = _torch.next_sequence_nr()
        self.saved_version = _torch.version(tensor)
        self.call = (id(frame), frame and frame.f_lasti)
        before = last is not None and (last.next_nr, last.call) == (self.next_nr - 1, self.call)
        self.cloned = before and _torch.is_clone_number(tensor, self.next_nr - 1)
        views = [tensor]
        if frame and frame.f_code is _APPLY:  # it may have written to another argument
            views += _torch.tensors_in(frame.f_locals.get("args", ()))
            frame = frame.f_back
        written = (_torch.written_view_nr(view) for view in views)
        # After the CopySlices of the base the view itself may have got a new node.
        recent = [nr for nr in written if nr is not None and nr >= self.next_nr - 2]
        self.view_nr = max(recent, default=None)
        if frame and frame.f_globals.get("__name__") == "torch.utils.checkpoint":
            self.next_nr = self.view_nr = None  # a checkpoint saved its argument: no node
        self.tensor = tensor if tensor.is_leaf else tensor.detach()


class SavedRecorder(saved_tensors_hooks):
    """What was saved while it was active: see :func:`record_saved`."""

    def __init__(self) -> None:
        super().__init__(self._pack, _unpack)
        self._recorded: dict[int, weakref.ref[Recorded]] = {}
        self._last: weakref.ref[Recorded] | None = None
        self._thread: int | None = None
        self._spans: list[list[int]] = []  # numbers of nodes that were made without other hooks
        self._inside = 0  # number of other hooks that were entered later: PyTorch calls those
        self._calls = ModuleCalls()

    def __enter__(self) -> SavedRecorder:
        """Start recording.

        Raises:
            RuntimeError: it was entered before; each forward pass takes a new one.
        """
        if self._thread is not None:
            raise RuntimeError("this recorder was used before; call lens.record_saved() again")
        super().__enter__()
        self._thread = threading.get_ident()
        self._spans.append([_torch.next_sequence_nr(), sys.maxsize])
        _watch(self)
        self._calls.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop recording. What was saved stays known as long as a graph keeps it."""
        if self not in _active:
            raise RuntimeError(
                "this recorder was not entered: with lens.record_saved() as recorder:"
            )
        self._calls.stop()
        _unwatch(self)
        self._spans[-1][1] = min(self._spans[-1][1], _torch.next_sequence_nr())
        super().__exit__(*exception)

    def alive(self) -> Iterator[Recorded]:
        """What is still kept, in the order in which it was saved."""
        return (one for ref in list(self._recorded.values()) if (one := ref()) is not None)

    def covers(self, sequence_nr: int) -> bool:
        """True for a node that was made while this was active and PyTorch called no other hook."""
        return any(first <= sequence_nr < last for first, last in self._spans)

    def modules(self, model: torch.nn.Module, sequence_nrs: Sequence[int]) -> list[str | None]:
        """The path in ``model`` of the module that made each node: see :class:`ModuleCalls`."""
        return self._calls.paths(model, sequence_nrs)

    def other_hooks(self, entered: bool) -> None:
        """Note that other hooks were entered, which PyTorch calls instead, or left again."""
        if threading.get_ident() != self._thread:
            return
        self._inside += 1 if entered else -1
        if self._inside < 0:  # hooks from before were left first: PyTorch removed ours instead
            self._spans[-1][1] = _torch.next_sequence_nr()
            self._inside = sys.maxsize // 2
        elif entered and self._inside == 1:
            self._spans[-1][1] = _torch.next_sequence_nr()
        elif not entered and self._inside == 0:
            self._spans.append([_torch.next_sequence_nr(), sys.maxsize])

    def _pack(self, tensor: torch.Tensor) -> Recorded:
        # A thread of the engine, or of torch.jit.fork, has no Python frame.
        recorded = Recorded(tensor, sys._getframe().f_back, self._last and self._last())
        if threading.get_ident() != self._thread:  # every thread numbers its own nodes
            recorded.next_nr = recorded.view_nr = None
        key, known = id(recorded), self._recorded
        known[key] = self._last = weakref.ref(recorded, lambda _: known.pop(key, None))
        return recorded


def _unpack(recorded: Recorded) -> torch.Tensor:
    """Give the tensor back, or raise as PyTorch does where there is no hook."""
    tensor, then = recorded.tensor, recorded.saved_version
    now = _torch.version(tensor)
    if now != then:
        raise RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace "
            f"operation: [{tensor.type()} {list(tensor.shape)}] is at version {now}; expected "
            f"version {then} instead. (Found by lens.record_saved.)"
        )
    return tensor


# PyTorch calls only the hooks that were entered last, so recorders must know of those inside them.

_active: list[SavedRecorder] = []
_lock = threading.Lock()


def _watch(recorder: SavedRecorder) -> None:
    with _lock:
        for other in _active:
            other.other_hooks(True)
        if not _active:
            _torch.tell_of_saved_tensor_hooks(_noted)
        _active.append(recorder)


def _unwatch(recorder: SavedRecorder) -> None:
    with _lock:
        place = _active.index(recorder)
        del _active[place]
        for other in _active[:place]:
            other.other_hooks(False)
        for other in _active[place:]:  # left out of order: PyTorch removed the hooks of these
            other.other_hooks(True)
        if not _active:
            _torch.tell_no_more(_noted)


def _noted(hooks: saved_tensors_hooks, entered: bool) -> None:
    if not isinstance(hooks, SavedRecorder):
        for recorder in list(_active):
            recorder.other_hooks(entered)


def kept_by_opaque(
    recorder: SavedRecorder, in_place: Mapping[int, int], others: Mapping[int, int]
) -> Sequence[tuple[int, Recorded]]:
    """What opaque nodes keep of what a recorder saw, each with the index of its node.

    Args:
        recorder: the recorder.
        in_place: the ``CopySlices`` nodes by their sequence number.
        others: the other opaque nodes.

    An operation that makes a ``CopySlices`` saves its operands right before that. If it keeps a
    clone of what it overwrites, it saves the operands right before the clone, and the clone right
    before the ``CopySlices``. It saves a result right after the ``CopySlices``. Any other opaque
    node saves right after it was made. What fits none of these belongs to another graph.
    """
    alive = [one for one in recorder.alive() if one.next_nr is not None]
    clones = {(one.next_nr, one.call) for one in alive if one.cloned}
    found = []
    for one in alive:
        nr = one.next_nr
        if one.view_nr is not None and one.view_nr in in_place:
            found.append((in_place[one.view_nr], one))
        elif nr in in_place:
            found.append((in_place[nr], one))
        elif nr + 1 in in_place and (nr + 1, one.call) in clones:
            found.append((in_place[nr + 1], one))
        elif nr - 1 in others:
            found.append((others[nr - 1], one))
    return found


def record_saved() -> SavedRecorder:
    """Return a context manager for a forward pass; it records what opaque nodes save.

    Give it to the ledger afterwards::

        with lens.record_saved() as recorder:
            loss = model(batch)
        ledger = lens.saved_tensors(loss, model, inputs=batch, recorder=recorder)

    Without it, nodes that show nothing of what they saved (``CopySlices``, which an in-place
    operation on a view makes, and those of ``_foreach_*`` functions) are only named, in
    ``ledger.opaque``. For a graph without such nodes it is of no use: it costs a Python call for
    each saved tensor.

    It records the thread that enters it, so give it only to verbs that read graphs from that
    thread. PyTorch calls only the saved-tensor hook that was entered last. Where another one is
    entered inside, by a checkpoint or ``save_on_cpu``, opaque nodes are not recorded, and the
    ledger says so. ``torch.func.grad`` and its kind refuse to run under any saved-tensor hook.

    Not recorded: what a Python ``Function`` that writes into a view sets as an attribute of its
    ``ctx``. On PyTorch 2.15 what it saves can't be assigned to its node either.

    An in-place ``_foreach_*`` function on views of several tensors saves for all of them at once.
    If the graph has several of its nodes, they count as not recorded. If it has one, an entry of
    that node may belong to another.

    A tensor with a history is saved detached. So a new ``.data`` that it gets between forward and
    backward is not seen, and a graph that a ``Function`` saved besides its operands is not
    followed.

    Rests on ``torch.autograd.graph.saved_tensors_hooks`` and
    ``torch/csrc/autograd/saved_variable.cpp``.

    Raises:
        RuntimeError: on entering it a second time; on leaving it where it was not entered; and in
            a backward, as without it, where a saved tensor was changed in place.
        LensUnsupported: this PyTorch does not give the numbers of nodes.
    """
    return SavedRecorder()


def checked(recorder: Any) -> SavedRecorder | None:
    """``recorder`` as it was given to a verb.

    Raises:
        TypeError: it is something else than a recorder or None.
    """
    if recorder is None or isinstance(recorder, SavedRecorder):
        return recorder
    raise TypeError(
        "recorder is what `with lens.record_saved() as recorder:` gave, not "
        f"{type(recorder).__name__}"
    )

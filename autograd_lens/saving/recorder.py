"""A recorder around a forward pass, for the nodes that show nothing of what they saved.

``CopySlices`` and the nodes of ``_foreach_*`` functions have no ``_raw_saved_*`` fields, so the
ledger of a finished graph can only name them. While this recorder is active every saved tensor goes
through a pack hook, theirs too, and the ledger counts those that are still kept.

A hook is not told for which node it packs. :func:`kept_by_opaque` finds that out from the numbers
that nodes get in the order of their creation. Rests on ``torch/csrc/autograd/saved_variable.cpp``
(hooks; a version is compared only where there are none, so the recorder compares itself),
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
        view_nr: that of the ``CopySlices`` which had just been made, if it saved this.
        call: where the operation was called; equal for tensors that one call saved.
        cloned: it is a clone that was made after the call had saved another tensor.
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
        if frame and frame.f_code is _APPLY:  # it need not be what the Function wrote to
            views += _torch.tensors_in(frame.f_locals.get("args", ()))
            frame = frame.f_back
        written = (_torch.written_view_nr(view) for view in views)
        # After the CopySlices of the base the view itself may have got a new node.
        recent = [nr for nr in written if nr is not None and nr >= self.next_nr - 2]
        self.view_nr = max(recent, default=None)
        if frame and frame.f_globals.get("__name__") == "torch.utils.checkpoint":
            self.next_nr = self.view_nr = None  # the argument of a checkpoint: no node of the graph
        self.tensor = tensor if tensor.is_leaf else tensor.detach()


class SavedRecorder(saved_tensors_hooks):
    """What was saved while it was active: see :func:`record_saved`."""

    def __init__(self) -> None:
        super().__init__(self._pack, _unpack)
        self._recorded: dict[int, weakref.ref[Recorded]] = {}
        self._last: weakref.ref[Recorded] | None = None
        self._thread: int | None = None
        self._spans: list[list[int]] = []  # of the numbers of nodes that were made under it alone
        self._inside = 0  # other hooks that are active and come first
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
        """True for a node that was made while this was active and no other hook came first."""
        return any(first <= sequence_nr < last for first, last in self._spans)

    def modules(self, model: torch.nn.Module, sequence_nrs: Sequence[int]) -> list[str | None]:
        """The path in ``model`` of the module that made each node: see :class:`ModuleCalls`."""
        return self._calls.paths(model, sequence_nrs)

    def other_hooks(self, entered: bool) -> None:
        """Note that other hooks were entered, which come first, or left again."""
        if threading.get_ident() != self._thread:
            return
        self._inside += 1 if entered else -1
        if self._inside < 0:  # hooks from before were left first: PyTorch took ours away instead
            self._spans[-1][1] = _torch.next_sequence_nr()
            self._inside = sys.maxsize // 2
        elif entered and self._inside == 1:
            self._spans[-1][1] = _torch.next_sequence_nr()
        elif not entered and self._inside == 0:
            self._spans.append([_torch.next_sequence_nr(), sys.maxsize])

    def _pack(self, tensor: torch.Tensor) -> Recorded:
        # There is no frame on a thread of the engine, or of torch.jit.fork.
        recorded = Recorded(tensor, sys._getframe().f_back, self._last and self._last())
        if threading.get_ident() != self._thread:  # which counts its nodes by itself
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


# Hooks that are entered inside of a recorder come first, so each active recorder is told of them.

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
        for other in _active[place:]:  # left out of order: PyTorch took away the hooks of these
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
    """What a recorder saw and opaque nodes keep, each with its node.

    Args:
        recorder: the recorder.
        in_place: the ``CopySlices`` nodes by their sequence number.
        others: the other opaque nodes.

    An operand is saved right before the ``CopySlices`` is made, or right before a clone of what is
    overwritten, which the same call saves right before the ``CopySlices``; a result right after it.
    Any other opaque node saves right after it was made. What fits none belongs to another graph.
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
    """Return a context manager for a forward pass, for its ledger to count what opaque nodes keep.

    Give it to the ledger afterwards::

        with lens.record_saved() as recorder:
            loss = model(batch)
        ledger = lens.saved_tensors(loss, model, inputs=batch, recorder=recorder)

    Without it, nodes that show nothing of what they saved (``CopySlices``, which an in-place
    operation on a view makes, and those of ``_foreach_*`` functions) are only named, in
    ``ledger.opaque``. For a graph without such nodes it is of no use: it costs a Python call for
    each saved tensor.

    It sees what is saved on the thread that enters it; give it to ledgers of graphs from there,
    since another thread counts its nodes by itself. A saved-tensor hook that is entered inside, as
    a checkpoint or ``save_on_cpu`` enters one, comes before it, and the ledger calls the opaque
    nodes from there not recorded. What a Python ``Function`` that writes into a view puts on its
    ``ctx`` by itself reaches no hook (nor, on PyTorch 2.15, can what it saves be told from others).
    ``torch.func.grad`` and its kind refuse to run under any saved-tensor hook, also under this one.

    One call of an in-place ``_foreach_*`` function on views of several tensors saves for all of
    them at once: its nodes are not called recorded where the graph has two of them, and where it
    has one, what that saved can be taken for another's.

    What has a history is saved detached: a new ``.data`` that it gets between forward and backward
    is not seen, and a graph that a ``Function`` saved besides its operands is not followed.
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

"""A recorder around a forward pass, for the nodes that show nothing of what they saved.

``CopySlices`` and the nodes of ``_foreach_*`` functions have no ``_raw_saved_*`` fields, so the
ledger of a finished graph can only name them. While this recorder is active every saved tensor goes
through a pack hook, theirs too, and the ledger counts those that are still kept.

Rests on ``torch/csrc/autograd/saved_variable.cpp`` (hooks; a version is compared only where there
are none, so the recorder compares itself) and on sequence numbers, which nodes get in the order of
their creation (``torch/csrc/autograd/function.h``).
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator

import torch
from torch.autograd.graph import saved_tensors_hooks

from . import _torch


class Recorded:
    """What stands in a node in place of a tensor that was saved under a recorder.

    Attributes:
        tensor: the tensor, detached: the same storage and version counter, and no reference to the
            graph (an output that was saved as it is would keep its own node alive forever).
        saved_version: its version counter when it was saved.
        sequence_nr: the number that the next new node would have got.
    """

    __slots__ = ("__weakref__", "saved_version", "sequence_nr", "tensor")

    def __init__(self, tensor: torch.Tensor):
        self.tensor = tensor.detach()
        self.saved_version = _torch.version(tensor)
        self.sequence_nr = _torch.next_sequence_nr()


class SavedRecorder(saved_tensors_hooks):
    """What was saved while it was active: see :func:`record_saved`.

    Attributes:
        first, last: sequence numbers of the nodes that were made meanwhile, as a half-open range;
            both None before it was entered, ``last`` until it is left.
    """

    def __init__(self) -> None:
        super().__init__(self._pack, _unpack)
        self.first: int | None = None
        self.last: int | None = None
        self._recorded: list[weakref.ref[Recorded]] = []

    def __enter__(self) -> SavedRecorder:
        """Start recording.

        Raises:
            RuntimeError: it was entered before; each forward pass takes a new one.
        """
        if self.first is not None:
            raise RuntimeError("this recorder was used before; call lens.record_saved() again")
        super().__enter__()
        self.first = _torch.next_sequence_nr()
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop recording. What was saved stays known as long as a graph keeps it."""
        self.last = _torch.next_sequence_nr()
        super().__exit__(*exception)

    def alive(self) -> Iterator[Recorded]:
        """What is still kept, in the order in which it was saved."""
        return (one for ref in self._recorded if (one := ref()) is not None)

    def covers(self, sequence_nr: int) -> bool:
        """True for a node that was made while this was active."""
        if self.first is None:
            return False
        return self.first <= sequence_nr and (self.last is None or sequence_nr < self.last)

    def _pack(self, tensor: torch.Tensor) -> Recorded:
        recorded = Recorded(tensor)
        self._recorded.append(weakref.ref(recorded))
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


def record_saved() -> SavedRecorder:
    """Return a context manager for a forward pass, which makes its ledger complete.

    Give it to the ledger afterwards::

        with lens.record_saved() as recorder:
            loss = model(batch)
        ledger = lens.saved_tensors(loss, model, inputs=batch, recorder=recorder)

    Without it, nodes that show nothing of what they saved (``CopySlices``, which an in-place
    operation on a view makes, and those of ``_foreach_*`` functions) are only named, in
    ``ledger.opaque``. Everything else is known without it, so it is of no use for a graph that has
    no such node: it costs a Python call for each saved tensor.

    It sees what is saved on the thread that enters it. A saved-tensor hook that is entered inside,
    as a checkpoint or ``save_on_cpu`` enters one, comes before it. ``torch.func.grad`` and its kind
    refuse to run under any saved-tensor hook, so also under this one.
    """
    return SavedRecorder()

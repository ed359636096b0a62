"""What the profiler recorded, as one list in order of time: allocations, marks, phase boundaries.

Knows the names and times of events, not what the memory is for. It holds what PyTorch's own
allocators hand out to the caller's thread and to the engine. It does not hold what a library
allocates by itself (oneDNN's scratch memory), nor the memory of NumPy arrays.

Rests on ``torch/csrc/profiler/collection.cpp`` and ``c10/core/CPUAllocator.cpp``.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import torch

from .. import _torch
from ..progress import Progress

BACKWARD = "autograd_lens: backward"
_MARK = "autograd_lens: mark "
_STEP = "Optimizer.step#"
_NODE = "autograd::engine::evaluate_function: "

_HELPERS = {
    "aten::empty", "aten::empty_like", "aten::empty_strided", "aten::new_empty",
    "aten::new_empty_strided", "aten::resize_",
}  # fmt: skip
"""Operations that allocate for the one that called them. The caller is named instead."""


@dataclass(frozen=True, slots=True)
class Change:
    """An allocation (``bytes`` positive) or a free, and the operation that was running."""

    address: int
    bytes: int
    op: str


@dataclass(frozen=True, slots=True)
class Mark:
    """The place of a snapshot among the events. ``number`` says which snapshot."""

    number: int


@dataclass(frozen=True, slots=True)
class PhaseBoundary:
    """A phase begins, or ends."""

    phase: str
    begins: bool


Event = Change | Mark | PhaseBoundary


def mark(number: int) -> None:
    """Leave a :class:`Mark` among the events of the running profiler."""
    with _torch.named_range(f"{_MARK}{number}"):
        pass


def backward_range() -> Any:
    """A context whose events belong to a backward."""
    return _torch.named_range(BACKWARD)


def events_of(
    profile: torch.autograd.profiler.profile, device: str, state: Progress
) -> list[Event]:
    """Return the events of a finished profile in order of time; changes of ``device`` only.

    The profile is empty afterwards. Its events take far more memory than ours, so each of them is
    freed as soon as it is read.
    """
    timed: list[tuple[int, Event]] = []
    names: dict[str, str] = {}  # the profiler makes a new string for each event
    roots = _torch.take_event_tree(profile)
    roots.reverse()
    state.total = len(roots)
    while roots:
        pending = [(roots.pop(), "")]
        state.done = state.total - len(roots)
        while pending:
            event, op = pending.pop()
            timed += _read(event, op, device)
            inside = _op(event, op)
            inside = names.setdefault(inside, inside)
            pending += [(child, inside) for child in reversed(event.children)]
    timed.sort(key=itemgetter(0))  # stable: events of the same nanosecond keep their order
    return [event for _, event in timed]


def _read(event: Any, op: str, device: str) -> list[tuple[int, Event]]:
    """What one event of the profiler means here, with its times."""
    change = _torch.allocation(event)
    if change is not None:
        address, size, where = change
        mine = size and where == device
        return [(event.start_time_ns, Change(address, size, op))] if mine else []
    if event.name.startswith(_MARK):
        return [(event.start_time_ns, Mark(int(event.name[len(_MARK) :])))]
    phase = _phase(event.name)
    if not phase:
        return []
    ends = (event.start_time_ns, True), (event.end_time_ns, False)
    return [(time, PhaseBoundary(phase, begins)) for time, begins in ends]


def _phase(name: str) -> str:
    if name == BACKWARD:
        return "backward"
    return "step" if name.startswith(_STEP) else ""


def _op(event: Any, op: str) -> str:
    """The operation to name for an allocation directly below ``event``."""
    name = event.name
    if name == BACKWARD or (op and name in _HELPERS):
        return op
    return name.removeprefix(_NODE)

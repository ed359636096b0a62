"""What the profiler saw, as one list in order of time: allocations, marks, borders of phases.

Knows names and times of events, and nothing of what the memory is for. Sees what PyTorch's own
allocator hands out to this thread and to the engine; not what a library allocates by itself
(oneDNN's scratch memory), nor what NumPy owns.

Rests on ``torch/csrc/profiler/collection.cpp`` and ``c10/core/CPUAllocator.cpp``.
"""

from __future__ import annotations

from dataclasses import dataclass
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
"""Operations that allocate on behalf of the one that called them: that one is named instead."""


@dataclass(frozen=True, slots=True)
class Change:
    """Memory that came (``bytes`` positive) or went, and the operation that was running."""

    address: int
    bytes: int
    op: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in the stream where a snapshot was taken; ``number`` says which."""

    number: int


@dataclass(frozen=True, slots=True)
class Border:
    """A phase begins, or ends."""

    phase: str
    begins: bool


def mark(number: int) -> None:
    """Leave a :class:`Mark` in the stream of the profiler that runs."""
    with _torch.named_range(f"{_MARK}{number}"):
        pass


def backward_range() -> Any:
    """A context in which everything belongs to a backward."""
    return _torch.named_range(BACKWARD)


def stream(
    profile: torch.profiler.profile, device: str, state: Progress
) -> list[Change | Mark | Border]:
    """Return the events of a finished profile in order of time; changes of ``device`` only."""
    timed: list[tuple[int, Change | Mark | Border]] = []
    roots = _torch.event_tree(profile)
    state.total = len(roots)
    for state.done, root in enumerate(roots):
        pending = [(root, "")]
        while pending:
            event, op = pending.pop()
            timed += _read(event, op, device)
            inside = _op(event, op)
            pending += [(child, inside) for child in event.children]
    timed.sort(key=lambda pair: pair[0])
    return [event for _, event in timed]


def _read(event: Any, op: str, device: str) -> list[tuple[int, Change | Mark | Border]]:
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
    return [(time, Border(phase, begins)) for time, begins in ends]


def _phase(name: str) -> str:
    if name == BACKWARD:
        return "backward"
    return "step" if name.startswith(_STEP) else ""


def _op(event: Any, op: str) -> str:
    """What an allocation directly below ``event`` is said to be made by."""
    name = event.name
    if name == BACKWARD or (op and name in _HELPERS):
        return op
    return name.removeprefix(_NODE)

"""Follow live memory by role through a training step: which bytes, for what, and when they go.

The events come from PyTorch's allocators, through the profiler. The roles come from snapshots:
which storages parameters, gradients, optimizer state and the graph have at that moment. Snapshots
are taken before the function runs, when a backward begins and ends, around an optimizer's step, and
at the end. The backward and the optimizers are found when they run.

Roles:

- ``parameter``: of a module or an optimizer; an ``nn.Parameter``; or a leaf that requires grad, is
  older than the recording and was not given as an argument.
- ``buffer``: a registered buffer of a module, or a tensor that a module holds as a plain attribute
  and that requires no grad (also in a list, tuple or dict).
- ``input``: a tensor that ``fn`` was given or refers to, also one that requires grad; or older
  memory that a new graph saved.
- ``optimizer``: the state of an optimizer.
- ``gradient``: the ``.grad`` of a leaf, and what ``torch.autograd.grad`` returned. The indices of
  a sparse gradient keep the role of the tensor that they share memory with.
- ``activation``: what a graph keeps when its backward begins, or a graph that was returned. A leaf
  that requires grad and was made while ``fn`` ran belongs here too, unless it is a parameter.
- ``temporary``: none of these, and freed again.
- ``kept``: none of these, and still alive at the end.

Counted are the memory that PyTorch's allocator handed out while the function ran, and older memory
that was known. Not seen are memory that libraries allocate themselves (oneDNN's scratch memory,
NumPy arrays), and what threads other than the caller's and the engine's allocate and free. What
``CopySlices`` and ``_foreach_*`` nodes keep counts as temporary. So do tensors that a checkpoint
recomputes during the backward, and gradients on their way. Older memory that is resized in place,
as FSDP does, counts with its old size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch

from ..result import Result
from .blocks import Account, Block, account, roles_used
from .levels import LiveBytes
from .reach import refuse_what_cant_run
from .recorder import record
from .roles import ROLES

if TYPE_CHECKING:
    from ..view.figure import Figure


@dataclass(frozen=True, slots=True)
class Sample:
    """One event, and what was alive after it.

    Attributes:
        event: its number: 0, 1, …
        op: the operation that was running, as the profiler names it: ``"aten::mm"``, or the node
            that freed memory, ``"ReluBackward0"``. Empty when it was Python.
        phase: ``"forward"``, ``"backward"`` or ``"step"``; ``"after"`` is outside of these, with no
            backward to follow.
        role: of the memory that was allocated or freed.
        change: bytes allocated; negative when they were freed.
    """

    event: int
    op: str
    phase: str
    role: str
    change: int
    _live: LiveBytes = field(repr=False, compare=False)

    @property
    def by_role(self) -> dict[str, int]:
        """Live bytes by role after this event."""
        return self._live.after(self.event)

    @property
    def total(self) -> int:
        """All live bytes after this event."""
        return self._live.total_after(self.event)


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of the recording.

    Attributes:
        name: as in :class:`Sample`.
        start, stop: its events are ``samples[start:stop]``.
        peak_bytes: the largest number of live bytes in it.
        peak_event: the first event with that many; ``start - 1`` if the phase began with them.
        before, after: live bytes by role at its beginning and its end.
    """

    name: str
    start: int
    stop: int
    peak_bytes: int
    peak_event: int
    before: dict[str, int]
    after: dict[str, int]


@dataclass(frozen=True, repr=False)
class MemoryRecording(Result):
    """Live memory, event by event.

    Attributes:
        device: whose memory: ``"cpu"``, ``"cuda:0"``.
        samples: every event in order. Their number may depend on the number of threads: a kernel
            that runs in several threads may allocate memory for each.
        phases: each forward, backward and step in order, and what came after them.
        base: bytes by role that were alive before the first event, as far as they are known: what
            the arguments, ``names`` and the variables of ``fn`` lead to, or what a snapshot found
            later.
        blocks: every piece of memory, in order of allocation.
    """

    device: str
    samples: tuple[Sample, ...]
    phases: tuple[Phase, ...]
    base: dict[str, int]
    blocks: tuple[Block, ...]
    _live: LiveBytes = field(compare=False)

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles that occur, from the longest-lived to the shortest-lived."""
        return roles_used(self.blocks)

    @cached_property
    def peak_bytes(self) -> int:
        """The largest number of live bytes."""
        return max(self._live.totals())

    @cached_property
    def peak_event(self) -> int:
        """The first event after which that many were alive; -1 if they were before the first."""
        return self.series().index(self.peak_bytes) - 1

    @property
    def peak(self) -> Sample:
        """The sample at the peak: its operation, its phase, and the bytes by role."""
        return self.at(self.peak_event)

    @cached_property
    def live_at_peak(self) -> tuple[Block, ...]:
        """What was alive at the peak, largest first."""
        return self.live_at(self.peak_event)

    @property
    def end(self) -> dict[str, int]:
        """Live bytes by role when ``fn`` returned; what it returned is still alive then."""
        return self.bytes_at(len(self.samples) - 1)

    def at(self, event: int) -> Sample:
        """The sample of one event; -1 stands for the time before the first.

        Raises:
            IndexError: there is no such event.
        """
        if event == -1:
            return Sample(-1, "", "", "", 0, self._live)
        if not 0 <= event < len(self.samples):
            raise IndexError(f"events go from -1 to {len(self.samples) - 1}, not to {event}")
        return self.samples[event]

    def bytes_at(self, event: int) -> dict[str, int]:
        """Live bytes by role after ``event``; -1 is before the first."""
        return self.at(event).by_role

    def live_at(self, event: int) -> tuple[Block, ...]:
        """The blocks that are alive after ``event``, largest first."""
        self.at(event)
        alive = (
            block
            for block in self.blocks
            if block.born <= event and (block.died is None or block.died > event)
        )
        return tuple(sorted(alive, key=lambda block: (-block.bytes, block.born)))

    def series(self, role: str | None = None) -> list[int]:
        """Live bytes of ``role`` (or all) before the first event and after each of them.

        Raises:
            ValueError: there is no such role.
        """
        if role is None:
            return self._live.totals()
        if role not in ROLES:
            raise ValueError(f"role must be one of {', '.join(ROLES)}, not {role!r}")
        return self._live.of_role(role)

    def to_dicts(self) -> list[dict[str, Any]]:
        """A row for each event: event, op, phase, role, change, total, and bytes of each role."""
        return [
            {
                "event": sample.event,
                "op": sample.op,
                "phase": sample.phase,
                "role": sample.role,
                "change": sample.change,
                "total": sample.total,
                **sample.by_role,
            }
            for sample in self.samples
        ]

    def figure(self) -> Figure:
        """Return the curve of live memory."""
        from ..view.draw_record_memory import figure

        return figure(self)


def record_memory(
    fn: Callable[..., Any],
    *args: Any,
    names: Any = None,
    device: str | torch.device | None = None,
    **options: Any,
) -> MemoryRecording:
    """Call ``fn(*args, **options)`` and return what lived in memory meanwhile.

    ``fn`` may do anything: a forward, a whole training step, several steps. Its result is dropped
    afterwards, and the recording keeps no tensor. A bar appears when it takes more than a second.

    PyTorch's profiler takes about 8 kB for each allocation or free when ``fn`` has returned. That
    is freed before ``record_memory`` returns, and the recording keeps about 0.4 kB for each.

    Two lines on stderr come from PyTorch, and nothing is wrong. It tells once that memory older
    than the recording was freed; import the lens before ``torch`` to avoid that. And it writes
    "External init callback must run in same thread" if the first recording of a process runs in
    another thread than the one that imported ``torch``; to avoid that, call
    ``record_memory(lambda: None)`` in that thread first.

    Other threads may use PyTorch at the same time, and are no part of the recording. They must not
    run a profiler: PyTorch has one for the whole process, and can crash when two threads use it.

    Memory by role does not depend on the number of threads. The number of events may, and so may
    the peak, in the backward of a convolution, in ``scaled_dot_product_attention`` and in bfloat16
    products on a CPU. All sizes are in bytes.

    Rests on ``torch/csrc/profiler/collection.cpp`` and ``c10/core/CPUAllocator.cpp`` (what the
    profiler tells of an allocation) and ``c10/cuda/CUDACachingAllocator.cpp``.

    Args:
        fn: the function. Modules, optimizers and tensors that its arguments or its variables lead
            to are known from the start, as parameters, buffers, inputs, gradients and state.
        args, options: what it is called with. Tensors among them are inputs, unless they are
            parameters.
        names: names for parameters, as in :func:`autograd_lens.graph`: a Module, or a mapping.
        device: whose memory. By default that of the one CUDA device on which parameters or inputs
            lie, and else that of the CPU.

    Raises:
        TypeError: ``fn`` can't be called with these arguments, or ``names`` or ``device`` is of the
            wrong type.
        ValueError: the memory of ``device`` can't be recorded here.
        RuntimeError: a recording or a profiler runs already, or ``fn`` ran a profiler.
        LensUnsupported: this PyTorch lacks something that the lens reads.
        Exception: whatever ``fn`` raises. Everything is restored before it is passed on.
    """
    refuse_what_cant_run(fn, args, options)
    where, events, snapshots, before = record(fn, args, options, names, device)
    return _recording(where, account(events, snapshots, before))


def _recording(device: str, found: Account) -> MemoryRecording:
    blocks, names = found.blocks, found.phases
    base = dict.fromkeys(roles_used(blocks), 0)
    for block in blocks:
        if block.born < 0:
            base[block.role] += block.bytes
    live = LiveBytes(base, ((blocks[block].role, change) for _, _, block, change in found.events))
    samples = tuple(
        Sample(number, op, names[phase], blocks[block].role, change, live)
        for number, (op, phase, block, change) in enumerate(found.events)
    )
    return MemoryRecording(device, samples, tuple(_phases(found, live)), base, blocks, live)


def _phases(found: Account, live: LiveBytes) -> Iterator[Phase]:
    totals, stop = live.totals(), 0
    for number, name in enumerate(found.phases):
        start = stop
        while stop < len(found.events) and found.events[stop][1] == number:
            stop += 1
        if name:
            peak = max(totals[start : stop + 1])
            first = totals.index(peak, start)
            yield Phase(
                name, start, stop, peak, first - 1, live.after(start - 1), live.after(stop - 1)
            )

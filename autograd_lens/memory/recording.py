"""Follow live memory by role through a training step: which bytes, for what, and when they go.

The events come from PyTorch's allocators through the profiler; the roles from snapshots of the
storages that parameters, gradients, optimizer state and graph have when it matters: before the
function runs, when a backward begins and ends, around an optimizer's step, and at the end.
Nothing needs to be told: the backward and the optimizers are found when they run.

Roles: ``parameter`` (of a module or an optimizer, or a leaf that requires grad), ``buffer``,
``input`` (a tensor that ``fn`` was given or refers to, or older memory that a new graph saved),
``optimizer`` (state), ``gradient`` (``.grad`` of a parameter, and what ``torch.autograd.grad``
returned), ``activation`` (what a graph that goes backward keeps when it starts, or the one that was
returned), ``temporary`` (none of these, and freed again) and ``kept`` (none of these, and still
there).

What is counted is memory that PyTorch's allocator handed out while the function ran, and what was
known of before. Not seen: memory that libraries allocate themselves (oneDNN's scratch memory,
NumPy arrays), what other threads than the caller's and the engine's allocate and let go, and what
``CopySlices`` and ``_foreach_*`` nodes keep (it counts as temporary). Tensors that a checkpoint
makes again during the backward are temporary too, and so are gradients on their way. Older memory
that is resized in place, as FSDP does, counts with the size that it had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch

from ..result import Result
from .blocks import Account, Block, account, roles_used
from .recorder import record
from .roles import ROLES

if TYPE_CHECKING:
    from ..view.figure import Figure


@dataclass(frozen=True, slots=True)
class Sample:
    """One event, and what was alive after it.

    Attributes:
        event: its number: 0, 1, …
        op: the operation that was running, as the profiler names it (``"aten::mm"``; the node where
            a node let go of memory, ``"ReluBackward0"``); empty when it was Python.
        phase: ``"forward"``, ``"backward"``, ``"step"``, or ``"after"``: outside of these, with no
            backward to come next.
        role: of the memory that came or went.
        change: bytes that came, or negative: that went.
        by_role: live bytes by role after it.
    """

    event: int
    op: str
    phase: str
    role: str
    change: int
    by_role: dict[str, int]

    @property
    def total(self) -> int:
        """All live bytes after this event."""
        return sum(self.by_role.values())


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of the recording.

    Attributes:
        name: as in :class:`Sample`.
        start, stop: its events are ``samples[start:stop]``.
        peak_bytes: the most that was alive in it.
        peak_event: the first event at which that was so; ``start - 1`` if it began with it.
        before, after: live bytes by role at its two ends.
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
        samples: every event in order. Their number may depend on the number of threads, as a
            kernel that works in several of them may allocate for each.
        phases: forward, backward and step, as often as they came, and what came after them.
        base: bytes by role that were alive before, as far as they are known: what the arguments,
            ``names`` and the variables of ``fn`` lead to, or what a snapshot found later.
        blocks: every piece of memory, in order of its birth.
    """

    device: str
    samples: tuple[Sample, ...]
    phases: tuple[Phase, ...]
    base: dict[str, int]
    blocks: tuple[Block, ...]

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles that occur, from what lives longest to what lives shortest."""
        return roles_used(self.blocks)

    @cached_property
    def peak_bytes(self) -> int:
        """The most that was alive at one time."""
        return max(self.series())

    @cached_property
    def peak_event(self) -> int:
        """The first event after which that much was alive; -1 if it was so before the first."""
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
            return Sample(-1, "", "", "", 0, self.base)
        if not 0 <= event < len(self.samples):
            raise IndexError(f"events go from -1 to {len(self.samples) - 1}, not to {event}")
        return self.samples[event]

    def bytes_at(self, event: int) -> dict[str, int]:
        """Live bytes by role after ``event``; -1 is before the first."""
        return dict(self.at(event).by_role)

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
            return [sum(self.base.values()), *(sample.total for sample in self.samples)]
        if role not in ROLES:
            raise ValueError(f"role must be one of {', '.join(ROLES)}, not {role!r}")
        return [self.base.get(role, 0), *(s.by_role.get(role, 0) for s in self.samples)]

    def to_dicts(self) -> list[dict[str, Any]]:
        """One dict for each event, as for a table: event, op, phase, role, change, total, roles."""
        return [
            {
                "event": sample.event,
                "op": sample.op,
                "phase": sample.phase,
                "role": sample.role,
                "change": sample.change,
                "total": sample.total,
                **{role: sample.by_role.get(role, 0) for role in self.roles},
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

    ``fn`` may do anything: a forward, a whole training step, several of them. What it returns is
    let go afterwards, and the recording keeps no tensor. What takes more than a second shows a bar.

    Import the lens before ``torch``: else PyTorch says on stderr, once, when memory goes that is
    older than the recording. If the first recording of a process runs in another thread than the
    one that imported ``torch``, PyTorch writes "External init callback must run in same thread" to
    stderr, and nothing is wrong. Memory by role does not depend on the number of threads, but the
    number of events may, and so may the peak: in the backward of a convolution, in
    ``scaled_dot_product_attention`` and in bfloat16 products on a CPU.

    Args:
        fn: the function. Modules, optimizers and tensors that its arguments or its variables lead
            to are known from the start, as parameters, buffers, inputs, gradients and state.
        args, options: what it is called with. Tensors among them are inputs, unless they are
            parameters.
        names: names for parameters, as in :func:`autograd_lens.graph`: a Module, or a mapping.
        device: whose memory; by default the CPU's, or that of the one CUDA device on which
            parameters or inputs lie.

    Raises:
        TypeError: ``fn`` can't be called, or ``names`` or ``device`` is of the wrong kind.
        RuntimeError: a recording, or a profiler, runs already, or ``fn`` ran a profiler.
        Exception: whatever ``fn`` raises; everything is as before by then.
    """
    if isinstance(fn, torch.Tensor) or not callable(fn):
        raise TypeError(
            f"fn must be a function that runs the step, such as lambda: loss.backward(), "
            f"not {type(fn).__name__}"
        )
    where, stream, snapshots, before = record(fn, args, options, names, device)
    return _recording(where, account(stream, snapshots, before))


def _recording(device: str, found: Account) -> MemoryRecording:
    base = dict.fromkeys(roles_used(found.blocks), 0)
    for block in found.blocks:
        if block.born < 0:
            base[block.role] += block.bytes
    samples, live = [], base
    for number, (op, phase, block, change) in enumerate(found.events):
        role = found.blocks[block].role
        live = {**live, role: live[role] + change}
        samples.append(Sample(number, op, found.phases[phase], role, change, live))
    phases = tuple(_phases(found, samples, base))
    return MemoryRecording(device, tuple(samples), phases, base, tuple(found.blocks))


def _phases(found: Account, samples: list[Sample], base: dict[str, int]) -> Iterator[Phase]:
    stop = 0
    for number, name in enumerate(found.phases):
        start = stop
        while stop < len(samples) and found.events[stop][1] == number:
            stop += 1
        if name:
            before = samples[start - 1].by_role if start else base
            totals = [sum(before.values()), *(s.total for s in samples[start:stop])]
            peak = max(totals)
            after = samples[stop - 1].by_role if stop else base
            yield Phase(
                name, start, stop, peak, start - 1 + totals.index(peak), dict(before), dict(after)
            )

"""Run a function under the profiler, and take snapshots of roles at the moments that matter.

Everything that is put in place is removed again, also after an error: the profiler, the wrapper
around the engine, the optimizers' hooks, and the finalizers on older memory.

Other threads meet the wrapper and the hooks as well. There they do nothing: a snapshot that reads
the graph of another thread while that thread runs it would crash the process.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from .. import _torch
from ..progress import progress
from ..saving.names import Names
from .blocks import Freed
from .cuda import with_requested_sizes
from .events import Event, Mark, backward_range, events_of, mark
from .reach import reach
from .roles import GRADIENT, INPUT, PARAMETER, SAVED, Claim, Claims, Role, Roles

_only_one = threading.Lock()

_ENDED = "fn ran a profiler of its own, which ended that of record_memory: take it out of fn"


def record(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    options: Mapping[str, Any],
    names: Any,
    device: Any,
) -> tuple[str, list[Event], dict[int, Claims | Freed], Claims]:
    """Call ``fn``. Return the device, the events, the snapshots, and the claims from before."""
    known = Names(names)
    found = [*_given(names, known), *reach(fn, args, options)]
    where = device_of(found, device)
    if not _only_one.acquire(blocking=False):
        raise RuntimeError("record_memory is recording already: one recording at a time")
    try:
        if running := _torch.profiling():
            raise RuntimeError(f"a profiler runs in {running}, and record_memory needs its own")
        run = _Run(where, known)
        before = _claims_before(found, run.roles)
        del found, known  # so that they keep nothing alive while fn runs
        with progress("record_memory runs fn") as state:
            profile, trace = run.call(fn, args, options)
            state.doing = "record_memory reads events"
            events = events_of(profile, where, state)
        if run.last not in (one.number for one in events if isinstance(one, Mark)):
            raise RuntimeError(_ENDED)
        if where != "cpu":
            events = with_requested_sizes(events, trace)
        return where, events, run.snapshots, before
    finally:
        _only_one.release()


def _given(names: Any, known: Names) -> list[tuple[str, Any, bool]]:
    """What ``names`` holds, in the form of :func:`reach`."""
    if isinstance(names, torch.nn.Module):
        return [("", names, False)]
    return [(name, tensor, False) for name, tensor in known.pairs]


def device_of(found: list[Any], device: Any) -> str:
    """The device to record, by name.

    Raises:
        TypeError: ``device`` is no device.
        ValueError: its memory can't be recorded, or this machine does not have it.
    """
    if device is None:
        devices = {tensor.device for _, one, _ in found for tensor in _tensors(one)}
        cuda = {one for one in devices if one.type == "cuda"}
        chosen = cuda.pop() if len(cuda) == 1 else torch.device("cpu")
    elif isinstance(device, (str, torch.device)):
        try:
            chosen = torch.device(device)
        except RuntimeError:
            raise ValueError(f'device must be "cpu" or "cuda", not {device!r}') from None
    else:
        raise TypeError(f'device must be "cpu" or "cuda", not {type(device).__name__}')
    if chosen.type == "cuda":
        if not torch.cuda.is_available():
            raise ValueError(f"device {str(chosen)!r} asks for CUDA, and this PyTorch finds none")
        if chosen.index is None:
            chosen = torch.device("cuda", torch.cuda.current_device())
        if chosen.index >= torch.cuda.device_count():
            raise ValueError(f"device {str(chosen)!r} is not here: there are fewer CUDA devices")
    elif chosen.type != "cpu":
        raise ValueError(f'memory is recorded on "cpu" or "cuda", not on {str(chosen)!r}')
    return str(chosen) if chosen.type == "cuda" else "cpu"  # "cpu:0" is the same


def _tensors(one: Any) -> list[torch.Tensor]:
    if isinstance(one, torch.nn.Module):
        return [*one.parameters(), *one.buffers()]
    if isinstance(one, torch.optim.Optimizer):
        return [tensor for group in one.param_groups for tensor in group["params"]]
    return [one]


def _claims_before(found: list[Any], roles: Roles) -> Claims:
    """Claim what the function can reach.

    The first claim counts. Modules come first, because a name in a module says most. Arguments come
    before the plain attributes of modules, because a module may keep its last input.
    """
    claims: Claims = {}
    met = {id(one): (name, one) for name, one, _ in found if isinstance(one, torch.nn.Module)}
    modules = list(met.values())
    inside = {id(part) for _, one in modules for part in one.modules() if part is not one}
    for name, module in modules:
        prefix = f"{name}." if len(modules) > 1 and name else ""
        if id(module) not in inside:
            roles.modules.add(prefix, module)
        for place, tensor in [*module.named_parameters(), *module.named_buffers()]:
            roles.name(tensor, prefix + place)
    roles.registered(claims)
    for _, one, _ in found:
        if isinstance(one, torch.optim.Optimizer):
            roles.optimizer(one, claims)
    tensors = [entry for entry in found if isinstance(entry[1], torch.Tensor)]
    for name, tensor, argument in tensors:
        if argument:
            _claim_tensor(name, tensor, INPUT, roles, claims)
    roles.attributes(claims)
    for name, tensor, argument in tensors:
        if not argument:
            _claim_tensor(name, tensor, PARAMETER, roles, claims)
    roles.indices(claims)
    return claims


def _claim_tensor(
    name: str, tensor: torch.Tensor, leaf: Role, roles: Roles, claims: Claims
) -> None:
    """Claim a tensor that the function can reach; ``leaf``: the role if it requires grad."""
    roles.name(tensor, name)
    if isinstance(tensor, torch.nn.Parameter):
        roles.leaf(PARAMETER, tensor, claims)
    elif tensor.requires_grad and tensor.is_leaf:
        roles.leaf(leaf, tensor, claims)
    else:
        roles.tensor(INPUT, tensor, name, claims)
        roles.graph(tensor, claims)


class _Run:
    """One run of the function: what is put around it, and the snapshots taken meanwhile."""

    def __init__(self, device: str, known: Names):
        self.roles = Roles(device, known, self._met)
        self.snapshots: dict[int, Claims | Freed] = {}
        self.numbers = itertools.count()
        self.finalizers: dict[int, weakref.finalize] = {}
        self.sign = _torch.Sign()
        self.runs = False
        self.last = -1
        self.freed = _torch.not_compiled(self._freed)

    def call(
        self, fn: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]
    ) -> tuple[torch.autograd.profiler.profile, list[Any]]:
        """Run ``fn`` under the profiler. Return its profile and the history of CUDA memory."""
        step = _torch.not_compiled(self._step)
        backward = _torch.not_compiled(self._backward)
        # Not ``torch.profiler.profile``: that one warns about itself, and warnings can only be
        # silenced for all threads at once.
        profile = torch.autograd.profiler.profile(profile_memory=True, use_kineto=True)
        with ExitStack() as stack:
            stack.callback(self._end)
            trace = stack.enter_context(_history(self.roles.device))
            stack.enter_context(_running(profile))
            stack.enter_context(self.sign.on_backwards())
            stack.enter_context(_torch.watched_backward(backward))
            stack.callback(register_optimizer_step_pre_hook(step).remove)
            stack.callback(register_optimizer_step_post_hook(step).remove)
            self.roles.begins()
            self.runs = True
            result = fn(*args, **options)
            self._last(result)
        return profile, trace

    def _met(self, claim: Claim, address: int, storage: torch.UntypedStorage) -> None:
        """Watch memory that may be older than the profiler, which may not tell when it is freed.

        What a new node saved is most often new. It is not watched, because there is much of it.
        """
        if (claim.role, claim.role_if_older) == SAVED:
            return
        watching = self.finalizers.get(address)
        if watching is not None:
            if watching.alive and watching.peek()[0] is storage:
                return
            watching.detach()
        self.finalizers[address] = weakref.finalize(storage, self.freed, address)

    def _freed(self, address: int) -> None:
        if self.runs and self.sign.here():
            self._mark(Freed(address))

    def _take(self, claims: Claims) -> int:
        self.roles.indices(claims)
        return self._mark(claims)

    def _mark(self, found: Claims | Freed) -> int:
        number = next(self.numbers)  # not a length: a finalizer may run between two lines
        self.snapshots[number] = found
        mark(number)
        return number

    def _backward(self, run: Callable[[], Any], outputs: Any) -> Any:
        if not self.sign.here():  # another thread
            return run()
        if _torch.is_tracing():  # a compiler writes a backward down, and nothing runs
            return run()
        claims: Claims = {}
        self.roles.known(claims)
        self.roles.graph(outputs, claims)
        self._take(claims)
        gradients: Any = None
        try:
            with backward_range():
                gradients = run()
            return gradients
        finally:
            claims = {}
            self.roles.gradients(claims)
            for tensor in _torch.tensors_in(gradients):
                self.roles.tensor(GRADIENT, tensor, "grad", claims)
            self._take(claims)

    def _step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        if self.sign.here():
            claims: Claims = {}
            self.roles.optimizer(optimizer, claims)
            self._take(claims)

    def _last(self, result: Any) -> None:
        claims: Claims = {}
        self.roles.known(claims)
        self.roles.graph(result, claims)
        self.last = self._take(claims)

    def _end(self) -> None:
        self.runs = False
        for finalizer in self.finalizers.values():
            finalizer.detach()
        self.finalizers.clear()
        del self.freed, self.roles  # they refer to this object: it would wait for the collector


@contextmanager
def _history(device: str) -> Iterator[list[Any]]:
    """The allocator's own record of a CUDA device. The list is filled when the block ends."""
    trace: list[Any] = []
    if device == "cpu":
        yield trace
        return
    _torch.start_cuda_history()
    try:
        yield trace
    finally:
        trace += _torch.stop_cuda_history(torch.device(device).index)


@contextmanager
def _running(profile: torch.autograd.profiler.profile) -> Iterator[None]:
    """The profiler around a block. Says so if the block ended it."""
    profile.__enter__()
    try:
        yield
    except BaseException:
        _stop(profile)
        raise
    if not _stop(profile):
        raise RuntimeError(_ENDED)


def _stop(profile: torch.autograd.profiler.profile) -> bool:
    """Stop it. False where it was stopped before; later versions of PyTorch do not tell."""
    try:
        profile.__exit__(None, None, None)
    except RuntimeError:
        return False
    return True

"""Run a function under the profiler, with snapshots of roles where they matter.

Everything that is put in place is taken away again, whatever happens: the profiler, the wrapper
around the engine, the optimizers' hooks, and the finalizers on older memory.
"""

from __future__ import annotations

import itertools
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.profiler import ProfilerActivity

from .. import _torch
from ..progress import progress
from ..saving.names import Names
from .blocks import Gone
from .cuda import with_requested_sizes
from .events import Border, Change, Mark, backward_range, mark, stream
from .reach import reach
from .roles import Claim, Claims, Roles

_only_one = threading.Lock()

_ENDED = "fn ran a profiler of its own, which ended that of record_memory: take it out of fn"


def record(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    options: Mapping[str, Any],
    names: Any,
    device: Any,
) -> tuple[str, list[Change | Mark | Border], dict[int, Claims | Gone], Claims]:
    """Call ``fn`` and return the device, the events, the snapshots, and what was there before."""
    known = Names(names)
    found = [*_given(names, known), *reach(fn, args, options)]
    where = device_of(found, device)
    if not _only_one.acquire(blocking=False):
        raise RuntimeError("record_memory is recording already: one recording at a time")
    try:
        if _torch.profiling():
            raise RuntimeError("a profiler runs in this thread, and record_memory needs its own")
        watch = _Watch(where, known)
        before = _before(found, watch.roles)
        del found, known  # nothing of the reader's is kept alive while it runs
        with progress("record_memory runs fn") as state:
            profile, trace = watch.call(fn, args, options)
            state.doing = "record_memory reads events"
            events = stream(profile, where, state)
        if watch.last not in (one.number for one in events if isinstance(one, Mark)):
            raise RuntimeError(_ENDED)
        if where != "cpu":
            events = with_requested_sizes(events, trace)
        return where, events, watch.snapshots, before
    finally:
        _only_one.release()


def _given(names: Any, known: Names) -> list[tuple[str, Any, bool]]:
    """What ``names`` tells of, in the form of :func:`reach`."""
    if isinstance(names, torch.nn.Module):
        return [("", names, False)]
    return [(name, tensor, False) for name, tensor in known.pairs]


def device_of(found: list[Any], device: Any) -> str:
    """The device to record, by name.

    Raises:
        TypeError: ``device`` is no device.
        ValueError: its memory can't be recorded, or it is not here.
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
    elif chosen.type != "cpu":
        raise ValueError(f'memory is recorded on "cpu" or "cuda", not on {str(chosen)!r}')
    return str(chosen)


def _tensors(one: Any) -> list[torch.Tensor]:
    if isinstance(one, torch.nn.Module):
        return [*one.parameters(), *one.buffers()]
    if isinstance(one, torch.optim.Optimizer):
        return [tensor for group in one.param_groups for tensor in group["params"]]
    return [one]


def _before(found: list[Any], roles: Roles) -> Claims:
    """Claim what the function can reach: modules first, since a name in a module says most."""
    claims: Claims = {}
    met = {id(one): (name, one) for name, one, _ in found if isinstance(one, torch.nn.Module)}
    modules = list(met.values())
    inside = {id(part) for _, one in modules for part in one.modules() if part is not one}
    for name, module in modules:
        prefix = f"{name}." if len(modules) > 1 and name else ""
        if id(module) not in inside:
            roles.module(prefix, module)
        for place, tensor in [*module.named_parameters(), *module.named_buffers()]:
            roles.name(tensor, prefix + place)
    roles.modules(claims)
    for _, one, _ in found:
        if isinstance(one, torch.optim.Optimizer):
            roles.optimizer(one, claims)
    for name, one, argument in found:
        if not isinstance(one, torch.Tensor):
            continue
        roles.name(one, name)
        mine = one.requires_grad and one.is_leaf and not argument
        if mine or isinstance(one, torch.nn.Parameter):
            roles.parameters([one], claims)
        else:
            roles.tensor("input", one, name, claims)
            roles.graph(one, claims)
    return claims


class _Watch:
    """What stands around the function while it runs."""

    def __init__(self, device: str, known: Names):
        self.roles = Roles(device, known, self._met)
        self.snapshots: dict[int, Claims | Gone] = {}
        self.numbers = itertools.count()
        self.finalizers: dict[int, weakref.finalize] = {}
        self.runs = False
        self.last = -1
        self.gone = _torch.not_compiled(self._gone)

    def call(
        self, fn: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]
    ) -> tuple[torch.profiler.profile, list[Any]]:
        """Run ``fn`` under the profiler; return that, stopped, and the history of CUDA memory."""
        step = _torch.not_compiled(self._step)
        backward = _torch.not_compiled(self._backward)
        profile = torch.profiler.profile(activities=[ProfilerActivity.CPU], profile_memory=True)
        with ExitStack() as stack:
            stack.callback(self._let_go)
            trace = stack.enter_context(_history(self.roles.device))
            stack.enter_context(_quiet(profile))
            stack.enter_context(_torch.watched_backward(backward))
            stack.callback(register_optimizer_step_pre_hook(step).remove)
            stack.callback(register_optimizer_step_post_hook(step).remove)
            self.roles.begins()
            self.runs = True
            result = fn(*args, **options)
            self._last(result)
        return profile, trace

    def _met(self, claim: Claim, address: int, storage: torch.UntypedStorage) -> None:
        """Watch for the end of memory that may be older than the profiler, which won't tell."""
        if self.runs and claim.role == "activation" and not claim.older:
            return
        watching = self.finalizers.get(address)
        if watching is not None:
            if watching.alive and watching.peek()[0] is storage:
                return
            watching.detach()
        self.finalizers[address] = weakref.finalize(storage, self.gone, address)

    def _gone(self, address: int) -> None:
        if self.runs:
            self._mark(Gone(address))

    def _mark(self, found: Claims | Gone) -> int:
        number = next(self.numbers)  # not a length: a finalizer may run at any moment
        self.snapshots[number] = found
        mark(number)
        return number

    def _backward(self, run: Callable[[], Any], outputs: Any) -> Any:
        if _torch.is_tracing():  # a compiler makes a backward out of it, and nothing runs
            return run()
        claims: Claims = {}
        self.roles.known(claims)
        self.roles.graph(outputs, claims)
        self._mark(claims)
        gradients: Any = None
        try:
            with backward_range():
                gradients = run()
            return gradients
        finally:
            claims = {}
            self.roles.gradients(claims)
            for tensor in _torch.tensors_in(gradients):
                self.roles.tensor("gradient", tensor, "grad", claims)
            self._mark(claims)

    def _step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        claims: Claims = {}
        self.roles.optimizer(optimizer, claims)
        self._mark(claims)

    def _last(self, result: Any) -> None:
        claims: Claims = {}
        self.roles.known(claims)
        self.roles.graph(result, claims)
        self.last = self._mark(claims)

    def _let_go(self) -> None:
        self.runs = False
        for finalizer in self.finalizers.values():
            finalizer.detach()


@contextmanager
def _history(device: str) -> Iterator[list[Any]]:
    """The allocator's own record of a CUDA device, in the list when the block has ended."""
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
def _quiet(profile: torch.profiler.profile) -> Iterator[None]:
    """The profiler around a block, without the warnings that are about itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        profile.start()
    try:
        yield
    except BaseException:
        _stop(profile)
        raise
    if not _stop(profile):
        raise RuntimeError(_ENDED)


def _stop(profile: torch.profiler.profile) -> bool:
    """Stop it; False where it was stopped already, which later versions do not say."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            profile.stop()
        except RuntimeError:
            return False
    return True

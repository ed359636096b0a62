"""Allocations as the profiler saw them, and who runs a backward.

- ``torch.autograd._engine_run_backward``: the one function through which ``backward()`` and
  ``grad()`` reach the engine; there is no public hook for "a backward begins".
- the profiler's ``kineto_results.experimental_event_tree()`` and ``_EventType``: the only list of
  single allocations with their addresses; public tables hold sums.
- ``torch.autograd.profiler._is_profiler_enabled``: whether a profiler runs in any thread.
- ``torch._C._profiler._RecordFunctionFast``: names a range of the profiler's events without
  running an operation.
- ``torch._guards.detect_fake_mode`` and ``torch.fx.experimental.proxy_tensor.get_proxy_mode``:
  whether a compiler traces.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from .errors import unsupported

_ENGINE = "_engine_run_backward"


@contextmanager
def watched_backward(around: Callable[..., Any]) -> Iterator[None]:
    """Until the block ends, call ``around(run, outputs)`` for every backward of the process.

    ``run()`` runs it and returns what the engine returned.
    """
    if not hasattr(torch.autograd, _ENGINE):
        raise unsupported(f"torch.autograd.{_ENGINE}")
    engine = getattr(torch.autograd, _ENGINE)

    def instead(outputs: Any, *args: Any, **options: Any) -> Any:
        return around(lambda: engine(outputs, *args, **options), outputs)

    setattr(torch.autograd, _ENGINE, instead)
    try:
        yield
    finally:
        setattr(torch.autograd, _ENGINE, engine)


def named_range(name: str) -> Any:
    """A context that the profiler sees under this name.

    Not ``torch.profiler.record_function``: that is an operation, and whoever traces (``make_fx``,
    AOTAutograd) would write it into the program that is made.
    """
    try:
        return torch._C._profiler._RecordFunctionFast(name)
    except AttributeError:
        raise unsupported("torch._C._profiler._RecordFunctionFast") from None


def is_tracing() -> bool:
    """Whether a compiler traces operations, or runs them on fake tensors."""
    if torch._guards.detect_fake_mode() is not None:
        return True
    proxies = sys.modules.get("torch.fx.experimental.proxy_tensor")  # not loaded: nobody traces
    return proxies is not None and proxies.get_proxy_mode() is not None


def not_compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function`` so that ``torch.compile`` does not trace into its calls."""

    def dynamo_is_there() -> bool:  # not loaded: nothing is compiled. Loading it takes seconds
        return "torch._dynamo" in sys.modules

    def call(*args: Any) -> Any:
        return (torch.compiler.disable(function) if dynamo_is_there() else function)(*args)

    return torch.compiler.disable(function) if dynamo_is_there() else call


def profiling() -> str:
    """Where a profiler runs already: ``"this thread"``, ``"another thread"``, or an empty text.

    A process can have only one profiler: two in two threads crash it.
    """
    if torch._C._autograd._profiler_enabled():
        return "this thread"
    running = getattr(torch.autograd.profiler, "_is_profiler_enabled", False)
    return "another thread" if running else ""


def take_event_tree(profile: Any) -> list[Any]:
    """The roots of what a finished ``torch.autograd.profiler.profile`` recorded.

    Each has ``.children``. The profiler's other copies of the events are freed here.
    """
    try:
        roots = profile.kineto_results.experimental_event_tree()
    except AttributeError:
        raise unsupported("experimental_event_tree in the profiler") from None
    profile.kineto_results = None
    return roots


def allocation(event: Any) -> tuple[int, int, str] | None:
    """``(address, bytes, device)`` of an allocation, bytes negative for a free; None for others."""
    if event.tag != torch._C._profiler._EventType.Allocation:
        return None
    change = event.typed[1]
    return change.ptr, change.alloc_size, str(change.device)

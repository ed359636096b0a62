"""What the lens replaces in PyTorch, while it is needed.

``torch.autograd.graph.saved_tensors_hooks.__enter__`` and ``__exit__`` are public, but PyTorch does
not promise that they may be replaced. Hooks that are entered inside of a recorder pack tensors in
its place, so it must know of them, and there is no other way to learn that.
(``torch.autograd._engine_run_backward`` is replaced in :mod:`autograd_lens._torch.profiler`.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.autograd.graph import saved_tensors_hooks

_enter, _exit = saved_tensors_hooks.__enter__, saved_tensors_hooks.__exit__
_listeners: list[Callable[[Any, bool], None]] = []


def tell_of_saved_tensor_hooks(listener: Callable[[Any, bool], None]) -> None:
    """Call ``listener(context, entered)`` when such hooks are entered, and before they are left.

    It is called for the contexts of all threads, until :func:`tell_no_more`.
    """
    _listeners.append(listener)
    saved_tensors_hooks.__enter__, saved_tensors_hooks.__exit__ = _noted_enter, _noted_exit


def tell_no_more(listener: Callable[[Any, bool], None]) -> None:
    """Undo :func:`tell_of_saved_tensor_hooks`; with the last listener the patch goes."""
    _listeners.remove(listener)
    if not _listeners:
        saved_tensors_hooks.__enter__, saved_tensors_hooks.__exit__ = _enter, _exit


def _noted_enter(self: saved_tensors_hooks) -> Any:
    result = _enter(self)
    for listener in list(_listeners):
        listener(self, True)
    return result


def _noted_exit(self: saved_tensors_hooks, *exception: object) -> None:
    for listener in list(_listeners):
        listener(self, False)
    _exit(self, *exception)

"""What the lens replaces in PyTorch, while it is needed.

``torch.autograd.graph.saved_tensors_hooks.__enter__`` and ``__exit__`` are public, but PyTorch does
not promise that they may be replaced. Hooks that are entered inside of a recorder pack tensors in
its place, so it must know of them, and there is no other way to learn that.
(``torch.autograd._engine_run_backward`` is replaced in :mod:`autograd_lens._torch.profiler`.)

``torch.nn.modules.module._global_forward_hooks`` and its kind: PyTorch offers functions that put
hooks there, but each time under a new key. What ``torch.compile`` compiles while there are hooks is
good for those keys and functions only. So ours are always the same, else each recorder would have a
model compiled again, until ``torch.compile`` gives up.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.nn.modules import module as modules
from torch.utils.hooks import RemovableHandle

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


_KEY = RemovableHandle(modules._global_forward_pre_hooks).id
_callers: list[Callable[[torch.nn.Module, bool], None]] = []
_lock = threading.Lock()


def tell_of_module_calls(listener: Callable[[torch.nn.Module, bool], None]) -> None:
    """Call ``listener(module, entered)`` when a module is called, and when it returns or raises.

    It is called for the modules of all threads, until :func:`tell_no_more_of_module_calls`; not for
    what ``torch.compile`` traces, where no node is made yet.
    """
    with _lock:
        _callers.append(listener)
        modules._global_forward_pre_hooks[_KEY] = _noted_call
        modules._global_forward_hooks[_KEY] = _noted_return
        modules._global_forward_hooks_always_called[_KEY] = True


def tell_no_more_of_module_calls(listener: Callable[[torch.nn.Module, bool], None]) -> None:
    """Undo :func:`tell_of_module_calls`; with the last listener the hooks go."""
    with _lock:
        _callers.remove(listener)
        if not _callers:
            del modules._global_forward_pre_hooks[_KEY]
            del modules._global_forward_hooks[_KEY]
            del modules._global_forward_hooks_always_called[_KEY]


def _noted_call(module: torch.nn.Module, _: Any) -> None:
    if torch.compiler.is_compiling():
        return
    for listener in list(_callers):
        listener(module, True)


def _noted_return(module: torch.nn.Module, _: Any, __: Any) -> None:
    if torch.compiler.is_compiling():
        return
    for listener in list(_callers):
        listener(module, False)

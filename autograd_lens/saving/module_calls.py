"""Which module was running when a node was created, found from the creation numbers of nodes."""

from __future__ import annotations

import threading
import weakref
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)

from .. import _torch


@dataclass(frozen=True)
class Call:
    """A call of a module, inside of another one or of none."""

    module: weakref.ref[torch.nn.Module]
    around: Call | None


class ModuleCalls:
    """Notes the calls of modules on the thread that starts it, from start to stop.

    Rests on the hooks that PyTorch offers for all modules
    (``torch.nn.modules.module.register_module_forward_pre_hook``).
    """

    def __init__(self) -> None:
        self._numbers: list[int] = []  # of the next node, at each change of the running module
        self._running: list[Call | None] = []  # the call that runs from there on
        self._handles: list[Any] = []

    def start(self) -> None:
        """Begin to note calls."""
        self._thread = threading.get_ident()
        self._note(None)
        self._handles = [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
        ]

    def stop(self) -> None:
        """Note no more calls; those that were noted stay known."""
        for handle in self._handles:
            handle.remove()
        self._note(None)

    def paths(self, model: torch.nn.Module, sequence_nrs: Iterable[int]) -> list[str | None]:
        """The path in ``model`` of the module that made each node; None for a node outside of it.

        A node is given by its sequence number. It belongs to the innermost running module that
        ``model`` contains. Of a module with several paths the first one counts.
        """
        paths: dict[int, str] = {}
        for path, module in model.named_modules(remove_duplicate=False):
            paths.setdefault(id(module), path)
        return [self._path(paths, self._at(number)) for number in sequence_nrs]

    def _at(self, number: int) -> Call | None:
        place = bisect_right(self._numbers, number) - 1
        return self._running[place] if place >= 0 else None

    @staticmethod
    def _path(paths: dict[int, str], call: Call | None) -> str | None:
        while call is not None:
            module = call.module()
            if module is not None and id(module) in paths:
                return paths[id(module)]
            call = call.around
        return None

    def _note(self, call: Call | None) -> None:
        self._numbers.append(_torch.next_sequence_nr())
        self._running.append(call)

    def _enter(self, module: torch.nn.Module, _: Any) -> None:
        if torch.compiler.is_compiling():  # this call is traced, and makes no node yet
            return
        if threading.get_ident() == self._thread:
            self._note(Call(weakref.ref(module), self._running[-1]))

    def _leave(self, module: torch.nn.Module, _: Any, __: Any) -> None:
        if torch.compiler.is_compiling():
            return
        running = self._running[-1]
        if threading.get_ident() == self._thread and running is not None:
            if running.module() is module:  # if not, the recorder was entered during this call
                self._note(running.around)

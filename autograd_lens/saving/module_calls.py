"""Which module ran when, told by the numbers that nodes get in the order of their creation."""

from __future__ import annotations

import threading
import weakref
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

import torch

from .. import _torch


@dataclass(frozen=True)
class Call:
    """A call of a module, inside of another one or of none."""

    module: weakref.ref[torch.nn.Module]
    around: Call | None


class ModuleCalls:
    """Notes the calls of modules on the thread that starts it, from start to stop."""

    def __init__(self) -> None:
        self._numbers: list[int] = []  # of the next node, each time another module went on
        self._running: list[Call | None] = []  # the module that went on then

    def start(self) -> None:
        """Begin to note calls."""
        self._thread = threading.get_ident()
        self._note(None)
        _torch.tell_of_module_calls(self._called)

    def stop(self) -> None:
        """Note no more calls; those that were noted stay known."""
        _torch.tell_no_more_of_module_calls(self._called)
        self._note(None)

    def paths(self, model: torch.nn.Module, sequence_nrs: Iterable[int]) -> list[str | None]:
        """The path in ``model`` of the module that made each node; None for a node outside of it.

        A node is given by its sequence number. It belongs to the innermost module that ``model``
        has a path for; a module with several paths answers with the first.
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

    def _called(self, module: torch.nn.Module, entered: bool) -> None:
        if threading.get_ident() != self._thread:
            return
        running = self._running[-1]
        if entered:
            self._note(Call(weakref.ref(module), running))
        elif running is not None and running.module() is module:
            self._note(running.around)  # else the recorder was entered inside of its call

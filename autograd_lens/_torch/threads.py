"""A sign by which a hook tells the backwards of one thread from those of others.

``torch._C._stash_obj_in_tls`` puts a Python object into the thread-local state that the engine
takes over from the thread that calls it. Every thread has that state while it runs nodes of this
backward: the threads of devices too, and those of backwards inside of it. An entry must be
removed again. Otherwise it is freed when its thread ends, and the interpreter may be gone by then.
PyTorch 2.11 can't remove an entry, and does not count its references either.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_SIGNS = "autograd_lens.signs"
CAN_SIGN = hasattr(torch._C, "_remove_obj_from_tls")


class Sign:
    """Tells the backwards that this thread starts in a block from all others."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    @contextmanager
    def on_backwards(self) -> Iterator[None]:
        """Until the block ends, every backward that this thread starts carries the sign."""
        if not CAN_SIGN:
            yield
            return
        before = _signs()
        torch._C._stash_obj_in_tls(_SIGNS, (*before, self))
        try:
            yield
        finally:
            if before:
                torch._C._stash_obj_in_tls(_SIGNS, before)
            else:
                torch._C._remove_obj_from_tls(_SIGNS)

    def here(self) -> bool:
        """Whether the running backward carries the sign; for use in a hook.

        PyTorch 2.11 carries no sign. There a call counts if it comes from this thread or from a
        thread of the engine. On a device other than the CPU, that one may work for another thread.
        """
        if CAN_SIGN:
            return self in _signs()
        me = threading.get_ident()
        return me == self._thread or all(
            thread.ident != me or isinstance(thread, threading._DummyThread)
            for thread in threading.enumerate()
        )


def _signs() -> tuple[Sign, ...]:
    return torch._C._get_obj_in_tls(_SIGNS) if torch._C._is_key_in_tls(_SIGNS) else ()

"""Pause the cyclic garbage collector while very many objects are made that are no garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """A fifth of the time for a graph of 100,000 nodes, or more, would go into collections.

    Python has one collector for all threads. Meanwhile the others go on, and their cycles wait. A
    thread that switches the collector off just then finds it on afterwards.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()

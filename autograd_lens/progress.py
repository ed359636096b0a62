"""A progress bar for work that takes more than a second.

In a notebook it is a widget, which is closed at the end. In a terminal it is a line on stderr,
which is erased at the end. Anywhere else (a file, a pipe, a build of the book, a test) there is no
bar.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

PATIENCE = 1.0
"""Seconds until a bar appears."""

EVERY = 0.2
"""Seconds between two updates of the bar."""


class Progress:
    """The state of a piece of work. The work writes it, the bar reads it.

    Attributes:
        doing: what it does now.
        done, total: how much of it is done. A ``total`` of 0 means that it is not known.
    """

    def __init__(self, doing: str):
        self.doing, self.done, self.total = doing, 0, 0

    def words(self, seconds: float) -> str:
        """One line: ``reading events: 40%, 3 s``."""
        share = f"{100 * self.done // self.total}%, " if self.total else ""
        return f"{self.doing}: {share}{seconds:.0f} s"


@contextmanager
def progress(doing: str) -> Iterator[Progress]:
    """Show a bar while the block runs, if it takes long and there is somewhere to show it."""
    state = Progress(doing)
    bar = _kind_of_bar()
    if bar is None:
        yield state
        return
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(state, bar, over), daemon=True)
    watcher.start()
    try:
        yield state
    finally:
        over.set()
        watcher.join()


def _watch(state: Progress, bar: Any, over: threading.Event) -> None:
    start = time.monotonic()
    if over.wait(PATIENCE):
        return
    # If the bar can't be shown, the work goes on, and nothing is written to stderr.
    with suppress(Exception):
        shown = bar()
        try:
            while not over.wait(EVERY):
                shown.update(state, time.monotonic() - start)
        finally:
            shown.close()


def _kind_of_bar() -> Any:
    """The class of the bar that can be shown here, or None."""
    if os.environ.get("AUTOGRAD_LENS_LIVE") == "0":
        return None
    if "IPython" in sys.modules:
        from IPython import get_ipython

        if getattr(get_ipython(), "kernel", None) is not None:
            return _Widget
    return _Line if sys.stderr is not None and sys.stderr.isatty() else None


class _Line:
    """One line in a terminal, overwritten at each update."""

    WIDTH = 60

    def update(self, state: Progress, seconds: float) -> None:
        line = state.words(seconds)[: self.WIDTH]
        print(f"\r{line:{self.WIDTH}}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        print(f"\r{'':{self.WIDTH}}\r", end="", file=sys.stderr, flush=True)


class _Widget:
    """A bar in a notebook, which disappears at the end."""

    def __init__(self) -> None:
        import ipywidgets
        from IPython.display import display

        style = {"description_width": "initial"}
        self.bar = ipywidgets.IntProgress(style=style, layout={"width": "420px"})
        self.shown = display(self.bar, display_id=True)

    def update(self, state: Progress, seconds: float) -> None:
        self.bar.max = state.total or 100
        self.bar.value = state.done if state.total else int(20 * seconds) % 100
        self.bar.description = state.words(seconds)

    def close(self) -> None:
        self.bar.close()
        self.shown.update({"text/plain": ""}, raw=True)  # else its name stays in the saved notebook

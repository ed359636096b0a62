"""A bar that appears after a second, in the right place, and leaves nothing behind."""

import io
import re
import sys
from threading import Event

import pytest

from autograd_lens import progress as module
from autograd_lens.progress import Progress, progress


class Terminal(io.StringIO):
    """A terminal that tells when a text has been written to it."""

    def __init__(self, awaited=""):
        super().__init__()
        self.awaited, self.seen = awaited, Event()

    def isatty(self):
        return True

    def write(self, text):
        super().write(text)
        if self.awaited and self.awaited in text:
            self.seen.set()


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.01)
    monkeypatch.setattr(module, "EVERY", 0.01)
    monkeypatch.delenv("AUTOGRAD_LENS_LIVE", raising=False)


def work(shown=None):
    """A quarter of the work, and the rest when the bar is ``shown``."""
    with progress("counting") as state:
        state.done, state.total = 1, 4
        assert shown is None or shown.wait(60)


def test_a_terminal_gets_one_line_that_is_wiped_out(quick, monkeypatch):
    terminal = Terminal("counting: 25%")
    monkeypatch.setattr(sys, "stderr", terminal)
    work(terminal.seen)
    text = terminal.getvalue()
    assert re.search(r"counting: 25%, \d+ s", text) and "\n" not in text
    assert text.endswith("\r") and not text.split("\r")[-2].strip()


def test_quick_work_shows_nothing(quick, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(module, "PATIENCE", 60)
    work()
    assert terminal.getvalue() == ""


@pytest.fixture
def watched(monkeypatch):
    """Where a bar would be shown, for each piece of work that is watched at all."""
    places = []
    monkeypatch.setattr(module, "_watch", lambda state, place, over: places.append(place))
    return places


@pytest.mark.parametrize("stream", [io.StringIO(), None], ids=["a file", "nothing"])
def test_a_file_gets_nothing(quick, monkeypatch, watched, stream):
    monkeypatch.setattr(sys, "stderr", Terminal())
    work()
    assert watched == [module._Line]
    monkeypatch.setattr(sys, "stderr", stream)
    work()
    assert watched == [module._Line]


def test_a_build_gets_nothing(quick, monkeypatch, watched):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("AUTOGRAD_LENS_LIVE", "0")
    work()
    assert watched == []


def test_a_notebook_gets_a_widget_that_is_closed(quick, monkeypatch):
    import IPython

    class Shell:
        kernel = object()

    class Shown:
        def update(self, data, raw):
            left.append((data, raw))

    def display(bar, display_id):
        shown.append(bar)
        bar.observe(lambda change: described.set(), "description")
        return Shown()

    shown, left, described, terminal = [], [], Event(), Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(IPython, "get_ipython", Shell)
    monkeypatch.setattr(IPython.display, "display", display)
    work(described)
    (bar,) = shown
    assert bar.max == 4 and bar.value == 1 and "counting" in bar.description
    assert bar.comm is None and terminal.getvalue() == ""
    assert left == [({"text/plain": ""}, True)], "nothing stays in the saved notebook"


def test_a_bar_that_cant_be_shown_disturbs_nothing(quick, monkeypatch, capfd):
    class Broken(Terminal):
        def write(self, text):
            self.seen.set()
            raise OSError("gone")

    broken = Broken()
    monkeypatch.setattr(sys, "stderr", broken)
    work(broken.seen)
    assert capfd.readouterr() == ("", "")


def test_an_error_takes_the_bar_away(quick, monkeypatch):
    terminal = Terminal("failing")
    monkeypatch.setattr(sys, "stderr", terminal)
    with pytest.raises(KeyError), progress("failing"):
        assert terminal.seen.wait(60)
        raise KeyError
    assert terminal.getvalue().endswith("\r")


def test_words_without_a_total():
    assert Progress("running").words(2.4) == "running: 2 s"

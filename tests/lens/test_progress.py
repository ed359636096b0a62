"""A bar that appears after a second, in the right place, and leaves nothing behind."""

import io
import sys
import time

import pytest

from autograd_lens import progress as module
from autograd_lens.progress import Progress, progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.01)
    monkeypatch.setattr(module, "EVERY", 0.01)
    monkeypatch.delenv("AUTOGRAD_LENS_LIVE", raising=False)


def work():
    with progress("counting") as state:
        state.total = 4
        for state.done in range(4):
            time.sleep(0.05)


def test_a_terminal_gets_one_line_that_is_wiped_out(quick, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    work()
    text = terminal.getvalue()
    assert "counting: 25%, 0 s" in text and "\n" not in text
    assert text.endswith("\r") and not text.split("\r")[-2].strip()


def test_quick_work_shows_nothing(quick, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(module, "PATIENCE", 60)
    work()
    assert terminal.getvalue() == ""


def test_a_file_gets_nothing(quick, monkeypatch):
    file = io.StringIO()
    monkeypatch.setattr(sys, "stderr", file)
    work()
    monkeypatch.setattr(sys, "stderr", None)
    work()
    assert file.getvalue() == ""


def test_a_build_gets_nothing(quick, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("AUTOGRAD_LENS_LIVE", "0")
    work()
    assert terminal.getvalue() == ""


def test_a_notebook_gets_a_widget_that_is_closed(quick, monkeypatch):
    import IPython

    class Shell:
        kernel = object()

    class Shown:
        def update(self, data, raw):
            left.append((data, raw))

    def display(bar, display_id):
        shown.append(bar)
        return Shown()

    shown, left, terminal = [], [], Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(IPython, "get_ipython", Shell)
    monkeypatch.setattr(IPython.display, "display", display)
    work()
    (bar,) = shown
    assert bar.max == 4 and 0 < bar.value < 4 and "counting" in bar.description
    assert bar.comm is None and terminal.getvalue() == ""
    assert left == [({"text/plain": ""}, True)], "nothing stays in the saved notebook"


def test_a_bar_that_cant_be_shown_disturbs_nothing(quick, monkeypatch, capfd):
    class Broken(Terminal):
        def write(self, text):
            raise OSError("gone")

    monkeypatch.setattr(sys, "stderr", Broken())
    work()
    assert capfd.readouterr() == ("", "")


def test_an_error_takes_the_bar_away(quick, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with pytest.raises(KeyError), progress("failing"):
        time.sleep(0.1)
        raise KeyError
    assert terminal.getvalue().endswith("\r")


def test_words_without_a_total():
    assert Progress("running").words(2.4) == "running: 2 s"

"""Live figures in a real JupyterLab, with a kernel that counts how often it is asked."""

from __future__ import annotations

import nbformat
import pytest
from lab import changed, command, run_all
from nbformat.v4 import new_code_cell, new_notebook

pytestmark = [
    pytest.mark.needs("dot", "chromium"),
    pytest.mark.large("tests/lens/test_live.py moves the same widgets without a browser"),
]

CELLS = [
    "import autograd_lens as lens\nimport torch\ncalls = []",
    '''
def pair(n, scale):
    """A pair of numbers"""
    calls.append((n, scale))
    x = torch.ones(n, requires_grad=True)
    return lens.graph((x * scale).sum(), {f"x of {n}": x})

lens.explore(pair, n=[1, 2, 8], scale=[0.5, 1.0, 2.0])
''',
    """
x = torch.tensor([1.0, 2.0], requires_grad=True)
lens.record_backward((x.exp() * x).sum(), names={"x": x}).widget()
""",
    "print('calls', len(calls), calls[-1])",
]


@pytest.fixture(scope="module")
def page(lab):
    """A notebook with two free choices and a live film, run."""
    nb = new_notebook(cells=[new_code_cell(cell.strip()) for cell in CELLS])
    nb.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(nb, lab.folder / "live.ipynb")
    page = lab.open("live.ipynb")
    cells = run_all(page)
    assert [cell["errors"] for cell in cells] == [[]] * len(CELLS)
    return page


@pytest.fixture
def pair(page):
    return page.locator(".widget-vbox:has(figure.lens)").nth(0)


@pytest.fixture
def film(page):
    return page.locator(".widget-vbox:has(figure.lens)").nth(1)


def calls(page) -> tuple[int, str]:
    """How often the kernel was asked, and for what the last time: it is asked itself."""
    output = page.locator(".jp-CodeCell").last.locator(".jp-OutputArea-output")
    page.locator(".jp-CodeCell").last.locator(".cm-content").click()
    command(page, "notebook:clear-cell-output")
    output.wait_for(state="detached")
    command(page, "notebook:run-cell")
    output.wait_for()
    _, number, last = output.inner_text().split(maxsplit=2)
    return int(number), last.strip()


def row(figure, k):
    """The slider's handle and the box of one choice."""
    line = figure.locator(".widget-hbox:has(input[type=number]):has(.noUi-handle)").nth(k)
    return line.locator(".noUi-handle"), line.locator("input[type=number]")


def stands_at(handle) -> float:
    """Where the handle is on its slider, from 0 to 1, as it is seen."""
    base = handle.locator("xpath=ancestor::*[contains(@class,'noUi-base')]").bounding_box()
    dot = handle.bounding_box()
    return (dot["x"] + dot["width"] / 2 - base["x"]) / base["width"]


def says(figure, text):
    figure.locator(".lens-caption").get_by_text(text).wait_for()


def test_a_number_is_typed_and_joins_the_slider(page, pair):
    before, _ = calls(page)
    assert before == 9, "the grid"
    handle, box = row(pair, 0)
    box.fill("5")
    box.press("Enter")
    says(pair, "n = 5, scale = 0.5:")
    assert pair.locator(".lens-stage svg").get_by_text("x of 5").count()
    assert stands_at(handle) == pytest.approx(2 / 3, abs=0.05), "of 1, 2, 5, 8"
    assert calls(page) == (before + 1, "(5, 0.5)"), "asked once, for a whole number"
    handle.focus()
    page.keyboard.press("ArrowRight")
    says(pair, "n = 8, scale = 0.5:")
    assert box.input_value() == "8"
    page.keyboard.press("ArrowLeft")
    says(pair, "n = 5, scale = 0.5:")
    page.keyboard.press("ArrowLeft")
    says(pair, "n = 2, scale = 0.5:")
    assert box.input_value() == "2"
    assert stands_at(handle) == pytest.approx(1 / 3, abs=0.05)


def test_the_second_choice_keeps_the_first(page, pair):
    _, first = row(pair, 0)
    handle, box = row(pair, 1)
    first.fill("3")
    first.press("Enter")
    says(pair, "n = 3,")
    box.fill("0.75")
    box.press("Enter")
    says(pair, "n = 3, scale = 0.75:")
    assert box.input_value() == "0.75"
    handle.focus()
    page.keyboard.press("ArrowRight")
    says(pair, "n = 3, scale = 1.0:")


def test_an_error_is_shown_and_the_controls_go_on(page, pair):
    _, box = row(pair, 0)
    box.fill("-1")
    box.press("Enter")
    says(pair, "could not be drawn")
    assert "RuntimeError" in pair.locator(".lens-stage").inner_text()
    assert pair.locator("svg").count() == 0
    box.fill("4")
    box.press("Enter")
    says(pair, "n = 4,")
    assert pair.locator(".lens-stage svg:visible").count() == 1


def test_text_that_was_opened_stays_open(page, pair):
    handle, _ = row(pair, 1)
    assert pair.locator("pre").count() == 0
    pair.get_by_label("as text").check()
    pair.locator("pre").wait_for()
    handle.focus()
    page.keyboard.press("Home")
    says(pair, "scale = 0.5:")
    assert pair.locator("pre").is_visible()
    pair.get_by_label("as text").uncheck()


def test_a_live_film_has_buttons_and_plays(page, film):
    back, forth = film.get_by_role("button", name="‹"), film.get_by_role("button", name="›")
    stage = film.locator(".lens-stage")
    seen = [stage.inner_html()]
    for step in (2, 3):
        forth.click()
        assert changed(page, stage, seen[-1])
        assert film.get_by_text(f"{step} of 4", exact=True).count()
        seen.append(stage.inner_html())
    assert len(set(seen)) == 3
    back.click()
    assert changed(page, stage, seen[2]) and stage.inner_html() == seen[1]
    film.locator(".jupyter-button:has(.fa-play)").click()
    assert changed(page, stage, seen[1]), "it goes on by itself, from where it was"
    assert stage.inner_html() == seen[2]
    assert changed(page, stage, seen[2]) and stage.inner_html() not in seen


def test_no_problem_in_the_browser(lab, page):
    assert lab.problems == []


def test_the_jupyterlab_of_a_test_is_gone_when_it_ends(tmp_path):
    """Even where the test fails: server, kernels and port."""
    import subprocess
    import urllib.error

    from lab import request, serve

    (tmp_path / "notebooks").mkdir()
    (tmp_path / "own").mkdir()
    with pytest.raises(ZeroDivisionError):
        with serve(tmp_path / "notebooks", tmp_path / "own") as address:
            request(f"{address}/api/kernels", "POST")
            asked = ["pgrep", "-f", f"{tmp_path}/own/runtime/kernel-"]
            kernels = subprocess.run(asked, capture_output=True).stdout.split()
            assert len(kernels) == 1
            raise ZeroDivisionError
    with pytest.raises(urllib.error.URLError):
        request(f"{address}/api")
    assert subprocess.run(asked, capture_output=True).stdout == b""

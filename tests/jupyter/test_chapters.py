"""Every notebook in a real JupyterLab: run, look, touch, save, open again."""

from __future__ import annotations

import difflib
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import figures
import nbformat
import pytest
from lab import ROOT, Lab, command, run_all
from playwright.sync_api import Locator, Page

from autograd_lens.view.theme import COLOURS
from tools.browsing import at_rest, until
from tools.notebooks import dumps, normalise
from tools.repository import notebook_paths

pytestmark = [
    pytest.mark.needs("dot", "chromium"),
    pytest.mark.large("nbval runs each notebook, and its figures are tried on the built page"),
]


@dataclass
class Chapter:
    """A notebook that JupyterLab has run from top to bottom and saved."""

    lab: Lab
    source: Path
    page: Page
    cells: list[dict]

    @property
    def copy(self) -> Path:
        """The file that JupyterLab has open."""
        return self.lab.folder / self.source.name

    def saved(self) -> nbformat.NotebookNode:
        """What JupyterLab has saved."""
        return nbformat.read(self.copy, as_version=4)


@pytest.fixture(scope="module", params=notebook_paths(), ids=lambda path: path.stem)
def chapter(request, lab):
    """A copy of a chapter, opened, run and saved. Its tests go from first to last on one page."""
    copy = Path(shutil.copy(request.param, lab.folder))
    page = lab.open(copy.name)
    opened = Chapter(lab, request.param, page, run_all(page))
    before = copy.stat().st_mtime_ns
    command(page, "docmanager:save")
    assert until(page, lambda: copy.stat().st_mtime_ns != before), "JupyterLab did not save"
    yield opened
    lab.close_pages()
    lab.stop_kernels()
    lab.problems.clear()


def test_every_cell_runs(chapter):
    assert [cell["count"] for cell in chapter.cells] == list(range(1, len(chapter.cells) + 1))
    for cell in chapter.cells:
        assert not cell["errors"] or "raises-exception" in cell["tags"]
        assert cell["stderr"] == []


def test_every_figure_is_drawn(chapter, site):
    shown = [figure["title"] for figure in chapter.page.evaluate(figures.SEEN)]
    assert shown == figures.stored_titles(chapter.saved())
    assert figures.problems(chapter.page) == []
    page = Path(site, chapter.source.relative_to(ROOT)).with_suffix(".html")
    assert shown == figures.titles(page.read_text("utf-8")), "as on the page built from it"


def test_a_film_steps_by_its_buttons(chapter):
    for film in figures.films(chapter.page):
        assert not figures.step(chapter.page, film)


def test_what_is_not_drawn_or_does_not_answer_is_noticed(chapter):
    """The two checks above can fail."""
    page = chapter.page
    if page.evaluate("() => document.querySelector('figure.lens svg')"):
        style = page.add_style_tag(content="figure.lens svg { display: none }")
        assert figures.problems(page)
        style.evaluate("style => style.remove()")
        assert figures.problems(page) == []
    for film in figures.films(page)[:1]:
        deaf = "window.deaf = event => event.stopImmediatePropagation()"
        page.evaluate(f"() => window.addEventListener('click', {deaf}, true)")
        assert "nothing new" in figures.step(page, film)
        page.evaluate("() => window.removeEventListener('click', window.deaf, true)")


def test_a_menu_changes_the_picture(chapter):
    for figure in chapter.page.locator("figure.lens:has(.lens-menu):visible").all():
        stage, caption = figure.locator(".lens-stage"), figure.locator(".lens-caption")
        before, said = stage.inner_html(), caption.inner_text()
        figure.locator(".lens-menu").first.locator("button").last.click()
        at_rest(chapter.page)
        assert stage.inner_html() != before, figure.get_attribute("aria-label")
        assert caption.inner_text() != said


def live(page: Page) -> list[Locator]:
    """Live figures that take any number."""
    return page.locator(".widget-vbox:has(figure.lens):has(input[type=number])").all()


def off_grid(page: Page, figure: Locator) -> str:
    """A number that is not among the values of its first slider: between the first two."""
    box = figure.locator("input[type=number]").first
    first = box.input_value()
    figure.locator(".noUi-handle").first.focus()
    page.keyboard.press("ArrowRight")
    assert until(page, lambda: box.input_value() != first), "the box does not follow the slider"
    second = box.input_value()
    middle = (float(first) + float(second)) / 2
    return str(int(middle) if box.get_attribute("step") == "1" else middle)


def figure_title(figure: Locator) -> str:
    """The title of the figure in a widget."""
    return figure.locator("figure.lens").first.get_attribute("aria-label")


def test_a_live_figure_is_drawn_by_the_kernel(chapter):
    assert len(live(chapter.page)) == figures.stored_widgets(chapter.saved())
    for figure in live(chapter.page):
        number = off_grid(chapter.page, figure)
        name = figure.locator("label", has_text="or any ").first.inner_text().split()[-1]
        chosen = re.compile(rf"\b{re.escape(name)} = {re.escape(number)}(?![\d.])")
        stored = figures.stored_texts(chapter.saved(), figure_title(figure))
        assert stored and not chosen.search(stored), "it was drawn in advance"
        box, caption = figure.locator("input[type=number]").first, figure.locator(".lens-caption")
        box.fill(number)
        box.press("Enter")
        caption.get_by_text(chosen).wait_for()
        assert "could not be drawn" not in caption.inner_text()
    assert figures.problems(chapter.page) == []


def test_figures_follow_the_theme(chapter):
    for which, theme in ((1, "JupyterLab Dark"), (0, "JupyterLab Light")):
        command(chapter.page, "apputils:change-theme", theme=theme)
        chapter.page.wait_for_function(
            "light => document.body.dataset.jpThemeLight === light",
            arg="false" if which else "true",
        )
        at_rest(chapter.page)
        paper = COLOURS["paper"][which]
        red, green, blue = (int(paper[k : k + 2], 16) for k in (1, 3, 5))
        grounds = chapter.page.evaluate(
            "() => [...document.querySelectorAll('figure.lens')]"
            ".map(figure => getComputedStyle(figure).backgroundColor)"
        )
        assert set(grounds) <= {f"rgb({red}, {green}, {blue})"}


def test_what_is_saved_is_what_is_committed(chapter):
    """JupyterLab's run and the committed one say the same, but for pictures and its metadata."""
    saved = chapter.saved()
    nbformat.validate(saved)
    for cell in saved.cells:  # it unfolds the outputs of what it runs
        if cell.metadata.get("jupyter", {}).get("source_hidden"):
            cell.metadata.jupyter.outputs_hidden = True
    normalise(saved)
    lines = dumps(saved).splitlines(), chapter.source.read_text("utf-8").splitlines()
    different = list(difflib.unified_diff(*lines, "saved", "committed", lineterm="", n=1))
    assert not different, "\n".join(different[:40])


def test_without_a_problem_in_the_browser(chapter):
    assert chapter.lab.problems == []


def test_without_its_kernel_a_live_figure_stays_as_it_is(chapter):
    chapter.lab.stop_kernels()
    for figure in live(chapter.page):
        stage, box = figure.locator(".lens-stage"), figure.locator("input[type=number]").first
        before = stage.inner_html()
        figure.locator(".noUi-handle").first.focus()
        chapter.page.keyboard.press("ArrowRight")
        box.fill("1234.5")
        box.press("Enter")
        at_rest(chapter.page)
        assert stage.inner_html() == before


def test_opened_again_with_a_fresh_kernel(chapter):
    """The last: the page is closed, and the saved file is opened as if on another day."""
    chapter.lab.close_pages()
    chapter.lab.stop_kernels()
    page = chapter.page = chapter.lab.open(chapter.copy.name)
    page.locator(".jp-OutputArea-output").get_by_text("Loading widget").last.wait_for(
        state="detached"
    )
    shown = [figure["title"] for figure in page.evaluate(figures.SEEN)]
    assert shown == figures.stored_titles(chapter.saved()), "live ones too, as they are on the page"
    assert figures.problems(page) == []
    for film in figures.films(page)[:2]:  # all have one listener
        assert not figures.step(page, film)
    for figure in page.locator("figure.lens[data-form=kept]").all():
        stage = figure.locator(".lens-stage")
        before = stage.inner_html()
        slider = figure.locator("input.lens-choice").first
        slider.fill(slider.get_attribute("max"))
        at_rest(page)
        assert stage.inner_html() != before, "it answers without a kernel"
    for lost in page.get_by_text("model not found").all():
        assert not lost.is_visible()

"""An open page, made ready to be looked at: laid out, unfolded, its figures alone, in a theme.

Knows how a page of the book and a figure are made. Measures nothing and draws nothing.
"""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page

HERE = Path(__file__).parent

# What is out of sight is laid out, too, and what would move or fade stands still.
STILL = """
:not([hidden]) { content-visibility: visible !important }
* { animation: none !important; transition: none !important; scroll-behavior: auto !important }
"""


def prepare(page: Page) -> None:
    """Lay everything out, stop what moves, wait for the fonts, and bring in the scripts."""
    page.add_style_tag(content=STILL)
    for name in ("stage.js", "measure.js"):
        page.evaluate((HERE / name).read_text("utf-8"))
    page.evaluate("async () => { document.body.offsetHeight; await document.fonts.ready }")


def unfold(page: Page) -> None:
    """Open what holds figures, such as an answer; what a figure folds by itself stays folded."""
    page.evaluate(
        "async () => { document.querySelectorAll('details:not(figure.lens details)')"
        ".forEach(d => d.open = true); document.body.offsetHeight; await document.fonts.ready }"
    )


def set_theme(page: Page, theme: str) -> None:
    """Show the page in a theme: what its system says, and what a page of the book says itself."""
    page.emulate_media(color_scheme=theme)
    page.evaluate(
        "theme => { const html = document.documentElement;"
        "if (html.dataset.theme) html.dataset.theme = theme }",
        theme,
    )


def figures_alone(page: Page) -> None:
    """Leave nothing but the figures, each in its place and width. There is no way back."""
    page.evaluate("lensLook.alone()")


def states(page: Page) -> list[int]:
    """How many states each figure has."""
    return page.evaluate("lensLook.figures().map(lensLook.states)")


def show_last(page: Page) -> list[str]:
    """Bring every figure to its last state; their names."""
    return page.evaluate(
        "lensLook.figures().map(f => { lensLook.go(f, lensLook.states(f) - 1);"
        "return lensLook.name(f) })"
    )


def show_first(page: Page) -> list[str]:
    """Bring every figure to its opening state; their names."""
    return page.evaluate(
        "lensLook.figures().map(f => { lensLook.go(f, lensLook.opening(f));"
        " return lensLook.name(f) })"
    )


def titles(page: Page) -> list[str]:
    """The title of each figure."""
    return page.evaluate("lensLook.figures().map(f => f.getAttribute('aria-label') || '')")

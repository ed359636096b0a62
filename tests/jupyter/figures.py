"""What a test looks for in the figures of a notebook, wherever it is shown."""

from __future__ import annotations

import re
from html import unescape

from playwright.sync_api import Locator, Page

from tools.browsing import at_rest

FIGURE = re.compile(r'<figure class="lens" role="figure" aria-label="([^"]*)"')
WIDGET = "application/vnd.jupyter.widget-view+json"

# Every figure that is shown: its title, and how much of its picture can be seen.
SEEN = """() => [...document.querySelectorAll("figure.lens")].filter(
  figure => getComputedStyle(figure.closest(".jp-OutputArea-child") || figure).display !== "none"
).map(figure => {
  const drawn = [...figure.querySelectorAll(".lens-stage :is(svg, pre, table)")].find(
    one => one.getClientRects().length);
  const box = drawn ? drawn.getBoundingClientRect() : {width: 0, height: 0};
  return {title: figure.getAttribute("aria-label"), width: box.width, height: box.height,
    shapes: drawn ? drawn.querySelectorAll("path, polygon, ellipse").length : 0,
    words: drawn ? drawn.textContent.trim().length : 0};
})"""


def titles(html: str) -> list[str]:
    """The titles of the figures in a text of HTML, in order."""
    return [unescape(title) for title in FIGURE.findall(html)]


def stored_titles(nb: dict) -> list[str]:
    """The titles of the figures that a saved notebook holds, in order."""
    return [
        title
        for cell in nb["cells"]
        for output in cell.get("outputs", [])
        for title in titles(output.get("data", {}).get("text/html", ""))
    ]


def stored_texts(nb: dict, title: str) -> str:
    """What the outputs with a figure of this title say, in text and in HTML."""
    return "\n".join(
        str(output["data"])
        for cell in nb["cells"]
        for output in cell.get("outputs", [])
        if title in titles(output.get("data", {}).get("text/html", ""))
    )


def stored_widgets(nb: dict) -> int:
    """How many of its outputs are live widgets."""
    return sum(
        WIDGET in output.get("data", {})
        for cell in nb["cells"]
        for output in cell.get("outputs", [])
    )


def problems(page: Page) -> list[str]:
    """Figures that are in the page and can't be seen."""
    return [
        f"{figure['title']}: {figure}"
        for figure in page.evaluate(SEEN)
        if not (figure["width"] > 20 and figure["height"] > 10 and figure["words"])
    ]


def films(page: Page) -> list[Locator]:
    """Figures with a film that answers without a kernel."""
    return page.locator("figure.lens:has(.lens-film):visible").all()


def step(page: Page, film: Locator) -> str:
    """Press a film's buttons; returns what it failed to do, or nothing."""
    title = film.get_attribute("aria-label")
    stage, caption = film.locator(".lens-stage"), film.locator(".lens-caption")
    opened = stage.inner_html()

    def press(button: str) -> str:
        film.locator(button).click()
        at_rest(page)  # the page answers by itself, without a kernel
        return stage.inner_html()

    if press(".lens-next") == opened or not caption.inner_text().strip():
        return f"{title}: the next step shows nothing new"
    if press(".lens-prev") != opened:
        return f"{title}: one step back is not where it was"
    # A film opens on its first step; what was there before it is one press further back.
    before = press(".lens-prev")
    if press(".lens-prev") != before:
        return f"{title}: there is something before its beginning"
    return ""

"""What can be measured on an open page, as problems.

The measuring itself is `measure.js`; here are its tolerances, with a reason for each. What is
measured: every figure in every state, and the page around them. What is not: what a picture means,
colours (axe does that), text twins while they are folded, and what a reader scrolls to within a
stage or a twin, which may be wider than its figure.
"""

from __future__ import annotations

from playwright.sync_api import Page

from tools.look.problems import Look, Problem

LEAST_TEXT = 11.0
"""Pixels on the screen: below, a reader of ordinary sight leans forward."""

LIMITS = {
    "least": LEAST_TEXT,
    "rounding": 0.05,  # a size is a product of a scale and a font's size
    "beyond": 0.5,  # px; half a pixel is what smoothing blurs anyway
    "texts": 1.0,  # px in both directions; letters have that much room at their sides
    "part": 1.0,  # px; boxes of HTML lie on whole pixels, and their neighbours round as well
    "line": 3.0,  # px; a shape that is thinner is a line, and no box for a text
}
"""The tolerances that `measure.js` is given."""


def measure_page(page: Page, name: str, look: Look) -> list[Problem]:
    """What is wrong with the page around its figures."""
    found = page.evaluate("limits => lensLook.measurePage(limits)", LIMITS)
    return [Problem(page=name, look=look, **finding) for finding in found]


def measure_figures(page: Page, name: str, look: Look) -> list[Problem]:
    """What is wrong with each figure in its place and in each of its states."""
    return [
        problem
        for number in range(page.evaluate("lensLook.figures().length"))
        for problem in measure_figure(page, number, name, look)
    ]


def measure_figure(page: Page, number: int, name: str, look: Look) -> list[Problem]:
    """What is wrong with one figure, `number` counted from 0; it ends in its opening state."""
    measured = page.evaluate(
        "([k, limits]) => { const f = lensLook.figures()[k];"
        "return {place: lensLook.measurePlace(f, limits), ...lensLook.measure(f, limits)} }",
        [number, LIMITS],
    )
    here = {"page": name, "look": look, "figure": number + 1, "title": measured["title"]}
    of = measured["of"]
    found = [Problem(**here, **finding) for finding in measured["place"]]
    for finding in measured["findings"]:
        found.append(Problem(**here, of=of, **finding | {"states": tuple(finding["states"])}))
    return found

"""All that is seen of one page: what is measured of it and its pictures, in every look.

Knows the order in which a page is opened, drawn, unfolded, measured, and drawn again. Does not know
how any of it is done.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page

from tools.browsing import Browsing
from tools.look import sheets, stage
from tools.look.measure import measure_figures, measure_page
from tools.look.problems import LOOKS, MEASURED, Look, Problem
from tools.look.shots import Camera

LARGE, SMALL = {390: 0.75, 1280: 0.65}, {390: 0.5, 1280: 0.35}
"""Scales of a page on its sheet, by width: four looks of a short page fit on one, and of a chapter,
which is 150,000 px tall, as much as can still be looked at."""


@dataclass
class Looked:
    """What was seen of one page: problems, and pictures by look."""

    name: str
    problems: list[Problem] = field(default_factory=list)
    strips: dict[Look, Image.Image] = field(default_factory=dict)
    states: list[int] = field(default_factory=list)
    labels: dict[tuple[int, bool], str] = field(default_factory=dict)
    "What stands above a figure, by its number from 0 and whether it is its last state."
    figures: dict[tuple[int, bool], dict[Look, Image.Image]] = field(default_factory=dict)
    "By the same key."


def look_at_page(browsing: Browsing, address: str, name: str) -> Looked:
    """Open a page at each width; what is measured of it, and all its pictures."""
    looked = Looked(name)
    before = len(browsing.contexts)
    for width in dict.fromkeys(look.width for look in LOOKS):
        page, _ = browsing.open(address, f"{name}.html", width=width, motion=False)
        stage.prepare(page)
        looks = [look for look in LOOKS if look.width == width]
        draw_page(page, looks, looked)
        stage.unfold(page)
        measured = [look for look in looks if look in MEASURED]
        for look in measured:
            stage.set_theme(page, look.theme)
            looked.problems += measure_page(page, name, look)
        stage.figures_alone(page)
        for look in measured:
            looked.problems += measure_figures(page, name, look)
        draw_figures(page, looks, looked)
        browsing.close_pages(before)
    return looked


def draw_page(page: Page, looks: list[Look], looked: Looked) -> None:
    """Take pictures of the whole page, as a reader meets it."""
    camera = Camera(page)
    for look in looks:
        stage.set_theme(page, look.theme)
        looked.strips[look] = camera.whole(scale_of(look.width, camera.size()[1]))


def scale_of(width: int, height: int) -> float:
    """How large a page is drawn: large where it needs no second column."""
    return (LARGE if height * LARGE[width] <= sheets.COLUMN else SMALL)[width]


def draw_figures(page: Page, looks: list[Look], looked: Looked) -> None:
    """Take pictures of every figure in its opening state, then of those that have another."""
    camera = Camera(page)
    looked.states = stage.states(page)
    titles = stage.titles(page)
    for last in (False, True):
        names = stage.show_last(page) if last else stage.show_first(page)
        numbers = [k for k, count in enumerate(looked.states) if count > 1 or not last]
        for k in numbers:
            state = f"last of {looked.states[k]}: {names[k]}" if last else names[k]
            looked.labels[k, last] = f"{k + 1}  {titles[k]}" + (f" — {state}" if state else "")
        for look in looks:
            stage.set_theme(page, look.theme)
            for k, picture in camera.figures(numbers).items():
                looked.figures.setdefault((k, last), {})[look] = picture


def write_sheets(looked: Looked, out: Path) -> list[Path]:
    """Write the sheets of one page: of its figures, then of the page."""
    stem = looked.name.replace("/", "-")
    rows = []
    for (k, last), by_look in sorted(looked.figures.items()):
        count = sum(problem.figure == k + 1 for problem in looked.problems)
        note = f"{count} problem{'s' * (count > 1)}" if count and not last else ""
        pictures = tuple(by_look[look] for look in LOOKS)
        rows.append(sheets.Row(looked.labels[k, last], pictures, note))
    strips = [(str(look), looked.strips[look]) for look in LOOKS]
    drawn = sheets.figure_sheets(looked.name, tuple(map(str, LOOKS)), rows)
    return [
        *sheets.write(drawn, out, f"{stem}-figures"),
        *sheets.write(sheets.page_sheets(looked.name, strips), out, f"{stem}-page"),
    ]

"""How tall each section of a chapter is likely to be, on a phone.

A section that was never in sight is not laid out (`content-visibility` in `_static/book.css`), and
stands there with a guessed height. With a good guess the scroll bar tells the truth, a link lands
where it leads, and what is measured of a section out of sight does not lie on another one.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from math import ceil

from .pages import PatternMissing

# Pixels of a phone 412 wide, where text is 380 wide: measured there in a browser.
LETTERS = 41  # in a line of text
LINE, PARAGRAPH, ITEM = 26.4, 18.4, 4  # a line, and what lies around them
HEADING, SUMMARY, FORMULA = 76, 54, 62
CODE_LINE, CODE = 17.5, 46
FIGURE, MENU, PICTURE_WIDTH = 250, 44, 346
CARD, STAGE = 120, 560  # a row of a table on a stage, and the tallest stage of one
# Rather too tall than too short: a section that is taller than its place lies on the next one.
MARGIN = 1.05

SECTION = re.compile(r"<section\b")
VIEW_BOX = re.compile(r'viewBox="[-\d.]+ [-\d.]+ ([\d.]+) ([\d.]+)"')
TEXTS = {"p": PARAGRAPH, "li": ITEM, "td": ITEM, "th": ITEM}
UNSEEN = {"template", "script", "style", "math"}
VOID = {"br", "img", "hr", "input", "wbr", "link", "meta", "source", "col"}


def guess(html: str) -> str:
    """The page with the likely height of each section of its chapter written into it."""
    written, end = [], 0
    for place, height in Sections(html).found:
        if not SECTION.match(html, place):
            raise PatternMissing("a section does not begin where it was read: see lean_pages")
        written.append(html[end:place] + f'<section style="--tall:{MARGIN * height:.0f}px"')
        end = place + len("<section")
    return "".join(written) + html[end:]


class Sections(HTMLParser):
    """The sections of a chapter: ``found`` holds where each begins, and its height."""

    def __init__(self, html: str):
        super().__init__()
        self.found: list[tuple[int, float]] = []
        self.lines = [0]
        for line in html.split("\n"):
            self.lines.append(self.lines[-1] + len(line) + 1)
        self.open: list[str] = []
        self.unseen = 0  # how deep the element lies that holds what is not shown
        self.letters = 0
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        """An element begins."""
        if tag in VOID:
            return
        self.open.append(tag)
        if self.unseen:
            return
        kinds = (dict(attributes).get("class") or "").split()
        if tag == "section" and self.open.count("section") == 2:
            line, column = self.getpos()
            self.found.append((self.lines[line - 1] + column, 0.0))
        elif tag in UNSEEN or "lens-wide" in kinds:  # a phone shows the narrow layout
            self.unseen = len(self.open)
        elif tag == "figure":
            self._add(FIGURE)
        elif "lens-menu" in kinds:
            self._add(MENU)
        elif tag == "svg" and "figure" in self.open:
            self._add(_picture(self.get_starttag_text()))
            self.unseen = len(self.open)
        elif "lens-table" in kinds:
            self._add(min(STAGE, CARD * int(dict(attributes)["data-rows"])))
            self.unseen = len(self.open)
        elif tag == "div" and "math" in kinds:
            self._add(FORMULA)
            self.unseen = len(self.open)
        elif tag == "pre":
            self._add(CODE)
        elif tag in ("h2", "h3"):
            self._add(HEADING)
        elif tag in TEXTS or tag == "summary":
            self.letters = 0

    def handle_data(self, data):
        """Text between tags."""
        if "pre" in self.open and not self.unseen:
            self._add(CODE_LINE * data.count("\n"))
        elif not self.unseen:
            self.letters += len(data)

    def handle_endtag(self, tag):
        """An element ends."""
        if tag in VOID or tag not in self.open:
            return
        while self.open.pop() != tag:  # what HTML lets stay open ends too
            pass
        if self.unseen > len(self.open):
            self.unseen = 0
        elif self.unseen:
            return
        lines = LINE * ceil(self.letters / LETTERS)
        if tag == "summary":
            if "figure" not in self.open:
                self._add(SUMMARY + max(0, lines - LINE))
            self.unseen = len(self.open)  # the rest of a fold, which is closed
        elif tag in TEXTS and "summary" not in self.open:
            self._add(lines + TEXTS[tag])
            self.letters = 0

    def _add(self, pixels: float) -> None:
        if self.open.count("section") >= 2:
            place, height = self.found[-1]
            self.found[-1] = place, height + pixels


def _picture(svg: str) -> float:
    """How tall a figure draws an SVG; its width is limited as in `autograd_lens/view/html.py`."""
    width, height = map(float, VIEW_BOX.search(svg).groups())
    return min(width * 4 / 3, max(PICTURE_WIDTH, width)) * height / width

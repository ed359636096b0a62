"""Fonts cut down to the glyphs in use: the theme's icons and KaTeX's.

Both are cut from the files as they were shipped, so that a second build gives the same result.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path

from fontTools import subset

from .pages import PatternMissing

# Else it writes a line per table, and one about each date, into the output of the build.
logging.getLogger("fontTools").setLevel(logging.ERROR)

KATEX = Path(__file__).parents[2] / "_static" / "katex" / "fonts"


def cut(source: Path, target: Path, points: Iterable[int]) -> None:
    """Write the glyphs of `points` of a font as woff (which, unlike woff2, needs no brotli)."""
    options = subset.Options()
    options.flavor, options.hinting, options.notdef_outline = "woff", False, False
    options.layout_features, options.name_IDs = [], []
    options.recalc_timestamp = False
    font = subset.load_font(str(source), options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=points)
    subsetter.subset(font)
    subset.save_font(font, str(target), options)


class _Formulas(HTMLParser):
    """The characters that KaTeX has drawn in a page."""

    def __init__(self, html: str):
        super().__init__()
        self.points: set[int] = set()
        self.depth = 0
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        """An element begins."""
        if self.depth or "katex-html" in (dict(attributes).get("class") or "").split():
            self.depth += tag == "span"

    def handle_endtag(self, tag):
        """An element ends."""
        if self.depth:
            self.depth -= tag == "span"

    def handle_data(self, data):
        """Text between tags."""
        if self.depth:
            self.points.update(map(ord, data))


def drawn_in(pages: Iterable[str]) -> set[int]:
    """The code points of all formulas on some pages."""
    points: set[int] = set()
    for page in pages:
        if "katex-html" in page:
            points |= _Formulas(page).points
    return points


def cut_katex(fonts: Path, points: set[int]) -> tuple[int, int]:
    """Rewrite KaTeX's fonts in a built `_static/katex/fonts`; gives the bytes before and after."""
    shipped = sorted(KATEX.glob("*.woff"))
    if not shipped or not fonts.is_dir():
        raise PatternMissing(f"no fonts of KaTeX in {KATEX if fonts.is_dir() else fonts}")
    for font in shipped:
        cut(font, fonts / font.name, points)
    before = sum(font.stat().st_size for font in shipped)
    return before, sum((fonts / font.name).stat().st_size for font in shipped)

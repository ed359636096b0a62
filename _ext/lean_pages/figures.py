"""Figures of the lens bring their style and their script each; a page needs one copy.

In a notebook each output may be a document of its own, and the copies are right there. Frames that
wait for their turn are elements there, and text on a page, where a phone would have to make them
all before it can show the chapter.

On a page a figure has a number and an address, so that it can be cited and linked; its keys lead to
the legend.
"""

from __future__ import annotations

import re
from collections import Counter
from html import unescape
from pathlib import PurePath

from docutils.nodes import make_id

from .pages import NotLean, PatternMissing

FIGURE = '<figure class="lens"'
STYLE = re.compile(r'(<figure class="lens"[^>]*>)<style>(.*?)</style>', re.DOTALL)
SCRIPT = re.compile(r"<script>((?:(?!</script>).)*)</script></figure>", re.DOTALL)
FRAME = re.compile(r"<template class=lens-frame>(.*?)</template>", re.DOTALL)


def hoist(html: str) -> str:
    """Styles of figures into the head, scripts to the end of the body; waiting frames as text."""
    figures = html.count(FIGURE)
    styles, scripts = STYLE.findall(html), SCRIPT.findall(html)
    if len(styles) != figures:
        raise PatternMissing(f"{figures} figures and {len(styles)} styles in them: see lean_pages")
    if "<template class=lens-frame>" in html and not scripts:
        raise PatternMissing("figures with frames and without a script: see lean_pages")
    html = SCRIPT.sub("</figure>", STYLE.sub(r"\1", FRAME.sub(_as_text, html)))
    head = "".join(f"<style>{style}</style>\n" for style in dict.fromkeys(s for _, s in styles))
    foot = "".join(f"<script>{script}</script>\n" for script in dict.fromkeys(scripts))
    html = _before("</head>", head, html)
    return _before("</body>", foot, html)


def _as_text(frame: re.Match) -> str:
    if re.search("</?script|<!--", frame[1], re.IGNORECASE):
        raise NotLean("a frame of a figure holds what would end the script that it waits in")
    return f'<script type="text/plain" class=lens-frame>{frame[1]}</script>'


def _before(mark: str, new: str, html: str) -> str:
    start, found, end = html.rpartition(mark)
    if not found:
        raise PatternMissing(f"no {mark} on the page: see lean_pages")
    return f"{start}{new}{found}{end}"


OPENING = re.compile(
    r'(<figure class="lens"[^>]*? aria-label="([^"]*)")([^>]*>(?:<style>.*?</style>)?'
    r'<figcaption><div class="lens-head">)',
    re.DOTALL,
)
VERDICT = "Check: "
"""How the title of a verdict begins. A verdict is no figure to be cited."""


def chapter_of(page: PurePath) -> str:
    """The number of a page's chapter (1 for `book/01_tape/roots.html`), or nothing."""
    found = [re.match(r"(\d\d)_", part) for part in page.parts]
    return next((str(int(one[1])) for one in found if one), "")


LEGEND = PurePath("book/legend.html")
"""The page that says what colours and marks mean."""

KEYS = re.compile(
    r'(<span class="lens-legend">(?:<span><i class="[^"]*"></i>[^<]*</span>)+)(</span></div>)'
)


def link_legend(html: str, address: str) -> str:
    """After the keys of each figure, a link to the page that explains them."""
    return KEYS.sub(rf'\1<a class="lens-how" href="{address}">legend</a>\2', html)


def number(html: str, chapter: str, before: int) -> tuple[str, int]:
    """Give each figure of a page a number and an id; return the page and how many there are now.

    `before` is how many figures the pages before this one have, in the same chapter. The id comes
    from the title, so that it stays when another figure is added.
    """
    seen: Counter[str] = Counter()
    count = before

    def head(match: re.Match) -> str:
        nonlocal count
        if match[2].startswith(VERDICT):
            return match[0]
        count += 1
        name = make_id(f"figure {unescape(match[2])}")
        seen[name] += 1
        name += f"-{seen[name]}" if seen[name] > 1 else ""
        which = f"Figure {chapter}.{count}" if chapter else f"Figure {count}"
        link = f'<a class="lens-cite" href="#{name}">{which}</a>'
        return f'{match[1]} id="{name}"{match[3]}{link}'

    figures = html.count(FIGURE)
    html, found = OPENING.subn(head, html)
    if found != figures:
        raise PatternMissing(f"{figures} figures and {found} heads of figures: see lean_pages")
    return html, count

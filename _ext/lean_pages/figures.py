"""Figures of the lens bring their style and their script each; a page needs one copy.

In a notebook each output may be a document of its own, and the copies are right there. Frames that
wait for their turn are elements there, and text on a page, where a phone would have to make them
all before it can show the chapter.
"""

from __future__ import annotations

import re

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

"""Highlighted code with fewer elements: none for text that looks like plain code anyway.

The highlighter marks each name, comma and space; in the styles of this book most of these look
like the code around them, in either theme. A phone has to make and style every element.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from . import css
from .pages import PatternMissing

SHEET = "pygments.css"
BLOCK = re.compile(r'(<div class="highlight"><pre>)(.*?)(</pre></div>)', re.DOTALL)
SPAN = re.compile(r'<span class="([a-z0-9]+)">([^<]*)</span>')
RULE = re.compile(r"(.*\.highlight)(?: \.([a-z0-9]+))?")
Looks = Mapping[str, tuple]


def looks(sheet: str) -> Looks:
    """How each class of the highlighter looks: its declarations under every theme.

    The empty class is plain code.
    """
    found: dict[str, dict[str, dict[str, str]]] = {}
    for rule in css.read(sheet):
        for selector in rule.selectors if isinstance(rule, css.Style) else ():
            if match := RULE.fullmatch(selector.text):
                themed = found.setdefault(match[2] or "", {})
                themed.setdefault(match[1], {}).update(rule.declarations)
    plain = found.get("", {})
    if len(plain) != 2 or any("color" not in said for said in plain.values()):
        raise PatternMissing(f"{SHEET} does not colour code in two themes: see lean_pages")
    for said in plain.values():
        for name in [name for name in said if name.startswith("background")]:
            del said[name]  # it lies behind the marks as well
    return {
        name: tuple((theme, tuple(sorted((said | themed.get(theme, {})).items())))
                    for theme, said in sorted(plain.items()))
        for name, themed in found.items()
    }  # fmt: skip


def slim(html: str, look: Looks) -> str:
    """The page with marks only where code looks different from plain code, neighbours joined."""
    return BLOCK.sub(lambda block: block[1] + _slim(block[2], look) + block[3], html)


def _slim(code: str, look: Looks) -> str:
    if not code.startswith("<span></span>\n"):  # an empty mark keeps a first line that is empty
        code = code.removeprefix("<span></span>")
    code = SPAN.sub(lambda m: m[2] if look.get(m[1], look[""]) == look[""] else m[0], code)
    written: list[str] = []
    end, last = 0, ""  # where the last mark ended, and its class
    for mark in SPAN.finditer(code):
        between = code[end : mark.start()]
        if last and not between.strip() and look[last] == look[mark[1]]:
            written[-1] = written[-1].removesuffix("</span>") + f"{between}{mark[2]}</span>"
        else:
            written += [between, mark[0]]
            last = mark[1]
        end = mark.end()
    return "".join(written) + code[end:]


def slimmer(static: Path):
    """`slim` with the style sheet of a built site."""
    look = looks((static / SHEET).read_text(encoding="utf-8"))
    return lambda html: slim(html, look)

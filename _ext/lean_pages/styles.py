"""The style sheets of a page, cut down to the rules that it can use, written into the page.

A rule stays if everything its selector names (elements, classes, ids, attributes) is in the page's
HTML or in a script that the page loads: what a script adds later, such as a search result, has its
name there. How elements are nested is not looked at, so more stays than is used and nothing that
is used goes; a test compares computed styles. Of the custom properties, fonts and animations those
stay that something left over refers to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

from . import css
from .pages import NotLean, PatternMissing

LINK = re.compile(r'[ \t]*<link\b(?=[^>]*\brel="stylesheet")[^>]*?\bhref="([^"]+)"[^>]*>\n?')
SCRIPT = re.compile(r'<script\b[^>]*?\bsrc="([^"]+)"')
WORD = re.compile(r"[A-Za-z_][\w-]*")
VARIABLE = re.compile(r"--[\w-]+")
# Bootstrap knows some twenty kinds of parts, and acts on those that a page holds. These names it
# adds by itself where a page has tips and menus, each with the word that must be in its script.
BOOTSTRAP = {
    **dict.fromkeys(("tooltip", "tooltip-arrow", "tooltip-inner", "fade", "show", "collapsed")),
    **dict.fromkeys(("active", "disabled", "collapsing", "data-popper-placement")),
    "bs-tooltip-auto": "auto",  # put together from "bs-", the name and "-auto"
    "data-bs-popper": "popper",
}
ROOT = "lean-pages-root/"  # stands for the way from a page to the top of the site


class Names(HTMLParser):
    """What a page may contain, now or when its scripts have run."""

    def __init__(self, html: str, scripts: Iterable[str] = ()):
        super().__init__()
        self.html: set[str] = set()
        self.texts = list(scripts)
        self.inside = ""
        self.feed(html)
        self.scripts = {word for text in self.texts for word in WORD.findall(text)}

    def handle_starttag(self, tag, attributes):
        """An element begins."""
        self.inside = tag
        self.html.add(tag)
        for name, value in attributes:
            self.html.add(name)
            if name in ("class", "id"):
                self.html.update((value or "").split())
            elif name == "style":
                self.texts.append(value or "")

    def handle_data(self, data):
        """Text between tags."""
        if self.inside in ("script", "style"):
            self.texts.append(data)

    def handle_endtag(self, tag):
        """An element ends."""
        self.inside = ""

    def __contains__(self, name: str) -> bool:
        """Whether an element, class, id or attribute of this name can be there."""
        return name in self.html or name in self.scripts or name in BOOTSTRAP


def inline(html: str, page: Path, site: Path, way: str = "") -> str:
    """The page, to be written to `page` below `site`, with its style sheets in it, cut down.

    `way` leads from the page to the top of the site, where it is not the relative one.
    """
    sheets = [_file(page, address) for address in LINK.findall(html)]
    if not sheets:
        raise PatternMissing("no style sheet is linked from the page: see lean_pages")
    scripts = [_file(page, address) for address in SCRIPT.findall(html)]
    bootstrap = [file for file in scripts if file.name == "bootstrap.js"]
    check_bootstrap("".join(map(_text, bootstrap)))
    scripts = [_text(file) for file in scripts if file not in bootstrap]
    names = Names(html, scripts)
    rules = [rule for sheet in sheets for rule in kept(_sheet(sheet, site), names.__contains__)]
    rules = referred(rules, "\n".join(names.texts))
    way = way or os.path.relpath(site, page.parent) + "/"
    style = css.write(rules).replace(ROOT, way)
    if "</" in style:
        raise NotLean("a style sheet holds `</`, which would end it inside of a page")
    first = LINK.search(html).start()
    # The attribute says what was cut; a test puts the whole sheets back and compares.
    sources = " ".join(os.path.relpath(sheet, page.parent) for sheet in sheets)
    html = f'{html[:first]}<style data-sheets="{sources}">{style}</style>\n{html[first:]}'
    return LINK.sub("", html)


def check_bootstrap(script: str) -> None:
    """Raise unless Bootstrap still holds the names it is said to add."""
    words = set(WORD.findall(script))
    if gone := sorted(n for n, text in BOOTSTRAP.items() if (text or n) not in words):
        raise PatternMissing(f"bootstrap.js no longer holds {', '.join(gone)}: see lean_pages")


def kept(rules: Iterable[css.Rule], has: Callable[[str], bool]) -> list[css.Rule]:
    """The rules whose selectors could match."""
    left: list[css.Rule] = []
    for rule in rules:
        if isinstance(rule, css.Style):
            selectors = tuple(s for s in rule.selectors if s.possible(has))
            if selectors and rule.declarations:
                left.append(replace(rule, selectors=selectors))
        elif isinstance(rule, css.Group):
            if inner := kept(rule.rules, has):
                left.append(replace(rule, rules=tuple(inner)))
        else:
            left.append(rule)
    return left


def referred(rules: list[css.Rule], others: str) -> list[css.Rule]:
    """Without the custom properties, fonts and animations that neither rules nor `others` name."""
    while True:
        wanted = set(VARIABLE.findall(others)) | set(VARIABLE.findall(" ".join(_values(rules))))
        fewer = list(_narrowed(rules, wanted.__contains__))
        if fewer == rules:
            break
        rules = fewer
    values = " ".join(_values(rules)) + others
    return [r for r in rules if not isinstance(r, css.Named) or r.name in values]


def _values(rules: Iterable[css.Rule]) -> Iterable[str]:
    for rule in rules:
        if isinstance(rule, css.Style):
            yield from (text for _, text in rule.declarations)
        elif isinstance(rule, css.Group):
            yield from _values(rule.rules)
        elif rule.kind == "keyframes":
            yield rule.text.partition("{")[2]


def _narrowed(rules: Iterable[css.Rule], wanted: Callable[[str], bool]) -> Iterable[css.Rule]:
    for rule in rules:
        if isinstance(rule, css.Style):
            left = tuple(
                (name, text)
                for name, text in rule.declarations
                if not name.startswith("--") or wanted(name)
            )
            if left:
                yield replace(rule, declarations=left)
        elif isinstance(rule, css.Group):
            if inner := tuple(_narrowed(rule.rules, wanted)):
                yield replace(rule, rules=inner)
        else:
            yield rule


def _file(page: Path, address: str) -> Path:
    file = (page.parent / urlsplit(address).path).resolve()
    if not file.is_file():
        raise NotLean(f"{address}: no such file")
    return file


@cache
def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


@cache
def _sheet(file: Path, site: Path) -> tuple[css.Rule, ...]:
    """The rules of a style sheet and of those it imports; addresses from the top of the site."""

    def from_the_top(url: str) -> str:
        if urlsplit(url).scheme or url.startswith(("#", "/")):
            return url
        path = (file.parent / urlsplit(url).path).resolve()
        return ROOT + path.relative_to(site.resolve()).as_posix()

    text = _text(file)
    rules: tuple[css.Rule, ...] = ()
    for address in css.imports(text):
        rules += _sheet(_file(file, address), site)
    try:
        return rules + css.read(text, from_the_top)
    except css.Unreadable as reason:
        raise NotLean(f"{file.name}: {reason}") from None

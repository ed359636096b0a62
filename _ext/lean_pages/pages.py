"""Rewrites of one finished page: text in, text out, one function per reason.

Each says why it is there and raises `PatternMissing` when the text it rewrites
is not on the page. Running `lean` again on its own result changes nothing, so
a partial rebuild, which leaves most pages as they are, works.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import PurePath

from sphinx.errors import ExtensionError

MARK = "<!-- lean -->"
VIEWPORT = '<meta name="viewport" content="width=device-width, initial-scale=1">'

FOREIGN = re.compile(
    r'<(?:script|img|iframe|source|video|audio|embed)\b[^>]*?\bsrc="((?:https?:)?//[^"]+)'
    r'|<link\b(?![^>]*rel="canonical")[^>]*?\bhref="((?:https?:)?//[^"]+)'
    r"|<script[^>]*>[^<]*?\bTHEBE_JS_URL\s*=\s*\"([^\"]+)"
)


class NotLean(ExtensionError):
    """A page can't be published like this; fails the build."""


class PatternMissing(NotLean):
    """The theme no longer writes what a rewrite expects: the rewrite must be looked at."""


class OtherHost(NotLean):
    """A page would load something from another host."""


@contextmanager
def named(page: PurePath) -> Iterator[None]:
    """Say which page an error is about."""
    try:
        yield
    except NotLean as reason:
        raise type(reason)(f"{page}: {reason}") from None


def replace(pattern: str, new: str, html: str) -> str:
    """`re.sub` that must find something."""
    html, found = re.subn(pattern, new, html, flags=re.DOTALL)
    if not found:
        raise PatternMissing(f"the theme no longer writes {pattern}: see lean_pages")
    return html


def lean(html: str, is_search: bool = False) -> str:
    """All rewrites of a page of the book."""
    if MARK in html:
        return html
    html = drop_icon_script(html)
    html = drop_widget_state(html)
    html = drop_print_contents(html)
    html = drop_preloads(html)
    if not is_search:
        html = drop_search_index(html)
    html = defer_scripts(html)
    html = theme_from_the_start(html)
    html = one_viewport(html)
    html = name_sidebar_toggle(html)
    html = name_sidebar(html)
    refuse_other_hosts(html)
    return replace("</head>", f"{MARK}</head>", html)


def drop_icon_script(html: str) -> str:
    """FontAwesome's script draws as SVG what the theme's CSS already draws with its web font."""
    return replace(r"<script[^>]*fontawesome\.js[^>]*></script>\s*", "", html)


def drop_widget_state(html: str) -> str:
    """The state of ipywidgets is of no use on a page that shows no widget.

    A page usually has none: only a cell that made a widget puts it there.
    """
    state = r'<script type="application/vnd\.jupyter\.widget-state\+json">.*?</script>\s*'
    return re.sub(state, "", html, flags=re.DOTALL)


def drop_print_contents(html: str) -> str:
    """A second title and contents, for paper: links on paper are of no use.

    The search page has none.
    """
    start = '<div id="jb-print-docs-body" class="onlyprint">'
    if start not in html:
        return html
    return replace(rf'{start}.*?(?=<div id="searchbox">)', "", html)


def drop_preloads(html: str) -> str:
    """The theme's scripts are not needed for the first paint, and must not compete with it."""
    return replace(r'<link rel="preload" as="script"[^>]*>\s*', "", html)


def drop_search_index(html: str) -> str:
    """The index of the whole book is needed on the search page, where results are shown."""
    for name in (r"searchtools\.js", r"language_data\.js", r"searchindex\.js"):
        html = replace(rf'<script src="[^"]*{name}[^"]*"></script>\s*', "", html)
    return html


def defer_scripts(html: str) -> str:
    """No script may hold up the first paint.

    Deferred scripts keep their order. The inline ones that write to
    `DOCUMENTATION_OPTIONS` must come after the deferred script that makes it:
    modules are deferred too, and run in the same order.
    """
    html = replace(
        r"<script(?![^>]*\b(?:defer|async|type)\b)(?=[^>]*\bsrc=)", "<script defer", html
    )
    return replace("<script>(?=DOCUMENTATION_OPTIONS)", '<script type="module">', html)


def theme_from_the_start(html: str) -> str:
    """The theme has colours for `light` and `dark`, and none for `auto`.

    Its own script turns `auto` into one of them, but late, since it is
    deferred, and never where scripts are off: code would be black on dark grey.
    """
    html = replace(r'(<html\b[^>]*) data-theme="auto"', r'\1 data-theme="light"', html)
    system = '(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")'
    stored = 'localStorage.getItem("theme")'
    return replace(re.escape(f'{stored} || "auto"'), f"{stored} || {system}", html)


def one_viewport(html: str) -> str:
    """Three layers of the theme declare the viewport each; one is enough."""
    html = replace('<meta name="viewport"[^>]*>', "", html)
    return replace("<head>", f"<head>\n    {VIEWPORT}", html)


def name_sidebar_toggle(html: str) -> str:
    """The button that shows the sidebar is an icon, which alone has no accessible name."""
    title = 'title="Toggle primary sidebar"'
    return replace(title, f'{title} aria-label="Toggle primary sidebar"', html)


def name_sidebar(html: str) -> str:
    """The sidebar holds more than the contents, such as the sign of the book: a part of its own."""
    start = '<div id="pst-primary-sidebar"'
    return replace(start, f'{start} role="complementary" aria-label="Book"', html)


def refuse_other_hosts(html: str) -> None:
    """Nothing may be loaded from another host (links that a reader follows are free)."""
    hosts = sorted({url for found in FOREIGN.findall(html) for url in found if url})
    if hosts:
        raise OtherHost(f"loads from another host: {', '.join(hosts)}")


def root_page(title: str, first: str, address: str) -> str:
    """`/index.html`: leads to the first page without a script, and says where it leads."""
    title, first, address = escape(title), escape(first), escape(address)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
{VIEWPORT}
<title>{title}</title>
<meta http-equiv="refresh" content="0; url={first}">
<link rel="canonical" href="{address}">
<meta name="description" content="{title}">
</head>
<body><main><h1>{title}</h1><p><a href="{first}">To the first page</a></p></main></body>
</html>
"""

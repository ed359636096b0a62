"""Pages that load little, ask no other host, need no script for maths, and say what they are.

A Sphinx extension of this book, one module each:

- `formulas`: a maths renderer; KaTeX runs once, in the build
- `meta`, `cards`: title, description, card and address of a page; sitemap, robots.txt, 404.html
- `pages`: rewrites of the finished HTML, one function per reason
- `figures`: one copy of what every figure of the lens brings with it; numbers and ids
- `code`: highlighted code with fewer elements
- `heights`: how tall each section is likely to be
- `icons`, `fonts`: icon and maths fonts cut down to the glyphs in use
- `scripts`: one costly part of the theme's script left out
- `styles`, `css`: the style rules that a page can use, written into it

The theme is not ours, so each rewrite is of a text that a new version of it
may change. A pattern that must be there and isn't raises `PatternMissing`,
and the build fails rather than publish a heavy page.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from sphinx.util import logging

from . import cards, code, figures, fonts, formulas, heights, icons, meta, pages, scripts, styles

log = logging.getLogger(__name__)


def make_lean(app, error) -> None:
    """Rewrite every finished page, and write what belongs to the site as a whole."""
    if error or app.builder.name != "html":
        return
    out, site = Path(app.outdir), app.config.html_baseurl
    book, root = app.config.html_title, app.config.root_doc
    first = f"{root}.html"
    if first != "index.html":
        text = pages.root_page(book, first, site + first)
        (out / "index.html").write_text(text, encoding="utf-8")
    found = [path for path in sorted(out.rglob("*.html")) if out / "_static" not in path.parents]
    found = [path for path in found if path != out / "index.html" or first == "index.html"]
    documents = meta.contents(app.env)
    meta.refuse_twins({name: meta.described(out / f"{name}.html") for name in documents})
    place = {out / f"{name}.html": k for k, name in enumerate(documents)}
    found.sort(key=lambda path: place.get(path, len(place)))  # figures are numbered in this order
    lean_pages(out, site, found)
    for name in documents:
        cards.draw(app.env.titles[name].astext(), book, out / meta.card(name))
    addresses = [f"{name}.html" for name in documents]
    (out / "sitemap.xml").write_text(meta.sitemap(site, addresses), encoding="utf-8")
    (out / "robots.txt").write_text(meta.robots(site), encoding="utf-8")


def lean_pages(out: Path, site: str, found: list[Path]) -> None:
    """Rewrite pages, fonts and the theme's sheet. Pages that are lean already stay as they are."""
    static = out / "_static"
    slim = code.slimmer(static)
    new: dict[Path, str] = {}
    texts: list[str] = []
    counts: Counter[str] = Counter()
    legend = out / figures.LEGEND
    for path in found:
        text = path.read_text(encoding="utf-8")
        chapter = figures.chapter_of(path.relative_to(out)) or str(path)
        with pages.named(path.relative_to(out)):
            if pages.MARK not in text:
                number = chapter if chapter.isdigit() else ""
                text, counts[chapter] = figures.number(text, number, counts[chapter])
                if legend in found and path != legend:
                    text = figures.link_legend(text, os.path.relpath(legend, path.parent))
                text = pages.lean(text, path.name == "search.html")
                text = new[path] = heights.guess(slim(figures.hoist(text)))
            else:
                counts[chapter] += text.count('class="lens-cite"')
        texts.append(text)
    # The theme's script shows icons too (a cross to close a banner).
    texts.append(scripts.patch(static))
    before, after = icons.shrink(static, icons.names_in(texts))
    log.info("lean pages: icon fonts and style sheet %d -> %d bytes", before, after)
    before, after = fonts.cut_katex(static / "katex" / "fonts", fonts.drawn_in(texts))
    log.info("lean pages: maths fonts %d -> %d bytes", before, after)
    for path, text in new.items():
        with pages.named(path.relative_to(out)):
            if path.name == f"{meta.MISSING}.html":
                text = styles.inline(text, path, out, meta.top(site))
                text = meta.from_the_top(text, site)
            else:
                text = styles.inline(text, path, out)
            path.write_text(text, encoding="utf-8")


def setup(app):
    """Register the maths renderer, the description of pages and the rewriting after the build."""
    app.add_html_math_renderer(
        "katex",
        inline_renderers=(formulas.visit_inline, None),
        block_renderers=(formulas.visit_block, None),
    )
    app.connect("config-inited", meta.configure)
    app.connect("html-page-context", meta.describe, priority=1000)
    app.connect("html-collect-pages", meta.missing_page)
    # After every other extension has had its way with the pages.
    app.connect("build-finished", make_lean, priority=1000)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

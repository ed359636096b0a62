"""Pages that load little, ask no other host and need no script for maths.

A Sphinx extension of this book. Three parts, one module each:

- `formulas`: a maths renderer; KaTeX runs once, in the build
- `pages`: rewrites of the finished HTML, one function per reason
- `icons`: the theme's icon fonts cut down to the icons in use

The theme is not ours, so each rewrite is of a text that a new version of it
may change. A pattern that must be there and isn't raises `PatternMissing`,
and the build fails rather than publish a heavy page.
"""

from __future__ import annotations

from pathlib import Path

from sphinx.util import logging

from . import formulas, icons, pages

log = logging.getLogger(__name__)


def make_lean(app, error) -> None:
    """Rewrite every finished page, the theme's style sheet and the root page."""
    if error or app.builder.name != "html":
        return
    out = Path(app.outdir)
    static, root, first = out / "_static", out / "index.html", out / f"{app.config.root_doc}.html"
    if root != first:
        title, address = app.config.html_title, first.relative_to(out).as_posix()
        root.write_text(pages.root_page(title, address), encoding="utf-8")
    texts: list[str] = []
    for page in sorted(out.rglob("*.html")):
        if static in page.parents or (page == root and root != first):
            continue
        try:
            text = pages.lean(page.read_text(encoding="utf-8"), page.name == "search.html")
        except pages.NotLean as reason:
            raise type(reason)(f"{page.relative_to(out)}: {reason}") from None
        page.write_text(text, encoding="utf-8")
        texts.append(text)
    # The theme's script shows icons too (a cross to close a banner).
    texts.append((static / "scripts" / "pydata-sphinx-theme.js").read_text(encoding="utf-8"))
    used = icons.names_in(texts)
    before, after = icons.shrink(static, used)
    log.info("lean pages: icon fonts and style sheet %d -> %d bytes", before, after)


def setup(app):
    """Register the maths renderer and the rewriting after the build."""
    app.add_html_math_renderer(
        "katex",
        inline_renderers=(formulas.visit_inline, None),
        block_renderers=(formulas.visit_block, None),
    )
    # After every other extension has had its way with the pages.
    app.connect("build-finished", make_lean, priority=1000)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

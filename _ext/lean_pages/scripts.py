"""The theme's script without the part that lays out a whole chapter at once.

It measures every box of code and output for whether it scrolls, when a page is loaded and whenever
anything in it changes, such as a figure: most of the work of a phone that opens a chapter.
`_static/book.js` does the same box by box, as they come into view.
"""

from __future__ import annotations

from pathlib import Path

from .icons import THEME
from .pages import PatternMissing

SCRIPT = "scripts/pydata-sphinx-theme.js"
MEASURED = (
    'document.querySelectorAll(["pre",".nboutput > .output_area",".cell_output > .output",'
    '".jp-RenderedHTMLCommon",".pst-scrollable-table-container"].join(", "))'
)


def patched(script: str) -> str:
    """The theme's script, measuring nothing."""
    if MEASURED not in script:
        raise PatternMissing(f"the theme's {SCRIPT} measures other boxes: see lean_pages")
    return script.replace(MEASURED, "[]")


def patch(static: Path) -> str:
    """Rewrite the script in a built `_static`, always from the theme's own; gives its text."""
    script = patched((THEME / SCRIPT).read_text(encoding="utf-8"))
    (static / SCRIPT).write_text(script, encoding="utf-8")
    return script

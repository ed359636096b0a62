"""Scripts that work through a whole chapter at once, and here do it as it comes into sight.

The theme's measures every box of code and output for whether it scrolls, when a page is loaded and
whenever anything in it changes, such as a figure: `_static/book.js` does the same box by box.
The one that adds buttons to copy code adds them to some hundred cells at once.
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

COPY = "copybutton.js"
EACH = "codeCells.forEach((codeCell, index) => {"
IN_SIGHT = """const inSight = new IntersectionObserver(seen => {
    for (const {target, isIntersecting} of seen) {
      if (!isIntersecting) continue
      inSight.unobserve(target)
      addCopyButton(target, [...codeCells].indexOf(target))
    }
  }, {rootMargin: "100%"})
  codeCells.forEach(codeCell => inSight.observe(codeCell))
  const addCopyButton = ((codeCell, index) => {"""


def patched_copy(script: str) -> str:
    """The script of the buttons that copy code, which adds a button when its code is near."""
    if IN_SIGHT in script:
        return script
    if script.count(EACH) != 1:
        raise PatternMissing(f"{COPY} adds its buttons in another way: see lean_pages")
    return script.replace(EACH, IN_SIGHT)


def patched(script: str) -> str:
    """The theme's script, measuring nothing."""
    if MEASURED not in script:
        raise PatternMissing(f"the theme's {SCRIPT} measures other boxes: see lean_pages")
    return script.replace(MEASURED, "[]")


def patch(static: Path) -> str:
    """Rewrite the scripts in a built `_static`; gives the text of the theme's, which stays the same
    however often this is done.
    """
    copy = static / COPY
    copy.write_text(patched_copy(copy.read_text(encoding="utf-8")), encoding="utf-8")
    script = patched((THEME / SCRIPT).read_text(encoding="utf-8"))
    (static / SCRIPT).write_text(script, encoding="utf-8")
    return script

"""The picture of a verdict: which elements of a tensor are wrong."""

from __future__ import annotations

from ..verdict import Check
from .dot import DotPicture
from .figure import Figure, Frame
from .tables import cell, document, node, table, words
from .text import short_title

MOST = 16
"""Number of rows and of columns in the picture. The rest is cut off."""


def figure(check: Check) -> Figure:
    """Return the figure of a verdict: one frame, with a grid of elements if some are wrong."""
    mark = "✓" if check.ok else "…" if check.verdict == "not answered yet" else "✗"
    name = short_title(check.name)
    said = f"{mark} {name}: {check.verdict}" + (f", {check.detail}" if check.detail else "")
    paint = (lambda: DotPicture(grid(check))) if check.wrong else None
    legend = {"done": "right", "error": "wrong"} if check.wrong else {}
    caption = said if paint else ""
    return Figure(f"Check: {name}", lambda: Frame(said, paint, caption=caption), (), legend)


def grid(check: Check) -> str:
    """DOT source of the elements. Each has a mark, because colour never stands alone."""
    rows = []
    for row in check.wrong[:MOST]:
        more = [cell("…", border=0)] if len(row) > MOST else []
        rows.append([*map(_element, row[:MOST]), *more])
    elements = table(rows, cellborder=1, cellspacing=2, color="line")
    return document(node(0, "check", elements), fontsize=12)


def _element(wrong: bool) -> str:
    role, mark = ("error", "✗") if wrong else ("done", "✓")
    return cell(words(mark, color=role), width=26, height=22, color=role, bgcolor=f"{role}-fill")

"""The picture of a verdict: for a tensor that differs, where."""

from __future__ import annotations

from ..verdict import Check
from .dot import DotPicture
from .figure import Figure, Frame
from .theme import FONT, light

MOST = 16
"""Rows and columns of the picture; what is beyond is cut off."""


def figure(check: Check) -> Figure:
    """Return the figure of a verdict: one frame, with a grid of elements if some are wrong."""
    mark = "✓" if check.ok else "…" if check.verdict == "not answered yet" else "✗"
    words = f"{mark} {check.name}: {check.verdict}" + (f", {check.detail}" if check.detail else "")
    paint = (lambda: DotPicture(grid(check))) if check.wrong else None
    legend = {"done": "right", "error": "wrong"} if check.wrong else {}
    caption = words if paint else ""
    return Figure(f"Check: {check.name}", lambda: Frame(words, paint, caption=caption), (), legend)


def grid(check: Check) -> str:
    """DOT source of the elements, each with a mark: colour never stands alone."""
    rows = []
    for row in check.wrong[:MOST]:
        cells = "".join(_cell(wrong) for wrong in row[:MOST])
        more = '<TD BORDER="0">…</TD>' if len(row) > MOST else ""
        rows.append(f"<TR>{cells}{more}</TR>")
    return (
        f'digraph {{ bgcolor=transparent node [shape=plain fontname="{FONT}" fontsize=12 '
        f'fontcolor="{light("ink")}"] node0 [id=node0 class="check" label=<<TABLE BORDER="0" '
        f'CELLBORDER="1" CELLSPACING="2" COLOR="{light("line")}">{"".join(rows)}</TABLE>>] }}'
    )


def _cell(wrong: bool) -> str:
    role, mark = ("error", "✗") if wrong else ("done", "✓")
    colour = light(role)
    paint = f'COLOR="{colour}" BGCOLOR="{light(role + "-fill")}"'
    return f'<TD WIDTH="26" HEIGHT="22" {paint}><FONT COLOR="{colour}">{mark}</FONT></TD>'

"""The figures of the ledger: a table of saved tensors, and bars by group.

A page gets a table of HTML, a file a picture of the same by Graphviz.
"""

from __future__ import annotations

from ..ledger.groups import SavedGroups
from ..ledger.saved_tensors import SavedTensors
from ..saving.record import ROLES
from .dot import DotPicture
from .figure import Figure, Frame, Picture
from .html_table import TablePicture
from .ledger_table import COLOURS, groups_table, ledger_table
from .ledger_text import (
    MOST_ROWS,
    below,
    caption,
    group_texts,
    groups_below,
    groups_caption,
    groups_head,
    groups_text,
    head,
    numbers,
    row_texts,
    shown_entries,
    text,
)
from .tables import cell, document, node, table, words
from .text import clip, short_bytes, short_name, short_title

BAR = 64
"""Length of the longest bar, in points."""


def figure(ledger: SavedTensors) -> Figure:
    """Return the table of ``ledger``: one frame."""
    legend = {COLOURS[role]: role for role in ROLES if role in ledger.roles}
    if ledger.stale:
        legend["error"] = "changed since it was saved"
    return Figure("Saved tensors", lambda: _frame(ledger), (), legend, head(ledger))


def _frame(ledger: SavedTensors) -> Frame:
    paint = (lambda: _picture(ledger)) if ledger.entries else None
    return Frame(text(ledger), paint, caption=caption(ledger), numbers=numbers(ledger))


def _picture(ledger: SavedTensors) -> Picture:
    return TablePicture(ledger_table(ledger), lambda: DotPicture(source(ledger), centred=False))


def source(ledger: SavedTensors) -> str:
    """DOT source of the table. A bar in each row shows the bytes that it keeps alive.

    The first columns are those that a phone shows without scrolling: tensor, versions, bytes.
    """
    shown = shown_entries(ledger)
    largest = max((entry.storage_bytes for entry in shown), default=0)
    order = ("node", "field", "saved at", "now", "bytes", "", "role", "shape", "")
    rows = [[_heading(text) for text in order]]
    for entry, texts in zip(shown, row_texts(ledger), strict=True):
        ink = "error" if entry.stale else "muted" if entry.freed else "ink"
        role = COLOURS.get(entry.role or "", "muted")
        parts = [(role, entry.storage_bytes)] if entry.role else []
        rows.append(
            [_cell(clip(text, 36), ink) for text in texts[:2]]
            + [_cell(text, ink, "RIGHT") for text in texts[5:7]]
            + [_cell(short_bytes(entry.bytes) if texts[3] else "", ink, "RIGHT")]
            + [_bar(parts, largest)]
            + [_cell(texts[4], role), _cell(clip(texts[2], 36), ink)]
            + [_cell(clip(texts[7], 60), ink)]
        )
    rows += [[_cell(line, "muted", span=9)] for line in below(ledger)]
    return _document(rows, "ledger")


def groups_figure(groups: SavedGroups) -> Figure:
    """Return the bars of ``groups``: one frame."""
    occurring = {role for group in groups.groups for role in group.by_role}
    paint = (lambda: _groups_picture(groups)) if groups.groups else None
    return Figure(
        title=f"Saved bytes by {short_title(groups.title)}",
        draw=lambda: Frame(groups_text(groups), paint, caption=groups_caption(groups)),
        legend={COLOURS[role]: role for role in ROLES if role in occurring},
        head=groups_head(groups),
    )


def _groups_picture(groups: SavedGroups) -> Picture:
    return TablePicture(
        groups_table(groups), lambda: DotPicture(groups_source(groups), centred=False)
    )


def groups_source(groups: SavedGroups) -> str:
    """DOT source of the bars. A bar has a piece for each role."""
    shown = groups.groups[:MOST_ROWS]
    largest = max((group.bytes for group in shown), default=0)
    headings = (short_name(groups.title, 44), "bytes", "", "entries", "shared", "roles")
    rows = [[_heading(text) for text in headings]]
    for group, texts in zip(shown, group_texts(groups), strict=True):
        parts = [(COLOURS[role], size) for role, size in group.by_role.items()]
        rows.append(
            [_cell(texts[0]), _cell(texts[2], "ink", "RIGHT"), _bar(parts, largest)]
            + [_cell(text, "ink", "RIGHT") for text in (texts[1], texts[3])]
            + [_cell(texts[4], "muted")]
        )
    rows += [[_cell(line, "muted", span=6)] for line in groups_below(groups)]
    return _document(rows, "groups")


def _document(rows: list[list[str]], kind: str) -> str:
    content = table(rows, cellborder=0, cellspacing=1, cellpadding=3)
    return document(node(0, kind, content), fontsize=10)


def _heading(text: str) -> str:
    numbers = ("bytes", "saved at", "now", "entries", "shared")
    return _cell(text, "muted", "RIGHT" if text in numbers else "LEFT")


def _cell(text: str, colour: str = "ink", align: str = "LEFT", span: int | None = None) -> str:
    return cell(words(text, color=colour), align=align, colspan=span)


def _bar(parts: list[tuple[str, int]], largest: int) -> str:
    """A cell with a bar. Every part with bytes is wide enough to be seen."""
    pieces = [(role, max(2, round(BAR * size / largest))) for role, size in parts if size]
    if not pieces:
        return cell()
    cells = [
        cell(fixedsize="TRUE", width=width, height=9, border=1, color=role, bgcolor=f"{role}-fill")
        for role, width in pieces
    ]
    rest = BAR + 6 - sum(width for _, width in pieces)  # keeps the bar at the left
    cells.append(cell(fixedsize="TRUE", width=max(1, rest), height=9))
    return cell(table([cells], cellborder=0, cellspacing=0, cellpadding=0), align="LEFT")

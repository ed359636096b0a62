"""The figures of the ledger: a table of saved tensors, and bars by group."""

from __future__ import annotations

from ..ledger.groups import SavedGroups
from ..ledger.saved_tensors import SavedTensors
from ..saving.record import ROLES, SavedTensor
from .dot import DotPicture
from .figure import Figure, Frame
from .tables import cell, document, node, table, text_table, words
from .text import clip, count, shape_words, short_bytes, short_name, short_title

MOST_ROWS = 24
"""Number of rows in a table. One line sums up the rest."""

COLOURS = {"activation": "saved", "parameter": "parameter", "buffer": "done", "input": "forward"}
"""For each role of a storage, its role in the theme."""

BAR = 64
"""Length of the longest bar, in points."""


def figure(ledger: SavedTensors) -> Figure:
    """Return the table of ``ledger``: one frame."""
    legend = {COLOURS[role]: role for role in ROLES if role in ledger.roles}
    if ledger.stale:
        legend["error"] = "changed since it was saved"
    return Figure("Saved tensors", lambda: _frame(ledger), (), legend, head(ledger))


def _frame(ledger: SavedTensors) -> Frame:
    paint = (lambda: DotPicture(source(ledger), centred=False)) if ledger.entries else None
    return Frame(text(ledger), paint, caption=head(ledger))


def head(ledger: SavedTensors) -> str:
    """The sums, in one line."""
    kept = [entry for entry in ledger.entries if not entry.freed]
    line = f"{count(len(kept), 'saved tensor')} of {count(ledger.nodes, 'node')}"
    freed = len(ledger.entries) - len(kept)
    if freed:
        line += f", {freed:,} freed"
    line += f"; keeps {ledger.total_bytes:,} B in {count(len(ledger.storages), 'storage')}"
    sums = {role: getattr(ledger, f"{role}_bytes") for role in ROLES}
    parts = [f"{role} {size:,} B" for role, size in sums.items() if size]
    return line + (f": {', '.join(parts)}" if parts else "")


HEADINGS = ("node", "field", "shape", "bytes", "role", "saved at", "now", "")


def row_texts(ledger: SavedTensors) -> list[list[str]]:
    """The cells of the rows that are shown, as text."""
    seen: dict[int, SavedTensor] = {}
    found = []
    for entry in ledger.entries[:MOST_ROWS]:
        found.append(_texts(entry, seen))
        for number in entry.storages:
            seen.setdefault(number, entry)
    return found


def _texts(entry: SavedTensor, seen: dict[int, SavedTensor]) -> list[str]:
    node = f"{entry.node} {clip(entry.label, 32)}"
    field = short_name(entry.field, 36)
    if entry.freed:
        return [node, field, "freed", "", "", "", "", ""]
    shape = f"packed as {short_name(entry.kind, 40)}" if entry.packed else shape_words(entry.shape)
    if entry.dtype is not None:
        shape += " " + str(entry.dtype).removeprefix("torch.")
    versions = ["" if v is None else str(v) for v in (entry.saved_version, entry.version)]
    size = f"{entry.bytes:,}"
    return [node, field, shape, size, entry.role or "", *versions, _note(entry, seen)]


def _note(entry: SavedTensor, seen: dict[int, SavedTensor]) -> str:
    """Whose memory it is, how much it keeps alive, and which entry shares it."""
    notes = []
    if entry.stale:
        notes.append("CHANGED: this node will raise")
    if entry.owner:
        notes.append(short_name(entry.owner, 40))
    if entry.storage_bytes != entry.bytes:
        notes.append(f"keeps {entry.storage_bytes:,} B alive")
    shared = [seen[number] for number in entry.storages if number in seen]
    if shared and not entry.owner:
        notes.append(f"same storage as {shared[0].node} {short_name(shared[0].field, 36)}")
    return ", ".join(notes)


def _below(ledger: SavedTensors) -> list[str]:
    """The lines below the table: the rows that are left out, and the nodes that can't be seen."""
    lines = []
    rest = ledger.entries[MOST_ROWS:]
    if rest:
        shown = {number for entry in ledger.entries[:MOST_ROWS] for number in entry.storages}
        more = {number for entry in rest for number in entry.storages} - shown
        size = sum(ledger.storages[number] for number in more)
        lines.append(f"… {count(len(rest), 'more row')}, which keep {size:,} B more")
    opaque: dict[tuple[str, bool], list[int]] = {}
    for one in ledger.opaque:
        name = one.name.rpartition("::")[2]
        opaque.setdefault((name, one.recorded), []).append(one.node)
    for (name, recorded), nodes in list(opaque.items())[:4]:
        which = ", ".join(map(str, nodes[:6])) + (", …" if len(nodes) > 6 else "")
        what = "as recorded" if recorded else "shows nothing of what it saved"
        lines.append(f"opaque: {short_name(name)} (node {which}) {what}")
    if ledger.short_by is None:
        hint = "; lens.record_saved() can count that"
        unseen = [one for one in ledger.opaque if not one.recorded]
        all_can = all(one.recordable for one in unseen)
        lines.append("total: short by what those saved" + (hint if all_can else ""))
    elif ledger.short_by:
        lines.append(f"total: short by at most {ledger.short_by} B, if they saved Python numbers")
    return lines


def text(ledger: SavedTensors) -> str:
    """A table with one row per entry, and the lines below it."""
    rows = row_texts(ledger)
    if not rows and not ledger.opaque:
        return "no node saved a tensor"
    return "\n".join(([text_table([HEADINGS, *rows], {3, 5, 6})] if rows else []) + _below(ledger))


def source(ledger: SavedTensors) -> str:
    """DOT source of the table. A bar in each row shows the bytes that it keeps alive.

    The first columns are those that a phone shows without scrolling: tensor, versions, bytes.
    """
    shown = ledger.entries[:MOST_ROWS]
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
    rows += [[_cell(line, "muted", span=9)] for line in _below(ledger)]
    return _document(rows, "ledger")


def groups_figure(groups: SavedGroups) -> Figure:
    """Return the bars of ``groups``: one frame."""
    occurring = {role for group in groups.groups for role in group.by_role}
    paint = (lambda: DotPicture(groups_source(groups), centred=False)) if groups.groups else None
    return Figure(
        title=f"Saved bytes by {short_title(groups.title)}",
        draw=lambda: Frame(groups_text(groups), paint, caption=groups_head(groups)),
        legend={COLOURS[role]: role for role in ROLES if role in occurring},
        head=groups_head(groups),
    )


def groups_head(groups: SavedGroups) -> str:
    """The total. A storage that several groups share counts in each."""
    line = f"{groups.total_bytes:,} B in {count(len(groups.groups), 'group')}"
    if any(group.shared_bytes for group in groups.groups):
        line += "; what several groups share counts in each"
    return line


GROUP_HEADINGS = ("entries", "bytes", "shared", "roles")


def _group_texts(groups: SavedGroups) -> list[list[str]]:
    return [
        [
            short_name(group.key, 44),
            f"{group.entries:,}",
            f"{group.bytes:,}",
            f"{group.shared_bytes:,}" if group.shared_bytes else "",
            ", ".join(f"{role} {size:,}" for role, size in group.by_role.items()),
        ]
        for group in groups.groups[:MOST_ROWS]
    ]


def _groups_below(groups: SavedGroups) -> list[str]:
    rest = groups.groups[MOST_ROWS:]
    if not rest:
        return []
    return [f"… {count(len(rest), 'more group')} of at most {rest[0].bytes:,} B each"]


def groups_text(groups: SavedGroups) -> str:
    """One line per group."""
    rows = [(short_name(groups.title, 44), *GROUP_HEADINGS), *_group_texts(groups)]
    return "\n".join([text_table(rows, {1, 2, 3}), *_groups_below(groups)])


def groups_source(groups: SavedGroups) -> str:
    """DOT source of the bars. A bar has a piece for each role."""
    shown = groups.groups[:MOST_ROWS]
    largest = max((group.bytes for group in shown), default=0)
    headings = (short_name(groups.title, 44), "bytes", "", "entries", "shared", "roles")
    rows = [[_heading(text) for text in headings]]
    for group, texts in zip(shown, _group_texts(groups), strict=True):
        parts = [(COLOURS[role], size) for role, size in group.by_role.items()]
        rows.append(
            [_cell(texts[0]), _cell(texts[2], "ink", "RIGHT"), _bar(parts, largest)]
            + [_cell(text, "ink", "RIGHT") for text in (texts[1], texts[3])]
            + [_cell(texts[4], "muted")]
        )
    rows += [[_cell(line, "muted", span=6)] for line in _groups_below(groups)]
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

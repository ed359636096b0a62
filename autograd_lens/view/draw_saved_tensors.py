"""The figures of the ledger: a table of saved tensors, and bars by group."""

from __future__ import annotations

from ..saved_tensors import SavedEntry, SavedGroups, SavedTensors
from .figure import Figure, Frame
from .text import clip, count, shape_words

MOST_ROWS = 24
"""Rows of a table; what is beyond is folded into one, with its bytes."""


def figure(ledger: SavedTensors) -> Figure:
    """Return the table of ``ledger``: one frame."""
    return Figure(title="Saved tensors", draw=lambda: Frame(table(ledger)), head=head(ledger))


def head(ledger: SavedTensors) -> str:
    """The sums, in one or two lines."""
    kept = [entry for entry in ledger.entries if not entry.freed]
    line = f"{count(len(kept), 'saved tensor')} of {count(ledger.nodes, 'node')}"
    freed = len(ledger.entries) - len(kept)
    if freed:
        line += f", {freed:,} freed"
    line += f"; keeps {ledger.total_bytes:,} B in {count(len(ledger.storages), 'storage')}"
    parts = [
        f"{role} {size:,} B"
        for role in ("activation", "parameter", "buffer", "input")
        if (size := getattr(ledger, f"{role}_bytes"))
    ]
    return line + (f": {', '.join(parts)}" if parts else "")


def table(ledger: SavedTensors) -> str:
    """One row per entry, the rest folded."""
    shown = ledger.entries[:MOST_ROWS]
    seen: dict[int, SavedEntry] = {}
    rows = [["node", "field", "shape", "bytes", "role", "version", ""]]
    for entry in shown:
        rows.append(_row(entry, seen))
        for number in entry.storages:
            seen.setdefault(number, entry)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if place == 3 else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    rest = ledger.entries[MOST_ROWS:]
    if rest:
        more = {n for e in rest for n in e.storages} - set(seen)
        lines.append(
            f"… {count(len(rest), 'more row')}, {sum(ledger.storages[n] for n in more):,} B in "
            f"{count(len(more), 'storage')} not shown above"
        )
    lines += [f"opaque: {one.name}: {one.reason}" for one in ledger.opaque[:4]]
    return "\n".join(lines)


def _row(entry: SavedEntry, seen: dict[int, SavedEntry]) -> list[str]:
    node = f"{entry.node} {clip(entry.label, 32)}"
    if entry.freed:
        return [node, entry.field, "freed", "", "", "", ""]
    shape = f"packed as {entry.kind}" if entry.packed else shape_words(entry.shape)
    if entry.dtype is not None:
        shape += " " + str(entry.dtype).removeprefix("torch.")
    version = "" if entry.version is None else f"{entry.saved_version} → {entry.version}"
    if entry.saved_version == entry.version:
        version = "" if entry.version is None else str(entry.version)
    notes = [entry.owner] if entry.owner else []
    if entry.storage_bytes != entry.bytes:
        notes.append(f"keeps {entry.storage_bytes:,} B alive")
    twins = [seen[n] for n in entry.storages if n in seen]
    if twins and not entry.owner:
        notes.append(f"same storage as {twins[0].node} {twins[0].field}")
    if entry.stale:
        notes.append("CHANGED: this node will raise")
    return [
        node,
        entry.field,
        shape,
        f"{entry.bytes:,}",
        entry.role or "",
        version,
        ", ".join(notes),
    ]


def groups_figure(groups: SavedGroups) -> Figure:
    """Return the bars of ``groups``: one frame."""
    return Figure(
        title=f"Saved bytes by {groups.title}",
        draw=lambda: Frame(groups_table(groups)),
        head=f"{groups.total_bytes:,} B in all",
    )


def groups_table(groups: SavedGroups) -> str:
    """One line per group."""
    rows = [[groups.title, "nodes", "bytes", "shared", "roles"]]
    for group in groups.groups[:MOST_ROWS]:
        roles = ", ".join(f"{role} {size:,}" for role, size in group.by_role.items())
        rows.append(
            [
                clip(group.key, 44),
                str(group.nodes),
                f"{group.bytes:,}",
                f"{group.shared_bytes:,}",
                roles,
            ]
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if place in (1, 2, 3) else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    rest = groups.groups[MOST_ROWS:]
    if rest:
        lines.append(f"… {count(len(rest), 'more group')}")
    return "\n".join(lines)

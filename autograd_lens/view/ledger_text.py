"""The ledger and its groups as text: heads, rows and the lines below them.

What a cell says is made here once; pictures and tables say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..ledger.groups import SavedGroups
from ..ledger.saved_tensors import SavedTensors
from ..saving.record import ROLES, SavedTensor
from .tables import text_table
from .text import clip, count, exact_bytes, shape_words, short_bytes, short_name

MOST_ROWS = 24
"""Number of rows in a text and in a picture. One line sums up the rest."""


def head(ledger: SavedTensors) -> str:
    """The sums, in one line."""
    return _sums(ledger, lambda size: f"{size:,} B")


def caption(ledger: SavedTensors) -> str:
    """What there is to see; nothing where all is freed."""
    kept = [entry for entry in ledger.entries if not entry.freed]
    if not kept:
        return ""
    if ledger.stale:
        changed = count(len(ledger.stale), "entry was", "entries were")
        return f"{changed} changed in place after being saved: a backward raises."
    size = max(entry.storage_bytes for entry in kept)
    most = [entry for entry in kept if entry.storage_bytes == size]
    name = f"{short_name(most[0].field, 36)} of {most[0].node} {clip(most[0].label, 32)}"
    if len({entry.storages for entry in most}) > 1:
        return f"{len(most):,} entries keep most: {short_bytes(size)} each, as {name}."
    return f"{name} keeps {'most: ' * (len(kept) > 1)}{short_bytes(size)}."


def numbers(ledger: SavedTensors) -> str:
    """The sums, in exact and in human units."""
    return _sums(ledger, exact_bytes)


def _sums(ledger: SavedTensors, words: Callable[[int], str]) -> str:
    kept = [entry for entry in ledger.entries if not entry.freed]
    line = f"{count(len(kept), 'saved tensor')} of {count(ledger.nodes, 'node')}"
    freed = len(ledger.entries) - len(kept)
    if freed:
        line += f", {freed:,} freed"
    line += f"; keeps {words(ledger.total_bytes)} in {count(len(ledger.storages), 'storage')}"
    sums = {role: getattr(ledger, f"{role}_bytes") for role in ROLES}
    parts = [f"{role} {words(size)}" for role, size in sums.items() if size]
    return line + (f": {', '.join(parts)}" if parts else "")


HEADINGS = ("node", "field", "shape", "bytes", "role", "saved at", "now", "")


def those_that_keep_most(entries: Sequence[SavedTensor], most: int) -> list[int]:
    """The entries of which a large ledger shows so many, by their number, in its own order."""
    by_size = sorted(range(len(entries)), key=lambda number: -entries[number].storage_bytes)
    return sorted(by_size[:most])


def shown_entries(ledger: SavedTensors) -> list[SavedTensor]:
    """The entries that have a row."""
    return [ledger.entries[k] for k in those_that_keep_most(ledger.entries, MOST_ROWS)]


def row_texts(ledger: SavedTensors) -> list[list[str]]:
    """The cells of the rows that are shown, as text."""
    seen: dict[int, SavedTensor] = {}
    found = []
    shown = set(those_that_keep_most(ledger.entries, MOST_ROWS))
    for place, entry in enumerate(ledger.entries):
        if place in shown:
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
    kept = keeps(entry, lambda size: f"{size:,} B")
    owner = short_name(entry.owner or "", 40)
    return ", ".join(filter(None, (stale(entry), owner, kept, shared(entry, seen))))


def stale(entry: SavedTensor) -> str:
    """That the entry was changed since it was saved, or nothing."""
    return "CHANGED: this node will raise" if entry.stale else ""


def keeps(entry: SavedTensor, words: Callable[[int], str]) -> str:
    """How much it keeps alive, if that is not what it occupies."""
    return f"keeps {words(entry.storage_bytes)} alive" * (entry.storage_bytes != entry.bytes)


def shared(entry: SavedTensor, seen: dict[int, SavedTensor]) -> str:
    """Which entry before it has the same storage; one with an owner is known by that."""
    others = [seen[number] for number in entry.storages if number in seen]
    if not others or entry.owner:
        return ""
    return f"same storage as {others[0].node} {short_name(others[0].field, 36)}"


def below(ledger: SavedTensors) -> list[str]:
    """The lines below the table: the rows that are left out, and the nodes that can't be seen."""
    return left_out(ledger, MOST_ROWS, lambda size: f"{size:,} B") + unseen(ledger)


def left_out(ledger: SavedTensors, most: int, words: Callable[[int], str]) -> list[str]:
    """A line on the rows beyond ``most``: how many, and what they keep alive. None if all fit."""
    entries = ledger.entries
    if len(entries) <= most:
        return []
    shown = set(those_that_keep_most(entries, most))
    rest = [entry for number, entry in enumerate(entries) if number not in shown]
    known = {storage for number in shown for storage in entries[number].storages}
    more = {storage for entry in rest for storage in entry.storages} - known
    return [
        f"… {count(len(rest), 'more row')} of at most "
        f"{words(max(entry.storage_bytes for entry in rest))} each, "
        f"which keep {words(sum(ledger.storages[number] for number in more))} more"
    ]


def unseen(ledger: SavedTensors) -> list[str]:
    """The nodes that don't show what they saved, and by how much the total is short."""
    lines = []
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
        all_can = all(one.recordable for one in ledger.opaque if not one.recorded)
        lines.append("total: short by what those saved" + (hint if all_can else ""))
    elif ledger.short_by:
        lines.append(f"total: short by at most {ledger.short_by} B, if they saved Python numbers")
    return lines


def text(ledger: SavedTensors) -> str:
    """A table with one row per entry, and the lines below it."""
    rows = row_texts(ledger)
    if not rows and not ledger.opaque:
        return "no node saved a tensor"
    return "\n".join(([text_table([HEADINGS, *rows], {3, 5, 6})] if rows else []) + below(ledger))


def groups_head(groups: SavedGroups) -> str:
    """The total. A storage that several groups share counts in each."""
    return _total(groups, f"{groups.total_bytes:,} B")


def groups_caption(groups: SavedGroups) -> str:
    """Which group keeps most, and then the total."""
    total = _total(groups, exact_bytes(groups.total_bytes))
    if not groups.groups:
        return total
    most = [group for group in groups.groups if group.bytes == groups.groups[0].bytes]
    size, name = short_bytes(most[0].bytes), short_name(most[0].key, 44)
    if len(most) > 1:
        return f"{len(most):,} groups keep most: {size} each, as {name} does, of {total}"
    return f"{name} keeps {'most: ' * (len(groups.groups) > 1)}{size} of {total}"


def _total(groups: SavedGroups, size: str) -> str:
    line = f"{size} in {count(len(groups.groups), 'group')}"
    if any(group.shared_bytes for group in groups.groups):
        line += "; what several groups share counts in each"
    return line


GROUP_HEADINGS = ("entries", "bytes", "shared", "roles")


def group_texts(groups: SavedGroups) -> list[list[str]]:
    """The cells of the groups that are shown, as text."""
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


def groups_below(groups: SavedGroups) -> list[str]:
    """The line below the groups: those that are left out."""
    rest = groups.groups[MOST_ROWS:]
    if not rest:
        return []
    return [f"… {count(len(rest), 'more group')} of at most {rest[0].bytes:,} B each"]


def groups_text(groups: SavedGroups) -> str:
    """One line per group."""
    rows = [(short_name(groups.title, 44), *GROUP_HEADINGS), *group_texts(groups)]
    return "\n".join([text_table(rows, {1, 2, 3}), *groups_below(groups)])

"""The ledger and its groups as tables of a page: which rows, and what stands in each cell.

A page holds more rows than a text, and all of a ledger that is not large.
"""

from __future__ import annotations

from ..ledger.groups import SavedGroup, SavedGroups, natural
from ..ledger.saved_tensors import SavedTensors
from ..saving.record import SavedTensor
from .html_table import Cell, Column, Row, Table
from .ledger_text import keeps, left_out, shared, stale, those_that_keep_most, unseen
from .text import clip, count, exact_bytes, shape_words, short_bytes, short_name

COLOURS = {"activation": "saved", "parameter": "parameter", "buffer": "state", "input": "forward"}
"""For each role of a storage, its role in the theme."""

MOST_ON_A_PAGE = 200
"""Number of rows in a table of a page: more would make it heavy for a phone."""

MOST_INSIDE = 12
"""Number of rows that a group opens."""

COLUMNS = (
    Column("node"),
    Column("field"),
    Column("shape"),
    Column("bytes", numeric=True),
    Column("role"),
    Column("version"),
    Column("note"),
)
ORDERS = {
    "node": (0, "ascending"),
    "field": (1, "ascending"),
    "bytes": (3, "descending"),
}
"""For an order of the ledger, the column that it is the order of."""


def ledger_table(ledger: SavedTensors) -> Table:
    """One row for each entry; of a large ledger those that keep most."""
    entries = ledger.entries
    shown = set(those_that_keep_most(entries, MOST_ON_A_PAGE))
    largest = max((entry.storage_bytes for entry in entries), default=0)
    seen: dict[int, SavedTensor] = {}
    rows = []
    for number, entry in enumerate(entries):
        if number in shown:
            rows.append(_row(entry, largest, seen))
        for storage in entry.storages:
            seen.setdefault(storage, entry)
    return Table(
        "saved tensors",
        COLUMNS,
        tuple(rows),
        (*left_out(ledger, MOST_ON_A_PAGE, exact_bytes), *unseen(ledger)),
        ORDERS.get(ledger.by),
    )


def _row(entry: SavedTensor, largest: int, seen: dict[int, SavedTensor]) -> Row:
    """A row for an entry; ``seen`` holds, for storages of entries before it, the first one."""
    node = Cell(f"{entry.node} {clip(entry.label, 32)}", key=entry.node)
    field = Cell(short_name(entry.field, 36))
    if entry.freed:
        return Row((node, field, Cell("freed", state="muted"), Cell(key=-1), *[Cell()] * 3))
    return Row(
        (
            node,
            field,
            _shape(entry),
            _bytes(entry, largest),
            Cell(entry.role or "", role=COLOURS.get(entry.role or "", "")),
            _version(entry),
            _note(entry, seen),
        )
    )


def _shape(entry: SavedTensor) -> Cell:
    dtype = "" if entry.dtype is None else str(entry.dtype).removeprefix("torch.")
    if entry.packed:
        return Cell(f"packed as {short_name(entry.kind, 40)}", dtype)
    return Cell(shape_words(entry.shape).replace(" ", "\N{NO-BREAK SPACE}"), dtype)


def _bytes(entry: SavedTensor, largest: int) -> Cell:
    """What it occupies, and a bar of what it keeps alive, by which it is sorted."""
    role = COLOURS.get(entry.role or "")
    bars = ((role, 100 * entry.storage_bytes / largest),) if role and largest else ()
    return _size(entry.bytes, keeps(entry, exact_bytes), entry.storage_bytes, bars)


def _size(number: int, also: str, key: int, bars: tuple[tuple[str, float], ...] = ()) -> Cell:
    short = short_bytes(number) if number >= 1000 else ""
    return Cell(f"{number:,} B", ", ".join(filter(None, (short, also))), key, bars=bars)


def _version(entry: SavedTensor) -> Cell:
    """The version counter; two of them where it has moved since the tensor was saved."""
    if entry.version is None:
        return Cell()
    if entry.saved_version is None:
        return Cell(f"{entry.version} now", "not known when saved")
    if entry.stale:
        return Cell(f"{entry.saved_version} → {entry.version}", state="error")
    return Cell(f"{entry.version}")


def _note(entry: SavedTensor, seen: dict[int, SavedTensor]) -> Cell:
    whose = short_name(entry.owner or "", 40) or shared(entry, seen)
    if entry.stale:
        return Cell(stale(entry), whose, state="error")
    return Cell(whose)


def groups_table(groups: SavedGroups) -> Table:
    """One row for each group, largest first; it opens those of its entries that keep most."""
    shown = groups.groups[:MOST_ON_A_PAGE]
    rest = groups.groups[MOST_ON_A_PAGE:]
    largest = max((group.bytes for group in shown), default=0)
    names = sorted({group.key for group in shown}, key=natural)
    place = {name: number for number, name in enumerate(names)}
    title = short_name(groups.title, 44)
    columns = (
        Column(title),
        Column("bytes", numeric=True),
        Column("entries", numeric=True),
        Column("shared", numeric=True),
        Column("roles"),
    )
    rows, room = [], MOST_ON_A_PAGE
    for group in shown:
        inside = _inside(group) if room else None
        room = max(0, room - len(inside.rows)) if inside else 0
        rows.append(Row(_group(group, place[group.key], largest), inside))
    below = []
    if rest:
        below = [f"… {count(len(rest), 'more group')} of at most {exact_bytes(rest[0].bytes)} each"]
    return Table(f"saved bytes by {title}", columns, tuple(rows), tuple(below), (1, "descending"))


def _group(group: SavedGroup, place: int, largest: int) -> tuple[Cell, ...]:
    sizes = [(COLOURS[role], size) for role, size in group.by_role.items()]
    bars = tuple((role, 100 * size / largest) for role, size in sizes if size)
    roles = ", ".join(f"{role} {exact_bytes(size)}" for role, size in group.by_role.items())
    nothing = Cell(key=0)
    return (
        Cell(short_name(group.key, 44), key=place),
        _size(group.bytes, "", group.bytes, bars),
        Cell(f"{group.entries:,}", key=group.entries),
        _size(group.shared_bytes, "", group.shared_bytes) if group.shared_bytes else nothing,
        Cell(roles),
    )


def _inside(group: SavedGroup) -> Table:
    """The entries of a group that keep most, largest first."""
    entries = sorted(group.members, key=lambda entry: -entry.storage_bytes)
    largest = entries[0].storage_bytes
    seen: dict[int, SavedTensor] = {}
    rows = []
    for entry in entries[:MOST_INSIDE]:
        rows.append(_row(entry, largest, seen))
        for storage in entry.storages:
            seen.setdefault(storage, entry)
    rest = entries[MOST_INSIDE:]
    below = ()
    if rest:
        size = exact_bytes(rest[0].storage_bytes)
        below = (f"… {count(len(rest), 'more entry', 'more entries')} of at most {size} each",)
    return Table(f"saved tensors of {short_name(group.key, 44)}", COLUMNS, tuple(rows), below)

"""What differs between two atlases, entry by entry, as a table in text."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from autograd_lens.atlas import Atlas, Row

WIDTH = 96
GONE = "—"


@dataclass(frozen=True)
class Change:
    """One difference: of which op or node, in what, and the two values as text."""

    name: str
    what: str
    old: str
    new: str


def changes(old: Atlas, new: Atlas) -> list[Change]:
    """Everything that differs: ops that came, went or record something else, and formulas.

    A node that only one of the two has is a change of its op, not of a formula.
    """
    found = []
    for name in sorted({*old.ops, *new.ops}):
        before, after = old.ops.get(name), new.ops.get(name)
        if before is None or after is None:
            what = "op added" if before is None else "op gone"
            found.append(Change(name, what, _brief(before), _brief(after)))
        elif before.seen is None or after.seen is None:
            if before != after:
                found.append(Change(name, "graph", _brief(before), _brief(after)))
        else:
            found += _row_changes(name, before, after)
    for node in sorted({*old.formulas} & {*new.formulas}):
        before, after = old.formulas[node], new.formulas[node]
        for place in sorted({*before, *after}):
            pair = before.get(place, GONE), after.get(place, GONE)
            if pair[0] != pair[1]:
                found.append(Change(node, f"formula {place}", *pair))
    return found


def _brief(row: Row | None) -> str:
    if row is None:
        return GONE
    if row.seen is None:
        return row.reason
    return f"{_names(row)}: {row.kinds}"


def _names(row: Row) -> str:
    return " ".join(node for node, _ in row.seen.nodes)


def _row_changes(name: str, before: Row, after: Row) -> list[Change]:
    old, new = before.to_dict(), after.to_dict()
    found = []
    if _names(before) != _names(after):
        found.append(Change(name, "nodes", _names(before), _names(after)))
        saved = [(row.kinds, row.kinds) for row in (before, after)]
        if saved[0] != saved[1]:
            found.append(Change(name, "saves", before.kinds, after.kinds))
    else:
        for (node, ours), (_, theirs) in zip_longest(before.seen.nodes, after.seen.nodes):
            for place in sorted({*ours, *theirs}):
                pair = ours.get(place, GONE), theirs.get(place, GONE)
                if pair[0] != pair[1]:
                    found.append(Change(name, f"{node}.{place}", *pair))
    for key in ("sample", "inputs", "bytes", "output_bytes", "view", "backward", "double"):
        if old[key] != new[key]:
            found.append(Change(name, key, _plain(old[key]), _plain(new[key])))
    if old["forward"] != new["forward"]:
        found.append(Change(name, "forward mode", _plain(old["forward"]), _plain(new["forward"])))
    return found


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {one}" for key, one in value.items()) or "0"
    if isinstance(value, list):
        return "; ".join(map(str, value))
    return {True: "yes", False: "no", None: "constant"}.get(value, str(value))


def table(old: Atlas, new: Atlas, found: list[Change]) -> str:
    """The differences for reading: one block each, and how many there are."""
    names = f"torch {old.torch} → torch {new.torch}"
    counts = f"{len(old.ops)} → {len(new.ops)} ops, {len(old.recorded())} → {len(new.recorded())}"
    head = f"{names}: {counts} with a graph"
    if not found:
        return f"{head}\nnothing changed\n"
    lines = []
    for change in found:
        lines.append(f"{change.name}  {change.what}")
        for sign, text in (("-", change.old), ("+", change.new)):
            lines += textwrap.wrap(
                text, WIDTH, initial_indent=f"  {sign} ", subsequent_indent="    "
            )
    kinds: dict[str, int] = {}
    for change in found:
        kind = change.what.split()[0].partition(".")[0]
        kind = "saved field" if "." in change.what else kind if kind != "op" else change.what
        kinds[kind] = kinds.get(kind, 0) + 1
    total = ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))
    return f"{head}\n\n" + "\n".join(lines) + f"\n\n{len(found)} changes: {total}\n"

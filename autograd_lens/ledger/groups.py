"""Saved bytes by group: by module, by kind of node, by any function of an entry."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from ..result import Result
from ..saving.record import ROLES, SavedTensor

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True)
class SavedGroup:
    """Entries with something in common.

    Attributes:
        key: what they have in common.
        nodes, entries: how many nodes and entries there are in it.
        bytes: bytes of the storages that it keeps alive, each counted once.
        shared_bytes: the part of ``bytes`` that other groups keep alive too.
        by_role: ``bytes`` by role, only roles that occur.
        members: the entries themselves, in the order of the ledger.
    """

    key: str
    nodes: int
    entries: int
    bytes: int
    shared_bytes: int
    by_role: dict[str, int]
    members: tuple[SavedTensor, ...] = ()


@dataclass(frozen=True, repr=False)
class SavedGroups(Result):
    """What groups of entries keep alive, largest first.

    Attributes:
        title: what the groups are: ``"node kind"``, ``"module"``.
        groups: one for each key.
        total_bytes: bytes of the whole ledger; less than the sum where groups share storages.
    """

    title: str
    groups: tuple[SavedGroup, ...]
    total_bytes: int

    def figure(self) -> Any:
        """Return the bar chart of the groups."""
        from ..view.draw_saved_tensors import groups_figure

        return groups_figure(self)

    def to_dicts(self) -> list[dict[str, Any]]:
        """One dictionary per group: its numbers, without its members."""
        names = [f.name for f in fields(SavedGroup) if f.name != "members"]
        return [{name: getattr(group, name) for name in names} for group in self.groups]


def grouped(
    entries: Sequence[SavedTensor],
    sizes: Sequence[int],
    roles: Sequence[str],
    key: Callable[[SavedTensor], Hashable],
    title: str,
) -> SavedGroups:
    """Put entries with the same key together; ``sizes`` and ``roles`` are those of the storages."""
    members: dict[str, list[SavedTensor]] = {}
    for entry in entries:
        found = key(entry)
        if found is not None and not entry.freed:
            members.setdefault(str(found), []).append(entry)
    held = {name: {n for e in group for n in e.storages} for name, group in members.items()}
    uses = Counter(number for numbers in held.values() for number in numbers)

    def size(numbers: set[int]) -> int:
        return sum(sizes[number] for number in numbers)

    groups = []
    for name, group in members.items():
        of_role = {role: {n for n in held[name] if roles[n] == role} for role in ROLES}
        groups.append(
            SavedGroup(
                name,
                len({entry.node for entry in group}),
                len(group),
                size(held[name]),
                size({n for n in held[name] if uses[n] > 1}),
                {role: size(numbers) for role, numbers in of_role.items() if numbers},
                tuple(group),
            )
        )
    groups.sort(key=lambda group: (-group.bytes, natural(group.key)))
    return SavedGroups(title, tuple(groups), sum(sizes))


def natural(text: str) -> list[tuple[int, str]]:
    """A key that sorts ``blocks.2`` before ``blocks.10``."""
    return [
        (int(part or 0), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", text)
    ]

"""Makes items and links small enough to look at: joins items by key, and folds the middle.

Knows nothing of graphs: items are numbers from 0, links are pairs of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

FOLDED = "folded"
"""Title of the stretch that was too much."""


@dataclass(frozen=True)
class Group:
    """A key for items that are drawn as one, under a title. Equal groups are one group.

    Attributes:
        title: what stands in the box.
        opens: number of the frame that shows what is inside; 0 where there is none.
        part: tells boxes with the same title apart.
    """

    title: str
    opens: int = 0
    part: int = 0


@dataclass(frozen=True)
class Joined:
    """Several items drawn as one: the group, and the items."""

    group: Group
    indices: tuple[int, ...]


@dataclass(frozen=True)
class Folded:
    """What is left to draw. A joined item goes by the number of its first member.

    Attributes:
        items: all of them, in the order of their first members.
        item_of: the item of every number.
        joined: the items of several numbers, and those of a group; every other item is the number
            itself.
        links: positions of the links to draw: those between different items, and only one between
            the same two if either is joined.
    """

    items: Sequence[int]
    item_of: Sequence[int]
    joined: Mapping[int, Joined]
    links: Sequence[int]

    @property
    def hidden(self) -> int:
        """How many items the fold of the middle hides."""
        return sum(len(j.indices) for j in self.joined.values() if j.group.title == FOLDED)


def fold(
    count: int,
    links: Sequence[tuple[int, int]],
    groups: Mapping[int, Group],
    most: int | None,
) -> Folded:
    """Join the items of each group, then fold the middle until at most ``most`` items are left.

    The fold is one stretch, so it adds no cycle. A quarter of the room is kept for the end.
    """
    if not groups and (most is None or count <= most):
        return Folded(range(count), range(count), {}, range(len(links)))
    keys: list[Hashable] = [groups.get(number, number) for number in range(count)]
    distinct = list(dict.fromkeys(keys))
    if most is not None and len(distinct) > most:
        tail = most // 4
        hidden = set(distinct[most - tail - 1 : len(distinct) - tail])
        keys = [Group(FOLDED) if key in hidden else key for key in keys]
    first: dict[Hashable, int] = {}
    members: dict[int, list[int]] = {}
    for number, key in enumerate(keys):
        members.setdefault(first.setdefault(key, number), []).append(number)
    item_of = [first[key] for key in keys]
    joined = {
        item: Joined(keys[item], tuple(numbers))
        for item, numbers in members.items()
        if isinstance(keys[item], Group)
    }
    drawn, kept = set(), []
    for position, (source, target) in enumerate(links):
        ends = item_of[source], item_of[target]
        if ends[0] == ends[1]:
            continue
        if ends[0] in joined or ends[1] in joined:
            if ends in drawn:
                continue
            drawn.add(ends)
        kept.append(position)
    return Folded(list(members), item_of, joined, kept)

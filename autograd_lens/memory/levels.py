"""Live bytes by role over a whole recording, in one table for all samples."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping


class LiveBytes:
    """Live bytes by role, before the first event (-1) and after each of them.

    A dict in every sample would take ten times as much memory, and one event changes one role.
    """

    __slots__ = ("_by_role", "_totals")

    def __init__(self, start: Mapping[str, int], changes: Iterable[tuple[str, int]] = ()):
        """Take the bytes before the first event, and role and change of each event."""
        self._by_role = {role: array("q", [size]) for role, size in start.items()}
        self._totals = array("q", [sum(start.values())])
        for changed, change in changes:
            for role, levels in self._by_role.items():
                levels.append(levels[-1] + change if role == changed else levels[-1])
            self._totals.append(self._totals[-1] + change)

    def after(self, event: int) -> dict[str, int]:
        """Live bytes by role after an event."""
        return {role: levels[event + 1] for role, levels in self._by_role.items()}

    def total_after(self, event: int) -> int:
        """All live bytes after an event."""
        return self._totals[event + 1]

    def totals(self) -> list[int]:
        """All live bytes, before the first event and after each of them."""
        return self._totals.tolist()

    def of_role(self, role: str) -> list[int]:
        """The same for one role; zeros where it does not occur."""
        levels = self._by_role.get(role)
        return [0] * len(self._totals) if levels is None else levels.tolist()

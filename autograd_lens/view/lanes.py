"""An axis with lanes: one row for each kind of event, one column for each event.

Knows nothing of what happened. It gives places to the marks of
:mod:`autograd_lens.view.sketch`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .sketch import Mark, Stroke, Words
from .text import short_name

LEFT, RIGHT, TOP, ROW = 76.0, 318.0, 20.0, 30.0
"""The place of the lanes, and the height of one, in points. As wide as other charts."""


@dataclass(frozen=True)
class Lanes:
    """Places on the axis.

    Attributes:
        names: the lanes, from the top.
        events: the number of columns.
        across: what the axis counts.
    """

    names: tuple[str, ...]
    events: int
    across: str = "events, in order"

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the canvas."""
        return RIGHT + 8, TOP + ROW * len(self.names)

    def place(self, name: str, event: int) -> tuple[float, float]:
        """Where an event stands, in the lane of this name."""
        width = (RIGHT - LEFT) / max(1, self.events)
        return LEFT + width * (event + 0.5), TOP + ROW * self.names.index(name)

    def marks(self) -> list[Mark]:
        """The lanes with their names, and the words below them."""
        found: list[Mark] = []
        for name in self.names:
            _, y = self.place(name, 0)
            found.append(Words((LEFT - 8, y), short_name(name, 14), size=9.5, anchor="end"))
            found.append(Stroke((LEFT, y), (RIGHT, y), "line"))
        below = self.size[1] - 9
        found.append(Words(((LEFT + RIGHT) / 2, below), self.across, "muted", anchor="middle"))
        return found

    def now(self, event: int) -> Stroke:
        """A line across all lanes at one event."""
        x, top = self.place(self.names[0], event)
        return Stroke((x, top - 12), (x, self.size[1] - 18), "ink", 1.2)


def nearest(events: Sequence[int], wanted: int) -> list[int]:
    """At most ``wanted`` of ``events``, evenly spread, with the first and the last one."""
    if len(events) <= wanted:
        return list(events)
    return [events[k * (len(events) - 1) // (wanted - 1)] for k in range(wanted)]

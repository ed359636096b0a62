"""A tree as an outline: one row for each item, moved right by its depth, below what it is in.

Knows nothing of what the items are. It gives places to the marks of
:mod:`autograd_lens.view.sketch`. An
outline keeps the order of the items, and has room for long names on a phone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .sketch import Mark, Stroke

LEFT, TOP, ROW, STEP = 10.0, 14.0, 18.0, 14.0
"""The place of the first row, the height of a row, and what a level moves right, in points."""


@dataclass(frozen=True)
class Outline:
    """Places of the rows.

    Attributes:
        parents: for each row the number of the row that it is in, or None at the top level. A row
            comes after its parent.
    """

    parents: Sequence[int | None]

    @property
    def depths(self) -> list[int]:
        """How many rows each row is in."""
        found: list[int] = []
        for parent in self.parents:
            found.append(0 if parent is None else found[parent] + 1)
        return found

    @property
    def height(self) -> float:
        """Height of the canvas."""
        return 2 * TOP + ROW * (len(self.parents) - 1)

    def places(self) -> list[tuple[float, float]]:
        """Where each row begins; its middle height."""
        return [(LEFT + STEP * depth, TOP + ROW * row) for row, depth in enumerate(self.depths)]

    def marks(self) -> list[Mark]:
        """The lines that lead from each row to those in it."""
        places, found = self.places(), []
        for row, parent in enumerate(self.parents):
            if parent is not None:
                (x, y), (left, top) = places[row], places[parent]
                found.append(Stroke((left + 3, top + 7), (left + 3, y), "line"))
                found.append(Stroke((left + 3, y), (x - 3, y), "line"))
        return found

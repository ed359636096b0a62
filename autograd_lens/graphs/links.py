"""The edges of many nodes in little memory: numbers only."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Edges:
    """Edges by number of the node that they leave.

    The edges of node ``k`` are the positions ``bounds[k]`` to ``bounds[k + 1]``. ``targets`` holds
    node numbers (-1 where an input needs no gradient), ``input_nrs`` the output they lead to.
    """

    bounds: array[int]
    targets: array[int]
    input_nrs: array[int]

    def of(self, number: int) -> Iterator[tuple[int, int]]:
        """Yield ``(target, input_nr)`` of one node."""
        for place in range(self.bounds[number], self.bounds[number + 1]):
            yield self.targets[place], self.input_nrs[place]

"""Where lines of a chart run on each other: what has to be drawn wider to be seen.

Works on places in a picture. Of lines that coincide, each is drawn over those before it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from .traces import Point

NEAR = 1.2
"""Two lines that are nearer than this, in points, hide each other."""

TOUCHING = 3.0
"""Two markers that are nearer than this, in points, hide each other."""

Pieces = Sequence[Sequence[Point]]
"""A line as its parts without a gap."""


def covers_of_segments(line: Pieces, later: Sequence[Pieces]) -> list[list[int]]:
    """For each segment of each piece, by how many of the later lines it is covered."""
    others = [_Course(other) for other in later]
    return [
        [
            sum(other.covers(a, b) for other in others)
            for a, b in zip(piece, piece[1:], strict=False)
        ]
        for piece in line
    ]


def covers_of_points(points: Sequence[Point], later: Sequence[Sequence[Point]]) -> list[int]:
    """For each marker, how many later lines have a marker at its place."""
    found = [0] * len(points)
    for other in later:
        near: dict[tuple[int, int], list[Point]] = {}
        for x, y in other:
            near.setdefault((int(x // TOUCHING), int(y // TOUCHING)), []).append((x, y))
        for k, (x, y) in enumerate(points):
            cell = int(x // TOUCHING), int(y // TOUCHING)
            around = [
                place
                for i in (-1, 0, 1)
                for j in (-1, 0, 1)
                for place in near.get((cell[0] + i, cell[1] + j), ())
            ]
            found[k] += any(abs(x - a) + abs(y - b) < TOUCHING for a, b in around)
    return found


class _Course:
    """The course of a line, to be asked whether it covers a segment."""

    def __init__(self, pieces: Pieces):
        self.same = set()
        self.rising = []
        for piece in pieces:
            rounded = [(round(x), round(y)) for x, y in piece]
            for pair in zip(rounded, rounded[1:], strict=False):
                self.same |= {pair, pair[::-1]}
            xs = [x for x, _ in piece]
            if len(piece) > 1 and all(a < b for a, b in zip(xs, xs[1:], strict=False)):
                self.rising.append((xs, [y for _, y in piece]))

    def covers(self, a: Point, b: Point) -> bool:
        """Whether it runs along the segment from ``a`` to ``b``, or along a part of it."""
        ends = tuple((round(x), round(y)) for x, y in (a, b))
        return ends in self.same or any(_along(*course, *sorted((a, b))) for course in self.rising)


def _along(xs: list[float], ys: list[float], a: Point, b: Point) -> bool:
    left, right = max(a[0], xs[0]), min(b[0], xs[-1])
    if right - left < min(4.0, (b[0] - a[0]) / 2):
        return False
    for x in (left, (left + right) / 2, right):
        k = min(max(bisect_left(xs, x), 1), len(xs) - 1)
        there = _between((xs[k - 1], ys[k - 1]), (xs[k], ys[k]), x)
        if abs(there - _between(a, b, x)) > NEAR:
            return False
    return True


def _between(a: Point, b: Point, x: float) -> float:
    return a[1] if a[0] == b[0] else a[1] + (b[1] - a[1]) * (x - a[0]) / (b[0] - a[0])

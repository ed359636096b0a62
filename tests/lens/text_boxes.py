"""Where the texts of a sketch are, if a page shows them in a wide font."""

import itertools
from dataclasses import dataclass

from autograd_lens.view.sketch import Words, width_of


@dataclass(frozen=True)
class Box:
    text: str
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other):
        """Whether two boxes share more than a fifth of a point in both directions."""
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return across > 0.2 and down > 0.2


def boxes(picture):
    """The texts of a picture, as wide as in a wide font."""
    found = []
    for mark in picture.marks:
        if isinstance(mark, Words) and mark.text:
            wide = width_of(mark.text, mark.size)
            left = mark.at[0] - {"start": 0, "middle": wide / 2, "end": wide}[mark.anchor]
            half = 0.55 * mark.size  # ascender to descender
            y = mark.at[1]
            found.append(Box(mark.text, left, y - half, left + wide, y + half))
    return found


def misplaced(picture):
    """The texts that leave the picture, and the pairs that overlap."""
    width, height = picture.size
    found = boxes(picture)
    out = [
        box.text
        for box in found
        if box.left < 0 or box.right > width + 0.01 or box.top < 0 or box.bottom > height
    ]
    return out + [(a.text, b.text) for a, b in itertools.combinations(found, 2) if a.meets(b)]

"""Pictures laid out by Graphviz: source text in, SVG or PNG out.

Knows nothing of autograd. Uses the ``graphviz`` package, which needs the program ``dot``.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, repeat

import graphviz

from ..printable import printable
from .canvas import WIDER, Canvas, Stage
from .figure import Picture, ProgramMissing
from .theme import light

LOWER = 0.7
"""A wide layout has at most this share of the height of the other one, or a page goes without."""

ADVICE = (
    "No picture: the Graphviz program dot is not installed "
    "(apt install graphviz, brew install graphviz, or conda install graphviz)."
)


class DotMissing(ProgramMissing):
    """The program ``dot`` is not on the PATH."""

    def __init__(self) -> None:
        super().__init__(ADVICE)


def quoted(text: str) -> str:
    """``text`` as a DOT string."""
    return '"' + printable(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def escaped(text: str) -> str:
    r"""``text`` for an HTML-like label. Graphviz reads ``\N`` there, too, as the node's name."""
    return html.escape(printable(text)).replace("\\", "\\\\")


@dataclass(frozen=True)
class DotPicture(Picture):
    """A picture given as DOT source. Its ``id`` attributes must be ``node…`` or ``edge…``.

    Attributes:
        source: the DOT source.
        centred: all frames of a film share the canvas of the widest one. A narrower picture stands
            in the middle of it, or else at its left.
        wide: the same from left to right.
    """

    source: str
    centred: bool = True
    wide: DotPicture | None = None

    def svg(self) -> str:
        """Lay out and draw; see :meth:`Picture.svg`."""
        return _render((self.source,))[0]

    def png(self) -> bytes:
        """Lay out and draw; see :meth:`Picture.png`."""
        ground = f'bgcolor="{light("paper")}"'  # a viewer may be dark, and the ink is not
        source = self.source.replace("bgcolor=transparent", ground, 1)
        return _pipe(source.replace("{", "{ dpi=144", 1), "png")

    @classmethod
    def stage(cls, narrow: Canvas, wide: Canvas) -> Stage:
        """From left to right where that is much lower, and no text becomes too small for it.

        A figure decides for all of its frames at once: a film that jumped could not be followed.
        """
        serves = wide.least <= WIDER and wide.height <= LOWER * narrow.height
        return Stage(narrow, wide if serves else None)

    @property
    def alone(self) -> DotPicture:
        """A file goes from the top down, as large graphs do everywhere."""
        return self

    @classmethod
    def svgs(cls, pictures: Sequence[Picture]) -> list[str]:
        """Draw all of them in one process."""
        return list(_render(tuple(picture.source for picture in pictures)))


@lru_cache(maxsize=32)
def _render(sources: tuple[str, ...]) -> tuple[str, ...]:
    """Draw all frames of a figure in one ``dot`` process. Starting one costs more than a layout."""
    if not sources:
        return ()
    rendered = _pipe("\n".join(sources), "svg").decode()
    found = re.findall(r"<svg.*?</svg>", rendered, flags=re.S)
    if len(found) != len(sources):
        raise RuntimeError(f"dot drew {len(found)} of {len(sources)} pictures")
    return tuple(map(_tidy, found))


def _pipe(source: str, format: str) -> bytes:
    try:
        # Source.pipe() writes all graphs before it reads, and dot answers each graph at once. With
        # a long film both would wait for ever on a full pipe.
        return graphviz.pipe("dot", format, source.encode(), quiet=True)
    except graphviz.ExecutableNotFound:
        raise DotMissing from None


def _tidy(svg: str) -> str:
    """Drop what a page does not need, and what would clash in it.

    Graphviz numbers its ids from 1 in every picture. Two pictures on one page would share them, and
    a reference would lead to the wrong one. The ids of nodes and edges become ``data-lens``.
    """
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.S)
    svg = re.sub(r"<title>.*?</title>\s*", "", svg, flags=re.S)
    svg = re.sub(r'<g id="a_[^"]*"><a [^>]*>\s*|</a>\s*</g>\s*', "", svg)
    svg = re.sub(r' id="((?:node|edge)[^"]*)"', r' data-lens="\1"', svg)
    # A box that opens another frame is a button; player.js answers for it.
    svg = re.sub(r'(<g [^>]*class="[^"]*\bopens_\d+[^"]*")', r'\1 tabindex="0" role="button"', svg)
    # A box with a note is one, too. Of many, only the first is a stop of the Tab key.
    stops = chain([0], repeat(-1))
    svg = re.sub(
        r'<g [^>]*class="[^"]*\bnoted\b[^"]*"',
        lambda box: f'{box[0]} tabindex="{next(stops)}" role="button"',
        svg,
    )
    svg = re.sub(r' (?:id|xml:space|xmlns:xlink)="[^"]*"', "", svg)
    svg = re.sub(r' font-family="[^"]*"| text-anchor="start"', "", svg)
    # Versions of Graphviz write "transparent" in different ways.
    svg = re.sub(
        r'(fill|stroke)="(?:#fffffe|transparent)"( \1-opacity="0[.0]*")?', r'\1="none"', svg
    )
    svg = re.sub(r"<[^>]*>", _shorter, svg)
    return svg.replace("\n", "")


def _shorter(tag: re.Match[str]) -> str:
    """Round the coordinates in a tag to a tenth of a point. Numbers between tags are texts."""
    return re.sub(r"-?\d+\.\d{2,}", lambda m: f"{float(m[0]):.1f}".removesuffix(".0"), tag[0])

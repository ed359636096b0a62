"""A notebook as sections: from one `##` heading to the next, what is said and what is shown."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise

from nbformat import NotebookNode

FENCE = re.compile(
    r"^( {0,3})(`{3,}|~{3,})([^\n`]*)\n(.*?)(?:^ {0,3}\2[`~]*[ \t]*$|\Z)",
    re.MULTILINE | re.DOTALL,
)


@dataclass
class Section:
    """The text and the code cells under one `##` heading, each with its position from 1."""

    title: str
    text: list[tuple[int, str]] = field(default_factory=list)
    code: list[tuple[int, NotebookNode]] = field(default_factory=list)


def sections(nb: NotebookNode) -> list[Section]:
    """The sections of a notebook; the first is what stands before the first `##`."""
    found = [Section(title="(opening)")]
    for position, cell in enumerate(nb.cells, start=1):
        if cell.cell_type == "code":
            found[-1].code.append((position, cell))
        elif cell.cell_type == "markdown":
            for title, text in _split(cell.source):
                if title is not None:
                    found.append(Section(title))
                found[-1].text.append((position, text))
    return found


def _split(source: str) -> list[tuple[str | None, str]]:
    """The pieces of a text cell, each with the `##` heading that opens it, or None."""
    # A `##` inside a code fence is no heading: look for headings where fences are blanked.
    blanked = FENCE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source)
    starts = [match.start() for match in re.finditer(r"^##[ \t]", blanked, re.MULTILINE)]
    pieces: list[tuple[str | None, str]] = []
    for start, end in pairwise(sorted({0, *starts, len(source)})):
        text = source[start:end]
        if start in starts:
            pieces.append((text.split("\n")[0].strip("# \t"), text))
        else:
            pieces.append((None, text))
    return pieces

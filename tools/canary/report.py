"""Word what a canary found: a table for a terminal, Markdown for a summary page, JSON for programs.

Only what changed is shown. Rows hold the first line that differs; JSON holds everything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from pathlib import PurePath

from tools.canary.explained import Explanation
from tools.canary.rerun import NOT_RUN, NOTHING, Difference, Run

WIDTH = 100
CHAPTER, CELL = 14, 22
SIDE = (WIDTH - CHAPTER - CELL - 6) // 2


@dataclass(frozen=True)
class Report:
    """All that one canary found."""

    title: str  # with the versions that were really there
    runs: Sequence[Run]
    stale: Sequence[Explanation] = ()

    @property
    def differences(self) -> list[Difference]:
        """Every difference of every notebook."""
        return [difference for run in self.runs for difference in run.differences]

    @property
    def unexplained(self) -> list[Difference]:
        """The differences that nobody has given a reason for."""
        return [one for one in self.differences if not one.reason]

    @property
    def explained(self) -> list[Difference]:
        """The differences whose reason is known."""
        return [one for one in self.differences if one.reason]

    @property
    def good(self) -> bool:
        """Whether nothing changed that is not explained, and every explanation explains."""
        return not self.unexplained and not self.stale

    def totals(self) -> str:
        """One line that counts."""
        cells = sum(run.cells for run in self.runs)
        changed, explained = len(self.unexplained), len(self.explained)
        line = f"{_count(len(self.runs), 'notebook')}, {_count(cells, 'cell')}, {changed} changed"
        if explained:
            line += f", {explained} explained"
        if self.stale:
            line += f", {_count(len(self.stale), 'explanation')} out of date"
        return line

    def text(self) -> str:
        """The report for a terminal, at most 100 columns wide."""
        blocks = [self.title]
        if self.unexplained:
            blocks.append(_table(self.unexplained))
        if self.explained:
            blocks.append("Explained in tools/canary/explained.toml:\n" + _table(self.explained))
            reasons = dict.fromkeys(one.reason for one in self.explained)
            blocks.append("\n".join(f"- {reason}" for reason in reasons))
        if self.stale:
            blocks.append(_OUT_OF_DATE + ":\n" + "\n".join(f"- {one}" for one in self.stale))
        return "\n\n".join([*blocks, self.totals()]) + "\n"

    def markdown(self) -> str:
        """The report for a page, such as the summary of a workflow."""
        blocks = [f"### {self.title}", f"**{self.totals()}**"]
        if self.unexplained:
            blocks.append(_markdown_table(self.unexplained))
        if self.explained:
            blocks.append("Explained:\n\n" + _markdown_table(self.explained))
        if self.stale:
            stale = "\n".join(f"- {_markdown(str(one))}" for one in self.stale)
            blocks.append(f"{_OUT_OF_DATE}:\n\n{stale}")
        return "\n\n".join(blocks) + "\n"

    def json(self) -> str:
        """Everything, for programs."""
        data = {
            "title": self.title,
            "good": self.good,
            "totals": self.totals(),
            "runs": [asdict(run) for run in self.runs],
            "stale": [str(one) for one in self.stale],
        }
        return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


_PLACE = re.compile(r"^stderr: \S+:\d+: (?=\w*Warning: )")  # of a warning: a path, which is long
_OUT_OF_DATE = "These entries of tools/canary/explained.toml explain nothing any more"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _rows(differences: Iterable[Difference]) -> list[tuple[str, str, str, str]]:
    """Chapter, cell, before, after, and the cells that a dead kernel left as one row."""
    rows: list[tuple[str, str, str, str]] = []
    left = 0
    for one in differences:
        chapter = PurePath(one.notebook).stem
        first_line = one.source.strip().partition("\n")[0]
        before, after = (
            _PLACE.sub("stderr: ", text) for text in first_difference(one.before, one.after)
        )
        if one.after.startswith(NOT_RUN):
            left = left + 1 if rows and rows[-1][3].startswith(NOT_RUN) else 0
            if left:
                more = f"and {_count(left, 'cell')} after it"
                chapter, cell, before, after = rows.pop()
                rows.append((chapter, cell, more, after))
                continue
        rows.append((chapter, f"{one.cell}: {first_line}", before, after))
    return rows


def first_difference(before: str, after: str) -> tuple[str, str]:
    """The first line that differs, of both, and how many more do."""
    old, new = before.split("\n"), after.split("\n")
    pairs: list[tuple[str, str]] = []
    for kind, start, end, other, last in SequenceMatcher(None, old, new, False).get_opcodes():
        if kind != "equal":
            pairs += zip_longest(old[start:end], new[other:last], fillvalue=NOTHING)
    if not pairs:
        return before, after
    more = f" (+{_count(len(pairs) - 1, 'line')})" if len(pairs) > 1 else ""
    return pairs[0][0], pairs[0][1] + more


def _table(differences: Iterable[Difference]) -> str:
    lines = [_line("chapter", "cell", "before", "after"), "-" * WIDTH]
    for chapter, cell, before, after in _rows(differences):
        lines.append(_line(chapter, cell, *_shortened(before, after, SIDE)))
    return "\n".join(lines)


def _line(chapter: str, cell: str, before: str, after: str) -> str:
    columns = [(chapter, CHAPTER), (cell, CELL), (before, SIDE), (after, SIDE)]
    cut = [text if len(text) <= width else text[: width - 1] + "…" for text, width in columns]
    return "  ".join(
        f"{text:{width}}" for text, (_, width) in zip(cut, columns, strict=True)
    ).rstrip()


def _shortened(before: str, after: str, width: int) -> tuple[str, str]:
    """Both lines from a place on that still shows where they part."""
    same = 0
    while same < min(len(before), len(after)) and before[same] == after[same]:
        same += 1
    longest = max(len(before), len(after))
    start = min(same - width // 3, longest - width + 1)
    if start <= 0:
        return before, after
    return "…" + before[start:], "…" + after[start:]


def _markdown_table(differences: Iterable[Difference]) -> str:
    lines = ["| chapter | cell | before | after |", "|---|---|---|---|"]
    for row in _rows(differences):
        chapter, cell, before, after = row
        before, after = _shortened(before, after, 120)
        shown = [chapter, *(f"`{_code(text[:240])}`" for text in (cell, before, after))]
        lines.append(f"| {' | '.join(shown)} |")
    return "\n".join(lines)


def _code(text: str) -> str:
    """Text for between backticks in a table."""
    return text.replace("`", "'").replace("|", "\\|").replace("\r", " ").strip() or " "


def _markdown(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")

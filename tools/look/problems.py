"""What a measurement found, as data and as a list that can be read.

Knows the kinds of problems and their order. Does not know how one is measured, nor a browser.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

WORST = 5
"""Problems that the list shows of each kind; the index has them all."""


@dataclass(frozen=True)
class Look:
    """How a page is looked at. What else changes geometry, such as a font, would stand here."""

    width: int
    theme: str

    def __str__(self) -> str:
        return f"{self.width} {self.theme}"


LOOKS = tuple(Look(width, theme) for width in (390, 1280) for theme in ("light", "dark"))
"""A phone and a desktop, in both themes: the columns of a sheet."""

MEASURED = tuple(look for look in LOOKS if look.theme == "light")
"""Geometry does not depend on the theme."""


@dataclass(frozen=True)
class Kind:
    """A kind of problem: its heading, what its pixels say, and whether few of them are worse."""

    title: str
    amount: str
    few_are_worse: bool = False


KINDS = {
    "text-leaves-box": Kind("text that leaves its box", "{:.1f} px beyond"),
    "text-leaves-picture": Kind("text that leaves the picture", "{:.1f} px beyond"),
    "texts-overlap": Kind("texts that overlap", "by {:.1f} px"),
    "text-small": Kind("text under 11 px", "{:.1f} px", few_are_worse=True),
    "part-leaves-figure": Kind("a part that leaves its figure", "{:.1f} px beyond"),
    "part-cut": Kind("a part that is cut", "{:.1f} px hidden"),
    "parts-overlap": Kind("parts of a figure that overlap", "by {:.1f} px"),
    "caption-missing": Kind("a caption missing", ""),
    "caption-hidden": Kind("a caption that can't be seen", ""),
    "figure-stuck": Kind("a figure whose controls change nothing", ""),
    "figure-outside-column": Kind("a figure outside the column", "{:.1f} px beyond"),
    "page-scrolls-sideways": Kind("a page that scrolls sideways", "{:.1f} px beyond"),
}
"""By the name that `measure.js` uses, in the order of the list."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, in one look, in one figure or on the page.

    Attributes:
        kind: a key of `KINDS`.
        page: its name, such as `book/01_tape`.
        look: width and theme.
        what: which text or part.
        px: how much.
        figure: number on the page, counted from 1; 0 for the page itself.
        title: of the figure.
        states: names of the figure's states in which it is so.
        of: number of states that the figure has.
    """

    kind: str
    page: str
    look: Look
    what: str
    px: float = 0.0
    figure: int = 0
    title: str = ""
    states: tuple[str, ...] = field(default=())
    of: int = 1

    @property
    def badness(self) -> float:
        """What sorts problems of one kind: more is worse."""
        return -self.px if KINDS[self.kind].few_are_worse else self.px

    @property
    def amount(self) -> str:
        """How much, in words; empty where there is nothing to measure."""
        return KINDS[self.kind].amount.format(self.px)

    @property
    def where(self) -> str:
        """Page, look, figure and state."""
        figure = f", figure {self.figure} ({self.title})" if self.figure else ""
        return f"{self.page}, {self.look}{figure}{self._when()}"

    def _when(self) -> str:
        if self.of < 2 or not self.states:
            return ""
        if len(self.states) == self.of:
            return ", every state"
        more = f" and {len(self.states) - 1} more" if len(self.states) > 1 else ""
        return f", state {self.states[0]!r}{more} of {self.of}"

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" + (f", {self.amount}" if self.amount else "")


def by_kind(problems: Iterable[Problem]) -> dict[str, list[Problem]]:
    """The problems of each kind that occurs, the worst first."""
    found: dict[str, list[Problem]] = {name: [] for name in KINDS}
    for problem in problems:
        found[problem.kind].append(problem)
    return {
        name: sorted(some, key=lambda problem: -problem.badness)
        for name, some in found.items()
        if some
    }


def summary(problems: Sequence[Problem]) -> str:
    """A line with the counts of each kind, then the worst of it, at most one of a figure."""
    lines = []
    for name, some in by_kind(problems).items():
        figures = {(problem.page, problem.figure) for problem in some}
        lines.append(f"{KINDS[name].title}: {len(some)}, in {len(figures)} places")
        shown = _one_of_each_figure(some)[:WORST]
        lines += [f"  {problem}" for problem in shown]
        if len(some) > len(shown):
            lines.append(f"  … and {len(some) - len(shown)} more")
    return "\n".join(lines)


def _one_of_each_figure(problems: Iterable[Problem]) -> list[Problem]:
    first: dict[tuple[str, int], Problem] = {}
    for problem in problems:
        first.setdefault((problem.page, problem.figure), problem)
    return list(first.values())

"""Gate on the short route: a chain of sections for a reader in a hurry.

A chapter that has one says so in its opening, `> **Short route.** … First stop: *Title*`; each
section on it begins with `> **Short route.** Next stop: *Title*`, and the last one with
`> **Short route.** Last stop.` The book makes links of the titles (`_ext/short_route`).
"""

from __future__ import annotations

import re

from nbformat import NotebookNode

from tools.gates.sections import Section, sections

MARK = re.compile(r"^> \*\*Short route\.\*\* (.*)$", re.MULTILINE)
LEADS_TO = re.compile(r"\b(?:First|Next) stop: \*(.+)\*\.?$")
LAST = "Last stop."
SHARE = (0.2, 0.3)
"""How much of a chapter's cells the short route may be: about a quarter."""


def short_route(nb: NotebookNode) -> list[str]:
    """From the opening each mark names the next, in the order of the chapter, to the last."""
    marked = [(section, mark) for section in sections(nb) if (mark := _mark(section))]
    if not marked:
        return []
    if marked[0][0].title != "(opening)":
        return ["the short route has no `First stop: *…*` in the chapter's opening. Add one."]
    found = []
    stops = [section.title for section, _ in marked[1:]]
    for (section, mark), expected in zip(marked, [*stops, None], strict=True):
        leads = LEADS_TO.search(mark)
        said = leads[1] if leads else None
        if expected is None and mark != LAST:
            found.append(f"{section.title!r} is the last on the short route. Write `{LAST}`.")
        elif expected is not None and said != expected:
            found.append(
                f"the short route leads from {section.title!r} to {said!r}, but the next section "
                f"with its mark is {expected!r}. Write `Next stop: *{expected}*`."
            )
    share = sum(_cells(section) for section, _ in marked[1:]) / len(nb.cells)
    if not SHARE[0] <= share <= SHARE[1]:
        found.append(
            f"the short route is {share:.0%} of the cells. Mark sections until it is about a "
            "quarter."
        )
    return found


def stops(nb: NotebookNode) -> list[Section]:
    """The sections on the short route, in order."""
    return [section for section in sections(nb) if section.title != "(opening)" and _mark(section)]


def _mark(section: Section) -> str:
    """What the section says after **Short route.**; empty where it is not on it."""
    found = MARK.search(section.text[0][1]) if section.text else None
    return found[1].strip() if found else ""


def _cells(section: Section) -> int:
    return len({position for position, _ in [*section.text, *section.code]})

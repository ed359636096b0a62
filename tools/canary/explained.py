"""Differences that are known, each with the versions it belongs to and its reason.

They stand in `explained.toml`; its head says how. An entry that matches nothing where it should is
reported: what is no longer so must not hide what comes after it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import tomllib
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from tools.canary.rerun import Difference, Run

FILE = Path(__file__).with_name("explained.toml")
KEYS = {"notebook", "cell", "after", "reason", "where"}


class BadExplanation(ValueError):
    """explained.toml can't be read; the message says which entry and why."""


@dataclass(frozen=True)
class Explanation:
    """One known difference: a cell, a text that it then shows, versions, a reason."""

    notebook: str
    cell: str
    after: str
    reason: str
    where: tuple[tuple[str, SpecifierSet], ...]

    def applies(self, versions: Mapping[str, str]) -> bool:
        """Whether the difference belongs to these versions."""
        return all(
            name in versions and specifier.contains(versions[name], prereleases=True)
            for name, specifier in self.where
        )

    def matches(self, difference: Difference) -> bool:
        """Whether `difference` is this one."""
        here = (difference.notebook, difference.id) == (self.notebook, self.cell)
        return here and self.after in difference.after

    def __str__(self) -> str:
        where = ", ".join(f"{name}{specifier}" for name, specifier in self.where)
        return f"{self.notebook}, cell {self.cell} ({where}): {self.reason}"


def load(path: Path = FILE) -> list[Explanation]:
    """Read the file.

    Raises:
        BadExplanation: an entry lacks something, or has something that is unknown.
    """
    try:
        tables = tomllib.loads(path.read_text("utf-8")).get("difference", [])
    except tomllib.TOMLDecodeError as error:
        raise BadExplanation(f"{path.name}: {error}") from error
    return [_explanation(table, f"{path.name}, entry {k}") for k, table in enumerate(tables, 1)]


def _explanation(table: dict, which: str) -> Explanation:
    if table.keys() != KEYS:
        wrong = ", ".join(sorted(table.keys() ^ KEYS))
        raise BadExplanation(f"{which}: has to hold {', '.join(sorted(KEYS))}; look at {wrong}")
    texts = {key: table[key] for key in KEYS - {"where"}}
    empty = [key for key, text in texts.items() if not isinstance(text, str) or not text.strip()]
    if empty or not isinstance(table["where"], dict) or not table["where"]:
        raise BadExplanation(f"{which}: {', '.join(empty) or 'where'} is empty or no text")
    try:
        where = tuple(
            (canonicalize_name(name), SpecifierSet(text)) for name, text in table["where"].items()
        )
    except (InvalidSpecifier, TypeError, AttributeError) as error:
        raise BadExplanation(f"{which}: where: {error}") from error
    return Explanation(where=where, **texts)


def explain(
    runs: Collection[Run], versions: Mapping[str, str], known: Collection[Explanation]
) -> tuple[list[Run], list[Explanation]]:
    """Give each known difference its reason; and return the explanations that explain nothing."""
    here = [one for one in known if one.applies(versions)]
    used: set[Explanation] = set()
    explained = []
    for run in runs:
        differences = []
        for difference in run.differences:
            found = [one for one in here if one.matches(difference)]
            used.update(found)
            reason = found[0].reason if found else ""
            differences.append(replace(difference, reason=reason))
        explained.append(replace(run, differences=tuple(differences)))
    ran = {run.notebook for run in runs}
    return explained, [one for one in here if one.notebook in ran and one not in used]

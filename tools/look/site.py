"""The pages of a built site, and which of them are meant.

Knows files and names. Opens no page.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

SOURCES = {".html", ".ipynb", ".md"}
"""What a page may be called by, besides its name."""


class BadUsage(ValueError):
    """There is nothing to look at; the message says what to do."""


def pages(site: Path) -> list[str]:
    """The names of the site's pages, such as `book/01_tape`; not those that only lead on.

    Raises:
        BadUsage: there is no built site.
    """
    if not (site / "index.html").is_file():
        raise BadUsage(f"{site} holds no built site: run `make book` first, or name one by --site")
    names = [path.relative_to(site).with_suffix("") for path in sorted(site.rglob("*.html"))]
    return [
        name.as_posix()
        for name in names
        if not any(part.startswith("_") for part in name.parts) and not _leads_on(site, name)
    ]


def _leads_on(site: Path, name: Path) -> bool:
    with open((site / name).with_suffix(".html"), encoding="utf-8") as file:
        return 'http-equiv="refresh"' in file.read(2000).lower()


def chosen(site: Path, asked: Sequence[str]) -> list[str]:
    """The pages asked for, or all of them.

    `book/01_tape`, `01_tape` and the file of a page, built or not, name the same page.

    Raises:
        BadUsage: there is no built site, or no such page.
    """
    known = pages(site)
    found: list[str] = []
    for one in asked:
        name = PurePosixPath(one)
        name = name.with_suffix("") if name.suffix in SOURCES else name
        fits = [page for page in known if page == str(name) or page.endswith(f"/{name}")]
        if not fits:
            raise BadUsage(f"no page {one}; there are: {', '.join(known)}")
        found += [page for page in fits if page not in found]
    return found or known

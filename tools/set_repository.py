"""Rewrite the repository's address in every file that names it.

    python -m tools.set_repository https://github.com/OWNER/NAME

`pyproject.toml` holds the address; the README, the citation, the book's
configuration and every notebook's setup cell repeat it. Doing it twice changes
nothing.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from urllib.parse import urlsplit

from tools.repository import ROOT, address

# Where an address may stand. Sources and tests read it from pyproject.toml.
PLACES = (
    "pyproject.toml",
    "*.md",
    "CITATION.cff",
    "_config.yml",
    "environment.yml",
    "book/**/*.md",
    "book/**/*.ipynb",
    "labs/**/*.md",
    "labs/**/*.ipynb",
)

# No user names, ports, queries or quotes: the address
# goes into a shell command in the notebooks and into JSON, TOML and YAML as it is.
VALID = re.compile(r"https://[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+(/\w[\w.~-]*)+", re.ASCII)
PARTS = {"github.com": 2, "gitlab.com": 2, "codeberg.org": 2}  # owner and name, nothing after


def checked(url: str) -> str:
    """`url` without a trailing slash or `.git`; ValueError where it can't be an address."""
    url = url.strip().rstrip("/").removesuffix(".git")
    where = urlsplit(url)
    parts = where.path.count("/")
    if not VALID.fullmatch(url) or parts != PARTS.get(where.netloc.lower(), parts):
        raise ValueError(f"{url!r} is not an address like https://github.com/OWNER/NAME.")
    return url


def places(root: Path = ROOT) -> list[Path]:
    """The files that may name the address."""
    return sorted({path for pattern in PLACES for path in root.glob(pattern) if path.is_file()})


def set_repository(url: str, root: Path = ROOT) -> list[Path]:
    """Make `url` the repository's address; returns the files that changed."""
    new, old = checked(url), address(root)
    # The old address, but not a longer one that begins like it.
    pattern = re.compile(re.escape(old) + r"(?![\w-])")
    changed = []
    # pyproject.toml last: a run that is interrupted can be run again.
    for path in sorted(places(root), key=lambda path: path.name == "pyproject.toml"):
        before = path.read_text("utf-8")
        after = pattern.sub(new, before)
        if after != before:
            path.write_text(after, "utf-8", newline="\n")
            changed.append(path)
    return changed


def main(arguments: list[str]) -> int:
    """Set the address given as the only argument."""
    if len(arguments) != 1 or not arguments[0]:
        print("usage: make set-repository URL=https://github.com/OWNER/NAME", file=sys.stderr)
        return 2
    try:
        changed = set_repository(arguments[0])
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    for path in changed:
        print(path.relative_to(ROOT))
    print(f"{len(changed)} files changed; the address is {address()}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Facts about this repository that several tools need, each read from its one place.

The address comes from `pyproject.toml`; the setup cell, which every notebook
starts with, is built from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent

# Folders of executed notebooks. Student versions of the labs lie directly in
# labs/: they hold no outputs, and nothing here is asked of them.
NOTEBOOK_FOLDERS = ("book", "labs/solutions")


def notebook_paths(root: Path = ROOT, folders: Iterable[str] = NOTEBOOK_FOLDERS) -> list[Path]:
    """Every notebook in these folders whose outputs are stored, in the order of the book."""
    return [
        path
        for folder in folders
        for path in sorted((root / folder).rglob("*.ipynb"))
        if ".ipynb_checkpoints" not in path.parts
    ]


def address(root: Path = ROOT) -> str:
    """The repository's address as `pyproject.toml` gives it."""
    # Not tomllib: it needs Python 3.11, and the file is to be rewritten by text anyway.
    found = re.search(
        r'^Repository = "([^"]+)"$', (root / "pyproject.toml").read_text("utf-8"), re.MULTILINE
    )
    if not found:
        raise ValueError('pyproject.toml has no line `Repository = "..."` under [project.urls].')
    return found[1]


def site_address(root: Path = ROOT) -> str:
    """Where the book is read, with a slash at the end.

    A line `Documentation = "https://…"` under [project.urls] says it. Without one it follows
    from the repository's address: GitHub Pages for GitHub, GitLab Pages for GitLab, and elsewhere
    the repository's own address.
    """
    text = (root / "pyproject.toml").read_text("utf-8")
    if found := re.search(r'^Documentation = "([^"]+)"$', text, re.MULTILINE):
        return found[1].rstrip("/") + "/"
    return pages_address(address(root))


def pages_address(repository: str) -> str:
    """Where the host of a repository publishes its pages."""
    where = urlsplit(repository)
    host = {"github.com": "github.io", "gitlab.com": "gitlab.io"}.get(where.netloc.lower())
    if not host:
        return repository + "/"
    owner, name = where.path.strip("/").split("/")
    if name.lower() == f"{owner}.{host}".lower():  # the pages of the owner
        return f"https://{owner.lower()}.{host}/"
    return f"https://{owner.lower()}.{host}/{name}/"


def setup_cell(repository: str | None = None) -> str:
    """The first code cell of every notebook."""
    return f"""\
try:
    import autograd_lens as lens  # before torch: it quiets the profiler
except ModuleNotFoundError:  # Colab: a fresh machine
    %pip install -q "git+{repository or address()}"
    import autograd_lens as lens
import torch"""

"""Facts about this repository that several tools need, each read from its one place.

The address comes from `pyproject.toml`; the setup cell, which every notebook
starts with, is built from it.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Folders of executed notebooks. Student versions of the labs lie directly in
# labs/: they hold no outputs, and nothing here is asked of them.
NOTEBOOK_FOLDERS = ("book", "labs/solutions")


def notebook_paths(root: Path = ROOT) -> list[Path]:
    """Every notebook whose outputs are stored, in the order of the book."""
    return [
        path
        for folder in NOTEBOOK_FOLDERS
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


def setup_cell(repository: str | None = None) -> str:
    """The first code cell of every notebook."""
    return f"""\
try:
    import autograd_lens as lens  # before torch: it quiets the profiler
except ModuleNotFoundError:  # Colab: a fresh machine
    %pip install -q "git+{repository or address()}"
    import autograd_lens as lens
import torch"""

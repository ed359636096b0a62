"""The committed notebooks pass every gate, and none is outside the places that are checked."""

from __future__ import annotations

import nbformat
import pytest

from tools.gates import GATES
from tools.gates.form import as_written
from tools.repository import ROOT, notebook_paths

PATHS = notebook_paths()
each_notebook = pytest.mark.parametrize(
    "path", PATHS, ids=[str(path.relative_to(ROOT)) for path in PATHS]
)


def test_there_is_a_notebook():
    assert PATHS


def test_every_notebook_is_checked():
    """A notebook in another folder would be neither run nor gated."""
    skipped = {".venv", "_build", ".git", ".ipynb_checkpoints", "node_modules"}
    everywhere = {
        path
        for path in ROOT.rglob("*.ipynb")
        if not skipped.intersection(path.relative_to(ROOT).parts)
    }
    student_versions = set((ROOT / "labs").glob("*.ipynb"))
    assert everywhere - student_versions == set(PATHS)


def test_pytest_collects_the_folders(pytestconfig):
    """`make test` names no path: what is compared is what `testpaths` says."""
    folders = {path.relative_to(ROOT).as_posix() for path in PATHS}
    testpaths = pytestconfig.getini("testpaths")
    assert all(any(path.startswith(f"{folder}/") for folder in testpaths) for path in folders)


@each_notebook
@pytest.mark.parametrize("gate", GATES)
def test_gate(path, gate):
    found = GATES[gate](nbformat.read(path, as_version=nbformat.NO_CONVERT))
    assert not found, "\n" + "\n".join(found)


@each_notebook
def test_file_form(path):
    assert as_written(path.read_text("utf-8")) == []

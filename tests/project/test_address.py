"""The repository's address: one place, repeated elsewhere, rewritten everywhere at once."""

from __future__ import annotations

import re
import shutil

import nbformat
import pytest
import yaml

from tools import set_repository
from tools.repository import ROOT, address, notebook_paths, setup_cell

NEW = "https://code.example.com/someone/autograd-under-the-lens-fork"


def test_citation_and_readme_name_it():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["repository-code"] == address()
    assert f"git+{address()}" in (ROOT / "README.md").read_text("utf-8")


def test_nothing_installs_from_elsewhere():
    for path in set_repository.places():
        for url in re.findall(r"git\+(https?://[^\s\"'\\)`]+)", path.read_text("utf-8")):
            assert url == address(), f"{path.name} installs from {url}"


@pytest.fixture
def checkout(tmp_path):
    """A copy of every file that may name the address, with one notebook more."""
    for path in set_repository.places():
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(setup_cell())])
    nbformat.write(nb, tmp_path / "book" / "extra.ipynb")
    return tmp_path


def test_rewriting(checkout):
    old = address()
    changed = {path.name for path in set_repository.set_repository(NEW, checkout)}
    assert {"pyproject.toml", "README.md", "CITATION.cff", "extra.ipynb"} <= changed
    assert {path.name for path in notebook_paths()} <= changed
    assert address(checkout) == NEW
    for path in set_repository.places(checkout):
        assert not re.search(re.escape(old) + r"(?![\w-])", path.read_text("utf-8"))
    nb = nbformat.read(checkout / "book" / "extra.ipynb", as_version=4)
    assert nb.cells[0].source == setup_cell(NEW)


def test_rewriting_twice_changes_nothing_more(checkout):
    assert set_repository.set_repository(NEW, checkout)
    assert set_repository.set_repository(NEW, checkout) == []


def test_rewriting_back_restores_every_file(checkout):
    before = {path: path.read_bytes() for path in set_repository.places(checkout)}
    set_repository.set_repository(NEW, checkout)
    set_repository.set_repository(address(ROOT), checkout)
    assert {path: path.read_bytes() for path in set_repository.places(checkout)} == before


def test_a_longer_address_is_another(checkout):
    (checkout / "notes.md").write_text(f"{address()}-2 and {address()}/blob, {address()}.\n")
    set_repository.set_repository(NEW, checkout)
    assert (checkout / "notes.md").read_text() == f"{address()}-2 and {NEW}/blob, {NEW}.\n"


def test_trailing_slash_and_git_suffix_are_dropped():
    assert set_repository.checked("https://host.example/a/b.git/") == "https://host.example/a/b"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "git@host.example:a/b",
        "http://host.example/a/b",
        "https://host.example",
        "https://user:word@host.example/a/b",
        'https://host.example/a"b',
        "https://host.example/a/b?x=1",
        "https://host.example/a/b; rm -r x",
        "https://host.example/../b",
        "https://github.com/a",
        "https://github.com/a/b/tree/main",
        "https://host/a\nb",
    ],
)
def test_what_is_no_address_is_refused(url, checkout):
    with pytest.raises(ValueError, match="is not an address like"):
        set_repository.set_repository(url, checkout)
    assert address(checkout) == address()


def test_command_line(capsys):
    assert set_repository.main([]) == 2
    assert set_repository.main([""]) == 2
    assert set_repository.main(["nonsense"]) == 2
    assert "make set-repository URL=" in capsys.readouterr().err

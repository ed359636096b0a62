"""Running a notebook and storing its outputs: the same bytes each time, or nothing at all."""

from __future__ import annotations

import copy
import stat

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tools import notebooks
from tools.gates import problems
from tools.gates.form import as_written

SOURCES = [
    "import os, sys\nfrom pathlib import Path\nprint(os.environ['AUTOGRAD_LENS_LIVE'])",
    "print(Path.cwd().name)\nsys.stdout.flush()\nprint('again')",
    "display({'text/plain': 'twin', 'text/html': '<b>twin</b>'}, raw=True)\n'é'",
    "1 / 0",
]


@pytest.fixture
def path(tmp_path):
    """A notebook as an editor may have left it."""
    nb = new_notebook(cells=[new_markdown_cell("# Title"), *map(new_code_cell, SOURCES)])
    nb.cells[-1].metadata.update(tags=["raises-exception"], scrolled=True)
    nb.cells[1].outputs = [new_output("stream", name="stdout", text="of an earlier run")]
    nb.metadata.update(widgets={"a": 1}, colab={}, language_info={"name": "python", "x": 1})
    (tmp_path / "chapters").mkdir()
    file = tmp_path / "chapters" / "nb.ipynb"
    nbformat.write(nb, file)
    file.chmod(0o640)
    return file


def read(path):
    return nbformat.read(path, as_version=nbformat.NO_CONVERT)


def test_refresh(path):
    ids = [cell.id for cell in read(path).cells]
    notebooks.refresh(path)
    first = path.read_bytes()
    nb = read(path)
    plain = [[dict(output) for output in cell.outputs] for cell in nb.cells[1:]]
    assert plain == [
        [{"output_type": "stream", "name": "stdout", "text": "0\n"}],
        [{"output_type": "stream", "name": "stdout", "text": "chapters\nagain\n"}],
        [
            {"output_type": "display_data", "data": {"text/plain": "twin"}, "metadata": {}},
            {
                "output_type": "execute_result",
                "data": {"text/plain": "'é'"},
                "execution_count": 3,
                "metadata": {},
            },
        ],
        [
            {
                "output_type": "error",
                "ename": "ZeroDivisionError",
                "evalue": "division by zero",
                "traceback": [],
            }
        ],
    ]
    assert [cell.id for cell in nb.cells] == ids
    assert "é" in first.decode()
    assert as_written(first.decode()) == []
    assert list(problems(nb)) == ["setup_first"]  # all that is missing here
    assert stat.S_IMODE(path.stat().st_mode) == 0o640

    notebooks.refresh(path)
    assert path.read_bytes() == first


def test_failing_cell_leaves_the_file(path, capsys):
    nb = read(path)
    nb.cells[3].source = "print('before')\nraise KeyError('gone')"
    nbformat.write(nb, path)
    before = path.read_bytes()
    assert notebooks.main([str(path)]) == 1
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]
    message = capsys.readouterr().err
    assert "nb.ipynb, cell 4" in message
    assert "KeyError" in message


def test_missing_notebook(tmp_path, capsys):
    assert notebooks.main([str(tmp_path / "no.ipynb")]) == 2
    assert "no such notebook" in capsys.readouterr().err


def test_an_interrupted_write_leaves_the_file(path, monkeypatch):
    nb, before = read(path), path.read_bytes()
    monkeypatch.setattr(notebooks.os, "replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        notebooks.write(nb, path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_normalise_twice_changes_nothing(good):
    good.cells[5].outputs *= 2
    del good.cells[5]["id"]
    notebooks.normalise(good)
    once = copy.deepcopy(good)
    notebooks.normalise(good)
    assert good == once
    assert good.cells[5].outputs[0].text == "x ()\nx ()\n"


def test_the_place_of_a_bar_is_not_stored(good):
    """A bar shows up only where the machine is slow."""
    before = copy.deepcopy(good)
    empty = nbformat.v4.new_output("display_data", {"text/plain": ""})
    good.cells[5].outputs = [empty, *good.cells[5].outputs, copy.deepcopy(empty)]
    notebooks.normalise(good)
    assert good == before

"""Any single character changed in any stored output is noticed.

Twice over: nbval as a user runs it, on a small notebook with one change of each
kind; and nbval's own comparison, for every character of every committed notebook.
"""

from __future__ import annotations

import copy
import os
import re
import subprocess
import sys
from collections.abc import Iterator

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from nbval.plugin import IPyNbFile, coalesce_streams

from tools.gates.outputs import plain_characters
from tools.notebooks import execute, normalise
from tools.repository import ROOT, notebook_paths

SOURCES = [
    "class Figure:\n"
    "    def _repr_mimebundle_(self, **options):\n"
    "        return {'text/plain': 'a -> b', 'text/html': f'<p>{id(self)}</p>'}",
    "Figure()",  # an execute_result with a picture, which is not stored
    "display(Figure(), Figure())",
    "print('one')\nprint('two')",
    "print('shown'); {'k': 1.5}",
    "raise ValueError('no graph')",
]
FIGURE, DISPLAY, STREAM, BOTH, ERROR = range(1, 6)


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """A small notebook, run and normalised."""
    nb = new_notebook(cells=[new_code_cell(source) for source in SOURCES])
    nb.cells[ERROR].metadata.tags = ["raises-exception"]
    execute(nb, tmp_path_factory.mktemp("run"))
    normalise(nb)
    return nb


def data(cell, value, output=0):
    return lambda nb: nb.cells[cell].outputs[output].data.update({"text/plain": value})


def put(cell, output=0, **values):
    return lambda nb: nb.cells[cell].outputs[output].update(values)


# What is changed, and the cell in which nbval must notice it.
CHANGES = {
    "result": (FIGURE, data(FIGURE, "a -> c")),
    "result, space": (FIGURE, data(FIGURE, "a ->  b")),
    "display": (DISPLAY, data(DISPLAY, "a -> B", output=1)),
    "stream": (STREAM, put(STREAM, text="one\ntwO\n")),
    "stream, newline": (STREAM, put(STREAM, text="one\ntwo")),
    "stream, end of line": (STREAM, put(STREAM, text="one \ntwo\n")),
    "result after stream": (BOTH, data(BOTH, "{'k': 1.6}", output=1)),
    "ename": (ERROR, put(ERROR, ename="TypeError")),
    "evalue": (ERROR, put(ERROR, evalue="no Graph")),
    "missing output": (BOTH, lambda nb: nb.cells[BOTH].outputs.pop()),
    "missing twin": (DISPLAY, lambda nb: nb.cells[DISPLAY].outputs.pop()),
    "additional output": (
        FIGURE,
        lambda nb: nb.cells[FIGURE].outputs.append(new_output("stream", name="stdout", text="x")),
    ),
}


def rounds() -> list[dict]:
    """The changes dealt to as few notebooks as can be: at most one in each cell."""
    dealt: list[dict] = []
    for name, (cell, spoil) in CHANGES.items():
        free = next((one for one in dealt if cell not in one), None)
        if free is None:
            dealt.append(free := {})
        free[cell] = (name, spoil)
    return dealt


@pytest.fixture(scope="module")
def nbval_run(executed, tmp_path_factory):
    """One run of nbval over the good notebook and the changed ones: its report."""
    folder = tmp_path_factory.mktemp("nbval")
    nbformat.write(executed, folder / "good.ipynb")
    for number, one in enumerate(rounds()):
        nb = copy.deepcopy(executed)
        for _, spoil in one.values():
            spoil(nb)
        nbformat.write(nb, folder / f"bad{number}.ipynb")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "--tb=no", "-v"]
        + ["-p", "conftest", "-o", f"cache_dir={folder}/cache", "-c", str(ROOT / "pyproject.toml")]
        + ["--rootdir", str(folder), "--color=no", str(folder)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    return run.stdout


def cells(report: str, notebook: str, outcome: str) -> set[int]:
    """The cells of one notebook that had this outcome, from pytest's report."""
    found = re.findall(rf"^{notebook}\W+ipynb::Cell (\d+) {outcome}", report, re.MULTILINE)
    return set(map(int, found))


def test_unchanged_notebook_passes(nbval_run):
    assert cells(nbval_run, "good", "PASSED") == set(range(len(SOURCES))), nbval_run


@pytest.mark.parametrize("change", CHANGES)
def test_changed_output_fails(nbval_run, change):
    """Each change is noticed in its cell, and a cell without one passes."""
    for number, one in enumerate(rounds()):
        if change in [name for name, _ in one.values()]:
            assert cells(nbval_run, f"bad{number}", "FAILED") == set(one), nbval_run
            return
    raise AssertionError("a change that no notebook has")


def test_run_reports_how_much_it_compared(nbval_run):
    notebooks = len(rounds()) + 1
    compared = notebooks * len(SOURCES)
    assert f"notebooks: {compared} cells compared in {notebooks} notebooks" in nbval_run


def places(cell) -> Iterator[tuple[dict, str]]:
    """Where a code cell stores text: a mapping, and the key in it."""
    for output in cell.outputs:
        if "data" in output:
            yield from ((output.data, mime) for mime in output.data)
        else:
            yield from ((output, key) for key in ("text", "ename", "evalue") if key in output)


def changed(text: str) -> Iterator[str]:
    """`text` with each single character replaced, left out, or doubled."""
    for at, character in enumerate(text):
        before, after = text[:at], text[at + 1 :]
        for other in {"x", "7", " ", "\n", "\r", "\b", character.swapcase()} - {character}:
            yield before + other + after
        yield before + after
        yield before + character + character + after


def unnoticed(item) -> list[str]:
    """The changes to the stored text of one cell that neither nbval nor a gate sees."""
    item.format_output_compare = lambda *_: None  # it words the report, which takes long
    fresh = coalesce_streams(copy.deepcopy(item.cell.outputs))
    assert item.compare_outputs(fresh, coalesce_streams(copy.deepcopy(item.cell.outputs)))
    found = []
    stored = copy.deepcopy(item.cell)
    for place, key in places(stored):
        original = place[key]
        for text in changed(original):
            place[key] = text
            same = item.compare_outputs(fresh, coalesce_streams(copy.deepcopy(stored.outputs)))
            if same and not plain_characters(new_notebook(cells=[stored])):
                found.append(text)
        place[key] = original
    return found


def items(path, request) -> list:
    """The cells of a notebook as nbval would test them, with this repository's settings."""
    file = IPyNbFile.from_parent(request.session, path=path)
    request.config.hook.pytest_collectstart(collector=file)
    return list(file.collect())


def test_every_character_counts_in_the_small_notebook(executed, tmp_path, request):
    path = tmp_path / "small.ipynb"
    nbformat.write(executed, path)
    assert [unnoticed(item) for item in items(path, request)] == [[]] * len(SOURCES)


@pytest.mark.large("every character of a small notebook with each kind of output is changed")
@pytest.mark.parametrize("path", notebook_paths(), ids=lambda path: path.name)
def test_every_character_counts(path, request):
    found = items(path, request)
    assert found
    for item in found:
        assert item.options["check"] and not item.options["skip"]
        assert item.cell.execution_count is not None or not item.cell.source.strip()
        assert unnoticed(item) == []


def test_a_setting_that_ignores_text_would_be_noticed(executed, tmp_path, request):
    """The negative control: with text/plain left out of the comparison, the test above fails."""
    path = tmp_path / "small.ipynb"
    nbformat.write(executed, path)
    item = items(path, request)[FIGURE]
    item.parent.skip_compare += ("text/plain",)
    assert unnoticed(item)

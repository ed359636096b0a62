"""The plugins in `tools/testing/`: sizes, units, kept notebooks, and what a part costs."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools.building import config_with_cache
from tools.repository import ROOT
from tools.testing import costs, order
from tools.testing.sizes import sized

SIZES = """\
import pytest

@pytest.mark.large("the quick one")
@pytest.mark.parametrize("k", [1, 2])
def test_slow(k): pass

def test_quick(): pass
"""


OF_ITS_OWN = pytest.mark.large("`make check` has it where tools/testing or conftest.py has changed")
"""For a test that starts a whole run of pytest, of five seconds and more."""


@pytest.fixture
def run(tmp_path):
    """Run pytest with this repository's plugins in a folder of its own."""

    def run(*options, **files):
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(text)
        command = [sys.executable, "-m", "pytest", "-p", "conftest", "--color=no"]
        command += ["-o", f"cache_dir={tmp_path}/cache", "-c", str(ROOT / "pyproject.toml")]
        command += ["--rootdir", str(tmp_path), *options, str(tmp_path)]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        return subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True
        )

    return run


@OF_ITS_OWN
def test_the_small_size_leaves_out_what_is_marked(run):
    assert "3 passed" in run(test_sizes=SIZES).stdout
    assert "1 passed, 2 deselected" in run("--small").stdout


PARAMETERS = """\
import pytest
from tools.testing.sizes import sized

@pytest.mark.parametrize("k", sized([1, 2, 3], lambda k: k == 2, "the second"))
def test_one(k): assert k == 2

@pytest.mark.parametrize(("a", "b"), sized([(1, 2), (3, 4)], lambda pair: pair[0] == 3, "the last"))
def test_two(a, b): assert (a, b) == (3, 4)
"""


@OF_ITS_OWN
def test_of_some_parameters_the_small_size_has_a_part(run):
    assert "2 passed, 3 deselected" in run("--small", test_parameters=PARAMETERS).stdout
    assert "3 failed, 2 passed" in run().stdout


@OF_ITS_OWN
def test_what_is_marked_is_listed_with_its_sentence(run):
    said = run("--list-large", test_sizes=SIZES).stdout
    assert "test_sizes.py::test_slow (2)\n    the quick one\n" in said
    assert "2 tests are only in `make test-all`." in said
    assert "passed" not in said


@OF_ITS_OWN
@pytest.mark.parametrize(
    "given", ["", "()", "('')", "(' ')", "('a', 'b')", "(['a'])", "(still='a')"]
)
@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_a_mark_without_a_sentence_fails(run, given, workers):
    said = run(*workers, test_sizes=SIZES.replace('("the quick one")', given)).stdout
    assert "1 passed, 2 errors" in said and "what would still show the fault" in said


@OF_ITS_OWN
def test_a_list_is_made_by_one_process(run):
    done = run("--list-large", "-n", "1", test_sizes=SIZES)
    assert done.returncode != 0 and "leave out -n" in done.stdout + done.stderr


def test_a_choice_of_parameters_that_leaves_nothing_is_refused():
    with pytest.raises(ValueError, match="none of .* is in the small size"):
        sized(["a", "b"], lambda name: "c" in name, "the other")


def test_every_mark_of_this_repository_has_a_sentence():
    """All files are read, also those whose tests this run leaves out."""
    marks = [
        node
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.large"
    ]
    assert len(marks) > 20
    for mark in marks:
        (sentence,) = mark.args
        assert len(sentence.value.split()) > 3, ast.unparse(mark)


@pytest.mark.parametrize(
    ("nodeid", "unit"),
    [
        ("book/01_tape.ipynb::Cell 3", "book/01_tape.ipynb"),
        ("tests/a.py::test_b", "tests/a.py"),
        ("tests/a.py::test_b[nodes-3]", "tests/a.py"),
        ("tests/a.py::Class::test_b[01_tape.ipynb]", "tests/a.py::01_tape"),
        ("tests/a.py::test_b[book/01_tape.html-390-light]", "tests/a.py::01_tape"),
        ("tests/a.py::test_b[light-book/index]", "tests/a.py::index"),
    ],
)
def test_what_is_about_one_chapter_goes_to_one_worker(nodeid, unit):
    assert order.unit(nodeid) == unit


def test_notebooks_come_before_whatever_needs_the_book():
    """Else a worker could wait for notebooks that wait behind it."""
    assert order.ORDER[:2] == ("book/", "labs/")
    assert all(not start.startswith(("book", "labs")) for start in order.ORDER[2:])


@pytest.mark.parametrize(
    ("nodeid", "part"),
    [
        ("tests/one/test_a.py::test_b", "tests/one"),
        ("book/01_tape.ipynb::Cell 1", "book"),
        ("book/01_tape/more.ipynb::Cell 1", "book"),
        ("test_a.py::test_b", "."),
    ],
)
def test_the_part_of_a_test(nodeid, part):
    assert costs.part(nodeid) == part


@OF_ITS_OWN
def test_what_each_part_took(run, tmp_path):
    for name in ("one", "two"):
        (tmp_path / "tests" / name).mkdir(parents=True)
        (tmp_path / "tests" / name / "test_a.py").write_text("def test_a(): pass")
    said = run().stdout
    for line in (r"tests/one \(1 tests\)", r"tests/two \(1 tests\)", "in all"):
        assert re.search(rf"^ +\d+\.\d  {line}$", said, re.MULTILINE), said


def notebook(tmp_path, *sources):
    """A notebook as it is committed: numbered, its outputs not those of a run."""
    nb = new_notebook(cells=[new_markdown_cell("# One"), *map(new_code_cell, sources)])
    for count, cell in enumerate(nb.cells[1:], start=1):
        cell.execution_count = count
    path = tmp_path / "book" / "one.ipynb"
    path.parent.mkdir(exist_ok=True)
    nbformat.write(nb, path)
    return path


KEPT = ("--nbval", "--nbval-current-env", "--executed=kept")
SHOWS = "display({'text/plain': 'a', 'text/html': '<b>a</b>'}, raw=True)"


@OF_ITS_OWN
def test_what_a_compared_notebook_has_shown_is_kept_with_its_pictures(run, tmp_path):
    path = notebook(tmp_path, "1 + 1", SHOWS)
    said = run(*KEPT).stdout
    assert "2 failed" in said, "nothing is stored, so nothing agrees"
    kept = tmp_path / "kept" / "book" / "one.ipynb"
    code = nbformat.read(kept, as_version=4).cells[1:]
    assert [cell.execution_count for cell in code] == [1, 2]
    assert code[0].outputs[0].data == {"text/plain": "2"}
    assert code[1].outputs[0].data == {"text/plain": "a", "text/html": "<b>a</b>"}
    # A book that is built takes it from the cache, as long as no cell has changed.
    from jupyter_cache import get_cache

    (tmp_path / "_config.yml").write_text("execute: {}\nsphinx: {local_extensions: {}}\n")
    (tmp_path / "own").mkdir()
    config_with_cache(tmp_path, tmp_path / "own", [kept])
    cache = get_cache(tmp_path / "own" / "cache")
    _, merged = cache.merge_match_into_notebook(nbformat.read(path, as_version=4))
    assert merged.cells[2].outputs[0].data["text/html"] == "<b>a</b>"
    changed = nbformat.read(path, as_version=4)
    changed.cells[1].source = "1 + 2"
    with pytest.raises(KeyError):
        cache.match_cache_notebook(changed)


@OF_ITS_OWN
@pytest.mark.parametrize(
    ("sources", "options"),
    [
        (["1", "2"], ["--deselect", "book/one.ipynb::Cell 1"]),
        (["1", "1 / 0"], []),
        (["1", "2"], ["--nbval-kernel-name=none-of-this-name"]),
    ],
    ids=["a cell was not asked for", "a cell raised", "no kernel"],
)
def test_a_notebook_that_did_not_run_to_its_end_is_not_kept(run, tmp_path, sources, options):
    notebook(tmp_path, *sources)
    chosen = [word for word in KEPT if "current" not in word or "kernel" not in str(options)]
    run(*chosen, *options)
    assert (tmp_path / "kept" / "book" / "one.ipynb").read_text() == "", "and nobody waits for it"


@OF_ITS_OWN
def test_what_an_earlier_run_has_kept_is_gone(run, tmp_path):
    old = tmp_path / "kept" / "book" / "gone.ipynb"
    old.parent.mkdir(parents=True)
    old.write_text("old")
    notebook(tmp_path, "1 + 1")
    run("--nbval", "--nbval-current-env", "--collect-only")
    assert old.exists(), "a run that keeps nothing removes nothing"
    run(*KEPT)
    assert not old.exists()


ASKS = """\
from tools.testing.notebooks import executed

def test_asks(request):
    paths = [request.config.rootpath / "book" / name for name in NAMES]
    found = executed(request.session, paths)
    print("found", [path.name for path in found])
"""


@OF_ITS_OWN
@pytest.mark.parametrize(
    ("names", "options", "found"),
    [
        (["one.ipynb"], KEPT, ["one.ipynb"]),
        (["one.ipynb"], (*KEPT, "-n", "2", "--dist", "loadscope"), ["one.ipynb"]),
        (["one.ipynb", "two.ipynb"], KEPT, []),
        (["one.ipynb"], KEPT[:2], []),
        (["one.ipynb"], (*KEPT, "--deselect", "book/one.ipynb::Cell 1"), []),
    ],
    ids=["in one process", "of another worker", "one is not in this run", "none kept", "not whole"],
)
def test_who_builds_the_book_gets_what_was_shown(run, tmp_path, names, options, found):
    notebook(tmp_path, "1", "2")
    said = run(*options, "-rP", test_asks=ASKS.replace("NAMES", str(names))).stdout
    assert f"found {found}" in said


# What waits for a time passes on a quiet machine and fails on a busy one. Wait for a condition:
# `tools.browsing.until`, `at_rest`, Playwright's own, an `Event`.
WAITS = {"sleep", "wait_for_timeout"}


def waits(text: str) -> list[str]:
    """Calls that wait for a time."""
    return [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in WAITS
    ]


def test_no_test_waits_for_a_time():
    found = {
        path.name: waits(path.read_text("utf-8")) for path in sorted((ROOT / "tests").rglob("*.py"))
    }
    (starting,) = found.pop("lab.py")  # between two questions to a server that starts
    assert starting.endswith("time.sleep(0.2)")
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_a_wait_for_a_time_is_noticed():
    assert waits("import time\ntime.sleep(1)") == ["line 2: time.sleep(1)"]
    assert waits("page.wait_for_timeout(5)") and not waits("page.wait_for_url('a')")

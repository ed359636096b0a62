"""The canary: it sees every change, says it in a few lines, and knows what is explained.

With tiny notebooks and the Python that runs the tests; nothing is installed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import tomllib
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from packaging.requirements import Requirement

from tools.canary import __main__ as canary
from tools.canary import environments, explained, rerun
from tools.canary.explained import BadExplanation, explain, load
from tools.canary.report import Report, first_difference
from tools.canary.rerun import NOTHING, Difference, Kernel, Run
from tools.notebooks import CELL_TIMEOUT, normalise
from tools.repository import ROOT

HERE = Kernel(Path(sys.executable))

# Sources as they were when the outputs were stored, and as they "are" elsewhere. All in one
# notebook: what happens to one cell must not hide what happens to the next.
CELLS = {
    "same": ("print('a\\nb')", None),
    "result": ("1 + 1", "1 + 2"),
    "stream": ("print('one\\ntwo')", "print('one\\nTWO')"),
    "end of line": ("print('a')", "print('a', end='')"),
    "kind": ("print('5')", "5"),
    "missing": ("print('x')", "pass"),
    "more": ("pass", "print('x')"),
    "stderr": ("print('x')", "import sys\nprint('x')\nprint('careful', file=sys.stderr)"),
    "raises": ("print('x')", "print('x')\nraise KeyError('gone')"),
    "message": ("raise ValueError('old')", "raise ValueError('new')"),
    "no longer raises": ("raise ValueError('old')", "pass"),
    "last": ("'the same'", None),
}
AFTER = {
    "result": "3",
    "stream": "one\nTWO",
    "end of line": "stdout: 'a'",
    "kind": "execute_result: '5'",
    "missing": NOTHING,
    "more": "x",
    "stderr": "x\nstderr: careful",
    "raises": "x\nraised KeyError: 'gone'",
    "message": "raised ValueError: new",
    "no longer raises": NOTHING,
}


def notebook(*sources):
    """A notebook that was never run."""
    return new_notebook(cells=[new_markdown_cell("# Title"), *map(new_code_cell, sources)])


def stored(folder, *sources):
    """A notebook that was run: as `make outputs` stores it."""
    nb = notebook(*sources)
    rerun.execute(nb, folder, HERE)
    normalise(nb)
    return nb


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("run"), *(old for old, _ in CELLS.values()))


@pytest.fixture(scope="module")
def run(before, tmp_path_factory):
    """The run of the notebook whose cells do something else now."""
    nb = nbformat.from_dict(json.loads(json.dumps(before)))
    for cell, (_, new) in zip(nb.cells[1:], CELLS.values(), strict=True):
        cell.source = new or cell.source
    return rerun.rerun(nb, tmp_path_factory.mktemp("run"), "book/01_tiny.ipynb", HERE)


def test_nothing_changed(before, tmp_path):
    run = rerun.rerun(before, tmp_path, "x", HERE, probe="import os\nprint(os.getcwd())")
    assert run == Run("x", len(CELLS), (), str(tmp_path))


def test_every_change_is_a_row_of_its_cell(run):
    found = {list(CELLS)[one.cell - 2]: one.after for one in run.differences}
    assert found == AFTER
    assert run.cells == len(CELLS)


def test_before_is_what_is_stored(run):
    texts = {list(CELLS)[one.cell - 2]: one.before for one in run.differences}
    assert texts["result"] == "2"
    assert texts["more"] == NOTHING
    assert texts["end of line"] == "stdout: 'a\\n'"
    assert texts["message"] == "raised ValueError: old"


KERNELS = pytest.mark.large("`make check` has it where tools/canary has changed")


@KERNELS
def test_a_kernel_that_dies(tmp_path):
    nb = notebook("print('lives')", "import os; os._exit(3)", "1", "2")
    found = [(one.cell, one.after) for one in rerun.rerun(nb, tmp_path, "x", HERE).differences]
    assert found == [
        (2, "lives"),
        (3, "the kernel died"),
        (4, "not run: the kernel was gone"),
        (5, "not run: the kernel was gone"),
    ]


ENDLESS = "import signal\nwhile True: signal.pause()"
STUBBORN = f"import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n{ENDLESS}"


@pytest.fixture
def short(monkeypatch):
    """Cells that never end have a second; the others have the time that they need."""
    seconds = staticmethod(lambda cell: 1 if "while True" in cell.source else CELL_TIMEOUT)
    monkeypatch.setattr(NotebookClient, "timeout_func", seconds)


@KERNELS
def test_a_cell_that_takes_too_long(tmp_path, short):
    run = rerun.rerun(notebook(ENDLESS, "print('goes on')"), tmp_path, "x", HERE)
    texts = [one.after for one in run.differences]
    assert texts == [f"did not end within {CELL_TIMEOUT} s", "goes on"]


@KERNELS
def test_a_kernel_that_does_not_let_itself_be_interrupted(tmp_path, monkeypatch, short):
    monkeypatch.setattr(rerun, "PATIENCE", 1)
    run = rerun.rerun(notebook(STUBBORN, "print('never')"), tmp_path, "x", HERE)
    texts = [one.after for one in run.differences]
    assert texts == [f"did not end within {CELL_TIMEOUT} s", "not run: the kernel was gone"]


@pytest.mark.parametrize(
    ("script", "phrase"),
    [("#!/bin/sh\necho No module named ipykernel >&2\nexit 1\n", "ipykernel"), (None, "python")],
)
def test_no_kernel_at_all(script, phrase, tmp_path):
    python = tmp_path / "python"
    if script:
        python.write_text(script)
        python.chmod(0o755)
    run = rerun.rerun(notebook("1", "2"), tmp_path, "x", Kernel(python))
    texts = [one.after for one in run.differences]
    assert len(texts) == 2 and all(text.startswith("not run: no kernel (") for text in texts)
    assert phrase in texts[0]


@KERNELS
def test_the_package_is_this_checkouts_and_folders_come_first(tmp_path):
    first, folder = tmp_path / "first", tmp_path / "folder"
    first.mkdir()
    folder.mkdir()
    (first / "yaml.py").write_text("here = True")
    lens = "import importlib.util\nprint(importlib.util.find_spec('autograd_lens').origin)"
    nb = stored(folder, lens, "import yaml\nhasattr(yaml, 'here')")
    assert nb.cells[1].outputs[0].text == f"{ROOT / 'autograd_lens' / '__init__.py'}\n"
    kernel = Kernel(Path(sys.executable), folders=(first,), variables={"A": "b"})
    run = rerun.rerun(nb, folder, "x", kernel, probe="import os\nprint(os.environ['A'])")
    assert [(one.before, one.after) for one in run.differences] == [("False", "True")]
    assert run.probe == "b"


# The report


def difference(before="old", after="new", **more):
    values = {"notebook": "book/01_tape.ipynb", "cell": 7, "id": "a1", "source": "x.grad"}
    return Difference(before=before, after=after, **(values | more))


def report(*differences, cells=98, stale=()):
    return Report("torch 9.9", [Run("book/01_tape.ipynb", cells, differences)], stale)


def test_the_table_is_short_and_narrow(run):
    long = difference("a" * 300 + "x", "a" * 300 + "y\nmore", source="s" * 200, notebook="n" * 99)
    text = Report("torch 9.9", [run, Run("n", 3, (long,))]).text()
    lines = text.splitlines()
    assert max(map(len, lines)) <= 100
    assert lines[0] == "torch 9.9"
    assert lines[-1] == f"2 notebooks, {len(CELLS) + 3} cells, {len(AFTER) + 1} changed"
    assert len(lines) == 1 + 1 + 2 + len(AFTER) + 1 + 1 + 1
    assert "Traceback" not in text
    row = next(line for line in lines if line.startswith("nnn"))
    assert "aax" in row and "aay (+1 line)" in row, "where they part is shown"


def test_nothing_changed_needs_two_lines():
    assert report().text() == "torch 9.9\n\n1 notebook, 98 cells, 0 changed\n"
    assert report().good


def test_a_dead_kernel_is_two_rows():
    gone = [difference(after="not run: the kernel was gone", cell=k) for k in range(8, 50)]
    text = report(difference(after="the kernel died"), *gone).text()
    assert len(text.splitlines()) == 8
    assert "and 41 cells after it" in text
    assert text.endswith("43 changed\n")


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("a\nb", "a\nc", ("b", "c")),
        ("a\nb\nc", "a\nx\ny", ("b", "x (+1 line)")),
        ("a", "stderr: w\na", (NOTHING, "stderr: w")),
        ("a\nb", "a", ("b", NOTHING)),
        ("same", "same", ("same", "same")),
    ],
)
def test_the_first_line_that_differs(before, after, shown):
    assert first_difference(before, after) == shown


def test_a_warning_is_shown_without_its_path():
    text = report(difference("a", "stderr: /x/y.py:7: FutureWarning: old\n  warn()\na")).text()
    assert "  stderr: FutureWarning: old" in text


def test_markdown_keeps_its_table(run):
    nasty = difference("a | b `c`", "<b>|</b>\nx", source="a | `b`")
    text = Report("torch 9.9", [run, Run("n", 1, (nasty,))]).markdown()
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + len(AFTER) + 1
    assert all(row.replace("\\|", "").count("|") == 5 for row in rows)
    assert "**2 notebooks" in text


def test_json_holds_everything(run):
    data = json.loads(Report("torch 9.9", [run]).json())
    assert data["good"] is False
    assert [one["after"] for one in data["runs"][0]["differences"]] == list(AFTER.values())


# What is explained

ENTRY = """\
[[difference]]
notebook = "book/01_tape.ipynb"
cell = "a1"
after = "new"
where = { torch = "<2.13", IPython = ">=7" }
reason = "it was so"
"""


@pytest.fixture
def known(tmp_path):
    path = tmp_path / "explained.toml"
    path.write_text(ENTRY)
    return load(path)


OLD, NEW = {"torch": "2.11.0+cpu", "ipython": "7.34.0"}, {"torch": "2.15.0", "ipython": "9.1"}


def test_an_explained_difference_is_none(known):
    runs, stale = explain(report(difference()).runs, OLD, known)
    done = Report("torch 2.11", runs, stale)
    assert done.good and not stale
    assert [one.reason for one in done.explained] == ["it was so"]
    assert "0 changed, 1 explained" in done.text() and "- it was so" in done.text()
    assert "Explained:" in done.markdown()


@pytest.mark.parametrize(
    ("versions", "change"),
    [
        (NEW, {}),
        ({"torch": "2.11.0"}, {}),  # a package that is not there
        (OLD, {"id": "b2"}),
        (OLD, {"notebook": "book/02.ipynb"}),
        (OLD, {"after": "something else"}),
    ],
)
def test_an_explanation_holds_for_its_case_only(versions, change, known):
    runs, _ = explain(report(difference(**change)).runs, versions, known)
    assert not Report("x", runs).good


def test_an_explanation_that_explains_nothing_is_reported(known):
    runs, stale = explain(report().runs, OLD, known)
    done = Report("torch 2.11", runs, stale)
    assert not done.good
    assert "explain nothing any more" in done.text() and "it was so" in done.text()
    assert "explain nothing any more" in done.markdown()
    assert done.totals().endswith("0 changed, 1 explanation out of date")
    assert explain(report().runs, NEW, known)[1] == [], "elsewhere nothing is expected of it"
    assert explain([Run("other", 1, ())], OLD, known)[1] == [], "its notebook was not run"


@pytest.mark.parametrize(
    ("old", "new", "phrase"),
    [
        ("reason = ", "raison = ", "raison"),
        ('after = "new"\n', "", "after"),
        ('"it was so"', '" "', "reason is empty"),
        ('{ torch = "<2.13", IPython = ">=7" }', "{}", "where is empty"),
        ("<2.13", "2.13-ish", "where"),
        ('<2.13"', "<2.13", "explained.toml"),
        ('torch = "<2.13"', "torch = 2", "where"),
    ],
)
def test_a_bad_entry_is_named(old, new, phrase, tmp_path):
    assert old in ENTRY
    path = tmp_path / "explained.toml"
    path.write_text(ENTRY.replace(old, new))
    with pytest.raises(BadExplanation, match=phrase):
        load(path)


def test_what_is_explained_exists():
    for one in load():
        nb = nbformat.read(ROOT / one.notebook, as_version=4)
        (cell,) = [cell for cell in nb.cells if cell.id == one.cell]
        shown = rerun._text(cell.outputs)
        assert one.after not in shown, f"{one}: this is what is stored"


# The environment


def test_pins_that_torch_refuses_are_dropped():
    pinned = environments.pins(ROOT / "constraints.txt")
    assert {"torch", "setuptools", "sympy", "jinja2", "numpy"} <= set(pinned)
    installed = {
        "torch": ("9.9", ["setuptools<82", "sympy>=1.13", "numpy; extra == 'x'", "triton"]),
        "triton": ("3", ["Jinja2==1.0", "torch"]),
        "numpy": ("1", ["six==0.1"]),
    }
    kept = {pin.name for pin in environments.kept_pins(pinned, installed)}
    assert {pin.name for pin in pinned.values()} - kept == {"torch", "setuptools", "Jinja2"}


@pytest.fixture
def no_pip(monkeypatch, tmp_path):
    """Environments are made in a folder of the test, without pip; what was asked for."""
    asked = []

    def run(command, what):
        asked.append(what)
        if "-m venv" in what:
            Path(command[-1]).mkdir(parents=True)

    monkeypatch.setattr(environments, "ROOT", tmp_path)
    monkeypatch.setattr(environments, "FOLDER", tmp_path / "canary")
    for name in ("pyproject.toml", "constraints.txt", "colab.txt"):
        (tmp_path / name).write_text((ROOT / name).read_text("utf-8"))
    monkeypatch.setattr(environments, "_run", run)
    monkeypatch.setattr(environments, "_installed", lambda _: {"torch": ("2.15.0+cpu", [])})
    return asked


def ensure(name):
    return environments.ensure(name, Path(sys.executable))


def test_an_environment_is_used_again_until_its_pins_change(no_pip, tmp_path):
    (tmp_path / "canary/2.15.0").mkdir(parents=True)  # cut short: no stamp
    (tmp_path / "canary/2.15.0/left-over").touch()
    python = ensure("2.15.0")
    assert python.parent.parent == tmp_path / "canary" / "2.15.0"
    assert not (tmp_path / "canary/2.15.0/left-over").exists(), "what was cut short is made again"
    assert [what.split()[-1] for what in no_pip] == ["venv", "torch==2.15.0", "pins"]
    ensure("2.15.0")
    assert len(no_pip) == 3
    with (tmp_path / "constraints.txt").open("a") as file:
        file.write("extra==1\n")
    ensure("2.15.0")
    assert len(no_pip) == 6


def test_newest_looks_each_time(no_pip):
    ensure("newest")
    ensure("newest")
    assert [what.split()[-1] for what in no_pip] == ["venv", "torch", "pins", "torch", "pins"]


def test_colab_is_torch_and_then_its_own_versions(no_pip):
    ensure("colab")
    torch = str(environments.pins(ROOT / "colab.txt")["torch"])
    assert [what.split()[-1] for what in no_pip] == ["venv", torch, "pins", "colab.txt"]


@pytest.mark.parametrize("name", ["2.15.0", "newest"])
def test_a_failed_installation_leaves_no_stamp(name, no_pip, monkeypatch, tmp_path):
    if name == "newest":
        ensure(name)  # it is there, and the new one can't be installed

    def refuse(command, what):
        raise environments.NotInstalled(f"{what} failed: no such version")

    monkeypatch.setattr(environments, "_install", lambda *_: refuse([], "pip install torch"))
    with pytest.raises(environments.NotInstalled, match="no such version"):
        ensure(name)
    assert environments._stamp(tmp_path / "canary" / name) is None


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("import sys; sys.exit('noise\\nERROR: No matching distribution\\nhint')", "No matching"),
        ("import sys; sys.exit('what was said')", "what was said"),
        (
            "import sys; print('  The user requested (constraint) torch<=2')\n"
            "sys.exit('ERROR: Cannot install\\nERROR: ResolutionImpossible: for help visit')",
            r"Cannot install; The user requested \(constraint\) torch<=2",
        ),
        ("import sys; sys.exit(1)", "did not say why"),
    ],
)
def test_one_line_says_why(script, reason):
    with pytest.raises(environments.NotInstalled, match=rf"^pip failed: .*{reason}.*$"):
        environments._run([sys.executable, "-c", script], "pip")
    with pytest.raises(environments.NotInstalled, match="No such file"):
        environments._run(["/no/such/python"], "pip")


def test_what_is_installed_is_read_from_the_environment():
    found = environments.versions(Path(sys.executable))
    assert {"torch", "ipykernel", "nbclient"} <= set(found)
    with pytest.raises(environments.NotInstalled):
        environments.versions(Path("/bin/false"))


def test_colab_pins_are_exact_and_installed_beside_the_books():
    pins = environments.pins(ROOT / "colab.txt")
    for pin in pins.values():
        (specifier,) = pin.specifier
        assert specifier.operator == "==" and "*" not in specifier.version
    lowest = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    for need in map(Requirement, lowest):
        if need.name in pins:
            assert need.specifier.contains(str(pins[need.name].specifier)[2:]), need
    makefile = (ROOT / "Makefile").read_text("utf-8")
    (line,) = [line for line in makefile.splitlines() if "--target $(VENV)/colab" in line]
    expression = line.partition("grep -vE '")[2].partition("'")[0].replace("$$", "$")
    done = subprocess.run(
        ["grep", "-vE", expression, ROOT / "colab.txt"], capture_output=True, text=True
    )
    assert done.stdout.split() == [str(pin) for name, pin in pins.items() if name != "torch"]


# The command


@pytest.fixture
def command(tmp_path, monkeypatch):
    """`make canary` on a notebook of the test, with this Python as the environment."""
    monkeypatch.setattr(environments, "FOLDER", tmp_path / "canary")
    monkeypatch.setattr(environments, "ensure", lambda *_: Path(sys.executable))
    path = tmp_path / "tiny.ipynb"
    nbformat.write(stored(tmp_path, "print('as it was')"), path)

    def run(*arguments):
        return canary.main(["--torch=2.15.0", *arguments, str(path)])

    run.path, run.reports = path, tmp_path / "canary"
    return run


@KERNELS
def test_nothing_changed_exits_with_0(command, capsys):
    assert command() == 0
    assert "1 notebook, 1 cell, 0 changed" in capsys.readouterr().out
    assert json.loads((command.reports / "2.15.0.json").read_text())["good"] is True
    assert "0 changed" in (command.reports / "2.15.0.md").read_text()


def test_a_change_exits_with_1(command, capsys):
    command.path.write_text(command.path.read_text().replace("as it was\\n", "otherwise\\n"))
    assert command() == 1
    out = capsys.readouterr().out
    assert "otherwise" in out and "as it was" in out and "1 changed" in out
    assert "1 changed" in (command.reports / "2.15.0.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "phrase"),
    [
        (["--torch="], "TORCH=2.15.0, TORCH=newest or COLAB=1"),
        (["--torch=abc"], "TORCH=abc is no version"),
        (["--torch=2.9.1"], "the book needs torch>=2.11"),
        (["--torch=2.15.0", "no.ipynb"], "no such notebook: "),
    ],
)
def test_wrong_usage_exits_with_2_and_says_why(arguments, phrase, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(environments, "FOLDER", tmp_path)
    assert canary.main(arguments) == 2
    error = capsys.readouterr().err
    assert phrase in error and error.count("\n") == 1


@KERNELS
def test_a_failed_installation_exits_with_2_and_leaves_a_report(command, monkeypatch, capsys):
    def ensure(*_):
        raise environments.NotInstalled("pip install torch==2.15.0 failed: the disk is full")

    assert command() == 0
    monkeypatch.setattr(environments, "ensure", ensure)
    assert command() == 2
    assert capsys.readouterr().err == (
        "canary: pip install torch==2.15.0 failed: the disk is full\n"
    )
    assert "the disk is full" in (command.reports / "2.15.0.md").read_text()
    assert not (command.reports / "2.15.0.json").exists(), "of an earlier run"


@KERNELS
def test_a_bad_explanation_exits_with_2(command, monkeypatch, tmp_path, capsys):
    (tmp_path / "explained.toml").write_text("[[difference]]\n")
    monkeypatch.setattr(explained.load, "__defaults__", (tmp_path / "explained.toml",))
    assert command() == 2
    assert "explained.toml, entry 1" in capsys.readouterr().err


def test_make_hands_on_what_was_asked():
    def said(*words):
        # -o: or make would remake its own file, in earnest, where that is older than the pins.
        plan = ["make", "-n", "-o", "Makefile", "--no-print-directory", "canary", "STAMP=Makefile"]
        done = subprocess.run(
            [*plan, *words],
            cwd=ROOT, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout.splitlines()[-1]

    assert '--torch="$TORCH"' in said("TORCH=2.15.0")
    assert "--python" not in said("TORCH=2.15.0")
    assert "--colab" in said("COLAB=1") and "--torch" not in said("COLAB=1")
    assert "--torch" in said("COLAB=0", "TORCH=2.15.0")
    assert "--python='python3.12'" in said("COLAB=1", "PYTHON=python3.12")

"""Each gate accepts a good notebook and rejects a bad one, which no other gate rejects."""

from __future__ import annotations

import copy

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from tools.gates import GATES, problems
from tools.gates.form import as_written
from tools.notebooks import dumps

# Where things are in the good notebook.
OPENING, SETUP, PROSE, RESULT, FIGURE, STREAM, SECOND, ERROR, ANSWER = range(9)


def text(cell, value, output=0):
    """A change: set the stored text of an output."""

    def change(nb):
        stored = nb.cells[cell].outputs[output]
        if "data" in stored:
            stored.data["text/plain"] = value
        else:
            stored["text"] = value

    return change


def prose(addition, cell=PROSE):
    """A change: add to a text cell."""

    def change(nb):
        nb.cells[cell].source += f"\n\n{addition}"

    return change


def source(addition, cell=RESULT):
    """A change: add a line before the code of a cell."""

    def change(nb):
        nb.cells[cell].source = f"{addition}\n{nb.cells[cell].source}"

    return change


def metadata(cell, **values):
    """A change: set metadata of a cell."""

    def change(nb):
        nb.cells[cell].metadata.update(values)

    return change


def change(function):
    """A change that is a function of the notebook's cells."""
    return lambda nb: function(nb.cells)


def never_run(nb):
    for cell in nb.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        else:
            cell.source = "Nothing quoted."
    nb.cells[ERROR].metadata.tags = []


def add(cell, *outputs):
    """A change: add outputs to a cell."""
    return change(lambda cells: cells[cell].outputs.extend(outputs))


def stream(value, name="stdout"):
    return new_output("stream", name=name, text=value)


PICTURE = {"text/plain": "twin", "text/html": "<svg/>"}
PATHS = ["/home/me/x.py", "/tmp/x", "C:\\Users\\me", "a/site-packages/torch", "file:///Users/me"]

EXPLORED = """\
scale = {"one": lambda k: y * k}
def draw(k):
    return lens.graph(scale["one"](k))
assert y.grad_fn
lens.explore(draw, k=[1, 2])"""


def rebound(line):
    """A change: a figure that reads `y` through two functions, and a line further down."""
    return change(
        lambda c: (c[FIGURE].update(source=EXPLORED), c[STREAM].update(source=f"{line}\nprint(x)"))
    )


BAD = [
    ("executed_in_order", "never run", never_run),
    ("executed_in_order", "run twice", change(lambda c: c[FIGURE].update(execution_count=7))),
    ("executed_in_order", "one not", change(lambda c: c[STREAM].update(execution_count=None))),
    (
        "executed_in_order",
        "another count in the result",
        change(lambda c: c[RESULT].outputs[0].update(execution_count=1)),
    ),
    ("nothing_on_stderr", "warning", add(STREAM, stream("careful\n", "stderr"))),
    ("no_address", "object", text(FIGURE, "<PowBackward0 object at 0x7f00a1b2c3d4>")),
    *[("no_absolute_path", path, text(STREAM, f"in {path}\n")) for path in PATHS],
    ("text_only", "picture", change(lambda c: c[FIGURE].outputs[0].update(data=PICTURE))),
    (
        "text_only",
        "no text",
        change(lambda c: c[FIGURE].outputs[0].update(data={"image/png": "AAAA"})),
    ),
    ("small_outputs", "long", text(STREAM, "word " * 1700)),
    (
        "expected_errors_only",
        "not announced",
        change(lambda c: c[ERROR].metadata.update(tags=[])),
    ),
    ("expected_errors_only", "announced, absent", metadata(STREAM, tags=["raises-exception"])),
    (
        "expected_errors_only",
        "traceback",
        change(lambda c: c[ERROR].outputs[0].update(traceback=["line 1"])),
    ),
    ("plain_characters", "carriage return", text(STREAM, "10%\r20%\n")),
    ("plain_characters", "colour", text(STREAM, "\x1b[31mred\n")),
    ("plain_characters", "no-break space", text(STREAM, "a\u00a0b\n")),
    ("one_output_per_stream", "pieces", add(STREAM, stream("more\n"))),
    ("one_output_per_stream", "empty", add(RESULT, stream(""))),
    (
        "no_output_metadata",
        "metadata",
        change(lambda c: c[FIGURE].outputs[0].metadata.update(isolated=True)),
    ),
    ("no_widget_state", "state", lambda nb: nb.metadata.update(widgets={"state": {}})),
    ("normal_form", "colab", lambda nb: nb.metadata.update(colab={"provenance": []})),
    ("normal_form", "kernel", lambda nb: nb.metadata.kernelspec.update(name="mine")),
    ("normal_form", "older format", lambda nb: nb.update(nbformat_minor=4)),
    ("normal_form", "same id twice", change(lambda c: c[STREAM].update(id=c[RESULT].id))),
    ("normal_form", "not valid", change(lambda c: c[SECOND].update(author="me"))),
    ("normal_form", "scrolled", metadata(RESULT, scrolled=True)),
    *[
        ("compared_by_nbval", tag, metadata(STREAM, tags=[tag]))
        for tag in ("nbval-skip", "nbval-ignore-output", "NBVAL_SKIP", "nbval-raises-exception")
    ],
    ("compared_by_nbval", "comment", source("# NBVAL_IGNORE_OUTPUT")),
    ("compared_by_nbval", "small comment", source("  #nbval_skip")),
    ("compared_by_nbval", "old comment", source("# PYTEST_VALIDATE_IGNORE_OUTPUT")),
    (
        "setup_first",
        "changed",
        change(
            lambda c: (c[SETUP].update(source="import torch"), c[OPENING].update(source="# Title"))
        ),
    ),
    ("setup_first", "missing", lambda nb: (nb.cells.pop(SETUP), _count(nb))),
    ("setup_first", "later", lambda nb: (nb.cells.append(nb.cells.pop(SETUP)), _count(nb))),
    ("short_cells", "long", source("\n".join(f"a{n} = x" for n in range(18)))),
    ("no_trailing_semicolon", "plain", source("x.sum();")),
    ("no_trailing_semicolon", "comment", source("x.sum(); # quiet")),
    ("answers_hidden_everywhere", "tag only", metadata(STREAM, tags=["hide-cell"])),
    ("answers_hidden_everywhere", "input only", metadata(STREAM, tags=["hide-input"])),
    ("answers_hidden_everywhere", "Colab only", metadata(STREAM, cellView="form")),
    (
        "answers_hidden_everywhere",
        "output shown",
        metadata(ANSWER, jupyter={"source_hidden": True}),
    ),
    (
        "answers_hidden_everywhere",
        "not in Colab",
        change(lambda c: c[ANSWER].metadata.pop("cellView")),
    ),
    (
        "figures_are_asserted",
        "no assertion",
        change(lambda c: c[FIGURE].update(source="view = lens.graph(y)\nview")),
    ),
    (
        "figures_are_asserted",
        "one that can't fail",
        change(lambda c: c[FIGURE].update(source="assert True\nlens.graph(y)")),
    ),
    ("figures_keep_their_names", "through a lambda", rebound("y = 1")),
    ("figures_keep_their_names", "a function", rebound("def scale(k): pass")),
    ("figures_keep_their_names", "a loop", rebound("for scale in []: pass")),
    ("no_myst", "directive", prose("```{note}\nx\n```", SECOND)),
    ("no_myst", "colons", prose(":::{note}\nx\n:::", SECOND)),
    ("no_myst", "role", prose("See {ref}`backward()`.")),
    ("no_myst", "label", prose("(leaves)=")),
    ("quotes_occur", "wrong number", prose("The gradient is 5.")),
    ("quotes_occur", "of another section", prose("The gradient is `tensor(4.)`.", SECOND)),
    ("quotes_occur", "wrong sign", prose("The gradient is -4.")),
    ("quotes_occur", "unknown name", prose("It is kept in `x.gradient`.")),
    ("quotes_occur", "in details", prose("<details><summary>Hint</summary>\n\n5\n\n</details>")),
    ("quotes_occur", "in the opening", prose("It holds 17.", OPENING)),
    ("short_route", "without a start", prose("> **Short route.** Last stop.", SECOND)),
]


def _count(nb):
    """Number the code cells again, so that only their order is bad."""
    cells = [cell for cell in nb.cells if cell.cell_type == "code"]
    for count, cell in enumerate(cells, start=1):
        cell.execution_count = count
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = count


def test_good_notebook_passes(good):
    assert problems(good) == {}


@pytest.mark.parametrize(("gate", "name", "spoil"), BAD, ids=[f"{b[0]}-{b[1]}" for b in BAD])
def test_bad_notebook_is_rejected_by_its_gate_alone(good, gate, name, spoil):
    spoil(good)
    found = problems(good)
    assert list(found) == [gate]
    assert all(line.endswith((".", "```")) for line in found[gate])


def test_every_gate_has_a_bad_notebook():
    assert {gate for gate, _, _ in BAD} == set(GATES)


@pytest.mark.parametrize(
    "line", ["k = 1", "draw = 1", "z = 1", "def other(y): y = 1", "import copy", "y.grad"]
)
def test_a_figure_may_be_followed_by_other_names(good, line):
    rebound(line)(good)
    assert problems(good) == {}


def test_gates_change_nothing(good):
    before = copy.deepcopy(good)
    problems(good)
    assert good == before


def test_empty_cells_need_no_count(good):
    good.cells.append(new_code_cell(""))
    good.cells.append(new_markdown_cell("## The end\n"))
    assert problems(good) == {}


def test_file_form(good):
    written = dumps(good)
    assert as_written(written) == []
    assert as_written(written.replace('\n "', '\n  "', 1)) != []
    assert as_written(written.rstrip("\n")) != []
    assert as_written(written.replace("->", "-\\u003e")) != []

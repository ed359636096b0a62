"""Gates on what a notebook has stored: all of it, from one run, the same everywhere."""

from __future__ import annotations

import re
from itertools import pairwise

from nbformat import NotebookNode

from tools.gates.cells import code_cells, problem, tags, texts

REFRESH = "Run `make outputs`"
LARGEST_OUTPUT = 8_000  # bytes of text in one cell

# Folders that a path on somebody's machine begins with.
ABSOLUTE_PATH = re.compile(
    r"(?<![\w.-])/(?:home|tmp|Users|root|work|usr|opt|var|private|mnt|content)\b"
    r"|\b[A-Za-z]:\\|(?:site|dist)-packages|/ipykernel_\d"
)


def executed_in_order(nb: NotebookNode) -> list[str]:
    """Execution counts are 1..n: one run from top to bottom, which nbval does not ask for."""
    found = []
    for expected, (position, cell) in enumerate(code_cells(nb), start=1):
        counts = [cell.execution_count]
        counts += [out.execution_count for out in cell.outputs if "execution_count" in out]
        strange = [count for count in counts if count != expected]
        if strange:
            wrong = f"has execution count {strange[0]}, not {expected}"
            found.append(problem(position, cell, wrong, REFRESH))
    return found


def nothing_on_stderr(nb: NotebookNode) -> list[str]:
    """No stderr: it holds process ids, dates and paths."""
    return [
        problem(position, cell, f"writes to stderr: {output.text[:60]!r}", "Remove the cause")
        for position, cell in code_cells(nb)
        for output in cell.outputs
        if output.output_type == "stream" and output.name != "stdout"
    ]


def _matching(nb: NotebookNode, pattern: re.Pattern[str], what: str, cure: str) -> list[str]:
    return [
        problem(position, cell, f"prints {what} ({match[0]!r})", cure)
        for position, cell in code_cells(nb)
        for text in texts(cell)
        if (match := pattern.search(text))
    ]


def no_address(nb: NotebookNode) -> list[str]:
    """No memory address: it differs in every run."""
    pattern = re.compile(r"\b0x[0-9a-fA-F]+")
    return _matching(nb, pattern, "an address", "Print a name, such as `grad_fn.name()`")


def no_absolute_path(nb: NotebookNode) -> list[str]:
    """No path of the machine that ran the notebook."""
    return _matching(nb, ABSOLUTE_PATH, "an absolute path", "Print the end of the path only")


def text_only(nb: NotebookNode) -> list[str]:
    """Pictures are made when the book is built; the file holds their text twin."""
    return [
        problem(position, cell, f"stores {sorted(output.data)}, not text/plain alone", REFRESH)
        for position, cell in code_cells(nb)
        for output in cell.outputs
        if "data" in output and list(output.data) != ["text/plain"]
    ]


def small_outputs(nb: NotebookNode) -> list[str]:
    """A reader should see an output whole."""
    found = []
    for position, cell in code_cells(nb):
        size = sum(len(text.encode()) for text in texts(cell))
        if size > LARGEST_OUTPUT:
            wrong = f"stores {size} bytes of text, more than {LARGEST_OUTPUT}"
            found.append(problem(position, cell, wrong, "Print less"))
    return found


def expected_errors_only(nb: NotebookNode) -> list[str]:
    """An error is stored exactly where one is announced, and without its traceback.

    nbval compares no traceback, and passes a cell that is tagged and raises nothing.
    """
    found = []
    for position, cell in code_cells(nb):
        errors = [output for output in cell.outputs if output.output_type == "error"]
        announced = "raises-exception" in tags(cell)
        if errors and not announced:
            cure = "Mend it, or catch the error, or tag the cell `raises-exception`"
            found.append(problem(position, cell, f"stores a {errors[0].ename}", cure))
        if announced and not errors:
            wrong = "is tagged `raises-exception` and stores no error"
            found.append(problem(position, cell, wrong, "Remove the tag"))
        if any(error.traceback for error in errors):
            found.append(problem(position, cell, "stores a traceback", REFRESH))
    return found


def plain_characters(nb: NotebookNode) -> list[str]:
    """No carriage return and no escape code: nbval drops what a carriage return overwrites."""
    pattern = re.compile(r"[^\S \n\t]|[\x00-\x08\x0e-\x1f\x7f-\x9f\u200b-\u200f\ufeff]")
    return _matching(nb, pattern, "a control character", "Print without it (no progress bar)")


def one_output_per_stream(nb: NotebookNode) -> list[str]:
    """What a stream wrote in a row is one output: nbval joins the pieces, so would hide cuts."""
    found = []
    for position, cell in code_cells(nb):
        names = [output.get("name") for output in cell.outputs]
        repeated = any(name and name == after for name, after in pairwise(names))
        empty = any(output.get("text") == "" for output in cell.outputs)
        if repeated or empty:
            wrong = "stores a stream in pieces" if repeated else "stores an empty stream"
            found.append(problem(position, cell, wrong, REFRESH))
    return found


def no_output_metadata(nb: NotebookNode) -> list[str]:
    """Nothing stored with an output that nbval does not compare."""
    known = {"stream": 3, "error": 4, "display_data": 3, "execute_result": 4}  # keys in each kind
    return [
        problem(position, cell, "stores metadata with an output", REFRESH)
        for position, cell in code_cells(nb)
        for output in cell.outputs
        if output.get("metadata") or len(output) > known.get(output.output_type, 0)
    ]

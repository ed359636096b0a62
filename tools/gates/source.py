"""Gates on code cells: compared, short, self-checking, and the same in every front end."""

from __future__ import annotations

import ast
import re

from nbformat import NotebookNode
from nbval.plugin import metadata_tags

from tools.gates.cells import code_cells, problem, tags
from tools.gates.sections import sections
from tools.repository import setup_cell

LONGEST_CELL = 20  # lines; about 15 is the style

# Asked of nbval itself, so that a marker it learns is known here too.
_WAYS_OUT = set(metadata_tags) - {"raises-exception"}
_MARKER = re.compile(r"^\s*#\s*(?:NBVAL|PYTEST_VALIDATE)", re.IGNORECASE | re.MULTILINE)

HIDDEN = {"source_hidden": True, "outputs_hidden": True}


def compared_by_nbval(nb: NotebookNode) -> list[str]:
    """None of the tags and comments that make nbval look away."""
    found = []
    for position, cell in code_cells(nb):
        named = {tag.lower().replace("_", "-") for tag in tags(cell)}
        marked = [tag for tag in named if tag in _WAYS_OUT or tag.startswith("nbval")]
        marked += _MARKER.findall(cell.source)
        if marked:
            wrong = f"asks nbval to look away ({marked[0].strip()})"
            found.append(problem(position, cell, wrong, "Print something that is stable"))
    return found


def setup_first(nb: NotebookNode) -> list[str]:
    """The first code cell imports the lens, and in Colab installs it; it is the same everywhere."""
    for position, cell in code_cells(nb):
        if cell.source != setup_cell():
            cure = "Paste what `python -m tools.gates --setup-cell` prints"
            return [problem(position, cell, "is not the setup cell", cure)]
        return []
    return ["the notebook has no code cell. Begin with the setup cell."]


def short_cells(nb: NotebookNode) -> list[str]:
    """One idea per cell."""
    found = []
    for position, cell in code_cells(nb):
        lines = sum(1 for line in cell.source.split("\n") if line.strip())
        if lines > LONGEST_CELL:
            wrong = f"has {lines} lines, more than {LONGEST_CELL}"
            found.append(problem(position, cell, wrong, "Split it"))
    return found


def no_trailing_semicolon(nb: NotebookNode) -> list[str]:
    """A `;` at the end of a line hides a result in Jupyter, but not from nbval."""
    pattern = re.compile(r";[ \t]*(?:#.*)?$", re.MULTILINE)
    return [
        problem(position, cell, "has a line that ends in `;`", "Write `_ = ...`")
        for position, cell in code_cells(nb)
        if pattern.search(cell.source)
    ]


def answers_hidden_everywhere(nb: NotebookNode) -> list[str]:
    """An answer is hidden in the book, in JupyterLab and in Colab, or in none of them."""
    found = []
    for position, cell in code_cells(nb):
        jupyter = cell.metadata.get("jupyter", {})
        marks = [
            any(tag in ("hide-cell", "hide-input", "hide-output") for tag in tags(cell)),
            bool(jupyter),
            "cellView" in cell.metadata,
        ]
        complete = (
            "hide-cell" in tags(cell)
            and jupyter == HIDDEN
            and cell.metadata.get("cellView") == "form"
        )
        if any(marks) and not complete:
            cure = (
                "Give it the tag `hide-cell` and the metadata "
                f'"jupyter": {HIDDEN}, "cellView": "form", or none of them'
            )
            found.append(problem(position, cell, "is hidden in some places only", cure))
    return found


def figures_are_asserted(nb: NotebookNode) -> list[str]:
    """A section with a figure also asserts something: re-running blesses whatever comes out."""
    found = []
    for section in sections(nb):
        figures = [position for position, cell in section.code if _figures(cell.source)]
        if figures and not any(_asserts(cell.source) for _, cell in section.code):
            found.append(
                f"section {section.title!r} shows a figure (cell {figures[0]}) and asserts "
                "nothing. Add an `assert` of a value found by other means than the lens."
            )
    return found


def _tree(source: str) -> ast.AST:
    """The cell as Python; magics, which Python can't read, are left out."""
    plain = re.sub(r"^(\s*)[%!].*$", r"\1pass", source, flags=re.MULTILINE)
    try:
        return ast.parse(plain)
    except SyntaxError:  # running the notebook reports it
        return ast.Module(body=[], type_ignores=[])


def _figures(source: str) -> bool:
    """Whether the cell calls the lens, other than to check a value."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "lens"
        and node.func.attr != "check"
        for node in ast.walk(_tree(source))
    )


def _asserts(source: str) -> bool:
    """Whether the cell has an assertion that can fail."""
    for node in ast.walk(_tree(source)):
        if isinstance(node, ast.Assert) and not isinstance(node.test, ast.Constant):
            return True
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("assert_close"):
            return True
    return False

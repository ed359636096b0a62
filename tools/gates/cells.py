"""Words for pointing at a cell, and the few ways in which gates walk a notebook."""

from __future__ import annotations

from collections.abc import Iterator

from nbformat import NotebookNode


def problem(position: int, cell: NotebookNode, wrong: str, cure: str) -> str:
    """One line that names a cell (counted from 1, text cells too), its fault and the cure."""
    first = next((line.strip() for line in cell.source.split("\n") if line.strip()), "empty")
    return f"cell {position} ({cell.cell_type}: {first[:50]!r}) {wrong}. {cure}."


def code_cells(nb: NotebookNode) -> Iterator[tuple[int, NotebookNode]]:
    """Position and cell of every code cell that has a source."""
    for position, cell in enumerate(nb.cells, start=1):
        if cell.cell_type == "code" and (cell.source.strip() or cell.outputs):
            yield position, cell


def markdown_cells(nb: NotebookNode) -> Iterator[tuple[int, NotebookNode]]:
    """Position and cell of every text cell."""
    for position, cell in enumerate(nb.cells, start=1):
        if cell.cell_type == "markdown":
            yield position, cell


def tags(cell: NotebookNode) -> list[str]:
    """The tags of a cell."""
    return list(cell.metadata.get("tags", []))


def texts(cell: NotebookNode) -> list[str]:
    """Every stored text of a code cell's outputs, whatever kind of output holds it."""
    found: list[str] = []
    for output in cell.get("outputs", []):
        if output.output_type == "stream":
            found.append(output.text)
        elif output.output_type == "error":
            found += [output.ename, output.evalue]
        else:
            found += [text for text in output.data.values() if isinstance(text, str)]
    return found

"""The short route: its chain, its length, and that it can be read and run alone."""

from __future__ import annotations

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools.gates.prose import unfounded
from tools.gates.route import short_route, stops
from tools.notebooks import CellFailed, clear, execute, normalise
from tools.repository import ROOT, notebook_paths

OPENING = "# A chapter\n\n> **Short route.** In a hurry? First stop: *B*"


def chapter(opening=OPENING, **marks):
    """Nine cells in sections A to H; those in `marks` say what their mark says."""
    cells = [new_markdown_cell(opening)]
    for title in "ABCDEFGH":
        mark = f"\n\n> **Short route.** {marks[title]}" if title in marks else ""
        cells.append(new_markdown_cell(f"## {title}{mark}"))
    return new_notebook(cells=cells)


def test_a_chapter_without_a_route():
    assert short_route(chapter("# A chapter")) == []


def test_a_good_route():
    nb = chapter(B="Next stop: *F*", F="Last stop.")
    assert short_route(nb) == []
    assert [section.title for section in stops(nb)] == ["B", "F"]


@pytest.mark.parametrize(
    ("opening", "marks", "phrase"),
    [
        ("# A chapter", {"B": "Next stop: *F*", "F": "Last stop."}, "no `First stop"),
        (OPENING, {"A": "Next stop: *B*", "B": "Last stop."}, "leads from '(opening)' to 'B'"),
        (OPENING, {"B": "Next stop: *C*", "F": "Last stop."}, "leads from 'B' to 'C'"),
        (OPENING, {"B": "Here.", "F": "Last stop."}, "leads from 'B' to None"),
        (OPENING, {"B": "Next stop: *F*", "F": "Next stop: *B*"}, "'F' is the last"),
        (OPENING, {}, "0% of the cells"),
        (OPENING, {"B": "Last stop."}, "11% of the cells"),
    ],
)
def test_a_bad_route(opening, marks, phrase):
    assert any(phrase in found for found in short_route(chapter(opening, **marks)))


def test_a_mark_may_name_what_its_section_does_not_show():
    assert unfounded("> **Short route.** Next stop: *What does `detach` cut?*", "x = 1") == []
    assert unfounded("Next comes `detach`.", "x = 1") == ["`detach`"]


def alone(nb):
    """The notebook with the opening and the stops of the short route only."""
    kept = {p for section in stops(nb) for p, _ in [*section.text, *section.code]}
    first = min(p for p, cell in enumerate(nb.cells, 1) if cell.cell_type == "code")  # the setup
    nb.cells = [cell for p, cell in enumerate(nb.cells, 1) if p in kept | {first}]
    clear(nb)
    return nb


ROUTED = [path for path in notebook_paths() if stops(nbformat.read(path, as_version=4))]


@pytest.mark.large("the gate follows the chain of stops; the whole notebook runs")
@pytest.mark.parametrize("path", ROUTED, ids=[p.name for p in ROUTED])
def test_the_short_route_runs_alone(path):
    nb = nbformat.read(path, as_version=4)
    stored = {cell.id: cell.outputs for cell in nb.cells if cell.cell_type == "code"}
    execute(alone(nb), path.parent, path.name)
    normalise(nb)  # a stream may arrive in pieces
    texts = [cell for cell in nb.cells if cell.cell_type == "code"]
    assert len(texts) > 5

    def shown(outputs):
        return [o.get("text") or o.get("data", {}).get("text/plain") for o in outputs]

    assert {c.id: shown(c.outputs) for c in texts} == {c.id: shown(stored[c.id]) for c in texts}


def test_a_stop_that_needs_another_section_is_noticed(tmp_path):
    nb = chapter(B="Next stop: *F*", F="Last stop.")
    nb.cells.insert(1, new_code_cell("pass"))  # in place of the setup
    nb.cells.insert(3, new_code_cell("needed = 1"))  # in section A
    nb.cells.insert(5, new_code_cell("needed"))  # in section B
    with pytest.raises(CellFailed, match="needed"):
        execute(alone(nb), tmp_path)


def test_the_book_has_a_short_route():
    assert ROOT / "book" / "01_tape.ipynb" in ROUTED

"""Tables: one way to lay them out as text, one way to write them for Graphviz."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import autograd_lens.view
from autograd_lens.view.dot import DotPicture
from autograd_lens.view.tables import cell, document, node, table, text_table, words
from autograd_lens.view.theme import light


def test_columns_are_aligned():
    rows = [("name", "bytes", ""), ("w", "1,024", "new"), ("bias", "8", "")]
    assert text_table(rows, right={1}).split("\n") == [
        "name  bytes",
        "w     1,024  new",
        "bias      8",
    ]


def test_rows_of_unequal_length_are_refused():
    with pytest.raises(ValueError):
        text_table([("a", "b"), ("c",)])


def test_a_colour_is_a_role_and_none_is_left_out():
    said = words("a<b", color="ink", point_size=9)
    assert said == f'<FONT COLOR="{light("ink")}" POINT-SIZE="9">a&lt;b</FONT>'
    assert cell(said, colspan=None, align="LEFT") == f'<TD ALIGN="LEFT">{said}</TD>'
    with pytest.raises(KeyError):
        cell("", bgcolor="turquoise")


@pytest.mark.needs("dot")
def test_a_table_is_drawn_whatever_it_holds():
    rows = [[cell(words("one")), cell(words(""))], [cell(table([[cell()]])), cell(words("]]>"))]]
    svg = DotPicture(document(node(0, "kind", table(rows)), fontsize=10)).svg()
    drawn = ["".join(text.itertext()) for text in ElementTree.fromstring(svg).iter()]
    assert {"one", "]]>"} <= set(drawn)
    assert 'data-lens="node0" class="node kind"' in svg


def test_tables_are_laid_out_in_one_place():
    """A drawing that aligns columns or writes cells by itself is another way to lay out a table."""
    own = re.compile(r"<T[DR]\b|<TABLE|<FONT|\.[lr]just\b")
    view = Path(autograd_lens.view.__file__).parent
    found = [path.name for path in view.glob("*.py") if own.search(path.read_text("utf-8"))]
    assert found == ["tables.py"]

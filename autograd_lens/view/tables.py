"""Tables: one way to lay them out as text, and one way to write them for Graphviz.

Knows nothing of what stands in them. A picture is a table whose cells may hold tables again.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from .dot import escaped
from .theme import FONT, light


def text_table(rows: Sequence[Sequence[str]], right: Container[int] = ()) -> str:
    """Rows of cells as lines of aligned columns.

    Args:
        rows: all of the same length. The first one may hold headings.
        right: the columns that are aligned on the right, as numbers are. The others are aligned on
            the left.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(_line(row, widths, right) for row in rows)


def _line(row: Sequence[str], widths: Sequence[int], right: Container[int]) -> str:
    cells = (
        cell.rjust(width) if column in right else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join(cells).rstrip()


def words(text: str, **font: str | float) -> str:
    """Text for a cell, in the font that its attributes say: ``color="ink", point_size=9``."""
    return f"<FONT{_attributes(font)}>{escaped(text) or ' '}</FONT>"


def cell(content: str = "", **attributes: str | float | None) -> str:
    """A cell that holds words or a table: ``cell(words("x"), align="LEFT", colspan=2)``."""
    return f"<TD{_attributes(attributes)}>{content}</TD>"


def table(rows: Iterable[Iterable[str]], **attributes: str | float | None) -> str:
    """Rows of cells as a table; only what its attributes ask for has a border."""
    inner = "".join(f"<TR>{''.join(cells)}</TR>" for cells in rows)
    return f'<TABLE BORDER="0"{_attributes(attributes)}>{inner}</TABLE>'


def _attributes(named: dict[str, str | float | None]) -> str:
    """Attributes as Graphviz writes them; one that is None is left out, a colour is a role."""
    return "".join(
        f' {name.upper().replace("_", "-")}="{light(value) if "color" in name else value}"'
        for name, value in named.items()
        if value is not None
    )


def node(number: int, kind: str, content: str) -> str:
    """The statement of a node that is nothing but a table; ``kind`` is its class on the page."""
    return f'node{number} [id=node{number} class="{kind}" label=<{content}>]'


def document(statements: str, *, fontsize: int, settings: str = "") -> str:
    """The DOT source of a picture whose nodes are tables."""
    return (
        f'digraph {{ bgcolor=transparent {settings}node [shape=plain fontname="{FONT}" '
        f'fontsize={fontsize} fontcolor="{light("ink")}"] {statements} }}'
    )

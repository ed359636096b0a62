"""The figure of a storage layout: a strip of cells, and below it a grid for each tensor.

The strip has a row for each tensor, which says by which index the tensor reads a cell. The grid of
a tensor says for each index which cell it reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from ..layouts.layout import StorageLayout, TensorLayout
from ..layouts.readers import Readers
from .figure import Figure, Frame
from .sketch import Sketch
from .storage_layout_cells import ROLES, grid, role, shown_indices, strip
from .storage_layout_picture import picture
from .storage_layout_text import Cell, all_shown, caption, is_shared, text
from .text import short_name


def figure(layout: StorageLayout) -> Figure:
    """Return the figure: one frame."""
    roles = {
        role(k): short_name(tensor.name) for k, tensor in enumerate(layout.tensors[: len(ROLES)])
    }
    shown = all_shown(layout)
    in_strips = (found for cells in shown for cell in cells for found in cell.readers.values())
    if any(map(is_shared, chain(in_strips, *map(_in_grid, layout.tensors)))):
        roles["error"] = "read by two indices"
    return Figure(
        "Storage layout",
        lambda: Frame(text(layout, shown), lambda: drawn(layout, shown), caption=caption(layout)),
        legend=roles,
    )


def drawn(layout: StorageLayout, shown: list[list[Cell]]) -> Sketch:
    """The picture: the strips, and below them the grids."""
    strips = [strip(layout, number, cells) for number, cells in enumerate(shown)]
    return picture(strips, [grid(layout, number) for number in range(len(layout.tensors))])


def _in_grid(tensor: TensorLayout) -> Iterator[Readers]:
    """For each index in the grid, all indices that read the same element.

    Empty for a tensor whose indices all read different elements.
    """
    if tensor.overlaps is not False:
        for index in shown_indices(tensor):
            yield tensor.readers_at(tensor.offset_of(index))

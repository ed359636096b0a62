"""What every result of the lens has in common: text, picture, file.

The data modules know this class and import nothing of the drawing until they are shown. How an
object looks is decided by the module of the same name in :mod:`autograd_lens.view`, found by that
name when it is first shown: ``autograd_lens/graph.py`` is drawn by
``autograd_lens/view/draw_graph.py``.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .view.figure import Figure


MAX_FRAMES = 200
"""A figure with more frames makes a page that no phone opens."""


def refuse_too_many(frames: int) -> None:
    """Raise ValueError if a figure would have more than ``MAX_FRAMES`` frames."""
    if frames > MAX_FRAMES:
        raise ValueError(
            f"the choices make {frames:,} frames, and a figure takes {MAX_FRAMES}: "
            "offer fewer values"
        )


class View:
    """Plain data in attributes; ``print`` gives the text twin, a notebook the picture."""

    def figure(self) -> Figure:
        """Return the figure of this object: title, choices, frames."""
        name = type(self).__module__.rpartition(".")[2]
        return import_module(f"autograd_lens.view.draw_{name}").figure(self)

    def __str__(self) -> str:
        return self.figure().text()

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        from .view.bundle import bundle

        return bundle(self.figure())

    def widget(self) -> Any:
        """Return the picture as a live ipywidget: the kernel draws each frame as it is chosen."""
        from .view.live import widget

        return widget(self.figure())

    def save(self, path: str | Path, /, **choice: Any) -> Path:
        """Write the picture to ``path``; its suffix decides: .svg, .png, .html or .txt.

        ``choice`` picks the frame of a figure that has several (``step=3``); without it the first
        one is written. An ``.html`` file holds all of them, with their controls, and needs nothing
        else. Returns the path.

        Raises:
            ValueError: unknown suffix, or a choice that the figure does not have.
            RuntimeError: ``.svg`` or ``.png`` without the Graphviz program ``dot``.
        """
        from .view.bundle import save

        return save(self.figure(), Path(path), choice)

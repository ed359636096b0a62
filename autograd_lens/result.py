"""What every result of the lens can do: text, picture, widget, file.

A result is plain data. It imports the drawing only when it is shown.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
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


class Result(ABC):
    """Plain data in attributes; ``print`` gives the text alternative, a notebook the picture."""

    @abstractmethod
    def figure(self) -> Figure:
        """Return the figure of this result: title, choices, frames."""

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
            FileNotFoundError: the folder does not exist.
            ValueError: unknown suffix, or a choice that the figure does not have.
            RuntimeError: ``.svg`` or ``.png`` without the Graphviz program ``dot``.
        """
        from .view.bundle import save

        return save(self.figure(), Path(path), choice)

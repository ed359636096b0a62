"""What every result of the lens can do: text, picture, widget, file.

A result is plain data. It imports the drawing only when it is shown.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .captions import Caption, Titled
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

    def titled(
        self,
        title: str,
        caption: Caption = None,
        *,
        opens_on: Mapping[str, Any] | None = None,
    ) -> Titled:
        """Return this result under a title of its own, best the question that it answers.

        Args:
            title: stands above the picture and the text.
            caption: what to see: a sentence, a mapping from value (such as the number of a step)
                to sentence, or a function that takes the choices as keywords and returns one.
                Where a mapping has no sentence, the result's own caption stays.
            opens_on: the value of each choice that the figure opens on: ``{"step": 3}``.

        Raises:
            TypeError: ``title`` or ``caption`` is of a wrong type.
            ValueError: the title is empty, or the figure has no such choice or value.
        """
        from .captions import Titled, refuse_untitled

        refuse_untitled(title)
        titled = Titled(self, title, caption, opens_on)
        titled.figure()  # what does not fit is said now, not when it is shown
        return titled

    def widget(self) -> Any:
        """Return the picture as a live ipywidget: the kernel draws each frame as it is chosen."""
        from .view.live import widget

        return widget(self.figure())

    def save(self, path: str | Path, /, **choice: Any) -> Path:
        """Write the picture to ``path``; its suffix decides: .svg, .png, .html or .txt.

        ``choice`` picks the frame of a figure that has several (``step=3``); without it the one
        that the figure opens on is written. An ``.html`` file holds all of them, with their
        controls, and needs nothing else. Returns the path.

        Raises:
            FileNotFoundError: the folder does not exist.
            ValueError: unknown suffix, or a choice that the figure does not have.
            RuntimeError: ``.svg`` or ``.png`` without the Graphviz program ``dot``.
        """
        from .view.bundle import save

        return save(self.figure(), Path(path), choice)

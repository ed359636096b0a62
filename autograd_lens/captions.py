"""What a reader should see in each state of a figure: sentences, apart from how they are drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .result import Result

if TYPE_CHECKING:
    from .view.figure import Figure

Caption = str | Mapping[Any, str] | Callable[..., str] | None
"""One sentence, one for each value of the only choice, or a function of the choices."""


def sentence(caption: Caption, chosen: Mapping[str, Any]) -> str:
    """The sentence for a combination of choices; empty where a mapping has none.

    Raises:
        TypeError: a function of the reader's does not return a text.
    """
    if caption is None or isinstance(caption, str):
        return caption or ""
    if isinstance(caption, Mapping):
        (value,) = chosen.values()
        return caption.get(value, "")
    said = caption(**chosen)
    if not isinstance(said, str):
        raise TypeError(f"caption must return a sentence, not {type(said).__name__}")
    return said


def refuse_untitled(title: Any) -> None:
    """Raise TypeError for a title that is no text, and ValueError for an empty one."""
    if not isinstance(title, str):
        raise TypeError(f"title must be a text, not {type(title).__name__}")
    if not title.strip():
        raise ValueError("the title is empty: ask the question that the figure answers")


def refuse_unfit(caption: Caption, values: Mapping[str, tuple[Any, ...]]) -> None:
    """Raise if a caption can't belong to a figure with these choices.

    Raises:
        TypeError: it is no text, mapping or function; or a mapping holds something else than texts.
        ValueError: a mapping for a figure with no choice or several, or with values it has not.
    """
    if caption is None or isinstance(caption, str) or callable(caption):
        return
    if not isinstance(caption, Mapping):
        raise TypeError(
            "caption must be a sentence, a mapping from value to sentence, or a function of the "
            f"choices, not {type(caption).__name__}"
        )
    if len(values) != 1:
        names = ", ".join(values) or "none"
        raise ValueError(
            f"a mapping of captions needs a figure with one choice; this one has {names}: "
            "give a function of the choices"
        )
    ((name, offered),) = values.items()
    for value, said in caption.items():
        if value not in offered:
            raise ValueError(f"caption has {value!r}, which is no value of {name}")
        if not isinstance(said, str):
            raise TypeError(f"the caption for {value!r} is a {type(said).__name__}, not a sentence")


def refuse_elsewhere(opens_on: Mapping[str, Any], values: Mapping[str, tuple[Any, ...]]) -> None:
    """Raise ValueError where a figure should open on what it does not offer."""
    for name, value in opens_on.items():
        if name not in values:
            raise ValueError(
                f"no choice {name!r} to open on; there is {', '.join(values) or 'none'}"
            )
        if value not in values[name]:
            raise ValueError(f"{name} has no value {value!r} to open on")


@dataclass(frozen=True, repr=False)
class Titled(Result):
    """A result with a title and sentences of its own; made by :meth:`Result.titled`.

    Attributes:
        result: what is shown.
        title: the title of the figure.
        caption: what to see in each state; None keeps the captions of the result.
        opens_on: the value of each choice that the figure opens on.
    """

    result: Result
    title: str
    caption: Caption = None
    opens_on: Mapping[str, Any] | None = None

    def figure(self) -> Figure:
        """Return the figure of the result under its new title."""
        from .view.draw_titled import figure

        return figure(self)

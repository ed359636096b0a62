"""A figure with a title and captions that were written for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..captions import Caption, Titled, refuse_elsewhere, refuse_unfit, sentence
from .figure import Choice, Figure, Frame
from .text import short_title


def figure(titled: Titled) -> Figure:
    """Return the figure of the result that has this title, opened where it should be."""
    inner = titled.result.figure()
    offered = {choice.name: choice.values for choice in inner.choices}
    refuse_unfit(titled.caption, offered)
    refuse_elsewhere(titled.opens_on or {}, offered)
    title = short_title(titled.title)

    def draw(**chosen: Any) -> Frame:
        return captioned(inner.draw(**chosen), titled.caption, chosen)

    return replace(
        inner,
        title=title,
        own_title=True,
        draw=draw,
        choices=opened(inner.choices, titled.opens_on or {}),
        head=f"{title}\n{inner.head}" if inner.head else title,
    )


def captioned(frame: Frame, caption: Caption, chosen: Mapping[str, Any]) -> Frame:
    """A frame with the sentence for these choices, in its text too; as it is where there is none.

    What stood in the caption's place moves behind the sentence.
    """
    said = sentence(caption, chosen)
    if not said:
        return frame
    numbers = " ".join(filter(None, (frame.caption, frame.numbers)))
    return replace(frame, caption=said, numbers=numbers, text=f"{said}\n{frame.text}")


def opened(choices: tuple[Choice, ...], opens_on: Mapping[str, Any]) -> tuple[Choice, ...]:
    """The choices, each of which opens on the value that is named for it."""
    return tuple(
        replace(choice, start=choice.values.index(opens_on[choice.name]))
        if choice.name in opens_on
        else choice
        for choice in choices
    )

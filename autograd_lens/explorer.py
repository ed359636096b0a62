"""A figure with controls, made from a function of the reader's.

The published page gets every combination of the choices, drawn in advance; a live notebook calls
the function for numbers outside the grid too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from math import prod
from typing import TYPE_CHECKING, Any

from .captions import Caption, refuse_elsewhere, refuse_unfit
from .printable import printable
from .result import MAX_FRAMES, Result, refuse_too_many

if TYPE_CHECKING:
    from .view.figure import Figure


@dataclass(frozen=True, repr=False)
class Explorer(Result):
    """A function drawn over a grid of choices.

    Attributes:
        draw: called with one keyword per choice; returns a view, or a text.
        choices: the values offered for each keyword: a tuple, a range, or a mapping to labels.
        caption: what to see in each state.
        labels: the name of a choice as a reader should see it, where that is not its keyword.
        opens_on: the value of a choice that the figure opens on, where that is not its first.
    """

    draw: Callable[..., Any]
    choices: dict[str, Any]
    caption: Caption = None
    labels: Mapping[str, str] = field(default_factory=dict)
    opens_on: Mapping[str, Any] = field(default_factory=dict)

    def figure(self) -> Figure:
        """Return one control per choice over the frames of the grid."""
        from .view.draw_explore import figure

        return figure(self)


def explore(
    draw: Callable[..., Any],
    /,
    *,
    caption: Caption = None,
    labels: Mapping[str, str] | None = None,
    opens_on: Mapping[str, Any] | None = None,
    **choices: Any,
) -> Explorer:
    """Return a figure that calls ``draw`` with the reader's choices.

    Args:
        draw: takes one keyword per choice and returns a still view of the lens (or a string). The
            first line of its docstring becomes the title, best the question that it answers.
        caption: what to see: a sentence, a mapping from value to sentence where there is one
            choice, or a function that takes the choices as keywords and returns a sentence.
        labels: how the page calls a choice whose keyword is not a good name:
            ``{"input_asks": "does the input require grad?"}``.
        opens_on: the value of a choice that the figure opens on; by default its first.
        choices: for each keyword, the values on the page. A ``range`` is stepped through like a
            film, other numbers (more than two) get a slider, anything else a menu. A mapping gives
            each value a label; one with the keys 0, 1, 2, … is a film too. Where a kernel runs, a
            slider has a box for any other number: whole numbers if all values are, floats
            otherwise. To let the reader break a mechanism, offer the broken variant as a value.

    Raises:
        TypeError: ``draw`` is not a function of these choices, a choice is not a collection of
            hashable values, or a caption or label is no text.
        ValueError: there is no choice, one without values or with two that are equal or look alike,
            or too many combinations; ``caption``, ``labels`` or ``opens_on`` names what is not
            there; a mapping of captions lacks a value.
    """
    if not callable(draw):
        raise TypeError(f"draw must be a function of the choices, not {type(draw).__name__}")
    choices = {name: _collected(name, values) for name, values in choices.items()}
    if not choices:
        raise ValueError("explore needs at least one choice, such as size=[1, 2, 4]")
    refuse_too_many(prod(map(len, choices.values())))
    _refuse_unfit(draw, choices)
    offered = {name: tuple(values) for name, values in choices.items()}
    refuse_unfit(caption, offered)
    refuse_elsewhere(opens_on or {}, offered)
    if isinstance(caption, Mapping):
        _refuse_silent(caption, choices)
    _refuse_labels(labels or {}, choices)
    return Explorer(draw, choices, caption, dict(labels or {}), dict(opens_on or {}))


def _refuse_silent(caption: Mapping[Any, str], choices: dict[str, Any]) -> None:
    """Raise ValueError for a value without a sentence: a reader would get there."""
    (values,) = choices.values()
    silent = [repr(value) for value in values if not caption.get(value, "").strip()]
    if silent:
        raise ValueError(f"caption has no sentence for {', '.join(silent)}")


def _refuse_labels(labels: Mapping[str, str], choices: dict[str, Any]) -> None:
    """Raise for a label of no choice, and for one that is no text."""
    if not isinstance(labels, Mapping):
        raise TypeError(f"labels must map choices to words, not be a {type(labels).__name__}")
    for name, word in labels.items():
        if name not in choices:
            raise ValueError(f"labels has {name!r}; the choices are {', '.join(choices)}")
        if not isinstance(word, str):
            raise TypeError(f"the label of {name} is a {type(word).__name__}, not a text")


def _refuse_unfit(draw: Callable[..., Any], choices: dict[str, Any]) -> None:
    """Raise TypeError if ``draw`` can't be called with these keywords."""
    try:
        signature = inspect.signature(draw)
    except (TypeError, ValueError):  # built in, and says nothing of itself
        return
    try:
        signature.bind(**dict.fromkeys(choices))
    except TypeError as error:
        names = ", ".join(choices)
        raise TypeError(f"draw is called with {names} as keywords, but: {error}") from None


def _collected(name: str, values: Any) -> Any:
    """The values as something that can be read more than once; a mapping and a range stay."""
    if hasattr(values, "tolist"):  # a tensor or an array: its numbers
        values = values.tolist()
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise TypeError(f"{name} must be a collection of values, not {values!r:.60}")
    if hasattr(values, "__len__"):
        refuse_too_many(len(values))
    endless = MAX_FRAMES + 1  # a generator may never stop
    kept = values if isinstance(values, (Mapping, range)) else tuple(islice(values, endless))
    if not kept:
        raise ValueError(f"the choice {name!r} has no values")
    for value in kept:
        if not isinstance(value, Hashable):
            raise TypeError(
                f"{name} has a value of type {type(value).__name__}, which can't be compared: "
                "offer names or numbers, and look the value up in draw"
            )
    _refuse_alike(name, kept)
    return kept


def _refuse_alike(name: str, values: Any) -> None:
    """Raise ValueError for two values that a frame can't be found by, or a reader can't tell."""
    words = values.values() if isinstance(values, Mapping) else values
    labels: dict[str, Any] = {}
    equal: dict[Any, Any] = {}
    for value, word in zip(values, words, strict=True):
        label = printable(str(word))
        for known, key, why in (equal, value, "are equal"), (labels, label, "look alike"):
            if key in known:
                raise ValueError(
                    f"the choice {name!r} has {known[key]!r} and {value!r}, which {why}: "
                    "offer names, and look the value up in draw"
                )
            known[key] = value

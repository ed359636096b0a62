"""The figure of an :class:`~autograd_lens.explorer.Explorer`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any

from ..explorer import Explorer
from ..result import Result
from .draw_titled import captioned, opened
from .figure import Choice, Figure, Frame
from .text import indent, short_name, short_title


def figure(explorer: Explorer) -> Figure:
    """Return the figure: one control per choice over the frames of the grid."""
    choices = tuple(
        replace(choice(name, values), word=explorer.labels.get(name, ""))
        for name, values in explorer.choices.items()
    )
    choices = opened(choices, explorer.opens_on)
    names = {axis.name: axis.title for axis in choices}
    labels = {axis.name: dict(zip(axis.values, axis.labels, strict=True)) for axis in choices}
    drawn: dict[tuple, Result | str] = {}

    def show(chosen: dict[str, Any]) -> Result | str:
        key = tuple(chosen.items())
        if key not in drawn:  # text, HTML and legend all ask; the reader's function runs once
            drawn[key] = explorer.draw(**chosen)
        return drawn[key]

    def draw(**chosen: Any) -> Frame:
        words = (f"{names[axis]} = {labels[axis].get(v, v)}" for axis, v in chosen.items())
        where = ", ".join(words)
        frame = captioned(_frame(show(chosen)), explorer.caption, chosen)
        return replace(frame, where=where, text=f"{where}\n{indent(frame.text, 2)}")

    still = Figure(short_title(title(explorer)), draw, choices, own_title=True)
    legend: dict[str, str] = {}
    for combination in still.grid():
        shown = show(combination)
        if isinstance(shown, Result):
            legend |= shown.figure().legend
    return replace(still, legend=legend)


def title(explorer: Explorer) -> str:
    """The first line of the function's docstring, or its name in words; a lambda has neither."""
    draw = explorer.draw
    while isinstance(draw, partial):  # its own docstring is that of partial
        draw = draw.func
    doc = (draw.__doc__ or "").strip().splitlines()
    name = getattr(draw, "__name__", type(draw).__name__)
    if name == "<lambda>":
        name = ", ".join(explorer.choices)
    return doc[0].rstrip(".") if doc else name.replace("_", " ")


def choice(name: str, values: Any) -> Choice:
    """How a choice is offered: a film, a slider or a menu."""
    offered = tuple(values)
    words = values.values() if isinstance(values, Mapping) else offered
    labels = tuple(short_name(str(word)) for word in words)
    named = isinstance(values, Mapping)
    if isinstance(values, range) or (named and offered == tuple(range(len(offered)))):
        return Choice(name, offered, "film", labels)
    numbers = all(isinstance(v, Real) and not isinstance(v, bool) for v in offered)
    if numbers and len(offered) > 2 and not named:
        return Choice(name, offered, "slider", labels, free=True)
    return Choice(name, offered, "menu", labels)


def _frame(shown: Any) -> Frame:
    if isinstance(shown, str):
        return Frame(shown)
    if not isinstance(shown, Result):
        raise TypeError(
            f"draw must return a view of the lens or a string, not {type(shown).__name__}"
        )
    inner = shown.figure()
    if inner.choices:
        raise TypeError("draw must return a still picture; this one has controls of its own")
    frame = inner.draw()
    return replace(frame, text=f"{inner.head}\n{frame.text}" if inner.head else frame.text)

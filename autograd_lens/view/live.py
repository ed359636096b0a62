"""A figure as live ipywidgets: the kernel draws each frame when it is asked for.

Only core controls that ipywidgets 7.7.1 (Colab) has too.
"""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets

from .figure import Choice, Figure, Frame
from .html import frame_parts, render_pictures, shell


def widget(figure: Figure) -> widgets.VBox:
    """Return a widget that calls ``figure.draw`` with what the reader chooses.

    Numbers outside the published grid are accepted where the choice is ``free``. If drawing fails,
    the error is shown in place of the picture and the controls stay usable.
    """
    picture = widgets.HTML(value=_frame_html(figure, _first(figure)))
    chosen = _first(figure)
    rows = []

    def choose(name: str, value: Any) -> None:
        chosen[name] = value
        picture.value = _frame_html(figure, chosen)

    for choice in figure.choices:
        rows += _controls(choice, choose)
    return widgets.VBox([widgets.HBox(rows, layout=widgets.Layout(flex_flow="row wrap")), picture])


def _first(figure: Figure) -> dict[str, Any]:
    return {choice.name: choice.values[0] for choice in figure.choices}


def _frame_html(figure: Figure, chosen: dict[str, Any]) -> str:
    try:
        frame = figure.draw(**chosen)
        svgs, advice = render_pictures([frame])
    except Exception as error:  # the reader's value, or the reader's own draw function
        frame = Frame(f"{type(error).__name__}: {error}", where="could not be drawn")
        svgs, advice = [""], f"{type(error).__name__}: {error}"
    return shell(figure, frame_parts(frame, svgs[0]), twins=[frame.twin], advice=advice)


def _controls(choice: Choice, choose: Any) -> list[widgets.Widget]:
    """The widgets of one choice; each tells ``choose`` of a new value."""

    def on_index(change: Any) -> None:
        choose(choice.name, choice.values[change["new"]])

    if choice.control == "menu":
        options = [(label, k) for k, label in enumerate(choice.labels)]
        made: list[widgets.Widget] = [widgets.Dropdown(options=options, description=choice.name)]
        made[0].observe(on_index, names="value")
    else:
        last = len(choice.values) - 1
        slider = widgets.SelectionSlider(
            options=[(label, k) for k, label in enumerate(choice.labels)], description=choice.name
        )
        if choice.control == "film":
            slider = widgets.IntSlider(min=0, max=last, description=choice.name, readout=False)
        slider.observe(on_index, names="value")
        made = [slider]
        if choice.control == "film":
            play = widgets.Play(min=0, max=last, interval=1300)
            widgets.jslink((play, "value"), (slider, "value"))
            made = [play, slider]
    if choice.free:
        box = widgets.FloatText(value=float(choice.values[0]), description="or any")
        box.observe(lambda change: choose(choice.name, change["new"]), names="value")
        made.append(box)
    return made

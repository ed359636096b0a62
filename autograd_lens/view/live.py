"""A figure as live ipywidgets: the kernel draws each frame when it is asked for.

Only core controls that ipywidgets 7.7.1 (Colab) has too, with the arguments that it has.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import ipywidgets as widgets

from .canvas import Stage
from .figure import Choice, Figure, Frame
from .html import frame_parts, render_pictures, shell

WHOLE_NAME = {"description_width": "initial"}  # otherwise a long name is cut


def widget(figure: Figure) -> widgets.VBox:
    """Return a widget that calls ``figure.draw`` with what the reader chooses.

    Numbers outside the published grid are accepted where the choice is ``free``. If drawing fails,
    the error is shown in place of the picture and the controls stay usable.
    """
    chosen = figure.opening
    draw = _Drawing(figure)
    picture = widgets.HTML(value=draw(chosen, False))
    # Not <details>: it would close with every new picture.
    as_text = widgets.Checkbox(value=False, description="as text", indent=False)

    def redraw(*_: Any) -> None:
        picture.value = draw(chosen, as_text.value)

    def choose(name: str, value: Any) -> None:
        chosen[name] = value
        redraw()

    as_text.observe(redraw, names="value")
    rows = [_Control(choice, choose).row for choice in figure.choices]
    return widgets.VBox([*rows, picture, as_text])


class _Drawing:
    """Draws frames of one figure. Its canvas never shrinks, so the page below stays where it is."""

    def __init__(self, figure: Figure):
        self.figure = figure
        self.canvas = Stage()

    def __call__(self, chosen: dict[str, Any], as_text: bool) -> str:
        """The HTML of the frame for a choice, or of the error that it raised."""
        try:
            frame = self.figure.draw(**chosen)
            (svg,), advice, self.canvas = render_pictures([frame], self.canvas)
        except Exception as error:  # the reader's value, or the reader's own draw function
            frame = Frame(f"{type(error).__name__}: {error}", where="could not be drawn")
            svg, advice = "", ""
        texts = [frame.text] if as_text or advice else []
        parts = frame_parts(frame, svg, self.canvas)
        return shell(self.figure, parts, texts=texts, advice=advice, opened=True, form="live")


class _Control:
    """The widgets of one choice, kept in step; each change tells ``choose`` once.

    A menu or a slider goes through the values by their position. Where any number may be chosen, a
    box shows the chosen one, and a number that is typed in joins the others at its place.
    """

    def __init__(self, choice: Choice, choose: Callable[[str, Any], None]):
        self.name, self.title, self.choose = choice.name, choice.title, choose
        self.values, self.labels = list(choice.values), list(choice.labels)
        self.following = False  # while one widget is set to what another shows
        self.box = self.label = self.play = None
        if choice.control == "menu":
            self.selector = widgets.Dropdown(
                options=self._options(),
                index=choice.start,
                description=choice.title,
                style=WHOLE_NAME,
            )
            self.position = "index"
        else:
            # Not SelectionSlider: in a page it does not see that it has got more values.
            self.selector = widgets.IntSlider(
                max=self._last(),
                value=choice.start,
                description=choice.title,
                style=WHOLE_NAME,
                readout=False,
            )
            self.position = "value"
        self.selector.observe(self._selected, names=self.position)
        made: list[widgets.Widget] = self._film() if choice.control == "film" else [self.selector]
        if choice.free:
            made.append(self._box(choice.values[choice.start]))
        elif choice.control != "menu":
            self.label = widgets.Label(value=self.labels[choice.start])
            made.insert(made.index(self.selector) + 1, self.label)
        self.row = widgets.HBox(made, layout=widgets.Layout(flex_flow="row wrap"))

    def _options(self) -> list[tuple[str, int]]:
        return [(label, k) for k, label in enumerate(self.labels)]

    def _last(self) -> int:
        return len(self.values) - 1

    def _place(self) -> int:
        return getattr(self.selector, self.position)

    def _go(self, place: int) -> None:
        setattr(self.selector, self.position, min(max(place, 0), self._last()))

    def _film(self) -> list[widgets.Widget]:
        """The slider with buttons around it, as on a page."""
        slim = widgets.Layout(width="44px")
        back = widgets.Button(description="‹", tooltip=f"previous {self.title}", layout=slim)
        forth = widgets.Button(description="›", tooltip=f"next {self.title}", layout=slim)
        back.on_click(lambda _: self._go(self._place() - 1))
        forth.on_click(lambda _: self._go(self._place() + 1))
        self.play = widgets.Play(min=0, max=self._last(), value=self.selector.value, interval=1300)
        widgets.jslink((self.play, "value"), (self.selector, "value"))
        return [back, self.selector, forth, self.play]

    def _box(self, value: Any) -> widgets.Widget:
        whole = all(isinstance(value, Integral) for value in self.values)
        self.number, kind = (int, widgets.IntText) if whole else (float, widgets.FloatText)
        self.box = kind(
            value=self.number(value),
            description=f"or any {self.title}",
            style=WHOLE_NAME,
            layout=widgets.Layout(width="220px"),
        )
        self.box.observe(self._typed, names="value")
        return self.box

    def _selected(self, change: Any) -> None:
        if self.following:
            return
        value = self.values[change["new"]]
        if self.label is not None:
            self.label.value = self.labels[change["new"]]
        if self.box is not None:
            self.following = True
            self.box.value = self.number(value)
            self.following = False
        self.choose(self.name, value)

    def _typed(self, change: Any) -> None:
        if self.following:
            return
        value = self.number(change["new"])
        self.following = True
        if value not in self.values:
            self._insert(value)
        self._go(self.values.index(value))
        self.following = False
        self.choose(self.name, self.values[self._place()])

    def _insert(self, value: Any) -> None:
        """Put a number among the values, which rise or fall."""
        rising = self.values[0] <= self.values[-1]
        place = sum((known < value) == rising for known in self.values)
        self.values.insert(place, value)
        self.labels.insert(place, str(value))
        with self.selector.hold_sync():  # one message: a position means nothing without the values
            if self.position == "index":
                self.selector.options = self._options()
            else:
                self.selector.max = self._last()
            self._go(place)
        if self.play is not None:
            self.play.max = self._last()

"""The intermediate form between data and its renderings.

A figure is a grid of frames: one choice per axis, one frame per combination. A film has one choice,
its steps; a still picture has none. Text, HTML and widgets are all made from this.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import islice, product
from numbers import Real
from typing import Any

from ..printable import LINES, printable
from .canvas import Canvas, Stage
from .text import short_name


class ProgramMissing(RuntimeError):
    """A program that draws is not installed; the message says in one line what to install."""


class Picture(ABC):
    """Something that can be drawn. A new way of drawing is a new subclass.

    A subclass may have a field ``wide``: the same facts as a picture of the same class, laid out
    for a wide stage (:data:`~autograd_lens.view.canvas.WIDE`). Where that is None, one layout
    serves every width.
    """

    wide: Picture | None = None

    @abstractmethod
    def svg(self) -> str:
        """A complete SVG in the light theme's colours, as for a file.

        Raises:
            ProgramMissing: a program that draws it is missing.
        """

    @abstractmethod
    def png(self) -> bytes:
        """The same as PNG, at twice its natural size. Raises as :meth:`svg` does."""

    @classmethod
    def svgs(cls, pictures: Sequence[Picture]) -> list[str]:
        """The SVGs of several pictures of this class; override where a batch is cheaper."""
        return [picture.svg() for picture in pictures]

    @classmethod
    def stage(cls, narrow: Canvas, wide: Canvas) -> Stage:
        """The stage of a figure whose pictures of this class offer a wide layout.

        ``narrow`` and ``wide`` hold every frame of it. Both grow with the room that they have.
        """
        return Stage(narrow.grown(), wide.grown())

    @property
    def alone(self) -> Picture:
        """The layout for a file, which no stage makes narrow."""
        return self.wide or self

    @classmethod
    def markups(cls, pictures: Sequence[Picture]) -> list[str] | None:
        """What a page shows instead of the SVGs, as HTML; None where it shows the SVGs."""
        return None


class Shown:
    """Made of texts that can be shown: see :mod:`autograd_lens.printable`."""

    def __post_init__(self) -> None:
        for one in fields(self):
            text = getattr(self, one.name)
            if isinstance(text, str):
                object.__setattr__(self, one.name, printable(text, LINES))


@dataclass(frozen=True)
class Meter(Shown):
    """A bar above the picture: ``value`` of ``total``, named by ``label``."""

    label: str
    value: float
    total: float


@dataclass(frozen=True)
class Frame(Shown):
    """What a figure shows for one combination of choices.

    Attributes:
        text: the text alternative: the same facts, compared in CI and read by screen readers.
        paint: makes the picture; called only when it is shown. None where there is nothing to draw.
        where: a few words before the caption: which frame this is.
        caption: a sentence that says what to see.
        numbers: sums, after the sentence and fainter.
        meter: an optional bar.
        notes: what is told of a box that a reader points to, by the box's first line of text.
    """

    text: str
    paint: Callable[[], Picture] | None = field(default=None, compare=False)
    where: str = ""
    caption: str = ""
    numbers: str = ""
    meter: Meter | None = None
    notes: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def picture(self) -> Picture | None:
        """The picture, made when it is first asked for."""
        return None if self.paint is None else self.paint()


@dataclass(frozen=True)
class Choice:
    """One axis of a figure.

    Attributes:
        name: the keyword under which ``draw`` receives the value.
        values: the values on the published page, in order.
        control: ``"film"`` (slider with previous, next and play), ``"slider"`` or ``"menu"``.
        labels: one text per value; by default the value itself.
        free: in a live notebook, numbers that are not among ``values`` may be typed in.
        word: the name as a reader should see it; by default ``name``.
        start: the position of the value that the figure opens on.
    """

    name: str
    values: tuple[Any, ...]
    control: str = "menu"
    labels: tuple[str, ...] = ()
    free: bool = False
    word: str = ""
    start: int = 0

    def __post_init__(self) -> None:
        if not self.values:
            raise ValueError(f"the choice {self.name!r} has no values")
        if self.control not in ("film", "slider", "menu"):
            raise ValueError(f"control must be film, slider or menu, not {self.control!r}")
        if self.free and not all(isinstance(v, Real) for v in self.values):
            raise ValueError(f"the choice {self.name!r} is free, so its values must be numbers")
        if not self.labels:
            object.__setattr__(self, "labels", tuple(str(value) for value in self.values))
        object.__setattr__(self, "labels", tuple(map(printable, self.labels)))
        if not 0 <= self.start < len(self.values):
            raise ValueError(f"start must be a position in {len(self.values)} values")
        if len(self.labels) != len(self.values):
            raise ValueError(f"{len(self.values)} values but {len(self.labels)} labels")

    @property
    def title(self) -> str:
        """The name as it is shown."""
        return short_name(printable(self.word or self.name))


@dataclass(frozen=True)
class Figure(Shown):
    """A drawable whole: everything that text, HTML and widgets need.

    Attributes:
        title: what it shows, best as a question that it answers; the accessible name.
        draw: called with one keyword per choice, returns the :class:`Frame`.
        choices: the axes of the grid; none for a still picture.
        legend: roles of :mod:`~autograd_lens.view.theme` that the pictures use, with their words.
        head: the first lines of the text, above the frames.
        variants: the frames after the first are ways to look closer. They are left out of the
            printed text, and each has a canvas of its own size.
        own_title: the title was chosen for this figure; it is not that of its kind.
    """

    title: str
    draw: Callable[..., Frame]
    choices: tuple[Choice, ...] = ()
    legend: Mapping[str, str] = field(default_factory=dict)
    head: str = ""
    variants: bool = False
    own_title: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        shown = {role: printable(words) for role, words in self.legend.items()}
        object.__setattr__(self, "legend", shown)

    def grid(self) -> Iterator[dict[str, Any]]:
        """Every combination of choices; the last choice varies fastest."""
        for values in product(*(choice.values for choice in self.choices)):
            yield {choice.name: value for choice, value in zip(self.choices, values, strict=True)}

    @property
    def opening(self) -> dict[str, Any]:
        """The combination of choices that the figure opens on."""
        return {choice.name: choice.values[choice.start] for choice in self.choices}

    def frames(self) -> list[Frame]:
        """Every frame, in the order of :meth:`grid`."""
        return [self.draw(**combination) for combination in self.grid()]

    def text(self) -> str:
        """The text alternative of the whole figure; makes no picture."""
        parts = [self.head] if self.head else []
        shown = islice(self.grid(), 1 if self.variants else None)
        return "\n".join(parts + [self.draw(**combination).text for combination in shown])

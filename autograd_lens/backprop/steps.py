"""What a recorded backward was, as data: steps, gradients, and what they wrote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..graphs.grad_graph import GradGraph
from ..result import Result
from .gradient import Gradient

if TYPE_CHECKING:
    from ..view.figure import Figure


@dataclass(frozen=True, slots=True)
class Written:
    """A ``.grad`` that a step wrote.

    Attributes:
        name: of the tensor.
        how: ``"stolen"`` (``.grad`` has the memory of the incoming tensor), ``"copied"`` (it has
            memory of its own), ``"added in place"``, ``"added out of place"`` (a new tensor
            replaced it), ``"retained"`` (of an intermediate, by ``retain_grad``), ``"taken by a
            hook"`` (a post-accumulate hook removed it again), ``"left alone"`` (no gradient
            arrived), ``"beside another thread"`` (which accumulated into it at the same time).
            Read after post-accumulate hooks: one that puts a tensor of its own into ``.grad``
            makes it look copied.
        grad: the value of ``.grad`` after the step, None if there is none. What other threads
            accumulated until then is part of it.
    """

    name: str
    how: str
    grad: Gradient | None


@dataclass(frozen=True, slots=True)
class BackwardStep:
    """One node that ran.

    Attributes:
        number: 1, 2, … in the order of the engine.
        node: index of the node in ``recording.graph``.
        label: what the graph calls it.
        incoming: one gradient per output of the node's operation; None where none arrived.
        outgoing: one gradient per input, as the node sends it on: in the shape of the input, also
            where the operation broadcast it, and after the reader's hooks on the node. None where
            there is none.
        saved_bytes: bytes that saved tensors of the whole graph still held after this step.
        freed: fields of this node whose tensor it freed.
        written: the ``.grad`` fields it wrote.
    """

    number: int
    node: int
    label: str
    incoming: tuple[Gradient | None, ...]
    outgoing: tuple[Gradient | None, ...]
    saved_bytes: int
    freed: tuple[str, ...]
    written: tuple[Written, ...]


@dataclass(frozen=True, repr=False)
class BackwardRecording(Result):
    """A backward, step by step.

    Attributes:
        graph: the graph as it was before.
        steps: every node that ran, in order.
        saved_bytes: bytes that saved tensors held before the first step.
    """

    graph: GradGraph
    steps: tuple[BackwardStep, ...]
    saved_bytes: int

    def figure(self) -> Figure:
        """Return the film: one frame before the backward, one for each step."""
        from ..view.draw_backward import figure

        return figure(self)

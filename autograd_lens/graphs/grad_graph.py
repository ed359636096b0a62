"""The graph behind a tensor: the verb ``lens.graph`` and its result.

Not visible from Python, and therefore not here: hooks registered on a node itself or in C++ (DDP's
reducer), the node inside ``CopySlices``, what ``_foreach_*`` nodes save, and the graph that a
re-entrant checkpoint will build during backward.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..result import Result
from ..saving.recorder import SavedRecorder, checked
from .reading import read
from .record import Edge, Node, Reading, Storage

if TYPE_CHECKING:
    from ..view.figure import Figure

Group = Callable[[Node], Hashable]

MANY = 60
"""A graph of more nodes is drawn by module where a Module was given."""


@dataclass(frozen=True)
class Shown:
    """How a graph is drawn; no part of what was read.

    Attributes:
        max_nodes: how many boxes the picture shows before it folds the middle; None shows all.
        group: the function that joins nodes in the picture, ``"module"``, or None.
        depth: levels of modules that are boxes of their own; None finds it.
    """

    max_nodes: int | None = None
    group: Group | str | None = None
    depth: int | None = None


@dataclass(frozen=True, repr=False)
class GradGraph(Result):
    """The graph reachable from some outputs. Keeps no node, no tensor and no gradient.

    Bytes are those of whole storages.

    Attributes:
        reading: everything that was read of it.
        shown: how it is drawn.
    """

    reading: Reading
    shown: Shown = Shown()

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All of them, in engine order."""
        return self.reading.nodes

    @property
    def edges(self) -> tuple[Edge, ...]:
        """All of them, in order of source and slot."""
        return self.reading.edges

    @property
    def storages(self) -> tuple[Storage, ...]:
        """The storages of saved tensors and leaves, by number."""
        return self.reading.storages

    @property
    def plain_outputs(self) -> int:
        """How many of the given outputs have no graph."""
        return self.reading.plain_outputs

    @property
    def unreached(self) -> tuple[str, ...]:
        """Names of the Module's parameters that require grad and are not in the graph."""
        return self.reading.unreached

    @property
    def leaves(self) -> tuple[Node, ...]:
        """The nodes that write a ``.grad``."""
        return tuple(node for node in self.nodes if node.kind == "leaf")

    @cached_property
    def saved_bytes(self) -> int:
        """Bytes of all storages that saved tensors of ``nodes`` keep alive, each counted once."""
        held = {n for node in self.nodes for saved in node.saved for n in saved.storages}
        return sum(self.storages[number].bytes for number in held)

    def fan_out(self, index: int) -> int:
        """Number of edges that leave the node ``index``; 0 for an index without a node."""
        return self._fan_out[index]

    @cached_property
    def shared_storages(self) -> frozenset[int]:
        """Storages that several nodes hold: a leaf its own, an operation those of what it saved."""
        holders: Counter[int] = Counter()
        for node in self.nodes:
            held = {number for saved in node.saved for number in saved.storages}
            holders.update(held.union(node.leaf.storages if node.leaf else ()))
        return frozenset(number for number, nodes in holders.items() if nodes > 1)

    @cached_property
    def _fan_out(self) -> Counter[int]:
        return Counter(edge.source for edge in self.edges)

    @cached_property
    def depth(self) -> int:
        """Number of nodes on the longest path."""
        depth = [1] * len(self.nodes)
        for edge in self.edges:
            depth[edge.target] = max(depth[edge.target], depth[edge.source] + 1)
        return max(depth)

    def figure(self) -> Figure:
        """Return the picture of the graph."""
        from ..view.draw_graph import figure

        return figure(self)

    def to_dot(self) -> str:
        """Return the picture as Graphviz source, folded as it is shown."""
        from ..view.graph_dot import source

        return source(self)


def graph(
    outputs: Any,
    names: Any = None,
    *,
    max_nodes: int | None = 200,
    group: Group | str | bool | None = None,
    depth: int | None = None,
    recorder: SavedRecorder | None = None,
) -> GradGraph:
    """Read the graph behind ``outputs`` and return it as data that shows itself.

    Nothing is run: no hook, no recomputation, no gradient. A graph of more than 500 levels gets
    marks in the ``metadata`` of some nodes, without which freeing it could crash (see
    :mod:`autograd_lens.graphs.deallocation`).

    Rests on ``torch/csrc/autograd/node.h`` and ``engine.h`` (the order of nodes),
    ``saved_variable.cpp`` (saved tensors), and ``tools/autograd/derivatives.yaml`` (formulas).

    Args:
        outputs: a tensor, a ``grad_fn``, or any pytree of them; tensors without a graph are
            counted and passed over.
        names: names for tensors: a ``torch.nn.Module`` or a mapping from name to tensor. A leaf is
            shown under its name, an intermediate tensor beside the node that made it.
        max_nodes: the picture and the text show at most so many nodes and fold the rest of the
            middle into one; ``nodes`` and ``edges`` are always complete. None folds nothing.
        group: ``"module"`` draws the nodes of each module as one box, which opens by click or key;
            equal modules in a row are one box with their number. A function from a :class:`Node`
            to a key draws nodes with the same key (other than None) as one. Without it, a graph of
            more than 60 nodes is drawn by module if a Module was given; False draws each node.
        depth: levels of modules that are boxes of their own: 2 makes ``layers.0`` of
            ``layers.0.mlp``. Without it, as many as still make few boxes.
        recorder: the ``lens.record_saved`` under which the forward ran: what opaque nodes saved,
            and which module made which node.

    Raises:
        TypeError: ``outputs`` holds neither tensor nor node, or an argument has the wrong type.
        ValueError: no output has a graph; the message says why, as far as that can be known. Or
            ``group="module"`` without a Module.
        LensUnsupported: this PyTorch lacks something that the lens reads.
    """
    if max_nodes is not None and (not isinstance(max_nodes, int) or max_nodes < 2):
        raise TypeError(f"max_nodes must be an integer of at least 2, or None, not {max_nodes!r}")
    if not (group in (None, False, "module") or callable(group)):
        raise TypeError(
            f'group must be a function from a node to a key, "module" or False, not {group!r:.60}'
        )
    if depth is not None and (type(depth) is not int or depth < 1):
        raise TypeError(f"depth must be an integer of at least 1, or None, not {depth!r}")
    reading = read(outputs, names, (), checked(recorder))
    if group == "module" and not reading.modules:
        raise ValueError('group="module" needs the model: graph(outputs, model)')
    if group is None and reading.modules and (depth or len(reading.nodes) > MANY):
        group = "module"
    return GradGraph(reading, Shown(max_nodes, group or None, depth))

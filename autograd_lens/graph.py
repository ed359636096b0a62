"""The graph behind a tensor, as data.

Knows nodes, edges and what each node saved, at the moment of the call. Keeps no node, no tensor
and no gradient: a :class:`GradGraph` can be held while the graph it shows is spent and freed.

Not visible from Python, and therefore not here: hooks registered on a node itself or in C++ (DDP's
reducer), the node inside ``CopySlices``, what ``_foreach_*`` nodes save, and the graph that a
re-entrant checkpoint will build during backward.

Rests on ``torch/csrc/autograd/node.h`` and ``edge.h``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .base import View
from .capture import Captured, capture, find_roots
from .names import Names
from .node import Edge, Node


@dataclass(frozen=True, repr=False)
class GradGraph(View):
    """The graph reachable from some outputs.

    Attributes:
        nodes: all of them, in engine order. edges: all of them, in order of source and slot.
        storage_bytes: size in bytes of each storage met, by its number.
        storage_names: the reader's name for a tensor in that storage, or the leaf's label; by
            number, only where there is one.
        plain_outputs: how many of the given outputs have no graph.
        max_nodes: how many nodes the picture shows before it folds the middle; None shows all.
        group: the function that joins nodes in the picture, or None.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    storage_bytes: tuple[int, ...]
    storage_names: Mapping[int, str]
    plain_outputs: int
    max_nodes: int | None
    group: Callable[[Node], Hashable] | None

    @classmethod
    def of(
        cls,
        captured: Captured,
        plain_outputs: int = 0,
        max_nodes: int | None = None,
        group: Callable[[Node], Hashable] | None = None,
    ) -> GradGraph:
        """The graph that was captured, without its live nodes."""
        return cls(
            captured.nodes,
            captured.edges,
            captured.storage_bytes,
            captured.storage_names,
            plain_outputs,
            max_nodes,
            group,
        )

    @property
    def leaves(self) -> tuple[Node, ...]:
        """The nodes that write a ``.grad``."""
        return tuple(node for node in self.nodes if node.kind == "leaf")

    @property
    def saved_bytes(self) -> int:
        """Bytes of all storages that saved tensors keep alive, each storage counted once."""
        held = {n for node in self.nodes for saved in node.saved for n in saved.storages}
        return sum(self.storage_bytes[number] for number in held)

    def fan_out(self, index: int) -> int:
        """Number of edges that leave the node ``index``."""
        return self._fan_out[index]

    @cached_property
    def _fan_out(self) -> Counter[int]:
        return Counter(edge.source for edge in self.edges)

    @property
    def depth(self) -> int:
        """Number of nodes on the longest path."""
        depth = [1] * len(self.nodes)
        for edge in self.edges:
            depth[edge.target] = max(depth[edge.target], depth[edge.source] + 1)
        return max(depth)

    def to_dot(self) -> str:
        """Return the picture as Graphviz source (folded as ``max_nodes`` and ``group`` say)."""
        from .view.graph_dot import source

        return source(self)


def graph(
    outputs: Any,
    names: Any = None,
    *,
    max_nodes: int | None = 200,
    group: Callable[[Node], Hashable] | None = None,
) -> GradGraph:
    """Read the graph behind ``outputs`` and return it as data that shows itself.

    Nothing is run: no hook, no recomputation, no gradient. A graph of more than 500 levels gets
    marks in the ``metadata`` of some nodes, without which freeing it could crash (see
    :mod:`autograd_lens.walk`).

    Args:
        outputs: a tensor, a ``grad_fn``, or any pytree of them; tensors without a graph are
            counted and passed over.
        names: names for tensors: a ``torch.nn.Module`` or a mapping from name to tensor. A leaf is
            shown under its name, an intermediate tensor beside the node that made it.
        max_nodes: the picture and the text show at most so many nodes and fold the rest of the
            middle into one; ``nodes`` and ``edges`` are always complete. None folds nothing.
        group: a function from a :class:`Node` to a key. Nodes with the same key (other than None)
            are drawn as one.

    Raises:
        TypeError: ``outputs`` holds neither tensor nor node, or an argument has the wrong type.
        ValueError: no output has a graph; the message says why, as far as that can be known.
    """
    if max_nodes is not None and (not isinstance(max_nodes, int) or max_nodes < 2):
        raise TypeError(f"max_nodes must be an integer of at least 2, or None, not {max_nodes!r}")
    if group is not None and not callable(group):
        raise TypeError(f"group must be a function from a node to a key, not {group!r:.60}")
    known = Names(names)
    roots, plain = find_roots(outputs)
    return GradGraph.of(capture(roots, known), len(plain), max_nodes, group)

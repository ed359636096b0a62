"""Guesses which module a node belongs to, from the parameters and buffers that nodes use.

A node does not know the module that ran it. What is known: the owner of each parameter, the nodes
that use it, directly or through views and casts of it (a transposed weight), and the nodes that
saved a parameter or buffer of the model, frozen or not. Every other node lies between such nodes,
some towards its inputs and some towards its output. It belongs to the innermost module that
contains all of these. So a residual sum between two blocks belongs to what holds both blocks, and
whatever comes before the first or after the last parameter belongs to the model itself.

This is a guess: an operation without parameters may be placed further out than where it ran, and,
between two uses of the same module, further in. A weight that two modules share belongs to both:
``"a = b"``. Under ``lens.record_saved`` the modules are recorded instead, and exact.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from .links import Edges

Paths = frozenset[str]

_PASSES_ON = re.compile(
    r"(T|Transpose|Permute|View|UnsafeView|ReshapeAlias|ToCopy|Alias|Expand|Unsqueeze|Squeeze|"
    r"Slice|Select|Split|Clone)Backward\d+"
)
"""Nodes that hand on a parameter as it is: what uses their result uses the parameter."""


def modules_by_node(
    names: Sequence[str],
    edges: Edges,
    leaf_names: Mapping[int, Sequence[str]],
    saved_names: Mapping[int, Sequence[str]],
) -> list[str]:
    """Return the module path of every node.

    Args:
        names: of all nodes.
        edges: of all nodes, in engine order: an edge leads to a larger number.
        leaf_names: by number of a leaf, the names of its parameter (several if tied).
        saved_names: by number of a node, the names of parameters and buffers that it saved.
    """
    count = len(names)
    owners = _owners(names, edges, leaf_names, saved_names)
    inner = [common(paths) if paths else None for paths in owners]
    below, above = list(inner), [None] * count
    for node in reversed(range(count)):
        if inner[node] is None:
            for target, _ in edges.of(node):
                if target >= 0:
                    below[node] = _both(below[node], below[target])
    paths = []
    for node in range(count):
        around = above[node] if inner[node] is None else inner[node]
        for target, _ in edges.of(node):
            if target >= 0:
                above[target] = _both(above[target], around)
        if owners[node]:
            paths.append(" = ".join(sorted(owners[node])))
        elif below[node] is not None and above[node] is not None:
            paths.append(_both(below[node], above[node]))
        else:
            paths.append("")
    return paths


@lru_cache(4096)
def _both(one: str | None, other: str | None) -> str | None:
    """The innermost module that holds both, where None is no module at all."""
    if one is None or other is None:
        return one if other is None else other
    return common(frozenset((one, other)))


def _owners(
    names: Sequence[str],
    edges: Edges,
    leaf_names: Mapping[int, Sequence[str]],
    saved_names: Mapping[int, Sequence[str]],
) -> list[Paths]:
    """The modules whose parameters or buffers a node uses; empty where it uses none."""
    owners: list[Paths] = [frozenset()] * len(names)
    is_parameter = [False] * len(names)
    for node in reversed(range(len(names))):
        if node in leaf_names:
            owners[node] = _paths(leaf_names[node])
            is_parameter[node] = True
            continue
        used = [owners[t] for t, _ in edges.of(node) if t >= 0 and is_parameter[t]]
        if used:
            is_parameter[node] = _PASSES_ON.fullmatch(names[node]) is not None
        if node in saved_names:
            used.append(_paths(saved_names[node]))
        if used:
            agreed = frozenset.intersection(*used)
            owners[node] = agreed or frozenset([common(frozenset().union(*used))])
    return owners


def _paths(names: Sequence[str]) -> Paths:
    return frozenset(name.rpartition(".")[0] for name in names)


def common(paths: Paths) -> str:
    """The innermost module that holds all of ``paths``, or is one of them."""
    split = [path.split(".") if path else [] for path in paths]
    shortest = min(split, key=len)
    for depth, part in enumerate(shortest):
        if any(other[depth] != part for other in split):
            return ".".join(shortest[:depth])
    return ".".join(shortest)

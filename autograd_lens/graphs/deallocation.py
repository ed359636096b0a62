"""Guards that let a deep graph be freed without a deep recursion.

Since torch 2.13 a node owns its Python wrapper. So freeing a chain whose nodes Python has seen goes
through one nested deallocation for each node, and overflows the C stack at about 40,000 nodes
(4,000 on a 1 MB stack). A guard sits in the ``metadata`` of a node and holds the nodes where the
next band of the graph begins. When its node dies, ``__del__`` takes them over and the recursion
ends there; the outermost guard frees band after band in a loop. Nothing lives longer than it would
have: the held nodes can be reached from the guarded one anyway.
"""

from __future__ import annotations

import threading
from typing import Any

from .links import Edges

BAND = 500
"""Levels between two guards. A level costs 200 to 270 bytes of C stack when a graph is freed on
torch 2.13, and a thread may have as little as 512 kB."""


class Guard:
    """Frees the nodes that it holds when it dies, band by band, in the thread where it dies."""

    __slots__ = ("held",)
    _here = threading.local()

    def __init__(self, held: list[Any]):
        self.held = held

    def __del__(self) -> None:
        here = self._here
        held = self.held
        del self.held
        if hasattr(here, "waiting"):
            here.waiting.append(held)
            return
        here.waiting = [held]
        try:
            while here.waiting:
                held = here.waiting.pop()
                while held:
                    held.pop()
        finally:
            del here.waiting


def lay_guards(live: list[Any], edges: Edges, depth: list[int]) -> None:
    """Lay guards so that a path from one to the next has at most about ``BAND`` nodes.

    A node is an anchor when an edge reaches it from an earlier band. Each guarded node (those on
    top and the anchors) holds the anchors that can be reached first from it.
    """
    held: dict[int, dict[int, None]] = {k: {} for k, level in enumerate(depth) if level == 0}
    owners: dict[int, dict[int, None]] = {k: {k: None} for k in held}
    for number in range(len(live)):
        mine = owners.pop(number, {})
        band = depth[number] // BAND
        for target, _ in edges.of(number):
            if target < 0 or edges.bounds[target] == edges.bounds[target + 1]:
                continue  # a leaf frees nothing
            if depth[target] // BAND > band:
                held.setdefault(target, {})
                owners[target] = {target: None}
                for owner in mine:
                    held[owner][target] = None
            elif target not in held:
                owners.setdefault(target, {}).update(mine)
    for number, anchors in held.items():
        if anchors:
            live[number].metadata["autograd_lens.guard"] = Guard([live[k] for k in anchors])

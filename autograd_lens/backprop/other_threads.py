"""What other threads do with the nodes of a graph while its backward is recorded.

The ``AccumulateGrad`` node of a leaf belongs to every graph that uses the leaf. Other threads may
run it in backwards of their own. The rest of a graph belongs to one backward. Another thread that
runs that part, too, can free saved tensors at any moment.

Not seen: a thread that changes ``.grad`` without a backward (``zero_grad``, an optimizer).
"""

from __future__ import annotations

import threading


class OtherThreads:
    """Takes calls of hooks that come from other threads.

    Every step is one operation on a set, which no other thread can interrupt.

    Attributes:
        shared: nodes that another thread ran although they are no leaf's.
    """

    def __init__(self) -> None:
        self.shared: set[int] = set()
        self._there: set[tuple[int, int]] = set()
        self._came: set[int] = set()

    def come(self, index: int) -> None:
        """Note that the calling thread, which is not the recorded one, begins a node."""
        self._there.add((index, threading.get_ident()))
        self._came.add(index)

    def go(self, index: int) -> None:
        """Note that the calling thread, which is not the recorded one, has run a node."""
        self._there.discard((index, threading.get_ident()))
        self._came.add(index)

    def none_at(self, index: int) -> bool:
        """Whether no other thread is running this node; :meth:`came_to` counts from here on."""
        self._came.discard(index)
        return all(node != index for node, _ in self._there.copy())

    def came_to(self, index: int) -> bool:
        """Whether another thread began or ended this node since :meth:`none_at` was asked."""
        return index in self._came

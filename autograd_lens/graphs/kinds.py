"""What kind of node a node is: decided here, and nowhere else."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from .. import _torch

_EMPTY = re.compile(
    r"(torch::autograd::)?(Copy|Identity|GraphRoot|UndefinedGrad|(Warn)?NotImplemented|(Delayed)?Error"
    r"|Scatter|Gather)(Backwards?)?$"
)
"""C++ nodes without fields that save no tensor. Of any other it is not known: ``CopySlices``, those
of ``_foreach_*``, of C++ extensions and of TorchScript do save some, and don't show them."""


def kind_of(node: Any) -> str:
    """The kind of a live node: ``"op"``, ``"leaf"``, ``"custom"``, ``"compiled"``, ``"opaque"``."""
    kind = type(node)
    if _torch.is_python(kind):  # such a class comes and goes: not to be kept in a table
        return "compiled" if kind.__name__ == "CompiledFunctionBackward" else "custom"
    word = _cpp_kind(kind)
    if word == "opaque":  # one class for many
        return "op" if _EMPTY.match(node.name()) else "opaque"
    return word


@cache
def _cpp_kind(kind: type) -> str:
    special = {"AccumulateGrad": "leaf", "CopySlices": "opaque", "CppFunction": "opaque"}
    return special.get(kind.__name__, "op")


def is_in_place_on_view(name: str) -> bool:
    """True for the name of a ``CopySlices``, which a write into a view leaves."""
    return name.endswith("CopySlices")


def saves_through_hooks(name: str) -> bool:
    """True for opaque nodes of PyTorch's own operations: a recorder can see what they save.

    Of nodes of C++ extensions and of TorchScript it is not known what they keep besides.
    """
    return is_in_place_on_view(name) or "Foreach" in name

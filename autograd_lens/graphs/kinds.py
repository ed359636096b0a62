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
"""C++ nodes without fields that save no tensor. Others without fields may save some and not show
them: ``CopySlices``, and the nodes of ``_foreach_*``, of C++ extensions and of TorchScript."""


def kind_of(node: Any) -> str:
    """The kind of a live node: ``"op"``, ``"leaf"``, ``"custom"``, ``"compiled"``, ``"opaque"``."""
    kind = type(node)
    if _torch.is_python(kind):  # a cache would keep such a class alive
        return "compiled" if kind.__name__ == "CompiledFunctionBackward" else "custom"
    word = _cpp_kind(kind)
    if word == "opaque":  # many kinds of nodes share this class
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

    Nodes of C++ extensions and of TorchScript may keep more than what passes through hooks.
    """
    return is_in_place_on_view(name) or "Foreach" in name

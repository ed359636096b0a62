"""The operations that most readers look for first: what models are written with.

A choice, made by hand: everybody who has trained a network has called these, and the alphabet would
begin with ``H``, ``T`` and ``__getitem__``. A name that an op database lacks is passed over.
"""

from __future__ import annotations

from collections.abc import Sequence

from .rows import Row

COMMON = (
    "add",
    "sub",
    "mul",
    "div.no_rounding_mode",
    "pow",
    "exp",
    "log",
    "sqrt",
    "sum",
    "mean",
    "matmul",
    "mm",
    "bmm",
    "einsum",
    "nn.functional.linear",
    "nn.functional.conv2d",
    "nn.functional.relu",
    "sigmoid",
    "tanh",
    "nn.functional.gelu",
    "nn.functional.silu",
    "softmax",
    "log_softmax",
    "nn.functional.cross_entropy",
    "nn.functional.mse_loss",
    "nn.functional.layer_norm",
    "nn.functional.batch_norm",
    "nn.functional.dropout",
    "nn.functional.embedding",
    "nn.functional.max_pool2d",
    "nn.functional.scaled_dot_product_attention",
    "__getitem__",
    "view",
    "reshape",
    "transpose",
    "permute",
    "expand",
    "cat",
    "stack",
    "where",
    "clone",
)
"""Arithmetic, matrices, layers in the order of a network, and what only moves elements."""


def common_first(rows: Sequence[Row]) -> list[Row]:
    """The rows of the common operations, and then the others in the order in which they came."""
    place = {op: number for number, op in enumerate(COMMON)}
    return sorted(rows, key=lambda row: place.get(row.op, len(place)))

"""The elements of a small tensor, without keeping the tensor."""

from __future__ import annotations

from typing import Any

import torch

SMALL = 16
"""Maximum number of elements of a tensor whose values are recorded."""


def small_values(tensor: torch.Tensor) -> Any:
    """Return the elements as nested tuples if there are few and they can be read, else None."""
    try:
        if is_dense(tensor) and tensor.numel() <= SMALL:
            return _tuples(tensor.detach().tolist())
    except Exception:  # fake, meta and wrapped tensors have no values to look at
        pass
    return None


def is_dense(tensor: torch.Tensor) -> bool:
    """True for a tensor of one piece with strides."""
    return tensor.layout == torch.strided and not tensor.is_nested


def _tuples(nested: Any) -> Any:
    return tuple(map(_tuples, nested)) if isinstance(nested, list) else nested

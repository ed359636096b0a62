"""A gradient in numbers: what can be kept of it without keeping the tensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from .. import _torch
from ..saving.storages import shape_of
from ..saving.values import is_dense, small_values


@dataclass(frozen=True, slots=True)
class Gradient:
    """A gradient in numbers.

    Attributes:
        shape, dtype: of the tensor.
        norm: its 2-norm; None where there is none to compute (fake and meta tensors).
        values: nested tuples of its elements if there are few
            (:data:`autograd_lens.saving.values.SMALL`), else None.
    """

    shape: tuple[int | str, ...]
    dtype: torch.dtype
    norm: float | None
    values: Any


def describe(tensor: torch.Tensor | None) -> Gradient | None:
    """Return the numbers of a gradient, or None for an undefined one. Keeps no tensor."""
    if tensor is None:
        return None
    norm = None
    try:
        plain = tensor.detach()  # so that no history is recorded with create_graph=True
        if not is_dense(plain):
            plain = _torch.inner_tensors(plain)[-1]
        # Rounding to half precision would show in the fourth digit.
        wide = torch.float32 if plain.dtype in (torch.float16, torch.bfloat16) else None
        norm = float(torch.linalg.vector_norm(plain, dtype=wide))
    except Exception:  # fake, meta and wrapped tensors have no values to look at
        pass
    return Gradient(shape_of(tensor), tensor.dtype, norm, small_values(tensor))

"""What a tensor shows only through names that PyTorch does not promise to keep.

- ``tensor._version``, ``_backward_hooks``, ``_post_accumulate_grad_hooks``: what a tensor carries.
- ``tensor._is_view()``, ``tensor._base``: the tensor that a view was made of.
- ``storage._cdata``: tells storages apart where ``data_ptr()`` can't (fake and meta tensors).
- ``_values``, ``_indices``, ``__tensor_flatten__``, ``torch._C._functorch``: the parts of sparse,
  wrapped and functorch tensors; that is where their bytes are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .errors import unsupported


def version(tensor: torch.Tensor) -> int | None:
    """The version counter, or None for an inference tensor, which has none."""
    try:
        return tensor._version
    except RuntimeError:
        return None


def hooks(tensor: torch.Tensor) -> tuple[list[Callable[..., Any]], list[Callable[..., Any]]]:
    """The tensor hooks and the post-accumulate hooks of ``tensor``, in the order of their calls."""
    return (
        list((tensor._backward_hooks or {}).values()),
        list((tensor._post_accumulate_grad_hooks or {}).values()),
    )


def storage_key(storage: torch.UntypedStorage) -> int:
    """An identity of a storage, valid while it is alive."""
    try:
        return storage._cdata
    except AttributeError:
        raise unsupported("_cdata on storages") from None


def is_wrapped(tensor: torch.Tensor) -> bool:
    """True for the wrapper of a tensor that a function sees inside ``torch.vmap`` and its kind."""
    return torch._C._functorch.is_functorch_wrapped_tensor(tensor)


def inner_tensors(tensor: torch.Tensor) -> list[torch.Tensor]:
    """Return the tensors that ``tensor`` is made of, or nothing when it is one piece."""
    if is_wrapped(tensor):
        return [torch._C._functorch.get_unwrapped(tensor)]
    if tensor.layout in _SPARSE_PARTS:
        return [getattr(tensor, part)() for part in _SPARSE_PARTS[tensor.layout]]
    if type(tensor) is not torch.Tensor and hasattr(tensor, "__tensor_flatten__"):
        names, _ = tensor.__tensor_flatten__()
        return [getattr(tensor, name) for name in names]
    return []


def with_graph(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor that has the graph: inside ``torch.vmap``, the one behind the wrapper."""
    while tensor.grad_fn is None and is_wrapped(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return tensor


_SPARSE_PARTS = {
    torch.sparse_coo: ("_indices", "_values"),
    torch.sparse_csr: ("crow_indices", "col_indices", "values"),
    torch.sparse_bsr: ("crow_indices", "col_indices", "values"),
    torch.sparse_csc: ("ccol_indices", "row_indices", "values"),
    torch.sparse_bsc: ("ccol_indices", "row_indices", "values"),
}


def written_view_nr(tensor: torch.Tensor) -> int | None:
    """The creation number of the ``CopySlices`` of the last in-place write into a view's base.

    None for what is no view, and where the last write made another node.
    """
    if not tensor._is_view():
        return None
    node = None if tensor._base is None else tensor._base.grad_fn
    return node._sequence_nr() if type(node).__name__ == "CopySlices" else None


def is_clone_number(tensor: torch.Tensor, number: int) -> bool:
    """True for the result of the ``clone`` whose node has this creation number.

    A view is not asked, because reading its ``grad_fn`` can create a node.
    """
    if tensor.is_leaf or tensor._is_view():
        return False
    node = tensor.grad_fn
    return type(node).__name__ == "CloneBackward0" and node._sequence_nr() == number

"""The nodes behind the outputs that a reader gave, or an error that says what can be known."""

from __future__ import annotations

from typing import Any

import torch

from .. import _torch


def find_roots(outputs: Any) -> tuple[list[tuple[Any, int]], list[torch.Tensor]]:
    """Return ``(node, output_nr)`` of each output with a graph, and the outputs without one.

    Raises:
        TypeError, ValueError: as :func:`autograd_lens.graph` has them.
    """
    tensors, nodes = _torch.tensors_and_nodes_in(outputs)
    if not tensors and not nodes:
        raise no_tensor(outputs)
    tensors = [_torch.with_graph(tensor) for tensor in tensors]
    roots = [(node, 0) for node in nodes]
    roots += [(t.grad_fn, t.output_nr) for t in tensors if t.grad_fn is not None]
    plain = [t for t in tensors if t.grad_fn is None]
    if not roots:
        raise ValueError(_why_no_graph(plain))
    for leaf in [t for t in plain if t.requires_grad]:
        edge = torch.autograd.graph.get_gradient_edge(leaf)
        roots.append((edge.node, edge.output_nr))
    return list(dict.fromkeys(roots)), [t for t in plain if not t.requires_grad]


def no_tensor(outputs: Any, what: str = "pass") -> TypeError:
    """The error for ``outputs`` in which there is nothing to look at."""
    kind = type(outputs).__name__
    why = f"not {kind}"
    if isinstance(outputs, (list, tuple, dict)):
        why = f"in this {kind} there is none"
    elif isinstance(outputs, torch.nn.Module):
        why += ". The model comes second: first what it returned, or the loss"
    return TypeError(
        f"{what} a tensor, or any nesting of lists, tuples and dicts with tensors in it; {why}"
    )


def _why_no_graph(tensors: list[torch.Tensor]) -> str:
    tensor = tensors[0]
    several = f"none of the {len(tensors)} tensors has a graph to show: of the first, "
    if tensor.is_inference():
        why = "it is an inference tensor, made under torch.inference_mode(), which records nothing"
    elif not (tensor.is_floating_point() or tensor.is_complex()):
        why = f"its dtype is {tensor.dtype}, and only floating-point and complex tensors have one"
    elif tensor.requires_grad:
        why = "it is a leaf, so nothing has been computed from it yet; pass a result"
    else:
        why = (
            "it does not require grad: it was made from tensors that don't, or under "
            "torch.no_grad(), or detached"
        )
    return ("the tensor has no graph to show: " if len(tensors) == 1 else several) + why

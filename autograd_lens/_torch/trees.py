"""Tensors and graph nodes inside nested containers.

``torch.utils._pytree`` is the flattening that PyTorch itself uses for nested containers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.utils import _pytree

from .nodes import is_node


def tensors_and_nodes_in(tree: Any) -> tuple[list[torch.Tensor], list[Any]]:
    """Return the tensors and the graph nodes of a pytree, each in order.

    Enters the containers that PyTorch knows, and other mappings and dataclass instances.
    """
    tensors, nodes = [], []
    for leaf in _pytree.tree_leaves(tree):
        inside: list[Any] = []
        if isinstance(leaf, torch.Tensor):
            tensors.append(leaf)
        elif is_node(leaf):
            nodes.append(leaf)
        elif isinstance(leaf, type):
            continue
        elif hasattr(leaf, "__dataclass_fields__"):
            inside = [getattr(leaf, name, None) for name in leaf.__dataclass_fields__]
        elif isinstance(leaf, Mapping):
            inside = list(leaf.values())
        if inside:
            more_tensors, more_nodes = tensors_and_nodes_in(inside)
            tensors += more_tensors
            nodes += more_nodes
    return tensors, nodes


def tree_map(change: Any, tree: Any) -> Any:
    """Return a pytree with ``change`` applied to every leaf."""
    return _pytree.tree_map(change, tree)


def tensors_in(tree: Any) -> list[torch.Tensor]:
    """Return the tensors of a pytree, in order."""
    if isinstance(tree, torch.Tensor):
        return [tree]
    return tensors_and_nodes_in(tree)[0]

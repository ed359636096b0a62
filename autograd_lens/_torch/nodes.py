"""What a node of a graph shows only through names that PyTorch does not promise to keep.

- ``node._raw_saved_*``: the public ``_saved_*`` runs unpack hooks (a checkpoint recomputes), and
  raises on a freed graph or a changed tensor. The raw one only looks.
- ``SavedTensor.data``, ``.unpack_hook``, ``.unpack()``: what is behind a raw entry (the tensor, or
  what a pack hook returned), and whether there is a hook. A ``SavedTensor`` must not outlive its
  node. ``unpack()`` compares versions; torch 2.11 does not have it.
- ``node._saved_*``: sizes and scalars that a node keeps. They have no other name.
- ``node._sequence_nr()``: the creation number by which the engine orders ready nodes, and
  ``torch._C._autograd._get_sequence_nr()``: the one that the next node of this thread will get.
- ``node._input_metadata``: shape and dtype of each output of the recorded operation.
- the package data of ``torchgen``: ``derivatives.yaml``, which the nodes were generated from.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any

import torch

from .errors import unsupported


def is_node(value: Any) -> bool:
    """True for a node of a graph; one of ``_foreach_*`` is no instance of PyTorch's ``Node``."""
    return isinstance(value, torch.autograd.graph.Node) or type(value).__name__ == "CppFunction"


def sequence_nrs(nodes: Iterable[Any]) -> list[int]:
    """Creation number of each node in its thread; ``2**64 - 1`` for the node of a leaf."""
    try:
        return [node._sequence_nr() for node in nodes]
    except AttributeError:
        raise unsupported("_sequence_nr on graph nodes") from None


def next_sequence_nr() -> int:
    """The creation number that the next node of this thread will get."""
    try:
        return torch._C._autograd._get_sequence_nr()
    except AttributeError:
        raise unsupported("torch._C._autograd._get_sequence_nr") from None


def outputs_of(node: Any) -> tuple[tuple[tuple[int, ...] | None, torch.dtype | None], ...]:
    """Return ``(shape, dtype)`` of every output of the operation that ``node`` recorded."""
    try:
        metadata = node._input_metadata
    except AttributeError:
        raise unsupported("_input_metadata on graph nodes") from None
    described = []
    for meta in metadata:
        try:
            shape = tuple(map(int, meta.shape))
        except Exception:  # nested tensors have no shape to give; symbolic sizes no number
            shape = None
        described.append((shape, meta.dtype))
    return tuple(described)


def is_python(node_type: type) -> bool:
    """True for the nodes of a Python ``Function``."""
    return issubclass(node_type, torch.autograd.function.BackwardCFunction)


def lasting(node_type: type) -> type:
    """The class under which a cache may keep facts about this kind of node.

    The class of a Python ``Function`` would be kept alive by a cache, with all that its methods
    close over. Its base class stands for it.
    """
    return torch.autograd.function.BackwardCFunction if is_python(node_type) else node_type


def raw_fields(node_type: type) -> tuple[str, ...]:
    """Names of the saved tensors of this kind of node, without the ``_raw_saved_`` in front."""
    return tuple(name for name, _ in raw_readers(node_type))


def raw_readers(node_type: type) -> tuple[tuple[str, Any], ...]:
    """Names of :func:`raw_fields`, each with the function that reads it from a node.

    The function returns a ``SavedTensor`` or a tuple of them, which must not outlive the node. It
    raises ``RuntimeError`` for a list that was released.
    """
    return _raw_readers(lasting(node_type))


@cache
def _raw_readers(node_type: type) -> tuple[tuple[str, Any], ...]:
    names = [a for a in dir(node_type) if a.startswith("_raw_saved_")]
    return tuple((name.removeprefix("_raw_saved_"), attrgetter(name)) for name in names)


def raw_data(node: Any) -> list[Any]:
    """What the saved tensors of ``node`` hold: a tensor or a packed object, and an unpack hook."""
    found: list[Any] = []
    for _, read in raw_readers(type(node)):
        try:
            raw = read(node)
        except RuntimeError:  # released
            continue
        for one in raw if isinstance(raw, (tuple, list)) else (raw,):
            found += [one.data, one.unpack_hook]
    return found


def is_saved_tensor(value: Any) -> bool:
    """True for a ``SavedTensor``, which a checkpoint makes for its inputs."""
    return isinstance(value, torch._C._autograd.SavedTensor)


def argument_saver(tensor: torch.Tensor) -> Any:
    """The node in which a checkpoint of PyTorch 2.11 saves its arguments, or None.

    The checkpoint holds an empty tensor, which holds the node: pass that tensor. No edge leads to
    the node, and the first tensor that it saves is empty, too: see ``_NoopSaveInputs`` in
    ``torch/utils/checkpoint.py``. Later versions keep plain ``SavedTensor`` objects instead.
    """
    node = tensor.grad_fn
    function = getattr(type(node), "_forward_cls", None)
    known = function is not None and function.__module__ == "torch.utils.checkpoint"
    return node if known and function.__name__ == "_NoopSaveInputs" else None


def plain_fields(node_type: type) -> tuple[str, ...]:
    """Names of what this kind of node keeps besides tensors: sizes, dimensions, scalars."""
    return _plain_fields(lasting(node_type))


@cache
def _plain_fields(node_type: type) -> tuple[str, ...]:
    raw = set(raw_fields(node_type))
    saved = (a[7:] for a in dir(node_type) if a.startswith("_saved_"))
    return tuple(a for a in saved if a not in raw)


@cache
def public_reader(field: str) -> Callable[[Any], Any]:
    """Unpacks one field of a C++ node: runs hooks, checks versions, raises when freed."""
    return attrgetter(f"_saved_{field}")


def saved_value(node: Any, field: str) -> Any:
    """Unpack one field of any node. A Python ``Function`` can only unpack all of them at once."""
    if is_python(type(node)):
        return node.saved_tensors
    return public_reader(field)(node)


def unpacked(raw: Any) -> Any:
    """Unpack one raw entry that no hook packed; raises ``RuntimeError`` as ``_saved_*`` does.

    A result of a Python ``Function`` always raises, because only the node can unpack it: see
    ``SavedVariable::unpack`` in ``torch/csrc/autograd/saved_variable.cpp``.
    """
    if not hasattr(raw, "unpack"):  # torch 2.11
        raise RuntimeError("not to be told")
    return raw.unpack()


def plain_value(node: Any, field: str) -> Any:
    """One of :func:`plain_fields`. Raises ``RuntimeError`` if it was released with the tensors."""
    return getattr(node, f"_saved_{field}")


def derivatives_file() -> Path | None:
    """Where the installed PyTorch keeps ``derivatives.yaml``, or None when it ships none."""
    spec = importlib.util.find_spec("torchgen")
    if spec is None or not spec.submodule_search_locations:
        return None
    path = Path(list(spec.submodule_search_locations)[0], "packaged/autograd/derivatives.yaml")
    return path if path.is_file() else None

"""What a layout takes from tensors: their memory, and a few values. Keeps no tensor.

Reads what lies in the storage of a tensor and never beyond its end, whatever shape and strides say.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product
from math import gcd
from typing import Any

import torch

from .. import _torch
from ..saving.storages import storages_of
from .readers import Index

MOST_DIMENSIONS = 4
"""Dimensions of a tensor that can be laid out: four are a grid of grids."""

SHOWN = 256
"""Elements up to which a tensor's values are copied."""

WITH_ADDRESSES = ("cpu", "cuda")
"""Devices whose ``data_ptr`` is an address; elsewhere it may be the number of a buffer."""

PACKED = ("torch.quint4x2", "torch.quint2x4")
"""Dtypes with several elements in a byte: an element has no address."""


def refuse(tensor: Any, number: int) -> None:
    """Raise for what has no layout of cells, saying why and what to pass.

    Raises:
        TypeError: it is no tensor, or one without memory of its own that strides lead through.
        ValueError: its memory was freed, or it has too many dimensions.
    """
    which = f"argument {number}"
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{which} must be a tensor, not {type(tensor).__name__}")
    if why := _why_without_strides(tensor) or _why_of_its_class(tensor) or _why_no_memory(tensor):
        raise TypeError(f"{which} is {why}")
    if tensor.numel() and not tensor.untyped_storage().nbytes():
        raise ValueError(
            f"{which} has shape {tuple(tensor.shape)}, and its storage was freed (resized to 0): "
            "there is no memory left to show. Pass it before that"
        )
    if tensor.dim() > MOST_DIMENSIONS:
        raise ValueError(
            f"{which} has {tensor.dim()} dimensions, and a picture shows {MOST_DIMENSIONS}: "
            "select() or flatten() some"
        )


def _why_without_strides(tensor: torch.Tensor) -> str:
    if tensor.is_nested:
        return (
            "a nested tensor: its rows have lengths of their own, so no stride leads from one to "
            "the next. Look at its parts: tensor.unbind()"
        )
    if str(tensor.layout) == "torch._mkldnn":
        return (
            "a tensor of layout torch._mkldnn: oneDNN orders its elements as it likes, and tells "
            "no strides. Pass tensor.to_dense(), which is a copy"
        )
    if tensor.layout != torch.strided:
        return (
            f"a tensor of layout {tensor.layout}: it stores indices and values apart and has no "
            "strides. Look at its parts, such as tensor.values(), or at tensor.to_dense()"
        )
    if str(tensor.dtype) in PACKED:
        return (
            f"a tensor of dtype {tensor.dtype}: several of its elements share a byte, so they have "
            "no addresses. Pass tensor.int_repr(), the bytes, which is a copy"
        )
    return ""


def _why_of_its_class(tensor: torch.Tensor) -> str:
    kind = type(tensor)
    if kind in (torch.Tensor, torch.nn.Parameter):
        return ""
    if torch.nn.parameter.is_lazy(tensor):
        return f"an {kind.__name__}, which has no memory yet: run its module once"
    if isinstance(tensor, torch.nn.Parameter) or _is_plain(kind):
        return (
            f"a {kind.__name__}, whose methods may do other things than those of torch.Tensor. "
            "Pass tensor.as_subclass(torch.Tensor), which reads the same memory"
        )
    return (
        f"a {kind.__name__}, which stands for other tensors or for none: what its memory is, only "
        "its class knows. Pass the tensors that it is made of"
    )


def _is_plain(kind: type[torch.Tensor]) -> bool:
    """Whether a subclass leaves the memory of its tensors to PyTorch."""
    return kind.__torch_dispatch__ is torch.Tensor.__torch_dispatch__


def _why_no_memory(tensor: torch.Tensor) -> str:
    if tensor.is_meta:
        return (
            f"a meta tensor: it has shape {tuple(tensor.shape)} and strides "
            f"{tuple(tensor.stride())}, and no memory behind them"
        )
    if _torch.is_wrapped(tensor):
        return (
            "a tensor inside torch.vmap, torch.func.grad or another transform of torch.func: it "
            "stands for a tensor outside, which has the memory. Pass that one, outside the function"
        )
    if _torch.is_tracing():
        return (
            "a tensor inside FakeTensorMode or a trace, where no operation reads memory. Call "
            "storage_layout outside of it"
        )
    try:
        (storage,) = storages_of(tensor)
        storage.data_ptr()
    except (RuntimeError, ValueError):
        return (
            f"a tensor on {tensor.device.type} whose memory PyTorch doesn't show: it is a wrapper "
            "(functionalization makes such ones), or its backend is opaque. Pass a plain tensor"
        )
    return ""


def memories(tensors: Sequence[torch.Tensor]) -> list[tuple[int, int, int]]:
    """For each tensor: the number of its memory, where that begins, and where it ends.

    Storages whose addresses overlap are one memory: NumPy, DLPack and ``torch.frombuffer`` give a
    tensor a storage of its own over memory that another one shows. Numbers count from 0 in the
    order in which the tensors first read them.
    """
    stretches = [_stretch(one) for one in tensors]
    merged: list[list[Any]] = []
    for place, begin, end in sorted(set(stretches)):
        if merged and merged[-1][0] == place and begin < merged[-1][2]:
            merged[-1][2] = max(merged[-1][2], end)
        else:
            merged.append([place, begin, end])
    numbers: dict[int, int] = {}
    found = []
    for place, begin, end in stretches:
        (which,) = (
            k for k, (p, b, e) in enumerate(merged) if p == place and b <= begin and end <= e
        )
        found.append((numbers.setdefault(which, len(numbers)), *merged[which][1:]))
    return found


def _stretch(tensor: torch.Tensor) -> tuple[str, int, int]:
    """The addresses of a storage, and of what they are; an identity where there are none."""
    storage = tensor.untyped_storage()
    size, device = storage.nbytes(), tensor.device
    if size and device.type in WITH_ADDRESSES:
        return str(device), storage.data_ptr(), storage.data_ptr() + size
    return f"{device} {_torch.storage_key(storage)}", 0, size


def begins_at(tensor: torch.Tensor, memory: int) -> int:
    """Bytes from the start of a memory to the storage of a tensor in it."""
    return _stretch(tensor)[1] - memory


def cell_bytes(tensors: Sequence[torch.Tensor], begins: Sequence[int]) -> int:
    """The largest cell of which every element of these tensors takes a whole number."""
    return gcd(*(one.element_size() for one in tensors), *begins)


def held(tensor: torch.Tensor) -> int:
    """How many elements of its dtype the storage of a tensor has room for."""
    return tensor.untyped_storage().nbytes() // tensor.element_size()


def reads(tensor: torch.Tensor) -> str:
    """What the tensor does with every element that it reads: two bits that no memory holds."""
    done = ["negated"] * tensor.is_neg() + ["conjugated"] * tensor.is_conj()
    return " and ".join(done)


def has_values(tensor: torch.Tensor) -> bool:
    """Whether PyTorch can tell the value of one element in memory."""
    return not tensor.is_quantized and _can_print(tensor.dtype)


@cache
def _can_print(dtype: torch.dtype) -> bool:
    try:
        torch.zeros(16, dtype=torch.uint8, device="cpu").view(dtype)[0].item()
    except RuntimeError:  # not implemented for the dtypes that are only names of bits
        return False
    return True


def values(tensor: torch.Tensor) -> dict[Index, str]:
    """By index, what lies in memory there; empty for a large tensor, or if nobody can tell."""
    if tensor.numel() > SHOWN or not has_values(tensor):
        return {}
    memory = in_memory(tensor)
    words: dict[int, str] = {}
    found = {}
    for index in product(*map(range, tensor.shape)):
        at = tensor.storage_offset() + sum(
            i * s for i, s in zip(index, tensor.stride(), strict=True)
        )
        if at < len(memory):
            if at not in words:
                words[at] = _word(memory[at].item())
            found[index] = words[at]
    return found


def in_memory(tensor: torch.Tensor) -> torch.Tensor:
    """All that the storage has room for, in the tensor's dtype: no conj or neg bit, no shape."""
    plain = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    return plain.set_(tensor.untyped_storage(), 0, (held(tensor),), (1,))


def _word(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, (float, complex)) else str(value)

"""Memory that a Python object keeps alive: what a hook packed, what its closure holds, a ``ctx``.

Follows containers, attributes, closures, bound methods and partial functions. Reads attributes from
``vars`` only, so that nothing runs. Does not enter modules, optimizers, classes and weak
references: those live on their own.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from .. import _torch

_LIVE_ON_THEIR_OWN = (
    type,
    types.ModuleType,
    torch.nn.Module,
    torch.optim.Optimizer,
    str,
    int,
    float,
    torch.dtype,
    torch.device,
)


def tensors_kept(*roots: Any) -> list[torch.Tensor]:
    """Return every tensor that is reached from ``roots``, each once, in a fixed order."""
    return [one for one in memory_kept(*roots) if isinstance(one, torch.Tensor)]


def memory_kept(*roots: Any) -> list[Any]:
    """Return every tensor, storage, NumPy array and bytes object that is reached, each once."""
    roots = [root for root in roots if root is not None]
    if len(roots) == 1 and isinstance(roots[0], torch.Tensor):
        return roots
    found: dict[int, Any] = {}
    pending = list(reversed(roots))
    met: dict[int, Any] = {}  # holds the objects: an id is valid while its object lives
    while pending:
        one = pending.pop()
        if one is None or isinstance(one, _LIVE_ON_THEIR_OWN) or id(one) in met:
            continue
        met[id(one)] = one
        if isinstance(one, torch.Tensor) and (saver := _torch.argument_saver(one)) is not None:
            pending.extend(reversed([*_torch.raw_data(saver)[1:], *vars(saver).values()]))
        elif is_array(one) and isinstance(array_root(one).base, torch.Tensor):
            pending.append(array_root(one).base)
        elif isinstance(one, _HOLD_MEMORY) or is_array(one):
            found[id(one)] = one
        else:
            pending.extend(reversed(list(_parts(one))))
    return list(found.values())


_HOLD_MEMORY = (torch.Tensor, torch.UntypedStorage, bytes, bytearray)


def is_array(one: Any) -> bool:
    """True for a NumPy array; without NumPy there is none."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(one, numpy.ndarray)


def array_root(array: Any) -> Any:
    """The array that owns the memory of ``array``."""
    while is_array(array.base):
        array = array.base
    return array


def _parts(one: Any) -> Iterator[Any]:
    """What ``one`` holds directly."""
    if isinstance(one, Mapping):
        yield from one.values()
    elif isinstance(one, (tuple, list, set, frozenset)) or type(one).__name__ == "deque":
        yield from one
    elif isinstance(one, types.FunctionType):
        yield from one.__defaults__ or ()
        yield from (one.__kwdefaults__ or {}).values()
        for cell in one.__closure__ or ():
            try:
                yield cell.cell_contents
            except ValueError:  # not filled yet, or emptied
                pass
    elif isinstance(one, types.BuiltinFunctionType):
        yield one.__self__  # of a method of a tensor, the tensor; of a function, its module
    elif isinstance(one, types.MethodType):
        yield one.__self__
        yield one.__func__
    elif isinstance(one, functools.partial):
        yield from (one.func, *one.args, *one.keywords.values())
    elif _torch.is_node(one):
        yield from _torch.raw_data(one)
        yield from getattr(one, "__dict__", {}).values()
    elif _torch.is_saved_tensor(one):
        yield from (one.data, one.unpack_hook)
    elif hasattr(one, "__dict__") or hasattr(type(one), "__slots__"):
        yield from getattr(one, "__dict__", {}).values()
        for name in getattr(type(one), "__slots__", ()):
            if isinstance(getattr(type(one), name, None), types.MemberDescriptorType):
                yield getattr(one, name, None)

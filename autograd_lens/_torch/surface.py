"""The list of everything private that the lens reads: its name, how to look for it, what is lost.

A test walks the list on each supported PyTorch, so that a reader is not the first to notice.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from operator import attrgetter

import torch

from .errors import unsupported
from .nodes import derivatives_file, raw_fields


@dataclass(frozen=True)
class Probe:
    """One thing that PyTorch does not promise to keep.

    Attributes:
        name: what it is called in PyTorch.
        is_there: whether this PyTorch has it; runs no operation.
        lost: what the lens can't do without it.
        needed: a reading without it would be wrong and not say so; the lens refuses to read.
    """

    name: str
    is_there: Callable[[], bool]
    lost: str
    needed: bool = False


def _has(path: str) -> Callable[[], bool]:
    """Whether ``torch`` has an attribute, given by its dotted path."""

    def look() -> bool:
        try:
            attrgetter(path)(torch)
        except AttributeError:
            return False
        return True

    return look


def _node_has(name: str) -> Callable[[], bool]:
    return _has(f"_C._functions.AddBackward0.{name}")


def _names_saved_tensors() -> bool:
    multiply = getattr(getattr(torch._C, "_functions", None), "MulBackward0", None)
    return multiply is None or bool(raw_fields(multiply))


PROBES = (
    Probe("_raw_saved_* on graph nodes", _names_saved_tensors, "saved tensors", True),
    Probe("SavedTensor.data", _has("_C._autograd.SavedTensor.data"), "saved tensors", True),
    Probe(
        "SavedTensor.unpack_hook",
        _has("_C._autograd.SavedTensor.unpack_hook"),
        "which saved tensors a hook packed",
        True,
    ),
    Probe("Tensor._version", _has("Tensor._version"), "versions", True),
    Probe("Tensor._backward_hooks", _has("Tensor._backward_hooks"), "tensor hooks", True),
    Probe(
        "Tensor._post_accumulate_grad_hooks",
        _has("Tensor._post_accumulate_grad_hooks"),
        "post-accumulate hooks",
        True,
    ),
    Probe("_sequence_nr on graph nodes", _node_has("_sequence_nr"), "the order of the engine"),
    Probe("_input_metadata on graph nodes", _node_has("_input_metadata"), "shapes of outputs"),
    Probe("_cdata on storages", _has("UntypedStorage._cdata"), "who shares memory"),
    Probe(
        "SavedTensor.unpack (from torch 2.13 on)",
        _has("_C._autograd.SavedTensor.unpack"),
        "the saved version of one of several changed tensors in a list",
    ),
    Probe(
        "torch._C._autograd._get_sequence_nr",
        _has("_C._autograd._get_sequence_nr"),
        "record_saved",
    ),
    Probe(
        "torch._C._remove_obj_from_tls (from torch 2.13 on)",
        _has("_C._remove_obj_from_tls"),
        "record_backward beside other threads on devices other than the CPU",
    ),
    Probe(
        "torch._C._functorch.get_unwrapped",
        _has("_C._functorch.get_unwrapped"),
        "tensors inside of torch.vmap",
    ),
    Probe(
        "derivatives.yaml of torchgen",
        lambda: derivatives_file() is not None,
        "derivative formulas",
    ),
    Probe("torch.utils._pytree", _has("utils._pytree.tree_leaves"), "nested outputs"),
    Probe(
        "torch.autograd._engine_run_backward",
        _has("autograd._engine_run_backward"),
        "record_memory",
    ),
    Probe(
        "torch._C._profiler._RecordFunctionFast",
        _has("_C._profiler._RecordFunctionFast"),
        "record_memory",
    ),
    Probe(
        "experimental_event_tree in the profiler",
        _has("_C._autograd._ProfilerResult.experimental_event_tree"),
        "record_memory",
    ),
    Probe(
        "_global_forward_hooks in torch.nn.modules.module",
        _has("nn.modules.module._global_forward_hooks_always_called"),
        "record_saved",
    ),
    Probe(
        "torch.cuda.memory._record_memory_history",
        lambda: (
            importlib.util.find_spec("torch.cuda.memory") is not None
            and hasattr(torch.cuda.memory, "_record_memory_history")
        ),
        "record_memory on CUDA",
    ),
)


@cache
def require() -> None:
    """Look once for every name that is needed; runs no operation.

    Without such a name a reading would find nothing: no hooks, for example, where there are some.

    Raises:
        LensUnsupported: something is missing; the message says what.
    """
    for probe in PROBES:
        if probe.needed and not probe.is_there():
            raise unsupported(probe.name)

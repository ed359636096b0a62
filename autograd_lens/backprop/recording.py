"""The verb ``lens.record_backward``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from .. import _torch
from ..graphs.reading import read_live
from ..graphs.roots import no_tensor
from ..saving.recorder import SavedRecorder, checked
from .recorder import Recorder
from .steps import BackwardRecording


def record_backward(
    output: Any,
    names: Any = None,
    *,
    gradient: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
    recorder: SavedRecorder | None = None,
) -> BackwardRecording:
    """Run ``torch.autograd.backward`` on ``output`` and return what happened.

    It is a real backward: it writes ``.grad``, runs the reader's hooks, and spends the graph unless
    ``retain_graph=True``. Backwards of other threads are not recorded, also where they write the
    same ``.grad``.

    Rests on ``torch/csrc/autograd/engine.cpp`` (the order) and, for how ``.grad`` is written,
    ``torch/csrc/autograd/functions/accumulate_grad.h``.

    Args:
        output: a tensor, or any nesting of lists, tuples and dicts with tensors in it.
        names: names for tensors, as in :func:`autograd_lens.graph`.
        gradient: the gradient of ``output`` (the vector of the VJP); may be left out if it is a
            scalar. One per tensor if there are several.
        retain_graph, create_graph, inputs: as in ``torch.autograd.backward``.
        recorder: the ``lens.record_saved`` under which the forward ran, as in
            :func:`autograd_lens.graph`.

    Raises:
        TypeError: ``output`` or ``gradient`` holds no tensor.
        ValueError: ``output`` has no graph.
        RuntimeError: another thread ran a backward through the same graph meanwhile. (It may do so
            through other graphs with the same leaves.)
        RuntimeError: the output is no scalar and there is no ``gradient``, or an earlier backward
            has spent the graph; the message says what to do.
        LensUnsupported: this PyTorch lacks something that the lens reads.
        Exception: whatever else the backward itself raises; all hooks are removed by then.
    """
    outputs = _torch.tensors_in(output)
    if not outputs:
        raise no_tensor(output)
    if names is not None and names != [] and _all_tensors(names):
        raise TypeError(
            "names must be a torch.nn.Module or a mapping of name to tensor, not "
            f"{type(names).__name__}; a gradient goes in gradient="
        )
    if not _all_tensors(gradient):
        raise TypeError(
            f"gradient must be a tensor, or one per output, not {type(gradient).__name__}; "
            "names for tensors go in names="
        )
    live = read_live(outputs, names, (), checked(recorder))
    watch = Recorder(live)
    before = watch.held_bytes
    with watch.watching(), _advice():
        torch.autograd.backward(outputs, gradient, retain_graph, create_graph, inputs=inputs)
    return BackwardRecording(watch.graph, watch.finished(), before)


@contextmanager
def _advice() -> Iterator[None]:
    """Say in the words of this verb what to do about PyTorch's two most frequent errors."""
    try:
        yield
    except RuntimeError as error:
        for sign, advice in _ADVICE.items():
            if sign in str(error):
                raise RuntimeError(f"{advice}. (PyTorch: {str(error).splitlines()[0]})") from error
        raise


_ADVICE = {
    "implicitly created only for scalar": (
        "the output is no scalar: pass gradient=, a tensor of its shape, or record the backward of "
        "a sum"
    ),
    "backward through the graph a second time": (
        "an earlier backward has spent this graph: run the forward again, or give that backward "
        "retain_graph=True"
    ),
}


def _all_tensors(gradient: Any) -> bool:
    several = gradient if isinstance(gradient, (list, tuple)) else (gradient,)
    return all(one is None or isinstance(one, torch.Tensor) for one in several)

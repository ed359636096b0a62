"""Every op of PyTorch's own op database, run on one sample: the rows of the atlas.

The database (``torch.testing._internal.common_methods_invocations.op_db``) is what PyTorch tests
its operations with, and private: it gives functions and samples, and nothing is taken from what it
says about them.
"""

from __future__ import annotations

import logging
import random
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import torch

from .. import _torch
from ..graphs.formulas import formula
from ..saving.storages import shape_of
from .observe import NoGraph, Observed, observe
from .rows import Atlas, Row

DTYPES = (torch.float64, torch.float32, torch.complex128, torch.bfloat16, torch.float16)
"""Tried in this order: the first that an op takes on the CPU, and in which it records a graph."""
SAMPLES = 60
"""Maximum number of samples that are looked at, for each dtype."""
TRIES = 10
"""Maximum number of them that run until one records a graph."""


class NoDatabase(ImportError):
    """The op database can't be imported; the message says what to install."""


@dataclass(frozen=True)
class Op:
    """An op of the database in one of its forms.

    Attributes:
        info: the entry of the database.
        call: what runs.
        in_place: it writes its result to its first tensor.
    """

    info: Any
    call: Callable[..., Any]
    in_place: bool = False


def op_database() -> dict[str, Op]:
    """The ops of the database by name, a variant after a dot: ``"std.unbiased"``.

    The in-place form of an op is an op of its own: ``"exp_"``, ``"div_.floor_rounding"``,
    ``"nn.functional.leaky_relu_"`` (also where Python calls it with ``inplace=True``).

    Raises:
        NoDatabase: the package that it needs is missing.
    """
    try:
        with _without_word_of_cuda():
            from torch.testing._internal.common_methods_invocations import op_db
    except ImportError as error:
        raise NoDatabase(
            f"PyTorch's op database needs a package that is missing here ({error}): "
            "pip install expecttest"
        ) from error
    ops = {}
    for info in op_db:
        ops[f"{info.name}.{info.variant_test_name}".rstrip(".")] = Op(info, info)
        if info.inplace_variant is not None and not info.name.endswith("_"):
            name = f"{info.name}_.{info.variant_test_name}".rstrip(".")
            ops[name] = Op(info, _on_a_copy(info.inplace_variant), in_place=True)
    return dict(sorted(ops.items()))


def _on_a_copy(in_place: Callable[..., Any]) -> Callable[..., Any]:
    """The op on a copy of its first tensor: a leaf that requires grad can't be written to."""

    def call(first: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        return in_place(first.clone(), *args, **kwargs)

    return call


@contextmanager
def _without_word_of_cuda() -> Iterator[None]:
    """Leave out one message while the database is imported: that CUDA's compiler finds no GPU.

    A PyTorch built for CUDA logs it, with the time, where the compiler is installed. Here all runs
    on the CPU.
    """
    log = logging.getLogger("torch.utils.cpp_extension")

    def other(record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith("No CUDA runtime is found")

    log.addFilter(other)
    try:
        yield
    finally:
        log.removeFilter(other)


def row(name: str, op: Op) -> Row:
    """One row: what ``op`` records on its first good sample, or why it records nothing.

    A good sample has inputs that require grad, each of at least two elements, and an output that is
    not empty. Where an op has none among its first samples, the first that records a graph counts.
    """
    reason = "takes no floating-point or complex numbers on the CPU"
    for wanted in (_is_good, lambda sample: True):
        for dtype in DTYPES:
            if dtype not in op.info.supported_dtypes("cpu"):
                continue
            try:
                for number, sample in islice(_samples(op, dtype, wanted), TRIES):
                    try:
                        seen = _observe(op, sample)
                    except NoGraph as none:
                        reason = str(none)
                        continue
                    if seen.output_bytes or wanted is not _is_good:
                        return Row(name, number, _words(sample), seen)
            except Exception as error:  # whatever an op may raise on its own samples
                reason = f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"
    return Row(name, reason=reason)


def _samples(op: Op, dtype: torch.dtype, wanted: Any) -> Iterator[tuple[int, Any]]:
    """The first samples with their numbers, the same in every process."""
    _seed()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # `set_seed` would seed, and write down the stack, for each sample and kind of device.
        samples = op.info.sample_inputs("cpu", dtype, requires_grad=True, set_seed=False)
        for number, sample in enumerate(islice(samples, SAMPLES)):
            # A tensor can't take a result that is larger than itself.
            if wanted(sample) and not (op.in_place and sample.broadcasts_input):
                yield number, sample


def _is_good(sample: Any) -> bool:
    asked = [one for one in _tensors(sample) if one.requires_grad]
    return bool(asked) and all(one.numel() > 1 for one in asked)


def _observe(op: Op, sample: Any) -> Observed:
    _seed()
    differentiated = sample.output_process_fn_grad
    seen = observe(
        op.call, sample.input, *sample.args, differentiated=differentiated, **sample.kwargs
    )
    return _without_the_copy(seen) if op.in_place else seen


def _without_the_copy(seen: Observed) -> Observed:
    """What an op saved without the copy that it ran on, which was made first and so comes last."""
    *nodes, copy = seen.nodes
    if copy != ("CloneBackward0", {}):
        raise RuntimeError(f"the copy of the first tensor is not the last node, but {copy[0]}")
    if not nodes:
        raise NoGraph("writes to its input without a node of its own")
    return replace(seen, nodes=tuple(nodes), view="input")


def _tensors(sample: Any) -> list[torch.Tensor]:
    return _torch.tensors_in((sample.input, sample.args, sample.kwargs))


def _words(sample: Any) -> tuple[str, ...]:
    """The tensors that go in: type, shape, and which of them are not differentiated."""
    return tuple(
        f"{str(one.dtype)[6:]} {shape_of(one)}{'' if one.requires_grad else ' fixed'}"
        for one in _tensors(sample)
    )


def _seed() -> None:
    torch.default_generator.manual_seed(0)
    random.seed(0)


def _rows(ops: Mapping[str, Op]) -> dict[str, Row]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # tiny samples: threads only wait for each other
    try:
        with torch.random.fork_rng(devices=[]):
            return {name: row(name, op) for name, op in ops.items()}
    finally:
        torch.set_num_threads(threads)


def run(names: Iterable[str] | None = None) -> Atlas:
    """Run ops of the database, all or those named, and return their atlas.

    Raises:
        NoDatabase: it can't be imported.
        KeyError: there is no op of such a name.
    """
    ops = op_database()
    names = list(ops) if names is None else sorted(set(names))
    if unknown := [name for name in names if name not in ops]:
        raise KeyError(f"the op database has no {unknown[0]!r}")
    # For each sample the database looks through the whole stack, for a test that might have asked:
    # below a test runner that takes ten times as long as on the short stack of a new thread.
    with ThreadPoolExecutor(1) as thread:
        rows = thread.submit(_rows, {name: ops[name] for name in names}).result()
    nodes = {node for one in rows.values() if one.seen for node, _ in one.seen.nodes}
    formulas = {node: dict(formula(node)) for node in sorted(nodes)}
    return Atlas(
        torch.__version__.partition("+")[0],
        {node: found for node, found in formulas.items() if found},
        rows,
    )

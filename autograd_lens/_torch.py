"""The one place where the lens touches what PyTorch does not promise to keep.

Everything private that the package needs stands here, with the reason. What would be missed in
silence is looked for once (:func:`require`) and fails with :class:`LensUnsupported`. A reader need
not be the first to notice: ``tests/lens/test_torch_surface.py`` is.

- ``node._raw_saved_*``: the public ``_saved_*`` runs unpack hooks (a checkpoint recomputes), and
  raises on a freed graph or a changed tensor; the raw one only looks.
- ``SavedTensor.data``, ``.unpack_hook``, ``.unpack()``: what is behind a raw entry, the tensor or
  what a pack hook returned, and whether there is a hook. They must not outlive their node. The last
  one compares versions; torch 2.11 does not have it.
- ``node._saved_*``: sizes and scalars that a node keeps, for which there is no other name.
- ``node._sequence_nr()``: the creation number by which the engine orders ready nodes, and
  ``torch._C._autograd._get_sequence_nr()``: the one that the next node of this thread will get.
- ``tensor._is_view()``, ``tensor._base``: whose memory a view shows, as autograd has it.
- ``node._input_metadata``: shape and dtype of each output of the recorded operation.
- ``storage._cdata``: tells storages apart where ``data_ptr()`` can't (fake and meta tensors).
- ``_values``, ``_indices``, ``__tensor_flatten__``, ``torch._C._functorch``: the parts of sparse,
  wrapped and functorch tensors; that is where their bytes are.
- ``tensor._version``, ``_backward_hooks``, ``_post_accumulate_grad_hooks``: what a tensor carries.
- ``torch.utils._pytree``: the flattening that PyTorch itself uses for nested containers.
- the package data of ``torchgen``: ``derivatives.yaml``, which the nodes were generated from.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree


class LensUnsupported(RuntimeError):
    """This PyTorch lacks something that the lens reads; the message says what."""


def _unsupported(what: str) -> LensUnsupported:
    return LensUnsupported(
        f"torch {torch.__version__} has no {what}; autograd_lens supports torch 2.11 to 2.15"
    )


@cache
def require() -> None:
    """Look once for what a walk would otherwise take for absent, without running an operation.

    Raises:
        LensUnsupported: this PyTorch names saved tensors in another way.
    """
    multiply = getattr(getattr(torch._C, "_functions", None), "MulBackward0", None)
    if multiply is not None and not raw_fields(multiply):
        raise _unsupported("_raw_saved_* on graph nodes")
    saved_tensor = getattr(getattr(torch._C, "_autograd", None), "SavedTensor", None)
    for name in ("data", "unpack_hook"):
        if not hasattr(saved_tensor, name):
            raise _unsupported(f"SavedTensor.{name}")
    for name in ("_version", "_backward_hooks", "_post_accumulate_grad_hooks"):
        if not hasattr(torch.Tensor, name):
            raise _unsupported(f"Tensor.{name}")


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


def is_node(value: Any) -> bool:
    """True for a node of a graph; the bare one of ``_foreach_*`` is none of PyTorch's ``Node``."""
    return isinstance(value, torch.autograd.graph.Node) or type(value).__name__ == "CppFunction"


def sequence_nrs(nodes: Iterable[Any]) -> list[int]:
    """Creation number of each node in its thread; ``2**64 - 1`` for the node of a leaf."""
    try:
        return [node._sequence_nr() for node in nodes]
    except AttributeError:
        raise _unsupported("_sequence_nr on graph nodes") from None


def next_sequence_nr() -> int:
    """The creation number that the next node of this thread will get."""
    try:
        return torch._C._autograd._get_sequence_nr()
    except AttributeError:
        raise _unsupported("torch._C._autograd._get_sequence_nr") from None


def written_view_nr(tensor: torch.Tensor) -> int | None:
    """The creation number of the ``CopySlices`` that the last write into a view's base has left."""
    if not tensor._is_view():
        return None
    node = None if tensor._base is None else tensor._base.grad_fn
    return node._sequence_nr() if type(node).__name__ == "CopySlices" else None


def is_clone_number(tensor: torch.Tensor, number: int) -> bool:
    """True for the result of the ``clone`` whose node has this creation number; not for a view.

    (To ask a view for its node can make one.)
    """
    if tensor.is_leaf or tensor._is_view():
        return False
    node = tensor.grad_fn
    return type(node).__name__ == "CloneBackward0" and node._sequence_nr() == number


def outputs_of(node: Any) -> tuple[tuple[tuple[int, ...] | None, torch.dtype | None], ...]:
    """Return ``(shape, dtype)`` of every output of the operation that ``node`` recorded."""
    try:
        metadata = node._input_metadata
    except AttributeError:
        raise _unsupported("_input_metadata on graph nodes") from None
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
    """A class that stands for this kind of node in a table: one that never goes.

    Classes of Python Functions come and go, with what their methods close over.
    """
    return torch.autograd.function.BackwardCFunction if is_python(node_type) else node_type


def raw_fields(node_type: type) -> tuple[str, ...]:
    """Names of the saved tensors of this kind of node, without the ``_raw_saved_`` in front."""
    return tuple(name for name, _ in raw_readers(node_type))


def raw_readers(node_type: type) -> tuple[tuple[str, Any], ...]:
    """Names of :func:`raw_fields`, each with the function that reads it from a node.

    It returns a ``SavedTensor`` or a list of them, which must not outlive the node, and raises
    ``RuntimeError`` for what was a list and is released: that of a Python ``Function``, and those
    of C++ nodes.
    """
    return _raw_readers(lasting(node_type))


@cache
def _raw_readers(node_type: type) -> tuple[tuple[str, Any], ...]:
    names = [a for a in dir(node_type) if a.startswith("_raw_saved_")]
    return tuple((name.removeprefix("_raw_saved_"), attrgetter(name)) for name in names)


def raw_data(node: Any) -> list[Any]:
    """What stands in the saved tensors of ``node``, and their hooks."""
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

    The checkpoint holds it by an empty tensor that it made, which is what to ask here. No edge
    leads to the node, and what it saves first is empty, too: see ``_NoopSaveInputs`` in
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
    """The same for any node; all fields of a Python ``Function`` at once."""
    if is_python(type(node)):
        return node.saved_tensors
    return public_reader(field)(node)


def unpacked(raw: Any) -> Any:
    """Unpack one raw entry that no hook packed; raises ``RuntimeError`` as the public way does.

    It raises for a result of a Python ``Function`` in any case, since only the node can unpack
    that: see ``SavedVariable::unpack`` in ``torch/csrc/autograd/saved_variable.cpp``.
    """
    if not hasattr(raw, "unpack"):  # torch 2.11
        raise RuntimeError("not to be told")
    return raw.unpack()


def plain_value(node: Any, field: str) -> Any:
    """One of :func:`plain_fields`. Raises ``RuntimeError`` if it was released with the tensors."""
    return getattr(node, f"_saved_{field}")


def version(tensor: torch.Tensor) -> int | None:
    """The version counter, or None for an inference tensor, which has none."""
    try:
        return tensor._version
    except RuntimeError:
        return None


def hook_counts(tensor: torch.Tensor) -> tuple[int, int]:
    """How many tensor hooks and post-accumulate hooks ``tensor`` carries."""
    hooks = tensor._backward_hooks, tensor._post_accumulate_grad_hooks
    return len(hooks[0] or ()), len(hooks[1] or ())


def storage_keys(storages: Iterable[torch.UntypedStorage]) -> list[int]:
    """An identity of each storage, valid while it is alive."""
    try:
        return list(map(_cdata, storages))
    except AttributeError:
        raise _unsupported("_cdata on storages") from None


_cdata = attrgetter("_cdata")


def storage_key(storage: torch.UntypedStorage) -> int:
    """The same for one storage."""
    return storage_keys((storage,))[0]


PLAIN = {torch.Tensor, torch.nn.Parameter}
"""Tensors of one piece, unless they are nested or wrapped."""

facts = attrgetter("shape", "dtype", "device")
"""Shape, dtype and device of a tensor of one piece, all in one call.

Raises ``RuntimeError`` for a nested tensor, which has no shape."""

plain_version = attrgetter("_version")
"""The version counter; raises ``RuntimeError`` for an inference tensor, which has none."""

is_wrapped = torch._C._functorch.is_functorch_wrapped_tensor
"""True for what stands for a tensor inside ``torch.vmap`` and its kind."""


def plain_storages(tensors: Collection[torch.Tensor]) -> list[torch.UntypedStorage] | None:
    """The storages behind tensors of one piece; None where one of them is another.

    A wrapper of ``torch.func`` that got out of its transform has no storage to give.
    """
    if not PLAIN.issuperset(map(type, tensors)):
        return None
    if torch._C._functorch.peek_interpreter_stack() is not None and any(map(is_wrapped, tensors)):
        return None
    try:
        return list(map(torch.Tensor.untyped_storage, tensors))
    except (RuntimeError, NotImplementedError):
        return None


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
    """Inside ``torch.vmap`` the graph belongs to the tensor behind the batched one: return that."""
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


def derivatives_file() -> Path | None:
    """Where the installed PyTorch keeps ``derivatives.yaml``, or None when it ships none."""
    spec = importlib.util.find_spec("torchgen")
    if spec is None or not spec.submodule_search_locations:
        return None
    path = Path(list(spec.submodule_search_locations)[0], "packaged/autograd/derivatives.yaml")
    return path if path.is_file() else None


# Threads (record_backward).
# - ``torch._C._stash_obj_in_tls`` and its kin: Python objects in the thread-local state that the
#   engine takes over from the thread that calls it. Every thread has that state while it runs nodes
#   of this backward: those of devices, and those of backwards inside of it. An entry has to be
#   removed: what a thread leaves there is freed at its very end, when Python may be gone. PyTorch
#   2.11 can't remove one, and does not count its references either.

_SIGNS = "autograd_lens.signs"
_CAN_SIGN = hasattr(torch._C, "_remove_obj_from_tls")


class Sign:
    """Tells the backwards that this thread starts in a block from all others."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    @contextmanager
    def on_backwards(self) -> Iterator[None]:
        """Until the block ends, every backward that this thread starts carries the sign."""
        if not _CAN_SIGN:
            yield
            return
        before = _signs()
        torch._C._stash_obj_in_tls(_SIGNS, (*before, self))
        try:
            yield
        finally:
            if before:
                torch._C._stash_obj_in_tls(_SIGNS, before)
            else:
                torch._C._remove_obj_from_tls(_SIGNS)

    def here(self) -> bool:
        """Whether the running backward carries the sign; for use in a hook.

        PyTorch 2.11 carries no sign. There every call counts that comes from this thread or from
        one of the engine's own, which on a device other than the CPU may work for another thread.
        """
        if _CAN_SIGN:
            return self in _signs()
        me = threading.get_ident()
        return me == self._thread or all(
            thread.ident != me or isinstance(thread, threading._DummyThread)
            for thread in threading.enumerate()
        )


def _signs() -> tuple[Sign, ...]:
    return torch._C._get_obj_in_tls(_SIGNS) if torch._C._is_key_in_tls(_SIGNS) else ()


# Memory (record_memory). Besides what stands above it needs:
# - ``torch.autograd._engine_run_backward``: the one function through which ``backward()`` and
#   ``grad()`` reach the engine; there is no public hook for "a backward begins".
# - the profiler's ``kineto_results.experimental_event_tree()`` and ``_EventType``: the only place
#   where each allocation stands with its address; public tables hold sums.
# - ``torch.autograd.profiler._is_profiler_enabled``: whether a profiler runs in any thread.
# - ``torch._C._profiler._RecordFunctionFast``: a mark among the profiler's events that is no
#   operation.
# - ``torch._guards.detect_fake_mode`` and ``torch.fx.experimental.proxy_tensor.get_proxy_mode``:
#   whether somebody compiles or traces.

_ENGINE = "_engine_run_backward"


@contextmanager
def watched_backward(around: Callable[..., Any]) -> Iterator[None]:
    """Until the block ends, call ``around(run, outputs)`` for every backward of the process.

    ``run()`` runs it and returns what the engine returned.
    """
    if not hasattr(torch.autograd, _ENGINE):
        raise _unsupported(f"torch.autograd.{_ENGINE}")
    engine = getattr(torch.autograd, _ENGINE)

    def instead(outputs: Any, *args: Any, **options: Any) -> Any:
        return around(lambda: engine(outputs, *args, **options), outputs)

    setattr(torch.autograd, _ENGINE, instead)
    try:
        yield
    finally:
        setattr(torch.autograd, _ENGINE, engine)


def named_range(name: str) -> Any:
    """A context that the profiler sees under this name.

    Not ``torch.profiler.record_function``: that is an operation, and whoever traces (``make_fx``,
    AOTAutograd) would write it into the program that is made.
    """
    try:
        return torch._C._profiler._RecordFunctionFast(name)
    except AttributeError:
        raise _unsupported("torch._C._profiler._RecordFunctionFast") from None


def is_tracing() -> bool:
    """Whether operations are only written down, or tried on fake tensors, as by a compiler."""
    if torch._guards.detect_fake_mode() is not None:
        return True
    proxies = sys.modules.get("torch.fx.experimental.proxy_tensor")  # not loaded: nobody traces
    return proxies is not None and proxies.get_proxy_mode() is not None


def not_compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function such that ``torch.compile`` leaves it alone if it is called in what it runs."""

    def dynamo_is_there() -> bool:  # else nothing is compiled yet, and loading it takes seconds
        return "torch._dynamo" in sys.modules

    def call(*args: Any) -> Any:
        return (torch.compiler.disable(function) if dynamo_is_there() else function)(*args)

    return torch.compiler.disable(function) if dynamo_is_there() else call


def profiling() -> str:
    """Where a profiler runs already: ``"this thread"``, ``"another thread"``, or an empty text.

    There can be one in a process: two of them in two threads crash it.
    """
    if torch._C._autograd._profiler_enabled():
        return "this thread"
    running = getattr(torch.autograd.profiler, "_is_profiler_enabled", False)
    return "another thread" if running else ""


def take_event_tree(profile: Any) -> list[Any]:
    """The roots of what a finished ``torch.autograd.profiler.profile`` recorded.

    Each has ``.children``. The profiler's other copies of the events are freed here.
    """
    try:
        roots = profile.kineto_results.experimental_event_tree()
    except AttributeError:
        raise _unsupported("experimental_event_tree in the profiler") from None
    profile.kineto_results = None
    return roots


def allocation(event: Any) -> tuple[int, int, str] | None:
    """``(address, bytes, device)`` of an allocation, bytes negative for a free; None for others."""
    if event.tag != torch._C._profiler._EventType.Allocation:
        return None
    change = event.typed[1]
    return change.ptr, change.alloc_size, str(change.device)


# - ``torch.cuda.memory._record_memory_history`` and ``_snapshot``: what was asked of the caching
#   allocator, to the byte; the profiler tells the rounded size of the block that it gave.


def start_cuda_history() -> None:
    """Have the caching allocator write down what it is asked for, without stack traces.

    Raises ``RuntimeError`` when it does so already: a second start would throw that away.
    """
    recording = getattr(torch._C, "_cuda_isHistoryEnabled", None)
    if recording is not None and recording():
        raise RuntimeError("the history of CUDA memory is being recorded already")
    torch.cuda.memory._record_memory_history("all", context=None, clear_history=True)


def stop_cuda_history(device: int) -> list[dict[str, Any]]:
    """Stop that, and return what was written down for a device, in order."""
    try:
        return torch.cuda.memory._snapshot()["device_traces"][device]
    finally:
        torch.cuda.memory._record_memory_history(None)

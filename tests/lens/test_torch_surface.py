"""The private surface of PyTorch that the lens stands on: all of it, in one file, as it believes.

A release of PyTorch that moves something fails here, by name, before a reader meets it.
"""

import ast
import importlib.util
import re
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import autograd_lens as lens
from autograd_lens import _torch
from autograd_lens._torch import surface, threads
from autograd_lens.graphs import formulas

PACKAGE = Path(lens.__file__).parent
PRIVATE = (
    "torch._C",
    "_raw_saved_",
    "_saved_",
    "_version",
    "_backward_hooks",
    "_post_accumulate_grad_hooks",
    "_sequence_nr",
    "_input_metadata",
    "_pytree",
    "_cdata",
    "_functorch",
    "__tensor_flatten__",
    "torchgen",
    "_engine_run_backward",
    "modules._global_forward_",
    "kineto_results",
    "experimental_event_tree",
    "_record_memory_history",
    "_snapshot",
)


def leaf(*shape):
    return torch.ones(*shape, requires_grad=True)


def private_names(path):
    """The names of ``PRIVATE`` that a module uses outside of its docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documented = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    written = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            written.append(ast.unparse(node))
        elif isinstance(node, ast.alias):
            written.append(node.name)
        elif isinstance(node, ast.ImportFrom):
            written.append(node.module or "")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            written += [node.value] * (id(node) not in documented)
    starts = {name: re.compile(rf"(?<!\w){re.escape(name)}") for name in PRIVATE}
    return {name for name, start in starts.items() if any(map(start.search, written))}


HOME = PACKAGE / "_torch"
ELSEWHERE = sorted(path for path in PACKAGE.rglob("*.py") if HOME not in path.parents)


@pytest.mark.parametrize("path", ELSEWHERE, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_private_names_stand_in_one_place(path):
    assert private_names(path) == set()


def test_all_private_names_are_used_there():
    reading = [path for path in HOME.glob("*.py") if path.name != "surface.py"]
    assert set().union(*map(private_names, reading)) == set(PRIVATE)


def test_public_methods_of_pytorch_are_replaced_in_one_place_too():
    """``saved_tensors_hooks.__enter__`` is public; to replace it is private all the same."""
    replaced = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Assign)
        for target in node.targets
        for one in (target.elts if isinstance(target, ast.Tuple) else [target])
        if isinstance(one, ast.Attribute) and one.attr.startswith("__")
    }
    assert replaced == {"_torch/patches.py"}


LATER = {"SavedTensor.unpack (from torch 2.13 on)"} | {
    "torch._C._remove_obj_from_tls (from torch 2.13 on)"
}


def test_this_pytorch_has_everything_on_the_list():
    missing = {probe.name for probe in _torch.PROBES if not probe.is_there()}
    assert missing == (LATER if torch.__version__ < "2.13" else set())
    assert all(probe.lost for probe in _torch.PROBES)


@pytest.mark.parametrize("probe", [p for p in _torch.PROBES if p.needed], ids=lambda p: p.name)
def test_what_is_needed_and_missing_is_said_in_one_sentence(probe, monkeypatch):
    without = replace(probe, is_there=lambda: False)
    monkeypatch.setattr(surface, "PROBES", (without,))
    with pytest.raises(_torch.LensUnsupported) as caught:
        surface.require.__wrapped__()
    assert probe.name in str(caught.value) and torch.__version__ in str(caught.value)


class Bare:
    """A node of a PyTorch that has moved everything."""

    next_functions = ()


@pytest.mark.parametrize(
    ("read", "what"),
    [
        (lambda: list(_torch.sequence_nrs([Bare()])), "_sequence_nr"),
        (lambda: _torch.outputs_of(Bare()), "_input_metadata"),
        (lambda: _torch.storage_key(Bare()), "_cdata"),
    ],
)
def test_a_missing_name_is_said_in_one_sentence(read, what):
    with pytest.raises(_torch.LensUnsupported, match=what) as caught:
        read()
    assert torch.__version__ in str(caught.value) and "\n" not in str(caught.value)


def test_the_next_sequence_number_is_that_of_the_next_node(monkeypatch):
    x = leaf(3)
    following = _torch.next_sequence_nr()
    assert x.exp().grad_fn._sequence_nr() == following == _torch.next_sequence_nr() - 1
    monkeypatch.setattr(torch._C, "_autograd", Bare())
    with pytest.raises(_torch.LensUnsupported, match="_get_sequence_nr"):
        _torch.next_sequence_nr()


SIGNS = pytest.mark.skipif(not _torch.CAN_SIGN, reason="torch 2.11 can't take an entry away")


@pytest.mark.parametrize("can_sign", [pytest.param(True, marks=SIGNS), False])
def test_a_sign_is_carried_by_the_backwards_of_one_thread(monkeypatch, can_sign):
    monkeypatch.setattr(threads, "CAN_SIGN", can_sign)
    sign, seen = _torch.Sign(), []
    y = leaf(3).exp()
    y.register_hook(lambda grad: seen.append(sign.here()))
    with sign.on_backwards():
        y.sum().backward(retain_graph=True)
        other = threading.Thread(target=y.sum().backward)
        other.start()
        other.join()
    assert seen == [True, False]


@SIGNS
def test_thread_local_state_keeps_an_object_until_it_is_taken_away():
    kept = object()
    before = sys.getrefcount(kept)
    torch._C._stash_obj_in_tls("test", kept)
    assert sys.getrefcount(kept) == before + 1
    torch._C._remove_obj_from_tls("test")
    assert sys.getrefcount(kept) == before and not torch._C._is_key_in_tls("test")


def test_signs_are_there_from_torch_2_13_on():
    assert _torch.CAN_SIGN or torch.__version__ < "2.13"


def test_raw_saved_is_the_tensor_itself():
    x = leaf(3)
    y = x.exp()
    node = y.grad_fn
    assert _torch.raw_fields(type(node)) == ("result",)
    raw = node._raw_saved_result
    assert raw.data.data_ptr() == y.data_ptr()
    assert raw.unpack_hook is None
    y.sum().backward()
    assert node._raw_saved_result.data is None, "released, and no error"


def test_raw_saved_of_a_hook_is_what_it_packed():
    def unpack(packed):
        raise AssertionError("unpacked")

    x = leaf(3)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: "packed", unpack):
        node = x.exp().grad_fn
    assert node._raw_saved_result.data == "packed"
    assert node._raw_saved_result.unpack_hook is unpack


def test_raw_saved_of_a_changed_tensor_does_not_raise():
    y = leaf(3).exp()
    node = y.grad_fn
    y.mul_(2)
    assert node._raw_saved_result.data is not None
    with pytest.raises(RuntimeError, match=r"is at version 1; expected version 0"):
        _ = node._saved_result  # the words by which the lens learns the saved version


def test_a_python_function_refuses_once_released_and_only_then():
    class Keeps(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, None)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g

    y = Keeps.apply(leaf(2))
    node = y.grad_fn
    assert isinstance(node, torch.autograd.function.BackwardCFunction)
    first, second = node._raw_saved_tensors
    assert first.data is not None and second.data is None
    y.sum().backward()
    with pytest.raises(RuntimeError):
        _ = node._raw_saved_tensors


def test_sequence_numbers_count_up_and_a_leaf_has_the_largest():
    x = leaf(1)
    a = x.exp()
    b = a.exp()
    assert b.grad_fn._sequence_nr() == a.grad_fn._sequence_nr() + 1
    accumulate = a.grad_fn.next_functions[0][0]
    assert accumulate._sequence_nr() == 2**64 - 1
    assert accumulate.variable is x


def test_input_metadata_describes_the_outputs():
    x = leaf(3, 4)
    values, _ = x.max(dim=1)
    (first, *rest) = _torch.outputs_of(values.grad_fn)
    assert first == ((3,), torch.float32)
    parts = x.split([1, 2])
    assert _torch.outputs_of(parts[0].grad_fn) == (
        ((1, 4), torch.float32),
        ((2, 4), torch.float32),
    )


def test_cdata_tells_storages_apart():
    a, b = torch.ones(2), torch.ones(2)
    assert a.untyped_storage()._cdata == a.view(2, 1).untyped_storage()._cdata
    assert a.untyped_storage()._cdata != b.untyped_storage()._cdata
    m, n = torch.empty(2, device="meta"), torch.empty(2, device="meta")
    assert m.data_ptr() == n.data_ptr() == 0
    assert m.untyped_storage()._cdata != n.untyped_storage()._cdata


@pytest.mark.parametrize(
    ("make", "parts"),
    [
        (lambda: torch.eye(3).to_sparse(), 2),
        (lambda: torch.eye(3).to_sparse_csr(), 3),
        (lambda: torch.eye(3).to_sparse_csc(), 3),
        (lambda: torch.eye(4).to_sparse_bsr((2, 2)), 3),
        (lambda: torch.eye(4).to_sparse_bsc((2, 2)), 3),
        (lambda: torch.eye(3), 0),
        (lambda: torch.nn.Parameter(torch.eye(3)), 0),
    ],
)
def test_parts_of_a_tensor(make, parts):
    inner = _torch.inner_tensors(make())
    assert len(inner) == parts
    assert all(part.layout == torch.strided for part in inner)


def test_functorch_tensors_are_unwrapped():
    seen = []

    def f(row):
        seen.append((type(row), _torch.inner_tensors(row)[0].shape))
        return row.sum()

    torch.vmap(f)(torch.ones(5, 2))
    torch.func.grad(f)(torch.ones(2))
    assert [shape for _, shape in seen] == [(5, 2), (2,)]


def test_what_a_node_keeps_besides_tensors():
    node = leaf(2, 3).sum(dim=1).grad_fn
    fields = _torch.plain_fields(type(node))
    assert {"dim", "keepdim"} <= set(fields)
    assert node._saved_keepdim is False


# Formulas


@pytest.fixture(scope="module")
def generated():
    """``{node: {input: formula}}`` as PyTorch's own generator reads the file."""
    from torchgen.packaged.autograd.load_derivatives import load_derivatives

    where = Path(importlib.util.find_spec("torchgen").submodule_search_locations[0], "packaged")
    native = where / "ATen" / "native"
    infos, _ = load_derivatives(
        str(where / "autograd" / "derivatives.yaml"),
        str(native / "native_functions.yaml"),
        str(native / "tags.yaml"),
    )
    return {
        info.op: info.derivatives
        for by_key in infos.values()
        for info in by_key.values()
        if info.op is not None
    }


def test_the_nodes_are_those_that_the_generator_makes(generated):
    with_formula = {op for op, derivatives in generated.items() if derivatives}
    copies = {op for op in with_formula if op.endswith("_copy")}
    assert len(with_formula) > 600
    missing = {op for op in with_formula - copies if not formulas.formula(op)}
    assert missing == set()
    assert set(formulas._table()) <= set(generated)


def test_each_formula_is_the_one_that_was_compiled(generated):
    def key(text):
        """The generator rewrites sizes and ``result``; what is left are the words."""
        return text.replace(" ", "")

    same = 0
    for op, derivatives in generated.items():
        mine = formulas.formula(op)
        for derivative in derivatives:
            assert set(derivative.var_names) <= set(mine), op
            original = derivative.original_formula
            for name in derivative.var_names:
                assert key(mine[name]) == key(original), (op, name)
                same += 1
        assert set(mine) == {n for d in derivatives for n in d.var_names}, op
    assert same > 900


def test_formulas_of_nodes_that_are_known():
    assert formulas.formula("ExpBackward0") == {"self": "grad * result.conj()"}
    assert set(formulas.formula("MmBackward0")) == {"self", "mat2"}
    assert formulas.formula("torch::autograd::AccumulateGrad") == {}
    assert formulas.formula("NoSuchBackward0") == {}


def test_without_the_file_there_are_no_formulas(monkeypatch):
    monkeypatch.setattr(_torch, "derivatives_file", lambda: None)
    formulas._table.cache_clear()
    try:
        assert formulas.formula("ExpBackward0") == {}
        assert lens.graph(leaf(2).exp()).nodes[0].formula == {}
    finally:
        formulas._table.cache_clear()


def test_a_pytorch_that_renamed_saved_tensors_is_refused(monkeypatch):
    _torch.require.__wrapped__()
    monkeypatch.setattr(surface, "raw_fields", lambda kind: ())
    with pytest.raises(_torch.LensUnsupported, match="_raw_saved_"):
        _torch.require.__wrapped__()

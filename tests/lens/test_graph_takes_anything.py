"""Whatever PyTorch can build can be looked at, and looking changes nothing."""

import gc
import html as entities
import weakref

import pytest
import torch
from cases import CASES, ODD, SHOWN, Counting, Keeps
from independent import alive, elements, saved_storages
from torch import nn
from torch.utils.checkpoint import checkpoint

import autograd_lens as lens

EVERY = pytest.mark.parametrize("name", CASES)


def looked_at(name, *and_then):
    """Run a case, looking through the lens; return its view and its gradients."""
    views = []

    def look(outputs, names):
        views.append(lens.graph(outputs, names))
        for act in and_then:
            act(views[-1])

    gradients = CASES[name][0](look)
    assert len(views) == 1, "the case looks once"
    return views[0], gradients


@EVERY
def test_the_nodes_are_those_that_pytorch_made(name):
    view, _ = looked_at(name)
    assert [(node.label, node.kind) for node in view.nodes] == CASES[name][1]


@EVERY
def test_it_shows_itself_as_text_and_dot(name):
    shown = []
    view, _ = looked_at(name, print, lambda view: shown.append((str(view), view.to_dot())))
    assert shown == [(str(view), view.to_dot())], "the picture changes after the call"
    text, dot = shown[0]
    assert text == view.figure().text()
    assert text.startswith(f"graph of {len(view.nodes)} nodes")
    for node in view.nodes:
        line = next(line for line in text.splitlines() if line.split()[0] == str(node.index))
        assert node.label in line
        assert f"\nnode{node.index} [" in dot
    drawn = [line for line in dot.splitlines() if " -> " in line]
    assert len(drawn) == len(view.edges)
    for edge, line in zip(view.edges, drawn, strict=True):
        assert line.startswith(f"node{edge.source} -> node{edge.target} ")


@pytest.mark.needs("dot")
@EVERY
def test_it_draws_every_node_and_edge(name):
    view, _ = looked_at(name)
    (frame,) = view.figure().frames()
    drawn = elements(frame.picture.svg())
    assert set(drawn) == {
        *(f"node{node.index}" for node in view.nodes),
        *(f"edge{number}" for number in range(len(view.edges))),
    }
    for node in view.nodes:
        kind = {node.kind} - {"op", "leaf"}
        drawn_as = drawn[f"node{node.index}"] - {"noted"}  # it tells PyTorch's formula
        assert drawn_as == kind | {"leaf" if node.kind == "leaf" else "op"}


@EVERY
def test_gradients_are_the_same_as_without_looking(name):
    torch.manual_seed(0)
    plain = CASES[name][0](lambda outputs, names: None)
    torch.manual_seed(0)
    _, looked = looked_at(name, str, lambda view: view.to_dot())
    assert len(plain) == len(looked)
    for a, b in zip(plain, looked, strict=True):
        assert a.dtype == b.dtype and torch.equal(a, b)


@EVERY
def test_the_view_keeps_no_memory(name):
    storages = {}

    def look(outputs, names):
        tensors = [t for t in torch.utils._pytree.tree_leaves(outputs) if torch.is_tensor(t)]
        if name == "inside_vmap":
            return
        storages.update(saved_storages(tensors))
        views.append(lens.graph(outputs, names))
        str(views[-1])

    views = []
    CASES[name][0](look)
    if name == "compiled":
        torch.compiler.reset()
    gc.collect()
    assert alive(storages) == []


def test_saved_memory_goes_with_backward_while_the_view_is_there():
    x = torch.randn(100, requires_grad=True)
    y = x.exp().sin().sum()
    storages = saved_storages([y])
    assert [size for _, size in storages.values()] == [400]
    view = lens.graph(y, {"x": x})
    str(view)
    assert len(alive(storages)) == 1
    y.backward()
    assert alive(storages) == []
    assert view.saved_bytes == 400


def test_the_view_keeps_no_named_tensor():
    x = torch.randn(3, requires_grad=True)
    h = x.exp()
    gone = [weakref.ref(x), weakref.ref(h)]
    view = lens.graph(h.sin(), {"x": x, "h": h}, group=lambda node: None)
    str(view)
    del x, h
    assert [ref() for ref in gone] == [None, None]
    assert view.nodes[1].outputs[0].name == "h"


def test_it_allocates_nothing():
    """The judge is PyTorch's own memory profiler: nothing is unpacked into new memory."""
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
    x = torch.randn(8, 64, requires_grad=True)
    y = checkpoint(model, x, use_reentrant=False).sum() + model(x).sum()
    with torch.profiler.profile(profile_memory=True) as watched:
        lens.graph(y, model)
    assert [e.key for e in watched.key_averages() if e.cpu_memory_usage or e.count > 100] == []


def test_hooks_are_shown_and_not_run():
    view, _ = looked_at("retained_gradients_and_hooks")
    _, y, x = view.nodes
    seen = [(hook.kind, hook.target, hook.order) for hook in (*y.hooks, *x.hooks)]
    assert seen == [
        ("tensor", "y", 0),
        ("retain_grad", "y", 0),
        ("tensor", "x", 0),
        ("tensor", "x", 1),
        ("post-accumulate", "x", 0),
    ]
    assert "⚑" in view.to_dot()


def test_unpack_hooks_that_raise_are_never_run():
    def refuse(packed):
        raise AssertionError("an unpack hook was run")

    x = torch.randn(3, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: {"inside": [t.clone()]}, refuse):
        y = (x.exp() * x).sum()
        z = Keeps.apply(y, torch.ones(()))
    view = lens.graph(z, {"x": x})
    str(view), view.to_dot()
    saved = {(node.label, s.field): s for node in view.nodes for s in node.saved}
    packed = saved["ExpBackward0", "result"]
    assert (packed.packed, packed.kind, packed.shape, packed.bytes) == (True, "dict", None, 12)
    assert packed.saved_version is None
    with pytest.raises(AssertionError):
        z.backward()


def test_hooks_that_keep_no_tensor():
    box = {}
    x = torch.randn(3, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: box.setdefault(len(box), t.clone()) is None or len(box) - 1, box.__getitem__
    ):
        y = x.exp()
    (saved,) = lens.graph(y).nodes[0].saved
    assert (saved.packed, saved.kind, saved.bytes) == (True, "int", 0)


def test_hooks_that_pack_none():
    x = torch.randn(3, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: None, lambda p: torch.ones(3)):
        y = x.exp()
    (saved,) = lens.graph(y).nodes[0].saved
    assert (saved.packed, saved.kind, saved.freed) == (True, "NoneType", False)


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_is_not_recomputed(reentrant):
    layer, x = Counting(3, 3), torch.randn(2, 3, requires_grad=True)
    y = checkpoint(layer, x, use_reentrant=reentrant)
    view = lens.graph(y, layer)
    str(view), view.to_dot()
    assert layer.calls == 1
    y.sum().backward()
    assert layer.calls == 2


def test_what_a_function_put_on_ctx_is_shown():
    view, _ = looked_at("function_that_saved_none")
    fields = {saved.field: saved for saved in view.nodes[0].saved}
    assert fields["ctx.extra"].bytes == 8 and fields["ctx.extra"].saved_version is None
    kept = [saved for name, saved in fields.items() if name.startswith("tensors")]
    assert [saved.empty for saved in kept] == [True, False, True]
    assert not any(saved.freed for saved in kept)
    freed, _ = looked_at("released_function")
    assert [s.field for s in freed.nodes[0].saved if s.freed] == ["tensors"]


def test_bytes_of_tensors_made_of_several():
    def saved(name, label, field):
        view, _ = looked_at(name)
        (node,) = [n for n in view.nodes if n.label == label]
        return next(s for s in node.saved if s.field == field)

    # COO: 2 × 3 indices of 8 bytes, 3 values of 4; CSR: 4 row and 3 column indices, 3 values
    assert saved("sparse_coo", "SparseAddmmBackward0", "mat1").bytes == 48 + 12
    assert saved("sparse_csr", "SparseAddmmBackward0", "mat1").bytes == 32 + 24 + 12
    assert saved("complex_numbers", "MulBackward0", "self").bytes == 24
    assert saved("wrapper_subclass", "MulBackward0", "self").bytes == 24
    assert len(saved("wrapper_subclass", "MulBackward0", "self").storages) == 2
    # strided nested: 6 rows of 3 floats
    assert saved("nested_strided", "MulBackward0", "self").bytes == 72
    assert saved("meta_tensors", "MmBackward0", "self").bytes == 48
    assert saved("fake_tensors", "MmBackward0", "self").bytes == 48
    assert saved("autocast", "AddmmBackward0", "mat2").dtype == torch.bfloat16
    assert saved("autocast", "AddmmBackward0", "mat2").bytes == 18
    # the whole batch is kept, not the one row that vmap shows
    assert saved("inside_vmap", "MulBackward0", "self").bytes == 24


def test_outputs_without_a_graph_are_counted():
    view, _ = looked_at("outputs_of_which_some_have_no_graph")
    assert view.plain_outputs == 4
    assert "4 outputs without a graph" in str(view)


def test_a_leaf_among_the_outputs_is_shown():
    x = torch.ones(2, requires_grad=True)
    view = lens.graph([x * 2, x], {"x": x})
    assert [(n.label, n.outputs[0].given) for n in view.nodes] == [
        ("MulBackward0", True),
        ("x", True),
    ]


@pytest.mark.needs("dot")
def test_odd_names_arrive_whole_in_the_picture():
    view, _ = looked_at("odd_names")
    html = view._repr_mimebundle_()["text/html"]
    for name in SHOWN:
        assert name in entities.unescape(html)
    assert "\0" not in html and len(ODD) == len(SHOWN)


def test_names_may_be_given_in_every_documented_way():
    model = nn.Sequential(nn.Linear(2, 2))
    y = model(torch.randn(1, 2))
    for names in (model, dict(model.named_parameters()), model.named_parameters()):
        view = lens.graph(y, names)
        assert {n.label for n in view.leaves} == {"0.weight", "0.bias"}


X = torch.ones(2, requires_grad=True)


def inference_tensor():
    with torch.inference_mode():
        return torch.ones(2) * 2


@pytest.mark.parametrize("call", [lens.graph, lens.record_backward])
@pytest.mark.parametrize(
    ("outputs", "error", "phrase"),
    [
        (torch.ones(2), ValueError, "does not require grad"),
        (X, ValueError, "it is a leaf"),
        ((X * 2).detach(), ValueError, "detached"),
        (torch.tensor([1]), ValueError, "dtype is torch.int64"),
        (inference_tensor(), ValueError, "inference tensor"),
        ([torch.ones(2), torch.ones(3)], ValueError, "none of the 2 tensors"),
        (None, TypeError, "not NoneType"),
        (3.0, TypeError, "not float"),
        ([], TypeError, "in this list there is none"),
        ({"a": [None, "b"]}, TypeError, "in this dict there is none"),
        (nn.Linear(1, 1), TypeError, "not Linear. The model comes second"),
        (torch.Tensor, TypeError, "pass a tensor"),
    ],
)
def test_errors_say_what_to_pass(call, outputs, error, phrase):
    with pytest.raises(error, match=phrase) as caught:
        call(outputs)
    one_sentence(caught.value, error)


@pytest.mark.parametrize("call", [lens.graph, lens.record_backward])
@pytest.mark.parametrize(
    ("names", "phrase"),
    [
        (3, "not int"),
        ("x", "not str"),
        (X, "not Tensor"),
        ({"a": 1}, "'a' is a int"),
        ([("a", X, 1)], "one entry is"),
        ([X], "one entry is|not list"),
    ],
)
def test_wrong_names(call, names, phrase):
    with pytest.raises(TypeError, match=phrase) as caught:
        call((X * 2).sum(), names=names)
    one_sentence(caught.value, TypeError)


@pytest.mark.parametrize(
    ("options", "phrase"),
    [
        ({"max_nodes": "many"}, "max_nodes must be an integer"),
        ({"max_nodes": 1}, "at least 2"),
        ({"max_nodes": 2.5}, "max_nodes must be an integer"),
        ({"group": "layer"}, "group must be a function"),
    ],
)
def test_wrong_options(options, phrase):
    with pytest.raises(TypeError, match=phrase) as caught:
        lens.graph(X * 2, **options)
    one_sentence(caught.value, TypeError)


def one_sentence(error, kind):
    assert type(error) is kind
    assert "\n" not in str(error) and len(str(error)) < 250


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_on_cuda():
    layer = nn.Linear(3, 2, device="cuda")
    x = torch.randn(5, 3, device="cuda", requires_grad=True)
    view = lens.graph(layer(x).sum(), layer)
    assert [n.label for n in view.nodes[:2]] == ["SumBackward0", "AddmmBackward0"]
    assert {n.label for n in view.leaves} == {"weight", "bias", "leaf 2"} or len(view.leaves) == 3
    assert {s.device for n in view.nodes for s in n.saved if not s.empty} == {"cuda:0"}
    assert all(n.leaf.device == "cuda:0" for n in view.leaves)

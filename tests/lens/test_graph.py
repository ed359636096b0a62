"""Graphs derived by hand from the rules of differentiation: every node, edge and saved tensor.

What a node saves is read off ``derivatives.yaml``: a formula that mentions an input or the result
makes the node keep it, if the gradient it is for is needed.
"""

import re

import pytest
import torch
from independent import edge_set, labels, saved_fields
from torch import nn

import autograd_lens as lens


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


def shape_and_bytes(saved):
    return saved.shape, saved.bytes, saved.storage_bytes


def test_chain():
    x = leaf(1.0, 2.0, 3.0)
    y = x.exp().sin()
    graph = lens.graph(y, {"x": x})
    assert [(n.index, n.name, n.kind, n.label) for n in graph.nodes] == [
        (0, "SinBackward0", "op", "SinBackward0"),
        (1, "ExpBackward0", "op", "ExpBackward0"),
        (2, "torch::autograd::AccumulateGrad", "leaf", "x"),
    ]
    assert [(e.source, e.target, e.slot, e.input_nr) for e in graph.edges] == [
        (0, 1, 0, 0),
        (1, 2, 0, 0),
    ]
    assert (graph.depth, graph.plain_outputs) == (3, 0)
    # sin keeps its input, exp its result: the same tensor
    (sin,) = graph.nodes[0].saved
    (exp,) = graph.nodes[1].saved
    assert (sin.field, exp.field) == ("self", "result")
    assert sin.storages == exp.storages
    for saved in (sin, exp):
        assert shape_and_bytes(saved) == ((3,), 12, 12)
        assert (saved.dtype, saved.device, saved.kind) == (torch.float32, "cpu", "Tensor")
        assert (saved.version, saved.saved_version) == (0, 0)
        assert not (saved.stale or saved.freed or saved.packed or saved.empty)
    assert graph.saved_bytes == 12
    assert graph.nodes[0].formula == {"self": "grad * self.cos().conj()"}


def test_creation_numbers_come_from_the_engine():
    x = leaf(1.0)
    y = x.exp().sin()
    graph = lens.graph(y)
    first, second, third = (node.sequence_nr for node in graph.nodes)
    assert first == second + 1
    assert third is None, "a leaf has none"


def test_diamond():
    x = leaf(2.0)
    a = x.exp()
    b = a * 3
    c = a.sin()
    graph = lens.graph(b + c, {"x": x, "a": a, "b": b, "c": c})
    # c was made last, so it is ready to run first; exp waits for both
    assert labels(graph) == ["AddBackward0", "SinBackward0", "MulBackward0", "ExpBackward0", "x"]
    assert edge_set(graph) == [
        ("AddBackward0", "MulBackward0", 0, 0),
        ("AddBackward0", "SinBackward0", 1, 0),
        ("ExpBackward0", "x", 0, 0),
        ("MulBackward0", "ExpBackward0", 0, 0),
        ("SinBackward0", "ExpBackward0", 0, 0),
    ]
    assert graph.depth == 4
    assert [node.outputs[0].name for node in graph.nodes[1:4]] == ["c", "b", "a"]
    assert [node.outputs[0].given for node in graph.nodes] == [True, False, False, False, False]


def worked_example():
    x = torch.tensor([1.0, 0.0])
    w1 = torch.tensor([[2.0, 1.0], [-1.0, 3.0]], requires_grad=True)
    w2 = leaf(0.5, 0.5)
    a = w1 @ x
    h = torch.relu(a)
    z = w2 @ h
    loss = 0.5 * z**2
    return loss, {"x": x, "W1": w1, "w2": w2, "a": a, "h": h, "z": z}


def test_worked_example():
    loss, names = worked_example()
    graph = lens.graph(loss, names)
    assert labels(graph) == [
        "MulBackward0",
        "PowBackward0",
        "DotBackward0",
        "w2",
        "ReluBackward0",
        "MvBackward0",
        "W1",
    ]
    assert edge_set(graph) == [
        ("DotBackward0", "ReluBackward0", 1, 0),
        ("DotBackward0", "w2", 0, 0),
        ("MulBackward0", "PowBackward0", 0, 0),
        ("MvBackward0", "W1", 0, 0),
        ("PowBackward0", "DotBackward0", 0, 0),
        ("ReluBackward0", "MvBackward0", 0, 0),
    ]
    # x needs no gradient: the second place of mv is empty, and mat is not kept for it
    mv = graph.nodes[5]
    assert mv.no_grad_inputs == (1,)
    saved = saved_fields(graph, "MvBackward0")
    assert saved["self"].empty and not saved["self"].freed
    assert shape_and_bytes(saved["vec"]) == ((2,), 8, 8)
    assert graph.storages[saved["vec"].storages[0]].owner == "x"
    # dot keeps both operands, relu its result, which is the same h
    dot, relu = saved_fields(graph, "DotBackward0"), saved_fields(graph, "ReluBackward0")
    assert {graph.storages[s.storages[0]].owner for s in dot.values()} == {"w2", "h"}
    assert relu["result"].storages == dot["tensor"].storages
    # pow keeps z; mul by the Python number 0.5 keeps that number as a double of 8 bytes
    assert shape_and_bytes(saved_fields(graph, "PowBackward0")["self"]) == ((), 4, 4)
    mul = saved_fields(graph, "MulBackward0")
    assert sorted(s.bytes for s in mul.values() if not s.empty) == [8]
    # w2, h, x of two floats, z of one, the double
    assert graph.saved_bytes == 3 * 8 + 4 + 8
    assert dict(graph.nodes[1].attributes) == {"exponent": "2"}
    leaves = {n.label: n.leaf for n in graph.leaves}
    assert set(leaves) == {"W1", "w2"}
    assert (leaves["W1"].shape, leaves["W1"].bytes, leaves["W1"].dtype) == (
        (2, 2),
        16,
        torch.float32,
    )
    assert leaves["w2"].storages == dot["self"].storages
    assert not leaves["W1"].parameter
    assert leaves["W1"].grad is None


def test_a_leaf_shows_its_gradient():
    loss, names = worked_example()
    loss.backward()
    graph = lens.graph(worked_example()[0])
    assert [node.leaf.grad for node in graph.leaves] == [None, None], "other leaves"
    again = 0.5 * (names["w2"] @ torch.relu(names["W1"] @ names["x"])) ** 2
    graph = lens.graph(again, names)
    assert {n.label: n.leaf.grad for n in graph.leaves} == {"W1": (2, 2), "w2": (2,)}


def test_parallel_edges():
    x = leaf(3.0)
    graph = lens.graph(x * x, {"x": x})
    assert edge_set(graph) == [("MulBackward0", "x", 0, 0), ("MulBackward0", "x", 1, 0)]
    saved = saved_fields(graph, "MulBackward0")
    assert saved["self"].storages == saved["other"].storages == graph.nodes[1].leaf.storages
    assert graph.saved_bytes == 4, "one storage, counted once"


@pytest.mark.parametrize(
    ("make", "name", "shapes"),
    [
        (lambda x: x.split([1, 2]), "SplitWithSizesBackward0", [(1, 4), (2, 4)]),
        (lambda x: x.unbind(), "UnbindBackward0", [(4,), (4,), (4,)]),
        (lambda x: torch.linalg.qr(x), "LinalgQrBackward0", [(3, 3), (3, 4)]),
    ],
)
def test_output_numbers(make, name, shapes):
    x = torch.randn(3, 4, requires_grad=True)
    parts = make(x)
    last = len(parts) - 1
    graph = lens.graph([parts[last].exp(), parts[0].sin()], {"x": x, "first": parts[0]})
    assert edge_set(graph) == sorted(
        [("ExpBackward0", name, 0, last), ("SinBackward0", name, 0, 0), (name, "x", 0, 0)]
    )
    (node,) = [n for n in graph.nodes if n.label == name]
    assert [output.shape for output in node.outputs] == shapes
    assert [output.name for output in node.outputs] == ["first"] + [None] * last


def test_max_along_a_dimension_has_an_output_without_gradient():
    x = torch.tensor([[1.0, 5.0], [7.0, 2.0]], requires_grad=True)
    values, indices = x.max(dim=1)
    graph = lens.graph((values, indices), {"x": x})
    assert labels(graph) == ["MaxBackward0", "x"]
    assert edge_set(graph) == [("MaxBackward0", "x", 0, 0)]
    assert graph.plain_outputs == 1
    saved = saved_fields(graph, "MaxBackward0")
    assert (saved["indices"].dtype, saved["indices"].bytes) == (torch.int64, 16)
    assert ("dim", "1") in graph.nodes[0].attributes


def test_one_node_given_twice_is_one_root():
    x = torch.randn(3, 4, requires_grad=True)
    a, b, c = x.unbind()
    graph = lens.graph([c, a, c], {"x": x})
    assert [output.given for output in graph.nodes[0].outputs] == [True, False, True]
    assert len(graph.nodes) == 2


def test_an_output_below_another_one():
    x = leaf(1.0)
    y = x.exp()
    z = y.sin()
    graph = lens.graph([y, z], {"x": x})
    assert labels(graph) == ["SinBackward0", "ExpBackward0", "x"]
    assert [n.outputs[0].given for n in graph.nodes[:2]] == [True, True]


def test_a_frozen_operand_is_not_needed():
    layer = nn.Linear(3, 2)
    layer.weight.requires_grad_(False)
    graph = lens.graph(layer(torch.randn(5, 3)), layer)
    assert labels(graph) == ["AddmmBackward0", "bias"]
    assert graph.nodes[0].no_grad_inputs == (1, 2)
    assert {s.field: (s.empty, s.freed) for s in graph.nodes[0].saved} == {
        "mat1": (True, False),
        "mat2": (True, False),
    }
    assert graph.leaves[0].leaf.parameter


def test_tied_weights_are_one_leaf_with_both_names():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(5, 3)
            self.head = nn.Linear(3, 5, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, index):
            return self.head(self.embed(index))

    model = Tied()
    graph = lens.graph(model(torch.tensor([1, 2])), model)
    assert labels(graph) == [
        "MmBackward0",
        "TBackward0",  # made after the embedding, so it runs before it
        "EmbeddingBackward0",
        "embed.weight = head.weight",
    ]
    assert edge_set(graph) == [
        ("EmbeddingBackward0", "embed.weight = head.weight", 0, 0),
        ("MmBackward0", "EmbeddingBackward0", 0, 0),
        ("MmBackward0", "TBackward0", 1, 0),
        ("TBackward0", "embed.weight = head.weight", 0, 0),
    ]
    # mm keeps the transposed weight: a view, so the leaf's own storage
    mat2 = saved_fields(graph, "MmBackward0")["mat2"]
    assert mat2.storages == graph.leaves[0].leaf.storages


def test_two_leaves_that_share_memory_stay_two():
    base = torch.arange(4.0)
    a = base[:2].requires_grad_()
    b = base[2:].requires_grad_()
    graph = lens.graph(a * b, {"a": a, "b": b})
    assert sorted(labels(graph)) == ["MulBackward0", "a", "b"]
    assert graph.leaves[0].leaf.storages == graph.leaves[1].leaf.storages
    saved = saved_fields(graph, "MulBackward0")
    assert (saved["self"].bytes, saved["self"].storage_bytes) == (8, 16)
    assert graph.saved_bytes == 16, "a view keeps the whole storage"


def test_a_changed_tensor_shows_both_versions():
    x = leaf(1.0, 2.0)
    y = x * 2
    z = y.exp()
    z.mul_(3)
    graph = lens.graph(z, {"x": x})
    assert labels(graph) == ["MulBackward0", "ExpBackward0", "MulBackward0", "x"]
    (result,) = graph.nodes[1].saved
    assert (result.version, result.saved_version, result.stale) == (1, 0, True)
    assert "CHANGED: version 1, saved at 0" in str(graph)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_a_change_before_saving_is_no_conflict():
    x = leaf(1.0, 2.0)
    y = x * 2
    y.add_(1)
    graph = lens.graph(y.exp().sin() + y * y)
    saved = [s for node in graph.nodes for s in node.saved if s.version]
    assert saved and all((s.version, s.saved_version, s.stale) == (1, 1, False) for s in saved)


def test_the_version_of_a_leaf():
    x = leaf(1.0)
    with torch.no_grad():
        x.add_(1)
        x.add_(1)
    assert lens.graph(x * 2).leaves[0].leaf.version == 2


def test_a_freed_graph_keeps_its_places():
    x = leaf(1.0)
    y = x.exp().sin()
    y.backward()
    graph = lens.graph(y, {"x": x})
    assert labels(graph) == ["SinBackward0", "ExpBackward0", "x"]
    assert [(s.field, s.freed, s.empty, s.bytes) for n in graph.nodes for s in n.saved] == [
        ("self", True, True, 0),
        ("result", True, True, 0),
    ]
    assert graph.saved_bytes == 0


def test_a_grad_fn_may_be_given_itself():
    x = leaf(1.0)
    y = x.exp().sin()
    graph = lens.graph(y.grad_fn.next_functions[0][0], {"x": x})
    assert labels(graph) == ["ExpBackward0", "x"]


def test_unnamed_leaves_are_numbered_in_order():
    a, b, c = leaf(1.0), leaf(2.0), leaf(3.0)
    graph = lens.graph(a * b + c, {"b": b})
    assert labels(graph) == ["AddBackward0", "leaf 1", "MulBackward0", "leaf 2", "b"]
    assert edge_set(graph)[:2] == [
        ("AddBackward0", "MulBackward0", 0, 0),
        ("AddBackward0", "leaf 1", 1, 0),
    ]


def test_the_order_is_the_same_every_time():
    def once():
        torch.manual_seed(1)
        x = torch.randn(4, 4, requires_grad=True)
        w = torch.randn(4, 4, requires_grad=True)
        y = torch.relu(x @ w) @ w + x.sin() * w.exp()
        return str(lens.graph(y.sum()))

    assert len({once() for _ in range(5)}) == 1


def test_the_view_outlives_the_graph():
    loss, names = worked_example()
    graph = lens.graph(loss, names)
    before = str(graph)
    loss.backward()
    del loss, names
    assert str(graph) == before


def test_folding_and_grouping_leave_the_data_complete():
    x = leaf(1.0)
    y = x
    for _ in range(50):
        y = y * 1.5
    whole = lens.graph(y, {"x": x})
    small = lens.graph(y, {"x": x}, max_nodes=10)
    assert len(small.nodes) == len(whole.nodes) == 51
    assert len(small.edges) == 50
    assert "[folded: 42 nodes, saved 336 B]" in str(small)
    assert len([line for line in str(small).splitlines() if line[:2].strip().isdigit()]) == 10
    assert "42 nodes folded" in small.figure().frames()[0].numbers
    pairs = lens.graph(
        y, {"x": x}, group=lambda node: node.index // 26 if node.kind == "op" else None
    )
    assert "[0: 26 nodes, saved 208 B]" in str(pairs) and "[1: 24 nodes, saved" in str(pairs)
    assert len(pairs.nodes) == 51


def test_a_negative_dimension_is_shown_as_it_was_given():
    x = torch.ones(2, 3, requires_grad=True)
    assert ("dim", "-1") in lens.graph(x.softmax(-1)).nodes[0].attributes
    assert ("dim", "1") in lens.graph(x.softmax(1)).nodes[0].attributes
    assert ("dim", "(-1,)") in lens.graph(x.sum((-1,))).nodes[0].attributes


def test_a_list_with_a_changed_tensor_accuses_no_other():
    class Keep(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, changed, untouched):
            ctx.save_for_backward(changed, untouched)
            return a * 1

        @staticmethod
        def backward(ctx, grad):
            return grad, None, None

    changed, untouched = torch.ones(2), torch.ones(2)
    untouched.add_(1)  # version 1 when it is saved
    y = Keep.apply(torch.ones(2, requires_grad=True), changed, untouched)
    changed.add_(1)  # version 1 now, 0 when it was saved
    first, second = lens.graph(y).nodes[0].saved
    assert (first.version, second.version) == (1, 1)
    each_is_asked = torch.__version__ >= torch.torch_version.TorchVersion("2.13")
    known = (0, 1) if each_is_asked else (None, None)
    assert (first.saved_version, second.saved_version) == known
    assert first.stale == each_is_asked and not second.stale

    changed.add_(1)  # now only one of them can be meant
    first, second = lens.graph(y).nodes[0].saved
    assert first.stale and first.saved_version == 0 and not second.stale


def test_a_leaf_shows_the_values_of_a_small_grad():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    leaf = lens.graph((x * x).sum(), {"x": x}).nodes[-1].leaf
    assert leaf.grad == (2,) and leaf.grad_values == (2.0, 4.0)
    assert ".grad [2, 4]" in str(lens.graph((x * x).sum(), {"x": x}))


def test_a_shared_leaf_stays_a_row_in_single_nodes_when_other_users_are_folded():
    cell = torch.nn.RNNCell(4, 4)
    h = torch.zeros(1, 4)
    for _ in range(60):
        h = cell(torch.ones(1, 4), h)
    graph = lens.graph(h.sum(), dict(cell.named_parameters()), max_nodes=120)
    (bias,) = [node for node in graph.leaves if node.label == "bias_hh"]
    lines = graph.to_dot().splitlines()
    (fold,) = [line.split()[0] for line in lines if "folded" in line]
    assert [line.split()[0] for line in lines if f"-> node{bias.index} " in line] == [fold]
    rows = sum("↓ bias_hh" in line for line in lines)
    users = {edge.source for edge in graph.edges if edge.target == bias.index}
    single = [line for line in lines if re.match(r"node\d+ \[", line) and "folded" not in line]
    shown = {int(line.split()[0][4:]) for line in single}
    assert rows == len(users & shown) > 10

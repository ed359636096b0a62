"""Graphs of every kind that PyTorch can build, small, each with the nodes that must be seen.

A case is a function of ``look``; it calls ``look(outputs, names)`` while its graph is there (which
may be inside ``vmap``), and returns the gradients that PyTorch computes afterwards, or an empty
list where there is nothing to differentiate any more.
"""

from __future__ import annotations

import collections
import dataclasses

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

CASES = {}


def case(*nodes):
    """Register a case with its ``(label, kind)`` in engine order."""

    def register(make):
        CASES[make.__name__] = (make, [tuple(node.rsplit(" ", 1)) for node in nodes])
        return make

    return register


def leaf(*shape, **options):
    return torch.randn(*shape, requires_grad=True, **options)


def gradients(output, inputs, **options):
    return list(torch.autograd.grad(output, inputs, torch.ones_like(output), **options))


Pair = collections.namedtuple("Pair", "first second")


@dataclasses.dataclass
class Result:
    loss: object
    rest: object = None


@case("MulBackward0 op", "MulBackward0 op", "MulBackward0 op", "MulBackward0 op", "x leaf")
def any_nesting_of_containers(look):
    x = leaf(2)
    a, b, c, d = x * 2, x * 3, x * 4, x * 5
    tree = {"k": [a, (b, Pair(c, Result(d, {"none": None})))], "n": 3, "s": "text", "e": []}
    look(tree, {"x": x})
    return gradients(a + b + c + d, x)


@case("ExpBackward0 op", "x leaf")
def outputs_of_which_some_have_no_graph(look):
    x = leaf(2)
    with torch.inference_mode():
        made_in_inference = torch.ones(2) * 2
    y = x.exp()
    look([torch.ones(1), y, torch.tensor(3), made_in_inference, y.detach()], {"x": x})
    return gradients(y, x)


@case("MulBackward0 op", "x leaf")
def inference_tensors_as_operands(look):
    x = leaf(2)
    with torch.inference_mode():
        factor = torch.full((2,), 3.0)
    y = x * factor.clone()
    look(y, {"x": x})
    return gradients(y, x)


@case("SinBackward0 op", "ExpBackward0 op", "x leaf")
def freed(look):
    x = leaf(2)
    y = x.exp().sin()
    found = gradients(y, x)
    look(y, {"x": x})
    return found


@case(
    "MulBackward0 op",
    "MulBackward1 op",
    "PowBackward0 op",
    "x leaf",
)
def double_backward(look):
    x = leaf(3)
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    look(g, {"x": x})
    return gradients(g, x)


@case(
    "CopyBackwards op",
    "MulBackward0 op",
    "MulBackward1 op",
    "PowBackward0 op",
    "SumBackward0 op",
    "PowBackward0 op",
    "x leaf",
)
def cycle_through_grad(look):
    x = leaf(3)
    y = (x**3).sum()
    y.backward(create_graph=True)
    look([y, x.grad], {"x": x})
    found = gradients(x.grad, x)
    x.grad = None
    return found


@case("SumBackward0 op", "CopySlices opaque", "CopySlices opaque", "MulBackward0 op", "x leaf")
def in_place_on_views(look):
    x = leaf(4)
    y = x * 2
    y[1:3].mul_(3)
    y[0] = 1.0
    look(y.sum(), {"x": x, "y": y})
    return gradients(y.sum(), x)


@case("AddBackward0 op", "MulBackward0 op", "x leaf")
def in_place(look):
    x = leaf(4)
    y = x * 2
    y.add_(1)
    look(y, {"x": x, "y": y})
    return gradients(y, x)


@case("MulBackward0 op", "SliceBackward0 op", "x leaf")
def view_of_a_leaf(look):
    x = leaf(4)
    v = x[1:3]
    look(v * v, {"x": x, "v": v})
    return gradients(v * v, x)


class Keeps(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(None, x, None)
        ctx.extra = torch.ones(2)
        ctx.number = 3
        return x * y

    @staticmethod
    def backward(ctx, g):
        return g * 3, None


class KeepsNothing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


@case("KeepsBackward custom", "x leaf")
def function_that_saved_none(look):
    x = leaf(2)
    y = Keeps.apply(x, torch.ones(2))
    look(y, {"x": x})
    return gradients(y, x)


@case("KeepsNothingBackward custom", "x leaf")
def function_that_saved_nothing(look):
    x = leaf(2)
    y = KeepsNothing.apply(x)
    look(y, {"x": x})
    return gradients(y, x)


@case("KeepsBackward custom", "x leaf")
def released_function(look):
    x = leaf(2)
    y = Keeps.apply(x, torch.ones(2))
    found = gradients(y, x)
    look(y, {"x": x})
    return found


@case("SumBackward0 op", "MulBackward0 op", "x leaf")
def retained_gradients_and_hooks(look):
    x = leaf(3)
    x.register_hook(lambda g: g * 2)
    x.register_hook(lambda g: None)
    x.register_post_accumulate_grad_hook(lambda t: None)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 5)
    look(y.sum(), {"x": x, "y": y})
    y.sum().backward()
    return [x.grad, y.grad]


@case("ExpBackward0 op", "x leaf")
def packed_by_hooks(look):
    x = leaf(3)
    unpacked = []

    def unpack(packed):
        unpacked.append(1)
        return packed[0]

    with torch.autograd.graph.saved_tensors_hooks(lambda t: (t.detach().clone(), "z"), unpack):
        y = x.exp()
    look(y, {"x": x})
    assert unpacked == [], "looking ran an unpack hook"
    return gradients(y, x)


@case("ExpBackward0 op", "x leaf")
def packed_on_cpu(look):
    x = leaf(3)
    with torch.autograd.graph.save_on_cpu():
        y = x.exp()
    look(y, {"x": x})
    return gradients(y, x)


class Counting(nn.Linear):
    calls = 0

    def forward(self, x):
        self.calls += 1
        return torch.relu(super().forward(x))


@case(
    "ReluBackward0 op",
    "AddmmBackward0 op",
    "bias leaf",
    "x leaf",
    "TBackward0 op",
    "weight leaf",
)
def checkpoint_that_is_not_reentrant(look):
    layer, x = Counting(3, 3), leaf(2, 3)
    y = checkpoint(layer, x, use_reentrant=False)
    look(y, {"x": x, **dict(layer.named_parameters())})
    assert layer.calls == 1, "looking recomputed the forward pass"
    return gradients(y, [x, layer.weight])


@case("CheckpointFunctionBackward custom", "x leaf")
def checkpoint_that_is_reentrant(look):
    layer, x = Counting(3, 3), leaf(2, 3)
    y = checkpoint(layer, x, use_reentrant=True)
    look(y, {"x": x, **dict(layer.named_parameters())})
    assert layer.calls == 1, "looking recomputed the forward pass"
    y.sum().backward()
    return [x.grad, layer.weight.grad]


@case(
    "SumBackward0 op",
    "SelectBackward0 op",
    "ViewAsRealBackward0 op",
    "MulBackward0 op",
    "ConjBackward0 op",
    "x leaf",
)
def complex_numbers(look):
    x = leaf(3, dtype=torch.complex64)
    y = (x * x.conj()).real.sum()
    look(y, {"x": x})
    return gradients(y, x)


@case("SparseAddmmBackward0 op", "s leaf", "x leaf")
def sparse_coo(look):
    s = torch.eye(3).to_sparse().requires_grad_()
    x = leaf(3, 3)
    y = torch.sparse.mm(s, x)
    look(y, {"s": s, "x": x})
    return gradients(y, x)


@case("SparseAddmmBackward0 op", "s leaf", "x leaf")
def sparse_csr(look):
    s = torch.eye(3).to_sparse_csr().requires_grad_()
    x = leaf(3, 3)
    y = torch.sparse.mm(s, x)
    look(y, {"s": s, "x": x})
    return gradients(y, x)


@case("MulBackward0 op", "n leaf")
def nested_strided(look):
    n = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], requires_grad=True)
    y = n * n
    look(y, {"n": n})
    y.backward(torch.ones_like(y))
    return list(n.grad.unbind())


@case("SumBackward0 op", "NestedGetValuesBackward0 op", "MulBackward0 op", "n leaf")
def nested_jagged(look):
    parts = [torch.ones(2, 3), torch.ones(4, 3)]
    n = torch.nested.nested_tensor(parts, layout=torch.jagged, requires_grad=True)
    y = (n * n).values().sum()
    look(y, {"n": n})
    y.backward()
    return list(n.grad.unbind())


@case("SumBackward0 op", "MmBackward0 op", "TBackward0 op", "x leaf")
def meta_tensors(look):
    x = leaf(3, 4, device="meta")
    y = (x @ x.t()).sum()
    look(y, {"x": x})
    y.backward()
    assert x.grad.shape == (3, 4)
    return []


@case("SumBackward0 op", "MmBackward0 op", "TBackward0 op", "x leaf")
def fake_tensors(look):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        x = leaf(3, 4)
        y = (x @ x.t()).sum()
        look(y, {"x": x})
        y.backward()
    look_outside = torch.ones(1)
    assert x.grad.shape == (3, 4) and look_outside.item() == 1
    return []


@case("SumBackward0 op", "MulBackward0 op", "x leaf")
def wrapper_subclass(look):
    from torch.testing._internal.two_tensor import TwoTensor

    x = TwoTensor(torch.ones(3), torch.full((3,), 2.0)).requires_grad_()
    y = (x * x).sum()
    look(y, {"x": x})
    y.backward()
    return [x.grad.a, x.grad.b]


class Plain(torch.Tensor):
    pass


@case(
    "AliasBackward0 op",
    "SumBackward0 op",
    "AliasBackward0 op",
    "MulBackward0 op",
    "x leaf",
)
def plain_subclass(look):
    x = torch.ones(3).as_subclass(Plain).requires_grad_()
    y = (x * x).sum()
    look(y, {"x": x})
    y.backward()
    return [x.grad.as_subclass(torch.Tensor)]


@case("SumBackward1 op", "MulBackward0 op", "x leaf")
def inside_vmap(look):
    x = leaf(3, 2)

    def row(r):
        y = (r * r).sum()
        look(y, {"x": x})
        return y

    return gradients(torch.vmap(row)(x), x)


@case("SumBackward0 op", "MulBackward0 op", "r leaf")
def inside_func_grad(look):
    def f(r):
        y = (r * r).sum()
        look(y, {"r": r})
        return y

    return [torch.func.grad(f)(torch.randn(3))]


@case("CompiledFunctionBackward compiled", "weight leaf", "bias leaf", "x leaf")
def compiled(look):
    torch.compiler.reset()
    layer, x = nn.Linear(3, 3), leaf(2, 3)
    y = torch.compile(layer, backend="aot_eager")(x)
    look(y, {"x": x, **dict(layer.named_parameters())})
    return gradients(y, [x, layer.weight])


@case("ForeachMulBackward1Scalar opaque", "a leaf", "b leaf")
def foreach(look):
    a, b = leaf(2), leaf(2)
    c, d = torch._foreach_mul([a, b], 2.0)
    look([c, d], {"a": a, "b": b})
    return gradients(c + d, [a, b])


@case(
    "AddmmBackward0 op",
    "TBackward0 op",
    "ToCopyBackward0 op",
    "x leaf",
    "ToCopyBackward0 op",
    "weight leaf",
    "ToCopyBackward0 op",
    "bias leaf",
)
def autocast(look):
    layer, x = nn.Linear(3, 3), leaf(2, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = layer(x)
    look(y, {"x": x, **dict(layer.named_parameters())})
    return gradients(y, [x, layer.weight])


ODD = [
    'say "hi"',
    "a<b>&amp;",
    "a|b{}",
    "größe 日本",
    "two\nlines",
    "nul\0",
    "back\\slash\\",
    "\u202e",
]
SHOWN = [*ODD[:4], r"two\nlines", r"nul\x00", ODD[6], r"\u202e"]


@case("CatBackward0 op", *[f"{name} leaf" for name in SHOWN])
def odd_names(look):
    leaves = [leaf(1) for _ in ODD]
    y = torch.cat(leaves)
    look(y, dict(zip(ODD, leaves, strict=True)))
    return gradients(y, leaves)


@case("MulBackward0 op", "w leaf", "w leaf")
def two_leaves_of_one_name(look):
    a, b = leaf(1), leaf(1)
    look(a * b, [("w", a), ("w", b)])
    return gradients(a * b, [a, b])


@case("IndexBackward0 op", "x leaf")
def list_of_saved_tensors_with_none_packed_by_hooks(look):
    x = leaf(3, 4)
    unpacked = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: t.clone(), lambda t: (unpacked.append(1), t)[1]
    ):
        y = x[:, torch.tensor([0, 2])]
    look(y, {"x": x})
    assert unpacked == [], "looking ran an unpack hook"
    return gradients(y, x)


@case("MulBackward0 op", "leaf 1 leaf", "leaf 2 leaf")
def an_empty_name(look):
    a, b = leaf(1), leaf(1)
    look(a * b, {"": a})
    return gradients(a * b, [a, b])


@case(
    "EmbeddingBackward0 op",
    "weight leaf",
)
def embedding_with_sparse_gradients(look):
    layer = nn.Embedding(5, 2, sparse=True)
    y = layer(torch.tensor([1, 1, 4]))
    look(y, layer)
    y.sum().backward()
    return [layer.weight.grad.coalesce().values()]


@case("TanhBackward0 op", "GeneratedBackwardFor_lens_tests_double_defaultBackward custom", "x leaf")
def custom_op(look):
    x = leaf(2)
    y = torch.tanh(_custom_op()(x))
    look(y, {"x": x})
    return gradients(y, x)


def _custom_op():
    global _made
    if _made is None:

        @torch.library.custom_op("lens_tests::double", mutates_args=())
        def double(x: torch.Tensor) -> torch.Tensor:
            return x * 2

        double.register_autograd(lambda ctx, g: g * 2)
        _made = double
    return _made


_made = None

"""What a graph can keep alive, small: one case for each way, and the six models.

A case is a generator: it yields ``(names, inputs)`` as the ledger takes them, then the outputs of a
forward pass. ``opaque`` names the kinds of nodes that the ledger can't see there. No output comes
straight from a Python Function: on torch 2.11 its ``grad_fn`` alone does not keep the node alive.
"""

from __future__ import annotations

import functools
import os
import tempfile

import torch
import torch.nn.functional as F
from models import Cube
from torch import nn
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)

CASES: dict = {}
OPAQUE: dict = {}
MODELS: dict = {}


def case(make=None, *, opaque=()):
    def register(make):
        CASES[make.__name__] = make
        OPAQUE[make.__name__] = opaque
        return make

    return register(make) if make else register


def model(make):
    MODELS[make.__name__] = make
    return make


def leaf(*shape, **options):
    return torch.randn(*shape, requires_grad=True, **options)


# The six models


@model
def toy():
    x = torch.tensor([1.0, 0.0])
    w1 = torch.tensor([[2.0, 1.0], [-1.0, 3.0]], requires_grad=True)
    w2 = torch.tensor([0.5, 0.5], requires_grad=True)
    yield {"w1": w1, "w2": w2}, x
    yield 0.5 * (w2 @ torch.relu(w1 @ x)) ** 2


@model
def mlp():
    net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64), nn.GELU())
    x = torch.randn(32, 64)
    yield net, x
    yield net(x).square().mean()


class Residual(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        sizes = ((width, inner, 1), (inner, inner, 3), (inner, width, 1))
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Conv2d(a, b, k, padding=k // 2, bias=False), nn.BatchNorm2d(b))
            for a, b, k in sizes
        )

    def forward(self, x):
        y = x
        for number, layer in enumerate(self.layers):
            y = layer(y)
            y = y.relu_() if number < 2 else y
        return (x + y).relu()


@model
def convolutions():
    """53 convolutions with batch norm."""
    blocks = [Residual(16, 8) for _ in range(17)]
    stem = nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)
    end = nn.Conv2d(16, 16, 3), nn.BatchNorm2d(16), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    net = nn.Sequential(*stem, *blocks, *end, nn.Linear(16, 10))
    assert sum(isinstance(m, nn.Conv2d) for m in net.modules()) == 53
    x, target = torch.randn(2, 3, 12, 12), torch.arange(2)
    yield net, (x, target)
    yield F.cross_entropy(net(x), target)


class Block(nn.Module):
    def __init__(self, width, heads, composite):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )
        self.drop = nn.Dropout(0.1)
        self.heads, self.composite = heads, composite

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        if self.composite:
            scores = (q @ k.transpose(-2, -1)) * (width / self.heads) ** -0.5
            ahead = torch.ones(length, length, dtype=torch.bool).triu(1)
            scores = scores.masked_fill(ahead, float("-inf"))
            mixed = self.drop(scores.softmax(-1)) @ v
        else:
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.drop(self.out(mixed.transpose(1, 2).reshape(batch, length, width)))
        return x + self.drop(self.mlp(self.norm2(x)))


class Transformer(nn.Module):
    """Tied head, dropout."""

    def __init__(self, composite, layers=12, width=32, vocabulary=64):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.blocks = nn.Sequential(*(Block(width, 4, composite) for _ in range(layers)))
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        logits = self.head(self.blocks(self.embed(tokens)))
        return F.cross_entropy(logits.flatten(0, 1), tokens.flatten())


@model
def transformer():
    """12 layers, composite attention."""
    net, tokens = Transformer(composite=True), torch.arange(32).view(2, 16)
    yield net, tokens
    yield net(tokens)


@model
def transformer_sdpa():
    """12 layers, scaled_dot_product_attention."""
    net, tokens = Transformer(composite=False), torch.arange(32).view(2, 16)
    yield net, tokens
    yield net(tokens)


@model
def rnn():
    """500 steps."""
    net = nn.ModuleDict({"inner": nn.Linear(16, 16), "outer": nn.Linear(8, 16)})
    h, xs = torch.zeros(1, 16), torch.randn(500, 1, 8)
    yield net, (h, xs)
    for x in xs:
        h = torch.tanh(net["inner"](h) + net["outer"](x))
    yield h.square().mean()


# Every way to keep something alive


@case
def python_scalars():
    x = leaf(3)
    yield {"x": x}, ()
    yield ((x * 2.5) ** 2 / 3 - 1).sin() * True


@case
def tensor_lists():
    x, y = leaf(3, 4), leaf(2, 4)
    yield {"x": x, "y": y}, ()
    stacked = torch.stack([x.exp(), x.sin()])
    picked = x[torch.tensor([0, 2]), torch.tensor([1, 1])]
    yield [torch.einsum("kij,lj->kil", stacked, y), torch.cat([x, y]).exp(), picked * picked]


@case
def a_view_of_a_much_larger_storage():
    x = leaf(2)
    yield {"x": x}, ()
    yield torch.randn(1000, 2)[3] * x


@case
def a_view_of_a_larger_input():
    x, data = leaf(2), torch.randn(1000, 2)
    yield {"x": x}, data
    yield data[3] * x


@case
def two_views_of_one_storage():
    x = leaf(4)
    yield {"x": x}, ()
    a, b = x.exp().split(2)
    yield a * b


@case(opaque=("CopySlices",))
def in_place_on_a_view():
    x = leaf(4)
    yield {"x": x}, ()
    y = x * 2
    y[1:3].mul_(3)
    y[0] = 1.0
    yield y.sum()


@case
def in_place():
    x = leaf(4)
    yield {"x": x}, ()
    y = x * 2
    y.add_(1).exp_()
    yield y.relu_().sum()


class OnCtx(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, mask):
        ctx.save_for_backward(x)
        ctx.made = torch.ones(5)
        ctx.several = {"a": [torch.ones(3), mask], "n": 3}
        ctx.inside = Holder(torch.ones(7))
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2, None


class Holder:
    def __init__(self, tensor):
        self.tensor = tensor


@case
def tensors_on_ctx():
    x, mask = leaf(2), torch.ones(2)
    yield {"x": x}, mask
    yield OnCtx.apply(x.exp(), mask).sum()


class WithGraph(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        with torch.enable_grad():
            inner = x.detach().requires_grad_()
            ctx.inner = inner
            ctx.outer = (inner.exp() * 3).sin()
        return ctx.outer.detach()

    @staticmethod
    def backward(ctx, g):
        return torch.autograd.grad(ctx.outer, ctx.inner, g)


@case
def a_graph_inside_a_function():
    x = leaf(4)
    yield {"x": x}, ()
    yield WithGraph.apply(x.exp()).sum()


class ForForward(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.save_for_forward(inputs[0] * 3)

    @staticmethod
    def backward(ctx, g):
        return g * 2

    @staticmethod
    def jvp(ctx, t):
        return t * 2


@case
def saved_for_forward():
    x = leaf(4)
    yield {"x": x}, ()
    yield ForForward.apply(x.exp()).sum()


@case
def custom_function():
    x, y = leaf(4), leaf(4)
    yield {"x": x, "y": y}, ()
    a, b = Cube.apply(x, y * 2)
    yield (a * b).sum()


@case
def checkpoint_not_reentrant():
    net, x = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4)), leaf(3, 4)
    yield net, x
    yield checkpoint(net, x.exp(), use_reentrant=False).sum()


@case
def checkpoint_with_keywords():
    layer, x, scale = nn.Linear(4, 4), leaf(3, 4), leaf(4)
    yield [*layer.named_parameters(), ("scale", scale)], x

    def run(x, factor):
        return layer(x) * factor

    yield checkpoint(run, x.exp(), use_reentrant=False, factor=scale.exp()).sum()


@case
def checkpoint_of_a_closure():
    layer, x = nn.Linear(4, 4), leaf(3, 4)
    yield layer, x
    mask = torch.ones(4)
    yield checkpoint(lambda x: layer(x) * mask, x, use_reentrant=False).sum()


@case
def checkpoint_in_a_checkpoint():
    layer, x = nn.Sequential(nn.Linear(4, 4), nn.Tanh()), leaf(3, 4)
    yield layer, x

    def outer(x):
        return checkpoint(layer, layer(x), use_reentrant=False)

    yield checkpoint(outer, x.exp(), use_reentrant=False).sum()


@case
def checkpoint_selective():
    layer, x = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4), nn.Tanh()), leaf(3, 4)
    yield layer, x

    def keep_matmuls(ctx, op, *args, **kwargs):
        must = op is torch.ops.aten.addmm.default
        return CheckpointPolicy.MUST_SAVE if must else CheckpointPolicy.PREFER_RECOMPUTE

    contexts = functools.partial(create_selective_checkpoint_contexts, keep_matmuls)
    yield checkpoint(layer, x.exp(), use_reentrant=False, context_fn=contexts).sum()


@case
def checkpoint_without_random_state():
    net, x = nn.Sequential(nn.Linear(4, 4), nn.Tanh()), leaf(3, 4)
    yield net, x
    yield checkpoint(net, x.exp(), use_reentrant=False, preserve_rng_state=False).sum()


@case
def checkpoint_reentrant():
    net, x = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)), leaf(3, 4)
    yield net, x
    yield checkpoint(net, x.exp(), use_reentrant=True).square().sum()


@case
def saved_on_cpu():
    x, w = leaf(3, 4), leaf(4, 5)
    yield {"x": x, "w": w}, ()
    with save_on_cpu():
        y = (x.exp() @ w).tanh()
    yield y


def refuse(packed):
    raise AssertionError("an unpack hook was run")


@case
def packed_to_int8():
    x, w = leaf(3, 4), leaf(4, 5)
    yield {"x": x, "w": w}, ()

    def pack(t):
        scale = t.detach().abs().max() / 127
        return (t.detach() / scale).round().to(torch.int8), scale

    with saved_tensors_hooks(pack, refuse):
        y = (x.exp() @ w).tanh()
    yield y


@case
def packed_with_a_graph():
    """The pack hook forgets no_grad: what it returns keeps a graph of its own."""
    x = leaf(4)
    yield {"x": x}, ()
    with saved_tensors_hooks(lambda t: (t * 2).sin(), refuse):
        y = (x * 1.0).exp()
    yield y


@case
def packed_into_an_object():
    x = leaf(4)
    yield {"x": x}, ()
    with saved_tensors_hooks(lambda t: Holder([t.detach().clone()]), refuse):
        y = x.exp().sin()
    yield y


class Shelf:
    """Keeps what it packs; its tickets are numbers."""

    def __init__(self):
        self.kept = []

    def pack(self, tensor):
        self.kept.append(tensor.detach().clone())
        return len(self.kept) - 1

    def unpack(self, ticket):
        raise AssertionError("an unpack hook was run")


@case
def packed_onto_a_shelf():
    x = leaf(4)
    yield {"x": x}, ()
    shelf = Shelf()
    with saved_tensors_hooks(shelf.pack, shelf.unpack):
        y = x.exp().sin()
    yield y


class OnDisk:
    def __init__(self, tensor):
        handle, self.path = tempfile.mkstemp()
        os.close(handle)
        torch.save(tensor, self.path)

    def __del__(self):
        os.unlink(self.path)


@case
def packed_to_disk():
    x = leaf(4)
    yield {"x": x}, ()
    with saved_tensors_hooks(OnDisk, refuse):
        y = x.exp().sin()
    yield y


@case
def nested_hooks():
    x = leaf(4)
    yield {"x": x}, ()
    with saved_tensors_hooks(lambda t: t.detach().clone(), refuse):
        a = x.exp()
        with saved_tensors_hooks(lambda t: [t.detach().to(torch.float64)], refuse):
            b = a.sin()
        c = b.tanh()
    yield c * a


@case
def sparse_coo():
    s, x = torch.eye(3).to_sparse().requires_grad_(), leaf(3, 3)
    yield {"s": s, "x": x}, ()
    yield torch.sparse.mm(s, x.exp()).exp()


@case
def sparse_made_in_the_forward():
    x = leaf(3, 3)
    yield {"x": x}, ()
    yield torch.sparse.mm((torch.eye(3) * 2).to_sparse(), x.exp())


@case
def sparse_csr():
    x = leaf(3, 3)
    yield {"x": x}, ()
    yield torch.sparse.mm(torch.eye(3).to_sparse_csr(), x.exp())


@case
def nested_jagged():
    parts = [torch.ones(2, 3), torch.ones(4, 3)]
    n = torch.nested.nested_tensor(parts, layout=torch.jagged, requires_grad=True)
    yield {"n": n}, ()
    yield (n.sin() * n.exp()).values().sum()


@case
def nested_jagged_made_in_the_forward():
    x = leaf(6, 3)
    yield {"x": x}, ()
    n = torch.nested.nested_tensor_from_jagged(x.exp(), torch.tensor([0, 2, 6]))
    yield (n.sin() * n).values().sum()


@case
def nested_strided():
    n = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], requires_grad=True)
    yield {"n": n}, ()
    y = n * n
    yield y * y


@case
def wrapper_subclass():
    from torch.testing._internal.two_tensor import TwoTensor

    x = TwoTensor(torch.ones(3), torch.full((3,), 2.0)).requires_grad_()
    yield {"x": x}, ()
    yield (x.exp() * x).sum()


@case
def double_backward():
    x = leaf(5)
    yield {"x": x}, ()
    (g,) = torch.autograd.grad((x**3).exp().sum(), x, create_graph=True)
    yield g.square().sum()


@case
def backward_with_create_graph():
    x = leaf(5)
    yield {"x": x}, ()
    y = (x**3).sum()
    y.backward(create_graph=True)
    grad, x.grad = x.grad, None  # x would keep the graph alive
    yield [y * 1, grad.exp()]


@case
def a_weight_used_twice_under_autocast():
    layer, x = nn.Linear(4, 4), torch.randn(3, 4)
    yield layer, x
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = layer(layer(x).relu())
    yield y.float().sum()


@case
def dead_branches():
    x = leaf(4)
    yield {"x": x}, ()
    x.cos().exp()
    y = x.exp()
    y.sin() * y.tanh()
    yield y.detach() * y.sqrt()


@case
def a_frozen_weight():
    net = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2))
    net[2].requires_grad_(False)
    x = torch.randn(3, 4)
    yield net, x
    yield net(x).sum()


@case
def vmap():
    x, w = torch.randn(5, 3), leaf(3, 3)
    yield {"w": w}, x
    yield torch.vmap(lambda row: torch.tanh(w @ row) * 2.0)(x).sum()


@case
def func_grad():
    w, point = leaf(3), torch.ones(3)
    yield {"w": w}, point
    jacobian = torch.func.jacrev(lambda p: torch.sin(p) * w)(point)
    yield jacobian.square().sum()


@case
def complex_numbers():
    x = leaf(3, dtype=torch.complex64)
    yield {"x": x}, ()
    yield (x.exp() * x.conj()).abs().sum()


@case
def fft():
    x = leaf(8)
    yield {"x": x}, ()
    yield (torch.fft.rfft(x.sin()) * torch.fft.fft(x)[:5]).abs().sum()


@case
def lstm():
    net, x = nn.LSTM(3, 4, num_layers=2, dropout=0.2), torch.randn(5, 2, 3)
    yield net, x
    out, (h, c) = net(x)
    yield out.sum() + (h * c).sum()


@case
def gru():
    net, x = nn.GRU(3, 4, bidirectional=True), torch.randn(5, 2, 3)
    yield net, x
    yield net(x)[0].sum()


@case
def embedding():
    net, index = nn.Embedding(5, 2, max_norm=1.0), torch.tensor([1, 1, 4])
    yield net, index
    yield net(index).exp().sum()


@case
def embedding_bag():
    net, index = nn.EmbeddingBag(5, 2), torch.tensor([[1, 1, 4]])
    yield net, index
    yield net(index).exp().sum()


@case
def compiled():
    torch.compiler.reset()
    net, x = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2)), torch.randn(3, 4)
    run = torch.compile(net, backend="aot_eager")
    run(x).sum().backward()  # what compiling itself allocates is no part of the graph
    net.zero_grad()
    yield net, x
    yield run(x).sum()


@case(opaque=("ForeachMulBackward1Scalar", "ForeachExpBackward0"))
def foreach():
    x = [leaf(3), leaf(3)]
    yield {"a": x[0], "b": x[1]}, ()
    yield torch._foreach_exp(torch._foreach_mul(x, 2.0))


@case
def custom_op():
    x = leaf(4)
    yield {"x": x}, ()
    yield _sine()(x.exp()).exp()


@functools.cache
def _sine():
    @torch.library.custom_op("lens_ledger::sine", mutates_args=())
    def sine(x: torch.Tensor) -> torch.Tensor:
        return x.sin()

    def setup(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])

    sine.register_autograd(lambda ctx, g: g * ctx.saved_tensors[0].cos(), setup_context=setup)
    return sine


@case
def linear_algebra():
    a, b = leaf(3, 3), leaf(3)
    yield {"a": a, "b": b}, ()
    yield torch.linalg.solve(a.exp(), b).sum() + torch.linalg.svdvals(a).sum()


@case
def pooling_and_normalising():
    net = nn.Sequential(
        nn.Conv1d(2, 4, 3), nn.GroupNorm(2, 4), nn.SiLU(), nn.MaxPool1d(2), nn.LogSoftmax(1)
    )
    x = torch.randn(2, 2, 9)
    yield net, x
    yield net(x).sum()


@case
def batch_norm_in_evaluation():
    net, x = nn.Sequential(nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3)).eval(), torch.randn(2, 2, 4, 4)
    yield net, x
    yield net(x).exp().sum()


@case
def random_numbers():
    x = leaf(6)
    yield {"x": x}, ()
    y = F.dropout(x.exp(), 0.5)
    yield F.gumbel_softmax(F.rrelu(y, training=True), dim=0).sum() + F.alpha_dropout(y, 0.2).sum()


@case
def weight_norm():
    net, x = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), torch.randn(2, 4)
    yield net, x
    yield net(x).sum()


@case
def losses():
    x, target = leaf(4, 3), torch.tensor([0, 1, 2, 0])
    yield {"x": x}, target
    log = x.log_softmax(1)
    yield (
        F.nll_loss(log, target, weight=torch.ones(3))
        + F.kl_div(log, torch.ones(4, 3))
        + F.huber_loss(x, torch.zeros(4, 3))
        + F.cosine_embedding_loss(x, x * 2, torch.ones(4))
    )


EVERY = {**MODELS, **CASES}

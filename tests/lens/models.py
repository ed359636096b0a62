"""Small models of many kinds: each function returns a loss and its leaves by name, seeded."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

MODELS = {}


def model(make):
    MODELS[make.__name__] = make
    return make


def ready(module, *inputs, loss=torch.sum):
    out = module(*inputs)
    return loss(out), dict(module.named_parameters())


@model
def mlp():
    return ready(nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)), torch.randn(5, 8))


@model
def transformer():
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.1)
    return ready(nn.TransformerEncoder(layer, 2), torch.randn(2, 6, 16))


@model
def scaled_dot_product_attention():
    q, k, v = (torch.randn(1, 2, 5, 8, requires_grad=True) for _ in range(3))
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return y.square().sum(), {"q": q, "k": k, "v": v}


@model
def convolutions_with_batch_norm():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2))
    return ready(net, torch.randn(2, 3, 8, 8))


@model
def rnn():
    cell, h = nn.RNNCell(4, 6), torch.zeros(3, 6)
    loss = 0
    for x in torch.randn(7, 3, 4):
        h = cell(x, h)
        loss = loss + h.sum()
    return loss, dict(cell.named_parameters())


@model
def lstm():
    net = nn.LSTM(3, 4, num_layers=2)
    out, (h, c) = net(torch.randn(5, 2, 3))
    return out.sum() + (h * c).sum(), dict(net.named_parameters())


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x**3, y.clone()

    @staticmethod
    def backward(ctx, g, h):
        x, y = ctx.saved_tensors
        return 3 * x**2 * g, h


@model
def custom_function():
    x = torch.randn(4, requires_grad=True)
    y = torch.randn(4, requires_grad=True)
    a, b = Cube.apply(x, y * 2)
    return (a * b).sum(), {"x": x, "y": y}


@model
def checkpoint_recomputed():
    net, x = nn.Sequential(nn.Linear(4, 4), nn.Tanh()), torch.randn(3, 4, requires_grad=True)
    y = checkpoint(net, checkpoint(net, x, use_reentrant=False), use_reentrant=False)
    return y.sum(), {"x": x, **dict(net.named_parameters())}


@model
def checkpoint_reentrant():
    net, x = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)), torch.randn(3, 4, requires_grad=True)
    y = checkpoint(net, x, use_reentrant=True)
    return y.square().sum(), {"x": x, **dict(net.named_parameters())}


@model
def foreach():
    leaves = [torch.randn(3, requires_grad=True) for _ in range(3)]
    made = torch._foreach_exp(torch._foreach_mul(leaves, 2.0))
    return sum(t.sum() for t in made), {f"t{k}": t for k, t in enumerate(leaves)}


@model
def in_place():
    x = torch.randn(6, requires_grad=True)
    y = x * 2
    y[1:4].mul_(3).add_(1)
    y[0] = 0.0
    y.exp_()
    return y.sum(), {"x": x}


@model
def shared_weights():
    layer = nn.Linear(5, 5)
    y = layer(torch.relu(layer(torch.randn(2, 5))))
    return y.sum(), dict(layer.named_parameters())


@model
def sparse_gradients():
    layer = nn.Embedding(6, 3, sparse=True)
    return (layer(torch.tensor([1, 1, 4])) * 2).sum() + layer(torch.tensor([0])).sum(), dict(
        layer.named_parameters()
    )


@model
def complex_numbers():
    x = torch.randn(8, requires_grad=True)
    z = torch.fft.fft(x) * torch.randn(8, dtype=torch.complex64, requires_grad=True)
    w = torch.randn(8, dtype=torch.complex64, requires_grad=True)
    return (z * w).abs().sum(), {"x": x, "w": w}


@model
def views_and_indexing():
    x = torch.randn(4, 6, requires_grad=True)
    a, b = x.t().split(3)
    picked = x[torch.tensor([0, 2, 2])]
    return (a * b).sum() + picked.max(dim=1).values.sum() + x.expand(2, 4, 6).sum(), {"x": x}


@model
def broadcasting_to_a_number():
    x = torch.randn((), requires_grad=True)
    return (x.expand(3) * torch.arange(3.0)).sum(), {"x": x}


@model
def autocast():
    layer = nn.Linear(4, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = layer(torch.randn(2, 4)).relu()
    return y.float().sum(), dict(layer.named_parameters())


@model
def compiled():
    torch.compiler.reset()
    layer = nn.Linear(4, 4)
    y = torch.compile(layer, backend="aot_eager")(torch.randn(2, 4))
    return y.sum(), dict(layer.named_parameters())


@model
def parametrized():
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))
    return ready(layer, torch.randn(2, 4))


@model
def functional_call():
    layer = nn.Linear(4, 3)
    mine = {k: torch.randn_like(v).requires_grad_() for k, v in layer.named_parameters()}
    return torch.func.functional_call(layer, mine, torch.randn(2, 4)).sum(), mine


@model
def traced():
    layer, x = nn.Sequential(nn.Linear(4, 3), nn.Tanh()), torch.randn(2, 4)
    made = torch.jit.trace(layer, x)
    return made(x).sum(), dict(layer.named_parameters())


@model
def scaled_by_a_grad_scaler():
    layer = nn.Linear(4, 3)
    return torch.amp.GradScaler("cpu").scale(layer(torch.randn(2, 4)).sum()), dict(
        layer.named_parameters()
    )


@model
def vmap_of_a_model():
    x, w = torch.randn(5, 3), torch.randn(3, 3, requires_grad=True)
    return torch.vmap(lambda row: torch.tanh(w @ row))(x).sum(), {"w": w}


@model
def jacobian_as_a_loss():
    w = torch.randn(3, requires_grad=True)
    jacobian = torch.func.jacrev(lambda p: torch.sin(p) * w)(torch.ones(3))
    return jacobian.square().sum(), {"w": w}


@model
def hessian_as_a_loss():
    w = torch.randn(3, requires_grad=True)
    return torch.func.hessian(lambda p: (w * p**3).sum())(torch.ones(3)).sum(), {"w": w}


@model
def jagged():
    parts = [torch.ones(2, 3), torch.ones(4, 3)]
    n = torch.nested.nested_tensor(parts, layout=torch.jagged, requires_grad=True)
    return (n * n).values().sum(), {"n": n}


@model
def gradient_penalty():
    x = torch.randn(4, requires_grad=True)
    (g,) = torch.autograd.grad(x.exp().sum(), x, create_graph=True)
    return g.square().sum() + x.sum(), {"x": x}


@model
def a_linear_solve():
    a, b = torch.randn(3, 3, requires_grad=True), torch.randn(3, requires_grad=True)
    return torch.linalg.solve(a, b).sum() + torch.linalg.svdvals(a).sum(), {"a": a, "b": b}

"""Models as people write them, small and seeded: what the lens must be right on first of all.

Each function makes a model, its inputs and what turns its outputs into a loss. Nothing here knows
the lens. What it can't know of a model stands beside it: ``opaque`` are the nodes that show nothing
of what they saved, ``closed`` the nodes that run other nodes of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

CORPUS: dict[str, Callable[[], Written]] = {}
"""What makes each of them, by name; :func:`compiled` and ``corpus_ddp.py`` take seconds."""


def total(outputs: torch.Tensor) -> torch.Tensor:
    """The simplest loss that is not linear."""
    return outputs.float().square().mean()


@dataclass(frozen=True)
class Written:
    """A model with what its author would call it with.

    Attributes:
        model: what ``names`` gets.
        inputs: what was there before the forward.
        forward: runs the model on the inputs.
        loss: makes one number of the outputs.
        micro_batches: how many backwards come before the optimizer's step.
        opaque: names of the nodes that show nothing of what they saved.
        closed: names of the nodes that run a graph of their own in the backward.
        hooks_see_all: saved-tensor hooks around the forward see all that the graph keeps. They do
            not where a checkpoint packs tensors itself, or keeps some on ``ctx``.
        numbers: how many Python numbers it multiplies with. A node keeps each in 8 bytes, and no
            hook sees that.
    """

    model: nn.Module
    inputs: tuple[torch.Tensor, ...]
    forward: Callable[..., Any]
    loss: Callable[[Any], torch.Tensor] = total
    micro_batches: int = 1
    opaque: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    hooks_see_all: bool = True
    numbers: int = 0

    def run(self) -> Any:
        """The outputs."""
        return self.forward(self.model, *self.inputs)


def written(make):
    CORPUS[make.__name__] = make
    return make


def call(model, *inputs):
    return model(*inputs)


@written
def mlp():
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 4))
    return Written(net, (torch.randn(5, 8),), call)


@written
def convolutions_channels_last():
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4),
    )  # fmt: skip
    images = torch.randn(2, 3, 12, 12).to(memory_format=torch.channels_last)
    return Written(net.to(memory_format=torch.channels_last), (images,), call)


class Tower(nn.Module):
    """A body and two heads; ``pack`` says in what they are returned."""

    def __init__(self, pack):
        super().__init__()
        self.body = nn.Linear(6, 8)
        self.classes, self.value = nn.Linear(8, 3), nn.Linear(8, 1)
        self.pack = pack

    def forward(self, x):
        hidden = torch.tanh(self.body(x))
        return self.pack(self.classes(hidden), self.value(hidden))


def two_losses(classes, value):
    return F.cross_entropy(classes, torch.arange(len(classes)) % 3) + value.square().mean()


@written
def a_tuple_of_outputs():
    tower = Tower(lambda classes, value: (classes, value))
    return Written(tower, (torch.randn(4, 6),), call, lambda out: two_losses(*out))


@written
def a_dict_of_outputs():
    tower = Tower(lambda classes, value: {"classes": classes, "value": value})
    return Written(tower, (torch.randn(4, 6),), call, lambda out: two_losses(**out))


@dataclass
class Prediction:
    """What a model of today's libraries returns."""

    classes: torch.Tensor
    value: torch.Tensor


@written
def a_dataclass_of_outputs():
    tower = Tower(Prediction)
    return Written(
        tower, (torch.randn(4, 6),), call, lambda out: two_losses(out.classes, out.value)
    )


class Adapted(nn.Module):
    """A frozen linear layer, and a product of two small matrices beside it."""

    def __init__(self, base, rank=2):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, base.in_features) * 0.1)
        self.up = nn.Parameter(torch.randn(base.out_features, rank) * 0.1)

    def forward(self, x):
        return self.base(x) + x @ self.down.t() @ self.up.t() * 2.0


@written
def low_rank_adapters():
    net = nn.Sequential(Adapted(nn.Linear(8, 16)), nn.GELU(), Adapted(nn.Linear(16, 8)))
    return Written(net, (torch.randn(4, 8),), call, numbers=2)


class Tied(nn.Module):
    """An embedding and a head that are one matrix."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 20, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        return self.head(self.norm(self.embed(tokens)))


@written
def tied_weights():
    tokens = torch.randint(20, (2, 6))
    return Written(
        Tied(), (tokens,), call, lambda out: F.cross_entropy(out.flatten(0, 1), tokens.flatten())
    )


@written
def lstm():
    return Written(
        nn.LSTM(3, 4, num_layers=2),
        (torch.randn(5, 2, 3),),
        call,
        lambda out: out[0].square().sum() + (out[1][0] * out[1][1]).sum(),
    )


@written
def gru():
    return Written(
        nn.GRU(3, 4),
        (torch.randn(3, 2, 3),),
        call,
        lambda out: out[0].square().sum() + out[1].sum(),
    )


class Encoder(nn.Module):
    """An encoder layer written out, around scaled_dot_product_attention."""

    def __init__(self, width=16, heads=2):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x):
        q, k, v = self.qkv(self.first(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.mlp(self.second(x))


@written
def transformer_encoder():
    return Written(Encoder(), (torch.randn(2, 6, 16),), call)


@written
def partly_frozen():
    net = nn.Sequential(
        nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2)
    )
    net[:3].requires_grad_(False)
    net[3].bias.requires_grad_(False)
    net[1].eval()
    return Written(net, (torch.randn(4, 8),), call)


def cast_to_bfloat16(model, x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return model(x)


@written
def under_autocast():
    net = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))
    return Written(net, (torch.randn(4, 8),), cast_to_bfloat16)


def blocks():
    return nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(3)))


def recompute_without_reentry(model, x):
    for block in model:
        x = checkpoint(block, x, use_reentrant=False)
    return x


def recompute_with_reentry(model, x):
    x = model[0](x)  # a re-entrant checkpoint needs an input that requires grad
    for block in model[1:]:
        x = checkpoint(block, x, use_reentrant=True)
    return x


@written
def checkpointed():
    return Written(blocks(), (torch.randn(4, 8),), recompute_without_reentry, hooks_see_all=False)


@written
def checkpointed_reentrant():
    return Written(
        blocks(),
        (torch.randn(4, 8),),
        recompute_with_reentry,
        closed=("CheckpointFunctionBackward",),
        hooks_see_all=False,
    )


class Mixture(nn.Module):
    """Two experts, each of which takes the rows that a gate gives it."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(6, 2)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(6, 8), nn.SiLU(), nn.Linear(8, 6)) for _ in range(2)
        )

    def forward(self, x):
        weights = self.gate(x).softmax(-1)
        chosen = torch.arange(len(x)) % 2
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows = (chosen == number).nonzero().squeeze(1)
            out = out.index_add(0, rows, expert(x[rows]) * weights[rows, number, None])
        return out


@written
def mixture_in_micro_batches():
    return Written(
        Mixture(), (torch.randn(6, 6),), call, lambda out: total(out) / 2, micro_batches=2
    )


class Masked(nn.Module):
    """Writes into a slice of its activation, as masks and caches do."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Parameter(torch.randn(4))
        self.first, self.second = nn.Linear(6, 8), nn.Linear(8, 2)

    def forward(self, x):
        hidden = self.first(x)
        hidden[:, 4:] *= self.gate
        return self.second(hidden)


@written
def a_slice_written_in_place():
    return Written(Masked(), (torch.randn(4, 6),), call, opaque=("CopySlices", "CopySlices"))


def compiled():
    """By AOTAutograd alone, so that no C++ compiler is needed."""
    torch.compiler.reset()
    net = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))
    net, x = torch.compile(net, backend="aot_eager"), torch.randn(4, 8)
    net(x)  # compiles it, with tensors of its own
    return Written(net, (x,), call)

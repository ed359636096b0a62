"""Models to measure on: made once, small enough for two cores, shaped like real ones."""

from __future__ import annotations

import torch
from torch import nn


def chain(length: int) -> torch.Tensor:
    """A scalar after ``length`` additions."""
    y = torch.zeros((), requires_grad=True) + 0
    for _ in range(length):
        y = y + 1
    return y


def toy() -> tuple[None, torch.Tensor]:
    """A handful of nodes, no module."""
    x = torch.ones(2, requires_grad=True)
    return None, (x * x.exp()).sum() ** 2


def mlp() -> tuple[nn.Module, torch.Tensor]:
    """Three hidden layers of 256 units on a batch of 64."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(),
        nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10),
    )  # fmt: skip
    return model, model(torch.randn(64, 64)).square().mean()


class _Residual(nn.Module):
    def __init__(self, width: int, inner: int):
        super().__init__()
        sizes = ((width, inner, 1), (inner, inner, 3), (inner, width, 1))
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Conv2d(a, b, k, padding=k // 2, bias=False), nn.BatchNorm2d(b))
            for a, b, k in sizes
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x
        for number, layer in enumerate(self.layers):
            y = layer(y)
            y = y.relu() if number < 2 else y
        return (x + y).relu()


def conv_net() -> tuple[nn.Module, torch.Tensor]:
    """53 convolutions with batch norm: a stem, 17 residual blocks of three, one more."""
    torch.manual_seed(0)
    blocks = [_Residual(32, 16) for _ in range(17)]
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), *blocks,
        nn.Conv2d(32, 64, 3, stride=2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip
    return model, model(torch.randn(4, 3, 16, 16)).square().mean()


class _Block(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float, fused: bool):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )
        self.drop = nn.Dropout(dropout) if dropout else nn.Identity()
        self.heads, self.fused = heads, fused

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        if self.fused:
            mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        else:
            scores = (q @ k.transpose(-2, -1)) * (width / self.heads) ** -0.5
            mixed = self.drop(scores.softmax(-1)) @ v
        x = x + self.drop(self.out(mixed.transpose(1, 2).reshape(batch, length, width)))
        return x + self.drop(self.mlp(self.norm2(x)))


class _Transformer(nn.Module):
    def __init__(
        self,
        dropout: float = 0.0,
        fused: bool = False,
        layers: int = 12,
        width: int = 64,
        vocabulary: int = 512,
    ):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.blocks = nn.Sequential(*(_Block(width, 4, dropout, fused) for _ in range(layers)))
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.embed.weight  # tied

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        logits = self.head(self.blocks(self.embed(tokens)))
        return nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())


def transformer(dropout: float = 0.0, fused: bool = False) -> tuple[nn.Module, torch.Tensor]:
    """12 layers, composite attention, tied head."""
    torch.manual_seed(0)
    model = _Transformer(dropout, fused)
    return model, model(torch.arange(128).view(2, 64))


def transformer_dropout() -> tuple[nn.Module, torch.Tensor]:
    """The same with dropout."""
    return transformer(0.1)


def transformer_sdpa() -> tuple[nn.Module, torch.Tensor]:
    """With dropout and ``scaled_dot_product_attention``: fewer nodes that save more."""
    return transformer(0.1, True)


def rnn(steps: int = 500) -> tuple[nn.Module, torch.Tensor]:
    """A hand-written tanh cell over ``steps`` steps: two weights used at every one of them."""
    torch.manual_seed(0)
    model = nn.ModuleDict({"inner": nn.Linear(16, 16), "outer": nn.Linear(8, 16)})
    h = torch.zeros(1, 16)
    for x in torch.randn(steps, 1, 8):
        h = torch.tanh(model["inner"](h) + model["outer"](x))
    return model, h.square().mean()

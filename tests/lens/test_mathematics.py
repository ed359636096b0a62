"""The forms in mathematics against PyTorch: its texts, and the gradients that autograd computes."""

import json
import math
import re
from itertools import chain
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from derivatives import needs

from autograd_lens.graphs import mathematics as table
from autograd_lens.graphs.formulas import formula
from autograd_lens.graphs.mathematics import MATHEMATICS, mathematics, with_values

BOOK = Path(__file__).parents[2] / "book"
ENTRIES = [(node, name) for node, inputs in MATHEMATICS.items() for name in inputs]
aten = torch.ops.aten


def drawn(*shape):
    """Random numbers that are not near 0, where some of these functions bend."""
    values = torch.randn(*shape, dtype=torch.float64)
    return values.sign() * (values.abs() + 0.1)


def positive(*shape):
    return drawn(*shape).abs()


MASK = torch.tensor([[True, False, True], [False, False, True]])
POOL = {"kernel_size": 2, "stride": 1, "return_indices": True}

# What makes each node: its differentiable inputs by their names in PyTorch, and a function of them.
MADE = {
    "AbsBackward0": ({"self": drawn(2, 3)}, torch.abs),
    "AddBackward0": (
        {"self": drawn(2, 3), "other": drawn(2, 3)},
        lambda a, b: torch.add(a, b, alpha=3),
    ),
    "AddBackward1": ({"self": drawn(2, 3)}, lambda a: aten.add.Scalar(a, 2.0)),
    "AddmmBackward0": (
        {"self": drawn(2, 4), "mat1": drawn(2, 3), "mat2": drawn(3, 4)},
        lambda a, b, c: torch.addmm(a, b, c, beta=2, alpha=3),
    ),
    "AliasBackward0": ({"self": drawn(2, 3)}, aten.alias),
    "BmmBackward0": ({"self": drawn(2, 3, 4), "mat2": drawn(2, 4, 5)}, torch.bmm),
    "CatBackward0": ({"tensors": (drawn(2, 3), drawn(4, 3))}, lambda *ts: torch.cat(ts)),
    "CloneBackward0": ({"self": drawn(2, 3)}, torch.clone),
    "CosBackward0": ({"self": drawn(2, 3)}, torch.cos),
    "DivBackward0": ({"self": drawn(2, 3), "other": drawn(2, 3)}, torch.div),
    "DivBackward1": ({"self": drawn(2, 3)}, lambda a: aten.div.Scalar(a, 3.0)),
    "DotBackward0": ({"self": drawn(3), "tensor": drawn(3)}, torch.dot),
    "ExpBackward0": ({"self": drawn(2, 3)}, torch.exp),
    "ExpandBackward0": ({"self": drawn(2, 1)}, lambda a: a.expand(2, 3)),
    "GeluBackward0": ({"self": drawn(2, 3)}, F.gelu),
    "GeluBackwardBackward0": (
        {"grad_output": drawn(2, 3), "self": drawn(2, 3)},
        aten.gelu_backward,
    ),
    "LogBackward0": ({"self": positive(2, 3)}, torch.log),
    "LogSoftmaxBackward0": ({"self": drawn(2, 3)}, lambda a: torch.log_softmax(a, 1)),
    "MaxBackward0": ({"self": drawn(2, 3)}, lambda a: torch.max(a, 1, keepdim=True)[0]),
    "MaxPool2DWithIndicesBackward0": (
        {"self": drawn(1, 1, 4, 4)},
        lambda a: F.max_pool2d(a, **POOL)[0],
    ),
    "MeanBackward0": ({"self": drawn(2, 3)}, torch.mean),
    "MeanBackward1": ({"self": drawn(2, 3)}, lambda a: a.mean(1, keepdim=True)),
    "MmBackward0": ({"self": drawn(2, 3), "mat2": drawn(3, 4)}, torch.mm),
    "MulBackward0": ({"self": drawn(2, 3), "other": drawn(2, 3)}, torch.mul),
    "MulBackward1": ({"self": drawn(2, 3)}, lambda a: aten.mul.Scalar(a, 3.0)),
    "MvBackward0": ({"self": drawn(2, 3), "vec": drawn(3)}, torch.mv),
    "NegBackward0": ({"self": drawn(2, 3)}, torch.neg),
    "PermuteBackward0": ({"self": drawn(2, 3, 4)}, lambda a: a.permute(1, 2, 0)),
    "PowBackward0": ({"self": drawn(2, 3)}, lambda a: a**3),
    "ReciprocalBackward0": ({"self": drawn(2, 3)}, torch.reciprocal),
    "ReluBackward0": ({"self": drawn(2, 3)}, torch.relu),
    "RsqrtBackward0": ({"self": positive(2, 3)}, torch.rsqrt),
    "RsubBackward0": (
        {"self": drawn(2, 3), "other": drawn(2, 3)},
        lambda a, b: torch.rsub(a, b, alpha=3),
    ),
    "RsubBackward1": ({"self": drawn(2, 3)}, lambda a: torch.rsub(a, 2.0, alpha=3)),
    "SelectBackward0": ({"self": drawn(2, 3)}, lambda a: a.select(1, 2)),
    "SigmoidBackward0": ({"self": drawn(2, 3)}, torch.sigmoid),
    "SiluBackward0": ({"self": drawn(2, 3)}, F.silu),
    "SinBackward0": ({"self": drawn(2, 3)}, torch.sin),
    "SliceBackward0": ({"self": drawn(2, 7)}, lambda a: aten.slice(a, 1, 1, 6, 2)),
    "SoftmaxBackward0": ({"self": drawn(2, 3)}, lambda a: torch.softmax(a, 1)),
    "SortBackward0": ({"self": drawn(2, 3)}, lambda a: torch.sort(a, 1)[0]),
    "SqrtBackward0": ({"self": positive(2, 3)}, torch.sqrt),
    "SqueezeBackward1": ({"self": drawn(2, 1, 3)}, lambda a: a.squeeze(1)),
    "StackBackward0": (
        {"tensors": (drawn(2, 3), drawn(2, 3))},
        lambda *ts: torch.stack(ts, 1),
    ),
    "SubBackward0": (
        {"self": drawn(2, 3), "other": drawn(2, 3)},
        lambda a, b: torch.sub(a, b, alpha=3),
    ),
    "SubBackward1": ({"self": drawn(2, 3)}, lambda a: aten.sub.Scalar(a, 2.0)),
    "SumBackward0": ({"self": drawn(2, 3)}, torch.sum),
    "SumBackward1": ({"self": drawn(2, 3)}, lambda a: a.sum(1, keepdim=True)),
    "TBackward0": ({"self": drawn(2, 3)}, torch.t),
    "TanhBackward0": ({"self": drawn(2, 3)}, torch.tanh),
    "TanhBackwardBackward0": (
        {"grad_output": drawn(2, 3), "output": drawn(2, 3)},
        aten.tanh_backward,
    ),
    "ThresholdBackwardBackward0": (
        {"grad_output": drawn(2, 3), "self": drawn(2, 3)},
        lambda g, a: aten.threshold_backward(g, a, 0.25),
    ),
    "ToCopyBackward0": ({"self": drawn(2, 3).float()}, torch.Tensor.double),
    "TransposeBackward0": ({"self": drawn(2, 3, 4)}, lambda a: a.transpose(0, 1)),
    "UnbindBackward0": ({"self": drawn(2, 3)}, lambda a: a.unbind(1)),
    "UnfoldBackward0": ({"self": drawn(7)}, lambda a: a.unfold(0, 3, 2)),
    "UnsafeViewBackward0": ({"self": drawn(2, 3)}, lambda a: aten._unsafe_view(a, (3, 2))),
    "UnsqueezeBackward0": ({"self": drawn(2, 3)}, lambda a: a.unsqueeze(1)),
    "ViewBackward0": ({"self": drawn(2, 3)}, lambda a: a.view(3, 2)),
    "WhereBackward0": (
        {"self": drawn(2, 3), "other": drawn(2, 3)},
        lambda a, b: torch.where(MASK, a, b),
    ),
}


def added(v, index):
    """Zeros in the shape of the input, with the gradient added at the positions of ``index``."""
    flat = torch.zeros(v.self.numel(), dtype=v.grad.dtype)
    return flat.index_add(0, index.flatten(), v.grad.flatten()).view(v.self.shape)


def positions(v):
    """The number of each element of the input, in its shape."""
    return torch.arange(v.self.numel()).view(v.self.shape)


def slope(v):
    """The derivative of GELU."""
    return 0.5 * (1 + torch.erf(v.self / math.sqrt(2))) + v.self * density(v)


def density(v):
    return torch.exp(-v.self * v.self / 2) / math.sqrt(2 * math.pi)


# The forms that are words rather than arithmetic, each said once more.
WORDS = {
    "0": lambda v: torch.zeros_like(v.grad),
    "0 where condition, else grad": lambda v: torch.where(MASK, torch.zeros_like(v.grad), v.grad),
    "grad / n, expanded": lambda v: (v.grad / (v.self.numel() // v.grad.numel())).expand(
        v.self.shape
    ),
    "grad / 6, expanded": lambda v: v.grad / 6 + torch.zeros_like(v.self),
    "grad at index 2, else 0": lambda v: added(v, positions(v)[:, 2]),
    "grad at indices": lambda v: torch.zeros_like(v.self).scatter(1, v.indices, v.grad),
    "grad at indices, else 0": lambda v: torch.zeros_like(v.self).scatter(1, v.indices, v.grad),
    "grad at [1:6:2], else 0": lambda v: added(v, positions(v)[:, 1:6:2]),
    "grad where condition, else 0": lambda v: torch.where(MASK, v.grad, torch.zeros_like(v.grad)),
    "grad where result > 0": lambda v: v.grad * (v.result > 0),
    "grad where self > 0.25": lambda v: v.grad * (v.self > 0.25),
    "grad · gelu′(self)": lambda v: v.grad * slope(v),
    "grad · grad_output · gelu″(self)": lambda v: (
        v.grad * v.grad_output * density(v) * (2 - v.self * v.self)
    ),
    "grad · silu′(self)": lambda v: (
        v.grad * torch.sigmoid(v.self) * (1 + v.self * torch.sigmoid(-v.self))
    ),
    "grad − exp(result) · Σ grad": lambda v: v.grad - v.result.exp() * v.grad.sum(1, True),
    "grad, added at result1": lambda v: added(v, v.result1),
    "grad, added where it was read": lambda v: added(v, positions(v).unfold(0, 3, 2)),
    "grad, converted back": lambda v: v.grad.to(v.self.dtype),
    "grad, cut apart": lambda v: (v.grad[:2], v.grad[2:]),
    "grad, dims 0 and 1 swapped": lambda v: v.grad.movedim(0, 1),
    "grad, expanded": lambda v: v.grad + torch.zeros_like(v.self),
    "grad, permuted back": lambda v: v.grad.movedim(-1, 0),
    "grad, reshaped": lambda v: v.grad.reshape(v.self.shape),
    "grad, squeezed": lambda v: v.grad[:, 0],
    "grad, summed": lambda v: v.grad.sum(1, keepdim=True),
    "grad, unbound": lambda v: (v.grad[:, 0], v.grad[:, 1]),
    "grad, unsqueezed": lambda v: v.grad[:, None],
    "grads, stacked": lambda v: torch.stack(v.grads, 1),
    "result · (grad − Σ result · grad)": lambda v: (
        v.result * (v.grad - (v.result * v.grad).sum(1, keepdim=True))
    ),
}

SIGNS = {"·": "*", "−": "-", "²": "**2", "³": "**3", "ⁿ⁻¹": "**(n - 1)", "ᵀ": ".mT"}
FUNCTIONS = {name: getattr(torch, name) for name in ("sin", "cos", "sign", "outer")}


class Values(dict):
    """Names of a formula with their values; also as attributes."""

    __getattr__ = dict.__getitem__


def value_of(form, values):
    """The value of a form: of one in words by its own function, else of the arithmetic in it."""
    if form in WORDS:
        return WORDS[form](values)
    arithmetic, _, given = form.partition(", n = ")
    for sign, operator in SIGNS.items():
        arithmetic = arithmetic.replace(sign, operator)
    arithmetic = re.sub(r"(\w+) ⊗ (\w+)", r"outer(\1, \2)", arithmetic)
    known = FUNCTIONS | values | ({"n": float(given)} if given else {})
    return eval(arithmetic, {"__builtins__": {}}, known)


def example(node):
    """The gradients that autograd computes for each input, and the values that a form may name."""
    given, function = MADE[node]
    tensors = {
        name: [t.clone().requires_grad_() for t in (one if isinstance(one, tuple) else (one,))]
        for name, one in given.items()
    }
    result = function(*chain(*tensors.values()))
    several = result if isinstance(result, tuple) else (result,)
    grad_fn = several[0].grad_fn
    assert grad_fn.name() == node
    grads = [torch.randn_like(one) for one in several]
    flat = list(chain(*tensors.values()))
    computed = iter(torch.autograd.grad(several, flat, grads, retain_graph=True))
    actual = {name: tuple(next(computed) for _ in group) for name, group in tensors.items()}
    kept = {
        name.removeprefix("_saved_"): getattr(grad_fn, name)
        for name in dir(grad_fn)
        if name.startswith("_saved_")
    }
    values = Values(kept | {name: group[0].detach() for name, group in tensors.items()})
    values |= {"result": several[0].detach(), "grad": grads[0], "grads": grads}
    return actual, values, {name: str(value) for name, value in kept.items()}


def agrees(node, name, form):
    """Whether a form gives what autograd computes for this input."""
    actual, values, kept = example(node)
    found = value_of(with_values(form, kept), values)
    found = found if isinstance(found, tuple) else (found,)
    return all(
        one.shape == other.shape and torch.allclose(one, other)
        for one, other in zip(found, actual[name], strict=True)
    )


@pytest.mark.parametrize(("node", "name"), ENTRIES)
def test_pytorchs_text_is_the_installed_one(node, name):
    assert needs()[node].formulas[name] == MATHEMATICS[node][name][0]


@pytest.mark.parametrize(("node", "name"), ENTRIES)
def test_a_form_gives_the_gradient_that_autograd_computes(node, name):
    torch.manual_seed(0)
    assert agrees(node, name, MATHEMATICS[node][name][1])


@pytest.mark.parametrize(
    ("node", "name", "wrong"),
    [
        ("MulBackward0", "self", "grad · self"),
        ("MmBackward0", "mat2", "grad @ selfᵀ"),
        ("SubBackward0", "other", "−grad"),
        ("PowBackward0", "self", "grad · n · selfⁿ⁻¹, n = 2"),
        ("TanhBackward0", "self", "grad · (1 − result)"),
        ("ReluBackward0", "self", "grad"),
        ("SumBackward0", "self", "grad / n, expanded"),
    ],
)
def test_a_wrong_form_is_noticed(node, name, wrong):
    torch.manual_seed(0)
    try:
        assert not agrees(node, name, wrong)
    except RuntimeError as error:  # shapes that do not fit
        assert "mat1 and mat2 shapes" in str(error)


def test_every_form_is_checked_with_inputs_that_tell_it_from_others():
    """An input of zeros, or a gradient of ones, would let a wrong form pass."""
    torch.manual_seed(0)
    for node, inputs in MATHEMATICS.items():
        actual, *_ = example(node)
        assert set(actual) == set(inputs)
        for name, gradients in actual.items():
            assert inputs[name][1] == "0" or any(one.any() for one in gradients)


def test_a_formula_that_pytorch_has_changed_has_no_form(monkeypatch):
    changed = {"self": "grad * other * 2", "other": formula("MulBackward0")["other"]}
    monkeypatch.setattr(table, "formula", lambda name: changed)
    assert mathematics("MulBackward0") == {"other": "grad · self"}


NAMELESS = {
    "AsStridedBackward0": "the formula depends on whether the input overlaps itself",
    "ConvolutionBackward0": "stride, padding, dilation and groups make no one line",
    "IgammaBackward0": "PyTorch has no formula for one of its inputs",
    "LinalgEighBackward0": "the formula needs several lines",
    "LinalgVectorNormBackward0": "another formula for each order of the norm",
    "NativeBatchNormBackward0": "another formula in training than in evaluation",
    "NativeLayerNormBackward0": "the formula needs several lines",
}
"""Nodes of the book's pages of which a box says only the name, and why."""


def test_every_node_on_the_books_pages_has_a_form_or_a_reason():
    shown = set()
    for page in BOOK.rglob("*.ipynb"):
        for one in json.loads(page.read_text("utf-8"))["cells"]:
            for output in one.get("outputs", ()):
                words = output.get("text") or output.get("data", {}).get("text/plain", ())
                shown |= set(re.findall(r"\w+Backward\w*\d", "".join(words)))
    with_formula = {node for node in shown if formula(node)}
    assert len(with_formula) > 40
    named = {node for node in with_formula if set(mathematics(node)) == set(formula(node))}
    assert with_formula - named == set(NAMELESS)

"""PyTorch's derivative formulas in the way mathematics writes them.

``derivatives.yaml`` holds C++. For the operations that the book's pages show, :data:`MATHEMATICS`
says the same in a form that fits into a box. Each entry holds PyTorch's own text. Where the
installed version has another text, the entry says nothing.

The forms are for real numbers, so a conjugate is left out. They leave out as well that a gradient
is summed where its input was broadcast: the engine does that for every operation. ``·`` multiplies
elements, ``@`` matrices, ``⊗`` is the outer product, ``ᵀ`` transposes the last two dimensions, and
``{alpha}`` stands for the value that the node keeps under this name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .formulas import formula

_TO_REAL = "handle_r_to_c(self.scalar_type(), grad)"
_TIMES_ALPHA = "handle_r_to_c(other.scalar_type(), maybe_multiply(grad, alpha.conj()))"
_TIMES_MINUS_ALPHA = "handle_r_to_c({}.scalar_type(), maybe_multiply(-grad, alpha.conj()))"
_TIMES_OTHER = "mul_tensor_backward(grad, other, self.scalar_type())"
_OVER_OTHER = "div_tensor_self_backward(grad, other, self.scalar_type())"
_EXPAND = "grad.expand_symint(self.sym_sizes())"
_RESHAPE = "grad.reshape_symint(self.sym_sizes())"
_SELECT = "value_selecting_reduction_backward_symint(grad, dim, indices, self.sym_sizes(), {})"
_SIZES = "{0}.sym_sizes(), {0}.sym_strides(), {0}.layout()"
_MAT1 = "mm_mat1_backward(grad, mat2, {}, {})"
_MAT2 = "mm_mat2_backward(grad, {}, {}, {})"

MATHEMATICS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    # node: {input: (PyTorch's formula, the same in mathematics)}
    "AbsBackward0": {"self": ("grad * self.sgn()", "grad · sign(self)")},
    "AddBackward0": {
        "self": (_TO_REAL, "grad"),
        "other": (_TIMES_ALPHA, "{alpha} · grad"),
    },
    "AddBackward1": {"self": (_TO_REAL, "grad")},
    "AddmmBackward0": {
        "self": ("maybe_multiply(grad, beta.conj())", "{beta} · grad"),
        "mat1": (_MAT1.format(_SIZES.format("mat1"), "alpha"), "{alpha} · grad @ mat2ᵀ"),
        "mat2": (_MAT2.format("mat1", _SIZES.format("mat2"), "alpha"), "{alpha} · mat1ᵀ @ grad"),
    },
    "AliasBackward0": {"self": ("grad", "grad")},
    "BmmBackward0": {
        "self": ("grad.bmm(mat2.transpose(1, 2).conj())", "grad @ mat2ᵀ"),
        "mat2": ("self.transpose(1, 2).conj().bmm(grad)", "selfᵀ @ grad"),
    },
    "CatBackward0": {
        "tensors": (
            "cat_tensors_backward(grad, to_args_sizes_symint(tensors), "
            "to_args_scalartypes(tensors), dim)",
            "grad, cut apart",
        )
    },
    "CloneBackward0": {"self": ("grad", "grad")},
    "CosBackward0": {"self": ("grad * -self.sin().conj()", "−grad · sin(self)")},
    "DivBackward0": {
        "self": (_OVER_OTHER, "grad / other"),
        "other": ("div_tensor_other_backward(grad, self, other)", "−grad · self / other²"),
    },
    "DivBackward1": {"self": (_OVER_OTHER, "grad / other")},
    "DotBackward0": {
        "self": ("grad * tensor.conj()", "grad · tensor"),
        "tensor": ("grad * self.conj()", "grad · self"),
    },
    "ExpBackward0": {"self": ("grad * result.conj()", "grad · result")},
    "ExpandBackward0": {"self": ("at::sum_to(grad, self.sym_sizes())", "grad, summed")},
    "GeluBackward0": {"self": ("gelu_backward(grad, self, approximate)", "grad · gelu′(self)")},
    "GeluBackwardBackward0": {
        "grad_output": ("gelu_backward(grad, self, approximate)", "grad · gelu′(self)"),
        "self": (
            "gelu_double_backward(grad, grad_output, self, approximate)",
            "grad · grad_output · gelu″(self)",
        ),
    },
    "LogBackward0": {"self": ("grad.div(self.conj())", "grad / self")},
    "LogSoftmaxBackward0": {
        "self": (
            "_log_softmax_backward_data(grad, result, dim, self.scalar_type())",
            "grad − exp(result) · Σ grad",
        )
    },
    "MaxBackward0": {"self": (_SELECT.format("keepdim"), "grad at indices, else 0")},
    "MaxPool2DWithIndicesBackward0": {
        "self": (
            "max_pool2d_with_indices_backward(grad, self, kernel_size, stride, padding, dilation, "
            "ceil_mode, result1)",
            "grad, added at result1",
        )
    },
    "MeanBackward0": {
        "self": (f"{_EXPAND} / self.sym_numel()", "grad / {self_sym_numel}, expanded")
    },
    "MeanBackward1": {
        "self": (
            "mean_backward(grad, self.sym_sizes(), dim, self.sym_numel(), keepdim)",
            "grad / n, expanded",
        )
    },
    "MmBackward0": {
        "self": (_MAT1.format(_SIZES.format("self"), "1"), "grad @ mat2ᵀ"),
        "mat2": (_MAT2.format("self", _SIZES.format("mat2"), "1"), "selfᵀ @ grad"),
    },
    "MulBackward0": {
        "self": (_TIMES_OTHER, "grad · other"),
        "other": ("mul_tensor_backward(grad, self, other.scalar_type())", "grad · self"),
    },
    "MulBackward1": {"self": (_TIMES_OTHER, "grad · other")},
    "MvBackward0": {
        "self": ("grad.ger(vec.conj())", "grad ⊗ vec"),
        "vec": ("self.conj().t().mv(grad)", "selfᵀ @ grad"),
    },
    "NegBackward0": {"self": ("grad.neg()", "−grad")},
    "PermuteBackward0": {"self": ("permute_backwards(grad, dims)", "grad, permuted back")},
    "PowBackward0": {
        "self": ("pow_backward(grad, self, exponent)", "grad · n · selfⁿ⁻¹, n = {exponent}")
    },
    "ReciprocalBackward0": {"self": ("-grad * (result * result).conj()", "−grad · result²")},
    "ReluBackward0": {"self": ("threshold_backward(grad, result, 0)", "grad where result > 0")},
    "RsqrtBackward0": {"self": ("-0.5 * grad * result.pow(3).conj()", "−grad · result³ / 2")},
    "RsubBackward0": {
        "self": (_TIMES_MINUS_ALPHA.format("self"), "−{alpha} · grad"),
        "other": ("handle_r_to_c(other.scalar_type(), grad)", "grad"),
    },
    "RsubBackward1": {"self": (_TIMES_MINUS_ALPHA.format("self"), "−{alpha} · grad")},
    "SelectBackward0": {
        "self": (
            "select_backward_symint(grad, self.sym_sizes(), dim, index)",
            "grad at index {index}, else 0",
        )
    },
    "SigmoidBackward0": {
        "self": ("sigmoid_backward(grad, result)", "grad · result · (1 − result)")
    },
    "SiluBackward0": {
        "self": (
            "GradMode::is_enabled() ? infinitely_differentiable_silu_backward(grad, self) : "
            "silu_backward(grad, self)",
            "grad · silu′(self)",
        )
    },
    "SinBackward0": {"self": ("grad * self.cos().conj()", "grad · cos(self)")},
    "SliceBackward0": {
        "self": (
            "slice_backward_wrapper(grad, self.sym_sizes(), dim, start, end, step)",
            "grad at [{start}:{end}:{step}], else 0",
        )
    },
    "SoftmaxBackward0": {
        "self": (
            "_softmax_backward_data(grad, result, dim, self.scalar_type())",
            "result · (grad − Σ result · grad)",
        )
    },
    "SortBackward0": {"self": (_SELECT.format("true"), "grad at indices")},
    "SqrtBackward0": {"self": ("grad / (2 * result.conj())", "grad / (2 · result)")},
    "SqueezeBackward1": {"self": ("unsqueeze_to(grad, dim, self.sym_sizes())", "grad, unsqueezed")},
    "StackBackward0": {
        "tensors": (
            "stack_tensors_backward(grad, dim, to_args_scalartypes(tensors))",
            "grad, unbound",
        )
    },
    "SubBackward0": {
        "self": (_TO_REAL, "grad"),
        "other": (_TIMES_MINUS_ALPHA.format("other"), "−{alpha} · grad"),
    },
    "SubBackward1": {"self": (_TO_REAL, "grad")},
    "SumBackward0": {"self": (_EXPAND, "grad, expanded")},
    "SumBackward1": {
        "self": ("sum_backward(grad, self.sym_sizes(), dim, keepdim)", "grad, expanded")
    },
    "TBackward0": {"self": ("grad.t()", "gradᵀ")},
    "TanhBackward0": {"self": ("tanh_backward(grad, result)", "grad · (1 − result²)")},
    "TanhBackwardBackward0": {
        "grad_output": ("tanh_backward(grad, output.conj())", "grad · (1 − output²)"),
        "output": (
            "grad.conj() * (-2 * output.conj() * grad_output)",
            "−2 · grad · output · grad_output",
        ),
    },
    "ThresholdBackwardBackward0": {
        "grad_output": (
            "threshold_backward(grad, self, threshold)",
            "grad where self > {threshold}",
        ),
        "self": ("zeros_like(grad)", "0"),
    },
    "ToCopyBackward0": {
        "self": ("_to_copy_backward(grad, self.options())", "grad, converted back")
    },
    "TransposeBackward0": {
        "self": ("grad.transpose(dim0, dim1)", "grad, dims {dim0} and {dim1} swapped")
    },
    "UnbindBackward0": {"self": ("unbind_backward(grads, dim)", "grads, stacked")},
    "UnfoldBackward0": {
        "self": (
            "unfold_backward_symint(grad, self.sym_sizes(), dimension, size, step)",
            "grad, added where it was read",
        )
    },
    "UnsafeViewBackward0": {"self": (_RESHAPE, "grad, reshaped")},
    "UnsqueezeBackward0": {"self": ("grad.squeeze(dim)", "grad, squeezed")},
    "ViewBackward0": {"self": (_RESHAPE, "grad, reshaped")},
    "WhereBackward0": {
        "self": ("where(condition, grad, 0)", "grad where condition, else 0"),
        "other": ("where(condition, 0, grad)", "0 where condition, else grad"),
    },
}

_KEPT = re.compile(r"\{(\w+)\}")
_ONCE = re.compile(r"(?<![\w.])1 · ")


def mathematics(node_name: str) -> dict[str, str]:
    """``{input: form}`` for those inputs of a node whose formula is the one in the table.

    >>> mathematics("MvBackward0")
    {'self': 'grad ⊗ vec', 'vec': 'selfᵀ @ grad'}
    """
    installed = formula(node_name)
    known = MATHEMATICS.get(node_name, {})
    return {name: form for name, (theirs, form) in known.items() if installed.get(name) == theirs}


def with_values(form: str, kept: Mapping[str, str]) -> str:
    """A form with the values that a node keeps; a factor of 1 is left out.

    >>> with_values("−{alpha} · grad", {"alpha": "1"})
    '−grad'
    """
    return _ONCE.sub("", _KEPT.sub(lambda match: kept.get(match[1], match[1]), form))


def names_of_values(form: str) -> set[str]:
    """The names of the values that :func:`with_values` puts in."""
    return set(_KEPT.findall(form))

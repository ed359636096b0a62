"""What is close to the expected value: just inside of the limit, and just outside of it."""

import numpy as np
import pytest
import torch

import autograd_lens as lens

FULL = [torch.float64, torch.float32]
HALF = [torch.float16, torch.bfloat16]
REAL = FULL + HALF
COMPLEX = [torch.complex128, torch.complex64]
WHOLE = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]

named = {"ids": lambda one: str(one).removeprefix("torch.")}


def verdict(actual, expected):
    check = lens.check("it", actual, expected)
    assert check.ok == (check.verdict in ("exact", "close"))
    return check.verdict


def parted(dtype, *values):
    """A tensor of numbers that the dtype holds exactly."""
    tensor = torch.tensor(values, dtype=torch.complex128 if dtype.is_complex else torch.float64)
    assert torch.equal(tensor.to(dtype).to(tensor.dtype), tensor)
    return tensor.to(dtype)


# Tensors. The limit is 8 eps of the element itself, or 8 eps (1 in half precision) of the largest
# where that is no more than a bound. A step between neighbours is 1 eps from 1 to 2, eps/2 below.


@pytest.mark.parametrize("scale", [1, 2**10, 2**-10])
@pytest.mark.parametrize("dtype", REAL, **named)
@pytest.mark.parametrize(
    ("shift", "says"), [(8, "close"), (-8, "close"), (9, "differs"), (-8.5, "differs")]
)
def test_the_largest_element(dtype, scale, shift, says):
    eps = torch.finfo(dtype).eps
    assert verdict(scale * parted(dtype, 1 + shift * eps, 0), scale * parted(dtype, 1, 0)) == says
    assert verdict(-scale * parted(dtype, 1 + shift * eps), -scale * parted(dtype, 1)) == says


@pytest.mark.parametrize(
    ("dtype", "limit"), [(one, 8) for one in FULL] + [(one, 1) for one in HALF], **named
)
@pytest.mark.parametrize(
    ("shift", "says"), [(1, "close"), (-1, "close"), (1.25, "differs"), (-1.25, "differs")]
)
def test_a_zero_beside_a_large_element(dtype, limit, shift, says):
    eps = limit * torch.finfo(dtype).eps
    assert verdict(parted(dtype, 4, 4 * shift * eps), parted(dtype, 4, 0)) == says
    assert verdict(parted(dtype, -4, 4 * shift * eps), parted(dtype, -4, 0)) == says


@pytest.mark.parametrize(
    ("dtype", "limit"), [(one, 8) for one in FULL] + [(one, 2) for one in HALF], **named
)
@pytest.mark.parametrize(("shift", "says"), [(0, "close"), (0.25, "differs")])
def test_a_quarter_beside_one(dtype, limit, shift, says):
    eps = torch.finfo(dtype).eps
    for sign in (1, -1):
        actual = parted(dtype, 0.25 + sign * (limit + shift) * eps, 1)
        assert verdict(actual, parted(dtype, 0.25, 1)) == says


BOUND = {torch.float64: 1e-7, torch.float32: 3e-5, torch.float16: 2**-6, torch.bfloat16: 2**-3}
"""The most that a large element beside it adds to what a small one may differ by."""


@pytest.mark.parametrize("dtype", REAL, **named)
@pytest.mark.parametrize("large", [2**10, 2**15])
@pytest.mark.parametrize("small", [0, 2**-9, 1])
def test_a_small_element_is_judged_for_itself_however_large_its_neighbour(dtype, large, small):
    eps, bound = torch.finfo(dtype).eps, BOUND[dtype]
    beside = min(bound, large * eps * (8 if dtype in FULL else 1))
    limit = max(8 * eps * small, beside)
    actual = torch.tensor([large, small + 1.1 * limit + eps], dtype=torch.float64).to(dtype)
    assert verdict(actual, parted(dtype, large, small)) == "differs"
    actual = torch.tensor([large, small + 0.9 * limit - eps * small], dtype=torch.float64).to(dtype)
    assert verdict(actual, parted(dtype, large, small)) == "close"


@pytest.mark.parametrize("dtype", REAL + COMPLEX, **named)
@pytest.mark.parametrize("wrong", [2, 1.25, 0, -1])
def test_a_wrong_small_element_is_found_beside_any_large_one(dtype, wrong):
    """Such as [1e8, 2] for [1e8, 1], of which 1e8 alone has no digit for the difference."""
    for power in range(int(torch.finfo(dtype).max ** 0.5).bit_length()):
        large = 2.0**power
        check = lens.check("it", parted(dtype, large, wrong), parted(dtype, large, 1))
        assert check.wrong == ((False, True),)


@pytest.mark.parametrize("dtype", COMPLEX, **named)
@pytest.mark.parametrize("direction", [1, -1, 1j, -1j])
@pytest.mark.parametrize(("at_one", "at_zero", "says"), [(8, 8, "close"), (9, 8.25, "differs")])
def test_complex_elements_by_their_distance(dtype, direction, at_one, at_zero, says):
    step = torch.finfo(dtype).eps * direction
    assert verdict(parted(dtype, 1 + at_one * step, 0), parted(dtype, 1, 0)) == says
    assert verdict(parted(dtype, 1j, at_zero * step), parted(dtype, 1j, 0)) == says


@pytest.mark.parametrize("dtype", REAL + COMPLEX, **named)
def test_beside_zeros_only_zero_is_right(dtype):
    tiny = torch.finfo(dtype).tiny
    assert verdict(parted(dtype, 0, tiny), parted(dtype, 0, 0)) == "differs"
    assert verdict(parted(dtype, 0, -0.0), parted(dtype, 0, 0)) == "exact"


@pytest.mark.parametrize("dtype", WHOLE, **named)
def test_integers_are_the_same_or_not(dtype):
    most = torch.iinfo(dtype).max
    expected = torch.tensor([most - 1, 1], dtype=dtype)
    assert verdict(expected.clone(), expected) == "exact"
    for wrong in ([most, 1], [most - 2, 1], [most - 1, 0], [most - 1, 2]):
        assert verdict(torch.tensor(wrong, dtype=dtype), expected) == "differs"


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2], **named)
def test_floats_of_8_bits_are_the_same_or_not(dtype):
    assert (
        verdict(torch.tensor([1.0, 2.0]).to(dtype), torch.tensor([1.0, 2.0]).to(dtype)) == "exact"
    )
    assert (
        verdict(torch.tensor([1.0, 2.5]).to(dtype), torch.tensor([1.0, 2.0]).to(dtype)) == "differs"
    )


def test_bools_are_the_same_or_not():
    assert verdict(torch.tensor([True, False]), torch.tensor([True, False])) == "exact"
    assert verdict(torch.tensor([True, True]), torch.tensor([True, False])) == "differs"


@pytest.mark.parametrize("dtype", REAL, **named)
def test_what_is_not_finite(dtype):
    inf, nan = float("inf"), float("nan")
    expected = torch.tensor([inf, -inf, nan, 1.0], dtype=dtype)
    eps = torch.finfo(dtype).eps
    assert verdict(expected + torch.tensor([0, 0, 0, 8 * eps], dtype=dtype), expected) == "close"
    assert verdict(expected + torch.tensor([0, 0, 0, 9 * eps], dtype=dtype), expected) == "differs"
    for place, wrong in (0, -inf), (0, 1e4), (0, nan), (2, 1.0), (3, inf), (3, nan):
        actual = expected.clone()
        actual[place] = wrong
        check = lens.check("it", actual, expected)
        assert check.detail == f"at [{place}] (1 of 4 elements)"
    alone = torch.tensor([inf, nan], dtype=dtype)
    assert verdict(alone.clone(), alone) == "close"
    assert verdict(torch.tensor([inf, 0.0], dtype=dtype), alone) == "differs"


@pytest.mark.parametrize("dtype", REAL + COMPLEX, **named)
def test_another_dtype_is_wrong_however_close(dtype):
    other = torch.float32 if dtype is not torch.float32 else torch.float64
    assert verdict(torch.ones(2, dtype=other), torch.ones(2, dtype=dtype)) == "wrong dtype"


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        ([1e6, 2.0], [1e6, 1.0]),
        ([1e8, 2.0], [1e8, 1.0]),
        ([1.009, 2.0], [1.0, 2.0]),
        ([1.00001, 2.0], [1.0, 2.0]),
    ],
)
def test_wrong_float32_answers(actual, expected):
    assert verdict(torch.tensor(actual), torch.tensor(expected)) == "differs"


def test_wrong_half_precision_answers():
    half, brain = torch.float16, torch.bfloat16
    assert verdict(parted(half, 6e4, 500), parted(half, 6e4, 100)) == "differs"
    assert verdict(torch.tensor([1, 0.05], dtype=brain), parted(brain, 1, 0)) == "differs"


# Python numbers: a millionth, or 1e-12.


@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: [x], lambda x: {"a": (x, 2)}, np.float64])
@pytest.mark.parametrize("scale", [1.0, -1.0, 1e9, 1e-5])
@pytest.mark.parametrize(
    ("shift", "says"),
    [(0.999e-6, "close"), (-0.999e-6, "close"), (1.001e-6, "differs"), (-1.001e-6, "differs")],
)
def test_numbers(wrap, scale, shift, says):
    assert verdict(wrap(scale * (1 + shift)), wrap(scale)) == says


@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: [x], lambda x: {"a": (x, 2)}, np.float64])
@pytest.mark.parametrize(
    ("value", "says"),
    [(0.999e-12, "close"), (-0.999e-12, "close"), (1.001e-12, "differs"), (-1.001e-12, "differs")],
)
def test_numbers_beside_zero(wrap, value, says):
    assert verdict(wrap(value), wrap(0.0)) == says
    assert verdict(wrap(1e-9 + 1.1 * value), wrap(1e-9)) == "differs"


@pytest.mark.parametrize("direction", [1, -1, 1j, -1j])
@pytest.mark.parametrize(("shift", "says"), [(0.999e-6, "close"), (1.001e-6, "differs")])
def test_complex_numbers_by_their_distance(direction, shift, says):
    assert verdict(1 + shift * direction, 1 + 0j) == says


@pytest.mark.parametrize("actual", [10**9 + 1, [10**9 + 1], (1, 10**9 + 1)])
def test_whole_numbers_are_the_same_or_not(actual):
    expected = {int: 10**9, list: [10**9], tuple: (1, 10**9)}[type(actual)]
    assert verdict(actual, expected) == "differs"
    assert verdict(expected, expected) == "exact"
    assert verdict(torch.tensor(10**9 + 1), 10**9) == "differs"


def test_a_tensor_where_numbers_are_expected():
    for shift, says in (0.9e-6, "close"), (1.1e-6, "differs"):
        assert verdict(torch.tensor(1 + shift), 1.0) == says
        assert verdict(torch.tensor([1 + shift, 2.0]), [1.0, 2.0]) == says
        assert verdict([1 + shift, 2.0], np.array([1.0, 2.0])) == says
    assert verdict(torch.tensor(1.0, dtype=torch.float16), 1) == "exact"
    assert verdict([1, 2], torch.tensor([1, 2])) == "wrong type"


@pytest.mark.parametrize("dtype", REAL, **named)
@pytest.mark.parametrize("terms", [16, 256])
def test_another_order_of_summation_is_right(dtype, terms):
    a, b = torch.randn(32, terms).to(dtype), torch.randn(terms, 32).to(dtype)
    assert verdict(a.flip(1) @ b.flip(0), a @ b) in ("close", "exact")
    assert verdict((a[:, :, None] * b).sum(1), a @ b) in ("close", "exact")

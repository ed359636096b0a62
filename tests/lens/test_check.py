"""Verdicts: right ones are accepted, each kind of wrong one is named, nothing is given away."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import torch

import autograd_lens as lens

T = torch.tensor
NAN = float("nan")


@pytest.mark.parametrize(
    ("actual", "expected", "verdict"),
    [
        (T([1.0, 2.0]), T([1.0, 2.0]), "exact"),
        (T([1.0, 2.0 + 2e-7]), T([1.0, 2.0]), "close"),
        (T([NAN, 1.0]), T([NAN, 1.0]), "close"),
        (torch.eye(2).to_sparse(), torch.eye(2).to_sparse(), "exact"),
        (T(3.0), 3, "exact"),
        (np.float32(3), 3, "exact"),
        (np.bool_(True), True, "exact"),
        (0.1 + 0.2, 0.3, "close"),
        (1e-17, 0.0, "close"),
        (NAN, NAN, "exact"),
        ((1, 2), [1, 2], "exact"),
        (T([[1.0, 2.0]]), [[1, 2]], "exact"),
        (np.ones(2), [1, 1], "exact"),
        ([1.0, 2.0], np.array([1, 2]), "exact"),
        (T([1.0, 2.0]), np.array([1, 2]), "exact"),
        (3.0, np.float32(3), "exact"),
        (3, np.int64(3), "exact"),
        ({"a": T([1.0])}, {"a": T([1.0])}, "exact"),
        (None, None, "exact"),
    ],
    ids=str,
)
def test_right_answers_pass(actual, expected, verdict):
    check = lens.check("it", actual, expected)
    assert (check.verdict, check.ok, bool(check)) == (verdict, True, True)
    check.require()


@pytest.mark.parametrize(
    ("actual", "expected", "verdict", "phrase"),
    [
        (T([[1.0, 9.0]]), T([[1.0, 2.0]]), "differs", "at [0, 1] (1 of 2 elements)"),
        (T([5e-7]), T([1e-7]), "differs", "at [0]"),
        (T(2.0), T(1.0), "differs", "2 is not it"),
        (T([1, 2]), T([1, 3]), "differs", "at [1]"),
        (T([1.0]), T([[1.0]]), "wrong shape", "(1,), not (1, 1)"),
        (T([1.0]).double(), T([1.0]), "wrong dtype", "torch.float64, not torch.float32"),
        (1.0, T([1.0]), "wrong type", "a float, not a tensor"),
        (T([1.0], device="meta"), T([1.0]), "wrong type", "no values"),
        (torch.eye(2), torch.eye(2).to_sparse(), "wrong type", "layout"),
        (100_001, 100_000, "differs", "100001 is not it"),
        (10**400, 1.0, "differs", "is not it"),
        (1e40, 2e40, "differs", "is not it"),
        (1e-9, 5e-9, "differs", "is not it"),
        (True, 1, "wrong type", "a bool, not a number"),
        (1, True, "wrong type", "an int, not a bool"),
        ("b", "a", "differs", "another value"),
        ([1], [1, 2], "wrong length", "1, not 2"),
        ([1, 3], [1, 2], "differs", "[1]: 3 is not it"),
        (np.array([1, 3]), np.array([1, 2]), "differs", "[1]: 3 is not it"),
        ({"b": 1}, {"a": 1}, "wrong length", "without 'a' and with 'b' too many"),
        (..., 1, "not answered yet", ""),
        ([1, ...], [1, 2], "not answered yet", "[1] is open"),
        ([[1, 2], [3, ...]], [[1, 2], [3, 4]], "not answered yet", "[1]: [1] is open"),
        ([[1, 2], [3]], [[1, 2], [3, 4]], "wrong length", "[1]: 1, not 2"),
        (None, [1, 2], "wrong type", "None, not a list"),
    ],
    ids=str,
)
def test_wrong_answers_are_named(actual, expected, verdict, phrase):
    check = lens.check("it", actual, expected)
    assert (check.verdict, check.ok, bool(check)) == (verdict, False, False)
    assert phrase in check.detail
    with pytest.raises(AssertionError) as caught:
        check.require()
    assert str(caught.value) == str(check)


def test_the_expected_value_is_shown_on_request_only():
    hidden, shown = (lens.check("it", 1, 42, reveal=reveal) for reveal in (False, True))
    assert "42" not in str(hidden) + str(hidden._repr_mimebundle_())
    assert "42" in str(shown)


@pytest.mark.needs("dot")
def test_the_picture_marks_exactly_the_wrong_elements():
    check = lens.check("it", T([[1.0, 9.0], [9.0, 4.0]]), T([[1.0, 2.0], [3.0, 4.0]]))
    assert check.wrong == ((False, True), (True, False))
    page = check._repr_mimebundle_()["text/html"]
    assert page.count(">✗</text>") == 2 and page.count(">✓</text>") == 2


@pytest.mark.parametrize("number", [Fraction(2, 5), Decimal("0.4")])
def test_any_kind_of_number_is_a_number(number):
    assert lens.check("share", number, 0.4).ok
    assert lens.check("share", number, 0.5).verdict == "differs"

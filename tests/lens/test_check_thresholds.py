"""Where one verdict ends and the next begins, and what a verdict says there.

Each of these was a change to `check.py` that no other test noticed (`make mutants`).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

import autograd_lens as lens

T = torch.tensor
NAN = float("nan")
CLOSE = 0.1 + 0.2


class Own:
    """Of a type that `check` knows nothing of; any two are equal."""

    def __eq__(self, other):
        return isinstance(other, Own)

    __hash__ = None

    def __repr__(self):
        return "Own()"


def said(actual, expected):
    check = lens.check("it", actual, expected)
    return check.verdict, check.detail


@pytest.mark.parametrize(
    ("actual", "expected"),
    [(NAN, 1.0), (1.0, NAN), (NAN, 1), (complex(NAN, 0), 1j), ([NAN], [1.0]), (T(NAN), 1.0)],
    ids=str,
)
def test_not_a_number_is_none_of_the_numbers(actual, expected):
    assert said(actual, expected)[0] == "differs"


@pytest.mark.parametrize(
    ("actual", "expected", "verdict"),
    [
        (10**9, 10**9 + 1.0, "close"),
        (10**9 + 1.0, 10**9, "close"),
        (Fraction(10**9 + 1), 10**9, "close"),
        (10**9 + 1, 10**9, "differs"),
    ],
)
def test_both_have_to_be_whole_for_no_rounding(actual, expected, verdict):
    assert said(actual, expected)[0] == verdict


@pytest.mark.parametrize("wrap", [list, tuple, lambda items: dict(enumerate(items))])
def test_one_close_item_makes_the_whole_close_and_hides_no_wrong_one(wrap):
    assert said(wrap([1, 2]), wrap([1, 2])) == ("exact", "")
    for items in ([CLOSE, 2], [2, CLOSE], [CLOSE, 2, CLOSE], [[CLOSE], 2]):
        expected = [0.3 if x == CLOSE else [0.3] if x == [CLOSE] else x for x in items]
        assert said(wrap(items), wrap(expected)) == ("close", "")
    verdict, detail = said(wrap([CLOSE, 3]), wrap([0.3, 2]))
    assert (verdict, detail) == ("differs", "[1]: 3 is not it")


@pytest.mark.parametrize(
    ("actual", "expected"),
    [(1, 1), (CLOSE, 0.3), ("a", "a"), (None, None), (Own(), Own()), ([1], [1]), (T(1.0), T(1.0))],
    ids=["int", "float", "text", "None", "own", "list", "tensor"],
)
def test_of_what_is_right_there_is_nothing_to_say(actual, expected):
    check = lens.check("it", actual, expected)
    assert (check.ok, check.detail, check.wrong) == (True, "", ())


@pytest.mark.parametrize(
    ("actual", "expected", "detail"),
    [
        ([1], {"a": 1}, "this is a list, not a dict"),
        (3, {"a": 1}, "this is an int, not a dict"),
        (3, [1], "this is an int, not a list"),
        (3, (1,), "this is an int, not a tuple"),
        ("ab", ["a", "b"], "this is a str, not a list"),
        (b"ab", [97, 98], "this is a bytes, not a list"),
        (None, 3, "this is None, not a number"),
        ("3", 3, "this is a str, not a number"),
        (1, "a", "this is an int, not a str"),
        (1, None, "this is an int, not None"),
        (Fraction(1, 2), "a", "this is a fractions.Fraction, not a str"),
        (Fraction(1, 2), [1], "this is a fractions.Fraction, not a list"),
        (1, Own(), f"this is an int, not a {__name__}.Own"),
        (T([1.0], device="meta"), [1.0], "this is a torch.Tensor, not a list"),
        (np.array(3), [3], "this is a numpy.ndarray, not a list"),
    ],
    ids=str,
)
def test_a_wrong_type_is_named_with_its_article_and_module(actual, expected, detail):
    assert said(actual, expected) == ("wrong type", detail)


def test_another_value_is_all_that_is_said_of_what_is_no_number():
    assert said("b", "a") == ("differs", "another value")


def test_keys_are_listed_in_order():
    assert said({"c": 1, "d": 1}, {"b": 1, "a": 1}) == (
        "wrong length",
        "without 'a', 'b' and with 'c', 'd' too many",
    )
    assert said({"a": 1, "c": 1, "b": 1}, {"a": 1}) == ("wrong length", "with 'b', 'c' too many")
    assert said({}, {"b": 1, "a": 1}) == ("wrong length", "without 'a', 'b'")


def test_an_infinity_makes_no_other_element_close():
    assert said(T([float("inf"), 1e-3 + 5e-7]), T([float("inf"), 1e-3]))[0] == "differs"
    assert said(T([float("inf"), 0.0]), T([float("inf"), 1e-30]))[0] == "differs"


@pytest.mark.parametrize(
    ("wrong", "detail"),
    [
        (1, "at [0] (1 of 5 elements)"),
        (2, "at [0], [1] (2 of 5 elements)"),
        (3, "at [0], [1], [2] (3 of 5 elements)"),
        (4, "at [0], [1], [2], … (4 of 5 elements)"),
    ],
)
def test_three_places_are_told(wrong, detail):
    actual = torch.zeros(5)
    actual[:wrong] = 1
    assert said(actual, torch.zeros(5)) == ("differs", detail)


def test_of_a_close_tensor_there_is_nothing_to_say():
    assert said(T([1.0 + 2e-7]), T([1.0])) == ("close", "")


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged], ids=str)
def test_nested_tensors_are_compared_part_by_part(layout):
    def nested(*parts):
        return torch.nested.nested_tensor([T(part) for part in parts], layout=layout)

    expected = nested([1.0, 2.0], [3.0])
    assert said(nested([1.0, 2.0], [3.0]), expected) == ("exact", "")
    assert said(nested([1.0, 2.0], [4.0]), expected) == (
        "differs",
        "[1]: at [0] (1 of 1 elements)",
    )
    assert said(nested([1.0], [3.0]), expected)[0] == "wrong shape"


def test_a_verdict_has_the_name_of_its_answer():
    for actual in (1, 2, ...):
        assert lens.check("slope", actual, 1).name == "slope"
    assert str(lens.check("slope", ..., 1)) == "… slope: not answered yet"

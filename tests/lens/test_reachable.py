"""What is reached from a Python object: each way to hold a tensor, and what is not entered."""

import functools
import types
import weakref
from collections import deque

import numpy as np
import pytest
import torch

from autograd_lens.saving.reachable import memory_kept, tensors_kept


class Plain:
    def __init__(self, held):
        self.held = held

    def method(self):
        return self.held


class Slotted:
    __slots__ = ("held", "never_set")

    def __init__(self, held):
        self.held = held


class Keeps(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, held):
        ctx.held = [held]
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        return grad, None


def closed_over(held):
    return lambda: held


def emptied(held):
    def inner():
        return held, gone  # noqa: F821  (an emptied cell)

    gone = None
    del gone
    return inner


def by_default(held):
    return lambda x=held: x


def by_keyword(held):
    def function(*, x=held):
        return x

    return function


def node_that_saved(held):
    return (held * torch.ones(2, requires_grad=True)).grad_fn


def raw_saved(held):
    return node_that_saved(held)._raw_saved_self


def node_of_a_function(held):
    return Keeps.apply(torch.ones(2, requires_grad=True), held).grad_fn


HOLDERS = [
    lambda held: {"key": held},
    lambda held: (1, held),
    lambda held: [[held]],
    lambda held: {held},
    lambda held: frozenset([held]),
    lambda held: deque([held]),
    lambda held: types.MappingProxyType({1: held}),
    lambda held: held.numpy(),
    lambda held: held.add,
    lambda held: Plain(held).method,
    lambda held: functools.partial(print, held),
    lambda held: functools.partial(print, end=held),
    lambda held: functools.partial(closed_over(held)),
    Plain,
    Slotted,
    closed_over,
    emptied,
    by_default,
    by_keyword,
    node_that_saved,
    raw_saved,
    node_of_a_function,
]


@pytest.mark.parametrize("number", range(len(HOLDERS)))
def test_a_tensor_is_found_wherever_it_is_held(number):
    held = torch.tensor([1.0, 2.0])
    found = [one.data_ptr() for one in tensors_kept(HOLDERS[number](held))]
    assert found == [held.data_ptr()]


@pytest.mark.parametrize(
    "holder",
    [
        lambda held: torch.nn.ParameterList([held]),
        weakref.ref,
        lambda held: type("Holder", (), {"held": held}),
        str,
    ],
    ids=["module", "weak reference", "class", "text"],
)
def test_what_lives_on_its_own_is_not_entered(holder):
    assert tensors_kept(holder(torch.ones(2))) == []


def test_other_memory_is_found_too():
    array, raw, storage = np.ones(3), b"abc", torch.ones(2).untyped_storage()
    assert memory_kept([array], {"raw": raw}, storage) == [array, raw, storage]


def test_each_is_found_once_and_circles_end():
    held, circle = torch.ones(2), []
    circle += [circle, held, {"again": held}]
    assert len(tensors_kept(circle, held, None)) == 1

"""Which indices lead to an address: arithmetic on shapes and strides, without a tensor.

The address of an index is the sum of index times stride over the dimensions, in elements from the
first one. PyTorch has no negative strides. What is asked here is the other way round, and is never
answered by going through the indices: a tensor of one element can be expanded to more of them than
can be counted.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd, prod
from typing import Any

import torch

Index = tuple[int, ...]

COUNTED = 1 << 22
"""Elements up to which overlapping indices are counted one by one."""

TRIED = 4096
"""Beginnings of indices that are tried for one address. Only overlapping tensors of three or more
dimensions have more than one."""

FEW = 3
"""Indices that are named where several lead to one address."""


@dataclass(frozen=True)
class Readers:
    """The indices that lead to one address.

    Attributes:
        indices: the first ones, in order.
        number: how many there are; None where that was not counted to the end.
    """

    indices: tuple[Index, ...]
    number: int | None


@dataclass(frozen=True)
class _Dimension:
    stride: int
    size: int
    place: int
    """Where it stands in an index; -1 for one that was added, and has one index only."""


_NONE = _Dimension(1, 1, -1)


def reach(shape: Sequence[int], stride: Sequence[int]) -> int:
    """The largest address; 0 for one element."""
    return sum((n - 1) * s for n, s in zip(shape, stride, strict=True))


def readers_at(
    shape: Sequence[int],
    stride: Sequence[int],
    address: int,
    *,
    few: int = FEW,
    tried: int = TRIED,
) -> Readers:
    """Return the first ``few`` indices that lead to ``address``, and how many there are."""
    if 0 in shape or not 0 <= address <= reach(shape, stride):
        return Readers((), 0)
    *outer, major, minor = _moving(shape, stride)
    beginnings, complete = _beginnings(outer, major, minor, address, tried)
    fixed = {d.place for d in (*outer, major, minor)}
    free = [d for d in range(len(shape)) if d not in fixed]  # every index of them leads there
    number = 0
    found: list[Index] = []
    for begun, rest in beginnings:
        ends = _ends(rest, major, minor)
        number += len(ends)
        # The first ones in the order of indices, in which the smaller stride may come first.
        first = ends[:few] if major.place < minor.place else ends[max(0, len(ends) - few) :]
        for i in first:
            values = (*begun, i, (rest - i * major.stride) // minor.stride)
            at = dict(zip((d.place for d in (*outer, major, minor)), values, strict=True))
            for more in product(*(range(min(shape[d], few)) for d in free)):
                whole = at | dict(zip(free, more, strict=True))
                found.append(tuple(whole[d] for d in range(len(shape))))
    number *= prod(shape[d] for d in free)
    return Readers(tuple(sorted(found)[:few]), number if complete else None)


def all_readers_at(shape: Sequence[int], stride: Sequence[int], address: int) -> list[Index]:
    """Every index that leads to ``address``; takes as long as there are some."""
    return list(readers_at(shape, stride, address, few=sys.maxsize, tried=sys.maxsize).indices)


def _moving(shape: Sequence[int], stride: Sequence[int]) -> list[_Dimension]:
    """The dimensions whose index changes the address, largest stride first; at least two."""
    dims = [
        _Dimension(s, n, place)
        for place, (n, s) in enumerate(zip(shape, stride, strict=True))
        if n > 1 and s
    ]
    dims.sort(key=lambda d: (d.stride, d.size), reverse=True)
    return dims + [_NONE] * (2 - len(dims))


def _beginnings(
    outer: list[_Dimension], major: _Dimension, minor: _Dimension, address: int, most: int
) -> tuple[list[tuple[Index, int]], bool]:
    """Indices of the outer dimensions, each with what the inner ones have to make up for.

    The second value says whether these are all.
    """
    begun: list[tuple[Index, int]] = [((), address)]
    complete = True
    for k, dim in enumerate(outer):
        inner = (*outer[k + 1 :], major, minor)
        left = sum((d.size - 1) * d.stride for d in inner)
        grown: list[tuple[Index, int]] = []
        for index, rest in begun:
            fitting = range(max(0, -((left - rest) // dim.stride)), _last(rest, dim) + 1)
            tried = fitting[: most - len(grown)]
            complete = complete and len(tried) == len(fitting)
            grown += [((*index, i), rest - i * dim.stride) for i in tried]
        begun = grown
    return begun, complete


def _last(rest: int, dim: _Dimension) -> int:
    return min(dim.size - 1, rest // dim.stride)


def _ends(rest: int, major: _Dimension, minor: _Dimension) -> range:
    """The indices of ``major`` after which one of ``minor`` leads to exactly ``rest``.

    It solves i * major.stride + j * minor.stride = rest: every so many i there is a j.
    """
    common = gcd(major.stride, minor.stride)
    if rest % common:
        return range(0)
    every = minor.stride // common
    first = rest // common * pow(major.stride // common, -1, every) % every
    least = max(0, -(((minor.size - 1) * minor.stride - rest) // major.stride))
    first += -((first - least) // every) * every if first < least else 0
    return range(first, _last(rest, major) + 1, every)


def distinct(shape: Sequence[int], stride: Sequence[int]) -> int | None:
    """How many different addresses the indices lead to; None where they are too many to count.

    Dimensions with stride 0 add none. If, from the smallest stride up, each stride reaches over all
    that the smaller ones cover, no two indices meet; otherwise they are counted.
    """
    if not prod(shape):
        return 0
    steps = sorted((s, n) for n, s in zip(shape, stride, strict=True) if n > 1 and s)
    covered = 1
    for step, size in steps:
        if step < covered:
            break
        covered = step * (size - 1) + covered
    else:
        return prod(size for _, size in steps)
    if prod(size for _, size in steps) > COUNTED:
        return None
    places = torch.zeros(1, dtype=torch.int64, device="cpu")
    for step, size in steps:
        places = (places[:, None] + torch.arange(size, device="cpu") * step).flatten().unique()
    return len(places)


def integer(name: str, value: Any) -> int:
    """``value`` as a Python integer; raises TypeError for what is none."""
    if isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, not {value}")
    try:
        return operator.index(value)
    except (TypeError, RuntimeError):
        raise TypeError(f"{name} must be an integer, not {value!r:.40}") from None


def as_index(index: Any) -> Index:
    """An index as a tuple, from a sequence of integers or from one integer."""
    if not isinstance(index, (str, bytes)) and hasattr(index, "__iter__"):
        return tuple(integer("an index", i) for i in index)
    return (integer("an index", index),)


def refuse_outside(what: str, number: int, count: int) -> None:
    """Raise IndexError for a number of something that is not there."""
    if not 0 <= number < count:
        raise IndexError(f"there are {count} {what}; {number} is not among them")

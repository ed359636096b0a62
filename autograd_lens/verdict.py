"""A verdict on an answer: what is right, and where it is not.

Compares tensors, numbers, texts, and lists, tuples and dicts of them. The expected value stays
hidden unless it is asked for, so a check can stand beside an exercise.

Close means: equal up to rounding. Nothing is close to an integer, a bool or a text but itself.
"""

from __future__ import annotations

import cmath
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from .result import Result

if TYPE_CHECKING:
    from .view.figure import Figure

OWN = 8
"""An element of a tensor may differ by so many roundings of its own size. A rounding is one
``torch.finfo(dtype).eps``."""

LARGEST = 8
"""It may also differ by so many roundings of the largest element. Another order of summation makes
such errors, and where large terms cancel, they are all that is left."""

LARGEST_HALF = 1
"""The same for half precision, where PyTorch sums in single precision and rounds at the end."""

CANCELLED = {64: 1e-7, 32: 3e-5}
"""But by no more than this, by the bits of the dtype: a large element says little of a small one
beside it. In double precision this is the ``atol`` of ``torch.testing``; in single precision, what
is left when two products of matrices of 256 terms around 1 are summed in two orders, which is three
times that ``atol``."""

CANCELLED_HALF = 16
"""The same for half precision, in roundings of 1."""

DIGITS = 1e-6
"""By what part of itself a Python number may differ: a reader types a few digits."""

NOTHING = 1e-12
"""What is as good as 0 where a Python number is expected."""


@dataclass(frozen=True, repr=False)
class Check(Result):
    """The verdict on one answer.

    Attributes:
        name: of the answer, as given.
        verdict: ``"exact"``, ``"close"`` (up to rounding), ``"differs"``,
            ``"wrong shape"``, ``"wrong dtype"``, ``"wrong type"``, ``"wrong length"`` or
            ``"not answered yet"``.
        detail: a sentence on what is wrong, empty if nothing is.
        wrong: for a tensor that differs, which elements are wrong: rows of True and False (a tensor
            of more dimensions is flattened to rows of its last one); else empty.
    """

    name: str
    verdict: str
    detail: str
    wrong: tuple[tuple[bool, ...], ...] = ()

    @property
    def ok(self) -> bool:
        """True for ``"exact"`` and ``"close"``."""
        return self.verdict in ("exact", "close")

    def __bool__(self) -> bool:
        return self.ok

    def require(self) -> None:
        """Raise AssertionError with the message of the verdict unless it is ``ok``."""
        if not self.ok:
            raise AssertionError(str(self))

    def figure(self) -> Figure:
        """Return the verdict, with a picture of where it differs."""
        from .view.draw_check import figure

        return figure(self)


def check(name: str, actual: Any, expected: Any, *, reveal: bool = False) -> Check:
    """Compare ``actual`` with ``expected`` and return a verdict that shows itself.

    Numbers are close if they agree to six digits. Each element of a tensor is judged for itself: it
    is close if it differs by 8 ``eps`` of its dtype, times its size. Where the tensor has larger
    elements, also by 8 ``eps`` (in half precision 1 ``eps``) of the largest, but by no more than
    1e-7 in double, 3e-5 in single and 16 ``eps`` in half precision.

    Args:
        name: what the answer is called.
        actual: the answer; ``...`` (Ellipsis) means that there is none yet.
        expected: the right value.
        reveal: put the expected value into the message.

    Raises:
        AssertionError: only by :meth:`Check.require`, where the answer is not right. ``check``
            itself turns any answer into a verdict.
    """
    if actual is ...:
        return Check(name, "not answered yet", "")
    verdict, detail, wrong = _compare(actual, expected)
    if reveal and verdict not in ("exact", "close"):
        detail += f"; expected {expected!r}"
    return Check(name, verdict, detail, wrong)


_Result = tuple[str, str, tuple[tuple[bool, ...], ...]]


def _compare(actual: Any, expected: Any) -> _Result:
    if isinstance(expected, torch.Tensor):
        return _compare_tensors(actual, expected)
    if hasattr(expected, "ndim") and hasattr(expected, "tolist"):
        expected = expected.tolist()  # an array or one of its numbers, as Python has them
    if isinstance(expected, bool) or isinstance(expected, (str, bytes, type(None))):
        return _compare_plain(actual, expected)
    if isinstance(expected, (int, float, complex)):
        return _compare_numbers(actual, expected)
    if isinstance(expected, Mapping):
        return _compare_mappings(actual, expected)
    if isinstance(expected, Sequence):
        return _compare_sequences(actual, expected)
    return _compare_plain(actual, expected)


def _type_name(value: Any) -> str:
    if value is None:
        return "None"
    kind = type(value)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _wrong_type(actual: Any, wanted: str) -> _Result:
    return "wrong type", f"this is {_type_name(actual)}, not {wanted}", ()


def _compare_plain(actual: Any, expected: Any) -> _Result:
    actual = _scalar(actual)
    if type(actual) is not type(expected):
        return _wrong_type(actual, _type_name(expected))
    return ("exact", "", ()) if actual == expected else ("differs", "another value", ())


def _compare_numbers(actual: Any, expected: complex) -> _Result:
    actual = _scalar(actual)
    if isinstance(actual, bool) or not isinstance(actual, numbers.Number):
        return _wrong_type(actual, "a number")
    if actual == expected or (actual != actual and expected != expected):
        return "exact", "", ()
    whole = isinstance(actual, int) and isinstance(expected, int)
    if not whole and _near(actual, expected):
        return "close", "", ()
    return "differs", f"{str(actual)[:30]} is not it", ()


def _scalar(value: Any) -> Any:
    """The Python number in a tensor or array of no dimensions; anything else as it is."""
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item") and not _valueless(value):
        return value.item()
    return value


def _valueless(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_meta


def _near(actual: complex, expected: complex) -> bool:
    try:
        return cmath.isclose(actual, expected, rel_tol=DIGITS, abs_tol=NOTHING)
    except OverflowError:  # an integer beyond any float
        return False


def _compare_tensors(actual: Any, expected: torch.Tensor) -> _Result:
    if not isinstance(actual, torch.Tensor):
        return _wrong_type(actual, "a tensor")
    if actual.layout != expected.layout or actual.is_nested != expected.is_nested:
        return "wrong type", f"layout {actual.layout}, not {expected.layout}", ()
    if expected.is_nested:
        return _compare_sequences(list(actual.unbind()), list(expected.unbind()))
    if actual.shape != expected.shape:
        return "wrong shape", f"{tuple(actual.shape)}, not {tuple(expected.shape)}", ()
    if actual.dtype != expected.dtype:
        return "wrong dtype", f"{actual.dtype}, not {expected.dtype}", ()
    if actual.is_meta or expected.is_meta:
        return "wrong type", "a meta tensor has no values to compare", ()
    actual, expected = _plain(actual), _plain(expected)
    if torch.equal(actual, expected):
        return "exact", "", ()
    right = _close(actual, expected)
    if right.all():
        return "close", "", ()
    if right.dim() == 0:
        return "differs", f"{actual.item():g} is not it", ()
    at = (~right).nonzero()
    places = ", ".join(str(place.tolist()) for place in at[:3]) + (", …" if len(at) > 3 else "")
    rows = (~right).reshape(-1, right.shape[-1]).tolist()
    detail = f"at {places} ({len(at)} of {right.numel()} elements)"
    return "differs", detail, tuple(map(tuple, rows))


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """The values, dense and on the CPU."""
    tensor = tensor.detach()
    return (tensor if tensor.layout == torch.strided else tensor.to_dense()).cpu()


def _close(actual: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    """Which elements are equal up to rounding; integers have to be the same."""
    if not (expected.is_floating_point() or expected.is_complex()):
        return actual == expected
    wide = torch.complex128 if expected.is_complex() else torch.float64
    limits = _limits(expected)
    actual, expected = actual.to(wide), expected.to(wide)
    near = (actual - expected).abs() <= limits
    return near | (actual == expected) | (actual.isnan() & expected.isnan())


def _limits(expected: torch.Tensor) -> torch.Tensor:
    """By how much each element may differ."""
    kind = torch.finfo(expected.dtype)
    # Neighbours in 8 bits are too far apart for any of it.
    eps = kind.eps if expected.dtype.itemsize > 1 else 0.0
    sizes = expected.to(torch.complex128 if expected.is_complex() else torch.float64).abs()
    sizes[~sizes.isfinite()] = 0
    beside = sizes.max() * eps * (LARGEST if kind.bits > 16 else LARGEST_HALF)
    most = CANCELLED.get(kind.bits, CANCELLED_HALF * eps)
    return torch.maximum(OWN * eps * sizes, beside.clamp(max=most))


def _compare_sequences(actual: Any, expected: Sequence[Any]) -> _Result:
    if hasattr(actual, "tolist") and getattr(actual, "ndim", 0) and not _valueless(actual):
        actual = actual.tolist()  # a tensor or array where a list would do
    if isinstance(actual, (str, bytes)) or not isinstance(actual, Sequence):
        return _wrong_type(actual, f"a {type(expected).__name__}")
    if len(actual) != len(expected):
        return "wrong length", f"{len(actual)}, not {len(expected)}", ()
    return _compare_items(
        ((f"[{k}]", a, e) for k, (a, e) in enumerate(zip(actual, expected, strict=True)))
    )


def _compare_mappings(actual: Any, expected: Mapping[Any, Any]) -> _Result:
    if not isinstance(actual, Mapping):
        return _wrong_type(actual, "a dict")
    if set(actual) != set(expected):
        missing = sorted(map(repr, set(expected) - set(actual)))
        extra = sorted(map(repr, set(actual) - set(expected)))
        words = [f"without {', '.join(missing)}"] * bool(missing)
        words += [f"with {', '.join(extra)} too many"] * bool(extra)
        return "wrong length", " and ".join(words), ()
    return _compare_items((f"[{key!r}]", actual[key], expected[key]) for key in expected)


def _compare_items(items: Any) -> _Result:
    close = False
    for place, actual, expected in items:
        if actual is ...:
            return "not answered yet", f"{place} is open", ()
        verdict, detail, wrong = _compare(actual, expected)
        if verdict not in ("exact", "close"):
            return verdict, f"{place}: {detail}", wrong
        close = close or verdict == "close"
    return ("close" if close else "exact"), "", ()

"""An axis of a chart: where a value lies on it, its ticks, and how they are written.

All labels of an axis have one notation. An axis of bytes has human units. An axis of what can't be
negative starts at 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

UNITS = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"), (1, "B"))
"""Decimal units of bytes, the largest first."""

PLAIN, PLAIN_POWERS = (1e-3, 1e6), (1e-3, 1e5)
"""Numbers between these are written out, on an even and on a logarithmic axis.

If an axis has others, all of its labels are powers of ten.
"""


@dataclass(frozen=True)
class Axis:
    """An axis from ``low`` to ``high``.

    Attributes:
        low, high: its ends.
        log: whether it is logarithmic.
        steps: the smallest step between two ticks; 1 where all values are whole, else 0.
        doubling: whether all values are powers of two.
        in_bytes: whether it counts bytes.
    """

    low: float
    high: float
    log: bool = False
    steps: float = 0.0
    doubling: bool = False
    in_bytes: bool = False

    def share(self, value: float) -> float:
        """The place of ``value``: 0 at the low end, 1 at the high end."""
        if self.log:
            low, here, high = map(math.log10, (self.low, value, self.high))
        else:  # first made small, because the difference of two large floats may be no float
            most = max(abs(self.low), abs(self.high))
            low, here, high = self.low / most, value / most, self.high / most
        return (here - low) / (high - low)

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """At most ``most`` values with their labels, from the low end to the high end."""
        values = self._powers(most) if self.log else []
        values = values or _evenly(self.low, self.high, most, self.steps) or [self.low, self.high]
        labels = _bytes(values, self.log) if self.in_bytes else _numbers(values, self.log)
        return [(value, label) for label, value in dict(zip(labels, values, strict=True)).items()]

    def _powers(self, most: int) -> list[float]:
        """Ticks of a logarithmic axis; none if it spans too little for them."""
        low, high = math.log10(self.low), math.log10(self.high)
        if self.doubling and math.log2(self.high / self.low) >= 1:
            first, last = math.ceil(low / math.log10(2) - 1e-9), high / math.log10(2) + 1e-9
            powers = range(first, math.floor(last) + 1)
            return [2.0**power for power in powers[:: -(-len(powers) // most)]]
        tens = range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1)
        if len(tens) >= 3:
            apart = -(-len(tens) // most)
            return [10.0**power for power in tens if power % apart == 0]
        for parts in ((1, 2, 5), (1, 2, 3, 4, 5, 6, 7, 8, 9)):
            values = [
                part * 10.0**power
                for power in range(math.floor(low), math.floor(high) + 1)
                for part in parts
                if low - 1e-9 <= math.log10(part) + power <= high + 1e-9
            ]
            if 3 <= len(values) <= most:
                return values
        return [10.0**power for power in tens] if len(tens) == 2 else []


def counts_bytes(words: str) -> bool:
    """Whether an axis with this title counts bytes, and no ratio of bytes."""
    return bool(re.search(r"\bbytes\b", words)) and not re.search(r"/|\btimes\b|\bratio\b", words)


def fitted(
    values: Sequence[float],
    ends: tuple[float, float] | None,
    *,
    log: bool = False,
    words: str = "",
    from_zero: bool = False,
) -> Axis:
    """The axis for ``values``.

    Args:
        values: what has to lie on it.
        ends: its ends, or None to fit the values.
        log: whether it is logarithmic.
        words: its title, which tells whether it counts bytes.
        from_zero: whether it may begin at 0 where that is near, or the values are all the same.
    """
    whole = all(value == round(value) for value in values)
    doubling = log and all(math.frexp(value)[0] == 0.5 and abs(value) <= 2**20 for value in values)
    in_bytes = counts_bytes(words)
    low, high = ends or _ends(min(values), max(values), log, from_zero, in_bytes)
    return Axis(low, high, log, float(whole), doubling and low >= 2**-4, in_bytes)


def _ends(
    low: float, high: float, log: bool, from_zero: bool, in_bytes: bool
) -> tuple[float, float]:
    same = high == low or high / 2 - low / 2 < 1e-13 * max(abs(low), abs(high))
    if log:
        return (max(low / 3, 5e-324), min(high * 3, 1.7e308)) if same else (low, high)
    if same and not from_zero:
        return low - (abs(low) / 2 or 1), high + (abs(high) / 2 or 1)
    if from_zero and low >= 0 and (same or in_bytes or low <= high / 2):
        return 0.0, (min(high * 1.25, 1.7e308) if same else high) or 1.0
    if from_zero and high <= 0 and (same or high >= low / 2):
        return max(low * 1.25, -1.7e308) if same else low, 0.0
    return low, high


def _evenly(low: float, high: float, most: int, least: float) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten; none if there are not even two."""
    largest = max(abs(low), abs(high))
    between = (high / largest - low / largest) * (largest / most)
    if not between > 1e-300 or between < 1e-16 * largest:
        return []
    power = 10.0 ** math.floor(math.log10(between))
    for part in (1, 2, 5, 10, 20):
        step = max(part * power, least)
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < most:
            break
    return [k * step for k in range(first, last + 1)] if last > first else []


def _numbers(values: Sequence[float], log: bool) -> list[str]:
    sizes = [abs(value) for value in values if value]
    least, most = PLAIN_POWERS if log else PLAIN
    if least <= (min if log else max)(sizes) and max(sizes) <= most:
        return [_plain(value) for value in values]
    powers = [math.floor(math.log10(size) + 1e-9) for size in sizes]
    if log:
        return list(map(_power, values, powers))
    return [_power(value, max(powers)) for value in values]


def _plain(value: float) -> str:
    return f"{value:,.12g}" if value else "0"


def _power(value: float, power: int) -> str:
    """``10³``, ``2×10³``, or ``0``."""
    ten = "10" + str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    # A power below the smallest normal float is no float: divide twice.
    part = float(f"{value / 10.0 ** (power // 2) / 10.0 ** (power - power // 2):.12g}")
    return "0" if not part else ten if part == 1 else f"{part:g}×{ten}"


def _bytes(values: Sequence[float], log: bool) -> list[str]:
    """Bytes with a unit: one for all of a linear axis, the fitting one on a logarithmic axis."""
    largest = max(map(abs, values))
    if largest >= 10**15:
        return [f"{label} B" for label in _numbers(values, log)]
    labels = []
    for value in values:
        size, unit = next(pair for pair in UNITS if (value if log else largest) >= pair[0] or
                          pair[0] == 1)  # fmt: skip
        labels.append(f"{value / size:.12g} {unit}" if value else "0")
    return labels

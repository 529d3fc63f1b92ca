"""Kubernetes quantities in CEL: numbers with the scale that they were written with, as the API server keeps them."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from jobgen.check.cel.values import NO_OVERLOAD, OFFLINE, tagged, untagged
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.quantity import canonical_quantity

TAG = "quantity"
_LARGEST = 2**63 - 1
_SPELT = lazy_pattern(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?")
_BINARY = {f"{letter}i": 10 * power for power, letter in enumerate("KMGTPE", 1)}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
# Powers beyond this are nobody's amount, and cost more than they say.
_MOST_POWER = 1000


class Amount(NamedTuple):
    """A quantity: its value, and the power of ten of its last digit if 64 bits hold it."""

    value: Fraction
    scale: int | None

    @property
    def integer(self) -> int | None:
        """The whole number, where Kubernetes sees one: `1000m` is not written as one."""
        whole = self.scale is not None and self.scale >= 0 and -_LARGEST - 1 <= self.value <= _LARGEST
        return int(self.value) if whole else None


def quantity(text: object) -> bytes:
    """`quantity(string)`."""
    if type(text) is not str:
        raise TypeError(NO_OVERLOAD)
    return _spelt(text)


def is_quantity(text: object) -> bool:
    """`isQuantity(string)`."""
    if type(text) is not str:
        raise TypeError(NO_OVERLOAD)
    return _is_quantity(text)


def sign(amount: object) -> int:
    """`sign(quantity)`."""
    value = _amount(amount).value
    return (value > 0) - (value < 0)


def is_integer(amount: object) -> bool:
    """`quantity.isInteger()`."""
    return _amount(amount).integer is not None


def as_integer(amount: object) -> int:
    """`quantity.asInteger()`."""
    whole = _amount(amount).integer
    if whole is None:
        raise ValueError("cannot convert value to integer")
    return whole


def as_float(amount: object) -> float:
    """`quantity.asApproximateFloat()`."""
    return float(_amount(amount).value)


def add(amount: object, other: object) -> bytes:
    """`quantity.add(quantity|int)`."""
    return _sum(_amount(amount), _amount(other))


def sub(amount: object, other: object) -> bytes:
    """`quantity.sub(quantity|int)`."""
    less = _amount(other)
    return _sum(_amount(amount), Amount(-less.value, less.scale))


def compare(amount: object, other: object) -> int:
    """`quantity.compareTo(quantity)`."""
    if type(other) is int:
        raise TypeError(NO_OVERLOAD)
    ours, theirs = _amount(amount).value, _amount(other).value
    # Whole numbers are much faster to compare than fractions.
    difference = ours.numerator * theirs.denominator - theirs.numerator * ours.denominator
    return (difference > 0) - (difference < 0)


def _amount(value: object) -> Amount:
    if type(value) is int:
        return Amount(Fraction(value), 0)
    return _read(bytes(value) if isinstance(value, (bytes, bytearray)) else b"")


def _sum(ours: Amount, theirs: Amount) -> bytes:
    value = ours.value + theirs.value
    if not theirs.value or not ours.value:
        return _tagged(Amount(value, theirs.scale if theirs.value else ours.scale))
    if ours.scale is None or theirs.scale is None:
        return _tagged(Amount(value, None))
    scale = min(ours.scale, theirs.scale)
    return _tagged(Amount(value, scale if abs(value) <= _LARGEST * _ten(scale) else None))


@lru_cache(maxsize=4096)
def _is_quantity(text: str) -> bool:
    return canonical_quantity(text) is not None


@lru_cache(maxsize=4096)
def _spelt(text: str) -> bytes:
    return _tagged(_parsed(text))


def _parsed(text: str) -> Amount:
    shown = canonical_quantity(text)
    if shown is None:
        raise ValueError(f"`{text}` is not a quantity")
    written = _SPELT.fullmatch(text)
    assert written, "what is canonical has been matched"
    return Amount(_value(shown), _scale(*written.groups("")))


def _value(shown: str) -> Fraction:
    match = _SPELT.fullmatch(shown)
    assert match, "Kubernetes' own spelling"
    minus, whole, part, suffix = match.groups("")
    digits = Fraction(int(whole + part or "0"), 10 ** len(part))
    value = digits * (2 ** _BINARY[suffix] if suffix in _BINARY else _ten(_power(suffix)))
    return -value if minus == "-" else value


def _ten(power: int) -> Fraction:
    return Fraction(10**power) if power >= 0 else Fraction(1, 10**-power)


def _power(suffix: str) -> int:
    power = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
    if abs(power) > _MOST_POWER:
        raise ValueError(f"a quantity with the power `{power}` {OFFLINE}")
    return power


def _scale(sign: str, whole: str, part: str, suffix: str) -> int | None:
    """The scale that Go's fast path gives a number, or None if it takes the slow one, which knows no integers."""
    whole = whole.lstrip("0")
    if suffix in _BINARY:
        digits = 15 - len(whole) - _BINARY[suffix] * 3 // 10 - 1
        return 0 if digits >= 0 and not part else None
    scale = _power(suffix) - len(part)
    return scale if len(whole) + len(part) <= 18 and scale >= -9 else None


def _tagged(amount: Amount) -> bytes:
    scale = "" if amount.scale is None else amount.scale
    return tagged(TAG, f"{amount.value.numerator}/{amount.value.denominator}/{scale}")


@lru_cache(maxsize=4096)
def _read(value: bytes) -> Amount:
    over, under, scale = untagged(value, TAG).split("/")
    return Amount(Fraction(int(over), int(under)), int(scale) if scale else None)

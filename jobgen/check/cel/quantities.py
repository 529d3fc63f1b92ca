"""Kubernetes quantities in CEL: numbers with the scale that they were written with, as the API server keeps them."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from jobgen.check.cel.values import NO_OVERLOAD, OFFLINE, strings, tagged, untagged
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.quantity import MAX_POWER, parse_quantity

TAG = "quantity"
_LARGEST = 2**63 - 1


class Amount(NamedTuple):
    """A quantity: its value, and the power of ten of its last digit if 64 bits hold it."""

    value: Fraction
    scale: int | None

    @property
    def integer(self) -> int | None:
        """The integer, if Kubernetes reads one: `1000m` is not read as one."""
        whole = self.scale is not None and self.scale >= 0 and -_LARGEST - 1 <= self.value <= _LARGEST
        return int(self.value) if whole else None


def quantity(text: object) -> bytes:
    """`quantity(string)`."""
    if type(text) is not str:
        raise TypeError(NO_OVERLOAD)
    return _canonical_form(text)


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
    # Integers compare much faster than fractions.
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
    return parse_quantity(text) is not None


@lru_cache(maxsize=4096)
def _canonical_form(text: str) -> bytes:
    return _tagged(_parsed(text))


def _parsed(text: str) -> Amount:
    parsed = parse_quantity(text)
    if parsed is None:
        raise ValueError(f"`{text}` is not a quantity")
    if parsed.power > MAX_POWER:
        raise ValueError(f"a quantity with the power `{parsed.power}` {OFFLINE}")
    return Amount(parsed.amount * _ten(parsed.power), parsed.scale)


def _ten(power: int) -> Fraction:
    return Fraction(10**power) if power >= 0 else Fraction(1, 10**-power)


def _tagged(amount: Amount) -> bytes:
    scale = "" if amount.scale is None else amount.scale
    return tagged(TAG, f"{amount.value.numerator}/{amount.value.denominator}/{scale}")


@lru_cache(maxsize=4096)
def _read(value: bytes) -> Amount:
    over, under, scale = untagged(value, TAG).split("/")
    return Amount(Fraction(int(over), int(under)), int(scale) if scale else None)


VERSION_TAG = "semver"
_NUMBER = r"0|[1-9][0-9]*"
_LABEL = rf"(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_VERSION = lazy_pattern(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-({_LABEL}(?:\.{_LABEL})*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
_LARGEST_PART = 2**64 - 1


def semver(text: object, normalize: object = False) -> bytes:  # noqa: FBT002
    """`semver(string)`, and `semver(string, bool)`, which reads `v1.2` as `1.2.0`."""
    return tagged(VERSION_TAG, _parse_version(_text(text, normalize)))


def is_semver(text: object, normalize: object = False) -> bool:  # noqa: FBT002
    """`isSemver(string)` and `isSemver(string, bool)`."""
    try:
        semver(text, normalize)
    except ValueError:
        return False
    return True


def compare_versions(version: object, other: object) -> int:
    """`semver.compareTo(semver)`."""
    ours, theirs = _order(untagged(version, VERSION_TAG)), _order(untagged(other, VERSION_TAG))
    return (ours > theirs) - (ours < theirs)


def major(version: object) -> int:
    """`semver.major()`."""
    return int(_order(untagged(version, VERSION_TAG))[0])


def minor(version: object) -> int:
    """`semver.minor()`."""
    return int(_order(untagged(version, VERSION_TAG))[1])


def patch(version: object) -> int:
    """`semver.patch()`."""
    return int(_order(untagged(version, VERSION_TAG))[2])


def _text(text: object, normalize: object) -> str:
    if type(normalize) is not bool:
        raise TypeError(NO_OVERLOAD)
    (found,) = strings(text)
    return _normal(found) if normalize else found


def _normal(text: str) -> str:
    parts = [_unpadded(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3 and set("+-") & set(parts[-1]):
        raise ValueError("short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, *["0"] * (3 - len(parts))])


def _unpadded(part: str) -> str:
    if len(part) < 2:
        return part
    rest = part.lstrip("0")
    return rest if rest[:1] in tuple("0123456789") else f"0{rest}"


def _parse_version(text: str) -> str:
    """The version without its build metadata, which comparisons ignore."""
    match = _VERSION.fullmatch(text)
    if match is None or any(int(part) > _LARGEST_PART for part in match.groups()[:3] if len(part) < 30):
        raise ValueError(f"`{text}` is not a semantic version")
    return text.partition("+")[0]


@lru_cache(maxsize=1024)
def _order(text: str) -> tuple[Any, ...]:
    """The sort key of a version: a release follows its prereleases, numbers precede words."""
    numbers, _, before = text.partition("-")
    labels = tuple((0, int(label), "") if label.isdigit() else (1, 0, label) for label in before.split("."))
    return (*(int(part) for part in numbers.split(".")), (0, labels) if before else (1, ()))

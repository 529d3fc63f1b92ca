"""Kubernetes quantities in CEL: numbers with the scale that they were written with, as the API server keeps them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from jobgen.check.cel.values import NO_OVERLOAD, OFFLINE, strings, tag_of, tagged, untagged
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.quantity import MAX_POWER, parse_quantity

if TYPE_CHECKING:
    from fractions import Fraction

_TAG = "quantity"
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


def _as_integer(amount: object) -> int:
    whole = _amount(amount).integer
    if whole is None:
        raise ValueError("cannot convert value to integer")
    return whole


def _subtract(amount: object, other: object) -> bytes:
    less = _amount(other)
    return _sum(_amount(amount), Amount(-less.value, less.scale))


def _compare(amount: object, other: object) -> int:
    if tag_of(amount) == _VERSION_TAG:
        return _compare_numbers(_order(amount), _order(other))
    if type(other) is int:
        raise TypeError(NO_OVERLOAD)
    ours, theirs = _amount(amount).value, _amount(other).value
    # Integers compare much faster than fractions.
    return _compare_numbers(ours.numerator * theirs.denominator, theirs.numerator * ours.denominator)


def _compare_numbers(ours: Any, theirs: Any) -> int:
    return bool(ours > theirs) - bool(ours < theirs)


def _amount(value: object) -> Amount:
    if type(value) is int:
        return Amount(_divide(value), 0)
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
def _quantity(text: str) -> bytes:
    parsed = parse_quantity(text)
    if parsed is None:
        raise ValueError(f"`{text}` is not a quantity")
    if parsed.power > MAX_POWER:
        raise ValueError(f"a quantity with the power `{parsed.power}` {OFFLINE}")
    return _tagged(Amount(parsed.amount * _ten(parsed.power), parsed.scale))


def _ten(power: int) -> Fraction:
    return _divide(10**power) if power >= 0 else _divide(1, 10**-power)


def _divide(over: int, under: int = 1) -> Fraction:
    # Imported late: most expressions compare no quantities.
    from fractions import Fraction

    return Fraction(over, under)


def _tagged(amount: Amount) -> bytes:
    scale = "" if amount.scale is None else amount.scale
    return tagged(_TAG, f"{amount.value.numerator}/{amount.value.denominator}/{scale}")


@lru_cache(maxsize=4096)
def _read(value: bytes) -> Amount:
    over, under, scale = untagged(value, _TAG).split("/")
    return Amount(_divide(int(over), int(under)), int(scale) if scale else None)


_VERSION_TAG = "semver"
_NUMBER = r"0|[1-9][0-9]*"
_LABEL = rf"(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_VERSION = lazy_pattern(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-({_LABEL}(?:\.{_LABEL})*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)


def _semver(text: object, normalize: object = False) -> bytes:  # noqa: FBT002
    """`semver(string)`, and `semver(string, bool)`, which reads `v1.2` as `1.2.0`."""
    if type(normalize) is not bool:
        raise TypeError(NO_OVERLOAD)
    (found,) = strings(text)
    if normalize:
        parts = [_unpadded(part) for part in found.removeprefix("v").split(".", 2)]
        if len(parts) < 3 and set("+-") & set(parts[-1]):
            raise ValueError("short version cannot contain PreRelease/Build meta data")
        found = ".".join([*parts, *["0"] * (3 - len(parts))])
    match = _VERSION.fullmatch(found)
    if match is None or any(int(part) > (2**64 - 1) for part in match.groups()[:3] if len(part) < 30):
        raise ValueError(f"`{found}` is not a semantic version")
    # Comparisons ignore build metadata.
    return tagged(_VERSION_TAG, found.partition("+")[0])


def _unpadded(part: str) -> str:
    if len(part) < 2:
        return part
    rest = part.lstrip("0")
    return rest if rest[:1] in tuple("0123456789") else f"0{rest}"


def _is_semver(text: object, normalize: object = False) -> bool:  # noqa: FBT002
    try:
        _semver(text, normalize)
    except ValueError:
        return False
    return True


def _order(version: object) -> tuple[Any, ...]:
    return _order_text(untagged(version, _VERSION_TAG))


@lru_cache(maxsize=1024)
def _order_text(text: str) -> tuple[Any, ...]:
    """The sort key of a version: a release follows its prereleases, numbers precede words."""
    numbers, _, before = text.partition("-")
    labels = tuple((0, int(label), "") if label.isdigit() else (1, 0, label) for label in before.split("."))
    return (*(int(part) for part in numbers.split(".")), (0, labels) if before else (1, ()))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "quantity": lambda text: _quantity(*strings(text)),
    "isQuantity": lambda text: parse_quantity(*strings(text)) is not None,
    "sign": lambda amount: _compare_numbers(_amount(amount).value, 0),
    "isInteger": lambda amount: _amount(amount).integer is not None,
    "asInteger": _as_integer,
    "asApproximateFloat": lambda amount: float(_amount(amount).value),
    "add": lambda amount, other: _sum(_amount(amount), _amount(other)),
    "sub": _subtract,
    "compareTo": _compare,
    "isLessThan": lambda one, other: _compare(one, other) < 0,
    "isGreaterThan": lambda one, other: _compare(one, other) > 0,
    "semver": _semver,
    "isSemver": _is_semver,
    "major": lambda version: _order(version)[0],
    "minor": lambda version: _order(version)[1],
    "patch": lambda version: _order(version)[2],
}

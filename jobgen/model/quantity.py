"""Kubernetes quantities: `1000m` is `1`, `1024Mi` is `1Gi`, spelt as Kubernetes itself prints them."""

from __future__ import annotations

from jobgen.model.lazy_re import lazy_pattern

# A thousand digits are more than anybody means.
_QUANTITY = lazy_pattern(
    r"([+-]?)([0-9]{0,1000})(?:\.([0-9]{0,1000}))?(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?[0-9]+)?\Z"
)
_BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
_DECIMAL = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_POWERS = {suffix: power for power, suffix in _DECIMAL.items()}
_LARGEST = 2**63 - 1
_NANO = -9


def canonical_quantity(text: str) -> str | None:
    """The quantity as Kubernetes prints it, or None if it is not a quantity."""
    match = _QUANTITY.match(text)
    if match is None:
        return None
    sign, whole, fraction, suffix = match.groups("")
    if not whole and not fraction:
        return None
    power = _power(suffix)
    if power is None:
        return None
    binary = suffix.endswith("i")
    amount = int(whole + fraction) * (1024 ** _BINARY.index(suffix) if binary else 1)
    amount, power = _at_least_nanos(amount, power - len(fraction))
    if not amount:
        return "0"
    shown = _binary(amount, power) if binary else _decimal(amount, power, exponent=suffix[-1:].isdigit())
    return f"-{shown}" if sign == "-" else shown


def _power(suffix: str) -> int | None:
    """The power of ten that a suffix stands for; Go keeps 32 bits of an exponent, and refuses more than 64."""
    if not suffix[-1:].isdigit():
        return _POWERS.get(suffix, 0)
    power = int(suffix[1:]) if len(suffix) < 24 else 2**63
    return (power + 2**31) % 2**32 - 2**31 if -(2**63) <= power < 2**63 else None


def _at_least_nanos(amount: int, power: int) -> tuple[int, int]:
    """The amount rounded up to a whole number of nanos, the smallest that Kubernetes keeps."""
    if power >= _NANO:
        return amount, power
    digits = _NANO - power
    # Beyond its own length there is nothing left of a number but the rounding.
    step = 10 ** min(digits, len(str(amount)) + 1)
    return -(-amount // step), _NANO


def _binary(amount: int, power: int) -> str:
    """Powers of 1024 for whole numbers; Kubernetes caps what 64 bits cannot hold."""
    whole, rest = (amount, 0) if power == 0 else divmod(amount, 10**-power)
    if whole > _LARGEST or (whole == _LARGEST and rest):
        whole, rest = _LARGEST, 0
    if whole < 1024 or rest:
        return _decimal(amount, power, exponent=False)
    step = 0
    while whole % 1024 == 0 and step < len(_BINARY) - 1:
        whole, step = whole // 1024, step + 1
    return f"{whole}{_BINARY[step]}"


def _decimal(amount: int, power: int, *, exponent: bool) -> str:
    """Powers of a thousand. Kubernetes drops the suffix of what is larger than `E` can say; we do not."""
    while amount % 10 == 0:
        amount, power = amount // 10, power + 1
    least = power - power % 3 if exponent else min(power - power % 3, 18)
    number = f"{amount}{'0' * (power - least)}"
    if exponent:
        return f"{number}e{least}" if least else number
    return f"{number}{_DECIMAL[least]}"

"""Kubernetes quantities: `1000m` is `1`, `1024Mi` is `1Gi`, spelt as Kubernetes itself prints them."""

from __future__ import annotations

import re
from fractions import Fraction

_QUANTITY = re.compile(r"([+-]?)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?[0-9]+)?\Z")
_BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
_DECIMAL = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_POWERS = {suffix: Fraction(10) ** power for power, suffix in _DECIMAL.items()} | {
    suffix: Fraction(1024) ** power for power, suffix in enumerate(_BINARY) if suffix
}
_LARGEST = Fraction(2**63 - 1)
_SMALLEST = Fraction(1, 10**9)


def canonical(text: str) -> str | None:
    """The quantity as Kubernetes prints it, or None if it is not a quantity."""
    match = _QUANTITY.match(text)
    if match is None:
        return None
    sign, digits, suffix = match[1], match[2], match[3] or ""
    exponent = suffix[-1:].isdigit()
    if exponent and abs(int(suffix[1:])) > 100:
        return None
    scale = Fraction(10) ** int(suffix[1:]) if exponent else _POWERS[suffix]
    amount = _in_nanos(Fraction(digits.rstrip(".") or "0") * scale)
    shown = _binary(min(amount, _LARGEST)) if suffix.endswith("i") else _decimal(amount, exponent=exponent)
    return f"-{shown}" if sign == "-" and amount else shown


def _in_nanos(amount: Fraction) -> Fraction:
    """The amount rounded up to a whole number of nanos, the smallest that Kubernetes keeps."""
    steps = amount / _SMALLEST
    return -(-steps.numerator // steps.denominator) * _SMALLEST


def _binary(amount: Fraction) -> str:
    if amount < 1024 or amount.denominator != 1:
        return _decimal(amount, exponent=False)
    number, power = amount.numerator, 0
    while number % 1024 == 0 and power < len(_BINARY) - 1:
        number, power = number // 1024, power + 1
    return f"{number}{_BINARY[power]}"


def _decimal(amount: Fraction, *, exponent: bool) -> str:
    number, power = (amount / _SMALLEST).numerator, -9
    if number == 0:
        return "0"
    while number % 1000 == 0 and (exponent or power < 18):
        number, power = number // 1000, power + 3
    if exponent:
        return f"{number}e{power}" if power else str(number)
    return f"{number}{_DECIMAL[power]}"

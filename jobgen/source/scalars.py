"""What a plain YAML scalar means to Kubernetes: Go's reading of YAML 1.1, and the JSON that follows it."""

from __future__ import annotations

import re
import struct
from decimal import Decimal
from typing import Any

_WORDS: dict[str, Any] = {
    **dict.fromkeys(["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"], True),
    **dict.fromkeys(["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"], False),
    **dict.fromkeys(["", "~", "null", "Null", "NULL"], None),
    **dict.fromkeys([".nan", ".NaN", ".NAN"], float("nan")),
    **dict.fromkeys([".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"], float("inf")),
    **dict.fromkeys(["-.inf", "-.Inf", "-.INF"], float("-inf")),
}
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_DOT_FLOAT = re.compile(r"\.[0-9]+(?:[eE][-+]?[0-9]+)?\Z")
_NUMBER_STARTS = frozenset("0123456789+-.")
_INT64 = range(-(2**63), 2**63)
_UINT64_END = 2**64


class Wide(float):
    """An integer above int64: JSON carries it, Kubernetes reads it as a float, and no key can be one."""


def resolve(text: str) -> Any:
    """The value that Go's decoder gives a plain, untagged scalar, before JSON."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_STARTS:
        return text
    if text[0] == ".":
        return _float(text, text) if _DOT_FLOAT.match(text) else text
    digits = text.replace("_", "")
    match = _INTEGER.match(digits)
    if match:
        number = _integer(match)
        if number in _INT64:
            return number
        if number < _UINT64_END and not match[1]:
            return Wide(number)
    return _float(digits, text) if _FLOAT.match(digits) else text


def _integer(match: re.Match[str]) -> int:
    sign, hexadecimal, binary, octal, decimal = match.groups()
    for digits, base in ((hexadecimal, 16), (binary, 2), (octal, 8), (decimal, 10)):
        if digits:
            return int(sign + digits, base)
    raise AssertionError("the pattern has a group for every base")


def _float(digits: str, text: str) -> Any:
    number = float(digits)
    return text if number in (float("inf"), float("-inf")) else number


def through_json(value: Any) -> Any:
    """What is left of a number after Go has written it as JSON and Kubernetes has read it again."""
    if isinstance(value, float):
        # A whole float is written without a point, and so comes back as an integer if it fits.
        if value.is_integer() and abs(value) < 1e21 and not isinstance(value, Wide):
            whole = int(Decimal(repr(value)))
            return whole if whole in _INT64 else float(whole)
        return float(value)
    return value


def as_json_key(value: Any) -> str | None:
    """The text of a key as sigs.k8s.io/yaml writes it, or None where it refuses the key."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, Wide):
        return None
    return str(value) if isinstance(value, int) else _float_key(value)


def _float_key(value: float) -> str:
    if value != value:
        return ".nan"
    if value in (float("inf"), float("-inf")):
        return ".inf" if value > 0 else "-.inf"
    if abs(value) > 3.4028235677973366e38:
        # Go formats keys with 32 bits of precision, where these are infinite.
        return "+Inf" if value > 0 else "-Inf"
    return _shortest32(value)


def _shortest32(value: float) -> str:
    """Go's FormatFloat(value, 'g', -1, 32): the shortest digits that give the same 32-bit float."""
    single = struct.unpack("f", struct.pack("f", value))[0]
    digits = next(
        text
        for text in (f"{single:.{precision}e}" for precision in range(9))
        if struct.unpack("f", struct.pack("f", float(text)))[0] == single
    )
    mantissa, exponent = digits.split("e")
    power = int(exponent)
    if power < -4 or power >= 6:
        return f"{mantissa}e{power:+03d}"
    return format(Decimal(digits), "f")

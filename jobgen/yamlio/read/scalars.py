"""The values of YAML scalars in Kubernetes: YAML 1.1 as Go reads it, then converted to JSON."""

from __future__ import annotations

import re
import struct
from math import frexp
from typing import Any

from jobgen.model.lazy_re import lazy_pattern

_KEYWORDS: dict[str, Any] = {
    **dict.fromkeys(["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"], True),
    **dict.fromkeys(["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"], False),
    **dict.fromkeys(["", "~", "null", "Null", "NULL"], None),
    **dict.fromkeys([".nan", ".NaN", ".NAN"], float("nan")),
    **dict.fromkeys([".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"], float("inf")),
    **dict.fromkeys(["-.inf", "-.Inf", "-.INF"], float("-inf")),
}
_INTEGER = lazy_pattern(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))\Z")
_FLOAT = lazy_pattern(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
# After `0b`, Go accepts a sign.
_LATE_SIGN = lazy_pattern(r"0b([-+][01]+)\Z")
_DOT_FLOAT = lazy_pattern(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?\Z")
_TIMESTAMP = lazy_pattern(
    r"""([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})(?:
    [Tt]([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,][0-9]+)?(?:Z|[-+]([0-9]{2}):([0-9]{2}))
    |\ +([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,][0-9]+)?)?\Z""",
    re.VERBOSE,
)
_BASE64 = lazy_pattern(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\Z")
_NOT_UTF8 = lazy_pattern("[\udc80-\udcff]")
_NUMBER_STARTS = frozenset("0123456789+-.")
_INT64 = range(-(2**63), 2**63)
_UINT64_END = 2**64


class _BigInteger(float):
    """An integer above int64, which Kubernetes reads from JSON as a float and does not accept as a key."""


_TAGS: dict[type, str] = {type(None): "null", bool: "bool", int: "int", float: "float", _BigInteger: "int", str: "str"}


def resolve(text: str) -> Any:
    """Resolve a plain scalar without a tag to the value that Go's decoder gives it, before JSON."""
    if text in _KEYWORDS:
        return _KEYWORDS[text]
    if text[0] not in _NUMBER_STARTS:
        return text
    if text[0] == ".":
        return _parse_float(text, text) if _DOT_FLOAT.match(text) else text
    digits = text.replace("_", "")
    match = _INTEGER.match(digits)
    if match:
        number = _parse_integer(match)
        if number in _INT64:
            return number
        if number < _UINT64_END and not match[1]:
            return _BigInteger(number)
    if _FLOAT.match(digits):
        return _parse_float(digits, text)
    late = _LATE_SIGN.match(digits)
    return int(late[1], 2) if late and int(late[1], 2) in _INT64 else text


def resolve_as(text: str, tag: str) -> tuple[Any, str]:
    """Resolve a scalar with a tag; return its value and the tag that matches its text."""
    if tag == "timestamp" and _is_timestamp(text):
        return text, tag
    value = resolve(text)
    found = _TAGS[type(value)]
    if tag == "float" and type(value) is int:
        return float(value), tag
    return value, found


def _parse_integer(match: re.Match[str]) -> int:
    sign, hexadecimal, binary, octal, decimal = match.groups()
    for digits, base in ((hexadecimal, 16), (binary, 2), (octal, 8), (decimal, 10)):
        if digits:
            # Python limits the digits that it converts; 65 digits exceed 64 bits in any base.
            return int(sign + (digits.lstrip("0")[:65] or "0"), base)
    raise AssertionError("the pattern has a group for every base")


def _parse_float(digits: str, text: str) -> Any:
    number = float(digits)
    return text if number in (float("inf"), float("-inf")) else number


def normalize_number(value: Any) -> Any:
    """The number after Go has written it as JSON and Kubernetes has read it again."""
    if isinstance(value, float):
        # Go writes a whole float without a point, so it is read as an integer if it fits.
        if value.is_integer() and abs(value) < 1e21 and not isinstance(value, _BigInteger):
            from decimal import Decimal

            whole = int(Decimal(repr(value)))
            return whole if whole in _INT64 else float(whole)
        return float(value)
    return value


def _is_timestamp(text: str) -> bool:
    """Return True if Go reads the text as a time. The value stays a string."""
    match = _TIMESTAMP.match(text)
    if match is None:
        return False
    # Imported late: dates are rare in manifests.
    from jobgen.model.times import count_days

    year, month, day, *clock = (int(part or 0) for part in match.groups())
    hours, minutes, seconds, zone_hours, zone_minutes, *other = clock
    if not 1 <= month <= 12 or not 1 <= day <= count_days(year, month):
        return False
    # Go accepts an offset of 24 hours or 60 minutes.
    in_range = hours < 24 and minutes < 60 and seconds < 60 and zone_hours <= 24 and zone_minutes <= 60
    return in_range and other[0] < 24 and max(other[1:]) < 60


def decode_base64(text: str) -> str | None:
    """Decode `!!binary`, replacing bytes that are not UTF-8; None if the text is not base64."""
    digits = text.replace("\r", "").replace("\n", "")
    if not _BASE64.match(digits):
        return None
    import base64

    return _NOT_UTF8.sub("\ufffd", base64.b64decode(digits).decode("utf-8", "surrogateescape"))


def to_json_key(value: Any) -> str | None:
    """The key as sigs.k8s.io/yaml writes it; None if it rejects the key."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, _BigInteger):
        return None
    return str(value) if isinstance(value, int) else _format_float32(value)


def _format_float32(value: float) -> str:
    """Format as Go's FormatFloat(value, 'g', -1, 32): the shortest digits that give the same 32-bit float."""
    if value != value:
        return ".nan"
    # Go formats keys with 32 bits of precision, where these are infinite.
    if abs(value) >= 3.4028235677973366e38:
        return ".inf" if value > 0 else "-.inf"
    from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

    single = _round_to_float32(value)
    exact = Decimal(single)
    # Ties go to the even digit; but where the spacing of floats changes, Go rounds up.
    rounding = ROUND_HALF_UP if abs(frexp(single)[0]) == 0.5 else ROUND_HALF_EVEN
    for places in range(9):
        step = Decimal(1).scaleb(exact.adjusted() - places)
        nearest = exact.quantize(step, rounding)
        same = [near for near in (nearest, nearest + step, nearest - step) if _round_to_float32(float(near)) == single]
        if same:
            number = min(same, key=lambda near: abs(near - exact))
            power = number.adjusted()
            # Go's general notation has an exponent below -4 or above 5.
            if number and not -4 <= power < 6:
                return f"{number.scaleb(-power).normalize():f}e{power:+03d}"
            return f"{number.normalize():f}"
    raise AssertionError("nine digits distinguish all 32-bit floats")


def _round_to_float32(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


def to_text(value: Any) -> str:
    """The text that messages show for a scalar."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def quote(text: str, longest: int = 40) -> str:
    """Quote a text of the user for a message: on one line, shortened if it is long."""
    if not text:
        return '`""`'
    line = "".join(
        char if char.isprintable() else f"\\u{ord(char):04x}" for char in text[: longest + 1].replace("\n", " ")
    )
    return f"`{line[:longest]}…`" if len(line) > longest else f"`{line}`"

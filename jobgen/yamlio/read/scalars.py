"""What a plain YAML scalar means to Kubernetes: Go's reading of YAML 1.1, and the JSON that follows it."""

from __future__ import annotations

import re
import struct
from math import frexp
from typing import TYPE_CHECKING, Any

from jobgen.model.lazy_re import lazy_pattern

if TYPE_CHECKING:
    from decimal import Decimal

_WORDS: dict[str, Any] = {
    **dict.fromkeys(["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"], True),
    **dict.fromkeys(["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"], False),
    **dict.fromkeys(["", "~", "null", "Null", "NULL"], None),
    **dict.fromkeys([".nan", ".NaN", ".NAN"], float("nan")),
    **dict.fromkeys([".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"], float("inf")),
    **dict.fromkeys(["-.inf", "-.Inf", "-.INF"], float("-inf")),
}
_INTEGER = lazy_pattern(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))\Z")
_FLOAT = lazy_pattern(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
# Go looks behind `0b` once more, and there it takes a sign.
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


class Wide(float):
    """An integer above int64: JSON carries it, Kubernetes reads it as a float, and no key can be one."""


_TAGS: dict[type, str] = {type(None): "null", bool: "bool", int: "int", float: "float", Wide: "int", str: "str"}


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
    if _FLOAT.match(digits):
        return _float(digits, text)
    late = _LATE_SIGN.match(digits)
    return int(late[1], 2) if late and int(late[1], 2) in _INT64 else text


def resolve_as(text: str, tag: str) -> tuple[Any, str]:
    """The value of a scalar that has a tag, and the tag that its text deserves."""
    if tag == "timestamp" and _is_timestamp(text):
        return text, tag
    value = resolve(text)
    found = _TAGS[type(value)]
    if tag == "float" and type(value) is int:
        return float(value), tag
    return value, found


def _integer(match: re.Match[str]) -> int:
    sign, hexadecimal, binary, octal, decimal = match.groups()
    for digits, base in ((hexadecimal, 16), (binary, 2), (octal, 8), (decimal, 10)):
        if digits:
            # Python converts only so many digits; 65 are too many for 64 bits in any base.
            return int(sign + (digits.lstrip("0")[:65] or "0"), base)
    raise AssertionError("the pattern has a group for every base")


def _float(digits: str, text: str) -> Any:
    number = float(digits)
    return text if number in (float("inf"), float("-inf")) else number


def through_json(value: Any) -> Any:
    """What is left of a number after Go has written it as JSON and Kubernetes has read it again."""
    if isinstance(value, float):
        # A whole float is written without a point, and so comes back as an integer if it fits.
        if value.is_integer() and abs(value) < 1e21 and not isinstance(value, Wide):
            from decimal import Decimal

            whole = int(Decimal(repr(value)))
            return whole if whole in _INT64 else float(whole)
        return float(value)
    return value


def _is_timestamp(text: str) -> bool:
    """Whether Go reads the text as a time; it stays text all the same."""
    match = _TIMESTAMP.match(text)
    if match is None:
        return False
    # Dates and floats are rare in manifests, and what they need takes long to import.
    from calendar import monthrange

    year, month, day, *clock = (int(part or 0) for part in match.groups())
    hours, minutes, seconds, zone_hours, zone_minutes, *other = clock
    if not 1 <= month <= 12 or not 1 <= day <= monthrange(year, month)[1]:
        return False
    # Go takes an offset of 24 hours or 60 minutes, because some people write it.
    in_range = hours < 24 and minutes < 60 and seconds < 60 and zone_hours <= 24 and zone_minutes <= 60
    return in_range and other[0] < 24 and max(other[1:]) < 60


def from_base64(text: str) -> str | None:
    """The text that a `!!binary` carries, every byte that is not UTF-8 replaced; None if it is not base64."""
    digits = text.replace("\r", "").replace("\n", "")
    if not _BASE64.match(digits):
        return None
    import base64

    return _NOT_UTF8.sub("\ufffd", base64.b64decode(digits).decode("utf-8", "surrogateescape"))


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
    # Go formats keys with 32 bits of precision, where these are infinite.
    if abs(value) >= 3.4028235677973366e38:
        return ".inf" if value > 0 else "-.inf"
    return _shortest32(value)


def _shortest32(value: float) -> str:
    """Go's FormatFloat(value, 'g', -1, 32): the shortest digits that give the same 32-bit float."""
    from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

    single = _as32(value)
    exact = Decimal(single)
    # Half of a last digit goes to the even one; but where floats change their spacing, Go rounds it up.
    rounding = ROUND_HALF_UP if abs(frexp(single)[0]) == 0.5 else ROUND_HALF_EVEN
    for places in range(9):
        step = Decimal(1).scaleb(exact.adjusted() - places)
        nearest = exact.quantize(step, rounding)
        same = [near for near in (nearest, nearest + step, nearest - step) if _as32(float(near)) == single]
        if same:
            return _general(min(same, key=lambda near: abs(near - exact)))
    raise AssertionError("nine digits tell all 32-bit floats apart")


def _as32(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


def _general(number: Decimal) -> str:
    """The digits in Go's general notation: with an exponent where it is below -4 or above 5."""
    power = number.adjusted()
    if number and not -4 <= power < 6:
        mantissa = number.scaleb(-power).normalize()
        return f"{mantissa:f}e{power:+03d}"
    return f"{number.normalize():f}"


def quote(text: str) -> str:
    """A text of the user's as a message quotes it: on one line, and not all of it."""
    if not text:
        return '`""`'
    line = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text[:41].replace("\n", " "))
    return f"`{line[:40]}…`" if len(line) > 40 else f"`{line}`"

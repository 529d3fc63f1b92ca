"""The texts that Go decodes to values: times, durations, quantities and bytes in objects of Kubernetes' own kinds."""

from __future__ import annotations

from collections.abc import Callable

from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.quantity import SPACES, parse_quantity
from jobgen.model.times import is_time

_BASE64 = lazy_pattern(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_DURATION = lazy_pattern(r"[-+]?(?:0|(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)")
_SIX_DECIMALS = lazy_pattern(r"[.,][0-9]{6}(?![0-9])")


class Form(NamedTuple):
    """A form of text: its check, what it must be in words, and the rule that reports another text."""

    is_valid: Callable[[str], bool]
    expected: str
    rule: str = "invalid-value"


def is_base64(text: str) -> bool:
    """Whether a text is base64 with padding; line breaks are ignored."""
    return _BASE64.fullmatch(text.replace("\n", "").replace("\r", "")) is not None


def is_duration(text: str) -> bool:
    """Whether a text is a duration of Go, such as `1h30m`."""
    return _DURATION.fullmatch(text) is not None


def _is_micro_time(text: str) -> bool:
    return is_time(text) and _SIX_DECIMALS.search(text) is not None


def _is_quantity(text: str) -> bool:
    return parse_quantity(text.strip(SPACES)) is not None


FORMS = {
    "base64": Form(is_base64, "be base64, such as `aGVsbG8=`"),
    "duration": Form(is_duration, "be a duration, such as `1h30m`"),
    "micro-time": Form(_is_micro_time, "be a time with six decimals, such as `2026-01-31T12:00:00.000000Z`"),
    "quantity": Form(_is_quantity, "be a quantity like `500m` or `4Gi`", "invalid-quantity"),
    "time": Form(is_time, "be a time, such as `2026-01-31T12:00:00Z`"),
}

"""Validate numbers of pods that may be percentages, such as `maxUnavailable`."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation
from jobgen.model.data import Node, value_of


def validate_count_or_percentage(key: str, value: Node, owner: Mapping[str, Node], run: Validation) -> None:
    """Validate a number of pods, or a percentage of any size."""
    found = value_of(value)
    if type(found) is str and _read_percentage(found) is None:
        run.report("invalid-value", f"`{key}` is `{found}`; write an integer such as `1` or a percentage: `25%`", value)
    elif type(found) is int and found < 0:
        run.report("out-of-range", f"`{key}` must be at least 0, got `{found}`", value)


def validate_count_or_share(key: str, value: Node, owner: Mapping[str, Node], run: Validation) -> None:
    """Validate a number of pods, or a percentage up to 100%."""
    validate_count_or_percentage(key, value, owner, run)
    found = value_of(value)
    if type(found) is str and (_read_percentage(found) or 0) > 100:
        run.report("out-of-range", f"`{key}` must be at most 100%, got `{found}`", value)


def read_count_or_percentage(value: Node, default: int) -> int | None:
    """Return the number of pods or the percentage; None if the value is neither."""
    found = value_of(value)
    if found is None:
        return default
    return found if type(found) is int else _read_percentage(found) if type(found) is str else None


def _read_percentage(text: str) -> int | None:
    digits = text[:-1]
    if not (text.endswith("%") and digits.isascii() and digits.isdigit()):
        return None
    # Python limits the digits of an integer.
    return int(digits.lstrip("0")[:20] or "0")

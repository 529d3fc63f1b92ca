"""Quantities as numbers, in thousandths: Kubernetes rounds up to those before it compares."""

from __future__ import annotations

from functools import lru_cache

from jobgen.model.data import Data, value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.quantity import canonical_quantity

_PARTS = lazy_pattern(r"(-?[0-9]+)(?:e([0-9-]+)|([A-Za-z]*))")
_POWERS = {suffix: power for power, suffix in zip(range(-9, 21, 3), [*"num", "", *"kMGTPE"], strict=True)}
_BINARY = {f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", 1)}


def amount(value: Data) -> int | None:
    """The thousandths in a quantity, or None if it is not one."""
    found = value_of(value)
    return _milli(found) if type(found) is str or type(found) is int else None


@lru_cache(maxsize=8192)
def _milli(found: str | int) -> int | None:
    spelt = canonical_quantity(str(found))
    match = _PARTS.fullmatch(spelt) if spelt is not None else None
    if match is None:
        return None
    steps = int(match[1]) * _BINARY.get(match[3] or "", 1)
    power = 3 + (int(match[2]) if match[2] else _POWERS.get(match[3], 0))
    if power >= 0:
        return int(steps * 10**power)
    # Away from zero, as Kubernetes rounds.
    rounded = -int(-abs(steps) // 10**-power)
    return rounded if steps > 0 else -rounded

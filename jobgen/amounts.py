"""Quantities as numbers, in thousandths: Kubernetes rounds up to those before it compares."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from jobgen.model import Data, bare
from jobgen.quantity import canonical

_PARTS = re.compile(r"(-?[0-9]+)(?:e([0-9-]+)|([A-Za-z]*))")
_SCALES = {
    suffix: Fraction(10) ** power for power, suffix in zip(range(-9, 21, 3), [*"num", "", *"kMGTPE"], strict=True)
}
_SCALES |= {f"{letter}i": Fraction(1024) ** power for power, letter in enumerate("KMGTPE", 1)}


def amount(value: Data) -> int | None:
    """The thousandths in a quantity, or None if it is not one."""
    found = bare(value)
    return _milli(found) if type(found) is str or type(found) is int else None


@lru_cache(maxsize=8192)
def _milli(found: str | int) -> int | None:
    spelt = canonical(str(found))
    match = _PARTS.fullmatch(spelt) if spelt is not None else None
    if match is None:
        return None
    scale = Fraction(10) ** int(match[2]) if match[2] else _SCALES[match[3]]
    steps = int(match[1]) * scale * 1000
    # Away from zero, as Kubernetes rounds.
    rounded = -(-abs(steps).numerator // abs(steps).denominator)
    return rounded if steps > 0 else -rounded

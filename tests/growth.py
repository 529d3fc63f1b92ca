"""Compare the work for one size with the work for another: no test depends on the speed of a machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from resource import RUSAGE_CHILDREN, getrusage
from time import process_time

FACTOR = 4
"""How much larger the second size is."""
ATTEMPTS = 5
"""Other programs disturb a measurement now and then; what grows with the square does so in each attempt."""
INEXACT = 0.001
"""Shorter times are mostly those of the measurement."""


def grows_with_the_square(prepare: Callable[[int], Callable[[], object]], size: int) -> bool:
    """Return True if four times the size takes more than eight times the CPU time: 4 is linear, 16 is the square.

    `prepare` returns the work for a size. Preparing it is not measured.
    """
    large = prepare(size * FACTOR)
    least_large = _measure(large)
    if least_large < INEXACT:
        return False
    small = prepare(size)
    least_small = _measure(small)
    for _ in range(ATTEMPTS):
        if least_large <= FACTOR**1.5 * least_small:
            return False
        least_small = min(least_small, _measure(small))
        least_large = min(least_large, _measure(large))
    return True


def _measure(work: Callable[[], object]) -> float:
    start = _read_clock()
    work()
    return _read_clock() - start


def _read_clock() -> float:
    """The CPU time of this process and of those that it started and waited for."""
    children = getrusage(RUSAGE_CHILDREN)
    return process_time() + children.ru_utime + children.ru_stime


def count_calls(work: Callable[[], object]) -> int:
    """Count the calls of functions, also of those written in C: the same on a fast and on a busy machine."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count

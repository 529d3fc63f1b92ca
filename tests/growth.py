"""Compare the work for one size with the work for another: no test depends on the speed of a machine."""

from __future__ import annotations

from collections.abc import Callable
from cProfile import Profile
from time import process_time

FACTOR = 4
"""How much larger the second size is."""
LIMIT = 6
"""By which factor the calls may grow: 4 is linear, 16 is the square."""
ATTEMPTS = 5
"""Other programs disturb a measurement now and then; what grows with the square does so in each attempt."""
INEXACT = 0.001
"""Shorter times are mostly those of the measurement."""


def grows_with_the_square(prepare: Callable[[int], Callable[[], object]], size: int) -> bool:
    """Return True if four times the size takes more than six times the calls of functions.

    `prepare` returns the work for a size. What is prepared once for all sizes is not counted.
    """
    prepare(size // 2)()
    small, large = prepare(size), prepare(size * FACTOR)
    return count_calls(large) > LIMIT * count_calls(small)


def takes_the_square_of_time(prepare: Callable[[int], Callable[[], object]], size: int) -> bool:
    """Return True if four times the size takes more than eight times the CPU time, for work inside of one call."""
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
    start = process_time()
    work()
    return process_time() - start


def count_calls(work: Callable[[], object]) -> int:
    """Count the calls of functions, also of those written in C: the same on a fast and on a busy machine."""
    # Several times as fast as a function of Python that is called for each of them.
    profile = Profile()
    profile.enable()
    try:
        work()
    finally:
        profile.disable()
    return sum(entry.callcount for entry in profile.getstats())

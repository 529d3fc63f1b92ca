"""Some of many cases for `make test`, and all of them for `make stress`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import settings

EXAMPLES = 20
"""How many random examples a law is tried with if it says nothing else."""


def examples(count: int) -> int:
    """Return that many random examples, and 50 times as many with `--stress`."""
    return count * settings.get_profile("jobgen").max_examples // EXAMPLES


def laws(count: int) -> settings:
    """Return the settings of a law that is tried with that many random examples."""
    return settings(max_examples=examples(count))


def sample(cases: Iterable[Any], step: int) -> list[Any]:
    """Return all cases; only each one in `step` is run without `--stress`, from the first on."""
    return [case if at % step == 0 else _mark(case) for at, case in enumerate(cases)]


def leave(cases: Iterable[Any], is_long: Callable[[Any], bool]) -> list[Any]:
    """Return all cases; those that take long are run with `--stress` only."""
    return [_mark(case) if is_long(case) else case for case in cases]


def _mark(case: Any) -> Any:
    return pytest.param(*(case if type(case) is tuple else (case,)), marks=pytest.mark.stress)

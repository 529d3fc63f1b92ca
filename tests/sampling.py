"""Some of many cases for `make test`, and all of them for `make stress`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import zip_longest
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


def is_long_run() -> bool:
    """Return True with `--stress`."""
    return settings.get_profile("jobgen").max_examples > EXAMPLES


def sample(cases: Iterable[Any], step: int, ids: Iterable[str | None] = ()) -> list[Any]:
    """Return each case in `step`, from the first on, and with `--stress` the others, too."""
    rows = zip_longest(cases, ids)
    return _select((case, name, at % step == 0) for at, (case, name) in enumerate(rows))


def leave(cases: Iterable[Any], is_long: Callable[[Any], bool]) -> list[Any]:
    """Return the cases that do not take long, and with `--stress` the others, too."""
    return _select((case, None, not is_long(case)) for case in cases)


def _select(cases: Iterable[tuple[Any, str | None, bool]]) -> list[Any]:
    # Thousands of tests that are listed and left out would take seconds.
    is_stress = is_long_run()
    return [_name(case, name, is_short) for case, name, is_short in cases if is_short or is_stress]


def _name(case: Any, name: str | None, is_short: bool) -> Any:
    marks = () if is_short else pytest.mark.stress
    return pytest.param(*(case if type(case) is tuple else (case,)), marks=marks, id=name)

"""Some of many cases for `make test`, and all of them for `make stress`.

The cases of a test that are much alike and take long are sampled by sampled.txt: each line names a test, and of how
many cases one is run, from the first on. Nothing is lost: `make stress` runs the others every night.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

EXAMPLES = 20
"""How many random examples a law names if it says nothing else."""
FEWER = 2
"""By what `make test` divides the examples that a law names: half of them notice the same mutants."""
MORE = 50
"""By what `--stress` multiplies them."""
STEPS = {
    name: int(step) for name, step in map(str.split, (Path(__file__).parent / "sampled.txt").read_text().splitlines())
}
"""Of how many cases of a test one is run, by the name of the test with its file."""


def name_test(item: pytest.Item) -> str:
    """Return the name of a test with its file, without its case."""
    return f"{item.path.name}::{item.name.partition('[')[0]}"


def mark_others(items: Iterable[pytest.Item]) -> None:
    """Leave the cases of sampled tests to `--stress`, but for one of so many."""
    counts: Counter[str] = Counter()
    for item in items:
        name = name_test(item)
        if name in STEPS:
            if counts[name] % STEPS[name]:
                item.add_marker("stress")
            counts[name] += 1


def examples(count: int) -> int:
    """Return half as many random examples, and 50 times as many with `--stress`."""
    return max(1, count * settings.get_profile("jobgen").max_examples // EXAMPLES)


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

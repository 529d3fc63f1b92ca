"""Kueue's own test tables, where they are beside the repository: each case has the expected answer."""

import json
from collections.abc import Iterator

import pytest
from sharedfiles import shared_folder

from jobgen.kueue.tables import list_tables
from jobgen.model.quantity import parse_quantity

# Cases whose answer differs, and why. A case that agrees may not be listed.
_SOME_FLAVORS = "flavorassigner_test.go:5785 checks only flavors that it names, and this case does not name all"
DIFFERENT: dict[tuple[str, str], str] = {
    ("no_fit_reasons", "flavor mismatch for workload slices"): _SOME_FLAVORS,
    ("no_fit_reasons", "flavor not allowed by annotations"): _SOME_FLAVORS,
    ("no_fit_reasons", "succeeds to schedule on flavor-b with a tolerated taint"): _SOME_FLAVORS,
}


def normalize(value, key=""):
    """The same value in one notation: quantities by value, lists without order unless they are called `order`."""
    if isinstance(value, dict):
        return {name: normalize(each, name) for name, each in sorted(value.items())}
    if isinstance(value, list):
        items = [normalize(each) for each in value]
        return items if key == "order" else sorted(items, key=lambda each: json.dumps(each, sort_keys=True))
    found = parse_quantity(value) if isinstance(value, str) else None
    return value if found is None else ("quantity", *_reduce(found.amount, found.power))


def _reduce(amount, power):
    while amount and amount % 10 == 0:
        amount, power = amount // 10, power + 1
    return (amount, power if amount else 0)


def drop_zeros(expect):
    """An expectation without numbers of skipped preemptions that are all 0: nothing that a case gives asks for them."""
    return {name: each for name, each in expect.items() if name != "skippedPreemptions" or any(each.values())}


def list_differences(got, want, path="") -> Iterator[str]:
    """The paths at which two answers differ."""
    if isinstance(got, dict) and isinstance(want, dict):
        for name in sorted({*got, *want}):
            yield from list_differences(got.get(name), want.get(name), f"{path}.{name}")
    elif got != want:
        yield f"{path}: {got!r} instead of {want!r}"


@pytest.mark.parametrize("table", sorted(list_tables()))
def test_answers_of_a_table(table):
    cases = json.loads((shared_folder("kueue-cases") / f"{table}.json").read_text("utf-8"))
    decide = list_tables()[table]

    wrong = {
        case["name"]: found
        for case in cases
        if (found := list(list_differences(normalize(decide(case["given"])), normalize(drop_zeros(case["expect"])))))
    }

    expected = {name for known, name in DIFFERENT if known == table}
    assert {name: wrong[name] for name in wrong if name not in expected} == {}
    assert expected <= wrong.keys()


def test_every_table_has_a_function():
    tables = {path.stem for path in shared_folder("kueue-cases").glob("*.json")}

    assert sorted(tables - list_tables().keys()) == []

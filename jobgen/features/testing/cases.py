"""Read the tests of a repository."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from operator import ge, le
from typing import Any, NamedTuple

from jobgen.k8s.secrets import MASK
from jobgen.model.data import API_VERSION, Location, Node, Plain, TracedKey, locatable, location_of, untraced, value_of
from jobgen.model.finding import Finding, Problem
from jobgen.model.path import InvalidPathError, parse_dotted
from jobgen.model.quantity import to_milli
from jobgen.model.suggest import did_you_mean
from jobgen.rendering.config import find_errors
from jobgen.rendering.locate import locate
from jobgen.repo.commit import Folder
from jobgen.repo.files import MANIFEST_SUFFIXES, read_file
from jobgen.repo.walk import walk_files
from jobgen.spec.frameworks import Frameworks
from jobgen.yamlio.read import read

ABSENT: Any = object()
"""In place of a value that the object does not have."""


def find_mismatch(value: Any, expected: Plain, *, hidden: bool = False) -> str:
    """Return how a value differs from what is expected; empty if it does not. With `hidden`, it shows no text."""
    if not isinstance(expected, dict):
        return "" if _equals(value, expected) else f"expected {show(expected, hidden=hidden)}"
    for name, wanted in expected.items():
        is_missing = name != "present" and value is ABSENT
        words, holds = _CONDITIONS[name]
        if is_missing or not holds(value, wanted):
            return f"expected {words}{show(wanted, hidden=hidden)}"
    return ""


def list_conditions() -> list[str]:
    """Return the names of all conditions."""
    return list(_CONDITIONS)


def show(value: Any, *, hidden: bool = False) -> str:
    """Return a value as a short text; with `hidden`, a mask is in place of each text in it."""
    if value is ABSENT:
        return "nothing"
    text = json.dumps(_hide_texts(value) if hidden else value, ensure_ascii=False)
    return f"`{text if len(text) <= 200 else text[:200] + '…'}`"


def _hide_texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _hide_texts(child) for key, child in value.items()}
    if isinstance(value, list):
        return list(map(_hide_texts, value))
    return MASK if isinstance(value, str) else value


def _equals(value: Any, wanted: Any) -> bool:
    # In JSON, true is not 1.
    return value is not ABSENT and type(value) is type(wanted) and value == wanted


def _contains(value: Any, wanted: Any) -> bool:
    if isinstance(value, str):
        return isinstance(wanted, str) and wanted in value
    if isinstance(value, dict) and isinstance(wanted, dict):
        return all(key in value and _equals(value[key], each) for key, each in wanted.items())
    if not isinstance(value, list):
        return False
    mappings = [item for item in value if isinstance(item, dict)] if isinstance(wanted, dict) else []
    return any(_equals(item, wanted) for item in value) or any(_contains(item, wanted) for item in mappings)


def _compare(value: Any, wanted: Any, holds: Callable[[int, int], bool]) -> bool:
    one, other = to_milli(value), to_milli(wanted)
    return one is not None and other is not None and holds(one, other)


_CONDITIONS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "equals": ("", _equals),
    "present": ("presence ", lambda value, wanted: (value is not ABSENT) is wanted),
    "matches": ("a text like ", lambda value, wanted: isinstance(value, str) and fnmatchcase(value, str(wanted))),
    "contains": ("something that contains ", _contains),
    "oneOf": ("one of ", lambda value, wanted: isinstance(wanted, list) and any(_equals(value, e) for e in wanted)),
    "min": ("at least ", lambda value, wanted: _compare(value, wanted, ge)),
    "max": ("at most ", lambda value, wanted: _compare(value, wanted, le)),
}
"""The conditions by name: how a failure begins, and what a value must fulfill."""


FOLDER = "tests"
KIND = "JobTests"


class JobTest(NamedTuple):
    """A test: the jobs, the environments, and what is expected of each object."""

    name: str
    file: str
    location: Location
    environments: tuple[str, ...]
    """Shell patterns; all if it is empty."""
    jobs: tuple[str, ...]
    """Shell patterns of names."""
    given: dict[str, Any] | None
    """A job that is only in the test, with locations."""
    given_file: str
    change: Mapping[str, Any] | None
    """Fields that are merged into the spec, with locations."""
    expect: Mapping[str, Any]
    """With locations."""


def read_tests(root: Folder, frameworks: Frameworks, findings: list[Finding]) -> Iterator[JobTest]:
    """Yield the tests of a repository. Other files in the folder are not read."""
    for entry in walk_files(root, FOLDER, MANIFEST_SUFFIXES):
        file = read_file(entry)
        if file.finding:
            findings.append(file.finding)
        # What a file of tests has, also if its kind is misspelled.
        if file.finding or b"jobtest" not in file.content.lower():
            continue
        source = read(file.content, file.path, traced=True)
        findings += source.findings
        for document in source.documents:
            data = document.data
            if str(value_of(data.get("kind"))).lower() in (KIND.lower(), KIND.lower()[:-1]):
                problems = find_errors(data, "jobtests", frameworks) or list(_find_all_errors(data["spec"]))
                findings += (locate(problem, file.path, document.location) for problem in problems)
                if not problems:
                    yield from (_parse_test(test, file.path) for test in data["spec"])


def _parse_test(test: Mapping[str, Any], file: str) -> JobTest:
    given = test.get("given")
    if given is not None and "kind" not in given:
        given = {"apiVersion": API_VERSION, "kind": "TrainingJob", "metadata": {"name": "given"}, **given}
    return JobTest(
        str(value_of(test["name"])),
        file,
        location_of(test["name"]) or Location(file),
        tuple(untraced(test.get("environments", []))),
        tuple(untraced(test.get("jobs", []))),
        given,
        str(value_of(test.get("file")) or f"jobs/{value_of(test['name'])}.yaml"),
        test.get("change"),
        test["expect"],
    )


def _find_all_errors(tests: list[Mapping[str, Any]]) -> Iterator[Problem]:
    """Report what the schema cannot express."""
    names: set[str] = set()
    for test in tests:
        name = str(value_of(test["name"]))
        if name in names:
            message = f"another test of this file is named `{name}`; give each test its own name"
            yield Problem("duplicate-item", message, test["name"])
        names.add(name)
        yield from _find_test_errors(test)


def _find_test_errors(test: Mapping[str, Any]) -> Iterator[Problem]:
    has_jobs, has_given = "jobs" in test, "given" in test
    if has_jobs == has_given:
        what = "has both `jobs` and `given`; remove one" if has_jobs else "has no job; write `jobs` or `given`"
        yield Problem("invalid-value", f"the test {what}", _find_key(test, "given") if has_jobs else test["name"])
    expect = test["expect"]
    has_values, has_snapshot = bool(expect.get("values")), value_of(expect.get("snapshot")) is True
    if not has_values and not has_snapshot and all(key in ("values", "snapshot") for key in expect):
        yield Problem("missing-field", "the test expects nothing, so it cannot fail; add an expectation", test["name"])
    if "effect" in expect and "change" not in test:
        yield Problem("missing-field", "`effect` needs a `change`; add one", _find_key(expect, "effect"))
    for key, expected in expect.get("values", {}).items():
        yield from _find_value_errors(key, expected)


def _find_value_errors(key: Node, expected: Node) -> Iterator[Problem]:
    try:
        steps = parse_dotted(str(key))
    except InvalidPathError as error:
        yield Problem("invalid-value", str(error), key)
        return
    if not steps:
        yield Problem("invalid-value", "the path is empty; write a path of the object, such as `metadata.name`", key)
    if isinstance(expected, dict):
        if not expected or value_of(expected.get("contains", 0)) in ("", [], {}):
            message = f"`{key}` has a condition that every value meets; write what is expected, or `present: true`"
            yield Problem("invalid-value", message, key)
        for name in (name for name in expected if str(name) not in _CONDITIONS):
            hint = did_you_mean(str(name), list_conditions()) or "; write `equals: {…}` to compare a mapping"
            yield Problem("unknown-field", f"`{name}` is not a condition{hint}", name)


def _find_key(mapping: Mapping[str, Any], name: str) -> Node:
    return next((key for key in mapping if key == name and type(key) is TracedKey), locatable(mapping))

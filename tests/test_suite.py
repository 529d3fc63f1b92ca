"""The test suite itself: every test can fail, fixtures are no copies, and the list of slow tests is up to date."""

from __future__ import annotations

import ast
import functools
import hashlib
from collections import Counter, defaultdict
from itertools import chain
from pathlib import Path

from conftest import SLOW_TESTS
from moduletrees import parse_module
from sampling import STEPS

TESTS = Path(__file__).parent
MODULES = sorted([*TESTS.glob("test_*.py"), *TESTS.glob("attacks/test_*.py")])


@functools.cache
def functions_of(path: Path) -> list[ast.FunctionDef]:
    tree = parse_module(path)
    return [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]


def can_fail(test: ast.FunctionDef) -> bool:
    """True if a test asserts something, itself or through a function called `assert_...`, or expects an exception."""
    # Most tests have an assertion of their own.
    if any(isinstance(node, ast.Assert) for node in chain(test.body, ast.walk(test))):
        return True
    calls = [node.func for node in ast.walk(test) if isinstance(node, ast.Call)]
    names = {call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls}
    return any(name == "raises" or name.startswith("assert_") for name in names)


def test_every_test_has_an_assertion() -> None:
    assert [(path.name, test.name) for path in MODULES for test in functions_of(path) if not can_fail(test)] == []


def test_names_of_tests_are_unique() -> None:
    names = Counter((path, test.name) for path in MODULES for test in functions_of(path))

    assert [name for name, count in names.items() if count > 1] == []


def test_slow_tests_exist() -> None:
    existing = {f"{path.name}::{test.name}" for path in MODULES for test in functions_of(path)}
    existing |= {path.name for path in MODULES}

    assert set(SLOW_TESTS) - existing == set()
    assert sorted(set(SLOW_TESTS)) == list(SLOW_TESTS)


def test_sampled_tests_exist() -> None:
    existing = {f"{path.name}::{test.name}" for path in MODULES for test in functions_of(path)}

    assert STEPS.keys() - existing == set()
    assert sorted(STEPS) == list(STEPS)
    assert min(STEPS.values()) > 1


# A tree has one for each environment, and each base repository is complete.
COPIES = {".gitattributes", "jobgen.yaml", "bert.yaml"}


def test_no_fixture_is_a_copy_or_empty() -> None:
    by_digest: dict[str, list[Path]] = defaultdict(list)
    for path in TESTS.rglob("*"):
        # What a release rendered stays as it is.
        if path.is_file() and path.suffix not in (".py", ".pyc") and TESTS / "releases" not in path.parents:
            by_digest[hashlib.sha256(path.read_bytes()).hexdigest()].append(path)
    copies = [paths for paths in by_digest.values() if len(paths) > 1]

    assert len(by_digest) > 100
    assert [paths for paths in copies if not {path.name for path in paths} <= COPIES] == []
    assert [path for paths in by_digest.values() for path in paths if path.stat().st_size == 0] == []

"""The processes that run the tests: none is lost, whatever becomes of its process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from forked import MOST, divide

TESTS = Path(__file__).parent
CASES = """
import os, signal, pytest, sys, time

KEPT = sys.stderr

def test_a_module_keeps_a_stream():
    assert KEPT.fileno() >= 0
    KEPT.write("kept")

def test_passes(tmp_path):
    assert tmp_path.is_dir()

def test_fails():
    print("printed before")
    assert [1] == [2]

def test_is_skipped():
    pytest.skip("for a reason")

@pytest.fixture
def left():
    yield
    raise ValueError("left behind")

def test_fixture_fails(left):
    pass

@pytest.mark.xfail(strict=True)
def test_expected():
    assert 0
"""
KILLED = """
import os, signal, pytest

@pytest.mark.parametrize("number", range(40))
def test_killed(number):
    if number == 20:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 30:
        raise KeyboardInterrupt
"""
OPTIONS = ["-m", "pytest", "-c", os.devnull, "-p", "no:cacheprovider", "-p", "forked", "-rA"]


def run_tests(folder, text, *options):
    (folder / "test_cases.py").write_text(text)
    done = subprocess.run(
        [sys.executable, *OPTIONS, "--rootdir", folder, *options, folder],
        env={**os.environ, "PYTHONPATH": str(TESTS), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    outcomes = re.findall(
        r"^(PASSED|FAILED|ERROR|SKIPPED|XFAIL) (?:\[\d\] )?\S*?(?:::(\w+\S*))?(?: |$)", done.stdout, re.MULTILINE
    )
    return done, sorted(outcomes)


def test_each_outcome_is_that_of_one_process(tmp_path):
    alone, expected = run_tests(tmp_path, CASES, "-n0")
    done, outcomes = run_tests(tmp_path, CASES, "-n2")

    assert len(expected) == 7
    assert outcomes == expected
    assert done.returncode == alone.returncode == 1
    for text in ("printed before", "assert [1] == [2]", "left behind", "for a reason"):
        assert text in done.stdout


def test_a_test_that_ends_its_process_fails_and_the_others_are_run(tmp_path):
    done, outcomes = run_tests(tmp_path, KILLED, "-n2")
    failed = [name for outcome, name in outcomes if outcome == "FAILED"]

    assert len(outcomes) == 40
    assert failed == ["test_killed[20]", "test_killed[30]"]
    assert "the process of this test has ended with the exit code -9" in done.stdout
    assert "KeyboardInterrupt" in done.stdout


def test_a_fixture_of_the_session_that_fails_at_the_end_is_no_success(tmp_path):
    text = (
        "import pytest\n@pytest.fixture(scope='session')\ndef left():\n    yield\n    raise ValueError('at the end')\n"
    )
    done, outcomes = run_tests(tmp_path, f"{text}def test_one(left): pass\ndef test_two(left): pass\n", "-n1")

    assert ("PASSED", "test_one") in outcomes
    assert done.returncode == 1
    assert "at the end" in done.stdout


def test_no_other_test_begins_after_the_first_failure(tmp_path):
    done, outcomes = run_tests(tmp_path, CASES + "\ndef test_last(): time.sleep(60)\n", "-n1", "-x")

    assert [outcome for outcome, _ in outcomes].count("FAILED") == 1
    assert "stopping after 1 failures" in done.stdout


@pytest.mark.parametrize("processes", [1, 3, 64])
def test_all_tests_are_given_in_their_order(processes):
    items = [SimpleNamespace(path=name) for name in "abc" for _ in range(200)]
    parts = list(divide(items, processes))

    assert [index for part in parts for index in part] == list(range(600))
    assert max(map(len, parts)) <= MOST
    assert len(parts[-1]) == 1
    assert all(len({items[index].path for index in part}) == 1 for part in parts)


def test_a_module_can_have_all_its_tests_in_one_process():
    module = SimpleNamespace(IN_ONE_PROCESS=True)
    others = [SimpleNamespace(path="b") for _ in range(10)]
    items = [*(SimpleNamespace(path="a", module=module) for _ in range(2 * MOST)), *others]

    assert next(divide(items, 3)) == range(2 * MOST)

"""Options and marks of all tests. `pytest --accept` rewrites expected output in place; review the diff."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings
from hypothesis.internal.conjecture import providers
from jobgenprocess import start_server
from kubectl import GO
from moduletrees import name_shared, parse_module
from sampling import EXAMPLES, FEWER, MORE, mark_others, name_test

from jobgen import cache
from jobgen.model.budget import RUN

# The processes that run tests, and the browser of the tests of the HTML page.
pytest_plugins = ("forked", "report_browser")

MEMORY = Path("/dev/shm")


def _write_to_memory() -> None:
    """Let tests write their files to memory, if there is enough: a disk takes a tenth more CPU time, and longer.

    TMPDIR names another place, where pytest keeps the files of the last runs.
    """
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK) or shutil.disk_usage(MEMORY).free < 4 << 30:
        return
    for left in MEMORY.glob("jobgen-tests-*-*"):
        # A run that was killed has not removed its files.
        if not Path("/proc", left.name.split("-")[2]).exists():
            shutil.rmtree(left, ignore_errors=True)
    folder = tempfile.mkdtemp(prefix=f"jobgen-tests-{os.getpid()}-", dir=MEMORY)
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    atexit.register(_remove, folder, os.getpid())


def _remove(folder: str, process: int) -> None:
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


_write_to_memory()
# Git copies a dozen examples of hooks into each new repository, unless a template has none.
os.environ["GIT_TEMPLATE_DIR"] = tempfile.mkdtemp(prefix="jobgen-tests-")
for folder in ("hooks", "info"):
    os.mkdir(os.path.join(os.environ["GIT_TEMPLATE_DIR"], folder))
# Behind each commit, Git would start a process that looks for garbage.
Path(os.environ["GIT_TEMPLATE_DIR"], "config").write_text("[maintenance]\n\tauto = false\n[gc]\n\tauto = 0\n")
# The cache of another run must not decide whether a test passes.
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="jobgen-tests-")
# In CI, the day of the run decides what has expired.
os.environ.pop("CI", None)
os.environ.update(GO)


# Rewriting the assertions of all test modules takes ten seconds of CPU time in each process. pytest keeps the result
# where it may, even if other programs of this machine write no compiled modules.
sys.dont_write_bytecode = False


# Tests that take more than about half a second of CPU time together, and modules with mostly such tests.
# `make test-fast` leaves them out.
SLOW_TESTS = tuple((Path(__file__).parent / "slow.txt").read_text().split())


# Tests that take seconds. They are run first: what is left at the end is short, and all cores have work until then.
LONG = frozenset(
    """test_budget.py test_contracts.py test_dist.py test_engine_laws.py test_import_laws.py test_live.py
    test_policy_packs.py test_pre_commit.py test_report_fleet.py test_report_page.py test_since_cached.py""".split()
)


# What collecting tests creates lives as long as the process: to look for garbage in it takes seconds and finds none.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    # The command runs without the collector; the default looks through what tests create far too often.
    gc.set_threshold(50_000)
    gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes long; `make test-fast` leaves it out (listed in tests/slow.txt)")
    config.addinivalue_line("markers", "stress: takes very long, and seldom finds more than others; needs --stress")
    # The time that random data take depends on what else the machine does. A change is judged by the same data each
    # time; `--stress` looks for new data.
    settings.register_profile(
        "jobgen",
        max_examples=EXAMPLES * MORE if config.getoption("--stress") else EXAMPLES // FEWER,
        deadline=None,
        derandomize=not config.getoption("--stress"),
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("jobgen")
    if config.getoption("processes", "0") != "0" and not config.option.collectonly:
        # It reads what all commands need while tests are collected.
        start_server()


# Hypothesis parses all local modules for constants that it tries beside random data: five seconds in each process. The
# data of a law would depend on the modules that other tests import, and change with each constant of the code.
providers._get_local_constants = lambda: providers._local_constants


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import modules of which no test is run."""
    is_slow = collection_path.name in SLOW_TESTS and config.option.markexpr == "not slow"
    return True if is_slow else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Give each test the budget of a run of its own, and no answers from a cache that another test has enabled.

    A command that a test runs in its process begins a run, and enables the cache. A fixture would take five times as
    long, for each of thousands of tests.
    """
    RUN.reset()
    before = cache._folder, cache._salt, cache._secret
    try:
        return (yield)
    finally:
        cache._folder, cache._salt, cache._secret = before


def pytest_runtest_call() -> None:
    """What a fixture of a module has used is not of the budget of the test."""
    RUN.reset()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark slow tests, leave out those of `make stress`, or all others, and begin with long ones."""
    slow = set(SLOW_TESTS)
    for item in items:
        if item.path.name in slow or name_test(item) in slow:
            item.add_marker("slow")
    # A case that is named, or whose output is accepted, is run.
    if not (config.option.keyword or config.getoption("--accept") or any("::" in each for each in config.args)):
        mark_others(items)
    is_left = _gains_nothing if config.getoption("--stress") else _needs_stress
    config.hook.pytest_deselected(items=[item for item in items if is_left(item)])
    items[:] = sorted((item for item in items if not is_left(item)), key=_order)


def _order(item: pytest.Item) -> tuple[bool, bool]:
    """Begin with the tests of the code, which one process runs, and other long ones."""
    return name_shared(item) is not parse_module, item.path.name not in LONG


def _needs_stress(item: pytest.Item) -> bool:
    return item.get_closest_marker("stress") is not None


def _gains_nothing(item: pytest.Item) -> bool:
    """Return True if a test does the same with `--stress` as without."""
    is_random = is_hypothesis_test(getattr(item, "function", None)) or "stress" in getattr(item, "fixturenames", ())
    return not is_random and not _needs_stress(item)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--stress",
        action="store_true",
        help="run randomized tests 40 times as often, those marked `stress`, and no others",
    )
    parser.addoption("--accept", action="store_true", help="rewrite expected output with the current output")


@pytest.fixture
def accept(request: pytest.FixtureRequest) -> bool:
    """Return True if expected output is rewritten rather than compared."""
    return bool(request.config.getoption("--accept"))


@pytest.fixture
def stress(request: pytest.FixtureRequest) -> int:
    """By which factor randomized tests run more often than usual."""
    return 40 if request.config.getoption("--stress") else 1

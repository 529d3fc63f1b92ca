"""The comparison of instruction counts: the same work has the same count, and more work a higher one."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

import guard
import pytest

PROGRAM = """\
import sys
print(sum(number * number for number in range(int(sys.argv[1]))))
"""
PERF = b"1.2,msec,task-clock,,,,\n123456789,,instructions:u,98765,100.00,,\n"
UNSUPPORTED = b"<not supported>,,instructions:u,0,100.00,,\n"
VALGRIND = b"==7== Cachegrind\n==7== I   refs:      29,123,456\n"


@pytest.mark.parametrize(("report", "count"), [(PERF, 123_456_789), (VALGRIND, 29_123_456), (UNSUPPORTED, 0), (b"", 0)])
def test_a_count_is_read_from_the_report(report, count):
    assert guard.read_count(report) == count


@pytest.mark.skipif(not shutil.which("valgrind") and not shutil.which("perf"), reason="needs valgrind or perf")
@pytest.mark.stress
def test_the_same_work_has_the_same_count_and_more_work_a_higher_one(tmp_path):
    package = tmp_path / "head"
    (package / "jobgen").mkdir(parents=True)
    (package / "jobgen/__init__.py").touch()
    (package / "jobgen/__main__.py").write_text(PROGRAM)
    counter = guard.choose_counter()
    little, again, much = (
        guard.count_instructions(counter, package, tmp_path, [number]) for number in ("1000", "1000", "300000")
    )

    assert again == pytest.approx(little, rel=0.01)
    assert much > little * 1.2


def test_a_program_that_fails_is_not_measured(tmp_path):
    package = tmp_path / "head"
    (package / "jobgen").mkdir(parents=True)
    (package / "jobgen/__init__.py").touch()
    (package / "jobgen/__main__.py").write_text("raise SystemExit(3)")

    with pytest.raises(SystemExit, match="exit 3"):
        guard.count_instructions((), package, tmp_path, ["lint"])


def test_a_revision_that_does_not_exist_is_an_error(tmp_path):
    with pytest.raises(SystemExit, match="`nosuchrevision` cannot be read"):
        guard.extract("nosuchrevision", tmp_path)


@pytest.mark.stress  # each pull request is guarded
def test_a_revision_is_extracted_with_its_data_and_compiled_modules(tmp_path):
    if subprocess.run(["git", "rev-parse", "HEAD"], cwd=guard.ROOT, capture_output=True, check=False).returncode:
        pytest.skip("this folder is not a Git repository")
    guard.extract("HEAD", tmp_path)

    assert (tmp_path / "schemas").is_dir()
    assert list((tmp_path / "jobgen/__pycache__").glob("__init__.*.pyc"))

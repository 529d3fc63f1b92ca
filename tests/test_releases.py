"""Repositories of earlier releases render to the bytes that those releases wrote.

tests/releases/<version>/ has the examples of a release and what it rendered, without lock files: a lock has digests of
the shipped kinds, which new versions of operators change. CONTRIBUTING.md says how to record a release.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from command import run_jobgen_text

RELEASES = sorted(path for path in (Path(__file__).parent / "releases").iterdir() if path.is_dir())
LOCK = "jobgen.lock.json"


def read_tree(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != LOCK)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.name)
def test_examples_of_a_release_render_to_the_same_bytes(release, tmp_path):
    repository = tmp_path / "repository"
    shutil.copytree(release, repository, ignore=shutil.ignore_patterns("rendered"))
    done = run_jobgen_text(repository, "render", "-o", str(tmp_path / "rendered"))
    expected = read_tree(release / "rendered")

    assert done.returncode == 0, done.stderr
    assert len(expected) >= 10
    assert read_tree(tmp_path / "rendered") == expected


@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.name)
def test_a_tree_of_a_release_is_up_to_date(release, tmp_path):
    repository = tmp_path / "repository"
    shutil.copytree(release, repository)
    written = run_jobgen_text(repository, "render", "-o", "rendered")
    checked = run_jobgen_text(repository, "render", "-o", "rendered", "--check")

    assert (written.returncode, checked.returncode) == (0, 0), written.stderr + checked.stderr
    assert " 0 written" in written.stdout + written.stderr


def test_a_release_is_recorded():
    assert RELEASES

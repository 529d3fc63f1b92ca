"""Written trees in the store: they save a render, and hide nothing that a render finds."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobgen import cache
from jobgen.api.tree_answers import TreeRequest, count_unchanged
from jobgen.cli.result import Result
from jobgen.cli.run_render import render
from jobgen.repo.lock import LOCK
from jobgen.repo.root import open_store

JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}}}
spec:
  framework: pytorch
  image: registry.example.com/a:1
  command: [python, train.py]
  roles: {{worker: {{replicas: 2}}}}
"""
OVERLAY = "apiVersion: jobgen.dev/v1\nkind: Overlay\nmetadata: {{name: {name}}}\nspec: {{namespace: ml-{name}}}\n"
FILE = "prod/ml-prod/pytorchjob-a.yaml"


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Path]:
    """A repository of two environments, whose tree is written and known to the cache."""
    root = tmp_path / "repo"
    for name in ("prod", "dev"):
        (root / "overlays" / name).mkdir(parents=True)
        (root / "overlays" / name / "overlay.yaml").write_text(OVERLAY.format(name=name))
    (root / "jobgen.yaml").write_text("")
    (root / "jobs").mkdir()
    for name in ("a", "b"):
        (root / "jobs" / f"{name}.yaml").write_text(JOB.format(name=name))
    cache.enable(tmp_path / "cache", "test")
    assert write(root).err == "4 objects: 4 written, 0 unchanged, 0 removed\n"
    assert count(root) == 4
    yield root
    cache.disable()


def write(root: Path, *, check: bool = False, envs: tuple[str, ...] = (), today: str = "") -> Result:
    return render(root, (), envs, root / "rendered", format_="yaml", check=check, today=today)


def count(root: Path, envs: tuple[str, ...] = (), today: str = "") -> int | None:
    return count_unchanged(open_store(root), TreeRequest(root, root / "rendered", envs, "yaml", today))


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def edit_in_place(root: Path) -> None:
    """Change a file; it keeps its size and its modification time."""
    status = os.stat(root / "rendered" / FILE)
    edit(root / "rendered" / FILE, "a:1", "a:2")
    os.utime(root / "rendered" / FILE, ns=(status.st_atime_ns, status.st_mtime_ns))


def link_file(root: Path) -> None:
    """Replace a file by a link to the same content."""
    (root / "rendered" / FILE).rename(root / "same.yaml")
    (root / "rendered" / FILE).symlink_to(root / "same.yaml")


def link_environment(root: Path) -> None:
    (root / "rendered/prod").rename(root / "elsewhere")
    (root / "rendered/prod").symlink_to(root / "elsewhere")


def die_while_staging(root: Path) -> None:
    (root / "rendered/prod/.jobgen-stage").mkdir()


def leave_environment(root: Path) -> None:
    """Add the tree of an environment that has no overlay."""
    shutil.copytree(root / "rendered/prod", root / "rendered/gone")


CHANGES: dict[str, Callable[[Path], object]] = {
    "edited output": edit_in_place,
    "missing output": lambda root: (root / "rendered" / FILE).unlink(),
    "added output": lambda root: (root / "rendered/prod/ml-prod/more.yaml").write_text("a: 1\n"),
    "added hidden output": lambda root: (root / "rendered/prod/.more").write_text("a: 1\n"),
    "linked output": link_file,
    "linked environment": link_environment,
    "stage of a run that died": die_while_staging,
    "environment without overlay": leave_environment,
    "missing environment": lambda root: shutil.rmtree(root / "rendered/prod"),
    "missing tree": lambda root: shutil.rmtree(root / "rendered"),
    "missing lock": lambda root: (root / "rendered/prod" / LOCK).unlink(),
    "edited lock": lambda root: edit(root / "rendered/prod" / LOCK, "ml-prod/pytorchjob-b.yaml", "ml-prod/other.yaml"),
    "edited metadata": lambda root: edit(root / "rendered/prod/kustomization.yaml", "pytorchjob-b", "pytorchjob-c"),
    "changed job": lambda root: edit(root / "jobs/a.yaml", "replicas: 2", "replicas: 3"),
    "added job": lambda root: (root / "jobs/c.yaml").write_text(JOB.format(name="c")),
    "missing job": lambda root: (root / "jobs/b.yaml").unlink(),
    "invalid job": lambda root: edit(root / "jobs/a.yaml", "framework", "frame"),
    "changed overlay": lambda root: edit(root / "overlays/prod/overlay.yaml", "ml-prod", "ml-live"),
    "missing overlay": lambda root: shutil.rmtree(root / "overlays/dev"),
    "invalid settings": lambda root: (root / "jobgen.yaml").write_text("wrong: 1\n"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_change_is_found_as_without_the_cache(
    repo: Path, tmp_path: Path, change: Callable[[Path], object]
) -> None:
    change(repo)
    assert count(repo) is None
    found = write(repo, check=True)
    cache.disable()
    assert write(repo, check=True) == found
    written = write(repo)
    if written.code == 0:
        # What was written is right, so a render finds nothing.
        assert "0 written" in write(repo).err


@pytest.mark.parametrize("check", [False, True])
def test_an_unchanged_tree_is_reported_as_without_the_cache(repo: Path, check: bool) -> None:
    known = write(repo, check=check)
    cache.disable()
    assert count(repo) is None
    assert write(repo, check=check) == known


def test_files_with_new_times_and_the_same_content_are_unchanged(repo: Path) -> None:
    os.utime(repo / "rendered" / FILE)
    assert count(repo) == 4


def test_files_that_were_just_written_are_read(repo: Path) -> None:
    """A second change within the resolution of the clock leaves the same times, so times prove nothing."""
    shutil.rmtree(repo / "rendered")
    write(repo)
    assert count(repo) == 4
    edit_in_place(repo)
    assert count(repo) is None


def test_options_have_their_own_entries(repo: Path) -> None:
    assert count(repo, today="2030-01-01") is None
    assert count(repo, envs=("prod",)) is None
    write(repo, envs=("prod",))
    assert count(repo, envs=("prod",)) == 2
    (repo / "rendered/dev" / LOCK).unlink()
    assert count(repo, envs=("prod",)) == 2
    assert count(repo) is None


def test_a_tree_that_depends_on_the_date_is_rendered_on_another_day(repo: Path) -> None:
    edit(repo / "jobs/a.yaml", "spec:\n", "spec:\n  run: {expires: 2030-06-01}\n")
    assert write(repo, today="2030-01-01").code == 0
    assert count(repo, today="2030-01-01") == 4
    assert count(repo, today="2030-06-02") is None
    assert write(repo, today="2030-06-02").err == "2 objects: 0 written, 2 unchanged, 2 removed\n"
    assert count(repo, today="2030-01-01") is None, "the objects of the expired job are gone"


def test_a_tree_that_depends_on_the_date_of_the_last_commit_is_rendered_after_another(repo: Path) -> None:
    edit(repo / "jobs/a.yaml", "spec:\n", "spec:\n  run: {expires: 2030-06-01}\n")
    run_git(repo, "init", "-q")
    for day in ("2030-01-01", "2030-06-02"):
        run_git(repo, "add", "-A")
        run_git(repo, "commit", "-q", "--allow-empty", "-m", "x", day=day)
        assert count(repo) is None
        assert write(repo).code == 0
    assert not (repo / "rendered" / FILE).exists()


def run_git(folder: Path, *words: str, day: str = "") -> None:
    people = {f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    dates = {f"GIT_{who}_DATE": f"{day}T00:00:00Z" for who in ("AUTHOR", "COMMITTER")} if day else {}
    options = {**os.environ, **people, **dates, "GIT_CONFIG_GLOBAL": os.devnull}
    subprocess.run(["git", *words], cwd=folder, check=True, env=options, capture_output=True)


def test_a_tree_with_files_of_others_is_compared_again(repo: Path) -> None:
    (repo / "rendered/prod/NOTES").write_text("by hand\n")
    assert write(repo).code == 0
    assert count(repo) is None


def test_a_tree_is_known_after_an_environment_was_removed(repo: Path) -> None:
    shutil.rmtree(repo / "overlays/dev")
    result = render(repo, (), (), repo / "rendered", format_="yaml", allow_empty=True)
    assert result.err == "2 objects: 0 written, 2 unchanged, 2 removed\n"
    assert count(repo) == 2
    shutil.copytree(repo / "rendered/prod", repo / "rendered/dev")
    assert count(repo) is None


def test_a_tree_with_warnings_is_rendered_to_repeat_them(repo: Path) -> None:
    edit(repo / "overlays/dev/overlay.yaml", "namespace", "jobs: {names: [none]}, namespace")
    first, second = (render(repo, (), (), repo / "rendered", format_="yaml", allow_empty=True) for _ in range(2))
    assert "[empty-environment]" in first.err
    assert "[empty-environment]" in second.err

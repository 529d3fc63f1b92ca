"""The rendered tree on disk: whole files, managed files only, and the next run repairs an interrupted one."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command import run_jobgen_text
from gitrepository import Repository

from jobgen.repo import rendered_tree, tree_faults
from jobgen.repo.lock import compute_digest
from jobgen.repo.rendered_tree import LOCK, Drift, IncompleteWriteError

OLD = {"ml/pytorchjob-a.yaml": "a: 1\n", "ml/pytorchjob-b.yaml": "b: 1\n", "web/tfjob-c.yaml": "c: 1\n"}
NEW = {"ml/pytorchjob-a.yaml": "a: 2\n", "ml/pytorchjob-d.yaml": "d: 1\n", "api/mpijob-e.yaml": "e: 1\n"}
STAGE = ".jobgen-stage"
LIBC = ctypes.CDLL(None)
DROP_CAPABILITY, OVERRIDE_PERMISSIONS = 24, 1


def tree(folder: Path) -> dict[str, str]:
    """Every file below a folder but the lock, by path; links and stages count, folders do not."""
    found = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return {str(path.relative_to(folder)): path.read_text() for path in found if path.name != LOCK}


def locked(folder: Path) -> set[str]:
    return set(json.loads((folder / LOCK).read_text())["files"])


def states(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.lstat().st_ino, path.lstat().st_mtime_ns) for path in folder.rglob("*")}


@pytest.fixture
def env(tmp_path: Path) -> Path:
    """The folder of an environment that holds OLD."""
    rendered_tree.write_tree(tmp_path / "out", {"prod": OLD})
    return tmp_path / "out" / "prod"


def write(env: Path, wanted: dict[str, str], *, partial: bool = False) -> Drift:
    return rendered_tree.write_tree(env.parent, {env.name: wanted}, partial=partial)[env.name]


def test_tree_holds_its_files_and_a_lock_with_digests(env: Path) -> None:
    lock = json.loads((env / LOCK).read_text())

    assert tree(env.parent) == {f"prod/{path}": text for path, text in OLD.items()}
    assert lock["version"] == 1
    assert list(lock["files"]) == sorted(OLD)
    assert set(map(len, lock["files"].values())) == {64}


def test_second_write_touches_nothing(env: Path) -> None:
    before = states(env.parent)

    assert write(env, OLD) == Drift()
    assert states(env.parent) == before


def test_only_changed_files_are_replaced(env: Path) -> None:
    before = states(env)
    drift = write(env, {**OLD, "ml/pytorchjob-b.yaml": "b: 2\n"})
    after = states(env)

    assert drift == Drift(changed=("ml/pytorchjob-b.yaml",))
    assert {path for path in after if Path(path).is_file() and after[path] != before[path]} == {
        str(env / "ml/pytorchjob-b.yaml"),
        str(env / LOCK),
    }


def test_changed_tree_keeps_no_empty_folders(env: Path) -> None:
    drift = write(env, NEW)

    assert tree(env) == NEW
    assert locked(env) == set(NEW)
    assert sorted(path.name for path in env.iterdir()) == ["api", LOCK, "ml"]
    assert drift == Drift(
        missing=("api/mpijob-e.yaml", "ml/pytorchjob-d.yaml"),
        changed=("ml/pytorchjob-a.yaml",),
        stale=("ml/pytorchjob-b.yaml", "web/tfjob-c.yaml"),
    )


def test_compare_reports_what_write_would_do(env: Path) -> None:
    before = states(env)
    drift = rendered_tree.compare_tree(env, NEW)

    assert states(env) == before
    assert drift == write(env, NEW)
    assert not rendered_tree.compare_tree(env, NEW)


def test_environment_without_files_leaves_no_folder(env: Path) -> None:
    write(env, {})

    assert list(env.parent.iterdir()) == []


def test_unmanaged_files_outlive_the_environment(env: Path) -> None:
    (env / "README.md").write_text("how to apply this\n")
    (env / "web/kustomization.yaml").write_text("resources: []\n")
    (env.parent / "README.md").write_text("all of it\n")
    write(env, {})

    assert tree(env.parent) == {
        "README.md": "all of it\n",
        "prod/README.md": "how to apply this\n",
        "prod/web/kustomization.yaml": "resources: []\n",
    }
    assert not (env / LOCK).exists()


def test_unmanaged_file_in_the_way_stops_the_write(env: Path) -> None:
    (env / "api").mkdir()
    (env / "api/mpijob-e.yaml").write_text("mine: true\n")
    before = states(env.parent)
    drift = write(env, NEW)

    assert drift.foreign == (("api/mpijob-e.yaml", "was not written by jobgen; move it"),)
    assert states(env.parent) == before


def test_conflict_in_one_environment_stops_the_others(env: Path) -> None:
    (env / "web/tfjob-c.yaml").unlink()
    (env / "web/tfjob-c.yaml").mkdir()
    before = states(env.parent)
    rendered_tree.write_tree(env.parent, {"dev": NEW, "prod": OLD})

    assert states(env.parent) == before


def test_unmanaged_file_with_equal_content_is_adopted(env: Path) -> None:
    (env / "api").mkdir()
    (env / "api/mpijob-e.yaml").write_text(NEW["api/mpijob-e.yaml"])
    write(env, {**OLD, **NEW})

    assert locked(env) == {*OLD, *NEW}


def folder_for_file(env: Path) -> None:
    (env / "ml/pytorchjob-a.yaml").unlink()
    (env / "ml/pytorchjob-a.yaml").mkdir()


def pipe_for_file(env: Path) -> None:
    (env / "ml/pytorchjob-a.yaml").unlink()
    os.mkfifo(env / "ml/pytorchjob-a.yaml")


def link_for_file(env: Path) -> None:
    shutil.move(env / "ml/pytorchjob-a.yaml", outside(env) / "a.yaml")
    (env / "ml/pytorchjob-a.yaml").symlink_to(outside(env) / "a.yaml")


def dangling_link_for_file(env: Path) -> None:
    (env / "ml/pytorchjob-a.yaml").unlink()
    (env / "ml/pytorchjob-a.yaml").symlink_to(outside(env) / "new.yaml")


def file_for_namespace(env: Path) -> None:
    (env / "api").write_text("mine\n")


def link_for_namespace(env: Path) -> None:
    shutil.move(env / "ml", outside(env) / "ml")
    (env / "ml").symlink_to(outside(env) / "ml")


def link_for_environment(env: Path) -> None:
    shutil.move(env, outside(env) / "prod")
    env.symlink_to(outside(env) / "prod")


def file_for_environment(env: Path) -> None:
    shutil.rmtree(env)
    env.write_text("mine\n")


def link_for_lock(env: Path) -> None:
    shutil.move(env / LOCK, outside(env) / LOCK)
    (env / LOCK).symlink_to(outside(env) / LOCK)


def folder_for_lock(env: Path) -> None:
    (env / LOCK).unlink()
    (env / LOCK).mkdir()


def outside(env: Path) -> Path:
    folder = env.parent.parent / "outside"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.mark.parametrize(
    ("obstacle", "path"),
    [
        (folder_for_file, "ml/pytorchjob-a.yaml"),
        (pipe_for_file, "ml/pytorchjob-a.yaml"),
        (link_for_file, "ml/pytorchjob-a.yaml"),
        (dangling_link_for_file, "ml/pytorchjob-a.yaml"),
        (file_for_namespace, "api"),
        (link_for_namespace, "ml"),
        (link_for_environment, ""),
        (file_for_environment, ""),
        (link_for_lock, LOCK),
        (folder_for_lock, LOCK),
    ],
)
def test_obstacles_are_reported_and_neither_followed_nor_removed(
    env: Path, obstacle: Callable[[Path], None], path: str
) -> None:
    obstacle(env)
    before = states(env.parent.parent)
    drift = write(env, NEW)

    assert [where for where, _ in drift.foreign] == [path]
    assert rendered_tree.compare_tree(env, NEW) == drift
    assert states(env.parent.parent) == before


def test_stale_files_behind_a_symlink_are_kept(env: Path) -> None:
    link_for_namespace(env)
    write(env, {"web/tfjob-c.yaml": "c: 1\n"})

    assert sorted(tree(outside(env))) == ["ml/pytorchjob-a.yaml", "ml/pytorchjob-b.yaml"]
    assert (env / "ml").is_symlink()
    assert locked(env) == {"web/tfjob-c.yaml"}


def test_output_folder_may_be_a_symlink(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to("real")
    rendered_tree.write_tree(tmp_path / "out", {"prod": OLD})

    assert tree(tmp_path / "real" / "prod") == OLD


def test_symlinked_staging_folder_is_removed_and_not_followed(env: Path) -> None:
    (outside(env) / "precious").write_text("mine\n")
    (env / STAGE).symlink_to(outside(env))
    write(env, NEW)

    assert tree(outside(env)) == {"precious": "mine\n"}
    assert tree(env) == NEW


@pytest.mark.parametrize("wanted", [OLD, NEW], ids=["nothing-to-do", "something-to-do"])
def test_staging_folder_of_a_dead_run_is_cleared(env: Path, wanted: dict[str, str]) -> None:
    (env / STAGE).mkdir()
    (env / STAGE / "0").write_text("half a fi")
    write(env, wanted)

    assert tree(env) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"version": 2, "files": {}}',
        '{"files": {}}',
        '{"version": 1}',
        '{"version": 1, "files": []}',
        '{"version": 1, "files": {"ml/pytorchjob-a.yaml": 5}}',
        "[" * 100_000,
        "\ud800",
    ],
    ids=range(11),
)
def test_unreadable_lock_stops_the_write(env: Path, text: str) -> None:
    (env / LOCK).write_bytes(text.encode("utf-8", "surrogatepass"))
    before = states(env)
    drift = write(env, NEW)

    assert [path for path, _ in drift.foreign] == [LOCK]
    assert states(env) == before


def test_conflicted_lock_in_a_tree_is_merged(env: Path) -> None:
    ours, theirs = (env / LOCK).read_text(), compute_digest("theirs\n")
    (env / LOCK).write_text(ours.replace('    "ml/pytorchjob-b.yaml', '<<<<<<< HEAD\n    "ml/pytorchjob-b.yaml', 1))
    conflict = (
        (env / LOCK)
        .read_text()
        .replace('    "web/', f'=======\n    "x/y.yaml": "{theirs}",\n>>>>>>> theirs\n    "web/')
    )
    (env / LOCK).write_text(conflict)
    (env / "x").mkdir()
    (env / "x/y.yaml").write_text("theirs\n")

    assert rendered_tree.compare_tree(env, OLD).stale == ("x/y.yaml",)
    assert write(env, NEW).stale == ("ml/pytorchjob-b.yaml", "web/tfjob-c.yaml", "x/y.yaml")
    assert tree(env) == NEW


def test_conflicted_lock_with_an_invalid_entry_stops_the_write(env: Path) -> None:
    (env / LOCK).write_text(f'<<<<<<< a\n"\\x": "{"0" * 64}"\n')

    assert [path for path, _ in write(env, NEW).foreign] == [LOCK]


def test_stale_file_that_jobgen_did_not_write_is_kept(env: Path) -> None:
    """A lock file is text in a repository; only the content of a file shows that jobgen wrote it."""
    lock = json.loads((env / LOCK).read_text())
    lock["files"]["mine/hand.yaml"] = "0" * 64
    (env / LOCK).write_text(json.dumps(lock))
    (env / "mine").mkdir()
    (env / "mine/hand.yaml").write_text("by hand\n")
    before = states(env)

    assert [path for path, _ in write(env, NEW).foreign] == ["mine/hand.yaml"]
    assert states(env) == before


def test_lock_in_a_jobs_repository_owns_no_sources(tmp_path: Path) -> None:
    texts = {"jobs/a.yaml": "a\n", "policies/x.yaml": "x\n", ".gitattributes": "* text\n", "kustomization.yaml": "k\n"}
    for path, text in texts.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    files = {**dict.fromkeys(texts, "0" * 64), "jobs/a.yaml": compute_digest("a\n")}
    (tmp_path / LOCK).write_text(json.dumps({"version": 1, "files": files}))
    write(tmp_path, NEW)

    assert {path: (tmp_path / path).read_text() for path in texts} == texts


def test_huge_files_of_a_tree_are_not_read(env: Path) -> None:
    listed = next(path for path in json.loads((env / LOCK).read_text())["files"] if "/" in path)
    os.truncate(env / listed, 8 << 30)

    assert [fault.path for fault in tree_faults.find_tree_faults(env.parent)] == [f"{env.name}/{listed}"]
    os.truncate(env / LOCK, 8 << 30)
    assert [path for path, _ in write(env, NEW).foreign] == [LOCK]


def test_reformatted_lock_is_rewritten(env: Path) -> None:
    canonical = (env / LOCK).read_text()
    (env / LOCK).write_text(json.dumps(json.loads(canonical)))

    assert write(env, OLD) == Drift(changed=(LOCK,))
    assert (env / LOCK).read_text() == canonical


def test_lock_entries_for_unmanaged_files_are_ignored(env: Path) -> None:
    for path in (
        "../../outside.yaml",
        "README.md",
        "ml/.hidden.yaml",
        ".git/config.yaml",
        "ml/run.sh",
        "ml/deep/er.yaml",
    ):
        (env / path).parent.mkdir(parents=True, exist_ok=True)
        (env / path).write_text("mine\n")
    claims = [
        *tree(env),
        "../../outside.yaml",
        str(env.parent.parent / "outside.yaml"),
        LOCK,
        "ml",
        ".",
        "",
        "ml/\0.yaml",
    ]
    claims += ["ml/../../../outside.yaml", "ml/..", "../x.yaml", "ml//x.yaml", "ml\\x.yaml", "deep/er.yaml"]
    (env / LOCK).write_text(json.dumps({"version": 1, "files": dict.fromkeys(claims, "0" * 64)}))
    drift = write(env, OLD)

    assert drift.stale == ()
    assert (env.parent.parent / "outside.yaml").read_text() == "mine\n"
    assert tree(env) == {
        **OLD,
        **dict.fromkeys(("README.md", "ml/.hidden.yaml", ".git/config.yaml", "ml/run.sh", "ml/deep/er.yaml"), "mine\n"),
    }


def test_lock_entry_of_a_folder_is_dropped(env: Path) -> None:
    (env / "ml/pytorchjob-b.yaml").unlink()
    (env / "ml/pytorchjob-b.yaml").mkdir()
    write(env, NEW)

    assert tree(env) == NEW
    assert (env / "ml/pytorchjob-b.yaml").is_dir()


def test_partial_write_keeps_other_files_and_entries(env: Path) -> None:
    (env / "web/tfjob-c.yaml").write_text("edited by hand\n")
    drift = write(env, {"ml/pytorchjob-a.yaml": "a: 2\n", "api/mpijob-e.yaml": "e: 1\n"}, partial=True)

    assert drift == Drift(missing=("api/mpijob-e.yaml",), changed=("ml/pytorchjob-a.yaml",))
    assert locked(env) == {*OLD, "api/mpijob-e.yaml"}
    assert tree(env) == {
        **OLD,
        "ml/pytorchjob-a.yaml": "a: 2\n",
        "api/mpijob-e.yaml": "e: 1\n",
        "web/tfjob-c.yaml": "edited by hand\n",
    }


def test_lock_in_the_output_folder_marks_the_default_environment(tmp_path: Path) -> None:
    rendered_tree.write_tree(tmp_path, {"": OLD})
    assert rendered_tree.find_environments(tmp_path) == [""]

    rendered_tree.write_tree(tmp_path, {"": {}, "ml": NEW})
    assert rendered_tree.find_environments(tmp_path) == ["ml"]
    assert tree(tmp_path) == {f"ml/{path}": text for path, text in NEW.items()}


def test_symlinks_and_unmanaged_folders_are_no_environments(env: Path) -> None:
    (env.parent / "linked").symlink_to("prod")
    (env.parent / "other").mkdir()
    (env.parent / "file").touch()

    assert rendered_tree.find_environments(env.parent) == ["prod"]
    assert rendered_tree.find_environments(env.parent / "nowhere") == []


def failing(call: Callable[..., object], number: int) -> Callable[..., object]:
    """A call that fails as if the disk were full, from its n-th time on."""
    calls = 0

    def instead(*arguments: object, **named: object) -> object:
        nonlocal calls
        calls += 1
        if calls > number:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(arguments[0]))
        return call(*arguments, **named)

    return instead


@pytest.mark.parametrize("number", range(5))
def test_disk_failure_between_two_files_leaves_each_old_or_new(
    env: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", failing(os.replace, number))
        with pytest.raises(IncompleteWriteError, match="No space left on device"):
            write(env, NEW)
    after = tree(env)

    assert all(after[path] in (OLD.get(path), NEW.get(path)) for path in after)
    assert OLD.keys() - NEW.keys() <= after.keys() or NEW.items() <= after.items()
    assert after.keys() <= locked(env)
    write(env, NEW)
    assert tree(env) == NEW
    assert not rendered_tree.compare_tree(env, NEW)


@pytest.mark.parametrize("number", range(5))
def test_full_disk_before_the_first_replacement_changes_nothing(
    env: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    before = {path: state for path, state in states(env).items() if Path(path).is_file()}
    with monkeypatch.context() as patched:
        patched.setattr(rendered_tree, "open", failing(open, number), raising=False)
        with pytest.raises(OSError, match="No space left on device"):
            write(env, NEW)

    assert {path: state for path, state in states(env).items() if Path(path).is_file()} == before
    assert not (env / STAGE).exists()


JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  framework: pytorch
  image: train:1
"""
OVERLAY = """\
apiVersion: jobgen.dev/v1
kind: Overlay
spec:
  defaults: {{env: {{VERSION: {version}}}}}
"""


def make_repo(root: Path, jobs: int, version: str = "one") -> Path:
    """Jobs in three namespaces, ten to a file, and an overlay that all of them show."""
    (root / "jobs").mkdir(parents=True)
    (root / "overlays/prod").mkdir(parents=True)
    texts = [JOB.format(name=f"job-{number}", namespace=f"ml-{number % 3}") for number in range(jobs)]
    for start in range(0, jobs, 10):
        (root / f"jobs/{start}.yaml").write_text("---\n".join(texts[start : start + 10]))
    set_version(root, version)
    return root


def set_version(root: Path, version: str) -> None:
    (root / "overlays/prod/overlay.yaml").write_text(OVERLAY.format(version=version))


def start(repo: Path, *arguments: str, **named: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "jobgen", "render", *arguments]
    return subprocess.Popen(command, cwd=repo, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **named)


def render(repo: Path, *arguments: str, **named: object) -> tuple[int, str, str]:
    if not named:
        done = run_jobgen_text(repo, "render", *arguments)
        return done.returncode, done.stdout, done.stderr
    with start(repo, *arguments, **named) as run:
        out, err = run.communicate(timeout=300)
    return run.returncode, out, err


def versions(repo: Path) -> dict[str, dict[str, str]]:
    """The whole trees of both versions, rendered apart."""
    trees = {}
    for version in ("one", "two"):
        set_version(repo, version)
        assert render(repo, "-o", f"../{version}")[0] == 0
        trees[version] = tree(repo.parent / version / "prod")
    return trees


def at_random(_: Path, rng: random.Random, length: float) -> None:
    time.sleep(rng.uniform(0, length))


def while_writing(env: Path, rng: random.Random, length: float) -> None:
    """Wait until files are staged, and then some: the run is at its most delicate."""
    deadline = time.monotonic() + 300
    while not (env / STAGE).exists() and time.monotonic() < deadline:
        time.sleep(0.0005)
    time.sleep(rng.uniform(0, length / 10))


@pytest.mark.parametrize("moment", [at_random, while_writing])
def test_killed_run_leaves_whole_files_and_the_next_run_repairs(
    tmp_path: Path, moment: Callable[[Path, random.Random, float], None], stress: int
) -> None:
    repo, env = make_repo(tmp_path / "repo", 100), tmp_path / "out" / "prod"
    trees = versions(repo)
    began = time.monotonic()
    assert render(repo, "-o", "../out")[0] == 0
    length, rng, caught = time.monotonic() - began, random.Random(moment.__name__), 0
    for attempt in range(100 * stress):
        if attempt >= 4 * stress and (caught or moment is at_random):
            # On a busy machine, a run can end before it is killed.
            break
        was, becomes = ("two", "one") if attempt % 2 == 0 else ("one", "two")
        set_version(repo, becomes)
        with start(repo, "-o", "../out", start_new_session=True) as run:
            moment(env, rng, length)
            os.killpg(run.pid, signal.SIGKILL)
        caught += (env / STAGE).exists()
        left = {path: text for path, text in tree(env).items() if not path.startswith(STAGE)}

        assert left.keys() == trees[was].keys()
        assert all(text in (trees[was][path], trees[becomes][path]) for path, text in left.items())
        assert render(repo, "-o", "../out")[0] == 0
        assert tree(env) == trees[becomes]
        assert render(repo, "-o", "../out", "--check")[0] == 0
    assert caught or moment is at_random


def test_concurrent_runs_wait_for_each_other(tmp_path: Path) -> None:
    one, two = make_repo(tmp_path / "first", 60), make_repo(tmp_path / "second", 60)
    trees = versions(one)
    set_version(one, "one")
    set_version(two, "two")
    runs = [start(repo, "-o", "../out") for repo in (one, two, one, two)]
    ends = [(run.communicate(timeout=300), run.returncode) for run in runs]

    assert [code for _, code in ends] == [0, 0, 0, 0]
    assert tree(tmp_path / "out" / "prod") in list(trees.values())
    assert 0 in (render(repo, "-o", "../out", "--check")[0] for repo in (one, two))


def without_privileges() -> None:
    LIBC.prctl(DROP_CAPABILITY, OVERRIDE_PERMISSIONS, 0, 0, 0)


def with_small_files_only() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))


def test_unwritable_folder_is_reported_and_completed_later(tmp_path: Path) -> None:
    repo, env = make_repo(tmp_path / "repo", 9), tmp_path / "out" / "prod"
    trees = versions(repo)
    set_version(repo, "one")
    render(repo, "-o", "../out")
    set_version(repo, "two")
    (env / "ml-1").chmod(0o555)
    code, out, err = render(repo, "-o", "../out", preexec_fn=without_privileges)
    (env / "ml-1").chmod(0o755)
    left = tree(env)

    assert (code, out) == (4, "")
    assert (
        err == "jobgen: ../out/prod/ml-1/pytorchjob-job-1.yaml: Permission denied; the next run will finish the tree\n"
    )
    assert {path for path in left if left[path] != trees["one"][path]} == {
        f"ml-0/pytorchjob-job-{number}.yaml" for number in (0, 3, 6)
    }
    assert render(repo, "-o", "../out")[0] == 0
    assert tree(env) == trees["two"]


def test_file_over_the_size_limit_is_noticed_before_writing(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", 3)
    render(repo, "-o", "../out")
    before = states(tmp_path / "out")
    set_version(repo, "x" * 2000)
    code, out, err = render(repo, "-o", "../out", preexec_fn=with_small_files_only)

    assert (code, out) == (4, "")
    assert err.startswith("jobgen: ")
    assert err.endswith(": File too large; nothing was written\n")
    assert {path: state for path, state in states(tmp_path / "out").items() if Path(path).is_file()} == {
        path: state for path, state in before.items() if Path(path).is_file()
    }


def shuffled(repo: Path, rng: random.Random) -> Iterator[None]:
    """The same jobs in other files and in another order, again and again."""
    documents = [text for path in (repo / "jobs").iterdir() for text in path.read_text().split("---\n")]
    for _ in range(4):
        rng.shuffle(documents)
        shutil.rmtree(repo / "jobs")
        (repo / "jobs").mkdir()
        for document in documents:
            with (repo / f"jobs/{rng.randrange(8)}.yaml").open("a") as stream:
                stream.write(f"---\n{document}")
        yield


def test_tree_bytes_are_independent_of_file_order_and_hash_seed(tmp_path: Path) -> None:
    repo, rng = make_repo(tmp_path / "repo", 40), random.Random("order")
    _, stream, _ = render(repo)
    render(repo, "-o", "../out")
    before = states(tmp_path / "out")
    for number, _ in enumerate(shuffled(repo, rng)):
        seeded = {**os.environ, "PYTHONHASHSEED": str(number)}

        assert render(repo, env=seeded) == (0, stream, "")
        assert render(repo, "-o", "../out", env=seeded)[0] == 0
    assert states(tmp_path / "out") == before


def test_files_of_a_removed_environment_are_removed(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", 3)
    shutil.copytree(repo / "overlays/prod", repo / "overlays/qa")
    render(repo, "-o", "../out")
    shutil.rmtree(repo / "overlays/qa")

    assert render(repo, "-o", "../out", "--check")[0] == 1
    assert render(repo, "-e", "prod", "-o", "../out")[0] == 0
    assert rendered_tree.find_environments(tmp_path / "out") == ["prod", "qa"]
    assert render(repo, "-o", "../out", "--allow-empty")[2] == "3 objects: 0 written, 3 unchanged, 3 removed\n"
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["prod"]


def test_files_of_an_unselected_environment_are_kept(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", 3)
    shutil.copytree(repo / "overlays/prod", repo / "overlays/qa")
    render(repo, "-o", "../out")
    (repo / "jobgen.yaml").write_text("environments: [prod]\n")

    assert render(repo, "-o", "../out")[2] == "3 objects: 0 written, 3 unchanged, 0 removed\n"
    assert rendered_tree.find_environments(tmp_path / "out") == ["prod", "qa"]


def test_first_overlay_moves_the_tree(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", 3)
    shutil.move(repo / "overlays", tmp_path / "later")
    render(repo, "-o", "../out")
    assert rendered_tree.find_environments(tmp_path / "out") == [""]

    shutil.move(tmp_path / "later", repo / "overlays")
    render(repo, "-o", "../out", "--allow-empty")
    assert rendered_tree.find_environments(tmp_path / "out") == ["prod"]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["prod"]


def test_repository_without_jobs_does_not_empty_the_tree(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", 3)
    render(repo, "-o", "../out")
    before = states(tmp_path / "out")
    shutil.rmtree(repo / "jobs")

    code, out, err = render(repo, "-o", "../out")
    assert (code, out, err.splitlines()[0]) == (
        3,
        "",
        "jobgen: there is no job under jobs/; write one with `jobgen new NAME`",
    )
    assert states(tmp_path / "out") == before


def test_check_lists_a_hundred_files_and_counts_the_others(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", 150)
    code, out, err = render(repo, "-o", "../out", "--check")
    listed = [line for line in err.splitlines() if line.endswith(": missing")]
    assert (code, out, len(listed)) == (1, "", 100)
    # The objects, the kustomization, the attributes and the lock file.
    assert err.splitlines()[-2:] == [
        "and 52 more files",
        "jobgen: the tree is not up to date; run `jobgen render -o ../out`",
    ]


def test_a_later_commit_that_renders_the_same_leaves_the_lock_as_it_is(tmp_path: Path) -> None:
    """A tree in another work tree names the commit of its sources, and is not changed by the next one."""
    sources, deployed = (Repository(make_folder(tmp_path / name), tmp_path / "home") for name in ("jobs", "deployed"))
    (sources.folder / "overlays/prod").mkdir(parents=True)
    overlay = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {namespace: ml}\n"
    (sources.folder / "overlays/prod/o.yaml").write_text(overlay)
    (sources.folder / "jobs").mkdir()
    job = "apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata: {name: a}\n"
    (sources.folder / "jobs/a.yaml").write_text(job + "spec: {framework: pytorch, image: 'example.com/a:1'}\n")
    lock = deployed.folder / "rendered/prod" / LOCK

    def render_commit() -> tuple[str, bytes]:
        sources.commit()
        assert sources.jobgen("render", "-o", "../deployed/rendered").returncode == 0
        commit = sources.run("git", "rev-parse", "HEAD").stdout.strip()
        return commit, lock.read_bytes()

    first, before = render_commit()
    (sources.folder / "README.md").write_text("# Jobs\n")
    second, same = render_commit()
    (sources.folder / "jobs/a.yaml").write_text(job + "spec: {framework: pytorch, image: 'example.com/a:2'}\n")
    third, after = render_commit()

    assert len({first, second, third}) == 3
    assert same == before
    assert (first.encode() in before, third.encode() in after) == (True, True)


def make_folder(folder: Path) -> Path:
    folder.mkdir()
    return folder

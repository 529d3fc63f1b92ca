"""Full disks, unwritable folders, killed and concurrent runs: each file has its old or its new content."""

from __future__ import annotations

import ctypes
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from jobgenprocess import run_jobgen
from sampling import sample

from jobgen.cli.run_lint import BASELINE
from jobgen.repo.atomic import replace_file

LIBC = ctypes.CDLL(None)
DROP_CAPABILITY, OVERRIDE_PERMISSIONS = 24, 1
# An error that can be fixed, and enough text to interrupt a write.
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: job-{number}, namespace: ml}}
spec:
  framework: pytorch
  image: train:1 # jobgen: ignore[mutable-image-tag] -- it was once
# {comment}
"""
MANIFEST = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: new, namespace: ml, annotations: {text: %s}}
spec: {pytorchReplicaSpecs: {Master: {template: {spec: {containers: [{name: pytorch, image: 'a:1'}]}}}}}
"""
CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: x}
spec:
  group: example.com
  names: {kind: Dance}
  versions: [{name: v1, schema: {openAPIV3Schema: {type: object, properties: {x: {enum: [%s]}}}}}]
"""
LONG = "x" * 12_000


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    (root / "jobs").mkdir(parents=True)
    (root / "jobgen.yaml").write_text("")
    for number in range(6):
        (root / f"jobs/{number}.yaml").write_text(JOB.format(number=number, comment=LONG))
    (root / "new").mkdir()
    (tmp_path / "manifest.yaml").write_text(MANIFEST % LONG)
    (tmp_path / "crd.yaml").write_text(CRD % LONG)
    return root


def start(root: Path, *words: str, **named: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "jobgen", "--no-cache", *words]
    return subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **named)


def run(root: Path, *words: str) -> tuple[int, str]:
    done = run_jobgen(root, "--no-cache", *words)
    return done.returncode, done.stderr.decode()


def run_in_trouble(root: Path, trouble: Callable[[], None], *words: str) -> tuple[int, str]:
    """Run a command with a pipe for its output, so that only what it writes to files fails."""
    with start(root, *words, preexec_fn=trouble) as process:
        _, err = process.communicate(timeout=300)
    return process.returncode, err


def state(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def full_disk() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))


def no_rights() -> None:
    LIBC.prctl(DROP_CAPABILITY, OVERRIDE_PERMISSIONS, 0, 0, 0)


COMMANDS = {
    "fix": ("lint", "--fix"),
    "baseline": ("lint", "--write-baseline"),
    "crd": ("schema", "import", "../crd.yaml"),
    "import": ("import", "../manifest.yaml", "-o", "jobs/new"),
    "init": ("-C", "new", "init"),
    "render": ("render", "-o", "rendered"),
    "editor": ("schema", "editor"),
    "report": ("report", "-o", "site"),
}


@pytest.mark.parametrize("trouble", [full_disk, no_rights])
@pytest.mark.parametrize("command", sample(COMMANDS, 2))
def test_disk_errors_are_reported_and_leave_files_unchanged(
    repository: Path, command: str, trouble: Callable[[], None]
) -> None:
    if trouble is full_disk and command in ("baseline", "render"):
        for number in range(6, 90):
            (repository / f"jobs/{number}.yaml").write_text(JOB.format(number=number, comment=""))
    before = state(repository)
    folders = [repository, *(path for path in repository.rglob("*") if path.is_dir())]
    if trouble is no_rights:
        for folder in folders:
            folder.chmod(0o555)
    code, said = run_in_trouble(repository, trouble, *COMMANDS[command])
    for folder in folders:
        folder.chmod(0o755)
    after = state(repository)

    assert "internal error" not in said
    assert "Traceback" not in said
    assert code == 4, said
    assert any(word in said for word in ("File too large", "Permission denied")), said
    # Files that were there are untouched, and those that are new are whole.
    assert {path: content for path, content in after.items() if path in before} == before
    assert not [path for path in after if ".jobgen-" in path]
    assert run(repository, *COMMANDS[command])[0] in (0, 1)


def test_killed_fix_leaves_each_file_old_or_new(repository: Path, stress: int) -> None:
    old = state(repository)
    began = time.monotonic()
    assert run(repository, "lint", "--fix")[0] in (0, 1)
    length, new, rng = time.monotonic() - began, state(repository), random.Random(8)
    assert old != new
    for attempt in range(3 * stress):
        for path, content in old.items():
            (repository / path).write_bytes(content)
        with start(repository, "lint", "--fix", start_new_session=True) as process:
            # Files are put in their places at the end.
            time.sleep(rng.uniform(0.3 if attempt % 3 else 0, length))
            os.killpg(process.pid, signal.SIGKILL)
        left = {path: content for path, content in state(repository).items() if "/.jobgen-" not in path}

        assert left.keys() == old.keys()
        assert all(content in (old[path], new[path]) for path, content in left.items())
    run(repository, "lint", "--fix")
    assert {path: content for path, content in state(repository).items() if "/.jobgen-" not in path} == new


def test_who_reads_a_file_while_it_is_replaced_has_all_of_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_bytes(b"old" * 1000)
    with path.open("rb", buffering=0) as reader:
        replace_file(path, b"new", tmp_path)
        assert reader.read() == b"old" * 1000

    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["jobs.yaml"]


@pytest.mark.stress
def test_concurrent_fixes(repository: Path, tmp_path: Path, stress: int) -> None:
    old = state(repository)
    run(repository, "lint", "--fix")
    new = state(repository)
    for _ in range(stress):
        for path, content in old.items():
            (repository / path).write_bytes(content)
        runs = [
            start(repository, *words) for words in (("lint", "--fix"), ("lint", "--fix"), ("render", "-o", "../out"))
        ]
        ends = [(process.communicate(timeout=300)[1], process.returncode) for process in runs]

        assert all(code in (0, 1) and "internal error" not in said for said, code in ends), ends
        assert state(repository) == new


def test_concurrent_baseline_writes(repository: Path) -> None:
    runs = [start(repository, "lint", "--write-baseline") for _ in range(3)]
    ends = [(process.communicate(timeout=300)[1], process.returncode) for process in runs]

    assert [code for _, code in ends] == [0, 0, 0]
    assert run(repository, "lint", "--baseline", BASELINE)[0] == 0

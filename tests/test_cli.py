"""The whole program: transcripts in cli/ (see transcripts.py), and what a transcript cannot show."""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import jobgen, run_transcript
from transcripts import REPOSITORIES, find_transcripts

from jobgen.cli.pages import SITE

TRANSCRIPTS = find_transcripts("cli")
ONE_JOB = REPOSITORIES / "one-job"
TREE = "rendered"


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_cli_transcript(path: Path, tmp_path: Path, accept: bool) -> None:
    output, expected = run_transcript(path, tmp_path / "repo", accept=accept)

    assert output == expected


@pytest.fixture
def many_jobs(tmp_path: Path) -> Path:
    """A repository whose manifests are larger than the buffer of a pipe."""
    job = (ONE_JOB / "jobs/bert.yaml").read_text()
    (tmp_path / "jobs").mkdir()
    for number in range(300):
        (tmp_path / f"jobs/{number}.yaml").write_text(job.replace("name: bert", f"name: bert-{number}"))
    return tmp_path


@pytest.mark.parametrize("arguments", [["render"], ["--help"], ["lint", "--help"]])
def test_closed_pipe_is_reported_by_the_exit_code_alone(many_jobs: Path, arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "jobgen", *arguments]
    with os.fdopen(writer, "wb") as stdout:
        done = subprocess.run(
            command, cwd=many_jobs, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )

    assert done.returncode == 4
    assert done.stderr == ""


def test_full_disk_behind_stdout_is_reported_in_one_line(many_jobs: Path) -> None:
    command = f"{shlex.join([sys.executable, '-m', 'jobgen', 'render'])} > /dev/full"
    done = subprocess.run(
        ["bash", "-c", command], cwd=many_jobs, capture_output=True, text=True, timeout=60, check=False
    )

    assert done.returncode == 4
    assert done.stderr == "jobgen: the output cannot be written: No space left on device\n"


def test_closed_stdout_is_an_error(many_jobs: Path) -> None:
    command = f"{shlex.join([sys.executable, '-m', 'jobgen', 'render'])} >&-"
    done = subprocess.run(
        ["bash", "-c", command], cwd=many_jobs, capture_output=True, text=True, timeout=60, check=False
    )

    assert done.returncode == 4
    assert done.stderr == "jobgen: the output cannot be written: standard output is closed\n"


def test_interrupt_prints_nothing_and_leaves_no_files(many_jobs: Path) -> None:
    (many_jobs / TREE).mkdir()
    held = os.open(many_jobs / TREE, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    command = [sys.executable, "-m", "jobgen", "render", "-o", TREE]
    with subprocess.Popen(
        command,
        cwd=many_jobs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=restore_interrupts,  # noqa: PLW1509
    ) as run:
        try:
            wait_until_blocked_on_lock(run.pid)
            run.send_signal(signal.SIGINT)
            out, err = run.communicate(timeout=300)
        finally:
            run.kill()
    os.close(held)

    assert (run.returncode, out, err.strip()) == (130, b"", b"")
    assert list((many_jobs / TREE).iterdir()) == []


def restore_interrupts() -> None:
    """Undo that a test suite in the background, and so its children, ignore interrupts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_until_blocked_on_lock(pid: int) -> None:
    """Wait until a process waits for a lock that another process holds."""
    deadline = time.monotonic() + 300
    while not re.search(rf"-> FLOCK .* {pid} ", Path("/proc/locks").read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_output_is_utf_8_in_any_locale(tmp_path: Path) -> None:
    repo = shutil.copytree(ONE_JOB, tmp_path / "repo")
    text = (repo / "jobs/bert.yaml").read_text().replace("framework:", "description: für später →\n  framework:")
    (repo / "jobs/bert.yaml").write_text(text)
    plain = jobgen(repo, "render")
    narrow = jobgen(repo, "render", LC_ALL="C", PYTHONIOENCODING="ascii", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")

    assert "für später →".encode() in plain.stdout
    assert (narrow.returncode, narrow.stdout, narrow.stderr) == (0, plain.stdout, b"")


@pytest.mark.parametrize(
    "arguments", ["lint", "lint jobs", "lint jobs/a.yaml nowhere.yaml", "lint jobs -e prod", "lin jobs"]
)
def test_lint_output_is_the_same_with_and_without_the_directory_option(arguments: str, tmp_path: Path) -> None:
    repo = shutil.copytree(ONE_JOB, tmp_path / "repo")
    plain = jobgen(repo, *arguments.split())
    whole = jobgen(repo, "-C", ".", *arguments.split())

    assert (plain.returncode, plain.stdout, plain.stderr) == (whole.returncode, whole.stdout, whole.stderr)


def test_unwritable_github_summary_is_reported_and_keeps_the_exit_code(tmp_path: Path) -> None:
    repo = shutil.copytree(ONE_JOB, tmp_path / "repo")
    done = jobgen(repo, "lint", "--format", "github", GITHUB_STEP_SUMMARY=str(tmp_path))

    assert done.returncode == jobgen(repo, "lint", "--format", "github").returncode
    assert done.stderr.endswith(b"jobgen: the summary cannot be written: Is a directory\n")


CLOSED = "jobgen: standard input is closed; pipe or redirect something to it\n"
GONE = "jobgen: the current folder does not exist; change to another one\n"


@pytest.mark.parametrize(
    ("shell", "code", "stderr"),
    [
        ("{jobgen} lint - <&-", 2, f"{CLOSED}see: {SITE}/lint.md\n"),
        ("{jobgen} --help > /dev/full", 4, "jobgen: the output cannot be written: No space left on device\n"),
        ("{jobgen} lint 2> /dev/full", 4, ""),
        (
            "mkdir gone; cd gone; rmdir ../gone; {jobgen} lint",
            2,
            GONE,
        ),
    ],
)
def test_unusual_stdin_stdout_and_directory(shell: str, code: int, stderr: str, tmp_path: Path) -> None:
    repo = shutil.copytree(ONE_JOB, tmp_path / "repo")
    script = shell.format(jobgen=f"{shlex.quote(sys.executable)} -m jobgen")
    done = subprocess.run(["bash", "-c", script], cwd=repo, capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stderr) == (code, stderr)


def test_the_choices_of_a_missing_argument_are_one_line(tmp_path: Path) -> None:
    done = jobgen(tmp_path, "completion")

    assert done.returncode == 2
    message, *rest = done.stderr.decode().splitlines()
    assert message == "jobgen: `{bash|zsh|fish}` is missing; write `jobgen completion bash`"
    assert all(line.startswith("see: ") for line in rest)

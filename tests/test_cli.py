"""Stories of the whole program.

A story is a folder under cli/: a repository in `repo`, the arguments in `cmd`, the folder to stand in in `cwd` if it is
not the repository's own; and what comes of it in `stdout`, `stderr` and `code`. Where a story writes a tree, it is
compared with `tree`.
"""

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

STORIES = sorted(path for path in (Path(__file__).parent / "cli").iterdir() if path.is_dir())
EXAMPLE = Path(__file__).parent / "cli" / "one-job" / "repo"
TREE = "rendered"


def jobgen(cwd: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[bytes]:
    """The real command, with nothing of the surroundings that could show."""
    environment = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH", "HOME")}
    return subprocess.run(
        [sys.executable, "-m", "jobgen", *arguments],
        cwd=cwd,
        env={**environment, **settings},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
        check=False,
    )


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_a_story_comes_out_as_told(story: Path, tmp_path: Path, accept: bool) -> None:
    repo = shutil.copytree(story / "repo", tmp_path / "repo")
    cwd = repo / (story / "cwd").read_text().strip() if (story / "cwd").exists() else repo
    done = jobgen(cwd, *shlex.split((story / "cmd").read_text()))
    came = {"stdout": done.stdout, "stderr": done.stderr, "code": f"{done.returncode}\n".encode()}
    tree = files_below(repo / TREE)
    if accept:
        accept_story(story, came, tree)

    assert {name: (story / name).read_bytes() for name in came} == came
    if (story / "tree").exists():
        assert files_below(story / "tree") == tree
    else:
        assert files_below(story / "repo" / TREE) == tree


def accept_story(story: Path, came: dict[str, bytes], tree: dict[str, bytes]) -> None:
    for name, content in came.items():
        (story / name).write_bytes(content)
    shutil.rmtree(story / "tree", ignore_errors=True)
    if tree != files_below(story / "repo" / TREE):
        for path, content in tree.items():
            (story / "tree" / path).parent.mkdir(parents=True, exist_ok=True)
            (story / "tree" / path).write_bytes(content)


@pytest.fixture
def many_jobs(tmp_path: Path) -> Path:
    """A repository whose manifests fill more than a pipe."""
    job = (EXAMPLE / "jobs/bert.yaml").read_text()
    (tmp_path / "jobs").mkdir()
    for number in range(300):
        (tmp_path / f"jobs/{number}.yaml").write_text(job.replace("name: bert", f"name: bert-{number}"))
    return tmp_path


def test_a_reader_that_has_seen_enough_is_no_fault(many_jobs: Path) -> None:
    command = shlex.join([sys.executable, "-m", "jobgen", "render"])
    piped = f"{command} | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", piped], cwd=many_jobs, capture_output=True, text=True, timeout=30, check=False)

    assert done.stdout == "apiVersion: kubeflow.org/v1\n0\n"
    assert done.stderr == ""


def test_a_full_disk_behind_the_output_is_told_in_one_line(many_jobs: Path) -> None:
    command = f"{shlex.join([sys.executable, '-m', 'jobgen', 'render'])} > /dev/full"
    done = subprocess.run(
        ["bash", "-c", command], cwd=many_jobs, capture_output=True, text=True, timeout=30, check=False
    )

    assert done.returncode == 4
    assert done.stderr == "jobgen: the output cannot be written: No space left on device\n"


def test_an_output_that_is_closed_is_no_fault(many_jobs: Path) -> None:
    command = f"{shlex.join([sys.executable, '-m', 'jobgen', 'render'])} >&-"
    done = subprocess.run(
        ["bash", "-c", command], cwd=many_jobs, capture_output=True, text=True, timeout=30, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_an_interrupted_run_says_nothing_and_leaves_nothing(many_jobs: Path) -> None:
    (many_jobs / TREE).mkdir()
    held = os.open(many_jobs / TREE, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    command = [sys.executable, "-m", "jobgen", "render", "-o", TREE]
    with subprocess.Popen(
        command,
        cwd=many_jobs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=heed_interrupts,  # noqa: PLW1509
    ) as run:
        try:
            wait_until_it_waits(run.pid)
            run.send_signal(signal.SIGINT)
            out, err = run.communicate(timeout=10)
        finally:
            run.kill()
    os.close(held)

    assert (run.returncode, out, err.strip()) == (130, b"", b"")
    assert list((many_jobs / TREE).iterdir()) == []


def heed_interrupts() -> None:
    """A test suite that runs in the background ignores interrupts, and so would its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_until_it_waits(pid: int) -> None:
    """Wait until a process stands in line for a folder that somebody else holds."""
    deadline = time.monotonic() + 30
    while not re.search(rf"-> FLOCK .* {pid} ", Path("/proc/locks").read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_output_is_utf_8_whatever_the_terminal_says(tmp_path: Path) -> None:
    repo = shutil.copytree(EXAMPLE, tmp_path / "repo")
    text = (repo / "jobs/bert.yaml").read_text().replace("framework:", "description: für später →\n  framework:")
    (repo / "jobs/bert.yaml").write_text(text)
    plain = jobgen(repo, "render")
    narrow = jobgen(repo, "render", LC_ALL="C", PYTHONIOENCODING="ascii", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")

    assert "für später →".encode() in plain.stdout
    assert (narrow.returncode, narrow.stdout, narrow.stderr) == (0, plain.stdout, b"")


@pytest.mark.parametrize(
    "words", ["lint", "lint jobs", "lint jobs/a.yaml nowhere.yaml", "lint jobs -e prod", "lin jobs"]
)
def test_a_lint_of_paths_alone_says_what_it_says_with_options(words: str, tmp_path: Path) -> None:
    repo = shutil.copytree(EXAMPLE, tmp_path / "repo")
    plain = jobgen(repo, *words.split())
    whole = jobgen(repo, "-C", ".", *words.split())

    assert (plain.returncode, plain.stdout, plain.stderr) == (whole.returncode, whole.stdout, whole.stderr)


def test_a_summary_that_cannot_be_written_is_told_and_changes_no_verdict(tmp_path: Path) -> None:
    repo = shutil.copytree(EXAMPLE, tmp_path / "repo")
    done = jobgen(repo, "lint", "--format", "github", GITHUB_STEP_SUMMARY=str(tmp_path))

    assert done.returncode == jobgen(repo, "lint", "--format", "github").returncode
    assert done.stderr.endswith(b"jobgen: the summary cannot be written: Is a directory\n")


GONE = "jobgen: the folder that this was started in is gone\n"


@pytest.mark.parametrize(
    ("shell", "code", "said"),
    [
        ("{jobgen} lint - <&-", 3, "jobgen: there is nothing to lint here\n"),
        ("{jobgen} --help > /dev/full", 4, "jobgen: the output cannot be written: No space left on device\n"),
        ("{jobgen} lint 2> /dev/full", 4, ""),
        (
            "mkdir gone; cd gone; rmdir ../gone; {jobgen} lint",
            2,
            GONE,
        ),
    ],
)
def test_odd_surroundings_end_in_a_word_or_a_code(shell: str, code: int, said: str, tmp_path: Path) -> None:
    repo = shutil.copytree(EXAMPLE, tmp_path / "repo")
    script = shell.format(jobgen=f"{shlex.quote(sys.executable)} -m jobgen")
    done = subprocess.run(["bash", "-c", script], cwd=repo, capture_output=True, text=True, timeout=30, check=False)

    assert (done.returncode, done.stderr) == (code, said)

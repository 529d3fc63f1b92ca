"""`--watch` of lint and render: real processes that run again on changes, until an interrupt."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from jobgenprocess import run_jobgen

LIMIT = 120
"""Seconds to wait for output; an idle machine needs less than one."""
WAITING = "waiting for changes; press Ctrl-C to end\n"
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}, namespace: ml}}
spec: {{framework: pytorch, image: "registry.example.com/train:{tag}", roles: {{{role}: {{}}}}}}
"""


def job(name: str, tag: str = "1", role: str = "master") -> str:
    return JOB.format(name=name, tag=tag, role=role)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "jobs").mkdir(parents=True)
    (folder / "jobgen.yaml").write_text("")
    (folder / "jobs/bert.yaml").write_text(job("bert"))
    return folder


def save(root: Path, path: str, content: str) -> None:
    """Replace or add a file in one step, as editors do, so that no run sees a part of it."""
    (root.parent / "saved").write_text(content)
    os.replace(root.parent / "saved", root / path)


class Watch:
    """A process that watches; its output is read up to the line that says that it waits."""

    def __init__(self, root: Path, *words: str, terminal: bool = False) -> None:
        self.controller, stdout = pty.openpty() if terminal else os.pipe()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "jobgen", *words, "--watch"],
            cwd=root,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stdout,
            env={**os.environ, "XDG_CACHE_HOME": str(root.parent / "cache"), "TERM": "xterm", "NO_COLOR": "1"},
            # A test suite in the background, and so its children, ignore interrupts.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
        )
        os.close(stdout)
        self.rest = ""

    def read_run(self) -> str:
        """Return what the next run prints."""
        deadline = time.monotonic() + LIMIT
        while WAITING not in self.rest:
            assert time.monotonic() < deadline, self.rest
            if select.select([self.controller], (), (), 1)[0]:
                found = os.read(self.controller, 65536)
                assert found, self.rest
                self.rest += found.decode().replace("\r\n", "\n")
        run, _, self.rest = self.rest.partition(WAITING)
        return run

    def end(self, number: int = signal.SIGINT) -> int:
        """Interrupt the process, and return its exit code; no further run was printed."""
        self.process.send_signal(number)
        code = self.process.wait(LIMIT)
        assert self.rest + self._read_rest() == ""
        return code

    def _read_rest(self) -> str:
        found = b""
        while select.select([self.controller], (), (), 0)[0]:
            try:
                part = os.read(self.controller, 65536)
            except OSError:
                break
            if not part:
                break
            found += part
        return found.decode()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.controller)


@pytest.fixture
def start(root: Path) -> Iterator[object]:
    started: list[Watch] = []

    def begin(*words: str, terminal: bool = False) -> Watch:
        started.append(Watch(root, *words, terminal=terminal))
        return started[-1]

    yield begin
    for each in started:
        each.close()


def test_lint_runs_again_on_changes_of_files_settings_and_overlays(root, start):
    watched = start("lint", "--format", "concise")
    assert "in 1 file; 1 object checked" in watched.read_run()

    save(root, "jobs/bert.yaml", job("bert", role="mester"))
    assert "jobs/bert.yaml:4" in watched.read_run()

    save(root, "jobs/bert.yaml", job("bert"))
    assert "mester" not in watched.read_run()

    (root / "jobs/deep").mkdir()
    save(root, "jobs/deep/gpt.yaml", job("gpt", tag="latest"))
    while "latest" not in watched.read_run():
        pass  # the folder may be seen before its file

    save(root, "jobgen.yaml", "rules: {mutable-image-tag: error}\n")
    assert "error: " in watched.read_run()

    (root / "jobs/deep/gpt.yaml").unlink()
    assert "in 1 file; 1 object checked" in watched.read_run()

    (root / "overlays/dev").mkdir(parents=True)
    save(root, "overlays/dev/overlay.yaml", "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {}\n")
    while "in 1 environment" not in watched.read_run():
        pass


@pytest.mark.parametrize(("role", "code"), [("master", 0), ("mester", 1)])
def test_interrupt_ends_with_the_exit_code_of_the_last_run(root, start, role, code):
    watched = start("lint")
    watched.read_run()
    save(root, "jobs/bert.yaml", job("bert", tag="2", role=role))
    watched.read_run()

    assert watched.end() == code


def test_other_signals_end_as_usual(start):
    watched = start("lint")
    watched.read_run()

    assert watched.end(signal.SIGTERM) == 128 + signal.SIGTERM


def test_a_fault_of_a_run_does_not_end_watching(root, start):
    watched = start("render")
    assert "train:1" in watched.read_run()

    save(root, "jobgen.yaml", "rules: [\n")
    assert "jobgen.yaml" in watched.read_run()
    (root / "jobgen.yaml").unlink()
    assert "train:1" in watched.read_run()
    for path in ("jobs/bert.yaml", "jobs"):
        (root / path).unlink() if path.endswith("yaml") else (root / path).rmdir()
    while "jobgen: " not in watched.read_run():
        pass
    (root / "jobs").mkdir()
    save(root, "jobs/bert.yaml", job("bert", tag="3"))
    while "train:3" not in watched.read_run():
        pass


def test_a_tree_stays_up_to_date_and_causes_no_run(root, start):
    watched = start("render", "-o", "rendered")
    tree = root / "rendered/ml/pytorchjob-bert.yaml"
    watched.read_run()
    assert "train:1" in tree.read_text()

    # Nothing is read again that has the same content.
    (root / "jobs/bert.yaml").touch()
    save(root, "jobs/bert.yaml", job("bert", tag="2"))
    while "1 written" not in watched.read_run():
        pass  # the folder of the tree is new in a folder that was read

    assert "train:2" in tree.read_text()
    assert watched.end() == 0


def test_only_a_terminal_is_cleared(start):
    shown, piped = start("lint", terminal=True), start("lint")

    assert shown.read_run().startswith("\x1b[H\x1b[2J")
    assert "\x1b" not in piped.read_run()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("lint", "--fix"), "`--watch` only reports"),
        (("lint", "--write-baseline"), "`--watch` only reports"),
        (("lint", "-"), "`--watch` only reports"),
        (("render", "-o", "x", "--check"), "`--watch` keeps a whole tree up to date"),
        (("render", "-o", "x", "--since", "HEAD"), "`--watch` keeps a whole tree up to date"),
    ],
)
def test_what_cannot_be_watched_is_refused(root, words, message):
    done = run_jobgen(root, *words, "--watch")

    assert done.returncode == 2
    assert message in done.stderr.decode()


def test_a_missing_folder_is_not_awaited(root):
    assert run_jobgen(root, "-C", "nowhere", "lint", "--watch").returncode == 2

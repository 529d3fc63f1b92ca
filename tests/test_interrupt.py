"""Long runs on a terminal: the progress is one line that is erased, and an interrupt leaves nothing behind."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from jobgen.cli.result import ProgressLine, can_show

JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: job-{number}, namespace: ml}}
spec: {{framework: pytorch, image: "registry.example.com/bert:{number}", roles: {{master: {{}}}}}}
"""
OVERLAY = "apiVersion: jobgen.dev/v1\nkind: Overlay\nmetadata: {{name: {name}}}\nspec: {{}}\n"
# Progress is shown after two seconds, in which two cores lint thousands of files; here it is shown earlier.
RUN = "from jobgen.cli import main, result; result._DELAY = 0.2; main.main()"
LINE = re.compile(rb"[\d,]+ of [\d,]+ files(?:, about \d+ (?:s|min) left|, finishing)?")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("fleet")
    for name in ("dev", "prod"):
        (root / "overlays" / name).mkdir(parents=True)
        (root / "overlays" / name / "overlay.yaml").write_text(OVERLAY.format(name=name))
    (root / "jobs").mkdir()
    (root / "jobgen.yaml").write_text("")
    for number in range(600):
        (root / f"jobs/{number}.yaml").write_text(JOB.format(number=number))
    return root


class Session:
    """A command whose standard error is a terminal."""

    def __init__(self, folder: Path, *arguments: str, hangup: Any = signal.SIG_DFL) -> None:
        controller, terminal = pty.openpty()
        self.controller = controller
        command = [sys.executable, "-c", RUN, "--no-cache", *arguments]
        plain = {name: value for name, value in os.environ.items() if name not in ("CI", "NO_COLOR")}
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=terminal,
            env={**plain, "TERM": "xterm"},
            start_new_session=True,
            # A test suite in the background, and so its children, ignore interrupts.
            preexec_fn=lambda: (signal.signal(signal.SIGINT, signal.SIG_DFL), signal.signal(signal.SIGHUP, hangup)),  # noqa: PLW1509
        )
        os.close(terminal)
        self.shown = b""

    def read(self, seconds: float, until: re.Pattern[bytes] | None = None) -> bool:
        """Read the terminal until it shows a pattern, or is closed; return whether the pattern was shown."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if select.select([self.controller], (), (), 0.05)[0]:
                try:
                    found = os.read(self.controller, 4096)
                except OSError:
                    return False
                if not found:
                    return False
                self.shown += found
            if until and until.search(self.shown):
                return True
        return False

    def count_processes(self) -> int:
        listed = subprocess.run(["ps", "-o", "pid=", "-s", str(self.process.pid)], capture_output=True, check=False)
        return len(listed.stdout.split())

    def finish(self) -> int:
        self.read(300)
        code = self.process.wait(60)
        os.close(self.controller)
        return code


def list_files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.parametrize(
    ("to_all", "number"),
    [(True, signal.SIGINT), (False, signal.SIGINT), (False, signal.SIGTERM), (True, signal.SIGHUP)],
)
def test_a_signal_leaves_nothing_behind(fleet: Path, to_all: bool, number: signal.Signals) -> None:
    before = list_files(fleet)
    session = Session(fleet, "lint")
    assert session.read(300, LINE), session.shown
    (os.killpg if to_all else os.kill)(session.process.pid, number)
    code = session.finish()

    assert (code, session.count_processes()) == (128 + number, 0)
    assert session.shown.endswith(b"\r\x1b[K")
    assert b"Traceback" not in session.shown
    assert b"\n" not in session.shown
    assert list_files(fleet) == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_a_run_leaves_no_half_of_a_tree(fleet: Path, tmp_path: Path, number: signal.Signals) -> None:
    root = Path(shutil.copytree(fleet, tmp_path / "repository"))
    session = Session(root, "render", "-o", "rendered")
    session.read(300, LINE)
    os.killpg(session.process.pid, number)
    code = session.finish()

    # A fast run has ended before.
    assert code in (0, 128 + number)
    assert session.count_processes() == 0
    assert b"Traceback" not in session.shown
    assert not [name for name in list_files(root) if ".jobgen-" in name]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_files_are_written_leaves_each_old_or_new(
    fleet: Path, tmp_path: Path, number: signal.Signals
) -> None:
    """The signal comes as soon as the folder exists where files are staged; a second one comes during the cleanup."""
    root = Path(shutil.copytree(fleet, tmp_path / "repository"))
    session = Session(root, "render", "-o", "rendered")
    stages = [root / "rendered" / name / ".jobgen-stage" for name in ("dev", "prod")]
    while session.process.poll() is None and not any(stage.exists() for stage in stages):
        time.sleep(0.0005)
    os.kill(session.process.pid, number)
    if number == signal.SIGTERM:
        os.kill(session.process.pid, number)
    code = session.finish()

    assert code == 128 + number
    assert session.count_processes() == 0
    assert not [name for name in list_files(root) if ".jobgen-" in name]
    check = [sys.executable, "-m", "jobgen", "render", "-o", "rendered"]
    assert subprocess.run(check, cwd=root, capture_output=True, check=False).returncode == 0
    assert subprocess.run([*check, "--check"], cwd=root, capture_output=True, check=False).returncode == 0


@pytest.mark.stress
def test_a_signal_that_the_caller_ignores_stays_ignored(fleet: Path) -> None:
    """As with `nohup`."""
    session = Session(fleet, "lint", hangup=signal.SIG_IGN)
    assert session.read(300, LINE), session.shown
    os.kill(session.process.pid, signal.SIGHUP)
    assert session.finish() == 0


def test_progress_is_shown_on_a_terminal_only_and_erased(fleet: Path) -> None:
    session = Session(fleet, "lint")
    code = session.finish()
    piped = subprocess.run(
        [sys.executable, "-m", "jobgen", "--no-cache", "lint"], cwd=fleet, capture_output=True, check=False
    )

    assert LINE.search(session.shown), session.shown
    assert session.shown.replace(b"\r\n", b"\n").endswith(b"\r\x1b[K" + piped.stderr)
    assert code == piped.returncode
    assert b"\x1b" not in piped.stderr


def test_the_last_line_of_progress_says_that_the_run_finishes() -> None:
    controller, terminal = pty.openpty()
    line = ProgressLine(terminal)
    line._started -= 60
    line.update(10, 100, "files, dev")
    line.update(100, 100, "files, dev")
    line.erase()
    os.close(terminal)
    shown = ""
    # The system hands on what was written in parts; the end is an error on Linux.
    with suppress(OSError):
        while part := os.read(controller, 4096):
            shown += part.decode()
    os.close(controller)
    assert "10 of 100 files, dev, about " in shown
    assert "\r100 of 100 files, dev, finishing\x1b[K" in shown
    assert shown.endswith("\r\x1b[K")


def test_progress_is_not_shown_where_users_expect_none() -> None:
    environ = {"TERM": "xterm"}

    assert can_show(["-C", "x", "lint"], environ)
    assert not can_show(["lsp"], environ)
    assert not can_show(["lint"], {})
    for name, value in (("TERM", "dumb"), ("NO_COLOR", "1"), ("CI", "true")):
        assert not can_show(["lint"], {**environ, name: value})

"""Run `helm template` on a folder of its own: without a cluster, plugins, downloads and settings of the user."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import IO

from jobgen.engine.inputs import find_program
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

MAX_OUTPUT = 32 * 1024 * 1024
"""The bytes that helm may print for one chart."""
_MAX_MEMORY = 2 * 1024**3
_COLLECTED_MEMORY = 256 * 1024**2
_CPU_SECONDS = 4
_SECONDS = 60
_MAX_MESSAGE = 10_000
CHART, EMPTY = "chart", "home"
"""The folders of a workspace: the chart, and the home of helm."""


class Helm(NamedTuple):
    """The program that renders charts."""

    path: str
    time: str
    """When its file was last changed: another version may render something else."""


def find_helm() -> Helm | None:
    """Return helm if it is on PATH; it is not started."""
    described, _, time = find_program("helm").rpartition(" ")
    path = described.partition(" ")[2]
    return Helm(path, time) if path else None


class Stop(Enum):
    """What helm needed too much of."""

    TIME = "time"
    SIZE = "memory or output"


class Rendered(NamedTuple):
    """What helm printed."""

    output: bytes = b""
    error: str = ""
    """Why it rendered nothing; empty if it did. What it printed with `--debug` may not be YAML."""
    stop: Stop | None = None
    """What it needed too much of, so that it did not end."""
    seconds: float = 0
    """The time of the processor that it took."""


def run_helm(helm: Helm, workspace: Path, arguments: Sequence[str]) -> Rendered:
    """Render the chart of a workspace."""
    home = workspace / EMPTY
    home.mkdir(exist_ok=True)
    command = [helm.path, "template", *arguments]
    before = _read_clock()
    with tempfile.TemporaryFile(dir=workspace) as output, tempfile.TemporaryFile(dir=workspace) as errors:
        try:
            status = _run(command, workspace, output, errors)
        except OSError as error:
            return Rendered(error=f"helm cannot be started: {error.strerror}")
        if status is None:
            return Rendered(stop=Stop.TIME, seconds=_SECONDS)
        output.seek(0)
        errors.seek(0)
        printed = output.read(MAX_OUTPUT)
        message = _read_message(errors)
    seconds = _read_clock() - before
    if status == -signal.SIGKILL and not _OUT_OF_MEMORY.search(message):
        # The limit of its time kills it.
        return Rendered(stop=Stop.TIME, seconds=seconds)
    if status < 0 or len(printed) >= MAX_OUTPUT or _OUT_OF_MEMORY.search(message):
        return Rendered(stop=Stop.SIZE, seconds=seconds)
    if status:
        return Rendered(printed, error=message.strip() or "helm said nothing", seconds=seconds)
    return Rendered(printed, seconds=seconds)


def _read_message(errors: IO[bytes]) -> str:
    """Return the start and the end of what helm says: the places in between are those of a long recursion."""
    start = errors.read(_MAX_MESSAGE)
    rest = max(errors.seek(0, os.SEEK_END) - len(start), 0)
    errors.seek(-min(rest, _MAX_MESSAGE), os.SEEK_END)
    return (start + errors.read()).decode("utf-8", "replace")


def _read_clock() -> float:
    """Return the time of the processor that programs took which this process started and waited for."""
    times = os.times()
    return times.children_user + times.children_system


_OUT_OF_MEMORY = lazy_pattern(r"(?m)^(?:fatal error: |runtime: (?:out of memory|goroutine stack exceeds))")


def _make_environment(home: Path) -> dict[str, str]:
    """Return variables with which helm finds no settings, plugins, repositories, registries or clusters."""
    own = str(home)
    folders = (
        "HOME HELM_CACHE_HOME HELM_CONFIG_HOME HELM_DATA_HOME HELM_PLUGINS HELM_REPOSITORY_CACHE "
        "XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME TMPDIR"
    )
    files = "HELM_REGISTRY_CONFIG HELM_REPOSITORY_CONFIG KUBECONFIG"
    return {
        "PATH": os.defpath,
        "HELM_NO_PLUGINS": "1",
        # Most charts need less memory than it takes time to collect it.
        "GOGC": "off",
        "GOMEMLIMIT": str(_COLLECTED_MEMORY),
        # A proxy that does not exist answers nothing.
        **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9"),
        **dict.fromkeys(folders.split(), own),
        **dict.fromkeys(files.split(), os.path.join(own, "none")),
    }


def _run(command: Sequence[str], workspace: Path, output: IO[bytes], errors: IO[bytes]) -> int | None:
    """Run a program with limits, and return its exit code; None if it did not end in time."""
    with subprocess.Popen(  # noqa: S603 -- a fixed command
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=errors,
        env=_make_environment(workspace / EMPTY),
        cwd=workspace,
        # A function that runs before the program costs a copy of this process.
        preexec_fn=_limit if os.name == "posix" and not _CAN_LIMIT_OTHERS else None,  # noqa: PLW1509
    ) as process:
        try:
            if _CAN_LIMIT_OTHERS:
                _limit(process.pid)
            return process.wait(_wait(process.pid))
        except subprocess.TimeoutExpired:
            process.kill()
            return None
        except BaseException:
            process.kill()
            raise


def _wait(process: int) -> float:
    """Wait for a program where the system tells its end; return how long to look for that again and again."""
    if not hasattr(os, "pidfd_open"):
        return _SECONDS
    try:
        ended = os.pidfd_open(process)
    except OSError:
        return _SECONDS
    try:
        select.select([ended], (), (), _SECONDS)
    finally:
        os.close(ended)
    return 0


_CAN_LIMIT_OTHERS = sys.platform == "linux"


def _limit(process: int = 0) -> None:
    """Limit a program; this one if no other is named."""
    # Imported here: Windows does not have it.
    import resource as limits

    # Go reserves far more addresses than it uses, so the limit is that of data.
    for limit, most in (
        (limits.RLIMIT_DATA, _MAX_MEMORY),
        (limits.RLIMIT_CPU, _CPU_SECONDS),
        (limits.RLIMIT_FSIZE, MAX_OUTPUT),
    ):
        if process:
            limits.prlimit(process, limit, (most, most))
        else:
            limits.setrlimit(limit, (most, most))

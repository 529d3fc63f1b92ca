"""Time a command: wall time, CPU time of all its processes, and their memory.

Output goes to /dev/null by default, so that the reader of a pipe is not measured.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import IO, NamedTuple

JOBGEN = (sys.executable, "-m", "jobgen")
# An installed package has compiled modules; a checkout is measured the same way.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
_INTERVAL = 0.02
"""Seconds between two samples of the memory of the processes."""
_MEMORY = re.compile(r"^VmHWM:\s+(\d+) kB\nVmRSS:\s+(\d+) kB$", re.MULTILINE)


class Run(NamedTuple):
    """Seconds and bytes of one run; bytes are 0 on systems without /proc."""

    seconds: float
    cpu: float = 0
    """CPU seconds of the process and its children; 0 where the system does not report them."""
    largest: int = 0
    """The most memory that one process held."""
    total: int = 0
    """The most memory that all processes held together."""


def run(
    *command: str, folder: Path, cache: Path, code: int | None = 0, out: IO[bytes] | int = subprocess.DEVNULL
) -> Run:
    """Run a command and measure it; stop the benchmark if it does not end with the exit code, unless any will do."""
    done, peaks = threading.Event(), [0, 0]
    environment = {**ENVIRONMENT, "XDG_CACHE_HOME": str(cache)}
    with tempfile.TemporaryFile() as errors:
        before, started = _children_cpu(), perf_counter()
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=out, stderr=errors)
        watcher = threading.Thread(target=_watch_memory, args=(process.pid, done, peaks))
        watcher.start()
        found = process.wait()
        seconds = perf_counter() - started
        done.set()
        watcher.join()
        if code is not None and found != code:
            errors.seek(0)
            raise SystemExit(f"{' '.join(command)}: exit {found}\n{errors.read()[-500:].decode()}")
    return Run(seconds, _children_cpu() - before, *peaks)


def fastest(times: int, *command: str, folder: Path, cache: Path, code: int | None = 0) -> Run:
    """Return the fastest of several runs: other load on the machine only adds time."""
    return min(run(*command, folder=folder, cache=cache, code=code) for _ in range(times))


def compile_modules() -> None:
    """Run jobgen once, so that its modules are compiled as those of an installed package are."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        (folder / "job.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n")
        for arguments in (("lint", "job.yaml"), ("render", "--help")):
            run(*JOBGEN, *arguments, folder=folder, cache=folder)


def _children_cpu() -> float:
    """Return the CPU seconds of all child processes that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def _watch_memory(pid: int, done: threading.Event, peaks: list[int]) -> None:
    """Sample memory until the run is done; pages that processes share count for each of them."""
    while not done.wait(_INTERVAL):
        samples = [_memory(each) for each in _process_tree(pid)]
        peaks[0] = max(peaks[0], *(most for most, _ in samples), 0)
        peaks[1] = max(peaks[1], sum(now for _, now in samples))


def _process_tree(pid: int) -> Iterator[int]:
    yield pid
    # A process may end before it is sampled; without /proc there is nothing to sample.
    with suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            yield from _process_tree(int(child))


def _memory(pid: int) -> tuple[int, int]:
    """Return the most bytes that a process has held, and the bytes that it holds now."""
    with suppress(OSError):
        found = _MEMORY.search(Path(f"/proc/{pid}/status").read_text())
        if found:
            return int(found[1]) * 1024, int(found[2]) * 1024
    return 0, 0

"""A command, timed: seconds from its start to its end, and the memory that it and its children hold.

What it prints goes to /dev/null, if nobody asks for it: how fast somebody reads is not measured.
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
# Installed packages come compiled; a checkout is to be measured as if it were one.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
_A_LOOK = 0.02
"""Seconds between two looks at the memory of the processes."""
_HELD = re.compile(r"^VmHWM:\s+(\d+) kB\nVmRSS:\s+(\d+) kB$", re.MULTILINE)


class Run(NamedTuple):
    """Seconds, and bytes: the most that one process held, and all of them at one time; 0 where nobody can tell."""

    seconds: float
    largest: int = 0
    together: int = 0


def run(*words: str, folder: Path, cache: Path, code: int = 0, out: IO[bytes] | int = subprocess.DEVNULL) -> Run:
    """A command from its start to its end, which must be the expected one."""
    over, peaks = threading.Event(), [0, 0]
    environment = {**ENVIRONMENT, "XDG_CACHE_HOME": str(cache)}
    with tempfile.TemporaryFile() as complaints:
        started = perf_counter()
        process = subprocess.Popen(words, cwd=folder, env=environment, stdout=out, stderr=complaints)
        watcher = threading.Thread(target=_watch, args=(process.pid, over, peaks))
        watcher.start()
        found = process.wait()
        seconds = perf_counter() - started
        over.set()
        watcher.join()
        if found != code:
            complaints.seek(0)
            raise SystemExit(f"{' '.join(words)}: exit {found}\n{complaints.read()[-500:].decode()}")
    return Run(seconds, *peaks)


def best(times: int, *words: str, folder: Path, cache: Path, code: int = 0) -> Run:
    """The quickest of several runs: what else the machine does only ever adds to them."""
    return min(run(*words, folder=folder, cache=cache, code=code) for _ in range(times))


def warm_up() -> None:
    """Have our modules compiled, as those of an installed package are."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        (folder / "job.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n")
        for words in (("lint", "job.yaml"), ("render", "--help")):
            run(*JOBGEN, *words, folder=folder, cache=folder)


def _watch(pid: int, over: threading.Event, peaks: list[int]) -> None:
    """Note the most memory, until it is over; pages that processes share are counted for each of them."""
    while not over.wait(_A_LOOK):
        held = [_held(each) for each in _family(pid)]
        peaks[0] = max(peaks[0], *(most for most, _ in held), 0)
        peaks[1] = max(peaks[1], sum(now for _, now in held))


def _family(pid: int) -> Iterator[int]:
    yield pid
    # A process may be gone before it is looked at; where there is no /proc, none is ever there.
    with suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            yield from _family(int(child))


def _held(pid: int) -> tuple[int, int]:
    """The most bytes that a process has ever held, and what it holds now."""
    with suppress(OSError):
        found = _HELD.search(Path(f"/proc/{pid}/status").read_text())
        if found:
            return int(found[1]) * 1024, int(found[2]) * 1024
    return 0, 0

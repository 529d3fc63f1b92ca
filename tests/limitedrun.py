"""Run a function in a child process with little time and memory."""

from __future__ import annotations

import os
import pickle
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

SECONDS = 8
"""CPU time. Cases are expected to take less than 2 seconds on an idle machine; tests share theirs with others."""
MEMORY = 500 * 2**20
"""How much larger than its parent the child may become."""


def run_limited(work: Callable[[], Any], *, seconds: int = SECONDS, memory: int = MEMORY) -> Any:
    """The result of the function; an AssertionError if it takes too long, too much memory, or fails."""
    readable, writable = os.pipe()
    child = os.fork()
    if not child:
        os.close(readable)
        _work(work, writable, seconds, memory)
    os.close(writable)
    with os.fdopen(readable, "rb") as stream:
        answer = stream.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        raise AssertionError(f"the process ended with {name}, after at most {seconds} s and {memory >> 20} MB")
    is_done, result = pickle.loads(answer)
    assert is_done, result
    return result


def _work(work: Callable[[], Any], writable: int, seconds: int, memory: int) -> None:
    try:
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + memory, size + memory))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        answer = pickle.dumps((True, work()))
    except BaseException:  # noqa: BLE001 -- reported by the parent
        answer = pickle.dumps((False, traceback.format_exc()))
    with os.fdopen(writable, "wb") as stream:
        stream.write(answer)
    sys.stdout.flush()
    os._exit(0)

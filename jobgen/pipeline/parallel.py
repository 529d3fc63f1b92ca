"""Work spread over processes where that pays: children are forked, so they begin with all that has been read."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import BinaryIO, TypeVar

Item = TypeVar("Item")
Found = TypeVar("Found")

_WORTH_A_PROCESS = 200
"""Fewer items than this are done before a child could help."""


def parallel_map(items: Sequence[Item], work: Callable[[Sequence[Item]], list[Found]]) -> list[Found]:
    """`work` done on consecutive parts of the items; what it finds is in the order of the parts."""
    parts = _parts(items)
    children = [_start(part, work) for part in parts[:-1]]
    own = work(parts[-1])
    found = [_result(child, part, work) for child, part in zip(children, parts, strict=False)]
    return [each for part in (*found, own) for each in part]


def _parts(items: Sequence[Item]) -> list[Sequence[Item]]:
    processes = min(_cores(), len(items) // _WORTH_A_PROCESS)
    if processes < 2 or not hasattr(os, "fork"):
        return [items]
    size = -(-len(items) // processes)
    return [items[start : start + size] for start in range(0, len(items), size)]


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _start(part: Sequence[Item], work: Callable[[Sequence[Item]], list[Found]]) -> tuple[int, BinaryIO]:
    """A child that works on a part, and the pipe that will bring what it finds."""
    for stream in (sys.stdout, sys.stderr):
        # A stream that was closed before we started is None.
        if stream:
            stream.flush()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, os.fdopen(reading, "rb")
    status = 1
    try:
        os.close(reading)
        import pickle

        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(work(part), pipe, protocol=pickle.HIGHEST_PROTOCOL)
        status = 0
    finally:
        # The child must not return into the parent's code, whatever happened.
        os._exit(status)


def _result(
    child: tuple[int, BinaryIO], part: Sequence[Item], work: Callable[[Sequence[Item]], list[Found]]
) -> list[Found]:
    """What a child found; if it died, its part is done here, where a fault can be seen."""
    pid, pipe = child
    with pipe:
        written = pipe.read()
    _, status = os.waitpid(pid, 0)
    if status != 0:
        return work(part)
    import pickle

    found: list[Found] = pickle.loads(written)  # noqa: S301 -- our own child wrote it
    return found

"""Run work in several processes. Children are forked, so they start with everything that has been loaded."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import BinaryIO, TypeVar

Item = TypeVar("Item")
Found = TypeVar("Found")

_MIN_ITEMS = 200
"""The number of items below which another process costs more than it saves."""


def parallel_map(items: Sequence[Item], work: Callable[[Sequence[Item]], list[Found]]) -> list[Found]:
    """Apply `work` to consecutive parts of the items in parallel; results keep the order of the items."""
    parts = _split_items(items)
    children: list[tuple[int, BinaryIO]] = []
    # If the system allows no further process, this one does the rest.
    with suppress(OSError):
        for part in parts[:-1]:
            children.append(_start_child(part, work))
    own = [work(part) for part in parts[len(children) :]]
    found = [_read_result(child, part, work) for child, part in zip(children, parts, strict=False)]
    return [each for part in (*found, *own) for each in part]


def _split_items(items: Sequence[Item]) -> list[Sequence[Item]]:
    processes = min(_count_cores(), len(items) // _MIN_ITEMS)
    if processes < 2 or not hasattr(os, "fork"):
        return [items]
    size = -(-len(items) // processes)
    return [items[start : start + size] for start in range(0, len(items), size)]


def _count_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _start_child(part: Sequence[Item], work: Callable[[Sequence[Item]], list[Found]]) -> tuple[int, BinaryIO]:
    """Start a child that works on a part and writes its results to a pipe."""
    for stream in (sys.stdout, sys.stderr):
        # A stream that was closed at startup is None.
        if stream:
            stream.flush()
    reading, writing = os.pipe()
    try:
        pid = os.fork()
    except OSError:
        os.close(reading)
        os.close(writing)
        raise
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


def _read_result(
    child: tuple[int, BinaryIO], part: Sequence[Item], work: Callable[[Sequence[Item]], list[Found]]
) -> list[Found]:
    """The results of a child. If it died, do its part here, so that the exception is visible."""
    pid, pipe = child
    with pipe:
        written = pipe.read()
    _, status = os.waitpid(pid, 0)
    if status != 0:
        return work(part)
    import pickle

    found: list[Found] = pickle.loads(written)  # noqa: S301 -- written by the child
    return found

"""Run work in several processes. Children are forked, so they start with everything that has been loaded."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import BinaryIO, TypeVar

Item = TypeVar("Item")
Found = TypeVar("Found")

_MIN_ITEMS = 200
"""The number of items below which another process costs more than it saves."""
_BLOCK = 20
"""How many consecutive items stay together: neighbors are often jobs of one file, which is then read once."""
_NICE = 5
"""How much less urgent work is that can be cancelled."""
_CHECK_SECONDS = 0.05


def parallel_map(items: Sequence[Item], work: Callable[[Sequence[Item]], list[Found]]) -> list[Found]:
    """Apply `work` to shares of the items in parallel; results keep the order of the items.

    `work` returns one result for each item, or one for its share.
    """
    shares = _split_items(items)
    children: list[tuple[int, BinaryIO]] = []
    # If the system allows no further process, this one does the rest.
    with suppress(OSError):
        for share in shares[:-1]:
            children.append(_start_child(share, work))
    try:
        own = [work(share) for share in shares[len(children) :]]
    except BaseException:
        _stop_children(children)
        raise
    found = [_read_result(child, share, work) for child, share in zip(children, shares, strict=False)]
    return _join_results([*found, *own])


@contextmanager
def run_beside(work: Callable[[], Found], items: int) -> Iterator[Callable[[], Found]]:
    """Run work in another process, unless it has few items; the function that is yielded waits for its result."""
    if items < _MIN_ITEMS or _count_cores() < 2 or not hasattr(os, "fork"):
        yield work
        return

    def work_once(_: Sequence[Found]) -> list[Found]:
        return [work()]

    try:
        child = _start_child((), work_once)
    except OSError:
        yield work
        return
    try:
        yield lambda: _read_result(child, (), work_once)[0]
    finally:
        pid, pipe = child
        if not pipe.closed:
            # Something failed before the result was read. The child ends when it writes it.
            pipe.close()
            os.waitpid(pid, 0)


def run_cancellable(work: Callable[[], Found], items: int, check: Callable[[], None]) -> Found:
    """Run work in another process, and return its result. What `check` raises in the meantime ends it.

    Work with few items is done here, without checks.
    """
    if items < _MIN_ITEMS or not hasattr(os, "fork"):
        return work()

    def work_once(_: Sequence[Found]) -> list[Found]:
        # Nothing waits for it.
        os.nice(_NICE)
        return [work()]

    try:
        child = _start_child((), work_once)
    except OSError:
        return work()
    try:
        while not select.select([child[1]], (), (), _CHECK_SECONDS)[0]:
            check()
    except BaseException:
        _stop_children([child])
        raise
    return _read_result(child, (), work_once)[0]


def _split_items(items: Sequence[Item]) -> list[Sequence[Item]]:
    """Split items into one share for each process: every second block of items if there are two.

    The items of a folder often take longer than those of another, so that halves would take different times.
    """
    processes = min(_count_cores(), len(items) // _MIN_ITEMS)
    if processes < 2 or not hasattr(os, "fork"):
        return [items]
    blocks = [items[start : start + _BLOCK] for start in range(0, len(items), _BLOCK)]
    return [[item for block in blocks[number::processes] for item in block] for number in range(processes)]


def _join_results(parts: Sequence[list[Found]]) -> list[Found]:
    """Join the results of shares in the order of the items."""
    longest = max(map(len, parts))
    return [each for start in range(0, longest, _BLOCK) for part in parts for each in part[start : start + _BLOCK]]


def _count_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _start_child(share: Sequence[Item], work: Callable[[Sequence[Item]], list[Found]]) -> tuple[int, BinaryIO]:
    """Start a child that works on a share and writes its results to a pipe."""
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
            pickle.dump(work(share), pipe, protocol=pickle.HIGHEST_PROTOCOL)
        status = 0
    finally:
        # The child must not return into the parent's code, whatever happened.
        os._exit(status)


def _stop_children(children: Sequence[tuple[int, BinaryIO]]) -> None:
    """End children whose results are not wanted any more, because the run is interrupted."""
    for pid, pipe in children:
        pipe.close()
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _read_result(
    child: tuple[int, BinaryIO], share: Sequence[Item], work: Callable[[Sequence[Item]], list[Found]]
) -> list[Found]:
    """The results of a child. If it died, do its share here, so that the exception is visible."""
    pid, pipe = child
    with pipe:
        written = pipe.read()
    _, status = os.waitpid(pid, 0)
    if status != 0:
        return work(share)
    import pickle

    found: list[Found] = pickle.loads(written)  # noqa: S301 -- written by the child
    return found

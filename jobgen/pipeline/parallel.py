"""Run work in several processes. Children are forked, so they start with everything that has been loaded."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import BinaryIO, TypeVar

from jobgen.pipeline.progress import observe

Item = TypeVar("Item")
Found = TypeVar("Found")
Child = tuple[int, BinaryIO]
"""A process, and the pipe to which it writes its result."""

_MIN_ITEMS = 200
"""The number of items below which another process costs more than it saves."""
_BLOCK = 20
"""How many consecutive items stay together: neighbors are often jobs of one file, which is then read once."""
_NICE = 5
"""How much less urgent work is that can be cancelled."""
_CHECK_SECONDS = 0.05
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""The signals that end a run; its children end at once."""
_works_on_share: ContextVar[bool] = ContextVar("_works_on_share", default=False)
"""Whether this process works on one of several shares: all cores are busy then, so it starts no others."""


def parallel_map(items: Sequence[Item], work: Callable[[Sequence[Item]], list[Found]]) -> list[Found]:
    """Apply `work` to shares of the items in parallel; results keep the order of the items.

    `work` returns one result for each item, or one for its share.
    """
    shares = _split_items(items)
    children: list[Child] = []
    is_share = _works_on_share.set(len(shares) > 1 or _works_on_share.get())
    try:
        # If the system allows no further process, this one does the rest.
        with suppress(OSError):
            for share in shares[:-1]:
                _start_child(share, work, children)
        own = [work(share) for share in shares[len(children) :]]
        found = [_read_result(child, share, work) for child, share in zip(children, shares, strict=False)]
    except BaseException:
        _stop_children(children)
        raise
    finally:
        _works_on_share.reset(is_share)
    return _join_results([*found, *own])


@contextmanager
def run_beside(work: Callable[[], Found], items: int) -> Iterator[Callable[[], Found]]:
    """Run work in another process, unless it has few items; the function that is yielded waits for its result."""
    if items < _MIN_ITEMS or _count_cores() < 2 or not hasattr(os, "fork"):
        yield work
        return

    def work_once(_: Sequence[Found]) -> list[Found]:
        return [work()]

    children: list[Child] = []
    try:
        with suppress(OSError):
            _start_child((), work_once, children)
        yield (lambda: _read_result(children[0], (), work_once)[0]) if children else work
    finally:
        # Something may have failed before the result was read.
        _stop_children(children)


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

    children: list[Child] = []
    try:
        with suppress(OSError):
            _start_child((), work_once, children)
        if not children:
            return work()
        while not select.select([children[0][1]], (), (), _CHECK_SECONDS)[0]:
            check()
        return _read_result(children[0], (), work_once)[0]
    except BaseException:
        _stop_children(children)
        raise


def _split_items(items: Sequence[Item]) -> list[Sequence[Item]]:
    """Split items into one share for each process: every second block of items if there are two.

    The items of a folder often take longer than those of another, so that halves would take different times.
    """
    processes = min(_count_cores(), len(items) // _MIN_ITEMS)
    if processes < 2 or not hasattr(os, "fork") or _works_on_share.get():
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


def _start_child(share: Sequence[Item], work: Callable[[Sequence[Item]], list[Found]], children: list[Child]) -> None:
    """Start a child that works on a share and writes its results to a pipe; add it to the children."""
    for stream in (sys.stdout, sys.stderr):
        # A stream that was closed at startup is None.
        if stream:
            stream.flush()
    reading, writing = os.pipe()
    # A signal between the fork and what follows would leave a child that is not listed, or let it return.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        pid = os.fork()
    except OSError:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.close(reading)
        os.close(writing)
        raise
    if pid:
        os.close(writing)
        children.append((pid, os.fdopen(reading, "rb")))
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return
    status = 1
    try:
        # It ends at once, without a word.
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        observe(None)
        os.close(reading)
        import pickle

        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(work(share), pipe, protocol=pickle.HIGHEST_PROTOCOL)
        status = 0
    finally:
        # The child must not return into the parent's code, whatever happened.
        os._exit(status)


def _stop_children(children: Sequence[Child]) -> None:
    """End children whose results have not been read, because the run is interrupted."""
    for pid, pipe in children:
        if pipe.closed:
            continue
        pipe.close()
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _read_result(child: Child, share: Sequence[Item], work: Callable[[Sequence[Item]], list[Found]]) -> list[Found]:
    """The results of a child. If it died, do its share here, so that the exception is visible."""
    pid, pipe = child
    written = pipe.read()
    # Until its pipe is closed, an interrupt ends the child.
    _, status = os.waitpid(pid, 0)
    pipe.close()
    if status != 0:
        return work(share)
    import pickle

    found: list[Found] = pickle.loads(written)  # noqa: S301 -- written by the child
    return found

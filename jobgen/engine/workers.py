"""Run work in several processes. Children are forked, so they start with everything that has been loaded.

The work is cut into small pieces. A process that is free takes the number of the next piece from a pipe that all of
them read, so that all are busy to the end. Each child sends its results through a pipe of its own; the parent works,
too, and receives results after each piece. What a child did not send, because it died, the parent does itself.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, NoReturn, Self, TypeVar

from jobgen.model.progress import observe

Item = TypeVar("Item")
Found = TypeVar("Found")
Send = Callable[[Any], None]

_MIN_ITEMS = 100
"""The number of items below which another process costs more than it saves."""
PIECE = 20
"""How many consecutive items stay together: neighbors are often jobs of one file, which is then read once."""
_MAX_PIECES = 4_000
"""All numbers fit into a pipe, which holds 16 KiB on every system."""
_NUMBER_BYTES, _LENGTH_BYTES = 4, 8
_NICE = 5
"""How much less urgent work is that can be cancelled."""
_CHECK_SECONDS = 0.05
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""The signals that end a run; its children end at once."""
_works_on_piece: ContextVar[bool] = ContextVar("_works_on_piece", default=False)
"""True while this process works on a piece: all cores are busy then, so it starts no others."""


def parallel_map(
    items: Sequence[Item],
    work: Callable[[Sequence[Item]], list[Found]],
    progress: Callable[[int, int], None] = lambda _, __: None,
    size: int | None = None,
) -> list[Found]:
    """Apply `work` to pieces of the items in parallel; results keep the order of the items.

    `work` returns one result for each item, or any number for its piece. `progress` is called in this process with the
    number of items that are done and of all items; what it raises ends the work. `size` is that of a piece.
    """
    size = max(size or PIECE, -(-len(items) // _MAX_PIECES))
    pieces = [items[start : start + size] for start in range(0, len(items), size)]
    processes = min(_count_cores(), len(items) // _MIN_ITEMS) if hasattr(os, "fork") else 1

    def report(done: int) -> None:
        progress(min(done * size, len(items)), len(items))

    report(0)
    if processes < 2 or _works_on_piece.get():
        found: list[Found] = []
        for number, piece in enumerate(pieces):
            found += work(piece)
            report(number + 1)
        return found
    works_on_piece = _works_on_piece.set(True)
    try:
        return _work_together(pieces, work, report, processes)
    finally:
        _works_on_piece.reset(works_on_piece)


@contextmanager
def run_beside(work: Callable[[], Found], items: int) -> Iterator[Callable[[], Found]]:
    """Run work in another process, unless it has few items; the function that is yielded waits for its result."""
    if items < _MIN_ITEMS or _count_cores() < 2 or not hasattr(os, "fork"):
        yield work
        return
    with _Children() as children:
        children.start(lambda send: send(work()))
        yield lambda: _wait(children, work)


def _wait(
    children: _Children,
    work: Callable[[], Found],
    seconds: float | None = None,
    check: Callable[[], None] | None = None,
) -> Found:
    """Return the result of a child, and check something from time to time. If the child died, do the work here."""
    while children.pipes:
        for result in children.receive(seconds):
            found: Found = result
            return found
        if check is not None:
            check()
    return work()


def run_cancellable(work: Callable[[], Found], items: int, check: Callable[[], None]) -> Found:
    """Run work in another process, and return its result. What `check` raises in the meantime ends it.

    Work with few items is done here, without checks.
    """
    if items < _MIN_ITEMS or not hasattr(os, "fork"):
        return work()

    def work_slowly(send: Send) -> None:
        # Nothing waits for it.
        os.nice(_NICE)
        send(work())

    with _Children() as children:
        children.start(work_slowly)
        return _wait(children, work, _CHECK_SECONDS, check)


def _count_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _work_together(
    pieces: Sequence[Sequence[Item]],
    work: Callable[[Sequence[Item]], list[Found]],
    progress: Callable[[int], None],
    processes: int,
) -> list[Found]:
    """Share pieces between this process and others."""
    found: dict[int, list[Found]] = {}
    with _list_numbers(len(pieces)) as numbers, _Children() as children:

        def work_beside(send: Send) -> None:
            for number in _take_numbers(numbers):
                # What fails, the parent does itself, so that the reason is seen.
                with suppress(Exception):
                    send((number, work(pieces[number])))

        for _ in range(processes - 1):
            children.start(work_beside)
        for number in _take_numbers(numbers):
            found[number] = work(pieces[number])
            found.update(children.receive(0))
            progress(len(found))
        while children.pipes:
            found.update(children.receive(None))
            progress(len(found))
    # A child failed or died while it worked on what is missing.
    found |= {number: work(piece) for number, piece in enumerate(pieces) if number not in found}
    return [each for number in range(len(pieces)) for each in found[number]]


@contextmanager
def _list_numbers(count: int) -> Iterator[int]:
    """Write the numbers of all pieces to a pipe, from which processes take one after the other."""
    reading, writing = os.pipe()
    try:
        os.write(writing, b"".join(number.to_bytes(_NUMBER_BYTES, "big") for number in range(count)))
        # Who reads after the last number reads the end.
        os.close(writing)
        yield reading
    finally:
        os.close(reading)


def _take_numbers(pipe: int) -> Iterator[int]:
    """Yield numbers that no other process has taken."""
    while taken := os.read(pipe, _NUMBER_BYTES):
        yield int.from_bytes(taken, "big")


class _Children:
    """Processes that were forked from this one, and the results that they send. At the end, those left are killed."""

    def __init__(self) -> None:
        self.pipes: dict[int, int] = {}
        """The pipe of each process that has not ended, with the number of the process."""
        self._received: dict[int, bytearray] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe, pid in list(self.pipes.items()):
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
            self._end(pipe)

    def start(self, work: Callable[[Send], None]) -> None:
        """Start a child that works and sends results. If the system allows no further process, do nothing."""
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
            os.close(reading)
        else:
            if not pid:
                _work_as_child(work, writing, mask)
            self.pipes[reading] = pid
            self._received[reading] = bytearray()
        os.close(writing)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def receive(self, seconds: float | None) -> Iterator[Any]:
        """Yield the results that have arrived, or arrive within some seconds; None means that there is no limit."""
        import pickle

        for pipe in select.select(list(self.pipes), (), (), seconds)[0]:
            received = self._received[pipe]
            read = os.read(pipe, 1 << 20)
            received += read
            while len(received) >= _LENGTH_BYTES:
                end = _LENGTH_BYTES + int.from_bytes(received[:_LENGTH_BYTES], "big")
                if len(received) < end:
                    break
                yield pickle.loads(received[_LENGTH_BYTES:end])  # noqa: S301 -- written by the child
                del received[:end]
            if not read:
                self._end(pipe)

    def _end(self, pipe: int) -> None:
        # Until its pipe is closed, an interrupt ends the child.
        with suppress(OSError):
            os.waitpid(self.pipes[pipe], 0)
        del self.pipes[pipe], self._received[pipe]
        os.close(pipe)


def _work_as_child(work: Callable[[Send], None], pipe: int, mask: Iterable[int]) -> NoReturn:
    """Work in a process that was just forked. It must not return into the parent's code, whatever happens."""
    status = 1
    try:
        # It ends at once, without a word.
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        observe(None)
        import pickle

        unsent = bytearray()

        def send(result: Any) -> None:
            """Send as much as the pipe holds: the parent may be busy for a while."""
            written = pickle.dumps(result, protocol=pickle.HIGHEST_PROTOCOL)
            unsent.extend(len(written).to_bytes(_LENGTH_BYTES, "big") + written)
            with suppress(BlockingIOError):
                while unsent:
                    del unsent[: os.write(pipe, unsent)]

        os.set_blocking(pipe, False)
        work(send)
        os.set_blocking(pipe, True)
        while unsent:
            del unsent[: os.write(pipe, unsent)]
        status = 0
    finally:
        os._exit(status)

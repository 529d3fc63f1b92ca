"""Signals that end a run. Each ends it like Ctrl-C: no child process stays, and no file is half written."""

from __future__ import annotations

import signal
from types import FrameType

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


class EndedError(KeyboardInterrupt):
    """The process got a signal that ends it."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def handle_signals() -> None:
    """Let signals end the run by an exception; those that the caller ignores, as `nohup` does, stay ignored."""
    for number in _SIGNALS:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)


def restore_signals() -> None:
    """Let signals end the process at once, for servers that write no files and wait for input in other threads."""
    for number in _SIGNALS:
        if signal.getsignal(number) is _end:
            signal.signal(number, signal.SIG_DFL)


def find_exit_code(error: BaseException | None) -> int:
    """Return the exit code of a run that a signal has ended, as shells report it."""
    return 128 + (error.number if isinstance(error, EndedError) else signal.SIGINT)


def _end(number: int, _: FrameType | None) -> None:
    # A second signal must not end the run while it removes what it has begun.
    signal.signal(number, signal.SIG_IGN)
    raise EndedError(number)

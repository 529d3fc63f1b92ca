"""The progress of long runs, as one line on the terminal that is erased before anything else is printed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from jobgen.model import progress

_DELAY = 2.0
"""Shorter runs show nothing."""
_INTERVAL = 0.1
_MIN_DONE = 0.02
"""The part of the work after which the rest can be estimated."""
_COMMANDS = frozenset(("lint", "render", "diff", "report", "test"))


def can_show(arguments: list[str], environ: Mapping[str, str]) -> bool:
    """Whether a command may take long, and the user of a terminal expects to see its progress."""
    if _COMMANDS.isdisjoint(arguments):
        return False
    return environ.get("TERM", "dumb") != "dumb" and not environ.get("NO_COLOR") and not environ.get("CI")


@contextmanager
def show_progress(terminal: int) -> Iterator[None]:
    """Show the progress of all runs on a terminal, and leave an empty line behind."""
    line = ProgressLine(terminal)
    progress.observe(line.update)
    try:
        yield
    finally:
        progress.observe(None)
        line.erase()


class ProgressLine:
    """The line of the terminal."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._started = time.monotonic()
        self._shown = 0.0
        self._phase = self._started
        self._last = 0

    def update(self, done: int, total: int, what: str) -> None:
        """Show how much is done, and how long the rest takes."""
        now = time.monotonic()
        if done < self._last:
            # Some commands process the files more than once.
            self._phase = now
        self._last = done
        is_last = done >= total
        if now - self._started < _DELAY or (now - self._shown < _INTERVAL and not is_last):
            return
        self._shown = now
        parts = [f"{done:,} of {total:,} {what}"]
        if is_last:
            # What comes after the files, such as rules about several jobs, is not counted.
            parts.append("finishing")
        elif done > total * _MIN_DONE:
            parts.append(f"about {format_seconds((now - self._phase) / done * (total - done))} left")
        self._write("\r" + ", ".join(parts)[: self._width() - 1] + "\033[K")

    def erase(self) -> None:
        """Remove the line, if it was shown."""
        if self._shown:
            self._write("\r\033[K")

    def _width(self) -> int:
        try:
            return os.get_terminal_size(self._terminal).columns or 80
        except OSError:
            return 80

    def _write(self, text: str) -> None:
        # A terminal that is gone does not end the run.
        with suppress(OSError):
            os.write(self._terminal, text.encode())


def format_seconds(seconds: float) -> str:
    """Return `12 s` or `3 min`."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"

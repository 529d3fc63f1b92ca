"""Report the progress of a run to an observer. A process has one observer, because it has one terminal."""

from __future__ import annotations

from collections.abc import Callable

Observer = Callable[[int, int, str], None]
"""Is called with what is done, how much there is, and what is counted: `files, prod`."""
_observers: list[Observer] = []


def observe(observer: Observer | None) -> None:
    """Call an observer from now on; with None, none."""
    _observers[:] = [observer] if observer else []


def notify(done: int, total: int, what: str) -> None:
    """Tell the observer, if there is one."""
    for observer in _observers:
        observer(done, total, what)

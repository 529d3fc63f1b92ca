"""Tell whoever waits for a run how far it is. There is one observer for a process, because it has one terminal."""

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

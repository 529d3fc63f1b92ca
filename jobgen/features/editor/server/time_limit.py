"""Limit the time of an answer: one file must not keep the server from answering about the others.

The server computes its answers one after the other. A signal interrupts one that takes too long. It counts the time of
the CPU, so that a busy machine does not change what is answered. Windows has no such signal, so nothing is limited.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any, TypeVar

MAX_SECONDS = 3.0
"""The time of the CPU that one answer may take."""
SLOW_PAUSE = 60.0
"""How long what takes too long is not tried again."""
_NEXT_SECONDS = 0.5
"""When to interrupt again, if code that Python calls on its own has ignored the first exception."""
_Result = TypeVar("_Result")


class TimeLimitError(BaseException):
    """An answer takes too long. It is no Exception, so that no handler of errors on the way takes it for a bug."""


class _Limit:
    """Whether the code that runs may be interrupted."""

    is_active = False


def run_limited(seconds: float, function: Callable[..., _Result], *args: Any) -> _Result:
    """Call a function.

    Raises:
        TimeLimitError: It takes longer than it may.

    """
    is_main = threading.current_thread() is threading.main_thread()
    if _Limit.is_active or not is_main or not hasattr(signal, "setitimer"):
        return function(*args)
    signal.signal(signal.SIGPROF, _interrupt)
    try:
        # The signal may come after the function has ended, which must not leave the limit active.
        try:
            _Limit.is_active = True
            signal.setitimer(signal.ITIMER_PROF, seconds, _NEXT_SECONDS)
            return function(*args)
        finally:
            _Limit.is_active = False
    finally:
        _Limit.is_active = False
        signal.setitimer(signal.ITIMER_PROF, 0)


def _interrupt(*_: object) -> None:
    if _Limit.is_active:
        raise TimeLimitError

"""Run what may take long beside the server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

_Result = TypeVar("_Result")


def run_apart(function: Callable[[], _Result]) -> asyncio.Future[_Result]:
    """Call a function in a thread that does not keep the process from ending, as those of the loop do."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_Result] = loop.create_future()

    def finish(set_: Callable[..., None], value: object) -> None:
        if not future.done():
            set_(value)

    def run() -> None:
        # The loop may have ended by now.
        with suppress(RuntimeError):
            try:
                result = function()
            except Exception as error:  # noqa: BLE001 -- for the one who waits
                loop.call_soon_threadsafe(finish, future.set_exception, error)
            else:
                loop.call_soon_threadsafe(finish, future.set_result, result)

    threading.Thread(target=run, daemon=True).start()
    return future

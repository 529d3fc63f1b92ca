"""The processes of a test."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def list_left() -> set[str]:
    """The processes that this one has started and not waited for, and the pipes that it has open.

    Other tests may have left some: what is there afterwards and was not before is of this test.
    """
    handles = set()
    for handle in Path("/proc/self/fd").iterdir():
        # Threads of other tests close theirs at any time.
        with suppress(FileNotFoundError):
            handles.add(str(handle.readlink()))
    return {*_list_children(), *(each for each in handles if each.startswith("pipe:"))}


def _list_children() -> list[str]:
    children: list[str] = []
    for task in Path("/proc/self/task").iterdir():
        # A thread may end after it was listed.
        with suppress(FileNotFoundError, ProcessLookupError):
            children += (task / "children").read_text().split()
    return children

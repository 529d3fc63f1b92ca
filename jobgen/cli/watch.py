"""`--watch`: run a command again whenever something changes that its last run has read."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from jobgen.cli.interrupt import EndedError
from jobgen.cli.result import ExitCode, Result, error_result, finish, terminal_width
from jobgen.engine.inputs import Read, Recording, find_read_path, holds, record
from jobgen.model.named_tuple import NamedTuple

_INTERVAL = 0.3
"""Seconds between two looks at the files, at least."""
_MAX_SHARE = 0.03
"""The share of one processor that looking takes, at most: with many files, there is more time between two looks."""
_CLOCK_TICK = 2 * 10**9
"""Nanoseconds within which a file system may give two changes of a file the same time."""
_CLEAR = "\033[H\033[2J"
_WAITING = "waiting for changes; press Ctrl-C to end\n"


class _State(NamedTuple):
    """What the system says about a path; a change of its content, or of a folder's entries, changes it."""

    time: int
    inode: int
    size: int


def watch(run: Callable[[], Result], directory: Path, written: Path | None = None) -> Result:
    """Run until Ctrl-C, and return the exit code of the last run that was finished; it has been printed already.

    What is in the `written` folder is not watched, because the run itself changes it.
    """
    if not directory.is_dir():
        return run()
    # One run creates no reference cycles that matter, but many do.
    gc.enable()
    last: int | None = None
    try:
        while True:
            started = time.time_ns()
            with record() as recording:
                result = _run_once(run)
            start = _CLEAR if terminal_width() is not None and os.environ.get("TERM", "dumb") != "dumb" else ""
            shown = result._replace(out=start + result.out, err=result.err + _WAITING)
            # An interrupt may arrive as soon as the user has read the output.
            last = result.code
            printed = finish(shown)
            if printed != last:
                # The output is not read any more.
                return Result(printed)
            _wait_for_change(recording, started, directory, written)
    except EndedError:
        raise
    except KeyboardInterrupt:
        if last is None:
            raise
        return Result(last)


def _run_once(run: Callable[[], Result]) -> Result:
    try:
        return run()
    except Exception as error:  # noqa: BLE001 -- the next change may repair it
        return error_result(ExitCode.INTERNAL_ERROR, f"internal error: {type(error).__name__}: {error}")


def _wait_for_change(recording: Recording, started: int, directory: Path, written: Path | None) -> None:
    """Return when a read of the recording gives something else now, or when Git has another commit."""
    reads: dict[str, list[Read]] = {path: [] for path in _list_reflogs(directory)}
    inside = os.path.join(os.path.abspath(written), "") if written is not None else None
    for read in recording.list_reads():
        path = find_read_path(read)
        if path and not (inside and os.path.join(os.path.abspath(path), "").startswith(inside)):
            reads.setdefault(path, []).append(read)
    states = {path: _look(path) for path in reads}
    # What was changed during the run may have been read before or after that.
    changed = [path for path, state in states.items() if reads[path] and _may_be_new(state, started)]
    while all(reads[path] and all(map(holds, reads[path])) for path in changed):
        looked = time.perf_counter()
        now = {path: _look(path) for path in reads}
        changed = [path for path, state in now.items() if state != states[path]]
        states = now
        if not changed:
            time.sleep(max(_INTERVAL, (time.perf_counter() - looked) / _MAX_SHARE))


def _may_be_new(state: _State | None, started: int) -> bool:
    return state is None or state.time >= started - _CLOCK_TICK


def _look(path: str) -> _State | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return _State(found.st_ctime_ns, found.st_ino, found.st_size)


def _list_reflogs(directory: Path) -> Iterator[str]:
    """Yield where Git may keep the log of commits: a commit or a checkout changes dates, and what `--since` means."""
    for folder in (directory.resolve(), *directory.resolve().parents):
        yield str(folder / ".git/logs/HEAD")

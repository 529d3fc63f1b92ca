"""Show long output in a pager, as Git does."""

from __future__ import annotations

import shlex
import signal
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from shutil import get_terminal_size

_DEFAULT = "less -FRX"
_LESS = "FRX"
"""Options of less: end if it fits on the screen, show colors, and leave the text there."""
_SIGNALED = 128
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def show_paged(text: str, environ: Mapping[str, str]) -> bool:
    """Show a text that is longer than the screen in a pager; return whether it was shown."""
    command = find_pager(environ)
    if not command or fits_screen(text):
        return False
    # A signal before the pager is known would leave it without an owner. Ctrl-C is for the pager.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return _run_pager(command, text, environ, mask)
    finally:
        signal.signal(signal.SIGINT, previous)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _run_pager(command: list[str], text: str, environ: Mapping[str, str], mask: Iterable[int]) -> bool:
    def restore_signals() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    try:
        pager = subprocess.Popen(  # noqa: S603 -- the user's own program
            command,
            stdin=subprocess.PIPE,
            env={"LESS": _LESS, **environ},
            preexec_fn=restore_signals,  # noqa: PLW1509 -- there are no threads
        )
    except (OSError, subprocess.SubprocessError):
        return False
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        # Who ends the pager has read enough.
        with suppress(BrokenPipeError):
            pager.communicate(text.encode("utf-8", "surrogateescape"))
    finally:
        if pager.poll() is None:
            pager.terminate()
        pager.wait()
    # One that fails may have shown nothing. Codes above 128 are those of signals, with which a user ends it.
    return not 0 < pager.returncode < _SIGNALED


def find_pager(environ: Mapping[str, str]) -> list[str]:
    """Return the words of the pager command; none if the user wants no pager."""
    named = next((environ[name] for name in ("JOBGEN_PAGER", "PAGER") if name in environ), _DEFAULT)
    try:
        words = shlex.split(named)
    except ValueError:
        return []
    return [] if words == ["cat"] else words


def fits_screen(text: str) -> bool:
    """Whether a text has fewer lines than the screen, which also shows the prompt."""
    columns, lines = get_terminal_size()
    needed = sum(max(1, -(-len(line) // max(columns, 1))) for line in text.splitlines())
    return needed < lines

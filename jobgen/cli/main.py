"""The process: what was asked, answered and printed, and how it ends; no other module exits."""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from jobgen import cache
from jobgen.cli.commands import ExitCode, Result, error_result
from jobgen.cli.terminal import finish, run_lint

_PATTERN = frozenset("*?[~$%")
_UNPRINTABLE = (errno.ENOSPC, errno.EPIPE)


def main() -> None:
    """Run the command line, and end the process."""
    # What a run makes has no cycles, and looking for them costs a tenth of its time.
    gc.disable()
    code = run(sys.argv[1:])
    # All is written and closed. To take down a large house brick by brick would take as long as a small lint.
    os._exit(code)


def run(words: list[str]) -> int:
    """The exit code of what was asked, once all is printed; an internal fault is one line and exit code 4."""
    try:
        result = _answer(words)
        return finish(result) if isinstance(result, Result) else result
    except KeyboardInterrupt:
        return 130
    except Exception as fault:
        if "--traceback" in words:
            raise
        if isinstance(fault, OSError) and fault.errno in _UNPRINTABLE:
            # Help is printed before it gets here.
            return finish(error_result(ExitCode.INTERNAL_ERROR, f"the output cannot be written: {fault.strerror}"))
        message = f"internal fault: {type(fault).__name__}: {fault} (see it whole with --traceback)"
        return finish(error_result(ExitCode.INTERNAL_ERROR, message))


def _answer(words: list[str]) -> Result | int:
    try:
        os.getcwd()
    except OSError:
        return error_result(ExitCode.USAGE, "the folder that this was started in is gone")
    if is_plain_lint(words, os.environ):
        cache.enable(cache.find_default_folder(), cache.installation_fingerprint())
        return run_lint(Path(), tuple(words[1:]))
    from jobgen.cli.app import answer

    return answer(words)


def is_plain_lint(words: list[str], environ: Mapping[str, str]) -> bool:
    """Whether nothing is asked but to lint some paths, as hooks and editors do: that takes no reading of options."""
    # On Windows it is up to us to make names of patterns, and that takes more.
    more = any(not word or word[0] == "-" or _PATTERN.intersection(word) for word in words)
    return words[:1] == ["lint"] and not more and "_JOBGEN_COMPLETE" not in environ

"""Answer the script of a shell: print what can come next on its command line.

Each line is a sort, a text and its help, separated by tabs. Whatever goes wrong, there are no candidates and no
message: a message would end up in the middle of what the user types.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator, Sequence
from types import FrameType

from jobgen.cli.completion.candidates import list_candidates
from jobgen.cli.completion.table import parse_words, read_table
from jobgen.cli.result import ExitCode, Result
from jobgen.cli.terminal import finish

SHELLS = ("bash", "zsh", "fish")
_SECONDS = 2.0
"""How long a user waits; then there are no candidates."""
# Whatever a file is named or contains, a candidate is neither a command nor a sequence of the terminal.
_SAFE = re.compile(r"[\w.,:=@%+/\[\]~^-]+", re.ASCII)
_BREAKS = re.compile(r".*[=:]", re.DOTALL)


class _LateError(BaseException):
    """The time is over."""


def complete(shell: str, arguments: Sequence[str]) -> int:
    """Print the candidates; the arguments are the words up to the cursor, for bash the line."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    signal.signal(signal.SIGALRM, _end)
    signal.setitimer(signal.ITIMER_REAL, _SECONDS)
    lines: list[str] = []
    try:
        if shell in SHELLS and arguments:
            lines = list(_format_lines(shell, _split_line(arguments[0]) if shell == "bash" else arguments))
    except (Exception, _LateError):  # noqa: BLE001 -- see above
        return ExitCode.OK
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    finish(Result(ExitCode.OK, "".join(lines)))
    return ExitCode.OK


def _end(_: int, __: FrameType | None) -> None:
    raise _LateError


def _format_lines(shell: str, words: Sequence[str]) -> Iterator[str]:
    table = read_table()
    completed = parse_words(table, words[1:] or [""])
    # bash replaces only what follows the last separator.
    start = _BREAKS.match(completed.lead + completed.word) if shell == "bash" else None
    for found in dict.fromkeys(list_candidates(completed, table)):
        if found.text and (not found.text.startswith(completed.word) or not _SAFE.fullmatch(found.text)):
            continue
        text = f"{completed.lead}{found.text}"[start.end() if start else 0 :] if found.text else ""
        yield f"{found.sort}\t{text}\t{found.help}\n"


def _split_line(line: str) -> list[str]:
    """Split a command line into words; the last one may have an open quote, or be empty."""
    import shlex

    lexer = shlex.shlex(line, posix=True, punctuation_chars=False)
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    try:
        words.extend(lexer)
    except ValueError:
        # The last word is not complete.
        return [*words, lexer.token]
    return [*words, ""] if line[-1:].isspace() or not words else words

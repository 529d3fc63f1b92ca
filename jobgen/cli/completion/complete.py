"""Answer the script of a shell: print what can come next on its command line.

Each line is a sort, a text and its help, separated by tabs. Whatever goes wrong, there are no candidates and no
message: a message would end up in the middle of what the user types.
"""

from __future__ import annotations

import os

from jobgen.cli.completion.candidates import LateError, list_candidates
from jobgen.cli.completion.table import parse_words, read_table
from jobgen.cli.result import ExitCode, Result
from jobgen.cli.terminal import finish

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SHELLS = ("bash", "zsh", "fish")
# Whatever a file is named or contains, a candidate is neither a command nor a sequence of the terminal.
_SIGNS = str.maketrans("", "", "_.,:=@%+/[]~^-")
_QUOTES = frozenset("'\"\\")


def complete(shell: str, arguments: Sequence[str]) -> int:
    """Print the candidates; the arguments are the words up to the cursor, for bash the line."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    lines: list[str] = []
    try:
        if shell in SHELLS and arguments:
            lines = list(_format_lines(shell, _split_line(arguments[0]) if shell == "bash" else arguments))
    except (Exception, LateError):  # noqa: BLE001 -- see above
        return ExitCode.OK
    finish(Result(ExitCode.OK, "".join(lines)))
    return ExitCode.OK


def _format_lines(shell: str, words: Sequence[str]) -> Iterator[str]:
    table = read_table()
    completed = parse_words(table, words[1:] or [""])
    # bash replaces only what follows the last separator.
    known = completed.lead + completed.word if shell == "bash" else ""
    start = max(known.rfind("="), known.rfind(":")) + 1
    for found in dict.fromkeys(list_candidates(completed, table)):
        if found.text and (not found.text.startswith(completed.word) or not _is_safe(found.text)):
            continue
        text = f"{completed.lead}{found.text}"[start:] if found.text else ""
        yield f"{found.sort}\t{text}\t{found.help}\n"


def _is_safe(text: str) -> bool:
    """Whether a text has letters, digits and harmless signs only."""
    rest = text.translate(_SIGNS)
    return not rest or (rest.isascii() and rest.isalnum())


def _split_line(line: str) -> list[str]:
    """Split a command line into words; the last one may have an open quote, or be empty."""
    if line.isascii() and line.isprintable() and _QUOTES.isdisjoint(line):
        words = line.split()
        return [*words, ""] if line.endswith(" ") or not words else words
    import shlex

    lexer = shlex.shlex(line, posix=True, punctuation_chars=False)
    lexer.whitespace_split = True
    lexer.commenters = ""
    words = []
    try:
        words.extend(lexer)
    except ValueError:
        # The last word is not complete.
        return [*words, lexer.token]
    return [*words, ""] if line[-1:].isspace() or not words else words

"""What is wrong with the text of a Python script: what every release refuses, and not what only an older one does."""

from __future__ import annotations

import ast
import warnings
from functools import lru_cache

from jobgen.model.data import Location
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.yamlio.inner_text import find_line

_MAX_TEXT = 200_000
# Text of other tools, and syntax that only newer releases have.
_TEMPLATE = lazy_pattern(r"\{\{\s*\.|\{%|<%|\$\{|\A\s*[%!]")
_NEWER = lazy_pattern(r"""\b[fFtT][rR]?["']|\b[rR][fFtT]["']|^\s*(?:async\s+)?(?:class|def|type)\s+\w+\s*[\[=]""")
_OPEN = lazy_pattern(r"'(.)' was never closed")
_ALONE = lazy_pattern(r"unmatched '(.)'")
_OTHER = lazy_pattern(r"closing parenthesis '(.)' does not match opening parenthesis '(.)'")
# Statements that need a line of their own.
_FOLLOWS = lazy_pattern(r"(for|while|if|with|def|class|try|async)\b")
_SHOWN = 60


class PythonFault(NamedTuple):
    """What Python refuses, and where."""

    message: str
    inside: Location


@lru_cache(maxsize=64)
def find_python_fault(text: str) -> PythonFault | None:
    """Return what Python refuses in a script; None if it refuses nothing, or if another release may accept it."""
    if len(text) > _MAX_TEXT:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        return _describe(text, error)
    except (ValueError, RecursionError, MemoryError):
        return None
    return None


def _describe(text: str, error: SyntaxError) -> PythonFault | None:
    lines = text.split("\n")
    number = min(max(error.lineno or 1, 1), len(lines))
    if _TEMPLATE.search(text) or _NEWER.search(lines[number - 1]):
        return None
    start = lines[number - 1].encode()[: max(error.offset or 1, 1) - 1].decode(errors="replace")
    follows = _FOLLOWS.match(lines[number - 1][len(start) :]) if start.rstrip().endswith(";") else None
    answer = _advise(lines, number, error.msg)
    if follows and error.msg == "invalid syntax":
        answer = f"`{follows[1]}` cannot follow `;`", "begin a line with it, in a block of text (`|`)"
    if not answer:
        return None
    return PythonFault(f"{answer[0]} (Python: `{error.msg}`); {answer[1]}", find_line(text, number))


def _advise(lines: list[str], number: int, found: str) -> tuple[str, str] | None:
    """Return what is wrong with a line, and what to write; None for what not every release refuses."""
    line = lines[number - 1].strip()
    is_short = bool(line) and len(line) <= _SHOWN and "`" not in line
    shown = f"`{line}`" if is_short else "the line"
    if found == "expected ':'":
        code = line.partition("#")[0].rstrip()
        return f"{shown} has no `:`", f"write `{code}:`" if is_short and code[-1:] not in (":", "\\") else "add it"
    if sign := _OPEN.match(found):
        return f"`{sign[1]}` is not closed", f"write the `{_CLOSERS.get(sign[1], sign[1])}`"
    if sign := _OTHER.match(found):
        return f"`{sign[1]}` does not close `{sign[2]}`", f"write `{_CLOSERS.get(sign[2], sign[2])}`"
    if sign := _ALONE.match(found):
        return f"`{sign[1]}` closes nothing", "remove it"
    told = next((each for start, each in _ADVICE.items() if found.startswith(start)), None)
    return (told[0].format(shown), told[1]) if told else None


_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_CORRECT = ("Python cannot read {}", "correct it")
_NOT_ALIGNED = ("{} is not aligned with the lines before it", "indent them alike, with spaces and no tabs")
_ADVICE = {
    "unterminated string": ("a quotation mark in {} is not closed", "write the other one"),
    "unterminated triple": ("a quotation mark in {} is not closed", "write the other one"),
    "unexpected indent": ("{} is indented more than the line before it", "remove the spaces"),
    "expected an indented block": ("{} is not indented below the line before it", "indent it by 4 spaces"),
    "unindent does not match": _NOT_ALIGNED,
    "inconsistent use of tabs": _NOT_ALIGNED,
    "Missing parentheses in call to": ("{} is Python 2", "write `print(…)`"),
    "invalid syntax. Maybe you meant '=='": ("{} assigns in a condition", "write `==`"),
    "invalid character": _CORRECT,
    "invalid non-printable": _CORRECT,
    "expected 'except'": _CORRECT,
    "cannot assign to": _CORRECT,
}
"""What is wrong with a line, and what to write, by the start of the message."""

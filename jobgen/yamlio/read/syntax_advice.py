"""What a syntax error of YAML means for the person who wrote it, and where its cause is."""

from __future__ import annotations

import re
from typing import Any

from jobgen.yamlio.read.scalars import quote

_NO_SPACE = re.compile(r"([\w./-]+):([^\s:/][^:]*)\Z")
_WIDE_COLON = re.compile(r"^[ \t-]*[A-Za-z0-9_./][A-Za-z0-9_./-]*(：)", re.MULTILINE)
_COLON_ERRORS = ("could not find expected ':'", "mapping values are not allowed in this context")
_CLOSING = {"[": "]", "{": "}"}
# Brackets outside of comments and quotes. A quote in the middle of a word, as in `don't`, is text.
_BRACKETS = re.compile(r"(?<!\S)#[^\n]*|(?<![\w])(?:\"(?:[^\"\\]|\\.)*\"|'[^']*')|(?P<open>[\[{])|(?P<close>[\]}])")
_KEY_FIRST = re.compile(r"\s*[\w./\"'-]+\Z")
_CONFLICT = re.compile(r"^(?:<<<<<<< |=======\r?$|>>>>>>> |\|{7} )", re.MULTILINE)
_ODD_SPACE = re.compile(r"^[ \t]*([\u00a0\u2000-\u200b\u202f\u205f\u3000])", re.MULTILINE)


def find_conflict(text: str, at: int) -> tuple[str, int] | None:
    """Return what to do about a merge conflict, and the character to point at."""
    # Git writes such lines where both sides of a merge changed the same ones.
    conflict = _CONFLICT.search(text[: at + len(_rest(text, at))])
    if conflict:
        lines = "`<<<<<<<`, `=======` and `>>>>>>>`"
        message = f"the file has an unresolved merge conflict; keep one side, and remove the lines with {lines}"
        return message, conflict.start()
    return None


def find_foreign_text(error: Any, text: str, at: int) -> tuple[str, int] | None:
    """Return what to do about text that is none of YAML but looks so, and the character to point at."""
    # After such an indentation, the lines before it seem to go on.
    found = _find_near(_ODD_SPACE, text, at)
    if found >= 0:
        return f"`U+{ord(text[found]):04X}` is not a space of YAML, though it looks like one; indent with spaces", found
    # A full-width colon after a key, as input methods for Chinese write it.
    found = _find_near(_WIDE_COLON, text, at) if error.problem in _COLON_ERRORS else -1
    if found >= 0:
        return f"`{text[found]}` is not the `:` of YAML, though it looks like one; write `: `", found
    return None


def advise(error: Any, text: str, at: int) -> tuple[str, int] | None:
    """Return what to do about an error of libyaml, and the character to point at; None if its own message must do."""
    return (
        _find_open_bracket(error, text, at)
        or _find_missing_space(error, text, at)
        or _find_indentation(error, text, at)
    )


def _find_near(pattern: re.Pattern[str], text: str, at: int) -> int:
    """The place of the last match of a pattern, by its group, in the line of an error and some above; -1 if none."""
    start = at
    for _ in range(4):
        start = max(text.rfind("\n", 0, start), 0)
    found = list(pattern.finditer(text[start : at + len(_rest(text, at))]))
    return start + found[-1].start(1) if found else -1


def _find_open_bracket(error: Any, text: str, at: int) -> tuple[str, int] | None:
    """The bracket that is not closed, or the place in its line where a comma may be missing."""
    rest, opened = _rest(text, at), -1
    if error.context in ("while parsing a flow sequence", "while parsing a flow mapping") and error.context_mark:
        opened = error.context_mark.index
    elif error.context == "while parsing a flow node" and not rest:
        opened = _find_last_open(text[:at])
    bracket = text[opened : opened + 1] if opened >= 0 else ""
    closing = _CLOSING.get(bracket)
    if closing is None:
        return None
    if opened < at and "\n" not in text[opened:at] and rest:
        return f"`,` or `{closing}` is missing before {quote(rest)}", at
    return f"this `{bracket}` is not closed; write `{closing}` at its end", opened


def _find_last_open(text: str) -> int:
    """The last bracket that is not closed; -1 if there is none."""
    opened: list[int] = []
    for part in _BRACKETS.finditer(text):
        if part["open"]:
            opened.append(part.start("open"))
        elif part["close"] and opened:
            opened.pop()
    return opened[-1] if opened else -1


def _find_missing_space(error: Any, text: str, at: int) -> tuple[str, int] | None:
    if error.problem != "could not find expected ':'":
        return None
    line = _rest(text, at)
    pair = _NO_SPACE.match(line)
    if pair:
        return f"{quote(line)} has no space after its colon; write {quote(f'{pair[1]}: {pair[2]}')}", at
    return f"{quote(line)} has no colon; write a key and its value as `key: value`", at


def _find_indentation(error: Any, text: str, at: int) -> tuple[str, int] | None:
    line = _rest(text, at)
    before = text[:at].rpartition("\n")[2]
    if error.problem == "did not find expected key" and error.context == "while parsing a block mapping":
        if line.startswith("- "):
            return f"{quote(line)} is an item of a list among the keys of a mapping; indent it below its key", at
        if not before.strip():
            return f"{quote(line)} is not aligned with the keys beside it; correct its indentation", at
    if error.problem == "mapping values are not allowed in this context":
        if _KEY_FIRST.match(before):
            return f"{quote(before.strip())} is indented below a value; align it with the keys beside it", at
        if ": " in before:
            return f"a second `: ` in one line at {quote(line)}; quote the value if it is text", at
    return None


def _rest(text: str, at: int) -> str:
    """The rest of a line, as the message of libyaml's error shows it."""
    end = text.find("\n", at)
    return text[at : len(text) if end < 0 else end].rstrip()

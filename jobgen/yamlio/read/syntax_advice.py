"""What a syntax error of YAML means for the person who wrote it, and where its cause is."""

from __future__ import annotations

import re
from typing import Any

from jobgen.yamlio.read.scalars import quote

_NO_SPACE = re.compile(r"([\w./-]+):([^\s:/][^:]*)\Z")
_CLOSING = {"[": "]", "{": "}"}
# Brackets outside of comments and quotes. A quote in the middle of a word, as in `don't`, is text.
_BRACKETS = re.compile(r"(?<!\S)#[^\n]*|(?<![\w])(?:\"(?:[^\"\\]|\\.)*\"|'[^']*')|(?P<open>[\[{])|(?P<close>[\]}])")
_NEAR = 4
"""How many lines before an error its cause may be."""
_KEY_FIRST = re.compile(r"\s*[\w./\"'-]+\Z")
_CONFLICT = re.compile(r"^(?:<<<<<<< |=======\r?$|>>>>>>> |\|{7} )", re.MULTILINE)
_ODD_SPACE = re.compile(r"^[ \t]*([\u00a0\u2000-\u200b\u202f\u205f\u3000])", re.MULTILINE)


def advise(error: Any, text: str, at: int) -> tuple[str, int] | None:
    """Return what to do about an error of libyaml, and the character to point at; None if its own message must do."""
    return (
        _find_conflict(text, at)
        or _find_odd_space(text, at)
        or _find_open_bracket(error, text, at)
        or _find_missing_space(error, text, at)
        or _find_indentation(error, text, at)
    )


def _find_conflict(text: str, at: int) -> tuple[str, int] | None:
    """The first line up to the error that Git writes where both sides of a merge changed the same lines."""
    found = _CONFLICT.search(text[: at + len(_rest(text, at))])
    if found is None:
        return None
    lines = "`<<<<<<<`, `=======` and `>>>>>>>`"
    return f"the file has an unresolved merge conflict; keep one side, and remove the lines with {lines}", found.start()


def _find_odd_space(text: str, at: int) -> tuple[str, int] | None:
    """The last space in an indentation near the error that is not one of YAML: the lines before it seem to go on."""
    start = at
    for _ in range(_NEAR):
        start = max(text.rfind("\n", 0, start), 0)
    found = list(_ODD_SPACE.finditer(text[start : at + len(_rest(text, at))]))
    if not found:
        return None
    code = f"U+{ord(found[-1][1]):04X}"
    return f"`{code}` is not a space of YAML, though it looks like one; indent with spaces", start + found[-1].start(1)


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

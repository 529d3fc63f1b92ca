"""The items of a list or mapping in brackets, as the person who wrote the line sees them.

To that person `--milestones=[30,60]` is one item, whatever YAML reads. Only one line is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.model.lazy_re import lazy_pattern

_OPENED = lazy_pattern(r"\s*(?:- +)?(?:[\w./-]+: +)?([\[{])")
_ENTRY = lazy_pattern(r"([\w./-]+: +)(?=\S)")
_CLOSING = {"[": "]", "{": "}"}
# No plain text begins with these characters in brackets.
_RESERVED = "@`%|>"
_BRACKET = lazy_pattern(r"[\[\]{}]")
_BRACKET_OR_COLON = lazy_pattern(r"[\[\]{}]|: ")


def find_opening(line: str) -> int:
    """Return the column behind the bracket with which the value of a line begins; -1 if it begins with none."""
    found = _OPENED.match(line)
    return found.end() if found else -1


def split_items(line: str, start: int) -> Iterator[tuple[int, int]]:
    """Yield the first and last column of each item from a column on, up to the bracket that closes the collection."""
    open_brackets: list[str] = []
    begin, at = start, start
    while at < len(line):
        character = line[at]
        if character in "\"'" and line[at - 1] in " [{,":
            end = line.find(character, at + 1)
            at = end if end >= 0 else at
        elif character in _CLOSING:
            open_brackets.append(_CLOSING[character])
        elif open_brackets and character == open_brackets[-1]:
            open_brackets.pop()
        elif not open_brackets and character in ",]}":
            yield from _strip(line, begin, at)
            begin = at + 1
            if character != ",":
                return
        at += 1
    if not open_brackets:
        yield from _strip(line, begin, len(line))


def _strip(line: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    text = line[begin:end]
    if text.strip():
        yield begin + len(text) - len(text.lstrip()), begin + len(text.rstrip())


def quote_items(line: str, *, brackets_only: bool = False, start: int = -1) -> tuple[str, list[tuple[str, str]]]:
    """Return a line with quotes around the plain items that have brackets or a second colon, and these items.

    So does an item whose first character has a meaning in YAML.
    The items begin at a column, or behind the bracket with which the value of the line begins.
    """
    pattern = _BRACKET if brackets_only else _BRACKET_OR_COLON
    start = start if start >= 0 else find_opening(line)
    found: list[tuple[str, str]] = []
    new, at = line[: max(start, 0)], start
    for begin, end in split_items(line, start) if start >= 0 else ():
        entry = _ENTRY.match(line, begin)
        begin = entry.end() if entry and entry.end() < end else begin  # noqa: PLW2901
        text = line[begin:end]
        is_reserved = not brackets_only and text[0] in _RESERVED
        if text[0] not in "[{\"'" and (is_reserved or pattern.search(text)):
            mark = "'" if '"' in text or "\\" in text else '"'
            meant = mark + text.replace("'", "''" if mark == "'" else "'") + mark
            found.append((text, meant))
            new += line[at:begin] + meant
            at = end
    return (new + line[at:] if found else line), found

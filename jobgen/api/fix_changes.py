"""What fixes changed, line by line, in a few words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher

from jobgen.api.fix import FixedFile
from jobgen.render.redact import redact_lines

_MAX_LINES = 20
_MAX_TEXT = 60
_MAX_COMPARED = 1_000
"""Between the first and the last changed line, more lines are not compared, because that takes long."""


def describe_changes(files: Iterable[FixedFile]) -> list[str]:
    """Return a line for each changed line of the files, such as `a.yaml:7: gpus -> gpu`; of many, the first."""
    found = [change for file in files for change in _describe_file(file)]
    more = len(found) - _MAX_LINES
    return found if more < 2 else [*found[:_MAX_LINES], f"and {more} more"]


def _describe_file(file: FixedFile) -> Iterator[str]:
    old, new = (content.decode("utf-8", "replace").splitlines() for content in (file.old, file.new))
    old_shown, new_shown = redact_lines(old), redact_lines(new)
    start, end = _count_common(old, new)
    if max(len(old), len(new)) - start - end > _MAX_COMPARED:
        yield f"{file.path}:{start + 1}: changed"
        return
    for first, last, new_first, new_last in _find_changed(old, new, start, end):
        both = min(last - first, new_last - new_first)
        for number in range(both):
            change = _compare(old_shown[first + number], new_shown[new_first + number])
            yield f"{file.path}:{first + number + 1}: {change}"
        for number in range(first + both, last):
            yield f"{file.path}:{number + 1}: removed `{_shorten(old_shown[number].strip())}`"
        for number in range(new_first + both, new_last):
            yield f"{file.path}:{number + 1}: added `{_shorten(new_shown[number].strip())}`"


def _count_common(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many items both start with, and how many of the others they end with."""
    start, end, least = 0, 0, min(len(old), len(new))
    while start < least and old[start] == new[start]:
        start += 1
    while end < least - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return start, end


def _find_changed(old: Sequence[str], new: Sequence[str], start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """The ranges of lines that differ, between those that both start and end with."""
    middle = old[start : len(old) - end], new[start : len(new) - end]
    for tag, *places in SequenceMatcher(None, *middle, autojunk=False).get_opcodes():
        if tag != "equal":
            first, last, new_first, new_last = (place + start for place in places)
            yield first, last, new_first, new_last


def _compare(old: str, new: str) -> str:
    """The part of a line that differs, in whole words."""
    start, end = _count_common(old, new)
    while start and not old[start - 1].isspace() and old[start - 1] not in "{[,":
        start -= 1
    while end and not old[-end].isspace() and old[-end] not in ",]}:":
        end -= 1
    before, after = (_shorten(text[start : len(text) - end].strip()) for text in (old, new))
    return f"`{before}` -> `{after}`"


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"

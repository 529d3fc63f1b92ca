"""The owners of files in a CODEOWNERS file, by the rules of GitHub: the last pattern that matches a file wins."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

from jobgen.model.lazy_re import lazy_pattern

CODE_OWNERS_FILES = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS")
"""Where the file may be, from the top of the Git repository; the first one counts."""

_WORD = lazy_pattern(r"(?:\\.|[^\s\\])+")
_SPECIAL = lazy_pattern(r"\\(.)|(\[)")
_INVALID = ("!", "[", "^[")
"""Starts of lines that GitHub skips: negation, ranges, and the sections of GitLab."""

_ANY = "**"
"""Any number of folders, also none."""


class OwnerRule(NamedTuple):
    """A line of the file."""

    names: tuple[str, ...]
    """A pattern for each part of the path."""
    owners: str
    """Separated by spaces; empty if the line says that these files have no owner."""


def parse_code_owners(text: str) -> tuple[OwnerRule, ...]:
    """Read the lines of a CODEOWNERS file; lines that GitHub skips are skipped."""
    return tuple(_parse_lines(text))


def _parse_lines(text: str) -> Iterator[OwnerRule]:
    for line in text.splitlines():
        words = _WORD.findall(line)
        comment = next((at for at, word in enumerate(words) if word.startswith("#")), len(words))
        if comment and not words[0].startswith(_INVALID):
            yield OwnerRule(tuple(_split_pattern(words[0])), " ".join(words[1:comment]))


def find_code_owners(rules: tuple[OwnerRule, ...], path: str) -> str:
    """Return the owners of a file, whose path begins at the top of the Git repository; empty if it has none."""
    parts = path.split("/")
    return next((rule.owners for rule in reversed(rules) if _matches(rule.names, parts)), "")


def _split_pattern(pattern: str) -> Iterator[str]:
    """Split a pattern; one without a slash before its end matches at any depth."""
    is_anchored = "/" in pattern.rstrip("/")
    names = pattern.strip("/").split("/")
    if not is_anchored:
        yield _ANY
    yield from (name if name == _ANY else _to_glob(name) for name in names[:-1])
    last = names[-1]
    if last == _ANY:
        yield from ("*", _ANY)
    elif pattern.endswith("/"):
        yield from (_to_glob(last), "*", _ANY)  # only what is in the folder
    elif last == "*" and is_anchored:
        yield "*"  # files in the folder, and not in folders below it
    else:
        yield from (_to_glob(last), _ANY)  # a file, or what is in a folder of this name


def _to_glob(name: str) -> str:
    """Return a pattern of fnmatch: brackets stand for themselves, and so does what follows a backslash."""
    return _SPECIAL.sub(lambda found: f"[{found[1] or found[2]}]", name)


def _matches(names: tuple[str, ...], parts: list[str]) -> bool:
    """Follow all ways through the pattern at once, so that no pattern takes long."""
    reached = _pass_any(names, {0})
    for part in parts:
        stay = {at for at in reached if at < len(names) and names[at] == _ANY}
        go = {at + 1 for at in reached - stay if at < len(names) and fnmatchcase(part, names[at])}
        reached = _pass_any(names, stay | go)
    return len(names) in reached


def _pass_any(names: tuple[str, ...], places: set[int]) -> set[int]:
    """Add the places behind each `**`, which may match nothing."""
    found = set(places)
    for at in places:
        following = at
        while following < len(names) and names[following] == _ANY:
            following += 1
            found.add(following)
    return found

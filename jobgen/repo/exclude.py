"""Patterns of files that a lint leaves out, as in a .gitignore file.

A pattern without a slash matches a file or folder of that name anywhere; others start at the root. `*` matches within a
name, `**` any number of folders, and a slash at the end only folders. What is below a matched folder is excluded too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from itertools import islice, pairwise

from jobgen.model.named_tuple import NamedTuple

_ANY_FOLDERS = "**"
_MAX_PATTERNS = 100
_MAX_LENGTH = 200
"""The same as in the schema of the settings: more, or longer ones, are errors there and match nothing here."""


class ExcludePattern(NamedTuple):
    """A pattern as it is written, the names that it matches, and whether it matches only folders."""

    text: str
    names: tuple[str, ...]
    only_folders: bool

    def matches(self, path: str) -> bool:
        """Whether a file, by its path from the root, or one of the folders above it matches."""
        parts = path.split("/")
        states = self._skip_folders({0})
        for number, part in enumerate(parts, 1):
            ahead = {state + (self.names[state] != _ANY_FOLDERS) for state in states if self._fits(state, part)}
            states = self._skip_folders(ahead)
            if len(self.names) in states and not (self.only_folders and number == len(parts)):
                return True
        return False

    def _fits(self, state: int, part: str) -> bool:
        return state < len(self.names) and (self.names[state] == _ANY_FOLDERS or fnmatchcase(part, self.names[state]))

    def _skip_folders(self, states: set[int]) -> set[int]:
        """Add the states after each `**`, which may match no folder."""
        found = set(states)
        for state in range(len(self.names)):
            if state in found and self.names[state] == _ANY_FOLDERS:
                found.add(state + 1)
        return found


def parse_patterns(texts: Iterable[str]) -> tuple[ExcludePattern, ...]:
    """Parse the patterns of a list."""
    return tuple(_parse_pattern(text) for text in islice(texts, _MAX_PATTERNS) if len(text) <= _MAX_LENGTH)


def _parse_pattern(text: str) -> ExcludePattern:
    body = text.rstrip("/")
    written = [name for name in body.split("/") if name not in ("", ".")]
    # `**/**` is the same as `**`.
    names = tuple(name for before, name in pairwise(["", *written]) if not before == name == _ANY_FOLDERS)
    return ExcludePattern(text, names if "/" in body else (_ANY_FOLDERS, *names), text.endswith("/"))


def is_excluded(path: str, patterns: Sequence[ExcludePattern]) -> bool:
    """Whether a pattern matches a path."""
    return any(pattern.matches(path) for pattern in patterns)

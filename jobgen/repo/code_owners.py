"""The owners of files in a CODEOWNERS file, by the rules of GitHub: the last pattern that matches a file wins."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo.walk import ANY_FOLDERS, match_names

CODE_OWNERS_FILES = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS")
"""Where the file may be, from the top of the Git repository; the first one counts."""
_WORD = lazy_pattern(r"(?:\\.|[^\s\\])+")
_SPECIAL = lazy_pattern(r"\\(.)|(\[)")
_INVALID = ("!", "[", "^[")
"""Starts of lines that GitHub skips: negation, ranges, and the sections of GitLab."""


class OwnerRule(NamedTuple):
    """A line of the file."""

    names: tuple[str, ...]
    """A pattern for each part of the path."""
    owners: str
    """Separated by spaces; empty if the line says that these files have no owner."""


def parse_code_owners(text: str) -> tuple[OwnerRule, ...]:
    """Read the lines of a CODEOWNERS file; lines that GitHub skips are skipped."""
    rules: list[OwnerRule] = []
    for words in map(_WORD.findall, text.splitlines()):
        comment = next((at for at, word in enumerate(words) if word.startswith("#")), len(words))
        if comment and not words[0].startswith(_INVALID):
            rules.append(OwnerRule(tuple(_split_pattern(words[0])), " ".join(words[1:comment])))
    return tuple(rules)


def find_code_owners(rules: tuple[OwnerRule, ...], path: str) -> str:
    """Return the owners of a file, whose path begins at the top of the Git repository; empty if it has none."""
    parts = path.split("/")
    return next((rule.owners for rule in reversed(rules) if [*match_names(rule.names, parts)][-1]), "")


def _split_pattern(pattern: str) -> Iterator[str]:
    """Split a pattern; one without a slash before its end matches at any depth."""
    is_anchored = "/" in pattern.rstrip("/")
    names = pattern.strip("/").split("/")
    if not is_anchored:
        yield ANY_FOLDERS
    yield from (name if name == ANY_FOLDERS else _to_glob(name) for name in names[:-1])
    last = names[-1]
    if last == ANY_FOLDERS:
        yield from ("*", ANY_FOLDERS)
    elif pattern.endswith("/"):
        yield from (_to_glob(last), "*", ANY_FOLDERS)  # only what is in the folder
    elif last == "*" and is_anchored:
        yield "*"  # files in the folder, and not in folders below it
    else:
        yield from (_to_glob(last), ANY_FOLDERS)  # a file, or what is in a folder of this name


def _to_glob(name: str) -> str:
    """Return a pattern of fnmatch: brackets stand for themselves, and so does what follows a backslash."""
    return _SPECIAL.sub(lambda found: f"[{found[1] or found[2]}]", name)

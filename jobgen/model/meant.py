"""What a misspelled word is meant as, and whether that is certain: this alone decides which misspellings are fixed.

A word is certain if exactly one known word is the same but for case and separators, or exactly one is a single slip of
the keyboard away: a letter too many, a letter missing, another letter, or two letters swapped. Digits tell things apart
(`v1`, `v2`), also with the letter beside them (`a100`, `h100`), and so do most letters of short words: these are none.
"""

from __future__ import annotations

from collections.abc import Iterable

from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import MAX_COMPARED, MAX_SUGGESTIONS

_SEPARATORS = lazy_pattern(r"[-_. ]")
_PLURAL = lazy_pattern(r"ies\Z|(?:(?<=[sxz])|(?<=[cs]h))es\Z")
_PARTS = lazy_pattern(r"[A-Z]?[a-z0-9]+|[A-Z]+")
_PRERELEASE = lazy_pattern(r"(?:alpha|beta)[0-9]{1,3}\Z")
_OWN_GROUP = "jobgen.dev/"
_LEAST = 4
"""Shorter words are too alike: `cpu` and `gpu`. Two swapped letters are a slip in a word of three, too."""


def find_meant(word: str, known: Iterable[str]) -> str:
    """Return the one other word that an unknown word certainly means; an empty string if there is none or a choice.

    A word that is known means itself, so it never has another one.
    """
    if len(word) > MAX_COMPARED:
        return ""
    known = list(known)
    if word in known:
        return ""
    words = [other for other in known[:MAX_SUGGESTIONS] if len(other) <= MAX_COMPARED]
    same = [other for other in words if is_same_name(word, other) or _is_prerelease(word, other)]
    near = same or [other for other in words if is_one_slip(word.lower(), other.lower())]
    return near[0] if len(near) == 1 else ""


def may_mean(word: str, known: str) -> bool:
    """Return True if a word may mean a known one, whatever else is known."""
    return len(word) <= MAX_COMPARED and (
        is_one_slip(word.lower(), known.lower()) or is_same_name(word, known) or _is_prerelease(word, known)
    )


def is_same_name(one: str, other: str) -> bool:
    """Return True if two names differ only in case, dashes, dots and underscores."""
    return _SEPARATORS.sub("", one).lower() == _SEPARATORS.sub("", other).lower()


def is_one_slip(one: str, other: str) -> bool:
    """Return True if a single slip of the keyboard makes one word of another."""
    short, long = (one, other) if len(one) <= len(other) else (other, one)
    if len(long) - len(short) > 1 or len(short) < _LEAST - 1 or one == other:
        return False
    start = next((at for at, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    around = slice(max(start - 1, 0), start + 2)
    if any(letter.isdigit() for letter in short[around] + long[around]):
        return False
    if len(short) < len(long):
        return short[start:] == long[start + 1 :]
    if short[start + 1 :] == long[start + 1 :]:
        return len(short) >= _LEAST
    return short[start : start + 2] == long[start : start + 2][::-1] and short[start + 2 :] == long[start + 2 :]


def is_near(word: str, known: str) -> bool:
    """Return True if a known word can be guessed from a word: a third of its letters differ at most, or its end is cut.

    `time` and `image` share most of their letters, but neither is meant by the other. A beginning of two parts says
    enough: `ttlSeconds` of `ttlSecondsAfterFinished`.
    """
    one, other = (_to_singular(_SEPARATORS.sub("", name).lower()) for name in (word, known))
    if other.startswith(one) and len(_PARTS.findall(word)) > 1:
        return True
    return 3 * count_changes(one, other) <= max(len(one), len(other))


def _to_singular(name: str) -> str:
    return _PLURAL.sub(lambda end: "y" if end[0] == "ies" else "", name)


def count_changes(one: str, other: str) -> int:
    """Return how many letters are added, removed, changed or swapped with their neighbor to make one word another."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        before, above, row = row, before, [i]
        for j, wanted in enumerate(other, 1):
            least = min(before[j] + 1, row[-1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                least = min(least, above[j - 2] + 1)
            row.append(least)
    return row[-1]


def _is_prerelease(word: str, known: str) -> bool:
    """Return True if a word is an alpha or beta version of a version of jobgen's own formats."""
    is_own = known.startswith(_OWN_GROUP) and word.startswith(known)
    return is_own and _PRERELEASE.match(word[len(known) :]) is not None

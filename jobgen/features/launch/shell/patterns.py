"""Patterns of a shell: what they match, in time that grows with the text and not with its ways to match."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache

MAX_PATTERN = 1000


class _Part:
    """The signs between two stars: each matches one character."""

    def __init__(self, signs: tuple[tuple[str, bool], ...]) -> None:
        self.width = len(signs)
        self._text = None if any(is_set for _, is_set in signs) else "".join(sign for sign, _ in signs)
        self._signs = signs

    @cached_property
    def _set(self) -> re.Pattern[str]:
        # It repeats nothing, so that it has one way to match.
        return re.compile("".join(sign if is_set else re.escape(sign) for sign, is_set in self._signs), re.DOTALL)

    def fits(self, text: str, at: int) -> bool:
        """Return True if it matches at a place."""
        if at < 0:
            return False
        return text.startswith(self._text, at) if self._text is not None else self._set.match(text, at) is not None

    def find(self, text: str, at: int) -> int:
        """Return the first place from another one on; -1 if there is none."""
        if self._text is not None:
            return text.find(self._text, at)
        found = self._set.search(text, at)
        return found.start() if found else -1

    def find_last(self, text: str, at: int) -> int:
        """Return the last place that is not before another one; -1 if there is none."""
        if self._text is not None:
            return text.rfind(self._text, at)
        places = range(len(text) - self.width, at - 1, -1)
        return next((place for place in places if self._set.match(text, place)), -1)


class Pattern:
    """A pattern of files, as a shell uses it for texts as well."""

    def __init__(self, parts: tuple[tuple[tuple[str, bool], ...], ...]) -> None:
        self._signs = parts
        self._parts = tuple(map(_Part, parts))
        self.width = sum(part.width for part in self._parts)

    @cached_property
    def _mirrored(self) -> Pattern:
        return Pattern(tuple(part[::-1] for part in self._signs[::-1]))

    def matches(self, text: str) -> bool:
        """Return True if it matches a whole text."""
        end = self._pass_inner(text, 0)
        last = self._parts[-1]
        if len(self._parts) == 1:
            return last.width == len(text) and last.fits(text, 0)
        return 0 <= end <= len(text) - last.width and last.fits(text, len(text) - last.width)

    def find_end(self, text: str, start: int = 0, *, longest: bool) -> int:
        """Return where the shortest or longest match at a place ends; -1 if there is none."""
        last = self._parts[-1]
        end = self._pass_inner(text, start)
        if len(self._parts) == 1:
            return start + last.width if last.fits(text, start) else -1
        place = -1 if end < 0 else last.find_last(text, end) if longest else last.find(text, end)
        return place + last.width if place >= 0 else -1

    def find_start(self, text: str, *, longest: bool) -> int:
        """Return where the shortest or longest match at the end of a text begins; -1 if there is none."""
        end = self._mirrored.find_end(text[::-1], longest=longest)
        return len(text) - end if end >= 0 else -1

    def replace(self, text: str, new: str, *, everywhere: bool) -> str:
        """Replace the first or every longest match that is not empty."""
        pieces: list[str] = []
        at = 0
        for start, end in self._list_matches(text):
            pieces += (text[at:start], new)
            at = end
            if not everywhere:
                break
        return "".join((*pieces, text[at:]))

    def _list_matches(self, text: str) -> Iterator[tuple[int, int]]:
        at = 0
        while at < len(text):
            start = self._parts[0].find(text, at)
            end = self.find_end(text, start, longest=True) if start >= 0 else -1
            # What does not match after the first of such parts does not match after a later one.
            if end <= start:
                return
            yield start, end
            at = end

    def _pass_inner(self, text: str, start: int) -> int:
        """Return where what is before the last star has matched first; -1 if it does not."""
        if len(self._parts) == 1:
            return start
        first, *inner = self._parts[:-1]
        at = start + first.width if first.fits(text, start) else -1
        for part in inner:
            place = part.find(text, at) if at >= 0 else -1
            at = place + part.width if place >= 0 else -1
        return at


@lru_cache(maxsize=256)
def parse_pattern(text: str) -> Pattern | None:
    """Parse a pattern, in which a sign after a backslash is meant as it is; None if it is not supported."""
    parts: list[list[tuple[str, bool]]] = [[]]
    at = 0
    while at < len(text):
        sign = text[at]
        at += 1
        if sign == "\\":
            parts[-1] += [(each, False) for each in text[at : at + 1]]
            at += 1
        elif sign == "*":
            parts.append([])
        elif sign == "?":
            parts[-1].append((".", True))
        elif sign == "[":
            end = text.find("]", at + 1)
            if end < 0 or "\\" in text[at:end] or "[" in text[at:end]:
                return None
            inner = text[at:end]
            sign = f"[{'^' + inner[1:] if inner[0] in '!^' else inner}]"
            try:
                re.compile(sign)
            except re.error:
                return None
            parts[-1].append((sign, True))
            at = end + 1
        else:
            parts[-1].append((sign, False))
    if sum(map(len, parts)) + len(parts) > MAX_PATTERN:
        return None
    return Pattern(tuple(map(tuple, parts)))

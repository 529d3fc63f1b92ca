"""Regular expressions that are compiled on first use: there are many, and most runs use few of them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Any, AnyStr, cast


class _Pattern:
    def __init__(self, text: str | bytes, flags: int) -> None:
        self._arguments = (text, flags)

    def __getattr__(self, name: str) -> Any:
        compiled: re.Pattern[Any] = re.compile(*self._arguments)
        found = getattr(compiled, name)
        # Found directly next time, without this method.
        setattr(self, name, found)
        return found


def has_any(text: AnyStr, words: Iterable[AnyStr]) -> bool:
    """Return True if a text has one of some words, as a cheap test before a pattern."""
    for word in words:  # noqa: SIM110 -- faster than a generator, and it runs for every text
        if word in text:
            return True
    return False


def may_mention(content: bytes, word: bytes) -> bool:
    """Return True if a file of YAML may have a word: an escape or another encoding may stand for any character."""
    return word in content or b"\\" in content or b"\0" in content[:4]


def lazy_pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Like `re.compile`, but compiled on first use."""
    return cast("re.Pattern[AnyStr]", _Pattern(text, flags))


def possessive_pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """Like `lazy_pattern`, for a pattern with possessive groups that matches the same texts if they may give back.

    Before Python 3.11.5, what follows such a group is matched at a wrong place if the last try of the group fails after
    a part of it; Debian 12 has 3.11.2. There, groups may give back, which takes more memory.
    """
    return lazy_pattern(text if sys.version_info >= (3, 11, 5) else let_give_back(text), flags)


def let_give_back(text: str) -> str:
    """Return a pattern whose groups are not possessive; single characters stay so. No set may have `)*+` or similar."""
    return re.sub(r"(?<!\\)\)([*?+])\+", r")\1", text)

"""Regular expressions that are compiled when they are first used: there are many, and most runs use few of them."""

from __future__ import annotations

import re
from typing import Any, cast


class _Pattern:
    def __init__(self, text: str, flags: int) -> None:
        self._written = (text, flags)

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(*self._written), name)
        # From now on it is at hand, without asking here.
        setattr(self, name, found)
        return found


def lazy_pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """What `re.compile` gives, once it is needed."""
    return cast("re.Pattern[str]", _Pattern(text, flags))

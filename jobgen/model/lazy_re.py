"""Regular expressions that are compiled on first use: there are many, and most runs use few of them."""

from __future__ import annotations

import re
from typing import Any, cast


class _Pattern:
    def __init__(self, text: str, flags: int) -> None:
        self._arguments = (text, flags)

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(*self._arguments), name)
        # Found directly next time, without this method.
        setattr(self, name, found)
        return found


def lazy_pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """Like `re.compile`, but compiled on first use."""
    return cast("re.Pattern[str]", _Pattern(text, flags))

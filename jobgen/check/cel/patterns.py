"""Regular expressions in CEL, evaluated by the RE2 that the CEL library includes."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from jobgen.check.cel import engine
from jobgen.check.cel.values import NO_OVERLOAD, OFFLINE, Failed, strings

# An escape, quoted text, a class, or a group: the tokens needed to find capturing groups.
_PARTS = re.compile(r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|\((?:\?P?<\w+>|(?!\?))", re.DOTALL)

_CATEGORY = re.compile(r"\\([pP])\{(\^?)([A-Za-z_ -]+)\}|\\.", re.DOTALL)
_CATEGORIES = dict(
    entry.split(":")
    for entry in """letter:L uppercaseletter:Lu lowercaseletter:Ll titlecaseletter:Lt modifierletter:Lm otherletter:Lo
    mark:M combiningmark:M nonspacingmark:Mn spacingmark:Mc enclosingmark:Me number:N decimalnumber:Nd digit:Nd
    letternumber:Nl othernumber:No punctuation:P punct:P connectorpunctuation:Pc dashpunctuation:Pd openpunctuation:Ps
    closepunctuation:Pe initialpunctuation:Pi finalpunctuation:Pf otherpunctuation:Po symbol:S mathsymbol:Sm
    currencysymbol:Sc modifiersymbol:Sk othersymbol:So separator:Z spaceseparator:Zs lineseparator:Zl
    paragraphseparator:Zp other:C control:Cc cntrl:Cc format:Cf privateuse:Co""".split()
)


def matches(text: object, pattern: object) -> bool:
    """`string.matches(pattern)`, cached, because the engine compiles a pattern on each call."""
    return bool(_matches(*strings(text, pattern)))


def find(text: object, pattern: object) -> str:
    """`string.find(pattern)`: the first match, or nothing."""
    found, wanted = strings(text, pattern)
    return str(_native("regex.extract(text, pattern).orValue('')", found, uncaptured(wanted)))


def find_all(text: object, pattern: object, most: object = -1) -> list[str]:
    """`string.findAll(pattern)`, and with the number of matches that is enough."""
    found, wanted = strings(text, pattern)
    if type(most) is not int:
        raise TypeError(NO_OVERLOAD)
    if _matches("", f"^(?:{wanted})$"):
        raise ValueError(f"all matches of `{wanted}`, which also matches nothing, {OFFLINE}")
    every: list[str] = _native("regex.extractAll(text, pattern)", found, uncaptured(wanted))
    return every if most < 0 else every[:most]


def _abbreviate_categories(pattern: str) -> str:
    """The same pattern with the short names of Unicode categories; the engine does not know the long ones."""

    def abbreviate(part: re.Match[str]) -> str:
        name = re.sub("[_ -]", "", part[3] or "").lower()
        return f"\\{part[1]}{{{part[2]}{_CATEGORIES[name]}}}" if name in _CATEGORIES else part[0]

    return _CATEGORY.sub(abbreviate, pattern) if "{" in pattern else pattern


def fault(pattern: str) -> str:
    """Why a text is not a pattern; empty if it is."""
    try:
        _matches("", pattern)
    except ValueError as error:
        return str(error)
    return ""


def uncaptured(pattern: str) -> str:
    """The same pattern without capturing groups, which change the result of the engine but not the match."""
    return _PARTS.sub(lambda part: "(?:" if part[0].startswith("(") else part[0], _abbreviate_categories(pattern))


@lru_cache(maxsize=16384)
def _matches(text: str, pattern: str) -> Any:
    return _native("text.matches(pattern)", text, _abbreviate_categories(pattern))


@lru_cache(maxsize=8)
def _question(text: str) -> Callable[[dict[str, str]], Any]:
    return engine.question(text, ("text", "pattern"))


def _native(asked: str, text: str, pattern: str) -> Any:
    answer = _question(asked)({"text": text, "pattern": pattern})
    if isinstance(answer, Failed):
        raise ValueError(answer.message)  # noqa: TRY004
    return answer

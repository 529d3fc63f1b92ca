"""Patterns that users write, matched by RE2: its time is linear in the text, whatever the pattern.

Go's regular expressions, which Kubernetes and kustomize use, are those of RE2. It is a part of the CEL library.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from jobgen.model.lazy_re import lazy_pattern

_PLAIN = lazy_pattern(r"[^\\*+?{}()|\[\]^$]*\Z")
"""Patterns in which only dots are special."""
_TOKEN = lazy_pattern(
    r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|(?P<group>\((?:\?P?<\w+>|(?!\?)))", re.DOTALL
)
"""An escape, quoted text, a class, or the start of a group that captures."""
_BOUND = lazy_pattern(r"\\[AzQ]|\(\?(?!:)")
"""What depends on the whole text, or changes the options of a pattern."""


class BadPatternError(ValueError):
    """A text that is no pattern; its text says why."""


def match_whole(pattern: str, texts: Iterable[str]) -> frozenset[str]:
    """Return those of some texts that a pattern matches as a whole; raise BadPatternError if it is none."""
    every = frozenset(texts)
    if _PLAIN.match(pattern):
        if "." not in pattern:
            return every & {pattern}
        plain = re.compile(".".join(map(re.escape, pattern.split("."))))
        return frozenset(filter(plain.fullmatch, every))
    # One call for all of them, because the library compiles a pattern in each.
    lines = [text for text in every if text and "\n" not in text]
    if not _BOUND.search(pattern):
        alone = _TOKEN.sub(lambda found: "(?:" if found["group"] else found[0], pattern)
        found = _ask("regex.extractAll(text, pattern)", "\n".join(lines), f"(?m)^(?:{alone})$") if lines else []
        if not any("\n" in each for each in found):
            rest = every.difference(lines)
            return frozenset(found) & every | frozenset(text for text in rest if _matches(pattern, text))
    return frozenset(text for text in every if _matches(pattern, text))


def _matches(pattern: str, text: str) -> bool:
    return bool(_ask("text.matches(pattern)", text, f"^(?:{pattern})$"))


def find_fault(pattern: str) -> str:
    """Return why a text is no pattern; empty if it is one."""
    try:
        match_whole(pattern, ("",))
    except BadPatternError as fault:
        return str(fault)
    return ""


def _ask(question: str, text: str, pattern: str) -> Any:
    try:
        asked, environment = _compile(question)
        answer = asked.eval(environment.Activation({"text": text, "pattern": pattern}))
    except ImportError as error:
        raise BadPatternError(f"patterns cannot be evaluated here: {error}") from None
    except (RuntimeError, TypeError, ValueError, MemoryError) as error:
        raise BadPatternError(_shorten(str(error))) from None
    value = answer.plain_value()
    if type(value) not in (bool, list):
        raise BadPatternError(_shorten(str(value)))
    return value


def _shorten(message: str) -> str:
    text = message.partition("\n")[0].removeprefix("INVALID_ARGUMENT: ")
    # What follows is the pattern as it was put together.
    return text.removeprefix("invalid regular expression: ").rpartition(": ")[0] or text


@lru_cache(maxsize=2)
def _compile(question: str) -> tuple[Any, Any]:
    from cel_expr_python import cel

    extensions = [{"name": name} for name in ("optional", "regex")]
    config = cel.NewEnvConfigFromYaml(json.dumps({"name": "patterns", "extensions": extensions}))
    environment = cel.NewEnv(config=config, variables=dict.fromkeys(("text", "pattern"), cel.Type.STRING))
    return environment.compile(question), environment

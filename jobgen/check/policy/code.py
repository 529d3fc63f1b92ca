"""The CEL of policies: compiled, with what it reads known from its text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from jobgen.check.cel import Bound, Expression, Failed, Fault, compile_cel
from jobgen.model.data import Data
from jobgen.model.lazy_re import lazy_pattern

_STRING = r"""'''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*\""""
_ASIDE = lazy_pattern(rf"[rR]?(?:{_STRING})|//[^\n]*", re.DOTALL)
_WORD = lazy_pattern(r"(?<![\w.])[A-Za-z_]\w*")
_VARIABLE = lazy_pattern(r"(?<![\w.])variables\s*\.\s*\??\s*([A-Za-z_]\w*)")
_LOOP = lazy_pattern(
    r"\.\s*(?:all|exists|exists_one|existsOne|filter|map|transformList|transformMap|transformMapEntry)\s*$"
)
_CHAIN = lazy_pattern(
    rf"(?<![\w.])object((?:\s*\.\s*\??[A-Za-z_]\w*(?!\w*\s*\()|\[\s*\??(?:{_STRING})\s*\])+)", re.DOTALL
)
_STEP = lazy_pattern(rf"\.\s*\??([A-Za-z_]\w*)|\[\s*\??({_STRING})\s*\]", re.DOTALL)
_LONGEST = 10_000

NAMES = ("object", "oldObject", "request", "namespaceObject", "params", "variables")
"""All that expressions can read; which of it, depends on the policy and on what the expression is for."""
IDENTIFIER = lazy_pattern(r"[A-Za-z_]\w*\Z", re.ASCII)
RESERVED = frozenset(
    """as break const continue else false for function if import in let loop namespace null package return true
    var void while""".split()
)


class PolicyExpression:
    """An expression, and what it reads; it is compiled when it is first run."""

    __slots__ = ("_ready", "_returns", "names", "text", "variables", "whole")

    def __init__(self, text: str, variables: Mapping[str, PolicyExpression | None], returns: str) -> None:
        self.text = text
        self.whole, self.variables = _inlined(text, variables)
        self.names = names_in(self.whole) & frozenset(NAMES)
        self._returns = returns
        self._ready: Expression | None = None

    def run(self, bindings: Bound) -> Data | Failed:
        """Its value for some bindings."""
        if self._ready is None:
            self._ready = self._compiled()
        return self._ready(bindings)

    def _compiled(self) -> Expression:
        compiled = compile_cel(self.whole, NAMES, returns=self._returns)
        assert isinstance(compiled, Expression), f"compiled before, in parts: {compiled.message}: {self.whole}"
        return compiled

    def paths(self) -> list[tuple[str, ...]]:
        """The fields of the object that it names, as `object.metadata.labels['team']` does."""
        return [
            tuple(word or quoted.strip("'\"") for word, quoted in _STEP.findall(chain))
            for chain in _CHAIN.findall(self.whole)
        ]


def names_in(text: str) -> frozenset[str]:
    """The words of an expression that could be names; strings and comments are none of them."""
    return frozenset(_WORD.findall(_spoken(text)))


def _spoken(text: str) -> str:
    """The text with blanks for its strings and comments."""
    return _ASIDE.sub(lambda aside: " " * len(aside[0]), text)


def refusal(text: str, variables: Mapping[str, PolicyExpression | None], returns: str) -> str:
    """Why the API server would refuse an expression, or nothing."""
    for name in _VARIABLE.findall(_spoken(text)):
        if name not in variables:
            return f"there is no variable `{name}` above this expression"
    compiled = compile_cel(text, NAMES, returns=returns)
    if isinstance(compiled, Fault):
        where = f" (line {compiled.line}, column {compiled.column})" if "\n" in text.strip() else ""
        return f"{compiled.message}{where}"
    # With its variables in their place, more is known of its types.
    whole, _ = _inlined(text, variables)
    compiled = compile_cel(whole, NAMES, returns=returns)
    return compiled.message if isinstance(compiled, Fault) else ""


def _inlined(text: str, variables: Mapping[str, PolicyExpression | None]) -> tuple[str, tuple[str, ...]]:
    """The text with variables in their place where each is read once, so that no value need leave the engine."""
    spoken = _spoken(text)
    found = list(_VARIABLE.finditer(spoken))
    count = Counter(match[1] for match in found)
    left: dict[str, None] = {}
    for match in reversed(found):
        code = variables.get(match[1])
        once = count[match[1]] == 1 and not _in_loop(spoken[: match.start()])
        # A constant is as cheap in its place as anywhere.
        if code and (once or not (code.names or code.variables)) and len(text) + len(code.whole) < _LONGEST:
            text = f"{text[: match.start()]}({code.whole}\n){text[match.end() :]}"
            left |= dict.fromkeys(code.variables)
        else:
            left[match[1]] = None
    return text, tuple(left)


def _in_loop(before: str) -> bool:
    """Whether a place lies inside a macro, where it would be evaluated again and again."""
    opened: list[bool] = []
    for at, char in enumerate(before):
        if char == "(":
            opened.append(_LOOP.search(before[:at]) is not None)
        elif char == ")" and opened:
            opened.pop()
    return any(opened)

"""The CEL expressions of policies: what each one reads, and variables inlined where that is cheap."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from jobgen.check.cel import Bound, CompileError, Expression, Failed, compile_cel
from jobgen.check.cel.values import STRING, blank_strings
from jobgen.model.lazy_re import lazy_pattern

_NAME = lazy_pattern(r"(?<![\w.])[A-Za-z_]\w*")
_VARIABLE = lazy_pattern(r"(?<![\w.])variables\s*\.\s*\??\s*([A-Za-z_]\w*)")
_LOOP = lazy_pattern(
    r"\.\s*(?:all|exists|exists_one|existsOne|filter|map|transformList|transformMap|transformMapEntry)\s*$"
)
_CHAIN = lazy_pattern(
    rf"(?<![\w.])object((?:\s*\.\s*\??[A-Za-z_]\w*(?!\w*\s*\()|\[\s*\??(?:{STRING})\s*\])+)", re.DOTALL
)
_STEP = lazy_pattern(rf"\.\s*\??([A-Za-z_]\w*)|\[\s*\??({STRING})\s*\]", re.DOTALL)
_MAX_INLINED_LENGTH = 10_000

NAMES = ("object", "oldObject", "request", "namespaceObject", "params", "variables")
"""The variables that expressions can read; which of them depends on the policy and the field."""
IDENTIFIER = lazy_pattern(r"[A-Za-z_]\w*\Z", re.ASCII)
RESERVED = frozenset(
    """as break const continue else false for function if import in let loop namespace null package return true
    var void while""".split()
)


class PolicyExpression:
    """An expression and what it reads; it is compiled when first evaluated."""

    __slots__ = ("_compiled", "_returns", "inlined", "names", "text", "variables")

    def __init__(self, text: str, variables: Mapping[str, PolicyExpression | None], returns: str) -> None:
        self.text = text
        self.inlined, self.variables = _inline_variables(text, variables)
        self.names = find_names(self.inlined) & frozenset(NAMES)
        self._returns = returns
        self._compiled: Expression | None = None

    def evaluate(self, bindings: Bound) -> Any | Failed:
        """Its value for some bindings."""
        if self._compiled is None:
            compiled = compile_cel(self.inlined, NAMES, returns=self._returns)
            assert isinstance(compiled, Expression), f"checked before: {compiled.message}: {self.inlined}"
            self._compiled = compiled
        return self._compiled(bindings)

    def paths(self) -> list[tuple[str, ...]]:
        """The fields of the object that it names, such as `object.metadata.labels['team']`."""
        return [
            tuple(name or quoted.strip("'\"") for name, quoted in _STEP.findall(chain))
            for chain in _CHAIN.findall(self.inlined)
        ]


def find_names(text: str) -> frozenset[str]:
    """The names in an expression, other than in strings and comments."""
    return frozenset(_NAME.findall(blank_strings(text)))


def find_expression_error(text: str, variables: Mapping[str, PolicyExpression | None], returns: str) -> str:
    """Why the API server would refuse an expression; empty if it would not."""
    for name in _VARIABLE.findall(blank_strings(text)):
        if name not in variables:
            return f"there is no variable `{name}` above this expression"
    compiled = compile_cel(text, NAMES, returns=returns)
    if isinstance(compiled, CompileError):
        where = f" (line {compiled.line}, column {compiled.column})" if "\n" in text.strip() else ""
        return f"{compiled.message}{where}"
    # With variables inlined, more types are known.
    inlined, _ = _inline_variables(text, variables)
    compiled = compile_cel(inlined, NAMES, returns=returns)
    return compiled.message if isinstance(compiled, CompileError) else ""


def _inline_variables(text: str, variables: Mapping[str, PolicyExpression | None]) -> tuple[str, tuple[str, ...]]:
    """The text with each variable that is read once replaced by its expression, and the variables that are left.

    An inlined value stays inside the engine, which saves converting it to Python and back.
    """
    blanked = blank_strings(text)
    found = list(_VARIABLE.finditer(blanked))
    count = Counter(match[1] for match in found)
    left: dict[str, None] = {}
    for match in reversed(found):
        value = variables.get(match[1])
        is_read_once = count[match[1]] == 1 and not _is_in_loop(blanked[: match.start()])
        is_short = value is not None and len(text) + len(value.inlined) < _MAX_INLINED_LENGTH
        # A constant costs nothing to evaluate again.
        if value and is_short and (is_read_once or not (value.names or value.variables)):
            text = f"{text[: match.start()]}({value.inlined}\n){text[match.end() :]}"
            left |= dict.fromkeys(value.variables)
        else:
            left[match[1]] = None
    return text, tuple(left)


def _is_in_loop(before: str) -> bool:
    """Whether the text after `before` is inside a macro, where it would be evaluated for each item."""
    opened: list[bool] = []
    for index, char in enumerate(before):
        if char == "(":
            opened.append(_LOOP.search(before[:index]) is not None)
        elif char == ")" and opened:
            opened.pop()
    return any(opened)

"""The CEL expressions of policies, and what each one reads."""

from __future__ import annotations

import marshal
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, TypeVar

from jobgen.check.cel import Bound, CompileError, Expression, Failed, compile_cel
from jobgen.check.cel.values import OFFLINE, STRING, blank_strings
from jobgen.model.data import Plain
from jobgen.model.lazy_re import lazy_pattern

NAMES = ("object", "oldObject", "request", "namespaceObject", "params", "variables", "authorizer")
"""The variables that expressions of policies can read; which of them depends on the policy and the field."""
_NAME = lazy_pattern(r"(?<![\w.])[A-Za-z_]\w*")
_VARIABLE = lazy_pattern(r"(?<![\w.])variables\s*\.\s*\??\s*([A-Za-z_]\w*)")
_CHAIN = lazy_pattern(
    rf"(?<![\w.])(?:object|dyn\s*\(\s*object\s*\))((?:\s*\.\s*\??[A-Za-z_]\w*(?!\w*\s*\()|\[\s*\??(?:{STRING})\s*\])+)",
    re.DOTALL,
)
_STEP = lazy_pattern(rf"\.\s*\??([A-Za-z_]\w*)|\[\s*\??({STRING})\s*\]", re.DOTALL)
_MAX_FOUND = 1_000

_T = TypeVar("_T")


class PolicyExpression:
    """An expression and what it reads; it is compiled when it is first evaluated."""

    def __init__(self, text: str, variables: Mapping[str, PolicyExpression | None], returns: str) -> None:
        self.text = text
        self.returns = returns
        self.above = dict(variables)
        """The variables above the expression; others may be added later."""
        self._found: dict[bytes, Any] = {}

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """The variables that it reads itself."""
        return find_variables(self.text)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of `NAMES` that it reads."""
        return frozenset(_NAME.findall(blank_strings(self.text))) & frozenset(NAMES)

    @cached_property
    def compiled(self) -> Expression:
        """The compiled expression."""
        compiled = compile_cel(self.text, NAMES, returns=self.returns)
        assert isinstance(compiled, Expression), f"checked before: {compiled.message}: {self.text}"
        return compiled

    def evaluate(self, bindings: Bound) -> Any | Failed:
        """Its value for some bindings."""
        return self.compiled(bindings)

    @cached_property
    def reads(self) -> frozenset[str]:
        """What it reads, itself and through variables; not `variables`."""
        of_variables = (value.reads for name, value in self.above.items() if value and name in self.variables)
        return (self.names - {"variables"}).union(*of_variables)

    def find_once(self, values: Mapping[str, Plain], find: Callable[[], _T]) -> _T:
        """What is found about values that it reads; for the same values, such as those of other environments, once."""
        try:
            read = {name: value for name, value in values.items() if name in self.reads or name not in NAMES}
            # In version 2, equal values have equal bytes.
            key = marshal.dumps(read, 2)
        except ValueError:
            # A value that is not plain data.
            return find()
        if key not in self._found:
            if len(self._found) == _MAX_FOUND:
                self._found.clear()
            self._found[key] = find()
        found: _T = self._found[key]
        return found

    def paths(self) -> list[tuple[str, ...]]:
        """The fields of the object that it names, such as `object.metadata.labels['team']`."""
        return [
            tuple(name or quoted.strip("'\"") for name, quoted in _STEP.findall(chain))
            for chain in _CHAIN.findall(self.text)
        ]


def find_variables(text: str) -> tuple[str, ...]:
    """The names of the variables that an expression reads."""
    return tuple(dict.fromkeys(_VARIABLE.findall(blank_strings(text))))


def find_limit(text: str, variables: Mapping[str, PolicyExpression | None], returns: str) -> str:
    """Why an expression that the API server accepts cannot be evaluated offline; empty if it can."""
    if any(variables.get(name) is None for name in find_variables(text)):
        # The variable has a finding.
        return ""
    compiled = compile_cel(text, NAMES, returns=returns)
    message = compiled.message if isinstance(compiled, CompileError) else ""
    return message if not message or OFFLINE in message else f"{message}, which {OFFLINE}"

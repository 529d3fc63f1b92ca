"""One object before one policy: what its expressions see, and what they say."""

from __future__ import annotations

from typing import NamedTuple

from jobgen.check.cel import Bound, Failed, bind
from jobgen.check.policy.code import PolicyExpression
from jobgen.check.policy.match import Request
from jobgen.check.policy.parse import Policy, Validation
from jobgen.model.data import Data

_LONGEST_MESSAGE = 5 * 1024


class EvalContext:
    """The values that a policy's expressions may read; variables are worked out when first needed."""

    __slots__ = ("_bound", "_values", "bindings", "policy")

    def __init__(self, policy: Policy, bindings: dict[str, Data], bound: Bound | None = None) -> None:
        self.policy = policy
        self.bindings = bindings
        self._bound = bound or bind(bindings)
        self._values: dict[str, Data] = {}

    def of(self, tree: Data) -> EvalContext:
        """The same scene with another object."""
        return EvalContext(self.policy, {**self.bindings, "object": tree})

    def run(self, code: PolicyExpression) -> Data:
        """The value of an expression, or how it failed."""
        if not code.variables:
            return code.run(self._bound)
        values = {name: self._value(name) for name in code.variables}
        broken = next((value for value in values.values() if isinstance(value, Failed)), None)
        # A variable that failed is left out: only an expression that really reads it fails too.
        known = {name: value for name, value in values.items() if not isinstance(value, Failed)}
        result = code.run(bind({**self.bindings, "variables": known}))
        return broken if broken is not None and isinstance(result, Failed) else result

    def _value(self, name: str) -> Data:
        if name not in self._values:
            self._values[name] = self.run(self.policy.variables[name])
        return self._values[name]

    def applies(self) -> Data:
        """Whether all match conditions hold; one that does not hold counts before one that fails."""
        results = [self.run(code) for code in self.policy.conditions]
        if any(result is False for result in results):
            return False
        return next((result for result in results if isinstance(result, Failed)), True)

    def message(self, validation: Validation) -> str:
        """What is said of an object that does not pass."""
        told = self.run(validation.tells) if validation.tells else ""
        if isinstance(told, str) and told.strip() and "\n" not in told.strip() and len(told) <= _LONGEST_MESSAGE:
            return told.strip()
        return validation.message or f"failed expression: {' '.join(validation.code.text.split())}"


class AdmissionSubject(NamedTuple):
    """An object that is to be created: as it was made, and as the API server sees it."""

    made: Data
    object: Data
    request: Request
    traced: bool

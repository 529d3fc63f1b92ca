"""One object under one policy: the values that its expressions read, and their results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobgen.check.cel import Bound, Failed, bind
from jobgen.check.cel.values import THAN_ALLOWED
from jobgen.check.policy.expressions import PolicyExpression
from jobgen.check.policy.match import Request
from jobgen.check.policy.parse import Policy, Validation
from jobgen.model.data import Node, Plain
from jobgen.model.limits import MAX_VARIABLE_SIZE
from jobgen.model.named_tuple import NamedTuple

_MAX_MESSAGE_LENGTH = 5 * 1024


class AdmissionSubject(NamedTuple):
    """An object that is to be created: as it was rendered, and as the API server sees it."""

    source: Mapping[str, Node]
    object: Mapping[str, Plain]
    request: Request
    is_traced: bool


class EvalContext:
    """The values that a policy's expressions may read; variables are evaluated when first read."""

    __slots__ = ("_bound", "_values", "bindings", "is_slow", "policy")

    def __init__(self, policy: Policy, bindings: dict[str, Plain], bound: Bound | None = None) -> None:
        self.policy = policy
        self.bindings = bindings
        self._bound = bound or bind(bindings)
        self._values: dict[str, Any] = {}
        self.is_slow = False
        """Whether an evaluation took so long that it should not be repeated many times."""

    def with_object(self, obj: Plain) -> EvalContext:
        """The same context with another object."""
        return EvalContext(self.policy, {**self.bindings, "object": obj})

    def with_part(self, obj: Plain) -> EvalContext:
        """The same context with the object without some of its parts, which is not measured again."""
        bindings = {**self.bindings, "object": obj}
        bound = bind(bindings)
        bound.size = self._bound.measure()
        return EvalContext(self.policy, bindings, bound)

    def evaluate(self, expression: PolicyExpression) -> Any | Failed:
        """The value of an expression, or why it failed."""
        if not expression.variables:
            return self._run(expression, self._bound)
        result = expression.evaluate_fast(self._bound)
        if not isinstance(result, Failed):
            return result
        values = {name: self._value(name) for name in expression.variables}
        first_failure = next((value for value in values.values() if isinstance(value, Failed)), None)
        # A variable that failed is left out: only an expression that really reads it fails too.
        known = {name: value for name, value in values.items() if not isinstance(value, Failed)}
        result = self._run(expression, bind({**self.bindings, "variables": known}))
        return first_failure if first_failure is not None and isinstance(result, Failed) else result

    def _run(self, expression: PolicyExpression, bound: Bound) -> Any | Failed:
        bound.is_slow = False
        result = expression.evaluate(bound)
        self.is_slow |= bound.is_slow
        return result

    def _value(self, name: str) -> Any | Failed:
        if name not in self._values:
            value = self.evaluate(self.policy.variables[name])
            if not isinstance(value, Failed) and len(repr(value)) > MAX_VARIABLE_SIZE + self._bound.measure():
                value = Failed(f"the variable `{name}` is larger {THAN_ALLOWED}: {MAX_VARIABLE_SIZE}")
            self._values[name] = value
        return self._values[name]

    def evaluate_conditions(self) -> bool | Failed:
        """Whether all match conditions are true; one that is false outranks one that fails."""
        results = [self.evaluate(condition) for condition in self.policy.conditions]
        if any(result is False for result in results):
            return False
        return next((result for result in results if isinstance(result, Failed)), True)

    def message(self, validation: Validation) -> str:
        """The message for an object that does not pass a validation."""
        message = self.evaluate(validation.message_expression) if validation.message_expression else ""
        if isinstance(message, str):
            text = message.strip()
            if text and "\n" not in text and len(message) <= _MAX_MESSAGE_LENGTH:
                return text
        return validation.message or f"failed expression: {' '.join(validation.expression.text.split())}"

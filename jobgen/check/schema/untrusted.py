"""Compiles schemas that are not trusted: a broken one is reported, and the steps of a check are limited."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from jobgen.check.schema.admitted import Admission, compile_admission
from jobgen.check.schema.constraints import BadPatternError
from jobgen.check.schema.crd_schema import compile_structural
from jobgen.k8s.kinds import NEWEST_RELEASE, Release
from jobgen.model.budget import Budget, BudgetExceededError, Work
from jobgen.model.data import Plain
from jobgen.model.finding import Problem
from jobgen.model.limits import MALFORMED_DATA_ERRORS

_IGNORED = frozenset(
    """$dynamicRef $recursiveRef additionalItems const contains dependencies dependentRequired dependentSchemas else if
    maxContains minContains patternProperties prefixItems propertyNames then unevaluatedItems unevaluatedProperties
    uniqueItems""".split()
)
# Beside `$ref` the check reads no constraint, as in the old drafts of JSON Schema.
_CONSTRAINTS = frozenset(
    """additionalProperties allOf anyOf enum exclusiveMaximum exclusiveMinimum format items maxItems maxLength
    maxProperties maximum minItems minLength minProperties minimum multipleOf not oneOf pattern properties required
    type""".split()
)


def list_ignored_keywords(text: bytes) -> list[str]:
    """The keywords of a schema that its check does not evaluate, in order; the schema has been compiled."""
    found: set[str] = set()
    for node in _walk(json.loads(text)):
        # `uniqueItems: false` demands nothing.
        found |= {word for word in node.keys() & _IGNORED if node[word] is not False or word != "uniqueItems"}
        if "$ref" in node:
            found |= {f"{word} beside $ref" for word in node.keys() & _CONSTRAINTS}
    return sorted(found)


def _walk(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A schema and all schemas in it; the names of properties are no keywords."""
    left: list[Any] = [schema]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            yield node
            for word in ("properties", "$defs"):
                left.extend(node[word].values() if isinstance(node.get(word), dict) else ())
            for word in ("anyOf", "oneOf", "allOf"):
                left.extend(node[word] if isinstance(node.get(word), list) else ())
            left.extend(node.get(word) for word in ("additionalProperties", "items", "not"))


_STEPS = 300_000
"""The steps that the check of one object may take: many times what the largest needs."""

Done = TypeVar("Done")


class BrokenSchemaError(Exception):
    """A schema that cannot be used; the text says why."""


def compile_untrusted(text: bytes, release: Release = NEWEST_RELEASE) -> Callable[[Mapping[str, Plain]], list[Problem]]:
    """The check for a whole object; both may raise BrokenSchemaError."""
    budget = Budget(_STEPS, Work.SCHEMA)
    check_value = _run(lambda: compile_structural(json.loads(text), budget, release))

    def check(value: Mapping[str, Plain]) -> list[Problem]:
        budget.reset()
        return _run(lambda: check_value(value))

    return check


def read_untrusted(text: bytes) -> dict[str, Any] | None:
    """The schema in a file; None if it is broken."""
    try:
        _run(lambda: compile_structural(json.loads(text), Budget(_STEPS, Work.SCHEMA)))
    except BrokenSchemaError:
        return None
    schema: dict[str, Any] = json.loads(text)
    return schema


def compile_untrusted_admission(text: bytes, api_version: str, kind: str) -> Admission:
    """The conversion of an object for policies; if the schema is broken, which its check reports, of metadata only."""
    without = compile_admission(None, api_version, kind)
    budget = Budget(_STEPS, Work.SCHEMA)
    try:
        convert = _run(lambda: compile_admission(json.loads(text), api_version, kind, budget))
    except BrokenSchemaError:
        return without

    def admit(obj: Mapping[str, Plain]) -> dict[str, Plain]:
        budget.reset()
        try:
            return _run(lambda: convert(obj))
        except BrokenSchemaError:
            return without(obj)

    return admit


def _run(work: Callable[[], Done]) -> Done:
    """Run a function that uses a schema; if it fails, raise what is wrong with the schema."""
    try:
        return work()
    except BudgetExceededError:
        reason = f"checking this object takes more than {_STEPS} steps"
    except json.JSONDecodeError as fault:
        reason = f"line {fault.lineno}, column {fault.colno} is not JSON"
    except UnicodeDecodeError:
        reason = "it is not UTF-8"
    except RecursionError:
        reason = "it is nested too deeply, or refers to itself without end"
    except BadPatternError as fault:
        reason = str(fault)
    except MALFORMED_DATA_ERRORS:
        reason = "it is not a valid schema"
    raise BrokenSchemaError(reason)

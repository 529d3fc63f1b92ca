"""Schemas that anybody may have written: checks that say what is wrong with them, and neither fail nor run away."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeVar

from jobgen.check.schema.constraints import BadPatternError
from jobgen.check.schema.crd_schema import compile_structural
from jobgen.model.data import Data
from jobgen.model.finding import Problem
from jobgen.model.limits import MALFORMED_DATA_ERRORS, Budget, BudgetExceededError

_STEPS = 300_000
"""What an object may cost: many times what the largest needs."""

Done = TypeVar("Done")


class BrokenSchemaError(Exception):
    """A schema that nothing can be held against; the text says why."""


def compile_foreign(text: bytes) -> Callable[[Data], list[Problem]]:
    """The check for a whole object; the check, too, may find that the schema is broken."""
    budget = Budget(_STEPS)
    judge = _blaming(lambda: compile_structural(json.loads(text), budget))

    def check(value: Data) -> list[Problem]:
        budget.reset()
        return _blaming(lambda: judge(value))

    return check


def _blaming(work: Callable[[], Done]) -> Done:
    """Do some work with a schema, and say what is wrong with it if that fails."""
    try:
        return work()
    except BudgetExceededError:
        reason = f"to hold this object against it takes more than {_STEPS} steps"
    except json.JSONDecodeError as fault:
        reason = f"line {fault.lineno}, column {fault.colno} is not JSON"
    except UnicodeDecodeError:
        reason = "it is not UTF-8"
    except RecursionError:
        reason = "it is nested too deeply, or refers to itself without end"
    except BadPatternError as fault:
        reason = str(fault)
    except MALFORMED_DATA_ERRORS:
        reason = "it has not the shape of a schema"
    raise BrokenSchemaError(reason)

"""Tell problems from those that only follow from another, so that one fault is one finding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jobgen.model.finding import Finding, Problem

_MISSING = frozenset(("missing-field", "missing-pod-field"))


def drop_consequences(problems: Iterable[Problem], causes: Iterable[Problem]) -> Iterator[Problem]:
    """Yield the problems that do not follow from a cause: at the same value, or a field that is only misspelled."""
    refused, misspelled = set(), set()
    for cause in causes:
        refused.add(id(cause.node))
        if cause.rule == "unknown-field" and "did you mean" in cause.message:
            misspelled.add(id(cause.node))
    for problem in problems:
        holder = problem.node if problem.rule in _MISSING and isinstance(problem.node, dict) else {}
        if id(problem.node) not in refused and not any(id(key) in misspelled for key in holder):
            yield problem


def add_failures(failures: Iterable[Problem], problems: list[Problem]) -> list[Problem]:
    """The problems of an object with the mutations that failed, unless the object has wrong types.

    The API server refuses such an object before it applies mutations, which may fail because of them.
    """
    return problems if any(one.rule == "wrong-type" for one in problems) else [*failures, *problems]


def is_failed_evaluation(problem: Problem | Finding) -> bool:
    """Whether a problem says that a policy could not be evaluated."""
    return problem.category == "policy" and problem.message.startswith(
        f"policy `{problem.rule}` could not be evaluated"
    )

"""Expressions of policies with all that they read: variables with the same text are one, also of several policies."""

from __future__ import annotations

from functools import lru_cache

from jobgen.model.digest import blake2b
from jobgen.model.named_tuple import NamedTuple

NAMES = ("object", "oldObject", "request", "namespaceObject", "params", "variables", "authorizer")
"""The variables that expressions of policies can read; which of them depends on the policy and the field."""

PARAMS = "params_"
"""Before the number of params, for a program that reads those of several bindings."""


class Shared(NamedTuple):
    """An expression of a policy, and those of the variables that it reads as `variables.<name>`."""

    text: str
    returns: str
    variables: tuple[tuple[str, Shared], ...] = ()
    params: int = -1
    """The number of its params in a program; with -1, they are `params`."""


def list_variables(expressions: tuple[Shared, ...]) -> dict[Shared, None]:
    """The variables that expressions read, themselves and through others, each after those that it reads."""
    found: dict[Shared, None] = {}
    for expression in expressions:
        values = tuple(value for _, value in expression.variables)
        found |= list_variables(values) | dict.fromkeys(values)
    return found


@lru_cache(maxsize=4096)
def name_expression(expression: Shared) -> str:
    """The name of an expression in programs, which is made from everything that it is made from."""
    digest = blake2b(digest_size=16)
    variables = [(name, name_expression(value)) for name, value in expression.variables]
    parts = (expression.text, expression.returns, variables, expression.params)
    digest.update(repr(parts).encode("utf-8", "surrogatepass"))
    return f"@{digest.hexdigest()}"

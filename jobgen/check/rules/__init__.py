"""The linter's rules: one small generator function a file, in the folder of its category.

A rule is given what it is `on` and yields faults: the node that is to blame, and what is true of it. Its file's name is
its name, its docstring its documentation, jobgen/data/examples/<rule>.yaml its cases.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from typing import Any, Literal, NamedTuple

from jobgen.model.data import Data
from jobgen.model.finding import FixStep, Severity

Scope = Literal["container", "pod", "role", "job", "manifest", "overlay", "fleet"]
"""A container (also of those that prepare), a role's pod, a role, a job of a known kind, any object, an overlay's
document, or all the objects of an environment."""

ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO


class Violation(NamedTuple):
    """What a rule found: the node to blame, and the message; `severity` where it differs from the rule's own.

    `mend` are the changes that would mend it, `safe` if they cannot change what was meant.
    """

    node: Data
    message: str
    related: tuple[tuple[Data, str], ...] = ()
    severity: Severity | None = None
    fix_steps: tuple[FixStep, ...] = ()
    safe: bool = True


class Fact(NamedTuple):
    """What a fleet rule keeps of one object: a fact, and the path to whom it would blame; `job` says whose it is."""

    value: Any
    path: tuple[str | int, ...]
    job: Any = None


class Rule(NamedTuple):
    """A rule with what it says about itself."""

    name: str
    category: str
    severity: Severity
    scope: Scope
    check: Callable[..., Iterable[Violation]]
    fields: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    collect: Callable[..., Iterable[Fact]] | None = None

    @property
    def summary(self) -> str:
        """What it finds, in one line."""
        return (self.check.__doc__ or "").strip().partition("\n")[0]


def rule(
    scope: Scope,
    severity: Severity,
    *,
    fields: tuple[str, ...] = (),
    kinds: tuple[str, ...] = (),
    collect: Callable[..., Iterable[Fact]] | None = None,
) -> Callable[[Callable[..., Iterable[Violation]]], Rule]:
    """Make a rule of a generator function.

    `fields`: look only at containers or pods that have one of these. `kinds`: look only at objects of these kinds.
    `gather`: of a fleet rule, what it keeps of each object; the rule itself is then given all that was kept, and the
    cluster.
    """

    def made(check: Callable[..., Iterable[Violation]]) -> Rule:
        category = check.__module__.split(".")[-2]
        name = check.__name__.replace("_", "-")
        return Rule(name, category, severity, scope, check, fields, kinds, collect)

    return made


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule there is, by category and name."""
    return tuple(sorted(_found(), key=lambda found: (found.category, found.name)))


def _found() -> Iterator[Rule]:
    for package in _names_in(__path__[0]):
        home = import_module(f"{__name__}.{package}")
        for module in _names_in(home.__path__[0]):
            found = import_module(f"{home.__name__}.{module}")
            yield from (value for value in vars(found).values() if isinstance(value, Rule))


def _names_in(folder: str) -> list[str]:
    """The modules and packages of a folder; `pkgutil` knows them too, but brings in half the standard library."""
    return [name.removesuffix(".py") for name in os.listdir(folder) if not name.startswith(("_", "."))]

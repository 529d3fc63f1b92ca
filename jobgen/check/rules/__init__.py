"""The rules of the linter: one generator function per module, in the folder of its category.

A rule receives what its scope names and yields violations: the wrong node and a message. The name of the function is
the name of the rule, its docstring is the page of the rule (a summary, the reason, what to write instead), and
jobgen/data/examples/<rule>.yaml has its test cases.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Literal

from jobgen.model.builtin_rules import BUILTIN_RULES
from jobgen.model.data import Node
from jobgen.model.features import list_rule_modules
from jobgen.model.finding import FixStep, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.pod_rules import POD_RULES
from jobgen.repo.ready import find_rules

Scope = Literal["container", "pod", "role", "job", "manifest", "overlay", "fleet", "cluster", "queue"]
"""What a rule receives: a container or init container, the pod of a role, a role, a job of a known kind, any object, an
overlay document, facts about all objects of an environment, an object and the known state of its cluster, or an object
and the queues of its cluster."""

ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO


class Violation(NamedTuple):
    """What a rule found: the wrong node and a message; `severity` overrides the severity of the rule.

    `fix_steps` would fix it; `safe` says that they cannot change what was meant.
    """

    node: Node
    message: str
    related: tuple[tuple[Node, str], ...] = ()
    severity: Severity | None = None
    fix_steps: tuple[FixStep, ...] = ()
    safe: bool = True
    evidence: tuple[str, ...] | None = None
    """See `Finding.evidence`."""


class Fact(NamedTuple):
    """What a rule over all objects keeps of one of them, and the path to the node that it would report.

    The result cache stores facts, so a value consists of plain tuples, strings and numbers. `job` is set by the engine.
    """

    value: Any
    path: tuple[str | int, ...]
    job: Any = None


class FactViolation(NamedTuple):
    """What a rule over facts found: a violation at the node of a fact."""

    node: Fact
    message: str
    related: tuple[tuple[Fact, str], ...] = ()
    severity: Severity | None = None
    evidence: tuple[str, ...] | None = None
    """See `Finding.evidence`."""


class Rule:
    """A rule and its attributes. `check` yields `FactViolation` if the rule has `collect`, else `Violation`."""

    check: Callable[..., Iterable[Any]]
    collect: Callable[..., Iterable[Fact]] | None

    def __init__(
        self,
        name: str,
        category: str,
        severity: Severity,
        scope: Scope,
        check: Callable[..., Iterable[Any]] | None = None,
        fields: Sequence[str] = (),
        kinds: Sequence[str] = (),
        collect: Callable[..., Iterable[Fact]] | None = None,
        module: str = "",
    ) -> None:
        """Take the attributes of `rule`; without `check`, the functions are imported when they are first used."""
        self.name, self.category, self.severity, self.scope = name, category, severity, scope
        self.fields, self.kinds = tuple(fields), tuple(kinds)
        self._module = module or f"{__name__}.{category}.{name.replace('-', '_')}"
        if check:
            self.check, self.collect = check, collect

    def __getattr__(self, name: str) -> Any:
        """Import the functions of the rule."""
        if name not in ("check", "collect"):
            raise AttributeError(name)
        function = self.name.replace("-", "_")
        made: Rule = getattr(import_module(self._module), function)
        listed, own = ((rule.severity, rule.scope, rule.fields, rule.kinds) for rule in (self, made))
        assert listed == own, "run tools/build_ready.py after a change of a rule's attributes"
        self.check, self.collect = made.check, made.collect
        return getattr(self, name)

    @property
    def summary(self) -> str:
        """What the rule flags, in one line."""
        return (self.check.__doc__ or "").strip().partition("\n")[0]


def rule(
    scope: Scope,
    severity: Severity,
    *,
    fields: tuple[str, ...] = (),
    kinds: tuple[str, ...] = (),
    collect: Callable[..., Iterable[Fact]] | None = None,
) -> Callable[[Callable[..., Iterable[Any]]], Rule]:
    """Make a rule from a generator function.

    `fields`: check only containers or pods that have one of these fields. `kinds`: check only objects of these kinds.
    `collect`: yields the facts that the rule keeps of each object; the rule then receives all facts of an environment
    and its cluster.
    """

    def make_rule(check: Callable[..., Iterable[Any]]) -> Rule:
        category = check.__module__.split(".")[-2]
        name = check.__name__.replace("_", "-")
        return Rule(name, category, severity, scope, check, fields, kinds, collect, check.__module__)

    return make_rule


@cache
def all_rules() -> tuple[Rule, ...]:
    """Return all rules, sorted by category and name."""
    listed = find_rules(list_modules())
    return import_rules() if listed is None else _sort(_to_rule(module, *entry) for module, entry in listed.items())


def rule_names() -> frozenset[str]:
    """The name of every rule."""
    return frozenset((*(rule[0] for rule in BUILTIN_RULES), *POD_RULES, *(rule.name for rule in all_rules())))


def rule_categories(policies: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each rule and policy with each category that its findings may have."""
    for name, category, *_ in BUILTIN_RULES:
        yield name, category
        if category == "schema":
            # Jobs, overlays and settings have formats too.
            yield name, "spec"
    yield from ((name, "pod") for name in POD_RULES)
    yield from ((rule.name, rule.category) for rule in all_rules())
    yield from ((name, "policy") for name in policies)


def import_rules() -> tuple[Rule, ...]:
    """Import the modules of all rules, and return the rules in the order of `all_rules`."""
    modules = map(import_module, list_modules())
    return _sort(value for module in modules for value in vars(module).values() if isinstance(value, Rule))


def list_modules() -> set[str]:
    """Return the modules of all rules, also those of features; `pkgutil` would import half of the standard library."""
    categories = [name for name in os.listdir(__path__[0]) if name[0] not in "._" and "." not in name]
    names = ((category, name) for category in categories for name in os.listdir(f"{__path__[0]}/{category}"))
    own = (f"{__name__}.{category}.{name.removesuffix('.py')}" for category, name in names if name[0] not in "._")
    return {*own, *list_rule_modules()}


def _to_rule(module: str, severity: str, scope: Scope, fields: Sequence[str], kinds: Sequence[str]) -> Rule:
    _, category, name = module.rsplit(".", 2)
    return Rule(name.replace("_", "-"), category, Severity(severity), scope, None, fields, kinds, module=module)


def _sort(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    return tuple(sorted(rules, key=lambda found: (found.category, found.name)))

"""The rules of the linter: generator functions in modules by subject, in the folders of their categories.

A rule receives what its scope names and yields violations: the wrong node and a message. The name of the function is
the name of the rule, its docstring is the page of the rule (a summary, the reason, what to write instead), and
jobgen/data/examples/<rule>.yaml has its test cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from typing import Any, Literal

from jobgen.model.builtin_rules import BUILTIN_RULES, POD_RULES
from jobgen.model.data import Location
from jobgen.model.features import list_rule_modules
from jobgen.model.finding import Cause, FixStep, Problem, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import Place
from jobgen.model.sentence import Words

Scope = Literal["container", "pod", "role", "job", "manifest", "overlay", "fleet", "cluster", "queue"]
"""What a rule receives: a container or init container, the pod of a role, a role, a job of a known kind, any object, an
overlay document, facts about all objects of an environment, an object and the known state of its cluster, or an object
and the queues of its cluster."""

ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO


class Violation(NamedTuple):
    """What a rule found: the wrong node and a message; `severity` overrides the severity of the rule.

    `fix_steps` would fix it; `safe` says that they cannot change what was meant.
    """

    node: Place
    sentence: Words
    related: tuple[tuple[Place, str], ...] = ()
    """Other nodes that the message is about. One without a text is a value that the node is compared with: if it is in
    the job and the node is in an overlay, the finding stands there; otherwise it is not shown."""
    severity: Severity | None = None
    fix_steps: tuple[FixStep, ...] = ()
    safe: bool = True
    evidence: tuple[str, ...] | None = None
    """See `Finding.evidence`."""
    at: Place = None
    """See `Problem.at`: the text of a file that the fault is in."""
    inside: Location | None = None
    """See `Problem.inside`."""
    meant: str = ""
    """See `Problem.meant`."""
    finish: Callable[[Problem, bool], Problem | None] | None = None
    """See `Problem.finish`."""
    cause: Cause = ""
    """See `Problem.cause`."""


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
    sentence: Words
    related: tuple[tuple[Fact, str], ...] = ()
    severity: Severity | None = None
    evidence: tuple[str, ...] | None = None
    """See `Finding.evidence`."""
    is_amount: bool = False
    """True if it is about how much an object takes: a patch that raises this is at fault."""


class Rule(NamedTuple):
    """A rule and its attributes. `check` yields `FactViolation` if the rule has `collect`, else `Violation`."""

    name: str
    category: str
    severity: Severity
    scope: Scope
    check: Callable[..., Iterable[Any]]
    fields: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    collect: Callable[..., Iterable[Fact]] | None = None
    needs_project: bool = False
    """True if `check` also receives the project and the name of the environment."""
    words: tuple[str, ...] = ()
    gitops: tuple[str, ...] = ()
    across_teams: tuple[str, ...] = ()
    """The kinds of objects that count for all teams, of a rule that judges the jobs of each team by themselves."""

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
    words: tuple[str, ...] = (),
    gitops: tuple[str, ...] = (),
    collect: Callable[..., Iterable[Fact]] | None = None,
    needs_project: bool = False,
    across_teams: tuple[str, ...] = (),
) -> Callable[[Callable[..., Iterable[Any]]], Rule]:
    """Make a rule from a generator function.

    Most rules concern few objects. They say which, so that the others are not checked:

    `fields`: check only containers, pods or objects that have one of these fields. Those of a pod are in its `spec`,
    those of an object at its top, in its `metadata` or in its `spec`.
    `kinds`: check only objects of these kinds.
    `words`: check only objects with pods, and with one of these words in a key or a value. A word has no quotes.
    `gitops`: check only objects that one of these applies: `argocd`, `flux` or `kubectl`.

    `collect`: yields the facts that the rule keeps of each object; the rule then receives all facts of an environment
    and its cluster, and with `needs_project` the project and the name of the environment. With `across_teams`, what it
    finds in the jobs of a team depends on the facts of these and of objects of these kinds alone.
    """

    def make_rule(check: Callable[..., Iterable[Any]]) -> Rule:
        assert not (fields and words and scope in ("manifest", "job")), "one of both triggers a rule about objects"
        category = check.__module__.split(".")[-2]
        name = check.__name__.replace("_", "-")
        found = Rule(name, category, severity, scope, check, fields, kinds, collect, needs_project, words, gitops)
        return found._replace(across_teams=across_teams) if across_teams else found

    return make_rule


@cache
def all_rules() -> tuple[Rule, ...]:
    """Import all rules, and return them sorted by category and name."""
    modules = map(import_module, list_rule_modules())
    found = (value for module in modules for value in vars(module).values() if type(value) is Rule)
    return tuple(sorted(found, key=lambda rule: (rule.category, rule.name)))


def rule_names() -> frozenset[str]:
    """The name of every rule."""
    return frozenset((*(rule[0] for rule in BUILTIN_RULES), *POD_RULES, *(rule.name for rule in all_rules())))


def rule_categories(policies: Iterable[str], defects: Iterable[str] = ()) -> Iterator[tuple[str, str]]:
    """Yield each rule, policy and defect with each category that its findings may have."""
    for name, category, *_ in BUILTIN_RULES:
        yield name, category
        if category == "schema":
            # Jobs, overlays and settings have formats too.
            yield name, "spec"
    yield from ((name, "pod") for name in POD_RULES)
    yield from ((rule.name, rule.category) for rule in all_rules())
    yield from ((name, "policy") for name in policies)
    yield from ((name, "defect") for name in defects)

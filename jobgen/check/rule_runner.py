"""Runs the rules that apply to an object, on the object, its roles, their pods and containers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from jobgen.check.rules import Fact, Rule, Violation
from jobgen.k8s.objects import Container, Manifest, Pod, Role
from jobgen.model.data import Node
from jobgen.model.finding import Problem
from jobgen.model.limits import MAX_FINDINGS
from jobgen.model.named_tuple import NamedTuple

INTERNAL_ERROR = "internal-error"
"""The rule of a problem that says that a check failed."""


class _PartRules:
    """Rules about pods, or about containers: which apply depends on the fields that a part has."""

    def __init__(self, rules: Collection[Rule]) -> None:
        self._rules = rules
        self._named = frozenset(field for rule in rules for field in rule.fields)
        self._selected: dict[tuple[str, ...], list[Rule]] = {}

    def __len__(self) -> int:
        return len(self._rules)

    def select(self, fields: Iterable[str]) -> list[Rule]:
        """Return the rules about every part, then those about one of its fields, then those about any of several."""
        named = tuple(filter(self._named.__contains__, fields))
        found = self._selected.get(named)
        if found is None:
            found = [rule for rule in self._rules if not rule.fields]
            found += (rule for field in named for rule in self._rules if rule.fields == (field,))
            found += (rule for rule in self._rules if len(rule.fields) > 1 and not set(rule.fields).isdisjoint(named))
            self._selected[tuple(map(str, named))] = found
        return found


class _RuleTable(NamedTuple):
    """The rules that apply to objects of one kind, by their scope."""

    manifest: list[Rule]
    role: list[Rule]
    pod: _PartRules
    container: _PartRules
    fleet: list[Rule]


class RuleRunner:
    """A set of rules, sorted by kind and scope on first use."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules = tuple(rules)
        self._numbers = {rule.name: number for number, rule in enumerate(self._rules)}
        self._named_kinds = frozenset(kind for rule in self._rules for kind in rule.kinds)
        self._tables: dict[tuple[str, bool, bool], _RuleTable] = {}

    def select(self, names: frozenset[str] | None) -> RuleRunner:
        """The rules with these names; None means all."""
        if names is None:
            return self
        numbers = sorted(self._numbers[name] for name in names if name in self._numbers)
        return RuleRunner(self._rules[number] for number in numbers)

    def find_problems(self, manifest: Manifest) -> list[Problem]:
        """Everything the rules find in an object."""
        problems: list[Problem] = []
        if not self._rules:
            return problems
        table = self._table(manifest)
        _run_rules(table.manifest, manifest, manifest, problems)
        # Few rules are selected to run again, and most of them read neither roles nor pods.
        for role in manifest.roles if table.role else ():
            if len(problems) > MAX_FINDINGS:
                # The checker reports no more than these; the others would only take time and memory.
                break
            _run_rules(table.role, role, manifest, problems)
        for pod in manifest.pods if table.pod or table.container else ():
            _run_rules(table.pod.select(pod.spec), pod, manifest, problems)
            for container in (*pod.containers, *pod.init_containers):
                _run_rules(table.container.select(container.data), container, manifest, problems)
        return problems

    def collect_facts(self, manifest: Manifest, problems: list[Problem]) -> Iterator[tuple[str, Fact]]:
        """The facts that the fleet rules collect from an object, each with its rule's name."""
        for rule in self._table(manifest).fleet:
            assert rule.collect is not None
            try:
                for fact in rule.collect(manifest):
                    yield rule.name, fact
            except Exception as error:  # noqa: BLE001 -- a faulty rule must not hide what the others find
                problems.append(report_exception(f"the rule `{rule.name}`", error, manifest.object))

    def _table(self, manifest: Manifest) -> _RuleTable:
        # Rules name a kind by its main name, not by an alias. Kinds that no rule names share a table.
        name = manifest.kind.name if manifest.kind else manifest.kind_name
        key = (name if name in self._named_kinds else "", manifest.kind is not None, manifest.team is not None)
        table = self._tables.get(key)
        if table is None:
            rules = [rule for rule in self._rules if not rule.kinds or name in rule.kinds]
            # What a team may use is asked about the objects of teams only.
            rules = [rule for rule in rules if manifest.team is not None or rule.category != "team"]
            table = self._tables[key] = _sort_by_scope(rules, is_known=manifest.kind is not None)
        return table


def _sort_by_scope(rules: list[Rule], *, is_known: bool) -> _RuleTable:
    def in_scope(*scopes: str) -> list[Rule]:
        return [rule for rule in rules if rule.scope in scopes]

    return _RuleTable(
        manifest=in_scope("manifest", "job") if is_known else in_scope("manifest"),
        role=in_scope("role"),
        pod=_PartRules(in_scope("pod")),
        container=_PartRules(in_scope("container")),
        fleet=in_scope("fleet"),
    )


def _run_rules(
    rules: Iterable[Rule], part: Manifest | Role | Pod | Container, manifest: Manifest, problems: list[Problem]
) -> None:
    """Append what the rules find in one part of an object; an exception in a rule is a problem of its own."""
    for rule in rules:
        try:
            for violation in rule.check(part):
                problems.append(to_problem(rule, violation))
        except Exception as error:  # noqa: BLE001 -- a faulty rule must not hide what the others find
            problems.append(report_exception(f"the rule `{rule.name}`", error, manifest.object))


def to_problem(rule: Rule, violation: Violation) -> Problem:
    """Return the problem of a violation that a rule found."""
    node, message, related, severity, fix_steps, safe, evidence = violation
    return Problem(
        rule.name, message, node, related, rule.category, severity or rule.severity, fix_steps, safe, evidence
    )


def report_exception(check: str, error: Exception, obj: Mapping[str, Node]) -> Problem:
    """A problem for a check that raised an exception on an object, so that the run goes on and still fails."""
    message = f"{check} failed on this object with `{type(error).__name__}`: {error}; please report this bug in jobgen"
    return Problem(INTERNAL_ERROR, message, obj.get("kind"), category="meta")

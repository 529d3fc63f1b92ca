"""Runs the rules that apply to an object, on the object, its roles, their pods and containers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from jobgen.check.rules import Fact, Rule
from jobgen.k8s.objects import Container, Manifest, Pod
from jobgen.model.finding import Problem


class _PartRules(NamedTuple):
    """Rules about pods, or about containers: those that check every one, and those that check one of its fields."""

    always: list[Rule]
    by_field: dict[str, list[Rule]]


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
        self._named_kinds = frozenset(kind for rule in self._rules for kind in rule.kinds)
        self._tables: dict[tuple[str, bool], _RuleTable] = {}

    def problems(self, manifest: Manifest) -> list[Problem]:
        """Everything the rules find in an object."""
        table = self._table(manifest)
        problems: list[Problem] = []
        for rule in table.manifest:
            run_rule(rule, manifest, problems)
        for role in manifest.roles:
            for rule in table.role:
                run_rule(rule, role, problems)
            pod = role.pod
            _check_part(pod, pod.spec, table.pod, problems)
            for container in (*pod.containers, *pod.init_containers):
                _check_part(container, container.data, table.container, problems)
        return problems

    def rows(self, manifest: Manifest) -> Iterator[tuple[str, Fact]]:
        """The facts that the fleet rules collect from an object, each with its rule's name."""
        for rule in self._table(manifest).fleet:
            assert rule.collect is not None
            for fact in rule.collect(manifest):
                yield rule.name, fact

    def _table(self, manifest: Manifest) -> _RuleTable:
        # Rules name a kind by its main name, not by an alias. Kinds that no rule names share a table.
        name = manifest.kind.name if manifest.kind else manifest.kind_name
        key = (name if name in self._named_kinds else "", manifest.kind is not None)
        table = self._tables.get(key)
        if table is None:
            rules = [rule for rule in self._rules if not rule.kinds or name in rule.kinds]
            table = self._tables[key] = _sort_by_scope(rules, known=manifest.kind is not None)
        return table


def _sort_by_scope(rules: list[Rule], *, known: bool) -> _RuleTable:
    def in_scope(*scopes: str) -> list[Rule]:
        return [rule for rule in rules if rule.scope in scopes]

    return _RuleTable(
        manifest=in_scope("manifest", "job") if known else in_scope("manifest"),
        role=in_scope("role"),
        pod=_sort_by_field(in_scope("pod")),
        container=_sort_by_field(in_scope("container")),
        fleet=in_scope("fleet"),
    )


def _sort_by_field(rules: Iterable[Rule]) -> _PartRules:
    found = _PartRules([], {})
    for rule in rules:
        for field in rule.fields:
            found.by_field.setdefault(field, []).append(rule)
        if not rule.fields:
            found.always.append(rule)
    return found


def _check_part(part: Pod | Container, fields: Iterable[str], rules: _PartRules, problems: list[Problem]) -> None:
    """Run the rules about every such part, and those about a field that it has, each once."""
    for rule in rules.always:
        run_rule(rule, part, problems)
    done: set[str] = set()
    for field in fields:
        for rule in rules.by_field.get(field, ()):
            if rule.name not in done:
                done.add(rule.name)
                run_rule(rule, part, problems)


def run_rule(rule: Rule, part: object, problems: list[Problem]) -> None:
    """Append what one rule finds in one part of an object."""
    for violation in rule.check(part):
        node, message, related, severity, fix_steps, safe, evidence = violation
        problems.append(
            Problem(
                rule.name, message, node, related, rule.category, severity or rule.severity, fix_steps, safe, evidence
            )
        )

"""Rules at work: those that concern an object, applied to it, its roles, its pods and their containers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from jobgen.model import Problem
from jobgen.rules import Row, Rule
from jobgen.view import Container, Manifest, Pod

_ByField = dict[str, list[Rule]]


class _Table(NamedTuple):
    """The rules that concern one kind, by what they look at."""

    manifest: list[Rule]
    role: list[Rule]
    pod: list[Rule]
    pod_fields: _ByField
    container: list[Rule]
    container_fields: _ByField
    fleet: list[Rule]


class Rulebook:
    """Some rules, sorted for quick use."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules = tuple(rules)
        self._tables: dict[tuple[str, bool], _Table] = {}

    def problems(self, manifest: Manifest) -> list[Problem]:
        """What the rules find in an object."""
        table = self._table(manifest)
        problems: list[Problem] = []
        for rule in table.manifest:
            _ask(rule, manifest, problems)
        for role in manifest.roles:
            for rule in table.role:
                _ask(rule, role, problems)
            pod = role.pod
            _look(pod, pod.spec, table.pod, table.pod_fields, problems)
            for container in (*pod.containers, *pod.init_containers):
                _look(container, container.data, table.container, table.container_fields, problems)
        return problems

    def rows(self, manifest: Manifest) -> Iterator[tuple[str, Row]]:
        """What the rules about all objects keep of this one, with the rule's name."""
        for rule in self._table(manifest).fleet:
            assert rule.gather is not None
            for row in rule.gather(manifest):
                yield rule.name, row

    def _table(self, manifest: Manifest) -> _Table:
        # A kind may have other spellings; rules go by its own name.
        name = manifest.kind.name if manifest.kind else manifest.kind_name
        key = (name, manifest.kind is not None)
        if key not in self._tables:
            concerned = [rule for rule in self._rules if not rule.kinds or name in rule.kinds]
            self._tables[key] = _table(concerned, known=manifest.kind is not None)
        return self._tables[key]


def _table(rules: list[Rule], *, known: bool) -> _Table:
    def on(*scopes: str) -> list[Rule]:
        return [rule for rule in rules if rule.on in scopes]

    return _Table(
        manifest=on("manifest", "job") if known else on("manifest"),
        role=on("role"),
        pod=[rule for rule in on("pod") if not rule.fields],
        pod_fields=_by_field(on("pod")),
        container=[rule for rule in on("container") if not rule.fields],
        container_fields=_by_field(on("container")),
        fleet=on("fleet"),
    )


def _by_field(rules: list[Rule]) -> _ByField:
    found: _ByField = {}
    for rule in rules:
        for field in rule.fields:
            found.setdefault(field, []).append(rule)
    return found


def _look(
    part: Pod | Container, fields: Iterable[str], always: list[Rule], some: _ByField, problems: list[Problem]
) -> None:
    """Ask the rules that are about every such part, and those about a field that it has; each once."""
    for rule in always:
        _ask(rule, part, problems)
    asked: set[str] = set()
    for field in fields:
        for rule in some.get(field, ()):
            if rule.name not in asked:
                asked.add(rule.name)
                _ask(rule, part, problems)


def _ask(rule: Rule, part: object, problems: list[Problem]) -> None:
    for fault in rule.check(part):
        node, message, related, severity, mend, safe = fault
        problems.append(
            Problem(rule.name, message, node, related, rule.category, severity or rule.severity, mend, safe)
        )

"""Rules at work: those that concern an object, applied to it, its roles, its pods and their containers."""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from jobgen.check.resemblance import EVERYBODY
from jobgen.check.rules import Fact, Rule
from jobgen.k8s.objects import Container, Manifest, Pod
from jobgen.model.finding import Problem

_ByField = dict[str, list[Rule]]
_REMEMBERED = 4096
_MANY = 1000


class _Asked(NamedTuple):
    """Rules about one sort of part: those that look at every such part, and those that look at one of its fields."""

    always: list[Rule]
    some: _ByField


_NOBODY = _Asked([], {})


class _Table(NamedTuple):
    """The rules to ask about one kind, by what they look at; and templates that some of them have found to be fine."""

    manifest: list[Rule]
    role: list[Rule]
    pod: _Asked
    container: _Asked
    pod_beyond: _Asked
    container_beyond: _Asked
    fleet: list[Rule]
    fine: set[bytes] | None
    """None where the templates are known to be new."""


class RuleRunner:
    """Some rules, sorted for quick use."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules = tuple(rules)
        self._tables: dict[tuple[str, bool, int], _Table] = {}

    def applicable_rules(self, manifest: Manifest) -> list[Rule]:
        """The rules about objects of its kind."""
        # A kind may have other spellings; rules go by its own name.
        name = manifest.kind.name if manifest.kind else manifest.kind_name
        return [rule for rule in self._rules if not rule.kinds or name in rule.kinds]

    def problems(self, manifest: Manifest, asked: int = EVERYBODY) -> list[Problem]:
        """What the rules find in an object: all that concern it, or some by their bits."""
        table = self._table(manifest, asked)
        problems: list[Problem] = []
        for rule in table.manifest:
            run_rule(rule, manifest, problems)
        for role in manifest.roles:
            for rule in table.role:
                run_rule(rule, role, problems)
            _look_at_pod(role.pod, table.pod_beyond, table.container_beyond, problems)
            _look_once(role.pod, table, problems)
        return problems

    def with_problems(self, manifests: Sequence[Manifest], asked: Sequence[int]) -> set[int]:
        """Those objects in which the rules find something, by their place: each rule in turn, since that is faster.

        `asked` says for each of them which rules there are to ask.
        """
        places: dict[int, list[int]] = {}
        tables: dict[int, _Table] = {}
        for place, manifest in enumerate(manifests):
            if not asked[place]:
                continue
            table = self._table(manifest, asked[place])
            tables[id(table)] = table
            places.setdefault(id(table), []).append(place)
        found: set[int] = set()
        for name, table in tables.items():
            mine = places[name]
            for rule in table.manifest:
                _suspect(rule, ((place, manifests[place]) for place in mine), found)
            roles = [(place, role) for place in mine for role in manifests[place].roles]
            for rule in table.role:
                _suspect(rule, roles, found)
            for place, role in roles:
                problems: list[Problem] = []
                _look_at_pod(role.pod, table.pod_beyond, table.container_beyond, problems)
                _look_once(role.pod, table, problems)
                if problems:
                    found.add(place)
        return found

    def rows(self, manifest: Manifest) -> Iterator[tuple[str, Fact]]:
        """What the rules about all objects keep of this one, with the rule's name."""
        for rule in self._table(manifest, EVERYBODY).fleet:
            assert rule.collect is not None
            for row in rule.collect(manifest):
                yield rule.name, row

    def _table(self, manifest: Manifest, asked: int) -> _Table:
        key = (manifest.kind_name, manifest.kind is not None, asked)
        if key not in self._tables:
            if len(self._tables) > _MANY:
                self._tables.clear()
            rules = [rule for number, rule in enumerate(self.applicable_rules(manifest)) if asked >> number & 1]
            self._tables[key] = _table(rules, set() if asked == EVERYBODY else None, known=manifest.kind is not None)
        return self._tables[key]


def _table(rules: list[Rule], fine: set[bytes] | None, *, known: bool) -> _Table:
    def on(*scopes: str) -> list[Rule]:
        return [rule for rule in rules if rule.on in scopes]

    return _Table(
        manifest=on("manifest", "job") if known else on("manifest"),
        role=on("role"),
        pod=_asked(rule for rule in on("pod") if not rule.beyond),
        container=_asked(rule for rule in on("container") if not rule.beyond),
        pod_beyond=_asked(rule for rule in on("pod") if rule.beyond),
        container_beyond=_asked(rule for rule in on("container") if rule.beyond),
        fleet=on("fleet"),
        fine=fine,
    )


def _asked(rules: Iterable[Rule]) -> _Asked:
    found = _Asked([], {})
    for rule in rules:
        for field in rule.fields:
            found.some.setdefault(field, []).append(rule)
        if not rule.fields:
            found.always.append(rule)
    return found


def _look_once(pod: Pod, table: _Table, problems: list[Problem]) -> None:
    """Ask the rules that look at the template alone; roles and jobs say the same again and again."""
    try:
        template: Any = pod.template
        key = marshal.dumps(template) if table.fine is not None else b""
    except ValueError:
        # A traced template: it is looked at because something is wrong with it.
        key = b""
    if table.fine is None or not key:
        _look_at_pod(pod, table.pod, table.container, problems)
        return
    if key in table.fine:
        return
    before = len(problems)
    _look_at_pod(pod, table.pod, table.container, problems)
    if len(problems) == before:
        if len(table.fine) >= _REMEMBERED:
            table.fine.clear()
        table.fine.add(key)


def _look_at_pod(pod: Pod, on_pod: _Asked, on_container: _Asked, problems: list[Problem]) -> None:
    if on_pod != _NOBODY:
        _look(pod, pod.spec, on_pod, problems)
    if on_container != _NOBODY:
        for container in (*pod.containers, *pod.init_containers):
            _look(container, container.data, on_container, problems)


def _look(part: Pod | Container, fields: Iterable[str], rules: _Asked, problems: list[Problem]) -> None:
    """Ask the rules that are about every such part, and those about a field that it has; each once."""
    for rule in rules.always:
        run_rule(rule, part, problems)
    asked: set[str] = set()
    for field in fields:
        for rule in rules.some.get(field, ()):
            if rule.name not in asked:
                asked.add(rule.name)
                run_rule(rule, part, problems)


def _suspect(rule: Rule, parts: Iterable[tuple[int, object]], found: set[int]) -> None:
    check = rule.check
    for place, part in parts:
        for _ in check(part):
            found.add(place)
            break


def run_rule(rule: Rule, part: object, problems: list[Problem]) -> None:
    """Append what one rule finds in one part of an object."""
    for fault in rule.check(part):
        node, message, related, severity, fix_steps, safe = fault
        problems.append(
            Problem(rule.name, message, node, related, rule.category, severity or rule.severity, fix_steps, safe)
        )

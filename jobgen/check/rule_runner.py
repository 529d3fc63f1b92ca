"""Runs the rules that apply to an object, on the object, its roles, their pods and containers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache

from jobgen.check.rules import Fact, Rule, Violation
from jobgen.k8s.objects import Container, Manifest, Pod, Role
from jobgen.model.budget import TOO_MANY_STEPS, OverBudgetError
from jobgen.model.data import Plain
from jobgen.model.finding import Problem
from jobgen.model.limits import MAX_FINDINGS
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.sentence import Sentence

INTERNAL_ERROR = "internal-error"
"""The rule of a problem that says that a check failed."""
_Triggered = tuple[tuple[str, ...], Rule]
"""A rule, and the fields or words of which an object must have one; without any, the rule is about all objects."""
# The scopes of rules about whole objects.
_WHOLE = ("manifest", "job")


class _PartRules:
    """Rules about pods, or about containers: which apply depends on the fields that a part has."""

    def __init__(self, rules: Collection[Rule]) -> None:
        self._rules = rules
        self._general = [rule for rule in rules if not rule.fields]
        self._of_one: dict[str, list[Rule]] = {field: [] for rule in rules for field in rule.fields}
        """The rules about one field."""
        self._several: list[Rule] = []
        self._of_several: dict[str, list[int]] = {field: [] for field in self._of_one}
        """The places in `_several` of rules about a field or another."""
        for rule in rules:
            if len(rule.fields) == 1:
                self._of_one[rule.fields[0]].append(rule)
            elif rule.fields:
                for field in rule.fields:
                    self._of_several[field].append(len(self._several))
                self._several.append(rule)
        self._selected: dict[tuple[str, ...], list[_Triggered]] = {}

    def __len__(self) -> int:
        return len(self._rules)

    def select(self, names: Iterable[str]) -> list[_Triggered]:
        """Return the rules about every part, then those about one of its fields, then those about any of several."""
        named = tuple(filter(self._of_one.__contains__, names))
        found = self._selected.get(named)
        if found is None:
            places = sorted({place for field in named for place in self._of_several[field]})
            rules = [*self._general, *(rule for field in named for rule in self._of_one[field])]
            rules += [self._several[place] for place in places]
            found = self._selected[tuple(map(str, named))] = [(rule.words, rule) for rule in rules]
        return found


class _RuleTable(NamedTuple):
    """The rules that apply to objects of one kind, by their scope."""

    manifest: list[_Triggered]
    role: list[_Triggered]
    pod: _PartRules
    container: _PartRules
    fleet: list[list[Rule]]
    """The rules that keep the same facts of each object are in one list."""


class RuleRunner:
    """A set of rules, sorted by kind and scope on first use."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules = tuple(rules)
        self._numbers = {rule.name: number for number, rule in enumerate(self._rules)}
        self._named_kinds = frozenset([kind for rule in self._rules for kind in rule.kinds])
        self._fields = frozenset([field for rule in self._rules if rule.scope in _WHOLE for field in rule.fields])
        self._words = tuple(dict.fromkeys([word for rule in self._rules for word in rule.words]))
        self._tables: dict[tuple[str, bool, bool, str], _RuleTable] = {}

    def find_problems(self, manifest: Manifest) -> list[Problem]:
        """Everything the rules find in an object."""
        problems: list[Problem] = []
        if not self._rules:
            return problems
        table, signs = self._table(manifest), self._find_signs(manifest)
        _run_rules(table.manifest, manifest, manifest, signs, problems)
        for role in manifest.roles if table.role else ():
            if len(problems) > MAX_FINDINGS:
                # The checker reports no more than these; the others would only take time and memory.
                break
            _run_rules(table.role, role, manifest, signs, problems)
        for pod in manifest.pods if table.pod or table.container else ():
            _run_rules(table.pod.select(pod.spec), pod, manifest, signs, problems)
            for container in pod.all_containers:
                _run_rules(table.container.select(container.data), container, manifest, signs, problems)
        return problems

    def _find_signs(self, manifest: Manifest) -> set[str]:
        """Return the fields and words of an object that rules name."""
        named = (*manifest.object, *manifest.metadata, *manifest.spec) if self._fields else ()
        words: Collection[str] = self._words
        if words:
            text = manifest.text if manifest.pods else ""
            words = [word for word in words if word in text]
        return {*filter(self._fields.__contains__, named), *words}

    def collect_facts(
        self, manifest: Manifest, problems: list[Problem], names: frozenset[str] | None = None
    ) -> Iterator[tuple[str, Fact]]:
        """The facts that the fleet rules collect from an object, each with its rule's name: all rules, or these."""
        for rule, *others in self._table(manifest).fleet:
            assert rule.collect is not None
            if names is not None and names.isdisjoint([rule.name, *(other.name for other in others)]):
                continue
            try:
                for fact in rule.collect(manifest):
                    yield rule.name, fact
                    for other in others:
                        yield other.name, fact
            except Exception as error:  # noqa: BLE001 -- a faulty rule must not hide what the others find
                problems.append(report_exception(f"the rule `{rule.name}`", error, manifest.object))

    def _table(self, manifest: Manifest) -> _RuleTable:
        # Rules name a kind by its main name, not by an alias. Kinds that no rule names share a table.
        name = manifest.kind.name if manifest.kind else manifest.kind_name
        is_known, gitops = manifest.kind is not None, manifest.cluster.gitops
        key = (name if name in self._named_kinds else "", is_known, manifest.team is not None, gitops)
        table = self._tables.get(key)
        if table is None:
            rules = [rule for rule in self._rules if not rule.kinds or name in rule.kinds]
            rules = [rule for rule in rules if not rule.gitops or gitops in rule.gitops]
            # What a team may use is asked about the objects of teams only.
            rules = [rule for rule in rules if manifest.team is not None or rule.category != "team"]
            table = self._tables[key] = _sort_by_scope(rules, is_known=is_known)
        return table


def _sort_by_scope(rules: list[Rule], *, is_known: bool) -> _RuleTable:
    def in_scope(*scopes: str) -> list[Rule]:
        return [rule for rule in rules if rule.scope in scopes]

    about_objects = in_scope(*_WHOLE) if is_known else in_scope("manifest")
    return _RuleTable(
        manifest=[(rule.fields or rule.words, rule) for rule in about_objects],
        role=[(rule.words, rule) for rule in in_scope("role")],
        pod=_PartRules(in_scope("pod")),
        container=_PartRules(in_scope("container")),
        fleet=_group_by_facts(tuple(in_scope("fleet"))),
    )


@lru_cache(maxsize=64)
def _group_by_facts(rules: tuple[Rule, ...]) -> list[list[Rule]]:
    """Return the rules that have facts in common, once for the many kinds with the same rules."""
    found: dict[object, list[Rule]] = {}
    for rule in rules:
        found.setdefault(rule.collect, []).append(rule)
    return list(found.values())


def _run_rules(
    rules: Iterable[_Triggered],
    part: Manifest | Role | Pod | Container,
    manifest: Manifest,
    signs: AbstractSet[str],
    problems: list[Problem],
) -> None:
    """Append what the rules find in one part of an object; an exception in a rule is a problem of its own.

    A rule that has triggers runs if one of them is among the signs of the object.
    """
    for triggers, rule in rules:
        for trigger in triggers:
            if trigger in signs:
                break
        else:
            if triggers:
                continue
        try:
            for violation in rule.check(part):
                problems.append(to_problem(rule, violation))
        except Exception as error:  # noqa: BLE001 -- a faulty rule must not hide what the others find
            problems.append(report_exception(f"the rule `{rule.name}`", error, manifest.object))


def to_problem(rule: Rule, violation: Violation) -> Problem:
    """Return the problem of a violation that a rule found, with the places that the rule gives."""
    node, sentence, related, severity, fix_steps, safe, evidence, at, inside, meant, finish, cause = violation
    category, severity = rule.category, severity or rule.severity
    shown = (fix_steps, safe, evidence, at, "", inside, cause, meant)
    return Problem(rule.name, sentence, node, related, category, severity, *shown, finish=finish)


def report_exception(check: str, error: Exception, obj: Mapping[str, Plain]) -> Problem:
    """A problem for a check that raised an exception on an object, so that the run goes on and still fails."""
    if isinstance(error, OverBudgetError):
        return Problem(TOO_MANY_STEPS, str(error), obj.get("kind"), category="meta")
    message = Sentence(
        "{} failed on this object with `{}`: {}; please report this bug in jobgen", check, type(error).__name__, error
    )
    return Problem(INTERNAL_ERROR, message, obj.get("kind"), category="meta")

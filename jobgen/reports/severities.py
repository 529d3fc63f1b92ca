"""Severities from `rules`, `categories` and `exceptions` in jobgen.yaml, which change severities or turn rules off."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import translate
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from jobgen.model.builtin_rules import canonical_rule_name
from jobgen.model.data import Node, untraced, value_of
from jobgen.model.finding import Finding, Severity
from jobgen.model.named_tuple import NamedTuple

_OFF = "off"


class SeveritySetting(NamedTuple):
    """A severity for findings in matching files, environments, namespaces and jobs; an empty tuple matches all."""

    severity: str
    paths: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()

    def matches(self, finding: Finding, team: str = "") -> bool:
        """Return True if the setting applies to a finding about a job of a team."""
        # Findings and entries can both be many, so only fields with patterns are compared.
        if self.paths and not _matches_any(self.paths, finding.location.file):
            return False
        if self.environments and not _matches_any(self.environments, finding.env):
            return False
        if self.teams and not _matches_any(self.teams, team):
            return False
        obj = finding.object
        if self.namespaces and not _matches_any(self.namespaces, obj.namespace if obj else ""):
            return False
        if not self.jobs or (obj and _matches_any(self.jobs, obj.name)):
            return True
        return _matches_any(self.jobs, finding.place.partition("/")[0])


def _matches_any(patterns: tuple[str, ...], value: str) -> bool:
    """Return True if a pattern matches a value that is not empty."""
    return bool(value) and _compile(patterns)(value) is not None


@lru_cache(maxsize=4096)
def _compile(patterns: tuple[str, ...]) -> Callable[[str], re.Match[str] | None]:
    return re.compile("|".join(map(translate, patterns))).match


class SeverityException(NamedTuple):
    """Findings that are accepted for some time."""

    rule: str
    scope: SeveritySetting
    reason: str
    owner: str
    expires: str

    def matches(self, finding: Finding, team: str) -> bool:
        """Return True if it is about a finding."""
        return finding.rule == self.rule and self.scope.matches(finding, team)


class Severities(NamedTuple):
    """The settings of each rule and category; the first that matches applies, and a rule's before its category's."""

    rules: Mapping[str, tuple[SeveritySetting, ...]]
    categories: Mapping[str, tuple[SeveritySetting, ...]] = MappingProxyType({})
    exceptions: Mapping[str, tuple[SeverityException, ...]] = MappingProxyType({})
    """Those that have not expired, by rule."""

    @property
    def is_any(self) -> bool:
        """Return True if the settings may change a finding."""
        return bool(self.rules or self.categories or self.exceptions)

    @property
    def off(self) -> frozenset[str]:
        """Rules that are turned off everywhere, and need not run."""
        return frozenset(name for name, settings in self.rules.items() if settings[:1] == (SeveritySetting(_OFF),))

    def ever_off(self, categories: Iterable[tuple[str, str]]) -> frozenset[str]:
        """Rules that are turned off, everywhere or for some files, environments or namespaces.

        `categories` are pairs of each rule and each category that its findings may have.
        """
        pairs = (*((name, "") for name in self.rules), *(categories if self.categories else ()))
        return frozenset(self.exceptions) | frozenset(
            name
            for name, category in pairs
            if any(each.severity == _OFF for each in self._list_settings(name, category))
        )

    def _list_settings(self, rule: str, category: str) -> Iterator[SeveritySetting]:
        """Yield the settings that may apply to a rule: none after one that applies everywhere."""
        for setting in (*self.rules.get(rule, ()), *self.categories.get(category, ())):
            yield setting
            if not any(setting[1:]):
                return

    def find_exception(self, finding: Finding, team: str = "") -> SeverityException | None:
        """Return the exception that accepts a finding; None if there is none."""
        return next((each for each in self.exceptions.get(finding.rule, ()) if each.matches(finding, team)), None)

    def apply(self, finding: Finding, team: str = "") -> Finding | None:
        """Return the finding with its severity in this repository; None if its rule is turned off, or excepted."""
        if self.find_exception(finding, team):
            return None
        for setting in (*self.rules.get(finding.rule, ()), *self.categories.get(finding.category, ())):
            if setting.matches(finding):
                return None if setting.severity == _OFF else finding._replace(severity=Severity(setting.severity))
        return finding


def parse_severities(settings: Mapping[str, Node], today: str = "") -> Severities:
    """Parse `rules`, `categories` and `exceptions` of settings that the schema has accepted.

    Entries that have expired are left out; without a date, none has.
    """
    rules: Any = untraced(settings.get("rules", {}))
    categories: Any = untraced(settings.get("categories", {}))
    entries: Any = settings.get("exceptions", ())

    def parse(value: Any) -> tuple[SeveritySetting, ...]:
        entries = [entry if isinstance(entry, dict) else {"severity": entry} for entry in _as_list(value)]
        return tuple(_parse_setting(entry) for entry in entries if not is_expired(entry, today))

    exceptions: dict[str, list[SeverityException]] = {}
    for each in (parse_exception(entry) for entry in entries if not is_expired(entry, today)):
        exceptions.setdefault(each.rule, []).append(each)
    # A rule's current name outranks a former one.
    ordered = sorted(rules, key=lambda name: canonical_rule_name(name) == name)
    return Severities(
        {canonical_rule_name(name): parse(rules[name]) for name in ordered},
        {name: parse(value) for name, value in categories.items()},
        {rule: tuple(several) for rule, several in exceptions.items()},
    )


def is_expired(entry: Mapping[str, Any], today: str) -> bool:
    """Return True if an entry with `expires` does not apply any more; without a date, that is not known."""
    return bool(today) and "expires" in entry and str(untraced(entry["expires"])) < today


def parse_exception(block: Any) -> SeverityException:
    """Parse an entry of `exceptions`."""
    entry: Any = untraced(block)
    rule = canonical_rule_name(entry["rule"])
    return SeverityException(rule, _parse_setting(entry), entry["reason"], entry["owner"], entry["expires"])


def list_expiring(settings: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the entries of settings that expire."""
    yield from (entry for _, entry in list_temporary(settings))
    yield from settings.get("exceptions", ())


def list_temporary(settings: Mapping[str, Any]) -> Iterator[tuple[Node, Mapping[str, Any]]]:
    """Yield the entries of `rules` and `categories` that expire, each with the rule or category."""
    for field in ("rules", "categories"):
        for name, value in settings.get(field, {}).items():
            yield from ((name, entry) for entry in _as_list(value) if isinstance(entry, dict) and "expires" in entry)


def parse_temporary(name: Node, block: Any) -> SeverityException:
    """Parse an entry of `rules` or `categories` that expires."""
    entry: Any = untraced(block)
    rule = canonical_rule_name(str(value_of(name)))
    return SeverityException(rule, _parse_setting(entry), entry.get("reason", ""), "", entry["expires"])


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _parse_setting(entry: dict[str, Any]) -> SeveritySetting:
    # YAML reads an unquoted `off` as false. An exception has no severity.
    severity = entry.get("severity") or _OFF
    scopes = ("paths", "environments", "namespaces", "jobs", "teams")
    return SeveritySetting(severity, *(tuple(entry.get(key, ())) for key in scopes))

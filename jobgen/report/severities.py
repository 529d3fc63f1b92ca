"""Severities from `rules` and `categories` in jobgen.yaml, which change severities or turn rules off."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, NamedTuple

from jobgen.check.rule_names import canonical_rule_name
from jobgen.model.data import Node, untraced
from jobgen.model.finding import Finding, Severity

_OFF = "off"


class SeveritySetting(NamedTuple):
    """A severity for findings in matching files, environments and namespaces; an empty tuple matches all."""

    severity: str
    paths: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()

    def matches(self, finding: Finding) -> bool:
        """Whether the setting applies to a finding."""
        namespace = finding.object.namespace if finding.object else ""
        pairs = ((self.paths, finding.location.file), (self.environments, finding.env), (self.namespaces, namespace))
        return all(not patterns or any(fnmatchcase(value, glob) for glob in patterns) for patterns, value in pairs)


class Severities(NamedTuple):
    """The settings of each rule and category; the first that matches applies, and a rule's before its category's."""

    rules: Mapping[str, tuple[SeveritySetting, ...]]
    categories: Mapping[str, tuple[SeveritySetting, ...]] = MappingProxyType({})

    @property
    def off(self) -> frozenset[str]:
        """Rules that are turned off everywhere, and need not run."""
        return frozenset(name for name, settings in self.rules.items() if settings[:1] == (SeveritySetting(_OFF),))

    def ever_off(self, categories: Iterable[tuple[str, str]]) -> frozenset[str]:
        """Rules that are turned off, everywhere or for some files, environments or namespaces.

        `categories` are pairs of each rule and each category that its findings may have.
        """
        pairs = (*((name, "") for name in self.rules), *(categories if self.categories else ()))
        return frozenset(
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

    def apply(self, finding: Finding) -> Finding | None:
        """Return the finding with its severity in this repository; None if its rule is turned off."""
        for setting in (*self.rules.get(finding.rule, ()), *self.categories.get(finding.category, ())):
            if setting.matches(finding):
                return None if setting.severity == _OFF else finding._replace(severity=Severity(setting.severity))
        return finding


def parse_severities(settings: Mapping[str, Node]) -> Severities:
    """Parse `rules` and `categories` of settings that the schema has accepted."""
    rules: Any = untraced(settings.get("rules", {}))
    categories: Any = untraced(settings.get("categories", {}))
    # A rule's current name outranks a former one.
    ordered = sorted(rules, key=lambda name: canonical_rule_name(name) == name)
    return Severities(
        {canonical_rule_name(name): _parse_rule(rules[name]) for name in ordered},
        {name: _parse_rule(value) for name, value in categories.items()},
    )


def _parse_rule(value: Any) -> tuple[SeveritySetting, ...]:
    entries = value if isinstance(value, list) else [value]
    return tuple(_parse_setting(entry if isinstance(entry, dict) else {"severity": entry}) for entry in entries)


def _parse_setting(entry: dict[str, Any]) -> SeveritySetting:
    # YAML reads an unquoted `off` as false.
    severity = entry["severity"] or _OFF
    return SeveritySetting(severity, *(tuple(entry.get(key, ())) for key in ("paths", "environments", "namespaces")))

"""How bad a finding is here: the `rules` of jobgen.yaml, which may change a rule's severity or switch it off."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from jobgen.check.rule_names import canonical_rule_name
from jobgen.model.data import Data, untraced
from jobgen.model.finding import Finding, Severity

_OFF = "off"


class Setting(NamedTuple):
    """A severity for findings of some files, environments and namespaces; for all where none is named."""

    severity: str
    paths: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()

    def fits(self, finding: Finding) -> bool:
        """Whether a finding is meant."""
        namespace = finding.object.namespace if finding.object else ""
        asked = ((self.paths, finding.location.file), (self.environments, finding.env), (self.namespaces, namespace))
        return all(not patterns or any(fnmatchcase(value, glob) for glob in patterns) for patterns, value in asked)


class Severities(NamedTuple):
    """The settings of each rule, in their order: the first that fits decides."""

    rules: Mapping[str, tuple[Setting, ...]]

    @property
    def off(self) -> frozenset[str]:
        """Rules that are switched off everywhere: nobody need look."""
        return frozenset(name for name, settings in self.rules.items() if settings[:1] == (Setting(_OFF),))

    def of(self, finding: Finding) -> Finding | None:
        """The finding as bad as it is here, or None if its rule is switched off."""
        for setting in self.rules.get(finding.rule, ()):
            if setting.fits(finding):
                return None if setting.severity == _OFF else finding._replace(severity=Severity(setting.severity))
        return finding


def parse_severities(settings: Mapping[str, Data]) -> Severities:
    """The `rules` of the settings, whose format has been checked."""
    rules = untraced(settings.get("rules", {}))
    # A rule's current name outranks a former one.
    ordered = sorted(rules, key=lambda name: canonical_rule_name(name) == name)
    return Severities({canonical_rule_name(name): _settings(rules[name]) for name in ordered})


def _settings(value: Data) -> tuple[Setting, ...]:
    entries = value if isinstance(value, list) else [value]
    return tuple(_setting(entry if isinstance(entry, dict) else {"severity": entry}) for entry in entries)


def _setting(entry: dict[str, Data]) -> Setting:
    # YAML reads a bare `off` as false, and that is what people mean.
    severity = entry["severity"] or _OFF
    return Setting(severity, *(tuple(entry.get(key, ())) for key in ("paths", "environments", "namespaces")))

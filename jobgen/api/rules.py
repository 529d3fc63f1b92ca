"""List the rules and policies, and what the settings of a repository make of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from jobgen.api.errors import UsageError, check_names, check_severity
from jobgen.check.rule_docs import RuleDoc, all_docs
from jobgen.model.builtin_rules import canonical_rule_name
from jobgen.model.finding import Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.rendering import config
from jobgen.rendering.config import ProjectConfig
from jobgen.repo import layout
from jobgen.repo.root import find_root
from jobgen.reports.narrowing import CATEGORIES, describe_unknown
from jobgen.reports.severities import SeveritySetting

_LEVELS = tuple(severity.value for severity in Severity)


class ListedRule(NamedTuple):
    """A rule or a policy, and its state in a repository."""

    name: str
    category: str
    severity: str
    """The severity without settings."""
    state: str
    """The severity here, where nothing more specific applies, or `off`."""
    summary: str
    is_mandatory: bool
    """True if no comment suppresses its findings."""
    is_shown: bool
    """False if `select` or `ignore` of the settings leave its findings out."""
    is_partial: bool
    """True if some paths, environments or namespaces have another severity."""

    @property
    def is_customized(self) -> bool:
        """Return True if the settings change what the rule reports."""
        return self.state != self.severity or not self.is_shown or self.is_partial

    @property
    def note(self) -> str:
        """What else is special about the rule here; usually empty."""
        notes = [f"{self.severity} by default"] if self.state != self.severity else []
        notes += ["other severities in places"] if self.is_partial else []
        notes += ["mandatory"] if self.is_mandatory else []
        notes += [] if self.is_shown else ["not shown"]
        return ", ".join(notes)

    def to_plain(self) -> dict[str, Any]:
        """Return the rule as it is in JSON."""
        return {
            "name": self.name,
            "category": self.category,
            "severity": self.severity,
            "state": self.state,
            "mandatory": self.is_mandatory,
            "shown": self.is_shown,
            "partial": self.is_partial,
            "summary": self.summary,
        }


def rules(directory: Path, names: Sequence[str] = (), *, severity: str = "info") -> tuple[ListedRule, ...]:
    """List rules and policies by category and name.

    Args:
        directory: A folder in a jobs repository, or anywhere else.
        names: The names of rules and categories; by default all.
        severity: The least severe rules to list.

    Raises:
        UsageError: A name or the severity is unknown, or `jobgen.yaml` has errors.

    """
    check_names("names", names)
    check_severity(severity, _LEVELS)
    root = find_root(directory.resolve())
    docs = all_docs(layout.own_layers(root) if root else None)
    for name in names:
        if wrong := describe_unknown(name, docs, presets=False):
            raise UsageError(wrong)
    project = config.load_own(root) if root else None
    if project is not None and project.findings:
        raise UsageError("the settings or overlays have errors; run `jobgen lint`")
    wanted = {*map(canonical_rule_name, names)}
    listed = [doc for doc in docs.values() if not wanted or not wanted.isdisjoint((doc.name, doc.category))]
    ordered = sorted(listed, key=lambda doc: (CATEGORIES.index(doc.category), doc.name))
    found = [_describe(doc, project) for doc in ordered]
    # A rule that is off keeps its place among those of the severity that it has elsewhere.
    return tuple(each for each in found if _rank(each) <= _LEVELS.index(severity))


def _rank(found: ListedRule) -> int:
    return _LEVELS.index(found.severity if found.state == "off" else found.state)


def _describe(doc: RuleDoc, project: ProjectConfig | None) -> ListedRule:
    severity = doc.severity.value
    if project is None:
        return ListedRule(
            doc.name, doc.category, severity, severity, doc.summary, is_mandatory=False, is_shown=True, is_partial=False
        )
    settings = list(_list_settings(doc, project))
    general = next((each.severity for each in settings if not any(each[1:])), severity)
    state = getattr(general, "value", general)
    return ListedRule(
        doc.name,
        doc.category,
        severity,
        state,
        doc.summary,
        is_mandatory=doc.name in project.mandatory,
        is_shown=state not in _LEVELS or doc.name in project.mandatory or _is_shown(doc, project, Severity(state)),
        is_partial=any(any(each[1:]) for each in settings),
    )


def _is_shown(doc: RuleDoc, project: ProjectConfig, severity: Severity) -> bool:
    return project.narrowing.selects(doc.name, doc.category, severity)


def _list_settings(doc: RuleDoc, project: ProjectConfig) -> Iterator[SeveritySetting]:
    yield from project.severities.rules.get(doc.name, ())
    yield from project.severities.categories.get(doc.category, ())

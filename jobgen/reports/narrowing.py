"""Which findings a report shows: those of selected rules and severities, and always what decides about a change."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from jobgen.model.builtin_rules import (
    CHANGE_RULES,
    LIMIT_RULES,
    TREE_RULES,
    UNCHECKED_RULES,
    canonical_rule_name,
    find_same_words,
)
from jobgen.model.finding import Finding, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.suggest import suggest_or
from jobgen.repo.root import SETTINGS

ESSENTIAL, DEFAULT, ALL = "essential", "default", "all"
PRESETS = {
    ESSENTIAL: "errors only",
    DEFAULT: "what the settings select; without settings, everything",
    ALL: "everything, whatever the settings select",
}
"""What the names of presets in `select` stand for."""
CATEGORIES = tuple(
    """defect fleet gitops image launch meta operator pod policy resources schema scheduling security spec team
    yaml""".split()
)
"""The categories of rules."""
_ALWAYS = UNCHECKED_RULES | LIMIT_RULES | TREE_RULES | CHANGE_RULES
"""Rules that no comment suppresses: what was not checked, what teams may not do, and what a change may not do."""
_UNUSED = frozenset(("unused-exception", "unused-suppression"))
"""Rules about entries that no finding needs, which a reader of a few rules does not ask for."""
_RANKS = tuple(Severity)


class Narrowing(NamedTuple):
    """What to show. The name of a rule counts more than its category, this more than a preset; `ignore` wins a tie."""

    select: tuple[str, ...] = ()
    """Names of rules, categories and presets; empty for everything."""
    ignore: tuple[str, ...] = ()
    severity: Severity = Severity.INFO
    """The least severe findings that are shown."""

    @property
    def is_any(self) -> bool:
        """Return True if it leaves anything out."""
        return bool(self.select or self.ignore) or self.severity is not Severity.INFO

    def narrow(self, findings: Sequence[Finding], mandatory: Collection[str]) -> Sequence[Finding]:
        """Return the findings to show."""
        if not self.is_any:
            return findings
        return [each for each in findings if each.rule in mandatory or self.shows(each)]

    def shows(self, finding: Finding) -> bool:
        """Return True if a finding is shown whose rule is not mandatory."""
        rule = canonical_rule_name(finding.rule)
        if rule in _ALWAYS or (finding.location.file == SETTINGS and finding.severity is Severity.ERROR):
            return True
        if _RANKS.index(finding.severity) > _RANKS.index(self.severity):
            return False
        return self.selects(rule, finding.category, finding.severity)

    def selects(self, rule: str, category: str, severity: Severity) -> bool:
        """Return True if findings of a rule are selected."""
        selected, ignored = (set(map(canonical_rule_name, names)) for names in (self.select, self.ignore))
        for name in (rule, category):
            if name in ignored:
                return False
            if name in selected:
                return True
        if rule in _UNUSED:
            return not self.is_any
        if not selected or not selected.isdisjoint((ALL, DEFAULT)):
            return True
        return ESSENTIAL in selected and severity is Severity.ERROR

    def override(self, settings: Narrowing) -> Narrowing:
        """Return what the command line asks for, on top of the settings.

        `--select` replaces both lists of the settings, and `--ignore` adds to theirs.
        """
        if self.select and DEFAULT not in self.select:
            return self
        select = tuple(name for name in self.select if name != DEFAULT)
        return Narrowing((*settings.select, *select), (*settings.ignore, *self.ignore), self.severity)


EVERYTHING = Narrowing()
_PATTERN_SIGNS = frozenset("*/.")
"""What paths and patterns of files have, and names of rules do not."""


def describe_unknown(name: str, rules: Iterable[str], *, presets: bool) -> str:
    """Return what is wrong with the name of a rule, category or preset; empty if there is one."""
    known = [*rules, *CATEGORIES, *(PRESETS if presets else ())]
    if canonical_rule_name(name) in known:
        return ""
    if not presets and name in PRESETS:
        return f"the preset `{name}` can only be selected; name rules or categories"
    same = find_same_words(name, known)
    names = f"; did you mean `{same}`?" if same else suggest_or(name, known, "`jobgen rules` lists them")
    hint = "; `exclude` leaves out files" if _PATTERN_SIGNS & {*name} else names
    return f"there is no rule, category or policy `{name}`{hint}"

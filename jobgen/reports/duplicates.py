"""Merges findings of the same fault: a rule and a policy, or several rules, can report one value.

The merge comes last, after severities, suppressions and the baseline: a finding that is turned off or suppressed does
not hide another one. What is merged into a finding is listed in its `also_reported_by`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Literal, TypeAlias

from jobgen.model.builtin_rules import COUNTED_RULES
from jobgen.model.finding import BROKEN_KIND, UNCHECKED, Finding, Severity
from jobgen.reports.entries import RANK

SAME_FAULTS: tuple[tuple[str, Literal["value", "mapping", "line", "place", "object"]], ...] = (
    # The API server's rule and the policy that protects the cluster.
    ("gpu-request-limit-mismatch missing-resource-limit gpu-limits-match-requests", "value"),
    # A limit by a misspelled name is no limit of the request.
    ("missing-resource-limit gpu-typo", "value"),
    (
        """unsupported-restart-policy unsupported-value never-completes overwritten-restart-policy
        restart-policy-sanity restart-policy-risk""",
        "value",
    ),
    ("min-available-too-high replica-totals", "value"),
    # The table of the kind, and the schema of the declared release.
    ("field-newer-than-operator unknown-field", "value"),
    # The list of the schema, and the list of the pod.
    (
        "duplicate-item duplicate-container-name duplicate-env duplicate-mount-path duplicate-port duplicate-volume",
        "value",
    ),
    ("malformed-image mutable-image-tag untagged-image", "value"),
    # The pull policy matters only because the tag is mutable: a pinned version fixes both.
    ("stale-image mutable-image-tag untagged-image", "mapping"),
    # The level of the namespace, and the advice for any namespace.
    (
        """pod-security-violation privileged-container runtime-socket host-path host-namespaces
        dangerous-capability""",
        "value",
    ),
    (
        """unknown-reference misspelled-claim unknown-queue unknown-runtime ineffective-queue-label
        inadmissible-job unreachable-quota""",
        "value",
    ),
    # The quota of the objects, and the one that an overlay declares.
    ("inadmissible-job queue-quota-exceeded", "object"),
    # A job that writes to several paths of another job, or whose members do.
    ("shared-output", "line"),
    # A script in a ConfigMap, and the command that names it.
    ("script-syntax launch-refused broken-script", "place"),
    # A file of values that cannot be read, and the chart that has them.
    ("yaml-syntax invalid-encoding excessive-aliases nesting-too-deep chart-render-fails", "place"),
)
"""Rules and policies that report the same fault, of which the first that applies is kept.

With each is what they must have in common: the `value`, the `mapping` around it, the `line` of one object, the
`place`, which is a line that different rules report, or the `object`. Add a row here rather than a condition to a rule.
"""


def merge_duplicates(
    findings: Sequence[Finding], mandatory: Collection[str] = ()
) -> tuple[list[Finding], list[Finding]]:
    """Return the findings with one of each fault, and those that it stands for.

    That of a mandatory rule is kept, else the most severe, else the first.
    """
    left: _Numbered = list(enumerate(findings))
    rules = [finding.rule for finding in findings]
    for order, within in _list_orders():
        if sum(map(order.__contains__, rules)) > 1:
            left = _merge(left, order, within, mandatory)
            rules = [finding.rule for _, finding in left]
    # What is reported of a framework only because its kind description has errors, which are reported, is dropped.
    broken = {finding.location.file for _, finding in left if finding.severity is Severity.ERROR}
    kept = {
        number: finding
        for number, finding in left
        if not (finding.related and any(text == BROKEN_KIND and at.file in broken for at, text in finding.related))
    }
    return [*kept.values()], [finding for number, finding in enumerate(findings) if number not in kept]


@cache
def _list_orders() -> Sequence[tuple[Mapping[str, int], str]]:
    """Return the table of the same faults, with the place of each rule in its row."""
    return [({rule: number for number, rule in enumerate(rules.split())}, within) for rules, within in SAME_FAULTS]


_Numbered: TypeAlias = "Sequence[tuple[int, Finding]]"
"""Findings with their numbers in a lint."""


def _merge(
    findings: _Numbered, order: Mapping[str, int], within: str, mandatory: Collection[str]
) -> list[tuple[int, Finding]]:
    def rank(finding: Finding) -> tuple[object, ...]:
        return finding.rule not in mandatory, RANK[finding.severity], order[finding.rule], finding.location

    groups: dict[object, list[int]] = {}
    for index, (_, finding) in enumerate(findings):
        key = _find_subject(finding, within) if finding.rule in order else None
        if key is not None:
            groups.setdefault(key, []).append(index)
    merged: dict[int, Finding] = {}
    dropped: set[int] = set()
    for indexes in groups.values():
        several = {index: findings[index][1] for index in indexes}
        if len({finding.rule for finding in several.values()}) < 2 and within != "line":
            continue
        first = min(several, key=lambda index: rank(several[index]))
        names = {name for each in several.values() for name in (each.rule, *each.also_reported_by)}
        kept = several.pop(first)
        sources = sorted(names - {kept.rule}, key=lambda name: (order.get(name, -1), name))
        fix = kept.fix or next((other.fix for other in several.values() if other.fix), None)
        merged[first] = kept._replace(also_reported_by=tuple(sources), fix=fix)
        dropped |= several.keys()
    return [
        (number, merged.get(index, finding)) for index, (number, finding) in enumerate(findings) if index not in dropped
    ]


def _find_subject(finding: Finding, within: str) -> object:
    """What a finding has in common with others of the same fault; None if that is unknown."""
    if within in ("line", "place"):
        return finding.env, finding.location.file, finding.location.line
    if within == "object":
        # Overlays set some of its values, so the file may be another.
        return (finding.env, finding.object) if finding.object else None
    if not finding.pointer:
        return None
    path = finding.pointer if within == "value" else finding.pointer.rpartition("/")[0]
    return finding.location.file, finding.identity._replace(rule="", path=path, values=())


def _is_grouped(finding: Finding) -> bool:
    """Return True for what concerns a kind or an operator, and not the object; each refused object is a fault."""
    is_refused = finding.rule == "old-api-version" and finding.severity is Severity.ERROR
    return finding.rule in COUNTED_RULES and not is_refused


def group_by_kind(findings: Iterable[Finding]) -> tuple[list[Finding], list[Finding]]:
    """Return the findings with the first about the schema of each kind, and those that it stands for.

    Kinds without a schema are one finding for each API group, and old versions that an operator may not serve are one
    for each kind. The first is kept in each environment that reports it, so
    that a report names them all.
    """
    shown: list[Finding] = []
    others: list[Finding] = []
    groups: dict[object, list[Finding]] = {}
    kept: dict[int, list[Finding]] = {}
    for finding in findings:
        if not _is_grouped(finding):
            shown.append(finding)
            continue
        group = groups.setdefault((_find_api_group(finding) or finding.fault, finding.severity), [])
        group.append(finding)
        # One object of a file may have another namespace in each environment.
        names = [each.object and each.object.name for each in (group[0], finding)]
        if group[0].location == finding.location and names[0] == names[1]:
            kept[len(shown)] = group
            shown.append(finding)
        else:
            others.append(finding)
    for index, group in kept.items():
        if len(group) > 1:
            files = len({finding.location.file for finding in group})
            where = f"in {files} files" if files > 1 else "in this file"
            counted = f"the fields of {len(group)} objects {where} were not checked"
            message = _count_kinds(group, counted) or group[0].reword(UNCHECKED, counted)
            if group[0].rule == "unbuilt-kustomization":
                message += f" in {len(group)} kustomizations"
            if group[0].rule == "old-api-version":
                message += f"; {len(group)} objects {where} have this version"
            shown[index] = shown[index]._replace(message=message)
    return shown, others


def _find_api_group(finding: Finding) -> tuple[str, str] | None:
    """Return the API group of a kind without a schema; None for other findings, and for a group without a domain."""
    group = finding.object.api_version.rpartition("/")[0] if finding.object else ""
    return (finding.rule, group) if finding.rule == "missing-schema" and "." in group else None


_MAX_NAMED = 4


def _count_kinds(group: Sequence[Finding], counted: str) -> str:
    """Return what is said of the kinds of one API group; empty if it is one kind, or no kind of a group."""
    kinds = list(dict.fromkeys(each.object.kind for each in group if each.object))
    if len(kinds) < 2 or group[0].object is None or group[0].rule != "missing-schema":
        return ""
    rest = len(kinds) - _MAX_NAMED
    shown = [f"`{kind}`" for kind in kinds[: _MAX_NAMED if rest > 0 else None]] + [f"{rest} more"] * (rest > 0)
    name = group[0].object.api_version.rpartition("/")[0]
    listed = f"{', '.join(shown[:-1])} and {shown[-1]}"
    return f"there are no schemas for {listed} of `{name}`, so {counted}; add their CRDs with `jobgen schema import`"

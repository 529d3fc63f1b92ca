"""Merges findings of the same fault: a rule and a policy, or several rules, can report one value.

The merge comes last, after severities, suppressions and the baseline: a finding that is turned off or suppressed does
not hide another one. What is merged into a finding is listed in its `also_reported_by`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal, NamedTuple

from jobgen.model.finding import BROKEN_KIND, UNCHECKED, Finding, Severity
from jobgen.reports.entries import RANK


class SameFault(NamedTuple):
    """Rules and policies that report the same fault; the first that applies is kept."""

    rules: tuple[str, ...]
    within: Literal["value", "mapping", "line", "object"] = "value"
    """What they must have in common: the value, the mapping around it, the line of one object, or the object."""


SAME_FAULTS = (
    # The API server's rule and the policy that protects the cluster.
    SameFault(("gpu-request-limit-mismatch", "missing-resource-limit", "gpu-limits-match-requests")),
    SameFault(
        (
            "unsupported-restart-policy",
            "unsupported-value",
            "never-completes",
            "overwritten-restart-policy",
            "restart-policy-sanity",
            "restart-policy-risk",
        )
    ),
    SameFault(("min-available-too-high", "replica-totals")),
    # The table of the kind, and the schema of the declared release.
    SameFault(("field-newer-than-operator", "unknown-field")),
    # The list of the schema, and the list of the pod.
    SameFault(
        ("duplicate-item", "duplicate-container-name", "duplicate-mount-path", "duplicate-port", "duplicate-volume")
    ),
    SameFault(("malformed-image", "mutable-image-tag", "untagged-image")),
    # The pull policy matters only because the tag is mutable: a pinned version fixes both.
    SameFault(("stale-image", "mutable-image-tag", "untagged-image"), within="mapping"),
    # The level of the namespace, and the advice for any namespace.
    SameFault(
        (
            "pod-security-violation",
            "privileged-container",
            "runtime-socket",
            "host-path",
            "host-namespaces",
            "dangerous-capability",
        )
    ),
    SameFault(
        (
            "unknown-reference",
            "unknown-queue",
            "unknown-runtime",
            "inadmissible-job",
            "ineffective-queue-label",
            "unreachable-quota",
        )
    ),
    # The quota of the objects, and the one that an overlay declares.
    SameFault(("inadmissible-job", "queue-quota-exceeded"), within="object"),
    # A job that writes to several paths of another job, or whose members do.
    SameFault(("shared-output",), within="line"),
)
"""Which findings are about the same fault. Add a row here rather than a condition to a rule."""


def merge_duplicates(findings: Iterable[Finding], mandatory: Collection[str] = ()) -> list[Finding]:
    """Return the findings with one of each fault: that of a mandatory rule, else the most severe, else the first."""
    left = list(findings)
    for same in SAME_FAULTS:
        if sum(finding.rule in same.rules for finding in left) > 1:
            left = _merge(left, same, mandatory)
    return _drop_consequences(left)


def _drop_consequences(findings: Sequence[Finding]) -> list[Finding]:
    """Drop what is reported of a framework only because its kind description has errors, which are reported."""
    broken = {finding.location.file for finding in findings if finding.severity is Severity.ERROR}
    return [
        finding
        for finding in findings
        if not any(text == BROKEN_KIND and location.file in broken for location, text in finding.related)
    ]


def _merge(findings: Sequence[Finding], same: SameFault, mandatory: Collection[str]) -> list[Finding]:
    groups: dict[object, list[int]] = {}
    for index, finding in enumerate(findings):
        key = _find_subject(finding, same.within) if finding.rule in same.rules else None
        if key is not None:
            groups.setdefault(key, []).append(index)
    merged: dict[int, Finding] = {}
    dropped: set[int] = set()
    for indexes in groups.values():
        several = {index: findings[index] for index in indexes}
        if len({finding.rule for finding in several.values()}) < 2 and same.within != "line":
            continue
        kept = min(several, key=lambda index: _rank(several[index], same, mandatory))
        merged[kept] = _add_sources(several.pop(kept), list(several.values()), same)
        dropped |= several.keys()
    return [merged.get(index, finding) for index, finding in enumerate(findings) if index not in dropped]


def _find_subject(finding: Finding, within: str) -> object:
    """What a finding has in common with others of the same fault; None if that is unknown."""
    if within == "line":
        return finding.env, finding.location.file, finding.location.line
    if within == "object":
        # Overlays set some of its values, so the file may be another.
        return (finding.env, finding.object) if finding.object else None
    if not finding.pointer:
        return None
    pointer = finding.pointer if within == "value" else finding.pointer.rpartition("/")[0]
    return finding.env, finding.location.file, finding.object, pointer


def _rank(finding: Finding, same: SameFault, mandatory: Collection[str]) -> tuple[object, ...]:
    order = same.rules.index(finding.rule)
    return finding.rule not in mandatory, RANK[finding.severity], order, finding.location


def _add_sources(kept: Finding, others: Sequence[Finding], same: SameFault) -> Finding:
    names = {name for other in others for name in (other.rule, *other.also_reported_by)} | set(kept.also_reported_by)
    ordered = sorted(names - {kept.rule}, key=lambda name: (same.rules.index(name) if name in same.rules else -1, name))
    fix = kept.fix or next((other.fix for other in others if other.fix), None)
    return kept._replace(also_reported_by=tuple(ordered), fix=fix)


_GROUPED = frozenset(("ignored-schema-keyword", "kind-without-crd", "missing-schema"))


def group_by_kind(findings: Iterable[Finding]) -> tuple[list[Finding], list[Finding]]:
    """Return the findings with the first about the schema of each kind, and those that it stands for.

    The first is kept in each environment that reports it, so that a report names them all.
    """
    shown: list[Finding] = []
    others: list[Finding] = []
    groups: dict[object, list[Finding]] = {}
    kept: dict[int, list[Finding]] = {}
    for finding in findings:
        if finding.rule not in _GROUPED:
            shown.append(finding)
            continue
        group = groups.setdefault((finding.message, finding.severity), [])
        group.append(finding)
        if _is_same_object(group[0], finding):
            kept[len(shown)] = group
            shown.append(finding)
        else:
            others.append(finding)
    for index, group in kept.items():
        shown[index] = shown[index]._replace(message=_count(group))
    return shown, others


def _is_same_object(one: Finding, other: Finding) -> bool:
    """Return True if findings are about one object of a file, which may have another namespace in each environment."""
    name, other_name = one.object and one.object.name, other.object and other.object.name
    return (one.location, name) == (other.location, other_name)


def _count(findings: list[Finding]) -> str:
    if len(findings) == 1:
        return findings[0].message
    files = len({finding.location.file for finding in findings})
    where = f"in {files} files" if files > 1 else "in this file"
    return findings[0].message.replace(UNCHECKED, f"the fields of {len(findings)} objects {where} were not checked")

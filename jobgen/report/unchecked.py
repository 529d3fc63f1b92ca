"""Reports kinds whose schema is missing or not evaluated in full once for each kind, not for each object."""

from __future__ import annotations

from collections.abc import Iterable

from jobgen.model.finding import UNCHECKED, Finding

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
    """Whether findings are about one object of a file, which may have another namespace in each environment."""
    name, other_name = one.object and one.object.name, other.object and other.object.name
    return (one.location, name) == (other.location, other_name)


def _count(findings: list[Finding]) -> str:
    if len(findings) == 1:
        return findings[0].message
    files = len({finding.location.file for finding in findings})
    where = f"in {files} files" if files > 1 else "in this file"
    return findings[0].message.replace(UNCHECKED, f"the fields of {len(findings)} objects {where} were not checked")

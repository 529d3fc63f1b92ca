"""Reports kinds whose schema is missing or not evaluated in full once for each kind, not for each object."""

from __future__ import annotations

from collections.abc import Iterable

from jobgen.model.finding import UNCHECKED, Finding

_GROUPED = frozenset(("ignored-schema-keyword", "missing-schema"))


def group_by_kind(findings: Iterable[Finding]) -> tuple[list[Finding], list[Finding]]:
    """Return the findings with the first about the schema of each kind, and those that it stands for."""
    shown: list[Finding] = []
    groups: dict[tuple[object, ...], list[Finding]] = {}
    first: dict[int, tuple[object, ...]] = {}
    for finding in findings:
        if finding.rule not in _GROUPED:
            shown.append(finding)
            continue
        key = (finding.message, finding.severity)
        if key not in groups:
            first[len(shown)] = key
            shown.append(finding)
        groups.setdefault(key, []).append(finding)
    for index, shared in first.items():
        shown[index] = _count(groups[shared])
    return shown, [finding for several in groups.values() for finding in several[1:]]


def _count(findings: list[Finding]) -> Finding:
    if len(findings) == 1:
        return findings[0]
    files = len({finding.location.file for finding in findings})
    where = f"in {files} files" if files > 1 else "in this file"
    message = findings[0].message.replace(UNCHECKED, f"the fields of {len(findings)} objects {where} were not checked")
    return findings[0]._replace(message=message)

"""What a rehearsal says: sections of lines for people, and data for programs."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any

from jobgen.features.upgrade.facts import Requirement
from jobgen.features.upgrade.rehearse import FAILING, EnvironmentUpgrade, PodChange, Rehearsal, Step, VersionChange
from jobgen.model.finding import Finding, pluralize
from jobgen.reports.sections import EnvironmentSections, Section, SectionReport
from jobgen.spec.kinds import parse_version

VERSION = 1
"""The version of the data."""
_SKEW_POLICY = "kubernetes/website:content/en/releases/version-skew-policy.md"


def describe(rehearsal: Rehearsal) -> SectionReport:
    """Return what a rehearsal says, as sections and as data; docs/upgrade.md describes the data."""
    left_out = [each.describe() for each in rehearsal.left_out]
    data = {
        "version": VERSION,
        "failed": rehearsal.failed,
        "objects": rehearsal.objects,
        "environments": list(map(_to_plain, rehearsal.environments)),
        "leftOut": left_out,
    }
    parts = [EnvironmentSections(each.environment, list(list_sections(each))) for each in rehearsal.environments]
    return SectionReport("Upgrade", summarize(rehearsal), parts, left_out, data)


def summarize(rehearsal: Rehearsal) -> str:
    """Return what an upgrade does, in one line."""
    refused = sum(len(each.refused) for each in rehearsal.environments)
    decisions = [change.workload.decision for each in rehearsal.environments for change in each.queues]
    parts = [
        f"{refused} refused" if refused else "",
        *(f"{decisions.count(each)} {each}" for each in sorted(FAILING) if each in decisions),
    ]
    what = ", ".join(filter(None, parts)) or "nothing would be refused, never admitted, or run unmanaged"
    where = pluralize(len(rehearsal.environments), "environment")
    return f"{pluralize(rehearsal.objects, 'object')} in {where} rehearsed: {what}"


def list_sections(upgrade: EnvironmentUpgrade) -> Iterator[Section]:
    """Yield the sections of an environment that have something to say."""
    found = (
        Section("Versions", tuple(map(_describe_change, upgrade.changes))),
        Section("Refused", tuple(map(_describe_finding, upgrade.refused))),
        Section("Queues", tuple(_list_queue_lines(upgrade))),
        Section("Pods that differ", tuple(_list_pod_lines(upgrade))),
        Section("New warnings", tuple(map(_describe_finding, upgrade.warnings))),
        Section("No longer reported", tuple(map(_describe_finding, upgrade.solved))),
        Section("Versions that do not fit together", tuple(map(_describe_requirement, upgrade.broken))),
        Section("Steps", tuple(_list_steps(upgrade))),
    )
    return (section for section in found if section.lines)


def _describe_change(change: VersionChange) -> str:
    shown = f"{change.component} {change.old or '(not declared)'} → {change.new}"
    return f"{shown}, a downgrade" if change.is_downgrade else shown


def _describe_finding(finding: Finding) -> str:
    return f"{finding.location}: {finding.message} [{finding.rule}]"


def _list_queue_lines(upgrade: EnvironmentUpgrade) -> Iterator[str]:
    for workload, before in upgrade.queues:
        yield f"{workload.kind} {workload.name}: {before} → {workload.decision}"
        yield f"  {workload.reason}"


def _list_pod_lines(upgrade: EnvironmentUpgrade) -> Iterator[str]:
    """Yield the differences, each once with the jobs that have it."""
    jobs: dict[str, list[str]] = {}
    for change in upgrade.pods:
        jobs.setdefault(_describe_pods(change), []).append(f"{change.kind} {change.name}")
    for text, names in jobs.items():
        several = dict.fromkeys(names)
        more = f" and {len(several) - 3} more" if len(several) > 3 else ""
        yield f"{text} ({', '.join([*several][:3])}{more})"


def _describe_pods(change: PodChange) -> str:
    difference = change.difference
    before, after = (_show(each) for each in (difference.before, difference.after))
    return f"{difference.field} of {difference.where}: {before} → {after}"


def _show(value: object) -> str:
    text = "(none)" if value is None else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _describe_requirement(each: Requirement) -> str:
    wanted = (f"{each.at_least} or newer" if each.at_least else "", f"before {each.below}" if each.below else "")
    return f"{each.component} needs {each.needs} {' and '.join(filter(None, wanted))}: {each.reason} ({each.source})"


def _list_steps(upgrade: EnvironmentUpgrade) -> Iterator[str]:
    for number, step in enumerate(upgrade.steps, 1):
        yield from _list_step(number, step, upgrade.broken)


def _list_step(number: int, step: Step, broken: Collection[Requirement]) -> Iterator[str]:
    yield f"{number}. {_describe_change(step.change)}"
    if between := _list_minors(step.change):
        yield f"  on the way: {between}; the control plane skips no minor release ({_SKEW_POLICY})"
    titles = {"before": "before", "running": "running jobs", "after": "after"}
    for when, title in titles.items():
        for action in step.actions:
            if action.when == when:
                yield f"  {title}: {action.text} ({action.source})"
    for requirement in step.broken:
        until = "from here on" if requirement in broken else "until a later step"
        yield f"  {until}: {_describe_requirement(requirement)}"


def _list_minors(change: VersionChange) -> str:
    """Return the releases of Kubernetes between two of them; empty if there is none."""
    if change.component != "kubernetes" or not change.old:
        return ""
    (major, first, *_), (_, last, *_) = parse_version(change.old), parse_version(change.new)
    return ", ".join(f"{major}.{minor}" for minor in range(first + 1, last))


def _to_plain(upgrade: EnvironmentUpgrade) -> dict[str, Any]:
    return {
        "environment": upgrade.environment,
        "versions": [each._asdict() for each in upgrade.changes],
        "refused": list(map(_finding_to_plain, upgrade.refused)),
        "warnings": list(map(_finding_to_plain, upgrade.warnings)),
        "solved": list(map(_finding_to_plain, upgrade.solved)),
        "queues": [{**each.workload._asdict(), "before": each.before} for each in upgrade.queues],
        "pods": [
            {
                "kind": each.kind,
                "name": each.name,
                "file": each.location.file,
                "line": each.location.line,
                "where": each.difference.where,
                "field": each.difference.field,
                "before": each.difference.before,
                "after": each.difference.after,
                "training": each.difference.training,
            }
            for each in upgrade.pods
        ],
        "broken": [each._asdict() for each in upgrade.broken],
        "steps": [
            {
                **step.change._asdict(),
                "actions": [{"when": each.when, "text": each.text, "source": each.source} for each in step.actions],
                "broken": [each._asdict() for each in step.broken],
            }
            for step in upgrade.steps
        ],
    }


def _finding_to_plain(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "severity": finding.severity.value,
        "message": finding.message,
        "file": finding.location.file,
        "line": finding.location.line,
    }

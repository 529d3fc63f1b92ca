"""The JSON format, for scripts; docs/upgrade.md describes it."""

from __future__ import annotations

from typing import Any

from jobgen.features.upgrade.rehearse import EnvironmentUpgrade, Rehearsal
from jobgen.model.finding import Finding
from jobgen.reports.escape import dump_json

VERSION = 1


def render(rehearsal: Rehearsal) -> str:
    """Write everything that the other formats show."""
    document = {
        "version": VERSION,
        "failed": rehearsal.failed,
        "objects": rehearsal.objects,
        "environments": list(map(_to_plain, rehearsal.environments)),
        "leftOut": [each.describe() for each in rehearsal.left_out],
    }
    return dump_json(document) + "\n"


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

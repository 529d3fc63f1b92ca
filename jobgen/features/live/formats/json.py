"""The JSON format, for scripts; docs/live.md describes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jobgen.features.live.drift import Difference, Drift
from jobgen.reports.escape import dump_json

VERSION = 1


def render(drifts: Sequence[Drift]) -> str:
    """Write everything that the other formats show."""
    environments = [
        {
            "environment": drift.environment,
            "compared": drift.compared,
            "differences": list(map(_to_plain, drift.differences)),
            "unread": dict(drift.unread),
            "leftOut": [each.describe() for each in drift.left_out],
        }
        for drift in drifts
    ]
    return dump_json({"version": VERSION, "environments": environments}) + "\n"


def _to_plain(each: Difference) -> dict[str, Any]:
    found: dict[str, Any] = {
        "state": each.state,
        "apiVersion": each.api_version,
        "kind": each.kind,
        "namespace": each.namespace,
        "name": each.name,
        "effect": each.effect,
        "gpus": each.gpus,
    }
    if each.location:
        found |= {"file": each.location.file, "line": each.location.line}
    found["fields"] = [
        {
            "field": field.field,
            "live": field.live,
            "wanted": field.wanted,
            "file": field.location.file,
            "line": field.location.line,
        }
        for field in each.fields
    ]
    return found

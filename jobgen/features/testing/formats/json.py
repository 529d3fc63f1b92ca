"""The JSON format, for programs: one versioned document."""

from __future__ import annotations

from collections.abc import Sequence

from jobgen.features.testing.evaluate import Outcome
from jobgen.model.finding import Finding
from jobgen.reports.escape import dump_json
from jobgen.reports.shard_part import ShardPart


def render(outcomes: Sequence[Outcome], errors: Sequence[Finding], shard: ShardPart | None = None) -> str:
    """Write all outcomes, and the errors that kept tests from running."""
    document: dict[str, object] = {
        "version": 1,
        **({"shard": shard.to_plain()} if shard else {}),
        "failed": sum(bool(each.message) for each in outcomes),
        "outcomes": [
            {
                "test": each.test.name,
                "file": each.location.file,
                "line": each.location.line,
                "environment": each.environment,
                "job": each.job,
                "expectation": each.expectation,
                "passed": not each.message,
                "message": each.message,
                "sources": list(each.sources),
            }
            for each in outcomes
        ],
        "errors": [
            {"rule": each.rule, "file": each.location.file, "line": each.location.line, "message": each.message}
            for each in errors
        ],
    }
    return dump_json(document) + "\n"

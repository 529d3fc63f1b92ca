"""One line about a run of tests."""

from __future__ import annotations

from collections.abc import Sequence

from jobgen.features.testing.evaluate import Outcome
from jobgen.model.finding import Finding
from jobgen.report.escape import visible
from jobgen.report.shard_part import ShardPart
from jobgen.report.summary import pluralize


def summarize(outcomes: Sequence[Outcome], errors: Sequence[Finding], shard: ShardPart | None = None) -> str:
    """Return how many expectations there were, and how many are not met."""
    failed = sum(1 for each in outcomes if each.message)
    tests = {(each.test.file, each.test.name) for each in outcomes}
    counts = f"{pluralize(len(outcomes), 'expectation')} of {pluralize(len(tests), 'test')}"
    parts = [f"{failed} failed"] if failed else []
    files = sorted({each.location.file for each in errors})
    where = f"in {visible(files[0])}" if len(files) == 1 else f"in {len(files)} files"
    parts += [f"{pluralize(len(errors), 'error')} {where}"] if errors else []
    share = f"{shard.shard}: " if shard else ""
    return f"{share}{counts}: {', '.join(parts) or 'all ok'}"

"""The text format, for people: what failed, with the line of the expectation and who set the value."""

from __future__ import annotations

from collections.abc import Sequence

from jobgen.features.testing.evaluate import Outcome, summarize
from jobgen.model.finding import Finding
from jobgen.reports.escape import visible
from jobgen.reports.shard_part import ShardPart


def render(outcomes: Sequence[Outcome], errors: Sequence[Finding], shard: ShardPart | None = None) -> str:
    """Write the failures, and how many expectations there were."""
    summary = f"{summarize(outcomes, errors, shard)}\n"
    groups: dict[tuple[object, ...], list[Outcome]] = {}
    for each in (each for each in outcomes if each.message):
        groups.setdefault((each.location, each.job, each.message, each.sources), []).append(each)
    lines: list[str] = []
    for outcome, *others in groups.values():
        # A failure may be equal in several environments.
        environments = ", ".join(filter(None, (each.environment for each in (outcome, *others))))
        where = f" (in {environments})" if environments else ""
        job = f"{outcome.job}: " if outcome.job else ""
        lines.append(f"{outcome.location}: failed: {outcome.test.name}: {job}{outcome.message}{where}")
        lines += (f"    {source}" for source in outcome.sources)
    return "".join(f"{visible(line)}\n" for line in lines) + summary

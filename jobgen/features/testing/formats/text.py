"""The text format, for people: what failed, with the line of the expectation and who set the value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
    return "".join(line for group in groups.values() for line in _list_lines(group)) + summary


def _list_lines(group: Sequence[Outcome]) -> Iterator[str]:
    """Yield the lines of a failure that is equal in several environments."""
    outcome = group[0]
    environments = ", ".join(filter(None, (each.environment for each in group)))
    where = f" (in {environments})" if environments else ""
    job = f"{outcome.job}: " if outcome.job else ""
    yield visible(f"{outcome.location}: failed: {outcome.test.name}: {job}{outcome.message}{where}") + "\n"
    yield from (f"    {visible(source)}\n" for source in outcome.sources)

"""Jobs that end after their deadline."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jobgen.check.rules import ERROR, WARNING, Fact, FactViolation, rule
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Manifest
from jobgen.model.sentence import Sentence
from jobgen.model.times import (
    DEADLINE_ANNOTATION,
    EXPECTED_ANNOTATION,
    Expected,
    parse_expected,
    parse_moment,
    show_moment,
)
from jobgen.spec.overlay import Cluster

if TYPE_CHECKING:
    from jobgen.features.kueue.queues.timeline_report import Timeline
    from jobgen.rendering.config import ProjectConfig


def _collect(manifest: Manifest) -> Iterator[Fact]:
    """Yield the jobs that have a deadline."""
    deadline = as_text(manifest.annotations.get(DEADLINE_ANNOTATION))
    if deadline:
        expected = as_text(manifest.annotations.get(EXPECTED_ANNOTATION))
        name = manifest.kind_name, manifest.namespace, manifest.name
        yield Fact((name, deadline, expected), ("metadata", "annotations", DEADLINE_ANNOTATION))


@rule("fleet", WARNING, collect=_collect, needs_project=True)
def missed_deadline(
    facts: list[Fact], cluster: Cluster, project: ProjectConfig, environment: str
) -> Iterator[FactViolation]:
    """A job that ends after its deadline, as far as `run.deadline` and `run.expected` tell.

    The rule runs the simulation of `jobgen queue --timeline` from the day of the commit, if ClusterQueues are among the
    files. It also compares the deadline with the end of a job that starts on that day, at midnight in UTC. Missing
    even that is an error if the Workloads of the cluster are in the folder `cluster.state`, which then show that the
    job does not run yet. Otherwise it is a warning, as the job could have started before. Without a commit, or without
    a duration, nothing is reported. A job that Kueue never admits is reported by `inadmissible-job` only.

    Move the deadline, start the job earlier or with a higher priority, or add quota. If the job has ended, write
    `run.state: done`.

    When to turn it off: a deadline that is a wish and not a promise is better written in a label. To silence it for
    a day, move `run.deadline`, which all reports then use.
    """
    begin = parse_moment(project.day())
    if begin is None:
        return
    timeline = _simulate(project, cluster, environment, begin)
    rows = {row.answer.job[:3]: row for row in timeline.rows} if timeline else {}
    for fact in facts:
        name, text, written = fact.value
        row, expected, deadline = rows.get(name), parse_expected(written), parse_moment(text, ends_day=True)
        change = "move the deadline, or write `run.state: done` if it has ended"
        if row is not None and row.miss is not None and row.state != "never":
            severity = ERROR if row.miss.severity is ERROR and timeline and timeline.is_captured else WARNING
            yield FactViolation(fact, Sentence("{}; {}", row.miss.message, change), (), severity)
        elif (
            row is None
            and isinstance(expected, Expected)
            and deadline is not None
            and begin + expected.least > deadline
        ):
            message = Sentence("its deadline is `{}`, but even if it starts at once it ends at", show_moment(deadline))
            yield FactViolation(fact, Sentence("{} `{}`; {}", message, show_moment(begin + expected.least), change))


def _simulate(project: ProjectConfig, cluster: Cluster, environment: str, begin: int) -> Timeline | None:
    """Simulate the jobs of the environment; None without queues."""
    # Imported late: few repositories have deadlines.
    from jobgen.features.kueue.queues.report import collect_environment
    from jobgen.features.kueue.queues.timeline_report import build_timeline, find_begin
    from jobgen.rendering.render_task import render_jobs

    rendered = [each.object for each in render_jobs(project, [environment]).objects]
    queued = collect_environment(environment, rendered, project, cluster, [])
    if not queued.context.queues:
        return None
    return build_timeline(environment, queued, find_begin([queued], begin) or begin, (), lambda _: False)

"""What a merge does to the queues: the decisions of Kueue about the jobs of both sides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from jobgen.diff.effects import Effect
from jobgen.diff.impact import Impact
from jobgen.diff.queue_changes import JobName, QueueChanges, Update
from jobgen.diff.snapshot import Snapshot, SummaryError
from jobgen.model.data import Plain
from jobgen.model.finding import Finding, Severity
from jobgen.pipeline.object_summary import ObjectSummary
from jobgen.render.environment import Rendered
from jobgen.repo import layout
from jobgen.spec.overlay import Cluster

if TYPE_CHECKING:
    from jobgen.features.kueue.queue_jobs import QueuedJobs

_UPDATES = {
    Effect.IN_PLACE: Update.IN_PLACE,
    Effect.NO_EFFECT: Update.UNCHANGED,
    Effect.NEW_RUN: Update.RESTARTED,
    Effect.RESTART: Update.RESTARTED,
    Effect.STOPS_RUNNING: Update.RESTARTED,
    Effect.REJECTED: Update.NOT_APPLIED,
}
_CLUSTER_QUEUE = "ClusterQueue"
_DEFAULT_NAMESPACE = "default"


def find_queue_changes(old: Snapshot, new: Snapshot, impacts: Sequence[Impact]) -> Iterator[QueueChanges]:
    """Yield what changes in each environment that has a ClusterQueue on either side."""
    before, after = (_group_objects(side) for side in (old, new))
    by_env: dict[str, list[Impact]] = {}
    for impact in impacts:
        by_env.setdefault(impact.current.env, []).append(impact)
    for env in sorted({*before, *after}):
        sides = (_Side(old, env, before.get(env)), _Side(new, env, after.get(env)))
        states = [dict(side.read_state()) for side in sides]
        is_same = env not in by_env and sides[0].cluster == sides[1].cluster and states[0] == states[1]
        if not is_same and any(map(_has_queues, sides, states)):
            found = _compare(env, *sides, by_env.get(env, ()))
            if found is not None:
                yield found


def _group_objects(side: Snapshot) -> dict[str, list[Rendered]]:
    """The objects of each environment; an environment of a jobs repository may have none."""
    found: dict[str, list[Rendered]] = {} if side.is_tree else {env: [] for env in side.environments}
    for one in side.objects:
        found.setdefault(one.env, []).append(one)
    return found


class _Side:
    """An environment of one side; `objects` is None if the side does not have it."""

    def __init__(self, snapshot: Snapshot, env: str, objects: Sequence[Rendered] | None) -> None:
        self.project = snapshot.project
        self.env = env
        self.objects = objects or ()
        is_known = objects is not None and (not env or env in self.project.overlays)
        self.cluster = self.project.environment(env, []).cluster if is_known else Cluster()

    def read_state(self) -> Iterator[tuple[str, bytes]]:
        """Yield the paths and contents of the files of the exported state."""
        if self.cluster.state:
            for file in layout.read_state(self.project.root, self.cluster.state):
                yield file.path, file.content

    def collect(self, findings: list[Finding]) -> QueuedJobs:
        """Collect the jobs and queues.

        Raises:
            SummaryError: Only the summary of an object is known.

        """
        from jobgen.features.kueue.queues.load import collect_environment

        objects: list[Mapping[str, Plain]] = [one.object for one in self.objects]
        if any(isinstance(each, ObjectSummary) for each in objects):
            raise SummaryError
        return collect_environment(self.env, objects, self.project, self.cluster, findings)


def _has_queues(side: _Side, state: Mapping[str, bytes]) -> bool:
    """Whether a side may have a ClusterQueue; files of the exported state are searched, but not parsed."""
    is_rendered = any(one.identity.kind == _CLUSTER_QUEUE for one in side.objects)
    return is_rendered or any(_CLUSTER_QUEUE.encode() in content for content in state.values())


def _get_name(rendered: Rendered) -> JobName:
    identity = rendered.identity
    return (identity.kind, identity.namespace or _DEFAULT_NAMESPACE, identity.name)


def _list_updates(impacts: Iterable[Impact]) -> Iterator[tuple[JobName, Update]]:
    """Yield what the merge does to objects of the old side."""
    for impact in impacts:
        if impact.old is None or impact.is_replaced:
            continue
        update = _UPDATES[impact.outcome.effect]
        if impact.action == "removed":
            # An object that is only removed from the files stays in the cluster.
            update = Update.NOT_APPLIED if impact.outcome.effect is Effect.NO_EFFECT else Update.RESTARTED
        yield _get_name(impact.old), update


def _list_replaced(impacts: Iterable[Impact]) -> Iterator[tuple[JobName, JobName]]:
    """Yield new objects with other names than the old ones that they replace, such as runs with a hash."""
    for impact in impacts:
        if impact.is_replaced and impact.old and impact.new:
            yield _get_name(impact.new), _get_name(impact.old)


def _compare(env: str, old: _Side, new: _Side, impacts: Sequence[Impact]) -> QueueChanges | None:
    from jobgen.features.kueue.queues.compare import compare_queues

    findings: list[Finding] = []
    before, after = (side.collect(findings) for side in (old, new))
    errors = tuple(dict.fromkeys(_format_errors(findings)))
    if errors:
        return QueueChanges(env, errors=errors)
    if not before.context.queues and not after.context.queues:
        return None
    known = {(job.kind, job.namespace, job.name) for job in before.jobs}
    updates = {name: each for name, each in _list_updates(impacts) if name in known}
    replaced = {new_name: name for new_name, name in _list_replaced(impacts) if name in known}
    return compare_queues(env, before, after, updates, replaced)


def _format_errors(findings: Iterable[Finding]) -> Iterator[str]:
    for finding in findings:
        if finding.severity is Severity.ERROR:
            yield f"{finding.location.file}:{finding.location.line}: {finding.message}"

"""The changes of queues in the JSON format."""

from __future__ import annotations

from jobgen.model.data import Plain
from jobgen.queues.changes import QueueChanges, QuotaChange, WorkloadChange


def describe_queues(changes: QueueChanges) -> dict[str, Plain]:
    """Describe what changes in the queues of an environment."""
    return {
        "env": changes.environment,
        "errors": list(changes.errors),
        "settles": changes.settles,
        "complete": changes.complete,
        "summary": {change.value: count for change, count in changes.count_changes().items()},
        "workloads": [_describe_workload(one) for one in changes.workloads],
        "quota": [_describe_quota(one) for one in changes.quota],
        "objects": [dict(one._asdict()) for one in changes.objects],
    }


def _describe_workload(one: WorkloadChange) -> dict[str, Plain]:
    return {
        "change": one.change.value,
        "workload": one.workload,
        "kind": one.kind,
        "clusterQueue": one.cluster_queue,
        "before": one.before or None,
        "after": one.after,
        "why": one.reason,
        "behind": list(one.behind),
        "requeued": one.requeued or None,
        "preemptedBy": {"workload": one.preempted_by, "rule": one.rule} if one.rule else None,
    }


def _describe_quota(one: QuotaChange) -> dict[str, Plain]:
    return {
        "kind": one.kind,
        "name": one.name,
        "flavor": one.flavor,
        "resource": one.resource,
        "before": None if one.before is None else dict(one.before._asdict()),
        "after": None if one.after is None else dict(one.after._asdict()),
    }

"""Workloads of a capture that have quota: those of the repository's jobs keep it, and all others use theirs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jobgen.features.kueue.answers import Job
from jobgen.features.kueue.cluster_objects import get_group
from jobgen.features.kueue.job_workloads import QueuedJobs
from jobgen.features.kueue.objects import name_of
from jobgen.features.kueue.workloads import PodSet, Workload, parse_workload
from jobgen.k8s.nodes import as_list, as_mapping

_OF_PODS = frozenset(("Deployment", "LeaderWorkerSet", "ReplicaSet", "StatefulSet"))
"""Kinds whose pods can have workloads of their own, which only the names of the pods tell."""


def attach_captured(queued: QueuedJobs, objects: Iterable[Mapping[str, Any]]) -> QueuedJobs:
    """Return the jobs with the quota that Workload objects say they have; those of no job count as outside."""
    workloads = [each for each in objects if each.get("kind") == "Workload" and get_group(each) == "kueue.x-k8s.io"]
    running = [each for each in read_running(workloads) if each.workloads[0].cluster_queue in queued.context.queues]
    ended = {owner for each in workloads if is_finished(each) for owner in list_owners(each)}
    ended -= {each[:3] for each in running}
    if ended:
        names = sorted(f"{job.namespace}/{job.name}" for job in queued.jobs if job[:3] in ended)
        queued.context.finished = tuple(names)
    inactive = {
        owner
        for each in workloads
        if as_mapping(each.get("spec")).get("active") is False
        for owner in list_owners(each)
    }
    if inactive:
        queued = queued._replace(jobs=tuple(_deactivate(job) if job[:3] in inactive else job for job in queued.jobs))
    if not running:
        return queued
    by_owner: dict[tuple[str, ...], list[Job]] = {}
    pods: dict[str, list[Job]] = {}
    for each in running:
        by_owner.setdefault(each[:3], []).append(each)
        if each.kind == "Pod":
            pods.setdefault(each.namespace, []).append(each)
    jobs: list[Job] = []
    taken: set[str] = set()
    for job in queued.jobs:
        found = by_owner.get(job[:3], []) if job.workloads else []
        if not found and job.kind in _OF_PODS and job.workloads:
            of_job = re.compile(re.escape(job.name) + r"-[a-z0-9]+(-[a-z0-9]{5})?")
            found = [each for each in pods.get(job.namespace, ()) if of_job.fullmatch(each.name)]
        taken |= {each.workloads[0].key for each in found}
        jobs.append(_keep_quota(job, [each.workloads[0] for each in found]) if found else job)
    outside = tuple(each for each in running if each.workloads[0].key not in taken)
    return queued._replace(context=queued.context.replace_outside(outside), jobs=tuple(jobs))


def read_running(objects: Iterable[Mapping[str, Any]]) -> Iterator[Job]:
    """Yield the Workloads that have quota, as jobs with the kind and the name of what they belong to."""
    for obj in objects:
        try:
            workload = fill_pod_sets(parse_workload(obj))
        except (TypeError, ValueError):
            continue
        if is_finished(obj) or not workload.reserved or not workload.cluster_queue or workload.is_evicted:
            continue
        kind, _, name = next(list_owners(obj), ("Workload", "", name_of(obj)))
        if kind == "Pod" and not workload.is_single_pod:
            name = name_of(obj)  # A group of pods.
        yield Job(kind, workload.namespace, name, workload.queue, (workload,))


def is_finished(obj: Mapping[str, Any]) -> bool:
    """Return True if a Workload has finished."""
    conditions = map(as_mapping, as_list(as_mapping(obj.get("status")).get("conditions")))
    return any(each.get("type") == "Finished" and each.get("status") == "True" for each in conditions)


def list_owners(obj: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield kind, namespace and name of what a Workload belongs to."""
    metadata = as_mapping(obj.get("metadata"))
    for each in map(as_mapping, as_list(metadata.get("ownerReferences"))):
        if each.get("kind") and each.get("name"):
            yield str(each["kind"]), str(metadata.get("namespace", "")), str(each["name"])


def fill_pod_sets(workload: Workload) -> Workload:
    """Return a workload whose pod sets are known: a capture has only what they were admitted with."""
    if workload.pod_sets:
        return workload
    pod_sets = (
        PodSet(each.name, each.count, {name: amount // max(each.count, 1) for name, amount in each.usage.items()}, {})
        for each in workload.admission
    )
    return workload._replace(pod_sets=tuple(pod_sets))


def _deactivate(job: Job) -> Job:
    return job._replace(workloads=tuple(each._replace(is_active=False) for each in job.workloads))


def _keep_quota(job: Job, captured: Sequence[Workload]) -> Job:
    kept = [
        own._replace(
            cluster_queue=each.cluster_queue,
            admission=each.admission,
            reserved=each.reserved,
            created=each.created or each.reserved,
            cluster=each.cluster,
        )
        for own, each in zip(job.workloads, captured, strict=False)
    ]
    return job._replace(workloads=(*kept, *job.workloads[len(kept) :]))

"""The pods of a Job of Kubernetes, and of a JobSet, whose Jobs are named after the set, the replicated Job and a count.

Source: kubernetes/kubernetes, pkg/controller/job (job_controller.go, indexed_job_utils.go); kubernetes-sigs/jobset,
pkg/controllers/jobset_controller.go and pkg/webhooks/jobset_webhook.go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from jobgen.features.convert.operators.created import (
    RANDOM,
    Created,
    CreatedObject,
    CreatedPod,
    Fields,
    Restarts,
    append,
    as_count,
    as_fields,
    as_items,
    as_string,
    edit_containers,
    field_variable,
    get_fields,
    get_name,
    list_containers,
    list_indexes,
    read_texts,
)
from jobgen.k8s.workloads import count_job_pods
from jobgen.model.named_tuple import NamedTuple
from jobgen.spec.kinds import parse_version
from jobgen.spec.overlay import Cluster

INDEX_KEY = "batch.kubernetes.io/job-completion-index"
INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
_MAX_PREFIX = 58
"""A generated name has at most 63 characters, five of which are random."""
_BACKOFF_LIMIT = 6


def create_job(obj: Fields, _objects: Sequence[Fields], _cluster: Cluster) -> Created:
    """Compute the pods of a Job."""
    return Created(tuple(list_job_pods(get_name(obj), as_fields(obj.get("spec")), "")))


def list_job_pods(name: str, spec: Fields, role: str, first_rank: int = 0) -> Iterator[CreatedPod]:
    """Yield the pods of a Job that run at the same time; those of an Indexed one have ranks."""
    template = as_fields(spec.get("template"))
    metadata = as_fields(template.get("metadata"))
    pod = as_fields(template.get("spec"))
    indexed = spec.get("completionMode") == "Indexed"
    main = next((as_string(each.get("name")) for each in list_containers(pod)), "")
    labels = {
        **read_texts(metadata.get("labels")),
        "batch.kubernetes.io/controller-uid": RANDOM,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": RANDOM,
        "job-name": name,
    }
    limit = as_count(spec.get("backoffLimit"), _BACKOFF_LIMIT)
    rules = [as_fields(rule) for rule in as_items(get_fields(spec, "podFailurePolicy").get("rules"))]
    by_exit_code = any(rule.get("action") == "FailJob" and rule.get("onExitCodes") for rule in rules)
    retried = "never" if not limit else "retryable" if by_exit_code else "always"
    policy: Any = get_fields(spec, "template", "spec").get("restartPolicy")
    restarts = Restarts(as_string(policy, "Always"), retried, limit or None)
    for index, count in list_indexes(count_job_pods(spec)):
        mark = {INDEX_KEY: str(index)} if indexed else {}
        host = f"{name}-{index}" if indexed else as_string(pod.get("hostname"))
        subdomain = as_string(pod.get("subdomain"))
        pod_name = _generate_name(name, index if indexed else None)
        yield CreatedPod(
            role,
            index,
            pod_name,
            _add_index(pod, host) if indexed else pod,
            template,
            {**labels, **mark},
            {**read_texts(metadata.get("annotations")), **mark},
            first_rank + index if indexed or count_job_pods(spec) == 1 else None,
            hostname=host or pod_name,
            address=f"{host}.{subdomain}" if host and subdomain else "",
            main=main,
            restarts=restarts,
            count=count,
        )


def _generate_name(name: str, index: int | None) -> str:
    suffix = "-" if index is None else f"-{index}-"
    prefix = name + suffix
    if len(prefix) > _MAX_PREFIX:
        prefix = prefix[: _MAX_PREFIX - len(suffix)] + suffix
    return prefix + RANDOM


def _add_index(pod: Fields, host: str) -> Fields:
    for field in ("initContainers", "containers"):
        pod = edit_containers(pod, _add_index_variable, field=field)
    return {**pod, "hostname": host}


def _add_index_variable(container: Fields) -> Fields:
    if any(as_fields(entry).get("name") == INDEX_VARIABLE for entry in as_items(container.get("env"))):
        return container
    return append(container, "env", [field_variable(INDEX_VARIABLE, f"metadata.labels['{INDEX_KEY}']")])


_LABEL = "jobset.sigs.k8s.io/"
_EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
# The first version that sets a label; the others are in all versions.
_SINCE = {
    "coordinator": (0, 6),
    "job-global-index": (0, 6),
    "global-replicas": (0, 7),
    "jobset-uid": (0, 9),
    "group-name": (0, 9),
    "group-replicas": (0, 9),
    "job-group-index": (0, 9),
}


class ReplicatedJob(NamedTuple):
    """A replicated Job with the defaults of the webhook."""

    name: str
    replicas: int
    group: str
    metadata: Fields
    """The metadata of its Jobs."""
    spec: Fields
    """The spec of its Jobs."""
    waits: frozenset[str]
    """The replicated Jobs that must be complete before it starts."""


def create_job_set(obj: Fields, _objects: Sequence[Fields], cluster: Cluster) -> Created:
    """Compute the pods of a JobSet and its headless Service."""
    spec = as_fields(obj.get("spec"))
    name = get_name(obj)
    network = as_fields(spec.get("network"))
    subdomain = "" if network.get("enableDNSHostnames") is False else as_string(network.get("subdomain"), name)
    service = (CreatedObject("Service", subdomain),) if subdomain else ()
    return Created(tuple(_list_pods(obj, list_replicated_jobs(spec), subdomain, cluster)), service)


def list_replicated_jobs(spec: Fields) -> list[ReplicatedJob]:
    """Read the replicated Jobs of the spec of a JobSet."""
    return [_read_replicated_job(item) for item in as_items(spec.get("replicatedJobs")) if isinstance(item, dict)]


def _read_replicated_job(item: Fields) -> ReplicatedJob:
    template = as_fields(item.get("template"))
    spec = dict(as_fields(template.get("spec")))
    if not isinstance(spec.get("completionMode"), str):
        spec["completionMode"] = "Indexed"
    needs = (as_fields(each) for each in as_items(item.get("dependsOn")))
    return ReplicatedJob(
        as_string(item.get("name")),
        as_count(item.get("replicas"), 1),
        as_string(item.get("groupName"), "default"),
        as_fields(template.get("metadata")),
        spec,
        frozenset(as_string(each.get("name")) for each in needs if each.get("status") == "Complete"),
    )


def _restart_all(restarts: Restarts, times: int) -> Restarts:
    """Return what happens if a pod fails and the whole JobSet restarts as often as this."""
    if not times:
        return restarts
    return restarts._replace(retried="always", limit=times)


def _list_pods(obj: Fields, jobs: Sequence[ReplicatedJob], subdomain: str, cluster: Cluster) -> Iterator[CreatedPod]:
    version = parse_version(str(cluster.operators.get("jobset", "")))
    # Jobs that others wait for prepare the training, so they have no ranks.
    preparing = frozenset().union(*(job.waits for job in jobs)) if jobs else frozenset()
    max_restarts = as_count(get_fields(obj, "spec", "failurePolicy").get("maxRestarts"), 0)
    rank = 0
    for place, job in enumerate(jobs):
        for index, count in list_indexes(job.replicas):
            name = f"{get_name(obj)}-{job.name}-{index}"
            labels = {
                f"{_LABEL}{key}": value
                for key, value in _list_labels(obj, jobs, place, index, subdomain)
                if not version or version >= _SINCE.get(key, ())
            }
            spec = _prepare_spec(job.spec, subdomain, labels, obj)
            for pod in list_job_pods(name, spec, job.name, rank):
                yield replace(
                    pod,
                    template=as_fields(job.spec.get("template")),
                    rank=None if job.name in preparing else pod.rank,
                    restarts=_restart_all(pod.restarts, max_restarts),
                    count=pod.count * count,
                )
            rank += 0 if job.name in preparing else count_job_pods(spec)


def _prepare_spec(spec: Fields, subdomain: str, labels: Fields, obj: Fields) -> Fields:
    """Set what the webhook and the controller set in the pod template of a Job."""
    template = as_fields(spec.get("template"))
    metadata, pod = as_fields(template.get("metadata")), dict(as_fields(template.get("spec")))
    pod["restartPolicy"] = as_string(pod.get("restartPolicy"), "OnFailure")
    if subdomain:
        pod["subdomain"] = subdomain
    annotations: dict[str, Any] = {**read_texts(metadata.get("annotations")), **labels}
    if exclusive := get_fields(obj, "metadata", "annotations").get(_EXCLUSIVE):
        annotations[_EXCLUSIVE] = exclusive
    labeled = {**metadata, "labels": {**read_texts(metadata.get("labels")), **labels}, "annotations": annotations}
    return {**spec, "template": {**template, "metadata": labeled, "spec": pod}}


def _list_labels(
    obj: Fields, jobs: Sequence[ReplicatedJob], place: int, index: int, subdomain: str
) -> Iterator[tuple[str, str]]:
    """Yield the labels of the pods of a Job, without their prefix."""
    name, namespace = get_name(obj), as_string(get_fields(obj, "metadata").get("namespace"))
    job, before = jobs[place], jobs[:place]
    group = [each for each in jobs if each.group == job.group]
    key = f"{namespace}/{name}-{job.name}-{index}"
    yield "jobset-name", name
    yield "jobset-uid", RANDOM
    yield "replicatedjob-name", job.name
    yield "restart-attempt", "0"
    yield "replicatedjob-replicas", str(job.replicas)
    yield "global-replicas", str(sum(each.replicas for each in jobs))
    yield "job-index", str(index)
    yield "job-key", hashlib.sha1(key.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
    yield "job-global-index", str(sum(each.replicas for each in before) + index)
    yield "group-name", job.group
    yield "group-replicas", str(sum(each.replicas for each in group))
    yield "job-group-index", str(sum(each.replicas for each in before if each.group == job.group) + index)
    coordinator = get_fields(obj, "spec", "coordinator")
    if coordinator:
        job_index, pod_index = (as_count(coordinator.get(field), 0) for field in ("jobIndex", "podIndex"))
        chosen = as_string(coordinator.get("replicatedJob"))
        yield "coordinator", f"{name}-{chosen}-{job_index}-{pod_index}.{subdomain}"

"""The pods of a Job of Kubernetes.

Source: kubernetes/kubernetes, pkg/controller/job (job_controller.go, indexed_job_utils.go).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from jobgen.features.convert.operators.created import RANDOM, Created, CreatedPod, Fields, Restarts, list_indexes
from jobgen.features.convert.operators.fields import (
    as_count,
    as_fields,
    as_items,
    as_string,
    get_fields,
    get_name,
    read_texts,
)
from jobgen.features.convert.operators.pod_edits import append, edit_containers, field_variable, list_containers
from jobgen.spec.overlay import Cluster

INDEX_KEY = "batch.kubernetes.io/job-completion-index"
_INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
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
    labels = {**read_texts(metadata.get("labels")), **_label_pods(name)}
    for index, count in list_indexes(count_pods(spec)):
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
            first_rank + index if indexed or count_pods(spec) == 1 else None,
            hostname=host or pod_name,
            address=f"{host}.{subdomain}" if host and subdomain else "",
            main=main,
            restarts=_read_restarts(spec),
            count=count,
        )


def count_pods(spec: Fields) -> int:
    """Return the number of pods that run at the same time, also if the Job is suspended."""
    parallelism = as_count(spec.get("parallelism"), 1)
    return min(parallelism, as_count(spec.get("completions"), parallelism))


def _label_pods(name: str) -> dict[str, str]:
    return {
        "batch.kubernetes.io/controller-uid": RANDOM,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": RANDOM,
        "job-name": name,
    }


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
    if any(as_fields(entry).get("name") == _INDEX_VARIABLE for entry in as_items(container.get("env"))):
        return container
    return append(container, "env", [field_variable(_INDEX_VARIABLE, f"metadata.labels['{INDEX_KEY}']")])


def _read_restarts(spec: Fields) -> Restarts:
    limit = as_count(spec.get("backoffLimit"), _BACKOFF_LIMIT)
    rules = [as_fields(rule) for rule in as_items(get_fields(spec, "podFailurePolicy").get("rules"))]
    by_exit_code = any(rule.get("action") == "FailJob" and rule.get("onExitCodes") for rule in rules)
    retried = "never" if not limit else "retryable" if by_exit_code else "always"
    policy: Any = get_fields(spec, "template", "spec").get("restartPolicy")
    return Restarts(as_string(policy, "Always"), retried, limit or None)

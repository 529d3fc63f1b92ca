"""What the webhooks of Kueue reject of jobs that they manage: those with a queue."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import is_set, iter_mappings
from jobgen.check.operators.checks import (
    NEVER_STARTS,
    REJECTED,
    Check,
    Checks,
    FindViolations,
    Violations,
    is_since,
)
from jobgen.check.rules import Violation
from jobgen.k8s.kueue import DOMAIN, get_kueue_queue
from jobgen.k8s.nodes import as_integer, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Node, value_of
from jobgen.model.suggest import find_key

OPERATOR = "kueue"

_ELASTIC = DOMAIN + "elastic-job"
_MIN_PARALLELISM = DOMAIN + "job-min-parallelism"
_EQUAL_COMPLETIONS = DOMAIN + "job-completions-equal-parallelism"
# What Go's strconv.ParseBool accepts.
_BOOLEANS = {**dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True)}
_BOOLEANS |= dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False)


def _if_queued(find: FindViolations) -> FindViolations:
    """Make a check apply only to objects with a queue; Kueue ignores the others."""

    def find_if_queued(manifest: Manifest) -> Violations:
        if get_kueue_queue(manifest) is not None:
            yield from find(manifest)

    return find_if_queued


def _max_pod_sets(manifest: Manifest) -> int:
    """Return the number of pod sets that a workload can have."""
    return 18 if is_since(manifest, OPERATOR, "0.19") else 10 if is_since(manifest, OPERATOR, "0.18") else 8


def _is_elastic(manifest: Manifest) -> bool:
    return as_text(manifest.annotations.get(_ELASTIC)) == "true"


def _check_ray_job(manifest: Manifest) -> Violations:
    """Check a RayJob that has a cluster of its own; Kueue does not manage one that only selects a cluster."""
    has_cluster = is_set(manifest.spec.get("rayClusterSpec"))
    if has_cluster and as_mapping(manifest.spec.get("clusterSelector")):
        message = "a RayJob with a queue cannot have `clusterSelector` beside `rayClusterSpec`; remove one of them"
        yield Violation(find_key(manifest.spec, "clusterSelector"), message)
    elif has_cluster and value_of(manifest.spec.get("shutdownAfterJobFinishes")) is not True:
        node = manifest.spec.get("shutdownAfterJobFinishes") or get_kueue_queue(manifest)
        message = "a RayJob with a queue requires `shutdownAfterJobFinishes: true`, to return its quota; set it"
        yield Violation(node, message)


def _check_ray_cluster(*path: str) -> FindViolations:
    def find(manifest: Manifest) -> Violations:
        cluster = as_mapping(get_path(manifest.object, *path))
        groups = list(iter_mappings(cluster.get("workerGroupSpecs")))
        if value_of(cluster.get("enableInTreeAutoscaling")) is True and not _is_elastic(manifest):
            message = f'a {manifest.kind_name} with a queue can scale only with the annotation `{_ELASTIC}: "true"`'
            yield Violation(cluster["enableInTreeAutoscaling"], f"{message}; add it, or remove autoscaling")
        if 1 + len(groups) > _max_pod_sets(manifest):
            message = f"`workerGroupSpecs` has {len(groups)} groups, but a workload of Kueue has room for"
            yield Violation(find_key(cluster, "workerGroupSpecs"), f"{message} {_max_pod_sets(manifest) - 1}")
        for group in groups:
            if as_text(group.get("groupName")) == "head":
                yield Violation(group["groupName"], "Kueue names the pods of the head `head`; rename this group")

    return find


def _check_replicated_jobs(manifest: Manifest) -> Violations:
    jobs = list(iter_mappings(manifest.spec.get("replicatedJobs")))
    if len(jobs) > _max_pod_sets(manifest):
        message = f"`replicatedJobs` has {len(jobs)} items, but a workload of Kueue has room for"
        yield Violation(find_key(manifest.spec, "replicatedJobs"), f"{message} {_max_pod_sets(manifest)}")


def _check_min_parallelism(manifest: Manifest) -> Violations:
    node = manifest.annotations.get(_MIN_PARALLELISM)
    found = as_text(node)
    if not found:
        return
    most = _count_pods(manifest.spec) - 1
    if not (found.isascii() and found.isdigit() and 0 < int(found[:10]) <= most):
        message = f"`{_MIN_PARALLELISM}` is `{found}`, but must be a number above 0 and below the number of pods"
        yield Violation(node, f"{message}, which is {most + 1}")


def _count_pods(spec: Mapping[str, Node]) -> int:
    parallelism, completions = (as_integer(spec.get(name)) for name in ("parallelism", "completions"))
    pods = 1 if parallelism is None else parallelism
    return pods if completions is None else min(pods, completions)


def _check_equal_completions(manifest: Manifest) -> Violations:
    node = manifest.annotations.get(_EQUAL_COMPLETIONS)
    found = as_text(node)
    if not found:
        return
    parallelism, completions = (as_integer(manifest.spec.get(name)) for name in ("parallelism", "completions"))
    if found not in _BOOLEANS:
        yield Violation(node, f'`{_EQUAL_COMPLETIONS}` is `{found}`, but must be `"true"` or `"false"`')
    elif _BOOLEANS[found] and as_text(manifest.spec.get("completionMode")) != "Indexed":
        yield Violation(node, f"`{_EQUAL_COMPLETIONS}` requires `completionMode: Indexed`; set it")
    elif _BOOLEANS[found] and completions != (1 if parallelism is None else parallelism):
        message = f"`{_EQUAL_COMPLETIONS}` requires `completions` to equal `parallelism`; set both to the same number"
        yield Violation(node, message)


def _queued(rule: str, *checks: FindViolations) -> tuple[Check, ...]:
    return tuple(Check(rule, _if_queued(check)) for check in checks)


CHECKS: Checks = {
    "Job": _queued(REJECTED, _check_min_parallelism, _check_equal_completions),
    "JobSet": _queued(NEVER_STARTS, _check_replicated_jobs),
    "RayCluster": _queued(REJECTED, _check_ray_cluster("spec")),
    "RayJob": _queued(REJECTED, _check_ray_job, _check_ray_cluster("spec", "rayClusterSpec")),
    "RayService": (Check(REJECTED, _if_queued(_check_ray_cluster("spec", "rayClusterConfig")), since="0.17"),),
}

"""The JobSet: which roles decide its success, which pod coordinates, and how exit codes end it."""

from __future__ import annotations

from typing import Any

from jobgen.k8s.nodes import as_list, as_mapping, as_text
from jobgen.model.data import Node, value_of, with_tree
from jobgen.model.finding import Problem
from jobgen.rendering.by_kind import EXIT_CODE
from jobgen.rendering.expand import JobSpec
from jobgen.rendering.kinds.main_container import set_path
from jobgen.rendering.rendezvous import LEADERS
from jobgen.rendering.runs import LENGTH
from jobgen.spec.kinds import ANY_ROLE, VersionRange

_MAX_LABEL = 63
_RUN_SUFFIX = "-" + "x" * LENGTH
"""What the hash of a run appends to the name."""
_COORDINATOR_VERSIONS = VersionRange("0.6.0")


def prepare(
    job: JobSpec, templates: dict[str, Any], resource: dict[str, Any], _problems: list[Problem]
) -> dict[str, Any]:
    """Set what depends on which roles have a Job of their own, unless the job sets it."""
    if len(templates) > 1 and ANY_ROLE not in job.kind.frameworks[job.framework].roles:
        _set_success_policy(job, resource)
        _set_coordinator(job, resource)
    _set_failure_rule(job, resource)
    return templates


def finish(_job: JobSpec, resource: dict[str, Any], _problems: list[Problem]) -> None:
    """List each Job after those that it depends on, as JobSet requires; the other order is that of the kind."""
    left: list[Any] = list(as_list(resource["spec"].get("replicatedJobs")))
    ordered: list[Any] = []
    while left:
        waiting = {as_text(item.get("name")) for item in left}
        # Jobs that depend on each other stay as they are; JobSet rejects them.
        found = next((item for item in left if waiting.isdisjoint(_list_dependencies(item))), left[0])
        ordered.append(found)
        left = [item for item in left if item is not found]
    resource["spec"]["replicatedJobs"] = ordered


def _list_dependencies(item: dict[str, Any]) -> list[str]:
    return [as_text(as_mapping(each).get("name")) for each in as_list(item.get("dependsOn"))]


def _set_success_policy(job: JobSpec, resource: dict[str, Any]) -> None:
    deciding = next((name for name in job.kind.success if name in job.roles), None)
    if deciding is not None and "successPolicy" not in resource["spec"]:
        policy = {"operator": "All", "targetReplicatedJobs": [deciding]}
        resource["spec"]["successPolicy"] = with_tree(_replicas_of(job, deciding), policy)


def _set_coordinator(job: JobSpec, resource: dict[str, Any]) -> None:
    """Name the pod that leads. Its host name is a label, so that long names have none."""
    leader = next((name for name in job.roles if name in LEADERS), None)
    version = job.cluster.find_version(job.kind.operator)
    if leader is None or "coordinator" in resource["spec"] or not _COORDINATOR_VERSIONS.contains(version):
        return
    name = str(value_of(job.metadata.get("name"))) + (_RUN_SUFFIX if "run" in job.fields else "")
    if len(f"{name}-{leader}-0-0.{name}") <= _MAX_LABEL:
        resource["spec"]["coordinator"] = with_tree(_replicas_of(job, leader), {"replicatedJob": leader})


def _set_failure_rule(job: JobSpec, resource: dict[str, Any]) -> None:
    """Do not restart what failed with a permanent exit code; the Job of the role ends with this reason."""
    policies = [role.replica.get("restartPolicy") for role in job.roles.values()]
    node = next((each for each in policies if value_of(each) == EXIT_CODE), None)
    restarts = resource["spec"].get("failurePolicy")
    if node is None or not isinstance(restarts, dict) or "rules" in restarts:
        return
    rule = {"name": "permanentExitCode", "action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]}
    set_path(resource, ("spec", "failurePolicy", "rules"), with_tree(node, [rule]))


def _replicas_of(job: JobSpec, role: str) -> Node:
    """The node that a value is derived from: the number of pods of the role."""
    return job.roles[role].replica.get("replicas")

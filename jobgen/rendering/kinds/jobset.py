"""The JobSet: which roles decide its success, which pod coordinates, and how exit codes end it."""

from __future__ import annotations

from typing import Any

from jobgen.k8s.nodes import as_list, as_mapping
from jobgen.model.data import ValidFields, text_of, value_of, with_tree
from jobgen.model.finding import Problem
from jobgen.rendering.by_kind import EXIT_CODE
from jobgen.rendering.expand import JobSpec
from jobgen.rendering.kinds.main_container import set_path
from jobgen.rendering.network import LEADERS
from jobgen.rendering.runs import LENGTH
from jobgen.spec.kinds import ANY_ROLE, VersionRange

_MAX_LABEL = 63
_COORDINATOR_VERSIONS = VersionRange("0.6.0")


def prepare(job: JobSpec, templates: ValidFields, resource: ValidFields, _problems: list[Problem]) -> ValidFields:
    """Set what depends on which roles have a Job of their own, unless the job sets it."""
    spec = resource["spec"]
    if len(templates) > 1 and ANY_ROLE not in job.kind.frameworks[job.framework].roles:
        # Values are derived from the number of pods of a role.
        counts = {name: role.replica.get("replicas") for name, role in job.roles.items()}
        deciding = next((name for name in job.kind.success if name in job.roles), None)
        if deciding is not None and "successPolicy" not in spec:
            policy = {"operator": "All", "targetReplicatedJobs": [deciding]}
            spec["successPolicy"] = with_tree(counts[deciding], policy)
        leader = next((name for name in job.roles if name in LEADERS), None)
        version = job.cluster.find_version(job.kind.operator)
        if leader is not None and "coordinator" not in spec and _COORDINATOR_VERSIONS.contains(version):
            # The hash of a run is appended to the name. The host name is a label, so that long names have none.
            name = str(value_of(job.metadata.get("name"))) + ("-" + "x" * LENGTH if "run" in job.fields else "")
            if len(f"{name}-{leader}-0-0.{name}") <= _MAX_LABEL:
                spec["coordinator"] = with_tree(counts[leader], {"replicatedJob": leader})
    # Do not restart what failed with a permanent exit code; the Job of the role ends with this reason.
    restart_policies = [role.replica.get("restartPolicy") for role in job.roles.values()]
    node = next((each for each in restart_policies if value_of(each) == EXIT_CODE), None)
    restarts = spec.get("failurePolicy")
    if node is not None and isinstance(restarts, dict) and "rules" not in restarts:
        rule = {"name": "permanentExitCode", "action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]}
        set_path(resource, ("spec", "failurePolicy", "rules"), with_tree(node, [rule]))
    return templates


def finish(_job: JobSpec, resource: dict[str, Any], _problems: list[Problem]) -> None:
    """List each Job after those that it depends on, as JobSet requires; the other order is that of the kind."""
    left: list[Any] = list(as_list(resource["spec"].get("replicatedJobs")))
    ordered: list[Any] = []
    while left:
        waiting = {text_of(item.get("name")) for item in left}
        free = (
            item
            for item in left
            if not any(text_of(as_mapping(each).get("name")) in waiting for each in as_list(item.get("dependsOn")))
        )
        # Jobs that depend on each other stay as they are; JobSet rejects them.
        found = next(free, left[0])
        ordered.append(found)
        left = [item for item in left if item is not found]
    resource["spec"]["replicatedJobs"] = ordered

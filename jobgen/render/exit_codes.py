"""Restart policies by exit code, in kinds that have a policy for failed pods instead."""

from __future__ import annotations

from typing import Any

from jobgen.model.data import value_of, with_tree, with_value
from jobgen.render.expand import JobSpec, RoleSpec
from jobgen.render.set_path import set_path
from jobgen.spec.replicas import get_at

EXIT_CODE = "ExitCode"
# Kubeflow's operator restarts what a signal ended, which has a higher code.
_PERMANENT = range(1, 128)


def replace_exit_codes(job: JobSpec, templates: dict[str, Any]) -> JobSpec:
    """Replace `restartPolicy: ExitCode` by `Never` and a policy that fails the job at codes that are permanent."""
    roles = {
        name: _replace_policy(job, role, templates[name])
        if value_of(role.replica.get("restartPolicy")) == EXIT_CODE
        else role
        for name, role in job.roles.items()
    }
    return job._replace(roles=roles)


def _replace_policy(job: JobSpec, role: RoleSpec, template: Any) -> RoleSpec:
    node, layout = role.replica["restartPolicy"], job.kind.replicas
    replica = {**role.replica, "restartPolicy": with_value(node, "Never")}
    if get_at(layout.item, layout.pod_failure_policy) is not None:
        return role._replace(replica=replica)
    main = value_of(template["spec"]["containers"][0].get("name"))
    codes = {"containerName": main, "operator": "In", "values": list(_PERMANENT)}
    policy = with_tree(node, {"rules": [{"action": "FailJob", "onExitCodes": codes}]})
    item: dict[str, Any] = {}
    set_path(item, layout.pod_failure_policy, policy)
    return role._replace(replica=replica, manifests=(item, *role.manifests))

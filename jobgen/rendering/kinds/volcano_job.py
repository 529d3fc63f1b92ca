"""The Job of Volcano: plugins for the framework, policies for restarts, and what its webhook fills in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jobgen.model.data import Node, ValidFields, value_of, with_value
from jobgen.model.finding import Problem
from jobgen.model.sentence import Sentence
from jobgen.rendering.expand import JobSpec
from jobgen.rendering.kinds.main_container import add_env, set_command

_MAX_RETRY = 3
"""The number of restarts that Volcano assumes for a task."""
# The plugin `pytorch` sets the address of the master and ranks, which XGBoost uses, too.
_MASTER_PORTS = {"pytorch": 23456, "xgboost": 29500}
_SSHD = ["/usr/sbin/sshd", "-De"]
# Where the plugin `svc` has the names of the workers, for Open MPI; the launcher starts before the workers do.
_MPI_VARIABLES = {
    "OMPI_MCA_orte_default_hostfile": "/etc/volcano/worker.host",
    "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
    "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
}


def prepare(job: JobSpec, templates: ValidFields, _resource: ValidFields, problems: list[Problem]) -> ValidFields:
    """Let the workers of MPI wait for their launcher, and tell the launcher where they are."""
    problems.extend(_check_restart_policies(job))
    if job.framework != "mpi" or len(templates) < 2:
        return templates
    return {
        name: add_env(template, _MPI_VARIABLES) if name == "launcher" else set_command(template, _SSHD)
        for name, template in templates.items()
    }


def _check_restart_policies(job: JobSpec) -> Iterator[Problem]:
    """Report policies that Volcano does not know, or with which the job never ends."""
    decides = _find_deciding_role(job)
    # Roles that share a policy share its node.
    policies = {id(role.replica.get("restartPolicy")): (name, role) for name, role in reversed(job.roles.items())}
    for name, role in policies.values():
        policy = role.replica.get("restartPolicy")
        advice = "use `OnFailure` or `Never`"
        if value_of(policy) == "ExitCode":
            message = Sentence(
                "Volcano does not support `restartPolicy: ExitCode`; {}, and policies with `exitCode`", advice
            )
            yield Problem("unsupported-by-kind", message, policy)
        elif value_of(policy) == "Always" and decides in ("", name):
            message = Sentence(
                "with `restartPolicy: Always`, the pods of role `{}` never end, and neither does the job", name
            )
            yield Problem("unsupported-by-kind", Sentence("{}; {}", message, advice), policy)


def complete_item(job: JobSpec, name: str, item: dict[str, Any]) -> None:
    """Write out what the webhook fills in: it refuses an apply of the same file that lacks it."""
    node, limit = job.metadata["name"], _read_backoff_limit(job)
    if item.get("replicas") is not None:
        item.setdefault("minAvailable", item["replicas"])
    # The restarts of containers count; with `OnFailure`, they are the retries of the job.
    retries = _MAX_RETRY if limit is None else value_of(limit) + 1
    item["maxRetry"] = with_value(node if limit is None else limit, retries)
    if name == _find_deciding_role(job):
        item["policies"] = [_build_policy(node, "CompleteJob", "TaskCompleted")]
    spec = item["template"].get("spec")
    if isinstance(spec, dict) and value_of(spec.get("hostNetwork")) is True and "dnsPolicy" not in spec:
        policy = with_value(spec["hostNetwork"], "ClusterFirstWithHostNet")
        item["template"] = {**item["template"], "spec": {**spec, "dnsPolicy": policy}}


def finish(job: JobSpec, resource: dict[str, Any], _problems: list[Problem]) -> None:
    """Set what depends on all tasks, unless the job does."""
    spec, name = resource["spec"], job.metadata["name"]
    limit = _read_backoff_limit(job)
    least = [value_of(task.get("minAvailable", task.get("replicas"))) for task in spec["tasks"]]
    counts = [count for count in least if type(count) is int]
    plugins = {**_list_plugins(job, sum(counts), name), **(spec.get("plugins") or {})}
    # Restart the whole job if a pod is lost, because the others cannot go on without it.
    policies = [_build_policy(name, "RestartJob", "PodEvicted", "PodFailed")]
    added: dict[str, Any] = {"minAvailable": with_value(name, sum(counts)), "policies": policies}
    if limit is not None:
        if any(value_of(role.replica.get("restartPolicy")) == "OnFailure" for role in job.roles.values()):
            policies.append(_build_policy(limit, "TerminateJob", "TaskFailed"))
        added["maxRetry"] = with_value(limit, value_of(limit) + 1)
    resource["spec"] = {**added, **spec, **({"plugins": plugins} if plugins else {})}


def _read_backoff_limit(job: JobSpec) -> Node:
    policy = job.fields.get("runPolicy")
    limit = policy.get("backoffLimit") if isinstance(policy, dict) else None
    return limit if type(value_of(limit)) is int else None


def _find_deciding_role(job: JobSpec) -> str:
    """The task that completes the job, if others run with it."""
    roles = job.kind.frameworks[job.framework].roles
    found = next((name for name in job.kind.success if name in job.roles and name in roles), "")
    return found if len(job.roles) > 1 else ""


def _list_plugins(job: JobSpec, pods: int, name: Node) -> dict[str, Any]:
    """The plugins with which the pods of a framework find each other."""
    framework = job.framework
    port = _MASTER_PORTS.get(framework)
    if port and "master" in job.roles:
        arguments = [f"--{role}={role}" for role in ("master", "worker") if role in job.roles]
        found: dict[str, list[str]] = {"pytorch": [*arguments, f"--port={port}"], "svc": []}
    elif pods < 2:
        return {}
    elif framework == "tensorflow":
        found = {"tensorflow": [*(f"--{role}={role}" for role in job.roles), "--port=2222"], "svc": []}
    elif framework == "mpi":
        found = {"mpi": ["--master=master", "--worker=worker", "--port=22"], "ssh": [], "svc": []}
    else:
        found = {"env": [], "svc": []}
    return {key: [with_value(name, argument) for argument in arguments] for key, arguments in found.items()}


def _build_policy(node: Node, action: str, *events: str) -> dict[str, Any]:
    named = [with_value(node, event) for event in events]
    when = {"event": named[0]} if len(named) == 1 else {"events": named}
    return {**when, "action": with_value(node, action)}

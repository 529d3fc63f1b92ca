"""The pods of the kinds of training-operator: what they have in common.

A pod is named after the job, its role and its index, and a headless Service with the same name makes it reachable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from jobgen.features.convert.operators.created import Created, CreatedObject, CreatedPod, Fields, Restarts, list_indexes
from jobgen.features.convert.operators.fields import (
    as_count,
    as_fields,
    as_items,
    as_string,
    get_fields,
    get_name,
    read_texts,
)
from jobgen.features.convert.operators.pod_edits import append, edit_containers, find_container
from jobgen.model.named_tuple import NamedTuple
from jobgen.spec.kinds import parse_version
from jobgen.spec.overlay import Cluster

LABEL = "training.kubeflow.org/"
"""The prefix of the labels of pods."""


@dataclass(frozen=True, slots=True)
class JobKind:
    """A kind of training-operator."""

    replicas: str
    """The field of `spec` with the replicas of each role."""
    roles: tuple[str, ...]
    """The roles in the order of their ranks."""
    container: str
    port_name: str
    port: int
    restart_policy: str
    controller: str
    masters: tuple[str, ...] = ()
    """The roles with the label of the master."""
    first_worker: bool = True
    """Whether the first worker has the label of the master if there is no other."""
    other_roles: bool = False
    """Whether the operator creates pods of roles that it does not know."""


@dataclass(frozen=True, slots=True)
class Replicas:
    """A role of a job, with the defaults of the operator."""

    role: str
    count: int
    template: Fields
    spec: Fields
    """The pod spec of the template, with the port of the kind."""
    restart_policy: str

    def find_port(self, kind: JobKind) -> int:
        """Return the port by which other pods reach the training container."""
        return next(
            (port for name, port in list_ports(find_container(self.spec, kind.container)) if name == kind.port_name),
            kind.port,
        )


class TrainingJob(NamedTuple):
    """A job with the defaults of the operator."""

    name: str
    namespace: str
    spec: Fields
    roles: Mapping[str, Replicas]
    version: tuple[int, ...]

    def name_pod(self, role: str, index: int) -> str:
        """Return the name of a pod, which is also that of its Service."""
        return f"{self.name}-{role.lower()}-{index}".replace("/", "-")

    @property
    def total(self) -> int:
        """The number of pods."""
        return sum(replicas.count for replicas in self.roles.values())


Inject = Callable[[TrainingJob, Replicas, int], Fields]
"""Returns the pod spec of a pod with all that the operator adds to it."""

ListVariables = Callable[[TrainingJob, Replicas, int], Iterable[Fields]]
"""Returns the variables that the operator sets in the containers of a pod."""


def read_job(obj: Fields, kind: JobKind, cluster: Cluster) -> TrainingJob:
    """Read a job and set the defaults of the operator."""
    version = str(cluster.operators.get("training-operator", ""))
    spec = as_fields(obj.get("spec"))
    found = {str(name).lower(): value for name, value in as_fields(spec.get(kind.replicas)).items()}
    known = [role.lower() for role in kind.roles]
    others = [role for role in found if role not in known] if kind.other_roles else []
    roles = {
        role: _read_replicas(role, found[role.lower()], kind)
        for role in (*kind.roles, *others)
        if isinstance(found.get(role.lower()), dict)
    }
    namespace = as_string(get_fields(obj, "metadata").get("namespace"), "default")
    return TrainingJob(get_name(obj), namespace, spec, roles, parse_version(version))


def _read_replicas(role: str, replicas: Fields, kind: JobKind) -> Replicas:
    template = as_fields(replicas.get("template"))
    return Replicas(
        role,
        as_count(replicas.get("replicas"), 1),
        template,
        _add_port(as_fields(template.get("spec")), kind),
        as_string(replicas.get("restartPolicy"), kind.restart_policy),
    )


def _add_port(spec: Fields, kind: JobKind) -> Fields:
    """Add the port of the kind to its container, or to the first one, unless there is a port with its name."""
    containers = as_items(spec.get("containers"))
    place = next((at for at, each in enumerate(containers) if as_fields(each).get("name") == kind.container), 0)
    if not containers or not isinstance(containers[place], dict) or not kind.port_name:
        return spec
    if any(name == kind.port_name for name, _ in list_ports(containers[place])):
        return spec
    added = append(containers[place], "ports", [{"name": kind.port_name, "containerPort": kind.port}])
    return {**spec, "containers": [*containers[:place], added, *containers[place + 1 :]]}


def list_ports(container: Fields) -> Iterator[tuple[str, int]]:
    """Yield the names and numbers of the ports of a container."""
    for port in as_items(container.get("ports")):
        number = as_fields(port).get("containerPort")
        if type(number) is int:
            yield as_string(port.get("name")), number


def create_replicas(job: TrainingJob, kind: JobKind, inject: Inject, processes: str = "") -> Created:
    """Compute the pods of all roles, and their Services."""
    pods = tuple(_list_pods(job, kind, inject, processes))
    return Created(pods, tuple(_create_service(pod, kind) for pod in pods))


def _list_pods(job: TrainingJob, kind: JobKind, inject: Inject, processes: str) -> Iterator[CreatedPod]:
    rank = 0
    for replicas in job.roles.values():
        metadata = as_fields(replicas.template.get("metadata"))
        restarts = map_restart_policy(replicas.restart_policy, job.spec)
        for index, count in list_indexes(replicas.count):
            name = job.name_pod(replicas.role, index)
            yield CreatedPod(
                replicas.role,
                index,
                name,
                {**inject(job, replicas, index), "restartPolicy": restarts.policy},
                replicas.template,
                {**read_texts(metadata.get("labels")), **_label_pod(job, kind, replicas, index)},
                read_texts(metadata.get("annotations")),
                rank + index,
                hostname=as_string(replicas.spec.get("hostname"), name),
                address=name,
                main=kind.container,
                processes=processes,
                restarts=restarts,
                count=count,
            )
        rank += replicas.count


def _label_pod(job: TrainingJob, kind: JobKind, replicas: Replicas, index: int) -> dict[str, str]:
    labels = {
        f"{LABEL}operator-name": kind.controller,
        f"{LABEL}job-name": job.name.replace("/", "-"),
        f"{LABEL}replica-type": replicas.role.lower(),
        f"{LABEL}replica-index": str(index),
    }
    alone = kind.first_worker and not any(role in job.roles for role in kind.masters)
    if replicas.role in kind.masters or (alone and replicas.role == "Worker" and index == 0):
        labels[f"{LABEL}job-role"] = "master"
    return labels


def map_restart_policy(policy: str, spec: Fields) -> Restarts:
    """Return what the operator does if a pod fails; pods do not know the policy ExitCode."""
    limit = get_fields(spec, "runPolicy").get("backoffLimit")
    retried = {"ExitCode": "retryable", "Never": "never"}.get(policy, "always")
    return Restarts(
        "Never" if policy == "ExitCode" else policy,
        retried,
        limit if type(limit) is int and retried != "never" else None,
    )


def _create_service(pod: CreatedPod, kind: JobKind) -> CreatedObject:
    return CreatedObject("Service", pod.name, dict(list_ports(find_container(pod.spec, kind.container))))


def append_variables(list_variables: ListVariables) -> Inject:
    """Return the edit that appends variables to all containers, even where a container has one with the same name."""

    def inject(job: TrainingJob, replicas: Replicas, index: int) -> Fields:
        entries = list(list_variables(job, replicas, index))
        return edit_containers(replicas.spec, lambda container: append(container, "env", entries))

    return inject

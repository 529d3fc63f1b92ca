"""The pods of an MPIJob v2beta1: a launcher, created by a Job, that reaches its workers by SSH.

Source: kubeflow/mpi-operator 0.4 to 0.8, pkg/controller/mpi_job_controller.go and pkg/apis/kubeflow/v2beta1/default.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from jobgen.features.convert.operators.batch_job import list_job_pods
from jobgen.features.convert.operators.created import (
    MAX_PODS,
    Created,
    CreatedObject,
    CreatedPod,
    Fields,
    Restarts,
    list_indexes,
)
from jobgen.features.convert.operators.fields import (
    as_count,
    as_fields,
    as_items,
    as_string,
    get_fields,
    get_name,
    read_texts,
)
from jobgen.features.convert.operators.pod_edits import append, edit_first_container, list_containers, variable
from jobgen.features.convert.operators.training_operator import LABEL
from jobgen.model.named_tuple import NamedTuple
from jobgen.spec.kinds import parse_version
from jobgen.spec.overlay import Cluster

_FOLDER, _ROOT_SSH = "/etc/mpi", "/root/.ssh"
_CONNECT = "-o ConnectionAttempts=10"
_HOSTFILE = f"{_FOLDER}/hostfile"
# The variables of each implementation, and the one with the number of slots.
_IMPLEMENTATIONS: dict[str, tuple[tuple[tuple[str, str], ...], str]] = {
    "OpenMPI": (
        (
            ("OMPI_MCA_orte_keep_fqdn_hostnames", "true"),
            ("OMPI_MCA_orte_default_hostfile", _HOSTFILE),
            ("OMPI_MCA_plm_rsh_args", _CONNECT),
        ),
        "OMPI_MCA_orte_set_default_slots",
    ),
    "Intel": (
        (("I_MPI_HYDRA_HOST_FILE", _HOSTFILE), ("I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", _CONNECT)),
        "I_MPI_PERHOST",
    ),
    "MPICH": ((("HYDRA_HOST_FILE", _HOSTFILE), ("HYDRA_LAUNCH_EXTRA_ARGS", _CONNECT)), ""),
}


class MpiJob(NamedTuple):
    """An MPIJob with the defaults of the operator."""

    name: str
    namespace: str
    spec: Fields
    launcher: Fields
    worker: Fields
    version: tuple[int, ...]

    @property
    def implementation(self) -> str:
        """The implementation of MPI."""
        return as_string(self.spec.get("mpiImplementation"), "OpenMPI")

    @property
    def slots(self) -> int:
        """The processes of each node."""
        return as_count(self.spec.get("slotsPerWorker"), 1)

    @property
    def launcher_is_node(self) -> bool:
        """Whether the launcher trains, too."""
        return self.spec.get("runLauncherAsWorker") is True

    @property
    def subdomain(self) -> str:
        """The name of the headless Service."""
        return f"{self.name}-worker" if self.version and self.version < (0, 5) else self.name

    @property
    def workers(self) -> int:
        """The number of workers."""
        return as_count(self.worker.get("replicas"), 0)


def create_mpi_job_v2(obj: Fields, cluster: Cluster) -> Created:
    """Compute the pods of an MPIJob v2beta1, its Service, the hostfile and the keys for SSH."""
    spec = as_fields(obj.get("spec"))
    job = MpiJob(
        get_name(obj),
        as_string(get_fields(obj, "metadata").get("namespace"), "default"),
        spec,
        get_fields(spec, "mpiReplicaSpecs", "Launcher"),
        get_fields(spec, "mpiReplicaSpecs", "Worker"),
        parse_version(str(cluster.operators.get("mpi-operator", ""))),
    )
    objects = (
        CreatedObject("Service", job.subdomain),
        CreatedObject("ConfigMap", f"{job.name}-config", data={"hostfile": _write_hostfile(job)}),
        CreatedObject("Secret", f"{job.name}-ssh"),
    )
    return Created((*_list_launchers(job), *_list_workers(job)), objects)


def _write_hostfile(job: MpiJob) -> str:
    hosts = [f"{job.name}-worker-{index}" for index in range(min(job.workers, MAX_PODS))]
    if job.launcher_is_node:
        hosts.insert(0, f"{job.name}-launcher")
    separator = " slots=" if job.implementation == "OpenMPI" else ":"
    return "".join(f"{host}.{job.subdomain}.{job.namespace}.svc{separator}{job.slots}\n" for host in hosts)


def _list_launchers(job: MpiJob) -> Iterator[CreatedPod]:
    """Yield the pod of the Job that launches."""
    if not job.launcher:
        return
    template = as_fields(job.launcher.get("template"))
    name = f"{job.name}-launcher"
    labels = {f"{LABEL}job-role": "launcher", **({f"{LABEL}replica-index": "0"} if job.launcher_is_node else {})}
    policy = _map_policy(as_string(job.launcher.get("restartPolicy"), "OnFailure"))
    pod = {**_complete_launcher(job, as_fields(template.get("spec")), name), "restartPolicy": policy}
    spec = {
        "backoffLimit": get_fields(job.spec, "runPolicy").get("backoffLimit"),
        "template": {**template, "metadata": _label(job, template, labels), "spec": pod},
    }
    for created in list_job_pods(name, spec, "Launcher"):
        yield _complete_pod(job, created, template, 0 if job.launcher_is_node else None, name)


def _complete_pod(job: MpiJob, pod: CreatedPod, template: Fields, rank: int | None, host: str) -> CreatedPod:
    return replace(
        pod,
        template=template,
        rank=rank,
        hostname=host,
        address=f"{host}.{job.subdomain}",
        processes="" if rank is None else str(job.slots),
    )


def _list_workers(job: MpiJob) -> Iterator[CreatedPod]:
    template = as_fields(job.worker.get("template"))
    policy = as_string(job.worker.get("restartPolicy"), "Never")
    spec = _complete_worker(job, as_fields(template.get("spec")))
    first = 1 if job.launcher_is_node else 0
    for index, count in list_indexes(job.workers):
        name = f"{job.name}-worker-{index}"
        metadata = _label(job, template, {f"{LABEL}job-role": "worker", f"{LABEL}replica-index": str(index + first)})
        pod = CreatedPod(
            "Worker",
            index,
            name,
            {**spec, "hostname": name, "restartPolicy": _map_policy(policy)},
            template,
            metadata["labels"],
            read_texts(metadata.get("annotations")),
            main=next((as_string(each.get("name")) for each in list_containers(spec)), ""),
            restarts=Restarts(_map_policy(policy), "never" if _map_policy(policy) == "Never" else "always"),
            count=count,
        )
        yield _complete_pod(job, pod, template, index + first, name)


def _map_policy(policy: str) -> str:
    return "Never" if policy == "ExitCode" else policy


def _label(job: MpiJob, template: Fields, labels: Fields) -> dict[str, Any]:
    metadata = as_fields(template.get("metadata"))
    own = {f"{LABEL}operator-name": "mpi-operator", f"{LABEL}job-name": job.name}
    return {**metadata, "labels": {**read_texts(metadata.get("labels")), **own, **labels}}


def _complete_launcher(job: MpiJob, spec: Fields, name: str) -> Fields:
    entries = list(_list_variables(job))
    files = [("hostfile", 0o444), ("discover_hosts.sh", 0o555)]
    items = [{"key": file, "path": file, "mode": mode} for file, mode in files]
    spec = edit_first_container(spec, lambda each: append(each, "env", entries))
    spec = _add_keys(job, _set_host_network(spec))
    mount = {"name": "mpi-job-config", "mountPath": _FOLDER}
    spec = edit_first_container(spec, lambda each: append(each, "volumeMounts", [mount]))
    volume = {"name": "mpi-job-config", "configMap": {"name": f"{job.name}-config", "items": items}}
    return append({**spec, "hostname": name, "subdomain": job.subdomain}, "volumes", [volume])


def _list_variables(job: MpiJob) -> Iterator[Fields]:
    yield variable("K_MPI_JOB_ROLE", "launcher")
    entries, slots = _IMPLEMENTATIONS.get(job.implementation, ((), ""))
    yield from (variable(*entry) for entry in entries)
    if slots:
        yield variable(slots, job.slots)
    if not job.launcher_is_node:
        yield {"name": "NVIDIA_VISIBLE_DEVICES"}
        yield {"name": "NVIDIA_DRIVER_CAPABILITIES"}


def _complete_worker(job: MpiJob, spec: Fields) -> Fields:
    """Let the worker wait for SSH connections if it has no command."""

    def edit(container: Fields) -> Fields:
        idle = not container.get("command") and not container.get("args")
        waiting = {"command": ["/usr/sbin/sshd", "-De"]} if idle else {}
        return append({**container, **waiting}, "env", [variable("K_MPI_JOB_ROLE", "worker")])

    spec = {**_set_host_network(edit_first_container(spec, edit)), "subdomain": job.subdomain}
    if not job.version or job.version >= (0, 5):
        search = f"{job.name}.{job.namespace}.svc.cluster.local"
        config = as_fields(spec.get("dnsConfig"))
        spec["dnsConfig"] = {**config, "searches": [*as_items(config.get("searches")), search]}
    return _add_keys(job, spec)


def _set_host_network(spec: Fields) -> dict[str, Any]:
    return {**spec, **({"dnsPolicy": "ClusterFirstWithHostNet"} if spec.get("hostNetwork") is True else {})}


def _add_keys(job: MpiJob, spec: Fields) -> Fields:
    """Mount the keys for SSH."""
    path = as_string(job.spec.get("sshAuthMountPath"), _ROOT_SSH)
    files = (("ssh-privatekey", "id_rsa"), ("ssh-publickey", "id_rsa.pub"), ("ssh-publickey", "authorized_keys"))
    secret: dict[str, Any] = {"secretName": f"{job.name}-ssh"}
    secret["items"] = [{"key": key, "path": file} for key, file in files]
    if path == _ROOT_SSH:
        secret["defaultMode"] = 0o600
    mount = {"name": "ssh-auth", "mountPath": path}
    spec = edit_first_container(spec, lambda each: append(each, "volumeMounts", [mount]))
    return append(spec, "volumes", [{"name": "ssh-auth", "secret": secret}])

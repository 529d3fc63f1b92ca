"""The pods of MPIJobs. The launcher of v2beta1 reaches its workers by SSH, that of v1 with `kubectl exec`.

Source: kubeflow/mpi-operator 0.4 to 0.8, pkg/controller/mpi_job_controller.go and pkg/apis/kubeflow/v2beta1/default.go;
kubeflow/training-operator 1.7 to 1.9, pkg/controller.v1/mpi (mpijob_controller.go, mpijob.go).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from jobgen.features.convert.operators.created import (
    MAX_PODS,
    Created,
    CreatedObject,
    CreatedPod,
    Fields,
    Item,
    Restarts,
    append,
    as_count,
    as_fields,
    as_items,
    as_string,
    edit_first_container,
    get_fields,
    get_name,
    list_containers,
    list_indexes,
    read_texts,
    variable,
)
from jobgen.features.convert.operators.jobset import list_job_pods
from jobgen.features.convert.operators.training_operator import (
    LABEL,
    JobKind,
    Replicas,
    TrainingJob,
    map_restart_policy,
    read_job,
)
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
        """Return True if the launcher also trains."""
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


_MPI_JOB_V1 = JobKind("mpiReplicaSpecs", ("Launcher", "Worker"), "mpi", "", 9999, "Never", "mpijob-controller")
_FOLDER_V1, _KUBECTL_FOLDER = "/etc/mpi", "/opt/kube"
_CONFIG_VOLUME, _KUBECTL_VOLUME = "mpi-job-config", "mpi-job-kubectl"
_SCRIPT_MODE, _HOSTFILE_MODE = 0o555, 0o444
# The image with kubectl, by the first version that has it.
_IMAGES = (
    ((1, 9), "ghcr.io/kubeflow/training-v1/kubectl-delivery:latest"),
    ((1, 8), "kubeflow/kubectl-delivery:latest"),
    ((), "mpioperator/kubectl-delivery:latest"),
)


def create_mpi_job_v1(obj: Fields, cluster: Cluster) -> Created:
    """Compute the pods of an MPIJob v1, and the ConfigMap with its hostfile."""
    job = read_job(obj, _MPI_JOB_V1, cluster)
    if "Worker" in job.roles and type(get_fields(obj, "spec", "mpiReplicaSpecs", "Worker").get("replicas")) is not int:
        job = job._replace(roles={**job.roles, "Worker": replace(job.roles["Worker"], count=0)})
    pods = tuple(_list_pods(job))
    worker = job.roles.get("Worker")
    hosts = [f"{job.name}-worker-{index}" for index in range(min(worker.count, MAX_PODS) if worker else 0)]
    if _is_node(job):
        hosts.insert(0, f"{job.name}-launcher")
    data = {"hostfile": "".join(f"{host} slots={_count_slots(job)}\n" for host in hosts)}
    return Created(pods, (CreatedObject("ConfigMap", f"{job.name}-config", data=data), *_list_accounts(job)))


def _list_accounts(job: TrainingJob) -> Iterator[CreatedObject]:
    """Yield the account that allows the launcher to run commands in its workers."""
    for kind in ("ServiceAccount", "Role", "RoleBinding"):
        yield CreatedObject(kind, f"{job.name}-launcher")


def _is_node(job: TrainingJob) -> bool:
    """Return True if the launcher trains, because it has a GPU."""
    launcher = job.roles.get("Launcher")
    limits = [get_fields(each, "resources", "limits") for each in list_containers(launcher.spec)] if launcher else []
    return any("gpu" in str(name) for each in limits for name in each)


def _list_pods(job: TrainingJob) -> Iterator[CreatedPod]:
    node = _is_node(job)
    for replicas in job.roles.values():
        launches = replicas.role == "Launcher"
        spec = _complete_launcher_v1(job, replicas.spec) if launches else _complete_worker_v1(job, replicas.spec)
        for index, count in list_indexes(1 if launches else replicas.count):
            name = f"{job.name}-launcher" if launches else f"{job.name}-worker-{index}"
            rank = (0 if node else None) if launches else index + node
            yield _make_pod(job, replicas, spec, name, index, rank, count)


def _make_pod(
    job: TrainingJob, replicas: Replicas, spec: Fields, name: str, index: int, rank: int | None, count: int
) -> CreatedPod:
    metadata = as_fields(replicas.template.get("metadata"))
    # The operator replaces no pod, so only the kubelet restarts.
    policy = map_restart_policy(replicas.restart_policy, job.spec).policy
    restarts = Restarts(policy, "never" if policy == "Never" else "always")
    labels = {
        **read_texts(metadata.get("labels")),
        f"{LABEL}operator-name": _MPI_JOB_V1.controller,
        f"{LABEL}job-name": job.name,
        f"{LABEL}replica-type": replicas.role.lower(),
    }
    if replicas.role == "Launcher":
        labels[f"{LABEL}job-role"] = "master"
    return CreatedPod(
        replicas.role,
        index,
        name,
        {**spec, "restartPolicy": restarts.policy},
        replicas.template,
        labels,
        read_texts(metadata.get("annotations")),
        rank,
        hostname=as_string(replicas.spec.get("hostname"), name),
        main=next((as_string(each.get("name")) for each in list_containers(spec)), ""),
        processes=str(_count_slots(job)) if rank is not None else "",
        restarts=restarts,
        count=count,
    )


def _complete_worker_v1(job: TrainingJob, spec: Fields) -> Fields:
    """Let the worker wait for commands, and mount the script that runs them."""

    def edit(container: Fields) -> Fields:
        waiting = {} if container.get("command") else {"command": ["sleep"], "args": ["365d"]}
        return append({**container, **waiting}, "volumeMounts", [_mount(_CONFIG_VOLUME, _FOLDER_V1)])

    files = [("kubexec.sh", _SCRIPT_MODE)]
    return append(edit_first_container(spec, edit), "volumes", [_make_config_volume(job, files)])


def _complete_launcher_v1(job: TrainingJob, spec: Fields) -> Fields:
    mounts = [_mount(_KUBECTL_VOLUME, _KUBECTL_FOLDER), _mount(_CONFIG_VOLUME, _FOLDER_V1)]

    def edit(container: Fields) -> Fields:
        env = append(container, "env", _list_variables_v1(job, container))
        return append(env, "volumeMounts", mounts)

    files = [("kubexec.sh", _SCRIPT_MODE), ("hostfile", _HOSTFILE_MODE), ("discover_hosts.sh", _SCRIPT_MODE)]
    volumes = [{"name": _KUBECTL_VOLUME, "emptyDir": {}}, _make_config_volume(job, files)]
    account = {} if spec.get("serviceAccountName") else {"serviceAccountName": f"{job.name}-launcher"}
    spec = append({**edit_first_container(spec, edit), **account}, "volumes", volumes)
    return append(spec, "initContainers", [_make_delivery_container(job, mounts)])


def _list_variables_v1(job: TrainingJob, container: Fields) -> Iterator[Fields]:
    yield variable("OMPI_MCA_plm_rsh_agent", f"{_FOLDER_V1}/kubexec.sh")
    yield variable("OMPI_MCA_orte_default_hostfile", f"{_FOLDER_V1}/hostfile")
    if not _is_node(job):
        yield variable("NVIDIA_VISIBLE_DEVICES", "")
        yield variable("NVIDIA_DRIVER_CAPABILITIES", "")
    own = [as_fields(entry).get("name") for entry in as_items(container.get("env"))]
    for name, value in (("I_MPI_HYDRA_BOOTSTRAP", "rsh"), ("I_MPI_HYDRA_BOOTSTRAP_EXEC", f"{_FOLDER_V1}/kubexec.sh")):
        if name not in own:
            yield variable(name, value)


def _make_delivery_container(job: TrainingJob, mounts: Sequence[Fields]) -> Item:
    """Return the container that copies kubectl to a volume."""
    amounts = {"cpu": "100m", "memory": "512Mi", "ephemeral-storage": "5Gi"}
    image = next(image for since, image in _IMAGES if not job.version or job.version >= since)
    return {
        "name": "kubectl-delivery",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "env": [variable("TARGET_DIR", _KUBECTL_FOLDER), variable("NAMESPACE", job.namespace)],
        "volumeMounts": list(mounts),
        "resources": {"limits": amounts, "requests": amounts},
    }


def _mount(name: str, path: str) -> Item:
    return {"name": name, "mountPath": path}


def _make_config_volume(job: TrainingJob, files: Sequence[tuple[str, int]]) -> Item:
    items = [{"key": name, "path": name, "mode": mode} for name, mode in files]
    return {"name": _CONFIG_VOLUME, "configMap": {"name": f"{job.name}-config", "items": items}}


def _count_slots(job: TrainingJob) -> int:
    return as_count(job.spec.get("slotsPerWorker"), 1)

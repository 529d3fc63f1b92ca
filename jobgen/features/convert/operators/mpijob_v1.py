"""The pods of an MPIJob v1: a launcher that reaches its workers with `kubectl exec`.

Source: kubeflow/training-operator 1.7 to 1.9, pkg/controller.v1/mpi (mpijob_controller.go, mpijob.go).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from jobgen.features.convert.operators.created import (
    MAX_PODS,
    Created,
    CreatedObject,
    CreatedPod,
    Fields,
    Restarts,
    list_indexes,
)
from jobgen.features.convert.operators.fields import as_count, as_fields, as_items, as_string, get_fields, read_texts
from jobgen.features.convert.operators.pod_edits import Item, append, edit_first_container, list_containers, variable
from jobgen.features.convert.operators.training_operator import (
    LABEL,
    JobKind,
    Replicas,
    TrainingJob,
    map_restart_policy,
    read_job,
)
from jobgen.spec.overlay import Cluster

KIND = JobKind("mpiReplicaSpecs", ("Launcher", "Worker"), "mpi", "", 9999, "Never", "mpijob-controller")
_FOLDER, _KUBECTL_FOLDER = "/etc/mpi", "/opt/kube"
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
    job = read_job(obj, KIND, cluster)
    if "Worker" in job.roles and type(_get_replicas(obj, "Worker")) is not int:
        job = job._replace(roles={**job.roles, "Worker": replace(job.roles["Worker"], count=0)})
    pods = tuple(_list_pods(job))
    data = {"hostfile": _write_hostfile(job)}
    return Created(pods, (CreatedObject("ConfigMap", f"{job.name}-config", data=data), *_list_accounts(job)))


def _get_replicas(obj: Fields, role: str) -> object:
    return get_fields(obj, "spec", "mpiReplicaSpecs", role).get("replicas")


def _list_accounts(job: TrainingJob) -> Iterator[CreatedObject]:
    """Yield the account that allows the launcher to run commands in its workers."""
    for kind in ("ServiceAccount", "Role", "RoleBinding"):
        yield CreatedObject(kind, f"{job.name}-launcher")


def _is_node(job: TrainingJob) -> bool:
    """Return whether the launcher trains: it does if it has a GPU."""
    launcher = job.roles.get("Launcher")
    limits = [get_fields(each, "resources", "limits") for each in list_containers(launcher.spec)] if launcher else []
    return any("gpu" in str(name) for each in limits for name in each)


def _list_pods(job: TrainingJob) -> Iterator[CreatedPod]:
    node = _is_node(job)
    for replicas in job.roles.values():
        launches = replicas.role == "Launcher"
        spec = _complete_launcher(job, replicas.spec) if launches else _complete_worker(job, replicas.spec)
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
        f"{LABEL}operator-name": KIND.controller,
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


def _complete_worker(job: TrainingJob, spec: Fields) -> Fields:
    """Let the worker wait for commands, and mount the script that runs them."""

    def edit(container: Fields) -> Fields:
        waiting = {} if container.get("command") else {"command": ["sleep"], "args": ["365d"]}
        return append({**container, **waiting}, "volumeMounts", [_mount(_CONFIG_VOLUME, _FOLDER)])

    files = [("kubexec.sh", _SCRIPT_MODE)]
    return append(edit_first_container(spec, edit), "volumes", [_make_config_volume(job, files)])


def _complete_launcher(job: TrainingJob, spec: Fields) -> Fields:
    mounts = [_mount(_KUBECTL_VOLUME, _KUBECTL_FOLDER), _mount(_CONFIG_VOLUME, _FOLDER)]

    def edit(container: Fields) -> Fields:
        env = append(container, "env", _list_variables(job, container))
        return append(env, "volumeMounts", mounts)

    files = [("kubexec.sh", _SCRIPT_MODE), ("hostfile", _HOSTFILE_MODE), ("discover_hosts.sh", _SCRIPT_MODE)]
    volumes = [{"name": _KUBECTL_VOLUME, "emptyDir": {}}, _make_config_volume(job, files)]
    account = {} if spec.get("serviceAccountName") else {"serviceAccountName": f"{job.name}-launcher"}
    spec = append({**edit_first_container(spec, edit), **account}, "volumes", volumes)
    return append(spec, "initContainers", [_make_delivery_container(job, mounts)])


def _list_variables(job: TrainingJob, container: Fields) -> Iterator[Fields]:
    yield variable("OMPI_MCA_plm_rsh_agent", f"{_FOLDER}/kubexec.sh")
    yield variable("OMPI_MCA_orte_default_hostfile", f"{_FOLDER}/hostfile")
    if not _is_node(job):
        yield variable("NVIDIA_VISIBLE_DEVICES", "")
        yield variable("NVIDIA_DRIVER_CAPABILITIES", "")
    own = [as_fields(entry).get("name") for entry in as_items(container.get("env"))]
    for name, value in (("I_MPI_HYDRA_BOOTSTRAP", "rsh"), ("I_MPI_HYDRA_BOOTSTRAP_EXEC", f"{_FOLDER}/kubexec.sh")):
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


def _write_hostfile(job: TrainingJob) -> str:
    worker = job.roles.get("Worker")
    hosts = [f"{job.name}-worker-{index}" for index in range(min(worker.count, MAX_PODS) if worker else 0)]
    if _is_node(job):
        hosts.insert(0, f"{job.name}-launcher")
    return "".join(f"{host} slots={_count_slots(job)}\n" for host in hosts)

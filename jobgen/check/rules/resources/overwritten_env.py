"""Environment variables that the operator sets."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.k8s.objects import Container, Manifest
from jobgen.model.data import value_of
from jobgen.spec.kinds import parse_version

_MASTER = frozenset(("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"))
_TORCH = frozenset(("PET_NNODES", "PET_NPROC_PER_NODE"))
_RAY = frozenset("FQ_RAY_IP RAY_CLUSTER_NAME RAY_CLUSTER_NAMESPACE RAY_CLOUD_INSTANCE_ID RAY_NODE_TYPE_NAME".split())
# The plugins of a Job of Volcano that set variables.
_PLUGINS = {"pytorch": _MASTER, "tensorflow": frozenset(("TF_CONFIG",)), "mpi": frozenset(("MPI_HOST",))}
_RESERVED = {
    **dict.fromkeys(("RayCluster", "RayJob", "RayService"), _RAY | {"KUBERAY_GEN_RAY_START_CMD"}),
    "Job": frozenset().union(*_PLUGINS.values(), ("VC_TASK_INDEX", "VK_TASK_INDEX")),
    "TFJob": frozenset(("TF_CONFIG",)),
    "XGBoostJob": _MASTER,
    "JAXJob": frozenset(("COORDINATOR_ADDRESS", "COORDINATOR_PORT", "NUM_PROCESSES", "PROCESS_ID")),
    "PaddleJob": frozenset(("PADDLE_JOB_ID", "PADDLE_NNODES", "PADDLE_MASTER")),
    "MXJob": frozenset(
        ("MX_CONFIG", "DMLC_PS_ROOT_PORT", "DMLC_PS_ROOT_URI", "DMLC_NUM_SERVER", "DMLC_NUM_WORKER", "DMLC_ROLE")
    ),
    "MPIJob": frozenset(
        """OMPI_MCA_orte_default_hostfile I_MPI_HYDRA_HOST_FILE HYDRA_HOST_FILE NVIDIA_VISIBLE_DEVICES
        NVIDIA_DRIVER_CAPABILITIES""".split()
    ),
    "PyTorchJob": _MASTER | _TORCH | {"PET_NODE_RANK"},
}


# Variables that a controller sets in each pod, but not if the pod has them: all pods then have one value.
_NUMBERS = {
    **dict.fromkeys(("Job", "JobSet"), ("JOB_COMPLETION_INDEX",)),
    "LeaderWorkerSet": ("LWS_WORKER_INDEX", "LWS_LEADER_ADDRESS"),
}
# The variable with the hostfile of each implementation of MPI.
_HOSTFILES = {"Intel": "I_MPI_HYDRA_HOST_FILE", "MPICH": "HYDRA_HOST_FILE"}


@rule("container", WARNING, fields=("env",), kinds=(*_RESERVED, *_NUMBERS))
def overwritten_env(container: Container) -> Iterator[Violation]:
    """An environment variable that the operator sets itself, such as `WORLD_SIZE` or `TF_CONFIG`.

    The operator appends its own value, and of two variables with the same name the last one wins. The value in the
    manifest has no effect. Kubernetes and LeaderWorkerSet do not set the index of a pod if the manifest has it: then
    all pods have the same one, and do the same work or never find each other.

    Remove the variable.
    """
    if container.init:
        return
    manifest = container.pod.manifest
    for name, entry in container.env if manifest.kind_name in _NUMBERS else ():
        if name in _NUMBERS[manifest.kind_name] and as_text(entry.get("value")) and "valueFrom" not in entry:
            message = f"all pods get this `{name}`, because the controller sets it only if the pod does not have it"
            yield Violation(entry["name"], f"{message}; remove it")
    names = _RESERVED.get(manifest.kind_name, frozenset())
    for name, entry in container.env:
        if name in names and _is_set_by_operator(name, container, manifest):
            yield Violation(
                entry["name"], f"the operator overwrites `{name}`, so the value here has no effect; remove it"
            )


def _is_set_by_operator(name: str, container: Container, manifest: Manifest) -> bool:
    """Return True if the operator sets the variable in this job."""
    if manifest.group == "ray.io":
        return container is container.pod.containers[0]
    if manifest.kind_name == "Job":
        plugins = as_mapping(manifest.spec.get("plugins")) if manifest.group == "batch.volcano.sh" else {}
        by_env = "env" in plugins and name in ("VC_TASK_INDEX", "VK_TASK_INDEX")
        return by_env or any(plugin in plugins and name in names for plugin, names in _PLUGINS.items())
    if manifest.kind_name == "PyTorchJob":
        if name in _TORCH:
            return not manifest.operator_version or parse_version(manifest.operator_version) >= (1, 7)
        return manifest.find_role("master") is not None
    if manifest.kind_name == "TFJob":
        return manifest.pod_count > 1 and container.name == "tensorflow"
    if manifest.kind_name == "MPIJob":
        role = container.pod.role
        if role is None or role.name != "launcher" or container is not container.pod.containers[0]:
            return False
        if name.startswith("NVIDIA_"):
            # The operator hides GPUs from a launcher that is not a worker.
            return value_of(manifest.spec.get("runLauncherAsWorker")) is not True and bool(manifest.find_role("worker"))
        implementation = as_text(manifest.spec.get("mpiImplementation"))
        return name == _HOSTFILES.get(implementation, "OMPI_MCA_orte_default_hostfile")
    return True

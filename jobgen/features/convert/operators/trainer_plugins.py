"""What the plugins of Trainer add to pods, by the machine learning policy of the runtime."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from jobgen.features.convert.operators.batch_job import INDEX_KEY
from jobgen.features.convert.operators.created import MAX_PODS, Fields
from jobgen.features.convert.operators.fields import as_count, as_fields, as_items, as_string, get_fields
from jobgen.features.convert.operators.pod_edits import (
    edit_containers,
    field_variable,
    find_container,
    upsert,
    upsert_env,
    variable,
)
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.quantity import to_milli

CONTAINER = "node"
"""The name of the container that trains, and of the replicated Job with the nodes."""
_LAUNCHER = "launcher"
_PORT = 29500
_SINCE = {"jax": (2, 2), "xgboost": (2, 2)}
_INDEX_PATH = f"metadata.annotations['{INDEX_KEY}']"


@dataclass(frozen=True, slots=True)
class PodSet:
    """The pods of a replicated Job."""

    name: str
    step: str
    """The value of the label that connects the replicated Job with a part of the TrainJob; empty if it has none."""
    count: int
    spec: Fields
    """The pod spec of the runtime, with the patches of the TrainJob."""


class TrainerRun(NamedTuple):
    """A TrainJob with its runtime."""

    name: str
    trainer: Fields | None
    """`spec.trainer`; without it, no variables are set."""
    policy: Fields
    """`spec.mlPolicy` of the runtime."""
    group_policy: Fields
    template: Fields
    """The spec of the JobSet in the runtime, with the patches of the TrainJob."""
    pod_sets: tuple[PodSet, ...]
    version: tuple[int, ...]

    def is_since(self, *version: int) -> bool:
        """Return whether the version of Trainer is this one or later."""
        return not self.version or self.version >= version

    def has_policy(self, name: str) -> bool:
        """Return whether the runtime has a policy of a framework, and Trainer knows it."""
        return isinstance(self.policy.get(name), dict) and self.is_since(*_SINCE.get(name, ()))

    @property
    def launcher_is_node(self) -> bool:
        """Whether the launcher of MPI trains, too."""
        return get_fields(self.policy, "mpi").get("runLauncherAsNode") is True

    @property
    def address(self) -> str:
        """The DNS name of the first node."""
        return f"{self.name}-{CONTAINER}-0-0.{self.name}"

    @property
    def nodes(self) -> int:
        """The number of pods of the replicated Job of the trainer."""
        return next((each.count for each in self.pod_sets if each.step == "trainer"), 1)

    def is_node(self, pod_set: PodSet) -> bool:
        """Return whether the pods of a replicated Job train."""
        if self.has_policy("mpi"):
            return pod_set.name == CONTAINER or (self.launcher_is_node and pod_set.name == _LAUNCHER)
        return pod_set.step == "trainer"


def count_nodes(run: TrainerRun) -> tuple[PodSet, ...]:
    """Return the pod sets with the number of nodes of the TrainJob."""
    nodes = (run.trainer or {}).get("numNodes")
    if type(nodes) is not int:
        return run.pod_sets
    nodes = max(nodes, 0)
    if not run.has_policy("mpi"):
        first = next((each for each in run.pod_sets if each.step == "trainer"), None)
        return tuple(replace(each, count=nodes) if each is first else each for each in run.pod_sets)
    count = max(nodes - 1, 1) if run.launcher_is_node else nodes
    return tuple(replace(each, count=count) if each.name == CONTAINER else each for each in run.pod_sets)


def count_processes(run: TrainerRun) -> str:
    """Return the processes that the launcher starts on each node; empty if Trainer does not set them."""
    if run.has_policy("torch"):
        return _count_torch_processes(run) if run.trainer is not None else ""
    if run.has_policy("mpi"):
        return _count_slots(run)
    return ""


def _count_torch_processes(run: TrainerRun) -> str:
    trainer = run.trainer or {}
    wanted = trainer.get("numProcPerNode")
    if wanted is None and not run.is_since(2, 2):
        wanted = get_fields(run.policy, "torch").get("numProcPerNode")
    text = str(wanted) if type(wanted) is int else as_string(wanted, "auto")
    if not run.is_since(2, 1):
        own = trainer.get("resourcesPerNode")
        return _count_by_limits(text, own) if isinstance(own, dict) else text
    resources = _read_resources(run)
    if (text == "cpu" and not run.is_since(2, 2)) or (text == "auto" and not _count_gpus(resources)):
        requested, limit = (_count_cpus(as_fields(resources.get(key))) for key in ("requests", "limits"))
        return str(max(1, requested or limit))
    return text


def _count_by_limits(text: str, resources: Fields) -> str:
    """Return the processes in 2.0, which looks at the limits, and at the requests unless the limits gave the number."""
    uses_cpu: Callable[[Fields], bool] = lambda _: False  # noqa: E731
    if text == "auto":
        uses_cpu = lambda amounts: not any("gpu" in str(name).lower() for name in amounts)  # noqa: E731
    elif text == "cpu":
        uses_cpu = lambda amounts: "cpu" in amounts  # noqa: E731
    found = "1"
    for key in ("limits", "requests"):
        amounts = resources.get(key)
        if not isinstance(amounts, dict):
            found = "1"
        elif uses_cpu(amounts):
            return str(max(1, _count_cpus(amounts)))
        else:
            found = "1" if text == "cpu" else text
    return found


def _count_slots(run: TrainerRun) -> str:
    wanted = (run.trainer or {}).get("numProcPerNode")
    if type(wanted) is int:
        return str(wanted)
    slots = as_count(get_fields(run.policy, "mpi").get("numProcPerNode"), 1)
    gpus = _count_gpus(_read_resources(run)) if run.is_since(2, 1) else 0
    return str(gpus if slots == 1 and gpus > 1 else slots)


def _read_resources(run: TrainerRun) -> Fields:
    """Return the resources of a node: those of the TrainJob, else those of the runtime."""
    own = (run.trainer or {}).get("resourcesPerNode")
    if isinstance(own, dict):
        return own
    for pod_set in run.pod_sets:
        if pod_set.name == CONTAINER or pod_set.step == "trainer":
            resources = find_container(pod_set.spec, CONTAINER).get("resources")
            if isinstance(resources, dict):
                return resources
    return {}


def _count_gpus(resources: Fields) -> int:
    """Return the number of GPUs: Trainer counts any resource with `gpu` in its name."""
    for key in ("requests", "limits"):
        for name, amount in sorted(as_fields(resources.get(key)).items(), key=str):
            if "gpu" in str(name).lower() and (count := _round_up(amount)):
                return count
    return 0


def _count_cpus(amounts: Fields) -> int:
    return _round_up(amounts.get("cpu"))


def _round_up(amount: Any) -> int:
    return -(-(to_milli(amount) or 0) // 1000)


def inject_variables(run: TrainerRun, pod_set: PodSet) -> Fields:
    """Return the pod spec with the variables and the port of the policy."""
    name = next(filter(run.has_policy, _VARIABLES), "")
    if not name:
        return pod_set.spec
    spec = pod_set.spec
    first = next((each for each in run.pod_sets if each.step == "trainer"), None)
    if pod_set is first and run.trainer is not None:
        env = as_items(run.trainer.get("env")) if name == "torch" else []
        entries = list(_VARIABLES[name](run))
        spec = edit_containers(spec, lambda each: upsert_env(upsert_env(each, env), entries), name=CONTAINER)
        spec = edit_containers(spec, _add_port, name=CONTAINER)
    return _inject_into_targets(run, pod_set, spec) if name == "torch" and run.is_since(2, 3) else spec


def _inject_into_targets(run: TrainerRun, pod_set: PodSet, spec: Fields) -> Fields:
    """Set the variables in other containers that the runtime names in `envInjection`."""
    for target in as_items(get_fields(run.policy, "torch", "envInjection").get("targets")):
        if as_fields(target).get("jobName") == pod_set.name:
            for name in filter(None, map(as_string, as_items(as_fields(target).get("containerNames")))):
                field = "containers" if find_container(spec, name) else "initContainers"
                entries = list(_list_torch_variables(run))
                spec = edit_containers(spec, lambda each, add=entries: upsert_env(each, add), name=name, field=field)  # type: ignore[misc]
    return spec


def _add_port(container: Fields) -> Fields:
    """Add the port of the nodes. Trainer takes ports without a name for the same port, so it replaces the first."""
    return upsert(container, "ports", [{"containerPort": _PORT}], "containerPort", "name")


def _list_torch_variables(run: TrainerRun) -> Iterator[Fields]:
    yield variable("PET_NNODES", run.nodes)
    yield variable("PET_NPROC_PER_NODE", _count_torch_processes(run))
    yield field_variable("PET_NODE_RANK", _INDEX_PATH)
    yield variable("PET_MASTER_ADDR", run.address)
    yield variable("PET_MASTER_PORT", _PORT)


def _list_jax_variables(run: TrainerRun) -> Iterator[Fields]:
    yield variable("JAX_NUM_PROCESSES", run.nodes)
    yield field_variable("JAX_PROCESS_ID", _INDEX_PATH)
    yield variable("JAX_COORDINATOR_ADDRESS", f"{run.address}:{_PORT}")


def _list_xgboost_variables(run: TrainerRun) -> Iterator[Fields]:
    yield variable("DMLC_TRACKER_URI", run.address)
    yield variable("DMLC_TRACKER_PORT", _PORT)
    yield field_variable("DMLC_TASK_ID", _INDEX_PATH)
    yield variable("DMLC_NUM_WORKER", run.nodes * max(_count_gpus(_read_resources(run)), 1))


_VARIABLES: Mapping[str, Callable[[TrainerRun], Iterator[Fields]]] = {
    "torch": _list_torch_variables,
    "jax": _list_jax_variables,
    "xgboost": _list_xgboost_variables,
}
_SSH_VOLUME, _HOSTFILE_VOLUME = "mpi-ssh-auth", "mpi-hostfile"
_HOSTFILE_FOLDER = "/etc/mpi"


def add_mpi_volumes(run: TrainerRun, pod_set: PodSet, spec: Fields) -> Fields:
    """Return the pod spec with the keys for SSH and, in the launcher, the hostfile and the variables of Open MPI."""
    policy = run.policy.get("mpi")
    if not isinstance(policy, dict) or pod_set.name not in (CONTAINER, _LAUNCHER):
        return spec
    keys = {"name": _SSH_VOLUME, "mountPath": as_string(policy.get("sshAuthMountPath"), "/root/.ssh")}
    spec = upsert(spec, "volumes", [_make_ssh_volume(run)], "name")
    spec = edit_containers(spec, lambda each: upsert(each, "volumeMounts", [keys], "mountPath"), name=CONTAINER)
    if pod_set.name != _LAUNCHER:
        return spec
    items = [{"key": "hostfile", "path": "hostfile", "mode": 0o444}]
    source = {"name": f"{run.name}-mpi-hostfile", "items": items}
    spec = upsert(spec, "volumes", [{"name": _HOSTFILE_VOLUME, "configMap": source}], "name")
    mount = {"name": _HOSTFILE_VOLUME, "mountPath": _HOSTFILE_FOLDER}
    spec = edit_containers(spec, lambda each: upsert(each, "volumeMounts", [mount], "mountPath"), name=CONTAINER)
    entries = [
        variable("OMPI_MCA_orte_default_hostfile", f"{_HOSTFILE_FOLDER}/hostfile"),
        variable("OMPI_MCA_orte_keep_fqdn_hostnames", "true"),
        variable("OMPI_MCA_orte_set_default_slots", _count_slots(run)),
        variable("OMPI_MCA_plm_rsh_args", "-o ConnectionAttempts=10"),
    ]
    return edit_containers(spec, lambda each: upsert_env(each, entries), name=CONTAINER)


def _make_ssh_volume(run: TrainerRun) -> Fields:
    private, public = (0o640, 0o644) if run.is_since(2, 3) else (None, None)
    paths = (("ssh-privatekey", "id_rsa", private), ("ssh-publickey", "id_rsa.pub", public))
    files = (*paths, ("ssh-publickey", "authorized_keys", public))
    items = [{"key": key, "path": path, **({"mode": mode} if mode else {})} for key, path, mode in files]
    mode = {"defaultMode": 0o400} if run.is_since(2, 3) else {}
    return {"name": _SSH_VOLUME, "secret": {"secretName": f"{run.name}-mpi-ssh-auth", **mode, "items": items}}


def write_hostfile(run: TrainerRun, spec: Fields) -> str:
    """Return the hostfile: a line for each node, with its slots."""
    subdomain = as_string(get_fields(spec, "network").get("subdomain"), run.name)
    lines = [
        f"{run.name}-{pod_set.name}-0-{index}.{subdomain} slots={_count_slots(run)}\n"
        for pod_set in run.pod_sets
        if run.is_node(pod_set)
        for index in range(min(pod_set.count, MAX_PODS))
    ]
    return "".join(lines)

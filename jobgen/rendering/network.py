"""What a job needs beside its pods: Services, ServiceAccounts, and variables by which its processes meet."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any

from jobgen.k8s.argocd_annotations import SYNC_OPTIONS
from jobgen.k8s.nodes import as_list, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Node, untraced, value_of, with_value
from jobgen.model.finding import Problem
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.quantity import parse_digits
from jobgen.model.sentence import Sentence
from jobgen.rendering.expand import JobSpec
from jobgen.rendering.kinds.main_container import find_main_container
from jobgen.spec.kinds import Network
from jobgen.spec.replicas import count_pods, find_template, get_at

# The variables by which the processes of a distributed training find each other, by framework.

Variables = dict[str, str]
"""Variables by name; `{index}` in a value stands for the index of the pod among those of its role."""

INDEX = "{index}"


class RoleHosts(NamedTuple):
    """A role, its number of pods, and the DNS name of each, with `{index}`."""

    name: str
    pods: int
    host: str
    processes: int = 1
    """The number of processes that a launcher such as torchrun starts on each pod."""

    def name_host(self, index: int) -> str:
        """Return the DNS name of a pod."""
        return self.host.replace(INDEX, str(index))


class Group(NamedTuple):
    """The pods of a job that train together."""

    job: str
    roles: tuple[RoleHosts, ...]
    declared: int = 1
    """The number of processes on each pod that the job declares; 1 if it leaves this to the launcher."""

    @property
    def nodes(self) -> int:
        """The number of pods."""
        return sum(role.pods for role in self.roles)

    @property
    def leader(self) -> str:
        """The DNS name of the first pod."""
        return self.roles[0].name_host(0)

    def find_rank(self, role: RoleHosts) -> str:
        """Return the rank of the pods of a role; empty if Kubernetes cannot compute it from the index of a pod."""
        if role is self.roles[0]:
            return "0" if role.pods == 1 else INDEX
        return ""


def _list_pytorch(group: Group, role: RoleHosts) -> Variables:
    """For torchrun, and the same variables as a PyTorchJob sets for processes that start without it."""
    ranks = [group.find_rank(each) for each in group.roles]
    variables = {
        "MASTER_ADDR": group.leader,
        "MASTER_PORT": "29500",
        # For processes without a launcher, as a PyTorchJob sets it; torchrun replaces it.
        "WORLD_SIZE": str(group.nodes * group.declared),
        "PET_NNODES": str(group.nodes),
        "PET_NPROC_PER_NODE": str(role.processes),
    }
    if all(ranks):
        rank = group.find_rank(role)
        static = {"PET_NODE_RANK": rank, "PET_MASTER_ADDR": group.leader, "PET_MASTER_PORT": "29500"}
        return {**variables, "RANK": rank, **static}
    # The rank of a worker is its index plus one, which no variable can express: the processes agree on ranks.
    endpoint = f"{group.leader}:29500"
    return {**variables, "PET_RDZV_BACKEND": "c10d", "PET_RDZV_ENDPOINT": endpoint, "PET_RDZV_ID": group.job}


def _list_jax(group: Group, role: RoleHosts) -> Variables:
    rank = group.find_rank(role)
    variables = {"JAX_COORDINATOR_ADDRESS": f"{group.leader}:6666", "JAX_NUM_PROCESSES": str(group.nodes)}
    return {**variables, "JAX_PROCESS_ID": rank} if rank else variables


def _list_tensorflow(group: Group, role: RoleHosts) -> Variables:
    types = {each: "worker" if each.name == "node" else each.name for each in group.roles}
    cluster = {
        types[each]: [f"{each.name_host(index)}:2222" for index in range(each.pods)]
        for each in group.roles
        if types[each] != "evaluator"
    }
    config = {"cluster": cluster, "task": {"type": types[role], "index": INDEX}}
    # The index is a number, not a string.
    return {"TF_CONFIG": json.dumps(config).replace(f'"{INDEX}"', INDEX)}


def _list_paddle(group: Group, role: RoleHosts) -> Variables:
    rank = group.find_rank(role)
    variables = {
        "PADDLE_MASTER": f"{group.leader}:36767",
        "PADDLE_NNODES": str(group.nodes),
        "PADDLE_JOB_ID": group.job,
    }
    return {**variables, "PADDLE_RANK": rank} if rank else variables


def _list_xgboost(group: Group, role: RoleHosts) -> Variables:
    rank = group.find_rank(role)
    tracker = {"DMLC_TRACKER_URI": group.leader, "DMLC_TRACKER_PORT": "29500", "DMLC_NUM_WORKER": str(group.nodes)}
    master = {"MASTER_ADDR": group.leader, "MASTER_PORT": "29500", "WORLD_SIZE": str(group.nodes)}
    return {**tracker, **master, **({"DMLC_TASK_ID": rank, "RANK": rank} if rank else {})}


_FRAMEWORKS: Mapping[str, Callable[[Group, RoleHosts], Variables]] = {
    "deepspeed": _list_pytorch,
    "jax": _list_jax,
    "paddle": _list_paddle,
    "pytorch": _list_pytorch,
    "tensorflow": _list_tensorflow,
    "xgboost": _list_xgboost,
}


HOST_LISTS: Mapping[str, str] = {"tensorflow": "TF_CONFIG"}
"""The variable that has the DNS names of all pods, for frameworks that need them."""

MAX_VARIABLE_BYTES = 128 * 1024 - 1
"""Linux starts no process with a variable that is longer, name and all."""


RANK_VARIABLES: Mapping[str, str] = {"jax": "JAX_PROCESS_ID", "xgboost": "RANK"}
"""The variable with the rank, for frameworks whose processes cannot agree on ranks themselves."""


def list_variables(framework: str, group: Group, role: RoleHosts, provided: Container[str] = frozenset()) -> Variables:
    """Return the variables of the pods of a role that the operator does not provide.

    There are none for a framework that is not distributed by variables.
    """
    found = _FRAMEWORKS.get(framework)
    # A list of all pods, which may be many, is not built in vain.
    if found is None or HOST_LISTS.get(framework, "") in provided:
        return {}
    return {name: value for name, value in found(group, role).items() if name not in provided}


LEADERS = frozenset(("chief", "leader", "master"))
"""Roles whose first pod has rank 0."""


JOB_LABEL = "jobgen.dev/job"
"""The label of a companion with the name of the object that it belongs to."""

# A companion is deleted, or kept, together with its job.
_SHARED_ANNOTATIONS = (SYNC_OPTIONS, "kustomize.toolkit.fluxcd.io/prune")


def build_companion(api_version: str, kind: str, name: Node, made: Mapping[str, Any]) -> dict[str, Any]:
    """Build a companion of a job's object, in its namespace and with its name in a label."""
    owner = made["metadata"]
    metadata: dict[str, Any] = {"name": name}
    if "namespace" in owner:
        metadata["namespace"] = owner["namespace"]
    metadata["labels"] = {JOB_LABEL: owner["name"]}
    annotations = owner.get("annotations")
    if isinstance(annotations, dict):
        shared = {key: value for key, value in annotations.items() if key in _SHARED_ANNOTATIONS}
        if shared:
            metadata["annotations"] = shared
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


_JOB_NAME_LABEL = "batch.kubernetes.io/job-name"
_INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
# The fields of a job that say how many processes run on each pod.
_PROCESS_FIELDS = (("pytorch", "nprocPerNode"), ("deepspeed", "slotsPerWorker"))


def connect_pods(
    made: Mapping[str, Any], job: JobSpec, problems: list[Problem]
) -> tuple[Mapping[str, Any], tuple[Mapping[str, Any], ...]]:
    """Let the pods of an object find each other; return the object, and the Service that they need."""
    network = job.kind.network
    name = made["metadata"].get("name") if isinstance(made.get("metadata"), dict) else None
    if network is None or not isinstance(value_of(name), str) or problems or not _wants(job, "variables"):
        return made, ()
    result: dict[str, Any] = dict(made)
    layout = job.kind.replicas
    items = [item for item in job.kind.list_items(result) if isinstance(find_template(item.data, layout), dict)]
    own = value_of(get_at(result, network.subdomain)) if network.subdomain else None
    declared = _find_declared_processes(job)
    gpus = {role.replica_type: role.pod.gpus for role in Manifest(untraced(result), job.kind, job.cluster).roles}
    named = (_name_hosts(str(value_of(name)), item, job, network, own) for item in items)
    hosts = [role._replace(processes=declared or gpus.get(role.name) or 1) for role in named]
    if sum(role.pods for role in hosts) < 2 or not all(_have_names(item.data, job, network) for item in items):
        return made, ()
    written, has_service = _find_subdomain(items, job), network.has_service and _wants(job, "service")
    if network.has_service and not has_service and written is None:
        return made, ()
    subdomain = written or name
    leading_first = sorted(hosts, key=lambda role: role.name not in LEADERS)
    group = Group(str(value_of(name)), tuple(leading_first), declared or 1)
    # The variables that the operator sets.
    sets = (names for path, names in network.provided.items() if get_at(result, path) is not None)
    provided = frozenset[str]().union(*sets)
    if HOST_LISTS.get(job.framework, "") not in provided:
        problems.extend(_find_excess(job, group, items, hosts))
    if problems:
        return made, ()
    for item, role in zip(items, hosts, strict=True):
        template = find_template(item.data, layout)
        assert isinstance(template, dict), "checked above"
        missing = list_variables(job.framework, group, role, provided)
        connected = _connect_template(template, missing, network, name)
        if has_service:
            connected["spec"].setdefault("subdomain", subdomain)
        _replace_template(result, (*item.path, *map(str, layout.template)), connected)
    if RANK_VARIABLES.get(job.framework, "") not in provided:
        problems.extend(_find_missing_ranks(job, group, items, hosts))
    if not has_service:
        return result, ()
    # A headless Service gives each pod a DNS name, even before it is ready.
    headless = {
        "clusterIP": with_value(name, "None"),
        "publishNotReadyAddresses": with_value(name, True),
        "selector": {_JOB_NAME_LABEL: name},
    }
    return result, ({**build_companion("v1", "Service", subdomain, result), "spec": headless},)


def _find_excess(job: JobSpec, group: Group, items: list[Any], hosts: list[RoleHosts]) -> Iterator[Problem]:
    """Report that the names of all pods do not fit into a variable, at the number of the largest role."""
    # In a list, a name has a port, quotes and a comma, which take more bytes than `{index}`.
    size = sum(role.pods * len(role.host) for role in hosts)
    if job.framework in HOST_LISTS and size > MAX_VARIABLE_BYTES:
        item, _ = max(zip(items, hosts, strict=True), key=lambda pair: pair[1].pods)
        message = Sentence(
            "`{}` has the names of all {} pods, and Linux starts no process with a variable of more than {} "
            "bytes; use fewer replicas",
            HOST_LISTS[job.framework],
            group.nodes,
            MAX_VARIABLE_BYTES,
        )
        node = get_at(item.data, job.kind.replicas.counts[0]) or job.metadata["name"]
        yield Problem("invalid-value", message, node)


def _have_names(item: Mapping[str, Any], job: JobSpec, network: Network) -> bool:
    """Return True if each pod of an item has a DNS name of its own, and all of them run at the same time."""
    layout = job.kind.replicas
    counts = {value_of(found) for path in layout.counts if (found := get_at(item, path)) is not None}
    factor = value_of(get_at(item, layout.times)) if layout.times else None
    named = all(value_of(get_at(item, path)) == value for path, value in network.when)
    return named and len(counts) <= 1 and factor in (None, 1)


def _wants(job: JobSpec, part: str) -> bool:
    """Return True if jobgen should render a part; with `kubernetes: {service: false}`, the job has its own Service."""
    settings = job.fields.get(job.kind.platform)
    return not (isinstance(settings, dict) and value_of(settings.get(part)) is False)


def _find_missing_ranks(job: JobSpec, group: Group, items: list[Any], hosts: list[RoleHosts]) -> Iterator[Problem]:
    """Report roles whose processes need a rank that Kubernetes cannot compute from the index of a pod."""
    variable = RANK_VARIABLES.get(job.framework, "")
    for item, role in zip(items, hosts, strict=True) if variable else ():
        template: Any = find_template(item.data, job.kind.replicas)
        own = as_list(find_main_container(template).get("env"))
        if group.find_rank(role) or any(value_of(get_path(entry, "name")) == variable for entry in own):
            continue
        # A patch may have renamed the role.
        first, spec = group.roles[0].name, job.roles.get(role.name)
        replicas = spec.replica.get("replicas") if spec else None
        message = Sentence(
            "the ranks of `{}` follow those of `{}`, and no variable can express this; give both roles the same "
            "pods, or set `{}` in the command",
            role.name,
            first,
            variable,
        )
        yield Problem("unsupported-by-kind", message, replicas or job.metadata["name"])


def _name_hosts(name: str, item: Any, job: JobSpec, network: Network, own: Any) -> RoleHosts:
    role = str(value_of(item.key))
    described = job.kind.find_role(role)
    pods = count_pods(item.data, job.kind.replicas, described.omitted if described else 1)
    host = network.host.replace("{job}", name).replace("{role}", role)
    if network.has_service:
        own = value_of(_find_subdomain([item], job))
    if isinstance(own, str):
        host = f"{host.partition('.')[0]}.{own}"
    return RoleHosts(role, pods, host)


def _find_subdomain(items: list[Any], job: JobSpec) -> Node:
    written = (get_path(find_template(item.data, job.kind.replicas), "spec", "subdomain") for item in items)
    return next((node for node in written if isinstance(value_of(node), str)), None)


def _find_declared_processes(job: JobSpec) -> int:
    """The number of processes on each pod that the job declares; 0 if it declares none."""
    for block, field in _PROCESS_FIELDS:
        settings = job.fields.get(block)
        declared = value_of(settings.get(field)) if isinstance(settings, dict) else None
        count = parse_digits(str(declared))
        if count is not None:
            return count
    return 0


def _connect_template(
    template: Mapping[str, Any], variables: dict[str, str], network: Network, name: Node
) -> dict[str, Any]:
    """A copy of a template whose main container has the variables, unless it sets them itself."""
    spec = dict(template.get("spec") or {})
    containers = list(spec.get("containers") or [])
    if containers and isinstance(containers[0], dict) and variables:
        entries: list[dict[str, Any]] = []
        # What contains the index of a pod refers to a variable with the index before it.
        if network.index_field and any(INDEX in value and value != INDEX for value in variables.values()):
            entries.append({"name": _INDEX_VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": network.index_field}}})
        index = network.index_text or f"$({_INDEX_VARIABLE})"
        for variable, value in variables.items():
            if value == INDEX and network.index_field:
                entries.append({"name": variable, "valueFrom": {"fieldRef": {"fieldPath": network.index_field}}})
            else:
                entries.append({"name": variable, "value": with_value(name, value.replace(INDEX, index))})
        own = [entry for entry in containers[0].get("env") or [] if isinstance(entry, dict)]
        known = {value_of(entry.get("name")) for entry in own}
        added = [entry for entry in entries if entry["name"] not in known]
        containers[0] = {**containers[0], "env": [*added, *own]}
    return {**template, "spec": {**spec, "containers": containers}}


def _replace_template(tree: dict[str, Any], path: tuple[str | int, ...], value: Any) -> None:
    """Replace the node at a path, and copy what leads to it."""
    node: Any = tree
    for step in path[:-1]:
        node[step] = node[step].copy()
        node = node[step]
    node[path[-1]] = value


def build_service_accounts(made: Mapping[str, Any], job: JobSpec) -> tuple[Mapping[str, Any], ...]:
    """Build the ServiceAccounts with `create: true`, each once."""
    found: dict[str, Mapping[str, Any]] = {}
    # A patch may have replaced the name.
    owner = {**made, "metadata": {"name": job.metadata["name"], **made["metadata"]}}
    for role in job.roles.values():
        account = role.pod.get("serviceAccount")
        if isinstance(account, dict) and value_of(account.get("create")) is True:
            companion = build_companion("v1", "ServiceAccount", account["name"], owner)
            metadata = companion["metadata"]
            annotations = {**metadata.get("annotations", {}), **account.get("annotations", {})}
            if annotations:
                metadata["annotations"] = annotations
            found[str(value_of(account["name"]))] = companion
    return tuple(found.values())

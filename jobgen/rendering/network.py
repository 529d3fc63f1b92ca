"""What a job needs beside its pods: Services, ServiceAccounts, and variables by which its processes meet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobgen.k8s.argocd_annotations import SYNC_OPTIONS
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Node, value_of, with_value
from jobgen.model.finding import Problem
from jobgen.model.quantity import parse_digits
from jobgen.rendering.expand import JobSpec
from jobgen.rendering.rendezvous import (
    HOST_LISTS,
    INDEX,
    MAX_VARIABLE_BYTES,
    RANK_VARIABLES,
    Group,
    RoleHosts,
    exceeds_variable,
    list_variables,
    order_roles,
)
from jobgen.spec.kinds import Network
from jobgen.spec.replicas import count_pods, find_template, get_at

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
    items = [
        item for item in job.kind.list_items(result) if isinstance(find_template(item.data, job.kind.replicas), dict)
    ]
    own = value_of(get_at(result, network.subdomain)) if network.subdomain else None
    declared, gpus = _find_declared_processes(job), _count_gpus(result, job)
    named = (_name_hosts(str(value_of(name)), item, job, network, own) for item in items)
    hosts = [role._replace(processes=declared or gpus.get(role.name) or 1) for role in named]
    if sum(role.pods for role in hosts) < 2 or not all(_have_names(item.data, job, network) for item in items):
        return made, ()
    written, has_service = _find_subdomain(items, job), network.has_service and _wants(job, "service")
    if network.has_service and not has_service and written is None:
        return made, ()
    subdomain = written or name
    group = Group(str(value_of(name)), order_roles(hosts), declared or 1)
    provided = _list_provided(result, network)
    if HOST_LISTS.get(job.framework, "") not in provided and exceeds_variable(job.framework, group):
        problems.append(_build_length_problem(job, group, items, hosts))
        return made, ()
    for item, role in zip(items, hosts, strict=True):
        template = find_template(item.data, job.kind.replicas)
        assert isinstance(template, dict), "checked above"
        missing = list_variables(job.framework, group, role, provided)
        connected = _connect_template(template, missing, network, name)
        if has_service:
            connected["spec"].setdefault("subdomain", subdomain)
        _replace_template(result, (*item.path, *map(str, job.kind.replicas.template)), connected)
    if RANK_VARIABLES.get(job.framework, "") not in provided:
        problems.extend(_find_missing_ranks(job, group, items, hosts))
    return result, (_build_service(result, subdomain, name),) if has_service else ()


def _build_length_problem(job: JobSpec, group: Group, items: list[Any], hosts: list[RoleHosts]) -> Problem:
    """Report that the names of all pods do not fit into a variable, at the number of the largest role."""
    item, _ = max(zip(items, hosts, strict=True), key=lambda pair: pair[1].pods)
    message = (
        f"`{HOST_LISTS[job.framework]}` has the names of all {group.nodes} pods, and Linux starts no process with a"
        f" variable of more than {MAX_VARIABLE_BYTES} bytes; use fewer replicas"
    )
    return Problem("invalid-value", message, get_at(item.data, job.kind.replicas.counts[0]) or job.metadata["name"])


def _list_provided(made: Mapping[str, Any], network: Network) -> frozenset[str]:
    """The variables that the operator sets in the pods of an object."""
    sets = (names for path, names in network.provided.items() if get_at(made, path) is not None)
    return frozenset().union(*sets)


def _have_names(item: Mapping[str, Any], job: JobSpec, network: Network) -> bool:
    """Return True if each pod of an item has a DNS name of its own, and all of them run at the same time."""
    layout = job.kind.replicas
    counts = {value_of(found) for path in layout.counts if (found := get_at(item, path)) is not None}
    factor = value_of(get_at(item, layout.times)) if layout.times else None
    named = all(value_of(get_at(item, path)) == value for path, value in network.when)
    return named and len(counts) <= 1 and factor in (None, 1)


def _wants(job: JobSpec, part: str) -> bool:
    """True if a job leaves something to jobgen: `kubernetes: {service: false}` says that it brings its own Service."""
    settings = job.fields.get(job.kind.platform)
    return not (isinstance(settings, dict) and value_of(settings.get(part)) is False)


def _find_missing_ranks(job: JobSpec, group: Group, items: list[Any], hosts: list[RoleHosts]) -> Iterator[Problem]:
    """Report roles whose processes need a rank that Kubernetes cannot compute from the index of a pod."""
    variable = RANK_VARIABLES.get(job.framework, "")
    for item, role in zip(items, hosts, strict=True):
        if (
            not variable
            or group.find_rank(role)
            or _sets_variable(find_template(item.data, job.kind.replicas), variable)
        ):
            continue
        # A patch may have renamed the role.
        first, spec = group.roles[0].name, job.roles.get(role.name)
        replicas = spec.replica.get("replicas") if spec else None
        message = (
            f"the ranks of `{role.name}` follow those of `{first}`, and no variable can express this;"
            f" give both roles the same pods, or set `{variable}` in the command"
        )
        yield Problem("unsupported-by-kind", message, replicas or job.metadata["name"])


def _sets_variable(template: Any, variable: str) -> bool:
    containers = template["spec"].get("containers") or [] if isinstance(template.get("spec"), dict) else []
    env = [entry for each in containers[:1] if isinstance(each, dict) for entry in each.get("env") or ()]
    return any(isinstance(entry, dict) and value_of(entry.get("name")) == variable for entry in env)


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
    specs = (find_template(item.data, job.kind.replicas) for item in items)
    written = (
        spec["spec"].get("subdomain") for spec in specs if isinstance(spec, dict) and isinstance(spec.get("spec"), dict)
    )
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


def _count_gpus(made: Mapping[str, Any], job: JobSpec) -> dict[str, int]:
    """The number of GPUs of a pod of each role."""
    return {role.replica_type: role.pod.gpus for role in Manifest(made, job.kind, job.cluster).roles}


def _connect_template(
    template: Mapping[str, Any], variables: dict[str, str], network: Network, name: Node
) -> dict[str, Any]:
    """A copy of a template whose main container has the variables, unless it sets them itself."""
    spec = dict(template.get("spec") or {})
    containers = list(spec.get("containers") or [])
    if containers and isinstance(containers[0], dict) and variables:
        own = [entry for entry in containers[0].get("env") or [] if isinstance(entry, dict)]
        known = {value_of(entry.get("name")) for entry in own}
        added = [entry for entry in _list_env(variables, network, name) if entry["name"] not in known]
        containers[0] = {**containers[0], "env": [*added, *own]}
    return {**template, "spec": {**spec, "containers": containers}}


def _list_env(variables: dict[str, str], network: Network, name: Node) -> Iterator[dict[str, Any]]:
    """The entries of `env`. What contains the index of a pod refers to a variable with the index before it."""
    if network.index_field and any(INDEX in value and value != INDEX for value in variables.values()):
        yield {"name": _INDEX_VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": network.index_field}}}
    index = network.index_text or f"$({_INDEX_VARIABLE})"
    for variable, value in variables.items():
        if value == INDEX and network.index_field:
            yield {"name": variable, "valueFrom": {"fieldRef": {"fieldPath": network.index_field}}}
        else:
            yield {"name": variable, "value": with_value(name, value.replace(INDEX, index))}


def _replace_template(tree: dict[str, Any], path: tuple[str | int, ...], value: Any) -> None:
    """Replace the node at a path, and copy what leads to it."""
    node: Any = tree
    for step in path[:-1]:
        node[step] = node[step].copy()
        node = node[step]
    node[path[-1]] = value


def _build_service(made: Mapping[str, Any], subdomain: Node, name: Node) -> dict[str, Any]:
    """The headless Service that gives each pod a DNS name, even before it is ready."""
    return {
        **build_companion("v1", "Service", subdomain, made),
        "spec": {
            "clusterIP": with_value(name, "None"),
            "publishNotReadyAddresses": with_value(name, True),
            "selector": {_JOB_NAME_LABEL: name},
        },
    }


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

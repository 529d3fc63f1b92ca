"""Compare what an object uses with what its team may use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from jobgen.check.rules import Violation
from jobgen.k8s.kinds import CLUSTER_SCOPED
from jobgen.k8s.kueue import find_suspend_path, is_suspended, stays_suspended
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.k8s.object_paths import is_app_wrapper, list_wrapped_objects
from jobgen.k8s.objects import Manifest, Pod
from jobgen.k8s.resources import count_gpus, find_shared_devices, list_amounts, list_counted_pods
from jobgen.k8s.team_uses import Use
from jobgen.k8s.workloads import POD_SETS, RAY_CLUSTERS, REPLICA_TYPES, find_pods
from jobgen.model.data import Node, value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.spec.teams import Budget, DeviceLimit, TeamScope

_MAX_NAMED = 4


def find_foreign_uses(manifest: Manifest, what: str, noun: str, *, always: tuple[str, ...] = ()) -> Iterator[Violation]:
    """Report the names of one list of a team that an object uses, and that its team may not use."""
    team = manifest.team
    if team is None:
        return
    for use in manifest.uses:
        if use.what == what and use.value not in always and not team.allows(what, use.value):
            owner = team.find_owner(what, use.value)
            whose = f"belongs to team `{owner}`" if owner else f"is not allowed for team `{team.team}`"
            yield Violation(use.node, f"{noun} `{use.value}` {whose}; {advise(team, what)}", evidence=(use.value,))


def advise(team: TeamScope, what: str) -> str:
    """Say what a team may use instead."""
    allowed = team.allowed.get(what)
    if allowed is None:
        return "use another one"
    if not allowed:
        return "remove it"
    listed = ", ".join(f"`{pattern}`" for pattern in allowed[:_MAX_NAMED])
    more = f" and {len(allowed) - _MAX_NAMED} more" if len(allowed) > _MAX_NAMED else ""
    return f"team `{team.team}` can use {listed}{more}"


GRANTING_KINDS = frozenset(
    """Application ApplicationSet AppProject AuthorizationPolicy CiliumNetworkPolicy CleanupPolicy Endpoints
    EndpointSlice ExternalSecret GitRepo HelmChart HelmRelease InfisicalSecret Issuer Kustomization
    LimitRange LocalQueue NamespacedDeletingPolicy NamespacedGeneratingPolicy
    NamespacedImageValidatingPolicy NamespacedMutatingPolicy NamespacedValidatingPolicy NetworkPolicy Policy
    PolicyException PushSecret Queue ReferenceGrant ResourceQuota Role RoleBinding SealedSecret Secret
    SecretProviderClass SecretStore Sensor SopsSecret VaultAuth VaultDynamicSecret VaultPKISecret
    VaultStaticSecret""".split()
)
"""Kinds of a namespace that grant access, hold or read secrets, set limits, route traffic or deploy other objects."""
_OF_CLUSTER = lazy_pattern(r"Cluster[A-Z]")
"""By convention, how the names of kinds of the whole cluster begin if there is a kind for namespaces, too."""


def is_kind_allowed(team: TeamScope, use: Use) -> bool:
    """Return True if a team may have objects of a kind; without a list, all but those that affect others."""
    if "kinds" in team.allowed:
        return team.allows("kinds", use.value, f"{use.value}.{use.qualifier}" if use.qualifier else use.value)
    return not is_of_cluster(use.value) and use.value not in GRANTING_KINDS


def is_of_cluster(kind: str) -> bool:
    """Return True if objects of a kind are in no namespace, as far as its name says."""
    return kind in CLUSTER_SCOPED or _OF_CLUSTER.match(kind) is not None


def requires_queue(team: TeamScope) -> bool:
    """Return True if a team lists queues, so that its accelerators must wait in one of them."""
    return any(pattern.strip("*") for pattern in team.allowed.get("queues", ()))


def list_accelerated_pods(manifest: Manifest) -> list[Pod]:
    """Return the pods of an object, and of the objects inside it, that will hold accelerators."""
    if stays_suspended(manifest) or (manifest.kind and manifest.kind.completed_by):
        return []
    if is_app_wrapper(manifest.object):
        known = {**REPLICA_TYPES, **POD_SETS}
        wrapped = (Manifest(each, None, manifest.cluster) for _, each in list_wrapped_objects(manifest.object))
        pods = [
            Pod(as_mapping(found.template), inner)
            for inner in wrapped
            for found in find_pods(inner.object, known.get((inner.group, inner.kind_name), ()))
            if found.total
        ]
    else:
        pods = [pod for pod, count in _list_pods(_start(manifest)) if count]
    return [pod for pod in pods if any(pod.devices.values())]


def _list_pods(manifest: Manifest) -> list[tuple[Pod, int]]:
    """Return the pods of an object, and how many there are of each."""
    return [*list_counted_pods(manifest), *_list_hidden_pods(manifest)]


_CREATES_NOTHING = lazy_pattern(
    r".*(?:Template|Runtime|Policy|Profile|Class|Quota)\Z|(?:Application|ApplicationSet|HelmRelease|Workload)\Z"
)
"""Kinds that have containers for the objects of others, or values for text that jobgen does not render."""


def _list_hidden_pods(manifest: Manifest) -> list[tuple[Pod, int]]:
    """Return the pods with accelerators that no description of a kind names, such as those of a Workflow or Notebook.

    What requests devices in `resources` is a container, wherever it is; `replicas` above it say how many there are.
    """
    if manifest.team is None or _CREATES_NOTHING.match(manifest.kind_name) or is_app_wrapper(manifest.object):
        return []
    known = [each for pod in manifest.pods for each in (*pod.containers, *pod.init_containers)]
    seen = {id(each.data.get("resources")) for each in known}
    labels = as_mapping(get_path(manifest.spec, "podMetadata", "labels"))
    if (manifest.group, manifest.kind_name) in _COPIES_LABELS:
        labels = {**manifest.labels, **labels}
    found: list[tuple[Pod, int]] = []
    below: list[tuple[Node, Mapping[str, Node], Mapping[str, Node], int]] = [(manifest.spec, {}, labels, 1)]
    while below:
        node, spec, labels, count = below.pop()
        if isinstance(node, list):
            below += ((item, spec, labels, count) for item in reversed(node))
        if not isinstance(node, dict):
            continue
        labels = {**labels, **as_mapping(get_path(node, "metadata", "labels"))}
        amounts = [as_integer(node.get(name)) for name in ("replicas", "minReplicas")]
        count *= max((max(each, 0) for each in amounts if each is not None), default=1)
        spec = node if "containers" in node or "nodeSelector" in node else spec
        resources = as_mapping(node.get("resources"))
        if id(resources) not in seen and "resources" in node:
            claims = spec.get("resourceClaims") if "claims" in resources else None
            alone = {**spec, "containers": [node], "initContainers": [], "resourceClaims": claims}
            pod = Pod({"metadata": {"labels": labels}, "spec": alone}, manifest)
            if any(pod.devices.values()):
                found.append((pod, count))
        below += ((child, spec, labels, count) for key, child in reversed(node.items()) if key != "resources")
    return found


_COPIES_LABELS = frozenset((("kubeflow.org", "Notebook"), ("serving.kserve.io", "InferenceService")))
"""Kinds without a description whose controller gives their labels to their pods."""


BudgetUse = tuple[str, int, int, tuple[tuple[object, ...], ...]]
"""A line of a budget, its limit, what a job requests of it, and the devices of claims that jobs may share."""


class BudgetLine(NamedTuple):
    """One limit of a budget."""

    name: str
    limit: int
    device: DeviceLimit | None = None


def list_lines(budget: Budget) -> Iterator[BudgetLine]:
    """Yield the limits of a budget."""
    for name in ("gpus", "jobs", "replicas"):
        limit = getattr(budget, name)
        if limit is not None:
            yield BudgetLine(name, limit)
    for device in budget.devices:
        labels = "".join(f", {key}={value}" for key, value in device.labels)
        yield BudgetLine(f"{device.resource}{labels}", device.max, device)


def measure_use(manifest: Manifest, budget: Budget) -> Iterator[BudgetUse]:
    """Yield what an object requests of each limit; nothing if it runs no pods, or stays suspended."""
    if stays_suspended(manifest):
        return
    manifest = _start(manifest)
    pods = _list_pods(manifest)
    if not pods:
        return
    hidden = _list_hidden_pods(manifest)
    for line in list_lines(budget):
        if line.device is not None:
            yield line.name, line.limit, _count_devices(manifest, line.device, hidden), ()
        elif line.name == "gpus":
            shared = tuple(tuple(each) for each in find_shared_devices(manifest))
            amount = count_gpus(manifest) + sum(count * pod.gpus for pod, count in hidden)
            yield line.name, line.limit, amount, shared
        else:
            count = 1 if line.name == "jobs" else sum(count for _, count in pods)
            yield line.name, line.limit, count, ()


def _start(manifest: Manifest) -> Manifest:
    """Return an object as it may be later: started by its queue, with all workers that Ray may add."""
    obj = manifest.object
    path = find_suspend_path(manifest)
    if path and is_suspended(manifest):
        obj = _set_at(obj, path, value=False)
    clusters = RAY_CLUSTERS.get(manifest.kind_name, ()) if manifest.group == "ray.io" else ()
    cluster = as_mapping(get_path(obj, *clusters)) if clusters else {}
    if value_of(cluster.get("enableInTreeAutoscaling")) is True:
        groups: list[Node] = []
        for group in as_list(cluster.get("workerGroupSpecs")):
            most = as_mapping(group).get("maxReplicas")
            groups.append({**as_mapping(group), "replicas": most} if as_integer(most) is not None else group)
        obj = _set_at(obj, (*clusters, "workerGroupSpecs"), value=groups)
    if obj is manifest.object:
        return manifest
    return Manifest(obj, manifest.kind, manifest.cluster, manifest.read_catalog, manifest.team)


def _set_at(node: Mapping[str, Node], path: Sequence[str], *, value: Node) -> dict[str, Node]:
    below = _set_at(as_mapping(node.get(path[0])), path[1:], value=value) if len(path) > 1 else value
    return {**node, path[0]: below}


def _count_devices(manifest: Manifest, limit: DeviceLimit, hidden: Sequence[tuple[Pod, int]]) -> int:
    wanted = dict(limit.labels)
    amounts = (each for each in list_amounts(manifest) if each.resource == limit.resource)
    found = int(sum(each.amount for each in amounts if _selects(each.pod.spec, wanted)))
    return found + sum(
        count * pod.devices.get(limit.resource, 0) for pod, count in hidden if _selects(pod.spec, wanted)
    )


def _selects(spec: Mapping[str, Node], wanted: Mapping[str, str]) -> bool:
    """Return True if a pod selects nodes with these labels, by its selector or by what its affinity requires."""
    selector = as_mapping(spec.get("nodeSelector"))
    left = {key: value for key, value in wanted.items() if as_text(selector.get(key)) != value}
    if not left or any(key in selector for key in left):
        return not left
    required = get_path(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    # A pod runs on the nodes of any of the terms.
    for term in as_list(as_mapping(required).get("nodeSelectorTerms")):
        expressions = [as_mapping(each) for each in as_list(as_mapping(term).get("matchExpressions"))]
        if all(_permits(expressions, key, value) for key, value in left.items()):
            return True
    return False


def _permits(expressions: Sequence[Mapping[str, Node]], key: str, value: str) -> bool:
    """Return True if expressions are about a label, and permit a value of it."""
    own = [each for each in expressions if as_text(each.get("key")) == key]
    for each in own:
        is_listed = value in map(as_text, as_list(each.get("values")))
        if not {"Exists": True, "In": is_listed, "NotIn": not is_listed}.get(as_text(each.get("operator")), False):
            return False
    return bool(own)

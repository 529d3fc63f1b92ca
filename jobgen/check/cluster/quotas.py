"""What the objects of a namespace take from its quotas, and which quotas they exceed together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from jobgen.check.admission.fields import iter_mappings, iter_strings
from jobgen.check.cluster.pod_resources import PodResources, count_created_pods, resolve_pod_resources
from jobgen.check.cluster.state import CLUSTER_KINDS, ClusterState, name_object
from jobgen.check.policy.match import pluralize_kind
from jobgen.k8s.devices import CLASS_RESOURCE
from jobgen.k8s.kinds import Release
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest, Pod
from jobgen.k8s.resources import count_pods
from jobgen.model.data import Plain
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, Place
from jobgen.model.quantity import to_milli

_MOST_DEVICES = 32
"""The devices that a claim for all devices of a node may get."""


def measure_device_claim(spec: Plain, resources: Mapping[str, str], release: Release) -> dict[str, int]:
    """Return what a claim takes from quotas: thousandths of devices of a class, and of its extended resource.

    `resources` are the extended resources of classes.
    """
    counts: dict[str, int] = {}
    for request in iter_mappings(get_path(spec, "devices", "requests")):
        # Of alternatives, the most devices of each class that one of them requests.
        most: dict[str, int] = {}
        # Before `resource.k8s.io/v1beta2`, the fields of `exactly` were those of the request itself.
        single = as_mapping(request.get("exactly", request))
        for option in list(iter_mappings(request.get("firstAvailable"))) or [single]:
            name = as_text(option.get("deviceClassName"))
            count = as_integer(option.get("count"))
            number = _MOST_DEVICES if as_text(option.get("allocationMode")) == "All" else 1 if count is None else count
            most[name] = max(most.get(name, 0), number)
        _add(counts, {name: count * _ONE for name, count in most.items() if name})
    used = {f"{name}.deviceclass.resource.k8s.io/devices": milli for name, milli in counts.items()}
    # The first release that counts claims as the extended resource of their class.
    if release >= (1, 36):
        for name, milli in counts.items():
            used[f"requests.{CLASS_RESOURCE}{name}"] = milli
            if resources.get(name):
                _add(used, {f"requests.{resources[name]}": milli})
    return used


_REQUIRED = frozenset(("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"))
"""Resources that every container must set if a quota has them."""

_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_ONE = 1000


class Use(NamedTuple):
    """What one object takes from one quota: thousandths of a resource."""

    namespace: str
    quota: int
    """The index of the quota among those of the namespace; two may have no name."""
    resource: str
    milli: int


class MissingAmount(NamedTuple):
    """A container that does not set what a quota requires of every container."""

    container: str
    node: Place
    resource: str
    quota: Mapping[str, Plain]


class Excess(NamedTuple):
    """A resource of a quota that objects exceed: the objects by what they take, largest first."""

    quota: Mapping[str, Plain]
    resource: str
    hard: Plain
    total: int
    takers: tuple[tuple[object, int], ...]


def measure_use(manifest: Manifest, state: ClusterState) -> list[Use]:
    """Return what an object, its pods and its claims take from each quota of its namespace."""
    kind, namespace, _ = name_object(manifest.object)
    quotas = state.quotas.get(namespace, ())
    if not quotas or kind in CLUSTER_KINDS:
        return []
    totals: dict[tuple[int, str], int] = {}
    for amounts, pod in _list_uses(manifest, state):
        for index, quota in enumerate(quotas):
            hard = _hard(quota)
            taken = [resource for resource in amounts if amounts[resource] and resource in hard]
            for key in [(index, resource) for resource in taken] if taken and _matches(quota, pod, state) else ():
                totals[key] = totals.get(key, 0) + amounts[key[1]]
    return [Use(namespace, index, resource, milli) for (index, resource), milli in totals.items()]


def find_missing_amounts(manifest: Manifest, state: ClusterState) -> Iterator[MissingAmount]:
    """Find containers without a request or limit that a quota of their namespace requires."""
    quotas = [quota for quota in state.quotas.get(manifest.namespace, ()) if not _REQUIRED.isdisjoint(_hard(quota))]
    seen: set[tuple[int, str]] = set()
    for pod, _ in count_pods(manifest) if quotas else ():
        if pod.partial or manifest.kind_name == "PodTemplate":
            continue
        resources = _resolve(pod, manifest, state)
        for quota in quotas if not resources.has_own else ():
            required = [str(name) for name in _hard(quota) if name in _REQUIRED]
            if not _matches(quota, (pod, resources), state):
                continue
            for container in resources.containers:
                for name in required:
                    field, _, resource = name.rpartition(".")
                    amounts = container.limits if field == "limits" else container.requests
                    key = (id(container.data), f"{field or 'requests'}.{resource}")
                    if resource not in amounts and key not in seen:
                        seen.add(key)
                        yield MissingAmount(container.name, container.place, key[1], quota)


def find_excesses(
    uses: Iterable[tuple[object, Iterable[Use]]], quotas: Mapping[str, Sequence[Mapping[str, Plain]]]
) -> Iterator[Excess]:
    """Find the quotas that an object exceeds alone, or else several together.

    `uses` are objects, each with what it takes.
    """
    takers: dict[tuple[str, int, str], list[tuple[object, int]]] = {}
    for owner, several in uses:
        for use in several:
            takers.setdefault((use.namespace, use.quota, use.resource), []).append((owner, use.milli))
    for (namespace, index, resource), found in takers.items():
        quota = quotas[namespace][index]
        hard = next(value for key, value in _hard(quota).items() if key == resource)
        allowed, total = to_milli(hard), sum(milli for _, milli in found)
        if allowed is None or total <= allowed:
            continue
        alone = [(owner, milli) for owner, milli in found if milli > allowed]
        for owner, milli in alone:
            yield Excess(quota, resource, hard, milli, ((owner, milli),))
        if not alone:
            yield Excess(quota, resource, hard, total, tuple(sorted(found, key=lambda taker: -taker[1])))


def find_largest_request(manifests: Sequence[Manifest], resource: str, state: ClusterState) -> Place:
    """Return the place of the largest request of objects for a resource of a quota; a name if there is none."""
    found = [pair for manifest in manifests for pair in _list_requests(manifest, resource, state)]
    names = [At(manifest.metadata, "name") for manifest in manifests if "name" in manifest.metadata]
    return max(found, key=lambda pair: pair[0])[1] if found else names[0] if names else manifests[0].metadata


def _list_requests(manifest: Manifest, resource: str, state: ClusterState) -> Iterator[tuple[int, At]]:
    field, _, name = resource.partition(".") if resource.startswith(("requests.", "limits.")) else ("", "", resource)
    for pod, count in count_created_pods(manifest, state):
        resources = _resolve(pod, manifest, state)
        amounts = resources.limits if field == "limits" else resources.requests
        if name in amounts and amounts[name].holder is not None:
            yield amounts[name].milli * count, At(amounts[name].holder, name)
    requests = as_mapping(as_mapping(manifest.spec.get("resources")).get("requests"))
    storage = requests.get("storage")
    if "storage" in resource and manifest.kind_name == "PersistentVolumeClaim" and storage is not None:
        yield to_milli(storage) or 0, At(requests, "storage")


def _hard(quota: Mapping[str, Plain]) -> Mapping[str, Plain]:
    return as_mapping(as_mapping(quota.get("spec")).get("hard"))


def _resolve(pod: Pod, manifest: Manifest, state: ClusterState) -> PodResources:
    return resolve_pod_resources(pod, state.limit_ranges.get(manifest.namespace, ()), state.release)


_PodUse = tuple[Pod, PodResources]


def _list_uses(manifest: Manifest, state: ClusterState) -> Iterator[tuple[dict[str, int], _PodUse | None]]:
    """Yield what an object takes: itself with its claims and jobs, then its pods with their templates and claims."""
    pods = [(pod, count, _resolve(pod, manifest, state)) for pod, count in count_created_pods(manifest, state) if count]
    own = _count_object(manifest)
    _add(own, _measure_object(manifest, state))
    for claim in iter_mappings(manifest.spec.get("volumeClaimTemplates")):
        _add(own, _measure_claim(as_mapping(claim.get("spec")), state), sum(count for _, count, _ in pods))
    for pod, count, _ in pods:
        for volume in iter_mappings(pod.spec.get("volumes")):
            template = as_mapping(as_mapping(volume.get("ephemeral")).get("volumeClaimTemplate"))
            if template:
                _add(own, _measure_claim(as_mapping(template.get("spec")), state), count)
        for claim in iter_mappings(pod.spec.get("resourceClaims")):
            name = as_text(claim.get("resourceClaimTemplateName"))
            spec = as_mapping(state.claim_templates.get((manifest.namespace, name), {}).get("spec")).get("spec")
            _add(own, {"count/resourceclaims.resource.k8s.io": _ONE} if name else {}, count)
            _add(own, measure_device_claim(spec, state.device_resources, state.release), count)
    yield own, None
    for pod, count, resources in pods:
        used = {"pods": _ONE, "count/pods": _ONE}
        for name, amount in resources.requests.items():
            used[f"requests.{name}"] = amount.milli
            if name in _COMPUTE or name.startswith("hugepages-"):
                used[name] = amount.milli
        used |= {f"limits.{name}": resources.limits[name].milli for name in _COMPUTE if name in resources.limits}
        yield {name: milli * count for name, milli in used.items()}, (pod, resources)


def _measure_object(manifest: Manifest, state: ClusterState) -> dict[str, int]:
    if manifest.kind_name == "PersistentVolumeClaim":
        return _measure_claim(manifest.spec, state)
    if manifest.kind_name == "Service":
        kind, ports = as_text(manifest.spec.get("type")), len(as_list(manifest.spec.get("ports")))
        has_node_ports = kind == "NodePort" or (
            kind == "LoadBalancer" and manifest.spec.get("allocateLoadBalancerNodePorts") is not False
        )
        used = {"services.nodeports": _ONE * ports} if has_node_ports else {}
        return {**used, "services.loadbalancers": _ONE} if kind == "LoadBalancer" else used
    if manifest.kind_name == "ResourceClaim":
        return measure_device_claim(manifest.spec, state.device_resources, state.release)
    if manifest.kind_name == "JobSet":
        counts = (job.get("replicas") for job in iter_mappings(manifest.spec.get("replicatedJobs")))
        return {"count/jobs.batch": _ONE * sum(n if type(n) is int and n >= 0 else 1 for n in counts)}
    return {"count/replicasets.apps": _ONE} if manifest.kind_name == "Deployment" else {}


def _count_object(manifest: Manifest) -> dict[str, int]:
    """The counts of the object itself. Pods are counted with their templates, claims with their storage."""
    group = as_text(manifest.object.get("apiVersion")).rpartition("/")[0]
    plural = manifest.kind.plural if manifest.kind and manifest.kind.plural else pluralize_kind(manifest.kind_name)
    if (group, plural) in (("", "pods"), ("", "persistentvolumeclaims")):
        return {}
    counts = {f"count/{plural}{'.' if group else ''}{group}": _ONE}
    if not group:
        counts[plural] = _ONE
    return counts


def _measure_claim(spec: Mapping[str, Plain], state: ClusterState) -> dict[str, int]:
    storage = to_milli(as_mapping(as_mapping(spec.get("resources")).get("requests")).get("storage")) or 0
    used = {"persistentvolumeclaims": _ONE, "requests.storage": storage}
    named = as_text(spec.get("storageClassName")) if "storageClassName" in spec else state.default_storage
    prefix = f"{named}.storageclass.storage.k8s.io/"
    by_class = {f"{prefix}{name}": milli for name, milli in used.items()} if named else {}
    return {**used, **by_class, "count/persistentvolumeclaims": _ONE}


def _add(total: dict[str, int], used: Mapping[str, int], count: int = 1) -> None:
    for name, milli in used.items():
        total[name] = total.get(name, 0) + milli * count


def _matches(quota: Mapping[str, Plain], pod: _PodUse | None, state: ClusterState) -> bool:
    """Return True if a quota applies: all its scopes match. Scopes match pods only."""
    spec = as_mapping(quota.get("spec"))
    scopes = [{"scopeName": node, "operator": "Exists"} for _, node in iter_strings(spec.get("scopes"))]
    selectors: list[Mapping[str, Plain]] = [*scopes]
    selectors += iter_mappings(as_mapping(spec.get("scopeSelector")).get("matchExpressions"))
    return not selectors or (pod is not None and all(_matches_scope(each, pod, state) for each in selectors))


def _matches_scope(selector: Mapping[str, Plain], used: _PodUse, state: ClusterState) -> bool:
    pod, resources = used
    scope = as_text(selector.get("scopeName"))
    if scope == "PriorityClass":
        name = as_text(pod.spec.get("priorityClassName")) or state.default_priority
        is_listed = name in [text for text, _ in iter_strings(selector.get("values"))]
        by_operator = {"Exists": bool(name), "DoesNotExist": not name, "In": is_listed, "NotIn": not is_listed}
        return by_operator.get(as_text(selector.get("operator")), False)
    deadline = pod.spec.get("activeDeadlineSeconds")
    is_terminating = type(deadline) is int and deadline >= 0
    matched = {
        "Terminating": is_terminating,
        "NotTerminating": not is_terminating,
        "BestEffort": resources.is_best_effort,
        "NotBestEffort": not resources.is_best_effort,
        "CrossNamespacePodAffinity": _crosses_namespaces(pod),
    }
    return matched.get(scope, False)


def _crosses_namespaces(pod: Pod) -> bool:
    affinity = as_mapping(pod.spec.get("affinity"))
    for field in ("podAffinity", "podAntiAffinity"):
        terms = as_mapping(affinity.get(field))
        required = list(iter_mappings(terms.get("requiredDuringSchedulingIgnoredDuringExecution")))
        preferred = iter_mappings(terms.get("preferredDuringSchedulingIgnoredDuringExecution"))
        required += [as_mapping(term.get("podAffinityTerm")) for term in preferred]
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in required):
            return True
    return False

"""Validate resources: requests and limits of containers and of the pod, and claims for devices."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from enum import Enum
from functools import lru_cache

from jobgen.check.admission.fields import (
    Fields,
    Validation,
    ValidatorTable,
    dns_label,
    dns_subdomain,
    is_set,
    iter_mappings,
    list_set_keys,
    report_missing,
    require_fields,
    validate_fields,
)
from jobgen.check.admission.names import DNS_LABEL, is_dns_label, is_label_key
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import Node, locatable, value_of
from jobgen.model.finding import FixStep
from jobgen.model.quantity import to_int64, to_milli
from jobgen.model.suggest import (
    describe_quantities,
    did_you_mean,
    quantity_evidence,
    suggest_entry,
    suggest_quantity,
    suggest_rename,
)

_STANDARD = ("cpu", "memory", "ephemeral-storage")
_HUGEPAGES_PREFIX = "hugepages-"
_HUGEPAGES_RULE = "invalid-hugepages"
_EMPTY: dict[str, Node] = {}


class ResourceClass(Enum):
    """How Kubernetes counts a resource."""

    NATIVE = "may be overcommitted"
    EXTENDED = "whole and never overcommitted"
    HUGEPAGES = "in pages and never overcommitted"
    UNKNOWN = "not a resource of containers"


# Global names, because the lookup of an enum member is slower than the rest of the check.
_NATIVE, _EXTENDED, _HUGEPAGES, _UNKNOWN = ResourceClass


@lru_cache(maxsize=1024)
def _classify_resource(name: str) -> ResourceClass:
    if name.startswith(_HUGEPAGES_PREFIX):
        return _HUGEPAGES if is_label_key(name) else _UNKNOWN
    if "/" not in name:
        return _NATIVE if name in _STANDARD else _UNKNOWN
    if not is_label_key(name):
        return _UNKNOWN
    if "kubernetes.io/" in name:
        return _NATIVE
    # The name has to be valid with the prefix that it has in a quota.
    is_valid = not name.startswith("requests.") and is_label_key(f"requests.{name}")
    return _EXTENDED if is_valid else _UNKNOWN


def is_container_resource(name: str) -> bool:
    """Return whether containers can request a resource."""
    return _classify_resource(name) is not _UNKNOWN


def validate_container_resources(key: str, value: Node, owner: Fields, pod: Validation) -> None:
    """Validate the requests, limits and claims of one container."""
    _validate_requirements(value, pod)
    if isinstance(value, dict) and "claims" in value:
        _validate_container_claims(value["claims"], key, pod)


def _validate_requirements(value: Node, pod: Validation, defaulted: AbstractSet[str] = frozenset()) -> None:
    """Validate requests and limits, alone and against each other; `defaulted` resources get a default request."""
    if not isinstance(value, dict):
        return
    limits, requests = value.get("limits"), value.get("requests")
    limits = limits if isinstance(limits, dict) else _EMPTY
    requests = requests if isinstance(requests, dict) else _EMPTY
    has_hugepages = _validate_resource_list(limits, pod) | _validate_resource_list(requests, pod)
    for name, request in requests.items():
        _validate_request(name, request, limits.get(name), value, pod)
    if has_hugepages and not (limits.keys() | requests.keys() | defaulted) & {"cpu", "memory"}:
        _report_hugepages_alone(value, pod)


def validate_overhead(key: str, value: Node, owner: Fields, pod: Validation) -> None:
    """Validate the overhead of the pod."""
    if isinstance(value, dict) and _validate_resource_list(value, pod) and not value.keys() & {"cpu", "memory"}:
        _report_hugepages_alone(value, pod)


def _report_hugepages_alone(node: Node, pod: Validation) -> None:
    pod.report(_HUGEPAGES_RULE, "huge pages require `cpu` or `memory` as well; set one of them", node)


def validate_quantity(key: str, value: Node, owner: Fields, pod: Validation) -> None:
    """Validate a quantity, which cannot be negative."""
    found = value_of(value)
    milli = to_milli(value)
    if milli is None:
        if type(found) is str:
            message = f"`{key}` is `{found}`, and must be {describe_quantities(key, value)}"
            pod.report("invalid-quantity", message, value, suggest_quantity(value), quantity_evidence(key, found))
    elif milli < 0:
        pod.report("negative-quantity", f"`{key}` must be at least 0, got `{found}`", value)


def _validate_resource_list(resources: Fields, pod: Validation) -> bool:
    """Validate requests or limits and return whether they contain huge pages."""
    has_hugepages = False
    for name, value in resources.items():
        if not is_set(value):
            continue
        resource_class = _classify_resource(name)
        milli = to_milli(value)
        if milli is None or milli < 0:
            validate_quantity(name, value, resources, pod)
        if resource_class is _UNKNOWN:
            _report_unknown(name, resources, pod)
        elif resource_class is _EXTENDED and milli is not None and (to_int64(value, -3) or 0) % 1000:
            # A rendered object has `500m` where `0.5` was written, so the message shows no value.
            message = f"`{name}` must be a whole number; a container gets whole devices"
            pod.report("fractional-device", message, value, values=(name, str(value_of(value))))
        elif resource_class is _HUGEPAGES:
            has_hugepages = True
            _validate_hugepages(name, value, milli, pod)
    return has_hugepages


def _report_unknown(name: str, resources: Fields, pod: Validation) -> None:
    known = [*_STANDARD, "hugepages-2Mi", "nvidia.com/gpu"]
    hint = did_you_mean(name, known) or "; use a standard resource such as cpu, or an extended one with a domain"
    message = f"containers cannot request the resource `{name}`{hint}"
    pod.report("unknown-resource", message, name, suggest_rename(name, known, resources))


def _validate_hugepages(name: str, value: Node, milli: int | None, pod: Validation) -> None:
    size = to_milli(name[len(_HUGEPAGES_PREFIX) :])
    if size is None or size <= 0 or size % 1000:
        pod.report(_HUGEPAGES_RULE, f"`{name}` does not contain a page size; write it like `hugepages-2Mi`", name)
    # Kubernetes rounds up to whole bytes.
    elif milli is not None and (-(-milli // 1000)) % (size // 1000):
        message = f"`{name}` is `{value_of(value)}`, but must be a whole number of pages"
        pod.report(_HUGEPAGES_RULE, message, value)


def _validate_request(name: str, request: Node, limit: Node, resources: Fields, pod: Validation) -> None:
    resource_class = _classify_resource(name)
    is_native = resource_class is _NATIVE
    if resource_class is _UNKNOWN or not is_set(request):
        return
    if not is_set(limit):
        if not is_native:
            _report_missing_limit(name, request, resources, pod)
        return
    requested, limited = to_milli(request), to_milli(limit)
    if requested is None or limited is None or requested == limited:
        return
    if pod.drops_nulls and float in (type(value_of(request)), type(value_of(limit))):
        # The schema of the custom resource refuses floats.
        return
    subject = f"the request for `{name}` is `{value_of(request)}`"
    if not is_native:
        message = f"{subject}, but its limit is `{value_of(limit)}`; they must be equal"
        if resource_class is _HUGEPAGES:
            pod.report(_HUGEPAGES_RULE, message, request)
        else:
            # Unsafe: either of the two numbers may be the one that was meant.
            pod.report("gpu-request-limit-mismatch", message, request, ((FixStep("set", request, limit),), False))
    elif requested > limited:
        message = f"{subject}, more than its limit `{value_of(limit)}`; lower the request"
        pod.report("request-exceeds-limit", message, request, ((FixStep("set", request, limit),), False))


def _report_missing_limit(name: str, request: Node, resources: Fields, pod: Validation) -> None:
    message = f"`{name}` has a request but no limit, and cannot be overcommitted; set a limit equal to the request"
    limits = resources.get("limits")
    if isinstance(limits, dict) and limits:
        steps = suggest_entry(name, request, limits)
    else:
        steps = suggest_entry("limits", {name: request}, resources)
    pod.report("missing-resource-limit", message, name, (steps, True))


_POD_RULE = "inconsistent-pod-resources"


def validate_pod_resources(key: str, value: Node, owner: Fields, pod: Validation) -> None:
    """Validate the requests and limits of the whole pod against those of its containers."""
    if not isinstance(value, dict):
        return
    if is_set(value.get("claims")):
        pod.report(_POD_RULE, "`claims` cannot be set for the pod; move them to containers", value["claims"])
    requests = as_mapping(value.get("requests"))
    _validate_requirements(value, pod, _list_defaulted(value, pod))
    for name, node in as_mapping(value.get("limits")).items():
        _validate_pod_resource_name(name, pod)
        _validate_pod_limit(name, node, pod, has_request=name in requests)
    for name, node in requests.items():
        _validate_pod_resource_name(name, pod)
        requested = to_milli(node)
        if requested is not None and _sum_requests(name, pod) > requested:
            message = (
                f"the pod's request for `{name}` is `{value_of(node)}`, less than its containers together; raise it"
            )
            pod.report(_POD_RULE, message, node)


def _list_defaulted(resources: Fields, pod: Validation) -> AbstractSet[str]:
    """Return the resources that a pod with limits requests because its containers do; templates get no such default."""
    if pod.is_template or not as_mapping(resources.get("limits")):
        return frozenset()
    containers = pod.iter_containers("containers", "initContainers")
    return {name for one in containers for field in ("limits", "requests") for name, _ in _iter_amounts(one, field)}


def _validate_pod_resource_name(name: str, pod: Validation) -> None:
    if name not in ("cpu", "memory") and not name.startswith(_HUGEPAGES_PREFIX):
        pod.report("unknown-resource", f"`{name}` cannot be set for the pod; move it to containers", name)


def _validate_pod_limit(name: str, node: Node, pod: Validation, *, has_request: bool) -> None:
    limit = to_milli(node)
    if limit is None:
        return
    subject = f"the pod limits `{name}` to `{value_of(node)}`"
    for container in pod.iter_containers("containers"):
        if dict(_iter_amounts(container, "limits")).get(name, 0) > limit:
            pod.report(_POD_RULE, f"{subject}, less than the limit of a container; raise it", node)
    # Without a request of its own, the pod requests what its containers request together.
    if not has_request and _sum_requests(name, pod) > limit:
        pod.report(_POD_RULE, f"{subject}, less than its containers request together; raise it", node)


def _sum_requests(name: str, pod: Validation) -> int:
    """Return what the containers request together, or what the largest init container needs, if that is more."""
    total = sum(_get_request(container, name) for container in pod.iter_containers("containers"))
    sidecars = largest = 0
    for container in pod.iter_containers("initContainers"):
        request = _get_request(container, name)
        if as_text(container.get("restartPolicy")) == "Always":
            sidecars += request
            total += request
            largest = max(largest, sidecars)
        else:
            largest = max(largest, sidecars + request)
    return max(total, largest)


def _get_request(container: Fields, name: str) -> int:
    """Return the request of a container, which defaults to its limit."""
    amounts = dict(_iter_amounts(container, "limits"))
    amounts.update(_iter_amounts(container, "requests"))
    return amounts.get(name, 0)


def _iter_amounts(container: Fields, field: str) -> Iterator[tuple[str, int]]:
    resources = as_mapping(container.get("resources"))
    for name, node in as_mapping(resources.get(field)).items():
        milli = to_milli(node)
        if milli is not None:
            yield name, milli


_CLAIM_RULE = "invalid-resource-claim"
_validate_claim_object_name = dns_subdomain("invalid-object-name", "object name", allow_empty=False)
_RESOURCE_CLAIM: ValidatorTable = {
    "name": dns_label(_CLAIM_RULE, "claim name"),
    "resourceClaimName": _validate_claim_object_name,
    "resourceClaimTemplateName": _validate_claim_object_name,
}


def validate_resource_claims(key: str, value: Node, owner: Fields, pod: Validation) -> None:
    """Validate the claims for devices that the pod shares with its containers."""
    names: set[str] = set()
    for claim in iter_mappings(value):
        validate_fields(claim, _RESOURCE_CLAIM, pod)
        require_fields("a resource claim", claim, ("name",), key, pod)
        name = as_text(claim.get("name"))
        if name and name in names:
            pod.report(_CLAIM_RULE, f"two resource claims are named `{name}`; rename one of them", claim["name"])
        names.add(name)
        given = list_set_keys(claim, ("resourceClaimName", "resourceClaimTemplateName"))
        if len(given) != 1:
            message = "a resource claim requires exactly one of `resourceClaimName` and `resourceClaimTemplateName`"
            pod.report(_CLAIM_RULE, message, given[-1] if given else locatable(claim, key))


def _validate_container_claims(value: Node, parent: str, pod: Validation) -> None:
    """Validate the claims of the pod that a container uses."""
    known = {as_text(claim.get("name")) for claim in iter_mappings(pod.spec.get("resourceClaims"))} - {""}
    used: set[tuple[str, str]] = set()
    for claim in iter_mappings(value):
        name, request = as_text(claim.get("name")), as_text(claim.get("request"))
        if not name:
            report_missing("a claim", claim, "name", parent, pod)
            continue
        if name not in known:
            hint = did_you_mean(name, sorted(known)) or "; add it there"
            message = f"`resourceClaims` of the pod has no `{name}`{hint}"
            pod.report(_CLAIM_RULE, message, claim["name"])
        if request and not is_dns_label(request):
            pod.report(_CLAIM_RULE, f"`{request}` is not a valid request name; {DNS_LABEL}", claim["request"])
        # A claim without a request contains all its requests.
        if (name, request) in used or (name, "") in used or (not request and any(name == one for one, _ in used)):
            pod.report(_CLAIM_RULE, f"the container uses claim `{name}` twice; delete one of them", claim["name"])
        used.add((name, request))

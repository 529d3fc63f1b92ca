"""Validate where a pod may run: selectors, affinity, topology spread, tolerations and gates."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from enum import Enum
from functools import lru_cache

from jobgen.check.admission.fields import (
    POD,
    Entry,
    Fields,
    Validation,
    Validator,
    dns_label,
    dns_subdomain,
    each,
    fields,
    find_mapping,
    is_empty,
    is_set,
    iter_texts,
    list_mappings,
    list_set_keys,
    mapping,
    number,
    one_of,
    qualified_name,
    require_set,
)
from jobgen.check.admission.metadata import describe_label_key, validate_labels
from jobgen.check.admission.names import (
    DNS_LABEL,
    DNS_SUBDOMAIN,
    LABEL_KEY,
    LABEL_VALUE,
    is_dns_label,
    is_dns_subdomain,
    is_label_key,
    is_label_value,
)
from jobgen.k8s.devices import find_meant_device
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import Plain
from jobgen.model.finding import FixStep
from jobgen.model.place import At, Place
from jobgen.model.quantity import MAX_INT64, to_int64, to_milli
from jobgen.model.sentence import Sentence, Words
from jobgen.model.suggest import (
    ask_for,
    describe_quantities,
    did_you_mean,
    find_closest,
    quantity_evidence,
    suggest_entry,
    suggest_quantity,
    suggest_rename,
    takes_any_name,
)

_SELECTOR_RULE = "invalid-selector"
_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_FIELD_OPERATORS = ("In", "NotIn")
_NONE, _ONE, _SOME = range(1), range(1, 2), range(1, 1 << 62)
_VALUE_COUNTS = {"In": _SOME, "NotIn": _SOME, "Exists": _NONE, "DoesNotExist": _NONE, "Gt": _ONE, "Lt": _ONE}
_COUNT_NAMES = {_NONE: "no values", _ONE: "exactly one value", _SOME: "at least one value"}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_SPREAD_RULE = "invalid-topology-spread"
_TOLERATION_RULE = "invalid-toleration"
# `Lt` and `Gt` need a feature gate that is off by default.
_TOLERATION_OPERATORS = ("Exists", "Equal")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_GATE_RULE = "invalid-gate"
_validate_gate_name = qualified_name(_GATE_RULE, "gate name")
_check_scheduling_gate = fields("a scheduling gate", {"name": _validate_gate_name}, "name")


def _validate_requirement(entry: Entry, item: Fields, operators: tuple[str, ...], pod: Validation) -> None:
    operator = as_text(item.get("operator"))
    values = item.get("values")
    if operator not in operators:
        if operator:
            pod.report_unsupported("operator", At(item, "operator"), operators)
        else:
            pod.report_missing("a selector", item, "operator", entry)
        return
    if is_set(values) and not isinstance(values, list):
        # The schema reports it.
        return
    wanted = _ONE if operators is _FIELD_OPERATORS else _VALUE_COUNTS[operator]
    count = len(values) if isinstance(values, list) else 0
    if count not in wanted:
        message = Sentence("`{}` requires {}, got {}", operator, _COUNT_NAMES[wanted], count)
        pod.report(_SELECTOR_RULE, message, At(item, "operator" if count or "values" not in item else "values"))


def _requirements(operators: tuple[str, ...], *, has_label_values: bool) -> Validator:
    """Return a validator for requirements of labels; Kubernetes does not validate the values of a preference."""

    def check(item: Fields, entry: Entry, pod: Validation) -> None:
        _validate_requirement(entry, item, operators, pod)
        found = as_text(item.get("key"))
        if is_empty(item.get("key")):
            pod.report_missing("a selector", item, "key", entry)
        elif found and not is_label_key(found):
            pod.report("invalid-label", describe_label_key(found), At(item, "key"))
        for label, node in iter_texts(item.get("values")) if has_label_values else ():
            if not is_label_value(label):
                pod.report("invalid-label", Sentence("`{}` is not a valid label value; {}", label, LABEL_VALUE), node)

    return mapping({}, check)


def _validate_label_requirement(key: str, item: Plain, owner: Fields, pod: Validation) -> None:
    if item is None and not pod.drops_nulls:
        # Kubernetes reads it as an empty requirement.
        pod.require_fields("a selector", {}, ("operator", "key"), (owner, key))
    _validate_labels_of_object(key, item, owner, pod)


def _check_node_fields(item: Fields, entry: Entry, pod: Validation) -> None:
    _validate_requirement(entry, item, _FIELD_OPERATORS, pod)
    field = item.get("key")
    if field != "metadata.name":
        message = Sentence("nodes cannot be selected by the field `{}`; use `metadata.name`", field)
        pod.report(_SELECTOR_RULE, message, At(item, "key") if "key" in item else find_mapping(item, entry))
        return
    for found, node in iter_texts(item.get("values")):
        if not is_dns_subdomain(found):
            pod.report("invalid-object-name", Sentence("`{}` is not a valid node name; {}", found, DNS_SUBDOMAIN), node)


def _node_term(*, is_required: bool) -> Validator:
    labels = _requirements((*_LABEL_OPERATORS, "Gt", "Lt"), has_label_values=is_required)
    return mapping({"matchExpressions": each(labels), "matchFields": each(mapping({}, _check_node_fields))})


def _check_match_label_keys(term: Fields, entry: Entry, pod: Validation) -> None:
    """Check the label keys whose values Kubernetes takes from the pod and adds to the selector."""
    selector = term.get("labelSelector")
    for field in ("matchLabelKeys", "mismatchLabelKeys"):
        if is_empty(term.get(field)):
            continue
        if not isinstance(selector, dict):
            pod.report(_SELECTOR_RULE, Sentence("`{}` requires `labelSelector`; set it", field), At(term, field))
            continue
        for found, node in iter_texts(term[field]):
            if not is_label_key(found):
                pod.report("invalid-label", describe_label_key(found), node)
    if not isinstance(selector, dict) or "matchLabelKeys" not in term:
        return
    pod_labels = as_mapping(pod.metadata.get("labels"))
    mismatched = {found for found, _ in iter_texts(term.get("mismatchLabelKeys"))}
    selected = [*as_mapping(selector.get("matchLabels"))]
    selected += [as_text(item.get("key")) for item in list_mappings(selector.get("matchExpressions"))]
    matched = list(iter_texts(term["matchLabelKeys"]))
    # The API server adds a requirement for each key that the pod has as a label.
    selected += [found for found, _ in matched if found in pod_labels]
    for found, node in matched:
        if found in mismatched or selected.count(found) > 1:
            other = "mismatchLabelKeys" if found in mismatched else "labelSelector"
            pod.report(
                _SELECTOR_RULE,
                Sentence("`{}` is in both `matchLabelKeys` and `{}`; delete one of them", found, other),
                node,
            )


def _preferences(field: str, validate_term: Validator, *required: str) -> Validator:
    check = require_set("a preference", "weight", *required)
    return each(mapping({"weight": number(1, 100), field: validate_term}, check))


def validate_topology_spread(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    """Validate topology spread constraints; no two may have the same key and action."""
    pairs: set[tuple[str, str]] = set()
    for constraint in list_mappings(value):
        _check_spread_constraint(constraint, (owner, key), pod)
        pair = (as_text(constraint.get("topologyKey")), as_text(constraint.get("whenUnsatisfiable")))
        if all(pair) and pair in pairs:
            message = Sentence("two constraints have the key `{}` with `{}`; delete one of them", pair[0], pair[1])
            pod.report(_SPREAD_RULE, message, At(constraint, "topologyKey"))
        pairs.add(pair)
        if is_set(constraint.get("minDomains")) and pair[1] != "DoNotSchedule":
            message = Sentence("`minDomains` requires `whenUnsatisfiable: DoNotSchedule`, got `{}`", pair[1])
            pod.report(_SPREAD_RULE, message, At(constraint, "minDomains"))


def _check_toleration(item: Fields, entry: Entry, pod: Validation) -> None:
    key, operator, effect = as_text(item.get("key")), as_text(item.get("operator")), as_text(item.get("effect"))
    if key:
        if not is_label_key(key):
            pod.report(_TOLERATION_RULE, Sentence("`{}` is not a valid taint key; {}", key, LABEL_KEY), At(item, "key"))
    elif operator != "Exists":
        message = Sentence("a toleration without `key` requires `operator: Exists`; set one of them")
        given = next((name for name in ("key", "operator") if name in item), "")
        pod.report(_TOLERATION_RULE, message, At(item, given) if given else find_mapping(item, entry))
    value = as_text(item.get("value"))
    if operator not in _TOLERATION_OPERATORS and operator:
        pod.report_unsupported("operator", At(item, "operator"), _TOLERATION_OPERATORS)
    elif operator == "Exists" and value:
        message = Sentence("`operator: Exists` cannot have a `value`, got `{}`; delete it", value)
        pod.report(_TOLERATION_RULE, message, At(item, "value"))
    elif operator != "Exists" and not is_label_value(value):
        pod.report(
            _TOLERATION_RULE, Sentence("`{}` is not a valid taint value; {}", value, LABEL_VALUE), At(item, "value")
        )
    if effect and effect not in _EFFECTS:
        pod.report_unsupported("effect", At(item, "effect"), _EFFECTS)
    if "tolerationSeconds" in item and effect != "NoExecute" and is_set(item["tolerationSeconds"]):
        message = Sentence("`tolerationSeconds` requires `effect: NoExecute`, got `{}`", effect)
        pod.report(_TOLERATION_RULE, message, At(item, "effect" if "effect" in item else "tolerationSeconds"))


def validate_scheduling_gates(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    """Validate the gates that delay scheduling; the pod cannot have a node already."""
    names: set[str] = set()
    for gate in list_mappings(value):
        _check_scheduling_gate(gate, (owner, key), pod)
        name = as_text(gate.get("name"))
        if name and name in names:
            pod.report(
                _GATE_RULE, Sentence("two scheduling gates are named `{}`; delete one of them", name), At(gate, "name")
            )
        names.add(name)
    if not is_empty(value) and (node_name := as_text(pod.spec.get("nodeName"))):
        message = Sentence("`nodeName` is `{}`, but a pod with `schedulingGates` cannot have a node", node_name)
        pod.report(_GATE_RULE, Sentence("{}; delete one of them", message), At(pod.spec, "nodeName"))


_validate_labels_of_object = _requirements(_LABEL_OPERATORS, has_label_values=True)
validate_label_selector = mapping(
    {"matchLabels": validate_labels, "matchExpressions": each(_validate_label_requirement)}
)
validate_node_selector = mapping({"nodeSelectorTerms": each(_node_term(is_required=True))}, "nodeSelectorTerms")
_validate_pod_affinity_term = mapping(
    {
        "labelSelector": validate_label_selector,
        "namespaceSelector": validate_label_selector,
        "namespaces": each(dns_label("invalid-object-name", "namespace name", allow_empty=False)),
        "topologyKey": qualified_name("invalid-label", "label key"),
    },
    _check_match_label_keys,
    fields("an affinity term", {}, "topologyKey"),
)
_validate_pod_affinity = mapping(
    {
        _REQUIRED: each(_validate_pod_affinity_term),
        _PREFERRED: _preferences("podAffinityTerm", _validate_pod_affinity_term, "podAffinityTerm"),
    }
)
validate_affinity = mapping(
    {
        "nodeAffinity": mapping(
            {_REQUIRED: validate_node_selector, _PREFERRED: _preferences("preference", _node_term(is_required=False))}
        ),
        "podAffinity": _validate_pod_affinity,
        "podAntiAffinity": _validate_pod_affinity,
    }
)
_check_spread_constraint = fields(
    "a topology spread constraint",
    {
        "maxSkew": number(1),
        "minDomains": number(1),
        "whenUnsatisfiable": one_of("", "DoNotSchedule", "ScheduleAnyway"),
        "nodeAffinityPolicy": one_of("Honor", "Ignore"),
        "nodeTaintsPolicy": one_of("Honor", "Ignore"),
        "labelSelector": validate_label_selector,
    },
    "maxSkew",
    "topologyKey",
    "whenUnsatisfiable",
    _check_match_label_keys,
)
validate_tolerations = each(mapping({}, _check_toleration))

validate_readiness_gates = each(mapping({"conditionType": _validate_gate_name}, "conditionType"))


# Validate resources: requests and limits of containers and of the pod, and claims for devices.

_STANDARD = ("cpu", "memory", "ephemeral-storage")
_GPU = "nvidia.com/gpu"
_HUGEPAGES_PREFIX = "hugepages-"
_HUGEPAGES_RULE = "invalid-hugepages"
_EMPTY: dict[str, Plain] = {}
_POD_RULE = "inconsistent-pod-resources"
_CLAIM_RULE = "invalid-resource-claim"
_validate_claim_object_name = dns_subdomain("invalid-object-name", "object name", allow_empty=False)
_check_resource_claim = fields(
    "a resource claim",
    {
        "name": dns_label(_CLAIM_RULE, "claim name"),
        "resourceClaimName": _validate_claim_object_name,
        "resourceClaimTemplateName": _validate_claim_object_name,
    },
    "name",
)


class ResourceClass(Enum):
    """How Kubernetes counts a resource."""

    NATIVE = "can be overcommitted"
    EXTENDED = "whole and never overcommitted"
    HUGEPAGES = "in pages and never overcommitted"
    UNKNOWN = "not a resource of containers"


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
    """Return True if containers can request a resource."""
    return _classify_resource(name) is not _UNKNOWN


def validate_container_resources(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    """Validate the requests and limits of one container, and the claims of the pod that it uses."""
    _validate_requirements(value, pod)
    if not isinstance(value, dict) or "claims" not in value:
        return
    known = {as_text(claim.get("name")) for claim in list_mappings(pod.spec.get("resourceClaims"))} - {""}
    used: set[tuple[str, str]] = set()
    for claim in list_mappings(value["claims"]):
        name, request = as_text(claim.get("name")), as_text(claim.get("request"))
        if not name:
            pod.report_missing("a claim", claim, "name", (owner, key))
            continue
        if name not in known:
            hint = did_you_mean(name, sorted(known)) or "; add it there"
            pod.report(
                _CLAIM_RULE, Sentence("`resourceClaims` of the pod has no `{}`{}", name, hint), At(claim, "name")
            )
        if request and not is_dns_label(request):
            pod.report(
                _CLAIM_RULE, Sentence("`{}` is not a valid request name; {}", request, DNS_LABEL), At(claim, "request")
            )
        # A claim without a request contains all its requests.
        if (name, request) in used or (name, "") in used or (not request and any(name == one for one, _ in used)):
            pod.report(
                _CLAIM_RULE,
                Sentence("the container uses claim `{}` twice; delete one of them", name),
                At(claim, "name"),
            )
        used.add((name, request))


def _validate_requirements(value: Plain, pod: Validation, defaulted: AbstractSet[str] = frozenset()) -> None:
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


def validate_overhead(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    """Validate the overhead of the pod, which only a RuntimeClass can define."""
    if isinstance(value, dict) and pod.subject is POD and not as_text(pod.spec.get("runtimeClassName")):
        pod.report(
            "invalid-value", Sentence("`{}` requires a RuntimeClass that defines it; delete it", key), (owner, key)
        )
    if isinstance(value, dict) and _validate_resource_list(value, pod) and not value.keys() & {"cpu", "memory"}:
        _report_hugepages_alone(value, pod)


def _report_hugepages_alone(place: Place, pod: Validation) -> None:
    pod.report(_HUGEPAGES_RULE, "huge pages require `cpu` or `memory` as well; set one of them", place)


def validate_quantity(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    """Validate a quantity, which cannot be negative."""
    milli = to_milli(value)
    if milli is None:
        if type(value) is str:
            message = Sentence("`{}` is `{}`, and must be {}", key, value, describe_quantities(key, value))
            fix = suggest_quantity(At(owner, key), key)
            pod.report("invalid-quantity", message, At(owner, key), fix, quantity_evidence(key, value))
    elif milli < 0:
        pod.report("negative-quantity", Sentence("`{}` must be at least 0, got `{}`", key, value), At(owner, key))


def _validate_resource_list(resources: Fields, pod: Validation) -> bool:
    """Validate requests or limits and return whether they contain huge pages."""
    has_hugepages = False
    for name, value in resources.items():
        if not is_set(value):
            continue
        resource_class = _classify_resource(name)
        milli = to_milli(value)
        if resource_class is _UNKNOWN and _is_other_field(name, milli, resources, pod):
            continue
        if milli is None or milli < 0:
            validate_quantity(name, value, resources, pod)
        if resource_class is _UNKNOWN:
            _report_unknown_resource(name, resources, pod)
        elif resource_class is _EXTENDED and milli is not None and _is_fractional(value, milli):
            # A rendered object has `500m` where `0.5` was written, so the message shows no value.
            message = Sentence("`{}` must be a whole number; a container gets whole devices", name)
            pod.report("fractional-device", message, At(resources, name), values=(name, str(value)))
        elif resource_class is _HUGEPAGES:
            has_hugepages = True
            size = to_milli(name[len(_HUGEPAGES_PREFIX) :])
            if size is None or size <= 0 or size % 1000:
                message = Sentence("`{}` does not contain a page size; write it like `hugepages-2Mi`", name)
                pod.report(_HUGEPAGES_RULE, message, (resources, name))
            # Kubernetes rounds up to whole bytes.
            elif milli is not None and (-(-milli // 1000)) % (size // 1000):
                message = Sentence("`{}` is `{}`, but must be a whole number of pages", name, value)
                pod.report(_HUGEPAGES_RULE, message, At(resources, name))
    return has_hugepages


def _report_missing_limit(name: str, request: Plain, resources: Fields, pod: Validation) -> None:
    message = Sentence("`{}` has a request but no limit", name)
    limits = resources.get("limits")
    misspelled = _find_misspelled(name, as_mapping(limits), as_mapping(resources.get("requests")))
    if misspelled is not None:
        wrong, right = misspelled
        message = Sentence("{}, because `{}` is another resource; did you mean `{}`?", message, wrong.key, right)
        rename = FixStep("rename", wrong, right)
        pod.report("missing-resource-limit", message, wrong, ((rename,), True), meant=right)
        return
    if isinstance(limits, dict) and limits:
        steps = suggest_entry(name, request, limits)
    else:
        steps = suggest_entry("limits", {name: request}, resources)
    message = Sentence("{}, and cannot be overcommitted; set a limit equal to the request", message)
    pod.report("missing-resource-limit", message, (resources["requests"], name), (steps, True))


def _find_misspelled(name: str, limits: Fields, requests: Fields) -> tuple[At, str] | None:
    """Return the misspelled key and the right one, if the request and a limit mean one device by two names."""
    for other in limits:
        if other not in requests and find_meant_device(other) == name:
            return At(limits, other, is_key=True), name
        if other not in requests and find_meant_device(name) == other:
            return At(requests, name, is_key=True), other
    return None


_OTHER_FIELDS = {
    **dict.fromkeys(("shm", "shm_size", "shmSize"), "mount an `emptyDir` with `medium: Memory` at `/dev/shm`"),
    **dict.fromkeys(
        ("time", "timeLimit", "time_limit", "timeout", "walltime"),
        "write the seconds as `activeDeadlineSeconds` of the pod, beside `containers`",
    ),
    **dict.fromkeys(("disk", "storage"), "write `ephemeral-storage`, or mount a claim"),
}
"""What to write for names below `resources` that mean another field."""


def _is_other_field(name: str, milli: int | None, resources: Fields, pod: Validation) -> bool:
    """Report a name below `resources` that means another field, whose value is no amount."""
    advice = _OTHER_FIELDS.get(name, "")
    if not advice and (milli is not None or find_closest(name, [*_STANDARD]) or "gpu" in name.lower()):
        return False
    advice = advice or "remove it, or write an extended resource with its domain"
    message = Sentence("containers cannot request the resource `{}`; {}", name, advice)
    pod.report("unknown-resource", message, At(resources, name, is_key=True))
    return True


def _report_unknown_resource(name: str, resources: Fields, pod: Validation) -> None:
    message, place = Sentence("containers cannot request the resource `{}`", name), At(resources, name, is_key=True)
    if "gpu" in name.lower() and "/" not in name and _GPU not in resources:
        rename = FixStep("rename", place, _GPU)
        pod.report("unknown-resource", Sentence("{}{}", message, ask_for(_GPU)), place, ((rename,), False), meant=_GPU)
        return
    known = [one for one in (*_STANDARD, "hugepages-2Mi", _GPU) if one not in resources]
    meant = find_closest(name, known)
    hint = ask_for(meant) or "; use a standard resource such as cpu, or an extended one with a domain"
    fix = suggest_rename(place, known, resources, takes_any_name)
    pod.report("unknown-resource", Sentence("{}{}", message, hint), place, fix, meant=meant)


def _is_fractional(value: Plain, milli: int) -> bool:
    """Return True if Go reads an amount as a fraction: what exceeds 64 bits wraps."""
    amount = milli if -MAX_INT64 <= milli <= MAX_INT64 else to_int64(value, -3) or 0
    return amount % 1000 != 0


def _validate_request(name: str, request: Plain, limit: Plain, resources: Fields, pod: Validation) -> None:
    resource_class = _classify_resource(name)
    is_native = resource_class is _NATIVE
    if resource_class is _UNKNOWN or request == limit or not is_set(request):
        return
    if not is_set(limit):
        if not is_native:
            _report_missing_limit(name, request, resources, pod)
        return
    requested, limited = to_milli(request), to_milli(limit)
    if requested is None or limited is None or requested == limited:
        return
    if pod.drops_nulls and float in (type(request), type(limit)):
        # The schema of the custom resource refuses floats.
        return
    subject = f"the request for `{name}` is `{request}`"
    if not is_native:
        message = Sentence("{}, but its limit is `{}`; they must be equal", subject, limit)
        if resource_class is _HUGEPAGES:
            pod.report(_HUGEPAGES_RULE, message, At(resources["requests"], name))
        else:
            # Unsafe: either of the two numbers may be the one that was meant.
            _report_request("gpu-request-limit-mismatch", message, At(resources["requests"], name), limit, pod)
    elif requested > limited:
        message = Sentence("{}, more than its limit `{}`", subject, limit)
        _report_excess(request, limit, message, At(resources["requests"], name), pod)


def _report_excess(request: Plain, limit: Plain, message: Sentence, place: At, pod: Validation) -> None:
    """Report a request above its limit: one of the two may have another unit than was meant."""
    name, limited = place.key, to_milli(limit) or 0
    if _read_number(request) == _read_number(limit):
        # No node has so many CPUs: such a request lacks the unit of its limit.
        is_too_large = name == "cpu" and (to_milli(request) or 0) >= 1000 * _MANY_CPUS
        meant = limit if is_too_large else request
        pod.report("request-exceeds-limit", Sentence("{}; write one unit in both, such as `{}`", message, meant), place)
    elif name == "memory" and limited < 1000 * _LEAST_MEMORY:
        # The limit is the one at fault.
        pod.report("request-exceeds-limit", Sentence("{}; raise the limit", message), place)
    else:
        _report_request("request-exceeds-limit", Sentence("{}; lower the request", message), place, limit, pod)


def _read_number(amount: Plain) -> str:
    """Return the number of an amount, without its unit, as it is written."""
    return str(amount).rstrip("KMGTPEkmiun")


_MANY_CPUS = 200
_LEAST_MEMORY = 2**20


def _report_request(rule: str, message: Words, place: At, limit: Plain, pod: Validation) -> None:
    pod.report(rule, message, place, ((FixStep("set", place, limit),), False))


def _check_pod_resources(resources: Fields, entry: Entry, pod: Validation) -> None:
    """Check the requests and limits of the whole pod against those of its containers."""
    if is_set(resources.get("claims")):
        pod.report(_POD_RULE, "`claims` cannot be set for the pod; move them to containers", At(resources, "claims"))
    limits, requests = as_mapping(resources.get("limits")), as_mapping(resources.get("requests"))
    # A pod with limits also requests what its containers do; templates get no such default.
    containers = pod.iter_containers("containers", "initContainers") if limits and not pod.is_template else ()
    amounts = (_iter_amounts(one, field) for one in containers for field in ("limits", "requests"))
    defaulted = {name for found in amounts for name, _ in found}
    _validate_requirements(resources, pod, defaulted)
    for name, node in limits.items():
        _validate_pod_resource_name(name, limits, pod)
        limit = to_milli(node)
        if limit is None:
            continue
        subject = f"the pod limits `{name}` to `{node}`"
        for container in pod.iter_containers("containers"):
            if dict(_iter_amounts(container, "limits")).get(name, 0) > limit:
                pod.report(
                    _POD_RULE, Sentence("{}, less than the limit of a container; raise it", subject), At(limits, name)
                )
        # Without a request of its own, the pod requests what its containers request together.
        if name not in requests and _sum_requests(name, pod) > limit:
            pod.report(
                _POD_RULE,
                Sentence("{}, less than its containers request together; raise it", subject),
                At(limits, name),
            )
    for name, node in requests.items():
        _validate_pod_resource_name(name, requests, pod)
        requested = to_milli(node)
        if requested is not None and _sum_requests(name, pod) > requested:
            message = Sentence("the pod's request for `{}` is `{}`, less than its containers together", name, node)
            pod.report(_POD_RULE, Sentence("{}; raise it", message), At(requests, name))


def _validate_pod_resource_name(name: str, resources: Fields, pod: Validation) -> None:
    if name not in ("cpu", "memory") and not name.startswith(_HUGEPAGES_PREFIX):
        pod.report(
            "unknown-resource",
            Sentence("`{}` cannot be set for the pod; move it to containers", name),
            (resources, name),
        )


def _sum_requests(name: str, pod: Validation) -> int:
    """Return what the containers request together, or what the largest init container needs, if that is more."""

    def get_request(container: Fields) -> int:
        # The default is the limit.
        return {**dict(_iter_amounts(container, "limits")), **dict(_iter_amounts(container, "requests"))}.get(name, 0)

    total = sum(map(get_request, pod.iter_containers("containers")))
    sidecars = largest = 0
    for container in pod.iter_containers("initContainers"):
        request = get_request(container)
        if as_text(container.get("restartPolicy")) == "Always":
            sidecars += request
            total += request
            largest = max(largest, sidecars)
        else:
            largest = max(largest, sidecars + request)
    return max(total, largest)


def _iter_amounts(container: Fields, field: str) -> Iterator[tuple[str, int]]:
    resources = as_mapping(container.get("resources"))
    for name, node in as_mapping(resources.get(field)).items():
        milli = to_milli(node)
        if milli is not None:
            yield name, milli


def validate_resource_claims(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    """Validate the claims for devices that the pod shares with its containers."""
    names: set[str] = set()
    for claim in list_mappings(value):
        _check_resource_claim(claim, (owner, key), pod)
        name = as_text(claim.get("name"))
        if name and name in names:
            pod.report(
                _CLAIM_RULE, Sentence("two resource claims are named `{}`; rename one of them", name), At(claim, "name")
            )
        names.add(name)
        given = list_set_keys(claim, ("resourceClaimName", "resourceClaimTemplateName"))
        if len(given) != 1:
            message = "a resource claim requires exactly one of `resourceClaimName` and `resourceClaimTemplateName`"
            pod.report(_CLAIM_RULE, message, (claim, given[-1]) if given else find_mapping(claim, (owner, key)))


# Global names, because the lookup of an enum member is slower than the rest of the check.
_NATIVE, _EXTENDED, _HUGEPAGES, _UNKNOWN = ResourceClass
validate_pod_resources = mapping({}, _check_pod_resources)

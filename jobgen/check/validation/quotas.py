"""Validate ResourceQuotas and LimitRanges, and the names and amounts of resources outside of containers."""

from __future__ import annotations

from jobgen.check.admission.fields import (
    Check,
    Entry,
    Fields,
    Kind,
    Table,
    Validation,
    all_of,
    at_most,
    dns_label,
    dns_subdomain,
    fields,
    find_entry,
    inside,
    is_set,
    items,
    iter_items,
    iter_texts,
    join_names,
    label_key,
    mapping,
    number,
    object_name,
    one_of,
    path_segment,
    spec,
)
from jobgen.check.admission.names import LABEL_KEY, is_label_key
from jobgen.check.admission.scheduling import is_container_resource, validate_quantity
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.model.data import Plain
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At
from jobgen.model.quantity import decode_milli, to_int64
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import ask_for, find_closest, suggest_rename, takes_any_name

# Validate the kinds of `scheduling.k8s.io`: priority classes, and groups of pods that are scheduled together.

_SYSTEM_PREFIX = "system-"
_SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_MAX_PRIORITY = 1_000_000_000
_CLAIM_FIELDS = ("resourceClaimName", "resourceClaimTemplateName")
_short_name = dns_label("invalid-value", "name")
_group_name = dns_subdomain("invalid-value", "API group")
_segment = path_segment("invalid-object-name", "name")
_CLAIM: Table = {"name": _short_name, **dict.fromkeys(_CLAIM_FIELDS, object_name)}
_topology = items("a constraint", {"key": label_key}, "key")
_TEMPLATE_NAMES: Table = {"workloadName": object_name, "podGroupTemplateName": _short_name}


def _check_priority_class(obj: Fields, entry: Entry, run: Validation) -> None:
    """Check the name and the value; those of Kubernetes itself have a prefix."""
    field = "name" if as_text(run.metadata.get("name")) else "generateName"
    name, value = as_text(run.metadata.get(field)), as_integer(obj.get("value")) or 0
    expected = _SYSTEM_CLASSES.get(name)
    if not name.startswith(_SYSTEM_PREFIX):
        if value > _MAX_PRIORITY:
            run.report(
                "out-of-range", Sentence("`value` must be at most {}, got `{}`", _MAX_PRIORITY, value), At(obj, "value")
            )
    elif expected is None:
        message = Sentence(
            "`{}` begins with `{}`, which is reserved for Kubernetes; use another name", name, _SYSTEM_PREFIX
        )
        run.report("invalid-name", message, At(run.metadata, field))
    elif value != expected:
        message = Sentence("`value` of `{}` must be {}, got `{}`", name, expected, obj.get("value"))
        run.invalid(message, At(obj, "value") if "value" in obj else At(run.metadata, field))
    elif obj.get("globalDefault") is True:
        run.invalid(Sentence("`globalDefault` of `{}` must be false; delete it", name), At(obj, "globalDefault"))
    if obj.get("preemptionPolicy") == "":
        run.report_missing("a PriorityClass", obj, "preemptionPolicy", entry)


def _check_policy(policy: Fields, entry: Entry, run: Validation) -> None:
    given = [field for field in ("basic", "gang") if is_set(policy.get(field))]
    if len(given) != 1:
        message = Sentence("`schedulingPolicy` requires exactly one of `basic` and `gang`, got {}", len(given))
        run.report("invalid-form", message, find_entry(policy, "gang", entry))


def _require_workload(reference: Fields, entry: Entry, run: Validation) -> None:
    if not isinstance(reference.get("workload"), dict):
        run.report_missing("`podGroupTemplateRef`", reference, "workload", entry)


def _check_claim(claim: Fields, entry: Entry, run: Validation) -> None:
    if sum(is_set(claim.get(field)) for field in _CLAIM_FIELDS) != 1:
        message = "a claim requires exactly one of `resourceClaimName` and `resourceClaimTemplateName`"
        run.report("invalid-resource-claim", message, entry)


def _only_v1alpha2(check: Check) -> Check:
    """Return a check of objects of this version; the fields of older ones differ."""

    def check_version(obj: Fields, entry: Entry, run: Validation) -> None:
        if as_text(obj.get("apiVersion")).endswith("/v1alpha2"):
            check(obj, entry, run)

    return check_version


_claims = items(
    "a claim", _CLAIM, "name", _check_claim, unique=("name", "two claims are named `{}`; rename one of them")
)
_GROUP: Table = {
    "disruptionMode": one_of("Pod", "PodGroup"),
    "priority": number(-(2**31), _MAX_PRIORITY),
    "priorityClassName": object_name,
    "resourceClaims": at_most(4, _claims, at_key=False),
    "schedulingConstraints": mapping({"topology": all_of(at_most(1, at_key=False), _topology)}),
}
_check_policy_of_group = inside(
    "schedulingPolicy", "`schedulingPolicy`", {"gang": mapping({"minCount": number(1)}, "minCount")}, _check_policy
)
_templates = items(
    "a template",
    {**_GROUP, "name": _short_name},
    "name",
    _check_policy_of_group,
    unique=("name", "two templates are named `{}`; rename one of them"),
)
_WORKLOAD: Table = {
    "controllerRef": mapping({"apiGroup": _group_name, "kind": _segment, "name": _segment}, "kind", "name"),
    "podGroupTemplates": at_most(8, _templates, at_key=False),
}
_template = mapping({"workload": mapping(_TEMPLATE_NAMES, "workloadName", "podGroupTemplateName")}, _require_workload)

SCHEDULING_KINDS = {
    "PodGroup": Kind(
        _only_v1alpha2(spec("a PodGroup", {**_GROUP, "podGroupTemplateRef": _template}, _check_policy_of_group))
    ),
    "PriorityClass": Kind(
        fields(
            "a PriorityClass", {"preemptionPolicy": one_of("", "PreemptLowerPriority", "Never")}, _check_priority_class
        )
    ),
    "Workload": Kind(_only_v1alpha2(spec("a Workload", _WORKLOAD, "podGroupTemplates"))),
}


_COUNTED = frozenset(
    """pods resourcequotas services replicationcontrollers secrets configmaps persistentvolumeclaims
    services.nodeports services.loadbalancers""".split()
)
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
# The resources without a domain that a quota can limit, besides huge pages.
_QUOTA_RESOURCES = _COUNTED.union(
    _COMPUTE, (f"{part}.{name}" for part in ("requests", "limits") for name in _COMPUTE), ("requests.storage",)
)
_STANDARD = _QUOTA_RESOURCES | {"storage"}
_HUGEPAGES = ("hugepages-", "requests.hugepages-")
_QUOTA_COMPUTE = frozenset(("pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"))
_RESOURCES_OF_SCOPE = {
    "BestEffort": frozenset(("pods",)),
    "NotBestEffort": _QUOTA_COMPUTE,
    "Terminating": _QUOTA_COMPUTE,
    "NotTerminating": _QUOTA_COMPUTE,
    "CrossNamespacePodAffinity": _QUOTA_COMPUTE,
    "PriorityClass": _QUOTA_COMPUTE,
    "VolumeAttributesClass": frozenset(("persistentvolumeclaims", "requests.storage")),
}
_CLASS_SCOPES = ("PriorityClass", "VolumeAttributesClass")
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_TYPES = ("Container", "Pod", "PersistentVolumeClaim")
_DEFAULTS = ("default", "defaultRequest")
_AMOUNTS = ("max", "min", *_DEFAULTS)
_RATIO = "maxLimitRequestRatio"
_MAX_MILLI = (2**63 - 1) // 1000
# Fields whose amounts must be in this order.
_ORDERED = (
    ("min", "max"),
    ("min", "defaultRequest"),
    ("defaultRequest", "max"),
    ("defaultRequest", "default"),
    ("min", "default"),
    ("default", "max"),
)


def _is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def _is_quota_resource(name: str) -> bool:
    """Return True if a name without a domain is that of a resource that a quota can limit."""
    return name in _QUOTA_RESOURCES or name.startswith(_HUGEPAGES)


def validate_amount(name: str, value: Plain, resources: Fields, run: Validation) -> None:
    """Validate an amount of a resource: not negative, and whole if the resource is counted."""
    milli = decode_milli(value)
    is_extended = not _is_native(name) and not name.startswith("requests.") and is_label_key(f"requests.{name}")
    if milli is None:
        validate_quantity(name, value, resources, run)
    elif milli < 0:
        run.report(
            "negative-quantity",
            Sentence("`{}` must be at least 0, got `{}`", name, value),
            At(resources, name),
        )
    elif (name in _COUNTED or is_extended) and (to_int64(value, -3) or 0) % 1000:
        rule = "invalid-value" if name in _COUNTED else "fractional-device"
        run.report(rule, Sentence("`{}` must be an integer, got `{}`", name, value), At(resources, name))


def _validate_hard(key: str, value: Plain, owner: Fields, run: Validation) -> None:
    hard = as_mapping(value)
    for name, amount in hard.items():
        validate_amount(name, amount, hard, run)
        if not is_label_key(name):
            run.report(
                "unknown-resource",
                Sentence("`{}` is not a valid name of a resource; {}", name, LABEL_KEY),
                (hard, name),
            )
        elif "/" not in name and not _is_quota_resource(name):
            known = sorted(_QUOTA_RESOURCES)
            meant = find_closest(name, known)
            hint = ask_for(meant) or "; write a resource such as `requests.cpu`, `pods` or `count/jobs.batch`"
            message = Sentence("a quota cannot limit the resource `{}`{}", name, hint)
            fix = suggest_rename(At(hard, name, is_key=True), known, hard, takes_any_name)
            run.report("unknown-resource", message, (hard, name), fix, meant=meant)


def _check_scopes(quota: Fields, entry: Entry, run: Validation) -> None:
    hard = as_mapping(quota.get("hard"))
    scopes = [(scope, At(*item)) for scope, item in iter_texts(quota.get("scopes"))]
    selected = list[tuple[str, At]]()
    for item, node in iter_items(get_path(quota, "scopeSelector", "matchExpressions")):
        run.require_fields("a scope", item, ("scopeName", "operator"), node)
        scope = as_text(item.get("scopeName"))
        selected += [(scope, At(item, "scopeName"))] if scope else []
        if as_text(item.get("operator")):
            _validate_operator(scope, item, run)
    known = _RESOURCES_OF_SCOPE.keys() - (_CLASS_SCOPES[1:] if run.release < (1, 33) else ())
    for scope, node in (*scopes, *selected):
        if scope not in known:
            run.report_unsupported("scope", node, tuple(name for name in _RESOURCES_OF_SCOPE if name in known))
            continue
        # A scope must apply to all limited resources of Kubernetes itself.
        others = [name for name in hard if _is_quota_resource(name) and name not in _RESOURCES_OF_SCOPE[scope]]
        if others:
            message = Sentence(
                "the scope `{}` does not apply to {}; write another quota for it", scope, join_names(others, "and")
            )
            run.invalid(message, node)
    for nodes in (dict(scopes), dict(selected)):
        for first, second in (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating")):
            if first in nodes and second in nodes:
                message = Sentence("the scopes `{}` and `{}` cannot be combined; delete one of them", first, second)
                run.invalid(message, nodes[second])


def _validate_operator(scope: str, item: Fields, run: Validation) -> None:
    operator, values = as_text(item["operator"]), as_list(item.get("values"))
    if operator not in _OPERATORS:
        run.report_unsupported("operator", At(item, "operator"), _OPERATORS)
    elif scope in _RESOURCES_OF_SCOPE and scope not in _CLASS_SCOPES and operator != "Exists":
        run.invalid(
            Sentence("the scope `{}` requires `operator: Exists`, got `{}`", scope, operator), At(item, "operator")
        )
    elif operator in ("In", "NotIn") and not values:
        run.report(
            "invalid-selector",
            Sentence("`{}` requires at least one value; add it to `values`", operator),
            At(item, "operator"),
        )
    elif operator in ("Exists", "DoesNotExist") and values:
        run.report(
            "invalid-selector", Sentence("`{}` cannot have values; delete `values`", operator), At(item, "values")
        )


class _Amount(NamedTuple):
    """An amount of a resource, and the field that it was written in, which differs if it is a default."""

    milli: int
    resources: Fields
    name: str
    field: str

    @property
    def node(self) -> Plain:
        return self.resources[self.name]

    @property
    def place(self) -> At:
        return At(self.resources, self.name)


def _check_limit(limit: Fields, entry: Entry, run: Validation) -> None:
    limit_type = as_text(limit.get("type"))
    for field in (*_AMOUNTS, _RATIO):
        for name in as_mapping(limit.get(field)):
            _validate_resource_name(name, as_mapping(limit.get(field)), limit_type, run)
    for field in _DEFAULTS if limit_type == "Pod" else ():
        if as_mapping(limit.get(field)):
            message = Sentence("`{}` cannot be set for the type `Pod`; set it for `Container`", field)
            run.invalid(message, (limit, field))
    if limit_type == "PersistentVolumeClaim" and not any(
        "storage" in as_mapping(limit.get(field)) for field in ("min", "max")
    ):
        message = Sentence("the type `PersistentVolumeClaim` requires `storage` in `min` or `max`; set it")
        run.report("missing-field", message, entry)
    amounts = _collect_amounts(limit, limit_type)
    for name in {name for values in amounts.values() for name in values}:
        _validate_order(name, amounts, run)
        limit_default, request = amounts.get("default", {}).get(name), amounts.get("defaultRequest", {}).get(name)
        # Devices and huge pages must have a default request that equals the default limit.
        may_overcommit = _is_native(name) and not name.startswith("hugepages-")
        if not may_overcommit and limit_default and request and limit_default.milli > request.milli:
            wanted = limit_default.node
            message = Sentence(
                "`{}` cannot be overcommitted, so `defaultRequest` must equal `default`, `{}`", name, wanted
            )
            run.invalid(Sentence("{}, got `{}`", message, request.node), request.place)
    for name in as_mapping(limit.get(_RATIO)):
        _validate_ratio(name, as_mapping(limit.get(_RATIO)), amounts, run)


def _validate_types(key: str, value: Plain, owner: Fields, run: Validation) -> None:
    types: set[str] = set()
    for limit, place in iter_items(value):
        found = as_text(limit.get("type"))
        if not found:
            run.report_missing("a limit", limit, "type", place)
            continue
        if "/" not in found and found not in _TYPES:
            run.report_unsupported("type", At(limit, "type"), _TYPES)
        elif not is_label_key(found):
            run.invalid(Sentence("`{}` is not a valid type; {}", found, LABEL_KEY), At(limit, "type"))
        elif found in types:
            run.report(
                "duplicate-item", Sentence("two limits have the type `{}`; merge them", found), At(limit, "type")
            )
        types.add(found)


def _validate_resource_name(name: str, resources: Fields, limit_type: str, run: Validation) -> None:
    if limit_type in ("Pod", "Container"):
        if not is_container_resource(name):
            message = Sentence(
                "containers cannot request the resource `{}`; write `cpu`, `memory` or one with a domain", name
            )
            run.report("unknown-resource", message, (resources, name))
    elif not is_label_key(name):
        message = Sentence("`{}` is not a valid name of a resource; {}", name, LABEL_KEY)
        run.report("unknown-resource", message, (resources, name))
    elif "/" not in name and name not in _STANDARD and not name.startswith(_HUGEPAGES):
        meant = find_closest(name, sorted(_STANDARD))
        hint = ask_for(meant) or "; write a standard resource, or one with a domain"
        message = Sentence("`{}` is not a resource of Kubernetes{}", name, hint)
        run.report("unknown-resource", message, (resources, name), meant=meant)


def _collect_amounts(limit: Fields, limit_type: str) -> _Amounts:
    """Return the amounts by field and resource, with the defaults that the API server sets for containers."""
    amounts: _Amounts = {
        field: {
            name: _Amount(milli, as_mapping(limit.get(field)), name, field)
            for name, node in as_mapping(limit.get(field)).items()
            if (milli := decode_milli(node)) is not None
        }
        for field in (_AMOUNTS if limit_type != "Pod" else ("max", "min"))
    }
    if limit_type == "Container":
        amounts["default"] = amounts["max"] | amounts["default"]
        amounts["defaultRequest"] = amounts["min"] | amounts["default"] | amounts["defaultRequest"]
    return amounts


def _validate_order(name: str, amounts: _Amounts, run: Validation) -> None:
    """Validate that no amount exceeds one that limits it; amounts of the same two fields are reported once."""
    reported: set[tuple[str, str]] = set()
    for low_field, high_field in _ORDERED:
        low, high = amounts.get(low_field, {}).get(name), amounts.get(high_field, {}).get(name)
        if low is None or high is None or low.milli <= high.milli or (low.field, high.field) in reported:
            continue
        reported.add((low.field, high.field))
        lower, higher = f"`{low.node}` in `{low.field}`", f"`{high.node}` in `{high.field}`"
        place = (high if low_field == "min" and high.field != "max" else low).place
        run.report("out-of-range", Sentence("`{}` is {}, more than {}; change one of them", name, lower, higher), place)


def _validate_ratio(name: str, ratios: Fields, amounts: _Amounts, run: Validation) -> None:
    ratio = ratios[name]
    milli = decode_milli(ratio)
    if milli is None:
        return
    if milli < 1000:
        run.report("out-of-range", Sentence("`{}` must be at least 1, got `{}`", _RATIO, ratio), At(ratios, name))
    least, most = amounts["min"].get(name), amounts["max"].get(name)
    if least is None or most is None:
        return
    # As the API server computes it: in thousandths unless that is too large, and without a limit if `min` is 0.
    nodes, divisor = (ratio, least.node, most.node), 1
    values = [to_int64(node) or 0 for node in nodes]
    if max(values) < _MAX_MILLI:
        values, divisor = [to_int64(node, -3) or 0 for node in nodes], 1000
    found, low, high = values
    limit = high / low if low else float("inf")
    if found / divisor > limit:
        message = Sentence(
            "`{}` is `{}`, more than `{:g}`, which is `max` divided by `min`; lower it", _RATIO, ratio, limit
        )
        run.report("out-of-range", message, At(ratios, name))


_Amounts = dict[str, dict[str, _Amount]]

KINDS = {
    **SCHEDULING_KINDS,
    "LimitRange": Kind(spec("a LimitRange", {"limits": all_of(_validate_types, items("a limit", {}, _check_limit))})),
    "ResourceQuota": Kind(spec("a ResourceQuota", {"hard": _validate_hard}, _check_scopes)),
}

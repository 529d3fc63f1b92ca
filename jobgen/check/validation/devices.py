"""Validate how drivers publish devices with `resource.k8s.io`: ResourceSlices, and taints of devices."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from jobgen.check.admission.fields import (
    Check,
    Fields,
    Kind,
    Table,
    Validation,
    at_most,
    choice,
    count,
    dns_label,
    dns_subdomain,
    fields,
    find_key,
    get_key,
    inside,
    is_empty,
    is_set,
    items,
    iter_strings,
    label_key,
    mapping,
    number,
    one_of,
    require_set,
    since,
    spec,
    text,
    validate_fields,
)
from jobgen.check.admission.metadata import validate_annotation_keys, validate_labels
from jobgen.check.admission.names import (
    DNS_SUBDOMAIN,
    GENERATED_NAME,
    LABEL_KEY,
    LABEL_VALUE,
    is_dns_label,
    is_dns_subdomain,
    is_driver_name,
    is_label_key,
    is_label_value,
)
from jobgen.check.admission.scheduling import validate_node_selector
from jobgen.k8s.devices import ADMIN_LABEL
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text
from jobgen.model.data import Node, untraced, value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.quantity import to_milli
from jobgen.model.suggest import list_alternatives

# Validate how devices are requested with `resource.k8s.io`: claims, templates of claims, and classes of devices.

_MAX_ID_BYTES = 32
_MAX_EXPRESSION_BYTES = _MAX_PARAMETER_BYTES = 10 * 1024
_MAX_ITEMS, _MAX_ALTERNATIVES = 32, 8
_EXACT_FIELDS = ("deviceClassName", "selectors", "allocationMode", "count", "adminAccess", "tolerations", "capacity")
_PRIORITIZED_SINCE = _ADMIN_SINCE = (1, 34)
_TAINTS_SINCE = _DISTINCT_SINCE = (1, 36)
QUALIFIED_NAME = "write a domain and a name of at most 32 letters, digits and `_`, such as `gpu.example.com/model`"
_identifier = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*")
device_name = dns_label("invalid-value", "name")
taint_value = text("invalid-label", "label value", is_label_value, LABEL_VALUE)
_require_opaque = require_set("a configuration", "opaque")
_TOLERATION: Table = {
    "effect": one_of("", "NoSchedule", "NoExecute", "None"),
    "key": label_key,
    "operator": one_of("", "Equal", "Exists"),
}
_TEMPLATE_METADATA: Table = {"labels": validate_labels, "annotations": validate_annotation_keys}


def is_qualified_name(name: str, *, needs_domain: bool = False) -> bool:
    """Return True if a text can be the name of an attribute or a capacity: an identifier after an optional domain."""
    parts = name.split("/")
    if len(parts) > 2:
        # The API server does not look at such names.
        return True
    if len(parts) == 2 and not is_driver_name(parts[0]):
        return False
    is_identifier = len(parts[-1]) <= _MAX_ID_BYTES and _identifier.fullmatch(parts[-1]) is not None
    return is_identifier and (len(parts) == 2 or not needs_domain)


def twice(field: str, name: str = "name") -> tuple[str, str]:
    """Return the name of a field that items of a list differ in, and the message if they do not."""
    return name, f"two items of `{field}` are `{{}}`; rename or delete one of them"


def is_flat(obj: Fields) -> bool:
    """Return True if an object has an old version, in which the fields of requests and devices are at another place."""
    return as_text(obj.get("apiVersion")).endswith(("/v1beta1", "/v1alpha3"))


def _check_cel(cel: Fields, place: Node, run: Validation) -> None:
    written = as_text(cel.get("expression"))
    node = cel.get("expression") if is_set(cel.get("expression")) else place
    if not written.strip():
        message = "a CEL selector requires an `expression`, such as `device.driver == 'gpu.example.com'`"
        run.report("missing-field", message, node)
    elif len(written.encode(errors="replace")) > _MAX_EXPRESSION_BYTES:
        run.report("out-of-range", f"`expression` has more than {_MAX_EXPRESSION_BYTES} bytes; shorten it", node)
    else:
        # Imported late: few repositories have selectors of devices.
        from jobgen.check.cel.admission_scope import find_selector_fault

        fault = find_selector_fault(written, has_allow_multiple=run.release >= (1, 36))
        if fault is not None:
            # The parser lists everything that may follow, and has a symbol for the end of the text.
            reason = fault.message.partition(" expecting ")[0].replace("`<EOF>`", "the end of the text")
            message = f"the CEL expression does not compile: {reason} (line {fault.line}, column {fault.column})"
            run.invalid(message, node)


def _check_parameters(opaque: Fields, place: Node, run: Validation) -> None:
    parameters = opaque.get("parameters")
    if value_of(parameters) is None:
        run.report_missing("`opaque`", opaque, "parameters", place)
    elif not isinstance(parameters, dict):
        run.report("wrong-type", "`parameters` must be an object", parameters)
    else:
        written = json.dumps(untraced(parameters), separators=(",", ":"), ensure_ascii=False)
        if len(written.encode(errors="replace")) > _MAX_PARAMETER_BYTES:
            message = f"`parameters` have more than {_MAX_PARAMETER_BYTES} bytes as JSON; shorten them"
            run.report("out-of-range", message, find_key(opaque, "parameters", place))


def _validate_extended_resource(key: str, value: Node, owner: Fields, run: Validation) -> None:
    found = as_text(value)
    is_extended = "/" in found and "kubernetes.io/" not in found and not found.startswith("requests.")
    if is_set(value) and not (is_extended and is_label_key(f"requests.{found}")):
        message = f"`{found}` is not a valid extended resource; write a domain and a name, such as `example.com/gpu`"
        run.invalid(message, value)


def _check_toleration(toleration: Fields, place: Node, run: Validation) -> None:
    operator, value = as_text(toleration.get("operator")) or "Equal", toleration.get("value")
    if operator == "Equal":
        taint_value("value", value, toleration, run)
    elif operator == "Exists" and as_text(value):
        message = f"`operator: Exists` cannot have a `value`, got `{as_text(value)}`; delete it"
        run.report("invalid-toleration", message, value)


def _check_count(request: Fields, place: Node, run: Validation) -> None:
    mode, found = as_text(request.get("allocationMode")) or "ExactCount", as_integer(request.get("count")) or 0
    if mode == "All" and found:
        message = f"`allocationMode: All` cannot have a `count`, got `{found}`; delete it"
        run.report("invalid-form", message, request["count"])
    elif mode == "ExactCount" and found < 0:
        run.report("out-of-range", f"`count` must be at least 1, got `{found}`", request["count"])


def _validate_admin_access(key: str, value: Node, owner: Fields, run: Validation) -> None:
    namespace = as_text(run.metadata.get("namespace"))
    # The cluster may have a namespace that the repository does not define.
    if value_of(value) is True and namespace in run.read_catalog().other_namespaces:
        message = f"`{key}` requires a namespace with the label `{ADMIN_LABEL}: true`, but Namespace"
        message += f" `{namespace}` does not have it; add it, or delete the field"
        run.report("invalid-resource-claim", message, value)


def _request(*, flat: bool) -> Check:
    """Return a check of a request; in old versions it has the fields that are in `exactly` in others."""

    def check(request: Fields, place: Node, run: Validation) -> None:
        given = [field for field in _EXACT_FIELDS if is_set(request.get(field))] if flat else []
        exactly: Node = request if given else None if flat else request.get("exactly")
        key = get_key(request, "firstAvailable")
        alternatives = as_list(request.get(key)) if run.release >= _PRIORITIZED_SINCE else ()
        field = "deviceClassName" if flat else "exactly"
        if isinstance(exactly, dict) and alternatives:
            other = given[0] if given else field
            message = f"a request cannot have both `{other}` and `firstAvailable`; delete one of them"
            run.report("invalid-form", message, key)
        elif alternatives:
            _alternatives(key, request[key], request, run)
        elif isinstance(exactly, dict):
            _check_exact_request(exactly, place if flat else get_key(request, "exactly"), run)
        else:
            run.report("missing-field", f"a request requires `{field}` or `firstAvailable`; set one of them", place)

    return check


def _check_constraint(constraint: Fields, place: Node, run: Validation) -> None:
    known = ("matchAttribute", "distinctAttribute") if run.release >= _DISTINCT_SINCE else ("matchAttribute",)
    given = next((field for field in known if is_set(constraint.get(field))), "")
    if not given:
        names = list_alternatives(f"`{field}`" for field in known)
        run.report("missing-field", f"a constraint requires {names}; set it", place)
    elif not is_qualified_name(as_text(constraint[given]), needs_domain=True):
        run.invalid(f"`{as_text(constraint[given])}` is not a valid attribute; {QUALIFIED_NAME}", constraint[given])


def _check_references(devices: Fields, place: Node, run: Validation) -> None:
    """Check the lists `requests` of constraints and configurations: names of requests, or of their alternatives."""
    names = {
        as_text(request.get("name")): frozenset(
            as_text(as_mapping(one).get("name")) for one in as_list(request.get("firstAvailable"))
        )
        for request in map(as_mapping, as_list(devices.get("requests")))
    }

    def validate(key: str, value: Node, owner: Fields, run: Validation) -> None:
        seen: set[str] = set()
        for found, node in iter_strings(value):
            request, slash, alternative = found.partition("/")
            is_known = request in names and (not slash or alternative in names[request])
            if not is_known or not all(map(is_dns_label, found.split("/"))):
                message = f"`{found}` is not a request of the claim; write the name of a request, or"
                run.report("invalid-resource-claim", f"{message} `request/alternative`", node)
            if found in seen:
                run.report("duplicate-item", twice(key)[1].format(found), node)
            seen.add(found)

    references = items("the list", {"requests": at_most(_MAX_ITEMS, validate)})
    for field in ("constraints", "config"):
        if len(as_list(devices.get(field))) <= _MAX_ITEMS:
            references(field, devices.get(field), devices, run)


def _claim(*, flat: bool) -> Check:
    requests = items("a request", {"name": device_name}, "name", _request(flat=flat), unique=twice("requests"))
    devices: Table = {
        "config": at_most(_MAX_ITEMS, items("a configuration", _CONFIG, _require_opaque)),
        "constraints": at_most(_MAX_ITEMS, items("a constraint", {}, _check_constraint)),
        "requests": at_most(_MAX_ITEMS, requests),
    }
    return fields("a claim", {"devices": mapping(devices, _check_references)})


def _check_resource_claim(obj: Fields, place: Node, run: Validation) -> None:
    (_check_flat_claim if is_flat(obj) else _check_claim)(run.spec, place, run)


def _check_template_metadata(metadata: Fields, place: Node, run: Validation) -> None:
    for field, value in metadata.items():
        if field not in ("annotations", "labels") and value_of(value) not in (None, "", {}, 0):
            run.invalid(f"`{field}` cannot be set in a template; Kubernetes names the claims after their pods", field)


def _check_template(obj: Fields, place: Node, run: Validation) -> None:
    _check_template_spec(run.spec, place, run)
    (_check_flat_claim if is_flat(obj) else _check_claim)(as_mapping(run.spec.get("spec")), place, run)


driver_name = text("invalid-value", "driver name of at most 63 characters", is_driver_name, DNS_SUBDOMAIN)
_selectors = at_most(
    _MAX_ITEMS, items("a selector", {"cel": mapping({}, _check_cel)}, require_set("a selector", "cel"))
)
_CONFIG: Table = {"opaque": mapping({"driver": driver_name}, "driver", _check_parameters)}
_EXACT_REQUEST: Table = {
    "adminAccess": since(_ADMIN_SINCE, _validate_admin_access),
    "allocationMode": one_of("", "All", "ExactCount"),
    "deviceClassName": dns_subdomain("invalid-object-name", "name of a DeviceClass"),
    "selectors": _selectors,
    "tolerations": since(_TAINTS_SINCE, items("a toleration", _TOLERATION, _check_toleration)),
}
_check_exact_request = fields("a request", _EXACT_REQUEST, "deviceClassName", _check_count)
_alternatives = at_most(
    _MAX_ALTERNATIVES,
    items("a request", {"name": device_name}, "name", _check_exact_request, unique=twice("firstAvailable")),
)
_check_claim, _check_flat_claim = _claim(flat=False), _claim(flat=True)
_check_template_spec = fields("a template", {"metadata": mapping(_TEMPLATE_METADATA, _check_template_metadata)})

_CLASS: Table = {
    "config": at_most(_MAX_ITEMS, items("a configuration", _CONFIG, _require_opaque)),
    "extendedResourceName": since((1, 36), _validate_extended_resource),
    "selectors": _selectors,
}

CLAIM_KINDS = {
    "DeviceClass": Kind(spec("a DeviceClass", _CLASS), GENERATED_NAME),
    "ResourceClaim": Kind(_check_resource_claim),
    "ResourceClaimTemplate": Kind(_check_template),
}


_MAX_DEVICES, _MAX_COMPLEX_DEVICES = 128, 64
_MAX_ATTRIBUTES, _MAX_VALUE_BYTES = 32, 64
_MAX_COUNTERS = 32
_BETA_SINCE = (1, 36)
_NODES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_NUMBER, _WORD = r"(?:0|[1-9][0-9]*)", r"[0-9A-Za-z-]+"
_PRERELEASE = rf"(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_semantic_version = lazy_pattern(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-{_PRERELEASE}(?:\.{_PRERELEASE})*)?(?:\+{_WORD}(?:\.{_WORD})*)?"
)
_node_name = dns_subdomain("invalid-object-name", "node name")
_check_taint = fields(
    "a taint",
    {"key": label_key, "value": taint_value},
    "key",
    choice("a taint", "effect", "NoExecute", "NoSchedule", "None"),
)


def _is_pool_name(name: str) -> bool:
    return len(name) <= 253 and all(map(is_dns_subdomain, name.split("/")))


def _iter_node_choices(owner: Fields, known: Sequence[str], run: Validation) -> Iterator[str]:
    for field in known:
        value = owner.get(field)
        if not is_set(value):
            continue
        if field == "nodeName":
            run.require_fields("the choice of nodes", owner, (field,), owner)
            _node_name(field, value, owner, run)
        elif field == "nodeSelector":
            validate_node_selector(field, value, owner, run)
        elif value_of(value) is False:
            run.invalid(f"`{field}` must be true or not be set, got `false`", value)
        if value_of(value) not in ("", False):
            yield field


def _check_counters(owner: Fields, place: Node, run: Validation) -> None:
    counters = as_mapping(owner.get("counters"))
    if len(counters) > _MAX_COUNTERS:
        message = f"`counters` has `{len(counters)}` entries; it can have at most {_MAX_COUNTERS}"
        run.report("out-of-range", message, find_key(owner, "counters", place))
        return
    for name in counters:
        if not is_dns_label(name):
            run.invalid(f"`{name}` is not a valid name of a counter; use a DNS label", name)


def _validate_attribute(name: str, attribute: Fields, run: Validation) -> None:
    if sum(is_set(attribute.get(field)) for field in ("bool", "int", "string", "version")) != 1:
        message = f"the attribute `{name}` requires exactly one of `bool`, `int`, `string` and `version`"
        run.report("invalid-form", message, name)
    for field in ("string", "version"):
        size = len(as_text(attribute.get(field)).encode(errors="replace"))
        if size > _MAX_VALUE_BYTES:
            message = f"`{field}` must have at most {_MAX_VALUE_BYTES} bytes, got `{size}`"
            run.report("out-of-range", message, attribute[field])
    version = attribute.get("version")
    if is_set(version) and not _semantic_version.fullmatch(as_text(version)):
        run.invalid(f"`{as_text(version)}` is not a semantic version; write three numbers, such as `1.2.3`", version)


def _check_device(device: Fields, place: Node, run: Validation) -> None:
    attributes, capacity = as_mapping(device.get("attributes")), as_mapping(device.get("capacity"))
    size = len(attributes) + len(capacity)
    if size > _MAX_ATTRIBUTES:
        message = f"the device has `{size}` attributes and capacities; it can have at most {_MAX_ATTRIBUTES}"
        run.report("out-of-range", message, place)
    for name in (*attributes, *capacity):
        if not is_qualified_name(name):
            run.invalid(f"`{name}` is not a valid attribute; {QUALIFIED_NAME}", name)
    for name, value in attributes.items():
        _validate_attribute(name, as_mapping(value), run)
    if run.release < _BETA_SINCE:
        return
    validate_fields(device, _DEVICE, run)
    is_shared = value_of(device.get("allowMultipleAllocations")) is True
    for value in capacity.values():
        _validate_request_policy(as_mapping(value), run, is_shared=is_shared)
    _validate_conditions(device, run)


def _validate_conditions(device: Fields, run: Validation) -> None:
    """Validate the conditions for binding; those for success and for failure differ, and come together."""
    pair = ("bindingConditions", "bindingFailureConditions")
    seen: set[str] = set()
    for field in pair:
        for found, node in iter_strings(device.get(field)) if len(as_list(device.get(field))) <= 4 else ():
            if not is_label_key(found):
                run.report("invalid-label", f"`{found}` is not a valid condition; {LABEL_KEY}", node)
            elif found in seen:
                run.report("duplicate-item", twice(field)[1].format(found), node)
            seen.add(found)
    given = [field for field in pair if not is_empty(device.get(field))]
    if len(given) == 1:
        other = pair[1 - pair.index(given[0])]
        run.report("missing-field", f"`{given[0]}` requires `{other}`; set it", find_key(device, given[0], device))


def _validate_request_policy(capacity: Fields, run: Validation, *, is_shared: bool) -> None:
    """Validate how much of a capacity claims may request, which only devices state that several claims share."""
    policy = capacity.get("requestPolicy")
    if not isinstance(policy, dict):
        return
    key, most = find_key(capacity, "requestPolicy", capacity), capacity.get("value")
    values, limits = policy.get("validValues"), policy.get("validRange")
    if not is_shared:
        run.report("invalid-form", "`requestPolicy` requires `allowMultipleAllocations: true`; set it", key)
    elif not is_empty(values) and is_set(limits):
        message = "`requestPolicy` cannot have both `validValues` and `validRange`; delete one of them"
        run.report("invalid-form", message, find_key(policy, "validRange", key))
    elif is_empty(values) and not is_set(limits):
        return
    elif not is_set(policy.get("default")):
        run.report_missing("`requestPolicy`", policy, "default", key)
    elif not is_empty(values):
        _validate_values(policy, most, run)
    else:
        _validate_range(as_mapping(limits), policy["default"], most, find_key(policy, "validRange", key), run)


def _validate_values(policy: Fields, most: Node, run: Validation) -> None:
    before = len(run.problems)
    validate_fields(policy, {"validValues": at_most(10)}, run)
    if len(run.problems) > before:
        return
    values = as_list(policy.get("validValues"))
    amounts = [to_milli(value) or 0 for value in values]
    for index, value in enumerate(values):
        found = value_of(value)
        if index and amounts[index - 1] > amounts[index]:
            run.invalid(f"`{found}` is less than the value before it; sort `validValues`", value)
        elif amounts[index] in amounts[:index]:
            run.report("duplicate-item", twice("validValues")[1].format(found), value)
        _report_greater(value, most, "the capacity", run)
    if (to_milli(policy["default"]) or 0) not in amounts:
        message = f"the default `{value_of(policy['default'])}` is not one of `validValues`; add it there"
        run.invalid(message, policy["default"])


def _validate_range(limits: Fields, default: Node, most: Node, key: Node, run: Validation) -> None:
    low, high, step = (limits.get(field) for field in ("min", "max", "step"))
    if not is_set(low):
        run.report_missing("`validRange`", limits, "min", key)
        return
    _report_greater(low, most, "the capacity", run)
    _report_greater(low, default, "the default", run)
    if is_set(high):
        _report_greater(low, high, "`max`", run)
        _report_greater(high, most, "the capacity", run)
        _report_greater(default, high, "`max`", run)
    if not is_set(step):
        return
    if (to_milli(low) or 0) + (to_milli(step) or 0) > (to_milli(most) or 0):
        message = f"one step of `{value_of(step)}` after `{value_of(low)}` exceeds the capacity `{value_of(most)}`"
        run.report("out-of-range", message, step)
    for value in (default, high) if is_set(high) else (default,):
        # The API server compares whole units, rounded up.
        first, unit, found = (-(-(to_milli(node) or 0) // 1000) for node in (low, step, value))
        if unit and (found - first) % unit:
            message = f"`{value_of(value)}` is not a multiple of the step `{value_of(step)}` from `{value_of(low)}`"
            run.invalid(message, value)


def _report_greater(value: Node, limit: Node, what: str, run: Validation) -> None:
    if (to_milli(value) or 0) > (to_milli(limit) or 0):
        run.report("out-of-range", f"`{value_of(value)}` is greater than {what}, which is `{value_of(limit)}`", value)


def _devices(*, flat: bool, per_device: bool) -> Check:
    """Return a check of the devices of a slice; in old versions all fields except their names are in `basic`."""

    def check(outer: Fields, place: Node, run: Validation) -> None:
        device = as_mapping(outer.get("basic")) if flat else outer
        _check_device(device, find_key(outer, "name", place), run)
        if run.release < _BETA_SINCE:
            return
        given = [field for field in _NODES[:3] if is_set(device.get(field))]
        if per_device:
            given = list(_iter_node_choices(device, _NODES[:3], run))
            if len(given) != 1:
                message = "a device requires exactly one of `nodeName`, `nodeSelector` and `allNodes`"
                node = find_key(device, given[1], place) if given else place
                run.report("invalid-form", f"{message}, got {len(given)}", node)
        elif given:
            message = f"`{given[0]}` of a device requires `perDeviceNodeSelection: true` in the ResourceSlice; set it"
            run.report("invalid-form", message, find_key(device, given[0], place))

    def check_all(resources: Fields, place: Node, run: Validation) -> None:
        wrapped = (as_mapping(device) for device in as_list(resources.get("devices")))
        inner = [as_mapping(device.get("basic")) if flat else device for device in wrapped]
        is_complex = any(not is_empty(one.get(field)) for one in inner for field in ("taints", "consumesCounters"))
        most = _MAX_COMPLEX_DEVICES if is_complex and run.release >= _BETA_SINCE else _MAX_DEVICES
        validate_fields(resources, {"devices": at_most(most, devices)}, run)

    devices = items("a device", {"name": device_name}, "name", check, unique=twice("devices"))
    return check_all


def _check_slice(obj: Fields, place: Node, run: Validation) -> None:
    resources, key = run.spec, find_key(obj, "spec", obj)
    has_partitions = run.release >= _BETA_SINCE
    known = _NODES if has_partitions else _NODES[:3]
    given = list(_iter_node_choices(resources, known, run))
    if len(given) != 1:
        names = ", ".join(f"`{field}`" for field in known)
        node = find_key(resources, given[1], key) if given else key
        run.report("invalid-form", f"a ResourceSlice requires exactly one of {names}, got {len(given)}", node)
    terms = as_list(as_mapping(resources.get("nodeSelector")).get("nodeSelectorTerms"))
    if "nodeSelector" in given and len(terms) > 1:
        run.report("out-of-range", f"`nodeSelectorTerms` must have exactly one term, got `{len(terms)}`", terms)
    if has_partitions and is_set(resources.get("sharedCounters")) and is_set(resources.get("devices")):
        message = "a ResourceSlice cannot have both `sharedCounters` and `devices`; write two ResourceSlices"
        run.report("invalid-form", message, find_key(resources, "sharedCounters", key))
    per_device = has_partitions and value_of(resources.get("perDeviceNodeSelection")) is True
    _devices(flat=is_flat(obj), per_device=per_device)(resources, key, run)


def _check_selector(selector: Fields, place: Node, run: Validation) -> None:
    for field in ("driver", "pool"):
        if is_set(selector.get(field)):
            run.require_fields("`deviceSelector`", selector, (field,), place)


_pool_name = text("invalid-value", "pool name", _is_pool_name, "write DNS subdomains with `/` between them")
_consumption = items(
    "a consumption",
    {"counterSet": device_name},
    "counterSet",
    "counters",
    _check_counters,
    unique=twice("consumesCounters", "counterSet"),
)
_DEVICE: Table = {
    "bindingConditions": at_most(4),
    "bindingFailureConditions": at_most(4),
    "consumesCounters": at_most(2, _consumption),
    "taints": at_most(16, items("a taint", {}, _check_taint)),
}
_counter_sets = items(
    "a counter set", {"name": device_name}, "name", "counters", _check_counters, unique=twice("sharedCounters")
)
_SLICE: Table = {"driver": driver_name, "sharedCounters": since(_BETA_SINCE, at_most(8, _counter_sets))}
_POOL: Table = {"generation": count, "name": _pool_name, "resourceSliceCount": number(1)}
_check_pool = inside("pool", "`pool`", _POOL, "name", "resourceSliceCount")

_selected_device = dns_label("invalid-value", "name", allow_empty=False)
_TAINT_RULE: Table = {
    "deviceSelector": mapping({"device": _selected_device, "driver": driver_name, "pool": _pool_name}, _check_selector)
}

KINDS = {
    **CLAIM_KINDS,
    "DeviceTaintRule": Kind(spec("a DeviceTaintRule", _TAINT_RULE, inside("taint", "a taint", {}, _check_taint))),
    "ResourceSlice": Kind(
        fields("a ResourceSlice", {}, spec("a ResourceSlice", _SLICE, "driver", _check_pool), _check_slice)
    ),
}

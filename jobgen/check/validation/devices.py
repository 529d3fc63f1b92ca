"""Validate how drivers publish devices with `resource.k8s.io`: ResourceSlices, and taints of devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobgen.check.admission.fields import (
    Check,
    Fields,
    Validation,
    ValidatorTable,
    at_most,
    choice,
    dns_label,
    dns_subdomain,
    fields,
    find_key,
    inside,
    is_empty,
    is_set,
    items,
    iter_texts,
    mapping,
    number,
    report_missing,
    require_fields,
    since,
    text,
    validate_fields,
)
from jobgen.check.admission.names import LABEL_KEY, is_dns_label, is_dns_subdomain, is_label_key
from jobgen.check.admission.scheduling import validate_node_selector
from jobgen.check.validation.device_claims import (
    QUALIFIED_NAME,
    device_name,
    driver_name,
    is_flat,
    is_qualified_name,
    taint_value,
    twice,
)
from jobgen.check.validation.kinds import Kind, count, label_key, spec
from jobgen.k8s.nodes import as_list, as_mapping, as_text
from jobgen.model.data import Node, value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.quantity import to_milli

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


def _is_pool_name(name: str) -> bool:
    return len(name) <= 253 and all(map(is_dns_subdomain, name.split("/")))


_pool_name = text("invalid-value", "pool name", _is_pool_name, "write DNS subdomains with `/` between them")


def _iter_node_choices(owner: Fields, known: Sequence[str], run: Validation) -> Iterator[str]:
    """Yield the fields that choose the nodes of devices, and validate them."""
    for field in known:
        value = owner.get(field)
        if not is_set(value):
            continue
        if field == "nodeName":
            require_fields("the choice of nodes", owner, (field,), owner, run)
            _node_name(field, value, owner, run)
        elif field == "nodeSelector":
            validate_node_selector(field, value, owner, run)
        elif value_of(value) is False:
            run.report("invalid-value", f"`{field}` must be true or not be set, got `false`", value)
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
            run.report("invalid-value", f"`{name}` is not a valid name of a counter; use a DNS label", name)


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
        message = f"`{as_text(version)}` is not a semantic version; write three numbers, such as `1.2.3`"
        run.report("invalid-value", message, version)


def _check_device(device: Fields, place: Node, run: Validation) -> None:
    attributes, capacity = as_mapping(device.get("attributes")), as_mapping(device.get("capacity"))
    size = len(attributes) + len(capacity)
    if size > _MAX_ATTRIBUTES:
        message = f"the device has `{size}` attributes and capacities; it can have at most {_MAX_ATTRIBUTES}"
        run.report("out-of-range", message, place)
    for name in (*attributes, *capacity):
        if not is_qualified_name(name):
            run.report("invalid-value", f"`{name}` is not a valid attribute; {QUALIFIED_NAME}", name)
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
        for found, node in iter_texts(device.get(field)) if len(as_list(device.get(field))) <= 4 else ():
            if not is_label_key(found):
                run.report("invalid-label", f"`{found}` is not a valid condition; {LABEL_KEY}", node)
            elif found in seen:
                run.report("duplicate-item", twice(field)[1].format(found), node)
            seen.add(found)
    given = [field for field in pair if not is_empty(device.get(field))]
    if len(given) == 1:
        other = pair[1 - pair.index(given[0])]
        run.report("missing-field", f"`{given[0]}` requires `{other}`; set it", find_key(device, given[0], device))


_check_taint = fields(
    "a taint",
    {"key": label_key, "value": taint_value},
    "key",
    choice("a taint", "effect", "NoExecute", "NoSchedule", "None"),
)
_consumption = items(
    "a consumption",
    {"counterSet": device_name},
    "counterSet",
    "counters",
    _check_counters,
    unique=twice("consumesCounters", "counterSet"),
)
_DEVICE: ValidatorTable = {
    "bindingConditions": at_most(4),
    "bindingFailureConditions": at_most(4),
    "consumesCounters": at_most(2, _consumption),
    "taints": at_most(16, items("a taint", {}, _check_taint)),
}


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
        report_missing("`requestPolicy`", policy, "default", key, run)
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
            run.report("invalid-value", f"`{found}` is less than the value before it; sort `validValues`", value)
        elif amounts[index] in amounts[:index]:
            run.report("duplicate-item", twice("validValues")[1].format(found), value)
        _report_greater(value, most, "the capacity", run)
    if (to_milli(policy["default"]) or 0) not in amounts:
        message = f"the default `{value_of(policy['default'])}` is not one of `validValues`; add it there"
        run.report("invalid-value", message, policy["default"])


def _validate_range(limits: Fields, default: Node, most: Node, key: Node, run: Validation) -> None:
    low, high, step = (limits.get(field) for field in ("min", "max", "step"))
    if not is_set(low):
        report_missing("`validRange`", limits, "min", key, run)
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
            run.report("invalid-value", message, value)


def _report_greater(value: Node, limit: Node, what: str, run: Validation) -> None:
    if (to_milli(value) or 0) > (to_milli(limit) or 0):
        message = f"`{value_of(value)}` is greater than {what}, which is `{value_of(limit)}`"
        run.report("out-of-range", message, value)


def _validate_device_nodes(device: Fields, place: Node, run: Validation, *, per_device: bool) -> None:
    if not per_device:
        given = [field for field in _NODES[:3] if is_set(device.get(field))]
        if given:
            message = f"`{given[0]}` of a device requires `perDeviceNodeSelection: true` in the ResourceSlice; set it"
            run.report("invalid-form", message, find_key(device, given[0], place))
        return
    given = list(_iter_node_choices(device, _NODES[:3], run))
    if len(given) != 1:
        message = f"a device requires exactly one of `nodeName`, `nodeSelector` and `allNodes`, got {len(given)}"
        run.report("invalid-form", message, find_key(device, given[1], place) if given else place)


def _devices(*, flat: bool, per_device: bool) -> Check:
    """Return a check of the devices of a slice; in old versions all fields except their names are in `basic`."""

    def check(outer: Fields, place: Node, run: Validation) -> None:
        device = as_mapping(outer.get("basic")) if flat else outer
        _check_device(device, find_key(outer, "name", place), run)
        if run.release >= _BETA_SINCE:
            _validate_device_nodes(device, place, run, per_device=per_device)

    def check_all(resources: Fields, place: Node, run: Validation) -> None:
        wrapped = (as_mapping(device) for device in as_list(resources.get("devices")))
        inner = [as_mapping(device.get("basic")) if flat else device for device in wrapped]
        is_complex = any(not is_empty(one.get(field)) for one in inner for field in ("taints", "consumesCounters"))
        most = _MAX_COMPLEX_DEVICES if is_complex and run.release >= _BETA_SINCE else _MAX_DEVICES
        validate_fields(resources, {"devices": at_most(most, devices)}, run)

    devices = items("a device", {"name": device_name}, "name", check, unique=twice("devices"))
    return check_all


def _check_slice(obj: Fields, place: Node, run: Validation) -> None:
    """Check the nodes, the shared counters and the devices of a ResourceSlice."""
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
        message = f"`nodeSelectorTerms` must have exactly one term, got `{len(terms)}`"
        run.report("out-of-range", message, terms)
    if has_partitions and is_set(resources.get("sharedCounters")) and is_set(resources.get("devices")):
        message = "a ResourceSlice cannot have both `sharedCounters` and `devices`; write two ResourceSlices"
        run.report("invalid-form", message, find_key(resources, "sharedCounters", key))
    per_device = has_partitions and value_of(resources.get("perDeviceNodeSelection")) is True
    _devices(flat=is_flat(obj), per_device=per_device)(resources, key, run)


_counter_sets = items(
    "a counter set", {"name": device_name}, "name", "counters", _check_counters, unique=twice("sharedCounters")
)
_SLICE: ValidatorTable = {"driver": driver_name, "sharedCounters": since(_BETA_SINCE, at_most(8, _counter_sets))}
_POOL: ValidatorTable = {"generation": count, "name": _pool_name, "resourceSliceCount": number(1)}
_check_pool = inside("pool", "`pool`", _POOL, "name", "resourceSliceCount")


def _check_selector(selector: Fields, place: Node, run: Validation) -> None:
    for field in ("driver", "pool"):
        if is_set(selector.get(field)):
            require_fields("`deviceSelector`", selector, (field,), place, run)


_selected_device = dns_label("invalid-value", "name", allow_empty=False)
_TAINT_RULE: ValidatorTable = {
    "deviceSelector": mapping({"device": _selected_device, "driver": driver_name, "pool": _pool_name}, _check_selector)
}

KINDS = {
    "DeviceTaintRule": Kind(spec("a DeviceTaintRule", _TAINT_RULE, inside("taint", "a taint", {}, _check_taint))),
    "ResourceSlice": Kind(
        fields("a ResourceSlice", {}, spec("a ResourceSlice", _SLICE, "driver", _check_pool), _check_slice)
    ),
}

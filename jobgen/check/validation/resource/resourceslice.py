"""Validate ResourceSlices, in which drivers publish devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobgen.check.admission.fields import (
    Validation,
    ValidatorTable,
    find_key,
    is_empty,
    is_set,
    iter_items,
    require_fields,
    validate_fields,
    validate_number,
    validate_string,
)
from jobgen.check.validation.resource._devices import iter_node_choices, validate_counters, validate_device
from jobgen.check.validation.resource._names import (
    POOL_NAME,
    has_size,
    is_pool_name,
    iter_limited,
    report_duplicate,
    require_driver,
    require_name,
)
from jobgen.k8s.nodes import as_list, as_mapping, as_text
from jobgen.model.data import Node, value_of

_MAX_DEVICES = 128
_MAX_COMPLEX_DEVICES = 64
_MAX_COUNTER_SETS = 8
_PARTITIONS_SINCE = (1, 36)
_POOL: ValidatorTable = {
    "name": validate_string("invalid-value", "pool name", is_pool_name, POOL_NAME),
    "resourceSliceCount": validate_number(1),
    "generation": validate_number(0),
}
_NODES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the pool, the nodes, the shared counters and the devices."""
    spec, key = run.spec, find_key(obj, "spec", obj)
    flat = as_text(obj.get("apiVersion")).endswith(("/v1beta1", "/v1alpha3"))
    require_driver("a ResourceSlice", spec, key, run)
    _validate_pool(as_mapping(spec.get("pool")), find_key(spec, "pool", key), run)
    partitions = run.release >= _PARTITIONS_SINCE
    _validate_nodes(spec, key, _NODES if partitions else _NODES[:3], run)
    counters = partitions and is_set(spec.get("sharedCounters"))
    if counters and is_set(spec.get("devices")):
        message = "a ResourceSlice cannot have both `sharedCounters` and `devices`; write two ResourceSlices"
        run.report("invalid-form", message, find_key(spec, "sharedCounters", key))
    per_device = partitions and value_of(spec.get("perDeviceNodeSelection")) is True
    names: set[str] = set()
    for device, node in _iter_devices(spec, run, flat=flat):
        validate_device(device, node, run, flat=flat, per_device=per_device)
        name = as_text(device.get("name"))
        if name and name in names:
            report_duplicate(name, "devices", device["name"], run)
        names.add(name)
    if counters:
        _validate_counter_sets(spec, run)


def _validate_pool(pool: Mapping[str, Node], key: Node, run: Validation) -> None:
    require_fields("`pool`", pool, ("name", "resourceSliceCount"), key, run)
    validate_fields(pool, _POOL, run)


def _validate_nodes(spec: Mapping[str, Node], key: Node, fields: tuple[str, ...], run: Validation) -> None:
    given = list(iter_node_choices(spec, fields, run))
    if len(given) != 1:
        names = ", ".join(f"`{field}`" for field in fields)
        node = find_key(spec, given[1], key) if given else key
        run.report("invalid-form", f"a ResourceSlice requires exactly one of {names}, got {len(given)}", node)
    terms = as_list(as_mapping(spec.get("nodeSelector")).get("nodeSelectorTerms"))
    if "nodeSelector" in given and len(terms) > 1:
        message = f"`nodeSelectorTerms` must have exactly one term, got `{len(terms)}`"
        run.report("out-of-range", message, terms)


def _iter_devices(
    spec: Mapping[str, Node], run: Validation, *, flat: bool
) -> Iterator[tuple[Mapping[str, Node], Node]]:
    wrapped = (as_mapping(device) for device in as_list(spec.get("devices")))
    inner = [as_mapping(device.get("basic")) if flat else device for device in wrapped]
    complex_ones = any(not is_empty(device.get(field)) for device in inner for field in ("taints", "consumesCounters"))
    most = _MAX_COMPLEX_DEVICES if complex_ones and run.release >= _PARTITIONS_SINCE else _MAX_DEVICES
    yield from iter_limited(spec, "devices", most, run)


def _validate_counter_sets(spec: Mapping[str, Node], run: Validation) -> None:
    names: set[str] = set()
    if not has_size(spec, "sharedCounters", _MAX_COUNTER_SETS, run):
        return
    for counter_set, node in iter_items("sharedCounters", spec.get("sharedCounters")):
        require_name("a counter set", counter_set, "name", node, run)
        validate_counters("a counter set", counter_set, node, run)
        name = as_text(counter_set.get("name"))
        if name and name in names:
            report_duplicate(name, "sharedCounters", counter_set["name"], run)
        names.add(name)

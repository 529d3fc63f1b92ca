"""Validate the devices of ResourceSlices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobgen.check.admission.fields import (
    Validation,
    find_key,
    is_empty,
    is_set,
    iter_texts,
    report_unsupported,
    require_fields,
)
from jobgen.check.admission.names import LABEL_KEY, is_dns_label, is_label_key
from jobgen.check.admission.scheduling import validate_node_selector
from jobgen.check.validation.resource._capacity import validate_request_policy
from jobgen.check.validation.resource._names import (
    QUALIFIED_NAME,
    has_size,
    is_qualified_name,
    iter_limited,
    report_duplicate,
    require_name,
    validate_node_name,
    validate_taint_key,
    validate_taint_value,
)
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import Node, value_of
from jobgen.model.lazy_re import lazy_pattern

_MAX_ATTRIBUTES = 32
_MAX_VALUE_BYTES = 64
_MAX_TAINTS = 16
_MAX_CONSUMPTIONS = 2
_MAX_COUNTERS = 32
_MAX_CONDITIONS = 4
_BETA_SINCE = (1, 36)
_NODES = ("nodeName", "nodeSelector", "allNodes")
_EFFECTS = ("NoExecute", "NoSchedule", "None")
_VALUES = ("bool", "int", "string", "version")
_NUMBER, _WORD = r"(?:0|[1-9][0-9]*)", r"[0-9A-Za-z-]+"
_PRERELEASE = rf"(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_semantic_version = lazy_pattern(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-{_PRERELEASE}(?:\.{_PRERELEASE})*)?(?:\+{_WORD}(?:\.{_WORD})*)?"
)


def validate_device(outer: Mapping[str, Node], node: Node, run: Validation, *, flat: bool, per_device: bool) -> None:
    """Validate a device; in old versions all fields except its name are in `basic`."""
    require_name("a device", outer, "name", node, run)
    device = as_mapping(outer.get("basic")) if flat else outer
    attributes, capacity = as_mapping(device.get("attributes")), as_mapping(device.get("capacity"))
    count = len(attributes) + len(capacity)
    if count > _MAX_ATTRIBUTES:
        message = f"the device has `{count}` attributes and capacities; it can have at most {_MAX_ATTRIBUTES}"
        run.report("out-of-range", message, find_key(outer, "name", node))
    for name, value in attributes.items():
        _validate_key(name, run)
        _validate_attribute(name, as_mapping(value), run)
    shared = value_of(device.get("allowMultipleAllocations")) is True
    for name, value in capacity.items():
        _validate_key(name, run)
        if run.release >= _BETA_SINCE:
            validate_request_policy(as_mapping(value), run, shared=shared)
    if run.release >= _BETA_SINCE:
        _validate_taints(device, run)
        _validate_consumption(device, run)
        _validate_nodes(device, node, run, per_device=per_device)
        _validate_conditions(device, run)


def _validate_key(name: str, run: Validation) -> None:
    if not is_qualified_name(name):
        run.report("invalid-value", f"`{name}` is not a valid attribute; {QUALIFIED_NAME}", name)


def _validate_attribute(name: str, attribute: Mapping[str, Node], run: Validation) -> None:
    given = [field for field in _VALUES if is_set(attribute.get(field))]
    if len(given) != 1:
        message = f"the attribute `{name}` requires exactly one of `bool`, `int`, `string` and `version`"
        run.report("invalid-form", message, name)
    for field in ("string", "version"):
        found = as_text(attribute.get(field))
        if len(found.encode(errors="replace")) > _MAX_VALUE_BYTES:
            message = f"`{field}` must have at most {_MAX_VALUE_BYTES} bytes, got `{len(found)}`"
            run.report("out-of-range", message, attribute[field])
    version = attribute.get("version")
    if is_set(version) and not _semantic_version.fullmatch(as_text(version)):
        message = f"`{as_text(version)}` is not a semantic version; write three numbers, such as `1.2.3`"
        run.report("invalid-value", message, version)


def _validate_taints(device: Mapping[str, Node], run: Validation) -> None:
    for taint, node in iter_limited(device, "taints", _MAX_TAINTS, run):
        validate_taint(taint, node, run)


def validate_taint(taint: Mapping[str, Node], node: Node, run: Validation) -> None:
    """Validate the key, the value and the effect of a taint."""
    require_fields("a taint", taint, ("key", "effect"), node, run)
    validate_taint_key("key", taint.get("key"), taint, run)
    validate_taint_value("value", taint.get("value"), taint, run)
    if as_text(taint.get("effect")) not in ("", *_EFFECTS):
        report_unsupported("effect", taint["effect"], _EFFECTS, run)


def _validate_consumption(device: Mapping[str, Node], run: Validation) -> None:
    names: set[str] = set()
    for consumption, node in iter_limited(device, "consumesCounters", _MAX_CONSUMPTIONS, run):
        require_name("a consumption", consumption, "counterSet", node, run)
        validate_counters("a consumption", consumption, node, run)
        name = as_text(consumption.get("counterSet"))
        if name and name in names:
            report_duplicate(name, "consumesCounters", consumption["counterSet"], run)
        names.add(name)


def validate_counters(what: str, owner: Mapping[str, Node], node: Node, run: Validation) -> None:
    """Validate the names of counters and how many there are."""
    require_fields(what, owner, ("counters",), node, run)
    counters = as_mapping(owner.get("counters"))
    if len(counters) > _MAX_COUNTERS:
        message = f"`counters` has `{len(counters)}` entries; it can have at most {_MAX_COUNTERS}"
        run.report("out-of-range", message, find_key(owner, "counters", node))
        return
    for name in counters:
        if not is_dns_label(name):
            run.report("invalid-value", f"`{name}` is not a valid name of a counter; use a DNS label", name)


def iter_node_choices(owner: Mapping[str, Node], fields: tuple[str, ...], run: Validation) -> Iterator[str]:
    """Yield the fields that choose the nodes of devices, and validate them."""
    for field in fields:
        value = owner.get(field)
        if not is_set(value):
            continue
        if field == "nodeName":
            require_fields("the choice of nodes", owner, (field,), owner, run)
            validate_node_name(field, value, owner, run)
        elif field == "nodeSelector":
            validate_node_selector(field, value, owner, run)
        elif value_of(value) is False:
            run.report("invalid-value", f"`{field}` must be true or not be set, got `false`", value)
        if value_of(value) not in ("", False):
            yield field


def _validate_nodes(device: Mapping[str, Node], node: Node, run: Validation, *, per_device: bool) -> None:
    given = [field for field in _NODES if is_set(device.get(field))]
    if not per_device:
        if given:
            message = f"`{given[0]}` of a device requires `perDeviceNodeSelection: true` in the ResourceSlice; set it"
            run.report("invalid-form", message, find_key(device, given[0], node))
        return
    given = list(iter_node_choices(device, _NODES, run))
    if len(given) != 1:
        message = f"a device requires exactly one of `nodeName`, `nodeSelector` and `allNodes`, got {len(given)}"
        run.report("invalid-form", message, find_key(device, given[1], node) if given else node)


def _validate_conditions(device: Mapping[str, Node], run: Validation) -> None:
    pair = ("bindingConditions", "bindingFailureConditions")
    seen: set[str] = set()
    for field in pair:
        if not has_size(device, field, _MAX_CONDITIONS, run):
            continue
        for found, node in iter_texts(device.get(field)):
            if not is_label_key(found):
                run.report("invalid-label", f"`{found}` is not a valid condition; {LABEL_KEY}", node)
            elif found in seen:
                report_duplicate(found, field, node, run)
            seen.add(found)
    given = [field for field in pair if not is_empty(device.get(field))]
    if len(given) == 1:
        other = pair[1 - pair.index(given[0])]
        run.report("missing-field", f"`{given[0]}` requires `{other}`; set it", find_key(device, given[0], device))

"""Validate objects of the cluster itself: nodes and what runs on them, namespaces, leases, API services and events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise

from jobgen.check.admission.fields import (
    Check,
    Fields,
    Kind,
    Table,
    Validation,
    all_of,
    choice,
    count,
    dns_label,
    dns_subdomain,
    fields,
    find_key,
    inside,
    is_empty,
    items,
    iter_items,
    iter_strings,
    join_names,
    label_key,
    mapping,
    number,
    since,
    spec,
    text,
    valid_text,
    validate_fixed_name,
    validate_port,
)
from jobgen.check.admission.metadata import validate_finalizers, validate_labels
from jobgen.check.admission.names import (
    DNS_LABEL_1035,
    LABEL_KEY,
    LABEL_NAME,
    LABEL_VALUE,
    PATH_SEGMENT_NAME,
    is_dns_label_1035,
    is_label_key,
    is_label_value,
)
from jobgen.check.admission.scheduling import validate_overhead, validate_tolerations
from jobgen.check.pod_security.checks import LABELS, LEVELS, parse_version
from jobgen.check.validation.addresses import describe_cidr_fault, parse_cidr
from jobgen.check.validation.quotas import validate_amount
from jobgen.k8s.nodes import as_integer, as_mapping, as_text
from jobgen.model.data import Node, locatable, value_of
from jobgen.model.lazy_re import lazy_pattern

_MAX_BYTES, _MAX_NOTE_BYTES = 128, 1024
_AVOID_PODS = "scheduler.alpha.kubernetes.io/preferAvoidPods"
_FEATURE = lazy_pattern(r"[A-Z][A-Za-z0-9]*(?:/[A-Za-z][A-Za-z0-9]*)*\Z")
_TAINT: Table = {"key": label_key, "value": text("invalid-label", "taint value", is_label_value, LABEL_VALUE)}
_taints = items("a taint", _TAINT, "key", choice("a taint", "effect", "NoSchedule", "PreferNoSchedule", "NoExecute"))


def _has_time(value: Node) -> bool:
    """Return True if a time is set, and not Go's zero."""
    found = as_text(value)
    return bool(found) and not found.startswith("0001-01-01T00:00:00")


def _event(involved_field: str, controller_field: str, note_field: str) -> Check:
    """Return a check of the namespace of the object that an Event is about, and for new Events of who reports it."""

    def check(obj: Fields, place: Node, run: Validation) -> None:
        namespace, involved = as_text(run.metadata.get("namespace")), as_mapping(obj.get(involved_field))
        is_new = _has_time(obj.get("eventTime"))
        expected = as_text(involved.get("namespace"))
        node = involved.get("namespace") or find_key(obj, involved_field, obj)
        # Without a namespace in the manifest, the client decides.
        if expected and namespace and expected != namespace and not is_new:
            message = f"the Event is in the namespace `{namespace}`, but its object in `{expected}`; write the same"
            run.invalid(message, node)
        elif namespace and not expected and namespace not in ("default", *(("kube-system",) if is_new else ())):
            run.invalid(f"the Event of an object without a namespace is in `{namespace}`; write it to `default`", node)
        if is_new:
            check_report(obj, place, run)

    def check_report(obj: Fields, place: Node, run: Validation) -> None:
        controller = as_text(obj.get(controller_field))
        if controller and not is_label_key(controller):
            run.invalid(f"`{controller}` is not a valid name of a controller; {LABEL_KEY}", obj[controller_field])
        for field in ("reportingInstance", "action", "reason", note_field):
            limit = _MAX_NOTE_BYTES if field == note_field else _MAX_BYTES
            size = len(as_text(obj.get(field)).encode(errors="replace"))
            if size > limit:
                run.report("out-of-range", f"`{field}` has `{size}` bytes; the limit is {limit}", obj[field])
        require_report(obj, place, run)

    required = (controller_field, "reportingInstance", "action", "reason")
    require_report = fields("an Event with `eventTime`", {}, *required)
    return check


def _check_series(series: Fields, place: Node, run: Validation) -> None:
    if (as_integer(series.get("count")) or 0) < 2:
        message = "`count` of `series` must be at least 2; set it"
        run.report("out-of-range", message, locatable(series.get("count"), series, place))
    if not _has_time(series.get("lastObservedTime")):
        run.report_missing("`series`", series, "lastObservedTime", place)


def _check_new_event(obj: Fields, place: Node, run: Validation) -> None:
    """Check that an Event has a time and none of the deprecated fields."""
    if not _has_time(obj.get("eventTime")):
        run.report_missing("an Event", obj, "eventTime", obj)
    source = as_mapping(obj.get("deprecatedSource"))
    deprecated: Mapping[str, bool] = {
        "deprecatedFirstTimestamp": _has_time(obj.get("deprecatedFirstTimestamp")),
        "deprecatedLastTimestamp": _has_time(obj.get("deprecatedLastTimestamp")),
        "deprecatedCount": bool(as_integer(obj.get("deprecatedCount"))),
        "deprecatedSource": any(as_text(source.get(name)) for name in ("component", "host")),
    }
    for field, is_given in deprecated.items():
        if is_given:
            run.invalid(f"`{field}` cannot be set for a new Event; delete it", find_key(obj, field, obj))


def _check_security_labels(namespace: Fields, place: Node, run: Validation) -> None:
    """Check the labels of Pod Security, which an admission plugin reads."""
    labels = as_mapping(run.metadata.get("labels"))
    for label in LABELS:
        found = as_text(labels.get(label))
        if label.endswith("-version"):
            is_valid, expected = parse_version(found) is not None, "`latest` or a version such as `v1.36`"
        else:
            is_valid, expected = found in LEVELS, join_names(list(LEVELS), "or")
        if label in labels and not is_valid:
            run.report("invalid-label", f"label `{label}` is `{found}`, but must be {expected}", labels[label])


def _check_avoided_pods(node: Fields, place: Node, run: Validation) -> None:
    """Check an annotation that old schedulers read."""
    annotations = as_mapping(run.metadata.get("annotations"))
    written = as_text(annotations.get(_AVOID_PODS))
    try:
        found = json.loads(written) if written else {}
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        run.report("invalid-annotation", f"`{_AVOID_PODS}` must be JSON; delete it", annotations[_AVOID_PODS])


def _check_node(node_spec: Fields, place: Node, run: Validation) -> None:
    """Check the taints, and the networks of pods; `podCIDR` wins if it differs from the first of them."""
    seen: set[tuple[str, str]] = set()
    for taint, node in iter_items("taints", node_spec.get("taints")):
        key, effect = as_text(taint.get("key")), as_text(taint.get("effect"))
        if (key, effect) in seen:
            message = f"two taints have the key `{key}` and the effect `{effect}`; delete one of them"
            run.report("duplicate-item", message, node)
        seen.add((key, effect))
    first, listed = as_text(node_spec.get("podCIDR")), list(iter_strings(node_spec.get("podCIDRs")))
    if first and (not listed or listed[0][0] != first):
        listed = [(first, node_spec["podCIDR"])]
    for found, node in listed:
        if fault := describe_cidr_fault(found, run.release):
            run.report("invalid-host-name", fault, node)
    networks = [network for found, _ in listed if (network := parse_cidr(found)) is not None]
    if len(listed) > 2 or (len(networks) == 2 and networks[0].version == networks[1].version):
        message = "`podCIDRs` can have one network of IPv4 and one of IPv6; delete the others"
        run.invalid(message, find_key(node_spec, "podCIDRs", node_spec))


def _validate_amounts(key: str, value: Node, owner: Fields, run: Validation) -> None:
    resources = as_mapping(value)
    for name, amount in resources.items():
        validate_amount(name, amount, resources, run)


def _validate_features(key: str, value: Node, owner: Fields, run: Validation) -> None:
    features = list(iter_strings(value))
    for found, node in features:
        if len(found) > 253 or not _FEATURE.match(found):
            run.invalid(f"`{found}` is not a valid feature; write it like `MyFeature` or `MyFeature/part`", node)
    for (before, _), (found, node) in pairwise(features):
        if before == found:
            run.report("duplicate-item", f"`{key}` contains `{found}` twice; delete one of them", node)
        elif before > found:
            run.invalid(f"`{found}` must be before `{before}`; sort the features", node)


def _validate_equal_tolerations(key: str, value: Node, owner: Fields, run: Validation) -> None:
    seen: set[tuple[str, ...]] = set()
    for item, node in iter_items(key, value):
        found = tuple(as_text(item.get(field)) for field in ("key", "operator", "value", "effect"))
        if found in seen:
            run.report("duplicate-item", "two tolerations are equal; delete one of them", node)
        seen.add(found)


def _check_api_service(service: Fields, place: Node, run: Validation) -> None:
    group, version = as_text(service.get("group")), as_text(service.get("version"))
    validate_fixed_name(f"{version}.{group}", "version and group", run)
    if not group and version != "v1":
        run.require_fields("an APIService", service, ("group",), place)
    skips, has_bundle = value_of(service.get("insecureSkipTLSVerify")) is True, not is_empty(service.get("caBundle"))
    if not isinstance(service.get("service"), dict):
        for field, is_given in (("caBundle", has_bundle), ("insecureSkipTLSVerify", skips)):
            if is_given:
                message = f"`{field}` requires `service`; delete it, or name the Service that serves the API"
                run.report("invalid-form", message, find_key(service, field, place))
    elif skips and has_bundle:
        message = "`insecureSkipTLSVerify` cannot be true if `caBundle` is set; delete one of them"
        run.report("invalid-form", message, service["insecureSkipTLSVerify"])


_NODE_STATUS: Table = {
    "allocatable": _validate_amounts,
    "capacity": _validate_amounts,
    "declaredFeatures": since((1, 36), _validate_features),
    "nodeInfo": since((1, 33), mapping({"swap": mapping({"capacity": number(1)})})),
}
_RUNTIME_CLASS: Table = {
    "handler": dns_label("invalid-value", "handler"),
    "overhead": mapping({"podFixed": validate_overhead}),
    "scheduling": mapping(
        {"nodeSelector": validate_labels, "tolerations": all_of(validate_tolerations, _validate_equal_tolerations)}
    ),
}

_API_SERVICE: Table = {
    "group": dns_subdomain("invalid-value", "API group"),
    "groupPriorityMinimum": number(1, 20000),
    "service": mapping({"port": validate_port}, "namespace", "name"),
    "version": text("invalid-value", "version", is_dns_label_1035, DNS_LABEL_1035),
    "versionPriority": number(1, 1000),
}
_API_SERVICE_FIELDS = ("version", "groupPriorityMinimum", "versionPriority")

# Strategies and preferred holders of Leases need a feature gate that is off by default: the API server drops them.
_LEASE: Table = {"leaseDurationSeconds": number(1), "leaseTransitions": count}
_target_kind = valid_text("invalid-value", "`kind` of the target is `{found}`, but must be `Node`", "Node".__eq__)

KINDS = {
    "Event": Kind(_event("involvedObject", "reportingComponent", "message"), PATH_SEGMENT_NAME),
    "events.k8s.io/Event": Kind(
        fields(
            "an Event",
            {"series": mapping({}, _check_series)},
            _event("regarding", "reportingController", "note"),
            choice("an Event", "type", "Normal", "Warning"),
            _check_new_event,
        )
    ),
    "APIService": Kind(
        spec("an APIService", _API_SERVICE, *_API_SERVICE_FIELDS, _check_api_service), PATH_SEGMENT_NAME
    ),
    "Binding": Kind(inside("target", "`target`", {"kind": _target_kind}, "name")),
    "Lease": Kind(spec("a Lease", _LEASE)),
    "Namespace": Kind(spec("a Namespace", {"finalizers": validate_finalizers}, _check_security_labels), LABEL_NAME),
    "Node": Kind(
        fields(
            "a Node",
            {"status": mapping(_NODE_STATUS)},
            spec("a Node", {"taints": _taints}, _check_node, _check_avoided_pods),
        )
    ),
    "RuntimeClass": Kind(fields("a RuntimeClass", _RUNTIME_CLASS, "handler")),
}

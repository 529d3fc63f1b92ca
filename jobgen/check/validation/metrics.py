"""Validate the metrics by which an autoscaler scales."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jobgen.check.admission.fields import (
    Validation,
    get_key,
    is_empty,
    is_set,
    iter_items,
    join_names,
    list_set_keys,
    report_missing,
    report_unsupported,
    require_fields,
    validate_enum,
    validate_fields,
    validate_number,
    validate_string,
)
from jobgen.check.admission.names import DNS_LABEL, PATH_SEGMENT, is_dns_label, is_path_segment
from jobgen.check.admission.resources import is_container_resource
from jobgen.check.validation.object_references import validate_object_reference
from jobgen.k8s.nodes import as_text
from jobgen.model.data import Node, locatable, value_of
from jobgen.model.quantity import to_milli

_FIELDS = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
_TARGET_TYPES = ("Utilization", "Value", "AverageValue")
_validate_utilization = validate_number(1)
_validate_metric_name = validate_string("invalid-value", "name of a metric", is_path_segment, PATH_SEGMENT)
_validate_container = validate_string("invalid-container-name", "container name", is_dns_label, DNS_LABEL)


def validate_metrics(key: str, value: Node, owner: Mapping[str, Node], run: Validation) -> None:
    """Validate the metrics of an autoscaler: each has a type, and the field of that type."""
    for metric, node in iter_items(key, value):
        _validate_metric(metric, node, run)


def _validate_metric(metric: Mapping[str, Node], parent: Node, run: Validation) -> None:
    metric_type = as_text(metric.get("type"))
    field = _FIELDS.get(metric_type, "")
    given = list_set_keys(metric, tuple(_FIELDS.values()))
    if is_empty(metric.get("type")):
        report_missing("a metric", metric, "type", parent, run)
    elif metric_type and not field:
        report_unsupported("type", metric["type"], tuple(_FIELDS), run)
    elif field and field not in given:
        run.report("missing-field", f"a metric of type `{metric_type}` requires `{field}`; set it", metric["type"])
    if len(given) > 1:
        for other in given:
            if field and other != field:
                message = f"`{other}` cannot be set in a metric of type `{metric_type}`; delete it"
                run.report("invalid-value", message, other)
    name = field if field in given else given[0] if given else ""
    source = metric.get(name)
    if isinstance(source, dict):
        _SOURCES[name](get_key(metric, name), source, run)


def _validate_object(key: str, source: Mapping[str, Node], run: Validation) -> None:
    described = source.get("describedObject")
    if is_set(described):
        validate_object_reference("describedObject", described, run, requires_group=False)
    else:
        report_missing(f"`{key}`", source, "describedObject", key, run)
    _validate_named_metric(key, source, run)
    _validate_target(key, source, ("value", "averageValue"), run)


def _validate_external(key: str, source: Mapping[str, Node], run: Validation) -> None:
    _validate_named_metric(key, source, run)
    _validate_target(key, source, ("value", "averageValue"), run, only_one=True)


def _validate_pods(key: str, source: Mapping[str, Node], run: Validation) -> None:
    _validate_named_metric(key, source, run)
    _validate_target(key, source, ("averageValue",), run)


def _validate_resource(key: str, source: Mapping[str, Node], run: Validation) -> None:
    require_fields(f"`{key}`", source, ("name",), key, run)
    _validate_target(key, source, ("averageUtilization", "averageValue"), run, only_one=True)


def _validate_container_resource(key: str, source: Mapping[str, Node], run: Validation) -> None:
    name = as_text(source.get("name"))
    if name and not is_container_resource(name):
        message = f"containers cannot request the resource `{name}`; write one such as `cpu`"
        run.report("unknown-resource", message, source["name"])
    require_fields(f"`{key}`", source, ("container",), key, run)
    validate_fields(source, {"container": _validate_container}, run)
    _validate_resource(key, source, run)


def _validate_named_metric(key: str, source: Mapping[str, Node], run: Validation) -> None:
    metric = source.get("metric")
    if not is_set(metric):
        report_missing(f"`{key}`", source, "metric", key, run)
    elif isinstance(metric, dict):
        require_fields("`metric`", metric, ("name",), get_key(source, "metric"), run)
        validate_fields(metric, {"name": _validate_metric_name}, run)


def _validate_target(
    key: str, source: Mapping[str, Node], fields: tuple[str, ...], run: Validation, *, only_one: bool = False
) -> None:
    """Validate the value that a metric should have; `fields` are those of which one is required."""
    target = source.get("target")
    if not is_set(target):
        report_missing(f"`{key}`", source, "target", key, run)
        return
    if not isinstance(target, dict):
        return
    require_fields("`target`", target, ("type",), get_key(source, "target"), run)
    validate_fields(target, _TARGET, run)
    given = list_set_keys(target, fields)
    if not given:
        message = f"`target` of `{key}` requires {join_names(list(fields), 'or')}; set it"
        run.report("missing-field", message, locatable(target, get_key(source, "target")))
    elif only_one and len(given) > 1:
        message = f"{join_names(given, 'and')} of a target are mutually exclusive; delete one of them"
        run.report("invalid-value", message, given[1])


def _validate_amount(key: str, value: Node, owner: Mapping[str, Node], run: Validation) -> None:
    milli = to_milli(value)
    if milli is not None and milli <= 0:
        run.report("out-of-range", f"`{key}` must be more than 0, got `{value_of(value)}`", value)


_TARGET = {
    "averageUtilization": _validate_utilization,
    "averageValue": _validate_amount,
    "type": validate_enum("", *_TARGET_TYPES),
    "value": _validate_amount,
}
_SOURCES: Mapping[str, Callable[[str, Mapping[str, Node], Validation], None]] = {
    "containerResource": _validate_container_resource,
    "external": _validate_external,
    "object": _validate_object,
    "pods": _validate_pods,
    "resource": _validate_resource,
}

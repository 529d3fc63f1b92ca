"""Validate LimitRanges."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, find_key, iter_items, report_missing, report_unsupported
from jobgen.check.admission.names import LABEL_KEY, is_label_key
from jobgen.check.admission.resources import is_container_resource
from jobgen.check.validation.core._resource_names import may_overcommit, validate_standard_resource
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import Node, value_of
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.quantity import decode_milli, to_int64

_TYPES = ("Container", "Pod", "PersistentVolumeClaim")
_DEFAULTS = ("default", "defaultRequest")
_AMOUNTS = ("max", "min", *_DEFAULTS)
_RATIO = "maxLimitRequestRatio"
_MAX_MILLI = (2**63 - 1) // 1000
_ORDERED = (
    ("min", "max"),
    ("min", "defaultRequest"),
    ("defaultRequest", "max"),
    ("defaultRequest", "default"),
    ("min", "default"),
    ("default", "max"),
)
"""Fields whose amounts must be in this order."""


class _Amount(NamedTuple):
    """An amount of a resource, and the field that it was written in, which differs if it is a default."""

    milli: int
    node: Node
    field: str


_Amounts = dict[str, dict[str, _Amount]]


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the limits of each type."""
    types: set[str] = set()
    for limit, node in iter_items("limits", run.spec.get("limits")):
        limit_type = as_text(limit.get("type"))
        if limit_type:
            _validate_type(limit_type, limit["type"], types, run)
        else:
            report_missing("a limit", limit, "type", node, run)
        for field in (*_AMOUNTS, _RATIO):
            for name in as_mapping(limit.get(field)):
                _validate_resource_name(name, limit_type, run)
        if limit_type == "Pod":
            _validate_pod_limit(limit, run)
        if limit_type == "PersistentVolumeClaim":
            _validate_claim_limit(limit, node, run)
        amounts = _collect_amounts(limit, limit_type)
        for name in {name for values in amounts.values() for name in values}:
            _validate_order(name, amounts, run)
            _validate_equal_defaults(name, amounts, run)
        for name, ratio in as_mapping(limit.get(_RATIO)).items():
            _validate_ratio(name, ratio, amounts, run)


def _validate_type(limit_type: str, node: Node, types: set[str], run: Validation) -> None:
    if "/" not in limit_type and limit_type not in _TYPES:
        report_unsupported("type", node, _TYPES, run)
    elif not is_label_key(limit_type):
        run.report("invalid-value", f"`{limit_type}` is not a valid type; {LABEL_KEY}", node)
    elif limit_type in types:
        run.report("duplicate-item", f"two limits have the type `{limit_type}`; merge them", node)
    types.add(limit_type)


def _validate_resource_name(name: str, limit_type: str, run: Validation) -> None:
    if limit_type not in ("Pod", "Container"):
        validate_standard_resource(name, run)
    elif not is_container_resource(name):
        message = f"containers cannot request the resource `{name}`; write `cpu`, `memory` or one with a domain"
        run.report("unknown-resource", message, name)


def _validate_pod_limit(limit: Mapping[str, Node], run: Validation) -> None:
    for field in _DEFAULTS:
        if as_mapping(limit.get(field)):
            message = f"`{field}` cannot be set for the type `Pod`; set it for `Container`"
            run.report("invalid-value", message, find_key(limit, field, limit))


def _validate_claim_limit(limit: Mapping[str, Node], node: Node, run: Validation) -> None:
    if not any("storage" in as_mapping(limit.get(field)) for field in ("min", "max")):
        message = "the type `PersistentVolumeClaim` requires `storage` in `min` or `max`; set it"
        run.report("missing-field", message, node)


def _collect_amounts(limit: Mapping[str, Node], limit_type: str) -> _Amounts:
    """Return the amounts by field and resource, with the defaults that the API server sets for containers."""
    fields = _AMOUNTS if limit_type != "Pod" else ("max", "min")
    amounts = {field: _read_amounts(field, as_mapping(limit.get(field))) for field in fields}
    if limit_type == "Container":
        amounts["default"] = amounts["max"] | amounts["default"]
        amounts["defaultRequest"] = amounts["min"] | amounts["default"] | amounts["defaultRequest"]
    return amounts


def _read_amounts(field: str, resources: Mapping[str, Node]) -> dict[str, _Amount]:
    found: dict[str, _Amount] = {}
    for name, node in resources.items():
        milli = decode_milli(node)
        if milli is not None:
            found[name] = _Amount(milli, node, field)
    return found


def _validate_order(name: str, amounts: _Amounts, run: Validation) -> None:
    """Validate that no amount exceeds one that limits it; amounts of the same two fields are reported once."""
    reported: set[tuple[str, str]] = set()
    for low_field, high_field in _ORDERED:
        low, high = amounts.get(low_field, {}).get(name), amounts.get(high_field, {}).get(name)
        if low is None or high is None or low.milli <= high.milli or (low.field, high.field) in reported:
            continue
        reported.add((low.field, high.field))
        lower, higher = f"`{value_of(low.node)}` in `{low.field}`", f"`{value_of(high.node)}` in `{high.field}`"
        node = high.node if low_field == "min" and high.field != "max" else low.node
        run.report("out-of-range", f"`{name}` is {lower}, more than {higher}; change one of them", node)


def _validate_equal_defaults(name: str, amounts: _Amounts, run: Validation) -> None:
    """Validate that devices and huge pages have a default request that equals the default limit."""
    limit, request = amounts.get("default", {}).get(name), amounts.get("defaultRequest", {}).get(name)
    if may_overcommit(name) or limit is None or request is None or limit.milli <= request.milli:
        return
    message = f"`{name}` cannot be overcommitted, so `defaultRequest` must equal `default`, `{value_of(limit.node)}`"
    run.report("invalid-value", f"{message}, got `{value_of(request.node)}`", request.node)


def _validate_ratio(name: str, ratio: Node, amounts: _Amounts, run: Validation) -> None:
    milli = decode_milli(ratio)
    if milli is None:
        return
    if milli < 1000:
        run.report("out-of-range", f"`{_RATIO}` must be at least 1, got `{value_of(ratio)}`", ratio)
    least, most = amounts["min"].get(name), amounts["max"].get(name)
    if least is None or most is None:
        return
    found, limit = _compute_ratios(ratio, least.node, most.node)
    if found > limit:
        message = f"`{_RATIO}` is `{value_of(ratio)}`, more than `{limit:g}`, which is `max` divided by `min`; lower it"
        run.report("out-of-range", message, ratio)


def _compute_ratios(ratio: Node, least: Node, most: Node) -> tuple[float, float]:
    """Return a ratio and the largest one that the bounds allow, which is infinite if the lower bound is 0."""
    values = [to_int64(node) or 0 for node in (ratio, least, most)]
    divisor = 1
    if max(values) < _MAX_MILLI:
        values, divisor = [to_int64(node, -3) or 0 for node in (ratio, least, most)], 1000
    found, low, high = values
    return found / divisor, high / low if low else float("inf")

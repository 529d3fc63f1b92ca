"""Validate Nodes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from jobgen.check.admission.fields import (
    Validation,
    find_key,
    iter_items,
    iter_texts,
    report_missing,
    report_unsupported,
    validate_number,
)
from jobgen.check.admission.metadata import describe_label_key
from jobgen.check.admission.names import LABEL_VALUE, is_label_key, is_label_value
from jobgen.check.validation._addresses import describe_cidr_fault, parse_cidr
from jobgen.check.validation.core._resource_names import validate_amount
from jobgen.k8s.nodes import as_mapping, as_text, get_path
from jobgen.k8s.releases import Release
from jobgen.model.data import Node
from jobgen.model.lazy_re import lazy_pattern

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_SWAP_SINCE: Release = (1, 33)
_FEATURES_SINCE: Release = (1, 36)
_FEATURE = lazy_pattern(r"[A-Z][A-Za-z0-9]*(?:/[A-Za-z][A-Za-z0-9]*)*\Z")
_validate_swap = validate_number(1)


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the taints and networks of a node, and its status, which the API server keeps."""
    _validate_taints(run)
    _validate_networks(run)
    status = as_mapping(obj.get("status"))
    for field in ("capacity", "allocatable"):
        resources = as_mapping(status.get(field))
        for name, value in resources.items():
            validate_amount(name, value, resources, run)
    if run.release >= _SWAP_SINCE:
        swap = as_mapping(get_path(status, "nodeInfo", "swap"))
        _validate_swap("capacity", swap.get("capacity"), swap, run)
    if run.release >= _FEATURES_SINCE:
        _validate_features(list(iter_texts(status.get("declaredFeatures"))), run)


def _validate_taints(run: Validation) -> None:
    seen: set[tuple[str, str]] = set()
    for taint, node in iter_items("taints", run.spec.get("taints")):
        key, value, effect = (as_text(taint.get(field)) for field in ("key", "value", "effect"))
        if not key:
            report_missing("a taint", taint, "key", node, run)
        elif not is_label_key(key):
            run.report("invalid-label", describe_label_key(key), taint["key"])
        if not is_label_value(value):
            run.report("invalid-label", f"`{value}` is not a valid taint value; {LABEL_VALUE}", taint["value"])
        if not effect:
            report_missing("a taint", taint, "effect", node, run)
        elif effect not in _EFFECTS:
            report_unsupported("effect", taint["effect"], _EFFECTS, run)
        if (key, effect) in seen:
            message = f"two taints have the key `{key}` and the effect `{effect}`; delete one of them"
            run.report("duplicate-item", message, node)
        seen.add((key, effect))


def _validate_networks(run: Validation) -> None:
    """Validate the networks of the node's pods; `podCIDR` wins if it differs from the first of them."""
    first, listed = as_text(run.spec.get("podCIDR")), list(iter_texts(run.spec.get("podCIDRs")))
    if first and (not listed or listed[0][0] != first):
        listed = [(first, run.spec["podCIDR"])]
    for text, node in listed:
        if fault := describe_cidr_fault(text, run.release):
            run.report("invalid-host-name", fault, node)
    networks = [network for text, _ in listed if (network := parse_cidr(text)) is not None]
    if len(listed) > 2 or (len(networks) == 2 and networks[0].version == networks[1].version):
        message = "`podCIDRs` can have one network of IPv4 and one of IPv6; delete the others"
        run.report("invalid-value", message, find_key(run.spec, "podCIDRs", run.spec))


def _validate_features(features: list[tuple[str, Node]], run: Validation) -> None:
    for text, node in features:
        if len(text) > 253 or not _FEATURE.match(text):
            message = f"`{text}` is not a valid feature; write it like `MyFeature` or `MyFeature/part`"
            run.report("invalid-value", message, node)
    for (before, _), (text, node) in pairwise(features):
        if before == text:
            run.report("duplicate-item", f"`declaredFeatures` contains `{text}` twice; delete one of them", node)
        elif before > text:
            run.report("invalid-value", f"`{text}` must be before `{before}`; sort the features", node)

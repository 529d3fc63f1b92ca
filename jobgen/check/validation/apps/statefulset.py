"""Validate StatefulSets."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import (
    Validation,
    ValidatorTable,
    get_key,
    is_set,
    iter_items,
    report_missing,
    report_unsupported,
    validate_enum,
    validate_fields,
    validate_mapping,
    validate_string,
)
from jobgen.check.admission.names import DNS_LABEL, LABEL_NAME, is_dns_label
from jobgen.check.admission.volumes import validate_claim_spec
from jobgen.check.validation.workloads import REPLICAS, validate_count, validate_workload
from jobgen.k8s.nodes import as_mapping, as_text, get_path
from jobgen.model.data import Node

NAME_FORMAT = LABEL_NAME
_STRATEGIES = ("RollingUpdate", "OnDelete")
_validate_retention = validate_enum("", "Retain", "Delete")
_SERVICE_NAME_SINCE = (1, 33)
_CLAIM_SPEC_SINCE = (1, 34)


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the update strategy, the claims, the number of pods, the selector and the template."""
    validate_workload(obj, _SPEC, run)


def _validate_strategy(key: str, value: Node, owner: Mapping[str, Node], run: Validation) -> None:
    strategy = as_mapping(value)
    name, update = as_text(strategy.get("type")), strategy.get("rollingUpdate")
    if name and name not in _STRATEGIES:
        report_unsupported("type", strategy["type"], _STRATEGIES, run)
    elif name == "OnDelete":
        if is_set(update):
            message = "`rollingUpdate` cannot be set if `type` is `OnDelete`; delete it"
            run.report("invalid-value", message, get_key(strategy, "rollingUpdate"))
    elif isinstance(update, dict):
        # Without `maxUnavailable`: the API server drops it, because its feature gate is off by default.
        validate_fields(update, {"partition": validate_count}, run)


def _validate_claims(key: str, value: Node, owner: Mapping[str, Node], run: Validation) -> None:
    """Validate the templates of claims; each is also a volume of the pods, by its name."""
    for claim, node in iter_items(key, value):
        name = as_text(get_path(claim, "metadata", "name"))
        if not name:
            report_missing("a volume claim", claim, "metadata.name", node, run)
        elif not is_dns_label(name):
            message = f"`{name}` is not a valid volume name; {DNS_LABEL}"
            run.report("invalid-volume-name", message, get_path(claim, "metadata", "name"))
        if run.release < _CLAIM_SPEC_SINCE:
            continue
        if is_set(claim.get("spec")):
            validate_claim_spec(get_key(claim, "spec"), claim["spec"], claim, run)
        elif name:
            report_missing("a volume claim", claim, "spec", node, run)


def _validate_service_name(key: str, value: Node, owner: Mapping[str, Node], run: Validation) -> None:
    if run.release >= _SERVICE_NAME_SINCE:
        _validate_label(key, value, owner, run)


_validate_label = validate_string("invalid-object-name", "name of a Service", is_dns_label, DNS_LABEL)
_SPEC: ValidatorTable = {
    **REPLICAS,
    "ordinals": validate_mapping({"start": validate_count}),
    "persistentVolumeClaimRetentionPolicy": validate_mapping(
        {"whenDeleted": _validate_retention, "whenScaled": _validate_retention}
    ),
    "podManagementPolicy": validate_enum("", "OrderedReady", "Parallel"),
    "serviceName": _validate_service_name,
    "updateStrategy": _validate_strategy,
    "volumeClaimTemplates": _validate_claims,
}

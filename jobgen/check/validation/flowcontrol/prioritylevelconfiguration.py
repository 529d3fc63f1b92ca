"""Validate PriorityLevelConfigurations."""

from __future__ import annotations

import math
from collections.abc import Mapping

from jobgen.check.admission.fields import (
    Validation,
    ValidatorTable,
    find_key,
    is_set,
    report_missing,
    report_unsupported,
    validate_fields,
    validate_number,
)
from jobgen.k8s.nodes import as_integer, as_mapping, as_text
from jobgen.model.data import Node

_ZERO_SHARES = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"
_TYPES = ("Exempt", "Limited")
_RESPONSES = ("Queue", "Reject")
_MAX_QUEUES = 10_000_000
_MAX_HASH_BITS = 60
_DEFAULTS = {"handSize": 8, "queues": 64}
_SHARES: ValidatorTable = {
    "nominalConcurrencyShares": validate_number(0),
    "lendablePercent": validate_number(0, 100),
    "borrowingLimitPercent": validate_number(0),
}
_QUEUING: ValidatorTable = {
    "queueLengthLimit": validate_number(1, allow_zero=True),
    "queues": validate_number(1, _MAX_QUEUES, allow_zero=True),
    "handSize": validate_number(1, allow_zero=True),
}


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the type and the settings of that type."""
    annotations = as_mapping(run.metadata.get("annotations"))
    if _ZERO_SHARES in annotations:
        message = f"the annotation `{_ZERO_SHARES}` cannot be set; delete it"
        run.report("invalid-annotation", message, find_key(annotations, _ZERO_SHARES, annotations))
    spec, key = run.spec, find_key(obj, "spec", obj)
    kind = as_text(spec.get("type"))
    if kind not in _TYPES:
        if kind:
            report_unsupported("type", spec["type"], _TYPES, run)
        else:
            report_missing("a PriorityLevelConfiguration", spec, "type", key, run)
        return
    if (as_text(run.metadata.get("name")) == "exempt") != (kind == "Exempt"):
        message = "`type` must be `Exempt` for the object named `exempt`, and `Limited` for all others"
        run.report("invalid-value", message, spec["type"])
    own, other = ("exempt", "limited") if kind == "Exempt" else ("limited", "exempt")
    if is_set(spec.get(other)):
        message = f"`{other}` cannot be set if `type` is `{kind}`; delete it"
        run.report("invalid-form", message, find_key(spec, other, key))
    settings = spec.get(own)
    if isinstance(settings, dict):
        validate_fields(settings, _SHARES, run)
        if kind == "Limited":
            _validate_response(settings, find_key(spec, own, key), run)
    elif kind == "Limited":
        report_missing("`type: Limited`", spec, "limited", key, run)


def _validate_response(limited: Mapping[str, Node], parent: Node, run: Validation) -> None:
    response, key = as_mapping(limited.get("limitResponse")), find_key(limited, "limitResponse", parent)
    kind, queuing = as_text(response.get("type")), response.get("queuing")
    if kind not in _RESPONSES:
        if kind:
            report_unsupported("type", response["type"], _RESPONSES, run)
        else:
            report_missing("`limitResponse`", response, "type", key, run)
    elif kind == "Reject" and is_set(queuing):
        message = "`queuing` cannot be set if `type` is `Reject`; delete it"
        run.report("invalid-form", message, find_key(response, "queuing", key))
    elif kind == "Queue" and not isinstance(queuing, dict):
        report_missing("`type: Queue`", response, "queuing", key, run)
    elif isinstance(queuing, dict):
        _validate_queuing(queuing, find_key(response, "queuing", key), run)


def _validate_queuing(queuing: Mapping[str, Node], key: Node, run: Validation) -> None:
    validate_fields(queuing, _QUEUING, run)
    hand, queues = (as_integer(queuing.get(field)) or default for field, default in _DEFAULTS.items())
    if hand <= 0 or queues <= 0:
        return
    if hand > queues:
        message = f"`handSize` is `{hand}`, but must be at most `queues`, which is `{queues}`"
        run.report("out-of-range", message, find_key(queuing, "handSize", key))
    elif math.ceil(math.log2(queues) * hand) > _MAX_HASH_BITS:
        message = f"`handSize` of `{hand}` is too large for `{queues}` queues; lower one of them"
        run.report("out-of-range", message, find_key(queuing, "handSize", key))

"""Validate CSIDrivers."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import (
    Validation,
    is_set,
    iter_items,
    iter_texts,
    report_unsupported,
    validate_enum,
    validate_number,
)
from jobgen.k8s.nodes import as_list, as_text
from jobgen.k8s.releases import Release
from jobgen.model.data import Node

_MODES = ("Persistent", "Ephemeral")
_UPDATE_PERIOD_SINCE: Release = (1, 35)
_validate_group_policy = validate_enum("ReadWriteOnceWithFSType", "File", "None")
_validate_expiration = validate_number(600, 1 << 32)
_validate_period = validate_number(10)


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the features of a driver, and the tokens that it gets."""
    spec = run.spec
    _validate_group_policy("fsGroupPolicy", spec.get("fsGroupPolicy"), spec, run)
    for mode, node in iter_texts(spec.get("volumeLifecycleModes")):
        if mode not in _MODES:
            report_unsupported("volumeLifecycleModes", node, _MODES, run)
    audiences: set[str] = set()
    for request, node in iter_items("tokenRequests", spec.get("tokenRequests")):
        audience = as_text(request.get("audience"))
        if audience in audiences:
            message = f"two token requests have the audience `{audience}`; delete one of them"
            run.report("duplicate-item", message, request.get("audience") or node)
        else:
            _validate_expiration("expirationSeconds", request.get("expirationSeconds"), request, run)
        audiences.add(audience)
    if run.release < _UPDATE_PERIOD_SINCE:
        return
    _validate_period("nodeAllocatableUpdatePeriodSeconds", spec.get("nodeAllocatableUpdatePeriodSeconds"), spec, run)
    if is_set(spec.get("serviceAccountTokenInSecrets")) and not as_list(spec.get("tokenRequests")):
        message = "`serviceAccountTokenInSecrets` requires `tokenRequests`; set them or delete it"
        run.report("invalid-value", message, spec["serviceAccountTokenInSecrets"])

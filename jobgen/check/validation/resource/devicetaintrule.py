"""Validate DeviceTaintRules."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, find_key, is_set, require_fields
from jobgen.check.validation.resource._devices import validate_taint
from jobgen.check.validation.resource._names import POOL_NAME, is_pool_name, require_driver, validate_device_name
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import Node


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the taint, and the driver, pool and device that it is for."""
    key = find_key(obj, "spec", obj)
    validate_taint(as_mapping(run.spec.get("taint")), find_key(run.spec, "taint", key), run)
    selector = run.spec.get("deviceSelector")
    if not isinstance(selector, dict):
        return
    place = find_key(run.spec, "deviceSelector", key)
    if is_set(selector.get("driver")):
        require_driver("`deviceSelector`", selector, place, run)
    if is_set(selector.get("pool")):
        require_fields("`deviceSelector`", selector, ("pool",), place, run)
        found = as_text(selector["pool"])
        if found and not is_pool_name(found):
            run.report("invalid-value", f"`{found}` is not a valid pool name; {POOL_NAME}", selector["pool"])
    validate_device_name("device", selector.get("device"), selector, run)

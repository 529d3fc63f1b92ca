"""Validate DeviceClasses."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, is_set
from jobgen.check.admission.names import GENERATED_NAME, is_label_key
from jobgen.check.validation.resource._names import iter_limited
from jobgen.check.validation.resource._selectors import MAX_ITEMS, validate_configuration, validate_selectors
from jobgen.k8s.nodes import as_text
from jobgen.model.data import Node

NAME_FORMAT = GENERATED_NAME
_EXTENDED_RESOURCES_SINCE = (1, 36)


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the selectors, the configuration and the extended resource."""
    validate_selectors(run.spec, run)
    for config, node in iter_limited(run.spec, "config", MAX_ITEMS, run):
        validate_configuration(config, node, run)
    if is_set(run.spec.get("extendedResourceName")) and run.release >= _EXTENDED_RESOURCES_SINCE:
        _validate_extended_resource(run.spec["extendedResourceName"], run)


def _validate_extended_resource(node: Node, run: Validation) -> None:
    found = as_text(node)
    if (
        "/" not in found
        or "kubernetes.io/" in found
        or found.startswith("requests.")
        or not is_label_key(f"requests.{found}")
    ):
        message = f"`{found}` is not a valid extended resource; write a domain and a name, such as `example.com/gpu`"
        run.report("invalid-value", message, node)

"""Validate drivers and their parameters in classes of storage."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, find_key, report_missing
from jobgen.check.admission.names import LABEL_KEY, is_label_key
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import Node

_MAX_PARAMETERS = 512
_MAX_BYTES = 256 * 1024


def validate_provisioner(obj: Mapping[str, Node], field: str, run: Validation) -> None:
    """Validate the name of the driver."""
    name = as_text(obj.get(field))
    if not name:
        report_missing("the class", obj, field, obj, run)
    elif not is_label_key(name.lower()):
        run.report("invalid-value", f"`{name}` is not a valid name of a driver; {LABEL_KEY}", obj[field])


def validate_parameters(obj: Mapping[str, Node], run: Validation, *, required: bool) -> None:
    """Validate the parameters of the driver."""
    parameters = as_mapping(obj.get("parameters"))
    key = find_key(obj, "parameters", obj)
    if len(parameters) > _MAX_PARAMETERS:
        message = f"`parameters` has `{len(parameters)}` entries; it can have at most {_MAX_PARAMETERS}"
        run.report("out-of-range", message, key)
        return
    for name in parameters:
        if not name:
            run.report("invalid-value", "the name of a parameter is empty; write one", name)
    size = sum(len(text.encode(errors="replace")) for item in parameters.items() for text in map(as_text, item))
    if size > _MAX_BYTES:
        run.report("out-of-range", f"`parameters` have `{size}` bytes; the limit is {_MAX_BYTES}", key)
    if required and not parameters:
        run.report("missing-field", "the class requires at least one entry in `parameters`; add it", key)

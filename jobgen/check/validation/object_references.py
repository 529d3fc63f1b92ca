"""Validate references to objects of any kind, as an autoscaler has them."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, require_fields, validate_fields, validate_string
from jobgen.check.admission.names import PATH_SEGMENT, is_path_segment
from jobgen.k8s.nodes import as_text
from jobgen.model.data import Node

_API_VERSION_SINCE = (1, 34)
_validate_segment = validate_string("invalid-object-name", "path segment", is_path_segment, PATH_SEGMENT)


def validate_object_reference(key: str, value: Node, run: Validation, *, requires_group: bool) -> None:
    """Validate kind, name and apiVersion of a reference; a kind without a group is in the core group."""
    if not isinstance(value, dict):
        return
    require_fields(f"`{key}`", value, ("kind", "name"), key, run)
    validate_fields(value, {"kind": _validate_segment, "name": _validate_segment}, run)
    if run.release >= _API_VERSION_SINCE:
        _validate_api_version(key, value, run, requires_group=requires_group)


def _validate_api_version(key: str, value: Mapping[str, Node], run: Validation, *, requires_group: bool) -> None:
    written = as_text(value.get("apiVersion"))
    if written.count("/") > 1:
        message = f"`apiVersion` is `{written}`; write a group and a version, such as `apps/v1`"
        run.report("invalid-value", message, value["apiVersion"])
    elif requires_group and not written.rpartition("/")[0]:
        if written:
            message = f"`apiVersion` is `{written}`, which has no group; write both, such as `apps/v1`"
            run.report("invalid-value", message, value["apiVersion"])
        elif value:
            run.report("missing-field", f"`{key}` requires `apiVersion`, such as `apps/v1`; set it", value)

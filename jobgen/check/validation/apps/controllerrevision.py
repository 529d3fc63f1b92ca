"""Validate ControllerRevisions."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, find_key, is_set
from jobgen.check.validation.workloads import validate_count
from jobgen.model.data import Node

# Before, any data was valid.
_DATA_IS_OBJECT_SINCE = (1, 31)


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the number of the revision and its data."""
    if "revision" in obj:
        validate_count("revision", obj["revision"], obj, run)
    data = obj.get("data")
    if not is_set(data):
        node = find_key(obj, "data", obj)
        run.report("missing-field", "a ControllerRevision requires `data`; set it", node)
    elif not isinstance(data, dict) and run.release >= _DATA_IS_OBJECT_SINCE:
        run.report("wrong-type", "`data` must be a mapping", data)

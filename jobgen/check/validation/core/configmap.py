"""Validate ConfigMaps."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation
from jobgen.check.validation.core._data import count_base64_bytes, count_bytes, validate_keys, validate_size
from jobgen.k8s.nodes import as_mapping
from jobgen.model.data import Node


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the keys of `data` and `binaryData`, and the size of all values."""
    data, binary = as_mapping(obj.get("data")), as_mapping(obj.get("binaryData"))
    validate_keys(data, "ConfigMap", run)
    validate_keys(binary, "ConfigMap", run)
    for key in data:
        if key in binary:
            run.report("duplicate-item", f"`{key}` is a key of `data` and of `binaryData`; remove one of them", key)
    size = sum(map(count_bytes, data.values())) + sum(map(count_base64_bytes, binary.values()))
    fields = [key for key in obj if key in ("data", "binaryData")]
    validate_size(size, "ConfigMap", fields[0] if fields else "data", run)

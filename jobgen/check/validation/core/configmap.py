"""Validate ConfigMaps."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation
from jobgen.check.admission.names import CONFIG_KEY, is_config_key
from jobgen.k8s.objects import as_mapping, as_text
from jobgen.model.data import Node

_MAX_BYTES = 1024 * 1024


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the keys of `data` and `binaryData`, and the size of all values."""
    data, binary = as_mapping(obj.get("data")), as_mapping(obj.get("binaryData"))
    for key in (*data, *binary):
        if not is_config_key(key):
            run.report("invalid-config-key", f"`{key}` is not a valid key of a ConfigMap; {CONFIG_KEY}", key)
    for key in binary:
        if key in data:
            run.report("duplicate-item", f"`{key}` is a key of `data` and of `binaryData`; remove one of them", key)
    size = sum(len(as_text(value).encode(errors="replace")) for value in data.values())
    # Four characters of base64 are three bytes.
    size += sum(len(as_text(value).rstrip("=\n")) * 3 // 4 for value in binary.values())
    if size > _MAX_BYTES:
        message = f"the values have `{size}` bytes; the limit is {_MAX_BYTES}, so split the ConfigMap or mount a volume"
        run.report("out-of-range", message, next(key for key in obj if key in ("data", "binaryData")))

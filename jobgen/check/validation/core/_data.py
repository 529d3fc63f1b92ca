"""Validate the keys and the size of the data of ConfigMaps and Secrets."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping

from jobgen.check.admission.fields import Validation
from jobgen.check.admission.names import CONFIG_KEY, is_config_key
from jobgen.k8s.nodes import as_text
from jobgen.model.data import Node, value_of

_MAX_BYTES = 1024 * 1024


def validate_keys(data: Mapping[str, Node], kind: str, run: Validation) -> None:
    """Validate the keys of the data."""
    for key in data:
        if not is_config_key(key):
            run.report("invalid-config-key", f"`{key}` is not a valid key of a {kind}; {CONFIG_KEY}", key)


def validate_size(size: int, kind: str, field: Node, run: Validation) -> None:
    """Validate the size of all values together."""
    if size > _MAX_BYTES:
        message = f"the values have `{size}` bytes; the limit is {_MAX_BYTES}, so split the {kind} or mount a volume"
        run.report("out-of-range", message, field)


def count_bytes(value: Node) -> int:
    """Return the size of a string in UTF-8."""
    return len(as_text(value).encode(errors="replace"))


def count_base64_bytes(value: Node) -> int:
    """Return the size of what a string in base64, or a list of bytes, contains."""
    text = as_text(value)
    if isinstance(value, list):
        return len(value)
    # Four characters are three bytes; line breaks count nothing.
    return (len(text) - text.count("\n") - text.count("\r")) // 4 * 3 - text[-2:].count("=")


def decode_base64(value: Node) -> bytes | None:
    """Return what a string in base64, or a list of bytes, contains; None if it is neither, which the schema reports."""
    found = value_of(value)
    try:
        if isinstance(found, list):
            return bytes(value_of(item) or 0 for item in found)
        text = "" if found is None else found.replace("\n", "").replace("\r", "")
        return base64.b64decode(text.encode(), validate=True)
    except (binascii.Error, AttributeError, TypeError, ValueError):
        return None

"""The metadata of an object itself: what the API server refuses whatever the kind."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.check.admission.fields import string
from jobgen.check.admission.names import (
    DNS_LABEL,
    DNS_SUBDOMAIN,
    LABEL_KEY,
    LABEL_VALUE,
    is_annotation_key,
    is_dns_label,
    is_dns_subdomain,
    is_label_key,
    is_label_value,
)
from jobgen.model.data import Data, value_of
from jobgen.model.finding import Problem

_ANNOTATIONS_LIMIT = 256 * 1024


def validate_object_metadata(metadata: Data) -> Iterator[Problem]:
    """Why the API server refuses an object for its metadata."""
    if not isinstance(metadata, dict):
        return
    yield from _names(metadata)
    for name, label in _pairs(metadata.get("labels")):
        if not is_label_key(name):
            yield _problem("invalid-label", f"`{name}` is not a label's key; {LABEL_KEY}", name)
        if not is_label_value(string(label)):
            message = f"`{name}` is `{string(label)}`, which is not a label's value; {LABEL_VALUE}"
            yield _problem("invalid-label", message, label)
    size = 0
    for name, note in _pairs(metadata.get("annotations")):
        size += len(name.encode()) + len(string(note).encode(errors="replace"))
        if not is_annotation_key(name):
            yield _problem("invalid-annotation", f"`{name}` is not an annotation's key; {LABEL_KEY}", name)
    if size > _ANNOTATIONS_LIMIT:
        message = f"the annotations are `{size}` bytes long; Kubernetes takes {_ANNOTATIONS_LIMIT}"
        yield _problem("invalid-annotation", message, metadata["annotations"])


def _names(metadata: dict[str, Data]) -> Iterator[Problem]:
    name, prefix, namespace = (string(metadata.get(key)) for key in ("name", "generateName", "namespace"))
    if name and not is_dns_subdomain(name):
        yield _problem("invalid-name", f"`{name}` is not the name of an object; {DNS_SUBDOMAIN}", metadata["name"])
    # The server adds five letters, so the prefix may end in what a name may not.
    if prefix and not name and not is_dns_subdomain(f"{prefix}aaaaa"):
        message = f"`{prefix}` is not the beginning of a name; {DNS_SUBDOMAIN}"
        yield _problem("invalid-name", message, metadata["generateName"])
    if namespace and not is_dns_label(namespace):
        yield _problem("invalid-name", f"`{namespace}` is not a namespace; {DNS_LABEL}", metadata["namespace"])


def _pairs(mapping: Data) -> Iterator[tuple[str, Data]]:
    """Entries whose values are strings; the schema speaks of the others."""
    if isinstance(mapping, dict):
        yield from ((name, value) for name, value in mapping.items() if isinstance(value_of(value), str))


def _problem(rule: str, message: str, node: Data) -> Problem:
    return Problem(rule, message, node, category="schema")

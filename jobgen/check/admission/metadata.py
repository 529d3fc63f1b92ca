"""Validate metadata: names, labels, annotation keys and finalizers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobgen.check.admission.fields import Validation, iter_strings
from jobgen.check.admission.names import (
    DNS_LABEL,
    LABEL_KEY,
    LABEL_VALUE,
    SUBDOMAIN_NAME,
    NameFormat,
    is_annotation_key,
    is_dns_label,
    is_label_key,
    is_label_value,
)
from jobgen.k8s.objects import as_text
from jobgen.model.data import Node, value_of
from jobgen.model.finding import Problem

MAX_ANNOTATION_BYTES = 256 * 1024
_FINALIZERS = frozenset(("kubernetes", "orphan", "foregroundDeletion"))


def validate_object_metadata(metadata: Node, name_format: NameFormat = SUBDOMAIN_NAME) -> Iterator[Problem]:
    """Yield the problems for which the API server rejects an object of any kind because of its metadata."""
    if not isinstance(metadata, dict):
        return
    yield from _validate_object_names(metadata, name_format)
    for name, label in _iter_string_entries(metadata.get("labels")):
        if not is_label_key(name):
            yield _make_problem("invalid-label", describe_label_key(name), name)
        if not is_label_value(as_text(label)):
            yield _make_problem("invalid-label", _describe_label_value(name, as_text(label)), label)
    size = 0
    for name, value in _iter_string_entries(metadata.get("annotations")):
        size += len(name.encode()) + len(as_text(value).encode(errors="replace"))
        if not is_annotation_key(name):
            yield _make_problem("invalid-annotation", _describe_annotation_key(name), name)
    if size > MAX_ANNOTATION_BYTES:
        yield _make_problem("invalid-annotation", _describe_annotation_size(size), metadata["annotations"])


def _validate_object_names(metadata: Mapping[str, Node], name_format: NameFormat) -> Iterator[Problem]:
    name, prefix, namespace = (as_text(metadata.get(key)) for key in ("name", "generateName", "namespace"))
    if name and not name_format.is_valid(name):
        message = f"`{name}` is not a valid object name; {name_format.hint}"
        yield _make_problem("invalid-name", message, metadata["name"])
    # The API server appends five characters, so the prefix may end in `-` or `.`.
    if prefix and not name and not name_format.is_valid(f"{prefix}aaaaa"):
        message = f"`{prefix}` is not a valid prefix of an object name; {name_format.hint}"
        yield _make_problem("invalid-name", message, metadata["generateName"])
    if namespace and not is_dns_label(namespace):
        yield _make_problem(
            "invalid-name", f"`{namespace}` is not a valid namespace; {DNS_LABEL}", metadata["namespace"]
        )


def _iter_string_entries(mapping: Node) -> Iterator[tuple[str, Node]]:
    """Yield the entries whose values are strings; the schema check reports the others."""
    if isinstance(mapping, dict):
        yield from ((name, value) for name, value in mapping.items() if isinstance(value_of(value), str))


def _make_problem(rule: str, message: str, node: Node) -> Problem:
    return Problem(rule, message, node, category="schema")


def describe_label_key(name: str) -> str:
    """Return the message for an invalid label key."""
    return f"`{name}` is not a valid label key; {LABEL_KEY}"


def _describe_label_value(name: str, value: str) -> str:
    return f"label `{name}` has the invalid value `{value}`; {LABEL_VALUE}"


def _describe_annotation_key(name: str) -> str:
    return f"`{name}` is not a valid annotation key; {LABEL_KEY}"


def _describe_annotation_size(size: int) -> str:
    return f"the annotations have `{size}` bytes; the limit is {MAX_ANNOTATION_BYTES}"


def validate_labels(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
    """Validate labels, or a selector by labels."""
    if not isinstance(value, dict):
        return
    for name, label in value.items():
        if not is_label_key(name):
            pod.report("invalid-label", describe_label_key(name), name)
        found = value_of(label)
        if type(found) is str and not is_label_value(found):
            pod.report("invalid-label", _describe_label_value(name, found), label)


def validate_annotation_key(name: str, pod: Validation) -> bool:
    """Validate the key of an annotation and return whether it is valid."""
    if is_annotation_key(name):
        return True
    pod.report("invalid-annotation", _describe_annotation_key(name), name)
    return False


def validate_annotation_keys(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
    """Validate annotations of a template other than the pod's: Kubernetes does not read their values here."""
    if isinstance(value, dict):
        for name in value:
            validate_annotation_key(name, pod)
        validate_annotation_size(key, value, pod)


def validate_annotation_size(key: str, value: Mapping[str, Node], pod: Validation) -> None:
    """Validate the size of all annotations, in bytes of UTF-8."""
    size = sum(len(part.encode(errors="replace")) for name, node in value.items() for part in (name, as_text(node)))
    if size > MAX_ANNOTATION_BYTES:
        pod.report("invalid-annotation", _describe_annotation_size(size), key)


def validate_finalizers(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
    """Validate finalizers: qualified names, or those of Kubernetes itself."""
    for found, node in iter_strings(value):
        if not (is_label_key(found) and ("/" in found or found in _FINALIZERS)):
            message = f"`{found}` is not a valid finalizer; write a domain and a name, such as `example.com/name`"
            pod.report("invalid-finalizer", message, node, values=(found, f"example.com/{found}"))

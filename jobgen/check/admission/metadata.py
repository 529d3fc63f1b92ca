"""Validate labels, annotations and finalizers of pods and objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobgen.check.admission.fields import Validation, iter_strings
from jobgen.check.admission.names import LABEL_KEY, LABEL_VALUE, is_annotation_key, is_label_key, is_label_value
from jobgen.k8s.nodes import as_text
from jobgen.model.data import Node, value_of

MAX_ANNOTATION_BYTES = 256 * 1024
_DELETION_FINALIZERS = frozenset(("orphan", "foregroundDeletion"))
_FINALIZERS = _DELETION_FINALIZERS | {"kubernetes"}
DELETION_FINALIZERS_CONFLICT = "`orphan` and `foregroundDeletion` are mutually exclusive finalizers; remove one of them"
"""The message for both of them."""


def describe_label_key(name: str) -> str:
    """Return the message for an invalid label key."""
    return f"`{name}` is not a valid label key; {LABEL_KEY}"


def describe_label_value(name: str, value: str) -> str:
    """Return the message for an invalid label value."""
    return f"label `{name}` has the invalid value `{value}`; {LABEL_VALUE}"


def describe_annotation_key(name: str) -> str:
    """Return the message for an invalid annotation key."""
    return f"`{name}` is not a valid annotation key; {LABEL_KEY}"


def describe_annotation_size(size: int) -> str:
    """Return the message for annotations that are too large."""
    return f"the annotations have `{size}` bytes; the limit is {MAX_ANNOTATION_BYTES}"


def validate_labels(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
    """Validate labels, or a selector by labels."""
    if not isinstance(value, dict):
        return
    for name, label in value.items():
        found = value_of(label)
        if found is None and pod.drops_nulls:
            continue
        if not is_label_key(name):
            pod.report("invalid-label", describe_label_key(name), name)
        if type(found) is str and not is_label_value(found):
            pod.report("invalid-label", describe_label_value(name, found), label)


def validate_annotation_key(name: str, pod: Validation) -> bool:
    """Validate the key of an annotation and return whether it is valid."""
    if is_annotation_key(name):
        return True
    pod.report("invalid-annotation", describe_annotation_key(name), name)
    return False


def validate_annotation_keys(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
    """Validate annotations of a template other than the pod's: Kubernetes does not read their values here."""
    if isinstance(value, dict):
        for name, node in value.items():
            if value_of(node) is not None or not pod.drops_nulls:
                validate_annotation_key(name, pod)
        validate_annotation_size(key, value, pod)


def validate_annotation_size(key: str, value: Mapping[str, Node], pod: Validation) -> None:
    """Validate the size of all annotations, in bytes of UTF-8."""
    size = sum(len(part.encode(errors="replace")) for name, node in value.items() for part in (name, as_text(node)))
    if size > MAX_ANNOTATION_BYTES:
        pod.report("invalid-annotation", describe_annotation_size(size), key)


def validate_finalizers(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
    """Validate finalizers: qualified names, or those of Kubernetes itself."""
    for found, node in iter_strings(value):
        if not is_finalizer(found):
            pod.report("invalid-finalizer", describe_finalizer(found), node, values=(found, f"example.com/{found}"))
    for node in find_second_deletion_finalizer(value):
        pod.report("invalid-finalizer", DELETION_FINALIZERS_CONFLICT, node)


def is_finalizer(text: str) -> bool:
    """Return whether a text can be a finalizer of Kubernetes' own kinds: a name with a domain, or a standard one."""
    return is_label_key(text) and ("/" in text or text in _FINALIZERS)


def describe_finalizer(text: str) -> str:
    """Return the message for an invalid finalizer."""
    return f"`{text}` is not a valid finalizer; write a domain and a name, such as `example.com/name`"


def find_second_deletion_finalizer(finalizers: Node) -> Iterator[Node]:
    """Yield the second of the two finalizers that are mutually exclusive, if a list has both."""
    found = [node for text, node in iter_strings(finalizers) if text in _DELETION_FINALIZERS]
    yield from [node for node in found if value_of(node) != value_of(found[0])][:1]

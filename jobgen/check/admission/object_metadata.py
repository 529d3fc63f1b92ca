"""Validate the metadata of objects of all kinds, as the API server does when it creates them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobgen.check.admission.fields import iter_mappings
from jobgen.check.admission.metadata import (
    DELETION_FINALIZERS_CONFLICT,
    MAX_ANNOTATION_BYTES,
    describe_annotation_key,
    describe_annotation_size,
    describe_finalizer,
    describe_label_key,
    describe_label_value,
    find_second_deletion_finalizer,
    is_finalizer,
)
from jobgen.check.admission.names import (
    DNS_LABEL,
    SUBDOMAIN_NAME,
    NameFormat,
    is_annotation_key,
    is_dns_label,
    is_label_key,
    is_label_value,
)
from jobgen.k8s.nodes import as_integer, as_mapping, as_text
from jobgen.model.data import Node, untraced, value_of
from jobgen.model.finding import Problem
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.times import TIME, is_time

_TIMES = ("creationTimestamp", "deletionTimestamp")
_OWNER_FIELDS = ("apiVersion", "kind", "name", "uid")


class MetadataFormat(NamedTuple):
    """What the metadata of a kind must fulfill beyond that of all kinds."""

    name: NameFormat = SUBDOMAIN_NAME
    is_namespaced: bool = True
    qualifies_finalizers: bool = False
    """Whether a finalizer needs a domain, as in most of Kubernetes' own kinds."""
    keeps_generation: bool = False
    """Whether the API server keeps `generation`, so that it must not be negative."""


def validate_object_metadata(metadata: Node, kind: MetadataFormat | None = None) -> Iterator[Problem]:
    """Yield the problems for which the API server rejects an object because of its metadata."""
    if not isinstance(metadata, dict):
        return
    kind = kind or MetadataFormat()
    yield from _validate_names(metadata, kind)
    if "labels" in metadata:
        yield from _validate_labels(metadata["labels"])
    if "annotations" in metadata:
        yield from _validate_annotations(metadata["annotations"])
    if "finalizers" in metadata:
        yield from _validate_finalizers(metadata["finalizers"], kind)
    if "ownerReferences" in metadata:
        yield from _validate_owners(metadata["ownerReferences"])
    for field in _TIMES:
        if field in metadata:
            yield from _validate_time(field, metadata[field])
    for entry in iter_mappings(metadata.get("managedFields")):
        yield from _validate_time("time", entry.get("time"))
    generation = as_integer(metadata.get("generation"))
    if kind.keeps_generation and generation is not None and generation < 0:
        message = f"`generation` must be at least 0, got `{generation}`; remove it, because the API server sets it"
        yield _make_problem("out-of-range", message, metadata["generation"])


def _validate_names(metadata: Mapping[str, Node], kind: MetadataFormat) -> Iterator[Problem]:
    name, prefix, namespace = (as_text(metadata.get(key)) for key in ("name", "generateName", "namespace"))
    if name and not kind.name.is_valid(name):
        message = f"`{name}` is not a valid object name; {kind.name.hint}"
        yield _make_problem("invalid-name", message, metadata["name"])
    if prefix and not kind.name.accepts_prefix(prefix, named=bool(name)):
        message = f"`{prefix}` is not a valid prefix of an object name; {kind.name.hint}"
        yield _make_problem("invalid-name", message, metadata["generateName"])
    # The API server drops the namespace of an object that has none.
    if namespace and kind.is_namespaced and not is_dns_label(namespace):
        message = f"`{namespace}` is not a valid namespace; {DNS_LABEL}"
        yield _make_problem("invalid-name", message, metadata["namespace"])


def _validate_labels(labels: Node) -> Iterator[Problem]:
    for name, label in as_mapping(labels).items():
        if not is_label_key(name):
            yield _make_problem("invalid-label", describe_label_key(name), name)
        if not is_label_value(as_text(label)):
            yield _make_problem("invalid-label", describe_label_value(name, as_text(label)), label)


def _validate_annotations(annotations: Node) -> Iterator[Problem]:
    size = 0
    for name, value in as_mapping(annotations).items():
        size += len(name.encode(errors="replace")) + len(as_text(value).encode(errors="replace"))
        if not is_annotation_key(name):
            yield _make_problem("invalid-annotation", describe_annotation_key(name), name)
    if size > MAX_ANNOTATION_BYTES:
        yield _make_problem("invalid-annotation", describe_annotation_size(size), annotations)


def _validate_finalizers(finalizers: Node, kind: MetadataFormat) -> Iterator[Problem]:
    if not isinstance(finalizers, list):
        return
    for node in finalizers:
        # Go reads null as an empty string.
        text = "" if value_of(node) is None else value_of(node)
        if isinstance(text, str) and not (is_finalizer if kind.qualifies_finalizers else is_label_key)(text):
            yield _make_problem("invalid-finalizer", describe_finalizer(text), node)
    for node in find_second_deletion_finalizer(finalizers):
        yield _make_problem("invalid-finalizer", DELETION_FINALIZERS_CONFLICT, node)


def _validate_owners(owners: Node) -> Iterator[Problem]:
    if not isinstance(owners, list):
        return
    controller: Node = None
    for owner in owners:
        if value_of(owner) is None:
            yield _make_problem("missing-field", "an owner needs `apiVersion`, `kind`, `name` and `uid`", owner)
        if not isinstance(owner, dict):
            continue
        yield from _validate_owner(owner)
        if value_of(owner.get("controller")) is True:
            # The API server drops an owner that it has seen before.
            if controller is not None and untraced(owner) != controller:
                message = "`controller: true` is set for two owners; an object has at most one controller"
                yield _make_problem("invalid-value", message, owner["controller"])
            controller = untraced(owner) if controller is None else controller


def _validate_owner(owner: Mapping[str, Node]) -> Iterator[Problem]:
    for field in _OWNER_FIELDS:
        if value_of(owner.get(field)) == "":
            yield _make_problem("missing-field", f"an owner needs `{field}`; set it", owner[field])
    version, kind = as_text(owner.get("apiVersion")), as_text(owner.get("kind"))
    if version.count("/") > 1 or version.endswith("/"):
        message = f"`{version}` is not an apiVersion; write a group and a version, such as `apps/v1`"
        yield _make_problem("invalid-value", message, owner["apiVersion"])
    if kind == "Event" and version in ("v1", "/v1"):
        yield _make_problem("invalid-value", "`Event` cannot be the kind of an owner", owner["kind"])


def _validate_time(field: str, node: Node) -> Iterator[Problem]:
    text = value_of(node)
    if isinstance(text, str) and not is_time(text):
        yield _make_problem("invalid-value", f"`{field}` is `{text}`, which is not a time; {TIME}", node)


def _make_problem(rule: str, message: str, node: Node) -> Problem:
    return Problem(rule, message, node, category="schema")

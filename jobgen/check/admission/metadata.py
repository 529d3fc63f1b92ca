"""Validate the metadata of pods and objects: names, labels, annotations, finalizers and owners."""

from __future__ import annotations

from jobgen.check.admission.fields import (
    Entry,
    Fields,
    Table,
    Validation,
    each,
    iter_texts,
    mapping,
    valid_text,
    validate_fields,
)
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
from jobgen.k8s.nodes import as_integer, as_mapping, as_text
from jobgen.model.data import Plain, untraced
from jobgen.model.finding import Problem
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, Place
from jobgen.model.sentence import Sentence
from jobgen.model.times import TIME, is_time

MAX_ANNOTATION_BYTES = 256 * 1024
_NO_FINALIZER = "`{}` is not a valid finalizer; write a domain and a name, such as `example.com/name`"
_DELETION_FINALIZERS = frozenset(("orphan", "foregroundDeletion"))


def describe_label_key(name: str) -> str:
    """Return the message for an invalid label key."""
    return f"`{name}` is not a valid label key; {LABEL_KEY}"


def validate_labels(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    """Validate labels, or a selector by labels."""
    if not isinstance(value, dict):
        return
    for name, label in value.items():
        if label is None and pod.drops_nulls:
            continue
        if not is_label_key(name):
            pod.report("invalid-label", describe_label_key(name), (value, name))
        if type(label) is str and not is_label_value(label):
            pod.report(
                "invalid-label",
                Sentence("label `{}` has the invalid value `{}`; {}", name, label, LABEL_VALUE),
                At(value, name),
            )


def validate_annotation_key(name: str, annotations: Fields, pod: Validation) -> bool:
    """Validate the key of an annotation and return whether it is valid."""
    if is_annotation_key(name):
        return True
    pod.report(
        "invalid-annotation", Sentence("`{}` is not a valid annotation key; {}", name, LABEL_KEY), (annotations, name)
    )
    return False


def validate_annotation_keys(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    """Validate annotations of a template other than the pod's: Kubernetes does not read their values here."""
    if isinstance(value, dict):
        for name, node in value.items():
            if node is not None or not pod.drops_nulls:
                validate_annotation_key(name, value, pod)
        validate_annotation_size((owner, key), value, pod)


def validate_annotation_size(place: Place | Entry, value: Fields, pod: Validation) -> None:
    """Validate the size of all annotations, in bytes of UTF-8."""
    size = sum(len(part.encode(errors="replace")) for name, node in value.items() for part in (name, as_text(node)))
    if size > MAX_ANNOTATION_BYTES:
        message = Sentence("the annotations have `{}` bytes; the limit is {}", size, MAX_ANNOTATION_BYTES)
        pod.report("invalid-annotation", message, place)


def validate_finalizers(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    """Validate finalizers: qualified names, or those of Kubernetes itself."""
    for found, node in iter_texts(value):
        if not _is_finalizer(found):
            pod.report("invalid-finalizer", _NO_FINALIZER.format(found), node, values=(found, f"example.com/{found}"))
    _validate_deletion_finalizers(key, value, owner, pod)


def _is_finalizer(text: str) -> bool:
    """Return True if a text can be a finalizer of Kubernetes' own kinds: a name with a domain, or a standard one."""
    return is_label_key(text) and ("/" in text or text == "kubernetes" or text in _DELETION_FINALIZERS)


def _validate_deletion_finalizers(key: str, value: Plain, owner: Fields, run: Validation) -> None:
    found = [(text, node) for text, node in iter_texts(value) if text in _DELETION_FINALIZERS]
    for node in [node for text, node in found if text != found[0][0]][:1]:
        message = "`orphan` and `foregroundDeletion` are mutually exclusive finalizers; remove one of them"
        run.report("invalid-finalizer", message, node)


class MetadataFormat(NamedTuple):
    """What the metadata of a kind must fulfill beyond that of all kinds."""

    name: NameFormat = SUBDOMAIN_NAME
    is_namespaced: bool = True
    qualifies_finalizers: bool = False
    """True if a finalizer needs a domain, as in most of Kubernetes' own kinds."""
    keeps_generation: bool = False
    """True if the API server keeps `generation`, so that it must not be negative."""
    is_stored: bool = True
    """False if the API server decodes the metadata and reads nothing of it."""


def validate_object_metadata(metadata: Plain, kind: MetadataFormat | None = None) -> list[Problem]:
    """Return the problems for which the API server rejects an object because of its metadata, when it creates it."""
    if not isinstance(metadata, dict):
        return []
    kind, run = kind or MetadataFormat(), Validation(metadata, {}, [])
    if not kind.is_stored:
        validate_fields(metadata, _TIMES, run)
        return run.problems
    name, prefix = as_text(metadata.get("name")), as_text(metadata.get("generateName"))
    namespace = as_text(metadata.get("namespace"))
    if name and not kind.name.is_valid(name):
        run.report(
            "invalid-name", Sentence("`{}` is not a valid object name; {}", name, kind.name.hint), At(metadata, "name")
        )
    if prefix and not kind.name.accepts_prefix(prefix, named=bool(name)):
        message = Sentence("`{}` is not a valid prefix of an object name; {}", prefix, kind.name.hint)
        run.report("invalid-name", message, At(metadata, "generateName"))
    # The API server drops the namespace of an object that has none.
    if namespace and kind.is_namespaced and not is_dns_label(namespace):
        run.report(
            "invalid-name",
            Sentence("`{}` is not a valid namespace; {}", namespace, DNS_LABEL),
            At(metadata, "namespace"),
        )
    validate_fields(metadata, _OBJECT, run)
    # Go reads null as an empty string.
    for found, node in iter_texts(metadata["finalizers"]) if "finalizers" in metadata else ():
        if not (_is_finalizer if kind.qualifies_finalizers else is_label_key)(found):
            run.report("invalid-finalizer", _NO_FINALIZER.format(found), node)
    generation = as_integer(metadata.get("generation"))
    if kind.keeps_generation and generation is not None and generation < 0:
        message = Sentence(
            "`generation` must be at least 0, got `{}`; remove it, because the API server sets it", generation
        )
        run.report("out-of-range", message, At(metadata, "generation"))
    return run.problems


def _validate_annotations(key: str, value: Plain, owner: Fields, run: Validation) -> None:
    for name in as_mapping(value):
        validate_annotation_key(name, as_mapping(value), run)
    validate_annotation_size(as_mapping(value), as_mapping(value), run)


def _validate_owners(key: str, value: Plain, owner: Fields, run: Validation) -> None:
    controller: Plain = None
    for index, reference in enumerate(value if isinstance(value, list) else ()):
        if reference is None:
            run.report("missing-field", "an owner needs `apiVersion`, `kind`, `name` and `uid`", (value, index))
        if not isinstance(reference, dict):
            continue
        for field in ("apiVersion", "kind", "name", "uid"):
            if reference.get(field) == "":
                run.report("missing-field", Sentence("an owner needs `{}`; set it", field), At(reference, field))
        version = as_text(reference.get("apiVersion"))
        if version.count("/") > 1 or version.endswith("/"):
            message = Sentence("`{}` is not an apiVersion; write a group and a version, such as `apps/v1`", version)
            run.invalid(message, At(reference, "apiVersion"))
        if as_text(reference.get("kind")) == "Event" and version in ("v1", "/v1"):
            run.invalid("`Event` cannot be the kind of an owner", At(reference, "kind"))
        if reference.get("controller") is True:
            # The API server drops an owner that it has seen before.
            if controller is not None and untraced(reference) != controller:
                message = Sentence("`controller: true` is set for two owners; an object has at most one controller")
                run.invalid(message, At(reference, "controller"))
            controller = untraced(reference) if controller is None else controller


_NO_TIME = f"`{{key}}` is `{{found}}`, which is not a time; {TIME}"
_validate_time = valid_text("invalid-value", _NO_TIME, is_time, allow_empty=False)

_TIMES: Table = {
    "creationTimestamp": _validate_time,
    "deletionTimestamp": _validate_time,
    "managedFields": each(mapping({"time": _validate_time})),
}
_OBJECT: Table = {
    **_TIMES,
    "annotations": _validate_annotations,
    "finalizers": _validate_deletion_finalizers,
    "labels": validate_labels,
    "ownerReferences": _validate_owners,
}

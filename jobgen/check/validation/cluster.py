"""Validate objects of the cluster itself: namespaces, classes of runtimes and API services."""

from __future__ import annotations

from jobgen.check.admission.fields import (
    Entry,
    Fields,
    Kind,
    Table,
    Validation,
    all_of,
    dns_label,
    dns_subdomain,
    fields,
    find_entry,
    is_empty,
    iter_items,
    join_names,
    mapping,
    number,
    spec,
    text,
    validate_fixed_name,
    validate_port,
)
from jobgen.check.admission.metadata import validate_finalizers, validate_labels
from jobgen.check.admission.names import (
    DNS_LABEL_1035,
    LABEL_NAME,
    PATH_SEGMENT_NAME,
    is_dns_label_1035,
)
from jobgen.check.admission.scheduling import validate_overhead, validate_tolerations
from jobgen.check.pod_security.checks import LABELS, LEVELS, parse_version
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import Plain
from jobgen.model.place import At
from jobgen.model.sentence import Sentence


def _check_security_labels(namespace: Fields, entry: Entry, run: Validation) -> None:
    """Check the labels of Pod Security, which an admission plugin reads."""
    labels = as_mapping(run.metadata.get("labels"))
    for label in LABELS:
        found = as_text(labels.get(label))
        if label.endswith("-version"):
            is_valid, expected = parse_version(found) is not None, "`latest` or a version such as `v1.36`"
        else:
            is_valid, expected = found in LEVELS, join_names(list(LEVELS), "or")
        if label in labels and not is_valid:
            run.report(
                "invalid-label",
                Sentence("label `{}` is `{}`, but must be {}", label, found, expected),
                At(labels, label),
            )


def _validate_equal_tolerations(key: str, value: Plain, owner: Fields, run: Validation) -> None:
    seen: set[tuple[str, ...]] = set()
    for item, node in iter_items(value):
        found = tuple(as_text(item.get(field)) for field in ("key", "operator", "value", "effect"))
        if found in seen:
            run.report("duplicate-item", "two tolerations are equal; delete one of them", node)
        seen.add(found)


def _check_api_service(service: Fields, entry: Entry, run: Validation) -> None:
    group, version = as_text(service.get("group")), as_text(service.get("version"))
    validate_fixed_name(f"{version}.{group}", "version and group", run)
    if not group and version != "v1":
        run.require_fields("an APIService", service, ("group",), entry)
    skips, has_bundle = service.get("insecureSkipTLSVerify") is True, not is_empty(service.get("caBundle"))
    if not isinstance(service.get("service"), dict):
        for field, is_given in (("caBundle", has_bundle), ("insecureSkipTLSVerify", skips)):
            if is_given:
                message = Sentence("`{}` requires `service`; delete it, or name the Service that serves the API", field)
                run.report("invalid-form", message, find_entry(service, field, entry))
    elif skips and has_bundle:
        message = Sentence("`insecureSkipTLSVerify` cannot be true if `caBundle` is set; delete one of them")
        run.report("invalid-form", message, At(service, "insecureSkipTLSVerify"))


_RUNTIME_CLASS: Table = {
    "handler": dns_label("invalid-value", "handler"),
    "overhead": mapping({"podFixed": validate_overhead}),
    "scheduling": mapping(
        {"nodeSelector": validate_labels, "tolerations": all_of(validate_tolerations, _validate_equal_tolerations)}
    ),
}

_API_SERVICE: Table = {
    "group": dns_subdomain("invalid-value", "API group"),
    "groupPriorityMinimum": number(1, 20000),
    "service": mapping({"port": validate_port}, "namespace", "name"),
    "version": text("invalid-value", "version", is_dns_label_1035, DNS_LABEL_1035),
    "versionPriority": number(1, 1000),
}
_API_SERVICE_FIELDS = ("version", "groupPriorityMinimum", "versionPriority")


KINDS = {
    "APIService": Kind(
        spec("an APIService", _API_SERVICE, *_API_SERVICE_FIELDS, _check_api_service), PATH_SEGMENT_NAME
    ),
    "Namespace": Kind(spec("a Namespace", {"finalizers": validate_finalizers}, _check_security_labels), LABEL_NAME),
    "RuntimeClass": Kind(fields("a RuntimeClass", _RUNTIME_CLASS, "handler")),
}

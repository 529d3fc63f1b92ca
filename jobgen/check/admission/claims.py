"""Claims: the template of an ephemeral volume's, and devices that the pod shares out to its containers."""

from __future__ import annotations

from jobgen.check.admission.fields import (
    PodCheck,
    Table,
    is_set,
    judge,
    mappings,
    missing,
    require,
    string,
    strings,
    text,
    unsupported,
    word,
    written,
)
from jobgen.check.admission.metadata import annotation_keys, labels
from jobgen.check.admission.names import DNS_LABEL, DNS_SUBDOMAIN, is_dns_label, is_dns_subdomain
from jobgen.check.admission.selectors import label_selector
from jobgen.model.data import Data, value_of
from jobgen.model.quantity import to_milli

_RULE = "invalid-volume-source"
_MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
_object_name = text("invalid-object-name", "the name of an object", is_dns_subdomain, DNS_SUBDOMAIN)
_claim_name = text("invalid-object-name", "the name of an object", is_dns_subdomain, DNS_SUBDOMAIN, empty=True)
_namespace = text("invalid-object-name", "the name of a namespace", is_dns_label, DNS_LABEL)


def ephemeral(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """The template of the claim that is made for a pod."""
    if not isinstance(value, dict):
        return
    judge(value, _TEMPLATE, pod)
    if not isinstance(value.get("spec"), dict):
        require("a claim", {}, ("accessModes", "resources.requests.storage"), key, pod)


def _metadata(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    if isinstance(value, dict):
        judge(value, _METADATA, pod)
        for name, part in value.items():
            if name not in _METADATA and value_of(part) not in (None, "", [], {}):
                pod.report(_RULE, f"the template of a claim has labels and annotations only, no `{name}`", name)


def _spec(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    if not isinstance(value, dict):
        return
    judge(value, _SPEC, pod)
    require("a claim", value, ("accessModes",), key, pod)
    _storage(value, key, pod)
    _sources(value, pod)


def _access(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    found = list(strings(value))
    for mode, node in found:
        if mode not in _MODES:
            unsupported(key, node, _MODES, pod)
    given = {mode for mode, _ in found} & set(_MODES)
    if "ReadWriteOncePod" in given and len(given) > 1:
        pod.report(_RULE, "`ReadWriteOncePod` cannot stand beside another access mode", key)


def _storage(spec: dict[str, Data], around: str, pod: PodCheck) -> None:
    owner = spec.get("resources")
    requests = owner.get("requests") if isinstance(owner, dict) else None
    value = requests.get("storage") if isinstance(requests, dict) else None
    if not is_set(value):
        missing("a claim", {}, "resources.requests.storage", around, pod)
    elif (milli := to_milli(value)) is not None and milli <= 0:
        pod.report(_RULE, f"`storage` is `{value_of(value)}`; it must be more than nothing", value)


def _sources(spec: dict[str, Data], pod: PodCheck) -> None:
    first, second = spec.get("dataSource"), spec.get("dataSourceRef")
    if not isinstance(first, dict) or not isinstance(second, dict):
        return
    if string(second.get("namespace")):
        pod.report(_RULE, "`dataSource` cannot stand beside a `dataSourceRef` with a namespace", first)
    elif any(value_of(first.get(name)) != value_of(second.get(name)) for name in ("apiGroup", "kind", "name")):
        pod.report(_RULE, "`dataSource` and `dataSourceRef` name two different objects", second)


def _data_source(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    if not isinstance(value, dict):
        return
    judge(value, {"apiGroup": _object_name, "namespace": _namespace}, pod)
    require(f"`{key}`", value, ("name", "kind"), key, pod)
    kind = string(value.get("kind"))
    if kind not in ("", "PersistentVolumeClaim") and not string(value.get("apiGroup")):
        pod.report(
            _RULE, f"`{kind}` needs an `apiGroup`; without one only `PersistentVolumeClaim` is known", value["kind"]
        )


_METADATA: Table = {"labels": labels, "annotations": annotation_keys}
_SPEC: Table = {
    "accessModes": _access,
    "selector": label_selector,
    "storageClassName": _object_name,
    "volumeAttributesClassName": _object_name,
    "volumeMode": word("Filesystem", "Block"),
    "dataSource": _data_source,
    "dataSourceRef": _data_source,
}
_TEMPLATE: Table = {"metadata": _metadata, "spec": _spec}


def resource_claims(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """The claims for devices that a pod holds."""
    names: set[str] = set()
    for claim in mappings(value):
        judge(claim, _CLAIM, pod)
        require("a claim", claim, ("name",), key, pod)
        name = string(claim.get("name"))
        if name and name in names:
            pod.report("invalid-resource-claim", f"`{name}` names two claims", claim["name"])
        names.add(name)
        given = written(claim, ("resourceClaimName", "resourceClaimTemplateName"))
        if len(given) != 1:
            message = "a claim needs `resourceClaimName` or `resourceClaimTemplateName`, and only one of them"
            pod.report("invalid-resource-claim", message, given[-1] if given else claim or key)


_CLAIM: Table = {
    "name": text("invalid-resource-claim", "a claim's name", is_dns_label, DNS_LABEL),
    "resourceClaimName": _claim_name,
    "resourceClaimTemplateName": _claim_name,
}

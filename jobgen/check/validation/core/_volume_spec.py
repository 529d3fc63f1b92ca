"""Validate the spec of a PersistentVolume, which a VolumeAttachment can also contain."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import (
    Validation,
    ValidatorTable,
    find_key,
    is_empty,
    is_set,
    list_set_keys,
    report_missing,
    report_unsupported,
    validate_all,
    validate_enum,
    validate_fields,
    validate_mapping,
    validate_string,
)
from jobgen.check.admission.names import DNS_LABEL, DNS_SUBDOMAIN, is_dns_label, is_dns_subdomain
from jobgen.check.admission.scheduling import validate_node_selector
from jobgen.check.admission.volumes import (
    SHARED_SOURCES,
    validate_access_modes,
    validate_driver,
    validate_host_path,
    validate_iscsi,
    validate_source,
    validate_storageos_name,
)
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.k8s.releases import Release
from jobgen.model.data import Node, locatable, value_of
from jobgen.model.quantity import decode_milli

_NAME_RULE = "invalid-object-name"
_ATTRIBUTES_CLASS_SINCE: Release = (1, 34)
_RECLAIM_POLICIES = ("Retain", "Delete", "Recycle")
_validate_class_name = validate_string(_NAME_RULE, "object name", is_dns_subdomain, DNS_SUBDOMAIN)
_validate_namespace = validate_string(_NAME_RULE, "namespace name", is_dns_label, DNS_LABEL)
_validate_volume_mode = validate_enum("Filesystem", "Block")
_validate_secret = validate_mapping({}, "name", "namespace")
_validate_csi_secret = validate_mapping(
    {"name": _validate_class_name, "namespace": _validate_namespace}, "name", "namespace"
)


def _require_text(key: str, value: Node, owner: Mapping[str, Node], run: Validation) -> None:
    if value_of(value) == "":
        run.report("missing-field", f"`{key}` is empty; set it or delete it", value)


_CSI: ValidatorTable = {
    "driver": validate_driver,
    "controllerPublishSecretRef": _validate_csi_secret,
    "controllerExpandSecretRef": _validate_csi_secret,
    "nodePublishSecretRef": _validate_csi_secret,
    "nodeExpandSecretRef": _validate_csi_secret,
}
_STORAGEOS: ValidatorTable = {
    "volumeName": validate_storageos_name,
    "volumeNamespace": validate_storageos_name,
    "secretRef": _validate_secret,
}
_SOURCES: ValidatorTable = {
    **SHARED_SOURCES,
    "glusterfs": validate_source(
        {"endpointsNamespace": validate_all(_require_text, _validate_namespace)}, "endpoints", "path"
    ),
    "iscsi": validate_all(validate_iscsi, validate_source({"secretRef": validate_mapping({}, "name")})),
    "cinder": validate_source({"secretRef": _validate_secret}, "volumeID"),
    "azureFile": validate_source({"secretNamespace": _require_text}, "secretName", "shareName"),
    "local": validate_source({"path": validate_host_path}, "path"),
    "storageos": validate_source(_STORAGEOS, "volumeName"),
    "csi": validate_source(_CSI, "driver", "volumeHandle"),
}
_ORDER = tuple(
    """hostPath gcePersistentDisk awsElasticBlockStore glusterfs flocker nfs rbd quobyte cephfs iscsi cinder fc
    flexVolume azureFile vsphereVolume photonPersistentDisk portworxVolume azureDisk scaleIO local storageos
    csi""".split()
)
"""The order in which the API server looks for sources."""

MOUNTABLE_SOURCES = frozenset(
    """gcePersistentDisk awsElasticBlockStore glusterfs nfs rbd quobyte iscsi cinder cephfs azureFile vsphereVolume
    azureDisk photonPersistentDisk""".split()
)
"""The sources of volumes that can have mount options in an annotation."""


def validate_volume_spec(spec: Mapping[str, Node], key: Node, run: Validation) -> None:
    """Validate the capacity, the source and the nodes of a volume; `key` is that of the spec."""
    _validate_access(spec, key, run)
    _validate_capacity(spec, key, run)
    if as_text(spec.get("persistentVolumeReclaimPolicy")) not in ("", *_RECLAIM_POLICIES):
        report_unsupported(
            "persistentVolumeReclaimPolicy", spec["persistentVolumeReclaimPolicy"], _RECLAIM_POLICIES, run
        )
    affinity = spec.get("nodeAffinity")
    if isinstance(affinity, dict):
        validate_fields(affinity, {"required": validate_node_selector}, run)
        if not is_set(affinity.get("required")):
            report_missing("`nodeAffinity`", affinity, "required", find_key(spec, "nodeAffinity", key), run)
    sources = validate_volume_source(spec, key, run)
    if sources[:1] == ["local"] and not is_set(affinity):
        report_missing("a local volume", spec, "nodeAffinity", key, run)
    _validate_recycling(spec, run)
    _validate_class_name("storageClassName", spec.get("storageClassName"), spec, run)
    _validate_volume_mode("volumeMode", spec.get("volumeMode"), spec, run)
    _validate_attributes_class(spec, key, run)


def validate_inline_volume_spec(spec: Mapping[str, Node], key: Node, run: Validation) -> None:
    """Validate the spec of a volume that has no object of its own."""
    _validate_access(spec, key, run)
    for field in ("claimRef", "capacity", "nodeAffinity", "storageClassName"):
        if not is_empty(spec.get(field)) or (field in ("claimRef", "nodeAffinity") and is_set(spec.get(field))):
            message = f"`{field}` cannot be set for an inline volume; delete it"
            run.report("invalid-value", message, find_key(spec, field, key))
    for field, expected in (("persistentVolumeReclaimPolicy", "Retain"), ("volumeMode", "Filesystem")):
        unset = "" if field == "persistentVolumeReclaimPolicy" else expected
        if is_set(spec.get(field)) and value_of(spec[field]) not in (expected, unset):
            message = f"`{field}` must be `{expected}` for an inline volume, got `{value_of(spec[field])}`"
            run.report("invalid-value", message, spec[field])
    if not is_set(spec.get("csi")):
        report_missing("an inline volume", spec, "csi", key, run)
    validate_volume_source(spec, key, run)


def validate_volume_source(spec: Mapping[str, Node], key: Node, run: Validation) -> list[str]:
    """Validate the source of a volume, and return the sources that it has."""
    given = {name: name for name in list_set_keys(spec, _SOURCES)}
    sources = [given[name] for name in _ORDER if name in given]
    for index, name in enumerate(sources):
        if index and name != "flexVolume":
            message = f"the volume has two sources, `{sources[0]}` and `{name}`; keep one of them"
            run.report("conflicting-volume-source", message, name)
        else:
            _SOURCES[name](name, spec[name], run.metadata, run)
    if not sources:
        run.report(
            "missing-field", "the volume requires a source such as `csi` or `nfs`; set one", locatable(spec, key)
        )
    return sources


def _validate_access(spec: Mapping[str, Node], key: Node, run: Validation) -> None:
    validate_fields(spec, {"accessModes": validate_access_modes}, run)
    if is_empty(spec.get("accessModes")):
        report_missing("a volume", spec, "accessModes", key, run)


def _validate_capacity(spec: Mapping[str, Node], key: Node, run: Validation) -> None:
    capacity = as_mapping(spec.get("capacity"))
    if "storage" not in capacity:
        report_missing("a volume", capacity, "storage", find_key(spec, "capacity", key), run)
    for name, value in capacity.items():
        if name != "storage":
            run.report("unknown-resource", f"a volume cannot have the resource `{name}`; keep `storage` only", name)
        elif (milli := decode_milli(value)) is not None and milli <= 0:
            run.report("out-of-range", f"`{name}` must be more than 0, got `{value_of(value)}`", value)


def _validate_recycling(spec: Mapping[str, Node], run: Validation) -> None:
    path = as_text(as_mapping(spec.get("hostPath")).get("path"))
    is_root = path.startswith("/") and not path.strip("/.")
    if is_root and as_text(spec.get("persistentVolumeReclaimPolicy")) == "Recycle":
        message = "`Recycle` would delete all files of the host, because `path` is `/`; use `Retain`"
        run.report("invalid-value", message, spec["persistentVolumeReclaimPolicy"])


def _validate_attributes_class(spec: Mapping[str, Node], key: Node, run: Validation) -> None:
    name = spec.get("volumeAttributesClassName")
    if run.release < _ATTRIBUTES_CLASS_SINCE or not is_set(name):
        return
    validate_all(_require_text, _validate_class_name)("volumeAttributesClassName", name, spec, run)
    if not is_set(spec.get("csi")):
        report_missing("`volumeAttributesClassName`", spec, "csi", key, run)

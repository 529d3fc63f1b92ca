"""Validate volumes and claims for them, and the kinds of `storage.k8s.io`: classes and CSI drivers."""

from __future__ import annotations

from jobgen.check.admission.fields import (
    Entry,
    Fields,
    Kind,
    Table,
    Validation,
    all_of,
    fields,
    find_entry,
    find_mapping,
    find_value,
    is_set,
    iter_items,
    iter_texts,
    list_set_keys,
    mapping,
    namespace_name,
    number,
    object_name,
    one_of,
    require_set,
    since,
    spec,
    text,
    texts,
)
from jobgen.check.admission.metadata import describe_label_key
from jobgen.check.admission.names import LABEL_KEY, is_annotation_key, is_label_key
from jobgen.check.admission.scheduling import validate_node_selector
from jobgen.check.admission.volumes import (
    SHARED_SOURCES,
    check_claim_fields,
    validate_access_modes,
    validate_driver,
    validate_host_path,
    validate_iscsi,
    validate_storageos_name,
)
from jobgen.k8s.kinds import Release
from jobgen.k8s.nodes import as_list, as_mapping, as_text
from jobgen.model.data import Plain
from jobgen.model.place import At, Derived
from jobgen.model.quantity import decode_milli
from jobgen.model.sentence import Sentence

_ATTRIBUTES_CLASS_SINCE: Release = (1, 34)
_MOUNT_OPTIONS = "volume.beta.kubernetes.io/mount-options"
_CLAIM_SOURCES = frozenset((("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")))
_secret = mapping({}, "name", "namespace")
_csi_secret = mapping({"name": object_name, "namespace": namespace_name}, "name", "namespace")
_CSI: Table = {
    "driver": validate_driver,
    "controllerPublishSecretRef": _csi_secret,
    "controllerExpandSecretRef": _csi_secret,
    "nodePublishSecretRef": _csi_secret,
    "nodeExpandSecretRef": _csi_secret,
}
_STORAGEOS: Table = {
    "volumeName": validate_storageos_name,
    "volumeNamespace": validate_storageos_name,
    "secretRef": _secret,
}
# The order in which the API server looks for sources.
_ORDER = tuple(
    """hostPath gcePersistentDisk awsElasticBlockStore glusterfs flocker nfs rbd quobyte cephfs iscsi cinder fc
    flexVolume azureFile vsphereVolume photonPersistentDisk portworxVolume azureDisk scaleIO local storageos
    csi""".split()
)
# The sources of volumes that can have mount options in an annotation.
_MOUNTABLE_SOURCES = frozenset(
    """gcePersistentDisk awsElasticBlockStore glusterfs nfs rbd quobyte iscsi cinder cephfs azureFile vsphereVolume
    azureDisk photonPersistentDisk""".split()
)
_ACCESS: Table = {"accessModes": validate_access_modes}
_MAX_PARAMETERS = 512
_MAX_PARAMETER_BYTES = 256 * 1024
_provisioner = text("invalid-value", "name of a driver", is_annotation_key, LABEL_KEY)
_expiration = number(600, 1 << 32)
_values = texts(twice="`{}` is listed twice in `values`; delete one of them")
_check_expression = fields("a topology", {"values": _values}, "key", "values")


def _validate_not_empty(key: str, value: Plain, owner: Fields, run: Validation) -> None:
    if value == "":
        run.report("missing-field", Sentence("`{}` is empty; set it or delete it", key), At(owner, key))


def _validate_volume_source(volume: Fields, entry: Entry, run: Validation) -> list[str]:
    """Validate the source of a volume, and return the sources that it has."""
    given = list_set_keys(volume, _SOURCES)
    sources = [name for name in _ORDER if name in given]
    for index, name in enumerate(sources):
        if index and name != "flexVolume":
            message = Sentence("the volume has two sources, `{}` and `{}`; keep one of them", sources[0], name)
            run.report("conflicting-volume-source", message, (volume, name))
        else:
            _SOURCES[name](name, volume[name], volume, run)
    if not sources:
        message = Sentence("the volume requires a source such as `csi` or `nfs`; set one")
        run.report("missing-field", message, find_mapping(volume, entry))
    return sources


def _check_volume(volume: Fields, entry: Entry, run: Validation) -> None:
    if _validate_volume_source(volume, entry, run)[:1] == ["local"] and not is_set(volume.get("nodeAffinity")):
        run.report_missing("a local volume", volume, "nodeAffinity", entry)
    capacity = as_mapping(volume.get("capacity"))
    if "storage" not in capacity:
        run.report_missing("a volume", capacity, "storage", find_entry(volume, "capacity", entry))
    for name, value in capacity.items():
        if name != "storage":
            run.report(
                "unknown-resource",
                Sentence("a volume cannot have the resource `{}`; keep `storage` only", name),
                (capacity, name),
            )
        elif (milli := decode_milli(value)) is not None and milli <= 0:
            run.report(
                "out-of-range",
                Sentence("`{}` must be more than 0, got `{}`", name, value),
                At(capacity, name),
            )
    path = as_text(as_mapping(volume.get("hostPath")).get("path"))
    is_root = path.startswith("/") and not path.strip("/.")
    if is_root and as_text(volume.get("persistentVolumeReclaimPolicy")) == "Recycle":
        message = Sentence("`Recycle` would delete all files of the host, because `path` is `/`; use `Retain`")
        run.invalid(message, At(volume, "persistentVolumeReclaimPolicy"))
    has_class = run.release >= _ATTRIBUTES_CLASS_SINCE and is_set(volume.get("volumeAttributesClassName"))
    if has_class and not is_set(volume.get("csi")):
        run.report_missing("`volumeAttributesClassName`", volume, "csi", entry)
    annotations = as_mapping(run.metadata.get("annotations"))
    if _MOUNT_OPTIONS in annotations and not any(is_set(volume.get(name)) for name in _MOUNTABLE_SOURCES):
        message = Sentence("`{}` is not valid for this source of a volume; use `mountOptions`", _MOUNT_OPTIONS)
        run.report("invalid-annotation", message, (annotations, _MOUNT_OPTIONS))


def _check_claim(obj: Fields, entry: Entry, run: Validation) -> None:
    """Check the spec without the fields that the API server drops before it validates."""
    claim, dropped = run.spec, set[str]()
    if run.release < _ATTRIBUTES_CLASS_SINCE:
        dropped.add("volumeAttributesClassName")
    # Sources in other namespaces need a feature gate that is off by default.
    if as_text(as_mapping(claim.get("dataSourceRef")).get("namespace")):
        dropped.add("dataSourceRef")
    # Without a reference, the API server drops sources of unknown kinds.
    source = as_mapping(claim.get("dataSource"))
    is_known = (as_text(source.get("apiGroup")), as_text(source.get("kind"))) in _CLAIM_SOURCES
    if not is_known and ("dataSourceRef" in dropped or not is_set(claim.get("dataSourceRef"))):
        dropped.add("dataSource")
    kept = {name: value for name, value in claim.items() if name not in dropped}
    check_claim_fields(Derived(kept, claim) if dropped else claim, find_entry(obj, "spec", entry), run)


def _validate_parameters(key: str, value: Plain, owner: Fields, run: Validation) -> None:
    parameters = as_mapping(value)
    if len(parameters) > _MAX_PARAMETERS:
        message = Sentence("`{}` has `{}` entries; it can have at most {}", key, len(parameters), _MAX_PARAMETERS)
        run.report("out-of-range", message, (owner, key))
        return
    for name in parameters:
        if not name:
            run.invalid("the name of a parameter is empty; write one", (parameters, name))
    size = sum(len(part.encode(errors="replace")) for item in parameters.items() for part in map(as_text, item))
    if size > _MAX_PARAMETER_BYTES:
        run.report(
            "out-of-range",
            Sentence("`{}` have `{}` bytes; the limit is {}", key, size, _MAX_PARAMETER_BYTES),
            (owner, key),
        )


def _require_parameters(obj: Fields, entry: Entry, run: Validation) -> None:
    if not as_mapping(obj.get("parameters")):
        message = "the class requires at least one entry in `parameters`; add it"
        run.report("missing-field", message, find_entry(obj, "parameters", entry))


def _check_tokens(driver: Fields, entry: Entry, run: Validation) -> None:
    """Check the tokens that a driver gets, which differ in their audience."""
    audiences: set[str] = set()
    for request, node in iter_items(driver.get("tokenRequests")):
        audience = as_text(request.get("audience"))
        if audience in audiences:
            message = Sentence("two token requests have the audience `{}`; delete one of them", audience)
            run.report("duplicate-item", message, find_value(request, "audience", node))
        else:
            _expiration("expirationSeconds", request.get("expirationSeconds"), request, run)
        audiences.add(audience)
    in_secrets = driver.get("serviceAccountTokenInSecrets")
    if run.release >= (1, 35) and is_set(in_secrets) and not as_list(driver.get("tokenRequests")):
        run.invalid(
            "`serviceAccountTokenInSecrets` requires `tokenRequests`; set them or delete it",
            At(driver, "serviceAccountTokenInSecrets"),
        )


def _validate_topologies(key: str, value: Plain, owner: Fields, run: Validation) -> None:
    seen: list[dict[str, frozenset[str]]] = []
    for term, place in iter_items(value):
        topology: dict[str, frozenset[str]] = {}
        for item, node in iter_items(term.get("matchLabelExpressions")):
            _check_expression(item, node, run)
            label = as_text(item.get("key"))
            if label and not is_label_key(label):
                run.report("invalid-label", describe_label_key(label), At(item, "key"))
            elif label and label in topology:
                message = Sentence("the topology has the key `{}` twice; delete one of them", label)
                run.report("duplicate-item", message, At(item, "key"))
            topology[label] = frozenset(found for found, _ in iter_texts(item.get("values")))
        if not topology:
            run.report_missing("a topology", term, "matchLabelExpressions", place)
        elif topology in seen:
            run.report(
                "duplicate-item",
                "two topologies are equal; delete one of them",
                find_entry(term, "matchLabelExpressions", place),
            )
        seen.append(topology)


_SOURCES: Table = {
    **SHARED_SOURCES,
    "glusterfs": mapping({"endpointsNamespace": all_of(_validate_not_empty, namespace_name)}, "endpoints", "path"),
    "iscsi": all_of(validate_iscsi, mapping({"secretRef": mapping({}, "name")})),
    "cinder": mapping({"secretRef": _secret}, "volumeID"),
    "azureFile": mapping({"secretNamespace": _validate_not_empty}, "secretName", "shareName"),
    "local": mapping({"path": validate_host_path}, "path"),
    "storageos": mapping(_STORAGEOS, "volumeName"),
    "csi": mapping(_CSI, "driver", "volumeHandle"),
}
_VOLUME: Table = {
    **_ACCESS,
    "nodeAffinity": mapping({"required": validate_node_selector}, require_set("", "required")),
    "persistentVolumeReclaimPolicy": one_of("", "Retain", "Delete", "Recycle"),
    "storageClassName": object_name,
    "volumeAttributesClassName": since(_ATTRIBUTES_CLASS_SINCE, all_of(_validate_not_empty, object_name)),
    "volumeMode": one_of("Filesystem", "Block"),
}

_CSI_DRIVER: Table = {
    "fsGroupPolicy": one_of("ReadWriteOnceWithFSType", "File", "None"),
    "nodeAllocatableUpdatePeriodSeconds": since((1, 35), number(10)),
    "volumeLifecycleModes": texts("Persistent", "Ephemeral"),
}
_STORAGE_CLASS: Table = {
    "allowedTopologies": _validate_topologies,
    "parameters": _validate_parameters,
    "provisioner": _provisioner,
    "reclaimPolicy": one_of("", "Delete", "Retain"),
    "volumeBindingMode": one_of("Immediate", "WaitForFirstConsumer"),
}
_ATTRIBUTES_CLASS: Table = {"driverName": _provisioner, "parameters": _validate_parameters}

KINDS = {
    "PersistentVolume": Kind(spec("a volume", _VOLUME, "accessModes", _check_volume)),
    "PersistentVolumeClaim": Kind(_check_claim),
    "CSIDriver": Kind(spec("a CSIDriver", _CSI_DRIVER, _check_tokens)),
    "StorageClass": Kind(fields("the class", _STORAGE_CLASS, "provisioner")),
    "VolumeAttributesClass": Kind(fields("the class", _ATTRIBUTES_CLASS, "driverName", _require_parameters)),
}

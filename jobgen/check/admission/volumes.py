"""Validate volumes: their names, the fields of each source, and how containers mount them."""

from __future__ import annotations

import re

from jobgen.check.admission.env import validate_file_field_ref, validate_file_resource_ref
from jobgen.check.admission.fields import (
    POD,
    Entry,
    Fields,
    Table,
    Validation,
    all_of,
    dns_label,
    dns_subdomain,
    each,
    fields,
    find_mapping,
    is_empty,
    is_set,
    iter_texts,
    join_names,
    list_mappings,
    list_set_keys,
    mapping,
    number,
    one_of,
    text,
    valid_text,
)
from jobgen.check.admission.metadata import validate_annotation_keys, validate_labels
from jobgen.check.admission.names import (
    DNS_LABEL,
    DNS_SUBDOMAIN,
    has_backsteps,
    is_dns_label,
    is_dns_subdomain,
    is_driver_name,
)
from jobgen.check.admission.scheduling import validate_label_selector, validate_quantity
from jobgen.k8s.feature_gates import is_on
from jobgen.k8s.nodes import as_mapping, as_text, get_path
from jobgen.model.data import Plain
from jobgen.model.finding import Problem, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.place import At, find_at
from jobgen.model.quantity import to_milli
from jobgen.model.sentence import Sentence

_MOUNT_RULE = "conflicting-mount"
_PATH_RULE = "invalid-volume-path"
_validate_propagation_mode = one_of("None", "HostToContainer", "Bidirectional")
_validate_recursive_mode = one_of("Disabled", "IfPossible", "Enabled")
_SOURCE_RULE = "invalid-volume-source"
_MOST_MODE = 0o777
_OCTAL = lazy_pattern(r"[0-7]{3}")


def _validate_mode(key: str, value: Plain, owner: Fields, run: Validation) -> None:
    """Report a mode that is no mode; one with three octal digits was meant as octal."""
    if type(value) is not int or 0 <= value <= _MOST_MODE:
        return
    message = Sentence("`{}` must be between 0 and {}, got `{}`", key, _MOST_MODE, value)
    if _OCTAL.fullmatch(str(value)):
        message += f", which is decimal; write `0{value}`, or `{int(str(value), 8)}` in JSON"
    run.report("out-of-range", message, At(owner, key))


_validate_byte = number(0, 255)
_validate_object_name = dns_subdomain("invalid-object-name", "object name")
_validate_named_secret = mapping({}, "name")
validate_host_path = valid_text(
    _PATH_RULE, "`{key}` is `{found}`, but must not contain `..`", lambda path: not has_backsteps(path)
)
_validate_absolute_path = valid_text(
    _PATH_RULE, "`{key}` must be an absolute path, got `{found}`", lambda path: path.startswith("/")
)
validate_driver = text(_SOURCE_RULE, "driver name", is_driver_name, "use a domain name with at most 63 characters")
_ACCESS_MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
_STORAGE = "resources.requests.storage"
_IQN = lazy_pattern(r"iqn\.[0-9]{4}-[0-9]{2}\.[-.A-Za-z0-9]+:[^,;*&$|\t\n\f\r ]+\Z")
_EUI_OR_NAA = lazy_pattern(r"(?:eui.[A-Za-z0-9]{16}|naa.[A-Za-z0-9]{32})\Z")
_IQN_HINT = "use the `iqn.`, `eui.` or `naa.` format"
validate_storageos_name = dns_label(_SOURCE_RULE, "StorageOS name")


def validate_local_path(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    """Validate a path inside a directory: relative, and without `..` steps."""
    path = as_text(value)
    if path.startswith("/"):
        pod.report(_PATH_RULE, Sentence("`{}` must be a relative path, got `{}`", key, path), At(owner, key))
    if has_backsteps(path):
        pod.report(_PATH_RULE, Sentence("`{}` is `{}`, but must not contain `..`", key, path), At(owner, key))


def validate_unreserved_local_path(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    """Validate the path of a file that Kubernetes writes; it reserves names that start with `..`."""
    validate_local_path(key, value, owner, pod)
    path = as_text(value)
    if path.startswith("..") and not has_backsteps(path):
        pod.report(_PATH_RULE, Sentence("`{}` is `{}`, but must not start with `..`", key, path), At(owner, key))


def validate_volume_mounts(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    """Validate the volumes that one container mounts."""
    if not isinstance(value, list):
        return
    paths: set[str] = set()
    for mount in value:
        if isinstance(mount, dict):
            name, path = mount.get("name"), mount.get("mountPath")
            if type(name) is not str or name not in pod.volumes:
                _validate_volume_reference("a mount", mount, (owner, key), pod)
            if path is None or path == "":
                pod.report_missing("a mount", mount, "mountPath", (owner, key))
            elif type(path) is str:
                if path in paths:
                    message = Sentence("two mounts of the container have the path `{}`; change one of them", path)
                    pod.report("duplicate-mount-path", message, At(mount, "mountPath"))
                elif path[0] not in "/\\$" or ":" in path:
                    _check_mount_path(path, mount, pod)
                paths.add(path)
            if len(mount) > 2:
                _validate_mount_options(mount, owner, pod)


_DOCKER_MODE = lazy_pattern(r"(/[^:]*):((?:r[ow]|[zZ]|cached|delegated|consistent)(?:,[A-Za-z]+)*)")
"""A path with what `docker run -v` has behind it: whether the folder is read-only, and its label of SELinux."""


def _check_mount_path(path: str, mount: Fields, pod: Validation) -> None:
    """Warn about a path that the kubelet takes for one below the root, or for a folder with docker's mode in its name.

    `C:` begins a path of Windows.
    """
    message: Sentence | None = None
    if mode := _DOCKER_MODE.fullmatch(path):
        is_read_only = "ro" in mode[2].split(",") and mount.get("readOnly") is not True
        advice = f"write `mountPath: {mode[1]}`" + " and `readOnly: true`" * is_read_only
        start = Sentence("`mountPath` is `{}`, and `:{}` is a mode of docker, not of Kubernetes", path, mode[2])
        message = Sentence("{}; {}", start, advice)
    elif path[0] not in "/\\$" and path[1:2] != ":":
        start = Sentence(
            "`mountPath` is `{}`, and the kubelet mounts the volume at `/{}`, not in the working directory", path, path
        )
        message = Sentence("{}; write the whole path", start)
    if message:
        problem = Problem(_PATH_RULE, message, At(mount, "mountPath"), category=pod.subject.category)
        pod.problems.append(problem._replace(severity=Severity.WARNING))


def _validate_volume_reference(what: str, mount: Fields, entry: Entry, pod: Validation) -> None:
    name = mount.get("name")
    if name is None or name == "":
        pod.report_missing(what, mount, "name", entry)
    elif type(name) is str and name not in pod.volumes:
        # Imported late: most names are right.
        from jobgen.check.admission.missing_volume import report_missing_volume

        report_missing_volume(name, At(mount, "name"), pod)


def _validate_mount_options(mount: Fields, container: Fields, pod: Validation) -> None:
    for key in ("subPath", "subPathExpr"):
        if key in mount:
            validate_local_path(key, mount[key], mount, pod)
    if as_text(mount.get("subPathExpr")) and as_text(mount.get("subPath")):
        message = Sentence("`subPath` and `subPathExpr` are mutually exclusive; delete one of them")
        pod.report(_MOUNT_RULE, message, At(mount, "subPathExpr"))
    propagation, recursive = mount.get("mountPropagation"), mount.get("recursiveReadOnly")
    _validate_propagation_mode("mountPropagation", propagation, mount, pod)
    is_privileged = get_path(container, "securityContext", "privileged") is True
    if propagation == "Bidirectional" and not is_privileged:
        message = Sentence("`mountPropagation` is `Bidirectional`, which requires a privileged container")
        pod.report(_MOUNT_RULE, message, At(mount, "mountPropagation"))
    if not is_on("RecursiveReadOnlyMounts", pod.release):
        # The API server drops it.
        return
    _validate_recursive_mode("recursiveReadOnly", recursive, mount, pod)
    if (mode := recursive) in ("IfPossible", "Enabled"):
        if mount.get("readOnly") is not True:
            pod.report(
                _MOUNT_RULE,
                Sentence("`recursiveReadOnly` is `{}`, which requires `readOnly` to be true", mode),
                At(mount, "recursiveReadOnly"),
            )
        if as_text(propagation) not in ("", "None"):
            message = Sentence(
                "`recursiveReadOnly` is `{}`, which cannot be combined with `mountPropagation`; delete one of them",
                mode,
            )
            pod.report(_MOUNT_RULE, message, At(mount, "recursiveReadOnly"))


def validate_volume_devices(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    """Validate the volumes that one container uses as block devices."""
    if not isinstance(value, list):
        return
    mounts = list_mappings(owner.get("volumeMounts"))
    names = {as_text(mount.get("name")) for mount in mounts} - {""}
    paths = {as_text(mount.get("mountPath")) for mount in mounts} - {""}
    for device in list_mappings(value):
        _validate_volume_reference("a device", device, (owner, key), pod)
        name = as_text(device.get("name"))
        volume = pod.volumes.get(name, {})
        if volume and not any(is_set(volume.get(source)) for source in ("persistentVolumeClaim", "ephemeral")):
            pod.report(
                _MOUNT_RULE,
                Sentence("volume `{}` cannot be a device; use a volume that is a claim", name),
                At(device, "name"),
            )
        _validate_unique("name", device, names, pod)
        path = as_text(device.get("devicePath"))
        if not path:
            pod.report_missing("a device", device, "devicePath", (owner, key))
        elif has_backsteps(path):
            pod.report(
                _PATH_RULE, Sentence("`devicePath` is `{}`, but must not contain `..`", path), At(device, "devicePath")
            )
        _validate_unique("devicePath", device, paths, pod)


def _validate_unique(field: str, device: Fields, used: set[str], pod: Validation) -> None:
    found = as_text(device.get(field))
    if found in used:
        message = Sentence("`{}` is already a mount or a device of the container; change one of them", found)
        pod.report(_MOUNT_RULE, message, At(device, field))
    elif found:
        used.add(found)


def index_volumes(value: Plain) -> dict[str, Fields]:
    """Return the volumes of the pod by name."""
    return {name: volume for volume in list_mappings(value) if type(name := volume.get("name")) is str}


def validate_volumes(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    """Validate the volumes of the pod."""
    names: set[str] = set()
    for volume in list_mappings(value):
        name = volume.get("name")
        if name is None or name == "":
            pod.report_missing("a volume", volume, "name", (owner, key))
        elif type(name) is str:
            if not is_dns_label(name):
                pod.report(
                    "invalid-volume-name",
                    Sentence("`{}` is not a valid volume name; {}", name, DNS_LABEL),
                    At(volume, "name"),
                )
            if name in names:
                pod.report(
                    "duplicate-volume",
                    Sentence("two volumes are named `{}`; rename one of them", name),
                    At(volume, "name"),
                )
            names.add(name)
        _validate_volume_source(volume, pod)
        if pod.name and "ephemeral" in volume and is_set(volume["ephemeral"]):
            _validate_ephemeral_claim_name(as_text(volume.get("name")), volume, pod)


def _validate_volume_source(volume: Fields, pod: Validation) -> None:
    """Validate the source of a volume; without one it is an `emptyDir`."""
    first = ""
    for source_type, source in volume.items():
        validate = _SOURCES.get(source_type)
        if validate is None or not is_set(source):
            continue
        if first:
            name = as_text(volume.get("name"))
            message = Sentence("volume `{}` has two sources, `{}` and `{}`; keep one of them", name, first, source_type)
            pod.report("conflicting-volume-source", message, (volume, source_type))
        else:
            validate(source_type, source, volume, pod)
        first = source_type


def _validate_ephemeral_claim_name(name: str, volume: Fields, pod: Validation) -> None:
    claim_name = f"{pod.name}-{name}"
    if is_dns_label(name) and not is_dns_subdomain(claim_name):
        message = Sentence("`{}`, the claim of this volume, is not a valid object name; {}", claim_name, DNS_SUBDOMAIN)
        pod.report("invalid-volume-name", message, At(volume, "name"))
    for other in pod.volumes.values():
        claim = other.get("persistentVolumeClaim")
        claim_name = as_text(claim.get("claimName")) if isinstance(claim, dict) else ""
        if isinstance(claim, dict) and claim_name.endswith(f"-{name}") and pod.has_name(claim_name[: -len(name) - 1]):
            message = Sentence(
                "`{}` is the claim of the ephemeral volume `{}`; mount that volume instead", claim_name, name
            )
            pod.report(_SOURCE_RULE, message, At(claim, "claimName"))


def _check_downward_source(item: Fields, entry: Entry, pod: Validation) -> None:
    given = list_set_keys(item, ("fieldRef", "resourceFieldRef"))
    if len(given) != 1:
        message = "an item requires exactly one of `fieldRef` and `resourceFieldRef`"
        pod.report(_SOURCE_RULE, message, (item, given[-1]) if given else find_mapping(item, entry))


def _check_projections(value: Fields, entry: Entry, pod: Validation) -> None:
    """Check that each projection has one source and no two write the same file."""
    paths: set[str] = set()
    for projection in list_mappings(value.get("sources")):
        given = list_set_keys(projection, _PROJECTIONS)
        if len(given) > 1:
            message = Sentence(
                "a projection has {} sources: {}; keep one of them", len(given), join_names(given, "and")
            )
            pod.report("conflicting-volume-source", message, (projection, given[-1]))
        for source in (projection[name] for name in given):
            for item in list_mappings(get_path(source, "items")):
                path = as_text(item.get("path"))
                if path and path in paths:
                    message = Sentence("two items of the volume write `{}`; change one of them", path)
                    pod.report(_SOURCE_RULE, message, At(item, "path"))
                paths.add(path)


def _check_claim_template(template: Fields, entry: Entry, pod: Validation) -> None:
    if not isinstance(template.get("spec"), dict):
        pod.require_fields("a volume claim", {}, ("accessModes", _STORAGE), entry)


def _check_claim_metadata(metadata: Fields, entry: Entry, pod: Validation) -> None:
    for name, part in metadata.items():
        if name not in ("labels", "annotations") and not is_empty(part):
            message = Sentence("`{}` cannot be set in the template of a claim; only labels and annotations can", name)
            pod.report(_SOURCE_RULE, message, (metadata, name))


def _check_claim_spec(claim: Fields, entry: Entry, pod: Validation) -> None:
    storage = get_path(claim, *_STORAGE.split("."))
    if not is_set(storage):
        pod.report_missing("a volume claim", {}, _STORAGE, _find_deepest(claim, _STORAGE.split("."), entry))
    elif (milli := to_milli(storage)) is not None and milli <= 0:
        place = find_at(claim, *_STORAGE.split("."))
        pod.report(_SOURCE_RULE, Sentence("`storage` must be more than 0, got `{}`", storage), place)
    source, reference = claim.get("dataSource"), claim.get("dataSourceRef")
    if not isinstance(source, dict) or not isinstance(reference, dict):
        return
    if as_text(reference.get("namespace")):
        message = "`dataSource` cannot be set with a `dataSourceRef` that has a namespace; delete one of them"
        pod.report(_SOURCE_RULE, message, At(claim, "dataSource"))
    elif any(source.get(name) != reference.get(name) for name in ("apiGroup", "kind", "name")):
        message = "`dataSource` and `dataSourceRef` refer to different objects; delete one of them"
        pod.report(_SOURCE_RULE, message, At(claim, "dataSourceRef"))


def _find_deepest(owner: Fields, steps: list[str], parent: Entry) -> Entry:
    """Return the deepest key that exists on a path of fields, or the parent."""
    found = (owner, steps[0]) if steps and steps[0] in owner else parent
    inner = owner.get(steps[0]) if found is not parent else None
    return _find_deepest(inner, steps[1:], found) if isinstance(inner, dict) else found


def validate_access_modes(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    """Validate the ways in which nodes can mount a volume."""
    modes = list(iter_texts(value))
    for mode, node in modes:
        if mode not in _ACCESS_MODES:
            pod.report_unsupported(key, node, _ACCESS_MODES)
    known = {mode for mode, _ in modes} & set(_ACCESS_MODES)
    if "ReadWriteOncePod" in known and len(known) > 1:
        message = "`ReadWriteOncePod` cannot be combined with other access modes; delete it or the others"
        pod.report(_SOURCE_RULE, message, (owner, key))


def _check_data_source(source: Fields, entry: Entry, pod: Validation) -> None:
    kind = as_text(source.get("kind"))
    if kind not in ("", "PersistentVolumeClaim") and not as_text(source.get("apiGroup")):
        message = Sentence("`{}` requires `apiGroup`; without it only `PersistentVolumeClaim` is valid", kind)
        pod.report(_SOURCE_RULE, message, At(source, "kind"))


def _is_iqn(name: str) -> bool:
    return bool(_IQN.match(name) or _EUI_OR_NAA.match(name))


def _validate_flex_options(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    for option in as_mapping(value):
        domain = f".{option.partition('/')[0].lower()}"
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            message = Sentence("option `{}` has a domain that is reserved for Kubernetes; use another", option)
            pod.report(_SOURCE_RULE, message, (value, option))


def _validate_iscsi(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    if not isinstance(value, dict):
        return
    chap = [name for name in ("chapAuthDiscovery", "chapAuthSession") if value.get(name) is True]
    if chap and not is_set(value.get("secretRef")):
        pod.report(_SOURCE_RULE, Sentence("`{}` requires `secretRef`; set it", chap[0]), At(value, chap[0]))
    named = owner if pod.subject is POD else pod.metadata
    interface = f"{as_text(named.get('name'))}:{as_text(value.get('targetPortal'))}"
    if is_set(value.get("initiatorName")) and len(interface) > 64:
        message = Sentence(
            "`{}` must have at most 64 characters with `initiatorName`; shorten the volume's name", interface
        )
        pod.report(_SOURCE_RULE, message, At(named, "name") if "name" in named else (owner, key))


def _check_fc(value: Fields, entry: Entry, pod: Validation) -> None:
    targets, wwids = (not is_empty(value.get(name)) for name in ("targetWWNs", "wwids"))
    if targets == wwids:
        pod.report(_SOURCE_RULE, "`fc` requires exactly one of `targetWWNs` and `wwids`", entry)
    if targets:
        pod.require_fields("`fc` with `targetWWNs`", value, ("lun",), entry)
        _validate_byte("lun", value.get("lun"), value, pod)


def _check_flocker(value: Fields, entry: Entry, pod: Validation) -> None:
    name, uuid = as_text(value.get("datasetName")), as_text(value.get("datasetUUID"))
    if bool(name) == bool(uuid):
        pod.report(_SOURCE_RULE, "`flocker` requires exactly one of `datasetName` and `datasetUUID`", entry)
    if "/" in name:
        pod.report(
            _SOURCE_RULE, Sentence("`datasetName` is `{}`, but must not contain `/`", name), At(value, "datasetName")
        )


def _check_quobyte(value: Fields, entry: Entry, pod: Validation) -> None:
    registry, tenant = as_text(value.get("registry")), as_text(value.get("tenant"))
    if registry and len(tenant) > 64:
        pod.report(
            _SOURCE_RULE, Sentence("`tenant` must have at most 64 characters, got {}", len(tenant)), At(value, "tenant")
        )
    elif registry and not all(re.fullmatch(r"(\[[^][]*\]|[^][:]*):[^][:]*", pair) for pair in registry.split(",")):
        message = Sentence("`registry` is `{}`, but must be a comma-separated list of `host:port`", registry)
        pod.report(_SOURCE_RULE, message, At(value, "registry"))


def _check_azure_disk(value: Fields, entry: Entry, pod: Validation) -> None:
    # The default of `kind` is `Shared`, a blob.
    prefix = "/subscriptions/" if as_text(value.get("kind")) == "Managed" else "https://"
    uri = as_text(value.get("diskURI"))
    if uri and not uri.startswith(prefix):
        message = Sentence("`diskURI` is `{}`, but must start with `{}` for this kind of disk", uri, prefix)
        pod.report(_SOURCE_RULE, message, At(value, "diskURI"))


_FILE: Table = {"path": validate_unreserved_local_path, "mode": _validate_mode}
_FIELD_FILE: Table = {**_FILE, "fieldRef": validate_file_field_ref, "resourceFieldRef": validate_file_resource_ref}
_validate_items = each(mapping({}, fields("an item", _FILE, "key", "path")))
_validate_downward_items = each(mapping({}, fields("an item", _FIELD_FILE, "path", _check_downward_source)))
_PROJECTIONS: Table = {
    "secret": mapping({"items": _validate_items}, "name"),
    "configMap": mapping({"items": _validate_items}, "name"),
    "downwardAPI": mapping({"items": _validate_downward_items}),
    "serviceAccountToken": mapping(
        {"expirationSeconds": number(600, 1 << 32), "path": validate_unreserved_local_path}, "path"
    ),
}
_validate_data_source = mapping(
    {"apiGroup": _validate_object_name, "namespace": dns_label("invalid-object-name", "namespace name")},
    "name",
    "kind",
    _check_data_source,
)
_CLAIM_SPEC: Table = {
    "accessModes": validate_access_modes,
    "selector": validate_label_selector,
    "storageClassName": _validate_object_name,
    "volumeAttributesClassName": _validate_object_name,
    "volumeMode": one_of("Filesystem", "Block"),
    "dataSource": _validate_data_source,
    "dataSourceRef": _validate_data_source,
}
check_claim_fields = fields("a volume claim", _CLAIM_SPEC, "accessModes", _check_claim_spec)
validate_claim_spec = mapping({}, check_claim_fields)
_validate_claim_template = mapping(
    {
        "metadata": mapping(
            {"labels": validate_labels, "annotations": validate_annotation_keys}, _check_claim_metadata
        ),
        "spec": validate_claim_spec,
    },
    _check_claim_template,
)
_validate_iqn = text(_SOURCE_RULE, "iSCSI qualified name", _is_iqn, _IQN_HINT)
_validate_initiator = text(_SOURCE_RULE, "iSCSI qualified name", _is_iqn, _IQN_HINT, allow_empty=False)

_HOST_PATH_TYPES = tuple("DirectoryOrCreate Directory FileOrCreate File Socket CharDevice BlockDevice".split())
_FILES: Table = {"items": _validate_items, "defaultMode": _validate_mode}
_ISCSI: Table = {"iqn": _validate_iqn, "initiatorName": _validate_initiator, "lun": _validate_byte}
validate_iscsi = all_of(mapping(_ISCSI, "targetPortal", "iqn"), _validate_iscsi)
_AZURE_DISK: Table = {
    "cachingMode": one_of("None", "ReadOnly", "ReadWrite"),
    "kind": one_of("Shared", "Dedicated", "Managed"),
}
_STORAGEOS: Table = {
    "volumeName": validate_storageos_name,
    "volumeNamespace": validate_storageos_name,
    "secretRef": _validate_named_secret,
}
SHARED_SOURCES: Table = {
    "hostPath": mapping({"path": validate_host_path, "type": one_of("", *_HOST_PATH_TYPES)}, "path"),
    "nfs": mapping({"path": _validate_absolute_path}, "server", "path"),
    "fc": mapping({}, _check_fc),
    "rbd": mapping({}, "monitors", "image"),
    "cephfs": mapping({}, "monitors"),
    "flocker": mapping({}, _check_flocker),
    "quobyte": mapping({}, "registry", "volume", _check_quobyte),
    "flexVolume": mapping({"options": _validate_flex_options}, "driver"),
    "gcePersistentDisk": mapping({"partition": _validate_byte}, "pdName"),
    "awsElasticBlockStore": mapping({"partition": _validate_byte}, "volumeID"),
    "azureDisk": mapping(_AZURE_DISK, "diskName", "diskURI", _check_azure_disk),
    "vsphereVolume": mapping({}, "volumePath"),
    "photonPersistentDisk": mapping({}, "pdID"),
    "portworxVolume": mapping({}, "volumeID"),
    "scaleIO": mapping({}, "gateway", "system", "volumeName"),
}
"""The sources that pods and PersistentVolumes have in common."""

_SOURCES: Table = {
    **SHARED_SOURCES,
    "emptyDir": mapping({"sizeLimit": validate_quantity}),
    "persistentVolumeClaim": mapping({}, "claimName"),
    "configMap": mapping(_FILES, "name"),
    "secret": mapping(_FILES, "secretName"),
    "downwardAPI": mapping({"items": _validate_downward_items, "defaultMode": _validate_mode}),
    "projected": mapping({"sources": each(mapping(_PROJECTIONS)), "defaultMode": _validate_mode}, _check_projections),
    "ephemeral": mapping({"volumeClaimTemplate": _validate_claim_template}, "volumeClaimTemplate"),
    "csi": mapping(
        {"driver": validate_driver, "nodePublishSecretRef": mapping({"name": _validate_object_name}, "name")}, "driver"
    ),
    "image": mapping({"pullPolicy": one_of("", "Always", "IfNotPresent", "Never")}, "reference"),
    "gitRepo": mapping({"directory": validate_local_path}, "repository"),
    "iscsi": validate_iscsi,
    "glusterfs": mapping({}, "endpoints", "path"),
    "cinder": mapping({"secretRef": _validate_named_secret}, "volumeID"),
    "azureFile": mapping({}, "secretName", "shareName"),
    "storageos": mapping(_STORAGEOS, "volumeName"),
}

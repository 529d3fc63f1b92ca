"""Validate the volumes of a container, as mounts and as block devices, and paths inside volumes."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import (
    Validation,
    is_set,
    iter_mappings,
    report_missing,
    report_unsupported,
)
from jobgen.check.admission.names import has_backsteps
from jobgen.k8s.nodes import as_text, get_path
from jobgen.model.data import Node, value_of
from jobgen.model.suggest import did_you_mean

_PROPAGATION_MODES = ("None", "HostToContainer", "Bidirectional")
_RECURSIVE_MODES = ("Disabled", "IfPossible", "Enabled")
_RULE = "conflicting-mount"
_PATH_RULE = "invalid-volume-path"


def validate_local_path(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
    """Validate a path inside a directory: relative, and without `..` steps."""
    path = as_text(value)
    if path.startswith("/"):
        pod.report(_PATH_RULE, f"`{key}` must be a relative path, got `{path}`", value)
    if has_backsteps(path):
        pod.report(_PATH_RULE, f"`{key}` is `{path}`, but must not contain `..`", value)


def validate_unreserved_local_path(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
    """Validate the path of a file that Kubernetes writes; it reserves names that start with `..`."""
    validate_local_path(key, value, owner, pod)
    path = as_text(value)
    if path.startswith("..") and not has_backsteps(path):
        pod.report(_PATH_RULE, f"`{key}` is `{path}`, but must not start with `..`", value)


def validate_volume_mounts(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
    """Validate the volumes that one container mounts."""
    if not isinstance(value, list):
        return
    paths: set[str] = set()
    for mount in value:
        if isinstance(mount, dict):
            name, path = value_of(mount.get("name")), value_of(mount.get("mountPath"))
            if type(name) is not str or name not in pod.volumes:
                _validate_volume_reference("a mount", mount, key, pod)
            if path is None or path == "":
                report_missing("a mount", mount, "mountPath", key, pod)
            elif type(path) is str:
                if path in paths:
                    message = f"two mounts of the container have the path `{path}`; change one of them"
                    pod.report("duplicate-mount-path", message, mount["mountPath"])
                paths.add(path)
            if len(mount) > 2:
                _validate_mount_options(mount, owner, pod)


def _validate_volume_reference(what: str, mount: Mapping[str, Node], parent: str, pod: Validation) -> None:
    name = value_of(mount.get("name"))
    if name is None or name == "":
        report_missing(what, mount, "name", parent, pod)
    elif type(name) is str and name not in pod.volumes:
        message = f"the pod has no volume `{name}`{did_you_mean(name, list(pod.volumes)) or '; add it to the pod'}"
        pod.report("unknown-volume", message, mount["name"])


def _validate_mount_options(mount: Mapping[str, Node], container: Mapping[str, Node], pod: Validation) -> None:
    for key in ("subPath", "subPathExpr"):
        if key in mount:
            validate_local_path(key, mount[key], mount, pod)
    if as_text(mount.get("subPathExpr")) and as_text(mount.get("subPath")):
        message = "`subPath` and `subPathExpr` are mutually exclusive; delete one of them"
        pod.report(_RULE, message, mount["subPathExpr"])
    if "mountPropagation" in mount:
        _validate_propagation(mount["mountPropagation"], container, pod)
    if "recursiveReadOnly" in mount:
        _validate_recursive_read_only(mount["recursiveReadOnly"], mount, pod)


def _validate_propagation(value: Node, container: Mapping[str, Node], pod: Validation) -> None:
    found = value_of(value)
    if type(found) is str and found not in _PROPAGATION_MODES:
        report_unsupported("mountPropagation", value, _PROPAGATION_MODES, pod)
    is_privileged = value_of(get_path(container, "securityContext", "privileged")) is True
    if found == "Bidirectional" and not is_privileged:
        message = "`mountPropagation` is `Bidirectional`, which requires a privileged container"
        pod.report(_RULE, message, value)


def _validate_recursive_read_only(value: Node, mount: Mapping[str, Node], pod: Validation) -> None:
    found = value_of(value)
    if type(found) is not str or found == "Disabled":
        return
    if found not in _RECURSIVE_MODES:
        report_unsupported("recursiveReadOnly", value, _RECURSIVE_MODES, pod)
        return
    if value_of(mount.get("readOnly")) is not True:
        pod.report(_RULE, f"`recursiveReadOnly` is `{found}`, which requires `readOnly` to be true", value)
    if as_text(mount.get("mountPropagation")) not in ("", "None"):
        pod.report(
            _RULE, f"`recursiveReadOnly` is `{found}`, which excludes `mountPropagation`; delete one of them", value
        )


def validate_volume_devices(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
    """Validate the volumes that one container uses as block devices."""
    if not isinstance(value, list):
        return
    mounts = list(iter_mappings(owner.get("volumeMounts")))
    names = {as_text(mount.get("name")) for mount in mounts} - {""}
    paths = {as_text(mount.get("mountPath")) for mount in mounts} - {""}
    for device in iter_mappings(value):
        _validate_volume_reference("a device", device, key, pod)
        _validate_block_volume(device, pod)
        _validate_unique("name", device, names, pod)
        path = as_text(device.get("devicePath"))
        if not path:
            report_missing("a device", device, "devicePath", key, pod)
        elif has_backsteps(path):
            pod.report(_PATH_RULE, f"`devicePath` is `{path}`, but must not contain `..`", device["devicePath"])
        _validate_unique("devicePath", device, paths, pod)


def _validate_block_volume(device: Mapping[str, Node], pod: Validation) -> None:
    name = as_text(device.get("name"))
    volume = pod.volumes.get(name, {})
    if volume and not any(is_set(volume.get(source)) for source in ("persistentVolumeClaim", "ephemeral")):
        message = f"volume `{name}` cannot be a device; use a volume that is a claim"
        pod.report(_RULE, message, device["name"])


def _validate_unique(field: str, device: Mapping[str, Node], used: set[str], pod: Validation) -> None:
    found = as_text(device.get(field))
    if found in used:
        message = f"`{found}` is already a mount or a device of the container; change one of them"
        pod.report(_RULE, message, device[field])
    elif found:
        used.add(found)

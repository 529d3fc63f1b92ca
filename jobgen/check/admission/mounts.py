"""Volumes in containers: mounts and block devices."""

from __future__ import annotations

from jobgen.check.admission.fields import PodCheck, is_set, mappings, missing, string, unsupported
from jobgen.check.admission.names import climbs
from jobgen.model.data import Data, value_of
from jobgen.model.suggest import did_you_mean

_PROPAGATIONS = ("None", "HostToContainer", "Bidirectional")
_RECURSIONS = ("Disabled", "IfPossible", "Enabled")
_RULE = "conflicting-mount"


def mounts(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """The volumes that one container mounts."""
    if not isinstance(value, list):
        return
    paths: set[str] = set()
    for mount in value:
        if isinstance(mount, dict):
            name, path = value_of(mount.get("name")), value_of(mount.get("mountPath"))
            if type(name) is not str or name not in pod.volumes:
                _name("a mount", mount, key, pod)
            if path is None or path == "":
                missing("a mount", mount, "mountPath", key, pod)
            elif type(path) is str:
                if path in paths:
                    pod.report(
                        "duplicate-mount-path", f"`{path}` is mounted twice in the container", mount["mountPath"]
                    )
                paths.add(path)
            if len(mount) > 2:
                _options(mount, owner, pod)


def _name(what: str, mount: dict[str, Data], around: str, pod: PodCheck) -> None:
    name = value_of(mount.get("name"))
    if name is None or name == "":
        missing(what, mount, "name", around, pod)
    elif type(name) is str and name not in pod.volumes:
        message = f"there is no volume `{name}`{did_you_mean(name, list(pod.volumes))}"
        pod.report("unknown-volume", message, mount["name"])


def _options(mount: dict[str, Data], container: dict[str, Data], pod: PodCheck) -> None:
    for key in ("subPath", "subPathExpr"):
        if key in mount:
            inner_path(key, mount[key], mount, pod)
    if string(mount.get("subPathExpr")) and string(mount.get("subPath")):
        message = "`subPath` and `subPathExpr` exclude each other; delete one of them"
        pod.report(_RULE, message, mount["subPathExpr"])
    if "mountPropagation" in mount:
        _propagation(mount["mountPropagation"], container, pod)
    if "recursiveReadOnly" in mount:
        _recursive(mount["recursiveReadOnly"], mount, pod)


def inner_path(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """A path inside something: relative, and never out of it."""
    path = string(value)
    if path.startswith("/"):
        pod.report("invalid-volume-path", f"`{key}` is `{path}`; it must be a relative path", value)
    if climbs(path):
        pod.report("invalid-volume-path", f"`{key}` is `{path}`; it must not have `..` in it", value)


def file_path(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """A path of a file that Kubernetes writes; names that begin with `..` are its own."""
    inner_path(key, value, owner, pod)
    path = string(value)
    if path.startswith("..") and not climbs(path):
        pod.report("invalid-volume-path", f"`{key}` is `{path}`; it must not begin with `..`", value)


def _propagation(value: Data, container: dict[str, Data], pod: PodCheck) -> None:
    found = value_of(value)
    if type(found) is str and found not in _PROPAGATIONS:
        unsupported("mountPropagation", value, _PROPAGATIONS, pod)
    security = container.get("securityContext")
    privileged = isinstance(security, dict) and value_of(security.get("privileged")) is True
    if found == "Bidirectional" and not privileged:
        pod.report(_RULE, "`mountPropagation` is `Bidirectional`, and the container is not privileged", value)


def _recursive(value: Data, mount: dict[str, Data], pod: PodCheck) -> None:
    found = value_of(value)
    if type(found) is not str or found == "Disabled":
        return
    if found not in _RECURSIONS:
        unsupported("recursiveReadOnly", value, _RECURSIONS, pod)
        return
    if value_of(mount.get("readOnly")) is not True:
        pod.report(_RULE, f"`recursiveReadOnly` is `{found}`, and the mount is not `readOnly`", value)
    if string(mount.get("mountPropagation")) not in ("", "None"):
        pod.report(_RULE, f"`recursiveReadOnly` is `{found}`, and the mount has a `mountPropagation`", value)


def devices(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """The volumes that one container sees as block devices."""
    if not isinstance(value, list):
        return
    mounted = list(mappings(owner.get("volumeMounts")))
    names = {string(mount.get("name")) for mount in mounted} - {""}
    paths = {string(mount.get("mountPath")) for mount in mounted} - {""}
    for device in mappings(value):
        _name("a device", device, key, pod)
        _block(device, pod)
        _once("name", device, names, pod)
        if not string(device.get("devicePath")):
            missing("a device", device, "devicePath", key, pod)
        elif climbs(string(device["devicePath"])):
            message = f"`devicePath` is `{value_of(device['devicePath'])}`; it must not have `..` in it"
            pod.report("invalid-volume-path", message, device["devicePath"])
        _once("devicePath", device, paths, pod)


def _block(device: dict[str, Data], pod: PodCheck) -> None:
    volume = pod.volumes.get(string(device.get("name")), {})
    if volume and not any(is_set(volume.get(kind)) for kind in ("persistentVolumeClaim", "ephemeral")):
        message = f"volume `{value_of(device['name'])}` is not a claim, and only a claim can be a device"
        pod.report(_RULE, message, device["name"])


def _once(field: str, device: dict[str, Data], seen: set[str], pod: PodCheck) -> None:
    found = string(device.get(field))
    if found in seen:
        pod.report(_RULE, f"`{found}` is a mount or a device of the container already", device[field])
    elif found:
        seen.add(found)

"""A pod template to the fields of a role that say the same; what has no short form is left for `podTemplate`."""

from __future__ import annotations

from typing import NamedTuple

from jobgen.model.data import API_VERSION, Data
from jobgen.model.quantity import canonicalize_quantity
from jobgen.pipeline import config
from jobgen.spec.frameworks import Frameworks

_SAME_IN_CONTAINER = ("image", "imagePullPolicy", "command", "args", "workingDir", "envFrom")
_SAME_IN_POD = {
    "nodeSelector": "nodeSelector",
    "tolerations": "tolerations",
    "affinity": "affinity",
    "serviceAccountName": "serviceAccount",
}
_CONTAINER_SECURITY = frozenset(
    ("allowPrivilegeEscalation", "capabilities", "privileged", "procMount", "readOnlyRootFilesystem")
)
_MOUNT_FIELDS = frozenset(("name", "mountPath", "subPath", "readOnly"))
# A source that is a name alone: how we call it, and the field that holds the name.
_NAMED_SOURCES = {
    "persistentVolumeClaim": ("pvc", "claimName"),
    "configMap": ("configMap", "name"),
    "secret": ("secret", "secretName"),
    "hostPath": ("hostPath", "path"),
}
_SHM_MOUNT = {"name": "shm", "mountPath": "/dev/shm"}  # noqa: S108


class Words(NamedTuple):
    """What a pod template says: in fields of ours, and the rest as a template to be merged in."""

    fields: dict[str, Data]
    rest: dict[str, Data]


def fits(field: str, value: Data, frameworks: Frameworks = ()) -> bool:
    """Whether the job spec takes a value in a field of its own."""
    document = {"apiVersion": API_VERSION, "kind": "TrainingJob", "metadata": {"name": "x"}, "spec": {field: value}}
    return not config.find_errors(document, "trainingjob", frameworks)


def words_of(template: Data, container_name: str) -> Words | None:
    """The words of a template whose first container is the main one; None if it has no such container."""
    spec = template.get("spec") if isinstance(template, dict) else None
    containers = spec.get("containers") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(containers, list) or not containers:
        return None
    main, *others = containers
    if not isinstance(main, dict) or not isinstance(main.get("name"), str):
        return None
    fields: dict[str, Data] = {}
    if main["name"] != container_name:
        if not fits("containerName", main["name"]):
            return None
        fields["containerName"] = main["name"]
    inside = _container(main, fields)
    outside = _pod({key: value for key, value in spec.items() if key != "containers"}, fields)
    _security(inside, outside, fields)
    _volumes(inside, outside, fields)
    metadata = _metadata(template, fields)
    if inside or others:
        outside["containers"] = [*([{"name": main["name"], **inside}] if inside else []), *others]
    rest = {key: value for key, value in template.items() if key not in ("metadata", "spec")}
    if metadata is not None:
        rest["metadata"] = metadata
    if outside:
        rest["spec"] = outside
    return Words(fields, rest)


def _take(holder: dict[str, Data], key: str, fields: dict[str, Data], field: str) -> None:
    """Move a value to a field of ours if it takes it."""
    if key in holder and fits(field, holder[key]):
        fields[field] = holder.pop(key)


def _metadata(template: dict[str, Data], fields: dict[str, Data]) -> Data:
    """What is left of the template's metadata; None if nothing has to be said of it."""
    metadata = template.get("metadata")
    if not isinstance(metadata, dict):
        return metadata
    left = dict(metadata)
    for key in ("labels", "annotations"):
        _take(left, key, fields, key)
    return left if left or not metadata else None


def _container(main: dict[str, Data], fields: dict[str, Data]) -> dict[str, Data]:
    """The fields of the main container; what is left of it."""
    left = {key: value for key, value in main.items() if key != "name"}
    for key in _SAME_IN_CONTAINER:
        _take(left, key, fields, key)
    for key, shorten in (("env", _env), ("ports", _ports)):
        if isinstance(left.get(key), list):
            short = shorten(left[key])
            if short is not None and fits(key, short):
                fields[key] = short
                del left[key]
    resources = left.get("resources")
    if isinstance(resources, dict) and _are_amounts(resources):
        fields["resources"] = left.pop("resources")
    return left


def _env(env: list[Data]) -> Data:
    """A map of names to values where that says it all, else the list; None if it cannot be said."""
    if not all(isinstance(item, dict) and isinstance(item.get("name"), str) for item in env):
        return None
    if len({item["name"] for item in env}) != len(env):
        return None
    short: dict[str, Data] = {}
    for item in env:
        said = {key: value for key, value in item.items() if key != "name"}
        if set(said) == {"value"} and isinstance(said["value"], str):
            short[item["name"]] = said["value"]
        elif set(said) == {"valueFrom"} and isinstance(said["valueFrom"], dict) and said["valueFrom"]:
            short[item["name"]] = said["valueFrom"]
        elif "value" in said and not isinstance(said["value"], str):
            return None
        else:
            return env
    return short


def _ports(ports: list[Data]) -> Data:
    """A map of names to numbers where that says it all, else the list; None if two of them are one."""
    if not all(isinstance(item, dict) and isinstance(item.get("containerPort"), int) for item in ports):
        return None
    if len({(item["containerPort"], item.get("protocol", "TCP")) for item in ports}) != len(ports):
        return None
    names = [item["name"] for item in ports if isinstance(item.get("name"), str)]
    if len(set(names)) != len(names):
        return None
    if ports and len(names) == len(ports) and all(set(item) == {"name", "containerPort"} for item in ports):
        return {item["name"]: item["containerPort"] for item in ports}
    return ports


def _are_amounts(resources: dict[str, Data]) -> bool:
    """Whether all that is asked for are quantities, and under no name that means something else to us."""
    for side, amounts in resources.items():
        if side == "claims" and isinstance(amounts, list):
            continue
        if side not in ("limits", "requests") or not isinstance(amounts, dict):
            return False
        if not all(_is_quantity(value) for value in amounts.values()):
            return False
        if {"gpu", "limits", "requests", "claims"} & amounts.keys():
            return False
    return True


def _is_quantity(value: Data) -> bool:
    number = isinstance(value, (str, int, float)) and not isinstance(value, bool)
    return number and canonicalize_quantity(str(value)) is not None


def _pod(spec: dict[str, Data], fields: dict[str, Data]) -> dict[str, Data]:
    """The fields of the pod; what is left of it."""
    left = dict(spec)
    for key, field in _SAME_IN_POD.items():
        _take(left, key, fields, field)
    secrets = left.get("imagePullSecrets")
    if isinstance(secrets, list) and all(isinstance(item, dict) and set(item) == {"name"} for item in secrets):
        names = [item["name"] for item in secrets]
        if fits("imagePullSecrets", names) and len(set(names)) == len(names):
            fields["imagePullSecrets"] = names
            del left["imagePullSecrets"]
    return left


def _security(inside: dict[str, Data], outside: dict[str, Data], fields: dict[str, Data]) -> None:
    """One security context, of which each part goes back to where it was."""
    context: dict[str, Data] = {}
    for holder, own in ((inside, True), (outside, False)):
        found = holder.get("securityContext")
        if not isinstance(found, dict) or not found:
            continue
        taken = {key: value for key, value in found.items() if (key in _CONTAINER_SECURITY) is own}
        context.update(taken)
        left = {key: value for key, value in found.items() if key not in taken}
        del holder["securityContext"]
        if left:
            holder["securityContext"] = left
    if context:
        fields["securityContext"] = context


def _volumes(inside: dict[str, Data], outside: dict[str, Data], fields: dict[str, Data]) -> None:
    """Volumes with their mounts; what no short form says stays where it is."""
    volumes, mounts = outside.get("volumes"), inside.get("volumeMounts", [])
    if not isinstance(volumes, list) or not volumes or not isinstance(mounts, list):
        return
    if not all(isinstance(each, dict) and isinstance(each.get("name"), str) for each in (*volumes, *mounts)):
        return
    named = [volume["name"] for volume in volumes]
    paths = [str(mount.get("mountPath")) for mount in mounts]
    if len(set(named)) != len(named) or len(set(paths)) != len(paths):
        return
    taken: list[Data] = []
    short: dict[str, Data] = {}
    for volume in list(volumes):
        own = [mount for mount in mounts if mount["name"] == volume["name"] and _is_short(mount)]
        mount = own[0] if own else {}
        if _is_shm(volume) and mount == _SHM_MOUNT and fits("shm", volume["emptyDir"]["sizeLimit"]):
            fields["shm"] = volume["emptyDir"]["sizeLimit"]
        else:
            said = {**_source(volume), **{key: value for key, value in mount.items() if key != "name"}}
            if not _source(volume) or not fits("volumes", {volume["name"]: said}):
                continue
            short[volume["name"]] = said
        taken += [volume, *own[:1]]
    for holder, key, items in ((outside, "volumes", volumes), (inside, "volumeMounts", mounts)):
        left = [item for item in items if not any(item is other for other in taken)]
        if left or not items:
            holder.update({key: left} if key in holder else {})
        else:
            del holder[key]
    if short:
        fields["volumes"] = short


def _is_short(mount: dict[str, Data]) -> bool:
    return "mountPath" in mount and set(mount) <= _MOUNT_FIELDS


def _is_shm(volume: dict[str, Data]) -> bool:
    source = volume.get("emptyDir")
    if set(volume) != {"name", "emptyDir"} or volume["name"] != "shm" or not isinstance(source, dict):
        return False
    return set(source) == {"medium", "sizeLimit"} and source["medium"] == "Memory" and _is_quantity(source["sizeLimit"])


def _source(volume: dict[str, Data]) -> dict[str, Data]:
    """The one source of a volume as we write it; nothing if there is not one."""
    sources = {key: value for key, value in volume.items() if key != "name"}
    if len(sources) != 1:
        return {}
    [(kind, source)] = sources.items()
    word, field = _NAMED_SOURCES.get(kind, ("", ""))
    if word and isinstance(source, dict) and set(source) == {field} and isinstance(source[field], str):
        return {word: source[field]}
    if kind == "emptyDir" and (not isinstance(source, dict) or not _is_quantity(source.get("sizeLimit", 0))):
        return {}
    return sources

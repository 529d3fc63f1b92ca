"""Map a pod template to fields of a role, and move what all roles share to the job; the rest stays `podTemplate`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from jobgen.model.data import API_VERSION, Node, Plain, value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import Step, format_dotted
from jobgen.model.quantity import canonicalize_quantity
from jobgen.rendering import config
from jobgen.rendering.by_kind import TOTAL_ANNOTATION
from jobgen.rendering.runs import JOB_ANNOTATION, SOURCE_ANNOTATION
from jobgen.spec.frameworks import Frameworks

Fields = dict[str, Any]
"""Fields of a job or a role. Their values come from a manifest, so their types are checked where they are used."""
# Maps that merge key by key, so that a part of them can be moved to the job.
_MAPS = frozenset(("labels", "annotations", "nodeSelector", "securityContext", "volumes", "env"))
_ORDERED = frozenset(("env",))
_MISSING = object()


def extract_common(roles: dict[str, Fields], *, split_maps: bool) -> tuple[Fields, dict[str, Fields]]:
    """The fields that all roles share, and the rest of each role; with `split_maps`, also parts of maps."""
    common: Fields = {}
    own: dict[str, Fields] = {name: {} for name in roles}
    for field in dict.fromkeys(field for fields in roles.values() for field in fields):
        values = [fields.get(field, _MISSING) for fields in roles.values()]
        shared, rests = (_MISSING, values) if field == "replicas" else _split(field, values, split_maps=split_maps)
        if shared is not _MISSING:
            common[field] = shared
        for name, rest in zip(roles, rests, strict=True):
            if rest is not _MISSING:
                own[name][field] = rest
    return common, own


def _split(field: str, values: list[Any], *, split_maps: bool) -> tuple[Any, list[Any]]:
    """The shared value or part of a field, and the rest of each value."""
    first = values[0]
    is_ordered = field in _ORDERED and isinstance(first, dict)
    if all(
        with_types(value) == with_types(first) and (not is_ordered or list(value) == list(first)) for value in values
    ):
        return first, [_MISSING] * len(values)
    if not split_maps or not all(isinstance(value, dict) and value for value in values):
        return _MISSING, values
    if field in ("podTemplate", "resources"):
        return _split_nested(values)
    if field in _MAPS:
        return _split_map(values, is_ordered=is_ordered)
    return _MISSING, values


def _split_map(values: list[Fields], *, is_ordered: bool) -> tuple[Any, list[Any]]:
    """The entries that all maps share."""
    shared = {key: value for key, value in values[0].items() if all(_has(other, key, value) for other in values)}
    # The job's entries come first, and variables may refer to earlier ones.
    if not shared or (is_ordered and any(list(value)[: len(shared)] != list(shared) for value in values)):
        return _MISSING, list(values)
    rests = [{key: value for key, value in each.items() if key not in shared} for each in values]
    return shared, [rest or _MISSING for rest in rests]


def _split_nested(values: list[Fields]) -> tuple[Any, list[Any]]:
    """The entries that all maps share, and the shared entries of the maps in them."""
    shared: Fields = {}
    rests: list[Fields] = [{} for _ in values]
    for key in dict.fromkeys(key for value in values for key in value):
        found = [value.get(key, _MISSING) for value in values]
        if all(isinstance(each, dict) and each for each in found):
            common, left = _split_map(found, is_ordered=False)
        else:
            is_same = all(with_types(each) == with_types(found[0]) for each in found)
            common, left = (found[0], [_MISSING] * len(values)) if is_same else (_MISSING, found)
        if common is not _MISSING:
            shared[key] = common
        for rest, each in zip(rests, left, strict=True):
            if each is not _MISSING:
                rest[key] = each
    return (shared or _MISSING), [rest or _MISSING for rest in rests]


def _has(mapping: Fields, key: str, value: Any) -> bool:
    return key in mapping and with_types(mapping[key]) == with_types(value)


def with_types(tree: object) -> object:
    """The tree with the type of every scalar, because 1 and True are equal in Python."""
    if isinstance(tree, dict):
        return {key: with_types(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [with_types(value) for value in tree]
    return type(tree).__name__, tree


def shorten_resources(resources: Plain, gpu_resource: str) -> Plain:
    """Write amounts once that are equal in limits and requests."""
    if not isinstance(resources, dict):
        return resources
    sides: dict[str, Fields] = {side: resources[side] for side in ("limits", "requests") if side in resources}
    equal = [key for key in sides.get("limits", {}) if _is_equal_on_both_sides(sides, key)]
    short: Fields = {_short_name(key, gpu_resource): _to_number(key, sides["limits"][key]) for key in equal}
    for side, amounts in sides.items():
        rest = {
            _short_name(key, gpu_resource): _to_number(key, value) for key, value in amounts.items() if key not in equal
        }
        if rest or not amounts:
            short[side] = rest
    if "claims" in resources:
        short["claims"] = resources["claims"]
    return short


def _is_equal_on_both_sides(sides: dict[str, Fields], key: str) -> bool:
    one, other = (sides.get(side, {}).get(key) for side in ("limits", "requests"))
    return (
        other is not None
        and type(one) is type(other)
        and canonicalize_quantity(str(one)) == canonicalize_quantity(str(other))
    )


def _short_name(key: str, gpu_resource: str) -> str:
    return "gpu" if key == gpu_resource else key


def _to_number(key: str, value: Plain) -> Plain:
    """`"2"` CPUs as 2, which needs no quotes; amounts of devices keep their type, because rendering keeps it."""
    return int(value) if isinstance(value, str) and value.isdecimal() and "/" not in key else value


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
# Volume sources that consist of a name: our field, and the field that holds the name.
_NAMED_SOURCES = {
    "persistentVolumeClaim": ("pvc", "claimName"),
    "configMap": ("configMap", "name"),
    "secret": ("secret", "secretName"),
    "hostPath": ("hostPath", "path"),
}
_SHM_MOUNT = {"name": "shm", "mountPath": "/dev/shm"}  # noqa: S108


class RoleTemplate(NamedTuple):
    """A pod template as fields of a role, and the rest of it."""

    fields: Fields
    rest: Fields


def is_valid_field(field: str, value: Plain, frameworks: Frameworks = ()) -> bool:
    """Return True if the job spec accepts a value in a field."""
    document: dict[str, Plain] = {
        "apiVersion": API_VERSION,
        "kind": "TrainingJob",
        "metadata": {"name": "x"},
        "spec": {field: value},
    }
    return not config.find_errors(document, "trainingjob", frameworks)


def split_template(template: Any, container_name: str, *, is_fixed: bool) -> RoleTemplate | None:
    """Split a template; None if it has no main container.

    That is the first one, or if the operator fixes its name, the one with this name.
    """
    spec = template.get("spec") if isinstance(template, dict) else None
    containers = spec.get("containers") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(containers, list) or not containers:
        return None
    named = (each for each in containers if isinstance(each, dict) and each.get("name") == container_name)
    main = next(named, containers[0]) if is_fixed else containers[0]
    others = [each for each in containers if each is not main]
    if not isinstance(main, dict) or not isinstance(main.get("name"), str):
        return None
    fields: Fields = {}
    if main["name"] != container_name:
        if not is_valid_field("containerName", main["name"]):
            return None
        fields["containerName"] = main["name"]
    container = _split_container(main, fields)
    pod = _split_pod({key: value for key, value in spec.items() if key != "containers"}, fields)
    _join_security_contexts(container, pod, fields)
    _join_volumes(container, pod, fields)
    metadata = _split_metadata(template, fields)
    if container or others:
        pod["containers"] = [*([{"name": main["name"], **container}] if container else []), *others]
    if main is not containers[0] and all(map(_has_name, containers)):
        # The main container is rendered first.
        pod["$setElementOrder/containers"] = [{"name": each["name"]} for each in containers]
    rest = {key: value for key, value in template.items() if key not in ("metadata", "spec")}
    if metadata is not None:
        rest["metadata"] = metadata
    if pod:
        rest["spec"] = pod
    return RoleTemplate(fields, rest)


def _take(holder: Fields, key: str, fields: Fields, field: str) -> None:
    """Move a value to a field if the field accepts it."""
    if key in holder and is_valid_field(field, holder[key]):
        fields[field] = holder.pop(key)


def _split_metadata(template: Fields, fields: Fields) -> Any:
    """The rest of the template's metadata; None if there is no rest."""
    metadata = template.get("metadata")
    if not isinstance(metadata, dict):
        return metadata
    left = dict(metadata)
    for key in ("labels", "annotations"):
        _take(left, key, fields, key)
    return left if left or not metadata else None


def _split_container(main: Fields, fields: Fields) -> Fields:
    """The rest of the main container."""
    left = {key: value for key, value in main.items() if key != "name"}
    for key in _SAME_IN_CONTAINER:
        _take(left, key, fields, key)
    for key, shorten in (("env", _shorten_env), ("ports", _shorten_ports)):
        if isinstance(left.get(key), list):
            short = shorten(left[key])
            if short is not None and is_valid_field(key, short):
                fields[key] = short
                del left[key]
    resources = left.get("resources")
    if isinstance(resources, dict) and _are_quantities(resources):
        fields["resources"] = left.pop("resources")
    return left


def _shorten_env(env: list[Any]) -> Any:
    """A map of names to values if that is equivalent, else the list; None if a spec cannot have it."""
    if not all(isinstance(item, dict) and isinstance(item.get("name"), str) for item in env):
        return None
    if len({item["name"] for item in env}) != len(env):
        return None
    short: Fields = {}
    for item in env:
        rest = {key: value for key, value in item.items() if key != "name"}
        if set(rest) == {"value"} and isinstance(rest["value"], str):
            short[item["name"]] = rest["value"]
        elif set(rest) == {"valueFrom"} and isinstance(rest["valueFrom"], dict) and rest["valueFrom"]:
            short[item["name"]] = rest["valueFrom"]
        elif "value" in rest and not isinstance(rest["value"], str):
            return None
        else:
            return env
    return short


def _shorten_ports(ports: list[Any]) -> Any:
    """A map of names to numbers if that is equivalent, else the list; None if two ports are the same."""
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


def _are_quantities(resources: Fields) -> bool:
    """Return True if all amounts are quantities, and no resource has a name that the job spec reserves."""
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


def _is_quantity(value: Plain) -> bool:
    is_number = isinstance(value, (str, int, float)) and not isinstance(value, bool)
    return is_number and canonicalize_quantity(str(value)) is not None


def _split_pod(spec: Fields, fields: Fields) -> Fields:
    """The rest of the pod."""
    left = dict(spec)
    for key, field in _SAME_IN_POD.items():
        _take(left, key, fields, field)
    secrets = left.get("imagePullSecrets")
    if isinstance(secrets, list) and all(isinstance(item, dict) and set(item) == {"name"} for item in secrets):
        names = [item["name"] for item in secrets]
        if is_valid_field("imagePullSecrets", names) and len(set(names)) == len(names):
            fields["imagePullSecrets"] = names
            del left["imagePullSecrets"]
    _take_init_containers(left, fields)
    return left


def _take_init_containers(pod: Fields, fields: Fields) -> None:
    """Take all init containers or none, because their order counts: sidecars are rendered after all others."""
    found = pod.get("initContainers")
    if not isinstance(found, list) or not all(_has_name(each) for each in found):
        return
    is_sidecar = [each.get("restartPolicy") == "Always" for each in found]
    if len({each["name"] for each in found}) != len(found) or is_sidecar != sorted(is_sidecar):
        return
    short: dict[str, Fields] = {"initContainers": {}, "sidecars": {}}
    for each, runs_beside in zip(found, is_sidecar, strict=True):
        rest = {key: value for key, value in each.items() if key != "restartPolicy" or not runs_beside}
        short["sidecars" if runs_beside else "initContainers"][each["name"]] = _shorten_container(rest)
    taken = {field: containers for field, containers in short.items() if containers}
    if taken and all(is_valid_field(field, containers) for field, containers in taken.items()):
        fields.update(taken)
        del pod["initContainers"]


def _has_name(container: Plain) -> bool:
    return isinstance(container, dict) and isinstance(container.get("name"), str)


def _shorten_container(container: Fields) -> Fields:
    """An init container with the short forms of a job; what has none stays as it is."""
    short: Fields = {}
    left = _split_container(container, short)
    mounts = left.get("volumeMounts")
    if isinstance(mounts, list) and mounts and all(_has_name(mount) and _has_short_form(mount) for mount in mounts):
        names = {mount["name"] for mount in mounts}
        if len(names) == len(mounts) == len({str(mount["mountPath"]) for mount in mounts}):
            short["mounts"] = {mount["name"]: _shorten_mount(mount) for mount in mounts}
            del left["volumeMounts"]
    return {**short, **left}


def _shorten_mount(mount: Fields) -> Plain:
    rest = {key: value for key, value in mount.items() if key != "name"}
    return rest["mountPath"] if len(rest) == 1 else rest


def _join_security_contexts(container: Fields, pod: Fields, fields: Fields) -> None:
    """Join both security contexts; rendering separates them again by their fields."""
    context: Fields = {}
    for holder, of_container in ((container, True), (pod, False)):
        found = holder.get("securityContext")
        if not isinstance(found, dict) or not found:
            continue
        taken = {key: value for key, value in found.items() if (key in _CONTAINER_SECURITY) is of_container}
        context.update(taken)
        left = {key: value for key, value in found.items() if key not in taken}
        del holder["securityContext"]
        if left:
            holder["securityContext"] = left
    if context:
        fields["securityContext"] = context


def _join_volumes(container: Fields, pod: Fields, fields: Fields) -> None:
    """Join volumes and their mounts; those without a short form stay in the template."""
    volumes, mounts = pod.get("volumes"), container.get("volumeMounts", [])
    if not isinstance(volumes, list) or not volumes or not isinstance(mounts, list):
        return
    if not all(isinstance(each, dict) and isinstance(each.get("name"), str) for each in (*volumes, *mounts)):
        return
    names = [volume["name"] for volume in volumes]
    paths = [str(mount.get("mountPath")) for mount in mounts]
    if len(set(names)) != len(names) or len(set(paths)) != len(paths):
        return
    taken: list[Any] = []
    short: Fields = {}
    for volume in list(volumes):
        own = [mount for mount in mounts if mount["name"] == volume["name"] and _has_short_form(mount)]
        mount = own[0] if own else {}
        if _is_shm(volume) and mount == _SHM_MOUNT and is_valid_field("shm", volume["emptyDir"]["sizeLimit"]):
            fields["shm"] = volume["emptyDir"]["sizeLimit"]
        else:
            source = _shorten_source(volume)
            entry = {**source, **{key: value for key, value in mount.items() if key != "name"}}
            if not source or not is_valid_field("volumes", {volume["name"]: entry}):
                continue
            short[volume["name"]] = entry
        taken += [volume, *own[:1]]
    for holder, key, items in ((pod, "volumes", volumes), (container, "volumeMounts", mounts)):
        left = [item for item in items if not any(item is other for other in taken)]
        if left or not items:
            holder.update({key: left} if key in holder else {})
        else:
            del holder[key]
    if short:
        fields["volumes"] = short


def _has_short_form(mount: Fields) -> bool:
    return "mountPath" in mount and set(mount) <= _MOUNT_FIELDS


def _is_shm(volume: Fields) -> bool:
    source = volume.get("emptyDir")
    if set(volume) != {"name", "emptyDir"} or volume["name"] != "shm" or not isinstance(source, dict):
        return False
    return set(source) == {"medium", "sizeLimit"} and source["medium"] == "Memory" and _is_quantity(source["sizeLimit"])


def _shorten_source(volume: Fields) -> Fields:
    """The source of a volume as the job spec has it; empty if there is not exactly one."""
    sources = {key: value for key, value in volume.items() if key != "name"}
    if len(sources) != 1:
        return {}
    [(kind, source)] = sources.items()
    ours, field = _NAMED_SOURCES.get(kind, ("", ""))
    if ours and isinstance(source, dict) and set(source) == {field} and isinstance(source[field], str):
        return {ours: source[field]}
    if kind == "emptyDir" and (not isinstance(source, dict) or not _is_quantity(source.get("sizeLimit", 0))):
        return {}
    return sources


_SERVER_FIELDS = (
    ("status",),
    *(
        ("metadata", name)
        for name in """creationTimestamp deletionGracePeriodSeconds deletionTimestamp generation managedFields
        resourceVersion selfLink uid""".split()
    ),
    ("metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"),
    # Rendering writes these again, for the new job and its new file.
    *(("metadata", "annotations", name) for name in (JOB_ANNOTATION, SOURCE_ANNOTATION, TOTAL_ANNOTATION)),
)
_PLACEHOLDER = lazy_pattern(r"\{\{|\$\{?\w|\{%|<%")


_JOB_LABELS = ("batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "controller-uid", "job-name")
_JOB_FIELDS = (
    ("spec", "selector"),
    *((*path, "metadata", "labels", label) for path in ((), ("spec", "template")) for label in _JOB_LABELS),
)
"""What the API server sets in a Job, unless it has `manualSelector: true`."""


def _list_server_fields(manifest: Any) -> tuple[tuple[str, ...], ...]:
    if manifest.get("apiVersion") != "batch/v1" or manifest.get("kind") != "Job":
        return _SERVER_FIELDS
    spec = manifest.get("spec")
    is_stored = (
        isinstance(spec, dict) and isinstance(spec.get("selector"), dict) and spec.get("manualSelector") is not True
    )
    return (*_SERVER_FIELDS, *_JOB_FIELDS) if is_stored else _SERVER_FIELDS


def remove_server_fields(manifest: dict[str, Plain]) -> tuple[dict[str, Plain], list[str]]:
    """The manifest without server fields and nulls, and the paths of what was removed."""
    removed: list[str] = []
    clean: Any = manifest
    for path in _list_server_fields(manifest):
        clean = _remove(clean, path, path, removed)
    return _remove_nulls(clean, (), removed), removed


def _remove(node: Any, path: tuple[str, ...], full_path: tuple[str, ...], removed: list[str]) -> Any:
    if not isinstance(node, dict) or path[0] not in node:
        return node
    if len(path) == 1:
        removed.append(format_dotted(full_path))
        return {key: value for key, value in node.items() if key != path[0]}
    below = _remove(node[path[0]], path[1:], full_path, removed)
    # A mapping that held only server fields is removed, too.
    is_emptied = not below and node[path[0]]
    return {key: below if key == path[0] else value for key, value in node.items() if key != path[0] or not is_emptied}


def _remove_nulls(node: Any, path: tuple[Step, ...], removed: list[str]) -> Any:
    """Remove keys with null, which Kubernetes treats as absent, and creation times of pod templates."""
    if isinstance(node, dict):
        removed += (f"{format_dotted((*path, key))} (null)" for key, value in node.items() if value is None)
        return {
            key: _remove_nulls(value, (*path, key), removed)
            for key, value in node.items()
            if value is not None and not _is_template_time(key, path, removed)
        }
    if isinstance(node, list):
        return [_remove_nulls(item, (*path, index), removed) for index, item in enumerate(node)]
    return node


def _is_template_time(key: str, path: tuple[Step, ...], removed: list[str]) -> bool:
    """Return True if it is the creation time that exports have in pod templates."""
    found = key == "creationTimestamp" and path[-1:] == ("metadata",) and len(path) > 1
    removed += [format_dotted((*path, key))] if found else []
    return found


def find_placeholders(nodes: Iterable[Node]) -> Iterator[Node]:
    """The strings that contain a placeholder of a template language."""
    return (node for node in nodes if isinstance(value_of(node), str) and _PLACEHOLDER.search(value_of(node)))

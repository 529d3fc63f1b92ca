"""Environment variables: their names, and where their values come from."""

from __future__ import annotations

from jobgen.check.admission.fields import (
    Check,
    PodCheck,
    Table,
    is_set,
    judge,
    mapping_of,
    missing,
    string,
    text,
    written,
)
from jobgen.check.admission.names import (
    CONFIG_KEY,
    DNS_SUBDOMAIN,
    ENV_NAME,
    climbs,
    is_annotation_key,
    is_config_key,
    is_dns_subdomain,
    is_env_name,
    is_label_key,
    is_referred_subdomain,
)
from jobgen.model.data import Data, value_of
from jobgen.model.quantity import canonicalize_quantity, to_milli
from jobgen.model.suggest import did_you_mean

_SOURCE_RULE = "invalid-env-source"
_REF_RULE = "unsupported-field-ref"
_ENV_PATHS = tuple(
    "metadata.name metadata.namespace metadata.uid spec.nodeName spec.serviceAccountName "
    "status.hostIP status.hostIPs status.podIP status.podIPs".split()
)
_FILE_PATHS = ("metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid")
_RESOURCES = tuple(
    "limits.cpu limits.memory limits.ephemeral-storage requests.cpu requests.memory requests.ephemeral-storage".split()
)
_HUGEPAGES = ("limits.hugepages-", "requests.hugepages-")
_CPU_DIVISORS = frozenset(("1m", "1"))
_BYTE_DIVISORS = frozenset("1 1k 1M 1G 1T 1P 1E 1Ki 1Mi 1Gi 1Ti 1Pi 1Ei".split())

_object_name = text("invalid-object-name", "the name of an object", is_dns_subdomain, DNS_SUBDOMAIN)
_loose_name = text("invalid-object-name", "the name of an object", is_referred_subdomain, DNS_SUBDOMAIN)
_key = text("invalid-config-key", "a key of a ConfigMap or a Secret", is_config_key, CONFIG_KEY)
_env_name = text("invalid-env-name", "the name of a variable", is_env_name, ENV_NAME)


def env(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """The variables of one container."""
    if not isinstance(value, list):
        return
    for item in value:
        if isinstance(item, dict):
            name = value_of(item.get("name"))
            if name is None or name == "":
                missing("a variable", item, "name", key, pod)
            elif type(name) is str and not is_env_name(name):
                _env_name("name", item["name"], item, pod)
            if "valueFrom" in item and isinstance(item["valueFrom"], dict):
                _value_from(item, item["valueFrom"], pod)


def _value_from(item: dict[str, Data], source: dict[str, Data], pod: PodCheck) -> None:
    judge(source, _SOURCES, pod)
    given = written(source, _SOURCES)
    name = string(item.get("name"))
    if not given:
        listed = ", ".join(f"`{key}`" for key in _SOURCES)
        pod.report(_SOURCE_RULE, f"`valueFrom` of `{name}` has no source; give it one of {listed}", source or item)
    elif string(item.get("value")):
        pod.report(_SOURCE_RULE, f"`{name}` has both `value` and `valueFrom`; delete one of them", item["value"])
    elif len(given) > 1:
        listed = " and ".join(f"`{key}`" for key in given)
        pod.report(_SOURCE_RULE, f"`{name}` has {len(given)} sources, {listed}; keep one of them", given[-1])


def field_ref(paths: tuple[str, ...]) -> Check:
    """A check for a reference to a field of the pod: these, and single labels and annotations."""

    def check(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
        if not isinstance(value, dict):
            return
        version, path = string(value.get("apiVersion")), string(value.get("fieldPath"))
        if version not in ("", "v1"):
            pod.report(_REF_RULE, f"`apiVersion` is `{version}`; a pod's is `v1`", value["apiVersion"])
        elif not path:
            missing(f"`{key}`", value, "fieldPath", key, pod)
        elif path not in paths and not (path == "spec.host" and "spec.nodeName" in paths):
            _odd_path(path, value["fieldPath"], paths, pod)

    return check


def _odd_path(path: str, node: Data, paths: tuple[str, ...], pod: PodCheck) -> None:
    """One label or annotation in brackets, or nothing that can be referred to."""
    whole, _, rest = path.partition("['")
    if whole and rest.endswith("']"):
        fits = {"metadata.labels": is_label_key, "metadata.annotations": is_annotation_key}.get(whole)
        if fits is None:
            pod.report(_REF_RULE, f"`{whole}` takes no key in brackets; only labels and annotations do", node)
        elif not fits(rest[:-2]):
            pod.report(_REF_RULE, f"`{rest[:-2]}` is not the key of one of `{whole}`", node)
    else:
        unsupported_ref("fieldPath", path, paths, node, pod)


def unsupported_ref(key: str, found: str, known: tuple[str, ...], node: Data, pod: PodCheck) -> None:
    """Report a reference to something that cannot be referred to here."""
    pod.report(
        _REF_RULE, f"`{key}` is `{found}`, which cannot be referred to here{did_you_mean(found, list(known))}", node
    )


def resource_ref(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """A reference to a resource of a container."""
    if not isinstance(value, dict):
        return
    resource = string(value.get("resource"))
    if not resource:
        missing(f"`{key}`", value, "resource", key, pod)
    elif resource not in _RESOURCES and not resource.startswith(_HUGEPAGES):
        unsupported_ref("resource", resource, _RESOURCES, value["resource"], pod)
    elif "divisor" in value and to_milli(value["divisor"]):
        _divisor(resource, value["divisor"], pod)


def _divisor(resource: str, node: Data, pod: PodCheck) -> None:
    known = _CPU_DIVISORS if resource.endswith(".cpu") else _BYTE_DIVISORS
    found = str(value_of(node))
    if canonicalize_quantity(found) not in known:
        listed = "`1` and `1m`" if known is _CPU_DIVISORS else "`1`, `1k`, `1Ki`, `1M`, `1Mi` and so on"
        pod.report(_REF_RULE, f"`divisor` of `{resource}` is `{found}`; Kubernetes takes {listed}", node)


def file_resource_ref(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """The same from a file, which must say of which container."""
    if isinstance(value, dict) and not string(value.get("containerName")):
        missing(f"`{key}`", value, "containerName", key, pod)
    else:
        resource_ref(key, value, owner, pod)


file_field_ref = field_ref(_FILE_PATHS)


def _file_path(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    if climbs(string(value)):
        pod.report("invalid-volume-path", f"`{value_of(value)}` has `..` in it", value)


def _file_volume(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    name = string(value)
    volume = pod.volumes.get(name)
    if volume is None:
        if name:
            message = f"there is no volume `{name}`{did_you_mean(name, list(pod.volumes))}"
            pod.report("unknown-volume", message, value)
    elif any(is_set(source) for kind, source in volume.items() if kind not in ("name", "emptyDir")):
        pod.report(_SOURCE_RULE, f"volume `{name}` is not an `emptyDir`, and `fileKeyRef` reads only from one", value)


_FILE_KEY: Table = {"key": _env_name, "volumeName": _file_volume, "path": _file_path}
_KEY_REF = mapping_of({"name": _object_name, "key": _key}, "name", "key")

_SOURCES: Table = {
    "fieldRef": field_ref(_ENV_PATHS),
    "resourceFieldRef": resource_ref,
    "configMapKeyRef": _KEY_REF,
    "secretKeyRef": _KEY_REF,
    "fileKeyRef": mapping_of(_FILE_KEY, "key", "volumeName", "path"),
}


def env_from(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """Whole ConfigMaps and Secrets as variables."""
    if not isinstance(value, list):
        return
    for item in value:
        if isinstance(item, dict):
            judge(item, _FROM, pod)
            if len(written(item, ("configMapRef", "secretRef"))) != 1:
                message = "an item of `envFrom` needs `configMapRef` or `secretRef`, and only one of them"
                pod.report(_SOURCE_RULE, message, item or key)


_REF = mapping_of({"name": _loose_name}, "name")
_FROM: Table = {"prefix": _env_name, "configMapRef": _REF, "secretRef": _REF}

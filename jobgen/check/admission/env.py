"""Validate environment variables: their names, and the sources of their values."""

from __future__ import annotations

from jobgen.check.admission.fields import (
    Fields,
    Validation,
    Validator,
    ValidatorTable,
    dns_subdomain,
    is_set,
    join_names,
    list_set_keys,
    mapping,
    report_missing,
    text,
    validate_fields,
)
from jobgen.check.admission.names import (
    CONFIG_KEY,
    DNS_SUBDOMAIN,
    ENV_NAME,
    STRICT_ENV_NAME,
    has_backsteps,
    is_annotation_key,
    is_config_key,
    is_env_name,
    is_label_key,
    is_name_prefix,
    is_strict_env_name,
)
from jobgen.k8s.nodes import as_text
from jobgen.model.data import Node, locatable, value_of
from jobgen.model.quantity import canonicalize_quantity, to_milli
from jobgen.model.suggest import did_you_mean

_SOURCE_RULE = "invalid-env-source"
_REF_RULE = "unsupported-field-ref"
_ENV_FIELD_PATHS = tuple(
    "metadata.name metadata.namespace metadata.uid spec.nodeName spec.serviceAccountName "
    "status.hostIP status.hostIPs status.podIP status.podIPs".split()
)
_FILE_FIELD_PATHS = ("metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid")
_RESOURCES = tuple(
    "limits.cpu limits.memory limits.ephemeral-storage requests.cpu requests.memory requests.ephemeral-storage".split()
)
_HUGEPAGES = ("limits.hugepages-", "requests.hugepages-")
_CPU_DIVISORS = frozenset(("1m", "1"))
_BYTE_DIVISORS = frozenset("1 1k 1M 1G 1T 1P 1E 1Ki 1Mi 1Gi 1Ti 1Pi 1Ei".split())

_validate_object_name = dns_subdomain("invalid-object-name", "object name")
_validate_source_name = text("invalid-object-name", "object name", is_name_prefix, DNS_SUBDOMAIN)
_validate_config_key = text("invalid-config-key", "ConfigMap or Secret key", is_config_key, CONFIG_KEY)
_validate_relaxed_name = text("invalid-env-name", "variable name", is_env_name, ENV_NAME)
_validate_strict_name = text("invalid-env-name", "variable name", is_strict_env_name, STRICT_ENV_NAME)
_RELAXED_SINCE = (1, 32)


def _validate_env_name(key: str, value: Node, owner: Fields, pod: Validation) -> None:
    validate = _validate_relaxed_name if pod.release >= _RELAXED_SINCE else _validate_strict_name
    validate(key, value, owner, pod)


def validate_env(key: str, value: Node, owner: Fields, pod: Validation) -> None:
    """Validate the variables of one container."""
    if not isinstance(value, list):
        return
    for item in value:
        if isinstance(item, dict):
            name = value_of(item.get("name"))
            if name is None or name == "":
                report_missing("a variable", item, "name", key, pod)
            else:
                _validate_env_name("name", item["name"], item, pod)
            if "valueFrom" in item and isinstance(item["valueFrom"], dict):
                _validate_value_from(item, item["valueFrom"], pod)


def _validate_value_from(item: Fields, source: Fields, pod: Validation) -> None:
    validate_fields(source, _SOURCES, pod)
    given = list_set_keys(source, _SOURCES)
    name = as_text(item.get("name"))
    if not given:
        message = f"`valueFrom` of `{name}` has no source; set one of {join_names(list(_SOURCES), 'or')}"
        pod.report(_SOURCE_RULE, message, locatable(source, item))
    elif as_text(item.get("value")):
        pod.report(_SOURCE_RULE, f"`{name}` has both `value` and `valueFrom`; delete one of them", item["value"])
    elif len(given) > 1:
        message = f"`{name}` has {len(given)} sources: {join_names(given, 'and')}; keep one of them"
        pod.report(_SOURCE_RULE, message, given[-1])


def _validate_field_ref(paths: tuple[str, ...]) -> Validator:
    """Return a validator for a reference to a field of the pod: one of the paths, or a label or an annotation."""

    def validate(key: str, value: Node, owner: Fields, pod: Validation) -> None:
        if not isinstance(value, dict):
            return
        version, path = as_text(value.get("apiVersion")), as_text(value.get("fieldPath"))
        if version not in ("", "v1"):
            pod.report(_REF_RULE, f"`apiVersion` is `{version}`, but must be `v1`", value["apiVersion"])
        elif not path:
            report_missing(f"`{key}`", value, "fieldPath", key, pod)
        elif path not in paths and not (path == "spec.host" and "spec.nodeName" in paths):
            _validate_subscripted_path(path, value["fieldPath"], paths, pod)

    return validate


def _validate_subscripted_path(path: str, node: Node, paths: tuple[str, ...], pod: Validation) -> None:
    """Validate a path like `metadata.labels['key']`, the only other form."""
    field, _, rest = path.partition("['")
    if not (field and rest.endswith("']")):
        _report_unsupported_ref("fieldPath", path, paths, node, pod)
        return
    is_valid = {"metadata.labels": is_label_key, "metadata.annotations": is_annotation_key}.get(field)
    if is_valid is None:
        message = f"`{field}` cannot have a key in brackets; only labels and annotations can"
        pod.report(_REF_RULE, message, node)
    elif not is_valid(rest[:-2]):
        pod.report(
            _REF_RULE, f"`{rest[:-2]}` is not a valid key of `{field}`; write a domain and a name, or a name", node
        )


def _report_unsupported_ref(key: str, found: str, known: tuple[str, ...], node: Node, pod: Validation) -> None:
    hint = did_you_mean(found, list(known))
    values = None if hint else (key, found)
    message = f"`{key}` is `{found}`, which cannot be referenced here"
    pod.report(_REF_RULE, message + (hint or f"; use {join_names(list(known), 'or')}"), node, values=values)


def _validate_resource_ref(key: str, value: Node, owner: Fields, pod: Validation) -> None:
    if not isinstance(value, dict):
        return
    resource = as_text(value.get("resource"))
    if not resource:
        report_missing(f"`{key}`", value, "resource", key, pod)
    elif resource not in _RESOURCES and not resource.startswith(_HUGEPAGES):
        _report_unsupported_ref("resource", resource, _RESOURCES, value["resource"], pod)
    elif "divisor" in value and to_milli(value["divisor"]):
        _validate_divisor(resource, value["divisor"], pod)


def _validate_divisor(resource: str, node: Node, pod: Validation) -> None:
    known = _CPU_DIVISORS if resource.endswith(".cpu") else _BYTE_DIVISORS
    found = str(value_of(node))
    if canonicalize_quantity(found) not in known:
        wanted = "`1` or `1m`" if known is _CPU_DIVISORS else "`1`, `1k`, `1Ki`, `1M`, `1Mi` or a larger unit"
        pod.report(_REF_RULE, f"`divisor` of `{resource}` is `{found}`, but must be {wanted}", node)


validate_file_field_ref = _validate_field_ref(_FILE_FIELD_PATHS)


def validate_file_resource_ref(key: str, value: Node, owner: Fields, pod: Validation) -> None:
    """Validate a reference to a resource in a file, which has to name the container."""
    if isinstance(value, dict) and not as_text(value.get("containerName")):
        report_missing(f"`{key}`", value, "containerName", key, pod)
    else:
        _validate_resource_ref(key, value, owner, pod)


def _validate_file_path(key: str, value: Node, owner: Fields, pod: Validation) -> None:
    if has_backsteps(as_text(value)):
        pod.report("invalid-volume-path", f"`{value_of(value)}` contains `..`; write a path inside the volume", value)


def _validate_file_volume(key: str, value: Node, owner: Fields, pod: Validation) -> None:
    name = as_text(value)
    volume = pod.volumes.get(name)
    if volume is None:
        if name:
            message = f"the pod has no volume `{name}`{did_you_mean(name, list(pod.volumes)) or '; add it to the pod'}"
            pod.report("unknown-volume", message, value)
    elif any(is_set(source) for kind, source in volume.items() if kind not in ("name", "emptyDir")):
        message = f"volume `{name}` is not an `emptyDir`; `fileKeyRef` requires one"
        pod.report(_SOURCE_RULE, message, value)


_FILE_KEY_REF: ValidatorTable = {
    "key": _validate_env_name,
    "volumeName": _validate_file_volume,
    "path": _validate_file_path,
}
_validate_key_ref = mapping({"name": _validate_object_name, "key": _validate_config_key}, "name", "key")

_SOURCES: ValidatorTable = {
    "fieldRef": _validate_field_ref(_ENV_FIELD_PATHS),
    "resourceFieldRef": _validate_resource_ref,
    "configMapKeyRef": _validate_key_ref,
    "secretKeyRef": _validate_key_ref,
    "fileKeyRef": mapping(_FILE_KEY_REF, "key", "volumeName", "path"),
}


def validate_env_from(key: str, value: Node, owner: Fields, pod: Validation) -> None:
    """Validate the ConfigMaps and Secrets that become variables as a whole."""
    if not isinstance(value, list):
        return
    for item in value:
        if isinstance(item, dict):
            validate_fields(item, _ENV_FROM, pod)
            if len(list_set_keys(item, ("configMapRef", "secretRef"))) != 1:
                message = "an item of `envFrom` requires exactly one of `configMapRef` and `secretRef`"
                pod.report(_SOURCE_RULE, message, locatable(item, key))


_validate_source_ref = mapping({"name": _validate_source_name}, "name")
_ENV_FROM: ValidatorTable = {
    "prefix": _validate_env_name,
    "configMapRef": _validate_source_ref,
    "secretRef": _validate_source_ref,
}

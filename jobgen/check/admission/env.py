"""Validate environment variables: their names, and the sources of their values."""

from __future__ import annotations

from jobgen.check.admission.fields import (
    Entry,
    Fields,
    Table,
    Validation,
    Validator,
    dns_subdomain,
    each,
    find_mapping,
    is_set,
    join_names,
    list_mappings,
    list_set_keys,
    mapping,
    text,
    valid_text,
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
    is_dns_subdomain,
    is_env_name,
    is_label_key,
    is_strict_env_name,
    mask_trailing_dash,
)
from jobgen.k8s.nodes import as_text
from jobgen.model.data import Plain
from jobgen.model.finding import Problem, Severity
from jobgen.model.place import At
from jobgen.model.quantity import canonicalize_quantity, to_milli
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import did_you_mean

_RELAXED_SINCE = (1, 32)
_SOURCE_RULE = "invalid-env-source"
_REF_RULE = "unsupported-field-ref"
_ENV_FIELD_PATHS = tuple(
    "metadata.name metadata.namespace metadata.uid spec.nodeName spec.serviceAccountName "
    "status.hostIP status.hostIPs status.podIP status.podIPs".split()
)
_FILE_FIELD_PATHS = ("metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid")
_RESOURCES = tuple(
    f"{part}.{name}" for part in ("limits", "requests") for name in ("cpu", "memory", "ephemeral-storage")
)
_CPU_DIVISORS = frozenset(("1m", "1"))
_BYTE_DIVISORS = frozenset("1 1k 1M 1G 1T 1P 1E 1Ki 1Mi 1Gi 1Ti 1Pi 1Ei".split())

_validate_object_name = dns_subdomain("invalid-object-name", "object name")
# Kubernetes validates a name in `envFrom` as the prefix of a name.
_validate_source_name = text(
    "invalid-object-name", "object name", lambda name: is_dns_subdomain(mask_trailing_dash(name)), DNS_SUBDOMAIN
)
_validate_config_key = text("invalid-config-key", "ConfigMap or Secret key", is_config_key, CONFIG_KEY)
_validate_relaxed_name = text("invalid-env-name", "variable name", is_env_name, ENV_NAME)
_validate_strict_name = text("invalid-env-name", "variable name", is_strict_env_name, STRICT_ENV_NAME)
_validate_key_ref = mapping({"name": _validate_object_name, "key": _validate_config_key}, "name", "key")


def _validate_env_name(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    validate = _validate_relaxed_name if pod.release >= _RELAXED_SINCE else _validate_strict_name
    validate(key, value, owner, pod)


def validate_env(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    """Validate the variables of one container."""
    is_valid = is_env_name if pod.release >= _RELAXED_SINCE else is_strict_env_name
    seen: dict[str, Fields] = {}
    for item in list_mappings(value):
        name = item.get("name")
        if name is None or name == "":
            pod.report_missing("a variable", item, "name", (owner, key))
        elif type(name) is str:
            if not is_valid(name):
                _validate_env_name("name", item["name"], item, pod)
            elif name in seen:
                _report_repeated(name, seen[name], item, pod)
            seen[name] = item
        if "valueFrom" in item:
            _validate_source(item["valueFrom"], item, pod)


def _report_repeated(name: str, first: Fields, item: Fields, pod: Validation) -> None:
    """Warn about a variable that hides an earlier one, as the API server does."""
    text = as_text(item.get("value"))
    # A value can be made of the one before it.
    if f"$({name})" not in text:
        message = Sentence(
            "`{}` is set twice in one `env`, and only this value has an effect; remove the first one", name
        )
        related = ((At(first, "name"), "it is set first here"),)
        pod.problems.append(Problem("duplicate-env", message, At(item, "name"), related, severity=Severity.WARNING))


def _validate_source(source: Plain, item: Fields, pod: Validation) -> None:
    """Validate where the value of a variable comes from."""
    if isinstance(source, dict):
        name = as_text(item.get("name"))
        validate_fields(source, _SOURCES, pod)
        given = list_set_keys(source, _SOURCES)
        if not given:
            message = Sentence(
                "`valueFrom` of `{}` has no source; set one of {}", name, join_names(list(_SOURCES), "or")
            )
            pod.report(_SOURCE_RULE, message, find_mapping(source, (item, "valueFrom")))
        elif as_text(item.get("value")):
            pod.report(
                _SOURCE_RULE,
                Sentence("`{}` has both `value` and `valueFrom`; delete one of them", name),
                At(item, "value"),
            )
        elif len(given) > 1:
            message = Sentence("`{}` has {} sources: {}; keep one of them", name, len(given), join_names(given, "and"))
            pod.report(_SOURCE_RULE, message, (source, given[-1]))


def _validate_field_ref(paths: tuple[str, ...]) -> Validator:
    """Return a validator for a reference to a field of the pod: one of the paths, or a label or an annotation."""

    def check(reference: Fields, entry: Entry, pod: Validation) -> None:
        version, path = as_text(reference.get("apiVersion")), as_text(reference.get("fieldPath"))
        if version not in ("", "v1"):
            pod.report(
                _REF_RULE, Sentence("`apiVersion` is `{}`, but must be `v1`", version), At(reference, "apiVersion")
            )
        elif not path:
            pod.report_missing(f"`{entry[1]}`", reference, "fieldPath", entry)
        elif path not in paths and not (path == "spec.host" and "spec.nodeName" in paths):
            _validate_subscripted_path(path, At(reference, "fieldPath"), paths, pod)

    return mapping({}, check)


def _validate_subscripted_path(path: str, place: At, paths: tuple[str, ...], pod: Validation) -> None:
    """Validate a path like `metadata.labels['key']`, the only other form."""
    field, _, rest = path.partition("['")
    if not (field and rest.endswith("']")):
        _report_unsupported_ref("fieldPath", path, paths, place, pod)
        return
    key, is_valid = rest[:-2], {"metadata.labels": is_label_key, "metadata.annotations": is_annotation_key}.get(field)
    if is_valid is None:
        pod.report(
            _REF_RULE, Sentence("`{}` cannot have a key in brackets; only labels and annotations can", field), place
        )
    elif not is_valid(key):
        pod.report(
            _REF_RULE,
            Sentence("`{}` is not a valid key of `{}`; write a domain and a name, or a name", key, field),
            place,
        )


def _report_unsupported_ref(key: str, found: str, known: tuple[str, ...], place: At, pod: Validation) -> None:
    hint = did_you_mean(found, list(known))
    values = None if hint else (key, found)
    message = f"`{key}` is `{found}`, which cannot be referenced here"
    pod.report(_REF_RULE, message + (hint or f"; use {join_names(list(known), 'or')}"), place, values=values)


def _check_resource_ref(reference: Fields, entry: Entry, pod: Validation) -> None:
    resource, divisor = as_text(reference.get("resource")), reference.get("divisor")
    if not resource:
        pod.report_missing(f"`{entry[1]}`", reference, "resource", entry)
    elif resource not in _RESOURCES and not resource.startswith(("limits.hugepages-", "requests.hugepages-")):
        _report_unsupported_ref("resource", resource, _RESOURCES, At(reference, "resource"), pod)
    elif to_milli(divisor):
        known, found = _CPU_DIVISORS if resource.endswith(".cpu") else _BYTE_DIVISORS, str(divisor)
        # Go compares the text, and keeps that of an integer as it is written.
        written = found if "." not in found and (found[0] == "+" or "e" in found.lower()) else ""
        if (written or canonicalize_quantity(found)) not in known:
            wanted = "`1` or `1m`" if known is _CPU_DIVISORS else "`1`, `1k`, `1Ki`, `1M`, `1Mi` or a larger unit"
            pod.report(
                _REF_RULE,
                Sentence("`divisor` of `{}` is `{}`, but must be {}", resource, found, wanted),
                At(reference, "divisor"),
            )


def _check_file_resource_ref(reference: Fields, entry: Entry, pod: Validation) -> None:
    """Check a reference to a resource in a file, which has to name the container."""
    if not as_text(reference.get("containerName")):
        pod.report_missing(f"`{entry[1]}`", reference, "containerName", entry)
    else:
        _check_resource_ref(reference, entry, pod)


def _validate_file_volume(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    name = as_text(value)
    volume = pod.volumes.get(name)
    if volume is None:
        if name:
            # Imported late: most names are right.
            from jobgen.check.admission.missing_volume import report_missing_volume

            report_missing_volume(name, At(owner, key), pod)
    elif any(is_set(source) for kind, source in volume.items() if kind not in ("name", "emptyDir")):
        pod.report(
            _SOURCE_RULE, Sentence("volume `{}` is not an `emptyDir`; `fileKeyRef` requires one", name), At(owner, key)
        )


def _check_env_from(item: Fields, entry: Entry, pod: Validation) -> None:
    if len(list_set_keys(item, ("configMapRef", "secretRef"))) != 1:
        message = "an item of `envFrom` requires exactly one of `configMapRef` and `secretRef`"
        pod.report(_SOURCE_RULE, message, find_mapping(item, entry))


validate_file_resource_ref = mapping({}, _check_file_resource_ref)
validate_file_field_ref = _validate_field_ref(_FILE_FIELD_PATHS)
_FILE_KEY_REF: Table = {
    "key": _validate_env_name,
    "volumeName": _validate_file_volume,
    "path": valid_text(
        "invalid-volume-path",
        "`{found}` contains `..`; write a path inside the volume",
        lambda path: not has_backsteps(path),
    ),
}
_SOURCES: Table = {
    "fieldRef": _validate_field_ref(_ENV_FIELD_PATHS),
    "resourceFieldRef": mapping({}, _check_resource_ref),
    "configMapKeyRef": _validate_key_ref,
    "secretKeyRef": _validate_key_ref,
    "fileKeyRef": mapping(_FILE_KEY_REF, "key", "volumeName", "path"),
}

_validate_source_ref = mapping({"name": _validate_source_name}, "name")
validate_env_from = each(
    mapping(
        {"prefix": _validate_env_name, "configMapRef": _validate_source_ref, "secretRef": _validate_source_ref},
        _check_env_from,
    )
)

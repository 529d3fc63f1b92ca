"""Validate the annotations of a pod, including the values that Kubernetes itself reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from jobgen.check.admission.fields import Validation
from jobgen.check.admission.metadata import MAX_ANNOTATION_BYTES, validate_annotation_key, validate_annotation_size
from jobgen.check.admission.names import has_backsteps
from jobgen.check.admission.scheduling import validate_tolerations
from jobgen.k8s.nodes import as_mapping, as_text, get_path
from jobgen.model.data import Node, value_of
from jobgen.model.finding import quoted_values

_RULE = "invalid-annotation"
_LOCALHOST = "localhost/"
_MAX_PROFILE = 4096
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
_APPARMOR_CONTAINER = "container.apparmor.security.beta.kubernetes.io/"
# The values of the annotations for each type of profile in `securityContext`.
_PROFILE_VALUES = {"RuntimeDefault": ("runtime/default", "docker/default"), "Unconfined": ("unconfined",)}


def validate_pod_annotations(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
    """Validate annotations: their keys, their size, and the values that Kubernetes reads."""
    if not isinstance(value, dict):
        return
    size = 0
    for name, node in value.items():
        found = value_of(node)
        if found is None and pod.drops_nulls:
            continue
        if validate_annotation_key(name, pod) and type(found) is str:
            size += len(name) + len(found)
    validate_annotation_values(key, value, owner, pod)
    # A character has at most four bytes; to count them is slow.
    if size > MAX_ANNOTATION_BYTES // 4:
        validate_annotation_size(key, value, pod)


def validate_annotation_values(key: str, value: Node, owner: Mapping[str, Node], pod: Validation) -> None:
    """Validate the values of annotations that Kubernetes reads."""
    for name, node in value.items() if isinstance(value, dict) else ():
        found = value_of(node)
        if "kubernetes.io/" in name and type(found) is str:
            _VALIDATORS.get(name, _validate_profile)(name, found, node, pod)


def _report_value(name: str, found: str, wanted: str, node: Node, pod: Validation) -> None:
    pod.report(_RULE, f"`{name}` is `{found}`, but must be {wanted}", node)


def _validate_deletion_cost(name: str, found: str, node: Node, pod: Validation) -> None:
    digits = found.removeprefix("-")
    is_integer = digits.isascii() and digits.isdigit() and len(digits) < 20
    # Kubernetes accepts leading zeros only after a minus.
    if not is_integer or (found[0] == "0" and found != "0") or not -(2**31) <= int(found) < 2**31:
        _report_value(name, found, "a 32-bit integer", node, pod)


def _validate_mirror(name: str, found: str, node: Node, pod: Validation) -> None:
    if not as_text(pod.spec.get("nodeName")):
        pod.report(_RULE, f"`{name}` requires `nodeName` in the pod spec; delete the annotation", name)


def _validate_tolerations_annotation(name: str, found: str, node: Node, pod: Validation) -> None:
    items = _read_tolerations(found)
    if items is None:
        _report_value(name, found, "a JSON list of tolerations", node, pod)
        return
    inner = pod._replace(problems=[])
    validate_tolerations(name, items, pod.metadata, inner)
    for problem in inner.problems:
        message = f"`{name}` has an invalid toleration: {problem.message}"
        fix = (problem.fix_steps, problem.safe)
        pod.report(_RULE, message, node, fix, values=quoted_values(problem.message))


def _read_tolerations(text: str) -> list[Node] | None:
    """Read tolerations as Go does: the case of keys does not count, null is empty. None if they cannot be read."""
    try:
        items = json.loads(text, parse_constant=_reject_constant) if text else []
    except (ValueError, RecursionError):
        return None
    found: list[Node] = []
    for item in [] if items is None else items if isinstance(items, list) else [items]:
        if item is not None and not (isinstance(item, dict) and isinstance(items, list)):
            return None
        toleration: dict[str, Any] = {}
        for key, value in (item or {}).items():
            field = _TOLERATION_FIELDS.get(key.lower(), "")
            if field and value is not None:
                if type(value) is not (int if field == "tolerationSeconds" else str):
                    return None
                toleration[field] = value
        found.append(toleration)
    return found


def _reject_constant(name: str) -> None:
    raise ValueError(name)


_TOLERATION_FIELDS = {field.lower(): field for field in ("key", "operator", "value", "effect", "tolerationSeconds")}
_VALIDATORS: dict[str, Callable[[str, str, Node, Validation], None]] = {
    "controller.kubernetes.io/pod-deletion-cost": _validate_deletion_cost,
    "kubernetes.io/config.mirror": _validate_mirror,
    "scheduler.alpha.kubernetes.io/tolerations": _validate_tolerations_annotation,
}


def _validate_profile(name: str, found: str, node: Node, pod: Validation) -> None:
    """Validate a seccomp or AppArmor annotation, which predate the fields in `securityContext`."""
    if name == _SECCOMP_POD:
        _validate_seccomp(name, found, node, pod)
        _validate_same_profile(name, found, node, _get_profile(pod.spec, "seccompProfile"), pod)
    elif name.startswith(_SECCOMP_CONTAINER):
        _validate_seccomp(name, found, node, pod)
        container = _find_container(name.removeprefix(_SECCOMP_CONTAINER), pod)
        _validate_same_profile(name, found, node, _get_profile(container, "seccompProfile"), pod)
    elif name.startswith(_APPARMOR_CONTAINER):
        _validate_apparmor(name, found, node, pod)


def _validate_seccomp(name: str, found: str, node: Node, pod: Validation) -> None:
    path = found.removeprefix(_LOCALHOST)
    is_local = found.startswith(_LOCALHOST) and not path.startswith("/") and not has_backsteps(path)
    if found not in ("runtime/default", "docker/default", "unconfined") and not is_local:
        _report_value(name, found, "`runtime/default`, `unconfined` or `localhost/` and a relative path", node, pod)


def _validate_apparmor(name: str, found: str, node: Node, pod: Validation) -> None:
    container = _find_container(name.removeprefix(_APPARMOR_CONTAINER), pod)
    if not container:
        message = f"`{name}` does not name a container of the pod; end it with the name of one"
        pod.report(_RULE, message, name)
    if found not in ("", "runtime/default", "unconfined") and not found.startswith(_LOCALHOST):
        _report_value(name, found, "`runtime/default`, `unconfined` or `localhost/…`", node, pod)
    elif container and as_text(get_path(pod.spec, "os", "name")) != "windows":
        profile = _get_profile(container, "appArmorProfile")
        if not profile and (pod.is_template or not _is_apparmor_profile(found)):
            # Otherwise the API server makes the annotation the profile of the container.
            profile = _get_profile(pod.spec, "appArmorProfile")
        _validate_same_profile(name, found, node, profile, pod)


def _is_apparmor_profile(found: str) -> bool:
    path = found.removeprefix(_LOCALHOST)
    return bool(found) and (path == found or (path != "" and path.strip() == path and len(path) < _MAX_PROFILE))


def _validate_same_profile(name: str, found: str, node: Node, profile: Mapping[str, Node], pod: Validation) -> None:
    """Validate that the annotation agrees with the profile in `securityContext`, if there is one."""
    profile_type = as_text(profile.get("type"))
    values = _PROFILE_VALUES.get(profile_type, (f"{_LOCALHOST}{as_text(profile.get('localhostProfile'))}",))
    if name.startswith(_APPARMOR_CONTAINER):
        values = values[:1]
    if profile_type in ("RuntimeDefault", "Unconfined", "Localhost") and found not in values:
        _report_value(name, found, f"`{values[0]}` as in the security context", node, pod)


def _get_profile(owner: Mapping[str, Node], field: str) -> Mapping[str, Node]:
    return as_mapping(get_path(owner, "securityContext", field))


def _find_container(name: str, pod: Validation) -> Mapping[str, Node]:
    containers = pod.iter_containers("containers", "initContainers")
    return next((one for one in containers if as_text(one.get("name")) == name), {})

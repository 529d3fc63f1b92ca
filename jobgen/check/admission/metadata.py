"""The metadata of a pod: labels, annotations, finalizers."""

from __future__ import annotations

import json
from collections.abc import Callable

from jobgen.check.admission.fields import PodCheck, Table, string, strings
from jobgen.check.admission.names import (
    LABEL_KEY,
    LABEL_VALUE,
    is_annotation_key,
    is_label_key,
    is_label_value,
)
from jobgen.check.admission.profiles import profile, refuse
from jobgen.check.admission.tolerations import tolerations
from jobgen.model.data import Data, value_of

_ANNOTATIONS_LIMIT = 256 * 1024
_FINALIZERS = frozenset(("kubernetes", "orphan", "foregroundDeletion"))


def labels(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """Labels, or what selects by them."""
    if not isinstance(value, dict):
        return
    for name, label in value.items():
        if not is_label_key(name):
            pod.report("invalid-label", f"`{name}` is not a label's key; {LABEL_KEY}", name)
        found = value_of(label)
        if type(found) is str and not is_label_value(found):
            pod.report("invalid-label", f"`{name}` is `{found}`, which is not a label's value; {LABEL_VALUE}", label)


def pod_annotations(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """Annotations: their keys, their size, and those that Kubernetes itself reads."""
    if not isinstance(value, dict):
        return
    size = 0
    for name, note in value.items():
        found = value_of(note)
        if not is_annotation_key(name):
            pod.report("invalid-annotation", f"`{name}` is not an annotation's key; {LABEL_KEY}", name)
        elif type(found) is str:
            size += len(name) + len(found)
            if "kubernetes.io/" in name:
                _read_by_kubernetes(name, found, note, pod)
    if size > _ANNOTATIONS_LIMIT // 4:
        _check_size(key, value, pod)


def annotation_keys(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """Annotations of something that is not the pod: nobody reads their values now."""
    if isinstance(value, dict):
        for name in value:
            if not is_annotation_key(name):
                pod.report("invalid-annotation", f"`{name}` is not an annotation's key; {LABEL_KEY}", name)
        _check_size(key, value, pod)


def _check_size(key: str, value: dict[str, Data], pod: PodCheck) -> None:
    """Bytes are counted, not characters, which is slow; so only what may be too large is counted."""
    size = sum(len(part.encode(errors="replace")) for name, note in value.items() for part in (name, string(note)))
    if size > _ANNOTATIONS_LIMIT:
        message = f"the annotations are `{size}` bytes long; Kubernetes takes {_ANNOTATIONS_LIMIT}"
        pod.report("invalid-annotation", message, key)


def finalizers(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """Finalizers: a domain and a name each, but for Kubernetes' own."""
    for found, node in strings(value):
        if not (is_label_key(found) and ("/" in found or found in _FINALIZERS)):
            pod.report("invalid-finalizer", f"`{found}` is not a finalizer; write one like `example.com/{found}`", node)


def _read_by_kubernetes(name: str, found: str, node: Data, pod: PodCheck) -> None:
    check = _READ.get(name)
    if check is not None:
        check(name, found, node, pod)
    else:
        profile(name, found, node, pod)


def _deletion_cost(name: str, found: str, node: Data, pod: PodCheck) -> None:
    digits = found.removeprefix("-")
    plain = digits.isascii() and digits.isdigit() and len(digits) < 20
    # A leading zero is let through behind a minus only.
    if not plain or (found[0] == "0" and found != "0") or not -(2**31) <= int(found) < 2**31:
        refuse(name, found, "a whole number of 32 bits", node, pod)


def _mirror(name: str, found: str, node: Data, pod: PodCheck) -> None:
    if not string(pod.spec.get("nodeName")):
        pod.report("invalid-annotation", f"`{name}` marks a mirror pod, and the pod has no `nodeName`", name)


def _tolerations(name: str, found: str, node: Data, pod: PodCheck) -> None:
    try:
        listed = json.loads(found) if found else []
    except (ValueError, RecursionError):
        listed = None
    if not isinstance(listed, list):
        refuse(name, found, "a list of tolerations in JSON", node, pod)
        return
    shadow = pod._replace(problems=[])
    tolerations(name, listed, found, shadow)
    pod.problems.extend(problem._replace(rule="invalid-annotation", node=node) for problem in shadow.problems)


_READ: dict[str, Callable[[str, str, Data, PodCheck], None]] = {
    "controller.kubernetes.io/pod-deletion-cost": _deletion_cost,
    "kubernetes.io/config.mirror": _mirror,
    "scheduler.alpha.kubernetes.io/tolerations": _tolerations,
}

METADATA: Table = {"labels": labels, "annotations": pod_annotations, "finalizers": finalizers}

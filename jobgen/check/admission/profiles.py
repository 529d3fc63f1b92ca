"""Annotations that name security profiles, from before there were fields for them."""

from __future__ import annotations

from jobgen.check.admission.fields import PodCheck, string
from jobgen.check.admission.names import climbs
from jobgen.model.data import Data

_LOCAL = "localhost/"
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP = "container.seccomp.security.alpha.kubernetes.io/"
_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
_WORDS = {"RuntimeDefault": ("runtime/default", "docker/default"), "Unconfined": ("unconfined",)}
_CONTAINERS = ("containers", "initContainers")


def profile(name: str, found: str, node: Data, pod: PodCheck) -> None:
    """An annotation that may name a profile, for the pod or for one of its containers."""
    if name == _SECCOMP_POD:
        _seccomp(name, found, node, pod)
        _agrees(name, found, node, _field(pod.spec, "seccompProfile"), pod)
    elif name.startswith(_SECCOMP):
        _seccomp(name, found, node, pod)
        own = _container(name.removeprefix(_SECCOMP), pod)
        _agrees(name, found, node, _field(own, "seccompProfile"), pod)
    elif name.startswith(_APPARMOR):
        _apparmor(name, found, node, pod)


def refuse(name: str, found: str, wanted: str, node: Data, pod: PodCheck) -> None:
    """Report the value of an annotation that Kubernetes itself reads."""
    pod.report("invalid-annotation", f"`{name}` is `{found}`; it must be {wanted}", node)


def _seccomp(name: str, found: str, node: Data, pod: PodCheck) -> None:
    path = found.removeprefix(_LOCAL)
    local = found.startswith(_LOCAL) and not path.startswith("/") and not climbs(path)
    if found not in ("runtime/default", "docker/default", "unconfined") and not local:
        refuse(name, found, "`runtime/default`, `unconfined` or `localhost/` and a relative path", node, pod)


def _apparmor(name: str, found: str, node: Data, pod: PodCheck) -> None:
    own = _container(name.removeprefix(_APPARMOR), pod)
    if not own:
        pod.report("invalid-annotation", f"`{name}` names no container of the pod", name)
    if found not in ("", "runtime/default", "unconfined") and not found.startswith(_LOCAL):
        refuse(name, found, "`runtime/default`, `unconfined` or `localhost/…`", node, pod)
    elif own and _system(pod) != "windows":
        field = _field(own, "appArmorProfile") or _field(pod.spec, "appArmorProfile")
        _agrees(name, found, node, field, pod)


def _system(pod: PodCheck) -> str:
    """The system that the pod is for, if it says."""
    system = pod.spec.get("os")
    return string(system.get("name")) if isinstance(system, dict) else ""


def _agrees(name: str, found: str, node: Data, field: dict[str, Data], pod: PodCheck) -> None:
    """Where there is a field too, it must say the same."""
    kind = string(field.get("type"))
    words = _WORDS.get(kind, (f"{_LOCAL}{string(field.get('localhostProfile'))}",))
    if name.startswith(_APPARMOR):
        words = words[:1]
    if kind in ("RuntimeDefault", "Unconfined", "Localhost") and found not in words:
        refuse(name, found, f"`{words[0]}`, as the field says", node, pod)


def _field(owner: dict[str, Data], name: str) -> dict[str, Data]:
    context = owner.get("securityContext")
    field = context.get(name) if isinstance(context, dict) else None
    return field if isinstance(field, dict) else {}


def _container(name: str, pod: PodCheck) -> dict[str, Data]:
    return next((one for one in pod.containers(*_CONTAINERS) if string(one.get("name")) == name), {})

"""Checks of Pod Security that read the pod: namespaces of the host, volumes, sysctls, profiles in annotations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobgen.check.admission.fields import is_set, iter_mappings
from jobgen.check.pod_security.pod_view import Breach, PodView, find_key, get_set
from jobgen.k8s.nodes import as_text
from jobgen.model.data import Node, value_of

_ALLOWED_VOLUMES = frozenset(
    "configMap csi downwardAPI emptyDir ephemeral image persistentVolumeClaim projected secret".split()
)
_SYSCTLS = {
    "kernel.shm_rmid_forced": 0,
    "net.ipv4.ip_local_port_range": 0,
    "net.ipv4.ip_unprivileged_port_start": 0,
    "net.ipv4.ping_group_range": 0,
    "net.ipv4.tcp_syncookies": 0,
    "net.ipv4.ip_local_reserved_ports": 27,
    "net.ipv4.tcp_fin_timeout": 29,
    "net.ipv4.tcp_keepalive_intvl": 29,
    "net.ipv4.tcp_keepalive_probes": 29,
    "net.ipv4.tcp_keepalive_time": 29,
    "net.ipv4.tcp_rmem": 32,
    "net.ipv4.tcp_wmem": 32,
    "net.ipv4.tcp_notsent_lowat": 37,
    "net.ipv4.tcp_slow_start_after_idle": 37,
}
"""The sysctls that a pod may set, each with the first minor version that allows it."""

_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"


def check_host_namespaces(pod: PodView, minor: int) -> Iterator[Breach]:
    """Find namespaces of the node that the pod shares."""
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if value_of(pod.spec.get(field)) is True:
            yield Breach(pod.spec[field], f"the pod sets `{field}: true`", "remove it")


def check_host_paths(pod: PodView, minor: int) -> Iterator[Breach]:
    """Find volumes that are folders of the node."""
    for volume in iter_mappings(pod.spec.get("volumes")):
        if is_set(volume.get("hostPath")):
            fault = f"volume `{as_text(volume.get('name'))}` is a `hostPath`"
            yield Breach(_find_source(volume, "hostPath"), fault, "use a PersistentVolumeClaim or an `emptyDir`")


def check_volume_types(pod: PodView, minor: int) -> Iterator[Breach]:
    """Find volumes of types that only administrators should use. A volume without a source is an `emptyDir`."""
    for volume in iter_mappings(pod.spec.get("volumes")):
        sources = [key for key, value in volume.items() if key != "name" and is_set(value)]
        if sources and _ALLOWED_VOLUMES.isdisjoint(sources):
            fault = f"volume `{as_text(volume.get('name'))}` is a `{sources[0]}`"
            node = _find_source(volume, sources[0])
            yield Breach(node, fault, "use a PersistentVolumeClaim or an `emptyDir`")


def _find_source(volume: Mapping[str, Node], field: str) -> Node:
    """The node of a volume's source: the path of a folder, else its key."""
    path = get_set(volume, field, "path") if field == "hostPath" else None
    return find_key(volume, field) if path is None else path


def check_sysctls(pod: PodView, minor: int) -> Iterator[Breach]:
    """Find sysctls that change the whole node."""
    for sysctl in iter_mappings(pod.security_context.get("sysctls")):
        name = as_text(sysctl.get("name"))
        since = _SYSCTLS.get(name)
        if since is None or since > minor:
            later = f", which `v1.{since}` of the level allows" if since else ""
            yield Breach(sysctl.get("name") or sysctl, f"the pod sets the sysctl `{name}`{later}", "remove it")


def check_apparmor_annotations(pod: PodView, minor: int) -> Iterator[Breach]:
    """Find annotations that turn AppArmor off."""
    for key, value in pod.annotations.items():
        profile = as_text(value)
        if key.startswith(_APPARMOR) and profile and not _is_profile(profile, "runtime/default"):
            fault = f"the annotation `{key}` is `{profile}`"
            yield Breach(value, fault, "write `runtime/default`, or remove it")


def check_seccomp_annotations(pod: PodView, minor: int) -> Iterator[Breach]:
    """Find annotations that turn seccomp off; versions before 1.19 read them."""
    names = (as_text(container.get("name")) for container in pod.containers)
    for key in dict.fromkeys((_SECCOMP_POD, *(_SECCOMP_CONTAINER + name for name in names))):
        profile = as_text(pod.annotations.get(key))
        if key in pod.annotations and not _is_profile(profile, "runtime/default", "docker/default"):
            fault = f"the annotation `{key}` is `{profile}`"
            yield Breach(pod.annotations[key], fault, "write `runtime/default`, or remove it")


def _is_profile(text: str, *names: str) -> bool:
    return text in names or text.startswith("localhost/")

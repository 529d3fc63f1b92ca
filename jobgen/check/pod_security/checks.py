"""The checks of the levels `baseline` and `restricted`, each with the minor versions that it applies to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from jobgen.check.admission.fields import is_set, iter_mappings, iter_strings
from jobgen.check.pod_security.levels import BASELINE, LATEST, PRIVILEGED, RESTRICTED
from jobgen.k8s.nodes import as_integer, as_mapping, as_text
from jobgen.model.data import Node, value_of


class Breach(NamedTuple):
    """A value that a level forbids, or one that it requires and that is missing."""

    node: Node
    fault: str
    """What the pod sets, or does not set."""
    remedy: str
    """What to write instead."""
    is_missing: bool = False


class PodView(NamedTuple):
    """A pod's metadata and spec, and its containers of all three lists."""

    metadata: Mapping[str, Node]
    spec: Mapping[str, Node]
    containers: tuple[Mapping[str, Node], ...]

    @property
    def annotations(self) -> Mapping[str, Node]:
        """The annotations of the pod."""
        return as_mapping(self.metadata.get("annotations"))

    @property
    def security_context(self) -> Mapping[str, Node]:
        """The security context of the pod."""
        return as_mapping(self.spec.get("securityContext"))

    @property
    def is_windows(self) -> bool:
        """Whether the pod declares Windows, which has no such thing as Linux capabilities."""
        return as_text(as_mapping(self.spec.get("os")).get("name")) == "windows"

    @property
    def has_user_namespace(self) -> bool:
        """Whether root in the pod is not root on the node."""
        return value_of(self.spec.get("hostUsers")) is False

    def iter_security_contexts(self) -> Iterator[tuple[str, Mapping[str, Node]]]:
        """Yield the security contexts of the pod and of its containers, each with the name of its owner."""
        yield "the pod", self.security_context
        for container in self.containers:
            yield name_container(container), as_mapping(container.get("securityContext"))

    def place_of_security(self) -> Node:
        """The node for a field that is missing in the pod's security context."""
        return self.security_context or self.spec or self.metadata


def view_pod(metadata: Node, spec: Node) -> PodView:
    """Return a pod as the checks read it: init containers first, as the admission controller visits them."""
    fields = as_mapping(spec)
    lists = ("initContainers", "containers", "ephemeralContainers")
    return PodView(
        as_mapping(metadata), fields, tuple(each for name in lists for each in iter_mappings(fields.get(name)))
    )


def name_container(container: Mapping[str, Node]) -> str:
    """Return what a message calls a container."""
    return f"container `{as_text(container.get('name'))}`"


def get_set(mapping: Mapping[str, Node], *steps: str) -> Node:
    """Return the value at a path of keys; None if it is missing or null."""
    node: Node = mapping
    for step in steps:
        node = as_mapping(node).get(step)
    return node if is_set(node) else None


def find_key(mapping: Mapping[str, Node], name: str) -> Node:
    """Return a key of a mapping, which has a location even if its value has none."""
    return next((key for key in mapping if key == name), None)


_DEFAULT_CAPABILITIES = frozenset(
    """AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID SETPCAP SETUID
    SYS_CHROOT""".split()
)
_RESTRICTED_CAPABILITIES = frozenset(("NET_BIND_SERVICE",))
_SELINUX_TYPES = {"": 0, "container_t": 0, "container_init_t": 0, "container_kvm_t": 0, "container_engine_t": 31}
"""The SELinux types that a pod may set, each with the first minor version that allows it."""

_PROFILES = ("RuntimeDefault", "Localhost")
_HANDLERS = (
    *((probe,) for probe in ("livenessProbe", "readinessProbe", "startupProbe")),
    *(("lifecycle", hook) for hook in ("postStart", "preStop")),
)


def check_privileged(pod: PodView, minor: int) -> Iterator[Breach]:
    """Find privileged containers."""
    for container in pod.containers:
        node = get_set(container, "securityContext", "privileged")
        if value_of(node) is True:
            yield Breach(node, f"{name_container(container)} sets `privileged: true`", "remove it")


def check_default_capabilities(pod: PodView, minor: int) -> Iterator[Breach]:
    """Find capabilities beyond those that containers have by default."""
    for container in pod.containers:
        yield from _check_added(container, _DEFAULT_CAPABILITIES)


def check_restricted_capabilities(pod: PodView, minor: int) -> Iterator[Breach]:
    """Find containers that keep capabilities, or add others than `NET_BIND_SERVICE`."""
    if _is_exempt(pod, minor):
        return
    for container in pod.containers:
        capabilities = as_mapping(get_set(container, "securityContext", "capabilities"))
        if "ALL" not in (name for name, _ in iter_strings(capabilities.get("drop"))):
            place = capabilities or as_mapping(container.get("securityContext")) or container
            fault = f"{name_container(container)} does not drop all capabilities"
            yield Breach(place, fault, "set `capabilities: {drop: [ALL]}` in its `securityContext`", is_missing=True)
        yield from _check_added(container, _RESTRICTED_CAPABILITIES)


def _check_added(container: Mapping[str, Node], allowed: frozenset[str]) -> Iterator[Breach]:
    for name, node in iter_strings(get_set(container, "securityContext", "capabilities", "add")):
        if name not in allowed:
            yield Breach(node, f"{name_container(container)} adds the capability `{name}`", "remove it")


def check_host_ports(pod: PodView, minor: int) -> Iterator[Breach]:
    """Find ports of the node that containers take."""
    for container in pod.containers:
        for port in iter_mappings(container.get("ports")):
            number = as_integer(port.get("hostPort"))
            if number:
                fault = f"{name_container(container)} takes the `hostPort` `{number}`"
                yield Breach(port["hostPort"], fault, "remove it, and use a Service")


def check_probe_hosts(pod: PodView, minor: int) -> Iterator[Breach]:
    """Find probes and lifecycle hooks that make the kubelet connect to another host."""
    for container in pod.containers:
        for steps in _HANDLERS:
            for action in ("httpGet", "tcpSocket"):
                node = get_set(container, *steps, action, "host")
                if as_text(node):
                    fault = f"`{steps[-1]}` of {name_container(container)} sets the host `{as_text(node)}`"
                    yield Breach(node, fault, "remove `host`; the pod itself is the default")


def check_proc_mount(pod: PodView, minor: int) -> Iterator[Breach]:
    """Find containers that see more of /proc than usual."""
    for container in pod.containers:
        node = get_set(container, "securityContext", "procMount")
        if node is not None and value_of(node) != "Default":
            fault = f"{name_container(container)} sets `procMount: {as_text(node)}`"
            yield Breach(node, fault, "write `Default`, or remove it")


def check_host_process(pod: PodView, minor: int) -> Iterator[Breach]:
    """Find containers that run as processes of a Windows node."""
    for owner, context in pod.iter_security_contexts():
        node = get_set(context, "windowsOptions", "hostProcess")
        if value_of(node) is True:
            yield Breach(node, f"{owner} sets `hostProcess: true`", "remove it")


def check_selinux(pod: PodView, minor: int) -> Iterator[Breach]:
    """Find SELinux types beyond those of containers, and any user or role."""
    for owner, context in pod.iter_security_contexts():
        options = as_mapping(context.get("seLinuxOptions"))
        kind = as_text(options.get("type"))
        if _SELINUX_TYPES.get(kind, minor + 1) > minor:
            yield Breach(options["type"], f"{owner} sets the SELinux type `{kind}`", "write `container_t`")
        for field in ("user", "role"):
            text = as_text(options.get(field))
            if text:
                yield Breach(options[field], f"{owner} sets the SELinux {field} `{text}`", "remove it")


def check_apparmor_profiles(pod: PodView, minor: int) -> Iterator[Breach]:
    """Find security contexts that turn AppArmor off."""
    return _check_profiles(pod, "appArmorProfile")


def check_seccomp_profiles(pod: PodView, minor: int) -> Iterator[Breach]:
    """Find security contexts that turn seccomp off."""
    return _check_profiles(pod, "seccompProfile")


def check_seccomp_required(pod: PodView, minor: int) -> Iterator[Breach]:
    """Find containers without a seccomp profile, of their own or of the pod."""
    if _is_exempt(pod, minor):
        return
    wrong = list(_check_profiles(pod, "seccompProfile"))
    yield from wrong
    if wrong or get_set(pod.security_context, "seccompProfile") is not None:
        return
    lacking = [each for each in pod.containers if get_set(each, "securityContext", "seccompProfile") is None]
    if lacking:
        remedy = "set `seccompProfile: {type: RuntimeDefault}` in the `securityContext` of the pod"
        fault = f"{name_container(lacking[0])} has no seccomp profile"
        yield Breach(pod.place_of_security(), fault, remedy, is_missing=True)


def _check_profiles(pod: PodView, field: str) -> Iterator[Breach]:
    for owner, context in pod.iter_security_contexts():
        profile = context.get(field)
        if is_set(profile):
            node = as_mapping(profile).get("type")
            if as_text(node) not in _PROFILES:
                place = node if is_set(node) else find_key(context, field)
                fault = f"{owner} sets the `{field}` type `{as_text(node)}`"
                yield Breach(place, fault, "write `RuntimeDefault` or `Localhost`")


def check_privilege_escalation(pod: PodView, minor: int) -> Iterator[Breach]:
    """Find containers whose processes may gain more privileges than their parent has."""
    if _is_exempt(pod, minor):
        return
    for container in pod.containers:
        context = as_mapping(container.get("securityContext"))
        node = get_set(context, "allowPrivilegeEscalation")
        if value_of(node) is not False:
            fault = f"{name_container(container)} does not set `allowPrivilegeEscalation: false`"
            remedy = "set it in its `securityContext`" if node is None else "write `false`"
            yield Breach(context or container if node is None else node, fault, remedy, is_missing=True)


def check_run_as_non_root(pod: PodView, minor: int) -> Iterator[Breach]:
    """Find containers that may run as root."""
    wrong = False
    for owner, context in pod.iter_security_contexts():
        node = get_set(context, "runAsNonRoot")
        if value_of(node) is False:
            wrong = True
            yield Breach(node, f"{owner} sets `runAsNonRoot: false`", "write `true`")
    if wrong or get_set(pod.security_context, "runAsNonRoot") is not None:
        return
    lacking = [each for each in pod.containers if get_set(each, "securityContext", "runAsNonRoot") is None]
    if lacking:
        fault = f"{name_container(lacking[0])} does not set `runAsNonRoot: true`"
        remedy = "set it in the `securityContext` of the pod"
        yield Breach(pod.place_of_security(), fault, remedy, is_missing=True)


def check_run_as_user(pod: PodView, minor: int) -> Iterator[Breach]:
    """Find containers that run as root."""
    for owner, context in pod.iter_security_contexts():
        node = get_set(context, "runAsUser")
        if as_integer(node) == 0:
            yield Breach(node, f"{owner} sets `runAsUser: 0`, which is root", "write another user, such as `1000`")


def _is_exempt(pod: PodView, minor: int) -> bool:
    """Return True if a check about Linux does not apply, because the pod declares Windows; from 1.25 on."""
    return minor >= 25 and pod.is_windows


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


class Check(NamedTuple):
    """A check of a level, from one minor version to another."""

    level: str
    find: Callable[[PodView, int], Iterator[Breach]]
    since: int = 0
    before: int = LATEST + 1
    replaced: int = LATEST + 1
    """The minor version from which `restricted` has a stricter check instead of this one of `baseline`."""
    relaxed: int = LATEST + 1
    """The minor version from which the check does not apply to pods with their own user namespace."""


_CHECKS = (
    Check(BASELINE, check_apparmor_annotations),
    Check(BASELINE, check_apparmor_profiles),
    Check(BASELINE, check_default_capabilities, replaced=22),
    Check(BASELINE, check_host_namespaces),
    Check(BASELINE, check_host_paths, replaced=0),
    Check(BASELINE, check_host_ports),
    Check(BASELINE, check_probe_hosts, since=34),
    Check(BASELINE, check_privileged),
    Check(BASELINE, check_proc_mount, replaced=35, relaxed=35),
    Check(BASELINE, check_seccomp_annotations, before=19),
    Check(BASELINE, check_seccomp_profiles, since=19, replaced=19),
    Check(BASELINE, check_selinux),
    Check(BASELINE, check_sysctls),
    Check(BASELINE, check_host_process),
    Check(RESTRICTED, check_privilege_escalation, since=8),
    Check(RESTRICTED, check_restricted_capabilities, since=22),
    Check(RESTRICTED, check_proc_mount, since=35),
    Check(RESTRICTED, check_volume_types),
    Check(RESTRICTED, check_run_as_non_root, relaxed=35),
    Check(RESTRICTED, check_run_as_user, since=23, relaxed=35),
    Check(RESTRICTED, check_seccomp_required, since=19),
)


def find_breaches(metadata: Node, spec: Node, level: str, minor: int = LATEST) -> list[Breach]:
    """Return what a level of Pod Security, in a minor version, finds wrong with a pod."""
    if level == PRIVILEGED:
        return []
    pod = view_pod(metadata, spec)
    return [breach for check in _CHECKS if _applies(check, level, minor, pod) for breach in check.find(pod, minor)]


def _applies(check: Check, level: str, minor: int, pod: PodView) -> bool:
    if not check.since <= minor < check.before:
        return False
    if check.relaxed <= minor and pod.has_user_namespace:
        return False
    if level == BASELINE:
        return check.level == BASELINE
    return check.level == RESTRICTED or minor < check.replaced

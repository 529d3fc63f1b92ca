"""Checks of Pod Security that read security contexts, ports and probes of containers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobgen.check.admission.fields import is_set, iter_mappings, iter_strings
from jobgen.check.pod_security.pod_view import Breach, PodView, find_key, get_set, name_container
from jobgen.k8s.nodes import as_integer, as_mapping, as_text
from jobgen.model.data import Node, value_of

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
    """Whether a check about Linux does not apply, because the pod declares Windows; from 1.25 on."""
    return minor >= 25 and pod.is_windows

"""The checks of the levels `baseline` and `restricted`, each with the minor versions that it applies to."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import TypeAlias

from jobgen.check.admission.fields import is_set, iter_mappings, list_text_places
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.model.data import Plain
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, Place, find_at

# The Pod Security labels of a namespace: which level and version apply, and whether pods are refused or reported.

PREFIX = "pod-security.kubernetes.io/"
"""The beginning of the labels."""

PRIVILEGED, BASELINE, RESTRICTED = LEVELS = ("privileged", "baseline", "restricted")
"""The levels, from the most permissive to the strictest."""

ENFORCE, WARN, AUDIT = MODES = ("enforce", "warn", "audit")
LABELS = tuple(f"{PREFIX}{mode}{suffix}" for mode in MODES for suffix in ("", "-version"))
LATEST = 1000
"""The minor version that `latest` stands for; no release has it."""

_VERSION = lazy_pattern(r"v1\.(0|[1-9][0-9]{0,17})\Z")


class Level(NamedTuple):
    """A level in one mode: `enforce` refuses pods, `warn` and `audit` report them."""

    mode: str
    level: str
    minor: int
    """The minor version whose checks apply; a newer one than the cluster's means the cluster's own."""
    label: str
    """The label that sets the level."""

    @property
    def version(self) -> str:
        """The version as a label states it."""
        return "latest" if self.minor == LATEST else f"v1.{self.minor}"


def parse_version(text: str) -> int | None:
    """Return the minor version of a label's value; None if it is not one."""
    if text == "latest":
        return LATEST
    found = _VERSION.match(text)
    return int(found[1]) if found else None


def list_levels(labels: Mapping[str, Plain]) -> Iterator[Level]:
    """Yield the levels that a namespace sets, `enforce` first. The admission controller's defaults are unknown.

    An invalid level counts as `restricted` for `enforce`, and as none for the others; an invalid version as `latest`.
    """
    for mode in MODES:
        label = PREFIX + mode
        if label not in labels:
            continue
        level = as_text(labels[label])
        if level not in LEVELS:
            level = RESTRICTED if mode == ENFORCE else PRIVILEGED
        minor = parse_version(as_text(labels.get(f"{label}-version"))) if f"{label}-version" in labels else LATEST
        if level != PRIVILEGED:
            yield Level(mode, level, LATEST if minor is None else minor, label)


_DEFAULT_CAPABILITIES = frozenset(
    """AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID SETPCAP SETUID
    SYS_CHROOT""".split()
)
_SELINUX_TYPES = {"": 0, "container_t": 0, "container_init_t": 0, "container_kvm_t": 0, "container_engine_t": 31}
"""The SELinux types that a pod may set, each with the first minor version that allows it."""
_HANDLERS = (
    *((probe,) for probe in ("livenessProbe", "readinessProbe", "startupProbe")),
    *(("lifecycle", hook) for hook in ("postStart", "preStop")),
)
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


class Breach(NamedTuple):
    """A value that a level forbids, or one that it requires and that is missing."""

    node: Place
    fault: str
    """What the pod sets, or does not set."""
    remedy: str
    """What to write instead."""
    is_missing: bool = False


class _Container(NamedTuple):
    """A container, what messages call it, and its security context."""

    data: Mapping[str, Plain]
    name: str
    context: Mapping[str, Plain]


class _Pod(NamedTuple):
    """A pod's metadata and spec, and its containers of all three lists."""

    metadata: Mapping[str, Plain]
    spec: Mapping[str, Plain]
    containers: list[_Container]

    @property
    def annotations(self) -> Mapping[str, Plain]:
        return as_mapping(self.metadata.get("annotations"))

    @property
    def context(self) -> Mapping[str, Plain]:
        return as_mapping(self.spec.get("securityContext"))

    @property
    def contexts(self) -> list[tuple[str, Mapping[str, Plain]]]:
        """The security contexts of the pod and of its containers, each with the name of its owner."""
        return [("the pod", self.context), *((container.name, container.context) for container in self.containers)]

    def is_exempt(self, minor: int) -> bool:
        """Return True if a check about Linux does not apply, because the pod declares Windows; from 1.25 on."""
        return minor >= 25 and as_text(get_path(self.spec, "os", "name")) == "windows"

    def require(self, field: str, missing: str, remedy: str) -> Iterator[Breach]:
        """Yield a breach if neither the pod nor each of its containers sets a field of the security context."""
        lacking = [container.name for container in self.containers if not is_set(container.context.get(field))]
        if lacking and not is_set(self.context.get(field)):
            place = self.context or self.spec or self.metadata
            yield Breach(place, f"{lacking[0]} {missing}", remedy, is_missing=True)


def _check_privileged(pod: _Pod, minor: int) -> Iterator[Breach]:
    for container in pod.containers:
        node = container.context.get("privileged")
        if node is True:
            yield Breach(At(container.context, "privileged"), f"{container.name} sets `privileged: true`", "remove it")


def _check_default_capabilities(pod: _Pod, minor: int) -> Iterator[Breach]:
    for container in pod.containers:
        yield from _check_added(container, _DEFAULT_CAPABILITIES)


def _check_restricted_capabilities(pod: _Pod, minor: int) -> Iterator[Breach]:
    """Find containers that keep capabilities, or add others than `NET_BIND_SERVICE`."""
    for container in () if pod.is_exempt(minor) else pod.containers:
        capabilities = as_mapping(container.context.get("capabilities"))
        if "ALL" not in as_list(capabilities.get("drop")):
            place = capabilities or container.context or container.data
            fault = f"{container.name} does not drop all capabilities"
            yield Breach(place, fault, "set `capabilities: {drop: [ALL]}` in its `securityContext`", is_missing=True)
        yield from _check_added(container, ("NET_BIND_SERVICE",))


def _check_added(container: _Container, allowed: Container[str]) -> Iterator[Breach]:
    for name, place in list_text_places(get_path(container.context, "capabilities", "add")):
        if name not in allowed:
            yield Breach(place, f"{container.name} adds the capability `{name}`", "remove it")


def _check_host_ports(pod: _Pod, minor: int) -> Iterator[Breach]:
    for container in pod.containers:
        for port in iter_mappings(container.data.get("ports")):
            number = as_integer(port.get("hostPort"))
            if number:
                fault = f"{container.name} uses the `hostPort` `{number}`"
                yield Breach(At(port, "hostPort"), fault, "remove it, and use a Service")


def _check_probe_hosts(pod: _Pod, minor: int) -> Iterator[Breach]:
    """Find probes and lifecycle hooks that make the kubelet connect to another host."""
    for container in pod.containers:
        for steps in _HANDLERS:
            for action in ("httpGet", "tcpSocket"):
                handler = as_mapping(get_path(container.data, *steps, action))
                host = as_text(handler.get("host"))
                if host:
                    fault = f"`{steps[-1]}` of {container.name} sets the host `{host}`"
                    yield Breach(At(handler, "host"), fault, "remove `host`; the pod itself is the default")


def _check_proc_mount(pod: _Pod, minor: int) -> Iterator[Breach]:
    """Find containers that see more of /proc than usual."""
    for container in pod.containers:
        node = container.context.get("procMount")
        if is_set(node) and node != "Default":
            fault = f"{container.name} sets `procMount: {as_text(node)}`"
            yield Breach(At(container.context, "procMount"), fault, "write `Default`, or remove it")


def _check_host_process(pod: _Pod, minor: int) -> Iterator[Breach]:
    """Find containers that run as processes of a Windows node."""
    for owner, context in pod.contexts:
        options = as_mapping(context.get("windowsOptions"))
        if options.get("hostProcess") is True:
            yield Breach(At(options, "hostProcess"), f"{owner} sets `hostProcess: true`", "remove it")


def _check_selinux(pod: _Pod, minor: int) -> Iterator[Breach]:
    """Find SELinux types beyond those of containers, and any user or role."""
    for owner, context in pod.contexts:
        options = as_mapping(context.get("seLinuxOptions"))
        kind = as_text(options.get("type"))
        if _SELINUX_TYPES.get(kind, minor + 1) > minor:
            yield Breach(At(options, "type"), f"{owner} sets the SELinux type `{kind}`", "write `container_t`")
        for field in ("user", "role"):
            text = as_text(options.get(field))
            if text:
                yield Breach(At(options, field), f"{owner} sets the SELinux {field} `{text}`", "remove it")


def _check_profiles(field: str) -> _Find:
    """Return a check that no security context turns AppArmor or seccomp off."""

    def find(pod: _Pod, minor: int) -> Iterator[Breach]:
        for owner, context in pod.contexts:
            profile = as_mapping(context.get(field))
            node = profile.get("type")
            if is_set(context.get(field)) and as_text(node) not in ("RuntimeDefault", "Localhost"):
                place = At(profile, "type") if is_set(node) else At(context, field, is_key=True)
                fault = f"{owner} sets the `{field}` type `{as_text(node)}`"
                yield Breach(place, fault, "write `RuntimeDefault` or `Localhost`")

    return find


def _check_seccomp_required(pod: _Pod, minor: int) -> Iterator[Breach]:
    """Find containers without a seccomp profile, of their own or of the pod."""
    if pod.is_exempt(minor):
        return
    wrong = list(_check_profiles("seccompProfile")(pod, minor))
    yield from wrong
    if not wrong:
        remedy = "set `seccompProfile: {type: RuntimeDefault}` in the `securityContext` of the pod"
        yield from pod.require("seccompProfile", "has no seccomp profile", remedy)


def _check_privilege_escalation(pod: _Pod, minor: int) -> Iterator[Breach]:
    """Find containers whose processes may gain more privileges than their parent has."""
    for container in () if pod.is_exempt(minor) else pod.containers:
        node = container.context.get("allowPrivilegeEscalation")
        if node is not False:
            fault = f"{container.name} does not set `allowPrivilegeEscalation: false`"
            remedy = "write `false`" if is_set(node) else "set it in its `securityContext`"
            place: Place = container.context or container.data
            if is_set(node):
                place = At(container.context, "allowPrivilegeEscalation")
            yield Breach(place, fault, remedy, is_missing=True)


def _check_run_as_non_root(pod: _Pod, minor: int) -> Iterator[Breach]:
    wrong = [
        Breach(At(context, "runAsNonRoot"), f"{owner} sets `runAsNonRoot: false`", "write `true`")
        for owner, context in pod.contexts
        if context.get("runAsNonRoot") is False
    ]
    yield from wrong
    if not wrong:
        remedy = "set it in the `securityContext` of the pod"
        yield from pod.require("runAsNonRoot", "does not set `runAsNonRoot: true`", remedy)


def _check_run_as_user(pod: _Pod, minor: int) -> Iterator[Breach]:
    for owner, context in pod.contexts:
        if as_integer(context.get("runAsUser")) == 0:
            fault = f"{owner} sets `runAsUser: 0`, which is root"
            yield Breach(At(context, "runAsUser"), fault, "write another user, such as `1000`")


def _check_host_namespaces(pod: _Pod, minor: int) -> Iterator[Breach]:
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.spec.get(field) is True:
            yield Breach(At(pod.spec, field), f"the pod sets `{field}: true`", "remove it")


def _check_host_paths(pod: _Pod, minor: int) -> Iterator[Breach]:
    for volume in iter_mappings(pod.spec.get("volumes")):
        if is_set(volume.get("hostPath")):
            yield _describe_volume(volume, "hostPath")


def _check_volume_types(pod: _Pod, minor: int) -> Iterator[Breach]:
    """Find volumes of types that only administrators should use. A volume without a source is an `emptyDir`."""
    for volume in iter_mappings(pod.spec.get("volumes")):
        sources = [key for key, value in volume.items() if key != "name" and is_set(value)]
        if sources and _ALLOWED_VOLUMES.isdisjoint(sources):
            yield _describe_volume(volume, sources[0])


def _describe_volume(volume: Mapping[str, Plain], source: str) -> Breach:
    place = find_at(volume, source, "path") if source == "hostPath" else None
    fault = f"volume `{as_text(volume.get('name'))}` is a `{source}`"
    if place is None or not is_set(place.node):
        place = At(volume, source, is_key=True)
    return Breach(place, fault, "use a PersistentVolumeClaim or an `emptyDir`")


def _check_sysctls(pod: _Pod, minor: int) -> Iterator[Breach]:
    for sysctl in iter_mappings(pod.context.get("sysctls")):
        name = as_text(sysctl.get("name"))
        since = _SYSCTLS.get(name)
        if since is None or since > minor:
            later = f", which `v1.{since}` of the level allows" if since else ""
            place = At(sysctl, "name") if "name" in sysctl else sysctl
            yield Breach(place, f"the pod sets the sysctl `{name}`{later}", "remove it")


def _check_apparmor_annotations(pod: _Pod, minor: int) -> Iterator[Breach]:
    keys = [key for key, value in pod.annotations.items() if key.startswith(_APPARMOR) and as_text(value)]
    return _check_annotations(pod, keys, "runtime/default")


def _check_seccomp_annotations(pod: _Pod, minor: int) -> Iterator[Breach]:
    """Find annotations that turn seccomp off; versions before 1.19 read them."""
    names = (as_text(container.data.get("name")) for container in pod.containers)
    keys = dict.fromkeys((_SECCOMP_POD, *(_SECCOMP_CONTAINER + name for name in names)))
    return _check_annotations(pod, keys, "runtime/default", "docker/default")


def _check_annotations(pod: _Pod, keys: Iterable[str], *profiles: str) -> Iterator[Breach]:
    for key in keys:
        profile = as_text(pod.annotations.get(key))
        if key in pod.annotations and profile not in profiles and not profile.startswith("localhost/"):
            fault = f"the annotation `{key}` is `{profile}`"
            yield Breach(At(pod.annotations, key), fault, "write `runtime/default`, or remove it")


class _Check(NamedTuple):
    """A check of a level, from one minor version to another."""

    level: str
    find: _Find
    since: int = 0
    before: int = LATEST + 1
    replaced: int = LATEST + 1
    """The minor version from which `restricted` has a stricter check instead of this one of `baseline`."""
    relaxed: int = LATEST + 1
    """The minor version from which the check does not apply to pods with their own user namespace."""

    def applies(self, level: str, minor: int, *, has_user_namespace: bool) -> bool:
        is_current = self.since <= minor < self.before and not (self.relaxed <= minor and has_user_namespace)
        return is_current and (self.level == level or (level == RESTRICTED and minor < self.replaced))


def find_breaches(metadata: Plain, spec: Plain, level: str, minor: int = LATEST) -> list[Breach]:
    """Return what a level of Pod Security, in a minor version, finds wrong with a pod."""
    if level == PRIVILEGED:
        return []
    fields = as_mapping(spec)
    # Init containers first, as the admission controller visits them.
    lists = (fields.get(name) for name in ("initContainers", "containers", "ephemeralContainers"))
    containers = [
        _Container(each, f"container `{as_text(each.get('name'))}`", as_mapping(each.get("securityContext")))
        for containers in lists
        for each in iter_mappings(containers)
    ]
    pod = _Pod(as_mapping(metadata), fields, containers)
    has_user_namespace = fields.get("hostUsers") is False
    checks = (check for check in _CHECKS if check.applies(level, minor, has_user_namespace=has_user_namespace))
    return [breach for check in checks for breach in check.find(pod, minor)]


_Find: TypeAlias = Callable[[_Pod, int], Iterator[Breach]]
_CHECKS = (
    _Check(BASELINE, _check_apparmor_annotations),
    _Check(BASELINE, _check_profiles("appArmorProfile")),
    _Check(BASELINE, _check_default_capabilities, replaced=22),
    _Check(BASELINE, _check_host_namespaces),
    _Check(BASELINE, _check_host_paths, replaced=0),
    _Check(BASELINE, _check_host_ports),
    _Check(BASELINE, _check_probe_hosts, since=34),
    _Check(BASELINE, _check_privileged),
    _Check(BASELINE, _check_proc_mount, replaced=35, relaxed=35),
    _Check(BASELINE, _check_seccomp_annotations, before=19),
    _Check(BASELINE, _check_profiles("seccompProfile"), since=19, replaced=19),
    _Check(BASELINE, _check_selinux),
    _Check(BASELINE, _check_sysctls),
    _Check(BASELINE, _check_host_process),
    _Check(RESTRICTED, _check_privilege_escalation, since=8),
    _Check(RESTRICTED, _check_restricted_capabilities, since=22),
    _Check(RESTRICTED, _check_proc_mount, since=35),
    _Check(RESTRICTED, _check_volume_types),
    _Check(RESTRICTED, _check_run_as_non_root, relaxed=35),
    _Check(RESTRICTED, _check_run_as_user, since=23, relaxed=35),
    _Check(RESTRICTED, _check_seccomp_required, since=19),
)

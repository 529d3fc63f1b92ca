"""Security contexts of pods and containers."""

from __future__ import annotations

from jobgen.check.admission.fields import (
    PodCheck,
    Table,
    each,
    is_set,
    judge,
    mappings,
    missing,
    number,
    string,
    strings,
    unsupported,
    word,
)
from jobgen.check.admission.mounts import inner_path
from jobgen.check.admission.names import is_sysctl
from jobgen.check.admission.windows import windows_options
from jobgen.model.data import Data, value_of

_PROFILES = ("RuntimeDefault", "Unconfined", "Localhost")
_CONFLICT = "conflicting-security-context"
_PROFILE = "invalid-security-profile"
_IPC_SYSCTLS = frozenset(
    f"kernel.{name}" for name in "sem shmall shmmax shmmni shm_rmid_forced shm msgmax msgmnb msgmni msg".split()
)

_identity = number(0, 2**31 - 1)


def _profile_type(key: str, value: dict[str, Data], pod: PodCheck) -> str:
    """What kind of profile this is, and whether a path belongs to it."""
    kind = string(value.get("type"))
    path = value.get("localhostProfile")
    if not kind:
        missing(f"`{key}`", value, "type", key, pod)
    elif kind not in _PROFILES:
        unsupported("type", value["type"], _PROFILES, pod)
    if kind == "Localhost" and not is_set(path):
        missing(f"`{key}` of type `Localhost`", value, "localhostProfile", key, pod)
    elif kind != "Localhost" and kind in _PROFILES and is_set(path):
        pod.report(_PROFILE, f"`localhostProfile` is for type `Localhost`, and this is `{kind}`", path)
    return kind


def _seccomp(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    if isinstance(value, dict) and _profile_type(key, value, pod) == "Localhost":
        inner_path("localhostProfile", value.get("localhostProfile"), value, pod)


def _apparmor(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    if not isinstance(value, dict) or _profile_type(key, value, pod) != "Localhost":
        return
    path = value_of(value.get("localhostProfile"))
    if type(path) is str:
        if path == "":
            missing(f"`{key}` of type `Localhost`", value, "localhostProfile", key, pod)
        elif path != path.strip():
            pod.report(_PROFILE, f"`{path}` has space around it", value["localhostProfile"])
        elif len(path) > 4095:
            pod.report(_PROFILE, "`localhostProfile` is longer than 4095 characters", value["localhostProfile"])


def _sysctls(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    names: set[str] = set()
    for item in mappings(value):
        name = string(item.get("name"))
        if not name:
            missing("a sysctl", item, "name", key, pod)
        elif not is_sysctl(name):
            message = f"`{name}` is not the name of a kernel parameter; use `a-z`, `0-9`, `-`, `_` between `.` or `/`"
            pod.report("invalid-sysctl", message, item["name"])
        elif name in names:
            pod.report("invalid-sysctl", f"`{name}` is set twice", item["name"])
        else:
            _host_sysctl(name, item["name"], pod)
        names.add(name)


def _host_sysctl(name: str, node: Data, pod: PodCheck) -> None:
    """A pod in a namespace of the host cannot set that namespace's parameters."""
    # The first separator decides which of the two is meant as one.
    slashes = name.find("/") != -1 and (name.find(".") == -1 or name.find("/") < name.find("."))
    dotted = name.translate(str.maketrans("/.", "./")) if slashes else name
    for flag, own in (
        ("hostNetwork", dotted.startswith("net.")),
        ("hostIPC", dotted.startswith("fs.mqueue.") or dotted in _IPC_SYSCTLS),
    ):
        if own and pod.says(flag):
            pod.report("invalid-sysctl", f"`{name}` cannot be set with `{flag}`: it is the host's", node)


def _proc_mount(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    word("Default", "Unmasked")(key, value, owner, pod)
    if value_of(value) == "Unmasked" and value_of(pod.spec.get("hostUsers")) is not False:
        pod.report(_CONFLICT, "`procMount: Unmasked` needs `hostUsers: false` of the pod", value)


def _escalation(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """`allowPrivilegeEscalation: false` beside what is an escalation."""
    if value_of(value) is not False:
        return
    if value_of(owner.get("privileged")) is True:
        pod.report(_CONFLICT, "`allowPrivilegeEscalation` is false, and `privileged` true", value)
    capabilities = owner.get("capabilities")
    for name, node in strings(capabilities.get("add") if isinstance(capabilities, dict) else None):
        if name == "CAP_SYS_ADMIN":
            pod.report(_CONFLICT, f"`allowPrivilegeEscalation` is false, and `{name}` is added", node)


_SHARED: Table = {
    "runAsUser": _identity,
    "runAsGroup": _identity,
    "seccompProfile": _seccomp,
    "appArmorProfile": _apparmor,
    "windowsOptions": windows_options,
}
_CONTAINER: Table = {**_SHARED, "procMount": _proc_mount, "allowPrivilegeEscalation": _escalation}
_POD: Table = {
    **_SHARED,
    "fsGroup": _identity,
    "supplementalGroups": each(_identity),
    "supplementalGroupsPolicy": word("Merge", "Strict"),
    "fsGroupChangePolicy": word("OnRootMismatch", "Always"),
    # `MountOption` needs a feature gate that is off by default.
    "seLinuxChangePolicy": word("Recursive"),
    "sysctls": _sysctls,
}


def container_security(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """The security context of one container."""
    if isinstance(value, dict):
        judge(value, _CONTAINER, pod)


def pod_security(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """The security context of the pod."""
    if isinstance(value, dict):
        judge(value, _POD, pod)


def share_process_namespace(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """One process namespace for all containers cannot be the host's too."""
    if value_of(value) is True and pod.says("hostPID"):
        pod.report(_CONFLICT, "`shareProcessNamespace` and `hostPID` are both true", value)


def host_users(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """A pod with users of its own shares no other namespace with the host."""
    if value_of(value) is not False:
        return
    for flag in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.says(flag):
            message = f"`{flag}` is true, and `hostUsers` false; a pod with its own users shares nothing with the host"
            pod.report(_CONFLICT, message, pod.spec[flag])
    for container in pod.containers("containers", "initContainers"):
        devices = container.get("volumeDevices")
        if isinstance(devices, list) and devices:
            message = "`volumeDevices` cannot be used with `hostUsers: false`"
            pod.report(_CONFLICT, message, devices)

"""Validate security contexts, Windows options, and fields that do not fit the operating system of the pod."""

from __future__ import annotations

from jobgen.check.admission.fields import (
    Entry,
    Fields,
    Table,
    Validation,
    all_of,
    dns_subdomain,
    each,
    gated,
    is_set,
    iter_texts,
    list_mappings,
    mapping,
    number,
    one_of,
    text,
)
from jobgen.check.admission.names import is_dns_subdomain, is_sysctl_name
from jobgen.check.admission.volumes import validate_local_path
from jobgen.k8s.nodes import as_mapping, as_text, get_path
from jobgen.model.data import Plain
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.place import At
from jobgen.model.sentence import Sentence

_PROFILE_TYPES = ("RuntimeDefault", "Unconfined", "Localhost")
_CONFLICT_RULE = "conflicting-security-context"
_PROFILE_RULE = "invalid-security-profile"
_SYSCTL_RULE = "invalid-sysctl"
_IPC_SYSCTLS = frozenset(
    f"kernel.{name}" for name in "sem shmall shmmax shmmni shm_rmid_forced shm msgmax msgmnb msgmni msg".split()
)

_validate_id = number(0, 2**31 - 1)
_validate_group_id = number(0, 2**31 - 1, name="supplementalGroups")
_WINDOWS_RULE = "invalid-os-option"
_WINDOWS_DOMAIN = lazy_pattern(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}')
_WINDOWS_USER = lazy_pattern(r'(?![. ]+\Z)[^"/\\:;|=,+*?<>@\[\]]{1,104}')
_CONTROL_CHARACTER = lazy_pattern(r"[\x00-\x1f\x7f]")
_MAX_CREDENTIAL_BYTES = 64 * 1024
_LINUX_CONTEXT = frozenset(
    "appArmorProfile seLinuxOptions seccompProfile fsGroup fsGroupChangePolicy runAsUser runAsGroup "
    "supplementalGroups supplementalGroupsPolicy seLinuxChangePolicy sysctls "
    "capabilities readOnlyRootFilesystem privileged allowPrivilegeEscalation procMount".split()
)
_LINUX_POD = frozenset(("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace", "resources"))
# False is the same as not set for these fields of the pod.
_FLAGS = ("hostPID", "hostIPC")


def _check_profile(profile: Fields, entry: Entry, pod: Validation) -> None:
    """Check the type of a profile, which decides whether it has a path, and the path."""
    profile_type, path = as_text(profile.get("type")), profile.get("localhostProfile")
    if not profile_type:
        pod.report_missing(f"`{entry[1]}`", profile, "type", entry)
    elif profile_type not in _PROFILE_TYPES:
        pod.report_unsupported("type", At(profile, "type"), _PROFILE_TYPES)
    if profile_type != "Localhost":
        if profile_type in _PROFILE_TYPES and is_set(path):
            pod.report(
                _PROFILE_RULE,
                Sentence("`localhostProfile` requires type `Localhost`, got `{}`", profile_type),
                At(profile, "localhostProfile"),
            )
    elif not is_set(path) or (entry[1] == "appArmorProfile" and path == ""):
        pod.report_missing(f"`{entry[1]}` of type `Localhost`", profile, "localhostProfile", entry)
    elif entry[1] == "seccompProfile":
        validate_local_path("localhostProfile", path, profile, pod)
    elif type(found := path) is str and found != found.strip():
        pod.report(
            _PROFILE_RULE,
            Sentence("the profile `{}` starts or ends with whitespace; delete it", found),
            At(profile, "localhostProfile"),
        )
    elif type(found) is str and len(found) > 4095:
        pod.report(
            _PROFILE_RULE,
            Sentence("`localhostProfile` must have at most 4095 characters, got {}", len(found)),
            At(profile, "localhostProfile"),
        )


def _validate_sysctls(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    names: set[str] = set()
    for item in list_mappings(value):
        name = as_text(item.get("name"))
        if not name:
            pod.report_missing("a sysctl", item, "name", (owner, key))
        elif not is_sysctl_name(name):
            message = Sentence(
                "`{}` is not a valid sysctl name; use `a-z`, `0-9`, `-`, `_` in parts separated by", name
            )
            pod.report(_SYSCTL_RULE, Sentence("{} `.` or `/`", message), At(item, "name"))
        elif name in names:
            pod.report(_SYSCTL_RULE, Sentence("`{}` is set twice; delete one of them", name), At(item, "name"))
        else:
            # The first separator decides which of `.` and `/` separates the parts.
            has_slashes = name.find("/") != -1 and (name.find(".") == -1 or name.find("/") < name.find("."))
            dotted = name.translate(str.maketrans("/.", "./")) if has_slashes else name
            is_ipc = dotted.startswith("fs.mqueue.") or dotted in _IPC_SYSCTLS
            for flag, is_namespaced in (("hostNetwork", dotted.startswith("net.")), ("hostIPC", is_ipc)):
                # A pod in a namespace of the host cannot set a sysctl of that namespace.
                if is_namespaced and pod.is_true(flag):
                    message = Sentence("`{}` cannot be set if `{}` is true; delete one of them", name, flag)
                    pod.report(_SYSCTL_RULE, message, At(item, "name"))
        names.add(name)


def _validate_proc_mount(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    if value == "Unmasked" and pod.spec.get("hostUsers") is not False:
        pod.report(_CONFLICT_RULE, "`procMount: Unmasked` requires `hostUsers: false` in the pod spec", At(owner, key))


def _validate_escalation(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    """Validate that `allowPrivilegeEscalation: false` is not combined with privileges."""
    if value is not False:
        return
    conflict = "`allowPrivilegeEscalation` cannot be false if"
    if owner.get("privileged") is True:
        pod.report(_CONFLICT_RULE, Sentence("{} `privileged` is true; delete one of them", conflict), At(owner, key))
    for name, node in iter_texts(get_path(owner, "capabilities", "add")):
        if name == "CAP_SYS_ADMIN":
            pod.report(
                _CONFLICT_RULE, Sentence("{} the capability `{}` is added; delete one of them", conflict, name), node
            )


def _is_windows_user(name: str) -> bool:
    domain, slash, user = name.rpartition("\\")
    is_valid = (
        not slash or _WINDOWS_DOMAIN.fullmatch(domain) or (len(domain) < 256 and is_dns_subdomain(domain.lower()))
    )
    return bool(is_valid) and not _CONTROL_CHARACTER.search(name) and _WINDOWS_USER.fullmatch(user) is not None


def _validate_credential_spec(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    found = value
    if type(found) is str and not 0 < len(found.encode(errors="replace")) <= _MAX_CREDENTIAL_BYTES:
        size = len(found.encode(errors="replace"))
        message = Sentence("`{}` has `{}` bytes, but must have 1 to {}", key, size, _MAX_CREDENTIAL_BYTES)
        pod.report(_WINDOWS_RULE, message, At(owner, key))


def _validate_host_process(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    """Validate that all containers of a pod run as processes of the Windows host, or none."""
    if value is not True:
        return
    in_pod = _get_host_process(pod.spec)
    in_containers = [_get_host_process(one) for one in pod.iter_containers("containers", "initContainers")]
    if not all(in_pod if one is None else one for one in in_containers) or in_pod is False:
        pod.report(
            _WINDOWS_RULE, Sentence("`{}` must be true for all containers of the pod or for none", key), At(owner, key)
        )
    if not pod.is_true("hostNetwork"):
        pod.report(_WINDOWS_RULE, Sentence("`{}` requires `hostNetwork: true` in the pod spec", key), At(owner, key))


def _get_host_process(owner: Fields) -> bool | None:
    found = get_path(owner, "securityContext", "windowsOptions", "hostProcess")
    return found if isinstance(found, bool) else None


def validate_process_namespace(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    """Validate that the containers share either a process namespace of their own or that of the host."""
    if value is True and pod.is_true("hostPID"):
        message = "`shareProcessNamespace` and `hostPID` cannot both be true; delete one of them"
        pod.report(_CONFLICT_RULE, message, At(owner, key))


def validate_host_users(key: str, value: Plain, owner: Fields, pod: Validation) -> None:
    """Validate that a pod with a user namespace of its own shares no other namespace with the host."""
    if value is not False:
        return
    for flag in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.is_true(flag):
            message = Sentence("`{}` cannot be true if `hostUsers` is false; delete one of them", flag)
            pod.report(_CONFLICT_RULE, message, At(pod.spec, flag))
    for container in pod.iter_containers("containers", "initContainers"):
        devices = container.get("volumeDevices")
        if isinstance(devices, list) and devices:
            message = Sentence("`volumeDevices` cannot be set with `hostUsers: false`; delete one of them")
            pod.report(_CONFLICT_RULE, message, At(container, "volumeDevices"))


def _check_os(system: Fields, entry: Entry, pod: Validation) -> None:
    """Check the operating system of the pod, and that no fields of the other are set."""
    name = as_text(system.get("name"))
    if not name:
        pod.report_missing("`os`", system, "name", entry)
    elif name not in ("linux", "windows"):
        pod.report_unsupported("name", At(system, "name"), ("linux", "windows"))
    else:
        forbidden = _LINUX_CONTEXT if name == "windows" else frozenset(("windowsOptions",))
        owners = (pod.spec, *pod.iter_containers("containers", "initContainers"))
        contexts = [(forbidden, as_mapping(owner.get("securityContext"))) for owner in owners]
        for fields, owner in (*contexts, (_LINUX_POD if name == "windows" else frozenset(), pod.spec)):
            for field, value in owner.items():
                if field in fields and is_set(value) and not (field in _FLAGS and not value):
                    pod.report(
                        _WINDOWS_RULE,
                        Sentence("`{}` cannot be set with `os: {}`; delete it", field, name),
                        (owner, field),
                    )


_validate_profile = mapping({}, _check_profile)
_SHARED: Table = {
    "runAsUser": _validate_id,
    "runAsGroup": _validate_id,
    "seccompProfile": _validate_profile,
    "appArmorProfile": _validate_profile,
    "windowsOptions": mapping(
        {
            "gmsaCredentialSpecName": dns_subdomain(_WINDOWS_RULE, "object name", allow_empty=False),
            "gmsaCredentialSpec": _validate_credential_spec,
            "hostProcess": _validate_host_process,
            "runAsUserName": text(
                _WINDOWS_RULE,
                "Windows user",
                _is_windows_user,
                "write it as `DOMAIN\\user` or `user`",
                allow_empty=False,
            ),
        }
    ),
}
validate_container_security = mapping(
    {
        **_SHARED,
        "procMount": gated("ProcMountType", all_of(one_of("Default", "Unmasked"), _validate_proc_mount)),
        "allowPrivilegeEscalation": _validate_escalation,
    }
)
validate_pod_security = mapping(
    {
        **_SHARED,
        "fsGroup": _validate_id,
        "supplementalGroups": each(_validate_group_id),
        "supplementalGroupsPolicy": gated("SupplementalGroupsPolicy", one_of("Merge", "Strict")),
        "fsGroupChangePolicy": one_of("OnRootMismatch", "Always"),
        # `MountOption` needs a feature gate that is off by default.
        "seLinuxChangePolicy": gated("SELinuxChangePolicy", one_of("Recursive")),
        "sysctls": _validate_sysctls,
    }
)

validate_os = mapping({}, _check_os)

"""Windows: its own options, and what a pod of one system cannot say of the other."""

from __future__ import annotations

from collections.abc import Iterable

from jobgen.check.admission.fields import PodCheck, Table, is_set, mapping_of, missing, string, text, unsupported
from jobgen.check.admission.names import DNS_SUBDOMAIN, is_dns_subdomain
from jobgen.model.data import Data, value_of
from jobgen.model.lazy_re import lazy_pattern

_RULE = "invalid-os-option"
_SYSTEMS = ("linux", "windows")
_LINUX_CONTEXT = tuple(
    "appArmorProfile seLinuxOptions seccompProfile fsGroup fsGroupChangePolicy runAsUser runAsGroup "
    "supplementalGroups supplementalGroupsPolicy seLinuxChangePolicy sysctls "
    "capabilities readOnlyRootFilesystem privileged allowPrivilegeEscalation procMount".split()
)
_LINUX_POD = ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace", "resources")
_DOMAIN = lazy_pattern(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}')
_USER = lazy_pattern(r'(?![. ]+\Z)[^"/\\:;|=,+*?<>@\[\]]{1,104}')
_CONTROL = lazy_pattern(r"[\x00-\x1f\x7f]")


def _is_user(name: str) -> bool:
    domain, slash, user = name.rpartition("\\")
    fits = not slash or _DOMAIN.fullmatch(domain) or (len(domain) < 256 and is_dns_subdomain(domain.lower()))
    return bool(fits) and not _CONTROL.search(name) and _USER.fullmatch(user) is not None


def _spec(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    found = value_of(value)
    if type(found) is str and not 0 < len(found.encode(errors="replace")) <= 64 * 1024:
        pod.report(_RULE, f"`{key}` is `{len(found)}` characters long; it must have some, and 64 KiB at most", value)


def _host_process(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """Containers that run as processes of a Windows host: all of a pod, or none."""
    if value_of(value) is not True:
        return
    whole = _said_of(pod.spec)
    own = [_said_of(one) for one in pod.containers("containers", "initContainers")]
    if not all(whole if one is None else one for one in own) or whole is False:
        pod.report(_RULE, f"`{key}` is true, and not for all containers of the pod", value)
    if not pod.says("hostNetwork"):
        pod.report(_RULE, f"`{key}` needs `hostNetwork: true` of the pod", value)


def _said_of(owner: dict[str, Data]) -> bool | None:
    context = owner.get("securityContext")
    options = context.get("windowsOptions") if isinstance(context, dict) else None
    found = value_of(options.get("hostProcess")) if isinstance(options, dict) else None
    return found if isinstance(found, bool) else None


_OPTIONS: Table = {
    "gmsaCredentialSpecName": text(_RULE, "the name of an object", is_dns_subdomain, DNS_SUBDOMAIN, empty=True),
    "gmsaCredentialSpec": _spec,
    "hostProcess": _host_process,
    "runAsUserName": text(_RULE, "a user of Windows", _is_user, "write it as `DOMAIN\\user` or `user`", empty=True),
}
windows_options = mapping_of(_OPTIONS)


def system(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """The system that the pod is for, and fields that belong to the other."""
    if not isinstance(value, dict):
        return
    name = string(value.get("name"))
    if not name:
        missing("`os`", value, "name", key, pod)
    elif name == "linux":
        _refuse(("windowsOptions",), _contexts(pod), name, pod)
    elif name == "windows":
        _refuse(_LINUX_CONTEXT, _contexts(pod), name, pod)
        _refuse(_LINUX_POD, (pod.spec,), name, pod)
    else:
        unsupported("name", value["name"], _SYSTEMS, pod)


def _contexts(pod: PodCheck) -> list[dict[str, Data]]:
    owners = (pod.spec, *pod.containers("containers", "initContainers"))
    found = (owner.get("securityContext") for owner in owners)
    return [context for context in found if isinstance(context, dict)]


def _refuse(fields: Iterable[str], owners: Iterable[dict[str, Data]], name: str, pod: PodCheck) -> None:
    for owner in owners:
        for key, value in owner.items():
            # Flags of the host are not told apart from ones left out.
            if (
                key in fields
                and is_set(value)
                and not (key.startswith("host") and key != "hostUsers" and not value_of(value))
            ):
                pod.report(_RULE, f"`{key}` cannot be set for a pod of `os: {name}`", key)

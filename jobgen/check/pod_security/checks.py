"""The checks of the levels `baseline` and `restricted`, each with the minor versions that it applies to."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jobgen.check.pod_security import container_checks, pod_checks
from jobgen.check.pod_security.levels import BASELINE, LATEST, PRIVILEGED, RESTRICTED
from jobgen.check.pod_security.pod_view import Breach, PodView, view_pod
from jobgen.model.data import Node
from jobgen.model.named_tuple import NamedTuple


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
    Check(BASELINE, pod_checks.check_apparmor_annotations),
    Check(BASELINE, container_checks.check_apparmor_profiles),
    Check(BASELINE, container_checks.check_default_capabilities, replaced=22),
    Check(BASELINE, pod_checks.check_host_namespaces),
    Check(BASELINE, pod_checks.check_host_paths, replaced=0),
    Check(BASELINE, container_checks.check_host_ports),
    Check(BASELINE, container_checks.check_probe_hosts, since=34),
    Check(BASELINE, container_checks.check_privileged),
    Check(BASELINE, container_checks.check_proc_mount, replaced=35, relaxed=35),
    Check(BASELINE, pod_checks.check_seccomp_annotations, before=19),
    Check(BASELINE, container_checks.check_seccomp_profiles, since=19, replaced=19),
    Check(BASELINE, container_checks.check_selinux),
    Check(BASELINE, pod_checks.check_sysctls),
    Check(BASELINE, container_checks.check_host_process),
    Check(RESTRICTED, container_checks.check_privilege_escalation, since=8),
    Check(RESTRICTED, container_checks.check_restricted_capabilities, since=22),
    Check(RESTRICTED, container_checks.check_proc_mount, since=35),
    Check(RESTRICTED, pod_checks.check_volume_types),
    Check(RESTRICTED, container_checks.check_run_as_non_root, relaxed=35),
    Check(RESTRICTED, container_checks.check_run_as_user, since=23, relaxed=35),
    Check(RESTRICTED, container_checks.check_seccomp_required, since=19),
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

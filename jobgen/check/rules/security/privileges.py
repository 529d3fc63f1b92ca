"""Privileges of containers, and the Pod Security level of their namespace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jobgen.check.rules import ERROR, INFO, WARNING, Violation, rule
from jobgen.k8s.node_agents import is_node_agent, list_capabilities
from jobgen.k8s.nodes import as_list, as_mapping, as_text, find_nodes, get_path
from jobgen.k8s.objects import Container, Manifest
from jobgen.model.data import value_of
from jobgen.model.suggest import did_you_mean

if TYPE_CHECKING:
    from jobgen.check.cluster.state import ClusterState
    from jobgen.check.pod_security.checks import Breach, Level

# Parts of the names of resources that device plugins offer for RDMA.
_FABRIC = ("rdma", "efa", "hostdev", "/ib", "roce", "sriov", "hca", "nic")
_DEVICES = "/dev/"


@rule("container", WARNING, fields=("securityContext",))
def privileged_container(container: Container) -> Iterator[Violation]:
    """A privileged container.

    It sees all devices of the node, including GPUs of other pods, and anyone who gets into it controls the node. Many
    clusters reject it; the Pod Security level `baseline` does. `node-agent` reports agents of the node, such as
    DaemonSets, which need it.

    Remove `privileged`. For RDMA, a device plugin that offers the devices and the capability `IPC_LOCK` are enough; a
    `hostPath` volume with the device files is not, because only a privileged container can open them.
    """
    node = get_path(container.data, "securityContext", "privileged")
    if value_of(node) is True and not is_node_agent(container.pod):
        message = f"privileged container `{container.name}` has full control of its node"
        yield Violation(node, f"{message}; {_describe_remedy(container)}")


def _describe_remedy(container: Container) -> str:
    """Return what the container needs instead, as far as the pod shows what it is privileged for."""
    if any(sign in str(name) for name in (*container.limits, *container.requests) for sign in _FABRIC):
        return "for RDMA, `IPC_LOCK` is enough"
    if any(as_text(get_path(volume, "hostPath", "path")).startswith(_DEVICES) for volume in container.pod.volumes):
        return "request the devices from a device plugin, and remove `privileged`"
    return "remove `privileged`"


# With a network namespace of its own, a container manages that namespace and nothing of the node.
_OF_NETWORK = "NET_ADMIN"


@rule("container", WARNING, fields=("securityContext",))
def dangerous_capability(container: Container) -> Iterator[Violation]:
    """A capability that lets a container take control of its node, such as `SYS_ADMIN`.

    Training needs none of them; RDMA needs `IPC_LOCK`, and debuggers need `SYS_PTRACE`. Many clusters reject such pods;
    the Pod Security level `baseline` does. `node-agent` reports agents of the node, such as DaemonSets. `NET_ADMIN` is
    not reported for pods that do not train and have a network of their own, such as VPN clients and proxies.

    Remove the capability.
    """
    names = list_capabilities(container)
    if not names or is_node_agent(container.pod):
        return
    pod = container.pod
    has_own_network = pod.manifest.kind is None and value_of(pod.spec.get("hostNetwork")) is not True
    for node in as_list(get_path(container.data, "securityContext", "capabilities", "add")):
        if has_own_network and as_text(node).removeprefix("CAP_") == _OF_NETWORK:
            continue
        if as_text(node) in names:
            yield Violation(
                node, f"capability `{as_text(node)}` gives container `{container.name}` control of its node; remove it"
            )


_TEMPLATES = ("spec", "template", "spec", "replicatedJobs", "*", "template", "spec", "template")
_SEVERITIES = {"enforce": ERROR, "warn": WARNING, "audit": INFO}


@rule("cluster", ERROR)
def pod_security_violation(manifest: Manifest, state: ClusterState) -> Iterator[Violation]:
    """A pod that the Pod Security level of its namespace forbids.

    The labels `pod-security.kubernetes.io/enforce`, `warn` and `audit` of a Namespace in the repository, or in the
    folder `cluster.state`, apply to every pod of the namespace. With `enforce`, the API server accepts the job and
    refuses its pods, so the job never starts: an error. With `warn` it is a warning, with `audit` an info.

    The pods of a TrainJob come from its runtime, so its runtime is also checked, if it is known.

    Apply the fix in the message, or move the job to a namespace whose level allows it.
    """
    from jobgen.check.pod_security.checks import find_breaches

    reported: set[tuple[int, str]] = set()
    for level, label in state.levels.get(manifest.namespace, ()):
        minor = min(level.minor, state.release[1])
        for pod in manifest.pods:
            for breach in find_breaches(pod.metadata, pod.spec, level.level, minor):
                # The rest of such a pod may have what is missing.
                if (pod.partial and breach.is_missing) or (id(breach.node), breach.fault) in reported:
                    continue
                reported.add((id(breach.node), breach.fault))
                message = _format_message(breach, level, manifest.namespace)
                related = ((label, f"namespace `{manifest.namespace}` sets `{level.mode}: {level.level}`"),)
                yield Violation(breach.node, message, related, _SEVERITIES[level.mode])
        if manifest.kind_name == "TrainJob":
            yield from _check_runtime(manifest, level, state)


def _check_runtime(manifest: Manifest, level: Level, state: ClusterState) -> Iterator[Violation]:
    """Report a runtime whose pods the level forbids, at the reference to it; the first fault stands for all."""
    from jobgen.check.cluster.pod_resources import find_runtime
    from jobgen.check.pod_security.checks import find_breaches

    runtime = find_runtime(manifest, state)
    name = as_text(get_path(manifest.spec, "runtimeRef", "name"))
    # The job may add what the runtime lacks.
    is_patched = any(manifest.spec.get(field) for field in ("podTemplateOverrides", "runtimePatches", "trainer"))
    templates = [as_mapping(found) for found in find_nodes(runtime, _TEMPLATES)]
    breaches = [
        breach
        for template in templates
        for breach in find_breaches(
            template.get("metadata"), template.get("spec"), level.level, min(level.minor, state.release[1])
        )
        if not (breach.is_missing and is_patched)
    ]
    if breaches:
        more = f" (and {len(breaches) - 1} more)" if len(breaches) > 1 else ""
        message = (
            f"the pods of runtime `{name}` are refused{more}: {_format_message(breaches[0], level, manifest.namespace)}"
        )
        related = ((breaches[0].node, f"in runtime `{name}`"),)
        yield Violation(get_path(manifest.spec, "runtimeRef", "name"), message, related, _SEVERITIES[level.mode])


def _format_message(breach: Breach, level: Level, namespace: str) -> str:
    verb = "requires" if breach.is_missing else "forbids"
    version = "" if level.version == "latest" else f" of `{level.version}`"
    reason = f"the Pod Security level `{level.level}`{version} of namespace `{namespace}` {verb}"
    return f"{breach.fault}, which {reason}; {breach.remedy}"


_PREFIX = "pod-security.kubernetes.io/"


@rule("manifest", WARNING, kinds=("Namespace",))
def pod_security_label_typo(manifest: Manifest) -> Iterator[Violation]:
    """A Namespace label that starts like a Pod Security label but is not one.

    The API server ignores such a label, so the namespace is not protected.

    The labels are `enforce`, `warn` and `audit`, each with `-version` or without, after `pod-security.kubernetes.io/`.
    """
    keys = [key for key in manifest.labels if key.startswith(_PREFIX)]
    if not keys:
        return
    from jobgen.check.pod_security.checks import LABELS

    for key in keys:
        if key not in LABELS:
            hint = did_you_mean(key, list(LABELS)) or "; the modes are `enforce`, `warn` and `audit`"
            yield Violation(key, f"`{key}` is not a Pod Security label{hint}")

"""Privileges of containers, and the Pod Security level of their namespace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jobgen.check.rules import ERROR, INFO, WARNING, Violation, rule
from jobgen.k8s.node_agents import is_node_agent, list_capabilities
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, find_nodes, get_path
from jobgen.k8s.objects import Container, Manifest
from jobgen.model.place import At, find_at, identify
from jobgen.model.sentence import Sentence
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

    When to turn it off: low-level diagnosis of devices needs it now and then: suppress it on the field with an end
    date, or declare the program as an agent of the node in its own DaemonSet.
    """
    place = find_at(container.data, "securityContext", "privileged")
    if place is not None and place.node is True and not is_node_agent(container.pod):
        message = Sentence("privileged container `{}` has full control of its node", container.name)
        yield Violation(place, Sentence("{}; {}", message, _describe_remedy(container)))


def _describe_remedy(container: Container) -> str:
    """Return what the container needs instead, as far as the pod shows what it is privileged for."""
    if any(sign in str(name) for name in (*container.limits, *container.requests) for sign in _FABRIC):
        return "for RDMA, `IPC_LOCK` is enough"
    if any(as_text(get_path(volume, "hostPath", "path")).startswith(_DEVICES) for volume in container.pod.volumes):
        return "request the devices from a device plugin, and remove `privileged`"
    return "remove `privileged`"


@rule("manifest", ERROR, words=("runAsNonRoot",))
def forbidden_root_user(manifest: Manifest) -> Iterator[Violation]:
    """A container that runs as root, though it or its pod has `runAsNonRoot: true`.

    The API server accepts the pod. The kubelet starts no container of it that is root: the pod stays in
    `CreateContainerConfigError` with `container's runAsUser breaks non-root policy`. What a container does not set
    itself, it has from its pod.

    Write the number of another user, who can read and write the volumes, or remove `runAsNonRoot`.

    When to turn it off: never needed: a container of root with `runAsNonRoot: true` never starts.
    """
    seen: set[int] = set()
    for pod in manifest.pods:
        shared = as_mapping(pod.spec.get("securityContext"))
        for container in pod.all_containers:
            own = as_mapping(container.data.get("securityContext"))
            demand, user = (own if own.get(field) is not None else shared for field in ("runAsNonRoot", "runAsUser"))
            is_root = as_integer(user.get("runAsUser")) == 0 and demand.get("runAsNonRoot") is True
            if is_root and id(user) not in seen:
                seen.add(id(user))
                message = (
                    "`runAsUser: 0` is root, which `runAsNonRoot: true` forbids, so that the container never starts"
                )
                advice = "write another user, such as `1000`, or remove `runAsNonRoot`"
                related = ((At(demand, "runAsNonRoot"), "root is forbidden here"),) if demand is not user else ()
                yield Violation(At(user, "runAsUser"), Sentence("{}; {}", message, advice), related)


# With a network namespace of its own, a container manages that namespace and nothing of the node.
_OF_NETWORK = "NET_ADMIN"


@rule("container", WARNING, fields=("securityContext",))
def dangerous_capability(container: Container) -> Iterator[Violation]:
    """A capability that lets a container take control of its node, such as `SYS_ADMIN`.

    Training needs none of them; RDMA needs `IPC_LOCK`, and debuggers need `SYS_PTRACE`. Many clusters reject such pods;
    the Pod Security level `baseline` does. `node-agent` reports agents of the node, such as DaemonSets. `NET_ADMIN` is
    not reported for pods that do not train and have a network of their own, such as VPN clients and proxies.

    Remove the capability.

    When to turn it off: a profiler such as Nsight needs `SYS_ADMIN` on older drivers. Suppress it on the capability
    for the days of the measurement, with `until`.
    """
    names = list_capabilities(container)
    if not names or is_node_agent(container.pod):
        return
    pod = container.pod
    has_own_network = pod.manifest.kind is None and pod.spec.get("hostNetwork") is not True
    added = as_list(get_path(container.data, "securityContext", "capabilities", "add"))
    for index, node in enumerate(added):
        if has_own_network and as_text(node).removeprefix("CAP_") == _OF_NETWORK:
            continue
        # Habana documents this one for the tools of its devices.
        if as_text(node).removeprefix("CAP_") == "SYS_RAWIO" and any("habana.ai/" in key for key in container.devices):
            continue
        if as_text(node) in names:
            message = Sentence(
                "capability `{}` gives container `{}` control of its node; remove it", as_text(node), container.name
            )
            yield Violation(At(added, index), message)


_TEMPLATES = ("spec", "template", "spec", "replicatedJobs", "*", "template", "spec", "template")
_SEVERITIES = {"enforce": ERROR, "warn": WARNING, "audit": INFO}


@rule("cluster", ERROR)
def pod_security_violation(manifest: Manifest, state: ClusterState) -> Iterator[Violation]:
    """A pod that the Pod Security level of its namespace forbids.

    The labels `pod-security.kubernetes.io/enforce`, `warn` and `audit` of a Namespace in the repository, or in the
    folder `cluster.state`, apply to every pod of the namespace. With `enforce`, the API server accepts the job and
    refuses its pods, so the job never starts: an error. With `warn` it is a warning, with `audit` an info.

    The pods of a TrainJob come from its runtime, so its runtime is also checked, if it is known.

    Change the field that the level forbids, such as `runAsNonRoot` or `capabilities`, or move the job to a
    namespace whose level allows it.

    When to turn it off: for a namespace whose labels were changed in the cluster, export the state again. An
    exemption in the API server's configuration, which no file shows, is a reason to accept it for these namespaces.
    """
    from jobgen.check.pod_security.checks import find_breaches

    reported: set[tuple[object, str]] = set()
    for level, label in state.levels.get(manifest.namespace, ()):
        minor = min(level.minor, state.release[1])
        for pod in manifest.pods:
            for breach in find_breaches(pod.metadata, pod.spec, level.level, minor):
                # The rest of such a pod may have what is missing.
                if (pod.partial and breach.is_missing) or (identify(breach.node), breach.fault) in reported:
                    continue
                reported.add((identify(breach.node), breach.fault))
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
        message = Sentence(
            "the pods of runtime `{}` are refused{}: {}",
            name,
            more,
            _format_message(breaches[0], level, manifest.namespace),
        )
        related = ((breaches[0].node, f"in runtime `{name}`"),)
        yield Violation(find_at(manifest.spec, "runtimeRef", "name"), message, related, _SEVERITIES[level.mode])


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

    When to turn it off: a label of another product under this prefix does not exist; the prefix belongs to
    Kubernetes. So correct it or remove it.
    """
    keys = [key for key in manifest.labels if key.startswith(_PREFIX)]
    if not keys:
        return
    from jobgen.check.pod_security.checks import LABELS

    for key in keys:
        if key not in LABELS:
            hint = did_you_mean(key, list(LABELS)) or "; the modes are `enforce`, `warn` and `audit`"
            yield Violation(
                At(manifest.labels, key, is_key=True), Sentence("`{}` is not a Pod Security label{}", key, hint)
            )

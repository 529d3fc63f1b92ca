"""Flavors without nodes, and pods that no node has room for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.devices import is_device
from jobgen.k8s.kueue import get_kueue_queue
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest, Pod
from jobgen.model.data import Plain
from jobgen.model.place import At, find_at
from jobgen.model.quantity import to_milli
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import did_you_mean

if TYPE_CHECKING:
    from jobgen.features.kueue.queue_state import QueueState


@rule("queue", WARNING, kinds=("ResourceFlavor",))
def flavor_without_nodes(manifest: Manifest, queues: QueueState) -> Iterator[Violation]:
    """A ResourceFlavor whose `nodeLabels` no node has.

    Kueue gives the pods of an admitted job the labels of the flavor as node selector. Without such a node they stay
    pending, and the job holds its quota. Nodes are known from the files and from `cluster.kueue.nodes`; without
    any, nothing is reported. Nodes that an autoscaler adds later are not known; list them in `nodes`.

    Correct the labels, or add the nodes.

    When to turn it off: with an autoscaler that starts from zero nodes, list the shape of its nodes under
    `cluster.kueue.nodes`; then the check knows them.
    """
    labels = as_mapping(manifest.spec.get("nodeLabels"))
    nodes = queues.node_labels
    wanted = {str(key): as_text(value) for key, value in labels.items()}
    if not wanted or not nodes or any(wanted.items() <= each.items() for each in nodes):
        return
    for key, value in wanted.items():
        values = sorted({each[key] for each in nodes if key in each})
        if not values:
            hint = did_you_mean(key, sorted({name for each in nodes for name in each}))
            message = Sentence(
                "no node has the label `{}` of the flavor, so pods that Kueue admits to it stay pending", key
            )
            yield Violation(
                At(labels, key, is_key=True), Sentence("{}{}", message, hint or "; correct the label, or add nodes")
            )
            return
        if value not in values:
            shown = ", ".join(f"`{each}`" for each in values[:5])
            message = Sentence(
                "no node has the label `{}: {}` of the flavor, so pods that Kueue admits to it stay pending", key, value
            )
            yield Violation(At(labels, key), Sentence("{}; nodes have {}", message, shown))
            return
    message = Sentence("no node has all `nodeLabels` of the flavor, so pods that Kueue admits to it stay pending")
    yield Violation(
        At(manifest.spec, "nodeLabels", is_key=True), Sentence("{}; correct the labels, or add nodes", message)
    )


@rule("queue", WARNING)
def larger_than_nodes(manifest: Manifest, queues: QueueState) -> Iterator[Violation]:
    """A pod with devices that no known node can run: none has as many, the labels, or a taint that it tolerates.

    All devices of a pod are devices of one node, and each container has its own: two containers cannot share one by
    requesting one each. If no node has as many, the pod stays `Pending`, also after Kueue has admitted the job, and the
    job holds its quota. So does a pod whose node selector no node matches, and one that does not tolerate a taint of
    all nodes with enough devices; Kueue can add both when it admits a job, so this is checked for jobs without a queue.
    The rule applies if nodes are known: Node objects are among the files, or `cluster.kueue.nodes` lists them. It is a
    warning, because an autoscaler can add larger nodes; list them in `nodes`. Resources that no known node has are not
    reported.

    Request at most as many devices as a node has, and use more pods.

    When to turn it off: for nodes that an autoscaler creates on demand, list one of them in `cluster.kueue.nodes`.
    For a job that waits for new hardware, accept it with a date.
    """
    if not queues.largest_nodes:
        return
    for pod in manifest.pods:
        found = _find_excess(pod, queues) or (None if get_kueue_queue(manifest) else _find_mismatch(pod, queues))
        # Kueue's own decision names the topology, or the quota, that the job does not fit into.
        if found and not queues.find_obstacle(manifest.object):
            yield found
            return


def _find_excess(pod: Pod, queues: QueueState) -> Violation | None:
    """Find more devices in one pod than the largest node has."""
    total: dict[str, int] = {}
    for container in (*pod.containers, *pod.init_containers):
        for name, value in {**container.requests, **container.limits}.items():
            place = At(container.limits if name in container.limits else container.requests, name)
            most, wanted = queues.largest_nodes.get(str(name), 0), to_milli(value) or 0
            if not is_device(str(name)) or not most:
                continue
            if wanted > most:
                message = Sentence(
                    "{} `{}` in one pod, but the largest node has {}", wanted // 1000, name, most // 1000
                )
                return Violation(place, Sentence("{}; request at most {}, and use more pods", message, most // 1000))
            if container.init and not container.is_sidecar:
                continue
            total[str(name)] = total.get(str(name), 0) + wanted
            if total[str(name)] > most:
                message = Sentence(
                    "the containers of the pod request {} `{}` together, but the", total[str(name)] // 1000, name
                )
                message += f" largest node has {most // 1000}; containers cannot share a GPU by requesting one each"
                return Violation(place, Sentence("{}: request it in one container", message))
    return None


def _find_mismatch(pod: Pod, queues: QueueState) -> Violation | None:
    """Find a node selector that no node matches, or a taint of all nodes with enough devices."""
    from jobgen.features.kueue.match import is_blocking, is_tolerated

    devices = {name: count for name, count in pod.devices.items() if count and name in queues.largest_nodes}
    if not devices or pod.partial:
        return None
    nodes = [node for node in queues.known.list_nodes() if _has_room(node, devices)]
    selector = as_mapping(pod.spec.get("nodeSelector"))
    for key, value in selector.items():
        kept = [node for node in nodes if as_text(get_path(node, "metadata", "labels", str(key))) == as_text(value)]
        if nodes and not kept:
            what = " and ".join(f"{count} `{name}`" for name, count in devices.items())
            message = Sentence(
                "no known node with {} has the label `{}: {}`, so the pod stays `Pending`", what, key, as_text(value)
            )
            return Violation(At(selector, key), Sentence("{}; correct the label, or add such nodes", message))
        nodes = kept
    tolerations = [dict(as_mapping(each)) for each in as_list(pod.spec.get("tolerations"))]
    taints: list[Mapping[str, Any]] = []
    for node in nodes:
        # Some clusters add a toleration for the resource that a pod requests.
        several = [each for each in as_list(get_path(node, "spec", "taints")) if isinstance(each, dict)]
        blocking = [each for each in several if is_blocking(each) and as_text(each.get("key")) not in devices]
        taints += [each for each in blocking if not is_tolerated(each, tolerations)][:1]
    if not nodes or len(taints) < len(nodes):
        return None
    taint = taints[0]
    shown = f"{as_text(taint.get('key'))}={as_text(taint.get('value'))}:{as_text(taint.get('effect'))}"
    message = Sentence(
        "all known nodes with enough devices have the taint `{}`, which the pod does not tolerate", shown
    )
    main = pod.main_container
    place = find_at(pod.spec, "tolerations", is_key=True) or (main.device_place if main else None)
    return Violation(place or find_at(pod.template, "spec", is_key=True), Sentence("{}; add a toleration", message))


@rule("queue", WARNING, kinds=("Deployment",))
def stuck_rollout(manifest: Manifest, queues: QueueState) -> Iterator[Violation]:
    """A Deployment whose update waits forever, because its own pods take all devices of the nodes.

    With the default strategy, a new pod must be ready before an old one is stopped, unless `maxUnavailable` is at least
    one pod; 25% of fewer than four pods are none. If the known nodes have no device to spare for the new pod, it stays
    `Pending`, and the old one runs on. The rule applies if nodes are known, as `larger-than-nodes` does; it looks at
    the pods of this Deployment alone.

    Use `strategy: {type: Recreate}`, or `maxSurge: 0` with `maxUnavailable: 1`, or add a node.

    When to turn it off: when free nodes are added by an autoscaler during an update, list their shape in
    `cluster.kueue.nodes`; a maintenance window with manual steps is a reason for a suppression.
    """
    written = manifest.spec.get("replicas")
    replicas = 1 if written is None else as_integer(written)
    strategy = as_mapping(manifest.spec.get("strategy"))
    if not queues.largest_nodes or not replicas or as_text(strategy.get("type")) == "Recreate":
        return
    rolling = as_mapping(strategy.get("rollingUpdate"))
    if _count_share(rolling.get("maxUnavailable"), replicas, rounds_up=False) != 0:
        return
    surge = _count_share(rolling.get("maxSurge"), replicas, rounds_up=True)
    for pod in manifest.pods if surge else ():
        devices = {name: count for name, count in pod.devices.items() if count and name in queues.largest_nodes}
        room = sum(_count_pods(node, devices) for node in queues.known.list_nodes()) if devices else 0
        main = pod.main_container
        if replicas <= room < replicas + 1 and main is not None:
            shown = "its pod takes" if replicas == 1 else f"its {replicas} pods take"
            what = " and ".join(f"`{name}`" for name in devices)
            message = Sentence(
                "{} all {} of the known nodes, so the new pod of an update stays `Pending` and the old one", shown, what
            )
            place = find_at(manifest.spec, "strategy", is_key=True) or main.device_place
            yield Violation(
                place, Sentence("{} is never stopped; use `strategy: {{type: Recreate}}`, or `maxSurge: 0`", message)
            )


_DEFAULT_SHARE = "25%"


def _count_share(node: Plain, replicas: int, *, rounds_up: bool) -> int | None:
    """Return how many pods a number or percentage stands for; None if it is neither."""
    if (number := as_integer(node)) is not None:
        return number
    text = as_text(node) or _DEFAULT_SHARE
    if not text.endswith("%") or not text[:-1].isdecimal() or len(text) > 6:
        return None
    return -(-int(text[:-1]) * replicas // 100) if rounds_up else int(text[:-1]) * replicas // 100


def _count_pods(node: Mapping[str, Any], devices: Mapping[str, int]) -> int:
    """Return how many pods with some devices a node has room for."""
    status = as_mapping(node.get("status"))
    amounts = as_mapping(status.get("allocatable") or status.get("capacity"))
    return min((to_milli(amounts.get(name)) or 0) // (count * 1000) for name, count in devices.items())


def _has_room(node: Mapping[str, Any], devices: Mapping[str, int]) -> bool:
    status = as_mapping(node.get("status"))
    amounts = as_mapping(status.get("allocatable") or status.get("capacity"))
    return all((to_milli(amounts.get(name)) or 0) >= count * 1000 for name, count in devices.items())

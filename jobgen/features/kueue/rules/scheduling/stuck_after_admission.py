"""Jobs that Kueue admits, but whose pods do not start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.kueue import get_kueue_queue
from jobgen.k8s.kueue_integrations import MULTIKUEUE
from jobgen.k8s.nodes import as_list, as_mapping, as_text, find_nodes, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Node, untraced

if TYPE_CHECKING:
    from jobgen.features.kueue.queue_state import QueueState

_HOST = "kubernetes.io/hostname"


@rule("queue", WARNING)
def stuck_after_admission(manifest: Manifest, queues: QueueState) -> Iterator[Violation]:
    """A job that Kueue admits, but whose pods do not start, so that it holds its quota.

    - The queue's topology has no level `kubernetes.io/hostname`. Kueue then does not look at the taints of single
      nodes: it counts nodes whose taints the pods do not tolerate as free, and sends pods there. The rule applies if
      Node objects are among the files, or `cluster.kueue.nodes` lists nodes.
    - Flavors of two resource groups set the same node label to different values. Pods that use both get only one of
      them as node selector, and cannot run on the nodes of the other.
    - `managedBy` of the job is MultiKueue, but its queue has no such admission check: no cluster runs the job.

    Add the level to the Topology, or a toleration to the flavor; use one flavor for the labels; remove `managedBy`.
    """
    label = get_kueue_queue(manifest)
    queue = queues.find_cluster_queue(untraced(manifest.object)) if label is not None else {}
    if not queue:
        return
    groups = [as_mapping(group) for group in as_list(get_path(queue, "spec", "resourceGroups"))]
    flavors = [[_find_flavor(each, queues) for each in as_list(group.get("flavors"))] for group in groups]
    yield from _check_taints(manifest, [each for several in flavors for each in several], queues)
    yield from _check_labels(manifest, groups, flavors)
    yield from _check_manager(manifest, queue, queues)


def _find_flavor(item: Node, queues: QueueState) -> Mapping[str, Node]:
    return queues.objects.get(("ResourceFlavor", "", as_text(as_mapping(item).get("name"))), {})


def _check_taints(manifest: Manifest, flavors: list[Mapping[str, Node]], queues: QueueState) -> Iterator[Violation]:
    from jobgen.features.kueue.match import is_blocking, is_tolerated

    for flavor in flavors:
        spec = as_mapping(flavor.get("spec"))
        topology = as_text(spec.get("topologyName"))
        levels = as_list(get_path(queues.objects.get(("Topology", "", topology), {}), "spec", "levels"))
        if not levels or as_text(as_mapping(levels[-1]).get("nodeLabel")) == _HOST:
            continue
        for pod in manifest.pods:
            several = (*as_list(spec.get("tolerations")), *as_list(pod.spec.get("tolerations")))
            tolerations = [dict(as_mapping(untraced(each))) for each in several]
            kept = (
                next((each for each in node if is_blocking(each) and not is_tolerated(each, tolerations)), None)
                for node in _list_taints(spec, queues)
            )
            taints = [taint for taint in kept if taint is not None]
            if taints:
                shown = f"{taints[0].get('key', '')}={taints[0].get('value') or ''}:{taints[0].get('effect', '')}"
                message = f"topology `{topology}` has no level `{_HOST}`, so Kueue counts {len(taints)}"
                message += f" {'node' if len(taints) == 1 else 'nodes'} with the taint `{shown}`, which the pods do not"
                message += " tolerate, as free, and pods sent there stay Pending; add the level, and a toleration"
                related = ((levels[-1], "the lowest level"),)
                yield Violation(get_kueue_queue(manifest), message, related, evidence=())
                return


def _list_taints(flavor: Mapping[str, Node], queues: QueueState) -> Iterator[list[dict[str, Any]]]:
    """Yield the taints of each node that has the labels of a flavor."""
    wanted = {str(key): as_text(value) for key, value in as_mapping(flavor.get("nodeLabels")).items()}
    for node in queues.known.list_nodes():
        labels = {str(key): str(value) for key, value in as_mapping(get_path(node, "metadata", "labels")).items()}
        if wanted.items() <= labels.items():
            yield [dict(as_mapping(each)) for each in as_list(get_path(node, "spec", "taints"))]


def _check_labels(
    manifest: Manifest, groups: list[Mapping[str, Node]], flavors: list[list[Mapping[str, Node]]]
) -> Iterator[Violation]:
    """Check groups with one flavor each: which of several Kueue chooses is not known."""
    chosen: dict[str, tuple[str, str]] = {}
    for group, several in zip(groups, flavors, strict=True):
        covered = set(map(as_text, as_list(group.get("coveredResources"))))
        uses = any(covered & {*each.requests, *each.limits} for pod in manifest.pods for each in pod.containers)
        if len(several) != 1 or not uses:
            continue
        name = as_text(get_path(several[0], "metadata", "name"))
        for key, node in as_mapping(get_path(several[0], "spec", "nodeLabels")).items():
            value, other = chosen.setdefault(str(key), (as_text(node), name))
            if value != as_text(node):
                message = f"flavors `{other}` and `{name}` of the queue set the node label `{key}` to `{value}` and"
                message += f" `{as_text(node)}`, and pods get only one of them, so they cannot run on both"
                related = ((node, f"flavor `{name}`"),)
                yield Violation(get_kueue_queue(manifest), f"{message}; use equal labels", related, evidence=())
                return


def _check_manager(manifest: Manifest, queue: Mapping[str, Node], queues: QueueState) -> Iterator[Violation]:
    paths = (("managedBy",), ("runPolicy", "managedBy"))
    node = next((found for path in paths for found in find_nodes(manifest.spec, path)), None)
    checks = as_list(get_path(queue, "spec", "admissionChecks"))
    strategy = as_list(get_path(queue, "spec", "admissionChecksStrategy", "admissionChecks"))
    names = {*map(as_text, checks), *(as_text(as_mapping(each).get("name")) for each in strategy)}
    known = {name: queues.objects.get(("AdmissionCheck", "", name)) for name in names if name}
    controllers = [as_text(get_path(check or {}, "spec", "controllerName")) for check in known.values()]
    # A check that is not among the files may be one of MultiKueue.
    if as_text(node) == MULTIKUEUE and MULTIKUEUE not in controllers and "" not in controllers:
        message = f"`managedBy` is `{MULTIKUEUE}`, but the queue has no admission check of MultiKueue, so no controller"
        yield Violation(node, f"{message} runs the job after its admission; remove `managedBy`", evidence=(MULTIKUEUE,))

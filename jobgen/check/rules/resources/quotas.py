"""Quotas and limit ranges of a namespace."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.nodes import as_list, as_mapping
from jobgen.k8s.objects import Manifest, Pod
from jobgen.model.data import Plain
from jobgen.model.place import At
from jobgen.model.sentence import Sentence

if TYPE_CHECKING:
    from jobgen.check.cluster.state import ClusterState


@rule("cluster", ERROR)
def exceeds_limit_range(manifest: Manifest, state: ClusterState) -> Iterator[Violation]:
    """A request or limit outside the bounds of a LimitRange in the namespace.

    LimitRanges of the repository, or of the folder `cluster.state`, apply to the containers, pods and claims of their
    namespace, after the defaults that they set. The API server refuses what is out of bounds, so the job never starts.

    Write an amount within the bounds, or change the LimitRange.

    When to turn it off: if the LimitRange in the files is not the one in the cluster, export the state again with
    `jobgen capture`; while both change together, merge the LimitRange first.
    """
    limit_ranges = state.limit_ranges.get(manifest.namespace, ())
    if not limit_ranges:
        return
    from jobgen.check.cluster.pod_resources import check_claim, check_pod, resolve_pod_resources
    from jobgen.check.cluster.state import show_name

    pods = [
        (resolve_pod_resources(pod, limit_ranges, state.release), pod.spec or pod.template)
        for pod in manifest.pods
        if not pod.partial
    ]
    for limit_range in limit_ranges:
        in_pods = (each for resources, place in pods for each in check_pod(resources, limit_range, place))
        claims = _list_claims(manifest)
        in_claims = (each for requests, place in claims for each in check_claim(requests, place, limit_range))
        for each in chain(in_pods, in_claims):
            related = ((each.bound, f"LimitRange `{show_name(limit_range)}`"),)
            yield Violation(each.node, each.message, related)


def _list_claims(manifest: Manifest) -> Iterator[tuple[Plain, Any]]:
    """Yield the requests of the claims that an object is or creates, each with a node for one that is missing."""
    specs: list[Plain] = [manifest.spec] if manifest.kind_name == "PersistentVolumeClaim" else []
    specs += [as_mapping(claim).get("spec") for claim in as_list(manifest.spec.get("volumeClaimTemplates"))]
    specs += [spec for pod in manifest.pods for spec in _list_ephemeral(pod)]
    for spec in map(as_mapping, specs):
        yield as_mapping(spec.get("resources")).get("requests"), spec


def _list_ephemeral(pod: Pod) -> Iterator[Plain]:
    for volume in pod.volumes:
        template = as_mapping(as_mapping(volume.get("ephemeral")).get("volumeClaimTemplate"))
        if template:
            yield template.get("spec")


@rule("cluster", ERROR)
def exceeds_quota(manifest: Manifest, state: ClusterState) -> Iterator[Violation]:
    """Objects that together need more than a ResourceQuota of their namespace allows.

    ResourceQuotas of the repository, or of the folder `cluster.state`, are compared with the sum of what the repository
    creates in an environment: pods times replicas, claims and other objects, with the defaults of LimitRanges. The API
    server refuses the objects that come last. If a quota limits CPU or memory, it also refuses pods that do not declare
    them. Suspended jobs create no pods. If only jobs in queues of Kueue exceed a quota together, it is a warning,
    because Kueue can start some of them later. In folders without `jobgen.yaml`, an object of another file counts if it
    exceeds the quota alone; where the quota is in another folder, that is a warning.

    Request less, suspend some of the jobs, or raise the quota.

    When to turn it off: jobs that never run at the same time can exceed a quota together. Put them into a queue of
    Kueue, for which the sum is only a warning, or accept them for their `paths` with a date.
    """
    from jobgen.check.cluster.quotas import find_missing_amounts
    from jobgen.check.cluster.state import show_name

    for missing in find_missing_amounts(manifest, state):
        name = show_name(missing.quota)
        owner = f" of namespace `{manifest.namespace}`" if manifest.namespace else ""
        message = Sentence(
            "container `{}` sets no `{}`, but quota `{}`{} limits it, so",
            missing.container,
            missing.resource,
            name,
            owner,
        )
        message += " the pod is refused; set it"
        yield Violation(missing.node, message, ((missing.quota, f"quota `{name}`"),))


_COUNTED = (".storageclass.storage.k8s.io/", ".deviceclass.resource.k8s.io/")


@rule("manifest", WARNING, kinds=("ResourceQuota",))
def ineffective_quota(manifest: Manifest) -> Iterator[Violation]:
    """A device or other extended resource in a ResourceQuota without the prefix `requests.`.

    Kubernetes counts extended resources such as `nvidia.com/gpu` only under their requests. It accepts another key and
    never enforces it, so the namespace has no limit.

    Write `requests.nvidia.com/gpu`.

    When to turn it off: never useful: Kubernetes does not count the key. A quota kept for documentation can be an
    annotation.
    """
    hard = as_mapping(manifest.spec.get("hard"))
    for key in hard:
        if "/" not in key or key.startswith(("requests.", "count/")) or any(part in key for part in _COUNTED):
            continue
        name = f"requests.{key.removeprefix('limits.')}"
        yield Violation(
            At(hard, key, is_key=True), Sentence("a quota for `{}` is never enforced; write `{}`", key, name)
        )

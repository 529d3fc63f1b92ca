"""Pods and claims that a LimitRange of their namespace refuses."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.nodes import as_list, as_mapping
from jobgen.k8s.objects import Manifest, Pod
from jobgen.model.data import Node

if TYPE_CHECKING:
    from jobgen.check.cluster.state import ClusterState


@rule("cluster", ERROR)
def exceeds_limit_range(manifest: Manifest, state: ClusterState) -> Iterator[Violation]:
    """A request or limit outside the bounds of a LimitRange in the namespace.

    LimitRanges of the repository, or of the folder `cluster.state`, apply to the containers, pods and claims of their
    namespace, after the defaults that they set. The API server refuses what is out of bounds, so the job never starts.

    Write an amount within the bounds, or change the LimitRange.
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


def _list_claims(manifest: Manifest) -> Iterator[tuple[Node, Node]]:
    """Yield the requests of the claims that an object is or creates, each with a node for one that is missing."""
    specs: list[Node] = [manifest.spec] if manifest.kind_name == "PersistentVolumeClaim" else []
    specs += [as_mapping(claim).get("spec") for claim in as_list(manifest.spec.get("volumeClaimTemplates"))]
    specs += [spec for pod in manifest.pods for spec in _list_ephemeral(pod)]
    for spec in map(as_mapping, specs):
        yield as_mapping(spec.get("resources")).get("requests"), spec


def _list_ephemeral(pod: Pod) -> Iterator[Node]:
    for volume in pod.volumes:
        template = as_mapping(as_mapping(volume.get("ephemeral")).get("volumeClaimTemplate"))
        if template:
            yield template.get("spec")

"""Pods in an object of a version that the cluster does not serve: a new version of its kind has them unchanged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobgen.check.schema.shipped import find_shipped_schema
from jobgen.k8s.nodes import as_list
from jobgen.k8s.objects import Manifest, Pod
from jobgen.model.data import Plain
from jobgen.model.finding import Problem


def find_pods(manifest: Manifest) -> Iterator[Pod]:
    """The pod templates below `spec`, wherever the old version has them."""
    nodes: list[Plain] = [manifest.spec]
    while nodes:
        node = nodes.pop()
        if not isinstance(node, dict):
            nodes += reversed(as_list(node))
            continue
        spec = node.get("spec")
        if isinstance(spec, dict) and isinstance(spec.get("containers"), list):
            yield Pod(node, manifest)
        else:
            nodes += reversed([*node.values()])


def check_fields(pod: Pod) -> list[Problem]:
    """What the API server refuses in the fields of a pod template."""
    shipped = find_shipped_schema("v1", "PodTemplate", pod.manifest.cluster)
    template: Mapping[str, Plain] = {"apiVersion": "v1", "kind": "PodTemplate", "template": pod.template}
    return shipped.check(template) if shipped else []

"""Annotations and labels whose values controllers take for something else."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_mapping
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Node, value_of
from jobgen.model.suggest import list_alternatives


class _Values(NamedTuple):
    """The values that a controller knows, and what it does with any other."""

    known: tuple[str, ...]
    otherwise: str


_SWITCH = ("true", "false")
_KUEUE, _RAY = "kueue.x-k8s.io/", "ray.io/"
# Controllers compare these texts exactly, and say nothing about others.
_ANNOTATIONS: Mapping[str, _Values] = {
    f"{_KUEUE}elastic-job": _Values(_SWITCH, "Kueue takes it for `false`, so the job cannot be resized"),
    f"{_KUEUE}elastic-job-scale-up-strategy": _Values(
        ("atomic", "partial"), "Kueue takes it for `atomic`, so the job never grows by parts"
    ),
    f"{_KUEUE}pod-group-fast-admission": _Values(_SWITCH, "Kueue takes it for `false` and waits for all pods"),
    f"{_KUEUE}pod-group-serving": _Values(_SWITCH, "Kueue takes it for `false`, so the group ends with its pods"),
    f"{_KUEUE}retriable-in-group": _Values(_SWITCH, "Kueue takes it for `true` and waits for another pod"),
    f"{_KUEUE}safe-to-forcefully-delete": _Values(_SWITCH, "Kueue takes it for `false` and does not delete the pod"),
    f"{_RAY}disable-provisioned-head-restart": _Values(_SWITCH, "KubeRay takes it for `false`"),
    f"{_RAY}enable-serve-service": _Values(_SWITCH, "KubeRay takes it for `false` and creates no Service"),
    "cluster-autoscaler.kubernetes.io/safe-to-evict": _Values(
        _SWITCH, "the cluster autoscaler ignores it, so it can evict the pod"
    ),
    "karpenter.sh/do-not-disrupt": _Values(_SWITCH, "Karpenter ignores it, so it can evict the pod"),
}
# The value does not count, so `false` turns it on.
_PRESENT = {
    f"{_RAY}gang-scheduling-enabled": "KubeRay turns gang scheduling on for any value",
    "alpha.jobset.sigs.k8s.io/node-selector": "JobSet uses node selectors for any value",
}


@rule("manifest", WARNING)
def misread_annotation(manifest: Manifest) -> Iterator[Violation]:
    """An annotation or label with a value that its controller silently takes for another one.

    Some controllers compare a value with one text, and take any other for the default: `Partial` is not `partial`, and
    `"True"` is not `"true"`. Others ask only if the key exists, so `"false"` turns the feature on. No
    webhook complains about these values.

    Write one of the values that the message names, exactly; or remove the key.
    """
    metadata = (manifest.metadata, *(pod.metadata for pod in manifest.pods))
    for each in metadata:
        for key, node in as_mapping(each.get("annotations")).items():
            if key in _ANNOTATIONS:
                yield from _check(key, node, _ANNOTATIONS[key])
        for field in ("annotations", "labels"):
            for key, node in as_mapping(each.get(field)).items():
                if key in _PRESENT and str(value_of(node)).lower() == "false":
                    yield Violation(node, f"`{key}` is `{value_of(node)}`, but {_PRESENT[key]}; remove it")


def _check(key: str, node: Node, values: _Values) -> Iterator[Violation]:
    written = value_of(node)
    # The API server rejects what is no text.
    if not isinstance(written, str) or written in values.known:
        return
    close = [known for known in values.known if known == written.strip().lower()]
    remedy = list_alternatives(f"`{known}`" for known in close or values.known)
    message = f"`{key}` has the unknown value `{written}`; {values.otherwise}; write {remedy}"
    yield Violation(node, message)

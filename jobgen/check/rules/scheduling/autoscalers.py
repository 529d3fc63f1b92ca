"""Autoscalers that change nothing: pods and their GPUs stay, or never come."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.k8s.workloads import RAY_CLUSTERS
from jobgen.model.place import At
from jobgen.model.sentence import Sentence

_OF_PODS = frozenset(("cpu", "memory"))


@rule("manifest", WARNING, kinds=("HorizontalPodAutoscaler", "ScaledObject", *RAY_CLUSTERS))
def autoscaler_without_effect(manifest: Manifest) -> Iterator[Violation]:
    """An autoscaler that cannot change the number of pods, or never down to zero.

    With the same least and greatest number of replicas, nothing is ever scaled, nor by a resource that the metrics
    server does not measure, such as GPUs. Ray reads `autoscalerOptions` only with
    `enableInTreeAutoscaling: true`, and KEDA scales to zero only with a trigger other than `cpu` and `memory`: these
    are measured in pods that run. The pods keep their GPUs, whether they work or not.

    Set another `minReplicas`, or leave the autoscaler out.

    When to turn it off: to freeze an autoscaler during an incident, equal bounds are a known trick: accept it with
    `until` on the line of the bound.
    """
    if manifest.group == "ray.io":
        yield from _check_ray(manifest)
    elif manifest.group == "keda.sh":
        yield from _check_bounds(manifest, "minReplicaCount", "maxReplicaCount")
        yield from _check_triggers(manifest)
    elif manifest.group == "autoscaling":
        yield from _check_bounds(manifest, "minReplicas", "maxReplicas")
        yield from _check_metrics(manifest)


def _check_bounds(manifest: Manifest, least: str, most: str) -> Iterator[Violation]:
    low, high = (as_integer(manifest.spec.get(field)) for field in (least, most))
    if low is not None and low == high and low > 0 and "idleReplicaCount" not in manifest.spec:
        message = Sentence("`{}` and `{}` are both {}, so nothing is ever scaled", least, most, low)
        yield Violation(
            At(manifest.spec, least),
            Sentence("{}; lower `{}`, or set `replicas` of the object instead", message, least),
        )


def _check_metrics(manifest: Manifest) -> Iterator[Violation]:
    """Find metrics of resources that the kubelet does not measure."""
    for metric in map(as_mapping, as_list(manifest.spec.get("metrics"))):
        for field in ("resource", "containerResource"):
            resource = as_mapping(metric.get(field))
            name = as_text(resource.get("name"))
            if name and name not in _OF_PODS:
                message = Sentence(
                    "pods have no metric `{}`: the metrics server measures `cpu` and `memory`, so that nothing", name
                )
                advice = "use a metric of your monitoring, with `type: Pods` or `External`"
                yield Violation(At(resource, "name"), Sentence("{} is ever scaled; {}", message, advice))


def _check_triggers(manifest: Manifest) -> Iterator[Violation]:
    triggers = [as_text(as_mapping(each).get("type")) for each in as_list(manifest.spec.get("triggers"))]
    least = manifest.spec.get("minReplicaCount")
    if least is None or as_integer(least) != 0 or not triggers or not _OF_PODS.issuperset(triggers):
        return
    message = "KEDA cannot scale to zero by `cpu` and `memory`, which pods that run are measured by, so one pod stays"
    yield Violation(
        At(manifest.spec, "minReplicaCount"),
        Sentence("{}; add a trigger such as `prometheus`, or write `minReplicaCount: 1`", message),
    )


def _check_ray(manifest: Manifest) -> Iterator[Violation]:
    cluster = as_mapping(get_path(manifest.object, *RAY_CLUSTERS[manifest.kind_name]))
    is_on = cluster.get("enableInTreeAutoscaling") is True
    if not is_on:
        if as_mapping(cluster.get("autoscalerOptions")):
            message = Sentence(
                "`autoscalerOptions` has no effect, because `enableInTreeAutoscaling` is not true, so that Ray"
            )
            message += " never adds or removes workers"
            yield Violation(
                At(cluster, "autoscalerOptions", is_key=True), Sentence("{}; set it, or remove the options", message)
            )
        return
    groups = [as_mapping(each) for each in as_list(cluster.get("workerGroupSpecs"))]
    bounds = [tuple(as_integer(group.get(field)) for field in ("minReplicas", "maxReplicas")) for group in groups]
    if groups and all(low is not None and low == high and low > 0 for low, high in bounds):
        message = Sentence("`minReplicas` and `maxReplicas` are both {}", bounds[0][0])
        what = "in all groups, " if len(groups) > 1 else ""
        message += f", {what}so Ray never removes an idle worker"
        yield Violation(
            At(groups[0], "minReplicas"), Sentence("{}; lower `minReplicas`, or turn the autoscaler off", message)
        )

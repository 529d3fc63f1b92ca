"""The pods that an object creates, also of kinds without a description: of Workflows, Spark, KEDA and others.

What is counted is certain: the most that can run together, as far as the object says. What it does not say is named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from jobgen.check.counted_pods import (
    ELSEWHERE,
    MAX_PODS,
    CountedPod,
    CreatedPods,
    PodSearch,
    count_scale,
    read_count,
)
from jobgen.check.repeated_runs import count_runs
from jobgen.check.spark_pods import find_spark_pods
from jobgen.check.workflow_pods import Workflow
from jobgen.k8s.embedded import MAX_DEPTH
from jobgen.k8s.kueue import QUEUE_LABEL, find_suspend_path, is_suspended, stays_suspended
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.k8s.object_paths import is_app_wrapper, list_items
from jobgen.k8s.objects import Container, Manifest, replace_object
from jobgen.k8s.resources import list_counted_pods
from jobgen.k8s.team_kinds import counts_pods
from jobgen.k8s.workloads import RAY_CLUSTERS
from jobgen.model.data import Plain
from jobgen.model.lazy_re import has_any, lazy_pattern
from jobgen.model.place import Derived, DerivedList
from jobgen.spec.teams import CountedPods


def find_created_pods(manifest: Manifest, depth: int = 0) -> CreatedPods:
    """Return the pods of an object that are not kept from running, and what is not known about them."""
    manifest = manifest.judged
    if stays_suspended(manifest):
        return CreatedPods(manifest, ())
    started, advice = _start(manifest)
    described = list_counted_pods(started)
    if started.team is None:
        return CreatedPods(started, described)
    entries = started.team.pods.get((started.group, started.kind_name))
    if entries is None or counts_pods(started.group, started.kind_name):
        found = _find_hidden(started, depth)
    else:
        found = _find_declared(started, described, entries, depth)
    runs, advice_of_runs = count_runs(
        started.group, started.kind_name, started.object, outlives_runs=found.outlives_runs
    )
    if started.runs_on_every_node and not _selects_one_node(started):
        runs, advice_of_runs = MAX_PODS, "it runs on every node, so use a Deployment"
    if _starts_with_each_sync(started):
        runs, advice_of_runs = MAX_PODS, "each sync starts another one, so give it a `name`"
    surge = count_surge(started)
    if surge:
        replicas = _count_replicas(started)
        added = [(pod, min(count // replicas * surge, MAX_PODS)) for pod, count in described]
        found = found._replace(hidden=[*found.hidden, *added])
    return found._replace(described=described, runs=runs, advice=advice_of_runs or found.advice or advice)


def count_object(outer: Manifest, depth: int, obj: Mapping[str, Plain]) -> CreatedPods:
    """Count the pods of an object inside of another one."""
    inner = Manifest(obj, None, outer.cluster, outer.read_catalog, outer.team, outer.find_config)
    return find_created_pods(inner, depth + 1)


def _find_hidden(started: Manifest, depth: int) -> CreatedPods:
    # The checks of an AppWrapper count the objects in it, but not of one that another object creates.
    if _is_template(started) or (is_app_wrapper(started.object) and not depth):
        return CreatedPods(started, ())
    counter = partial(count_object, started, depth) if depth < MAX_DEPTH else None
    match started.group, started.kind_name:
        case ("argoproj.io", "Workflow" | "CronWorkflow"):
            return Workflow(started, counter).find_pods()
        case ("sparkoperator.k8s.io", "SparkApplication" | "ScheduledSparkApplication"):
            return find_spark_pods(started)
    known = [each for pod in started.pods for each in (*pod.containers, *pod.init_containers)]
    labels = started.labels if (started.group, started.kind_name) in _COPIES_LABELS else {}
    search = PodSearch(started, counter)
    times, advice = _count_scaled(started)
    if not depth and not _may_have_more(started, known):
        return CreatedPods(started, (), advice=advice)
    for item in list_items(started.object) if depth else ():
        search.search([item], labels)
    search.search(started.spec, labels, times, {id(each.data.get("resources")) for each in known})
    return CreatedPods(started, (), search.found, search.unknown, advice=advice)


def _may_have_more(started: Manifest, known: Sequence[Container]) -> bool:
    """Return True if an object may request devices beside its containers, which a cheap look at its text decides."""
    text = started.text
    if text is None or has_any(text, ELSEWHERE) or min(text.count("'apiVersion'"), text.count("'kind'")) > 1:
        return True
    return text.count("'resources'") > len({id(each.data) for each in known if "resources" in each.data})


def _find_declared(
    started: Manifest, described: Sequence[CountedPod], entries: Sequence[CountedPods], depth: int
) -> CreatedPods:
    """Return the pods of a kind that the team's file says how to count, and other containers with accelerators."""
    # Imported late: most teams need no such entries.
    from jobgen.check.declared_pods import find_declared_pods

    counter = partial(count_object, started, depth) if depth < MAX_DEPTH else None
    declared = find_declared_pods(started, entries, counter)
    containers = (each for pod, _ in (*described, *declared.pods) for each in pod.all_containers)
    seen = {*(id(each.data.get("resources")) for each in containers), *map(id, declared.objects)}
    search = PodSearch(started, counter)
    search.search(started.spec, {}, seen=seen)
    found = [*declared.pods, *search.found]
    return CreatedPods(started, (), found, [*declared.unknown, *search.unknown], refused=declared.refused)


def _count_scaled(manifest: Manifest) -> tuple[int, str]:
    """Return how many pods annotations ask for, and what to write if they have no limit."""
    if manifest.group == "serving.knative.dev":
        annotations = as_mapping(get_path(manifest.spec, "template", "metadata", "annotations"))
        if not any(as_text(annotations.get(name)).strip("0") for name in _MOST):
            return MAX_PODS, f"set the annotation `{_MOST[0]}`"
        return 1, ""
    return count_scale(manifest.annotations), ""


_MOST = ("autoscaling.knative.dev/max-scale", "autoscaling.knative.dev/maxScale")
_CREATES_NOTHING = lazy_pattern(
    r".*(?:Template|Runtime|Policy|Profile|Class|Quota)\Z|(?:Application|ApplicationSet|HelmRelease|Workload)\Z"
)
"""Kinds that have containers for the objects of others, or values for text that jobgen does not render."""
_RUN_BY_OTHERS = frozenset((("tekton.dev", "ClusterTask"), ("tekton.dev", "Pipeline"), ("tekton.dev", "Task")))
_COPIES_LABELS = frozenset(
    (("keda.sh", "ScaledJob"), ("kubeflow.org", "Notebook"), ("serving.kserve.io", "InferenceService"))
)
"""Kinds without a description whose controller gives their labels to what they create."""


def _is_template(manifest: Manifest) -> bool:
    is_run_by_others = (manifest.group, manifest.kind_name) in _RUN_BY_OTHERS
    return is_run_by_others or _CREATES_NOTHING.match(manifest.kind_name) is not None


_AWAITED = frozenset((("", "Pod"), ("argoproj.io", "Workflow"), ("batch", "Job")))


def _starts_with_each_sync(manifest: Manifest) -> bool:
    """Return True if Argo CD creates another object in each sync, and may not wait until the last one has ended."""
    is_hook = "argocd.argoproj.io/hook" in manifest.annotations and "generateName" in manifest.metadata
    return is_hook and (manifest.group, manifest.kind_name) not in _AWAITED


_UPDATES = {
    ("apps", "DaemonSet"): ("updateStrategy", "rollingUpdate"),
    ("apps", "Deployment"): ("strategy", "rollingUpdate"),
    ("argoproj.io", "Rollout"): ("strategy", "canary"),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): ("rolloutStrategy", "rollingUpdateConfiguration"),
}
"""Where kinds say how many pods an update may add."""
_ADD_A_QUARTER = (("apps", "Deployment"), ("argoproj.io", "Rollout"))
_LONGEST_UPDATE = 600
"""The seconds that a pod may take until an update goes on; those that are added longer count as replicas."""
_USUAL_SURGE = 3


def count_surge(manifest: Manifest) -> int:
    """Return how many replicas updates add that are more than those of one update, or stay for a long time.

    An update of a usual Deployment adds a quarter of its replicas for a short time, which no budget is about.
    """
    path = _UPDATES.get((manifest.group, manifest.kind_name))
    if path is None or as_text(get_path(manifest.spec, path[0], "type")) == "Recreate":
        return 0
    replicas, written = _count_replicas(manifest), get_path(manifest.spec, *path, "maxSurge")
    share = as_text(written).removesuffix("%") if as_text(written).endswith("%") else ""
    if written is None and (manifest.group, manifest.kind_name) in _ADD_A_QUARTER:
        share = "25"
    surge = -(-(read_count(share) or 0) * replicas // 100) if share else max(as_integer(written) or 0, 0)
    is_long = (as_integer(manifest.spec.get("minReadySeconds")) or 0) > _LONGEST_UPDATE
    return surge if is_long or surge > max(replicas, _USUAL_SURGE) else 0


def _count_replicas(manifest: Manifest) -> int:
    number = None if manifest.runs_on_every_node else as_integer(manifest.spec.get("replicas"))
    return max(1 if number is None else number, 1)


def _selects_one_node(manifest: Manifest) -> bool:
    return bool(as_text(get_path(manifest.spec, "template", "spec", "nodeSelector", "kubernetes.io/hostname")))


_RAY_CLUSTERS = {**RAY_CLUSTERS, "RayCronJob": ("spec", "jobTemplate", "rayClusterSpec")}


def _start(manifest: Manifest) -> tuple[Manifest, str]:
    """Return an object as it may be later, and what to write if nothing limits its replicas."""
    obj, advice = manifest.object, ""
    path = find_suspend_path(manifest)
    if path and is_suspended(manifest):
        obj = _set_at(obj, path, value=False)
    template = as_mapping(manifest.spec.get("jobTemplate")) if manifest.kind_name == "CronJob" else {}
    if as_text(get_path(template, "metadata", "labels", QUEUE_LABEL)) and get_path(template, "spec", "suspend"):
        # The queue starts the Jobs that the schedule creates.
        obj = _set_at(obj, ("spec", "jobTemplate", "spec", "suspend"), value=False)
    clusters = _RAY_CLUSTERS.get(manifest.kind_name, ()) if manifest.group == "ray.io" else ()
    cluster = as_mapping(get_path(obj, *clusters)) if clusters else {}
    if cluster.get("enableInTreeAutoscaling") is True:
        written = as_list(cluster.get("workerGroupSpecs"))
        known = list(map(as_mapping, written))
        groups = [Derived({**group, "replicas": group.get("maxReplicas", MAX_PODS)}, group) for group in known]
        obj = _set_at(obj, (*clusters, "workerGroupSpecs"), value=DerivedList(groups, written))
        advice = "set `maxReplicas`" if any("maxReplicas" not in group for group in known) else ""
    # The operator creates an autoscaler if there are metrics.
    elastic = as_mapping(manifest.spec.get("elasticPolicy"))
    worker = ("spec", "pytorchReplicaSpecs", "Worker")
    if elastic.get("metrics") is not None and isinstance(get_path(obj, *worker), dict):
        amounts = (as_integer(elastic.get("maxReplicas")), as_integer(get_path(obj, *worker, "replicas")))
        obj = _set_at(obj, (*worker, "replicas"), value=max((each for each in amounts if each is not None), default=1))
    return (manifest if obj is manifest.object else replace_object(manifest, obj)), advice


def _set_at(node: Mapping[str, Plain], path: Sequence[str], *, value: Plain) -> dict[str, Plain]:
    below = _set_at(as_mapping(node.get(path[0])), path[1:], value=value) if len(path) > 1 else value
    return Derived({**node, path[0]: below}, node)

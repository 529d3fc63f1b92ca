"""`jobgen queue` with input that is wrong, huge or ambiguous: it ends in time, and says what it ignores."""

import json

import pytest

from jobgen.check.cluster.queue_jobs import collect_jobs
from jobgen.queues import formats
from jobgen.queues.load import decide_environment
from jobgen.spec.overlay import Cluster

KUEUE = "kueue.x-k8s.io/v1beta2"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
FRAMEWORKS = ["batch/job", "deployment", "kubeflow.org/pytorchjob", "leaderworkerset.x-k8s.io/leaderworkerset", "pod"]


def made(kind, name, spec, namespace="", api=KUEUE, **more):
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec, **more}


def cluster_queue(name, quotas, cohort="", flavors=("f",), **spec):
    """Make a queue; a quota is nominal, or nominal, borrowing limit and lending limit."""
    fields = ("nominalQuota", "borrowingLimit", "lendingLimit")
    resources = [
        {"name": resource} | dict(zip(fields, quota if isinstance(quota, tuple) else (quota,), strict=False))
        for resource, quota in quotas.items()
    ]
    group = {
        "coveredResources": list(quotas),
        "flavors": [{"name": flavor, "resources": resources} for flavor in flavors],
    }
    whole = {"namespaceSelector": {}, "resourceGroups": [group], **spec}
    return made("ClusterQueue", name, whole | ({"cohortName": cohort} if cohort else {}))


def local_queue(name, cluster="", **spec):
    return made("LocalQueue", name, {"clusterQueue": cluster or name, **spec}, "ml")


def template(requests, **spec):
    return {"spec": {"containers": [{"name": "main", "resources": {"requests": requests}}], **spec}}


def labeled(name, labels=(), queue="a", **metadata):
    return {"name": name, "namespace": "ml", "labels": {QUEUE_LABEL: queue, **dict(labels)}, **metadata}


def job(name, pods, requests, *, queue="a", labels=(), annotations=(), **spec):
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": labeled(name, labels, queue, annotations=dict(annotations)),
        "spec": {"parallelism": pods, "template": template(requests, **spec)},
    }


def training(name, masters, workers, requests):
    roles = {"Master": masters, "Worker": workers}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": labeled(name),
        "spec": {
            "pytorchReplicaSpecs": {
                role: {"replicas": count, "template": template(requests)} for role, count in roles.items()
            }
        },
    }


FLAVOR = made("ResourceFlavor", "f", {})


def decide(jobs, state, *, running=(), **kueue):
    settings = {"frameworks": FRAMEWORKS, **kueue}
    queued = collect_jobs(jobs, state, Cluster(kueue=settings, operators={"kueue": "0.19"}))
    return decide_environment("", queued, lambda each: each.name in running)


def decisions(jobs, state, **options):
    return {each.key: each.decision for each in decide(jobs, state, **options).decision.answers}


def with_quota(cpu=4, **more):
    return [FLAVOR, cluster_queue("a", {"cpu": cpu}, **more), local_queue("a")]


def test_jobs_of_several_kinds_with_one_name_are_different_workloads():
    jobs = [job("x", 2, {"cpu": 1}), training("x", 1, 2, {"cpu": 1})]

    assert decisions(jobs, with_quota()) == {"ml/x (Job)": "admitted", "ml/x (PyTorchJob)": "waits"}


def test_jobs_whose_name_the_api_server_completes_are_different_workloads():
    jobs = [job(None, 3, {"cpu": 1}) for _ in range(3)]
    for each, prefix in zip(jobs, ("x-", "y-", "y-"), strict=True):
        each["metadata"] = {"generateName": prefix, "namespace": "ml", "labels": {QUEUE_LABEL: "a"}}

    expected = {"ml/x-": "admitted", "ml/y- (Job)": "waits", "ml/y- (Job) 2": "waits"}
    assert decisions(jobs, with_quota()) == expected


HUGE = ("1e999999999", "-1e999999999", "1e-999999999", "9" * 5000, 10**400, -(10**400), float("nan"), float("inf"))


@pytest.mark.parametrize("value", HUGE, ids=lambda value: str(value)[:12])
def test_huge_quantities_take_no_time(value):
    class_name = made("LimitRange", "l", {"limits": [{"type": "Container", "max": {"memory": value}}]}, "ml", "v1")
    state = [
        FLAVOR,
        cluster_queue("a", {"cpu": (value, value, value)}, "all", fairSharing={"weight": value}),
        cluster_queue("b", {"cpu": 4}, "all", fairSharing={"weight": value}),
        made("Cohort", "all", {"fairSharing": {"weight": value}}),
        local_queue("a"),
        local_queue("b"),
        class_name,
    ]
    jobs = [job("x", 2, {"cpu": value}), job("y", 1, {"cpu": 1}, queue="b"), job("z", 1, {"cpu": 3}, queue="a")]
    report = decide(jobs, state, fairSharing=True)

    assert len(report.decision.answers) == len(jobs)
    assert all(formats.render(name, [report]) for name in formats.format_names())
    assert json.loads(formats.render("json", [report]))["version"] == 1


def test_resources_without_quota_do_not_count_if_kueue_ignores_them():
    jobs = [job("x", 1, {"cpu": 1, "nvidia.com/gpu": 8}), job("y", 5, {"cpu": 1, "nvidia.com/gpu": 8})]

    resources = {"quotaCheckStrategy": "IgnoreUndeclared"}
    assert decisions(jobs, with_quota(), resources=resources) == {"ml/x": "admitted", "ml/y": "never"}
    assert decide(jobs, with_quota(), resources=resources).decision.answers[1].obstacle.resource == "cpu"
    assert decisions(jobs, with_quota()) == {"ml/x": "never", "ml/y": "never"}


@pytest.mark.parametrize(
    ("controller", "decision"),
    [
        ("kueue.x-k8s.io/provisioning-request", "admitted"),
        ("kueue.x-k8s.io/multikueue", "admitted"),
        ("example.com/budget", "never"),
    ],
)
def test_checks_that_find_nodes_leave_the_placement_to_later(controller, decision):
    state = [
        made("AdmissionCheck", "check", {"controllerName": controller}),
        made("Topology", "hosts", {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]}),
        made("ResourceFlavor", "f", {"nodeLabels": {"gpu": "h100"}, "topologyName": "hosts"}),
        cluster_queue("a", {"cpu": 100}, admissionChecksStrategy={"admissionChecks": [{"name": "check"}]}),
        local_queue("a"),
    ]
    nodes = [{"flavor": "f", "count": 2, "capacity": {"cpu": 4}}]

    assert decisions([job("x", 20, {"cpu": 1})], state, nodes=nodes) == {"ml/x": decision}

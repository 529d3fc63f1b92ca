"""From a job object to Kueue's Workload: pod sets of each kind, each step of requests, priority, queue, devices."""

import pytest

from jobgen.features.kueue.cluster_objects import group_objects, parse_configuration
from jobgen.features.kueue.job_workloads import (
    INTEGRATIONS,
    build_workload,
    build_workloads,
    collect_jobs,
    explain_unmanaged,
    read_context,
)
from jobgen.features.kueue.pod_sets import Gates, list_pod_sets
from jobgen.features.kueue.requests import (
    charge_pod,
    find_invalid_requests,
    parse_settings,
    sum_pod_requests,
    summarize,
)
from jobgen.spec.overlay import Cluster

DOMAIN = "kueue.x-k8s.io/"


def template(requests=None, annotations=None, **spec):
    container = {"name": "main", "image": "registry.example/train:1"}
    if requests is not None:
        container["resources"] = {"requests": requests}
    made = {"spec": {"containers": [container], **spec}}
    return {"metadata": {"annotations": annotations}, **made} if annotations else made


def make(api_version, kind, spec, annotations=None, labels=None, **metadata):
    metadata = {"name": "example", "namespace": "team", **metadata}
    metadata |= {"annotations": annotations} if annotations else {}
    metadata |= {"labels": labels} if labels else {}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def replicas(**counts):
    return {
        name: {"template": template(), **({} if count is None else {"replicas": count})}
        for name, count in counts.items()
    }


def ray(**fields):
    return {
        "headGroupSpec": {"template": template({"cpu": "100m", "memory": "1Gi"})},
        "workerGroupSpecs": [{"groupName": "Small", "replicas": 3, "template": template()}],
        **fields,
    }


def job_set(*jobs):
    return make("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": list(jobs)})


def replicated(name, count, **spec):
    return {"name": name, "replicas": count, "template": {"spec": {"template": template(), **spec}}}


JOB = ("batch/v1", "Job")
LWS = ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")
WRAPPER = ("workload.codeflare.dev/v1beta2", "AppWrapper")

# Objects, and the names and numbers of pods of their pod sets.
COUNTS = {
    "job": (make(*JOB, {"template": template()}), {"main": 1}),
    "job with parallelism": (make(*JOB, {"parallelism": 4, "template": template()}), {"main": 4}),
    "job with fewer completions": (
        make(*JOB, {"parallelism": 4, "completions": 3, "template": template()}),
        {"main": 3},
    ),
    "job set": (
        job_set(
            replicated("driver", 1),
            replicated("workers", 3, parallelism=2),
            replicated("few", 2, parallelism=5, completions=1),
        ),
        {"driver": 1, "workers": 6, "few": 2},
    ),
    "pytorch": (
        make("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": replicas(Worker=2, Master=None)}),
        {"master": 1, "worker": 2},
    ),
    "tensorflow": (
        make("kubeflow.org/v1", "TFJob", {"tfReplicaSpecs": replicas(Evaluator=1, Worker=4, PS=2, Chief=1)}),
        {"chief": 1, "ps": 2, "worker": 4, "evaluator": 1},
    ),
    "xgboost": (make("kubeflow.org/v1", "XGBoostJob", {"xgbReplicaSpecs": replicas(Worker=2)}), {"worker": 2}),
    "paddle": (make("kubeflow.org/v1", "PaddleJob", {"paddleReplicaSpecs": replicas(Worker=2)}), {"worker": 2}),
    "jax": (make("kubeflow.org/v1", "JAXJob", {"jaxReplicaSpecs": replicas(Worker=8)}), {"worker": 8}),
    "mpi": (
        make(
            "kubeflow.org/v2beta1",
            "MPIJob",
            {"mpiReplicaSpecs": replicas(Worker=2, Launcher=1), "runLauncherAsWorker": True},
        ),
        {"launcher": 1, "worker": 2},
    ),
    "ray cluster": (
        make(
            "ray.io/v1",
            "RayCluster",
            ray(
                workerGroupSpecs=[
                    {"groupName": "a", "template": template()},
                    {"groupName": "b", "replicas": 2, "numOfHosts": 4, "template": template()},
                ]
            ),
        ),
        {"head": 1, "a": 1, "b": 8},
    ),
    "ray job": (
        make("ray.io/v1", "RayJob", {"rayClusterSpec": ray(), "submissionMode": "K8sJobMode"}),
        {"head": 1, "small": 3, "submitter": 1},
    ),
    "ray job over HTTP": (
        make("ray.io/v1", "RayJob", {"rayClusterSpec": ray(), "submissionMode": "HTTPMode"}),
        {"head": 1, "small": 3},
    ),
    "ray service": (make("ray.io/v1", "RayService", {"rayClusterConfig": ray()}), {"head": 1, "small": 3}),
    "pod": (make("v1", "Pod", template()["spec"]), {"main": 1}),
    "stateful set": (make("apps/v1", "StatefulSet", {"replicas": 3, "template": template()}), {"main": 3}),
    "deployment": (make("apps/v1", "Deployment", {"replicas": 3, "template": template()}), {"main": 1}),
    "leader and workers": (
        make(
            *LWS,
            {
                "replicas": 2,
                "leaderWorkerTemplate": {"size": 4, "leaderTemplate": template(), "workerTemplate": template()},
            },
        ),
        {"leader": 1, "worker": 3},
    ),
    "workers only": (make(*LWS, {"leaderWorkerTemplate": {"size": 4, "workerTemplate": template()}}), {"main": 4}),
    "wrapper that declares": (
        make(
            *WRAPPER,
            {
                "components": [
                    {
                        "podSets": [{"replicas": 5, "path": "template.spec.parts[1].template"}],
                        "template": {
                            "apiVersion": "example.com/v1",
                            "kind": "Own",
                            "spec": {"parts": [{}, {"template": template()}]},
                        },
                    }
                ]
            },
        ),
        {"example-0": 5},
    ),
    "wrapper of known kinds": (
        make(
            *WRAPPER,
            {
                "components": [
                    {"template": make(*JOB, {"parallelism": 2, "template": template()})},
                    {"template": make("v1", "Service", {})},
                    {"template": job_set(replicated("a", 2, parallelism=3))},
                ]
            },
        ),
        {"example-0": 2, "example-1": 6},
    ),
    "spark": (
        make(
            "sparkoperator.k8s.io/v1beta2",
            "SparkApplication",
            {"driver": {"coreRequest": "1"}, "executor": {"instances": 3}},
        ),
        {"driver": 1, "executor": 3},
    ),
    "wrong types": (make(*JOB, {"parallelism": "four", "completions": [], "template": 3}), {"main": 1}),
    "job set of wrong types": (make("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": {"a": 1}}), {}),
}


@pytest.mark.parametrize(("obj", "counts"), COUNTS.values(), ids=COUNTS)
def test_pod_sets(obj, counts):
    found = list_pod_sets(obj)

    assert [(each["name"], each["count"]) for each in found] == list(counts.items())


@pytest.mark.parametrize(
    "obj",
    [
        make("kubeflow.org/v1", "MPIJob", {"mpiReplicaSpecs": replicas(Worker=1)}),
        make("ray.io/v1", "RayJob", {"clusterSelector": {"ray.io/cluster": "shared"}}),
        make("v1", "Service", {}),
    ],
)
def test_kinds_without_integration(obj):
    assert list_pod_sets(obj) is None


def test_train_job_has_the_pod_sets_of_its_job_set():
    obj = make("trainer.kubeflow.org/v1alpha1", "TrainJob", {"runtimeRef": {"name": "torch"}})

    found = list_pod_sets(obj, job_set=job_set(replicated("node", 1, parallelism=4, completions=4)))

    assert [(each["name"], each["count"]) for each in found] == [("node", 4)]
    assert list_pod_sets(obj) == []


def test_pod_group_has_one_pod_set_for_each_shape():
    labels = {DOMAIN + "pod-group-name": "group"}
    small, large = (
        make("v1", "Pod", template({"cpu": cpu})["spec"], {DOMAIN + "pod-group-total-count": "3"}, labels)
        for cpu in ("1", "2")
    )
    fast = {
        **small,
        "metadata": {
            **small["metadata"],
            "annotations": {DOMAIN + "pod-group-total-count": "7", DOMAIN + "pod-group-fast-admission": "true"},
        },
    }

    found = list_pod_sets(small, members=[small, large, small])

    assert sorted(each["count"] for each in found) == [1, 2]
    assert [each["count"] for each in list_pod_sets(fast, members=[fast])] == [7]


def test_pods_of_a_group_are_one_job():
    labels = {DOMAIN + "pod-group-name": "group", DOMAIN + "queue-name": "queue"}
    pods = [make("v1", "Pod", template({"cpu": "1"})["spec"], None, labels, name=name) for name in ("a", "b")]
    alone = make("v1", "Pod", template({"cpu": "1"})["spec"], None, {DOMAIN + "queue-name": "queue"}, name="c")

    jobs = collect_jobs([*pods, alone], (), Cluster()).jobs

    assert [(job.name, [pod_set.count for pod_set in job.workloads[0].pod_sets]) for job in jobs] == [
        ("group", [2]),
        ("c", [1]),
    ]


@pytest.mark.parametrize(
    ("obj", "reason"),
    [
        (make("kubeflow.org/v1", "MPIJob", {}), "Kueue does not manage MPIJob of `kubeflow.org/v1`"),
        (
            make("batch.volcano.sh/v1alpha1", "Job", {}),
            "Kueue does not manage Job of `batch.volcano.sh/v1alpha1`",
        ),
        (make("ray.io/v1", "RayJob", {"clusterSelector": {"a": "b"}}), "it runs in an existing RayCluster"),
    ],
)
def test_a_queue_has_no_effect_on_some_jobs(obj, reason):
    queued = {**obj, "metadata": {**obj["metadata"], "labels": {DOMAIN + "queue-name": "queue"}}}

    assert collect_jobs([obj, make("v1", "ConfigMap", {})], (), Cluster()).jobs == ()
    (job,) = collect_jobs([queued], (), Cluster()).jobs
    assert job.obstacle.message.startswith(reason)


# Annotations of a template of a Job, and the topology request.
TOPOLOGY = [
    ({}, {}),
    ({"podset-required-topology": "rack"}, {"required": "rack"}),
    ({"podset-required-topology": "rack", "podset-preferred-topology": "block"}, {"required": "rack"}),
    ({"podset-preferred-topology": "rack"}, {"preferred": "rack"}),
    ({"podset-unconstrained-topology": "true"}, {"unconstrained": True}),
    ({"podset-unconstrained-topology": "yes"}, {}),
    ({"podset-slice-size": "2"}, {}),
    (
        {"podset-slice-size": "2", "podset-slice-required-topology": "rack"},
        {"podSetSliceRequiredTopology": "rack", "podSetSliceSize": 2},
    ),
    (
        {"podset-slice-required-topology-constraints": '[{"topology": "rack", "size": 4}]'},
        {"podsetSliceRequiredTopologyConstraints": [{"topology": "rack", "size": 4}]},
    ),
    ({"podset-slice-required-topology-constraints": "{"}, {}),
    ({"podset-required-topology": "rack", "podset-group-name": "a"}, {"required": "rack", "podSetGroupName": "a"}),
    ({"podset-group-name": "a"}, {}),
]


@pytest.mark.parametrize(("annotations", "request_"), TOPOLOGY)
def test_topology_requests(annotations, request_):
    pod = template(annotations={DOMAIN + name: value for name, value in annotations.items()})
    (found,) = list_pod_sets(make(*JOB, {"template": pod}))
    (without,) = list_pod_sets(make(*JOB, {"template": pod}), Gates(topology_aware=False))

    assert found["topologyRequest"] == {"podIndexLabel": "batch.kubernetes.io/job-completion-index", **request_}
    assert "topologyRequest" not in without


def test_ray_head_gets_what_kuberay_adds():
    options = {"enableInTreeAutoscaling": True, "gcsFaultToleranceOptions": {}}
    obj = make("ray.io/v1", "RayJob", {"rayClusterSpec": ray(**options), "submissionMode": "SidecarMode"})

    head = list_pod_sets(obj)[0]["template"]["spec"]

    assert [each["name"] for each in head["containers"]] == ["main", "autoscaler", "ray-job-submitter"]
    assert charge_pod(sum_pod_requests(head)) == {"cpu": 200 + 500 + 500, "memory": (1024 + 512 + 200) * 2**20}


def container(requests, **fields):
    return {"name": "c", "resources": {"requests": requests}, **fields}


# What a pod requests, and what it is charged.
CHARGES = [
    ({"containers": [container({"cpu": "1"}), container({"cpu": "500m"})]}, {"cpu": 1500}),
    ({"containers": [container({"cpu": "1"})], "initContainers": [container({"cpu": "3"})]}, {"cpu": 3000}),
    (
        {"containers": [container({"cpu": "1"})], "initContainers": [container({"cpu": "1"}, restartPolicy="Always")]},
        {"cpu": 2000},
    ),
    (
        {
            "containers": [container({"cpu": "1"})],
            "initContainers": [container({"cpu": "1"}, restartPolicy="Always"), container({"cpu": "3"})],
        },
        {"cpu": 4000},
    ),
    ({"containers": [container({"cpu": "1"})], "overhead": {"cpu": "250m"}}, {"cpu": 1250}),
    ({"containers": [container({"cpu": "1"})], "resources": {"requests": {"cpu": "4"}}}, {"cpu": 4000}),
    ({"containers": [container({"x/gpu": "1"})], "resources": {"requests": {"x/gpu": "4"}}}, {"x/gpu": 1}),
    ({"containers": [container({"cpu": "1.5m", "memory": "0.5"})]}, {"cpu": 2, "memory": 1}),
    ({"containers": [container({"cpu": "-1"})]}, {"cpu": 0}),
    ({"containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}]}, {}),
    ({"containers": 5, "initContainers": ["x"], "resources": []}, {}),
]


@pytest.mark.parametrize(("spec", "amounts"), CHARGES)
def test_requests_of_a_pod(spec, amounts):
    assert charge_pod(sum_pod_requests(spec)) == amounts


# Configuration of resources, requests, and what they are charged.
SETTINGS = [
    ({"excludeResourcePrefixes": ["x/"]}, {"cpu": "1", "x/nic": "1"}, {"cpu": 1000}),
    (
        {
            "transformations": [
                {"input": "x/mig", "strategy": "Replace", "outputs": {"x/memory": "5Ki", "x/points": "10"}}
            ]
        },
        {"x/mig": "2"},
        {"x/memory": 10240, "x/points": 20},
    ),
    (
        {"transformations": [{"input": "x/gpu", "outputs": {"x/gpu": "1", "x/b": "0.1"}}]},
        {"x/gpu": "3"},
        {"x/gpu": 6, "x/b": 1},
    ),
    (
        {
            "transformations": [
                {"input": "x/memory", "strategy": "Replace", "multiplyBy": "x/gpu", "outputs": {"x/all": "1"}}
            ]
        },
        {"x/memory": "100", "x/gpu": "2"},
        {"x/gpu": 2, "x/all": 200},
    ),
    ({"transformations": [{"input": "x/a", "outputs": {"x/b": "-5"}}]}, {"x/a": "1", "x/b": "3"}, {"x/a": 1, "x/b": 3}),
]


@pytest.mark.parametrize(("config", "requests", "amounts"), SETTINGS)
def test_configured_resources(config, requests, amounts):
    exact = sum_pod_requests({"containers": [container(requests)]})

    assert charge_pod(exact, parse_settings(config)) == amounts


def cluster(*objects, config=None):
    return read_context(group_objects(objects, parse_configuration({"resources": config or {}})))


def limit_range(**limits):
    spec = {"limits": [{"type": "Container", **limits}]}
    return make("v1", "LimitRange", spec, name="defaults")


def test_build_a_workload_in_the_order_of_kueue():
    runtime = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "kata"}}
    runtime["overhead"] = {"podFixed": {"cpu": "100m"}}
    context = cluster(
        limit_range(default={"memory": "2Gi"}, defaultRequest={"cpu": "500m"}),
        runtime,
        make("kueue.x-k8s.io/v1beta2", "LocalQueue", {"clusterQueue": "all"}, name="default"),
        config={"excludeResourcePrefixes": ["ephemeral-"]},
    )
    pod = template({"ephemeral-storage": "1Gi"}, runtimeClassName="kata")
    obj = make(*JOB, {"parallelism": 2, "template": pod}, {DOMAIN + "job-min-parallelism": "1"})

    built = build_workload(obj, context)

    (pod_set,) = built.workload.pod_sets
    assert (built.workload.key, built.workload.queue, built.error) == ("team/example", "default", "")
    assert (pod_set.count, pod_set.min_count) == (2, 1)
    assert pod_set.requests == {"cpu": 600, "memory": 2 * 2**30}


def test_a_new_ray_job_has_a_submitter_and_groups_without_replicas_are_empty():
    groups = [{"groupName": "a", "minReplicas": 2, "template": template()}]
    obj = make("ray.io/v1", "RayJob", {"rayClusterSpec": ray(workerGroupSpecs=groups)})

    built = build_workload(obj, cluster())

    assert [(each.name, each.count) for each in built.workload.pod_sets] == [("head", 1), ("a", 0), ("submitter", 1)]


@pytest.mark.parametrize(
    ("obj", "error"),
    [
        (make("trainer.kubeflow.org/v1alpha1", "TrainJob", {}), "the runtime of the TrainJob is not among the files"),
        (job_set(), "it has no pods"),
        (job_set(*(replicated(f"r{number}", 1) for number in range(18))), ""),
        (
            job_set(*(replicated(f"r{number}", 1) for number in range(19))),
            "it has 19 pod sets, but a workload can have",
        ),
    ],
)
def test_number_of_pod_sets(obj, error):
    found = build_workload(obj, cluster()).error

    assert error in found if error else not found


def test_each_replica_of_a_leader_worker_set_is_a_workload():
    obj, _ = COUNTS["leader and workers"]

    keys = [each.workload.key for each in build_workloads(obj, cluster())]

    assert keys == ["team/example-0", "team/example-1"]


CLASSES = (
    {**make("kueue.x-k8s.io/v1beta2", "WorkloadPriorityClass", {}, name="high"), "value": 100},
    {**make("scheduling.k8s.io/v1", "PriorityClass", {}, name="pods"), "value": 50},
    {**make("scheduling.k8s.io/v1", "PriorityClass", {}, name="usual"), "value": 7, "globalDefault": True},
    {**make("scheduling.k8s.io/v1", "PriorityClass", {}, name="lowest"), "value": 5, "globalDefault": True},
)
POLICY = {"runPolicy": {"schedulingPolicy": {"priorityClass": "pods"}}}
PRIORITIES = [
    (make(*JOB, {"template": template()}), 5, ""),
    (make(*JOB, {"template": template(priorityClassName="pods")}), 50, ""),
    (make(*JOB, {"template": template(priorityClassName="system-node-critical")}), 2_000_001_000, ""),
    (make(*JOB, {"template": template(priorityClassName="pods")}, labels={DOMAIN + "priority-class": "high"}), 100, ""),
    (make("kubeflow.org/v1", "JAXJob", {"jaxReplicaSpecs": replicas(Worker=1), **POLICY}), 50, ""),
    (make(*JOB, {"template": template(priorityClassName="gone")}), 0, "PriorityClass `gone` does not exist"),
    (
        make(*JOB, {"template": template()}, labels={DOMAIN + "priority-class": "pods"}),
        0,
        "WorkloadPriorityClass `pods` does not exist",
    ),
]


@pytest.mark.parametrize(("obj", "value", "error"), PRIORITIES)
def test_priority(obj, value, error):
    built = build_workload(obj, cluster(*CLASSES))

    assert (built.workload.priority, built.error) == (value, error)


MAPPINGS = {"deviceClassMappings": [{"name": "x/gpus", "deviceClassNames": ["gpu.example.com"]}]}
DEVICES = [
    ({"exactly": {"deviceClassName": "gpu.example.com", "count": 2}}, {"cpu": 1000, "x/gpus": 2}, ""),
    ({"deviceClassName": "gpu.example.com"}, {"cpu": 1000, "x/gpus": 1}, ""),
    ({"exactly": {"deviceClassName": "nic.example.com"}}, {"cpu": 1000}, "does not have DeviceClass `nic.example.com`"),
    ({"firstAvailable": [{}]}, {"cpu": 1000}, "does not support `firstAvailable`"),
    ({"exactly": {"allocationMode": "All"}}, {"cpu": 1000}, "does not support `allocationMode: All`"),
    ({"exactly": {"adminAccess": True}}, {"cpu": 1000}, "does not support `adminAccess`"),
]


@pytest.mark.parametrize(("device", "amounts", "error"), DEVICES)
def test_devices_are_charged_as_resources(device, amounts, error):
    claim = make(
        "resource.k8s.io/v1", "ResourceClaimTemplate", {"spec": {"devices": {"requests": [device]}}}, name="gpu"
    )
    pod = template({"cpu": "1"}, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "gpu"}])

    built = build_workload(make(*JOB, {"template": pod}), cluster(claim, config=MAPPINGS))

    assert built.workload.pod_sets[0].requests == amounts
    assert error in built.error if error else not built.error


def test_extended_resources_of_a_device_class_are_charged_under_its_name():
    device_class = make("resource.k8s.io/v1", "DeviceClass", {"extendedResourceName": "x/gpu"}, name="gpu.example.com")

    built = build_workload(make(*JOB, {"template": template({"x/gpu": "2"})}), cluster(device_class, config=MAPPINGS))

    assert built.workload.pod_sets[0].requests == {"x/gpus": 2}


ABOVE, BELOW = "must not be above the limitRange max", "must not be below the limitRange min"
OFF = "Kueue 0.19 does not manage PyTorchJobs by default, so it starts at once, without quota"
# A kind, the version and the configuration of Kueue, and why it does not manage the job.
MANAGED = [
    ("job", "0.19", {}, ""),
    ("pytorch", "0.18", {}, ""),
    ("pytorch", "0.19", {}, OFF),
    ("pytorch", "0.19", {"frameworks": ["kubeflow.org/pytorchjob"]}, ""),
    ("job", "0.19", {"frameworks": ["pod"]}, "because `batch/job` is not among its `frameworks`"),
    ("mpi", "0.19", {}, ""),
    ("pod", "0.15", {}, "Kueue 0.15 does not manage Pods by default, so"),
    ("pod", "0.16", {}, ""),
    ("ray service", "0.16", {}, "Kueue 0.16 does not manage RayServices, so"),
    ("spark", "0.19", {}, "does not manage SparkApplications by default, so"),
    (
        "job",
        "0.19",
        {"managedJobsNamespaceSelector": {"matchLabels": {"queues": "on"}}},
        "does not select namespace `team`",
    ),
    ("job", "0.14", {"managedJobsNamespaceSelector": {"matchLabels": {"queues": "on"}}}, ""),
]


@pytest.mark.parametrize(("kind", "version", "config", "reason"), MANAGED)
def test_managed_kinds(kind, version, config, reason):
    obj, _ = COUNTS[kind]

    found = explain_unmanaged(obj, "queue", parse_configuration(config, version), {})

    assert reason in found.message if reason else found is None


@pytest.mark.parametrize(
    ("config", "namespace", "is_managed"),
    [
        ({}, "team", False),
        ({"managedJobsWithoutQueueName": True}, "team", True),
        ({"managedJobsWithoutQueueName": True}, "kube-system", False),
    ],
)
def test_jobs_without_queue(config, namespace, is_managed):
    obj = make(*JOB, {"template": template()}, namespace=namespace)

    assert (explain_unmanaged(obj, "", parse_configuration(config, "0.19")) is None) is is_managed


@pytest.mark.parametrize(
    ("obj", "reason", "change"),
    [
        (make("kubeflow.org/v1", "MPIJob", {}), "so it starts at once, without quota", "use `kubeflow.org/v2beta1`"),
        (make("example.com/v1", "MPIJob", {}), "so it starts at once, without quota", ""),
        (make(*JOB, {"suspend": True}), "so only `suspend` keeps it from starting", "add the label"),
        (make(*JOB, {}), "so it starts at once", "add the label"),
    ],
)
def test_a_job_that_is_not_managed_says_what_would_change_that(obj, reason, change):
    found = explain_unmanaged(obj, "", parse_configuration({}, "0.19"))

    assert found.message.endswith(reason)
    assert found.change.startswith(change)
    assert bool(found.change) is bool(change)


def test_every_integration_has_pod_sets():
    for version, kind in INTEGRATIONS:
        spec = {"rayClusterSpec": {}} if kind == "RayJob" else {}
        assert list_pod_sets(make(version, kind, spec)) is not None, kind


# LimitRanges of a namespace, a container, and why it is invalid.
BOUNDS = [
    ([], {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}, ""),
    ([], {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}, "must not exceed its limits"),
    ([limit_range(max={"cpu": "2"}), limit_range(max={"cpu": "1"})], {"requests": {"cpu": "1500m"}}, ABOVE),
    ([limit_range(min={"cpu": "2"})], {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}}, BELOW),
    ([limit_range(min={"memory": "2"})], {"requests": {"cpu": "1"}}, ""),
]


@pytest.mark.parametrize(("ranges", "resources", "message"), BOUNDS)
def test_invalid_requests(ranges, resources, message):
    pod_sets = [{"name": "main", "template": {"spec": {"containers": [{"name": "c", "resources": resources}]}}}]

    found = find_invalid_requests(pod_sets, summarize(ranges))

    prefix = "resources didn't satisfy LimitRange constraints" if ranges else "resources validation failed"
    field = 'spec.podSets[0].template.spec.containers[0]: Invalid value: ["cpu"]'
    assert found == (f"{prefix}: {field}: requests {message}" if message else "")


def list_changes(node):
    """Copies of a node with one value replaced by one of another type."""
    yield from (None, [], "x", -1, {"x": None})
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        for changed in list_changes(value):
            copied = dict(node) if isinstance(node, dict) else list(node)
            copied[key] = changed
            yield copied


def test_no_value_of_a_job_raises_an_exception():
    context = cluster(*CLASSES, limit_range(default={"cpu": "1"}), config=MAPPINGS)
    changed = [each for obj, _ in COUNTS.values() for each in list_changes(obj) if isinstance(each, dict)]

    assert len(changed) > 1000
    for obj in changed:
        build_workloads(obj, context)

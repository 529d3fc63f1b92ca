"""The pods of each kind are described once: their roles, templates and numbers, and what stops them."""

from pathlib import Path

import pytest
import yaml

from jobgen.k8s.objects import count_role_pods, find_definition
from jobgen.k8s.workloads import POD_SETS, REPLICA_TYPES, count_job_pods, find_pods, list_template_paths
from jobgen.spec.kinds import parse_kinds

POD = {"metadata": {"labels": {"app": "bert"}}, "spec": {"containers": [{"name": "main"}]}}
JOB = {"parallelism": 3, "completions": 2, "template": POD}
WORKERS = {"groupName": "gpu", "replicas": 9, "minReplicas": 1, "maxReplicas": 4, "numOfHosts": 2, "template": POD}
CLUSTER = {"headGroupSpec": {"template": POD}, "workerGroupSpecs": [WORKERS, {"groupName": "cpu", "template": POD}]}
RAY_JOB = {"rayClusterSpec": CLUSTER, "submitterPodTemplate": POD}
TASKS = {"tasks": [{"name": "a", "replicas": 2, "template": POD}, {"name": "b", "template": POD}]}
REPLICAS = [{"type": "launcher", "template": POD}, {"type": "worker", "replicas": 2, "template": POD}]
GROUPS = {"replicas": 2, "leaderWorkerTemplate": {"size": 4, "leaderTemplate": POD, "workerTemplate": POD}}

# A spec of each kind, and the numbers of its pods by role.
OBJECTS = {
    ("", "Pod"): (None, {"": 1}),
    ("", "PodTemplate"): (None, {"": 0}),
    ("", "ReplicationController"): ({"replicas": 3, "template": POD}, {"": 3}),
    ("apps", "DaemonSet"): ({"replicas": 3, "template": POD}, {"": 1}),
    ("apps", "Deployment"): ({"replicas": 3, "template": POD}, {"": 3}),
    ("apps", "ReplicaSet"): ({"template": POD}, {"": 1}),
    ("apps", "StatefulSet"): ({"replicas": -1, "template": POD}, {"": 0}),
    ("batch", "Job"): (JOB, {"": 2}),
    ("batch", "CronJob"): ({"jobTemplate": {"spec": JOB}}, {"": 2}),
    ("batch.tensorstack.dev", "GenericJob"): ({"replicaSpecs": REPLICAS}, {"launcher": 1, "worker": 2}),
    ("batch.tensorstack.dev", "ColossalAIJob"): ({"replicaSpecs": REPLICAS}, {"launcher": 1, "worker": 2}),
    ("batch.tensorstack.dev", "MPIJob"): ({"replicaSpecs": REPLICAS}, {"launcher": 1, "worker": 2}),
    ("batch.tensorstack.dev", "DeepSpeedJob"): ({"worker": {"replicas": 2, "template": POD}}, {"worker": 2}),
    ("batch.volcano.sh", "Job"): (TASKS, {"a": 2, "b": 0}),
    ("batch.volcano.sh", "CronJob"): ({"jobTemplate": {"spec": TASKS}}, {"a": 2, "b": 0}),
    ("jobset.x-k8s.io", "JobSet"): (
        {"replicatedJobs": [{"name": "a", "replicas": 3, "template": {"spec": JOB}}]},
        {"a": 6},
    ),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): (GROUPS, {"leader": 2, "worker": 6}),
    ("ray.io", "RayCluster"): (CLUSTER, {"head": 1, "gpu": 8, "cpu": 0}),
    ("ray.io", "RayJob"): (RAY_JOB, {"head": 1, "gpu": 8, "cpu": 0, "submitter": 1}),
    ("ray.io", "RayService"): ({"rayClusterConfig": CLUSTER}, {"head": 1, "gpu": 8, "cpu": 0}),
    ("ray.io", "RayCronJob"): ({"jobTemplate": RAY_JOB}, {"head": 1, "gpu": 8, "cpu": 0, "submitter": 1}),
}


def build(key):
    spec, _ = OBJECTS[key]
    return {"spec": spec} if spec is not None else POD if key[1] == "Pod" else {"template": POD}


def follow(node, path):
    for step in path:
        node = node[step]
    return node


def test_every_kind_has_an_object_here():
    assert OBJECTS.keys() == POD_SETS.keys()


@pytest.mark.parametrize("key", OBJECTS)
def test_roles_templates_and_numbers(key):
    obj = build(key)
    found = list(find_pods(obj, POD_SETS[key]))

    assert {each.role: each.total for each in found} == OBJECTS[key][1]
    assert not any(each.is_stopped for each in found)
    assert all(each.template is follow(obj, each.path) is POD for each in found)


@pytest.mark.parametrize(
    ("key", "change", "stopped"),
    [
        (("batch", "Job"), {"suspend": True}, [""]),
        (("batch", "CronJob"), {"suspend": True}, [""]),
        (("batch", "CronJob"), {"jobTemplate": {"spec": {**JOB, "suspend": True}}}, [""]),
        (("batch.volcano.sh", "CronJob"), {"suspend": True}, ["a", "b"]),
        (("jobset.x-k8s.io", "JobSet"), {"suspend": True}, ["a"]),
        (("ray.io", "RayCluster"), {"workerGroupSpecs": [{**WORKERS, "suspend": True}]}, ["gpu"]),
        (("ray.io", "RayJob"), {"rayClusterSpec": {**CLUSTER, "suspend": True}}, ["head", "gpu", "cpu"]),
        (("ray.io", "RayJob"), {"submissionMode": "HTTPMode"}, ["submitter"]),
        (("ray.io", "RayCronJob"), {"suspend": True}, ["head", "gpu", "cpu", "submitter"]),
    ],
)
def test_what_stops_pods(key, change, stopped):
    obj = {"spec": {**build(key)["spec"], **change}}

    assert [each.role for each in find_pods(obj, POD_SETS[key]) if each.is_stopped] == stopped


def test_a_leader_is_one_of_its_group():
    (leader, worker) = POD_SETS["leaderworkerset.x-k8s.io", "LeaderWorkerSet"]
    alone = {"spec": {"replicas": 2, "leaderWorkerTemplate": {"size": 4, "workerTemplate": POD}}}

    assert [each.total for each in find_pods(alone, (leader, worker)) if each.template] == [8]
    assert [each.total for each in find_pods({"spec": {}}, (worker,))] == [1]


def test_a_job_has_no_more_pods_than_completions():
    counts = [({}, 1), ({"parallelism": 4}, 4), ({"parallelism": 4, "completions": 3}, 3), ({"completions": 0}, 0)]

    assert [count_job_pods(spec) for spec, _ in counts] == [count for _, count in counts]


@pytest.mark.parametrize("value", [None, 1, "x", [], [None], {"a": None}])
def test_values_of_wrong_types_raise_no_exception(value):
    for pod_sets in (POD_SETS | REPLICA_TYPES).values():
        for obj in (value, {"spec": value}, {"spec": dict.fromkeys(OBJECTS["ray.io", "RayJob"][0], value)}):
            assert all(each.total >= 0 for each in find_pods(obj, pod_sets)), obj


def test_operators_complete_the_templates_of_launchers():
    assert [str(step) for step in list_template_paths("batch.tensorstack.dev", "MPIJob")[0]] == [
        "spec",
        "replicaSpecs",
        "[type=worker]",
        "template",
    ]
    assert list_template_paths("example.com", "Unknown") == ()


KINDS = [
    kind
    for path in sorted((Path(__file__).parent.parent / "schemas").glob("*/*.yaml"))
    if "frameworks" in (kind := yaml.load(path.read_text("utf-8"), yaml.CSafeLoader))
]


@pytest.mark.parametrize("raw", KINDS, ids=[f"{kind['apiVersion']} {kind['kind']}" for kind in KINDS])
def test_kind_files_say_the_same(raw):
    [kind] = parse_kinds([raw])
    key = (kind.api_version.rpartition("/")[0], kind.name)
    if key in REPLICA_TYPES:
        paths = [f"spec.{kind.replicas.at[-1]}.{role.spelling}" for role in kind.roles.values()]
        assert {each.at for each in REPLICA_TYPES[key]} == set(paths)
    elif key in POD_SETS:
        obj = build(key)
        totals = {each.path: each.total for each in find_pods(obj, POD_SETS[key])}
        for item in kind.list_items(obj):
            role = find_definition(str(item.key), item.data, obj, kind)
            path = (*item.path, *map(str, kind.replicas.template))
            assert count_role_pods(item.data, role, kind) == totals[path]
    else:
        assert key[1].endswith("TrainingJob") or key[1] in ("MXJob", "TrainJob")

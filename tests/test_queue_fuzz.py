"""`jobgen queue` survives any value in any field of the exported state, the jobs and the configuration."""

import copy
import math
from random import Random

import pytest
from sampling import sample
from test_queue_attacks import FRAMEWORKS, cluster_queue, job, labeled, local_queue, made, template, training

from jobgen.api.errors import UsageError
from jobgen.features.kueue.job_workloads import collect_jobs
from jobgen.features.kueue.queues import suggest
from jobgen.features.kueue.queues.formats import FORMATS
from jobgen.features.kueue.queues.report import decide_environment
from jobgen.features.kueue.queues.timeline_report import build_timeline
from jobgen.features.kueue.queues.what_if import AppliedChange, WhatIf
from jobgen.features.kueue.queues.what_if_report import compare_environments
from jobgen.k8s.kueue_integrations import MULTIKUEUE
from jobgen.spec.overlay import Cluster

HOST, RACK = "kubernetes.io/hostname", "example.com/rack"
ACTIVE = {"conditions": [{"type": "Active", "status": "True"}]}


def node(name):
    labels = {"gpu": "f", RACK: "r", HOST: name}
    status = {
        "allocatable": {"cpu": "8", "memory": "1Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    taints = [{"key": "k", "value": "v", "effect": "NoSchedule"}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints, "unschedulable": False},
        "status": status,
    }


STATE = [
    cluster_queue(
        "a",
        {"cpu": (8, 4, 2), "pods": (9, 9, 9)},
        "all",
        ("f", "g"),
        fairSharing={"weight": "2"},
        preemption={
            "reclaimWithinCohort": "Any",
            "withinClusterQueue": "LowerPriority",
            "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 9},
        },
        flavorFungibility={"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor"},
        admissionChecksStrategy={"admissionChecks": [{"name": "check", "onFlavors": ["f"]}]},
        namespaceSelector={"matchExpressions": [{"key": "team", "operator": "In", "values": ["x"]}]},
    ),
    cluster_queue("b", {"cpu": (4, 4, 4)}, "all", ("h",), queueingStrategy="StrictFIFO", stopPolicy="None"),
    made("Cohort", "all", {"parentName": "top", "fairSharing": {"weight": 1}}),
    made("Cohort", "top", cluster_queue("x", {"cpu": (1, 1, 1)})["spec"]),
    local_queue("a", stopPolicy="None"),
    local_queue("b"),
    *(made("ResourceFlavor", name, {"nodeLabels": {"gpu": name}, "topologyName": "racks"}) for name in "fg"),
    made(
        "ResourceFlavor",
        "h",
        {
            "nodeTaints": [{"key": "k", "value": "v", "effect": "NoSchedule"}],
            "tolerations": [{"key": "k", "operator": "Exists"}],
        },
    ),
    made("Topology", "racks", {"levels": [{"nodeLabel": RACK}, {"nodeLabel": HOST}]}),
    node("n1"),
    node("n2"),
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "other", "namespace": "x"},
        "spec": {"nodeName": "n1", **template({"cpu": 1})["spec"]},
        "status": {"phase": "Running"},
    },
    made("WorkloadPriorityClass", "high", None, value=9),
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "p"}, "value": 1},
    made("LimitRange", "l", {"limits": [{"type": "Container", "default": {"cpu": 2}, "max": {"cpu": 9}}]}, "ml", "v1"),
    {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "kata"},
        "overhead": {"podFixed": {"cpu": "250m"}},
    },
    made("AdmissionCheck", "check", {"controllerName": "x"}, status=ACTIVE),
    cluster_queue("c", {"cpu": (4, 4, 4)}, "", ("h",), admissionChecks=["remote"]),
    local_queue("c"),
    made("AdmissionCheck", "remote", {"controllerName": MULTIKUEUE, "parameters": {"name": "workers"}}, status=ACTIVE),
    made("MultiKueueConfig", "workers", {"clusters": ["east"]}),
    made(
        "Workload",
        "job-y",
        {
            "queueName": "b",
            "priority": 1,
            "priorityClassRef": {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"},
            "podSets": [{"name": "main", "count": 2, "template": template({"cpu": 1})}],
            "preemptionGates": [{"name": "gate"}],
        },
        "ml",
        status={
            "preemptionGates": [{"name": "gate", "position": "Open"}],
            "admissionChecks": [{"name": "check", "state": "Ready"}],
            "reclaimablePods": [{"name": "main", "count": 1}],
            "conditions": [
                {"type": name, "status": "True", "reason": "x", "lastTransitionTime": "2026-11-18T00:00:00Z"}
                for name in ("QuotaReserved", "Admitted")
            ],
            "admission": {
                "clusterQueue": "b",
                "podSetAssignments": [
                    {"name": "main", "count": 2, "flavors": {"cpu": "h"}, "resourceUsage": {"cpu": "2"}}
                ],
            },
        },
    ),
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml", "labels": {"team": "x"}}},
]  # fmt: skip
TOLERATED = {"tolerations": [{"key": "k", "operator": "Equal", "value": "v"}], "nodeSelector": {"gpu": "f"}}
JOBS = [
    job("x", 3, {"cpu": 1}, labels={"kueue.x-k8s.io/priority-class": "high"},
        annotations={"kueue.x-k8s.io/job-min-parallelism": "2"}, runtimeClassName="kata", **TOLERATED),
    job("y", 2, {"cpu": 3}, queue="b", priorityClassName="p", initContainers=[{"resources": {"requests": {"cpu": 1}}}]),
    training("z", 1, 2, {"cpu": 1}),
    {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": labeled("w"),
        "spec": {
            "replicas": 2,
            "leaderWorkerTemplate": {
                "size": 2,
                "workerTemplate": template({"cpu": 1}, **TOLERATED)
                | {"metadata": {"annotations": {"kueue.x-k8s.io/podset-required-topology": RACK}}},
            },
        },
    },
]  # fmt: skip
SETTINGS = {
    "frameworks": FRAMEWORKS,
    "fairSharing": True,
    "managedJobsNamespaceSelector": {"matchLabels": {"team": "x"}},
    "resources": {
        "excludeResourcePrefixes": ["example.com/"],
        "transformations": [{"input": "gpu", "strategy": "Replace", "outputs": {"cpu": "2"}, "multiplyBy": "cpu"}],
        "deviceClassMappings": [{"name": "gpu", "deviceClassNames": ["x"]}],
    },
    "nodes": [{"flavor": "g", "count": 2, "labels": {RACK: "s"}, "capacity": {"cpu": 4}}],
}
INPUT = {"state": STATE, "jobs": JOBS, "kueue": SETTINGS}
VALUES = (
    *(None, True, 0, -1, 10**12, 10**400, -(10**400), math.nan, math.inf, 1.5),
    *("", "x", "1e999999999", "-1e999999999", "9" * 5000, "x" * 10**6, "\x1b[31m|<b>\n", "None"),
    *([], [None], [[]], ["x"], {}, {"x": None}, {"name": []}),
)


def list_paths(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield from list_paths(each, (*path, key))


def put(whole, path, value):
    """Return a copy with another value at a path; only what is on the path is copied."""
    if not path:
        return value
    changed = copy.copy(whole)
    changed[path[0]] = put(whole[path[0]], path[1:], value)
    return changed


@pytest.mark.parametrize("seed", sample(range(4), 2))
def test_no_value_breaks_the_decision(seed):
    random = Random(seed)
    paths = [path for path in list_paths(INPUT) if len(path) > 2]
    for _ in range(25):
        path, value = random.choice(paths), random.choice(VALUES)
        changed = put(INPUT, path, value)
        cluster = Cluster(kueue=changed["kueue"], operators={"kueue": "0.19"})
        objects = [each for each in changed["jobs"] if isinstance(each, dict)]
        queued = collect_jobs(objects, [each for each in changed["state"] if isinstance(each, dict)], cluster)
        report = decide_environment("prod", queued, lambda each: each.name == "y", "y")
        timeline = build_timeline("prod", queued, 0, (), lambda each: each.name == "y")
        text = FORMATS.render(random.choice(FORMATS.names()), [report])

        assert "\x1b" not in text, (path, value)
        assert all(each.reason and each.decision for each in report.decision.answers), (path, value)
        assert all(row.state for row in timeline.rows), (path, value)


CHANGES = """cq/a.f.cpu+=3; cq/a.f.cpu.borrowingLimit-=1; cq/b.h.lendingLimit=none; cq/b.cohortName=
    cq/b.stopPolicy=Hold; cq/a.preemption.borrowWithinCohort.policy=Never; cq/a.fairSharing.weight=3; cohort/top.f+=1
    cohort/all.parentName=; lq/a.clusterQueue=b; flavor/f-=1 node; flavor/g+=2 nodes; node/n1-; node/n1.cpu-=1
    node/n1.unschedulable=true; priority/high=1; job/x.replicas=4; job/z.worker.replicas+=1; job/w.replicas=1
    job/*.queue=b; job/y.priority=p; job/y.priority=high; job/z-; cq/a.f.=1; cq/a.f.x=1"""
PATCHES = [
    {**STATE[0], "spec": {"queueingStrategy": "StrictFIFO"}},
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "$patch": "delete"},
    {**JOBS[0], "spec": {"parallelism": 1}},
]


@pytest.mark.parametrize("seed", sample(range(4), 4))
def test_no_value_breaks_a_change_or_a_suggestion(seed, monkeypatch, stress):
    random = Random(seed)
    if stress == 1:
        # The work of the full search takes ten seconds for a state that many quotas fit.
        monkeypatch.setattr(suggest, "_MOST_WORK", suggest._MOST_WORK // 60)
    changes = [each.strip() for line in CHANGES.splitlines() for each in line.split(";")]
    paths = [path for path in list_paths(INPUT) if len(path) > 2]
    applied = 0
    for _ in range(25):
        path, value = random.choice(paths), random.choice(VALUES)
        changed = put(INPUT, path, value)
        cluster = Cluster(kueue=changed["kueue"], operators={"kueue": "0.19"})
        jobs, state = ([each for each in changed[side] if isinstance(each, dict)] for side in ("jobs", "state"))
        queued = {"prod": collect_jobs(jobs, state, cluster)}
        before = decide_environment("prod", queued["prod"], lambda each: each.name == "y", "y")

        def collect(_, change, given=(jobs, state, cluster)):
            return {"prod": collect_jobs(*change(*given, ""))}

        asked = WhatIf(tuple(random.sample(changes, 2)), (random.choice(PATCHES),))
        try:
            (report,) = compare_environments(
                [before], queued, collect, asked, lambda each: each.name == "y", lambda _: True
            )
        except UsageError:
            continue
        text = FORMATS.render(random.choice(FORMATS.names()), [report])
        applied += sum(isinstance(each, AppliedChange) for each in report.comparison.applied)

        assert "\x1b" not in text, (path, value)
    assert applied > 25

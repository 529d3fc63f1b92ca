"""`jobgen queue` with input that is wrong, huge or ambiguous: it ends in time, and says what it ignores."""

import json
import re
from random import Random

import pytest
from sampling import sample

from jobgen.features.kueue.job_workloads import collect_jobs
from jobgen.features.kueue.queues.formats import FORMATS
from jobgen.features.kueue.queues.report import decide_environment
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
    assert all(FORMATS.render(name, [report]) for name in FORMATS.names())
    assert json.loads(FORMATS.render("json", [report]))["version"] == 1


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


def find_answer(jobs, state, **options):
    return decide(jobs, state, **options).decision.answers[0]


def set_quota(objects, kind, name, field, resource, amount):
    """Return objects with more quota; a limit that is not set stays unset."""
    changed = json.loads(json.dumps(objects))
    (spec,) = (each["spec"] for each in changed if (each["kind"], each["metadata"]["name"]) == (kind, name))
    for quota in spec["resourceGroups"][0]["flavors"][0]["resources"]:
        if quota["name"] == resource:
            quota[field] += amount
    return changed


def build_tree(random):
    """Build a queue below up to three cohorts, with other queues that lend, and limits everywhere."""

    def quota(*, is_queue):
        nominal = random.randint(0, 9)
        limits = {"borrowingLimit": random.randint(0, 9), "lendingLimit": random.randint(0, nominal)}
        chosen = {name: value for name, value in limits.items() if random.random() < 0.5}
        return [{"name": "cpu", "nominalQuota": nominal, **chosen}] if is_queue or random.random() < 0.7 else []

    def groups(*, is_queue):
        resources = quota(is_queue=is_queue)
        flavor = {"name": "f", "resources": resources}
        return [{"coveredResources": ["cpu"], "flavors": [flavor]}] if resources else []

    depth = random.randint(1, 3)
    state = [FLAVOR, local_queue("a")]
    for name, cohort in (("a", "c0"), *((f"b{level}", f"c{level}") for level in range(depth))):
        spec = {"cohortName": cohort, "namespaceSelector": {}, "resourceGroups": groups(is_queue=True)}
        state.append(made("ClusterQueue", name, spec))
    for level in range(depth):
        parent = {"parentName": f"c{level + 1}"} if level + 1 < depth else {}
        state.append(made("Cohort", f"c{level}", {**parent, "resourceGroups": groups(is_queue=False)}))
    return state


RAISE = re.compile(r"raise `(\w+)` of (ClusterQueue|cohort) `(\w+)` by `(\d+)`")
REDUCE = re.compile(r"reduce `(\w+)` from (\d+) to (\d+) pods?")


@pytest.mark.parametrize("seed", sample(range(60), 5))
def test_suggested_changes_are_enough_and_the_smallest(seed):
    random = Random(seed)
    state, masters, workers, cpu = build_tree(random), random.randint(0, 2), random.randint(1, 30), random.randint(1, 3)
    answer = find_answer([training("x", masters, workers, {"cpu": cpu})], state)
    if answer.decision != "never":
        return
    field, kind, name, amount = RAISE.search(answer.obstacle.change).groups()

    def decide_with(more):
        raised = set_quota(state, kind.title() if kind == "cohort" else kind, name, field, "cpu", more)
        return find_answer([training("x", masters, workers, {"cpu": cpu})], raised).decision

    assert decide_with(int(amount)) != "never"
    assert decide_with(int(amount) - 1) == "never"
    if found := REDUCE.search(answer.obstacle.change):
        _, before, pods = found.groups()
        assert (found[1], int(before)) in (("worker", workers), ("master", masters))
        counts = (masters, int(pods)) if found[1] == "worker" else (int(pods), workers)
        more = (masters, int(pods) + 1) if found[1] == "worker" else (int(pods) + 1, workers)
        assert find_answer([training("x", *counts, {"cpu": cpu})], state).decision != "never"
        assert find_answer([training("x", *more, {"cpu": cpu})], state).decision == "never"


TAINTED = made(
    "ResourceFlavor",
    "f",
    {
        "nodeLabels": {"gpu": "a"},
        "nodeTaints": [{"key": key, "value": "v", "effect": "NoSchedule"} for key in ("one", "two")],
    },
)
RAISED = "raise `nominalQuota` of ClusterQueue `a` by"
UNCOVERED = "add `{}` to `coveredResources` of the queue with a quota in each flavor, or request none"
TOLERATED = "add a toleration for `{}=v:NoSchedule`"


@pytest.mark.parametrize(
    ("pods", "requests", "quotas", "spec", "expected"),
    [
        (
            3,
            {"cpu": 1, "memory": "1500Mi"},
            {"cpu": 2, "memory": "2Gi"},
            {},
            [f"reduce `main` from 3 to 1 pod, or {RAISED} `1` of `cpu` and `2452Mi` of `memory`"],
        ),
        (3, {"cpu": "700m"}, {"cpu": "1500m"}, {}, [f"reduce `main` from 3 to 2 pods, or {RAISED} `600m`"]),
        (5, {"cpu": 1}, {"cpu": 9, "pods": 3}, {}, [f"reduce `main` from 5 to 3 pods, or {RAISED} `2`"]),
        (2, {"cpu": 3}, {"cpu": 2}, {}, [f"request `4` less, or {RAISED} `4`"]),
        (
            5,
            {"cpu": 1, "memory": 1, "gpu": 1},
            {"cpu": 4},
            {},
            [
                UNCOVERED.format("memory"),
                UNCOVERED.format("gpu"),
                f"reduce `main` from 5 to 4 pods, or {RAISED} `1`",
            ],
        ),
        (5, {"cpu": 1}, {"memory": 4}, {"nodeSelector": {"gpu": "b"}}, [UNCOVERED.format("cpu")]),
        (
            1,
            {"cpu": 1},
            {"cpu": 4},
            {"nodeSelector": {"gpu": "b"}, "tainted": True},
            [TOLERATED.format("one"), TOLERATED.format("two"), "select nodes with `gpu=a`"],
        ),
        (
            9,
            {"cpu": 1},
            {"cpu": 4},
            {"least": 6},
            [f"admit `main` with 4 pods instead of 6 (`kueue.x-k8s.io/job-min-parallelism`), or {RAISED} `2`"],
        ),
    ],
)
def test_a_change_names_everything_that_stands_in_the_way(pods, requests, quotas, spec, expected):
    annotations = {"kueue.x-k8s.io/job-min-parallelism": str(spec["least"])} if "least" in spec else {}
    state = [TAINTED if "tainted" in spec else FLAVOR, cluster_queue("a", quotas), local_queue("a")]
    answer = find_answer([job("x", pods, requests, annotations=annotations, **spec)], state)

    assert (answer.decision, answer.obstacle.change.split("; also ")) == ("never", expected)


def replicated(api, kind, replicas):
    spec = {"replicas": replicas, "template": template({"cpu": 1})}
    spec |= {"leaderWorkerTemplate": {"workerTemplate": template({"cpu": 1})}}
    return {"apiVersion": api, "kind": kind, "metadata": labeled("x"), "spec": spec}


@pytest.mark.parametrize(
    ("api", "kind"), [("apps/v1", "Deployment"), ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")]
)
def test_a_billion_replicas_are_not_a_billion_workloads(api, kind):
    decision = decide([replicated(api, kind, 10**9)], with_quota()).decision

    expected = f"{kind} `ml/x` has 1000000000 workloads, of which only the first 2000 are simulated"
    assert (len(decision.answers), decision.assumptions[0]) == (2000, expected)
    assert decide([replicated(api, kind, 3)], with_quota()).decision.assumptions == ()


def test_nodes_beyond_those_of_a_large_cluster_are_left_out():
    nodes = [{"flavor": "f", "count": 10**12, "capacity": {"cpu": 4}}] * 3
    decision = decide([job("x", 1, {"cpu": 1})], with_quota(), nodes=nodes).decision

    assert decision.assumptions == ("`nodes` has 3000000000000 nodes, of which only the first 50000 are simulated",)
    decision = decide([job("x", 10**9, {"cpu": 4})], with_quota(), nodes=nodes).decision
    assert [each.decision for each in decision.answers] == ["waits"]


INVALID = "ClusterQueue `b` is not valid: "


@pytest.mark.parametrize(
    ("objects", "remark"),
    [
        (
            [cluster_queue("b", {"cpu": "lots"})],
            INVALID + "`nominalQuota` of `cpu` is `lots`, which",
        ),
        (
            [cluster_queue("b", {"cpu": None})],
            INVALID + "`nominalQuota` of `cpu` is `null`, which",
        ),
        (
            [cluster_queue("b", {"cpu": -1})],
            INVALID + "`nominalQuota` of `cpu` must not be negative, got `-1`",
        ),
        (
            [cluster_queue("b", {}, resourceGroups="x")],
            INVALID + "`resourceGroups` must be a list",
        ),
        (
            [cluster_queue("b", {"cpu": 1}, stopPolicy="hold")],
            INVALID + "`stopPolicy` is `hold`, and",
        ),
        (
            [local_queue("b", "a", stopPolicy=False)],
            "LocalQueue `b` is not valid: `stopPolicy` is `False`, and must be",
        ),
        ([made("Cohort", "b", "x")], "Cohort `b` is not valid: `spec` must be a mapping"),
        (
            [made("WorkloadPriorityClass", "b", None, value="9")],
            'WorkloadPriorityClass `b` is not valid: `value` is `"9"`, and must be a whole number',
        ),
        ([made("ClusterQueue", None, {})], "a ClusterQueue without a name is not read"),
        ([made("LocalQueue", "b", {}, api="")], "LocalQueue `b` is not read: it has no `apiVersion`; write"),
        (
            [made("ClusterQueue", "b", {}, api="example.com/v1")],
            "ClusterQueue `b` is not read: its `apiVersion` is `example.com/v1`; write `kueue.x-k8s.io/v1beta2`",
        ),
        ([made("Topology", "b", {}, api="example.com/v1")], ""),
        ([cluster_queue(f"b{number}", {"cpu": "x"}) for number in range(50)], "ClusterQueue `b0` is not valid"),
    ],
)
def test_objects_that_are_invalid_or_not_read_are_named(objects, remark):
    report = decide([job("x", 1, {"cpu": 1})], [*with_quota(), *objects])
    assumptions = report.decision.assumptions

    assert [each for each in assumptions if not remark or each.startswith(remark)][:1] == list(assumptions[:1])
    assert len(assumptions) == (21 if len(objects) > 1 else bool(remark))
    assert not remark or remark in FORMATS.render("text", [report])


def test_a_job_waits_for_the_fewest_pods_that_it_can_run_with():
    jobs = [job("r", 3, {"cpu": 1}), job("x", 5, {"cpu": 1}, annotations={"kueue.x-k8s.io/job-min-parallelism": "3"})]
    answer = decide(jobs, with_quota(), running=["r"]).decision.answers[1]

    assert (answer.decision, answer.reason) == ("waits", "it lacks `2` of `cpu` in flavor `f`")


def test_a_job_that_has_tried_all_flavors_waits_for_the_one_that_suits():
    flavors = [made("ResourceFlavor", name, {"nodeLabels": {"gpu": name}}) for name in "fg"]
    state = [*flavors, cluster_queue("a", {"cpu": 4}, flavors=("f", "g")), local_queue("a")]
    jobs = [job("r", 3, {"cpu": 1}, nodeSelector={"gpu": "f"}), training("x", 1, 2, {"cpu": 1})]
    for each in jobs[1]["spec"]["pytorchReplicaSpecs"].values():
        each["template"]["spec"]["nodeSelector"] = {"gpu": "f"}
    answer = decide(jobs, state, running=["r"]).decision.answers[1]

    assert (answer.decision, answer.reason) == ("waits", "it lacks `2` of `cpu` in flavor `f`")


def test_waiting_pods_are_counted():
    state = [FLAVOR, cluster_queue("a", {"cpu": 100, "pods": 3}), local_queue("a")]
    totals = decide([job("x", 2, {"cpu": 1}), job("y", 2, {"cpu": 1})], state).decision.totals

    assert {total.resource: (total.used, total.waiting) for total in totals} == {"cpu": (2000, 2000), "pods": (2, 2)}


def test_a_gate_holds_a_job_back():
    gate = {"kueue.x-k8s.io/admission-gated-by": "example.com/gate"}
    (answer,) = decide([job("x", 2, {"cpu": 1}, annotations=gate)], with_quota()).decision.answers

    reason = "its annotation `kueue.x-k8s.io/admission-gated-by` keeps it waiting until you remove the annotation"
    assert (answer.decision, answer.reason) == ("waits", reason)


PRIORITY = {"kueue.x-k8s.io/priority-class": "high"}
CLASSES = {
    "WorkloadPriorityClass": made("WorkloadPriorityClass", "low", None, value=1),
    "PriorityClass": {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "low"},
        "value": 1,
    },
}


@pytest.mark.parametrize("kind", CLASSES)
def test_a_priority_class_is_missing_only_if_the_files_have_others(kind):
    is_label = kind == "WorkloadPriorityClass"
    jobs = [job("x", 2, {"cpu": 1}, labels=PRIORITY if is_label else (), priorityClassName="" if is_label else "high")]
    assumed = decide(jobs, with_quota()).decision

    assert [each.decision for each in assumed.answers] == ["admitted"]
    assert assumed.assumptions == (f"{kind} `high` is not among the files; its value is assumed to be 0",)
    assert find_answer(jobs, [*with_quota(), CLASSES[kind]]).reason == f"{kind} `high` does not exist"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"requests": {"cpu": "four"}}, "`cpu` is `four`, which is not a quantity"),
        ({"requests": {"cpu": True}}, "`cpu` is `True`, which is not a quantity"),
        ({"requests": {"cpu": "-4"}}, "`cpu` is `-4`, and must not be negative"),
        ({"pods": "9"}, "`parallelism` is `9`, and must be a whole number that is not negative"),
        ({"pods": -1}, "`parallelism` is `-1`, and must be a whole number that is not negative"),
        ({"pods": 1.5}, "`parallelism` is `1.5`, and must be a whole number that is not negative"),
        ({"pods": ["x" * 10**6]}, f"`parallelism` is `['{'x' * 58}…`, and must be a whole number that is not negative"),
        ({"pods": 2**31}, "`parallelism` is `2147483648`, and must be at most 2147483647"),
        ({"pods": 2.0**63}, "`parallelism` is `9223372036854775808`, and must be at most 2147483647"),
        ({"requests": {"cpu": 0}}, None),
        ({"requests": {"cpu": None}}, None),
        ({"pods": None}, None),
    ],
    ids=range(12),
)
def test_a_job_with_values_that_a_cluster_rejects_is_never_admitted(change, reason):
    answer = find_answer([job("x", **{"pods": 1, "requests": {"cpu": 1}, **change})], with_quota())

    assert (answer.decision, answer.reason) == (
        ("never", reason) if reason else ("admitted", "ClusterQueue `a` has quota for it")
    )


def test_the_pods_of_all_replicas_are_counted_together():
    several = {"name": "w", "replicas": 2**16, "template": {"spec": job("x", 2**15, {"cpu": 0})["spec"]}}
    made = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": labeled("x")}
    jobs = [{**made, "spec": {"replicatedJobs": [several]}}]
    answer = find_answer(jobs, with_quota(), frameworks=["jobset.x-k8s.io/jobset"])

    assert (answer.decision, answer.reason) == ("never", "`w` has more than 2147483647 pods, the most")


@pytest.mark.parametrize("policy", ["Hold", "HoldAndDrain"])
@pytest.mark.parametrize("is_local", [True, False])
def test_a_queue_that_is_held_does_not_stop_what_runs(policy, is_local):
    stop = {"stopPolicy": policy}
    state = [
        FLAVOR,
        cluster_queue("a", {"cpu": 4}, **({} if is_local else stop)),
        local_queue("a", **(stop if is_local else {})),
    ]
    jobs = [job("x", 3, {"cpu": 1}), job("y", 3, {"cpu": 1}), job("z", 1, {"cpu": 1})]
    first = "running" if policy == "Hold" else "never"

    assert decisions(jobs, state, running=["x", "y"]) == {"ml/x": first, "ml/y": "never", "ml/z": "never"}


def test_deep_cohorts_are_cut_with_fair_sharing():
    """Comparing shares in a chain of thousands of cohorts would take minutes; the report says what is left out."""
    chain = [made("Cohort", f"c{number}", {"parentName": f"c{number + 1}"}) for number in range(3000)]
    queues = [cluster_queue(f"q{number}", {"cpu": (4, 2)}, f"c{number * 100}") for number in range(20)]
    state = [FLAVOR, *chain, *queues, *(local_queue(f"q{number}") for number in range(20))]
    jobs = [job(f"j{number}", 1, {"cpu": "3"}, queue=f"q{number % 20}") for number in range(60)]

    report = decide(jobs, state, fairSharing=True)

    assert {answer.decision for answer in report.decision.answers} == {"admitted", "waits"}
    notes = [note for note in report.decision.assumptions if "its parents are not simulated" in note]
    assert len(notes) == 15
    assert not any("not simulated" in note for note in decide(jobs[:1], state).decision.assumptions)

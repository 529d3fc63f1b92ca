"""MultiKueue, admission checks and devices in `jobgen queue`."""

import base64
import json
import shutil
from pathlib import Path
from random import Random

import jsonschema
import pytest
import yaml
from jobgenprocess import run_here

from jobgen.api.errors import NotFoundError, UsageError
from jobgen.api.lint import lint
from jobgen.features.kueue.queue import queue
from jobgen.features.kueue.workloads import parse_workload
from jobgen.k8s.kueue_integrations import MULTIKUEUE, explain_dispatch

SCHEMA = json.loads((Path(__file__).parent.parent / "docs/queue_v1.json").read_text("utf-8"))
GPU = "nvidia.com/gpu"


def made(kind, name, spec, namespace="", api="kueue.x-k8s.io/v1beta2", **more):
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec, **more}


def make_queue(gpus, *, flavors=("h100",), resources=(GPU,), **spec):
    quotas = [
        {"name": name, "resources": [{"name": each, "nominalQuota": gpus} for each in resources]} for name in flavors
    ]
    groups = [{"coveredResources": list(resources), "flavors": quotas}]
    return [
        *(made("ResourceFlavor", name, {"nodeLabels": {"gpu": name}}) for name in flavors),
        made("ClusterQueue", "research", {"namespaceSelector": {}, "resourceGroups": groups, **spec}),
        made("LocalQueue", "research", {"clusterQueue": "research"}, "ml"),
    ]


def make_manager(gpus, clusters, *, check="workers"):
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "workers"}
    return [
        *make_queue(gpus, admissionChecks=[check]),
        made("AdmissionCheck", "workers", {"controllerName": MULTIKUEUE, "parameters": parameters}),
        made("MultiKueueConfig", "workers", {"clusters": clusters}),
    ]


def make_job(name, pods=1, *, gpus=8, requests=None, priority="", kind="Job", managed_by=None, **pod):
    container = {"name": "train", "image": "registry.example.com/train:1", "command": ["train"]}
    limits = {GPU: gpus} | (requests or {}) if gpus else dict(requests or {})
    template = {
        "spec": {"restartPolicy": "Never", "containers": [container | {"resources": {"limits": limits}}], **pod}
    }
    labels = {"kueue.x-k8s.io/queue-name": "research"}
    labels |= {"kueue.x-k8s.io/priority-class": priority} if priority else {}
    metadata = {"name": name, "namespace": "ml", "labels": labels}
    spec = {"parallelism": pods, "completions": pods, "template": template}
    spec |= {"managedBy": managed_by} if managed_by else {}
    if kind == "LeaderWorkerSet":
        spec = {"replicas": pods, "leaderWorkerTemplate": {"size": 1, "workerTemplate": {"spec": template["spec"]}}}
        spec["leaderWorkerTemplate"]["workerTemplate"]["spec"].pop("restartPolicy")
        return {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


FRAMEWORKS = ["batch/job", "leaderworkerset.x-k8s.io/leaderworkerset"]


@pytest.fixture
def project(tmp_path):
    """Write a repository: jobs, the state of each cluster, and settings of the manager."""

    def write(jobs, states, *, clusters=None, version="0.19", overlays=(), **settings):
        names = [name for name in states if name != "manager"]
        declared = clusters if clusters is not None else {name: {"state": f"cluster/{name}"} for name in names}
        multi = {"multiKueue": {"clusters": declared, **settings.pop("multi", {})}} if declared else {}
        kueue = {"version": version, "frameworks": FRAMEWORKS, **multi, **settings}
        spec = {"cluster": {"state": "cluster/manager", "kueue": kueue}}
        every = {"manager": spec, **dict(overlays)}
        files = {
            f"overlays/{name}/overlay.yaml": {"apiVersion": "jobgen.dev/v1", "kind": "Overlay", "spec": each}
            for name, each in every.items()
        }
        files |= {
            f"cluster/{name}/state.yaml": {"apiVersion": "v1", "kind": "List", "items": items}
            for name, items in states.items()
        }
        files |= {f"jobs/{obj['metadata']['name']}.yaml": obj for obj in jobs}
        files["jobgen.yaml"] = {"environments": ["manager"]}
        for path, content in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(yaml.safe_dump(content, sort_keys=False))
        return tmp_path

    return write


def answers(folder, **options):
    result = queue(folder, **options)
    assert not result.failed, result.findings
    (report,) = result.reports
    return {each.key.removeprefix("ml/"): each for each in report.decision.answers}


def places(folder, **options):
    """The decision about each job, and what each cluster says."""
    found = answers(folder, **options)
    return {key: (each.decision, {one.name: one.decision for one in each.clusters}) for key, each in found.items()}


def test_the_first_worker_that_has_room_runs_a_job_and_a_race_is_said(project):
    states = {"manager": make_manager(64, ["west", "east"]), "west": make_queue(16), "east": make_queue(8)}
    folder = project([make_job("a"), make_job("b", 2)], states)

    found = answers(folder)

    assert places(folder) == {
        "a": ("admitted", {"west": "admitted", "east": "possible"}),
        "b": ("waits", {"west": "waits", "east": "never"}),
    }
    assert "`west` or `east` admits it, whichever is first; jobgen assumes `west`" in found["a"].reason
    assert "it lacks `8`" in found["b"].clusters[0].reason
    assert "allows `8` in flavor `h100`" in found["b"].clusters[1].reason
    (report,) = queue(folder).reports
    assert any("the first in order is assumed" in note for note in report.list_notes())
    assert [(name, total.used) for name, total in report.decision.cluster_totals] == [("west", 8), ("east", 0)]


def test_without_a_race_the_cluster_is_certain(project):
    states = {"manager": make_manager(64, ["west", "east"]), "west": make_queue(8), "east": make_queue(16)}

    found = answers(project([make_job("a", 2)], states))["a"]

    assert found.reason.endswith("; worker cluster `east` admits it")


def test_a_job_that_no_worker_can_admit_is_never_admitted_and_keeps_its_quota(project):
    states = {"manager": make_manager(64, ["west"]), "west": make_queue(8)}
    folder = project([make_job("a", 4), make_job("b", 9)], states)

    found = answers(folder)

    assert (found["a"].decision, found["b"].decision) == ("never", "never")
    assert "and keeps it, but no worker cluster ever admits it" in found["a"].reason
    (total,) = queue(folder).reports[0].decision.totals
    assert (total.used, total.waiting) == (32, 0)


def test_what_becomes_of_jobs_if_a_cluster_is_lost(project):
    states = {"manager": make_manager(64, ["west", "east"]), "west": make_queue(16), "east": make_queue(8)}
    folder = project([make_job("a"), make_job("b", 2)], states)

    lost = answers(folder, lost=["west"])

    assert places(folder, lost=["west"])["a"] == ("admitted", {"west": "lost", "east": "admitted"})
    assert "it moves from worker cluster `west` to `east`" in lost["a"].reason
    assert places(folder, lost=["west", "east"])["a"] == ("waits", {"west": "lost", "east": "lost"})
    with pytest.raises(NotFoundError, match="there is no worker cluster `wets`; did you mean `west`"):
        queue(folder, lost=["wets"])


def test_what_runs_in_another_cluster_does_not_give_way_to_the_jobs_of_a_lost_one(project):
    states = {"manager": make_manager(64, ["west", "east"]), "west": make_queue(8), "east": make_queue(16)}
    folder = project([make_job("a"), make_job("b", 2)], states)

    found = answers(folder, lost=["west"])

    assert places(folder, lost=["west"])["b"] == ("admitted", {"west": "lost", "east": "admitted"})
    assert (found["a"].decision, found["a"].reason.partition(";")[0]) == ("waits", "it loses worker cluster `west`")


def test_the_incremental_dispatcher_asks_clusters_in_rounds(project):
    states = {"manager": make_manager(64, ["west", "east"]), "west": make_queue(8), "east": make_queue(16)}
    jobs = [make_job("a"), make_job("b", 2)]
    multi = {"dispatcher": "Incremental", "stepSize": 1}

    newest = places(project(jobs, states, multi=multi))

    assert newest["a"] == ("admitted", {"west": "admitted", "east": "later"})
    assert newest["b"] == ("admitted", {"west": "never", "east": "admitted"})


@pytest.mark.parametrize(("version", "first"), [("0.19", "west"), ("0.18", "east")])
def test_the_order_of_rounds_is_that_of_the_config_since_0_19(project, version, first):
    names = ["west", "south", "north", "east"]
    states = {"manager": make_manager(64, names), **{name: make_queue(8) for name in names}}

    found = places(project([make_job("a")], states, version=version, multi={"dispatcher": "Incremental"}))["a"][1]

    assert [name for name, decision in found.items() if decision == "admitted"] == [first]
    assert [name for name, decision in found.items() if decision == "later"] == [
        {"west": "east", "east": "west"}[first]
    ]


@pytest.mark.parametrize(
    ("kind", "managed_by", "version", "message"),
    [
        ("Job", "", (0, 8), ""),
        ("PyTorchJob", MULTIKUEUE, (0, 8), "does not send PyTorchJobs"),
        ("PyTorchJob", MULTIKUEUE, (0, 9), ""),
        ("JobSet", "", (0, 10), "`managedBy` is not set"),
        ("JobSet", "", (0, 11), ""),
        ("JobSet", "jobset.sigs.k8s.io/jobset-controller", (0, 19), ""),
        ("JobSet", "example.com/other", (0, 19), "`managedBy` is `example.com/other`"),
        ("Job", "example.com/other", (0, 14), ""),
        ("Job", "example.com/other", (0, 15), "`managedBy` is `example.com/other`"),
        ("TrainJob", "", (0, 13), "does not send TrainJobs"),
        ("TrainJob", "", (0, 14), ""),
        ("LeaderWorkerSet", "", (0, 16), "does not send LeaderWorkerSets"),
        ("LeaderWorkerSet", "", (0, 17), ""),
        ("SparkApplication", MULTIKUEUE, (0, 19), "does not send SparkApplications"),
    ],
)
def test_kinds_that_a_version_sends_to_workers(kind, managed_by, version, message):
    found = explain_dispatch(kind, managed_by, version)

    assert (found is None) if not message else (found is not None and message in found[0])


def test_a_job_with_another_controller_is_never_admitted(project):
    states = {"manager": make_manager(64, ["west"]), "west": make_queue(64)}
    folder = project([make_job("a", managed_by="example.com/other")], states)

    found = answers(folder)["a"]
    rules = {finding.rule for finding in lint(folder).findings if "managedBy" in finding.message}

    assert (found.decision, found.obstacle.code) == ("never", "cluster")
    assert rules == {"inadmissible-job"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda state: state[:2], "there is no LocalQueue `research`"),
        (lambda state: [*state, made("Namespace", "other", {}, api="v1")], "it has no namespace `ml`"),
        (
            lambda state: [
                *make_queue(64, admissionChecks=["more"]),
                made("AdmissionCheck", "more", {"controllerName": MULTIKUEUE}),
            ],
            "sends no job further",
        ),
    ],
)
def test_why_a_worker_refuses(project, change, reason):
    states = {"manager": make_manager(64, ["west"]), "west": change(make_queue(64))}

    found = answers(project([make_job("a")], states))["a"]

    assert found.decision == "never"
    assert reason in found.clusters[0].reason


def test_a_worker_that_is_not_declared_is_assumed_to_admit(project):
    states = {"manager": make_manager(64, ["west", "far"]), "west": make_queue(8)}

    found = answers(project([make_job("a", 2)], states))["a"]

    assert (found.decision, [each.decision for each in found.clusters]) == ("admitted", ["never", "unknown"])
    assert "`far`, whose queues are not among the files, is assumed to admit it" in found.reason


def test_what_runs_in_a_worker_uses_its_quota(project):
    assignment = {"name": "main", "count": 1, "flavors": {GPU: "h100"}, "resourceUsage": {GPU: "8"}}
    status = {
        "admission": {"clusterQueue": "research", "podSetAssignments": [assignment]},
        "conditions": [{"type": "QuotaReserved", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    }
    running = made("Workload", "local", {"queueName": "research"}, "ml", status=status)
    states = {"manager": make_manager(64, ["west"]), "west": [*make_queue(8), running]}
    folder = project([make_job("a")], states)

    assert places(folder)["a"] == ("waits", {"west": "waits"})
    running["metadata"]["labels"] = {"kueue.x-k8s.io/multikueue-origin": "manager"}
    assert places(project([make_job("a")], states))["a"] == ("admitted", {"west": "admitted"})


def test_the_groups_of_a_leader_worker_set_stay_together(project):
    states = {"manager": make_manager(64, ["west", "east"]), "west": make_queue(8), "east": make_queue(16)}

    found = places(project([make_job("a", 2, kind="LeaderWorkerSet")], states))

    assert found["a-0"] == ("admitted", {"west": "admitted", "east": "possible"})
    assert found["a-1"] == ("waits", {"west": "waits"})


PRIORITIES = [
    {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "WorkloadPriorityClass",
        "metadata": {"name": name},
        "value": value,
    }
    for name, value in (("high", 100), ("low", 1))
]


@pytest.mark.parametrize(("version", "decision"), [("0.19", "admitted"), ("0.15", "waits")])
def test_a_job_that_is_evicted_in_a_worker_is_sent_again_since_0_16(project, version, decision):
    west = make_queue(16, preemption={"withinClusterQueue": "LowerPriority"})
    # The manager sends the small job first: its own quota has no order by priority for running jobs.
    states = {"manager": [*make_manager(64, ["west", "east"]), *PRIORITIES], "west": west, "east": make_queue(8)}
    jobs = [make_job("small", priority="low"), make_job("urgent", 2, priority="high")]

    found = places(project(jobs, states, version=version), running=["small"])

    assert found["urgent"] == ("admitted", {"west": "preempts", "east": "never"})
    assert found["small"][0] == (decision if decision == "waits" else "running")
    assert found["small"][1].get("east") == ("admitted" if decision == "admitted" else None)


def test_devices_that_only_the_manager_can_count_are_never_admitted(project):
    claim = made(
        "ResourceClaimTemplate",
        "gpu",
        {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": 8}}]}}},
        "ml",
        "resource.k8s.io/v1",
    )
    manager = [*make_manager(64, ["west"]), claim]
    job = make_job("a", gpus=0, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "gpu"}])
    resources = {"deviceClassMappings": [{"name": GPU, "deviceClassNames": ["gpu"]}]}

    without = answers(project([job], {"manager": manager, "west": make_queue(8)}, resources=resources))["a"]
    both = answers(project([job], {"manager": manager, "west": [*make_queue(8), claim]}, resources=resources))["a"]

    assert (without.decision, both.decision) == ("never", "admitted")
    assert "ResourceClaimTemplate `gpu` does not exist" in without.clusters[0].reason


@pytest.mark.parametrize(
    ("clusters", "overlays", "message"),
    [
        ({"west": {"environment": "wset"}}, {"west": {}}, "there is no overlay `wset`; did you mean `west`?"),
        ({"west": {"environment": "manager"}}, {}, "`manager` is its own worker cluster"),
        ({"west": {"state": "cluster/none"}}, {}, "there is no folder `cluster/none`"),
        ({"west": {}}, {}, "worker cluster is empty"),
    ],
)
def test_worker_clusters_that_do_not_exist_are_errors_with_a_location(project, clusters, overlays, message):
    states = {"manager": make_manager(64, ["west"]), "west": make_queue(8)}
    folder = project([make_job("a")], states, clusters=clusters, overlays=overlays)

    found = [*queue(folder).findings, *lint(folder).findings]

    assert any(message in each.message or message in str(each) for each in found)
    assert all(each.location.line > 0 for each in found)


def test_managers_of_each_other_end(project):
    other = {"state": "cluster/west", "kueue": {"multiKueue": {"clusters": {"back": {"environment": "manager"}}}}}
    states = {"manager": make_manager(64, ["west"]), "west": make_manager(64, ["back"])}
    clusters = {"west": {"environment": "west"}}

    found = answers(project([make_job("a")], states, clusters=clusters, overlays={"west": {"cluster": other}}))["a"]

    assert found.decision == "never"


@pytest.mark.parametrize("spec", [None, "x", [], {"clusters": "west"}, {"clusters": [{"a": 1}, None] * 30_000}])
def test_odd_configs_and_workloads_of_workers_end_in_a_decision(project, spec):
    manager = make_manager(64, ["west"])
    manager[-1]["spec"] = spec
    assignment = {"name": "main", "count": "x", "flavors": [], "resourceUsage": {GPU: "x"}}
    status = {
        "admission": {"clusterQueue": "research", "podSetAssignments": [assignment, 1]},
        "conditions": [{"type": "QuotaReserved", "status": "True"}, "x"],
    }
    odd = made("Workload", "odd", {"podSets": [{"count": "x"}], "priority": "y"}, "ml", status=status)

    found = answers(project([make_job("a")], {"manager": manager, "west": [*make_queue(8), odd]}))["a"]

    assert found.decision in ("admitted", "waits")


def test_a_worker_environment_need_not_be_listed(project):
    overlays = {"west": {"cluster": {"state": "cluster/west", "kueue": {"version": "0.18"}}}}
    states = {"manager": make_manager(64, ["west"]), "west": make_queue(8)}
    folder = project([make_job("a")], states, clusters={"west": {"environment": "west"}}, overlays=overlays)

    assert places(folder)["a"] == ("admitted", {"west": "admitted"})
    assert not [each for each in lint(folder).findings if each.rule == "unlisted-overlay"]


def test_json_has_the_clusters(project):
    states = {"manager": make_manager(64, ["west", "east"]), "west": make_queue(16), "east": make_queue(8)}
    folder = project([make_job("a"), make_job("b", 9)], states)

    document = json.loads(queue(folder, format="json").text)

    jsonschema.validate(document, SCHEMA)
    (environment,) = document["environments"]
    assert [each["decision"] for each in environment["workloads"][0]["clusters"]] == ["admitted", "possible"]
    assert [each["cluster"] for each in environment["clusterTotals"]] == ["west", "east"]
    assert environment["notSimulated"] == ["time", "autoscaling", "admission checks"]
    assert "west&#58; admitted" in queue(folder, format="markdown").text


@pytest.mark.parametrize(
    ("answer", "decisions", "used"),
    [
        ("Ready", ("admitted", "waits"), 8),
        ("Pending", ("waits", "waits"), 8),
        ("Retry", ("waits", "waits"), 0),
        ("Rejected", ("never", "never"), 0),
    ],
)
def test_declared_answers_of_admission_checks(project, answer, decisions, used):
    check = made("AdmissionCheck", "nodes", {"controllerName": "kueue.x-k8s.io/provisioning-request"})
    states = {"manager": [*make_queue(8, admissionChecks=["nodes"]), check]}
    folder = project([make_job("a"), make_job("b")], states, admissionChecks={"nodes": answer})

    found = answers(folder)

    assert tuple(each.decision for each in found.values()) == decisions
    assert queue(folder).reports[0].decision.totals[0].used == used
    is_reported = any(each.rule == "inadmissible-job" for each in lint(folder).findings)
    assert is_reported == (answer == "Rejected")


def test_a_pending_check_keeps_a_job_from_its_start_in_a_timeline(project):
    check = made("AdmissionCheck", "nodes", {"controllerName": "kueue.x-k8s.io/provisioning-request"})
    job = make_job("a")
    job["metadata"]["annotations"] = {"jobgen.dev/expected": "10h"}
    states = {"manager": [*make_queue(8, admissionChecks=["nodes"]), check]}
    folder = project([job], states, admissionChecks={"nodes": "Pending", "nodez": "Retry"})

    (row,) = queue(folder, timeline=True, begin="2026-11-18").timelines[0].rows
    assert (row.state, row.starts) == ("waits", None)
    assert "admission check `nodes`" in row.describe()
    assert any("`nodez`" in each for each in queue(folder).reports[0].decision.assumptions)


def test_a_reservation_without_a_time_counts_and_one_without_an_admission_does_not():
    spec = {"queueName": "research", "podSets": [{"name": "main", "count": 1, "template": {"spec": {}}}]}
    status = {"conditions": [{"type": "QuotaReserved", "status": "True"}]}
    obj = {"metadata": {"name": "w", "namespace": "ml"}, "spec": spec, "status": status}
    assert parse_workload(obj).reserved == ""
    status["admission"] = {"clusterQueue": "research", "podSetAssignments": [{"name": "main"}]}
    assert parse_workload(obj).reserved


def test_a_check_of_one_flavor_concerns_what_uses_it(project):
    strategy = {"admissionChecks": [{"name": "nodes", "onFlavors": ["spot"]}]}
    queues = make_queue(8, flavors=("h100", "spot"), admissionChecksStrategy=strategy)
    check = made("AdmissionCheck", "nodes", {"controllerName": "example.com/nodes"})
    folder = project(
        [make_job("a"), make_job("b")], {"manager": [*queues, check]}, admissionChecks={"nodes": "Rejected"}
    )

    found = answers(folder)

    assert (found["a"].decision, found["b"].decision) == ("admitted", "never")
    assert "admission check `nodes` rejects it" in found["b"].reason


def test_what_waits_is_booked_to_the_flavor_that_its_pods_can_use(project):
    queues = make_queue(8, flavors=("h100", "a100"), resources=("cpu", GPU))
    jobs = [make_job(name, requests={"cpu": 1}, nodeSelector={"gpu": "a100"}) for name in ("a", "b")]

    totals = queue(project(jobs, {"manager": queues})).reports[0].decision.totals

    waiting = {(each.flavor, each.resource): each.waiting for each in totals}
    assert waiting == {("h100", "cpu"): 0, ("h100", GPU): 0, ("a100", "cpu"): 1000, ("a100", GPU): 8}


def test_pods_that_fill_no_slice_are_said_to_stay_gated(project):
    queues = make_queue(64)
    queues[0]["spec"]["topologyName"] = "racks"
    levels = [{"nodeLabel": "example.com/rack"}, {"nodeLabel": "kubernetes.io/hostname"}]
    state = [*queues, made("Topology", "racks", {"levels": levels})]
    job = make_job("a", 5)
    annotations = {"podset-slice-required-topology": "example.com/rack", "podset-slice-size": "2"}
    job["spec"]["template"]["metadata"] = {
        "annotations": {f"kueue.x-k8s.io/{name}": value for name, value in annotations.items()}
    }
    node = {"flavor": "h100", "count": 8, "labels": {"example.com/rack": "r1"}, "capacity": {GPU: 8}}
    folder = project([job], {"manager": state}, nodes=[node])

    assert "1 of its pods fill no slice and stay gated" in answers(folder)["a"].reason
    assert any("does not divide the 5 pods" in each.message for each in lint(folder).findings)


def test_devices_are_charged_by_counters_of_resource_slices(project):
    devices = [
        {
            "name": f"mig-{number}",
            "attributes": {"gpu.example.com/profile": {"string": profile}},
            "capacity": {"gpu.example.com/memory": {"value": "10Gi"}},
            "consumesCounters": [{"counterSet": "gpu", "counters": {"memory": {"value": "10Gi"}}}],
        }
        for number, profile in enumerate(("1g", "1g", "3g"))
    ]
    pool = {"name": "node", "generation": 1, "resourceSliceCount": 1}
    slices = made(
        "ResourceSlice",
        "node",
        {"driver": "gpu.example.com", "pool": pool, "devices": devices},
        "",
        "resource.k8s.io/v1",
    )
    memory = "device.capacity['gpu.example.com'].memory.compareTo(quantity('5Gi')) > 0"
    selectors = [
        {"cel": {"expression": "device.attributes['gpu.example.com'].profile == '1g'"}},
        {"cel": {"expression": memory}},
    ]
    exactly = {"deviceClassName": "mig", "count": 2, "selectors": selectors}
    claim = made(
        "ResourceClaimTemplate",
        "mig",
        {"spec": {"devices": {"requests": [{"name": "mig", "exactly": exactly}]}}},
        "ml",
        "resource.k8s.io/v1",
    )
    selector = {"cel": {"expression": "device.driver == 'gpu.example.com'"}}
    source = {"counter": {"name": "memory", "driver": "gpu.example.com", "deviceSelector": selector}}
    resources = {"deviceClassMappings": [{"name": "gpu.memory", "deviceClassNames": ["mig"], "sources": [source]}]}
    job = make_job("a", gpus=0, resourceClaims=[{"name": "mig", "resourceClaimTemplateName": "mig"}])
    queues = make_queue("30Gi", resources=("gpu.memory",))

    both = answers(project([job], {"manager": [*queues, claim, slices]}, resources=resources))["a"]
    unknown = queue(project([job], {"manager": [*queues, claim]}, resources=resources)).reports[0]

    assert (both.decision, dict(both.workload.pod_sets[0].requests)) == ("admitted", {"gpu.memory": 20 * 2**30})
    assert any("no ResourceSlice is among the files" in note for note in unknown.list_notes())
    exactly["count"] = 3
    few = answers(project([job], {"manager": [*queues, claim, slices]}, resources=resources))["a"]
    assert (few.decision, "2 devices of DeviceClass `mig` match it, but it requests 3" in few.reason) == ("never", True)


def test_a_merge_that_changes_a_worker_shows_what_becomes_of_jobs(project, tmp_path_factory):
    states = {"manager": make_manager(64, ["west"]), "west": make_queue(8)}
    folder = project([make_job("a", 2)], states)
    old = tmp_path_factory.mktemp("old") / "repository"
    shutil.copytree(folder, old)
    project([make_job("a", 2)], states | {"west": make_queue(16)})

    code, out, err = run_here(["diff", "--folders", str(old), str(folder), "-e", "manager"])

    assert (code, err) == (0, "")
    text = base64.b64decode(out).decode()
    assert "ml/a: never → admitted" in text
    assert "not simulated: time, autoscaling, admission checks\n" in text


@pytest.mark.parametrize("seed", range(8))
def test_one_more_worker_takes_no_job_from_its_place(project, seed):
    random = Random(seed)
    names = ["west", "east", "north"]
    sizes = {name: random.choice((8, 16, 24)) for name in names}
    jobs = [make_job(f"j{number}", random.randint(1, 3)) for number in range(8)]

    def place(several):
        states = {name: make_queue(sizes[name]) for name in several}
        (report,) = queue(project(jobs, {"manager": make_manager(512, several), **states})).reports
        for name, total in report.decision.cluster_totals:
            assert total.used <= sizes[name]
        found = report.decision.answers
        running = [(each.key, [one.name for one in each.clusters if one.decision == "admitted"]) for each in found]
        assert all(len(where) <= 1 for _, where in running)
        return {key: where[0] for key, where in running if where}

    before, after = place(names[:2]), place(names)

    assert before.items() <= after.items()


def test_suggested_quota_is_that_of_the_worker_cluster_which_lacks_least(project):
    """The manager has quota for everything; east lacks 8, and west lacks 24."""
    states = {"manager": make_manager(100, ["west", "east"]), "west": make_queue(16), "east": make_queue(32)}
    folder = project([make_job("big", 5), make_job("small", 2)], states)
    (report,) = queue(folder, suggest=True).reports
    suggestion = report.comparison.suggestion

    assert [each.change for each in suggestion.quotas] == [f"cluster/east/cq/research.h100.{GPU}+=8"]
    assert suggestion.impossible == ()
    assert report.comparison.applied[0].what.endswith("of ClusterQueue `research` in worker cluster `east`")
    assert {each.decision for each in report.decision.answers} == {"admitted"}
    document = json.loads(queue(folder, suggest=True, format="json").text)
    jsonschema.validate(document, SCHEMA)
    # With one unit less, the change that is printed does not admit it.
    (less,) = queue(folder, what_if=[f"cluster/east/cq/research.h100.{GPU}+=7"]).reports
    assert {each.key: each.decision for each in less.decision.answers} == {"ml/big": "never", "ml/small": "admitted"}


def test_no_quota_admits_what_no_worker_cluster_can_run(project):
    states = {
        "manager": make_manager(100, ["west"]),
        "west": [each for each in make_queue(4) if each["kind"] != "LocalQueue"],
    }
    (report,) = queue(project([make_job("big")], states), suggest=True).reports
    [(key, reason)] = report.comparison.suggestion.impossible

    assert key == "ml/big"
    assert "worker cluster `west`: there is no LocalQueue `research`" in reason


def test_what_if_a_worker_cluster_is_lost(project):
    states = {"manager": make_manager(100, ["west", "east"]), "west": make_queue(16), "east": make_queue(16)}
    folder = project([make_job("first", 1), make_job("second", 1), make_job("third", 2)], states)
    (report,) = queue(folder, what_if=["cluster/west-"]).reports
    lost = queue(folder, lost=["west"]).reports[0]
    changes = {each.workload: each for each in report.comparison.changes.workloads}

    assert [each[1:4] for each in report.comparison.applied] == [("worker cluster `west`", "", "lost")]
    assert [each.decision for each in report.decision.answers] == [each.decision for each in lost.decision.answers]
    assert {key: (each.before, each.after) for key, each in changes.items()} == {
        "ml/first": ("admitted", "waits"),
        "ml/second": ("admitted", "waits"),
    }
    balance = report.comparison.changes.balance
    assert [each[1:] for each in balance if each.name == "unused"] == [
        ("68", "68", GPU, "h100", ""),
        ("0", "0", GPU, "h100", "east"),
        ("0", "0", GPU, "h100", "west"),
    ]
    shown = queue(folder, what_if=["cluster/west/cq/research.h100=24"], format="json").text
    jsonschema.validate(json.loads(shown), SCHEMA)
    assert '"after": "8", "resource": "nvidia.com/gpu", "flavor": "h100", "cluster": "west"' in " ".join(shown.split())
    assert (
        "unused nvidia.com/gpu in h100 in west       0      8"
        in queue(folder, what_if=["cluster/west/cq/research.h100=24"]).text
    )
    # The same queues in both, if a cluster is lost anyway.
    (again,) = queue(folder, lost=["west"], what_if=["cluster/east/cq/research.h100=32"]).reports
    moved = {each.workload: (each.before, each.after) for each in again.comparison.changes.workloads}
    assert moved == {"ml/first": ("waits", "admitted"), "ml/second": ("waits", "admitted")}
    assert [each.cluster for each in again.comparison.changes.quota] == ["east"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("cluster/wst-", "names no worker cluster; did you mean `west`?"),
        ("cluster/nowhere/cq/research.h100=1", "names no worker cluster; the overlay declares `west`"),
        ("cluster/west=1", "write `cluster/west-` to lose it"),
        ("cluster/west/job/first-", "the manager cluster has the jobs"),
        ("cluster/west/cq/reserch.h100=1", "names no ClusterQueue; did you mean `research`?"),
    ],
)
def test_changes_of_worker_clusters_that_are_wrong(change, message, project):
    states = {"manager": make_manager(100, ["west"]), "west": make_queue(16)}
    with pytest.raises(UsageError) as error:
        queue(project([make_job("first")], states), what_if=[change])
    assert message in str(error.value)


STATES = {"manager": make_manager(64, ["west", "east"]), "west": make_queue(8), "east": make_queue(16)}


def test_another_dispatcher_decides_where_jobs_go(project):
    multi = {"dispatcher": "example.com/cheapest"}
    folder = project(
        [make_job("fits", gpus=8), make_job("east", gpus=16), make_job("large", gpus=17)], STATES, multi=multi
    )

    assert places(folder) == {
        "fits": ("waits", {"west": "unknown", "east": "unknown"}),
        "east": ("waits", {"west": "never", "east": "unknown"}),
        "large": ("never", {"west": "never", "east": "never"}),
    }
    assert (
        "the dispatcher `example.com/cheapest` decides which worker cluster gets it" in answers(folder)["fits"].reason
    )
    assert find_inadmissible(folder).keys() == {"large"}
    assert [each.rule for each in lint(folder).findings if each.location.file.startswith("overlays")] == []
    assert follow(folder)[0] == {"fits": [], "east": [], "large": []}


@pytest.mark.parametrize("name", ["AllAtOnce", "kueue.x-k8s.io/multikueue-dispatcher-all-at-once"])
def test_a_dispatcher_of_kueue_can_have_its_long_name(project, name):
    assert places(project([make_job("fits", gpus=8)], STATES, multi={"dispatcher": name}))["fits"][0] == "admitted"


def test_a_lost_cluster_that_never_admits_a_job_does_not_help_it(project):
    found = places(project([make_job("east", gpus=16), make_job("large", gpus=17)], STATES), lost=["east"])

    assert found["east"] == ("waits", {"east": "lost", "west": "never"})
    assert found["large"] == ("never", {"east": "never", "west": "never"})


def find_inadmissible(folder):
    return {each.object.name: each for each in lint(folder).findings if each.rule == "inadmissible-job"}


def test_lint_reports_what_no_worker_cluster_ever_admits(project):
    jobs = [make_job("fits", gpus=8), make_job("east", gpus=16), make_job("large", gpus=17)]
    folder = project(jobs, STATES)
    found = find_inadmissible(folder)

    assert found.keys() == {name for name, each in answers(folder).items() if each.decision == "never"} == {"large"}
    assert "no worker cluster ever admits it (west: it requests `17` of `nvidia.com/gpu`" in found["large"].message
    # The state of a worker is a part of what a lint depends on.
    (folder / "cluster/east/state.yaml").write_text(
        yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": make_queue(32)})
    )
    assert find_inadmissible(folder) == {}


def test_lint_points_at_what_is_too_large_for_all_worker_clusters(project):
    west = [each for each in make_queue(8) if each["kind"] != "LocalQueue"]
    jobs = [make_job("large", gpus=17), make_job("many", 3, gpus=8), make_job("other", requests={"cpu": 1})]
    jobs.append(make_job("tpu", gpus=0, requests={"google.com/tpu": 4}))
    manager = make_manager(64, ["west", "east"])
    for each in manager:
        for group in each["spec"].get("resourceGroups", ()):
            group["coveredResources"] += ["cpu", "google.com/tpu"]
            for name in ("cpu", "google.com/tpu"):
                group["flavors"][0]["resources"].append({"name": name, "nominalQuota": 64})
    folder = project(jobs, STATES | {"manager": manager, "west": west})
    found = find_inadmissible(folder)

    def read_line(location):
        return (folder / location.file).read_text("utf-8").splitlines()[location.line - 1].strip()

    assert {name: read_line(each.location) for name, each in found.items()} == {
        "large": "nvidia.com/gpu: 17",
        "many": "nvidia.com/gpu: 8",
        "other": "cpu: 1",
        "tpu": "google.com/tpu: 4",
    }
    assert [read_line(each.location) for each in found["many"].related] == ["parallelism: 3"]


def test_a_worker_cluster_that_is_not_known_may_admit(project):
    states = {"manager": make_manager(64, ["west", "east"]), "west": make_queue(8)}

    assert find_inadmissible(project([make_job("large", gpus=17)], states)) == {}


def test_lint_reports_a_missing_folder_of_a_worker_cluster(project):
    folder = project([make_job("one")], STATES)
    shutil.rmtree(folder / "cluster/east")
    messages = [each.message for each in lint(folder).findings if "cluster/east" in each.message]

    assert len(messages) == 1
    assert messages == [each.message for each in queue(folder).findings]


# The same in time: `jobgen queue --timeline`.


def timed(name, gpus, expected, deadline=""):
    job = make_job(name, gpus=gpus)
    texts = {"jobgen.dev/expected": expected, "jobgen.dev/deadline": deadline}
    job["metadata"]["annotations"] = {key: value for key, value in texts.items() if value}
    return job


def follow(folder, **options):
    """Where each job runs, and from when to when, in hours."""
    text = queue(folder, timeline=True, begin="2026-11-18", format="json", **options).text
    (environment,) = json.loads(text)["environments"]
    return {
        row["name"]: [
            (run["cluster"], *(run[side] and int(run[side][11:13]) for side in ("start", "end"))) for run in runs
        ]
        for row in environment["workloads"]
        for runs in row["runs"]
    }, environment


def test_a_job_starts_when_a_worker_cluster_has_room(project):
    jobs = [timed("a", 8, "2h"), timed("b", 16, "3h"), timed("c", 8, "4h"), timed("d", 16, "1h")]
    found, environment = follow(project(jobs, STATES))

    # `a` and `b` fill both clusters; `c` fits the first that ends, and `d` only `east`.
    assert found == {"a": [("west", 0, 2)], "b": [("east", 0, 3)], "c": [("west", 2, 6)], "d": [("east", 3, 4)]}
    rows = {row["name"]: row for row in environment["workloads"]}
    assert rows["c"]["waitsFor"] == ["ml/a"]
    used = {use.get("cluster", ""): use["percent"] for use in environment["utilization"]}
    # The manager keeps the quota of what waits: 8 for 2, 16 for 3, 8 for 6 and 16 for 4 hours of 64 in 6 hours.
    assert used == {"": 46, "west": 100, "east": 67}


def test_the_first_moment_of_a_timeline_is_the_decision(project):
    folder = project([timed(f"j{number}", 1 + number % 9, "2h") for number in range(14)], STATES)
    now, _ = follow(folder)
    decided = {
        name: [one for one, what in clusters.items() if what == "admitted"]
        for name, (_, clusters) in places(folder).items()
    }

    assert decided == {name: [runs[0][0]] if runs and runs[0][1] == 0 else [] for name, runs in now.items()}


def test_a_lost_cluster_in_a_timeline(project):
    jobs = [timed("a", 8, "2h"), timed("b", 8, "3h", "2026-11-18T04:00Z"), timed("c", 16, "1h")]
    found, environment = follow(project(jobs, STATES), lost=["east"])
    changes = {
        each["workload"]: (each["change"], each["after"]["missed"]) for each in environment["comparison"]["workloads"]
    }

    assert found == {"a": [("west", 0, 2)], "b": [("west", 2, 5)], "c": []}
    assert changes == {"ml/b": ("later", True), "ml/c": ("later", False)}


def test_a_worker_cluster_admits_by_priority_when_a_job_ends(project):
    classes = [made("WorkloadPriorityClass", "high", {}, value=9)]
    states = {"manager": [*make_manager(64, ["west"]), *classes], "west": [*make_queue(8), *classes]}
    high = timed("later", 8, "1h")
    high["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "high"
    found, _ = follow(project([timed("first", 8, "2h"), timed("second", 8, "1h"), high], states), running=["first"])

    assert found == {"first": [("west", 0, 2)], "later": [("west", 2, 3)], "second": [("west", 3, 4)]}


def make_captured(job, *, sent=False, **more):
    """The Workload of a job that has quota; a copy in a worker cluster if it was sent there."""
    usage = {"name": "main", "count": 1, "flavors": {GPU: "h100"}, "resourceUsage": {GPU: "8"}}
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": "2026-11-17T23:00:00Z"}
        for kind in ("QuotaReserved", "Admitted")
    ]
    status = {"admission": {"clusterQueue": "research", "podSetAssignments": [usage]}, "conditions": conditions}
    captured = made("Workload", f"job-{job}", {"queueName": "research"}, "ml", status=status | more)
    captured["metadata"]["ownerReferences"] = [{"kind": "Job", "name": job}]
    captured["metadata"]["labels"] = {"kueue.x-k8s.io/multikueue-origin": "multikueue"} if sent else {}
    return captured


def add_captured(states, **several):
    return states | {name: [*states[name], *objects] for name, objects in several.items()}


def test_a_capture_says_where_a_job_runs(project):
    states = add_captured(STATES, manager=[make_captured("b", clusterName="east")])
    found, _ = follow(project([timed("a", 8, "2h"), timed("b", 8, "3h")], states))

    assert found == {"a": [("west", 0, 2)], "b": [("east", 23, 2)]}
    lost, _ = follow(project([timed("a", 8, "2h"), timed("b", 8, "3h")], states), lost=["east"])
    assert lost == {"a": [("west", 0, 2)], "b": [("west", 2, 5)]}


@pytest.mark.parametrize("named", [{"clusterName": "east"}, {}], ids=["manager", "worker"])
def test_a_job_stays_where_a_capture_shows_it_in_every_answer(project, named):
    copy = [make_captured("a", sent=True)]
    states = add_captured(STATES, manager=[make_captured("a", **named)], **({} if named else {"east": copy}))
    folder = project([timed("a", 8, "3h"), timed("b", 8, "2h")], states)
    found = answers(folder)

    assert {key: each.cluster for key, each in found.items()} == {"a": "east", "b": "west"}
    assert found["a"].reason == "it runs already; worker cluster `east` runs it"
    assert follow(folder)[0] == {"a": [("east", 23, 2)], "b": [("west", 0, 2)]}
    (without,) = queue(folder, lost=["west"]).reports
    assert {each.key: each.cluster for each in without.decision.answers} == {"ml/a": "east", "ml/b": "east"}
    assert "moves" not in without.decision.answers[0].reason
    (compared,) = queue(folder, what_if=["cluster/west-"]).reports
    assert [each.workload for each in compared.comparison.changes.workloads] == ["ml/b"]


def test_a_running_job_keeps_its_worker_cluster_above_the_quota(project):
    states = add_captured(STATES, manager=[make_captured("a", clusterName="east")])
    folder = project([timed("a", 8, "3h")], states)
    (report,) = queue(folder, what_if=["cluster/east/cq/research.h100=4"]).reports
    (answer,) = report.decision.answers

    assert (answer.decision, answer.cluster) == ("running", "east")
    assert report.comparison.changes.workloads == ()
    assert [(name, each.nominal, each.used) for name, each in report.decision.cluster_totals] == [
        ("west", 8, 0),
        ("east", 4, 8),
    ]


def test_a_job_leaves_a_worker_cluster_that_the_config_has_no_more(project):
    states = add_captured(STATES, manager=[make_captured("a", clusterName="north")])
    found = answers(project([timed("a", 8, "3h")], states))["a"]

    assert (found.decision, found.cluster) == ("running", "west")
    assert found.reason.startswith("it moves from worker cluster `north` to `west`; ")


def test_a_job_that_loses_its_worker_cluster_starts_again_from_its_beginning(project):
    states = add_captured(STATES, manager=[make_captured("a", clusterName="west")])
    folder = project([timed("a", 8, "3h")], states)

    assert follow(folder)[0] == {"a": [("west", 23, 2)]}
    for options in ({"lost": ["west"]}, {"what_if": ["cluster/west-"]}):
        found, environment = follow(folder, **options)
        (change,) = environment["comparison"]["workloads"]
        assert found == {"a": [("east", 0, 3)]}
        assert change["after"]["ends"]["latest"] == "2026-11-18T03:00Z"


def test_what_the_manager_did_not_send_is_said_to_use_quota(project):
    states = add_captured(STATES, east=[make_captured("x"), make_captured("y"), make_captured("a", sent=True)])
    folder = project([timed("a", 8, "3h")], states)
    note = "worker cluster `east`: in the capture are 2 Workloads that the manager did not send, which use `16` of"

    for options in ({}, {"timeline": True, "begin": "2026-11-18"}):
        assert f"{note} `nvidia.com/gpu` in flavor `h100`\n" in queue(folder, **options).text
        assert note not in queue(folder, lost=["east"], **options).text


def test_what_is_no_job_of_the_repository_uses_quota_where_it_was_sent(project):
    states = add_captured(
        STATES, manager=[make_captured("x", clusterName="west")], west=[make_captured("x", sent=True)]
    )
    folder = project([timed("a", 8, "3h")], states)
    (report,) = queue(folder).reports

    assert [(each.key, each.cluster) for each in report.decision.answers] == [("ml/a", "east")]
    assert [(name, each.used) for name, each in report.decision.cluster_totals] == [("west", 8), ("east", 8)]
    assert follow(folder)[0]["a"] == [("east", 0, 3)]


def test_two_captures_with_the_same_workload_are_named(project):
    copy = make_captured("a", sent=True)
    states = add_captured(STATES, manager=[make_captured("a")], west=[copy], east=[copy, make_captured("b", sent=True)])
    (report,) = queue(project([timed("a", 8, "3h")], states)).reports
    (note,) = (each for each in report.decision.assumptions if "captures" in each)

    assert report.decision.answers[0].cluster == "west"
    assert note.startswith(
        "the captures of worker clusters `west` and `east` have the same Workloads with quota: `ml/job-a`;"
    )
    assert note.endswith("without `status.clusterName` in the manager's, jobgen assumes `west`")


def test_a_worker_cluster_changes_in_a_timeline(project):
    jobs = [timed("a", 8, "2h"), timed("b", 16, "3h"), timed("c", 16, "1h")]
    folder = project(jobs, STATES)

    def compare(**options):
        changes = follow(folder, **options)[1]["comparison"]["workloads"]
        return {each["workload"]: (each["change"], each["after"]["cluster"]) for each in changes}

    assert compare(what_if=["cluster/east/cq/research.h100+=16"]) == {"ml/c": ("earlier", "east")}
    lost = {"ml/b": ("later", ""), "ml/c": ("later", "")}
    assert compare(what_if=["cluster/east-"]) == compare(lost=["east"]) == lost
    # Only what the change does: without `east`, a larger `west` runs the others after `a`.
    assert compare(what_if=["cluster/west/cq/research.h100=16"], lost=["east"]) == {
        "ml/b": ("earlier", "west"),
        "ml/c": ("earlier", "west"),
    }


@pytest.mark.parametrize("seed", range(4))
def test_no_cluster_is_overfull_and_none_is_idle_while_a_job_fits(project, seed):
    chance = Random(seed)
    sizes = {f"j{number:02}": chance.choice((1, 2, 4, 8, 16)) for number in range(18)}
    folder = project(
        [timed(name, gpus, f"{chance.randint(1, 3)}h") for name, gpus in sizes.items()],
        STATES | {"manager": make_manager(999, ["west", "east"])},
    )
    runs = {name: several[0] for name, several in follow(folder)[0].items()}

    for now in sorted({start for _, start, _ in runs.values()}):
        free = {"west": 8, "east": 16}
        for name, (cluster, start, end) in runs.items():
            free[cluster] -= sizes[name] if start <= now < end else 0
        waiting = [sizes[name] for name, (_, start, _) in runs.items() if start > now]
        assert min(free.values()) >= 0
        assert max(free.values()) < min(waiting, default=99)

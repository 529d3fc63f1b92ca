"""Decisions by the declared version of Kueue: feature gates, fields that a version does not know, and notes."""

from pathlib import Path

import pytest

from jobgen.features.kueue.answers import decide
from jobgen.features.kueue.cluster_objects import (
    DEFAULT_GATES,
    GATES,
    NEWEST,
    gates_at,
    has_gate,
    parse_configuration,
    parse_gates,
)
from jobgen.features.kueue.job_workloads import collect_jobs
from jobgen.features.kueue.pod_sets import ALL_GATES
from jobgen.features.kueue.pod_sets import parse_gates as parse_pod_set_gates
from jobgen.features.kueue.preemption import Rules
from jobgen.features.kueue.queue_state import QueueState
from jobgen.features.kueue.topology.tree import TopologyGates, read_gates
from jobgen.features.kueue.version_notes import DIFFERENCES, show_version
from jobgen.k8s.kueue_integrations import parse_release
from jobgen.spec.overlay import parse_cluster

KUEUE = "kueue.x-k8s.io/v1beta2"
RACK = "example.com/rack"
HOST = "kubernetes.io/hostname"


def made(kind, name, spec, namespace="", api=KUEUE, **metadata):
    where = {"namespace": namespace} if namespace else {}
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, **where, **metadata}, "spec": spec}


def queue(name, flavors, **spec):
    """A ClusterQueue for CPU: the quota of each flavor, with limits if it is a mapping."""
    quotas = {key: each if isinstance(each, dict) else {"nominalQuota": each} for key, each in flavors.items()}
    several = [{"name": key, "resources": [{"name": "cpu", **each}]} for key, each in quotas.items()]
    group = {"coveredResources": ["cpu"], "flavors": several}
    return made("ClusterQueue", name, {"namespaceSelector": {}, "resourceGroups": [group], **spec})


def local_queue(name, target="a"):
    return made("LocalQueue", name, {"clusterQueue": target}, "ml")


def flavor(name, **spec):
    return made("ResourceFlavor", name, spec)


def job(name="j", pods=1, cpu=8, queue_name="main", annotations=None, pod=None, placed=None):
    """A Job; `pod` is the spec of its pods, and `placed` their annotations."""
    requests = cpu if isinstance(cpu, dict) else {"cpu": cpu}
    spec = {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}], **(pod or {})}
    marks = {"kueue.x-k8s.io/queue-name": queue_name} if queue_name else {}
    return made(
        "Job",
        name,
        {
            "parallelism": pods,
            "completions": pods,
            "template": {"metadata": {"annotations": placed or {}}, "spec": spec},
        },
        "ml",
        "batch/v1",
        labels=marks,
        annotations=annotations or {},
    )


PLAIN = (flavor("f"), local_queue("main"))
LENDING = (
    *PLAIN,
    queue("a", {"f": 4}, cohortName="c"),
    queue("b", {"f": {"nominalQuota": 8, "lendingLimit": 0}}, cohortName="c"),
)
COHORT_QUOTA = {"resourceGroups": queue("", {"f": 8})["spec"]["resourceGroups"]}
COHORT = (*PLAIN, queue("a", {"f": 4}, cohortName="c"), made("Cohort", "c", COHORT_QUOTA))
CYCLE = (
    *PLAIN,
    queue("a", {"f": 8}, cohortName="c"),
    made("Cohort", "c", {"parentName": "d"}),
    made("Cohort", "d", {"parentName": "c"}),
)
SIMPLE = (*PLAIN, queue("a", {"f": 8}))
RACKS = (
    local_queue("main"),
    flavor("f", topologyName="t", nodeLabels={"n": "y"}),
    made("Topology", "t", {"levels": [{"nodeLabel": RACK}, {"nodeLabel": HOST}]}),
    queue("a", {"f": 100}),
)
NODES = {"nodes": [{"flavor": "f", "count": 2, "labels": {RACK: rack}, "capacity": {"cpu": 8}} for rack in "ab"]}
ON = {"TopologyAwareScheduling": True}


def make_annotations(**annotations):
    """Annotations of a placement: `slice_size` is `kueue.x-k8s.io/podset-slice-size`, and so on."""
    return {f"kueue.x-k8s.io/podset-{name.replace('_', '-')}": value for name, value in annotations.items()}


IN_RACK = job(pods=3, placed=make_annotations(required_topology=RACK))
ON_HOST = make_annotations(required_topology=RACK, slice_required_topology=HOST, slice_size="2")
LAYERS = f'[{{"topology": "{RACK}", "size": 2}}, {{"topology": "{HOST}", "size": 2}}]'
BY_LAYERS = make_annotations(required_topology=RACK, slice_required_topology_constraints=LAYERS)

PREFERENCE = {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor"}


def choose(preference=""):
    """A queue where a job can preempt in its own flavor `x`, or borrow in `y`."""
    fungibility = PREFERENCE | ({"preference": preference} if preference else {})
    preemption = {"withinClusterQueue": "LowerPriority"}
    return (
        flavor("x"),
        flavor("y"),
        local_queue("main"),
        queue("a", {"x": 8, "y": 0}, cohortName="c", flavorFungibility=fungibility, preemption=preemption),
        queue("b", {"x": 0, "y": 8}, cohortName="c"),
        made("PriorityClass", "high", {}, api="scheduling.k8s.io/v1") | {"value": 10},
    )


LOW, HIGH = job("low"), job("high", pod={"priorityClassName": "high"})
CREDITS = {
    "resources": {"transformations": [{"input": "cpu", "strategy": "Replace", "outputs": {"example.com/credits": "1"}}]}
}
UNDECLARED = {"resources": {"quotaCheckStrategy": "IgnoreUndeclared"}}
UNCOVERED = job(cpu={"cpu": 1, "example.com/gpu": 1})
TEMPLATE = made(
    "ResourceClaimTemplate",
    "t",
    {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}},
    "ml",
    "resource.k8s.io/v1",
)
CLAIM = {"resourceClaims": [{"name": "r", "resourceClaimTemplateName": "t"}]}
DEVICES = {"resources": {"deviceClassMappings": [{"name": "example.com/gpus", "deviceClassNames": ["gpu"]}]}}
EXTENDED = made("DeviceClass", "gpu", {"extendedResourceName": "example.com/gpu"}, api="resource.k8s.io/v1")
SELECTOR = {"managedJobsNamespaceSelector": {"matchLabels": {"managed": "yes"}}}
NAMESPACE = made("Namespace", "ml", {}, api="v1")
DEFAULT_QUEUE = (flavor("f"), local_queue("default"), queue("a", {"f": 8}))
MIN = {"kueue.x-k8s.io/job-min-parallelism": "1"}


def explain(version, objects, *jobs, gates=None, enabled=None, running=(), **kueue):
    """Decide about jobs; return the decision about the last one, and the notes."""
    block = {"kueue": {"version": version, **kueue} | ({} if gates is None else {"featureGates": gates})}
    cluster = parse_cluster(block | ({} if enabled is None else {"featureGates": enabled}))
    queued = collect_jobs((*objects, *jobs), (), cluster)
    keys = frozenset(each.key for job in queued.jobs if job.name in running for each in job.workloads)
    found = decide(queued.context, queued.jobs, keys)
    last = next(each for each in found.answers if each.job.name == jobs[-1]["metadata"]["name"])
    return last.decision, "\n".join(found.assumptions)


@pytest.mark.parametrize(
    ("version", "case", "options", "decision"),
    [
        ("0.8", (LENDING, job()), {}, "borrows"),
        ("0.8", (LENDING, job()), {"gates": {"LendingLimit": True}}, "never"),
        ("0.9", (LENDING, job()), {}, "never"),
        ("0.18", (LENDING, job()), {"gates": {"LendingLimit": False}}, "borrows"),
        ("0.19", (LENDING, job()), {"gates": {"LendingLimit": False}}, "never"),
        ("0.8", (COHORT, job()), {}, "never"),
        ("0.9", (COHORT, job()), {}, "borrows"),
        ("0.10", (COHORT, job()), {"gates": {"HierarchicalCohorts": False}}, "borrows"),
        ("0.12", (COHORT, job()), {"gates": {"HierarchicalCohorts": False}}, "never"),
        ("0.8", (CYCLE, job()), {}, "admitted"),
        ("0.9", (CYCLE, job()), {}, "never"),
        ("0.13", (RACKS, IN_RACK), NODES, "admitted"),
        ("0.13", (RACKS, IN_RACK), {**NODES, "gates": ON}, "never"),
        ("0.13", (RACKS, IN_RACK), {**NODES, "enabled": list(ON)}, "never"),
        ("0.13", (RACKS, IN_RACK), {**NODES, "enabled": list(ON), "gates": {}}, "admitted"),
        ("0.14", (RACKS, IN_RACK), NODES, "never"),
        ("0.19", (RACKS, IN_RACK), {**NODES, "gates": {"TopologyAwareScheduling": False}}, "admitted"),
        ("0.19", (RACKS, IN_RACK), {**NODES, "enabled": []}, "never"),
        ("0.12", (RACKS, job(pods=2, placed=ON_HOST)), {**NODES, "gates": ON}, "admitted"),
        ("0.13", (RACKS, job(pods=2, placed=ON_HOST)), {**NODES, "gates": ON}, "never"),
        ("0.16", (RACKS, job(pods=2, placed=BY_LAYERS)), NODES, "admitted"),
        ("0.18", (RACKS, job(pods=2, placed=BY_LAYERS)), NODES, "admitted"),
        ("0.18", (RACKS, job(pods=2, placed=BY_LAYERS)), {**NODES, "gates": {"TASMultiLayerTopology": True}}, "never"),
        ("0.19", (RACKS, job(pods=2, placed=BY_LAYERS)), NODES, "never"),
        ("0.14", (choose("PreemptionOverBorrowing"), LOW, HIGH), {"running": ["low"]}, "borrows"),
        ("0.15", (choose("PreemptionOverBorrowing"), LOW, HIGH), {"running": ["low"]}, "borrows"),
        ("0.15", (choose("BorrowingOverPreemption"), LOW, HIGH), {"running": ["low"]}, "preempts"),
        ("0.16.1", (choose("PreemptionOverBorrowing"), LOW, HIGH), {"running": ["low"]}, "borrows"),
        ("0.16.2", (choose("PreemptionOverBorrowing"), LOW, HIGH), {"running": ["low"]}, "preempts"),
        ("0.16", (choose("PreemptionOverBorrowing"), LOW, HIGH), {"running": ["low"]}, "preempts"),
        ("0.19", (choose("BorrowingOverPreemption"), LOW, HIGH), {"running": ["low"]}, "borrows"),
        ("0.14", (choose(), LOW, HIGH), {"running": ["low"]}, "borrows"),
        (
            "0.14",
            (choose(), LOW, HIGH),
            {"running": ["low"], "gates": {"FlavorFungibilityImplicitPreferenceDefault": True}},
            "preempts",
        ),
        ("0.9", (SIMPLE, job()), CREDITS, "admitted"),
        ("0.9", (SIMPLE, job()), {**CREDITS, "gates": {"ConfigurableResourceTransformations": True}}, "never"),
        ("0.10", (SIMPLE, job()), CREDITS, "never"),
        ("0.17", (SIMPLE, UNCOVERED), UNDECLARED, "never"),
        ("0.18", (SIMPLE, UNCOVERED), UNDECLARED, "never"),
        ("0.18", (SIMPLE, UNCOVERED), {**UNDECLARED, "gates": {"QuotaCheckStrategy": True}}, "admitted"),
        ("0.19", (SIMPLE, UNCOVERED), UNDECLARED, "admitted"),
        ("0.17", ((*SIMPLE, TEMPLATE), job(pod=CLAIM)), DEVICES, "admitted"),
        (
            "0.17",
            ((*SIMPLE, TEMPLATE), job(pod=CLAIM)),
            {**DEVICES, "gates": {"DynamicResourceAllocation": True}},
            "never",
        ),
        ("0.18", ((*SIMPLE, TEMPLATE), job(pod=CLAIM)), DEVICES, "never"),
        ("0.18", ((*SIMPLE, TEMPLATE), job(pod=CLAIM)), {"gates": {"KueueDRAIntegration": False}}, "never"),
        (
            "0.18",
            ((*SIMPLE, TEMPLATE), job(pod=CLAIM)),
            {"gates": {"KueueDRAIntegration": False, "KueueDRARejectWorkloadsWhenDRADisabled": False}},
            "admitted",
        ),
        ("0.11", (DEFAULT_QUEUE, job(queue_name="")), {}, "unmanaged"),
        ("0.11", (DEFAULT_QUEUE, job(queue_name="")), {"gates": {"LocalQueueDefaulting": True}}, "admitted"),
        ("0.12", (DEFAULT_QUEUE, job(queue_name="")), {}, "admitted"),
        ("0.14", ((*SIMPLE, NAMESPACE), job()), SELECTOR, "admitted"),
        ("0.15", ((*SIMPLE, NAMESPACE), job()), SELECTOR, "unmanaged"),
        ("0.19", (SIMPLE, job(pods=2, annotations=MIN)), {}, "admitted"),
        ("0.19", (SIMPLE, job(pods=2, annotations=MIN)), {"gates": {"PartialAdmission": False}}, "never"),
        ("0.20", (LENDING, job()), {}, "never"),
        ("0.7", (LENDING, job()), {}, "borrows"),
    ],
)
def test_the_declared_version_decides(version, case, options, decision):
    assert explain(version, *case, **options)[0] == decision


@pytest.mark.parametrize(
    ("version", "case", "options", "note"),
    [
        (
            "0.20",
            (SIMPLE, job()),
            {},
            "Kueue 0.20 is newer than the versions that jobgen knows; jobgen decides like 0.19",
        ),
        ("0.7", (SIMPLE, job()), {}, "Kueue 0.7 is older than the versions that jobgen knows; jobgen decides like 0.8"),
        ("0.8", (LENDING, job()), {}, "Kueue 0.8 ignores `lendingLimit`"),
        ("0.8", (COHORT, job()), {}, "Kueue 0.8 ignores Cohort objects"),
        ("0.13", (RACKS, job()), NODES, "ignores topologies (feature gate `TopologyAwareScheduling`)"),
        ("0.16", (RACKS, job()), NODES, "`kueue.x-k8s.io/podset-slice-required-topology-constraints`"),
        ("0.16", (RACKS, job()), NODES, "decides differently: ties between domains"),
        ("0.14", (choose("PreemptionOverBorrowing"), LOW), {}, "ignores `flavorFungibility.preference`"),
        (
            "0.16.0",
            (choose("PreemptionOverBorrowing"), LOW),
            {},
            "Kueue 0.16.0 swaps the values of `flavorFungibility.preference`",
        ),
        ("0.9", (SIMPLE, job()), CREDITS, "ignores `transformations`"),
        ("0.18", (SIMPLE, job()), UNDECLARED, "ignores `quotaCheckStrategy`"),
        ("0.17", (SIMPLE, job()), DEVICES, "ignores claims of devices"),
        (
            "0.17",
            (SIMPLE, job()),
            {"gates": {"ConcurrentAdmission": True}},
            "has no feature gate `ConcurrentAdmission`",
        ),
        (
            "0.18",
            (SIMPLE, job()),
            {"gates": {"ConcurrentAdmission": True}},
            "does not simulate feature gate `ConcurrentAdmission`",
        ),
        ("0.13", (SIMPLE, job()), {"fairSharing": True}, "decides differently: what fair sharing preempts"),
    ],
)
def test_what_a_version_ignores_is_a_note(version, case, options, note):
    assert note in explain(version, *case, **options)[1]


@pytest.mark.parametrize(("version", "is_never"), [("0.8", False), ("0.9", True), ("0.19", True)])
def test_lint_decides_as_the_declared_version(version, is_never):
    state = QueueState(parse_cluster({"kueue": {"version": version}}), (), LENDING)
    assert (state.find_obstacle(job()) is not None) == is_never


@pytest.mark.parametrize("version", ["0.19", "0.19.2", "0.14"])
def test_a_version_that_decides_as_simulated_has_no_note(version):
    assert explain(version, SIMPLE, job(), gates={"VisibilityOnDemand": True})[1] == ""


def test_extended_resources_of_device_classes_are_charged_by_version():
    """The queue covers only what the device class is charged as."""
    spec = queue("a", {"f": 8})["spec"]
    (group,) = spec["resourceGroups"]
    both = {"name": "example.com/gpus", "nominalQuota": 8}
    covered = {
        "coveredResources": ["cpu", "example.com/gpus"],
        "flavors": [{"name": "f", "resources": [*group["flavors"][0]["resources"], both]}],
    }
    objects = (*PLAIN, EXTENDED, made("ClusterQueue", "a", {**spec, "resourceGroups": [covered]}))
    decisions = {version: explain(version, objects, UNCOVERED, **DEVICES)[0] for version in ("0.17", "0.18", "0.19")}
    assert decisions == {"0.17": "never", "0.18": "never", "0.19": "admitted"}


def test_the_newest_version_has_the_gates_that_the_simulation_has_by_default():
    gates = gates_at(NEWEST, {})
    assert parse_gates(gates) == DEFAULT_GATES
    assert read_gates(gates) == TopologyGates()
    assert parse_pod_set_gates(gates) == ALL_GATES
    assert parse_configuration({}, "0.19").rules == Rules()
    assert gates_at((0, 20), {}) == gates


@pytest.mark.parametrize(
    ("gate", "on", "off"),
    [
        ("FairSharingPreemptWithinNominal", "0.15.6 0.15 0.16.3 0.17.0 0.19", "0.14 0.15.5 0.16.0 0.16.2"),
        ("SchedulingEquivalenceHashing", "0.15.6 0.16.3 0.18.0 0.19", "0.15.7 0.15 0.16.0 0.16.4 0.17"),
        ("TASRecomputeAssignmentWithinSchedulingCycle", "0.17.6 0.17 0.18.2 0.18", "0.17.5 0.18.0 0.18.1"),
        ("FlavorFungibilityPreserveScanProgress", "0.18.5 0.19.1 0.19", "0.18.4 0.19.0"),
        ("ElasticJobsViaWorkloadSlices", "0.18 0.19.2", "0.12 0.17"),
        ("TASProfileMixed", "0.15", "0.14 0.11"),
        ("ConcurrentAdmission", "", "0.17 0.18 0.19 0.20"),
    ],
)
def test_defaults_of_gates_follow_the_releases(gate, on, off):
    assert [each for each in on.split() if not gates_at(parse_release(each), {})[gate]] == []
    assert [each for each in off.split() if gates_at(parse_release(each), {})[gate]] == []


def test_no_gate_is_on_before_it_exists_unless_kueue_did_so_without_it():
    """Cohort objects had no gate at first."""
    versions = [(0, minor, patch) for minor in range(8, 20) for patch in range(11)]
    early = {
        name
        for version in versions
        for name in GATES
        if gates_at(version, {})[name] and not any(has_gate(each, name) for each in versions if each <= version)
    }
    assert early == {"HierarchicalCohorts"}


@pytest.mark.parametrize("value", [None, [], "x", 3, {"PartialAdmission": "no"}, {1: True}])
def test_any_value_of_feature_gates_is_survived(value):
    assert parse_configuration({"featureGates": value}, "0.19").gates == gates_at(NEWEST, {})


def test_the_documentation_has_what_is_not_simulated():
    """Each row of the table is the version and the text."""
    page = (Path(__file__).parent.parent / "docs/kueue_rules.md").read_text()
    rows = [f"| {show_version(each.until)} | {each.text} |" for each in DIFFERENCES]
    assert [row for row in rows if row not in page] == []

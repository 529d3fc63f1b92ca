"""`jobgen lint` and `jobgen queue` agree which jobs Kueue never admits, whatever else is queued."""

import json
from random import Random

import pytest

from jobgen.api.lint import lint
from jobgen.features.kueue.answers import NEVER, decide
from jobgen.features.kueue.job_workloads import collect_jobs
from jobgen.features.kueue.queue import queue
from jobgen.features.kueue.queue_state import QueueState
from jobgen.model.finding import Severity
from jobgen.spec.overlay import parse_cluster

GPU = "nvidia.com/gpu"
RACK, HOST = "example.com/rack", "kubernetes.io/hostname"
REQUIRED = "kueue.x-k8s.io/podset-required-topology"
CLUSTER = parse_cluster({"kueue": {"version": "0.19"}})


def kueue(kind, name, spec, **metadata):
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


def node(name, rack, flavor="h100", gpus=8):
    labels = {"gpu": flavor, RACK: rack, HOST: name}
    status = {"allocatable": {GPU: gpus, "pods": 10}, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def flavor(name, topology):
    return kueue(
        "ResourceFlavor", name, {"nodeLabels": {"gpu": name}} | ({"topologyName": "racks"} if topology else {})
    )


def cluster_queue(name, quotas, **spec):
    """A queue with quota of GPUs for each flavor."""
    flavors = [{"name": key, "resources": [{"name": GPU, **quota}]} for key, quota in quotas.items()]
    groups = [{"coveredResources": [GPU], "flavors": flavors}]
    return kueue("ClusterQueue", name, {"namespaceSelector": {}, "resourceGroups": groups, **spec})


def local_queue(name, **spec):
    return kueue("LocalQueue", name, {"clusterQueue": name, **spec}, namespace="ml")


def job(name, queue_name, pods, gpus, *, own=None, of_pods=None, labels=None, **pod):
    metadata = {"name": name, "namespace": "ml", "labels": {"kueue.x-k8s.io/queue-name": queue_name, **(labels or {})}}
    container = {"name": "main", "image": "registry.example.com/a:1", "resources": {"limits": {GPU: gpus}}}
    template = {
        "metadata": {"annotations": of_pods or {}},
        "spec": {"restartPolicy": "Never", "containers": [container], **pod},
    }
    spec = {"parallelism": pods, "completions": pods, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {**metadata, "annotations": own or {}}, "spec": spec}


def job_set(made, pods):
    """A JobSet of the same pods as a Job, and a second group with this many of them."""
    jobs = [{"name": name, "template": {"spec": made["spec"]}} for name in ("one", "two")]
    jobs[1] = {"name": "two", "template": {"spec": {**made["spec"], "parallelism": pods, "completions": pods}}}
    spec = {"replicatedJobs": jobs}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": made["metadata"], "spec": spec}


LEVELS = kueue("Topology", "racks", {"levels": [{"nodeLabel": RACK}, {"nodeLabel": HOST}]})
# Two racks of two nodes with 8 GPUs.
RACKS = [LEVELS, flavor("h100", topology=True), *(node(f"n{each}", f"r{each // 2}") for each in range(4))]
BIG = job("big", "b", 3, 8, of_pods={REQUIRED: RACK})


@pytest.mark.parametrize("others", [0, 2, 3])
def test_the_commands_say_the_same(tmp_path, others):
    queues = [cluster_queue(name, {"h100": {"nominalQuota": 16}}, cohortName="all") for name in ("a", "b")]
    jobs = [BIG, *(job(f"a{each}", "b", 1, 8) for each in range(others))]
    overlay = {"cluster": {"state": "cluster", "kueue": {"version": "0.19"}}}
    files = {
        "jobgen.yaml": {},
        "overlays/prod/overlay.yaml": {"apiVersion": "jobgen.dev/v1", "kind": "Overlay", "spec": overlay},
        "cluster/state.json": {"apiVersion": "v1", "kind": "List", "items": [*RACKS, *queues, *map(local_queue, "ab")]},
        "jobs/jobs.json": {"apiVersion": "v1", "kind": "List", "items": jobs},
    }
    for path, content in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(json.dumps(content))
    (found,) = (each for each in lint(tmp_path).findings if each.rule == "inadmissible-job")
    (never,) = (each for each in queue(tmp_path).workloads if each.decision == NEVER)

    assert (never.name, found.severity) == ("big", Severity.ERROR)
    assert never.reason in found.message


def find_never(state, jobs):
    queued = collect_jobs(jobs, state, CLUSTER)
    return {each.job.name for each in decide(queued.context, queued.jobs).answers if each.decision == NEVER}


def find_inadmissible(state, jobs):
    queues = QueueState(CLUSTER, state, jobs)
    return {each["metadata"]["name"] for each in jobs if queues.find_obstacle(each)}


def draw_state(random):
    """Draw flavors, some with nodes in racks, and queues that share a cohort or do not."""
    names = ["h100", "a100"][: random.choice((1, 1, 2))]
    placed = [name for name in names if random.random() < 0.7]
    state = [LEVELS, *(flavor(name, name in placed) for name in names)]
    state += (
        node(f"{name}-{rack}-{each}", f"{name}-r{rack}", name, random.choice((4, 8)))
        for name in placed
        for rack in range(random.choice((1, 2)))
        for each in range(random.choice((1, 2)))
    )
    state += (
        kueue("WorkloadPriorityClass", each, None) | {"value": value} for each, value in (("low", 1), ("high", 9))
    )
    for name in ("a", "b"):
        is_shared = random.random() < 0.6
        limits = {"borrowingLimit": random.choice((0, 8))} if is_shared and random.random() < 0.4 else {}
        preemption = {"withinClusterQueue": random.choice(("Never", "LowerPriority"))}
        spec = {
            "queueingStrategy": random.choice(("BestEffortFIFO", "StrictFIFO")),
            "preemption": preemption | ({"reclaimWithinCohort": "Any"} if is_shared else {}),
            "stopPolicy": random.choice(("None", "None", "None", "None", "Hold")),
        }
        spec |= {"cohortName": "all"} if is_shared else {}
        quotas = {each: {"nominalQuota": random.choice((0, 8, 16, 32)), **limits} for each in names}
        state += [cluster_queue(name, quotas, **spec), local_queue(name)]
    return state


def draw_job(random, number):
    pods = random.randint(1, 4)
    level = random.choice((None, None, {REQUIRED: RACK}, {REQUIRED: HOST}, {REQUIRED: "zone"}))
    preferred = {"kueue.x-k8s.io/podset-preferred-topology": RACK}
    least = {"kueue.x-k8s.io/job-min-parallelism": "1"} if pods > 1 and random.random() < 0.2 else {}
    selector = {"nodeSelector": {"gpu": random.choice(("h100", "a100"))}} if random.random() < 0.3 else {}
    labels = {"kueue.x-k8s.io/priority-class": random.choice(("low", "high"))}
    made = job(
        f"job-{number}",
        random.choice(("a", "a", "b", "b", "c")),
        pods,
        random.choice((1, 4, 8)),
        own=least,
        of_pods=preferred if random.random() < 0.1 else level,
        labels=labels,
        **selector,
    )
    return made if least or random.random() < 0.7 else job_set(made, random.randint(1, 2))


def test_a_job_that_fits_a_later_flavor_only_waits():
    """Kueue tries the later flavor only while other jobs use the quota of the first."""
    state = [*RACKS, flavor("a100", topology=False), local_queue("b")]
    state += [cluster_queue("b", {each: {"nominalQuota": 48} for each in ("h100", "a100")})]
    pods = job("pods", "b", 3, 12)

    assert find_never(state, [pods]) == set() == find_inadmissible(state, [pods])


@pytest.mark.parametrize("seed", range(60))
def test_both_name_the_same_jobs_alone_and_together(seed):
    random = Random(seed)
    state = draw_state(random)
    jobs = [draw_job(random, number) for number in range(random.randint(1, 8))]
    found = find_inadmissible(state, jobs)

    assert find_never(state, jobs) == found
    assert {name for each in jobs for name in find_never(state, [each])} == found
    assert {name for each in jobs for name in find_inadmissible(state, [each])} == found

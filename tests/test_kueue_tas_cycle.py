"""Scheduling cycles with topologies: quota and places are found together, preempted for together and kept together."""

import random
from collections import Counter

import pytest
from kueue_tables import answer
from kueue_tables.given import read_snapshot
from kueueobjects import run_until_stable
from sampling import sample

from jobgen.features.kueue.assignment import NO_FLAVOR, NO_TOPOLOGY, Placements, Topologies, find_placed_usage
from jobgen.features.kueue.cluster_objects import Gates
from jobgen.features.kueue.cycle import Scheduler
from jobgen.features.kueue.nominate import ADMITTED, EVICTED, NO_LONGER_FITS, PREEMPTING, WAITS
from jobgen.features.kueue.preemption import Rules
from jobgen.features.kueue.requests import NO_SETTINGS, parse_settings
from jobgen.features.kueue.topology.snapshot import build_snapshots
from jobgen.features.kueue.topology.tree import TopologyGates, parse_nodes, sum_other_pods
from jobgen.features.kueue.workloads import parse_workload

HOST, RACK = "kubernetes.io/hostname", "example.com/rack"
PROVISIONING = "kueue.x-k8s.io/provisioning-request"
NEW_FIRST = {"withinClusterQueue": "LowerPriority"}


def make_node(name, *, rack="r1", pool="a", cpu="4", **labels):
    return {
        "metadata": {"name": name, "labels": {HOST: name, RACK: rack, "pool": pool, **labels}},
        "status": {
            "allocatable": {"cpu": cpu, "memory": "64Gi", "pods": "10"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def make_flavor(name, *, pool="a", topology="hosts"):
    spec = {"nodeLabels": {"pool": pool}, **({"topologyName": topology} if topology else {})}
    return {"metadata": {"name": name}, "spec": spec}


def make_queue(name, flavors=("tas",), *, cpu="100", resources=("cpu",), cohort="", preemption=None, checks=()):
    return {
        "metadata": {"name": name},
        "spec": {
            "cohortName": cohort,
            "namespaceSelector": {},
            "preemption": preemption or {},
            "admissionChecksStrategy": {"admissionChecks": [{"name": check} for check in checks]},
            "resourceGroups": [
                {
                    "coveredResources": list(resources),
                    "flavors": [
                        {"name": each, "resources": [{"name": name, "nominalQuota": cpu} for name in resources]}
                        for each in flavors
                    ],
                }
            ],
        },
    }


def make_pod_set(count=1, cpu="1", *, name="main", topology=None, selector=None, **more):
    requests = {"resources": {"requests": {"cpu": cpu}}} if cpu else {}
    spec = {"containers": [{"name": "c", **requests}], **({"nodeSelector": selector} if selector else {})}
    found = {"name": name, "count": count, "template": {"spec": spec}, **more}
    return {**found, "topologyRequest": topology} if topology else found


def make_workload(name, *pod_sets, queue="lq", priority=0, created="2026-01-01T00:00:00Z", status=None):
    return {
        "metadata": {"name": name, "namespace": "ml", "uid": name, "creationTimestamp": created},
        "spec": {"queueName": queue, "priority": priority, "podSets": list(pod_sets) or [make_pod_set()]},
        "status": status or {},
    }


def make_status(queue, domains, *, flavor="tas", cpu="1", levels=(HOST,), failed=(), checks=(), delayed="", runs=True):
    count = sum(number for _, number in domains) or 1
    assigned = {"name": "main", "count": count, "flavors": {"cpu": flavor}, "resourceUsage": {"cpu": cpu}}
    if domains:
        placed = [{"values": [values], "count": number} for values, number in domains]
        assigned["topologyAssignment"] = {"levels": list(levels), "domains": placed}
    if delayed:
        assigned["delayedTopologyRequest"] = delayed
    conditions = ["QuotaReserved", "Admitted"] if runs else ["QuotaReserved"]
    return {
        "admission": {"clusterQueue": queue, "podSetAssignments": [assigned]},
        "conditions": [
            {"type": each, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"} for each in conditions
        ],
        "unhealthyNodes": [{"name": each} for each in failed],
        "admissionChecks": [{"name": each, "state": "Ready"} for each in checks],
    }


def build(
    *workloads,
    nodes,
    queues=None,
    flavors=None,
    pods=(),
    levels=(HOST,),
    gates=None,
    checks=None,
    settings=NO_SETTINGS,
    is_elastic=False,
):
    """A scheduler with one local queue for each ClusterQueue: `lq` for the first, and the names of the others."""
    objects = [make_queue("cq")] if queues is None else queues
    snapshot = read_snapshot(
        {"clusterQueues": objects, "resourceFlavors": [make_flavor("tas")] if flavors is None else flavors}
    )
    topologies = {"hosts": levels}
    snapshot.topologies = Topologies(
        build_snapshots(
            snapshot.flavors.values(),
            topologies,
            parse_nodes(nodes),
            other_pods=sum_other_pods(list(pods)),
            gates=TopologyGates(elastic=is_elastic),
        )
    )
    names = [each["metadata"]["name"] for each in objects]
    scheduler = Scheduler(
        snapshot,
        Rules(),
        topologies,
        {"ml": {}},
        local_queues={("ml", "lq" if not index else name): name for index, name in enumerate(names)},
        gates=gates or Gates(),
        controllers=checks,
    )
    for each in workloads:
        scheduler.add(parse_workload(each, settings))
    return scheduler


def decide(scheduler, cycles=1):
    for _ in range(cycles):
        scheduler.run_cycle()
    return {key.removeprefix("ml/"): (each.state, each.message) for key, each in scheduler.outcomes.items()}


def list_places(scheduler):
    """Where the pods of admitted workloads are: by workload, the domains of all pod sets."""
    return {
        key.removeprefix("ml/"): [(*values, count) for each in workload.admission for values, count in each.domains]
        for several in scheduler.snapshot.workloads.values()
        for key, workload in several.items()
    }


REQUIRED, PREFERRED = {"required": HOST}, {"preferred": HOST}
TWO = [make_node("n1"), make_node("n2")]

PLACED = {
    "required on one host": (make_pod_set(4, topology=REQUIRED), TWO, (HOST,), [("n1", 4)]),
    "preferred on two hosts": (make_pod_set(6, topology=PREFERRED), TWO, (HOST,), [("n1", 4), ("n2", 2)]),
    "implied by the queue": (make_pod_set(5), TWO, (HOST,), [("n1", 4), ("n2", 1)]),
    "best fit": (make_pod_set(2, topology=REQUIRED), [make_node("n1"), make_node("n2", cpu="2")], (HOST,), [("n2", 2)]),
    "node selector": (make_pod_set(1, selector={HOST: "n2"}), TWO, (HOST,), [("n2", 1)]),
    "required in one rack": (
        make_pod_set(8, topology={"required": RACK}),
        [*TWO, make_node("n3", rack="r2"), make_node("n4", rack="r2", cpu="6")],
        (RACK, HOST),
        [("n1", 4), ("n2", 4)],
    ),
    "slices": (
        make_pod_set(4, topology={"podSetSliceRequiredTopology": RACK, "podSetSliceSize": 2}),
        [make_node("n1", cpu="3"), make_node("n2", rack="r2", cpu="2")],
        (RACK, HOST),
        [("n1", 2), ("n2", 2)],
    ),
}


@pytest.mark.parametrize("row", PLACED.values(), ids=PLACED)
def test_pods_are_placed_when_quota_is_reserved(row):
    pod_set, nodes, levels, places = row
    scheduler = build(make_workload("a", pod_set), nodes=nodes, levels=levels)

    assert decide(scheduler) == {"a": (ADMITTED, "")}
    assert list_places(scheduler) == {"a": places}


def test_reasons_without_a_placement():
    too_large = build(make_workload("a", make_pod_set(1, "5")), nodes=TWO)
    full = build(
        make_workload("b", make_pod_set(1, "2")),
        make_workload("runs", make_pod_set(1, "3"), status=make_status("cq", [("n1", 1)], cpu="3")),
        nodes=[make_node("n1")],
    )
    text = "couldn't assign flavors to pod set main: topology \"hosts\" doesn't allow to fit any of 1 pod(s)"

    assert decide(too_large) == {"a": (WAITS, f'{text}. Total nodes: 2; excluded: resource "cpu": 2')}
    assert too_large.outcomes["ml/a"].reason == "TopologyPlacementFailed"
    assert decide(full) == {"b": (WAITS, f'{text}. Total nodes: 1; excluded: resource "cpu": 1')}
    assert full.outcomes["ml/b"].reason == "WaitingForQuota"


ERRORS = {
    "no flavor with a topology": (
        [make_queue("cq", ["plain"], resources=["memory"])],
        [make_flavor("plain", topology="")],
        [make_pod_set(1, "", topology=REQUIRED)],
        NO_TOPOLOGY,
    ),
    "nothing requested": (None, None, [make_pod_set(1, "")], NO_FLAVOR),
}


@pytest.mark.parametrize("row", ERRORS.values(), ids=ERRORS)
def test_pod_sets_that_cannot_be_placed(row):
    queues, flavors, pod_sets, error = row
    scheduler = build(make_workload("a", *pod_sets), nodes=TWO, queues=queues, flavors=flavors)

    assert decide(scheduler) == {"a": (WAITS, f"failed to assign flavors to pod set main: {error}")}


def test_leader_without_requests_follows_its_workers():
    topology = {**REQUIRED, "podSetGroupName": "g"}
    leader = make_pod_set(1, "", name="leader", topology=topology)
    scheduler = build(make_workload("a", leader, make_pod_set(4, topology=topology)), nodes=TWO)

    assert decide(scheduler)["a"][0] == ADMITTED
    assert list_places(scheduler) == {"a": [("n1", 1), ("n1", 4)]}


def test_other_pods_use_nodes():
    pod = {"spec": {"nodeName": "n1", "containers": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]}}
    scheduler = build(make_workload("a", make_pod_set(2, topology=REQUIRED)), nodes=TWO, pods=[pod])

    decide(scheduler)
    assert list_places(scheduler) == {"a": [("n2", 2)]}


def test_placement_counts_requests_before_transformations():
    settings = parse_settings(
        {"transformations": [{"input": "cpu", "strategy": "Replace", "outputs": {"example.com/credits": "1"}}]}
    )
    queue = make_queue("cq", resources=["example.com/credits"])
    scheduler = build(make_workload("a", make_pod_set(2, "3")), nodes=TWO, queues=[queue], settings=settings)

    decide(scheduler)
    assert list_places(scheduler) == {"a": [("n1", 1), ("n2", 1)]}


def run_two_queues(gates, count=2):
    """Two queues whose workloads are nominated to the same host."""
    queues = [make_queue("cq", cohort="c"), make_queue("other", cohort="c")]
    pod_set = make_pod_set(count, topology=REQUIRED)
    workloads = [
        make_workload("a", pod_set),
        make_workload("b", pod_set, queue="other", created="2026-01-02T00:00:00Z"),
    ]
    nodes = [make_node("n1", cpu="2"), make_node("n2", cpu="3")]
    return build(*workloads, nodes=nodes, queues=queues, gates=gates)


def test_a_place_that_is_taken_is_searched_again_in_the_same_cycle():
    again, once = run_two_queues(Gates()), run_two_queues(Gates(recomputes_placement=False))

    assert {name: state for name, (state, _) in decide(again).items()} == {"a": ADMITTED, "b": ADMITTED}
    assert list_places(again) == {"a": [("n1", 2)], "b": [("n2", 2)]}
    assert decide(once) == {"a": (ADMITTED, ""), "b": (WAITS, NO_LONGER_FITS)}
    assert decide(once)["b"][0] == ADMITTED


def test_workloads_are_preempted_for_their_places():
    nodes = [make_node("n1"), make_node("n2")]
    running = [
        make_workload(
            f"{name}-priority", make_pod_set(1, "3"), priority=priority, status=make_status("cq", [(node, 1)], cpu="3")
        )
        for name, priority, node in (("low", 0, "n1"), ("middle", 1, "n2"))
    ]
    new = make_workload("new", make_pod_set(1, "4", topology=REQUIRED), priority=2)
    scheduler = build(*running, new, nodes=nodes, queues=[make_queue("cq", preemption=NEW_FIRST)])

    assert decide(scheduler)["new"][0] == PREEMPTING
    assert list(scheduler.evicted) == ["ml/low-priority"]
    scheduler.release_evicted()
    assert decide(scheduler)["new"][0] == ADMITTED
    assert list_places(scheduler) == {"middle-priority": [("n2", 1)], "new": [("n1", 1)]}


def test_a_place_that_is_waited_for_is_kept_from_others():
    queues = [make_queue("cq", cohort="c"), make_queue("other", cohort="c")]
    running = make_workload("runs", make_pod_set(1, "3"), status=make_status("cq", [("n1", 1)], cpu="3"))
    large = make_workload("large", make_pod_set(1, "4", topology=REQUIRED), priority=1)
    small = make_workload("small", make_pod_set(1, "1", topology=REQUIRED), queue="other")
    scheduler = build(running, large, small, nodes=[make_node("n1")], queues=queues)

    assert {name: state for name, (state, _) in decide(scheduler).items()} == {"large": WAITS, "small": WAITS}
    decide(scheduler)
    assert list_places(scheduler) == {"runs": [("n1", 1)]}


def test_fewer_pods_are_placed_if_the_workload_allows_it():
    workload = make_workload("a", make_pod_set(6, topology=REQUIRED, minCount=2))
    scheduler = build(workload, nodes=TWO)

    decide(scheduler)
    assert list_places(scheduler) == {"a": [("n1", 4)]}


def test_flavors_with_the_same_hosts_share_what_is_used():
    flavors = [make_flavor("tas"), make_flavor("same")]
    running = make_workload("runs", make_pod_set(3), status=make_status("cq", [("n1", 3)], cpu="3"))
    queues = [make_queue("cq"), make_queue("other", ["same"])]
    new = make_workload("new", make_pod_set(2), queue="other")
    scheduler = build(running, new, nodes=[make_node("n1")], queues=queues, flavors=flavors)

    assert decide(scheduler)["new"][0] == WAITS
    scheduler.remove("ml/runs")
    scheduler.retry_parked(["other"])
    assert decide(scheduler)["new"][0] == ADMITTED


def test_the_next_cycle_tries_the_next_flavor():
    flavors = [make_flavor("tas"), make_flavor("second", pool="b")]
    running = make_workload("runs", make_pod_set(1, "4"), status=make_status("cq", [("n1", 1)], cpu="4"))
    nodes = [make_node("n1"), make_node("n2", pool="b")]
    queue = make_queue("cq", ["tas", "second"])
    scheduler = build(running, make_workload("a"), nodes=nodes, queues=[queue], flavors=flavors)

    assert decide(scheduler)["a"][0] == WAITS
    assert decide(scheduler)["a"][0] == ADMITTED
    assert list_places(scheduler)["a"] == [("n2", 1)]


def test_pods_are_placed_after_nodes_are_provisioned():
    queue = make_queue("cq", checks=["provision"])
    first = build(make_workload("a"), nodes=[], queues=[queue], checks={"provision": PROVISIONING})
    status = make_status("cq", [], checks=["provision"], delayed="Pending", runs=False)
    second = build(make_workload("a", status=status), nodes=TWO, queues=[queue], checks={"provision": PROVISIONING})

    assert decide(first)["a"][0] == ADMITTED
    [admitted] = first.snapshot.workloads["cq"]["ml/a"].admission
    assert (admitted.delayed, admitted.domains) == ("Pending", ())
    assert decide(second)["a"][0] == ADMITTED
    [admitted] = second.snapshot.workloads["cq"]["ml/a"].admission
    assert (admitted.delayed, admitted.domains) == ("Ready", ((("n1",), 1),))
    assert not second.run_cycle()


CONFLICT = (
    "couldn't assign flavors to pod set main: invalid podSetUpdate for PodSet main, error: invalid admission check "
    f"PodSetUpdate: conflict for nodeSelector: conflict for key={HOST}, value1=n1, value2=n2"
)


@pytest.mark.parametrize(("selector", "outcome"), [({}, (ADMITTED, "")), ({HOST: "n1"}, (WAITS, CONFLICT))])
def test_admission_checks_add_node_selectors(selector, outcome):
    status = make_status("cq", [], checks=["provision"], delayed="Pending", runs=False)
    status["admissionChecks"][0]["podSetUpdates"] = [{"name": "main", "nodeSelector": {HOST: "n2"}}]
    workload = make_workload("a", make_pod_set(selector=selector), status=status)
    scheduler = build(workload, nodes=TWO)

    assert decide(scheduler) == {"a": outcome}
    assert list_places(scheduler) == {"a": [("n2", 1)] if outcome[0] == ADMITTED else []}


def run_failed_node(nodes, gates=None):
    status = make_status("cq", [("n1", 2), ("n2", 2)], cpu="4", failed=["n2"])
    workload = make_workload("a", make_pod_set(4, topology={"required": RACK}), status=status)
    return build(workload, nodes=nodes, levels=(RACK, HOST), gates=gates)


def test_pods_of_a_failed_node_move_within_their_rack():
    nodes = [make_node("n1", cpu="2"), make_node("n3", cpu="2"), make_node("n4", rack="r2")]
    scheduler = run_failed_node(nodes)

    assert decide(scheduler)["a"][0] == ADMITTED
    assert list_places(scheduler) == {"a": [("n1", 2), ("n3", 2)]}


def test_a_workload_without_a_replacement_is_evicted_or_tried_again():
    nodes = [make_node("n1", cpu="2"), make_node("n4", rack="r2")]
    evicted, kept = run_failed_node(nodes), run_failed_node(nodes, Gates(evicts_without_replacement=False))

    message = "Workload was evicted as there was no replacement for unhealthy node(s): n2"
    assert decide(evicted) == {"a": (EVICTED, message)}
    assert list(evicted.evicted) == ["ml/a"]
    evicted.release_evicted()
    assert decide(evicted)["a"][0] == ADMITTED
    assert list_places(evicted) == {"a": [("n4", 4)]}
    assert decide(kept)["a"][0] == WAITS
    assert list_places(kept) == {"a": [("n1", 2), ("n2", 2)]}
    assert list(kept.unplaced) == ["ml/a"]


def test_a_workload_that_is_preempted_is_not_placed_again():
    queue = make_queue("cq", cpu="4", checks=["provision"], preemption=NEW_FIRST)
    status = make_status("cq", [], cpu="4", checks=["provision"], delayed="Pending", runs=False)
    waiting = make_workload("waiting", make_pod_set(1, "4"), status=status)
    new = make_workload("new", make_pod_set(1, "4"), priority=1)
    scheduler = build(waiting, new, nodes=[], queues=[queue], checks={"provision": PROVISIONING})

    assert decide(scheduler)["new"][0] == PREEMPTING
    assert list(scheduler.evicted) == ["ml/waiting"]
    assert (scheduler.second_pass, scheduler.unplaced) == ({}, {})


def test_workloads_are_placed_again_until_nothing_changes():
    status = make_status("cq", [], checks=["provision"], delayed="Pending", runs=False)
    scheduler = build(make_workload("a", status=status), nodes=TWO)

    assert run_until_stable(scheduler) == 1
    assert list_places(scheduler) == {"a": [("n1", 1)]}


NOT_ELASTIC = "required topology is not supported with ElasticJobsViaWorkloadSlices"
RESIZED = {
    "grows": (3, None, True, "", [("n1", 1), ("n2", 2)]),
    "shrinks": (1, None, True, "", [("n2", 1)]),
    "moves without the gate": (3, None, False, "", [("n1", 3)]),
    "may not require a level": (3, REQUIRED, True, f"failed to assign flavors to pod set main: {NOT_ELASTIC}", None),
}


@pytest.mark.parametrize("row", RESIZED.values(), ids=RESIZED)
def test_elastic_jobs_keep_their_pods_where_they_are(row):
    count, topology, is_on, message, places = row
    old = make_workload("old", make_pod_set(2), status=make_status("cq", [("n2", 2)], cpu="2"))
    new = make_workload("new", make_pod_set(count, topology=topology))
    new["metadata"]["annotations"] = {
        "kueue.x-k8s.io/elastic-job": "true",
        "kueue.x-k8s.io/workload-slice-replacement-for": "ml/old",
    }
    scheduler = build(old, new, nodes=TWO, is_elastic=is_on)

    assert decide(scheduler)["new"][1] == message
    assert list_places(scheduler).get("new") == places


def test_a_queue_without_its_topology_is_suspended():
    given = {
        "clusterQueues": [make_queue("cq", checks=["other-cluster"])],
        "resourceFlavors": [make_flavor("tas")],
        "localQueues": [{"metadata": {"name": "lq", "namespace": "ml"}, "spec": {"clusterQueue": "cq"}}],
        "namespaces": [{"metadata": {"name": "ml"}}],
        "admissionChecks": [
            {
                "metadata": {"name": "other-cluster"},
                "spec": {"controllerName": "kueue.x-k8s.io/multikueue"},
                "status": {"conditions": [{"type": "Active", "status": "True"}]},
            }
        ],
        "workloads": [make_workload("a")],
    }
    levels = [{"metadata": {"name": "hosts"}, "spec": {"levels": [{"nodeLabel": HOST}]}}]

    missing, found = answer("schedule_tas", given), answer("schedule_tas", {**given, "topologies": levels})

    message = {"message": "ClusterQueue cq is inactive", "reason": "Suspended", "type": "Warning", "object": "ml/a"}
    assert (missing["events"], missing["inadmissibleLeft"]) == ([message], {"cq": ["ml/a"]})
    [assigned] = found["newAssignments"]["ml/a"]["podSetAssignments"]
    assert assigned["delayedTopologyRequest"] == "Pending"


def test_workloads_of_unknown_queues_use_nothing():
    status = make_status("gone", [("n1", 4)], cpu="4", failed=["n1"])
    gone = make_workload("gone", make_pod_set(4), status=status)
    scheduler = build(gone, make_workload("a", make_pod_set(4, topology=REQUIRED)), nodes=[make_node("n1")])

    assert decide(scheduler) == {"a": (ADMITTED, "")}


def test_queues_without_topologies_place_nothing():
    scheduler = build(make_workload("a"), nodes=[], flavors=[make_flavor("tas", topology="")])
    snapshot = scheduler.snapshot
    placements = Placements(snapshot.queues, snapshot.flavors, snapshot.topologies, {})

    assert placements.make_placer(parse_workload(make_workload("a")), "cq") is None
    assert decide(scheduler) == {"a": (ADMITTED, "")}


def make_cluster(seed):
    """A random cluster with two pools and three queues of one cohort, and workloads, the lowest priority first."""
    rng = random.Random(seed)
    nodes = [
        make_node(f"n{index}", rack=f"r{index % 3}", pool=rng.choice("aab"), cpu=str(rng.randint(2, 8)))
        for index in range(rng.randint(2, 8))
    ]
    policies = {
        "withinClusterQueue": rng.choice(["Never", "LowerPriority", "LowerOrNewerEqualPriority"]),
        "reclaimWithinCohort": rng.choice(["Never", "Any", "LowerPriority"]),
    }
    queues = [
        make_queue(
            name, rng.choice([["tas"], ["tas", "b"]]), cpu=str(rng.randint(2, 14)), cohort="c", preemption=policies
        )
        for name in ("cq", "q1", "q2")
    ]
    requests = [None, REQUIRED, {"preferred": RACK}, {"required": RACK}, {"unconstrained": True}]
    workloads = [
        make_workload(
            f"w{index}",
            make_pod_set(rng.randint(1, 6), str(rng.randint(1, 3)), topology=rng.choice(requests)),
            queue=rng.choice(["lq", "q1", "q2"]),
            priority=rng.randint(0, 3),
            created=f"2026-01-01T00:00:{index:02}Z",
        )
        for index in range(rng.randint(3, 12))
    ]
    flavors = [make_flavor("tas"), make_flavor("b", pool="b")]
    scheduler = build(nodes=nodes, queues=queues, flavors=flavors, levels=(RACK, HOST))
    return scheduler, nodes, sorted(map(parse_workload, workloads), key=lambda each: each.priority)


def sum_usage(scheduler):
    """The CPU of each host that admitted workloads use."""
    used = Counter()
    for workload in (each for several in scheduler.snapshot.workloads.values() for each in several.values()):
        for placed in (each for several in find_placed_usage(workload).values() for each in several):
            for (host,), count in placed.placement.domains:
                used[host] += placed.requests["cpu"] * count
    return used


@pytest.mark.parametrize("seed", sample(range(20), 3))
def test_hosts_are_never_used_twice(seed):
    scheduler, nodes, arrivals = make_cluster(seed)
    capacity = {each["metadata"]["name"]: 1000 * int(each["status"]["allocatable"]["cpu"]) for each in nodes}

    for workload in arrivals:
        scheduler.add(workload)
        scheduler.run_cycle()
        used = sum_usage(scheduler)
        counted = Counter()
        for each in scheduler.snapshot.topologies.snapshots.values():
            counted.update({host: amounts.get("cpu", 0) for (host,), amounts in each.usage.items()})
        assert +counted == used
        assert all(amount <= capacity[host] for host, amount in used.items())
        scheduler.release_evicted()

"""Preemption: which admitted workloads are evicted for another one, and by which rule."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kueue_tables import answer
from kueue_tables.given import read_snapshot
from kueueobjects import FLAVOR, admitted, cluster_queue, cohort, flavor, workload
from sampling import laws

from jobgen.features.kueue.preemption import Preemptor, Rules, find_targets
from jobgen.features.kueue.quota import FlavorResource
from jobgen.features.kueue.workloads import parse_workload

PAIR = FlavorResource(FLAVOR, "cpu")
WITHIN = {"preemption": {"withinClusterQueue": "LowerPriority"}}
RECLAIM = {"preemption": {"reclaimWithinCohort": "Any"}}


def targets(queues, workloads, incoming, table="preemption_classical", **more):
    given_ = {
        "clusterQueues": queues,
        "resourceFlavors": [flavor()],
        "workloads": workloads,
        "incoming": incoming,
        "targetClusterQueue": queues[0]["metadata"]["name"],
        "assignment": [{"name": "main", "count": 1, "flavors": {"cpu": {"flavor": FLAVOR, "mode": "Preempt"}}}],
        **more,
    }
    found = answer(table, given_)["targets"]
    return sorted((each["workload"].partition("/")[2], each["reason"]) for each in found)


def test_the_lowest_and_latest_are_evicted_in_the_own_queue():
    queue = cluster_queue("queue", cpu="4", **WITHIN)
    running = [
        admitted("old", "queue", "2", at="2026-01-01T10:00:00Z"),
        admitted("new", "queue", "1", at="2026-01-01T11:00:00Z"),
        admitted("high", "queue", "1", priority=9),
    ]

    assert targets([queue], running, workload("in", "1", priority=5)) == [("new", "InClusterQueue")]
    assert targets([queue], running, workload("in", "2", priority=5)) == [("old", "InClusterQueue")]
    assert targets([queue], running, workload("in", "4", priority=5)) == []


def test_lent_quota_is_taken_back():
    queues = [cluster_queue("owner", "team", "4", **RECLAIM), cluster_queue("guest", "team", "1")]
    running = [admitted("own", "guest", "1", at="2026-01-01T10:00:00Z"), admitted("lent", "guest", "3")]

    assert targets(queues, running, workload("in", "3")) == [("lent", "InCohortReclamation")]
    assert targets([cluster_queue("owner", "team", "4"), queues[1]], running, workload("in", "3")) == []


def test_borrowing_within_the_cohort_evicts_lower_priorities_only():
    policy = {"reclaimWithinCohort": "LowerPriority", "borrowWithinCohort": {"policy": "LowerPriority"}}
    queues = [
        cluster_queue("owner", "team", "1", preemption=policy),
        cluster_queue("guest", "team", "1"),
        cluster_queue("idle", "team", "2"),
    ]
    running = [admitted("low", "guest", "2", priority=-1), admitted("same", "guest", "2", priority=5)]

    found = targets(queues, running, workload("in", "2", priority=5))

    assert found == [("low", "InCohortReclaimWhileBorrowing")]


def test_the_own_cohort_comes_before_the_rest_of_the_tree():
    queues = [
        cluster_queue("owner", "near", "0", **RECLAIM),
        cluster_queue("far", "root", "0"),
    ]
    tree = [cohort("root"), cohort("near", "root", cpu="3")]

    found = targets(queues, [admitted("guest", "far", "3")], workload("in", "3"), cohorts=tree)

    assert found == [("guest", "InCohortReclamation")]


@pytest.mark.parametrize(
    ("strategies", "want"),
    [
        (["LessThanOrEqualToFinalShare"], []),
        (["LessThanInitialShare"], [("big", "InCohortFairSharing")]),
        ([], [("big", "InCohortFairSharing")]),
    ],
)
def test_fair_sharing_takes_from_the_greatest_share(strategies, want):
    queues = [
        cluster_queue("a", "team", "0", **RECLAIM),
        cluster_queue("b", "team", "0"),
        cluster_queue("lender", "team", "9"),
    ]
    running = [admitted("big", "b", "7"), admitted("mine", "a", "2")]
    sharing = {"enabled": True, "preemptionStrategies": strategies}

    found = targets(queues, running, workload("in", "2"), "preemption_fair_sharing", fairSharing=sharing)

    assert found == want


@pytest.mark.parametrize(
    ("policy", "gates", "candidate", "want"),
    [
        ("Any", {}, {"priority": 9}, True),
        ("Never", {}, {"priority": -9}, False),
        ("LowerPriority", {}, {"priority": -1}, True),
        ("LowerPriority", {}, {"creationTimestamp": "2026-01-02T00:00:00Z"}, False),
        ("LowerOrNewerEqualPriority", {}, {"creationTimestamp": "2026-01-01T00:01:00Z"}, True),
        (
            "LowerOrNewerEqualPriority",
            {"SchedulerTimestampPreemptionBuffer": True},
            {"creationTimestamp": "2026-01-01T00:05:00Z"},
            False,
        ),
        ("LowerPriority", {"PriorityBoost": True}, {"annotations": {"kueue.x-k8s.io/priority-boost": "-1"}}, True),
        ("LowerPriority", {}, {"annotations": {"kueue.x-k8s.io/priority-boost": "-1"}}, False),
    ],
)
def test_policies(policy, gates, candidate, want):
    given_ = {
        "policy": policy,
        "featureGates": gates,
        "preemptor": workload("in", creationTimestamp="2026-01-01T00:00:00Z"),
        "candidate": workload("other", **{"creationTimestamp": "2026-01-01T00:00:00Z", **candidate}),
    }

    assert answer("preemption_policy", given_) == {"satisfied": want}


@pytest.mark.parametrize(
    ("text", "boost"), [("5", 5), ("+5", 5), ("-5", -5), ("", 0), ("5.0", 0), ("1_0", 0), (" 5", 0), ("3000000000", 0)]
)
def test_boost_of_a_priority(text, boost):
    job = workload("job", priority=10, annotations={"kueue.x-k8s.io/priority-boost": text})

    found = answer("effective_priority", {"workload": job, "featureGates": {"PriorityBoost": True}})

    assert found == {"base": 10, "boost": boost, "effective": 10 + boost}


def test_with_fair_admission_the_local_queue_that_used_more_gives_up_first():
    jobs = [admitted("low", "queue", priority=1), admitted("high", "queue", priority=9)]
    jobs[1]["spec"]["queueName"] = "busy"
    candidates = [
        {"clusterQueue": "queue", "localQueueUsage": usage, "workload": job}
        for job, usage in zip(jobs, (0.2, 0.7), strict=True)
    ]
    given_ = {"preemptorClusterQueue": "queue", "candidates": candidates}

    orders = [
        answer("preemption_candidates_ordering", {**given_, "admissionFairSharing": is_on})["order"]
        for is_on in (True, False)
    ]

    assert orders == [["high", "low"], ["low", "high"]]


RUNNING = st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(1, 4), st.integers(-1, 1)), max_size=8)


@laws(16)
@given(RUNNING, st.integers(1, 8), st.booleans(), st.sampled_from(["Never", "LowerPriority", "Any"]))
def test_a_search_leaves_the_state_as_it_was_and_makes_room(running, wanted, fair, policy):
    preemption = {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": policy}
    queues = [cluster_queue(name, "team", "3", preemption=preemption) for name in ("a", "b", "c")]
    snapshot = read_snapshot({"clusterQueues": queues, "resourceFlavors": [flavor()]})
    for number, (queue, cpu, priority) in enumerate(running):
        snapshot.add_workload(parse_workload(admitted(f"job{number}", queue, str(cpu), priority)))
    node = snapshot.nodes["a"]
    before = {name: dict(each.usage) for name, each in snapshot.nodes.items()}
    usage = {PAIR: wanted * 1000}
    preemptor = Preemptor(parse_workload(workload("in", str(wanted))), "a", usage, frozenset([PAIR]))

    found = find_targets(preemptor, snapshot, Rules(is_fair=fair))

    used = {name: {pair: amount for pair, amount in each.items() if amount} for name, each in before.items()}
    after = {
        name: {pair: amount for pair, amount in each.usage.items() if amount} for name, each in snapshot.nodes.items()
    }
    assert after == used
    for target in found:
        snapshot.remove_workload(target.workload)
    assert not found or node.fits(usage)
    others = {target.workload.cluster_queue for target in found} - {"a"}
    assert not others or policy != "Never"

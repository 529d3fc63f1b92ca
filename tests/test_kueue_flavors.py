"""Flavor assignment: which flavor a workload gets, and why not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kueue_tables import answer
from kueue_tables.given import read_snapshot
from kueueobjects import FLAVOR, cluster_queue, flavor, flavored_queue, pod_set, workload
from sampling import laws

from jobgen.features.kueue.assign_flavors import Planner, QueueFacts, assign_flavors, search_counts
from jobgen.features.kueue.assignment import Mode
from jobgen.features.kueue.quota import FlavorResource, find_borrowing_level
from jobgen.features.kueue.workloads import parse_workload

SPOT = [flavor("spot", nodeLabels={"kind": "spot"}), flavor("fixed", nodeLabels={"kind": "fixed"})]


def assign(pod_sets, queues, flavors, **more):
    given_ = {
        "clusterQueue": queues[0]["metadata"]["name"],
        "clusterQueues": queues,
        "resourceFlavors": flavors,
        "podSets": pod_sets,
        "preemptionOracle": {"default": {"possibility": "NoCandidates", "borrowingLevelAfter": 0}},
        **more,
    }
    return answer("assign_flavors", given_)


def chosen(found):
    return [
        {name: (each["flavor"], each["mode"]) for name, each in pod_set["flavors"].items()}
        for pod_set in found["assignment"]["podSets"]
    ]


@pytest.mark.parametrize(
    ("fungibility", "used", "want"),
    [
        ({}, {}, ("spot", "Fit")),
        ({}, {"spot": {"cpu": "3"}}, ("fixed", "Fit")),
        ({}, {"spot": {"cpu": "3"}, "fixed": {"cpu": "3"}}, ("spot", "Preempt")),
        ({"whenCanPreempt": "MayStopSearch"}, {"spot": {"cpu": "3"}, "fixed": {"cpu": "3"}}, ("spot", "Preempt")),
    ],
)
def test_flavors_are_tried_in_order(fungibility, used, want):
    queue = flavored_queue("queue", {"spot": "4", "fixed": "4"}, flavorFungibility=fungibility)

    found = assign([pod_set("2")], [queue], SPOT, usage={"queue": used})

    assert chosen(found) == [{"cpu": want}]


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"nodeSelector": {"kind": "large"}}, "flavor spot doesn't match node affinity"),
        ({"nodeSelector": {"zone": "a"}}, ""),
        ({"nodeSelector": {"kind": "spot"}}, ""),
    ],
)
def test_only_labels_of_the_flavor_count(spec, reason):
    queue = flavored_queue("queue", {"spot": "4"})

    found = assign([pod_set(spec=spec)], [queue], SPOT)

    reasons = found["assignment"]["podSets"][0].get("reasons", [])
    assert reasons == ([reason] if reason else [])


def test_a_taint_needs_a_toleration():
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    queue = flavored_queue("queue", {"tainted": "4"})
    flavors = [flavor("tainted", nodeTaints=[taint])]

    refused = assign([pod_set()], [queue], flavors)
    tolerated = assign([pod_set(spec={"tolerations": [{"key": "gpu", "operator": "Exists"}]})], [queue], flavors)

    assert refused["assignment"]["noFitReason"] == "NoMatchingFlavor"
    assert refused["assignment"]["podSets"][0]["reasons"] == [
        "untolerated taint {gpu yes NoSchedule <nil>} in flavor tainted"
    ]
    assert tolerated["representativeMode"] == "Fit"


def test_earlier_pod_sets_count():
    queue = cluster_queue("queue", cpu="3")

    found = assign([pod_set("2"), pod_set("2", name="second")], [queue], [flavor()])

    assert found["assignment"]["noFitReason"] == "ExceedsMaxQuota"
    [reason] = found["assignment"]["podSets"][1]["reasons"]
    assert reason == (
        f"insufficient quota for cpu in flavor {FLAVOR}, previously considered podsets requests (2) + "
        "current podset request (2) > maximum capacity (3)"
    )


@pytest.mark.parametrize(
    ("preference", "want"), [("BorrowingOverPreemption", "borrowed"), ("PreemptionOverBorrowing", "preempted")]
)
def test_preference_between_borrowing_and_preemption(preference, want):
    fungibility = {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor", "preference": preference}
    queue = flavored_queue(
        "queue", {"preempted": "4", "borrowed": "1"}, cohortName="team", flavorFungibility=fungibility
    )
    other = flavored_queue("other", {"preempted": "0", "borrowed": "9"}, cohortName="team")
    oracle = {"default": {"possibility": "Preempt", "borrowingLevelAfter": 0}}

    found = assign(
        [pod_set("3")],
        [queue, other],
        [flavor("preempted"), flavor("borrowed")],
        usage={"queue": {"preempted": {"cpu": "2"}}},
        preemptionOracle=oracle,
    )

    assert chosen(found)[0]["cpu"][0] == want


def test_a_replaced_slice_keeps_its_flavor_and_is_not_charged_again():
    queue = flavored_queue("queue", {"spot": "9", "fixed": "9"})
    slice_ = {"name": "main", "count": 2, "flavors": {"cpu": "fixed"}, "totalRequests": {"cpu": "2"}}

    found = assign([pod_set("1", 5)], [queue], SPOT, replacedSlice={"clusterQueue": "queue", "podSets": [slice_]})

    assert chosen(found) == [{"cpu": ("fixed", "Fit")}]
    assert found["assignment"]["usage"] == {"fixed": {"cpu": "3"}}


def test_a_resource_that_no_group_covers():
    queue = flavored_queue("queue", {FLAVOR: "4"}, resource="memory")

    assert assign([pod_set("1")], [queue], [flavor()])["assignment"]["noFitReason"] == "NoMatchingFlavor"
    assert assign([pod_set("0")], [queue], [flavor()])["representativeMode"] == "Fit"
    ignored = assign([pod_set("1")], [queue], [flavor()], quotaCheckStrategy="IgnoreUndeclared")
    assert ignored["representativeMode"] == "Fit"


@given(st.integers(1, 9), st.integers(0, 9), st.integers(0, 40))
def test_partial_admission_finds_the_most_pods(count, least, room):
    least = min(least, count)
    pod_sets = parse_workload({"spec": {"podSets": [pod_set(count=count, minCount=least)]}}).pod_sets

    found = search_counts(pod_sets, lambda counts: counts if sum(counts) <= room else None)

    want = min(count, room)
    assert (found[0] if found else None) == ((want,) if count > least and want >= least else None)


@laws(16)
@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 4)), min_size=1, max_size=3),
    st.lists(st.integers(0, 12), min_size=4, max_size=4),
    st.sampled_from(["MayStopSearch", "TryNextFlavor"]),
)
def test_what_fits_stays_within_quota(sizes, amounts, when_can_borrow):
    fungibility = {"whenCanBorrow": when_can_borrow}
    nominal = {"spot": str(amounts[0]), "fixed": str(amounts[1])}
    queue = flavored_queue("queue", nominal, cohortName="team", flavorFungibility=fungibility)
    other = flavored_queue("other", {"spot": str(amounts[2]), "fixed": str(amounts[3])}, cohortName="team")
    snapshot = read_snapshot({"clusterQueues": [queue, other], "resourceFlavors": SPOT})
    node = snapshot.nodes["queue"]
    facts = QueueFacts(
        snapshot.queues["queue"],
        node,
        snapshot.flavors,
        {},
        lambda pair, amount: (Mode.NO_CANDIDATES, find_borrowing_level(node, pair, amount)[0]),
    )
    pods = [pod_set(str(cpu), count, name=f"set{index}") for index, (cpu, count) in enumerate(sizes)]
    wanted = {**workload("job"), "spec": {"podSets": pods}}

    found = assign_flavors(Planner().plan(parse_workload(wanted).pod_sets, facts), facts)

    if found.mode is Mode.FIT:
        snapshot.add_usage("queue", found.usage)
        for name in nominal:
            pair = FlavorResource(name, "cpu")
            assert snapshot.cohorts["team"].usage.get(pair, 0) <= snapshot.cohorts["team"].subtree_quota(pair)
        assert sum(found.usage.values()) == 1000 * sum(cpu * count for cpu, count in sizes)
    else:
        assert all(not each.flavors or each.reasons or each.mode is Mode.FIT for each in found.pod_sets)

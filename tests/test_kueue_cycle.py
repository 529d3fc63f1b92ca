"""Scheduling cycles without topologies: who is tried, in which order, and what becomes of the others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kueue_tables import answer
from kueue_tables.given import read_snapshot
from kueue_tables.local_queue_usage import LocalQueueUsage, SharingConfig, parse_sharing_config
from kueueobjects import (
    FLAVOR,
    admitted,
    cluster_queue,
    cohort,
    flavor,
    flavored_queue,
    pod_set,
    run_until_stable,
    workload,
)
from sampling import laws

from jobgen.features.kueue.assignment import Mode
from jobgen.features.kueue.cluster_objects import DEFAULT_GATES, parse_gates
from jobgen.features.kueue.cycle import Scheduler
from jobgen.features.kueue.nominate import (
    ADMITTED,
    FITS_LATER,
    GATED,
    MISCONFIGURED,
    NO_LONGER_FITS,
    NOT_SELECTED,
    OVERLAPPING,
    PREEMPTING,
    WAITS,
)
from jobgen.features.kueue.preemption import Rules
from jobgen.features.kueue.queue_order import PendingQueue, find_shape, order_entry
from jobgen.features.kueue.quota import FlavorResource
from jobgen.features.kueue.workloads import parse_workload

PAIR = FlavorResource(FLAVOR, "cpu")
LOWER_FIRST = {"withinClusterQueue": "LowerPriority"}
RECLAIM_ANY = {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}


def pending(name, queue="main", *, cpu="1", priority=0, at="00", **fields):
    """A pending workload in a LocalQueue, created at a second."""
    found = workload(name, cpu, priority, creationTimestamp=f"2026-01-01T00:00:{at}Z")
    found["spec"] |= {"queueName": queue, **fields}
    return found


def build(queues, workloads, *, cohorts=(), is_fair=False, gates=DEFAULT_GATES, inactive=(), **more):
    """A scheduler with one LocalQueue of the same name for each queue."""
    names = sorted({name for each in queues for name in list_flavors(each)})
    objects = {"clusterQueues": queues, "cohorts": list(cohorts), "resourceFlavors": [flavor(name) for name in names]}
    scheduler = Scheduler(
        read_snapshot(objects),
        Rules(is_fair),
        {},
        {"ns": {"team": "ml"}},
        local_queues={("ns", each["metadata"]["name"]): each["metadata"]["name"] for each in queues},
        inactive=frozenset(inactive),
        gates=gates,
        **more,
    )
    for each in workloads:
        scheduler.add(parse_workload(each))
    return scheduler


def list_flavors(queue):
    return [each["name"] for group in queue["spec"]["resourceGroups"] for each in group["flavors"]]


def list_admitted(scheduler):
    return sorted(key.removeprefix("ns/") for several in scheduler.snapshot.workloads.values() for key in several)


def list_keys(workloads):
    return sorted(each.key.removeprefix("ns/") for each in workloads)


def outcome(scheduler, name):
    return scheduler.outcomes[f"ns/{name}"]


@pytest.mark.parametrize(
    ("strategy", "admitted_names", "waiting", "parked"),
    [
        ("BestEffortFIFO", ["small"], [], ["big"]),
        ("StrictFIFO", [], ["big", "small"], []),
    ],
)
def test_what_comes_after_a_head_that_does_not_fit(strategy, admitted_names, waiting, parked):
    queue = cluster_queue("main", cpu="4", queueingStrategy=strategy)
    scheduler = build([queue], [pending("big", cpu="5"), pending("small", at="01")])

    run_until_stable(scheduler)

    assert list_admitted(scheduler) == admitted_names
    assert list_keys(scheduler.pending["main"]) == waiting
    assert list_keys(scheduler.parked["main"]) == parked
    assert outcome(scheduler, "big").reason == "ExceedsMaxQuota"


def test_strict_fifo_parks_only_what_its_namespace_keeps_out():
    selector = {"matchLabels": {"team": "web"}}
    scheduler = build(
        [cluster_queue("main", cpu="4", queueingStrategy="StrictFIFO", namespaceSelector=selector)], [pending("a")]
    )

    scheduler.run_cycle()

    assert list_keys(scheduler.parked["main"]) == ["a"]
    assert outcome(scheduler, "a")[1:3] == (MISCONFIGURED, NOT_SELECTED)


def test_heads_come_by_priority_then_time_then_uid():
    queue = PendingQueue()
    for each in (pending("c", at="02"), pending("b", at="01"), pending("a", at="02"), pending("high", priority=1)):
        queue.push(parse_workload(each))

    order = []
    while (head := queue.peek()) is not None:
        order.append(head.key)
        queue.remove(head.key)

    assert order == ["ns/high", "ns/b", "ns/a", "ns/c"]


def test_workloads_of_one_shape_are_parked_together():
    several = [pending(f"w{number}", cpu="5", at=f"{number:02}") for number in range(4)]
    scheduler = build([cluster_queue("main", cpu="4")], [*several, pending("fits", at="59")])

    assert run_until_stable(scheduler) == 2

    assert list_keys(scheduler.parked["main"]) == ["w0", "w1", "w2", "w3"]
    tried = [scheduler.pending["main"].find_tried(each) for each in scheduler.parked["main"]]
    assert tried == ["", "ns/w0", "ns/w0", "ns/w0"]
    assert outcome(scheduler, "w3") == outcome(scheduler, "w0")
    assert list_admitted(scheduler) == ["fits"]


@pytest.mark.parametrize(
    "change",
    [{"cpu": "6"}, {"priority": 1}, {"podSets": [pod_set("5", spec={"nodeSelector": {"zone": "a"}})]}],
    ids=["requests", "priority", "node selector"],
)
def test_what_makes_another_shape(change):
    one, same = (parse_workload(pending(name, cpu="5")) for name in ("a", "b"))

    assert find_shape(one) == find_shape(same)
    assert find_shape(one) != find_shape(parse_workload(pending("c", **{"cpu": "5", **change})))


def test_borrowing_and_its_limit():
    queues = [cluster_queue("main", "all", cpu="2", borrow="3"), cluster_queue("other", "all", cpu="8")]
    scheduler = build(queues, [pending("a", cpu="4"), pending("b", cpu="2", at="01")])

    run_until_stable(scheduler)

    assert list_admitted(scheduler) == ["a"]
    assert outcome(scheduler, "a").level == 1
    assert outcome(scheduler, "b").reason == "WaitingForQuota"


def test_what_borrows_less_comes_first():
    queues = [cluster_queue("main", "all", cpu="2"), cluster_queue("other", "all", cpu="2")]
    scheduler = build(queues, [pending("borrows", cpu="3", priority=9), pending("own", "other", cpu="2")])

    scheduler.run_cycle()

    assert list_admitted(scheduler) == ["own"]
    assert outcome(scheduler, "borrows")[:3] == (WAITS, "WaitingForQuota", NO_LONGER_FITS)


@pytest.mark.parametrize(
    ("gates", "first"),
    [({}, "high"), ({"PrioritySortingWithinCohort": False}, "early"), ({"PrioritizePreemptorWorkloads": True}, "late")],
)
def test_gates_that_order_entries(gates, first):
    entries = [pending("early", at="00"), pending("high", priority=5, at="01"), pending("late", at="02")]

    def order(raw):
        found = parse_workload(raw)
        return order_entry(found, 0, parse_gates(gates), is_preemptor=found.key == "ns/late")

    assert min(entries, key=order)["metadata"]["name"] == first


def test_fair_sharing_prefers_the_lesser_share():
    queues = [cluster_queue(name, "all", cpu="0") for name in ("main", "other")] + [cluster_queue("bank", "all", "10")]
    running = admitted("running", "main", "4")
    scheduler = build(
        queues, [running, pending("more", cpu="6", priority=9), pending("first", "other", cpu="6")], is_fair=True
    )

    scheduler.run_cycle()

    assert list_admitted(scheduler) == ["first", "running"]
    assert outcome(scheduler, "more").message == NO_LONGER_FITS


def test_fair_sharing_compares_cohorts_before_queues():
    queues = [cluster_queue(name, parent) for name, parent in (("a1", "a"), ("a2", "a"), ("b1", "b"))]
    cohorts = [cohort("a", "root"), cohort("b", "root"), cohort("root", cpu="10")]
    workloads = [admitted("running", "a1", "3"), pending("x", "a2", cpu="6"), pending("y", "b1", cpu="6", at="30")]
    scheduler = build(queues, workloads, cohorts=cohorts, is_fair=True)

    scheduler.run_cycle()

    assert list_admitted(scheduler) == ["running", "y"]


def test_preemption_takes_two_cycles():
    queue = cluster_queue("main", cpu="4", preemption=LOWER_FIRST)
    scheduler = build([queue], [admitted("low", "main", "4"), pending("high", cpu="3", priority=5), pending("tiny")])

    scheduler.run_cycle()

    assert outcome(scheduler, "high").state == PREEMPTING
    assert outcome(scheduler, "high").message.endswith(", 3 more needed. Pending the preemption of 1 workload(s)")
    assert list(scheduler.evicted) == ["ns/low"]
    assert scheduler.evictions["ns/low"].preemptor.key == "ns/high"
    assert scheduler.find_head("main").key == "ns/high"

    assert [target.workload.key for target in scheduler.release_evicted()] == ["ns/low"]
    run_until_stable(scheduler)

    assert list_admitted(scheduler) == ["high", "tiny"]
    assert list_keys(scheduler.parked["main"]) == ["low"]


def test_a_preemptor_stays_the_head_although_a_greater_priority_arrives():
    queue = cluster_queue("main", cpu="4", preemption=LOWER_FIRST)
    scheduler = build([queue], [admitted("low", "main", "4"), pending("mid", cpu="3", priority=5)])
    scheduler.run_cycle()

    scheduler.add(parse_workload(pending("high", cpu="3", priority=9)))

    assert scheduler.find_head("main").key == "ns/mid"


OVERLAP = [
    admitted("victim", "bank", "8"),
    pending("one", "main", cpu="4"),
    pending("two", "other", cpu="4", at="01"),
]
RECLAIMING = [cluster_queue(name, "all", "4", preemption=RECLAIM_ANY) for name in ("main", "other")]


def test_overlapping_targets_are_skipped():
    scheduler = build([*RECLAIMING, cluster_queue("bank", "all", "0")], OVERLAP)

    scheduler.run_cycle()

    assert outcome(scheduler, "one").state == PREEMPTING
    assert outcome(scheduler, "two")[:3] == (WAITS, "WaitingForQuota", OVERLAPPING)
    assert scheduler.skipped_preemptions == {"other": 1}
    assert list_keys(scheduler.pending["other"]) == ["two"]


def test_overlapping_targets_are_searched_again_with_a_gate():
    gates = parse_gates({"RecomputeAssignmentUponPreemptionTargetsOverlap": True})
    scheduler = build([*RECLAIMING, cluster_queue("bank", "all", "0")], OVERLAP, gates=gates)

    scheduler.run_cycle()

    assert outcome(scheduler, "two")[:3] == (WAITS, "WaitingForPreemptedWorkloads", FITS_LATER)
    assert scheduler.skipped_preemptions == {}

    scheduler.release_evicted()
    run_until_stable(scheduler)
    assert list_admitted(scheduler) == ["one", "two"]


@pytest.mark.parametrize(("is_on", "count"), [(True, 4), (False, None)])
def test_partial_admission(is_on, count):
    elastic = pending("a", podSets=[pod_set("1", count=6, minCount=2)])
    scheduler = build([cluster_queue("main", cpu="4")], [elastic], gates=parse_gates({"PartialAdmission": is_on}))

    scheduler.run_cycle()

    found = outcome(scheduler, "a")
    assert ([each.count for each in found.admission] or [None]) == [count]


def test_the_next_cycle_goes_on_with_the_next_flavor():
    queues = [flavored_queue(name, {"one": "0", "two": "4"}, cohortName="all") for name in ("main", "other")]
    bank = flavored_queue("bank", {"one": "4"}, cohortName="all")
    scheduler = build([*queues, bank], [pending("a", cpu="4"), pending("b", "other", cpu="4", at="01")])

    scheduler.run_cycle()

    assert outcome(scheduler, "b").message == NO_LONGER_FITS
    assert scheduler.progress["ns/b"] == {("main", "cpu"): 0}

    scheduler.run_cycle()

    flavors = {name: outcome(scheduler, name).admission[0].flavors["cpu"] for name in ("a", "b")}
    assert flavors == {"a": "one", "b": "two"}


def test_a_closed_gate_holds_preemption_back():
    gates = parse_gates({"MultiKueueOrchestratedPreemption": True})
    gated = pending("high", cpu="3", priority=5, preemptionGates=[{"name": "gate"}])
    queue = cluster_queue("main", cpu="4", preemption=LOWER_FIRST)
    scheduler = build([queue], [admitted("low", "main", "4"), gated], gates=gates)

    scheduler.run_cycle()

    assert outcome(scheduler, "high")[:3] == (WAITS, "AdmissionGated", GATED)
    assert scheduler.gated == {"ns/high"}
    assert not scheduler.evicted


def test_a_workload_replaces_the_slice_that_it_grew_from():
    grown = pending("new", podSets=[pod_set("1", count=6)])
    grown["metadata"]["annotations"] = {"kueue.x-k8s.io/workload-slice-replacement-for": "ns/old"}
    scheduler = build([cluster_queue("main", cpu="6")], [admitted("old", "main", "4"), grown])

    scheduler.run_cycle()

    assert outcome(scheduler, "new").state == ADMITTED
    assert scheduler.replaced["ns/old"].key == "ns/new"
    scheduler.release_evicted()
    assert list_admitted(scheduler) == ["new"]
    assert scheduler.snapshot.nodes["main"].usage[PAIR] == 6000


@pytest.mark.parametrize(
    ("change", "is_queued"),
    [
        ({"spec": {"active": False}}, False),
        ({"metadata": {"annotations": {"kueue.x-k8s.io/admission-gated-by": "x"}}}, False),
        ({"status": {"conditions": [{"type": "Finished", "status": "True"}]}}, False),
        ({"status": {"conditions": [{"type": "QuotaReserved", "status": "False", "reason": "OnHold"}]}}, False),
        ({"spec": {"queueName": "missing"}}, False),
        ({"status": {"conditions": [{"type": "QuotaReserved", "status": "False", "reason": "Pending"}]}}, True),
    ],
)
def test_what_is_not_queued(change, is_queued):
    raw = pending("a")
    for part, values in change.items():
        raw[part] = {**raw.get(part, {}), **values}

    assert bool(len(build([cluster_queue("main", cpu="4")], [raw]).pending["main"])) is is_queued


def test_what_waits_for_a_time_is_parked():
    later = {**pending("a"), "status": {"requeueState": {"requeueAt": "2026-01-01T13:00:00Z"}}}
    scheduler = build([cluster_queue("main", cpu="4")], [later], now="2026-01-01T12:00:00Z")

    assert not scheduler.run_cycle()
    assert list_keys(scheduler.parked["main"]) == ["a"]


def test_failed_checks_keep_a_workload_out():
    failed = {**pending("a"), "status": {"admissionChecks": [{"name": "check", "state": "Rejected"}]}}
    scheduler = build([cluster_queue("main", cpu="4")], [failed])

    scheduler.run_cycle()

    assert outcome(scheduler, "a")[1:3] == ("PendingEvaluation", "The workload has failed admission checks")


def test_workloads_of_inactive_queues_use_quota_and_are_not_preempted():
    queues = [cluster_queue("main", "all", "4", preemption=RECLAIM_ANY), cluster_queue("off", "all", "0")]
    scheduler = build(
        queues, [admitted("keeps", "off", "4"), pending("a", cpu="4"), pending("b", "off")], inactive=["off"]
    )

    run_until_stable(scheduler)

    assert outcome(scheduler, "a").state == WAITS
    assert not scheduler.evicted
    assert list_keys(scheduler.pending["off"]) == ["b"]


def test_removing_a_workload_tries_its_cohort_again():
    queues = [cluster_queue("main", "all", "4"), cluster_queue("other", "all", "0")]
    scheduler = build(queues, [admitted("runs", "main", "4"), pending("a", "other", cpu="4")])
    run_until_stable(scheduler)
    assert list_keys(scheduler.parked["other"]) == ["a"]

    scheduler.remove("ns/runs")
    run_until_stable(scheduler)

    assert list_admitted(scheduler) == ["a"]


def test_admission_fair_sharing_takes_turns():
    queue = cluster_queue("cq", cpu="4", admissionScope={"admissionMode": "UsageBasedAdmissionFairSharing"})
    config = parse_sharing_config({"usageHalfLifeTime": "1m", "usageSamplingInterval": "5m0s"})
    assert config == SharingConfig(60.0, 300.0, {})
    usage = LocalQueueUsage(config, {("ns", "used"): {"cpu": "1500m"}}, {("ns", "zero"): 0.0})
    scheduler = build([queue], [], local_usage=usage)
    scheduler.local_queues = {("ns", name): "cq" for name in ("used", "fresh", "zero")}
    names = {"f1": "fresh", "f2": "fresh", "f3": "fresh", "u1": "used", "z1": "zero"}
    for number, (name, local) in enumerate(names.items()):
        scheduler.add(parse_workload(pending(name, local, priority=9 if local == "zero" else 0, at=f"{number:02}")))

    order = []
    while (head := scheduler.find_head("cq")) is not None:
        order.append(head.key.removeprefix("ns/"))
        scheduler.run_cycle()

    assert order == ["f1", "f2", "u1", "f3", "z1"]


def test_a_table_takes_and_returns_plain_objects():
    case = {
        "clusterQueues": [cluster_queue("main", cpu="4", preemption=LOWER_FIRST)],
        "resourceFlavors": [flavor()],
        "localQueues": [{"metadata": {"namespace": "ns", "name": "main"}, "spec": {"clusterQueue": "main"}}],
        "namespaces": [{"metadata": {"name": "ns"}}],
        "workloads": [admitted("low", "main", "4"), pending("high", cpu="4", priority=1)],
    }

    found = answer("schedule", case)

    assert found["left"] == {"main": ["ns/high"]}
    assert list(found["assignments"]) == ["ns/low"]
    assert found["workloads"]["ns/low"]["preempted"]["reason"] == "InClusterQueue"
    assert found["workloads"]["ns/low"]["preempted"]["message"] == (
        "Preempted to accommodate a workload (UID: high, JobUID: UNKNOWN) due to prioritization in the ClusterQueue; "
        "preemptor path: /main; preemptee path: /main"
    )
    assert found["workloads"]["ns/high"]["resourceRequests"] == [{"name": "main", "resources": {"cpu": "4000m"}}]


def test_tables_of_the_scheduler_count_skipped_preemptions():
    queues = [*RECLAIMING, cluster_queue("bank", "all", "0")]
    names = [each["metadata"]["name"] for each in queues]
    case = {
        "clusterQueues": queues,
        "resourceFlavors": [flavor()],
        "localQueues": [
            {"metadata": {"namespace": "ns", "name": each}, "spec": {"clusterQueue": each}} for each in names
        ],
        "namespaces": [{"metadata": {"name": "ns"}}],
        "workloads": OVERLAP,
    }
    wanted = {name: int(name == "other") for name in names}

    for table in ("schedule", "schedule_recompute_targets", "schedule_concurrent_admission"):
        assert answer(table, case)["skippedPreemptions"] == wanted
        gates = {"featureGates": {"RecomputeAssignmentUponPreemptionTargetsOverlap": True}}
        assert "skippedPreemptions" not in answer(table, {**case, **gates})


# Properties of any run.

AMOUNTS = st.integers(0, 9)
LIMITS = st.none() | AMOUNTS.map(str)
POLICIES = st.sampled_from([{}, LOWER_FIRST, RECLAIM_ANY, {"reclaimWithinCohort": "LowerPriority"}])


@st.composite
def fleets(draw):
    """Queues in up to two cohorts below one root, and workloads that wait in them."""
    queues = []
    for number in range(draw(st.integers(1, 5))):
        nominal = draw(AMOUNTS)
        strategy = draw(st.sampled_from(["BestEffortFIFO", "StrictFIFO"]))
        lend = draw(st.none() | st.integers(0, nominal).map(str))
        parent = draw(st.sampled_from(["a", "b", ""]))
        limits = {"borrow": draw(LIMITS), "lend": lend} if parent else {}
        queues.append(
            cluster_queue(
                f"q{number}", parent, str(nominal), queueingStrategy=strategy, preemption=draw(POLICIES), **limits
            )
        )
    names = [each["metadata"]["name"] for each in queues]
    workloads = [
        pending(
            f"w{number}",
            draw(st.sampled_from(names)),
            cpu=str(draw(st.integers(1, 6))),
            priority=draw(st.integers(0, 2)),
            at=f"{number:02}",
        )
        for number in range(draw(st.integers(0, 12)))
    ]
    return queues, workloads, draw(st.booleans())


@laws(40)
@given(fleets(), st.integers(0, 8))
def test_what_is_blocked_neither_fits_nor_preempts(fleet, cycles):
    queues, workloads, is_fair = fleet
    scheduler = build(queues, workloads, cohorts=[cohort("a", "root"), cohort("b", "root")], is_fair=is_fair)
    for _ in range(cycles):
        scheduler.run_cycle()
        if cycles % 2:
            scheduler.release_evicted()
    for queue in scheduler.snapshot.queues:
        for each in (*scheduler.pending[queue], *scheduler.parked[queue]):
            if scheduler.bounds.is_blocked(each, queue, scheduler.pending[queue].find_shape(each)):
                assignment, targets = scheduler.assign(each, queue)
                assert (targets, assignment.mode is Mode.FIT) == ([], False)


@laws(60)
@given(fleets())
def test_cycles_that_skip_what_is_blocked_admit_the_same(fleet):
    queues, workloads, is_fair = fleet
    cohorts = [cohort("a", "root"), cohort("b", "root")]
    plain, quick = (build(queues, workloads, cohorts=cohorts, is_fair=is_fair) for _ in range(2))
    for _ in range(40):
        plain.run_cycle()
        quick.run_cycle(skips_blocked=True)
        assert quick.snapshot.workloads == plain.snapshot.workloads
        assert quick.evictions == plain.evictions
        plain.release_evicted()
        quick.release_evicted()


@laws(20)
@given(fleets())
def test_a_run_ends_and_never_admits_more_than_quota(fleet):
    queues, workloads, is_fair = fleet
    cohorts = [cohort("a", "root"), cohort("b", "root")]
    scheduler = build(queues, workloads, cohorts=cohorts, is_fair=is_fair)

    for _ in range(4):
        cycles = run_until_stable(scheduler, most=2000)
        assert cycles < 2000
        check_limits(scheduler)
        check_places(scheduler, workloads)
        scheduler.release_evicted()


def check_limits(scheduler):
    """Nothing exceeds the quota of the tree, what a queue may borrow, or what the others lend."""
    used = 0
    total = sum(node.find_quota(PAIR).nominal for node in scheduler.snapshot.nodes.values())
    for name, node in scheduler.snapshot.nodes.items():
        own = sum(each.usage.get(PAIR, 0) for each in scheduler.snapshot.workloads[name].values())
        assert node.usage.get(PAIR, 0) == own
        assert own <= node.potential(PAIR)
        quota = node.find_quota(PAIR)
        if quota.borrowing_limit is not None:
            assert own <= quota.nominal + quota.borrowing_limit
        used += own
        assert node.root.usage.get(PAIR, 0) <= node.root.subtree_quota(PAIR)
    assert used <= total


def check_places(scheduler, workloads):
    """Each workload is in exactly one place."""
    places = [
        *(each.key for several in scheduler.pending.values() for each in several),
        *(each.key for several in scheduler.parked.values() for each in several),
        *(key for several in scheduler.snapshot.workloads.values() for key in several),
    ]
    assert sorted(places) == sorted(f"ns/{each['metadata']['name']}" for each in workloads)


@laws(13)
@given(fleets(), st.integers(0, 4))
def test_more_quota_never_makes_an_admitted_workload_too_large(fleet, number):
    queues, workloads, is_fair = fleet
    workloads = workloads[:1]
    before = build(queues, workloads, is_fair=is_fair)
    run_until_stable(before, most=100)
    quota = queues[number % len(queues)]["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]
    quota["nominalQuota"] = str(int(quota["nominalQuota"]) + 3)
    after = build(queues, workloads, is_fair=is_fair)
    run_until_stable(after, most=100)

    assert set(list_admitted(before)) <= set(list_admitted(after))

"""The tree of quota: what each queue may use, lends and borrows, and whether it is ready at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kueue_tables import answer
from kueueobjects import FLAVOR, cluster_queue, cohort, flavor
from sampling import laws

from jobgen.features.kueue.objects import parse_cluster_queue, parse_cohort
from jobgen.features.kueue.quota import (
    UNLIMITED,
    FlavorResource,
    Quota,
    QuotaNode,
    add,
    build_tree,
    compute_share,
    show_amount,
    subtract,
    to_amount,
)

PAIR = FlavorResource(FLAVOR, "cpu")
AMOUNTS = st.integers(0, 12)
LIMITS = st.none() | AMOUNTS
QUOTAS = st.builds(Quota, AMOUNTS, LIMITS, LIMITS)


@st.composite
def plans(draw):
    """Cohorts and queues as (quota, number of the parent or None); the parent of a cohort comes before it."""
    cohorts = [(draw(QUOTAS), None)]
    for number in range(1, draw(st.integers(1, 4))):
        cohorts.append((draw(QUOTAS), draw(st.none() | st.integers(0, number - 1))))
    parents = st.none() | st.integers(0, len(cohorts) - 1)
    return cohorts, [(draw(QUOTAS), draw(parents)) for _ in range(draw(st.integers(1, 5)))]


def build(plan):
    """The nodes of a plan: cohorts and queues."""
    cohorts, queues = (
        [
            (QuotaNode(f"{prefix}{number}", {PAIR: quota}, is_queue=prefix == "queue"), "")
            if parent is None
            else (QuotaNode(f"{prefix}{number}", {PAIR: quota}, is_queue=prefix == "queue"), f"cohort{parent}")
            for number, (quota, parent) in enumerate(several)
        ]
        for prefix, several in zip(("cohort", "queue"), plan, strict=True)
    )
    found = build_tree(queues, cohorts)
    return list(found.values()), [node for node, _ in queues]


STEPS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), max_size=12)


def admit(queues, steps):
    """Add usage where it fits; return what was added."""
    added = []
    for number, amount in steps:
        node = queues[number % len(queues)]
        if node.fits({PAIR: amount}):
            node.add_usage(PAIR, amount)
            added.append((node, amount))
    return added


@laws(16)
@given(plans(), STEPS)
def test_usage_that_fits_never_exceeds_quota(plan, steps):
    cohorts, queues = build(plan)

    admit(queues, steps)

    for node in cohorts + queues:
        used = node.usage.get(PAIR, 0)
        if node.parent is None:
            assert used <= node.subtree_quota(PAIR)
        elif (limit := node.find_quota(PAIR).borrowing_limit) is not None:
            assert used <= node.subtree_quota(PAIR) + limit, "the borrowing limit"
        assert node.available(PAIR) >= node.local_available(PAIR), "the lending limit: its own part is left"


@laws(13)
@given(plans(), STEPS, st.randoms(use_true_random=False))
def test_removing_usage_in_any_order_restores_the_tree(plan, steps, random):
    cohorts, queues = build(plan)
    added = admit(queues, steps)
    for node in cohorts:
        children = ((each.usage.get(PAIR, 0), each.local_quota(PAIR)) for each in node.children)
        assert node.usage.get(PAIR, 0) == sum(max(0, used - local) for used, local in children)

    random.shuffle(added)
    for node, amount in added:
        node.remove_usage(PAIR, amount)

    assert all(not any(node.usage.values()) for node in cohorts + queues)


@laws(13)
@given(plans())
def test_everything_is_available_in_an_empty_tree(plan):
    cohorts, queues = build(plan)

    assert all(node.potential(PAIR) == node.available(PAIR) for node in cohorts + queues)


@laws(13)
@given(plans(), st.integers(0, 8), st.integers(1, 9))
def test_more_nominal_quota_never_lowers_what_is_possible(plan, number, more):
    before = [node.potential(PAIR) for several in build(plan) for node in several]
    cohorts, queues = (list(several) for several in plan)
    raised = queues if number % 2 else cohorts
    quota, parent = raised[number % len(raised)]
    raised[number % len(raised)] = quota._replace(nominal=quota.nominal + more), parent

    after = [node.potential(PAIR) for several in build((cohorts, queues)) for node in several]

    assert all(old <= new for old, new in zip(before, after, strict=True))


@laws(13)
@given(plans(), STEPS)
def test_only_a_queue_that_borrows_has_a_share(plan, steps):
    _, queues = build(plan)

    admit(queues, steps)

    for node in queues:
        share = compute_share(node)
        assert bool(share.borrowed) == (node.parent is not None and node.is_borrowing(PAIR))
        assert share.borrowed or share.precise == 0


@pytest.mark.parametrize(
    ("resource", "quantity", "amount"),
    [
        ("cpu", "1500m", 1500),
        ("cpu", "1n", 1),
        ("memory", "1Gi", 2**30),
        ("memory", "0.5", 1),
        ("cpu", "9223372036854775807", UNLIMITED),
        ("cpu", None, 0),
        ("cpu", "no quantity", 0),
    ],
)
def test_amounts_round_up(resource, quantity, amount):
    assert to_amount(resource, quantity) == amount


def test_unlimited_stays_unlimited():
    assert add(UNLIMITED, 5) == subtract(UNLIMITED, 5) == add(UNLIMITED - 1, 5) == UNLIMITED
    assert subtract(UNLIMITED, UNLIMITED) == 0
    assert subtract(5, UNLIMITED) < 0


@pytest.mark.parametrize(
    ("resource", "amount", "shown"),
    [("cpu", 1500, "1500m"), ("cpu", 2000, "2"), ("memory", 1536 * 2**20, "1536Mi"), ("gpu", 1000, "1k")],
)
def test_amounts_as_kubernetes_prints_them(resource, amount, shown):
    assert show_amount(resource, amount) == shown


def test_lent_and_limited_quota():
    given_ = {
        "clusterQueues": [
            cluster_queue("lender", "team", "10", lend="4"),
            cluster_queue("borrower", "team", "2", borrow="3"),
            cluster_queue("guest", "team"),
        ],
        "resourceFlavors": [flavor()],
        "usage": {"guest": {FLAVOR: {"cpu": "5"}}},
    }

    found = answer("quota_available", given_)

    cpu = {name: quota[FLAVOR]["cpu"] for name, quota in found["available"].items()}
    assert cpu == {"lender": "7", "borrower": "1", "guest": "1"}
    potential = {name: quota[FLAVOR]["cpu"] for name, quota in found["potentiallyAvailable"].items()}
    assert potential == {"lender": "12", "borrower": "5", "guest": "6"}


def test_a_blocked_workload_reserves_no_more_than_its_queue_may_use():
    given_ = {
        "clusterQueues": [cluster_queue("queue", "team", "10", borrow="5")],
        "resourceFlavors": [flavor()],
        "usage": {"queue": {FLAVOR: {"cpu": "8"}}},
        "assignmentMode": "Preempt",
        "assignmentUsage": {FLAVOR: {"cpu": "9"}},
    }
    table = "capacity_reserved_for_blocked_preemptor"

    assert answer(table, {**given_, "borrowingLevel": 0}) == {"reserved": {FLAVOR: {"cpu": "2"}}}
    assert answer(table, {**given_, "borrowingLevel": 1}) == {"reserved": {FLAVOR: {"cpu": "7"}}}


MULTIKUEUE = {
    "metadata": {"name": "remote"},
    "spec": {"controllerName": "kueue.x-k8s.io/multikueue"},
    "status": {"conditions": [{"type": "Active", "status": "True"}]},
}
REMOTE = {"admissionChecksStrategy": {"admissionChecks": [{"name": "remote"}]}}


@pytest.mark.parametrize(
    ("spec", "objects", "reason", "message"),
    [
        ({}, {}, "Ready", "Can admit new workloads"),
        ({"stopPolicy": "Hold"}, {}, "Stopped", "is stopped"),
        ({}, {"resourceFlavors": []}, "FlavorNotFound", f"references missing ResourceFlavor(s): {FLAVOR}"),
        (
            {"stopPolicy": "HoldAndDrain"},
            {"resourceFlavors": []},
            "Stopped",
            f"is stopped, references missing ResourceFlavor(s): {FLAVOR}",
        ),
        (REMOTE, {}, "AdmissionCheckNotFound", "references missing AdmissionCheck(s): remote"),
        (
            REMOTE,
            {"admissionChecks": [{**MULTIKUEUE, "status": {}}]},
            "AdmissionCheckInactive",
            "references inactive AdmissionCheck(s): remote",
        ),
        (REMOTE, {"admissionChecks": [MULTIKUEUE]}, "Ready", "Can admit new workloads"),
        (
            {"admissionChecksStrategy": {"admissionChecks": [{"name": "remote", "onFlavors": ["other"]}]}},
            {"admissionChecks": [MULTIKUEUE]},
            "MultiKueueAdmissionCheckAppliedPerFlavor",
            "Cannot specify MultiKueue AdmissionCheck per flavor, found: remote",
        ),
        (
            {},
            {"resourceFlavors": [flavor(topologyName="racks")]},
            "TopologyNotFound",
            f'there is no Topology "racks" for TAS flavor "{FLAVOR}"',
        ),
        (
            REMOTE,
            {"resourceFlavors": [flavor(topologyName="racks")], "admissionChecks": [MULTIKUEUE]},
            "Ready",
            "Can admit new workloads",
        ),
    ],
)
def test_readiness_of_a_queue(spec, objects, reason, message):
    given_ = {
        "clusterQueue": "queue",
        "clusterQueues": [cluster_queue("queue", cpu="1", **spec)],
        "resourceFlavors": [flavor()],
        **objects,
    }

    found = answer("cluster_queue_readiness", given_)

    shown = message if reason == "Ready" else f"Can't admit new workloads: {message}."
    status = "True" if reason == "Ready" else "False"
    assert found == {"active": reason == "Ready", "message": shown, "reason": reason, "status": status}


def test_queues_of_a_cyclic_cohort_are_not_scheduled():
    given_ = {
        "clusterQueues": [cluster_queue("inside", "a", "1"), cluster_queue("outside", "c", "1")],
        "cohorts": [cohort("a", "b"), cohort("b", "a"), cohort("c")],
        "resourceFlavors": [flavor()],
    }

    found = answer("snapshot", given_)

    assert found["inactiveClusterQueues"] == ["inside"]
    assert set(found["clusterQueues"]) == {"outside"}
    assert set(found["cohorts"]) == {"c"}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=2)
            | st.dictionaries(
                st.sampled_from(
                    ["spec", "resourceGroups", "flavors", "resources", "fairSharing", "weight", "preemption"]
                ),
                inner,
                max_size=3,
            )
        ),
        max_leaves=12,
    )
)
def test_objects_of_any_shape_are_read(spec):
    obj = {"metadata": spec, "spec": spec}

    assert isinstance(parse_cluster_queue(obj).groups, tuple)
    assert isinstance(parse_cohort(obj).parent, str)

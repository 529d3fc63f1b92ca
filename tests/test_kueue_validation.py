"""What the webhooks of Kueue refuse: one fault each, with the field, the type and the text of Kueue."""

import pytest
from kueue_tables import answer
from kueue_tables.webhook import validate_cluster_queue, validate_cohort, validate_resource_flavor
from kueue_tables.webhook_workloads import WorkloadGates, validate_workload

from jobgen.features.kueue.requests import InvalidValue, join_errors

INVALID, REQUIRED, DUPLICATE = "FieldValueInvalid", "FieldValueRequired", "FieldValueDuplicate"
FORBIDDEN, NOT_SUPPORTED, NOT_FOUND = "FieldValueForbidden", "FieldValueNotSupported", "FieldValueNotFound"


def group(name="spot", covered=("cpu",), **quota):
    resources = [{"name": each, "nominalQuota": "4", **quota} for each in covered]
    return {"coveredResources": list(covered), "flavors": [{"name": name, "resources": resources}]}


def spec(*groups, **fields):
    return {"spec": {"cohortName": "all", "resourceGroups": list(groups), **fields}}


FIRST = "spec.resourceGroups[0].flavors[0].resources[0]"
POLICY = "spec.concurrentAdmissionPolicy.migration.constraints"


def policy(**constraints):
    return {"migration": {"mode": "TryPreferredFlavors", "constraints": constraints}}


QUEUES = [
    (spec(group()), None),
    (spec(group(nominalQuota="-1")), (f"{FIRST}.nominalQuota", INVALID, "must be greater than or equal to 0")),
    (spec(group(borrowingLimit="-1")), (f"{FIRST}.borrowingLimit", INVALID, "must be greater than or equal to 0")),
    (spec(group(lendingLimit="5")), (f"{FIRST}.lendingLimit", INVALID, "must be less than or equal to the nominal")),
    (spec(group(lendingLimit="4000m")), None),
    (spec(group(borrowingLimit="1"), cohortName=""), (f"{FIRST}.borrowingLimit", INVALID, "must be nil when cohort")),
    (spec(group(name="a"), group(name="b")), ("spec.resourceGroups[1].coveredResources[0]", DUPLICATE, "")),
    (
        spec(group(name="a"), group(name="a", covered=["memory"])),
        ("spec.resourceGroups[1].flavors[0].name", DUPLICATE, ""),
    ),
    (spec(group(covered=["@cpu"])), ("spec.resourceGroups[0].coveredResources[0]", INVALID, "name part must consist")),
    (spec({**group(), "coveredResources": ["memory"]}), (f"{FIRST}.name", INVALID, "must match the name in covered")),
    (spec(group(), fairSharing={"weight": "-1"}), ("spec.fairSharing", INVALID, "must be greater than or equal to 0")),
    (spec(group(), fairSharing={"weight": "1n"}), ("spec.fairSharing", INVALID, "When not 0, weight must be > 10e-9")),
    (
        spec(group(), preemption={"borrowWithinCohort": {"policy": "LowerPriority"}}),
        ("spec.preemption", INVALID, "reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never"),
    ),
    (
        spec(group(), flavorFungibility={"preference": "BorrowingOverPreemption"}),
        ("spec.flavorFungibility.preference", INVALID, 'preference "BorrowingOverPreemption" requires both'),
    ),
    (
        spec(group(), namespaceSelector={"matchExpressions": [{"key": "a", "operator": "In"}]}),
        ("spec.namespaceSelector.matchExpressions[0].values", REQUIRED, "must be specified when `operator` is"),
    ),
    (
        spec(group(), namespaceSelector={"matchExpressions": [{"key": "a", "operator": "Is"}]}),
        ("spec.namespaceSelector.matchExpressions[0].operator", INVALID, "not a valid selector operator"),
    ),
    (
        spec(group(), admissionChecksStrategy={"admissionChecks": [{"name": "a", "onFlavors": ["gone"]}]}),
        ("spec.admissionChecksStrategy.admissionChecks[0].onFlavors[0]", NOT_SUPPORTED, 'supported values: "spot"'),
    ),
    (spec(group(), concurrentAdmissionPolicy=policy(lastAcceptableFlavorName="spot")), None),
    (
        spec(group(), concurrentAdmissionPolicy=policy(lastAcceptableFlavorName="gone")),
        (
            f"{POLICY}.lastAcceptableFlavorName",
            INVALID,
            "must be one of the flavors defined in the ClusterQueue: [spot]",
        ),
    ),
    (
        spec(group(), concurrentAdmissionPolicy={"migration": {"mode": "RetainFirstAdmission", "constraints": {}}}),
        (POLICY, FORBIDDEN, 'may only be set when migration.mode is "TryPreferredFlavors"'),
    ),
    (spec(concurrentAdmissionPolicy={}), ("spec.resourceGroups", INVALID, "must have exactly one ResourceGroup")),
    (
        spec(group(), concurrentAdmissionPolicy={}, queueingStrategy="StrictFIFO"),
        ("spec.queueingStrategy", INVALID, "StrictFIFO queueing strategy cannot be used"),
    ),
]


def assert_errors(errors, expected):
    found = list(errors)
    assert [(each.field, each.type) for each in found] == ([expected[:2]] if expected else [])
    assert all(each.detail.startswith(expected[2]) for each in found)


@pytest.mark.parametrize(("obj", "expected"), QUEUES)
def test_cluster_queues(obj, expected):
    assert_errors(validate_cluster_queue(obj, has_concurrent_admission=True), expected)


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        ({"spec": {"parentName": "root", "resourceGroups": [group(lendingLimit="9")]}}, None),
        (
            {"spec": {"resourceGroups": [group(lendingLimit="1")]}},
            (f"{FIRST}.lendingLimit", INVALID, "must be nil when parent is empty"),
        ),
    ],
)
def test_cohorts(obj, expected):
    assert_errors(validate_cohort(obj), expected)


TAINT = {"key": "spot", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"nodeLabels": {"pool": "spot"}, "nodeTaints": [TAINT], "tolerations": [{"operator": "Exists"}]}, None),
        ({"nodeLabels": {"a/b/c": "x"}}, ("spec.nodeLabels", INVALID, "a valid label key must consist of")),
        ({"nodeLabels": {"/a": "x"}}, ("spec.nodeLabels", INVALID, "prefix part must be non-empty")),
        ({"nodeLabels": {"x" * 64: "x"}}, ("spec.nodeLabels", INVALID, "name part must be no more than 63 bytes")),
        ({"nodeLabels": {"a": "b c"}}, ("spec.nodeLabels", INVALID, "a valid label must be an empty string or")),
        ({"nodeTaints": [TAINT, TAINT]}, ("spec.nodeTaints[1]", DUPLICATE, "taints must be unique by key and effect")),
        ({"tolerations": [{"key": "@"}]}, ("spec.tolerations[0].key", INVALID, "name part must consist of")),
    ],
)
def test_resource_flavors(fields, expected):
    assert_errors(validate_resource_flavor({"spec": fields}), expected)


def pods(requests=None, **pod_set):
    container = {"name": "c", "resources": {"requests": requests or {}}}
    return {"name": "main", "count": 3, "template": {"spec": {"containers": [container]}}, **pod_set}


RESERVED = {
    "type": "QuotaReserved",
    "status": "True",
    "reason": "Reserved",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
CONTAINER = "spec.podSets[0].template.spec.containers[0].resources.requests"
GATES = "metadata.annotations[kueue.x-k8s.io/admission-gated-by]"
SLICES = "spec.podSets[0].topologyRequest.podSetSliceSize"


def admitted(**assignment):
    return {"conditions": [RESERVED], "admission": {"podSetAssignments": [{"name": "main", **assignment}]}}


def annotated(name, value):
    return {"annotations": {f"kueue.x-k8s.io/{name}": value}}


WORKLOADS = [
    ([pods({"cpu": "1"})], {}, {}, None),
    ([pods({"pods": "1"})], {}, {}, (f"{CONTAINER}[pods]", INVALID, "the key is reserved for internal kueue use")),
    ([pods({"cpu": "-1"})], {}, {}, (f"{CONTAINER}[cpu]", INVALID, "must be greater than or equal to 0")),
    ([pods(minCount=1), pods(name="b", minCount=1)], {}, {}, ("spec.podSets", INVALID, "at most one podSet can use")),
    (
        [pods(minCount=1)],
        {},
        annotated("elastic-job", "true"),
        ("spec.podSets", INVALID, "partial admission and elast"),
    ),
    ([pods(topologyRequest={"podSetSliceSize": 2})], {}, {}, (SLICES, FORBIDDEN, "may not be set when")),
    ([pods(topologyRequest={"podSetSliceRequiredTopology": "a"})], {}, {}, (SLICES, REQUIRED, "must be set when")),
    ([pods()], {"conditions": [RESERVED]}, {}, ("status.admission", REQUIRED, "must be set while the QuotaReserved")),
    ([pods()], admitted(count=3, resourceUsage={"cpu": "3"}), {}, None),
    (
        [pods()],
        admitted(count=3, resourceUsage={"cpu": "1"}),
        {},
        ("status.admission.podSetAssignments[0].resourceUsage[cpu]", INVALID, "is not a multiple of"),
    ),
    ([pods()], admitted(name="b"), {}, ("status.admission.podSetAssignments[0].name", NOT_FOUND, "")),
    (
        [pods()],
        {"reclaimablePods": [{"name": "main", "count": 4}]},
        {},
        ("status.reclaimablePods[main].count", INVALID, "should be less or equal to 3"),
    ),
    (
        [pods()],
        {"admissionChecks": [{"podSetUpdates": [{"name": "b"}]}]},
        {},
        ("status.admissionChecks[0].podSetUpdates[0].name", NOT_SUPPORTED, 'supported values: "main"'),
    ),
    ([pods()], {"conditions": [{**RESERVED, "status": "False"}] * 2}, {}, ("status.conditions[1].type", DUPLICATE, "")),
    ([pods()], {}, annotated("admission-gated-by", "a.io/b, c.io/d"), None),
    ([pods()], {}, annotated("admission-gated-by", "a.io/b,"), (GATES, INVALID, "cannot contain empty gate names")),
    ([pods()], {}, annotated("admission-gated-by", "a.io/b,a.io/b"), (GATES, INVALID, "duplicate gate name: a.io/b")),
    ([pods()], {}, annotated("admission-gated-by", "b"), (GATES, INVALID, "must be a domain-prefixed path")),
    ([pods()], {}, annotated("admission-gated-by", "a.io/b c"), (GATES, INVALID, "Invalid path (regex used")),
    ([pods()], {}, annotated("priority-boost", "-5"), None),
    (
        [pods()],
        {},
        annotated("priority-boost", "high"),
        ("metadata.annotations[kueue.x-k8s.io/priority-boost]", INVALID, "must be a valid signed integer"),
    ),
]


@pytest.mark.parametrize(("pod_sets", "status", "metadata", "expected"), WORKLOADS)
def test_workloads(pod_sets, status, metadata, expected):
    obj = {"metadata": metadata, "spec": {"podSets": pod_sets}, "status": status}

    assert_errors(validate_workload(obj, WorkloadGates(has_boost=True)), expected)


@pytest.mark.parametrize(("boost", "is_valid"), [("+5", True), ("-00000000000007", True), ("2147483648", False)])
def test_a_boost_is_an_integer_of_32_bits(boost, is_valid):
    obj = {"metadata": annotated("priority-boost", boost), "spec": {"podSets": [pods()]}}
    assert (list(validate_workload(obj, WorkloadGates(has_boost=True))) == []) == is_valid


@pytest.mark.parametrize("count", [-1, 0, 2, None])
def test_a_negative_count_of_groups_is_a_warning(count):
    pod_set = {**pods(), "topologyRequest": {"subGroupCount": count}}
    found = answer("validate_workload", {"object": {"spec": {"podSets": [pods(), pod_set]}}})
    path = "spec.podSets[1].topologyRequest.subGroupCount"
    warning = f"{path}: negative value {count} is deprecated and will be rejected in a future release"
    assert found == {"errors": [], **({"warnings": [warning]} if count == -1 else {})}


@pytest.mark.parametrize("value", [None, 1, "x", [], [1], {"a": None}])
def test_values_of_wrong_types_raise_no_exception(value):
    names = ("resourceGroups", "podSets", "nodeLabels", "nodeTaints", "concurrentAdmissionPolicy", "fairSharing")
    obj = {"metadata": value, "spec": dict.fromkeys(names, value), "status": value}
    for validate in (validate_cluster_queue, validate_cohort, validate_resource_flavor, validate_workload):
        assert all(each.field for each in (*validate(obj), *validate({"spec": value})))


def test_texts_of_errors():
    one, other = InvalidValue("spec.a", "must be small", ["cpu"]), InvalidValue("spec.b", "must be less", 2)

    assert join_errors([one, one]) == 'spec.a: Invalid value: ["cpu"]: must be small'
    assert join_errors([one, other]) == f"[{one}, spec.b: Invalid value: 2: must be less]"

"""Workloads, autoscalers and disruption budgets that the API server refuses, and the pods of workloads.

A case is a file of objects. `# expect: rule, rule` is on the line of the fault; the API server accepts an object
without it.
"""

import json
from pathlib import Path

import pytest
from sharedfiles import shared_folder
from validationcases import find_problems, list_cases

from jobgen.check.checker import Checker
from jobgen.check.validation import find_kind, find_metadata_format
from jobgen.check.validation.jobs import find_schedule_error
from jobgen.check.validation.pods import is_workload
from jobgen.k8s.kinds import NEWEST_RELEASE
from jobgen.model.data import untraced
from jobgen.model.finding import Severity
from jobgen.model.time_zones import is_time_zone, list_meant_zones, suggest_time_zone
from jobgen.rendering import config
from jobgen.spec.overlay import Cluster
from jobgen.yamlio.read import read

CASES = list_cases("workloads")
CONTAINERS = [{"name": "a", "image": "b"}]
PROJECT = config.load_own(Path(__file__).parent)


def list_rules(obj, release=NEWEST_RELEASE):
    return [problem.rule for problem in find_problems(obj, release)]


@pytest.mark.parametrize(
    "schedule",
    [
        "* * * * *",
        "0 0 1 1 0",
        "59/5 23 31 12 6",
        "+5 0 * * *",
        "1,,2 , * * *",
        "*-x * * * *",
        "0-59/99 ?/2 1-31 jan-DEC Mon",
        "\t0  0\u00a0* * *\n",
        "@hourly",
        "@midnight",
        "@every 1h30m0.5s",
        "@every -1.s",
        "@every 0",
        "@every 5µs",
    ],
)
def test_schedules(schedule):
    assert find_schedule_error(schedule) == ""


@pytest.mark.parametrize(
    "schedule",
    [
        "* * * *",
        "0 * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 7",
        "* * * * sunday",
        "jan * * * *",
        "5-1 * * * *",
        "1-2-3 * * * *",
        "*/0 * * * *",
        "*/-1 * * * *",
        "*/2/3 * * * *",
        "*/x * * * *",
        "-1 * * * *",
        "1.5 * * * *",
        "99999999999999999999 * * * *",
        "²  * * * *",
        "0 0 * *\x1c* *",
        " @hourly",
        "@hourly ",
        "@Hourly",
        "@every",
        "@every 1",
        "@every 1d",
        "@every  1h",
        "@every .h",
        "@every 9999999999999999h",
        "x",
    ],
)
def test_refused_schedules(schedule):
    assert find_schedule_error(schedule)


@pytest.mark.parametrize(
    ("name", "is_valid"),
    [
        ("UTC", True),
        ("Etc/GMT+5", True),
        ("US/Pacific", True),
        ("America/Argentina/Buenos_Aires", True),
        ("utc", False),
        ("local", False),
        ("Local", False),
        ("../UTC", False),
        ("Europe", False),
        ("UTC+1", False),
        ("", False),
    ],
)
def test_time_zones(name, is_valid):
    assert is_time_zone(name) is is_valid


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("PST", "`America/Los_Angeles`"),
        ("jst", "`Asia/Tokyo`"),
        ("CST", "`America/Chicago` or `Asia/Shanghai`"),
        ("UTC+8", "`Etc/GMT-8`"),
        ("GMT-05:00", "`Etc/GMT+5`"),
        ("Los Angeles", "`America/Los_Angeles`"),
        ("europe/berlin", "`Europe/Berlin`"),
        ("UTC+20", "a name from the IANA database, such as `Europe/Berlin`"),
        ("local", "a name from the IANA database, such as `Europe/Berlin`"),
    ],
)
def test_a_word_for_a_time_zone_is_answered_with_its_name(text, meant):
    assert suggest_time_zone(text) == f"; write {meant}"
    assert all(map(is_time_zone, list_meant_zones(text)))


@pytest.mark.parametrize(
    ("kind", "name", "is_valid"),
    [
        ("apps/v1/StatefulSet", "a.b", False),
        ("apps/v1/Deployment", "a.b", True),
        ("policy/v1/PodDisruptionBudget", "A_b", True),
        ("batch/v1/Job", "A", False),
    ],
)
def test_names(kind, name, is_valid):
    api_version, _, kind = kind.rpartition("/")
    assert find_metadata_format({"apiVersion": api_version, "kind": kind}).name.is_valid(name) is is_valid


def build_object(api_version, kind, **spec):
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, "spec": spec}


def build_job(**spec):
    template = {"spec": {"restartPolicy": "Never", "containers": CONTAINERS}}
    return build_object("batch/v1", "Job", template=template, **spec)


def build_stateful_set(**spec):
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": CONTAINERS}}
    return build_object("apps/v1", "StatefulSet", selector={"matchLabels": {"a": "b"}}, template=template, **spec)


def build_autoscaler(**spec):
    return build_object("autoscaling/v2", "HorizontalPodAutoscaler", maxReplicas=1, **spec)


@pytest.mark.parametrize(
    ("obj", "since"),
    [
        (build_job(managedBy="x"), (1, 32)),
        (build_job(successPolicy={"rules": [{"succeededCount": 1}]}), (1, 31)),
        (build_stateful_set(serviceName="A"), (1, 33)),
        (build_stateful_set(volumeClaimTemplates=[{"metadata": {"name": "a"}}]), (1, 34)),
        (build_autoscaler(scaleTargetRef={"kind": "Deployment", "name": "a"}), (1, 34)),
        (
            build_autoscaler(
                scaleTargetRef={"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"},
                behavior={"scaleUp": {"tolerance": -1}},
            ),
            (1, 35),
        ),
        ({"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "a"}, "data": []}, (1, 31)),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)
def test_older_releases_accept_more(obj, since):
    assert list_rules(obj, (1, since[1] - 1)) == []
    assert len(list_rules(obj, since)) == 1


def test_kinds_of_other_groups_are_not_validated():
    assert find_kind({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}) is None
    assert not is_workload("batch.volcano.sh", "Job")
    assert find_kind({"apiVersion": "policy.example.com/v1", "kind": "PodDisruptionBudget"}) is None


def test_percentages_may_be_long():
    update = {"maxUnavailable": "0" * 5000 + "1%", "maxSurge": "9" * 5000 + "%"}
    obj = build_object(
        "apps/v1",
        "Deployment",
        strategy={"rollingUpdate": update},
        selector={"matchLabels": {"a": "b"}},
        template={"metadata": {"labels": {"a": "b"}}, "spec": {"containers": CONTAINERS}},
    )
    assert list_rules(obj) == []


@pytest.mark.parametrize(
    ("spec", "since", "rules"),
    [
        ({"containers": [{**CONTAINERS[0], "env": [{"name": "a b"}]}]}, (1, 32), ["invalid-env-name"]),
        ({"containers": [{**CONTAINERS[0], "env": [{"name": "1a"}]}]}, (1, 32), ["invalid-env-name"]),
        ({"dnsConfig": {"searches": ["_a.b."]}, "containers": CONTAINERS}, (1, 33), ["invalid-dns-config"]),
        (
            {"containers": [{**CONTAINERS[0], "lifecycle": {"preStop": {"sleep": {"seconds": 0}}}}]},
            (1, 33),
            ["invalid-probe"],
        ),
    ],
)
def test_older_releases_refuse_more_pods(spec, since, rules):
    obj = build_object("v1", "Pod", **spec)
    assert list_rules(obj, (1, since[1] - 1)) == rules
    assert list_rules(obj, since) == []


@pytest.mark.parametrize(
    ("field", "policy", "problems"),
    [
        ("containers", "Always", {(1, 33): 1, (1, 34): 0, (1, 35): 0}),
        ("containers", "Never", {(1, 30): 1, (1, 34): 0, (1, 35): 0}),
        ("containers", "", {(1, 33): 1, (1, 34): 0, (1, 35): 1}),
        ("containers", "always", {(1, 33): 1, (1, 34): 0, (1, 35): 1}),
        ("containers", None, {(1, 33): 0, (1, 34): 0, (1, 35): 0}),
        ("initContainers", "Always", {(1, 33): 0, (1, 34): 0, (1, 35): 0}),
        ("initContainers", "OnFailure", {(1, 33): 1, (1, 34): 0, (1, 35): 0}),
        ("initContainers", "always", {(1, 33): 1, (1, 34): 0, (1, 35): 1}),
    ],
)
def test_restart_policies_of_containers_by_release(field, policy, problems):
    containers = {"containers": CONTAINERS, field: [{"name": "b", "image": "i", "restartPolicy": policy}]}
    obj = build_object("v1", "Pod", **containers)
    assert {release: len(list_rules(obj, release)) for release in problems} == problems


def test_restart_rules_are_dropped_before_their_release():
    obj = build_object("v1", "Pod", containers=[{**CONTAINERS[0], "restartPolicyRules": [{"action": "x"}]}])
    assert list_rules(obj, (1, 34)) == []
    assert list_rules(obj, (1, 35))


@pytest.mark.parametrize(
    ("field", "value", "since"),
    [
        ("resources", {"limits": {"gpu": 1}}, (1, 34)),
        ("hostnameOverride", "A_B", (1, 35)),
        ("resourceClaims", [{"name": "a"}], (1, 34)),
    ],
)
def test_pods_of_older_releases_lose_newer_fields(field, value, since):
    obj = build_object("v1", "Pod", containers=CONTAINERS, **{field: value})
    assert list_rules(obj, (1, since[1] - 1)) == []
    assert list_rules(obj, since)


def test_an_apparmor_annotation_overrides_the_profile_of_a_pod_but_not_of_a_template():
    template = {
        "metadata": {"annotations": {"container.apparmor.security.beta.kubernetes.io/a": "runtime/default"}},
        "spec": {
            "restartPolicy": "Never",
            "securityContext": {"appArmorProfile": {"type": "Unconfined"}},
            "containers": CONTAINERS,
        },
    }
    assert list_rules({"apiVersion": "v1", "kind": "Pod", **template}) == []
    assert list_rules(build_object("batch/v1", "Job", template=template)) == ["invalid-annotation"]


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("metadata: {labels: {a b: c}, finalizers: [x]}\nspec: {containers: [{name: a, image: b}]}", 2),
        ("spec: x", 1),
        ("spec: {containers: [{nmae: a, image: b}]}", 1),
        ("spec: {containres: [{name: a, image: b}]}", 1),
        ("spec: {containers: [{name: a, image: b, ports: [{containerPort: 99999999999}]}]}", 1),
        ("spec: {containers: [{name: a, image: b, resources: {limits: {cpu: x}}}]}", 1),
        ("spec: {containers: [{name: a, image: b, resources: {limits: {nvidia.com/gpu: 0.5}}}]}", 1),
        ("spec: {nodeSelector: [a], containers: [{name: a, image: b}]}", 1),
    ],
)
def test_one_fault_is_one_problem(text, rules):
    if "metadata" not in text:
        text = f"metadata: {{name: a}}\n{text}"
    else:
        text = text.replace("metadata: {", "metadata: {name: a, ")
    obj = read(f"apiVersion: v1\nkind: Pod\n{text}\n".encode(), "a.yaml", traced=True).documents[0].data
    problems = Checker(PROJECT.layers, PROJECT.kinds, Cluster())(untraced(obj))

    assert len(problems) == rules, problems


def test_a_float_in_a_crd_is_one_problem():
    resources = "{limits: {nvidia.com/gpu: 0.5}, requests: {nvidia.com/gpu: 1}}"
    container = f"{{name: pytorch, image: 'b:1', resources: {resources}}}"
    text = f"""apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: a}}
spec: {{pytorchReplicaSpecs: {{Master: {{template: {{spec: {{containers: [{container}]}}}}}}}}}}
"""
    obj = read(text.encode(), "a.yaml", traced=True).documents[0].data
    problems = Checker(PROJECT.layers, PROJECT.kinds, Cluster())(untraced(obj))

    assert [problem.rule for problem in problems] == ["wrong-type"]


def test_pods_of_the_tests_of_kubernetes_have_the_verdict_of_the_api_server():
    cases = json.loads((shared_folder("suites/k8s-pod-validation") / "cases.json").read_bytes())["cases"]
    checker = Checker(PROJECT.layers, PROJECT.kinds, Cluster())
    wrong = []
    for case in cases:
        pod = case["pod"]
        metadata, spec = {"name": "p", **pod.get("metadata", {})}, {"restartPolicy": "Never", **pod.get("spec", {})}
        problems = checker({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        # Some were refused only as a part of a custom resource.
        is_refused = case["expect"] == "refused" and "only" not in case
        if any(each.severity is Severity.ERROR and each.category != "meta" for each in problems) is not is_refused:
            wrong.append((case["id"], case.get("why", ""), problems))

    assert wrong == []

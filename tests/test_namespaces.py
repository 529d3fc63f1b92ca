"""The admission of a namespace, from files: Pod Security, limit ranges, quotas, and references."""

import itertools
import json
from itertools import islice
from pathlib import Path
from textwrap import dedent

import pytest
from growth import grows_with_the_square
from sharedfiles import shared_folder

from jobgen import cache
from jobgen.api.lint import lint
from jobgen.check.checker import Checker
from jobgen.check.cluster.quotas import find_excesses, find_largest_request, measure_use
from jobgen.check.cluster.state import build_state
from jobgen.check.pod_security.checks import LATEST, find_breaches, list_levels, parse_version
from jobgen.check.rules import all_rules
from jobgen.k8s.resources import count_pods
from jobgen.rendering import config
from jobgen.repo.layout import own_layers
from jobgen.spec.overlay import Cluster

LABEL = "pod-security.kubernetes.io/"


def pod(spec=None, **container):
    return {"containers": [{"name": "main", "image": "x", **container}], **(spec or {})}


def secure(**context):
    """A pod that `restricted` accepts, with some fields of its container's security context replaced."""
    own = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, **context}
    shared = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    return pod({"securityContext": shared}, securityContext={key: value for key, value in own.items() if value != ""})


def test_pod_security_agrees_with_every_case_of_its_suite():
    cases = json.loads((shared_folder("suites/pod-security") / "cases.json").read_text())["cases"]
    assert len(cases) > 200
    wrong = [
        (case["id"], level, version)
        for case in cases
        for level, version, expected in case["expect"]
        if bool(find_breaches(case["pod"]["metadata"], case["pod"]["spec"], level, parse_version(version)))
        != (expected == "fail")
    ]
    assert wrong == []


PODS = [
    (pod(), "baseline", LATEST, []),
    (secure(), "restricted", LATEST, []),
    (pod({"hostNetwork": True}), "privileged", LATEST, []),
    (pod({"hostNetwork": True}), "baseline", 0, ["the pod sets `hostNetwork: true`"]),
    (pod(ports=[{"hostPort": 80}]), "baseline", 0, ["container `main` uses the `hostPort` `80`"]),
    (pod({"volumes": [{"name": "v"}]}), "baseline", LATEST, []),
    (
        pod({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}),
        "baseline",
        LATEST,
        ["volume `v` is a `hostPath`"],
    ),
    (secure(privileged=True), "restricted", LATEST, ["container `main` sets `privileged: true`"]),
    (secure(capabilities=""), "restricted", 21, []),
    (secure(capabilities=""), "restricted", 22, ["container `main` does not drop all capabilities"]),
    (
        secure(capabilities={"drop": ["ALL"], "add": ["CHOWN"]}),
        "restricted",
        LATEST,
        ["container `main` adds the capability `CHOWN`"],
    ),
    (secure(runAsUser=0), "restricted", 22, []),
    (secure(runAsUser=0), "restricted", 23, ["container `main` sets `runAsUser: 0`, which is root"]),
    (
        {**secure(runAsUser=0), "hostUsers": False},
        "restricted",
        34,
        ["container `main` sets `runAsUser: 0`, which is root"],
    ),
    ({**secure(runAsUser=0), "hostUsers": False}, "restricted", 35, []),
    (pod(livenessProbe={"tcpSocket": {"host": "h"}}), "baseline", 33, []),
    (
        pod(livenessProbe={"tcpSocket": {"host": "h"}}),
        "baseline",
        34,
        ["`livenessProbe` of container `main` sets the host `h`"],
    ),
]


@pytest.mark.parametrize(("spec", "level", "minor", "expected"), PODS)
def test_breaches_of_a_level(spec, level, minor, expected):
    assert [breach.fault for breach in find_breaches({}, spec, level, minor)] == expected


def test_breaches_survive_any_type():
    for junk in (None, 1, "x", [], {}, [None], {"a": None}, [[{}]]):
        fields = "containers volumes securityContext hostNetwork os initContainers hostUsers".split()
        deep = {"securityContext": junk, "ports": junk, "livenessProbe": junk, "lifecycle": {"preStop": junk}}
        contexts = [{"securityContext": dict.fromkeys("capabilities seLinuxOptions seccompProfile".split(), junk)}]
        for spec in (junk, dict.fromkeys(fields, junk), {"containers": [deep, junk]}, {"containers": contexts}):
            assert find_breaches(junk, spec, "restricted", 10) is not None
            assert find_breaches({"annotations": junk}, spec, "restricted", LATEST) is not None


LEVELS = [
    ({}, []),
    ({"enforce": "privileged"}, []),
    ({"enforce": "baseline"}, [("enforce", "baseline", "latest")]),
    ({"enforce": "baseline", "enforce-version": "v1.30"}, [("enforce", "baseline", "v1.30")]),
    ({"enforce": "baseline", "enforce-version": "1.30"}, [("enforce", "baseline", "latest")]),
    # The server refuses such a label; one that is there in spite of it counts as the strictest.
    ({"enforce": "Baseline"}, [("enforce", "restricted", "latest")]),
    ({"warn": "Baseline"}, []),
    ({"audit": "restricted", "warn": "baseline"}, [("warn", "baseline", "latest"), ("audit", "restricted", "latest")]),
]


@pytest.mark.parametrize(("labels", "expected"), LEVELS)
def test_levels_of_a_namespace(labels, expected):
    found = list_levels({LABEL + name: value for name, value in labels.items()})
    assert [(level.mode, level.level, level.version) for level in found] == expected


def repository(folder, **files):
    """Write files, with `__` for slashes and without their suffix, and lint them."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    return folder


def found(folder, *rules, paths=()):
    findings = lint(folder, paths).findings
    return [
        (f"{each.location.file}:{each.location.line}", each.severity.value, each.rule, each.message)
        for each in findings
        if not rules or each.rule in rules
    ]


OVERLAY = """
    apiVersion: jobgen.dev/v1
    kind: Overlay
    spec:
      cluster: {state: cluster/prod, complete: [Secret]}
    """
POD = """
    apiVersion: v1
    kind: Pod
    metadata: {name: probe, namespace: ml}
    spec:
      hostPID: true
      imagePullSecrets: [{name: nothing}]
      containers: [{name: main, image: "registry.example.com/probe:1"}]
    """
NAMESPACE = """
    apiVersion: v1
    kind: Namespace
    metadata: {name: ml, labels: {pod-security.kubernetes.io/enforce: baseline}}
    """
NEW_RULES = ("pod-security-violation", "exceeds-limit-range", "exceeds-quota", "unknown-reference")


def test_exported_state_applies_and_is_not_linted_itself(tmp_path):
    broken = "apiVersion: v1\nkind: Pod\nmetadata: {name: Bad_Name, labels: [1]}\n"
    repository(tmp_path, jobs__pod=POD, overlays__prod__o=OVERLAY, cluster__prod__a=NAMESPACE, cluster__prod__b=broken)
    errors = [each for each in found(tmp_path) if each[1] == "error"]
    message = (
        "the pod sets `hostPID: true`, which the Pod Security level `baseline` of namespace `ml` forbids; remove it"
    )
    missing = "there is no Secret `nothing` in namespace `ml`; correct the name, or add the object"
    assert errors == [
        ("jobs/pod.yaml:6", "error", "pod-security-violation", message),
        ("jobs/pod.yaml:7", "error", "unknown-reference", missing),
    ]


def test_a_broken_file_of_the_state_is_an_error(tmp_path):
    repository(tmp_path, jobs__pod=POD, overlays__prod__o=OVERLAY, cluster__prod__a="a: [\n")
    assert ("error", "yaml-syntax") in [each[1:3] for each in found(tmp_path) if each[0].startswith("cluster/prod/a")]


def test_a_state_folder_that_is_missing_or_outside_is_an_error(tmp_path):
    root = tmp_path / "repository"
    repository(root, jobs__pod=POD, overlays__prod__o=OVERLAY)
    message = "there is no folder `cluster/prod` in the repository; run `jobgen capture`, which writes it"
    assert ("overlays/prod/o.yaml:5", "error", "unreadable-file", message) in found(root)

    repository(tmp_path / "elsewhere", prod__a=NAMESPACE)
    (root / "cluster").symlink_to(tmp_path / "elsewhere")
    rules = [each[2] for each in found(root)]
    assert "link-out-of-repository" in rules
    assert "pod-security-violation" not in rules


@pytest.mark.parametrize("state", ["/etc", "../x", "a/../../x", "jobs/x", "overlays", ".", "", "x\\y"])
def test_a_state_folder_is_below_the_root(state, tmp_path):
    text = OVERLAY.replace("cluster/prod", json.dumps(state))
    repository(tmp_path, jobs__pod=POD, overlays__prod__o=text)
    assert [each[0] for each in found(tmp_path, "invalid-value")] == ["overlays/prod/o.yaml:5"]


def test_settings_declare_the_cluster_below_overlays(tmp_path):
    settings = "cluster: {state: cluster/all, complete: [PVC, Secret], kubernetes: '1.33'}\n"
    other = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {cluster: {complete: [ServiceAccount]}}\n"
    repository(tmp_path, jobgen=settings, jobs__pod=POD, overlays__a__o=other, cluster__all__a=NAMESPACE)
    repository(tmp_path, overlays__b__o="apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {}\n")
    findings = [each for each in lint(tmp_path).findings if each.rule in NEW_RULES]
    assert [(each.env, each.rule) for each in findings] == [
        ("a", "pod-security-violation"),
        ("b", "pod-security-violation"),
        ("b", "unknown-reference"),
    ]
    (tmp_path / "jobgen.yaml").write_text("cluster: {complete: [Secrt]}\n")
    errors = [each for each in lint(tmp_path).findings if each.severity == "error"]
    assert [(each.location.file, each.rule) for each in errors] == [("jobgen.yaml", "invalid-value")]


@pytest.fixture
def enabled_cache(tmp_path):
    cache.enable(tmp_path / "cache", "test")
    yield
    cache.disable()


# The name of the folder may also come from an alias, which is no text of a key `state`.
@pytest.mark.parametrize("overlay", [OVERLAY, OVERLAY.replace("state: cluster/prod", "gitops: &a argocd, state: *a")])
def test_a_changed_state_is_noticed_in_spite_of_the_cache(overlay, tmp_path, enabled_cache):
    root, folder = tmp_path / "root", "cluster__prod" if overlay == OVERLAY else "argocd"
    repository(root, jobs__pod=POD, overlays__prod__o=overlay, **{f"{folder}__a": NAMESPACE})
    for _ in range(2):
        assert "pod-security-violation" in [each[2] for each in found(root)]
    repository(root, **{f"{folder}__a": NAMESPACE.replace("baseline", "privileged")})
    assert "pod-security-violation" not in [each[2] for each in found(root)]


def test_files_without_a_repository_are_compared_one_by_one(tmp_path):
    repository(tmp_path, pod=POD, namespace=NAMESPACE, both=f"{dedent(NAMESPACE)}---{dedent(POD)}")
    assert [each[0] for each in found(tmp_path, *NEW_RULES, paths=(".",))] == ["both.yaml:10"]
    # The exported state applies to all of them.
    settings = "cluster: {state: cluster/prod}\n"
    repository(tmp_path, jobgen=settings, cluster__prod__a=NAMESPACE)
    assert [each[0] for each in found(tmp_path, *NEW_RULES, paths=("pod.yaml",))] == ["pod.yaml:6"]


@pytest.mark.parametrize(
    ("text", "is_followed"), [("a: [\n", True), ("name: nothing\na: [\n", False), ("- \udcff\n", False)]
)
def test_references_are_not_followed_to_what_a_faulty_file_may_have(text, is_followed, tmp_path):
    repository(tmp_path, jobs__pod=POD, overlays__prod__o=OVERLAY, cluster__prod__a=NAMESPACE)
    (tmp_path / "jobs/secret.yaml").write_bytes(text.encode("utf-8", "surrogateescape"))
    expected = ["pod-security-violation", *["unknown-reference"] * is_followed]
    assert [each[2] for each in found(tmp_path, *NEW_RULES)] == expected


KINDS = config.load_own(Path(__file__).parent.parent).kinds


def view(obj, cluster=None, kinds=()):
    return Checker(own_layers(Path()), kinds, cluster or Cluster()).manifest(
        {"metadata": {"name": "x", "namespace": "ml"}, **obj}
    )


TEMPLATE = {"spec": {"containers": []}}
COUNTS = [
    ("v1", "Pod", {}, [1]),
    ("v1", "PodTemplate", {"template": TEMPLATE}, [0]),
    ("apps/v1", "Deployment", {"spec": {"template": TEMPLATE}}, [1]),
    ("apps/v1", "StatefulSet", {"spec": {"template": TEMPLATE, "replicas": 0}}, [0]),
    ("apps/v1", "DaemonSet", {"spec": {"template": TEMPLATE}}, [1]),
    ("batch/v1", "Job", {"spec": {"template": TEMPLATE, "parallelism": 5, "completions": 3}}, [3]),
    ("batch/v1", "Job", {"spec": {"template": TEMPLATE, "parallelism": 5, "suspend": True}}, [0]),
    ("batch/v1", "CronJob", {"spec": {"jobTemplate": {"spec": {"template": TEMPLATE, "parallelism": 4}}}}, [4]),
    (
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
        {
            "spec": {
                "replicatedJobs": [
                    {"name": "a", "replicas": 2, "template": {"spec": {"parallelism": 3, "template": TEMPLATE}}},
                    {"name": "b", "template": {"spec": {"template": TEMPLATE}}},
                ]
            }
        },
        [6, 1],
    ),
    (
        "batch.volcano.sh/v1alpha1",
        "Job",
        {"spec": {"tasks": [{"replicas": 3, "template": TEMPLATE}, {"name": "idle", "template": TEMPLATE}]}},
        [3, 0],
    ),
    (
        "batch.tensorstack.dev/v1beta1",
        "GenericJob",
        {
            "spec": {
                "replicaSpecs": [
                    {"type": "a", "template": TEMPLATE},
                    {"type": "b", "replicas": 3, "template": TEMPLATE},
                ]
            }
        },
        [1, 3],
    ),
    ("batch.tensorstack.dev/v1beta1", "DeepSpeedJob", {"spec": {"worker": {"replicas": 2, "template": TEMPLATE}}}, [2]),
    (
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        {"spec": {"replicas": 2, "leaderWorkerTemplate": {"size": 4, "workerTemplate": TEMPLATE}}},
        [8],
    ),
    (
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        {"spec": {"leaderWorkerTemplate": {"size": 4, "leaderTemplate": TEMPLATE, "workerTemplate": TEMPLATE}}},
        [1, 3],
    ),
    (
        "ray.io/v1",
        "RayJob",
        {
            "spec": {
                "rayClusterSpec": {
                    "headGroupSpec": {"template": TEMPLATE},
                    "workerGroupSpecs": [{"replicas": 2, "numOfHosts": 2, "template": TEMPLATE}],
                }
            }
        },
        [1, 4],
    ),
    ("example.com/v1", "Unknown", {"spec": {"template": TEMPLATE}}, []),
]


@pytest.mark.parametrize(("api_version", "kind", "fields", "expected"), COUNTS)
def test_counts_of_pods(api_version, kind, fields, expected):
    manifest = view({"apiVersion": api_version, "kind": kind, **fields})
    assert [count for _, count in count_pods(manifest)] == expected
    # The same templates as everywhere else.
    assert len(manifest.pods) == len(expected)
    described = view(manifest.object, kinds=KINDS)
    assert [count for _, count in count_pods(described)] == expected


def limits(*items):
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "lr", "namespace": "ml"},
        "spec": {"limits": list(items)},
    }


def quota(hard, **spec):
    spec = {"hard": hard, **spec}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "ml"}, "spec": spec}


def containers(*resources, **spec):
    names = [{"name": f"c{number}", "image": "x", "resources": each} for number, each in enumerate(resources)]
    return {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": names, **spec}}


def rule_messages(rule, obj, objects, **cluster):
    made = Cluster(**cluster)
    state = build_state(made, objects, [], [])
    check = next(each for each in all_rules() if each.name == rule).check
    return [str(violation.sentence).partition(";")[0] for violation in check(view(obj, made), state)]


CONTAINER, POD_LIMITS = {"type": "Container"}, {"type": "Pod"}
RATIO = "the limit for `cpu` of container `c0` is too large for its request: LimitRange `lr` allows a limit of at most"
RATIO += " `2500m` times the request"
RANGES = [
    (containers({}), [CONTAINER], []),
    (containers({}), [{**CONTAINER, "max": {"cpu": 1}}], []),
    (
        containers({"limits": {"cpu": 2}}),
        [{**CONTAINER, "max": {"cpu": 1}}],
        ["`limits.cpu` of container `c0` is `2`, but LimitRange `lr` allows at most `1`"],
    ),
    (
        containers({"requests": {"cpu": "1500m"}}),
        [{**CONTAINER, "max": {"cpu": 1}}],
        ["`requests.cpu` of container `c0` is `1500m`, but LimitRange `lr` allows at most `1`"],
    ),
    (
        containers({"requests": {"memory": "1Gi"}, "limits": {"memory": "4Gi"}}),
        [{**CONTAINER, "min": {"memory": "2Gi"}}],
        ["`requests.memory` of container `c0` is `1Gi`, but LimitRange `lr` requires at least `2Gi`"],
    ),
    # The minimum is the default request.
    (containers({}), [{**CONTAINER, "min": {"memory": "2Gi"}}], []),
    (
        containers({}),
        [{**POD_LIMITS, "min": {"memory": "2Gi"}}],
        ["the pod has no request for `memory`, but LimitRange `lr` requires at least `2Gi`"],
    ),
    (
        containers({}),
        [{**POD_LIMITS, "max": {"memory": "2Gi"}}],
        ["the pod has no limit for `memory`, but LimitRange `lr` allows at most `2Gi`"],
    ),
    # Defaults of containers come before the sum of the pod.
    (
        containers({}, {}),
        [{**CONTAINER, "default": {"cpu": 1}}, {**POD_LIMITS, "max": {"cpu": "1500m"}}],
        ["`limits.cpu` of the pod is `2` by default, but LimitRange `lr` allows at most `1500m`"],
    ),
    (
        containers({"limits": {"cpu": 1}}, initContainers=[{"name": "i", "resources": {"limits": {"cpu": 3}}}]),
        [{**POD_LIMITS, "max": {"cpu": 2}}],
        ["`limits.cpu` of the pod is `3`, but LimitRange `lr` allows at most `2`"],
    ),
    (
        containers(
            {"limits": {"cpu": 1}},
            initContainers=[{"name": "i", "restartPolicy": "Always", "resources": {"limits": {"cpu": "1500m"}}}],
        ),
        [{**POD_LIMITS, "max": {"cpu": 2}}],
        ["`limits.cpu` of the pod is `2500m`, but LimitRange `lr` allows at most `2`"],
    ),
    (
        containers({"requests": {"cpu": 1}, "limits": {"cpu": 3}}),
        [{**CONTAINER, "maxLimitRequestRatio": {"cpu": "2500m"}}],
        [RATIO],
    ),
    (
        containers({"requests": {"cpu": 1}, "limits": {"cpu": 2}}),
        [{**CONTAINER, "maxLimitRequestRatio": {"cpu": 2}}],
        [],
    ),
    (
        containers({"requests": {"cpu": 2}}),
        [{**CONTAINER, "default": {"cpu": 1}}],
        ["container `c0` requests `2` of `cpu` without a limit, but LimitRange `lr` gives it the lower limit `1`"],
    ),
    (containers({"requests": {"cpu": "x"}, "limits": 7}, {"limits": {"cpu": None}}), [{"type": 1, "max": []}, 5], []),
    (
        {"kind": "PersistentVolumeClaim", "spec": {"resources": {"requests": {"storage": "1Gi"}}}},
        [{"type": "PersistentVolumeClaim", "min": {"storage": "5Gi"}, "max": {"storage": "10Gi"}}],
        ["`requests.storage` of the claim is `1Gi`, but LimitRange `lr` requires at least `5Gi`"],
    ),
    (
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "spec": {"volumeClaimTemplates": [{"spec": {"resources": {"requests": {"storage": "20Gi"}}}}]},
        },
        [{"type": "PersistentVolumeClaim", "max": {"storage": "10Gi"}}],
        ["`requests.storage` of the claim is `20Gi`, but LimitRange `lr` allows at most `10Gi`"],
    ),
]


@pytest.mark.parametrize(("obj", "items", "expected"), RANGES)
def test_limit_ranges(obj, items, expected):
    assert rule_messages("exceeds-limit-range", obj, [limits(*items)]) == expected


def test_the_resources_of_the_pod_itself_count_from_1_34():
    obj = containers({"limits": {"cpu": 1}}, resources={"limits": {"cpu": 8}})
    ranges = [limits({**POD_LIMITS, "max": {"cpu": 4}})]
    found = rule_messages("exceeds-limit-range", obj, ranges)
    assert found == ["`limits.cpu` of the pod is `8`, but LimitRange `lr` allows at most `4`"]
    assert rule_messages("exceeds-limit-range", obj, ranges, kubernetes="1.33") == []


def uses(obj, *objects, **cluster):
    state = build_state(Cluster(**cluster), objects, [], [])
    return {use.resource: use.milli / 1000 for use in measure_use(view(obj), state)}


GPU = "nvidia.com/gpu"
TERMINATING = {"scopes": ["Terminating"]}
USES = [
    (containers({"limits": {GPU: 4}}), [quota({f"requests.{GPU}": 1, GPU: 1})], {f"requests.{GPU}": 4}),
    (containers({"requests": {"cpu": 1}}, {"requests": {"cpu": 2}}), [quota({"cpu": 1, "limits.cpu": 1})], {"cpu": 3}),
    (containers({}), [quota({"pods": 1, "count/pods": 1, "count/jobs.batch": 1})], {"pods": 1, "count/pods": 1}),
    (containers({}), [quota({"requests.cpu": 1}), limits({**CONTAINER, "default": {"cpu": 2}})], {"requests.cpu": 2}),
    (containers({}), [quota({"pods": 1}, **TERMINATING)], {}),
    (containers({}, activeDeadlineSeconds=5), [quota({"pods": 1}, **TERMINATING)], {"pods": 1}),
    (containers({}), [quota({"pods": 1}, scopes=["BestEffort"])], {"pods": 1}),
    (containers({"requests": {"cpu": 1}}), [quota({"pods": 1}, scopes=["BestEffort"])], {}),
    (containers({}), [quota({"pods": 1}, scopes=["Unknown"])], {}),
    (
        {"apiVersion": "batch/v1", "kind": "Job", "spec": {"parallelism": 3, "template": TEMPLATE}},
        [quota({"count/jobs.batch": 1, "pods": 1})],
        {"count/jobs.batch": 1, "pods": 3},
    ),
    (
        {"apiVersion": "v1", "kind": "ConfigMap"},
        [quota({"configmaps": 1, "count/configmaps": 1, "secrets": 1})],
        {"configmaps": 1, "count/configmaps": 1},
    ),
    ({"apiVersion": "v1", "kind": "ConfigMap"}, [quota({"configmaps": 1}, scopes=["NotBestEffort"])], {}),
    (
        {"apiVersion": "v1", "kind": "Service", "spec": {"type": "LoadBalancer", "ports": [{}, {}]}},
        [quota({"services": 1, "services.nodeports": 1, "services.loadbalancers": 1})],
        {"services": 1, "services.nodeports": 2, "services.loadbalancers": 1},
    ),
    (
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "1k"}}},
        },
        [
            quota(
                {
                    "persistentvolumeclaims": 1,
                    "requests.storage": 1,
                    "fast.storageclass.storage.k8s.io/requests.storage": 1,
                    "slow.storageclass.storage.k8s.io/requests.storage": 1,
                }
            )
        ],
        {
            "persistentvolumeclaims": 1,
            "requests.storage": 1000,
            "fast.storageclass.storage.k8s.io/requests.storage": 1000,
        },
    ),
    (
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "spec": {
                "replicas": 3,
                "template": TEMPLATE,
                "volumeClaimTemplates": [{"spec": {"resources": {"requests": {"storage": "2"}}}}],
            },
        },
        [quota({"requests.storage": 1, "count/persistentvolumeclaims": 1, "count/statefulsets.apps": 1})],
        {"requests.storage": 6, "count/persistentvolumeclaims": 3, "count/statefulsets.apps": 1},
    ),
    (containers({"limits": []}), [quota([1]), {"kind": "ResourceQuota", "metadata": {"namespace": "ml"}}], {}),
]


@pytest.mark.parametrize(("obj", "objects", "expected"), USES)
def test_what_an_object_takes_from_quotas(obj, objects, expected):
    assert uses(obj, *objects) == expected


PRIORITIES = [
    ("Exists", [], "", False),
    ("Exists", [], "high", True),
    ("DoesNotExist", [], "", True),
    ("In", ["high"], "high", True),
    ("In", ["high"], "", False),
    ("NotIn", ["high"], "", True),
    ("NotIn", ["high"], "high", False),
]


@pytest.mark.parametrize(("operator", "values", "name", "expected"), PRIORITIES)
def test_quotas_of_priority_classes(operator, values, name, expected):
    selector = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": operator, "values": values}]}
    obj = containers({}, priorityClassName=name)
    assert bool(uses(obj, quota({"pods": 1}, scopeSelector=selector))) == expected
    # Without a name, pods get the class that is the default.
    default = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}}
    default["globalDefault"] = True
    if not name:
        named = containers({}, priorityClassName="high")
        scoped = quota({"pods": 1}, scopeSelector=selector)
        assert uses(obj, scoped, default) == uses(named, scoped)


def test_pods_lack_what_a_quota_requires():
    messages = rule_messages(
        "exceeds-quota", containers({"limits": {"cpu": 1}}), [quota({"cpu": 9, "limits.memory": 9})]
    )
    text = "container `c0` sets no `limits.memory`, but quota `q` of namespace `ml` limits it, so the pod is refused"
    assert messages == [text]
    own = containers({}, resources={"requests": {"cpu": 1}})
    assert rule_messages("exceeds-quota", own, [quota({"requests.memory": 9})]) == []
    assert rule_messages("exceeds-quota", own, [quota({"requests.memory": 9})], kubernetes="1.30") != []
    assert rule_messages("exceeds-quota", containers({}), [quota({f"requests.{GPU}": 9, "requests.storage": 1})]) == []


def test_one_finding_for_objects_that_exceed_a_quota_together(tmp_path):
    hard = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: ml}\nspec: {hard: {pods: 4}}\n"
    job = (
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: NAME, namespace: ml}\nspec: {parallelism: 2, template: {}}\n"
    )
    jobs = {f"jobs__{name}": job.replace("NAME", name) for name in "abcd"}
    repository(tmp_path, jobs__quota=hard, **jobs)
    message = (
        "4 objects take `8` together (`a` `2`, `b` `2`, `c` `2` and 1 more) of `pods`, but quota `q` of namespace `ml`"
        " allows `4`; request less, or raise the quota"
    )
    assert found(tmp_path, "exceeds-quota") == [("jobs/a.yaml:3", "error", "exceeds-quota", message)]
    repository(tmp_path, jobs__d=job.replace("NAME", "d").replace("2", "7"))
    assert [each[0] for each in found(tmp_path, "exceeds-quota")] == ["jobs/d.yaml:3"]


VERSIONS = {
    "Certificate": "cert-manager.io/v1",
    "ClusterTrainingRuntime": "trainer.kubeflow.org/v1alpha1",
    "DeviceClass": "resource.k8s.io/v1",
    "ExternalSecret": "external-secrets.io/v1",
    "PriorityClass": "scheduling.k8s.io/v1",
    "Profile": "kubeflow.org/v1",
    "ResourceClaimTemplate": "resource.k8s.io/v1",
    "RuntimeClass": "node.k8s.io/v1",
    "StatefulSet": "apps/v1",
}


def named(kind, name="x", **fields):
    metadata = {"name": name, "namespace": "ml"}
    return {"apiVersion": VERSIONS.get(kind, "v1"), "kind": kind, "metadata": metadata, **fields}


def pods(**spec):
    return {"apiVersion": "v1", "kind": "Pod", "spec": spec}


REFERENCES = [
    (pods(serviceAccountName="default"), "ServiceAccount", []),
    (pods(serviceAccountName="y"), "ServiceAccount", ["there is no ServiceAccount `y` in namespace `ml`"]),
    (pods(serviceAccountName="x"), "ServiceAccount", []),
    (pods(serviceAccountName="y"), "Secret", []),
    (pods(priorityClassName="system-node-critical"), "PriorityClass", []),
    (pods(priorityClassName="y"), "PriorityClass", ["there is no PriorityClass `y`"]),
    (pods(runtimeClassName="y"), "RuntimeClass", ["there is no RuntimeClass `y`"]),
    (
        pods(resourceClaims=[{"resourceClaimName": "y"}]),
        "ResourceClaim",
        ["there is no ResourceClaim `y` in namespace `ml`"],
    ),
    (pods(volumes=[{"secret": {"secretName": "x", "items": [{"key": "k"}]}}]), "Secret", []),
    (
        pods(volumes=[{"secret": {"secretName": "x", "items": [{"key": "j"}, {"key": "k"}]}}]),
        "Secret",
        ["Secret `x` has no key `j`"],
    ),
    (pods(volumes=[{"secret": {"secretName": "y", "optional": True}}]), "Secret", []),
    (
        pods(
            volumes=[{"projected": {"sources": [{"configMap": {"name": "y", "items": [{"key": "a"}, {"key": "b"}]}}]}}]
        ),
        "ConfigMap",
        ["there is no ConfigMap `y` in namespace `ml`"],
    ),
    (pods(volumes=[{"persistentVolumeClaim": {"claimName": "data-set-1"}}]), "PersistentVolumeClaim", []),
    (pods(volumes=[{"secret": {"secretName": "tls"}}, {"secret": {"secretName": "external"}}]), "Secret", []),
    (
        pods(containers=[{"envFrom": [{"secretRef": {"name": "y"}}]}]),
        "Secret",
        ["there is no Secret `y` in namespace `ml`"],
    ),
    (pods(containers=[{"envFrom": [{"secretRef": {"name": "y", "optional": True}}]}]), "Secret", []),
    (
        {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "spec": {"runtimeRef": {"name": "y"}}},
        "ClusterTrainingRuntime",
        ["there is no ClusterTrainingRuntime `y`"],
    ),
    (
        {"kind": "PersistentVolumeClaim", "spec": {"storageClassName": "y"}},
        "StorageClass",
        ["there is no StorageClass `y`"],
    ),
    ({"kind": "PersistentVolumeClaim", "spec": {"storageClassName": ""}}, "StorageClass", []),
    ({"kind": "LocalQueue", "spec": {"clusterQueue": "y"}}, "ClusterQueue", ["there is no ClusterQueue `y`"]),
    (
        {"kind": "RoleBinding", "roleRef": {"kind": "ClusterRole", "name": "system:basic-user"}, "subjects": []},
        "ClusterRole",
        [],
    ),
    (
        {"kind": "RoleBinding", "subjects": [{"kind": "ServiceAccount", "name": "x", "namespace": "other"}]},
        "ServiceAccount",
        ["there is no ServiceAccount `x` in namespace `other`"],
    ),
    (
        {"kind": "Ingress", "spec": {"tls": [{"secretName": "y"}]}},
        "Secret",
        ["there is no Secret `y` in namespace `ml`"],
    ),
    ({"kind": "ResourceFlavor", "spec": {"topologyName": "y"}}, "Topology", ["there is no Topology `y`"]),
    (
        {"kind": "ClusterQueue", "spec": {"admissionChecks": ["y"]}},
        "AdmissionCheck",
        ["there is no AdmissionCheck `y`"],
    ),
    (
        {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "spec": {"queue": "y"}},
        "Queue",
        ["there is no Queue `y`"],
    ),
    ({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "spec": {"queue": "default"}}, "Queue", []),
    ({**pods(), "metadata": {"name": "x", "namespace": "user"}}, "Namespace", []),
    ({"kind": "RoleBinding", "subjects": [{"kind": "ServiceAccount", "name": "x"}]}, "ServiceAccount", []),
    (
        {
            "kind": "RoleBinding",
            "subjects": [{"kind": "ServiceAccount", "name": "default-editor", "namespace": "user"}],
        },
        "ServiceAccount",
        [],
    ),
    (pods(), "Namespace", ["there is no Namespace `ml`"]),
    (pods(volumes=[1, {"secret": 1}], containers=[{"env": 1}, 1], imagePullSecrets={}), "Secret", []),
]
OBJECTS = [
    *(named(kind) for kind in ("ServiceAccount", "PriorityClass", "RuntimeClass")),
    named("Secret", data={"k": ""}),
    named("StatefulSet", "set", spec={"replicas": 2, "volumeClaimTemplates": [{"metadata": {"name": "data"}}]}),
    named("Certificate", spec={"secretName": "tls"}),
    named("ExternalSecret", "external"),
    named("Profile", "user"),
]


@pytest.mark.parametrize(("obj", "kind", "expected"), REFERENCES)
def test_references(obj, kind, expected):
    assert rule_messages("unknown-reference", obj, OBJECTS, complete=(kind,)) == expected
    # The keys of a Secret of the repository are known in any case.
    keys = [message for message in expected if message.startswith("Secret `x` has no key")]
    assert rule_messages("unknown-reference", obj, OBJECTS) == keys


def test_cluster_rules_survive_any_type():
    junk_values = (None, 1, "x", [], {}, [None], {"a": None}, [{"spec": 1}])
    kinds = "Pod Job JobSet RayJob StatefulSet PersistentVolumeClaim Service RoleBinding TrainJob ClusterQueue".split()
    rules = [rule for rule in all_rules() if rule.scope == "cluster"]
    for junk in junk_values:
        objects = [{"kind": kind, "metadata": junk, "spec": junk, "data": junk} for kind in (*kinds, "LimitRange")]
        objects += [
            named(kind, spec=spec) for kind in ("LimitRange", "ResourceQuota") for spec in (junk, {"hard": junk})
        ]
        state = build_state(Cluster(complete=("Secret", "PersistentVolumeClaim")), objects, objects, [])
        for kind in kinds:
            for spec in (junk, {"template": {"spec": junk}}, {"containers": junk, "volumes": junk, "tasks": junk}):
                manifest = view({"apiVersion": "v1", "kind": kind, "spec": spec})
                assert [list(rule.check(manifest, state)) for rule in rules]
                measure_use(manifest, state)


def test_jobs_in_queues_exceed_a_quota_only_one_by_one_for_certain(tmp_path):
    hard = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: ml}\nspec: {hard: {pods: 4}}\n"
    job = """
        apiVersion: batch/v1
        kind: Job
        metadata: {name: NAME, namespace: ml, labels: {kueue.x-k8s.io/queue-name: team}}
        spec: {parallelism: 3, template: {}}
        """
    repository(tmp_path, jobs__quota=hard, jobs__a=job.replace("NAME", "a"), jobs__b=job.replace("NAME", "b"))
    assert [each[:2] for each in found(tmp_path, "exceeds-quota")] == [("jobs/a.yaml:4", "warning")]
    repository(tmp_path, jobs__a=job.replace("NAME", "a").replace("3", "5"))
    assert [each[:2] for each in found(tmp_path, "exceeds-quota")] == [("jobs/a.yaml:4", "error")]


def test_namespaces_in_policies_count_too(tmp_path):
    repository(tmp_path, jobs__pod=POD, policies__namespaces=NAMESPACE)
    assert [each[0] for each in found(tmp_path, *NEW_RULES)] == ["jobs/pod.yaml:6"]


CLASS = named("DeviceClass", "gpu", spec={"extendedResourceName": GPU})
HARD = {f"requests.{GPU}": 1, "gpu.deviceclass.resource.k8s.io/devices": 1, "count/resourceclaims.resource.k8s.io": 1}
DEVICES = [
    ({"exactly": {"deviceClassName": "gpu", "count": 8}}, 8),
    ({"exactly": {"deviceClassName": "gpu"}}, 1),
    ({"exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}, 32),
    ({"deviceClassName": "gpu", "count": 3}, 3),
    ({"firstAvailable": [{"deviceClassName": "gpu", "count": 2}, {"deviceClassName": "gpu", "count": 4}]}, 4),
]


@pytest.mark.parametrize(("request_", "count"), DEVICES)
def test_claims_for_devices_count_in_quotas(request_, count):
    devices = {"devices": {"requests": [{"name": "r", **request_}]}}
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "spec": devices}
    assert uses(claim, quota(HARD), CLASS) == dict(zip(HARD, (count, count, 1), strict=True))
    # Only from 1.36 on, a claim counts as the extended resource of its class.
    assert f"requests.{GPU}" not in uses(claim, quota(HARD), CLASS, kubernetes="1.35")
    template = named("ResourceClaimTemplate", "t", spec={"spec": devices})
    spec = {"replicas": 2, "template": {"spec": {"resourceClaims": [{"resourceClaimTemplateName": "t"}]}}}
    pods = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec}
    assert uses(pods, quota(HARD), CLASS, template) == dict(zip(HARD, (2 * count, 2 * count, 2), strict=True))


def test_pod_security_applies_to_the_runtime_of_a_train_job():
    template = {"spec": {"hostNetwork": True, "hostPID": True, "containers": [{"name": "node"}]}}
    jobs = [{"name": "node", "template": {"spec": {"template": template}}}]
    runtime = named("ClusterTrainingRuntime", "torch", spec={"template": {"spec": {"replicatedJobs": jobs}}})
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "ml", "labels": {f"{LABEL}enforce": "baseline"}},
    }
    job = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "spec": {"runtimeRef": {"name": "torch"}}}
    text = (
        "the pods of runtime `torch` are refused (and 1 more): the pod sets `hostNetwork: true`, which the Pod Security"
    )
    text += " level `baseline` of namespace `ml` forbids"
    assert rule_messages("pod-security-violation", job, [runtime, namespace]) == [text]
    assert rule_messages("pod-security-violation", job, [namespace]) == []


def test_exported_templates_of_claims_count_in_budgets(tmp_path):
    overlay = """
        apiVersion: jobgen.dev/v1
        kind: Overlay
        spec: {cluster: {state: cluster/prod, budgets: {namespaces: {ml: {gpus: 7}}}}}
        """
    template = """
        apiVersion: resource.k8s.io/v1
        kind: ResourceClaimTemplate
        metadata: {name: eight, namespace: ml}
        spec: {spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: gpu.nvidia.com, count: 8}}]}}}
        """
    job = """
        apiVersion: jobgen.dev/v1
        kind: TrainingJob
        metadata: {name: bert, namespace: ml}
        spec:
          framework: pytorch
          image: registry.example.com/bert:1.4.2
          podTemplate: {spec: {resourceClaims: [{name: gpus, resourceClaimTemplateName: eight}]}}
        """
    repository(tmp_path, jobs__a=job, overlays__prod__o=overlay, cluster__prod__a="a: 1\n")
    assert found(tmp_path, "gpu-budget-exceeded") == []
    repository(tmp_path, cluster__prod__a=template)
    assert [each[0] for each in found(tmp_path, "gpu-budget-exceeded")] == ["jobs/a.yaml:4"]


def test_objects_inside_an_app_wrapper_are_admitted_like_others(tmp_path):
    wrapper = """
        apiVersion: workload.codeflare.dev/v1beta2
        kind: AppWrapper
        metadata: {name: wrapper, namespace: ml}
        spec:
          components:
            - template:
                apiVersion: batch/v1
                kind: Job
                metadata: {name: job}
                spec:
                  parallelism: 3
                  template:
                    spec:
                      restartPolicy: Never
                      hostPID: true
                      containers:
                        - name: main
                          image: registry.example.com/probe:1
                          envFrom: [{secretRef: {name: token}}, {secretRef: {name: tken}}]
            - template:
                apiVersion: v1
                kind: Secret
                metadata: {name: token}
        """
    hard = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: ml}\nspec: {hard: {pods: 2}}\n"
    repository(tmp_path, jobs__a=wrapper, overlays__prod__o=OVERLAY, cluster__prod__a=NAMESPACE, jobs__quota=hard)
    assert [each[:3:2] for each in found(tmp_path, *NEW_RULES)] == [
        ("jobs/a.yaml:4", "exceeds-quota"),
        ("jobs/a.yaml:16", "pod-security-violation"),
        ("jobs/a.yaml:20", "unknown-reference"),
    ]


def test_of_many_quotas_some_are_applied_and_the_rest_is_reported(tmp_path):
    hard = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: qN, namespace: ml}\nspec: {hard: {pods: 0}}\n"
    text = "---\n".join(hard.replace("N", f"{number:04}") for number in range(150))
    repository(tmp_path, jobs__pod=POD, jobs__quotas=text)
    findings = found(tmp_path, "exceeds-quota", "unread-file")
    assert [each[2] for each in findings].count("exceeds-quota") == 100
    message = (
        "namespace `ml` has more than 100 objects of this kind, or more than 1000 amounts in them; this one and"
        " the rest are not applied; remove some"
    )
    assert [each for each in findings if each[2] == "unread-file"] == [
        ("jobs/quotas.yaml:502", "error", "unread-file", message)
    ]


def test_quotas_of_other_groups_do_not_count(tmp_path):
    hard = (
        "apiVersion: example.com/v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: ml}\nspec: {hard: {pods: 0}}\n"
    )
    repository(tmp_path, jobs__pod=POD, jobs__quota=hard)
    assert found(tmp_path, "exceeds-quota") == []


RICH = {
    "namespace": {
        **named("Namespace", "ml"),
        "apiVersion": "v1",
        "metadata": {"name": "ml", "labels": {f"{LABEL}warn": "restricted"}},
    },
    "range": limits(
        {**CONTAINER, "max": {"cpu": 1}, "default": {"cpu": 1}},
        {"type": "PersistentVolumeClaim", "min": {"storage": 1}},
    ),
    "quota": quota(
        {"cpu": 1, "limits.memory": 1, "pods": 0},
        scopeSelector={"matchExpressions": [{"scopeName": "PriorityClass", "operator": "NotIn", "values": ["a"]}]},
    ),
    "class": CLASS,
    "template": named(
        "ResourceClaimTemplate",
        spec={"spec": {"devices": {"requests": [{"exactly": {"deviceClassName": "gpu", "count": 2}}]}}},
    ),
    "secret": named("Secret", data={"k": ""}),
    "set": {
        **named("StatefulSet"),
        "apiVersion": "apps/v1",
        "spec": {
            "replicas": 2,
            "volumeClaimTemplates": [
                {"metadata": {"name": "d"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
            ],
            "template": {
                "metadata": {"annotations": {"a": "b"}},
                "spec": {
                    "priorityClassName": "p",
                    "resourceClaims": [{"name": "c", "resourceClaimTemplateName": "x"}],
                    "securityContext": {"sysctls": [{"name": "s"}], "seccompProfile": {"type": "x"}},
                    "volumes": [{"name": "v", "secret": {"secretName": "x", "items": [{"key": "j"}]}}],
                    "initContainers": [{"name": "i", "restartPolicy": "Always", "resources": {"limits": {"cpu": 1}}}],
                    "containers": [
                        {
                            "name": "c",
                            "ports": [{"hostPort": 1}],
                            "resources": {"requests": {"cpu": 2}},
                            "env": [{"name": "e", "valueFrom": {"secretKeyRef": {"name": "x", "key": "j"}}}],
                            "securityContext": {"capabilities": {"add": ["X"]}, "seLinuxOptions": {"type": "t"}},
                            "livenessProbe": {"httpGet": {"host": "h"}},
                        }
                    ],
                },
            },
        },
    },
}
WRONG_VALUES = (None, -1, "x", [None], {"x": None})


def wrong_trees(tree):
    """Yield copies of a tree with one wrong value each."""
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        children = wrong_trees(value) if isinstance(value, (dict, list)) else ()
        for wrong in (*WRONG_VALUES, *children):
            copy = tree.copy()
            copy[key] = wrong
            yield copy


def test_a_wrong_value_anywhere_raises_no_exception():
    rules = [rule for rule in all_rules() if rule.scope == "cluster"]
    cluster = Cluster(complete=("Secret", "PersistentVolumeClaim", "Namespace"))
    checker = Checker(own_layers(Path()), (), cluster)

    def check(objects):
        state = build_state(cluster, objects, objects, [])
        manifest = checker.manifest(objects[-1])
        used = measure_use(manifest, state)
        list(find_excesses([(manifest, used)], state.quotas))
        find_largest_request([manifest], "requests.cpu", state)
        return [len(list(rule.check(manifest, state))) for rule in rules]

    assert any(check(list(RICH.values())))
    tried = [
        check([wrong if other == name else tree for other, tree in RICH.items()])
        for name in RICH
        for wrong in wrong_trees(RICH[name])
    ]
    assert len(tried) > 500


def runtime_of(*jobs, nodes=None):
    spec = {"mlPolicy": {"numNodes": nodes}, "template": {"spec": {"replicatedJobs": list(jobs)}}}
    return named("ClusterTrainingRuntime", "torch", spec=spec)


def runtime_job(name, gpus, step):
    container = {"name": name, "image": "x", "resources": {"limits": {GPU: gpus}}}
    labels = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": step}}
    return {"name": name, "template": {"metadata": labels, "spec": {"template": {"spec": {"containers": [container]}}}}}


TRAINERS = [
    ({}, {"nodes": None}, 8 + 1),
    ({}, {"nodes": 2}, 2 * 8 + 1),
    ({"trainer": {"numNodes": 3}}, {"nodes": 2}, 3 * 8 + 1),
    ({"trainer": {"numNodes": 3, "resourcesPerNode": {"limits": {GPU: 4}}}}, {}, 3 * 4 + 1),
    ({"suspend": True}, {"nodes": 2}, None),
]


@pytest.mark.parametrize(("fields", "nodes", "expected"), TRAINERS)
def test_the_pods_of_a_train_job_are_those_of_its_runtime(fields, nodes, expected):
    spec = {"runtimeRef": {"name": "torch"}, **fields}
    job = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "spec": spec}
    jobs = (runtime_job("node", 8, "trainer"), runtime_job("data", 1, "dataset-initializer"))
    found = uses(job, quota({f"requests.{GPU}": 1}), runtime_of(*jobs, **nodes))
    assert found.get(f"requests.{GPU}") == expected


def manifests(*objects):
    return "\n---\n".join(json.dumps(obj) for obj in objects)


def plain_pod(namespace="ml", **spec):
    spec = {"containers": [{"name": "c", "image": "a:1"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": namespace}, "spec": spec}


def test_an_object_in_another_namespace_than_its_app_wrapper_counts_in_its_own(tmp_path):
    spec = {"components": [{"template": plain_pod()}]}
    metadata = {"name": "w", "namespace": "other"}
    wrapper = {"apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper", "metadata": metadata, "spec": spec}
    limit_range = {**named("LimitRange"), "metadata": metadata}
    repository(tmp_path, jobs__a=manifests(quota({"pods": 0}), limit_range, wrapper), overlays__prod__o="")
    rules = [each[2] for each in found(tmp_path)]
    assert "internal-error" not in rules
    assert "exceeds-quota" in rules


def test_a_quota_does_not_count_objects_without_namespace(tmp_path):
    state = build_state(Cluster(), [quota({"count/nodes": 0}), {**quota({"count/nodes": 0}), "metadata": {}}], [], [])
    assert measure_use(view(named("Node")), state) == []
    assert len(measure_use(view({**named("Node"), "apiVersion": "example.com/v1"}), state)) == 0
    repository(tmp_path, jobs__a=manifests(quota({"count/nodes": 0}), named("Node")))
    repository(tmp_path, jobgen="cluster: {complete: [Secret]}", overlays__prod__o="")
    assert not {"internal-error", "exceeds-quota"} & {each[2] for each in found(tmp_path)}


def test_an_exception_about_quotas_is_a_finding(tmp_path, monkeypatch):
    def fail(*_):
        raise KeyError("ml")

    monkeypatch.setattr("jobgen.check.cluster.quotas.find_largest_request", fail)
    repository(tmp_path, jobs__a=manifests(quota({"pods": 0}), plain_pod()), overlays__prod__o="")
    messages = [each[3] for each in found(tmp_path, "internal-error")]
    assert messages == [
        "the rule `exceeds-quota` failed on this object with `KeyError`: 'ml'; please report this bug in jobgen"
    ]


OTHER_GROUP = [
    (
        "pod-security-violation",
        named("Namespace", "ml", metadata={"name": "ml", "labels": {LABEL + "enforce": "baseline"}}),
    ),
    ("exceeds-quota", quota({"pods": 0})),
    ("exceeds-limit-range", limits({"type": "Pod", "max": {"cpu": 1}})),
]


@pytest.mark.parametrize(("rule", "deciding"), OTHER_GROUP)
def test_a_custom_kind_of_the_same_name_is_another_kind(rule, deciding, tmp_path):
    custom = {"apiVersion": "example.com/v1", "kind": deciding["kind"], "metadata": deciding["metadata"]}
    job = plain_pod(hostPID=True)
    repository(tmp_path, jobs__a=manifests(deciding, job), jobs__b=manifests(custom), overlays__prod__o="")
    assert [each[2] for each in found(tmp_path, rule)] == [rule]
    repository(tmp_path, jobs__a=manifests(job), jobs__b=manifests(custom), jobs__c=manifests(custom))
    assert found(tmp_path, rule) == []


def test_a_reference_does_not_lead_to_a_custom_kind_of_the_same_name():
    custom = {**named("Secret"), "apiVersion": "example.com/v1"}
    job = plain_pod(imagePullSecrets=[{"name": "x"}])
    assert rule_messages("unknown-reference", job, [custom], complete=("Secret",)) == [
        "there is no Secret `x` in namespace `ml`"
    ]
    assert rule_messages("unknown-reference", job, [custom, named("Secret")], complete=("Secret",)) == []


GENERATED = [
    ("exceeds-quota", quota({"pods": 0}), quota({"services": 5}), "quota `a-`"),
    (
        "exceeds-limit-range",
        limits({"type": "Pod", "max": {"cpu": 1}}),
        limits({"type": "Pod", "min": {"example.com/x": 0}}),
        "LimitRange `a-`",
    ),
]


@pytest.mark.parametrize(("rule", "one", "other", "name"), GENERATED)
def test_objects_with_generated_names_do_not_replace_each_other(rule, one, other, name, tmp_path):
    several = [
        {**obj, "metadata": {"generateName": prefix, "namespace": "ml"}} for obj, prefix in ((one, "a-"), (other, "b-"))
    ]
    repository(tmp_path, jobs__a=manifests(*several, plain_pod()), overlays__prod__o="")
    assert any(name in message for *_, message in found(tmp_path, rule))


def apply_all_rules(pods, objects, **cluster):
    """Apply the state to pods."""
    state = build_state(Cluster(**cluster), objects, [], [])
    rules = [rule for rule in all_rules() if rule.scope == "cluster"]
    taken = []
    for pod in pods:
        manifest = view(pod)
        taken.append((0, measure_use(manifest, state)))
        for rule in rules:
            assert len(list(islice(rule.check(manifest, state), 100))) <= 100
    list(find_excesses(taken, state.quotas))


def numbered(count, **fields):
    return [{"name": f"c{number}", "image": "a:1", **fields} for number in range(count)]


NUMBERS = itertools.count(10**6)


def missing_secrets(count):
    """Pods with secrets that no other pod has named: similar names are searched anew."""
    return [plain_pod(imagePullSecrets=[{"name": f"secret-{next(NUMBERS)}-of-job"}]) for _ in range(count)]


LARGE = {
    "defaults": lambda count: (
        [plain_pod(containers=numbered(count))],
        [limits(*({"type": "Container", "default": {f"a{number}": 1}} for number in range(count)))],
    ),
    "defaults that are applied": lambda count: (
        [plain_pod(containers=numbered(count))],
        [limits(*({"type": "Container", "default": {f"a{number}": 1}} for number in range(200)))],
    ),
    "bounds": lambda count: (
        [plain_pod(containers=numbered(count, resources={"requests": {"cpu": 2}}))],
        [limits(*({"type": "Container", "min": {"cpu": 1}} for number in range(200)))],
    ),
    "quotas": lambda count: (
        [plain_pod(containers=numbered(1, resources={"limits": {"a": 1}}))] * count,
        [{**quota({"requests.a": 1}), "metadata": {"name": f"q{each}", "namespace": "ml"}} for each in range(count)],
    ),
    "sidecars": lambda count: (
        [
            plain_pod(
                initContainers=[
                    {"name": f"c{n}", "restartPolicy": "Always", "resources": {"requests": {f"a{n}": 1}}}
                    for n in range(count)
                ]
            )
        ],
        [quota({"pods": 1})],
    ),
    "claims": lambda count: (
        [plain_pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "claim7-set-199"}}])],
        [
            named(
                "StatefulSet",
                "set",
                spec={
                    "replicas": count,
                    "volumeClaimTemplates": [{"metadata": {"name": f"claim{number}"}} for number in range(count)],
                },
            )
        ],
    ),
    "suggestions": lambda count: (
        missing_secrets(count),
        [named("Secret", f"secret-{number}-for-job") for number in range(3 * count)],
    ),
}


@pytest.mark.parametrize("case", LARGE)
def test_a_large_state_takes_linear_time(case):
    """Two large numbers together, such as pods and quotas, stay within the limits that jobgen states."""

    def prepare(count):
        return lambda: apply_all_rules(*LARGE[case](count), complete=("PersistentVolumeClaim", "Secret"))

    # Pods and quotas grow with the square up to a limit.
    assert not grows_with_the_square(prepare, 80 if case == "quotas" else 60)


CLAIM_NAMES = [("data-set-0", True), ("data-set-1", True), ("data-set-2", False), ("data-set-01", False)]
CLAIM_NAMES += [("data-set--1", False), ("data-set-", False), ("data-set-" + "9" * 5000, False), ("data-set-٣", False)]


@pytest.mark.parametrize(("name", "is_known"), CLAIM_NAMES)
def test_a_stateful_set_creates_as_many_claims_as_it_has_replicas(name, is_known):
    spec = {"replicas": 2, "volumeClaimTemplates": [{"metadata": {"name": "data"}}]}
    state = build_state(Cluster(), [named("StatefulSet", "set", spec=spec)], [], [])
    assert state.has_object(("PersistentVolumeClaim", "ml", name)) is is_known


def test_a_limit_range_with_too_many_amounts_is_a_finding(tmp_path):
    many = limits(*({"type": "Pod", "max": {f"a{number}": 1}} for number in range(201)))
    repository(tmp_path, jobs__a=manifests(many, plain_pod()), overlays__prod__o="")
    message = (
        "namespace `ml` has more than 100 objects of this kind, or more than 200 amounts in them; this one and the"
    )
    message += " rest are not applied; remove some"
    several = [each[1:] for each in found(tmp_path, "unread-file", "exceeds-limit-range")]
    assert several == [("error", "unread-file", message)]


LIST = {"apiVersion": "v1", "kind": "List", "items": [quota({"pods": 0})]}
STATES = [
    (manifests({**LIST, "items": [LIST]}), "the objects in this `List` are not read"),
    (manifests({**LIST, "items": {"a": quota({"pods": 0})}}), "the objects in this `List` are not read"),
    (manifests(quota({"pods": "many"})), "`pods` is `many`, which is not a quantity, so the quota does not limit it"),
    (
        manifests(quota({"pods": 1}), quota({"pods": 2})),
        "the exported state has another ResourceQuota `q` in namespace `ml`",
    ),
    ("# nothing\n", "the folder `cluster/prod` has no manifests"),
]


@pytest.mark.parametrize(("text", "message"), STATES)
def test_state_that_is_not_applied_is_an_error(text, message, tmp_path):
    repository(tmp_path, jobs__pod=POD, overlays__prod__o=OVERLAY, cluster__prod__a=text)
    errors = [each[3].partition(";")[0] for each in found(tmp_path, "unread-file", "unreadable-file")]
    assert errors == [message]


@pytest.mark.parametrize("kind", ["List", "LimitRangeList"])
def test_an_export_without_objects_is_no_error(kind, tmp_path):
    text = manifests({"apiVersion": "v1", "kind": kind, "items": []})
    repository(tmp_path, jobs__pod=POD, overlays__prod__o=OVERLAY, cluster__prod__a=text)
    assert found(tmp_path, "unread-file", "unreadable-file") == []


IN_POLICIES = [
    manifests({**LIST, "items": [OTHER_GROUP[0][1]]}),
    NAMESPACE.replace("pod-security.kubernetes.io/enforce", r'"pod-security.kubernetes\x2eio/enforce"'),
]


@pytest.mark.parametrize("text", IN_POLICIES)
def test_namespaces_in_policies_count_in_lists_and_with_escapes(text, tmp_path):
    repository(tmp_path, jobs__pod=POD, overlays__prod__o="", policies__a=text)
    assert [each[2] for each in found(tmp_path, "pod-security-violation")] == ["pod-security-violation"]

"""What a member of a team tries: accelerators outside of queues and budgets, and what belongs to others."""

import json
from textwrap import dedent

import pytest

import jobgen
from jobgen.check.policy import ClusterFacts, PolicyEvaluator
from jobgen.k8s.workloads import POD_SETS, list_template_paths
from jobgen.model.builtin_rules import LIMIT_RULES
from jobgen.pipeline.policies import load_policies
from jobgen.repo.layout import own_layers

TEAMS = """\
teams:
  nlp:
    folders: [jobs/nlp]
    namespaces: [nlp]
    queues: [nlp]
    priorityClasses: [low]
    budget: {gpus: 1}
  vision: {folders: [jobs/vision], namespaces: [vision], kinds: ["*", PersistentVolume]}
"""
OVERLAY = """\
apiVersion: jobgen.dev/v1
kind: Overlay
spec:
  namespace: nlp
  cluster: {operators: {kueue: 0.17.0}}
  defaults: [{merge: {queue: nlp}}]
"""
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert}
spec:
  framework: pytorch
  image: registry.example.com/bert:1.4.2
  resources: {gpu: 1, cpu: 1, memory: 1Gi}
"""
LABEL = {"kueue.x-k8s.io/queue-name": "nlp"}
AMOUNTS = {"nvidia.com/gpu": 4, "cpu": 1, "memory": "1Gi"}
CONTAINER = {
    "name": "main",
    "image": "registry.example.com/a:1",
    "resources": {"limits": AMOUNTS, "requests": {"cpu": 1, "memory": "1Gi"}},
    "securityContext": {"privileged": True},
}
VERSIONS = {
    "": "v1",
    "apps": "apps/v1",
    "batch": "batch/v1",
    "batch.tensorstack.dev": "batch.tensorstack.dev/v1beta1",
    "batch.volcano.sh": "batch.volcano.sh/v1alpha1",
    "jobset.x-k8s.io": "jobset.x-k8s.io/v1alpha2",
    "leaderworkerset.x-k8s.io": "leaderworkerset.x-k8s.io/v1",
    "ray.io": "ray.io/v1",
}


ITEM = {"type": "worker", "name": "w", "groupName": "w", "replicas": 1}


def place(node, path, template):
    """A tree with a template at a path; each list on the way has one item."""
    if not path:
        return template
    if path[0] == "*" or not isinstance(path[0], str):
        return [place((node or [ITEM])[0], path[1:], template)]
    return {**(node or {}), path[0]: place((node or {}).get(path[0]), path[1:], template)}


def make(group, kind, labels=(), **pod):
    """An object of a kind, with a pod in each of its templates."""
    metadata = {"name": kind.lower(), "namespace": "nlp", "labels": dict(labels)}
    obj = {"apiVersion": VERSIONS[group], "kind": kind, "metadata": metadata}
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [CONTAINER], **pod}}
    for path in list_template_paths(group, kind):
        obj = place(obj, path or ("spec",), template if path else template["spec"])
    return obj


def write(root, files):
    defaults = {"jobgen.yaml": TEAMS, "overlays/prod/overlay.yaml": OVERLAY}
    for path, content in {**defaults, **files}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content if isinstance(content, str) else json.dumps(content))
    return root


def find(root, rule):
    return [each for each in jobgen.lint(root).findings if each.rule == rule]


KINDS = [key for key in POD_SETS if key != ("", "PodTemplate")]


@pytest.mark.parametrize(("group", "kind"), KINDS)
def test_accelerators_of_every_kind_need_a_queue_and_count(tmp_path, group, kind):
    write(tmp_path, {"jobs/nlp/a.json": make(group, kind)})

    for rule in ("unqueued-accelerators", "team-budget-exceeded"):
        assert [(each.severity, each.object.kind) for each in find(tmp_path, rule)] == [("error", kind)]


@pytest.mark.parametrize(
    ("group", "kind", "is_queued"),
    [
        ("", "Pod", True),
        ("apps", "Deployment", True),
        ("apps", "StatefulSet", True),
        ("leaderworkerset.x-k8s.io", "LeaderWorkerSet", True),
        ("ray.io", "RayCluster", True),
        ("ray.io", "RayService", True),
        ("apps", "DaemonSet", False),
        ("apps", "ReplicaSet", False),
        ("", "ReplicationController", False),
        ("batch", "CronJob", False),
        ("ray.io", "RayCronJob", False),
    ],
)
def test_label_counts_where_kueue_reads_it(tmp_path, group, kind, is_queued):
    write(tmp_path, {"jobs/nlp/a.json": make(group, kind, LABEL)})

    found = find(tmp_path, "unqueued-accelerators")
    assert (not found) == is_queued
    if not is_queued and kind != "CronJob":
        assert f"Kueue does not manage a {kind}" in found[0].message


def test_labels_of_other_schedulers_do_not_replace_that_of_kueue(tmp_path):
    write(tmp_path, {"jobs/nlp/a.json": make("apps", "Deployment", {"queue": "nlp"})})

    assert find(tmp_path, "unqueued-accelerators")
    write(tmp_path, {"jobs/nlp/a.json": make("apps", "Deployment", {"queue": "nlp"}, schedulerName="yunikorn")})
    assert not find(tmp_path, "unqueued-accelerators")


def test_job_cannot_leave_the_queue_of_its_environment(tmp_path):
    write(tmp_path, {"jobs/nlp/a.yaml": JOB})
    assert not find(tmp_path, "unqueued-accelerators")

    write(tmp_path, {"jobs/nlp/a.yaml": f"# jobgen: ignore-file[unqueued-accelerators]\n{JOB}  queue: null\n"})
    assert len(find(tmp_path, "unqueued-accelerators")) == 1


@pytest.mark.parametrize("labels", [(), LABEL])
def test_app_wrapper_needs_a_queue_for_what_it_wraps(tmp_path, labels):
    wrapper = {"apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper"}
    metadata = {"name": "a", "namespace": "nlp", "labels": dict(labels)}
    spec = {"components": [{"template": make("batch", "Job")}]}
    write(tmp_path, {"jobs/nlp/a.json": {**wrapper, "metadata": metadata, "spec": spec}})

    assert bool(find(tmp_path, "unqueued-accelerators")) == (not labels)


def test_pods_of_a_described_kind_count(tmp_path):
    kind = """\
        apiVersion: example.com/v1
        kind: Fleet
        plural: fleets
        platform: kubeflow
        operator: {name: fleet}
        pods: [spec.head.template, spec.groups.*.template]
    """
    template = {"spec": {"containers": [CONTAINER]}}
    spec = {"head": {"template": template}, "groups": [{"replicas": 3, "template": template}]}
    obj = {"apiVersion": "example.com/v1", "kind": "Fleet", "metadata": {"name": "a", "namespace": "nlp"}, "spec": spec}
    write(tmp_path, {"schemas/example.com/fleet_v1.yaml": dedent(kind), "jobs/nlp/a.json": obj})

    assert "requests 16 GPUs" in find(tmp_path, "team-budget-exceeded")[0].message
    assert len(find(tmp_path, "unqueued-accelerators")) == 1


HIDDEN = {
    "Workflow": (
        "argoproj.io/v1alpha1",
        {
            "entrypoint": "both",
            "templates": [
                {"name": "both", "steps": [[{"name": "a", "template": "a"}, {"name": "b", "template": "b"}]]},
                {"name": "a", "container": CONTAINER},
                {"name": "b", "script": CONTAINER},
                {"name": "never", "container": CONTAINER},
            ],
        },
        8,
        ("spec", "podMetadata"),
    ),
    "CronWorkflow": (
        "argoproj.io/v1alpha1",
        {
            "schedule": "* * * * *",
            "concurrencyPolicy": "Forbid",
            "workflowSpec": {"templates": [{"name": "a", "container": CONTAINER}]},
        },
        4,
        None,
    ),
    "Notebook": ("kubeflow.org/v1", {"template": {"spec": {"containers": [CONTAINER]}}}, 4, ("metadata",)),
    "InferenceService": (
        "serving.kserve.io/v1beta1",
        {"predictor": {"minReplicas": 3, "model": {"resources": CONTAINER["resources"]}}},
        12,
        ("metadata",),
    ),
    "DynamoGraphDeployment": (
        "nvidia.com/v1alpha1",
        {"services": {"a": {"replicas": 2, "resources": CONTAINER["resources"]}}},
        8,
        None,
    ),
    "SparkApplication": (
        "sparkoperator.k8s.io/v1beta2",
        {"executor": {"template": {"spec": {"containers": [CONTAINER], "initContainers": []}}}},
        4,
        ("spec", "executor", "template", "metadata"),
    ),
}


@pytest.mark.parametrize("kind", HIDDEN)
def test_accelerators_of_kinds_that_are_not_described_count(tmp_path, kind):
    version, spec, gpus, labels_at = HIDDEN[kind]
    obj = {"apiVersion": version, "kind": kind, "metadata": {"name": "a", "namespace": "nlp"}, "spec": spec}
    write(tmp_path, {"jobs/nlp/a.json": obj})

    assert f"requests {gpus} GPUs" in find(tmp_path, "team-budget-exceeded")[0].message
    assert len(find(tmp_path, "unqueued-accelerators")) == 1
    if labels_at:
        obj = json.loads(json.dumps(obj))
        node = obj
        for step in labels_at:
            node = node.setdefault(step, {})
        node["labels"] = LABEL
        write(tmp_path, {"jobs/nlp/a.json": obj})
        assert not find(tmp_path, "unqueued-accelerators")


@pytest.mark.parametrize("kind", ["WorkflowTemplate", "ServingRuntime", "PodTemplate"])
def test_templates_that_create_nothing_do_not_count(tmp_path, kind):
    version = {"PodTemplate": "v1", "ServingRuntime": "serving.kserve.io/v1alpha1"}.get(kind, "argoproj.io/v1alpha1")
    obj = {"apiVersion": version, "kind": kind, "metadata": {"name": "a", "namespace": "nlp"}}
    body = {"template": {"spec": {"containers": [CONTAINER]}}}
    write(tmp_path, {"jobs/nlp/a.json": {**obj, **(body if kind == "PodTemplate" else {"spec": body})}})

    assert not find(tmp_path, "team-budget-exceeded")
    assert not find(tmp_path, "unqueued-accelerators")


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"])
def test_description_of_a_repository_hides_no_pods(tmp_path, kind):
    description = f"""\
        apiVersion: apps/v1
        kind: {kind}
        plural: {kind.lower()}s
        platform: kubeflow
        operator: {{name: kubernetes}}
    """
    write(
        tmp_path,
        {f"schemas/apps/{kind.lower()}_v1.yaml": dedent(description), "jobs/nlp/a.json": make("apps", kind)},
    )

    assert len(find(tmp_path, "unqueued-accelerators")) == 1
    assert len(find(tmp_path, "team-budget-exceeded")) == 1
    # A privileged DaemonSet may be an agent of its node.
    assert kind == "DaemonSet" or find(tmp_path, "privileged-container")


ROLE = "arn:aws:iam::123456789012:role/vision"
ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a", "namespace": "nlp"}}


def account(**annotations):
    return {**ACCOUNT, "metadata": {**ACCOUNT["metadata"], "annotations": annotations}}


VOLUME = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "corpus"},
    "spec": {"capacity": {"storage": "1Ti"}, "accessModes": ["ReadWriteMany"], "nfs": {"server": "a", "path": "/"}},
}
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data", "namespace": "nlp"},
    "spec": {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "1Ti"}},
        "storageClassName": "",
        "volumeName": "corpus",
    },
}
EXCEPTION = {
    "apiVersion": "kyverno.io/v2",
    "kind": "PolicyException",
    "metadata": {"name": "a", "namespace": "nlp"},
    "spec": {"exceptions": [], "match": {}},
}
TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}}
STATEFUL = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": {"name": "a", "namespace": "nlp"},
    "spec": {
        "selector": {"matchLabels": {"app": "a"}},
        "template": TEMPLATE,
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": CLAIM["spec"]}],
    },
}
LEAKS = {
    "node": (make("", "Pod", LABEL, nodeName="gpu-1"), "team-node-name"),
    "node of a job": (f"{JOB}  podTemplate: {{spec: {{nodeName: gpu-1}}}}\n", "team-node-name"),
    "priority": (make("", "Pod", LABEL, priority=1000000), "foreign-priority-class"),
    "exception of Kyverno": (EXCEPTION, "kind-not-allowed"),
    "role of AWS": (account(**{"eks.amazonaws.com/role-arn": ROLE}), "team-cloud-identity"),
    "account of Google": (account(**{"iam.gke.io/gcp-service-account": "a@b"}), "team-cloud-identity"),
    "identity of Azure": (account(**{"azure.workload.identity/client-id": "0"}), "team-cloud-identity"),
    "volume": (CLAIM, "foreign-volume"),
    "volume of a template": (STATEFUL, "foreign-volume"),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_what_belongs_to_others_is_an_error_that_no_comment_lifts(tmp_path, leak):
    content, rule = LEAKS[leak]
    path = "jobs/nlp/a.yaml"
    text = content if isinstance(content, str) else json.dumps(content)
    files = {path: f"# jobgen: ignore-file[{rule}] -- ours\n{text}", "jobs/vision/volume.json": VOLUME}
    write(tmp_path, files)

    assert [(each.severity, each.location.file) for each in find(tmp_path, rule)] == [("error", path)]
    assert rule in LIMIT_RULES
    # Without teams, there is no such limit.
    write(tmp_path, {"jobgen.yaml": "{}\n"})
    assert not find(tmp_path, rule)


def test_volume_that_is_reserved_for_a_claim_belongs_to_its_team(tmp_path):
    reserved = {**VOLUME, "spec": {**VOLUME["spec"], "claimRef": {"namespace": "nlp", "name": "data"}}}
    write(tmp_path, {"jobs/nlp/a.json": CLAIM, "jobs/vision/volume.json": reserved})

    assert not find(tmp_path, "foreign-volume")


def test_packs_see_the_pods_of_every_kind(tmp_path):
    write(tmp_path, {"jobgen.yaml": "policies: [pss-baseline, kueue]\n"})
    policies = PolicyEvaluator(load_policies(own_layers(tmp_path)).policies, ClusterFacts())

    for group, kind in POD_SETS:
        rules = {problem.rule for problem in policies.find_problems(make(group, kind))}
        assert "pss-baseline-privileged" in rules, kind
        is_queued_by_kueue = kind != "PodTemplate" and group not in ("batch.volcano.sh", "batch.tensorstack.dev")
        assert ("queue-required" in rules) == is_queued_by_kueue, kind


OTHER_KINDS = {
    **{kind: HIDDEN[kind] for kind in ("Workflow", "CronWorkflow", "Notebook", "SparkApplication")},
    "InferenceService": ("serving.kserve.io/v1beta1", {"predictor": {"model": CONTAINER}}),
    "ScaledJob": ("keda.sh/v1alpha1", {"jobTargetRef": {"template": {"spec": {"containers": [CONTAINER]}}}}),
}


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_packs_see_the_containers_of_other_controllers(tmp_path, kind):
    write(tmp_path, {"jobgen.yaml": "policies: [pss-baseline, supply-chain]\n"})
    policies = PolicyEvaluator(load_policies(own_layers(tmp_path)).policies, ClusterFacts())
    version, spec, *_ = OTHER_KINDS[kind]
    spec = json.loads(json.dumps(spec).replace("registry.example.com/", "evil.example.org/"))

    found = policies.find_problems({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, "spec": spec})
    assert {"pss-baseline-privileged", "allowed-registries", "image-digests"} <= {problem.rule for problem in found}
    image = f"registry.example.com/a:1@sha256:{'a' * 64}"
    harmless = {**CONTAINER, "image": image, "imagePullPolicy": "Always", "securityContext": {}}
    spec = json.loads(json.dumps(OTHER_KINDS[kind][1]).replace(json.dumps(CONTAINER), json.dumps(harmless)))
    found = policies.find_problems({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, "spec": spec})
    assert [(problem.rule, str(problem.sentence)) for problem in found] == []


def test_packs_see_the_images_of_volumes(tmp_path):
    write(tmp_path, {"jobgen.yaml": "policies: [supply-chain]\n"})
    policies = PolicyEvaluator(load_policies(own_layers(tmp_path)).policies, ClusterFacts())
    volumes = [{"name": "a", "image": {"reference": "evil.example.org/a:latest"}}]

    for group, kind in POD_SETS:
        found = {
            problem.rule: str(problem.sentence)
            for problem in policies.find_problems(make(group, kind, volumes=volumes))
        }
        assert "evil.example.org/a" in found["allowed-registries"], kind
        assert {"image-digests", "image-tags"} <= found.keys(), kind

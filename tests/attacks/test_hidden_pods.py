"""Accelerators and names that an object has as text, as a number of steps, or in the settings of another program."""

import json

import pytest
from command import run_jobgen_text

import jobgen

TEAMS = """\
teams:
  nlp:
    folders: [jobs/nlp]
    namespaces: [nlp]
    queues: [nlp]
    serviceAccounts: [nlp-*]
    budget: {gpus: 8}
  vision: {folders: [jobs/vision], namespaces: [vision], serviceAccounts: [vision-*], queues: [vision]}
"""
LABEL = {"kueue.x-k8s.io/queue-name": "nlp"}
BUDGET, UNKNOWN, UNQUEUED = "team-budget-exceeded", "uncounted-accelerators", "unqueued-accelerators"
ACCOUNT, NAMESPACE = "foreign-service-account", "foreign-namespace"


def container(gpus=1):
    limits = {"cpu": 1, "memory": "1Gi", **({"nvidia.com/gpu": gpus} if gpus else {})}
    return {"name": "main", "image": "registry.example.com/a:1", "command": ["train"], "resources": {"limits": limits}}


def pod(gpus=1):
    return {"restartPolicy": "Never", "containers": [container(gpus)]}


def make(version, kind, spec, labels=LABEL, name="a"):
    metadata = {"name": name, "namespace": "nlp", "labels": dict(labels)}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def workflow(*templates, **spec):
    """A Workflow whose pods wait in a queue; its first template starts."""
    labels = {"podMetadata": {"labels": LABEL}}
    first = {"entrypoint": templates[0]["name"], "templates": list(templates)}
    return make("argoproj.io/v1alpha1", "Workflow", {**labels, **first, **spec})


def steps(*groups, name="start", **fields):
    return {"name": name, "steps": list(groups), **fields}


def step(target="train", name="s", **fields):
    return {"name": name, "template": target, **fields}


def task(name, *waits, target="train"):
    return {"name": name, "template": target, "dependencies": list(waits)}


def patch(gpus, field="podSpecPatch", **spec):
    limits = {"nvidia.com/gpu": str(gpus)}
    return {field: json.dumps({**spec, "containers": [{"name": "main", "resources": {"limits": limits}}]})}


TRAIN = {"name": "train", "container": container()}
IDLE = {"name": "idle", "container": container(0)}
POD_TEXT = """\
apiVersion: v1
kind: Pod
metadata: {{name: z, namespace: {namespace}, labels: {labels}}}
spec:
  serviceAccountName: {account}
  containers: [{{name: a, image: b, resources: {{limits: {{nvidia.com/gpu: {gpus}}}}}}}]
"""


def creates(namespace="nlp", account="nlp-a", gpus=1, labels=LABEL, action="create"):
    text = POD_TEXT.format(namespace=namespace, account=account, gpus=gpus, labels=json.dumps(labels))
    return {"name": "train", "resource": {"action": action, "manifest": text}}


def spark(executor=(), driver=(), kind="SparkApplication", labels=LABEL, **spec):
    known = {"type": "Python", "mode": "cluster", "sparkVersion": "3.5.0", "mainApplicationFile": "local:///a.py"}
    spec = {**known, "driver": dict(driver), "executor": dict(executor), **spec}
    whole = spec if kind == "SparkApplication" else {**DAILY, "template": spec}
    return make("sparkoperator.k8s.io/v1beta2", kind, whole, labels)


DAILY = {"schedule": "@daily", "concurrencyPolicy": "Forbid"}


def gpu(quantity):
    return {"gpu": {"name": "nvidia.com/gpu", "quantity": quantity}}


def write(root, *objects):
    (root / "jobgen.yaml").write_text(TEAMS)
    (root / "jobs/nlp").mkdir(parents=True, exist_ok=True)
    for index, obj in enumerate(objects):
        (root / f"jobs/nlp/{index}.json").write_text(json.dumps(obj))
    return root


def find(root, *objects):
    rules = {BUDGET, UNKNOWN, UNQUEUED, ACCOUNT, NAMESPACE, "internal-error"}
    found = [each for each in jobgen.lint(write(root, *objects)).findings if each.rule in rules]
    return {each.rule: each for each in found}


ANY = -1
COUNTS = {
    "patch": (workflow(IDLE, **patch(64)), 64),
    "patch of a template": (workflow({**IDLE, **patch(64)}), 64),
    "patch of defaults": (workflow(IDLE, templateDefaults=patch(64)), 64),
    "patch in YAML": (
        workflow({**IDLE, "podSpecPatch": "containers:\n- name: main\n  resources: {limits: {nvidia.com/gpu: 64}}\n"}),
        64,
    ),
    "patch with a parameter": (
        workflow(
            IDLE,
            **patch("{{workflow.parameters.gpus}}"),
            arguments={"parameters": [{"name": "gpus", "value": "64"}]},
        ),
        64,
    ),
    "patch with another container": (
        workflow(IDLE, podSpecPatch=json.dumps({"containers": [{**container(9), "name": "b"}]})),
        9,
    ),
    "object": (workflow(creates(gpus=64)), 64),
    "many objects": (workflow(steps([step(withSequence={"count": 10})]), creates(), parallelism=2), 10),
    "many objects of inner steps": (
        workflow(
            steps([step("inner", withSequence={"count": 10})]), steps([step()], name="inner"), creates(), parallelism=2
        ),
        10,
    ),
    "object inside of an object": (
        workflow(
            {
                "name": "a",
                "resource": {"action": "apply", "manifest": json.dumps(workflow(creates(gpus=64)))},
            }
        ),
        64,
    ),
    "replicas of an object": (
        workflow(
            {
                "name": "a",
                "resource": {
                    "action": "create",
                    "manifest": json.dumps(
                        make(
                            "kubeflow.org/v1",
                            "PyTorchJob",
                            {"pytorchReplicaSpecs": {"Worker": {"replicas": 10, "template": {"spec": pod()}}}},
                        )
                    ),
                },
            }
        ),
        10,
    ),
    "sequence": (workflow(steps([step(withSequence={"count": "100"})]), TRAIN), 100),
    "sequence with an end": (workflow(steps([step(withSequence={"start": "1", "end": "100"})]), TRAIN), 100),
    "items": (workflow(steps([step(withItems=list(range(20)))]), TRAIN), 20),
    "list as text": (workflow(steps([step(withParam=json.dumps(list(range(20))))]), TRAIN), 20),
    "list in a parameter": (
        workflow(
            steps([step(withParam="{{workflow.parameters.list}}")]),
            TRAIN,
            arguments={"parameters": [{"name": "list", "value": json.dumps(list(range(20)))}]},
        ),
        20,
    ),
    "sequence of sequences": (
        workflow(
            steps([step("inner", withSequence={"count": 10})]),
            steps([step(withSequence={"count": 10})], name="inner"),
            TRAIN,
        ),
        100,
    ),
    "inline": (workflow(steps([{"name": "a", "inline": {"container": container(9)}}])), 9),
    "hook": (workflow(IDLE, TRAIN | {"container": container(9)}, hooks={"running": {"template": "train"}}), 9),
    "exit": (workflow(IDLE, TRAIN | {"container": container(9)}, onExit="train"), 9),
    "tasks": (workflow({"name": "a", "dag": {"tasks": [task(str(each)) for each in range(9)]}}, TRAIN), 9),
    "tasks after others": (
        workflow(
            {
                "name": "a",
                "dag": {
                    "tasks": [
                        *(task(f"i{each}", *([f"i{each - 1}"] if each else []), target="idle") for each in range(9)),
                        *(task(f"t{each}", f"i{each}") for each in range(9)),
                    ]
                },
            },
            TRAIN,
            IDLE,
        ),
        9,
    ),
    "tasks that nothing waits for": (
        workflow(
            {
                "name": "a",
                "dag": {
                    "tasks": [
                        *(task(f"i{each}", *([f"i{each - 1}"] if each else [])) for each in range(9)),
                        *(task(f"t{each}", f"i{each}") for each in range(9)),
                    ]
                },
            },
            TRAIN,
        ),
        9,
    ),
    "no start": (workflow(TRAIN, {"name": "b", "script": container(8)}, entrypoint="{{a}}"), 9),
    "executors": (spark({"instances": 8, **gpu(8)}), 64),
    "driver": (spark(driver=gpu(9)), 9),
    "scheduled executors": (spark({"instances": 8, **gpu(8)}, kind="ScheduledSparkApplication"), 64),
    "settings of Spark": (
        spark({"instances": 2}, sparkConf={"spark.executor.resource.gpu.amount": "64"}),
        128,
    ),
    "instances in settings": (spark(gpu(1), sparkConf={"spark.executor.instances": "64"}), 64),
    "driver in settings": (spark(sparkConf={"spark.driver.resource.gpu.amount": "64"}), 64),
    "vendor in settings": (
        spark(
            {"instances": 9},
            sparkConf={"spark.executor.resource.gpu.amount": "1", "spark.executor.resource.gpu.vendor": "amd.com"},
        ),
        9,
    ),
    "executors that Spark adds": (
        spark({"instances": 1, **gpu(1)}, dynamicAllocation={"enabled": True, "maxExecutors": 64}),
        64,
    ),
    "executors that settings add": (
        spark(
            {"instances": 1, **gpu(1)},
            sparkConf={"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.maxExecutors": "64"},
        ),
        64,
    ),
    "executors without a limit": (spark(gpu(1), dynamicAllocation={"enabled": True}), ANY),
    "template of executors": (
        spark({"instances": 9, "template": {"spec": {"containers": [container()]}}}),
        9,
    ),
    "Jobs of KEDA": (
        make(
            "keda.sh/v1alpha1",
            "ScaledJob",
            {"maxReplicaCount": 10, "jobTargetRef": {"parallelism": 4, "completions": 4, "template": {"spec": pod()}}},
        ),
        40,
    ),
    "Jobs of KEDA without a limit": (
        make("keda.sh/v1alpha1", "ScaledJob", {"jobTargetRef": {"template": {"spec": pod()}}}),
        100,
    ),
    "replicas of a model": (
        make(
            "serving.kserve.io/v1beta1",
            "InferenceService",
            {"predictor": {"minReplicas": 1, "maxReplicas": 10, "model": {"resources": container()["resources"]}}},
        ),
        10,
    ),
    "workers of Ray without a limit": (
        make(
            "ray.io/v1",
            "RayCluster",
            {
                "enableInTreeAutoscaling": True,
                "headGroupSpec": {"rayStartParams": {}, "template": {"spec": pod(0)}},
                "workerGroupSpecs": [
                    {"groupName": "a", "minReplicas": 1, "rayStartParams": {}, "template": {"spec": pod()}}
                ],
            },
        ),
        ANY,
    ),
}


@pytest.mark.parametrize("way", COUNTS)
def test_accelerators_that_are_multiplied_or_written_as_text_count(tmp_path, way):
    obj, gpus = COUNTS[way]
    found = find(tmp_path, obj)

    assert found.keys() == {BUDGET}
    wanted = "can request any number of GPUs" if gpus == ANY else f"requests {gpus} GPUs"
    assert wanted in found[BUDGET].message


FOREIGN = {
    "account in a patch": (workflow(IDLE, **patch(1, serviceAccountName="vision-a")), ACCOUNT),
    "account in a parameter": (
        workflow(
            IDLE,
            serviceAccountName="{{workflow.parameters.a}}",
            arguments={"parameters": [{"name": "a", "value": "vision-a"}]},
        ),
        ACCOUNT,
    ),
    "account of an object": (workflow(creates(account="vision-a")), ACCOUNT),
    "namespace of an object": (workflow(creates(namespace="vision")), NAMESPACE),
    "account in settings": (
        spark(sparkConf={"spark.kubernetes.authenticate.driver.serviceAccountName": "vision-a"}),
        ACCOUNT,
    ),
    "account of executors in settings": (
        spark(sparkConf={"spark.kubernetes.authenticate.executor.serviceAccountName": "vision-a"}),
        ACCOUNT,
    ),
    "namespace in settings": (spark(sparkConf={"spark.kubernetes.namespace": "vision"}), NAMESPACE),
    "object without a queue": (workflow(creates(labels={})), UNQUEUED),
    "patch without a queue": (workflow(IDLE, **patch(1), podMetadata={}), UNQUEUED),
    "executors without a queue": (spark({"instances": 1, **gpu(1)}, labels={}), UNQUEUED),
    "wrapped Notebook without a queue": (
        make(
            "workload.codeflare.dev/v1beta2",
            "AppWrapper",
            {
                "components": [
                    {
                        "podSets": [{"replicas": 1, "path": "template.spec.template"}],
                        "template": make("kubeflow.org/v1", "Notebook", {"template": {"spec": pod(2)}}),
                    }
                ]
            },
            {},
        ),
        UNQUEUED,
    ),
}


@pytest.mark.parametrize("way", FOREIGN)
def test_names_in_text_and_settings_are_found(tmp_path, way):
    obj, rule = FOREIGN[way]
    found = find(tmp_path, obj)

    assert {name: each.severity for name, each in found.items()} == {rule: "error"}


UNKNOWNS = {
    "list of a step": workflow(steps([step(withParam="{{steps.a.outputs.result}}")]), TRAIN),
    "sequence of a step": workflow(steps([step(withSequence={"count": "{{inputs.parameters.n}}"})]), TRAIN),
    "amount": workflow(IDLE, **patch("{{inputs.parameters.gpus}}")),
    "patch": workflow(IDLE, podSpecPatch="{{inputs.parameters.patch}}"),
    "object": workflow({"name": "a", "resource": {"action": "create", "manifest": "{{inputs.parameters.kind}}"}}),
    "conditions": workflow(steps([step(name=str(each), when="{{steps.a.outputs}} > 1") for each in (1, 2)]), TRAIN),
    "recursion": workflow(steps([step(), step("start", "again")]), TRAIN),
    "semaphore": workflow(
        steps([step(withSequence={"count": 20})]),
        {**TRAIN, "synchronization": {"semaphore": {"configMapKeyRef": {"name": "a", "key": "b"}}}},
    ),
}


@pytest.mark.parametrize("way", UNKNOWNS)
def test_accelerators_of_unknown_number_are_a_warning(tmp_path, way):
    found = find(tmp_path, UNKNOWNS[way])

    assert {name: each.severity for name, each in found.items()} == {UNKNOWN: "warning"}


GREEN = {
    "parallelism": workflow(steps([step(withSequence={"count": 100})]), TRAIN, parallelism=8),
    "parallelism of a template": workflow(steps([step(withSequence={"count": 100})], parallelism=8), TRAIN),
    "unknown list with parallelism": workflow(steps([step(withParam="{{steps.a.outputs}}")]), TRAIN, parallelism=8),
    "one after another": workflow(steps(*([step(name=f"s{each}")] for each in range(20))), TRAIN),
    "tasks in a chain": workflow(
        {"name": "a", "dag": {"tasks": [task(str(each), *([str(each - 1)] if each else [])) for each in range(20)]}},
        TRAIN,
    ),
    "mutex": workflow(
        steps([step(withSequence={"count": 20})]), {**TRAIN, "synchronization": {"mutex": {"name": "a"}}}
    ),
    "template that never runs": workflow(IDLE, {**TRAIN, "container": container(64)}),
    "no items": workflow(steps([step(withItems=[])]), TRAIN),
    "step that never runs": workflow(steps([step(withSequence={"count": 20}, when="false")]), TRAIN),
    "unknown list without accelerators": workflow(steps([step("idle", withParam="{{a}}")]), IDLE),
    "account in a parameter": workflow(
        IDLE,
        serviceAccountName="{{workflow.parameters.a}}",
        arguments={"parameters": [{"name": "a", "value": "nlp-a"}]},
    ),
    "object that is deleted": workflow(creates(gpus=64, action="delete")),
    "text that is no object": make("example.com/v1", "Page", {"manifest": "kind of: [", "podSpecPatch": 7}, {}),
    "odd types": workflow(
        {"name": "a", "steps": [7, [None, {"withSequence": {"count": []}, "template": []}]], "dag": {"tasks": [1]}},
        podSpecPatch="- 7",
        templateDefaults=[],
        hooks=[],
    ),
    "executors": spark({"instances": 8, **gpu(1)}),
    "field that overrides a setting": spark({"instances": 2, **gpu(1)}, sparkConf={"spark.executor.instances": "64"}),
    "Jobs of KEDA": make(
        "keda.sh/v1alpha1", "ScaledJob", {"maxReplicaCount": 8, "jobTargetRef": {"template": {"spec": pod()}}}
    ),
}


@pytest.mark.parametrize("way", GREEN)
def test_what_stays_within_the_limits_is_no_finding(tmp_path, way):
    assert not find(tmp_path, GREEN[way]).keys() - ({UNKNOWN} if way == "odd types" else set())


SCALERS = {
    "HorizontalPodAutoscaler": ("autoscaling/v2", {"maxReplicas": 10}, 10),
    "ScaledObject": ("keda.sh/v1alpha1", {"triggers": [], "maxReplicaCount": 10}, 10),
    "ScaledObject without a limit": ("keda.sh/v1alpha1", {"triggers": []}, 100),
}


@pytest.mark.parametrize("replicas", [0, 1])
@pytest.mark.parametrize("way", SCALERS)
def test_replicas_that_an_autoscaler_adds_count(tmp_path, way, replicas):
    version, spec, most = SCALERS[way]
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [container()]}}
    target = {"replicas": replicas, "selector": {"matchLabels": {"app": "a"}}, "template": template}
    deployment = make("apps/v1", "Deployment", target)
    reference = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}}
    scaler = make(version, way.split()[0], {**spec, **reference}, name="scaler")

    found = find(tmp_path, deployment, scaler)
    assert found.keys() == {BUDGET}
    assert f"requests {most} GPUs" in found[BUDGET].message
    assert f"{most} of 8 GPUs (exceeded)" in run_jobgen_text(tmp_path, "teams", "nlp").stdout
    # Another Deployment is not scaled.
    scaler["spec"]["scaleTargetRef"]["name"] = "b"
    assert not find(tmp_path, deployment, scaler)


def test_huge_workflows_are_counted_in_time(tmp_path):
    """A product of counts without end, and a chain of templates that is deeper than the stack."""
    chain = [
        steps([step(f"t{each + 1}", withSequence={"count": "9" * 50}), step(f"t{each + 1}", "again")], name=f"t{each}")
        for each in range(3000)
    ]
    found = find(tmp_path, workflow(*chain, {**TRAIN, "name": "t3000"}))

    assert found.keys() == {BUDGET}

"""Mistakes of the first hour in plain manifests: the line of the only finding, and its words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from linting import lint_paths

from jobgen.schema.resource_names import find_meant_resource, pluralize_kind
from jobgen.schema.shipped_kinds import list_shipped_kinds, name_plural

POD = """\
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: ml}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: main
          image: registry.example.com/a:1.0.0
          command: [python, a.py]
          resources: {limits: {cpu: 1, memory: 1Gi}}
"""
QUEUES = """\
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: a100}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: ml}
spec:
  namespaceSelector: {}
  resourceGroups:
    - coveredResources: [cpu, nvidia.com/gpu]
      flavors:
        - name: a100
          resources:
            - {name: cpu, nominalQuota: 64}
            - {name: nvidia.com/gpu, nominalQuota: 8}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: team, namespace: ml}
spec: {clusterQueue: ml}
"""
JOBS = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train, namespace: ml}
spec:
  replicatedJobs:
    - name: first
      template: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: "example.com/a:1"}]}}}}
    - name: second
      template: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: "example.com/a:1"}]}}}}
"""
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: hub, namespace: ml}\ndata:\n  token: plain-text\n"
RAY = """\
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: a, namespace: ml}
spec:
  rayVersion: 2.40
  headGroupSpec:
    rayStartParams: {}
    template: {spec: {containers: [{name: a, image: "rayproject/ray:2.40.0"}]}}
"""


def secret(kind: str, *keys: str) -> str:
    data = "".join(f"  {key}: e30=\n" for key in keys)
    head = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: hub, namespace: ml}}\ntype: kubernetes.io/{kind}\n"
    return f"{head}data:\n{data}"


def pytorch_job(version: str, kind: str = "PyTorchJob") -> str:
    template = POD.partition("  template:")[2].replace("\n", "\n      ").replace("Never", "OnFailure").rstrip()
    head = f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: train, namespace: ml}}\nspec:\n"
    return f"{head}  pytorchReplicaSpecs:\n    Master:\n      replicas: 1\n      template:{template}\n"


def pod(text: str) -> str:
    return POD + text


def container(text: str) -> str:
    return POD.replace("          resources:", f"{text}          resources:")


def change(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)


SERVER = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: server, namespace: ml}
spec:
  selector: {matchLabels: {app: server}}
  template:
    metadata: {labels: {app: server}}
    spec: {containers: [{name: main, image: "example.com/a:1.0.0"}]}
"""
SCALED = """---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: server, namespace: ml}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: server}
  maxReplicas: 4
  targetCPUUtilizationPercentage: 70
"""


def mounted(path: str) -> str:
    mount = f'          volumeMounts: [{{name: data, mountPath: "{path}"}}]\n'
    return container(mount) + "      volumes: [{name: data, emptyDir: {}}]\n"


CASES = {
    "strategy as text": (f"{SERVER}  strategy: Recreate\n", 9, "write `strategy: {type: Recreate}`"),
    "profile as text": (
        pod("      securityContext: {seccompProfile: RuntimeDefault}\n"),
        13,
        "write `seccompProfile: {type: RuntimeDefault}`",
    ),
    "target of autoscaling/v1": (
        SERVER + SCALED,
        16,
        "write `metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 70}}}",
    ),
    "mode of docker": (mounted("/data:ro"), 12, "write `mountPath: /data` and `readOnly: true`"),
    "label of docker": (mounted("/data:z"), 12, "write `mountPath: /data`"),
    "names of secrets": (pod("      imagePullSecrets: [regcred]\n"), 13, "write `- name: regcred`"),
    "name of a secret": (pod("      imagePullSecrets: regcred\n"), 13, "write `imagePullSecrets: [{name: regcred}]`"),
    "mapping of a secret": (pod("      imagePullSecrets: {name: regcred}\n"), 13, "[{name: regcred}]`"),
    "empty container": (change(POD, "containers:\n", "containers:\n        -\n"), 9, "this item is empty"),
    "empty variable": (container("          env:\n            -\n"), 13, "but a variable requires `name`; remove it"),
    "empty volume": (pod("      volumes:\n        -\n"), 14, "but a volume requires `name`; remove it, or fill it in"),
    "empty argument": (container("          args:\n            -\n            - b\n"), 13, "it is an empty argument"),
    "YES": (container("          env: [{name: A, value: YES}]\n"), 12, "is `YES`, which YAML reads as `true`"),
    "version": (RAY, 5, "`rayVersion` is `2.40`, which YAML reads as `2.4`, and must be a string; quote it"),
    "capabilities": (
        container("          securityContext: {capabilities: [IPC_LOCK]}\n"),
        12,
        "write `capabilities: {add: [IPC_LOCK]}`",
    ),
    "hook": (
        container("          lifecycle: {preStop: {exec: sleep 5}}\n"),
        12,
        'write `exec: {command: [sleep, "5"]}`',
    ),
    "plain secret": (SECRET, 5, "write plain text in `stringData`"),
    "file of docker": (secret("dockerconfigjson", "config.json"), 6, "key `.dockerconfigjson`; rename `config.json`"),
    "key without dot": (secret("dockerconfigjson", "dockerconfigjson"), 6, "rename `dockerconfigjson`"),
    "other file": (secret("dockerconfigjson", "token"), 5, "requires the key `.dockerconfigjson`; add it"),
    "key file": (secret("tls", "tls.crt", "tls-key"), 7, "requires the key `tls.key`; rename `tls-key`"),
    "only a certificate": (secret("tls", "tls.crt"), 5, "requires the key `tls.key`; add it"),
    "version of another kind": (
        pytorch_job("kubeflow.org/v2beta1"),
        1,
        "`PyTorchJob` has no version `v2beta1`; write `kubeflow.org/v1`",
    ),
    "old version": (
        pytorch_job("kubeflow.org/v1beta2"),
        1,
        "`kubeflow.org/v1beta2` is an old version of PyTorchJob; use `kubeflow.org/v1`",
    ),
    "first depends": (
        change(JOBS, "name: first\n", "name: first\n      dependsOn: [{name: second, status: Complete}]\n"),
        7,
        "put `second` before it",
    ),
    "resource without quota": (
        change(QUEUES, "            - {name: nvidia.com/gpu, nominalQuota: 8}\n", ""),
        13,
        "flavor `a100` has no quota for `nvidia.com/gpu`, which `coveredResources` lists; add it",
    ),
    "resource that is not covered": (
        change(QUEUES, "[cpu, nvidia.com/gpu]", "[cpu]"),
        16,
        "flavor `a100` has a quota for `nvidia.com/gpu`, which `coveredResources` does not list",
    ),
    "nobody to borrow from": (
        change(QUEUES, "nominalQuota: 8", "nominalQuota: 8, borrowingLimit: 4"),
        16,
        "`borrowingLimit` of `nvidia.com/gpu` needs a cohort to borrow from",
    ),
    "startup policy and dependencies": (
        change(
            JOBS, "spec:\n  replicated", "spec:\n  startupPolicy: {startupPolicyOrder: InOrder}\n  replicated"
        ).replace("name: second\n", "name: second\n      dependsOn: [{name: first, status: Complete}]\n"),
        10,
        "`dependsOn` and `startupPolicy` cannot be used together; remove one of them",
    ),
}


FIRST = JOBS.partition("    - name: second")[0].rpartition("first\n")[2]
SERVED = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: serve, namespace: ml}
spec:
  selector: {matchLabels: {app: serve}}
  template:
    metadata: {labels: {app: serve}}
    spec:
      containers:
        - name: main
          image: registry.example.com/a:1.0.0
          command: [python, serve.py]
          ports: [{name: http, containerPort: 8080}]
          resources: {requests: {cpu: 1, memory: 1Gi}, limits: {memory: 1Gi}}
---
apiVersion: v1
kind: Service
metadata: {name: serve, namespace: ml}
spec:
  selector: {app: serve}
  ports: [{port: 80, targetPort: http}]
"""
CLAIM = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: ml}
spec:
  accessModes: [ReadWriteMany]
  storage: 5Gi
"""
CASES |= {
    "name of a port": (change(SERVED, "targetPort: http", "targetPort: web"), 21, "write `http`, the name of its port"),
    "number of a port": (
        change(SERVED, "targetPort: http", "targetPort: 8000"),
        21,
        "declares port `8080`, not `8000`",
    ),
    "group of a kind": (change(SERVED, "apps/v1", "v1"), 1, "`Deployment` of `v1`; use `apps/v1`"),
    "selector without matchLabels": (
        change(SERVED, "selector: {matchLabels: {app: serve}}", "selector: {app: serve}"),
        5,
        "`app` is not a field of `selector`; it belongs in `matchLabels`",
    ),
    "selector of a Service": (
        change(SERVED, "  selector: {app: serve}", "  selector: {matchLabels: {app: serve}}"),
        20,
        "write the labels without `matchLabels:` above them",
    ),
    "storage of a claim": (CLAIM, 6, "`storage` is not a field of `spec`; it belongs in `resources.requests`"),
    "restart policy of the Job": (
        change(POD, "      restartPolicy: Never\n", "").replace("spec:\n  t", "spec:\n  restartPolicy: Never\n  t"),
        5,
        "it belongs in `spec.template.spec`",
    ),
    "volumes of a container": (
        container("          volumeMounts: [{name: d, mountPath: /d}]\n          volumes: [{name: d, emptyDir: {}}]\n"),
        13,
        "it belongs in `spec.template.spec`",
    ),
    "privileged pod": (
        change(POD, "      containers", "      securityContext: {privileged: true}\n      containers"),
        8,
        "it belongs in `securityContext` of a container",
    ),
    "pod without template": (
        JOBS.replace(FIRST, FIRST.replace("{spec: {template: {spec: ", "{spec: ").replace("}]}}}}", "}]}}"), 1),
        7,
        "`template.spec`, which is missing; write `template:` and `spec:` above them",
    ),
    "source of one key": (
        container("          envFrom: [{configMapKeyRef: {name: c}}]\n"),
        12,
        "write `configMapRef`, or `env` with `valueFrom` for one key",
    ),
}
BUILD = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [job.yaml]\n"
PATCH = "patches: [{target: {kind: Job}, patch: '[{op: %s, path: %s, value: 1}]'}]\n"
BUILDS = {
    "tag": ("images: [{name: registry.example.com/a, tag: 2.0.0}]\n", 4, "did you mean `newTag`?"),
    "operation": (PATCH % ("update", "/spec/backoffLimit"), 4, "not an operation of a JSON patch; write `replace`"),
    "slash": (
        PATCH % ("add", "/spec/template/spec/containers/0/resources/limits/nvidia.com/gpu"),
        4,
        "a `/` inside of a name is written `~1`, so write `nvidia.com~1gpu`",
    ),
}


@pytest.mark.parametrize("name", BUILDS)
def test_a_mistake_of_a_kustomization_is_one_finding(name, tmp_path):
    text, line, words = BUILDS[name]
    (tmp_path / "job.yaml").write_text(POD)
    (tmp_path / "kustomization.yaml").write_text(BUILD + text)
    (found,) = [each for each in lint_folder(tmp_path) if each["severity"] != "info"]
    assert (found["file"], found["line"], words in found["message"]) == ("kustomization.yaml", line, True), found


def test_a_misspelled_file_of_a_kustomization_is_named(tmp_path):
    (tmp_path / "train.yaml").write_text(POD)
    (tmp_path / "kustomization.yaml").write_text(BUILD.replace("job.yaml", "trian.yaml"))
    (found,) = [each for each in lint_folder(tmp_path) if each["file"] == "kustomization.yaml"]
    assert found["message"].endswith("did you mean `train.yaml`?")


def lint_folder(folder: Path) -> list[dict[str, Any]]:
    findings: list[dict[str, Any]] = json.loads(lint_paths(folder, (".",), (), format_="json").out)["findings"]
    return findings


def lint(folder: Path, text: str) -> list[dict[str, Any]]:
    (folder / "a.yaml").write_text(text)
    return [each for each in lint_folder(folder) if each["severity"] != "info"]


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_is_one_finding_with_its_line_and_words(name, tmp_path):
    text, line, words = CASES[name]
    (found,) = lint(tmp_path, text)
    assert (found["line"], words in found["message"]) == (line, True), found


@pytest.mark.parametrize(
    "text",
    [POD, SERVER, mounted("/data:1"), mounted("/data:root"), QUEUES, JOBS, SERVED, change(RAY, "2.40\n", '"2.40.0"\n')],
)
def test_the_texts_themselves_are_right(text, tmp_path):
    assert lint(tmp_path, text) == []


ROLE = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: ml}
rules:
  - apiGroups: [GROUPS]
    resources: [NAMES]
    verbs: [VERBS]
"""


def role(groups: str, names: str, verbs: str = "get") -> str:
    return ROLE.replace("GROUPS", groups).replace("NAMES", names).replace("VERBS", verbs)


VAIN_RIGHTS = {
    "version": (role("v1", "pods, pods/log"), 5, 'so it grants nothing; write `""`'),
    "version of deployments": (role("v1", "deployments"), 5, "a role names groups, so it grants nothing; write `apps`"),
    "group and version": (role("apps/v1", "deployments"), 5, "write `apps`"),
    "version of an operator": (role("kubeflow.org/v1", "pytorchjobs"), 5, "write `kubeflow.org`"),
    "version of an unknown operator": (role("example.com/v1alpha1", "things"), 5, "write `example.com`"),
    "core": (role("core", "pods"), 5, '`core` is not a group of the API server, so it grants nothing; write `""`'),
    "slip of a group": (role("app", "deployments"), 5, "write `apps`"),
    "singular": (role('""', "pod"), 6, "no request has the resource `pod`, so it grants nothing; write `pods`"),
    "kind": (role('""', "Pod, secrets"), 6, "write `pods`"),
    "short name": (role('"", apps', "svc"), 6, "write `services`"),
    "kind of an operator": (role("kubeflow.org", "PyTorchJob"), 6, "write `pytorchjobs`"),
    "operator in the core": (role('""', "PyTorchJob"), 6, "add it to `apiGroups`, and write `pytorchjobs`"),
    "slip of a resource": (role('""', "podss"), 6, "write `pods`"),
    "jobs in the core": (role('""', "pods, jobs"), 6, "`jobs` is of the group `batch`, which the rule does not name"),
    "pods in apps": (role("apps", "deployments, pods/log"), 6, '`pods/log` is of the group `""`'),
    "other group of a project": (role("scheduling.volcano.sh", "jobs"), 6, "of the group `batch.volcano.sh`"),
    "logs": (role('""', "pods/logs"), 6, "`pods` have no `logs`, so it grants nothing; write `pods/log`"),
    "plural of a verb": (role('""', "pods", "get, lists"), 7, "no request has the verb `lists`"),
    "read": (role('""', "pods", "read"), 7, "write `get, list, watch`"),
    "capitals": (role("batch", "jobs", "Get"), 7, "write `get`"),
}
RIGHTS = [
    role('"*"', '"*"', '"*"'),
    role('""', "pods, pods/log, pods/exec, nodes/metrics, serviceaccounts/token, namespaces/finalize"),
    role('"", apps, batch', "pods, deployments, jobs, cronjobs/status, endpoints, statefulsets/scale"),
    role("extensions, networking.k8s.io", "ingresses, deployments"),
    role("example.com", "pod, jobs, Things", "read"),
    role("kubeflow.org", "notebooks, profiles, pytorchjobs/status"),
    role("ray.io", "jobs, rayjobs"),
    role("metrics.k8s.io", "pods, nodes"),
    role("policy", "podsecuritypolicies, poddisruptionbudgets", "use"),
    role('""', "users, groups, serviceaccounts", "impersonate"),
    role("certificates.k8s.io", "certificatesigningrequests/approval, signers", "approve, sign"),
    role("batch.volcano.sh, scheduling.volcano.sh", "jobs, podgroups, queues"),
    role("resource.k8s.io", "resourceclaims, resourceclaims/status, resourceslices"),
    role("'${GROUP}'", "pod"),
]


@pytest.mark.parametrize("name", VAIN_RIGHTS)
def test_a_right_that_no_request_needs_is_a_warning(name, tmp_path):
    text, line, words = VAIN_RIGHTS[name]
    (tmp_path / "role.yaml").write_text(text)
    (found,) = lint_folder(tmp_path)

    assert (found["rule"], found["severity"], found["line"]) == ("unknown-resource", "warning", line), found
    assert words in found["message"]


@pytest.mark.parametrize("text", RIGHTS)
def test_rights_that_may_be_needed_are_not_judged(text, tmp_path):
    (tmp_path / "role.yaml").write_text(text)

    assert [each["message"] for each in lint_folder(tmp_path) if each["rule"] == "unknown-resource"] == []


def test_resources_are_named_as_the_api_server_names_them():
    known = [each for each in list_shipped_kinds() if each.source != "kubernetes"]
    assert known
    for each in known:
        assert pluralize_kind(each.name) == name_plural(each.api_version, each.name)
        assert (
            find_meant_resource(name_plural(each.api_version, each.name), [each.api_version.rpartition("/")[0]]) is None
        )
    for each in list_shipped_kinds():
        assert find_meant_resource(pluralize_kind(each.name), [each.api_version.rpartition("/")[0]]) is None


def test_a_home_folder_is_not_named_by_a_tilde(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(POD.replace("command:", "workingDir: ~/train\n          command:"))
    (found,) = [each for each in lint_folder(tmp_path) if each["rule"] == "foreign-path"]
    assert found["message"].endswith("; write the whole path, such as `/root/train`")


def test_a_beginning_of_two_values_means_neither(tmp_path: Path) -> None:
    rule = "\nspec:\n  failurePolicy: {rules: [{action: Restart}]}\n"
    (tmp_path / "job.yaml").write_text(JOBS.replace("\nspec:\n", rule, 1))
    messages = [each["message"] for each in lint_folder(tmp_path) if "`action`" in each["message"]]
    assert len(messages) == 1
    assert "did you mean" not in messages[0]


def test_environments_as_a_mapping_keep_all_names(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobgen.yaml").write_text("environments: {dev: {gpus: 1}, prod: {gpus: 8}}\n")
    (found,) = [
        each
        for each in json.loads(lint_paths(tmp_path, (), (), format_="json").out)["findings"]
        if each["rule"] == "wrong-type"
    ]
    assert found["message"].endswith("; write `environments: [dev, prod]`")

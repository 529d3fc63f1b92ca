"""What is wrong is never green: everything that a user named or wrote is checked, or reported as not checked."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

from jobgen.cli.run_lint import lint_paths

TODAY = "2025-01-31"


def lint_files(folder: Path, **files: str) -> list[tuple[str, str]]:
    """Write files, whose names have `__` for a slash, and return the rule and pointer of each finding."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    done = lint_paths(folder, (), (), format_="json", today=TODAY)
    return [(found["rule"], found["pointer"]) for found in json.loads(done.out)["findings"]]


# Pods: everything that holds a pod template gets the rules and the validation of pods.

POD_FAULTS = """
containers:
  - name: node
    image: registry.example.com/train:1.4.2
    securityContext: {privileged: true}
    resources: {requests: {nvidia.com/gpu: 2}, limits: {nvidia.com/gpu: 4}}
    volumeMounts: [{name: data, mountPath: /data}]
initContainers:
  - {name: fetch, image: "registry.example.com/fetch:latest"}
volumes: [{name: scratch, hostPath: {path: /mnt/scratch}}]
"""
POD_RULES = {
    "gpu-request-limit-mismatch": "containers/0/resources/requests/nvidia.com~1gpu",
    "host-path": "volumes/0/hostPath/path",
    "mutable-image-tag": "initContainers/0/image",
    "privileged-container": "containers/0/securityContext/privileged",
    "unknown-volume": "containers/0/volumeMounts/0/name",
}


def indent(text: str, width: int) -> str:
    return textwrap.indent(text, " " * width)


def runtime(kind: str, pod: str, more: str = "") -> str:
    namespace = ", namespace: ml" if kind == "TrainingRuntime" else ""
    return f"""\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: {kind}
metadata: {{name: torch-large{namespace}}}
spec:
  mlPolicy: {{numNodes: 2, torch: {{}}}}
  template:
    spec:
{indent(more, 6)}
      replicatedJobs:
        - name: node
          template:
            metadata: {{labels: {{trainer.kubeflow.org/trainjob-ancestor-step: trainer}}}}
            spec:
              template:
                spec:
{indent(pod, 18)}
"""


@pytest.mark.parametrize("kind", ["TrainingRuntime", "ClusterTrainingRuntime"])
def test_pods_of_runtimes_are_checked(kind, tmp_path):
    start = "/spec/template/spec/replicatedJobs/0/template/spec/template/spec"
    found = lint_files(tmp_path, jobs__runtime=runtime(kind, POD_FAULTS))
    assert {(rule, f"{start}/{rest}") for rule, rest in POD_RULES.items()} <= set(found)


def test_a_runtime_may_leave_the_rest_to_train_jobs(tmp_path):
    """A TrainJob sets the image, and JobSet adds the volumes of claims."""
    pod = "containers: [{name: node, volumeMounts: [{name: claim, mountPath: /data}]}]"
    claims = """
volumeClaimPolicies:
  - templates: [{metadata: {name: claim}, spec: {accessModes: [ReadWriteMany]}}]
"""
    assert lint_files(tmp_path, jobs__runtime=runtime("TrainingRuntime", pod, claims)) == []


PATCHES = {
    "2.0.0": ("podSpecOverrides", "{targetJobs: [{name: node}], volumes: [&volume]}", "volumes/0"),
    "2.1.0": ("podTemplateOverrides", "{targetJobs: [{name: node}], spec: {volumes: [&volume]}}", "spec/volumes/0"),
    "2.3.0": (
        "runtimePatches",
        "{manager: example.com/team, trainingRuntimeSpec: {template: {spec: {replicatedJobs: [&job]}}}}",
        "trainingRuntimeSpec/template/spec/replicatedJobs/0/template/spec/template/spec/volumes/0",
    ),
}


@pytest.mark.parametrize("version", PATCHES)
def test_patches_of_train_jobs_are_checked(version, tmp_path):
    field, patch, pointer = PATCHES[version]
    patch = patch.replace("&job", "{name: other, template: {spec: {template: {spec: {volumes: [&volume]}}}}}")
    patch = patch.replace("&volume", "{name: scratch, hostPath: {path: /mnt/scratch}}")
    job = f"""\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: bert, namespace: ml}}
spec:
  runtimeRef: {{name: torch-distributed}}
  {field}: [{patch}]
"""
    overlay = f"""\
apiVersion: jobgen.dev/v1
kind: Overlay
spec:
  cluster: {{platform: trainer, operators: {{trainer: {version}}}}}
"""
    found = lint_files(tmp_path, jobs__bert=job, overlays__prod__overlay=overlay)
    assert found == [("host-path", f"/spec/{field}/0/{pointer}/hostPath/path")]


OWN_KIND = """\
apiVersion: example.com/v1
kind: {kind}
plural: {kind}s
platform: kubeflow
operator: {{name: own-operator}}
pods: {pods}
spec: {{head: any, groups: any}}
"""
OWN_OBJECT = """\
apiVersion: example.com/v1
kind: {kind}
metadata: {{name: own, namespace: ml}}
spec:
  head:
    template:
      spec:
{head}
  groups:
    {key} first:
        template:
          spec:
{group}
"""


@pytest.mark.parametrize("key", ["-", ""], ids=["list", "mapping"])
def test_pods_of_own_kinds_are_checked(key, tmp_path):
    """Paths of a user's own kind: several, through a list or a mapping."""
    pods, step = "[spec.head.template, spec.groups.*.template]", "0/first" if key else "first"
    if key:
        pods = pods.replace("groups.*", "groups.*.first")
    files = {
        "schemas__example.com__own_v1": OWN_KIND.format(kind="Own", pods=pods),
        "jobs__own": OWN_OBJECT.format(kind="Own", key=key, head=indent(POD_FAULTS, 8), group=indent(POD_FAULTS, 12)),
    }
    found = set(lint_files(tmp_path, **files))
    for start in ("/spec/head/template/spec", f"/spec/groups/{step}/template/spec"):
        assert {(rule, f"{start}/{rest}") for rule, rest in POD_RULES.items()} <= found


def test_pods_outside_of_roles_are_checked(tmp_path):
    """A kind with roles that holds another pod template besides, without a JSON schema."""
    kind = """\
apiVersion: example.com/v1
kind: Own
plural: owns
platform: kubeflow
operator: {name: own-operator}
frameworks: {own: {}}
replicas: {at: spec.groups, shape: map}
roles: {worker: {spelling: Worker, replicas: 1}}
single: worker
container: node
nameSuffix: "-{role}-{index}"
pods: spec.monitor.template
"""
    pod = indent(POD_FAULTS, 8)
    job = f"""\
apiVersion: example.com/v1
kind: Own
metadata: {{name: own, namespace: ml}}
spec:
  monitor:
    template:
      spec:
{pod}
  groups:
    Worker:
      template:
        spec:
{indent(POD_FAULTS, 10)}
"""
    found = set(lint_files(tmp_path, **{"schemas__example.com__own_v1": kind, "jobs__own": job}))
    for start in ("/spec/monitor/template/spec", "/spec/groups/Worker/template/spec"):
        assert {(rule, f"{start}/{rest}") for rule, rest in POD_RULES.items()} <= found

"""Messages are true of the object at hand, on the line at fault, and one fault is one finding."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest
from transcripts import write_files

from jobgen.cli.run_lint import lint_paths

TODAY = "2025-01-31"


def lint_files(folder: Path, files: dict[str, str]) -> list[dict[str, Any]]:
    """Write files and return the findings of a lint, as JSON has them."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    done = lint_paths(folder, (), (), format_="json", today=TODAY)
    return list(json.loads(done.out)["findings"])


# Rules: what policies say, and where

POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: own}}
spec:
  matchConstraints:
    resourceRules:
      - {{apiGroups: [kubeflow.org], apiVersions: [v1], operations: [CREATE], resources: [pytorchjobs]}}
  variables:
    - {{name: roles, expression: object.spec.pytorchReplicaSpecs}}
    - name: gpus
      expression: >-
        variables.roles.map(role, int(variables.roles[role].replicas)
        * int(variables.roles[role].template.spec.containers[0].resources.limits['nvidia.com/gpu'])).sum()
    - name: containers
      expression: variables.roles.Worker.template.spec.containers
  validations:
    - expression: >-
        {expression}
      messageExpression: {message}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: own}}
spec: {{policyName: own, validationActions: [Deny]}}
"""
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert, namespace: ml}
spec:
  framework: pytorch
  image: docker.io/example/bert:1.4.2
  resources: {gpu: 8, memory: 64Gi}
  roles:
    master: {replicas: 1}
    worker: {replicas: 3}
  podTemplate:
    spec:
      containers:
        - name: logs
          image: registry.example.com/logs:2.0.1
"""


def find_policy(folder: Path, expression: str, message: str = "'wrong'", job: str = JOB) -> list[tuple[int, str]]:
    files = {"jobgen.yaml": "", "jobs/bert.yaml": job, "policies/own.yaml": ""}
    files["policies/own.yaml"] = POLICY.format(expression=expression, message=json.dumps(message))
    return [(found["line"], found["message"]) for found in lint_files(folder, files) if found["rule"] == "own"]


def test_message_expression_is_about_the_whole_object(tmp_path):
    found = find_policy(tmp_path, "variables.gpus <= 16", "string(variables.gpus) + ' GPUs'")
    assert {message for _, message in found} == {"32 GPUs"}


READS_IMAGE = [
    "variables.containers.all(c, c.image.startsWith('registry.example.com/'))",
    "variables.containers.filter(c, !c.image.startsWith('registry.example.com/')).size() == 0",
    "variables.containers.map(c, c.image).all(i, i.startsWith('registry.example.com/'))",
    "!variables.containers.exists(c, c.image.contains('docker.io'))",
    "!variables.containers.exists_one(c, c.image.contains('docker.io'))",
    "variables.roles.all(r, variables.roles[r].template.spec.containers.all(c, c.image.startsWith('registry')))",
    "variables.containers.all(c, c.name != 'x' && (c.image.startsWith('a') || c.image.startsWith('r')))",
]


@pytest.mark.parametrize("expression", READS_IMAGE)
def test_a_macro_blames_the_value_that_the_failing_element_reads(expression, tmp_path):
    found = find_policy(tmp_path, expression)
    assert {line for line, _ in found} == {6}  # image:


def test_a_macro_blames_the_second_element(tmp_path):
    job = JOB.replace("docker.io", "registry.example.com").replace("registry.example.com/logs", "quay.io/logs")
    found = find_policy(tmp_path, READS_IMAGE[0], job=job)
    assert {line for line, _ in found} == {15}


def test_an_element_that_lacks_a_field_is_blamed_where_its_author_wrote_it(tmp_path):
    """The name of the main container comes from the kind description, which is shown as `framework:`."""
    found = find_policy(tmp_path, "variables.containers.all(c, has(c.livenessProbe))")
    assert {line for line, _ in found} == {6, 14}


# Specs: fields of other tools and of other places in a job or an overlay.

SPEC = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert, namespace: ml}
spec:
  framework: pytorch
  image: registry.example.com/bert:1.4.2
  resources: {cpu: 4, memory: 16Gi}
"""


def lint_spec(folder: Path, job: str = SPEC, overlay: str = "") -> list[dict[str, Any]]:
    """The errors and warnings of a repository with one job and one overlay."""
    write_files(folder, {"jobgen.yaml": b"{}\n", "jobs/a.yaml": job.encode()})
    if overlay:
        head = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec:\n"
        write_files(folder, {"overlays/prod/overlay.yaml": (head + overlay).encode()})
    report = json.loads(lint_paths(folder, (), (), format_="json").out)
    return [finding for finding in report["findings"] if finding["severity"] != "info"]


@pytest.mark.parametrize(
    ("field", "place"),
    [
        ("initContainers: []", "`podTemplate.spec.initContainers`"),
        ("hostNetwork: true", "`podTemplate.spec.hostNetwork`"),
        ("livenessProbe: {}", "`podTemplate.spec.containers[].livenessProbe`"),
        ("gpus: 4", "`resources.gpu`"),
        ("nprocPerNode: 4", "`pytorch.nprocPerNode`"),
        ("elasticPolicy: {}", "`pytorch.elasticPolicy`"),
        ("slotsPerWorker: 4", "`mpi.slotsPerWorker`"),
        ("tfReplicaSpecs: {}", "`roles.<role>`"),
        ("pytorchReplicaSpecs: {}", "`manifest.spec.pytorchReplicaSpecs`"),
        ("ttlSecondsAfterFinished: 4", "`runPolicy.ttlSecondsAfterFinished`"),
        ("backoffLimit: 4", "`runPolicy.backoffLimit`"),
        ("activeDeadlineSeconds: 4", "`runPolicy.activeDeadlineSeconds`"),
        ("cleanPodPolicy: All", "`runPolicy.cleanPodPolicy`"),
        ("sidecars: []", "`podTemplate.spec.containers`"),
        ("volumeMounts: []", "`volumes.<name>.mountPath`"),
        ("values: {}", "`defaults` and `patches`"),
        ("roles: {worker: {gpus: 4}}", "`resources.gpu`"),
        ("roles: {worker: {queue: a}}", "`queue` of the job"),
        ("roles: {worker: {hostIPC: true}}", "`podTemplate.spec.hostIPC`"),
        ("replcias: 4", "did you mean `replicas`?"),
    ],
)
def test_unknown_field_of_a_job_gets_its_place(tmp_path, field, place):
    [finding] = lint_spec(tmp_path, SPEC + f"  {field}\n")

    assert finding["rule"] == "unknown-field"
    assert place in finding["message"]


@pytest.mark.parametrize(
    ("field", "place"),
    [
        ("bases: [../base]", "`extends`"),
        ("images: [{name: bert}]", "`merge: {image: …}` in `patches`"),
        ("resources: [job.yaml]", "all files under jobs/ are read"),
        ("resources: {gpu: 1}", "`defaults.resources`"),
        ("patchesStrategicMerge: []", "`merge` or `manifest` in `patches`"),
        ("namePrefix: prod-", "`namespace`"),
        ("commonLabels: {}", "`defaults.labels`"),
        ("values: {}", "`defaults` and `patches`"),
        ("platform: trainer", "`cluster.platform`"),
        ("tolerations: []", "`defaults.tolerations`"),
        ("backoffLimit: 3", "`defaults.runPolicy.backoffLimit`"),
        ("initContainers: []", "`defaults.podTemplate.spec.initContainers`"),
        ("patches: [{target: {kind: PyTorchJob}, merge: {}}]", "`match`"),
        ("patches: [{patch: x}]", "`merge`, `manifest` or `jsonPatch`"),
        ("patches: [{env: {}}]", "`merge.env`"),
        ("defaults: {backoffLimit: 3}", "`runPolicy.backoffLimit`"),
    ],
)
def test_unknown_field_of_an_overlay_gets_its_place(tmp_path, field, place):
    [finding] = lint_spec(tmp_path, overlay=f"  {field}\n")

    assert finding["rule"] == "unknown-field"
    assert place in finding["message"]


def test_misplaced_fields_of_a_job_are_moved(tmp_path):
    lint_spec(tmp_path, SPEC.replace("memory: 16Gi", "memory: 16Gi, gpus: 1") + "  backoffLimit: 3\n")

    lint_paths(tmp_path, (), (), format_="json", fix="safe")

    fixed = (tmp_path / "jobs/a.yaml").read_text()
    assert "runPolicy: {backoffLimit: 3}" in fixed
    assert "memory: 16Gi, gpu: 1}" in fixed

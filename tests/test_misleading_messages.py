"""Messages are true of the object at hand, on the line at fault, and one fault is one finding."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

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

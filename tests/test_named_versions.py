"""What is said of an apiVersion, a source of variables, or an amount names what is right, and nothing else."""

import pytest

from jobgen import lint

JOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: bert, namespace: ml}
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template:
        spec:
          containers:
            - name: pytorch
              image: registry.example.com/nlp/bert:1.4.2
              command: [torchrun, train.py]
              env: []
              resources:
                requests: {cpu: 8, memory: 64Gi}
                limits: {cpu: 8, memory: 64Gi}
"""
ANSWERS = {
    ("kubeflow.org/v1", "kubeflow.org"): "`kubeflow.org` is a group without a version; use `kubeflow.org/v1`",
    ("kubeflow.org/v1", "v1"): "Kubernetes has no kind `PyTorchJob` of `v1`; use `kubeflow.org/v1`",
    ("metadata:", "Metadata:"): "the object has no `metadata`; write `metadata` in place of `Metadata`",
    ("env: []", "env: [{name: A, valueFrom: {configMapRef: {name: a, key: b}}}]"): (
        "`configMapRef` is not a field of `valueFrom`; did you mean `configMapKeyRef`?"
    ),
    ("env: []", "env: [{name: A, value: {configMapKeyRef: {name: a, key: b}}}]"): (
        "`value` is a mapping, and must be a string; write `valueFrom`"
    ),
    ("env: []", "envFrom: [{name: a}]"): (
        "`name` is not a field of `envFrom[0]`; write `configMapRef: {name: …}`, or `secretRef: {name: …}`"
    ),
    ("limits: {cpu: 8,", "limits: {cpu: 8m,"): (
        "the request for `cpu` is `8`, more than its limit `8m`; write one unit in both, such as `8`"
    ),
    ("limits: {cpu: 8, memory: 64Gi", "limits: {cpu: 8, memory: 64G"): (
        "the request for `memory` is `64Gi`, more than its limit `64G`; write one unit in both, such as `64Gi`"
    ),
    ("memory: 64Gi}\n                limits", "memory: 65Gi}\n                limits"): (
        "the request for `memory` is `65Gi`, more than its limit `64Gi`; lower the request"
    ),
}


@pytest.mark.parametrize(("right", "wrong"), ANSWERS, ids=[wrong[:40] for _, wrong in ANSWERS])
def test_the_answer_names_what_is_right(right, wrong, tmp_path):
    assert right in JOB
    (tmp_path / "job.yaml").write_text(JOB.replace(right, wrong, 1))

    [found] = [each for each in lint(tmp_path).findings if each.severity.value == "error"]

    assert found.message == ANSWERS[right, wrong]


def test_a_group_of_kubernetes_without_its_version(tmp_path):
    pod = "{spec: {restartPolicy: Never, containers: [{name: a, image: a.example/b:1.0.0}]}}"
    text = f"apiVersion: batch\nkind: Job\nmetadata: {{name: a, namespace: ml}}\nspec: {{template: {pod}}}\n"
    (tmp_path / "job.yaml").write_text(text)

    [found] = [each for each in lint(tmp_path).findings if each.severity.value == "error"]

    assert found.message == "`batch` is a group without a version; use `batch/v1`"

"""What a message says to write in a manifest is a value that the field has."""

import pytest

from jobgen import lint

JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: prep, namespace: ml}
spec:
  template:
    spec:
      restartPolicy: Never
      tolerations: []
      volumes: [{name: scratch, emptyDir: {}}]
      containers:
        - name: main
          image: registry.example.com/prep:1.0.0
          imagePullPolicy: Always
          command: [python, prep.py]
          volumeMounts: [{name: scratch, mountPath: /scratch}]
          resources: {requests: {cpu: 1, memory: 1Gi}, limits: {memory: 1Gi}}
"""
FORMS = {
    ("restartPolicy: Never", "restartPolicy: no"): "; write `Never`",
    ("restartPolicy: Never", "restartPolicy: 3"): "; write `Always`, `OnFailure` or `Never`",
    ("imagePullPolicy: Always", "imagePullPolicy: true"): "; write `Always`, `IfNotPresent` or `Never`",
    ("emptyDir: {}", "emptyDir: sizeLimit=100Gi"): "; write `emptyDir: {sizeLimit: 100Gi}`",
    ("emptyDir: {}", "emptyDir: 100Gi"): "; write `emptyDir: {sizeLimit: 100Gi}`",
    ("emptyDir: {}", "emptyDir: memory"): "; write `emptyDir: {medium: Memory}`",
    ("tolerations: []", "tolerations: ['gpu=a:NoSchedule']"): "; write `- {key: gpu, value: a, effect: NoSchedule}`",
    ("tolerations: []", "tolerations: ['gpu:NoSchedule']"): (
        "; write `- {key: gpu, operator: Exists, effect: NoSchedule}`"
    ),
}


@pytest.mark.parametrize(("right", "wrong"), FORMS)
def test_a_value_of_a_wrong_type_is_shown_as_the_field_has_it(right, wrong, tmp_path):
    (tmp_path / "job.yaml").write_text(JOB.replace(right, wrong))

    [found] = [each for each in lint(tmp_path).findings if each.severity.value == "error"]

    assert found.rule == "wrong-type"
    assert found.message.endswith(FORMS[right, wrong])


def test_quotes_are_no_repair_of_a_field_with_few_values(tmp_path):
    (tmp_path / "job.yaml").write_text(JOB.replace("restartPolicy: Never", "restartPolicy: no"))

    [found] = [each for each in lint(tmp_path).findings if each.severity.value == "error"]

    assert found.fix is None

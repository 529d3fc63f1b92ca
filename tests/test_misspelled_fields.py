"""A misspelled field has one finding: nothing asks for the field that is there under the wrong name."""

import pytest

from jobgen import lint

JOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: bert, namespace: ml}
spec:
  runPolicy: {ttlSecondsAfterFinished: 3600}
  pytorchReplicaSpecs:
    Master: &role
      replicas: 1
      restartPolicy: OnFailure
      template:
        spec:
          priorityClassName: high
          containers:
            - name: pytorch
              image: registry.example.com/nlp/bert:1.4.2
              command: [torchrun, train.py]
              ports:
                - name: metrics
                  containerPort: 8080
              resources:
                requests: {cpu: 8, memory: 64Gi}
                limits: {cpu: 8, memory: 64Gi, nvidia.com/gpu: 4}
              volumeMounts:
                - name: shm
                  mountPath: /dev/shm
          volumes:
            - name: shm
              emptyDir: {medium: Memory, sizeLimit: 16Gi}
    Worker:
      replicas: 1
      restartPolicy: OnFailure
      template:
        spec:
          priorityClassName: high
          containers:
            - name: pytorch
              image: registry.example.com/nlp/bert:1.4.2
              command: [torchrun, train.py]
              resources:
                requests: {cpu: 8, memory: 64Gi}
                limits: {cpu: 8, memory: 64Gi, nvidia.com/gpu: 4}
              volumeMounts:
                - name: shm
                  mountPath: /dev/shm
          volumes:
            - name: shm
              emptyDir: {medium: Memory, sizeLimit: 16Gi}
""".replace(" &role", "")
INDEXED = """\
apiVersion: batch/v1
kind: Job
metadata: {name: prep, namespace: ml}
spec:
  completionMode: Indexed
  completions: 8
  parallelism: 8
  backoffLimitPerIndex: 1
  maxFailedIndexes: 2
  podFailurePolicy:
    rules:
      - action: FailIndex
        onExitCodes: {containerName: main, operator: In, values: [42]}
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: main
          image: registry.example.com/prep:1.0.0
          command: [python, prep.py, --shard=$(JOB_COMPLETION_INDEX)]
          resources: {requests: {cpu: 1, memory: 1Gi}, limits: {memory: 1Gi}}
"""
SLIPS = {
    JOB: (
        ("replicas: 1", "replica: 1"),
        ("template:", "templte:"),
        ("priorityClassName: high", "priorityClass: high"),
        ("resources:", "resource:"),
        ("volumeMounts:", "volumeMount:"),
        ("- name: shm\n                  mount", "- nmae: shm\n                  mount"),
        ("- name: shm\n              empty", "- names: shm\n              empty"),
        ("- name: metrics", "- nmae: metrics"),
        ("containers:", "container:"),
        ("volumes:", "volume:"),
    ),
    INDEXED: (
        ("completionMode:", "completionMod:"),
        ("backoffLimitPerIndex:", "backoffLimitPerIdx:"),
        ("onExitCodes:", "onExitCode:"),
        ("  template:", "  tempalte:"),
        ("- name: main", "- nmae: main"),
    ),
}
CASES = [(text, right, wrong) for text, slips in SLIPS.items() for right, wrong in slips]


def problems(folder, text):
    (folder / "job.yaml").write_text(text)
    return [each for each in lint(folder).findings if each.severity.value != "info"]


@pytest.mark.parametrize("text", SLIPS)
def test_the_manifests_are_right(text, tmp_path):
    assert problems(tmp_path, text) == []


@pytest.mark.parametrize(("text", "right", "wrong"), CASES, ids=[wrong.strip() for _, _, wrong in CASES])
def test_a_misspelled_field_has_one_finding(text, right, wrong, tmp_path):
    assert right in text

    [found] = problems(tmp_path, text.replace(right, wrong, 1))

    assert found.rule == "unknown-field"


def test_another_fault_of_the_object_is_reported_too(tmp_path):
    text = JOB.replace("volumeMounts:", "volumeMount:", 1).replace("ttlSecondsAfterFinished: 3600", "backoffLimit: x")

    assert {each.rule for each in problems(tmp_path, text)} == {"unknown-field", "wrong-type"}


SCRIPT = "; write `command: [bash, -c]`, and the script as the only item of `args`, below `- |`"
COMMANDS = {
    "torchrun --node_rank=$RANK --master_port=$MASTER_PORT t.py": (
        '; write `command: [torchrun, "--node_rank=$(RANK)", "--master_port=$(MASTER_PORT)", t.py]`'
    ),
    "torchrun --node_rank=${RANK} t.py": '; write `command: [torchrun, "--node_rank=$(RANK)", t.py]`',
    "torchrun --master_port=$(MASTER_PORT) t.py": '; write `command: [torchrun, "--master_port=$(MASTER_PORT)", t.py]`',
    "python t.py --bucket gs://MY_BUCKET": "; write `command: [python, t.py, --bucket, gs://MY_BUCKET]`",
    "python t.py --out ${OUT:-/tmp}": SCRIPT,
    "python t.py --home $HOME": SCRIPT,
    "python t.py --name 'a b'": '; write `command: [python, t.py, --name, "a b"]`',
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_in_one_text_is_no_template(command, tmp_path):
    text = JOB.replace("command: [torchrun, train.py]", f'command: "{command}"', 1)

    [found] = problems(tmp_path, text)

    assert found.rule == "wrong-type"
    assert found.message.endswith(COMMANDS[command])


def test_a_misspelled_field_hides_nothing_of_another_file(tmp_path):
    """Copies of a job for two clusters have one name, and each has its own faults."""
    (tmp_path / "a.yaml").write_text(JOB.replace("volumeMounts:", "volumeMount:", 1))
    (tmp_path / "b.yaml").write_text(f"{JOB}            - name: scratch\n              emptyDir: {{}}\n")

    found = {(each.location.file, each.rule) for each in lint(tmp_path).findings}

    assert {("a.yaml", "unknown-field"), ("b.yaml", "unmounted-volume")} <= found

"""Mistakes of people in whole jobs: one finding for one, and what it says to write is accepted."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from lintfiles import PYTORCH, lint_files

import jobgen
from jobgen.cli.starter import PLATFORMS, make_starter

TRAIN_JOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: mnist, namespace: ml}
spec:
  runtimeRef: {name: torch-distributed}
  trainer:
    image: registry.example.com/mnist:1.0
    command: [torchrun, mnist.py]
    numNodes: 2
    env: [{name: A, value: a}]
    resourcesPerNode:
      requests: {cpu: "8", memory: 64Gi, nvidia.com/gpu: 4}
      limits: {cpu: "8", memory: 64Gi, nvidia.com/gpu: 4}
"""
POD_FIELDS = """\
tolerations: [{key: nvidia.com/gpu, operator: Exists}]
nodeSelector: {pool: h100}
containers: [{name: node, volumeMounts: [{name: data, mountPath: /data}]}]
"""
BROKEN_POD_FIELDS = """\
tolerations: [{key: nvidia.com/gpu, operator: Exist}]
nodeSelector: {pool: h 100}
volumes: [{name: My_Data, emptyDir: {}, secret: {secretName: a}}]
containers: [{name: node, volumeMounts: [{name: data, mountPath: /data}]}]
"""
RUNTIME_PATCH = """\
  runtimePatches:
  - manager: example.com/me
    trainingRuntimeSpec:
      template:
        spec:
          replicatedJobs:
          - name: node
            template: {spec: {template: {spec: {
"""
PLACES = {
    "2.0.0": ("  podSpecOverrides:\n  - targetJobs: [{name: node}]\n", 4),
    "2.1.0": ("  podTemplateOverrides:\n  - targetJobs: [{name: node}]\n    spec:\n", 6),
    "2.2.0": (RUNTIME_PATCH, 0),
}


def list_rules(folder: Path, files: dict[str, str]) -> list[tuple[str, str]]:
    return [(each["severity"], each["rule"]) for each in lint_files(folder, files)]


def with_trainer(release: str) -> dict[str, str]:
    overlay = "apiVersion: jobgen.dev/v1\nkind: Overlay\nmetadata: {name: prod}\n"
    return {"overlays/prod/overlay.yaml": f"{overlay}spec: {{cluster: {{operators: {{trainer: {release}}}}}}}\n"}


@pytest.mark.parametrize("release", PLACES)
def test_what_is_invalid_in_a_patch_of_a_train_job_is_invalid_in_its_pods(tmp_path, release):
    place, indent = PLACES[release]

    def write(fields: str) -> dict[str, str]:
        text = textwrap.indent(fields, " " * indent)
        if not indent:
            text = ",\n".join(textwrap.indent(fields, " " * 14).splitlines()) + "}}}}\n"
        return {"jobs/mnist.yaml": TRAIN_JOB + place + text, **with_trainer(release)}

    assert list_rules(tmp_path, write(POD_FIELDS)) == []
    assert sorted(list_rules(tmp_path, write(BROKEN_POD_FIELDS))) == [
        ("error", "conflicting-volume-source"),
        ("error", "invalid-label"),
        ("error", "invalid-volume-name"),
        ("error", "unsupported-value"),
    ]


def test_resources_of_a_train_job_replace_those_of_the_runtime(tmp_path):
    job = TRAIN_JOB.replace('{cpu: "8", ', '{cpu: "16", ', 1).replace(", nvidia.com/gpu: 4}\n", "}\n")
    job = job.replace("64Gi}", "64Gi, nvidia.com/gpu: 4}", 1).replace("name: A,", "name: A=B,")
    assert sorted(list_rules(tmp_path, {"jobs/mnist.yaml": job, **with_trainer("2.2.0")})) == [
        ("error", "invalid-env-name"),
        ("error", "missing-resource-limit"),
        ("error", "request-exceeds-limit"),
    ]


PYTORCH_JOB = f"""\
{PYTORCH}\
              command: [torchrun, train.py]
              resources:
                requests: {{cpu: 8, memory: 32Gi, nvidia.com/gpu: 2}}
                limits: {{cpu: 8, memory: 32Gi, nvidia.com/gpu: 2}}
"""


def list_messages(folder: Path, text: str, **files: str) -> list[str]:
    return [each["message"] for each in lint_files(folder, {"jobs/job.yaml": text, **files})]


@pytest.mark.parametrize("line", ["requests", "limits"])
def test_limit_and_request_of_one_device_by_two_names_are_one_finding_with_a_rename(tmp_path, line):
    before, mark, behind = PYTORCH_JOB.partition(f"{line}: ")
    text = before + mark + behind.replace("nvidia.com/gpu:", "nvidia.com/gpus:", 1)
    [found] = [each for each in lint_files(tmp_path, {"jobs/job.yaml": text}) if each["rule"] != "missing-shm"]
    assert (found["severity"], found["rule"]) == ("error", "missing-resource-limit")
    assert found["message"].endswith("`nvidia.com/gpus` is another resource; did you mean `nvidia.com/gpu`?")
    assert (found["fixable"], found["column"]) == (
        True,
        text.splitlines()[found["line"] - 1].index("nvidia.com/gpus") + 1,
    )


def test_a_resource_without_a_domain_is_not_one_that_is_there(tmp_path):
    text = PYTORCH_JOB.replace(" nvidia.com/gpu: 2}", " gpu: 2}", 1)
    assert list_messages(tmp_path, text)[0] == (
        "containers cannot request the resource `gpu`; did you mean `nvidia.com/gpu`?"
    )
    text = PYTORCH_JOB.replace("cpu: 8, ", "cpu: 8, cpus: 8, ", 1)
    assert list_messages(tmp_path, text)[0].startswith("containers cannot request the resource `cpus`; use a standard")


@pytest.mark.parametrize(("release", "meant"), [("2.1.0", "gpu"), ("2.2.0", "4")])
def test_processes_of_a_train_job_are_what_its_release_accepts(tmp_path, release, meant):
    job = TRAIN_JOB.replace("numNodes: 2", "numNodes: 2\n    numProcPerNode: 8")
    [found] = lint_files(tmp_path, {"jobs/mnist.yaml": job, **with_trainer(release)})
    assert found["message"].endswith(f"; write `{meant}`")
    job = job.replace("numProcPerNode: 8", f"numProcPerNode: {meant}")
    assert lint_files(tmp_path, {"jobs/mnist.yaml": job, **with_trainer(release)}) == []


@pytest.mark.parametrize(
    ("item", "advice"),
    [("-m torch.distributed.run", "write two items"), ("--lr 0.1", "write two items, or `--lr=0.1`")],
)
def test_only_options_with_two_dashes_have_their_value_behind_an_equals_sign(tmp_path, item, advice):
    text = PYTORCH_JOB.replace("[torchrun, train.py]", f'[python, train.py, "{item}"]')
    messages = list_messages(tmp_path, text)
    assert f"`{item}` is one argument, with its space; {advice}" in messages


def test_a_field_is_meant_by_what_it_contains(tmp_path):
    job = """\
        apiVersion: ray.io/v1
        kind: RayJob
        metadata: {name: tune, namespace: ml}
        spec:
          entrypoint: python tune.py
          rayClusterConfig:
            rayVersion: 2.46.0
            headGroupSpec:
              template:
                spec:
                  containers:
                  - name: ray-head
                    image: registry.example.com/ray:2.46.0
                    resources: {requests: {cpu: 4, memory: 16Gi}, limits: {memory: 16Gi}}
        """
    [found] = list_messages(tmp_path, job)
    assert found == "`rayClusterConfig` is not a field of `spec`; did you mean `rayClusterSpec`?"


JOB_SET = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: llama, namespace: ml}
spec:
  replicatedJobs:
  - name: trainer
    template:
      spec:
        parallelism: 2
        completions: 2
        template:
          spec:
            restartPolicy: Never
            containers:
            - name: main
              image: registry.example.com/llama:1.4.2
              command: [torchrun, --nnodes=2, --master_addr=HOST, --node_rank=$(JOB_COMPLETION_INDEX), train.py]
"""


def test_fields_of_a_missing_level_are_one_finding(tmp_path):
    job = JOB_SET.replace("HOST", "llama-trainer-0-0.llama").replace(
        "      spec:\n        parallelism", "        parallelism"
    )
    [found] = list_messages(tmp_path, job)
    assert found.startswith("`parallelism` and 2 other fields belong in `spec`, which is missing; write `spec:` above")


@pytest.mark.parametrize(
    ("host", "meant"),
    [
        ("llama-trainer-0-0.llama", ""),
        ("llama-trainer-0-1.llama.ml.svc.cluster.local", ""),
        ("other.example.com", ""),
        ("llama-trainer-0.llama", "llama-trainer-0-0.llama"),
        ("llama-trainer-0-2.llama", "llama-trainer-0-0.llama"),
        ("llama-worker-0-0.llama.ml.svc", "llama-trainer-0-0.llama"),
    ],
)
def test_pods_of_a_job_set_meet_at_one_of_them(tmp_path, host, meant):
    messages = list_messages(tmp_path, JOB_SET.replace("HOST", host))
    assert [each.rpartition("write ")[2] for each in messages] == [f"`{meant}`"] * bool(meant)


def test_a_role_in_another_role_belongs_one_level_to_the_left(tmp_path):
    job = """\
        apiVersion: jobgen.dev/v1
        kind: TrainingJob
        metadata: {name: bert, namespace: ml}
        spec:
          framework: pytorch
          image: registry.example.com/bert:1.4.2
          roles:
            master:
              worker: {replicas: 1}
        """
    assert list_messages(tmp_path, job) == [
        "`worker` is not a field of a role; it is a role of its own; write it one level to the left"
    ]


def test_a_role_that_a_patch_adds_by_mistake_changes_no_total(tmp_path):
    job = """\
        apiVersion: jobgen.dev/v1
        kind: TrainingJob
        metadata: {name: bert, namespace: ml}
        spec:
          framework: pytorch
          image: registry.example.com/bert:1.4.2
          replicas: 3
        """
    overlay = """\
        apiVersion: jobgen.dev/v1
        kind: Overlay
        metadata: {name: prod}
        spec: {patches: [{manifest: {spec: {pytorchReplicaSpecs: {worker: {replicas: 9}}}}}]}
        """
    found = list_messages(tmp_path, job, **{"overlays/prod/overlay.yaml": overlay})
    assert [each.partition("; ")[0] for each in found] == ["PyTorchJob has no role `worker`"]


def test_a_script_whose_lines_are_joined_is_one_error(tmp_path):
    objects = """\
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: scripts, namespace: ml}
        data:
          run.sh:
            set -e
            if [ -f a ]; then
              echo b
            fi
        ---
        apiVersion: batch/v1
        kind: Job
        metadata: {name: shards, namespace: ml}
        spec:
          template:
            spec:
              restartPolicy: Never
              containers:
              - name: main
                image: registry.example.com/prepare:1.4.2
                command: [bash, /scripts/run.sh]
                resources: {requests: {cpu: 4, memory: 16Gi}, limits: {memory: 16Gi}}
                volumeMounts: [{name: scripts, mountPath: /scripts}]
              volumes: [{name: scripts, configMap: {name: scripts}}]
        """
    [found] = lint_files(tmp_path, {"jobs/job.yaml": objects})
    assert (found["severity"], found["rule"], found["line"]) == ("error", "folded-item", 5)


@pytest.mark.parametrize(
    ("script", "line"),
    [
        ("python a.py &\necho started", 1),
        ("python a.py &\npid=$!\nexit 0", 1),
        ("python a.py &\nwait\necho started", 0),
        ("python a.py &\npython b.py\necho done", 0),
    ],
)
def test_a_script_ends_with_what_nothing_waits_for(tmp_path, script, line):
    job = PYTORCH_JOB.replace("[torchrun, train.py]", "\n              - sh\n              - -c\n              - |\n")
    job = job.replace("- |\n", "- |\n" + textwrap.indent(script, " " * 16))
    found = [each for each in list_messages(tmp_path, job) if "nothing waits" in each]
    assert [each.partition(",")[0] for each in found] == [f"in line {line} of the script"] * bool(line)


DEEPSPEED = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: chat, namespace: ml}
spec:
  framework: deepspeed
  platform: tensorstack
  image: registry.example.com/chat:1.4.2
  replicas: 2
  command: COMMAND
  deepspeed: {slotsPerWorker: 8}
  resources: {cpu: 32, memory: 256Gi, gpu: 8}
"""


def test_options_of_a_launcher_that_is_replaced_are_not_left_out_silently(tmp_path):
    command = "[torchrun, --nproc_per_node=2, --max_restarts=3, main.py]"
    found = list_messages(tmp_path, DEEPSPEED.replace("COMMAND", command))
    start = "is an option of `torchrun`, but a DeepSpeedJob starts the script with `deepspeed`"
    assert found == [
        f"`--nproc_per_node` {start}; remove it, or set `deepspeed.slotsPerWorker` to this number",
        f"`--max_restarts` {start}; remove it, or write `deepspeed` and its options",
    ]
    kept = "[torchrun, --nnodes, '2', --nproc-per-node, '8', main.py]"
    for command in ("[torchrun, main.py]", kept, "[/opt/bin/deepspeed, --force_multi, main.py]"):
        assert list_messages(tmp_path, DEEPSPEED.replace("COMMAND", command)) == []


def test_options_of_a_command_are_added_to_those_of_the_config(tmp_path):
    job = DEEPSPEED.replace("COMMAND", "[/opt/bin/deepspeed, --force_multi, main.py]")
    job = job.replace("slotsPerWorker: 8", "slotsPerWorker: 8, config: {otherArgs: [--no_ssh_check]}")
    (tmp_path / "jobgen.yaml").write_text("")
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/job.yaml").write_text(job)
    [rendered] = jobgen.render(jobgen.load(tmp_path)).objects
    assert "    otherArgs:\n    - --force_multi\n    - --no_ssh_check\n" in rendered.text


def test_slots_of_a_deepspeed_job_are_its_gpus(tmp_path):
    job = DEEPSPEED.replace("COMMAND", "[deepspeed, main.py]").replace("slotsPerWorker: 8", "slotsPerWorker: 16")
    assert list_messages(tmp_path, job) == ["`slotsPerWorker` is 16, but a worker has 8 GPUs; set it to 8"]


@pytest.mark.parametrize(("args", "count"), [("[train.py]", 0), ("[torchrun, train.py]", 1)])
def test_the_operator_of_tensorstack_starts_torchrun_itself(tmp_path, args, count):
    job = DEEPSPEED.replace("framework: deepspeed", "framework: pytorch").replace("command: COMMAND", f"args: {args}")
    job = job.replace(
        "deepspeed: {slotsPerWorker: 8}", 'pytorch: {torchrunConfig: {enabled: true, procPerNode: "8"}}\n  shm: 8Gi'
    )
    found = list_messages(tmp_path, job)
    assert [each.partition(",")[0] for each in found] == ["the operator starts torchrun itself"] * count


def test_plugins_of_volcano_name_tasks(tmp_path):
    job = """\
        apiVersion: batch.volcano.sh/v1alpha1
        kind: Job
        metadata: {name: mnist, namespace: ml}
        spec:
          minAvailable: 2
          plugins: {pytorch: [--master=master, --worker=worker]}
          tasks:
          - &task
            name: master
            replicas: 1
            template:
              spec:
                restartPolicy: Never
                containers:
                - name: main
                  image: registry.example.com/mnist:1.4.2
                  resources: {requests: {cpu: 4, memory: 16Gi}, limits: {memory: 16Gi}}
          - {<<: *task, name: workers}
        """
    assert list_messages(tmp_path, job) == [
        "no task is called `worker`, which the plugin `pytorch` sets the ranks of; did you mean `workers`?"
    ]


@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_policy_of_a_new_repository_is_about_the_jobs_of_its_platform(tmp_path, platform):
    framework = PLATFORMS[platform].framework
    for path, text in make_starter([framework], platform, "kubectl", "none").items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert lint_files(tmp_path, {}) == []
    job = tmp_path / f"jobs/{framework}.yaml"
    job.write_text(job.read_text().replace("  labels: {team: research}\n", ""))
    assert {each["rule"] for each in lint_files(tmp_path, {})} == {"team-label"}

"""Values of jobs that are accepted and not what was meant: variables, entrypoints, options, commands that never end."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest
from lintfiles import lint_files
from linting import lint_paths
from test_clear_messages import TODAY
from test_command_mistakes import WRITERS, lint_text, write_job, write_pytorch_job, write_spec

GPU = "resources: {limits: {nvidia.com/gpu: 1, cpu: 8, memory: 64Gi}}"
MPI = f"""\
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {{name: a, namespace: ml}}
spec:
  runPolicy: {{cleanPodPolicy: Running}}
  mpiReplicaSpecs:
    Launcher:
      template: {{spec: {{containers: [{{name: m, image: "registry.example.com/a:1.0.0", command: %s}}]}}}}
    Worker:
      replicas: 2
      template: {{spec: {{containers: [{{name: m, image: "registry.example.com/a:1.0.0", {GPU}}}]}}}}
"""
RAY = f"""\
apiVersion: ray.io/v1
kind: RayJob
metadata: {{name: a, namespace: ml}}
spec:
  shutdownAfterJobFinishes: true
%s
  rayClusterSpec:
    rayVersion: 2.40.0
    headGroupSpec:
      rayStartParams: {{}}
      template: {{spec: {{containers: [{{name: h, image: "rayproject/ray:2.40.0", {GPU}}}]}}}}
"""


@pytest.mark.parametrize("value", ["''", "' '", "", "~"])
def test_an_empty_entrypoint_starts_nothing(value, tmp_path):
    [found] = lint_text(tmp_path, RAY % f"  entrypoint: {value}")

    assert (found["severity"], found["line"]) == ("error", 6)
    assert found["message"].startswith("`entrypoint` is empty (`Error: Missing argument 'ENTRYPOINT...'`); write ")


@pytest.mark.parametrize(
    "lines",
    [
        "  entrypoint: ''\n  submissionMode: HTTPMode",
        "  entrypoint: ''\n  submissionMode: InteractiveMode",
        "  entrypoint: python t.py",
    ],
)
def test_an_entrypoint_is_needed_where_the_submitter_runs_it(lines, tmp_path):
    assert not [each for each in lint_text(tmp_path, RAY % lines) if "is empty" in each["message"]]


def test_a_variable_that_is_set_twice_has_the_last_value(tmp_path):
    text = write_job(
        "command: [python, t.py]\nenv:\n- {name: A, value: a}\n- {name: B, value: b}\n- {name: A, value: c}\n"
    )
    [found] = lint_text(tmp_path, text)

    assert (found["rule"], found["severity"]) == ("duplicate-env", "warning")
    assert text.split("\n")[found["line"] - 1].strip() == "- {name: A, value: c}"
    assert found["message"].startswith("`A` is set twice in one `env`")


def test_a_variable_can_be_made_of_itself(tmp_path):
    env = "env:\n- {name: A, value: a}\n- {name: A, value: $(A)/c}\n"
    assert not lint_text(tmp_path, write_job(f"command: [python, t.py]\n{env}"))


def test_a_list_whose_items_must_differ_has_one_finding(tmp_path):
    env = "env:\n- {name: A, value: a}\n- {name: A, value: c}\n"
    [found] = lint_text(tmp_path, write_pytorch_job(f"command: [torchrun, t.py]\n{env}"))

    assert (found["rule"], found["severity"]) == ("duplicate-item", "error")


# Options of mpirun, and what was meant; empty for known ones, and for what no slip explains.
OPTIONS = {
    "[mpirun, -pn, '2', python, t.py]": "`-np`",
    "[mpirun, --hostfiel, /x, python, t.py]": "`--hostfile`",
    "[mpirun, --allow-run-as-rot, -np, '2', python, t.py]": "`--allow-run-as-root`",
    "[mpirun, -bindto, none, python, t.py]": "`-bind-to`",
    "[mpiexec, -mac, a, b, python, t.py]": "`-mca`",
    "[mpirun, --oversubscrib, python, t.py]": "`--oversubscribe`",
    "[mpirun, -bind-to, none, -np, '2', python, t.py]": "",
    "[mpirun, -genvall, python, t.py]": "",
    "[mpirun, -envall, python, t.py]": "",
    "[mpirun, --brand-new, python, t.py]": "",
    "[horovodrun, -np, '2', --verbos, python, t.py]": "",
}


@pytest.mark.parametrize("command", OPTIONS)
def test_an_option_of_mpirun_one_slip_away_from_another_is_named(command, tmp_path):
    found = [each for each in lint_text(tmp_path, MPI % command) if "is not an option of" in each["message"]]

    meant = OPTIONS[command]
    assert [(each["severity"], each["line"]) for each in found] == [("warning", 8)] * bool(meant), found
    assert all(each["message"].endswith(f"; did you mean {meant}?") for each in found), found


# Values of variables, and what to write; empty for those that the library knows.
VALUES = {
    "NCCL_DEBUG=DEBUG": "write `INFO`",
    "NCCL_DEBUG=warning": "write `WARN`",
    "NCCL_DEBUG=IFNO": "write `INFO`",
    "NCCL_DEBUG=info": "",
    "NCCL_DEBUG=x": "write `VERSION`, `WARN`, `INFO`, `ABORT`, `TRACE` or `NONE`",
    "NCCL_DEBUG=$(LEVEL)": "",
    "NCCL_IB_DISABLE=true": "write `1`",
    "NCCL_P2P_DISABLE=maybe": "write `0` or `1`",
    "NCCL_P2P_LEVEL=NVLINK": "write `LOC`, ",
    "NCCL_P2P_LEVEL=NVL": "",
    "TORCH_DISTRIBUTED_DEBUG=DETAILS": "write `DETAIL`",
    "TORCH_DISTRIBUTED_DEBUG=detail": "",
    "NVIDIA_DRIVER_CAPABILITIES=compute,utilities": "write `utility`",
    "NVIDIA_DRIVER_CAPABILITIES=compute,utility": "",
    "CUDA_DEVICE_ORDER=PCI_BUS": "write `PCI_BUS_ID` or `FASTEST_FIRST`",
    "TF_CPP_MIN_LOG_LEVEL=ERROR": "write `2`",
    "WANDB_MODE=off": "write `disabled`",
    "WANDB_MODE=offline": "",
}


@pytest.mark.parametrize("setting", VALUES)
@pytest.mark.parametrize("write", [write_job, write_pytorch_job])
def test_a_variable_with_few_values_has_one_of_them(write, setting, tmp_path):
    name, _, value = setting.partition("=")
    env = f'env:\n- {{name: {name}, value: "{value}"}}\n- {{name: LEVEL, value: x}}\n'
    found = [
        each for each in lint_text(tmp_path, write(f"command: [torchrun, t.py]\n{env}")) if name in each["message"]
    ]
    found = [each for each in found if "does not know the value" in each["message"]]

    assert [(each["severity"], each["rule"]) for each in found] == [("warning", "launch-variables")] * bool(
        VALUES[setting]
    )
    assert all(VALUES[setting] in each["message"] for each in found), found


# Scripts that never end though the training does, and what the message says; empty for those that end.
SCRIPTS = {
    "torchrun t.py &\ntail -f /dev/null": "start `torchrun` without `&`",
    "torchrun t.py > log 2>&1 &\ntail -f log": "start `torchrun` without `&`",
    "torchrun t.py &\nsleep infinity": "write `wait $!` behind `torchrun` instead",
    "tensorboard --logdir /l &\nT=$!\ntorchrun t.py &\nwait $T": "`wait $T`, which waits for `tensorboard`",
    "tensorboard --logdir /l &\npython t.py &\nwait": "`wait`, which waits for `tensorboard`",
    "tensorboard --logdir /l &\npython t.py &\nP=$!\nwait $P": "",
    "tensorboard --logdir /l &\npython t.py": "",
    "python t.py &\nwait": "",
    "python a.py &\npython b.py &\nwait": "",
    "python t.py &\nP=$!\ntail -f log --pid=$P": "",
    "python t.py &\nP=$!\ntail -f log &\nwait $P": "",
    "monitor &\npython t.py\nkill %1": "",
}


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("write", [write_job, write_pytorch_job, write_spec])
def test_a_job_whose_script_waits_for_a_server_never_ends(write, script, tmp_path):
    text = write(f"command: [bash, -c]\nargs:\n- |\n{textwrap.indent(script, '  ')}\n")
    found = [each for each in lint_text(tmp_path, text) if each["rule"] == "idle-command"]

    assert [each["severity"] for each in found] == ["warning"] * bool(SCRIPTS[script]), found
    assert all(SCRIPTS[script] in each["message"] for each in found), found


@pytest.mark.parametrize("write", WRITERS)
def test_memory_with_thousandths_is_shown_as_it_is_written(write, tmp_path):
    text = write("command: [python, t.py]\n").replace("64Gi", "64000m")
    [found] = [each for each in lint_text(tmp_path, text) if each["rule"] == "memory-too-small"]

    assert found["message"].startswith(
        "`64000m` is too little memory: `m` means thousandths of a byte; write `64000Mi`"
    )


def test_shared_memory_in_resources_has_its_line(tmp_path):
    text = write_spec("command: [python, t.py]\n").replace("  shm: 16Gi\n", "").replace("gpu: 1}", "gpu: 1, shm: 16Gi}")
    [found] = [each for each in lint_text(tmp_path, text) if "shm" in each["message"]]

    assert found["message"].endswith("; write `shm: 16Gi` beside `resources`")


@pytest.mark.parametrize("write", [write_job, write_pytorch_job])
def test_a_relative_mount_path_is_below_the_root(write, tmp_path):
    mounts = "volumeMounts:\n- {name: d, mountPath: data}\n- {name: d, mountPath: /other}\n"
    text = write(f"command: [torchrun, t.py]\n{mounts}", "volumes:\n- {name: d, emptyDir: {}}\n")
    [found] = lint_text(tmp_path, text)

    assert (found["rule"], found["severity"]) == ("invalid-volume-path", "warning")
    assert "mounts the volume at `/data`" in found["message"]


CONFIG = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: conf, namespace: ml}
data:
  config.yaml: |
    lr: 0.1
    bs: [1
  good.yaml: |
    lr: 0.1
"""
# Options of Hydra, and what is wrong with the file that they name.
HYDRA = {
    "--config-path=/conf, --config-name=config": "Hydra cannot read `/conf/config.yaml`, which is not YAML",
    "--config-path, /conf, --config-name, config.yaml": "Hydra cannot read `/conf/config.yaml`, which is not YAML",
    "-cp, /conf, -cn, config": "Hydra cannot read `/conf/config.yaml`, which is not YAML",
    "--config-dir=/conf, --config-name=config": "Hydra cannot read `/conf/config.yaml`, which is not YAML",
    "--config-path=/conf, --config-name=goood": "did you mean `/conf/good.yaml`?",
    "--config-dir=/conf, --config-name=goood": "",
    "--config-path=/conf, --config-name=good": "",
    "--config-path=conf, --config-name=config": "",
    "--config-name=config": "",
}


@pytest.mark.parametrize("options", HYDRA)
@pytest.mark.parametrize("program", ["python", "torchrun"])
def test_the_file_that_hydra_reads_is_checked(program, options, tmp_path):
    mounts = "volumeMounts: [{name: s, mountPath: /conf}]\n"
    text = write_job(
        f"command: [{program}, t.py, {options}]\n{mounts}", "volumes:\n- {name: s, configMap: {name: conf}}\n"
    )
    found = lint_text(tmp_path, text, **{"jobs/b.yaml": CONFIG})

    assert [(each["severity"], HYDRA[options] in each["message"]) for each in found] == [("error", True)] * bool(
        HYDRA[options]
    ), found


def lint_folder(folder: Path) -> list[dict[str, Any]]:
    return json.loads(lint_paths(folder, (), (), format_="json", today=TODAY).out)["findings"]


ROLES = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: pod-reader, namespace: ml}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: %s}
subjects: [{kind: ServiceAccount, name: trainer, namespace: ml}]
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %s}
"""


@pytest.mark.parametrize(
    ("namespace", "name", "is_found"),
    [("ml", "pod-raeder", True), ("ml", "pod-reader", False), ("ml", "operator", False)],
)
def test_a_binding_to_a_misspelled_role_grants_nothing(namespace, name, is_found, tmp_path):
    (tmp_path / "r.yaml").write_text(ROLES % (namespace, name))
    found = [each for each in lint_folder(tmp_path) if each["rule"] == "role-of-another-kind"]

    assert [(each["severity"], each["line"]) for each in found] == [("warning", 10)] * is_found
    assert all(each["message"].endswith("; did you mean `pod-reader`?") for each in found)


def test_a_misspelled_role_is_found_in_a_jobs_repository_too(tmp_path):
    text = ROLES % ("ml", "pod-raeder")
    (found,) = (each for each in lint_files(tmp_path, {"jobs/r.yaml": text}) if each["rule"] == "role-of-another-kind")
    assert (found["severity"], found["line"]) == ("warning", 10)
    assert found["message"].endswith("; did you mean `pod-reader`?")


@pytest.mark.parametrize(
    ("name", "rest", "words"),
    [
        ("pytroch", "image: registry.example.com/b:1.0.0", "adds a container `pytroch`"),
        ("pytroch", "env: [{name: A, value: b}]", "or write `pytorch` for its name"),
        ("pytorch", "image: registry.example.com/b:1.0.0", ""),
        ("sidecar", "image: registry.example.com/b:1.0.0", ""),
    ],
)
def test_a_patch_with_a_misspelled_container_names_the_one_that_was_meant(name, rest, words, tmp_path):
    (tmp_path / "kustomization.yaml").write_text("resources: [a.yaml]\npatches:\n- path: p.yaml\n")
    (tmp_path / "a.yaml").write_text(write_job("command: [python, t.py]\n"))
    patch = f"  template:\n    spec:\n      containers:\n      - name: {name}\n        {rest}\n"
    head = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a, namespace: ml}\nspec:\n"
    (tmp_path / "p.yaml").write_text(head + patch)
    found = [each for each in lint_folder(tmp_path) if name in each["message"]]

    assert [(each["file"], words in each["message"]) for each in found] == [("p.yaml", True)] * bool(words), found


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("run: python t.py --lr=0.1\n", "write `command: [python, t.py, --lr=0.1]`"),
        ("command: [python, null]\n", '; remove it, or write `""` for an empty argument'),
        ("command: [python, t.py]\nargs:\n-\n", '; remove it, or write `""` for an empty argument'),
    ],
)
def test_a_wrong_command_has_an_answer_of_its_own(lines, words, tmp_path):
    [found] = lint_text(tmp_path, write_spec(lines))

    assert found["message"].endswith(words)

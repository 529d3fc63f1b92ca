"""What a user gets for mistakes in values, roles and references: the right rule, its line, and what to write."""

import pytest
from command import jobgen

from jobgen import lint

HEADER = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert, namespace: ml}
spec:
"""
SPEC = """\
  framework: FRAMEWORK
  image: a.example/bert:1.0.0
  command: [COMMAND]
  resources: {cpu: 8, memory: 64Gi, gpu: 4}
"""


def spec(*lines, framework="pytorch", command="torchrun, --nproc-per-node=4, train.py"):
    body = SPEC.replace("FRAMEWORK", framework).replace("COMMAND", command)
    return HEADER + body + "".join(f"  {line}\n" for line in lines)


def answers(folder, text, rule):
    (folder / "job.yaml").write_text(text)
    found = lint(folder).findings
    return [(each.location.line, each.severity.value, each.message) for each in found if each.rule == rule]


@pytest.mark.parametrize(("size", "meant"), [("16", "16Gi"), ("512", "512Mi"), ("16m", "16Mi")])
def test_shared_memory_without_a_unit(size, meant, tmp_path):
    [(line, severity, message)] = answers(tmp_path, spec(f"shm: {size}"), "shm-too-small")
    assert (line, severity) == (9, "warning")
    assert message.startswith(f"`{size}` is too little memory")
    assert message.endswith(f"write `{meant}`")


def test_memory_for_several_gpus_is_counted_in_gibibytes(tmp_path):
    text = spec("shm: 1Gi").replace("memory: 64Gi", "memory: 512m")
    [(_, _, message)] = answers(tmp_path, text, "memory-too-small")
    assert message.endswith("write `512Gi`")


@pytest.mark.parametrize(
    ("word", "rule", "advice"),
    [
        (
            "--nproc-per-node=$(nvidia-smi -L | wc -l)",
            "launch-refused",
            "no shell runs `nvidia-smi -L | wc -l`; write `gpu`",
        ),
        ("--nproc-per-node=$(nproc)", "launch-refused", "no shell runs `nproc`; write `gpu`"),
        ("--nproc-per-node=$(GPUS)", "launch-refused", "set `GPUS` in `env`"),
    ],
)
def test_a_command_in_parentheses_is_no_variable(tmp_path, word, rule, advice):
    text = spec("shm: 1Gi", command=f'torchrun, "{word}", train.py')
    [(_, _, message)] = answers(tmp_path, text, rule)
    assert message.endswith(advice)


def test_a_program_in_an_argument_is_no_variable(tmp_path):
    text = spec("shm: 1Gi", command="torchrun, train.py, --host=$(hostname)")
    [(_, _, message)] = answers(tmp_path, text, "undefined-reference")
    assert message == (
        "`$(hostname)` stays as it is: no shell runs `hostname`; write its value, or start the command with `sh -c`"
    )


def test_a_reference_in_the_value_of_a_variable(tmp_path):
    text = spec("shm: 1Gi", "env:", "  DATASET_ROOT: /data", "  OUT: $(DATA_ROOT)/ckpt")
    [(line, _, message)] = answers(tmp_path, text, "undefined-reference")
    assert line == 12
    assert message.endswith("the container has no variable `DATA_ROOT`; did you mean `DATASET_ROOT`?")


@pytest.mark.parametrize("value", ["$(DATASET_ROOT)/ckpt", "$$(NAME)", "sh -c 'cd $(PLACE)'", "$(hostname)", "$(RANK)"])
def test_references_that_are_replaced_or_meant_for_a_shell(value, tmp_path):
    text = spec("shm: 1Gi", "env:", "  DATASET_ROOT: /data", f'  OUT: "{value}"')
    assert not answers(tmp_path, text, "undefined-reference")


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        ("import torch; for i in range(3): print(i)", "`for` cannot follow `;`"),
        ("print('a'", "`(` is not closed"),
    ],
)
def test_code_of_python_c_that_is_not_python(code, answer, tmp_path):
    [(line, severity, message)] = answers(tmp_path, spec("shm: 1Gi", command=f'python, -c, "{code}"'), "script-syntax")
    assert (line, severity) == (7, "error")
    assert answer in message


@pytest.mark.parametrize("code", ["import torch; print(torch.cuda.device_count())", "print($(SIZE)", "x = 1; y = 2"])
def test_code_of_python_c_that_may_run(code, tmp_path):
    assert not answers(tmp_path, spec("shm: 1Gi", command=f'python, -c, "{code}"'), "script-syntax")


def test_a_role_without_what_only_another_role_has(tmp_path):
    text = HEADER + (
        "  framework: pytorch\n  shm: 1Gi\n  resources: {cpu: 8, memory: 64Gi, gpu: 4}\n  roles:\n    master: {}\n"
        "    worker: {image: a.example/bert:1.0.0, command: [torchrun, train.py]}\n"
    )
    [(_, _, message)] = answers(tmp_path, text, "missing-pod-field")
    expected = "role `master` has no `image` and no `command`, and only `worker` has them; move them to `spec`"
    assert message == expected


def test_torchrun_in_a_job_of_another_framework(tmp_path):
    text = spec("shm: 1Gi", "replicas: 2", framework="tensorflow")
    [(line, severity, message)] = answers(tmp_path, text, "launcher-on-one-pod")
    assert (line, severity) == (7, "warning")
    assert message.startswith("each of the 2 pods trains alone")
    assert message.endswith("use `framework: pytorch`")
    assert not answers(tmp_path, spec("shm: 1Gi", "replicas: 2"), "launcher-on-one-pod")


JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: bert, namespace: ml}
spec:
  completionMode: Indexed
  completions: 2
  parallelism: 2
  template:
    spec:
      restartPolicy: Never
      containers: [{name: a, image: "a.example/b:1", command: [torchrun, train.py]}]
"""


def test_torchrun_in_the_pods_of_a_job_that_have_names_for_each_other(tmp_path):
    [(line, _, message)] = answers(tmp_path, f"{JOB}      subdomain: bert\n", "launcher-on-one-pod")
    assert line == 11
    assert "add `--nnodes=2 --node-rank=$(JOB_COMPLETION_INDEX)" in message
    # The pods of other Jobs may work alone.
    assert not answers(tmp_path, JOB, "launcher-on-one-pod")


def test_a_mode_in_a_spec_is_a_text(tmp_path):
    lines = ("shm: 1Gi", "configs:", "  run:", "    mountPath: /opt/run", "    data: {a.sh: 'torchrun train.py'}")
    [(_, _, message)] = answers(tmp_path, spec(*lines, command="/opt/run/a.sh"), "launch-refused")
    assert 'set `defaultMode: "0755"`' in message


def test_a_template_is_rendered_before_it_is_imported(tmp_path):
    (tmp_path / "job.yaml").write_text(f"{JOB}      replicas: {{{{ .Values.replicas }}}}\n")
    done = jobgen(tmp_path, "import", "job.yaml")
    assert b"render it first, such as with `helm template" in done.stderr
    assert b"quote" not in done.stderr


def test_commands_name_what_does_it(tmp_path):
    assert (
        b"`-o DIR` writes the jobs that are named" in jobgen(tmp_path, "migrate", "a", "--to", "ray", "--write").stderr
    )
    (tmp_path / "jobgen.yaml").write_text("settings: {}\n")
    assert b"run `jobgen new NAME --framework FRAMEWORK`" in jobgen(tmp_path, "init").stderr


def test_a_fix_may_reveal_as_many_errors_as_it_fixes_in_all_environments(tmp_path):
    text = spec("shm: 1Gi").replace("resources: {", "resorces: {").replace("64Gi", "64gb")
    overlay = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {}\n"
    files = {"jobgen.yaml": "{}\n", "jobs/a.yaml": text}
    files |= {f"overlays/{name}/overlay.yaml": overlay for name in ("dev", "prod")}
    for path, content in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)

    done = jobgen(tmp_path, "lint", "--fix")

    assert "jobs/a.yaml:8: `resorces` -> `resources`" in done.stderr.decode()
    assert (tmp_path / "jobs/a.yaml").read_text() == text.replace("resorces", "resources")


def test_a_reference_whose_parenthesis_stands_before_the_dollar(tmp_path):
    text = spec("shm: 1Gi", "env: {OUT: /data}", command='python, train.py, "--out=($OUT)/a"')
    (tmp_path / "job.yaml").write_text(text)
    [found] = [each for each in lint(tmp_path).findings if each.rule == "unexpanded-variable"]
    assert found.message == "Kubernetes does not expand `($OUT)` without a shell; write `$(OUT)`"
    assert [edit.value for edit in found.fix.edits] == ["--out=$(OUT)/a"]

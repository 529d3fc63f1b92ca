"""Fields and words that stand below `resources`, in `extends`, in settings or in arguments where they are not meant."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import run_jobgen_text
from lintfiles import lint_files, overlay
from test_misread import RUN, H

JOB = H + RUN
RESOURCES = "resources: {cpu: 8, memory: 64Gi, gpu: 1}"
OTHERS = {
    'time: "24:00:00"': "write `activeDeadlineSeconds: 86400` below `runPolicy`",
    "walltime: 1h": "write `activeDeadlineSeconds: 3600` below `runPolicy`",
    "activeDeadlineSeconds: 60": "write `activeDeadlineSeconds: 60` below `runPolicy`",
    "partition: a100": "write `queue` beside `resources`",
    "queue: team-a": "write `queue: team-a` beside `resources`",
    "nodes: 4": "write `replicas: 4`, the number of all pods, beside `resources`",
    "ntasks: 8": "write `replicas`, the number of all pods, beside `resources`",
    "image: a:1": "write `image: a:1` beside `resources`",
    "shm_size: 8gb": "write `shm: 8Gi` beside `resources`",
    "shm: 8Gi": "write `shm: 8Gi` beside `resources`",
    "gpu_type: a100": "write `nodeSelector` with a label of nodes that have this model",
    "gres: gpu:4": "write `gpu: 4`",
    "account: ml": "write a label in `metadata.labels`",
    "disk: 100Gi": "write `ephemeral-storage`, or a claim in `volumes`",
    "speed: fast": "remove it, or write an extended resource with its domain",
    "memroy: lots": "did you mean `memory`?",
}


@pytest.mark.parametrize("typed", OTHERS)
def test_what_is_no_resource_is_told_where_it_belongs(typed, tmp_path):
    text = JOB.replace(RESOURCES, f"{RESOURCES[:-1]}, {typed}}}")
    assert text != JOB
    [found] = lint_files(tmp_path, {"jobs/a.yaml": text})

    name = typed.partition(":")[0]
    assert (found["rule"], found["line"]) == ("unknown-resource", text[: text.index(typed)].count("\n") + 1)
    assert found["message"] == f"containers cannot request the resource `{name}`; {OTHERS[typed]}"


def test_other_names_of_resources_are_still_renamed(tmp_path):
    text = JOB.replace(RESOURCES, "resources: {cpus: 8, mem: 64Gi, gpus: 1}")
    found = lint_files(tmp_path, {"jobs/a.yaml": text})

    assert [each["message"].partition("; ")[2] for each in found] == ["write `cpu`", "write `memory`", "write `gpu`"]


def test_a_resource_under_two_names_is_not_renamed(tmp_path):
    text = JOB.replace(RESOURCES, "resources: {cpus: 8, cpu: 4, memory: 64Gi, gpu: 1, gpus: 2}")
    found = lint_files(tmp_path, {"jobs/a.yaml": text})

    assert [each["message"].partition(", and ")[2] for each in found] == [
        "`cpu` is written as well; remove one of them",
        "`gpu` is written as well; remove one of them",
    ]
    assert "fixable" not in run_jobgen_text(tmp_path, "lint").stdout


RESTARTS = {"on-failure": "OnFailure", "always": "OnFailure", "unless-stopped": "OnFailure", "no": "Never"}


@pytest.mark.parametrize("word", [*RESTARTS, '"no"'])
def test_the_restart_of_docker_compose_becomes_a_policy(word, tmp_path):
    [found] = lint_files(tmp_path, {"jobs/a.yaml": f"{JOB}  restart: {word}\n"})
    policy = RESTARTS[word.strip('"')]
    assert found["message"] == f"`restart` is not a field of a job; write `restartPolicy: {policy}`"

    repaired = f"{JOB}  restartPolicy: {policy}\n"
    assert [each for each in lint_files(tmp_path, {"jobs/a.yaml": repaired}) if each["severity"] == "error"] == []


@pytest.mark.parametrize("path", ["../base", "overlays/base", "../base/overlay.yaml"])
@pytest.mark.parametrize("listed", [True, False])
def test_a_path_in_extends_means_the_overlay_in_it(path, listed, tmp_path):
    files = (
        overlay("{}", "base")
        | overlay("{extends: [base], namespace: ml}")
        | overlay(f"{{extends: [{path}]}}", "staging")
    )
    settings = "environments: [prod, staging]\n" if listed else "environments: [prod]\n"
    found = lint_files(tmp_path, {**files, "jobgen.yaml": settings, "jobs/a.yaml": JOB})

    assert [each["rule"] for each in found] == ([] if listed else ["unlisted-overlay"]) + ["unknown-overlay"]
    assert found[-1]["message"] == f"there is no overlay `{path}`; did you mean `base`?"


@pytest.mark.parametrize("field", ["rules: {image-mutable-tag: error}", "ignore: [image-mutable-tag]"])
def test_the_words_of_a_rule_in_another_order_mean_it(field, tmp_path):
    [found] = lint_files(tmp_path, {"jobs/a.yaml": JOB, "jobgen.yaml": f"{field}\n"})
    assert found["message"].endswith("`image-mutable-tag`; did you mean `mutable-image-tag`?")


def test_a_rule_that_no_name_resembles_is_looked_up_in_the_list(tmp_path):
    [found] = lint_files(tmp_path, {"jobs/a.yaml": JOB, "jobgen.yaml": "rules: {no-such-thing-here: error}\n"})
    assert found["message"] == "there is no rule or policy `no-such-thing-here`; `jobgen rules` lists them"


JOB_SET = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: a, namespace: ml}
spec:
  replicatedJobs:
    - name: worker
      template:
        spec:
          parallelism: 4
          template:
            spec:
              restartPolicy: Never
              containers:
                - {name: a, image: "a:1", resources: {limits: {cpu: 1, memory: 4Gi}}}
"""


def test_pods_of_a_job_set_without_completions(tmp_path):
    (tmp_path / "a.yaml").write_text(JOB_SET)
    done = run_jobgen_text(tmp_path, "lint", "a.yaml", "--format", "concise")
    assert done.stdout.startswith("a.yaml:9:24: error: the API server rejects its Job: JobSet sets `completionMode:")
    assert "`completions`; write `completions: 4`" in done.stdout

    run_jobgen_text(tmp_path, "lint", "a.yaml", "--fix")
    assert (tmp_path / "a.yaml").read_text() == JOB_SET.replace(
        "parallelism: 4\n", "parallelism: 4\n          completions: 4\n"
    )


def test_kueue_is_no_platform(tmp_path):
    run_jobgen_text(tmp_path, "init")
    done = run_jobgen_text(tmp_path, "migrate", "pytorch", "--to", "kueue")
    assert done.returncode == 2
    assert "Kueue is no platform: it admits jobs of all platforms; write `queue: NAME` in the job" in done.stderr


def test_init_names_the_manifests_that_stay_as_copies(tmp_path):
    (tmp_path / "job.yaml").write_text(JOB_SET.replace("          parallelism: 4\n", ""))
    notes = "`job.yaml` is not changed, and is a second copy of what is in jobs/ now; remove it once"
    for _ in range(2):
        done = run_jobgen_text(tmp_path, "init", ".", "--from", ".")
        assert (done.returncode, notes in done.stderr) == (0, True), done.stderr
        assert "not imported" not in done.stderr

    (tmp_path / "job.yaml").rename(tmp_path / "jobs" / "job.yaml")
    done = run_jobgen_text(tmp_path, "init", "elsewhere", "--from", "jobs")
    assert "second copy" not in done.stderr


def test_init_does_not_import_the_folder_of_jobs_into_itself(tmp_path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "job.yaml").write_text(JOB_SET.replace("          parallelism: 4\n", ""))
    done = run_jobgen_text(tmp_path, "init", ".", "--from", "jobs")
    assert done.returncode == 1
    assert "so write elsewhere: `jobgen init NEW --from jobs`" in done.stderr
    assert [path.name for path in Path(tmp_path).rglob("*") if path.is_file()] == ["job.yaml"]


COMMANDS = {
    '"--host=$(HOSTNAME)"': "set it there with `fieldRef: {fieldPath: metadata.name}`",
    '"--dir=$(HOME)/x"': "start the command with `sh -c`, and write `$HOME`",
    '"--name=$(date +%F)"': "no shell runs `date` here, so the argument stays as it is; write its value, or start the",
    '"--nodes=$(cat /etc/nodes | wc -l)"': "no shell runs `cat` here",
    '"--name=`date`"': "no shell runs `date` here",
    '"--name=`hostname -f`"': "no shell runs `hostname` here",
}
SILENT = ['"--prompt=the `id` of it"', '"--text=$$(date +%F)"', '"--f=$(lambda x)"', '"--cost=`about 3`"']


@pytest.mark.parametrize("word", [*COMMANDS, *SILENT])
def test_what_no_shell_replaces_in_an_argument(word, tmp_path):
    found = lint_files(tmp_path, {"jobs/a.yaml": f"{H}  command: [python, train.py, {word}]\n"})

    assert [each["rule"] for each in found] == ["undefined-reference"] * (word in COMMANDS)
    assert all(COMMANDS[word] in each["message"] for each in found)


SHELLS = ("[sh, -c, 'python t.py --name=$(date +%F) --x=`date`']", "[python, -c, 'print(\"$(date +%F)\")']")


@pytest.mark.parametrize("command", SHELLS)
def test_what_a_shell_or_a_program_reads_is_not_judged(command, tmp_path):
    found = lint_files(tmp_path, {"jobs/a.yaml": f"{H}  command: {command}\n"})
    assert [each["rule"] for each in found if each["rule"] == "undefined-reference"] == []


def test_the_host_name_of_env_is_known(tmp_path):
    env = "  env: {HOSTNAME: {fieldRef: {fieldPath: metadata.name}}}\n"
    text = f'{H}  command: [python, train.py, "--host=$(HOSTNAME)"]\n'
    assert lint_files(tmp_path, {"jobs/a.yaml": text + env}) == []


@pytest.mark.parametrize("amount", ["16000m", "8000m", "2048m"])
def test_an_amount_that_is_rendered_in_another_form_is_fixed(amount, tmp_path):
    text = JOB.replace("memory: 64Gi", f"memory: {amount}")
    lint_files(tmp_path, {"jobs/a.yaml": text})
    done = run_jobgen_text(tmp_path, "lint", "--fix-unsafe")

    assert "1 finding fixed in 1 file" in done.stdout + done.stderr
    assert (tmp_path / "jobs/a.yaml").read_text() == text.replace(amount, f"{amount}i".replace("mi", "Mi"))


def test_a_list_in_an_item_ends_before_the_next_option(tmp_path):
    [found] = lint_files(tmp_path, {"jobs/a.yaml": f"{H}  args: [--ms=[30,60, --lr=2]\n"})
    assert found["message"].endswith('write `args: ["--ms=[30,60]", --lr=2]`')


def test_a_misspelled_field_beside_the_right_one(tmp_path):
    [found] = lint_files(tmp_path, {"jobs/a.yaml": f"{JOB}  resouces: {{cpu: 1}}\n"})
    assert found["message"].endswith("`resources` is written as well; keep one of them, as `resources`")


RAY = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: a, namespace: ml}
spec:
  framework: ray
  image: registry.example.com/a:1.0.0
  command: [python, train.py]
  roles:
    head: {resources: {cpu: 4, memory: 16Gi}}
    wroker: {replicas: 2, resources: {cpu: 4, memory: 16Gi, gpu: 1}}
"""


def test_a_group_of_workers_with_swapped_letters_is_a_warning(tmp_path):
    prod = overlay("{cluster: {platform: ray}}")
    [found] = lint_files(tmp_path, {**prod, "jobs/a.yaml": RAY})
    assert (found["rule"], found["severity"], found["line"]) == ("unknown-role", "warning", 10)

    assert lint_files(tmp_path, {**prod, "jobs/a.yaml": RAY.replace("wroker", "trainer")}) == []


QUOTED = {
    "--name='bert'": "--name=bert",
    '"--cfg=\'{\\"a\\": 1}\'"': '--cfg={"a": 1}',
    '"--title=\\"My run\\""': "--title=My run",
}


@pytest.mark.parametrize("word", QUOTED)
def test_quotes_that_no_shell_removes_are_a_part_of_the_value(word, tmp_path):
    [found] = lint_files(tmp_path, {"jobs/a.yaml": f"{H}  command: [python, train.py, {word}]\n"})
    assert found["rule"] == "shell-syntax-without-shell"
    assert found["message"].endswith(f"because no shell removes them; write `{QUOTED[word]}`")


@pytest.mark.parametrize("command", ['[python, t.py, "--a={\\"b\\": 1}"]', "[sh, -c, python t.py --a='b']"])
def test_quotes_that_a_program_or_a_shell_reads_are_right(command, tmp_path):
    assert lint_files(tmp_path, {"jobs/a.yaml": f"{H}  command: {command}\n"}) == []


SCRIPT = "  command: [bash, -c]\n  args:\n    - |\n"


def test_a_script_after_an_empty_variable_is_not_its_value(tmp_path):
    text = f"{H}{SCRIPT}      torchrun --nnodes $NODES --nproc_per_node $NPROC train.py\n"
    [found] = lint_files(tmp_path, {"jobs/a.yaml": text})
    assert "`NPROC`" in found["message"]
    assert "`NODES`" in found["message"]
    assert "train.py" not in found["message"]


def test_the_line_that_lacks_its_backslash_may_be_a_continued_one(tmp_path):
    text = f"{H}{SCRIPT}      torchrun \\\n        --nproc_per_node=1\n        train.py --epochs 3\n"
    [found] = lint_files(tmp_path, {"jobs/a.yaml": text})
    assert found["line"] == text[: text.index("train.py --epochs")].count("\n") + 1
    assert found["message"].endswith("the line before it ends the command; write `\\` at the end of line 2")


def test_words_of_commands_that_are_numbers_options_or_platforms(tmp_path):
    run_jobgen_text(tmp_path, "init")
    new = run_jobgen_text(tmp_path, "new", "j", "--gpus", "abc")
    assert "`abc` is not a value of `--gpus`; write a whole number from 0 to 1024" in new.stderr
    lint = run_jobgen_text(tmp_path, "lint", "--fix", "--dry-run")
    assert "there is no option `--dry-run`; use `jobgen lint --diff` to see fixes" in lint.stderr
    migrate = run_jobgen_text(tmp_path, "migrate", "pytorch-example", "--to", "k8s")
    assert "there is no kind or platform `k8s`; did you mean `kubernetes`?" in migrate.stderr


def test_an_import_adds_a_platform_to_those_that_there_are(tmp_path):
    run_jobgen_text(tmp_path, "init")
    (tmp_path / "a.yaml").write_text(JOB_SET.replace("          parallelism: 4\n", ""))
    done = run_jobgen_text(tmp_path, "import", "a.yaml")
    assert "need `cluster: {platforms: [kubeflow, jobset]}` in an overlay" in done.stderr

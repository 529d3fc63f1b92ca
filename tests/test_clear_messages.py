"""Messages name what was written, the job that they are about, and what to write instead."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import run_jobgen_text
from lintfiles import JOB, NODES, PYTORCH, TODAY, lint_files, overlay
from linting import lint_paths

from jobgen.api.lint_files import LintRequest
from jobgen.api.lint_run import find_findings
from jobgen.cli.pages import find_page

# Operators


def test_the_number_of_nodes_is_not_called_as_in_the_rendered_object(tmp_path):
    [found] = lint_files(tmp_path, {"jobs/llama.yaml": NODES.replace("replicas: 2", "replicas: 0")})
    assert (found["line"], found["message"]) == (11, "the job has 0 nodes but needs at least 1")


def test_a_key_without_a_value_is_not_called_null(tmp_path):
    job = JOB.replace("  shm:", "  env:\n    A:\n    B: null\n  shm:")
    found = lint_files(tmp_path, {"jobs/bert.yaml": job})
    assert [(each["line"], each["message"]) for each in found] == [
        (10, '`A` has no value; write one, such as `A: ""`, or remove the line'),
        (11, "`B: null` deletes nothing; remove it"),
    ]


@pytest.mark.parametrize(
    ("kind", "operator", "served"),
    [("v1", "mpi-operator", "kubeflow.org/v2beta1"), ("v2beta1", "training-operator", "kubeflow.org/v1")],
)
def test_an_mpijob_of_another_operator_names_the_version_to_write(tmp_path, kind, operator, served):
    job = f"apiVersion: kubeflow.org/{kind}\nkind: MPIJob\nmetadata: {{name: a, namespace: ml}}\nspec: {{}}\n"
    files = {"jobs/a.yaml": job, **overlay(f"{{cluster: {{operators: {{{operator}: '1.9'}}}}}}")}
    [message] = [each["message"] for each in lint_files(tmp_path, files) if each["rule"] == "kind-not-served"]
    assert message.startswith(f"this cluster runs MPIJobs with {operator}, not ")
    assert message.endswith(f"`apiVersion: {served}` in a manifest")


# Values of overlays that are wrong for some jobs


def text_of(folder: Path) -> str:
    """The text report of the files of a folder."""
    return lint_paths(folder, (), (), format_="text", today=TODAY).out


DEFAULTS = """\
apiVersion: jobgen.dev/v1
kind: Overlay
metadata: {name: prod}
spec:
  cluster: {platforms: [kubeflow, trainer]}
  defaults:
    - MATCHmerge:
        restartPolicy: OnFailure
        runPolicy: {cleanPodPolicy: Running, backoffLimit: 3}
"""


def test_a_default_that_one_job_does_not_support_names_the_job(tmp_path):
    files = {"jobs/bert.yaml": JOB, "jobs/llama.yaml": NODES}
    found = lint_files(tmp_path, {**files, "overlays/prod/overlay.yaml": DEFAULTS.replace("MATCH", "")})
    assert [each["line"] for each in found] == [8, 9, 9]
    match = "match: {exclude: {kinds: [TrainJob]}}"
    assert all(f"set it in a block of `defaults` with `{match}` instead" in each["message"] for each in found)
    assert text_of(tmp_path).count("instead (TrainJob llama in prod) [unsupported-by-kind]") == 3
    fixed = DEFAULTS.replace("MATCH", f"{match}\n      ")
    assert lint_files(tmp_path, {**files, "overlays/prod/overlay.yaml": fixed}) == []


def test_many_jobs_of_one_value_of_an_overlay_are_not_all_named(tmp_path):
    files = {f"jobs/j{n}.yaml": JOB.replace("name: bert", f"name: j{n}") for n in range(6)}
    lint_files(tmp_path, {**files, **overlay("{patches: [{merge: {nodeSelector: {a: 'b c'}}}]}")})
    assert "(PyTorchJob j0, PyTorchJob j1, PyTorchJob j2 and 3 others in prod)" in text_of(tmp_path)


POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: own}
spec:
  matchConstraints:
    resourceRules:
      - {apiGroups: [kubeflow.org], apiVersions: [v1], operations: [CREATE], resources: ["*"]}
  validations:
    - expression: object.spec.pytorchReplicaSpecs.Worker.replicas < 9
      message: too many workers
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: own}
spec: {policyName: own, validationActions: [Deny]}
"""


def test_a_policy_that_cannot_be_evaluated_is_reported_at_the_job(tmp_path):
    job = JOB.replace("pytorch", "tensorflow").replace("master", "chief")
    files = {"jobs/bert.yaml": job, "policies/own.yaml": POLICY}
    found = lint_files(tmp_path, {**files, **overlay("{defaults: {runPolicy: {cleanPodPolicy: Running}}}")})
    [found] = [each for each in found if each["rule"] == "own"]
    assert (found["file"], found["line"], found["column"]) == ("jobs/bert.yaml", 3, 18)
    assert found["message"] == "policy `own` could not be evaluated: no such key: `pytorchReplicaSpecs`"


# What --fix changed


def fix(folder: Path, files: dict[str, str], how: str = "safe") -> str:
    """Write files, fix them, and return what is said about the changes."""
    lint_files(folder, files)
    told = lint_paths(folder, (), (), format_="text", fix=how, today=TODAY).err
    return told[: told.index(" checked by")].rpartition("\n")[0]


def test_a_fix_says_what_it_changed(tmp_path):
    told = fix(tmp_path, {"jobs/bert.yaml": JOB.replace("gpu: 8", "gpus: 8")})
    assert told == "1 finding fixed in 1 file\n  jobs/bert.yaml:8: `gpus` -> `gpu`"


MOVED = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: gpt, namespace: ml}
spec:
  cleanPodPolicy: All
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template:
        spec:
          containers:
            - name: pytorch
              image: registry.example.com/gpt:2.1.0
              env: [{name: API_TOKEN, value: hunter2-and-more}, {name: A, value: 1.10}]
"""


def test_a_fix_says_what_it_moved_and_shows_no_secret(tmp_path):
    told = fix(tmp_path, {"jobs/gpt.yaml": MOVED}, "unsafe")
    assert "  jobs/gpt.yaml:5: removed `cleanPodPolicy: All`\n" in told
    assert "added `runPolicy: {cleanPodPolicy: All}`" in told
    assert "  jobs/gpt.yaml:14: `1.10` -> `'1.10'`" in told or '`"1.10"`' in told
    assert "hunter2" not in told


def test_many_changes_are_counted(tmp_path):
    files = {f"jobs/j{n:02}.yaml": JOB.replace("name: bert", f"name: j{n:02}") for n in range(30)}
    told = fix(tmp_path, {name: text.replace("gpu: 8", "gpus: 8") for name, text in files.items()})
    assert told.count("`gpus` -> `gpu`") == 20
    assert told.endswith("\n  and 10 more")


def test_a_request_that_differs_from_its_limit_has_two_right_answers(tmp_path):
    job = JOB.replace("gpu: 8", "requests: {gpu: 8}, limits: {gpu: 4}")
    assert fix(tmp_path, {"jobs/bert.yaml": job}).startswith("0 findings fixed in 0 files\n`--fix-unsafe` would fix 1;")
    assert "jobs/bert.yaml:8: `8` -> `4`" in fix(tmp_path, {"jobs/bert.yaml": job}, "unsafe")


# Amounts and fields


AMOUNTS = {
    "gpu: 0.5": "`gpu` is `0.5`, and must be a whole number; a container gets whole devices",
    'gpu: "0.5"': "`nvidia.com/gpu` must be a whole number; a container gets whole devices",
    'gpu: "a100:4"': "`nvidia.com/gpu` is `a100:4`, and must be a whole number such as `4`; select the model by"
    " `nodeSelector`, such as `nvidia.com/gpu.product`",
    "gpu: 4x H100": "`nvidia.com/gpu` is `4x H100`, and must be a whole number such as `4`; select the model by"
    " `nodeSelector`, such as `nvidia.com/gpu.product`",
    "gpu: 4 GPUs": "`nvidia.com/gpu` is `4 GPUs`, and must be a whole number such as `4`",
    "gpu: a100": "`nvidia.com/gpu` is `a100`, and must be a whole number such as `1`",
    "gpu: two": "`nvidia.com/gpu` is `two`, and must be a whole number such as `1`",
    "gpu: 8, memory: 32GB": "`memory` is `32GB`, and must be a quantity such as `32G` or `32Gi`",
    "gpu: 8, memory: 64kb": "`memory` is `64kb`, and must be a quantity such as `64k` or `64Ki`",
    "gpu: 8, memory: much": "`memory` is `much`, and must be a quantity such as `500Mi` or `4Gi`",
    "gpu: 8, cpu: few": "`cpu` is `few`, and must be a quantity such as `500m` or `4`",
}


@pytest.mark.parametrize("amount", AMOUNTS)
def test_an_amount_is_explained_by_its_resource(amount, tmp_path):
    job = JOB.replace("cpu: 8, memory: 64Gi, gpu: 8", amount)
    assert {each["message"] for each in lint_files(tmp_path, {"jobs/bert.yaml": job})} == {AMOUNTS[amount]}


def test_amounts_of_a_manifest_are_explained_by_their_resource(tmp_path):
    text = MOVED.replace("  cleanPodPolicy: All\n", "").replace(
        "env: [{name: API_TOKEN, value: hunter2-and-more}, {name: A, value: 1.10}]",
        "resources: {limits: {nvidia.com/gpu: two, memory: 32GB}}",
    )
    found = lint_files(tmp_path, {"jobs/gpt.yaml": text})
    assert [each["message"] for each in found] == [
        "`nvidia.com/gpu` is `two`, and must be a whole number such as `1`",
        "`memory` is `32GB`, and must be a quantity such as `32G` or `32Gi`",
    ]


def test_fields_that_are_indented_too_little_are_one_finding(tmp_path):
    job = JOB.replace("    master", "  master").replace("    worker", "  worker")
    [found] = lint_files(tmp_path, {"jobs/bert.yaml": job})
    message = "`master` belongs to `roles`, which has no value; indent what belongs to `roles` below it"
    assert (found["line"], found["message"], found["rule"]) == (11, message, "unknown-field")


def test_a_misspelled_field_after_an_empty_one_is_not_to_be_indented(tmp_path):
    job = JOB.replace("  shm: 8Gi\n", "  env:\n").replace("  roles:", "  rolse:")
    messages = [each["message"] for each in lint_files(tmp_path, {"jobs/bert.yaml": job})]
    assert "`rolse` is not a field of a job; did you mean `roles`?" in messages
    assert not any("indent" in message for message in messages)


def test_the_path_of_a_volume_is_where_it_is_mounted(tmp_path):
    job = JOB.replace("shm: 8Gi", "volumes: {data: {pvc: d, path: /data}}")
    [found] = only_errors(lint_files(tmp_path, {"jobs/bert.yaml": job}))
    assert found["message"] == "`path` is not a field of a volume; write `mountPath`"


def test_shared_memory_of_a_job_spec_is_a_field(tmp_path):
    [found] = lint_files(tmp_path, {"jobs/bert.yaml": JOB.replace("  shm: 8Gi\n", "")})
    assert found["message"] == "8 GPUs share the default 64 MiB of `/dev/shm`; set `shm`, such as `shm: 8Gi`"


# What to write instead


EXAMPLES = {
    ("command: [torchrun, train.py]", "command: torchrun train.py"): (
        "`command` is `torchrun train.py`, and must be a list; write `command: [torchrun, train.py]`"
    ),
    ("command: [torchrun, train.py]", "command: cd /x && torchrun train.py"): (
        "`command` is `cd /x && torchrun train.py`, and must be a list; write `command: [bash, -c]`, and the script as"
        " the only item of `args`, below `- |`"
    ),
    ("name: bert", "name: ResNet_50"): (
        "`name` is `ResNet_50`, and must be lower-case letters, digits, `-` and `.`, such as `resnet-50`"
    ),
    ("name: bert", "name: ___"): "`name` is `___`, and must be lower-case letters, digits, `-` and `.`",
    ("image: registry", "image: https://registry"): (
        "`https://registry.example.com/bert:1.4.2` is not a valid image name: `https:` is not a valid registry;"
        " remove `https://`"
    ),
}


@pytest.mark.parametrize("edit", EXAMPLES)
def test_a_message_shows_what_to_write(edit, tmp_path):
    found = lint_files(tmp_path, {"jobs/bert.yaml": JOB.replace(*edit)})
    assert {each["message"] for each in found} == {EXAMPLES[edit]}


def test_a_misspelled_option_leads_to_the_page_of_the_command():
    message = "jobgen: there is no option `--formt`; did you mean `--kubeconform`?"
    assert find_page("lint", message).endswith("/docs/lint.md")


# Syntax errors


SYNTAX = {
    ("shm: 8Gi", "shm:8Gi"): (9, 7, "`shm:8Gi` has no space after its colon; write `shm: 8Gi`"),
    ("shm: 8Gi", "shm"): (9, 3, "`shm` has no colon; write `shm:`"),
    ("    worker", "   worker"): (
        12,
        4,
        "`worker: {replicas: 3}` is not aligned with the lines around it; indent it by 1 more space",
    ),
    ("train.py]", "train.py"): (
        7,
        3,
        "`command: [torchrun, train.py` has a `[` that is not closed; write `command: [torchrun, train.py]`",
    ),
    ("replicas: 3}", "replicas: 3"): (
        12,
        5,
        "`worker: {replicas: 3` has a `{` that is not closed; write `worker: {replicas: 3}`",
    ),
    ("replicas: 3}", "replicas: [3,"): (
        12,
        5,
        "`worker: {replicas: [3,` has a `[` that is not closed; write `worker: {replicas: [3,]}`",
    ),
    ("{cpu: 8, memory: 64Gi, gpu: 8}", "{cpu: 8 gpu: 8}"): (
        8,
        21,
        "`resources: {cpu: 8 gpu: 8}` has no comma between two entries; write `resources: {cpu: 8, gpu: 8}`",
    ),
    ("shm: 8Gi", "env: x\n  - ..."): (
        10,
        3,
        "`- ...` is not aligned with the lines around it; indent it by 2 more spaces",
    ),
    ("shm: 8Gi", "description: second: try"): (
        9,
        16,
        '`description: second: try` has a value that needs quotes; write `description: "second: try"`',
    ),
    ("  image", "\u00a0 image"): (
        6,
        1,
        (
            "`image: registry.example.com/bert:1.4.2` is indented with `U+00A0`, which is not a space; "
            "indent it by 2 spaces"
        ),
    ),
}


def only_errors(findings):
    """The errors; a job with an error is checked further, and what is found may be advice."""
    return [each for each in findings if each["severity"] == "error"]


@pytest.mark.parametrize("edit", SYNTAX)
def test_a_syntax_error_says_what_to_do(edit, tmp_path):
    [found] = only_errors(lint_files(tmp_path, {"jobs/bert.yaml": JOB.replace(*edit)}))
    assert (found["line"], found["column"], found["message"]) == SYNTAX[edit]


def test_an_odd_space_in_a_block_of_text_is_no_error(tmp_path):
    job = JOB.replace("shm: 8Gi", "shm: 8Gi\n  description: |\n    a\n    \u00a0b")
    assert lint_files(tmp_path, {"jobs/bert.yaml": job}) == []


CONFLICT = (
    "the file has an unresolved merge conflict; keep one side, and remove the lines with"
    " `<<<<<<<`, `=======` and `>>>>>>>`"
)
CONFLICTS = {
    "both sides": ("<<<<<<< HEAD\n  shm: 8Gi\n=======\n  shm: 16Gi\n>>>>>>> faster", 9),
    "with their base": ("<<<<<<< HEAD\n  shm: 8Gi\n||||||| 1234567\n=======\n  shm: 16Gi\n>>>>>>> faster", 9),
    "Windows": ("<<<<<<< HEAD\r\n  shm: 8Gi\r\n=======\r\n  shm: 16Gi\r\n>>>>>>> faster\r", 9),
    "the middle is left": ("  shm: 8Gi\n=======", 10),
    "the end is left": ("  shm: 8Gi\n>>>>>>> faster", 10),
}


@pytest.mark.parametrize("case", CONFLICTS)
def test_a_merge_conflict_is_called_by_its_name(case, tmp_path):
    lines, line = CONFLICTS[case]
    [found] = lint_files(tmp_path, {"jobs/bert.yaml": JOB.replace("  shm: 8Gi", lines)})
    assert (found["line"], found["column"], found["message"]) == (line, 1, CONFLICT)


def test_a_conflict_in_a_block_of_text_is_no_error(tmp_path):
    job = JOB.replace("shm: 8Gi", "shm: 8Gi\n  description: |\n    <<<<<<< HEAD\n    =======\n    >>>>>>> b")
    assert lint_files(tmp_path, {"jobs/bert.yaml": job}) == []


# Amounts


@pytest.mark.parametrize(
    ("resources", "column"),
    [
        ("{cpu: 8, memory: 64Gi, gpu: 8, nvidia.com/gpu: 4}", 45),
        ("{cpu: 8, memory: 64Gi, nvidia.com/gpu: 4, gpu: 8}", 56),
        ("{cpu: 8, memory: 64Gi, limits: {gpu: 8, nvidia.com/gpu: 4}}", 54),
    ],
)
def test_gpus_under_two_names_are_an_error(resources, column, tmp_path):
    job = JOB.replace("{cpu: 8, memory: 64Gi, gpu: 8}", resources)
    [found] = lint_files(tmp_path, {"jobs/bert.yaml": job})
    message = "`gpu` is `nvidia.com/gpu` in this cluster, so the amount is set twice; remove one of them"
    assert (found["rule"], found["line"], found["column"], found["message"]) == ("duplicate-key", 8, column, message)


def test_gpus_of_two_vendors_and_limits_below_a_common_amount_are_no_error(tmp_path):
    for resources in ("gpu: 8, limits: {nvidia.com/gpu: 8}", "gpu: 8, requests: {gpu: 8}"):
        job = JOB.replace("gpu: 8", resources)
        assert lint_files(tmp_path, {"jobs/bert.yaml": job}) == []


# A field at the wrong level

TOP_LEVEL = {
    "a training job": ("jobs/bert.yaml", JOB, "image"),
    "an overlay": ("overlays/prod/overlay.yaml", overlay("{}")["overlays/prod/overlay.yaml"], "patches"),
    "a team": (
        "teams/nlp.yaml",
        "apiVersion: jobgen.dev/v1\nkind: Team\nmetadata: {name: nlp}\nspec: {folders: [jobs]}\n",
        "owners",
    ),
}


@pytest.mark.parametrize("format_", TOP_LEVEL)
def test_a_field_of_spec_at_the_top_level_belongs_below_spec(format_, tmp_path):
    path, text, key = TOP_LEVEL[format_]
    found = lint_files(tmp_path, {"jobs/bert.yaml": JOB, path: f"{text}{key}: []\nother: []\n"})
    assert [each["message"] for each in found if each["file"] == path] == [
        f"`{key}` is not a field of {format_}; put it below `spec`",
        f"`other` is not a field of {format_}; it has `apiVersion`, `kind`, `metadata` and `spec`",
    ]


# Several jobs


def test_two_jobs_of_one_name_are_one_finding_in_all_environments(tmp_path):
    job = JOB.replace(", namespace: ml", "")
    overlays = {**overlay("{namespace: ml-dev}", "dev"), **overlay("{namespace: ml-prod}", "prod")}
    lint_files(tmp_path, {"jobs/a.yaml": job, "jobs/b.yaml": job, **overlays})
    shown = text_of(tmp_path)
    assert shown.count("[duplicate-identity]") == 1
    assert (
        "jobs/b.yaml:3:18: error: `PyTorchJob bert` is rendered by two jobs; rename one of them (in dev, prod)" in shown
    )
    assert "note: jobs/a.yaml:3:18: first rendered here" in shown


@pytest.mark.parametrize("name", ["prod.yaml", "a.yaml"])
def test_a_rendered_object_among_the_jobs_is_to_be_deleted(name, tmp_path):
    settings = overlay("{cluster: {gitops: argocd}}", "prod")
    lint_files(tmp_path, {"jobs/bert.yaml": JOB, **settings})
    rendered = run_jobgen_text(tmp_path, "render", "-e", "prod", "--today", TODAY).stdout
    (tmp_path / "jobs" / name).write_text(rendered)
    shown = text_of(tmp_path)

    assert shown.count("[duplicate-identity]") == 1
    assert (
        f"jobs/{name}:4:9: error: `PyTorchJob bert` in `jobs/{name}` was rendered from `jobs/bert.yaml`, which renders "
        f"it still; delete `jobs/{name}`, and change `jobs/bert.yaml` or an overlay instead" in shown
    )
    assert "note: jobs/bert.yaml:3:18: rendered here" in shown


def test_an_output_without_its_source_may_be_deleted(tmp_path):
    lint_files(tmp_path, {"jobs/bert.yaml": JOB, **overlay("{}", "prod")})
    (tmp_path / "jobs/prod.yaml").write_text(run_jobgen_text(tmp_path, "render", "-e", "prod", "--today", TODAY).stdout)
    advice = "rename one of them, or delete `jobs/prod.yaml` if it is the output of `jobgen render`"

    assert f"jobs/prod.yaml:4:9: error: `PyTorchJob bert` is rendered by two jobs; {advice}" in text_of(tmp_path)


SWEEP = JOB.replace("spec:", "spec:\n  matrix: {lr: [a, b]}").replace("train.py]", "train.py, '${{ matrix.lr }}']")
RENAMED = overlay("{patches: [{match: {names: [other]}, manifest: {metadata: {name: bert}}}]}")
DUPLICATES = {
    "on a line of its own": ({"jobs/b.yaml": JOB.replace("{name: bert,", "{\n  name: bert,")}, 4, 9),
    "a member of a sweep": ({"jobs/a.yaml": JOB.replace("bert", "bert-b", 1), "jobs/b.yaml": SWEEP}, 3, 18),
    "renamed by a patch": ({"jobs/b.yaml": JOB.replace("bert", "other", 1), **RENAMED}, 3, 18),
}


@pytest.mark.parametrize("case", DUPLICATES)
def test_a_second_job_of_a_name_is_reported_at_its_name(case, tmp_path):
    files, line, column = DUPLICATES[case]
    found = lint_files(tmp_path, {"jobs/a.yaml": JOB, **files})
    [twin] = [each for each in found if each["rule"] == "duplicate-identity"]
    assert (twin["file"], twin["line"], twin["column"]) == ("jobs/b.yaml", line, column)
    assert [(each["file"], each["line"], each["column"]) for each in twin["related"]] == [("jobs/a.yaml", 3, 18)]


def test_a_kind_without_schema_names_all_environments_that_have_it(tmp_path):
    own = "apiVersion: example.com/v1\nkind: Own\nmetadata: {name: %s}\n"
    overlays = {**overlay("{namespace: ml-dev}", "dev"), **overlay("{namespace: ml-prod}", "prod")}
    found = lint_files(tmp_path, {"jobs/a.yaml": own % "a", "jobs/b.yaml": own % "b", **overlays})
    assert [(each["file"], each["env"]) for each in found] == [("jobs/a.yaml", "dev"), ("jobs/a.yaml", "prod")]
    shown = text_of(tmp_path)
    assert shown.count("[missing-schema]") == 1
    assert "the fields of 4 objects in 2 files were not checked" in shown
    assert "(in dev, prod) [missing-schema]" in shown


KIND = """\
apiVersion: example.com/v1
kind: AcmeJob
plural: acmejobs
platform: kubeflow
operator: {name: acme-operator}
frameworks: {acme: {}}
replicas: {at: spec.replicaSpecs, shape: map}
roles: {worker: {spelling: Worker, replicas: 1}}
container: acme
nameSufix: "-{role}-{index}"
"""


def test_an_error_in_a_kind_description_is_not_reported_again_for_its_jobs(tmp_path):
    job = JOB.replace("framework: pytorch", "framework: acme")
    other = JOB.replace("framework: pytorch", "framework: acmee").replace("bert", "other", 1)
    files = {"jobs/a.yaml": job, "jobs/b.yaml": other, "schemas/example.com/acmejob_v1.yaml": KIND}
    places = [(each["rule"], each["file"]) for each in lint_files(tmp_path, files)]
    assert places == [("invalid-value", "jobs/b.yaml"), ("unknown-field", "schemas/example.com/acmejob_v1.yaml")]


def test_a_suppressed_error_in_a_kind_description_does_not_hide_its_jobs(tmp_path):
    kind = f"# jobgen: ignore-file[unknown-field] -- known\n{KIND}"
    job = JOB.replace("framework: pytorch", "framework: acme")
    [found] = lint_files(tmp_path, {"jobs/a.yaml": job, "schemas/example.com/acmejob_v1.yaml": kind})
    assert (found["rule"], found["file"]) == ("invalid-value", "jobs/a.yaml")
    assert [(each["file"], each["line"]) for each in found["related"]] == [("schemas/example.com/acmejob_v1.yaml", 7)]


SPECS = {
    "worker: {replicas: 2}": "`worker` is not a field of a job; it is a role, so write it below `roles`",
    "launcher: {}": "`launcher` is not a field of a job; it is a role, so write it below `roles`",
    "gpusPerNode: 8": "`gpusPerNode` is not a field of a job; write `resources.gpu`",
    "nvidia.com/gpu: 8": "`nvidia.com/gpu` is not a field of a job; write it below `resources`",
    "shm: true": "`shm` is `true`, and must be a string or a whole number; for example, write `shm: 16Gi`",
    "shm: 256gi": "`shm` is `256gi`, and must be a quantity such as `256Gi`",
    "shm: 256 Gi": "`shm` is `256 Gi`, and must be a quantity such as `256Gi`",
    "shm：64Gi": "`shm：64Gi` has `：`, a full-width `:`; write `shm: 64Gi`",
    "env: [A=b]": "`env[0]` is `A=b`, and must be a mapping; write `env: {A: b}`",
    "env: [A=1]": '`env[0]` is `A=1`, and must be a mapping; write `env: {A: "1"}`',
    "args: ［a］": "`［a］` has `［`, a full-width `[`; write `[a]`",
}


@pytest.mark.parametrize("field", SPECS)
def test_a_common_mistake_in_a_spec_has_the_right_advice(tmp_path: Path, field: str) -> None:
    job = JOB.partition("  shm")[0] + f"  {field}\n"
    found = only_errors(lint_files(tmp_path, {"jobs/bert.yaml": job}))
    assert [each["message"] for each in found] == [SPECS[field]]


def test_a_wide_colon_is_found_before_the_line_of_the_error(tmp_path: Path) -> None:
    found = lint_files(tmp_path, {"jobs/bert.yaml": JOB.replace("framework: ", "framework：")})
    assert [(each["line"], each["column"]) for each in found] == [(5, 12)]


def test_text_in_place_of_a_list_is_shown_as_a_list(tmp_path: Path) -> None:
    found = lint_files(tmp_path, overlay("{extends: base}"))
    assert [each["message"] for each in found] == [
        "there is no overlay `base`",
        "`extends` is `base`, and must be a list; write `extends: [base]`",
    ]
    # Without its quotes, YAML reads this as `true`.
    found = lint_files(tmp_path, overlay("{extends: 'yes'}"))
    assert [each["message"] for each in found] == [
        "there is no overlay `yes`",
        "`extends` is `yes`, and must be a list; for example, write `extends: [base]`",
    ]


@pytest.mark.parametrize(("kind", "message"), [("Team", "a team belongs in"), ("JobTests", "tests of jobs belong in")])
def test_a_document_of_another_folder_is_one_finding(tmp_path: Path, kind: str, message: str) -> None:
    text = f"apiVersion: jobgen.dev/v1\nkind: {kind}\nmetadata: {{name: a}}\nspec: {{folders: [jobs], owners: []}}\n"
    found = lint_files(tmp_path, {"jobs/a.yaml": text})
    assert [each["rule"] for each in found] == ["misplaced-document"]
    assert found[0]["message"].startswith(message)


@pytest.mark.parametrize(("name", "hint"), [("ламa", ""), ("ResNet_50", ", such as `resnet-50`")])
def test_a_name_of_which_little_is_left_is_not_suggested(tmp_path: Path, name: str, hint: str) -> None:
    found = lint_files(tmp_path, {"jobs/bert.yaml": JOB.replace("name: bert", f"name: {name}")})
    assert [each["message"] for each in found] == [
        f"`name` is `{name}`, and must be lower-case letters, digits, `-` and `.`{hint}"
    ]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("NCLL_IB_HCA", "NCCL_IB_HCA"),
        ("NCCL_IB_HAC", "NCCL_IB_HCA"),
        ("OMP_NUM_THREDS", "OMP_NUM_THREADS"),
        ("CUDA_VISABLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
        ("MKL_NUM_THREADS", ""),
        ("MY_NUM_THREADS", ""),
        ("NCCL_IB_TC", ""),
    ],
)
def test_misspelled_variable_of_a_library_is_named(name, meant, tmp_path):
    found = _find_launch_warnings(tmp_path, ["torchrun", "train.py"], name)

    assert found == ([f"no known library reads `{name}`; did you mean `{meant}`?"] if meant else [])


def test_variable_that_a_script_reads_is_no_misspelled_one(tmp_path):
    assert not _find_launch_warnings(tmp_path, ["sh", "-c", "exec python train.py --card $NCLL_IB_HCA"], "NCLL_IB_HCA")


@pytest.mark.parametrize(
    ("module", "meant"),
    [
        ("torch.distributed.lunch", "torch.distributed.launch"),
        ("torch.distributed.runn", "torch.distributed.run"),
        ("torch.distributed.rpc", ""),
        ("team.training.launch", ""),
    ],
)
def test_misspelled_module_of_a_launcher_is_named(module, meant, tmp_path):
    found = _find_launch_warnings(tmp_path, ["python", "-m", module, "train.py"], "LOG")

    advice = f"`{module}` is not a module (`No module named {module}`); did you mean `{meant}`?"
    assert found == ([advice] if meant else [])


def _find_launch_warnings(folder, command, variable):
    main = {
        "name": "pytorch",
        "image": "registry.example.com/bert:1.4.2",
        "command": command,
        "env": [{"name": variable, "value": "mlx5"}],
        "resources": {"limits": {"cpu": 4, "memory": "16Gi"}},
    }
    role = {"replicas": 1, "restartPolicy": "OnFailure", "template": {"spec": {"containers": [main]}}}
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "bert", "namespace": "ml"},
        "spec": {"pytorchReplicaSpecs": {"Worker": role}},
    }
    (folder / "job.json").write_text(json.dumps(job))
    found = find_findings(LintRequest(folder, ("job.json",))).findings
    return [each.message for each in found if each.rule in ("launch-refused", "launch-variables")]


@pytest.mark.parametrize(
    "typed",
    ["volumes: {d: {mountPath: /d}}", "volumes: {d: /d}", "volumes: [{name: d, mountPath: /d}]", "mount: {d: /d}"],
)
def test_volumes_of_an_init_container_are_its_mounts(typed, tmp_path):
    """The volume is in the job, and here is its path; that the container does not mount it follows."""
    fetch = f"initContainers: {{fetch: {{image: a/b:1.0.0, args: [cp, a, /d], {typed}}}}}"
    job = JOB.replace("shm: 8Gi", f"shm: 8Gi\n  volumes: {{d: {{emptyDir: {{}}, mountPath: /d}}}}\n  {fetch}")
    found = [each for each in lint_files(tmp_path, {"jobs/bert.yaml": job}) if each["rule"] != "missing-requests"]
    name = typed.partition(":")[0]
    assert [(each["rule"], each["message"]) for each in found if each["severity"] != "info"] == [
        ("unknown-field", f"`{name}` is not a field of a container; write `mounts: {{d: /d}}`")
    ]


WITH_STORAGE = """\
apiVersion: batch/v1
kind: Job
metadata: {name: bert, namespace: ml}
spec:
  template:
    spec:
      restartPolicy: Never
      volumes: [{name: v, emptyDir: {%s}}]
      containers: [{name: a, image: "a/b:1.0.0", volumeMounts: [{name: v, mountPath: /v}], resources: {%s}}]
"""


@pytest.mark.parametrize(
    ("volume", "resources", "said"),
    [
        ("", "limits: {ephemeral-storage: 200}", ["error: `200` is too little local storage", "write `200Gi`"]),
        ("", "requests: {ephemeral-storage: 50}", ["warning: `50` is too little local storage", "write `50Gi`"]),
        ("", "limits: {ephemeral-storage: 512m}", ["error: `512m` is too little local storage", "write `512Mi`"]),
        ("", "limits: {ephemeral-storage: 20Gi}, requests: {ephemeral-storage: 0}", []),
        ("sizeLimit: 200", "", ["warning: `200` is too little local storage", "write `200Gi`"]),
        ("sizeLimit: 16, medium: Memory", "", ["warning: `16` is too little memory", "write `16Gi`"]),
        ("sizeLimit: 200Gi", "", []),
        ("sizeLimit: 64k", "", []),
        ("sizeLimit: 64k, medium: Memory", "", ["no program fits into less than a mebibyte; write `64Gi`"]),
        ("", "limits: {memory: 64}", ["error: `64` is too little memory", "write `64Gi`"]),
    ],
)
def test_amounts_without_a_unit_are_bytes(volume, resources, said, tmp_path):
    found = lint_files(tmp_path, {"jobs/a.yaml": WITH_STORAGE % (volume, resources)})
    texts = [
        f"{each['severity']}: {each['message']}"
        for each in found
        if each["rule"].endswith(("y-too-small", "m-too-small"))
    ]

    assert len(texts) == bool(said), texts
    assert all(word in text for text in texts for word in said), texts


SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: hub, namespace: ml}\nstringData: {token: a, user: b}\n"
HUB = {"jobs/hub.yaml": SECRET}
OF_KUSTOMIZE = {
    "k/job.yaml": WITH_STORAGE % ("", ""),
    "k/kustomization.yaml": """\
        apiVersion: kustomize.config.k8s.io/v1beta1
        kind: Kustomization
        resources: [job.yaml]
        patches:
          - target: {kind: Job, name: bert}
            patch: |-
              - {op: add, path: %s, value: {name: EPOCHS, value: "3"}}
        """,
}
APPLICATION = """\
    apiVersion: argoproj.io/v1alpha1
    kind: Application
    metadata: {name: trainer, namespace: argocd}
    spec:
      project: default
      source: {repoURL: "https://charts.example.com", chart: t, targetRevision: 1.2.0, helm: {values: %s}}
      destination: {server: "https://kubernetes.default.svc", namespace: ml}
    """
TWICE = "              env: [{name: A, value: '3'}, {name: A, value: '5'}]\n"
LIST_PATH = "/spec/template/spec/containers/0/env/-"


def with_field(text: str) -> dict[str, str]:
    """The files of a job with a field."""
    return {"jobs/bert.yaml": JOB.replace("shm: 8Gi", f"shm: 8Gi\n  {text}")}


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            {**HUB, **with_field("secrets: {hub: {env: {token: HF_TOKEN}}}")},
            "no key `HF_TOKEN`, but a key `token`, which is the variable here; swap the two",
        ),
        ({**HUB, **with_field("secrets: {hub: {env: {user: tokn}}}")}, "no key `tokn`; did you mean `token`?"),
        (
            {**with_field(""), **overlay("{patches: [{match: {kinds: [TrainingJob]}, merge: {shm: 4Gi}}]}")},
            "write `kinds: [PyTorchJob]`, the kinds of the rendered objects, or remove `kinds`",
        ),
        (
            {**with_field(""), **overlay("{patches: [{match: {kinds: [PytorchJob]}, merge: {shm: 4Gi}}]}")},
            "no job has the kind `PytorchJob`; did you mean `PyTorchJob`?",
        ),
        (
            {**OF_KUSTOMIZE, "k/kustomization.yaml": OF_KUSTOMIZE["k/kustomization.yaml"] % LIST_PATH},
            "to create the list, write `path: /spec/template/spec/containers/0/env`, and the value as an item",
        ),
        (
            {
                **OF_KUSTOMIZE,
                "k/kustomization.yaml": OF_KUSTOMIZE["k/kustomization.yaml"]
                % "/spec/template/spec/containers/0/volumeMount/-",
            },
            "did you mean `volumeMounts`?",
        ),
        (
            {"jobs/app.yaml": APPLICATION % "{image: {tag: a}, replicas: 2}"},
            "write `values: |`, and keep the lines below it as its text, or rename it to `valuesObject`",
        ),
        (
            {"jobs/job.yaml": PYTORCH + TWICE},
            "`A` occurs twice in `env` as `name`; delete the first one: containers get the last one",
        ),
        (
            with_field("volumes: [/scratch/ImageNet:/data:ro]"),
            "write `volumes: {imagenet: {hostPath: /scratch/ImageNet, mountPath: /data, readOnly: true}}`",
        ),
        (
            with_field("volumes: [datasets:/data]"),
            "write `volumes: {datasets: {pvc: datasets, mountPath: /data}}`",
        ),
        (
            with_field("volumes: [/a:/data, c]"),
            "for example, write `volumes: {data: {pvc: datasets, mountPath: /data, readOnly: true}}`",
        ),
    ],
)
def test_the_way_out_is_written_with_the_own_values(files, said, tmp_path):
    found = [each["message"] for each in lint_files(tmp_path, files) if each["severity"] == "error"]

    assert [said in each for each in found] == [True], found

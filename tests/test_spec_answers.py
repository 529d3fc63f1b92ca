"""Mistakes in specs, overlays and sweeps: the line of each answer, its words, and one finding for one fault."""

from __future__ import annotations

import pytest
from lintfiles import lint_files
from test_misread import RUN, H
from test_new_user_answers import Case, append, change, command, patch

from jobgen.rendering import config
from jobgen.rendering.render_task import render_jobs
from jobgen.yamlio.write import to_yaml

JOB = H + RUN
PROD = "overlays/prod/overlay.yaml"
DEV = "overlays/dev/overlay.yaml"
PATCHED = "  patches:\n    - match: {names: [a]}\n"
OBJECT = f"{PATCHED}      manifest: {{spec: {{pytorchReplicaSpecs: {{Master: {{template: {{spec: "
OPERATION = f"{PATCHED}      jsonPatch:\n        - {{op: replace, value: 1, path: "
VOLUMES = "  volumes:\n    sets: {pvc: sets, mountPath: /sets}\n"
SETTINGS = ((DEV, patch("  {}\n").replace("prod", "dev")), (PROD, patch("  {}\n")))


def on_prod(text: str) -> str:
    return patch(text)


CASES = {
    "field of a pod in its template": Case(
        append("  podTemplate:\n    terminationGracePeriodSeconds: 120\n"),
        11,
        "is not a field of `podTemplate`; write it in `podTemplate.spec`",
    ),
    "field of a pod in a role": Case(
        append("  roles:\n    master:\n      podTemplate: {hostNetwork: true}\n"), 12, "write it in `podTemplate.spec`"
    ),
    "field of a pod in the defaults": Case(
        on_prod("  defaults:\n    podTemplate:\n      hostIPC: true\n"), 7, "in `podTemplate.spec`", file=PROD
    ),
    "text behind a quote": Case(append('  env:\n    A: "b",c\n    D: e\n'), 11, 'write `A: "b,c"`', "extra"),
    "text behind a quote and a space": Case(append("  description: 'big' run\n"), 10, 'write `description: "big run"`'),
    "text behind a quoted item": Case(command('\n    - python\n    - "a"b\n'), 11, 'write `- "ab"`', "extra"),
    "file in configs": Case(
        append("  configs:\n    train.toml: |\n      lr = 1\n"),
        11,
        "write `train: {mountPath: /etc/train, data: {train.toml: …}}`",
    ),
    "list of variables": Case(append("  env:\n    - A=1\n    - B=2\n    - C=3\n"), 11, 'C: "3"'),
    "patch of kustomize": Case(
        on_prod(
            "  patches:\n    - target: {kind: RayJob, name: a}\n      patch: |-\n        - {op: remove, path: /b}\n"
        ),
        6,
        "write `match: {kinds: [RayJob], names: [a]}` and `jsonPatch` with the list of operations, as YAML",
        file=PROD,
    ),
    "merge of kustomize": Case(
        on_prod("  patches:\n    - patch: {spec: {suspend: true}}\n      target: {labelSelector: team=cv}\n"),
        6,
        "write `match: {labels: {team: cv}}` and `manifest`",
        file=PROD,
    ),
    "other container": Case(
        on_prod(f"{OBJECT}{{containers: [{{name: trainer, env: [{{name: A, value: b}}]}}]}}}}}}}}}}}}\n"),
        7,
        "requires `image`; set it, or write `pytorch` for its name",
        file=PROD,
    ),
    "case of a role in a path": Case(
        on_prod(f"{OPERATION}/spec/pytorchReplicaSpecs/master/replicas}}\n"), 8, "did you mean `Master`?", file=PROD
    ),
    "container in a path": Case(
        on_prod(f"{OPERATION}'/spec/pytorchReplicaSpecs/Master/template/spec/containers/[name=main]/image'}}\n"),
        8,
        "there is `pytorch`",
        file=PROD,
    ),
    "index in a path": Case(
        on_prod(f"{OPERATION}/spec/pytorchReplicaSpecs/Master/template/spec/containers/3/image}}\n"),
        8,
        "the list has 1 item",
        file=PROD,
    ),
    "long name of an environment": Case(
        "environments: [dev, production]\n", 1, "did you mean `prod`?", "", 1, "jobgen.yaml", SETTINGS
    ),
    "unknown environment": Case(
        "environments: [dev, qa, prod]\n", 1, "there are `dev` and `prod`", "", 1, "jobgen.yaml", SETTINGS
    ),
    "two volumes at one path": Case(
        append(f"{VOLUMES}    out: {{emptyDir: {{}}, mountPath: /sets}}\n"), 12, "`/sets` occurs twice"
    ),
    "option of a sweep": Case(
        H + "  matrix: {seed: [1, 2, 3]}\n  command:\n    - python\n    - t.py\n    - --seed ${{ matrix.seed }}\n",
        13,
        "`--seed …` is one argument, with its space; write two items, or `--seed=…`",
    ),
    "unset variable": Case(
        command('[python, t.py, "--name=${RUN_NAME}"]'),
        9,
        "set it in `env` and write `$(RUN_NAME)`, or start a shell: `[sh, -c, …]`",
        "; write `$(RUN_NAME)`",
    ),
    "variable of the job": Case(
        command('[python, t.py, "--lr=$LR"]') + "  env: {LR: '0.1'}\n", 9, "without a shell; write `$(LR)`"
    ),
    "variable of the operator": Case(command('[python, t.py, "--rank=${RANK}"]'), 9, "; write `$(RANK)`"),
    "apostrophe in an item": Case(command("['echo', 'don't']"), 9, """write `command: ['echo', "don't"]`"""),
    "text that is not indented": Case(
        append("  env:\n    NOTE: |\n    first line\n    second line\n"), 12, "indent it by 2 more spaces, and move"
    ),
    "volume that is not indented": Case(
        append("  volumes:\n    out:\n    pvc: out\n    mountPath: /out\n"), 12, "`pvc` belongs to `out`", "mapping"
    ),
    "one overlay": Case(
        on_prod("  extends: common\n"),
        5,
        "write `extends: [common]`",
        file=PROD,
        others=(("overlays/common/overlay.yaml", patch("  defaults: {replicas: 2}\n").replace("prod", "common")),),
    ),
    "role in another case": Case(
        on_prod(f"{PATCHED}      manifest: {{spec: {{pytorchReplicaSpecs: {{master: {{replicas: 1}}}}}}}}\n"),
        7,
        "did you mean `Master`?",
        file=PROD,
    ),
    "sidecar": Case(append("  sidecars: {log: b/c:1.0.0}\n"), 10, "write `log: {image: b/c:1.0.0}`"),
    "source of variables": Case(
        append("  envFrom: {secretRef: {name: hub}}\n"), 10, "write `envFrom: [{secretRef: {name: hub}}]`"
    ),
    "variable of a secret": Case(append("  secrets: {hub: {TOKEN: key}}\n"), 10, "write `env: {TOKEN: …}`"),
    "variable with a value": Case(append("  env: {A: {value: b}}\n"), 10, "write the value behind its name"),
    "claim and path": Case(append("  volumes: {data: sets:/sets}\n"), 10, "`data: {pvc: sets, mountPath: /sets}`"),
    "variable of a matrix": Case(
        f"{H}  matrix: {{lr: [1, 2]}}\n  args: ['${{{{ matrix.rate }}}}']\n", 10, "there is `lr`"
    ),
    "environment of a patch": Case(
        on_prod("  patches: [{match: {environments: [prod]}, merge: {shm: 8Gi}}]\n"),
        5,
        "a patch applies to the environments of its overlay",
        file=PROD,
    ),
    "names of a patch": Case(
        on_prod("  patches: [{names: [a], merge: {shm: 8Gi}}]\n"), 5, "write it below `match`", file=PROD
    ),
    "bounds of a job": Case(append("  maxReplicas: 4\n"), 10, "write `maxReplicas` of a role, below `roles`"),
    "labels at the top": Case(JOB + "labels: {team: nlp}\n", 10, "put it below `metadata`"),
    "shm in resources": Case(change("gpu: 1}", "gpu: 1, shm: 4Gi}"), 7, "write `shm: 4Gi` beside `resources`"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_has_the_answer_that_helps(name, tmp_path):
    case = CASES[name]
    found = lint_files(tmp_path, {"jobs/a.yaml": JOB, **dict(case.others), case.file: case.text})

    assert len(found) == case.count, [each["message"] for each in found]
    assert (found[0]["file"], found[0]["line"]) == (case.file, case.line)
    assert case.words in found[0]["message"]
    assert not case.forbidden or case.forbidden not in found[0]["message"]


def test_a_volume_that_is_mounted_twice_names_the_other_mount(tmp_path):
    text = f"{PATCHED}      merge: {{volumes: {{tmp: {{emptyDir: {{}}, mountPath: /sets}}}}}}\n"
    found = lint_files(tmp_path, {"jobs/a.yaml": append(VOLUMES), PROD: on_prod(text)})

    assert [(each["rule"], each["line"]) for each in found] == [("duplicate-item", 7)]
    assert [(note["file"], note["line"]) for note in found[0]["related"]] == [("jobs/a.yaml", 11)]


DELETED = {
    "readOnly": ("{pvc: sets, mountPath: /d, readOnly: true}", "{readOnly: null}", "readOnly"),
    "subPath": ("{pvc: sets, mountPath: /d, subPath: x}", "{subPath: null}", "subPath"),
    "source": ("{emptyDir: {sizeLimit: 1Gi}, mountPath: /d}", "{emptyDir: null, pvc: sets}", "sizeLimit: 1Gi"),
    "share": ("{nfs: {server: a, path: /b, readOnly: true}, mountPath: /d}", "{nfs: {readOnly: null}}", "readOnly"),
    "part of a share": ("{nfs: {server: a, path: /b}, mountPath: /d}", "{nfs: {path: /c}}", "/b"),
}


@pytest.mark.parametrize("name", DELETED)
def test_null_deletes_any_field_of_a_volume(name, tmp_path):
    written, changed, gone = DELETED[name]
    text = f"{PATCHED}      merge: {{volumes: {{d: {changed}}}}}\n"
    job = append(f"  volumes: {{d: {written}}}\n")
    assert lint_files(tmp_path, {"jobs/a.yaml": job, PROD: on_prod(text)}) == []

    rendered = "".join(to_yaml(each.object) for each in render_jobs(config.load_own(tmp_path), ["prod"]).objects)
    assert "kind: PyTorchJob" in rendered
    assert gone not in rendered


def test_a_role_is_reported_where_its_name_is_written(tmp_path):
    job = (
        JOB.replace("framework: pytorch", "framework: ray\n  platform: ray\n  ray: {version: 2.46.0}")
        + "  roles:\n    head: {}\n    Big_Group: {replicas: 1}\n"
    )
    found = lint_files(tmp_path, {"jobs/a.yaml": job})

    assert [(each["rule"], each["line"]) for each in found] == [("rejected-child", 14)]

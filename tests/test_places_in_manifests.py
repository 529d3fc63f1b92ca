"""Fields of manifests at wrong levels, or of Docker Compose, and what to write instead of values of a wrong form."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest
from lintfiles import lint_files, overlay
from linting import lint_paths
from test_misread import RUN, H

JOB = H + RUN
JOB_HEAD = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a, namespace: ml}\nspec:\n"
POD = """\
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: main
          image: r.example.com/a:1.0.0
          command: [python, train.py]
          resources: {limits: {cpu: 8, memory: 64Gi}}
"""


def lint_text(folder: Path, text: str) -> list[tuple[int, str]]:
    (folder / "a.yaml").write_text(text)
    done = lint_paths(folder, ("a.yaml",), (), format_="json")
    return [(each["line"], each["message"]) for each in json.loads(done.out)["findings"] if each["severity"] == "error"]


CONTAINER = {
    "shm_size: 8gb": "mount an `emptyDir` with `medium: Memory` at `/dev/shm`",
    "environment: {A: b}": "write `env: [{name: …, value: …}]`",
    "gpus: all": "write `nvidia.com/gpu` below `resources.limits`",
    "entrypoint: [python]": "write `command`",
    "restart: always": "write `restartPolicy` in the pod",
    "nodeSelector: {a: b}": "it belongs in `spec.template.spec`",
    "working_dir: /app": "did you mean `workingDir`?",
}


@pytest.mark.parametrize("typed", CONTAINER)
def test_a_field_that_no_container_has(typed, tmp_path):
    [(line, message)] = lint_text(tmp_path, f"{JOB_HEAD}{POD}          {typed}\n")
    name = typed.partition(":")[0]
    assert (line, message) == (13, f"`{name}` is not a field of `containers[0]`; {CONTAINER[typed]}")


@pytest.mark.parametrize("typed", ["nodeSelector: {pool: a}", "tolerations: []", "serviceAccountName: a"])
def test_a_field_of_the_pod_is_not_taken_for_one_of_the_job(typed, tmp_path):
    [(_, message)] = lint_text(tmp_path, f"{JOB_HEAD}  {typed}\n{POD}")
    assert message.endswith("is not a field of `spec`; it belongs in `spec.template.spec`")


def test_amounts_directly_below_resources(tmp_path):
    text = f"{JOB_HEAD}{POD}".replace("{limits: {cpu: 8, memory: 64Gi}}", "{cpu: 8, memory: 64Gi, nvidia.com/gpu: 1}")
    [(line, message)] = lint_text(tmp_path, text)
    assert (line, message.partition(",")[0]) == (12, "`cpu` and 2 other fields belong in `limits`")

    text = f"{JOB_HEAD}{POD}".replace("64Gi}}", "64Gi}, nvidia.com/gpu: 1}")
    [(_, message)] = lint_text(tmp_path, text)
    assert message == "`nvidia.com/gpu` is not a field of `resources`; it belongs in `limits`"


def test_roles_without_their_level(tmp_path):
    roles = "  Master:\n    replicas: 1\n" + textwrap.indent(POD, "  ")
    text = JOB_HEAD.replace("batch/v1", "kubeflow.org/v1").replace("kind: Job", "kind: PyTorchJob") + roles
    [(line, message)] = lint_text(tmp_path, text.replace("name: main", "name: pytorch"))
    assert (line, message.partition(";")[0]) == (5, "`Master` belongs in `pytorchReplicaSpecs`, which is missing")


def test_the_command_of_a_ray_job_is_its_entrypoint(tmp_path):
    text = JOB_HEAD.replace("batch/v1", "ray.io/v1").replace("kind: Job", "kind: RayJob") + "  command: [python, a]\n"
    found = lint_text(tmp_path, text)
    assert (5, "`command` is not a field of `spec`; write the whole command line as `entrypoint`, as one text") in found


def test_a_mount_means_the_volume_that_nothing_mounts(tmp_path):
    mounts = "          volumeMounts: [{name: dataset, mountPath: /data}]\n"
    volume = "      volumes: [{name: data, emptyDir: {sizeLimit: 1Gi}}]\n"
    assert lint_text(tmp_path, JOB_HEAD + POD + mounts + volume) == [
        (13, "the pod has no volume `dataset`; did you mean `data`?")
    ]


def test_a_headless_service_in_lower_case(tmp_path):
    text = (
        "apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: ml}\nspec: {clusterIP: none, selector: {a: b}}\n"
    )
    [(_, message)] = lint_text(tmp_path, text)
    assert message == "`none` is not a valid IP address; write `None` for a headless Service"


FORMS = {
    "nodeSelector: pool=h100": "write `nodeSelector: {pool: h100}`",
    "labels: team=nlp,tier=a": "write `labels: {team: nlp, tier: a}`",
    "args: {lr: 0.1, epochs: 3}": "write `args: [--lr=0.1, --epochs=3]`",
    "volumes: {data: /data}": "for example, write `data: {pvc: data, mountPath: /data}`",
    "configs: {train: ./conf/train.yaml}": "write `train: {mountPath: /etc/train, data: {train.yaml: …}}`, with",
    "runPolicy: {ttl: 3600}": "write `ttlSecondsAfterFinished`",
    "runPolicy: {timeout: 1h}": "write `activeDeadlineSeconds: 3600`",
    "activeDeadlineSeconds: 1d": "write `activeDeadlineSeconds: 86400` below `runPolicy`",
    "activeDeadlineSeconds: 60": "write `runPolicy.activeDeadlineSeconds`",
}


@pytest.mark.parametrize("typed", FORMS)
def test_the_form_that_was_meant_has_the_values_that_were_written(typed, tmp_path):
    [found] = lint_files(tmp_path, {"jobs/a.yaml": f"{JOB}  {typed}\n"})
    assert (found["line"], FORMS[typed] in found["message"]) == (10, True), found["message"]


IMAGES = {"r.example.com/a 1.2.0": "r.example.com/a:1.2.0", "r.example.com/my image:1.0": "r.example.com/myimage:1.0"}


@pytest.mark.parametrize("image", IMAGES)
def test_a_space_in_an_image(image, tmp_path):
    text = JOB.replace("image: registry.example.com/a:1.0.0", f"image: {image}")
    [found] = lint_files(tmp_path, {"jobs/a.yaml": text})
    assert found["message"].endswith(f"; write `{IMAGES[image]}`")


def test_locked_paths_and_tags_of_an_overlay(tmp_path):
    prod = overlay("{locked: [resource.gpu, spec.image], images: {r.example.com/a: 1.5.0}}")
    found = lint_files(tmp_path, {**prod, "jobs/a.yaml": JOB})
    messages = " ".join(each["message"] for each in found)
    assert 'write `images: [{name: r.example.com/a, newTag: "1.5.0"}]`' in messages

    found = lint_files(tmp_path, {**overlay("{locked: [resource.gpu, spec.image]}"), "jobs/a.yaml": JOB})
    assert [each["message"].partition("; ")[2] for each in found] == [
        "did you mean `resources.gpu`?",
        "did you mean `image`?",
    ]


def test_the_beginning_of_a_severity(tmp_path):
    [found] = lint_files(tmp_path, {"jobs/a.yaml": JOB, "jobgen.yaml": "rules: {missing-shm: warn}\n"})
    assert found["message"].endswith("; did you mean `warning`?")


def test_what_stands_above_its_level_is_not_to_be_removed(tmp_path):
    text = f"{JOB}  podTemplate: {{containers: [{{name: x, image: a:1.0}}]}}\n"
    [found] = lint_files(tmp_path, {"jobs/a.yaml": text})
    assert found["message"].endswith("; write it in `podTemplate.spec`")


MORE_FORMS = {
    "volumes: {d: {nfs: 'nfs.example.com:/export', mountPath: /d}}": "{server: nfs.example.com, path: /export}`",
    "replicas: 2-4": "must be a whole number",
}


@pytest.mark.parametrize("typed", MORE_FORMS)
def test_an_example_does_not_stand_for_what_was_written(typed, tmp_path):
    [found] = lint_files(tmp_path, {"jobs/a.yaml": f"{JOB}  {typed}\n"})
    assert found["message"].endswith(MORE_FORMS[typed])


def test_patterns_in_settings_and_patches(tmp_path):
    [found] = lint_files(tmp_path, {"jobs/a.yaml": JOB, "jobgen.yaml": "exclude: jobs/old/*\n"})
    assert found["message"].endswith('must be a list; write `exclude: ["jobs/old/*"]`')

    prod = overlay("{patches: [{match: {names: ['^a.*$']}, merge: {replicas: 2}}]}")
    [found] = lint_files(tmp_path, {**prod, "jobs/a.yaml": JOB})
    assert found["message"].endswith("no job has the name `^a.*$`; write `a*`, as `*` stands for any text")


def test_a_comma_behind_an_image(tmp_path):
    text = JOB.replace("image: registry.example.com/a:1.0.0", "image: registry.example.com/a:1.0.0,")
    [found] = lint_files(tmp_path, {"jobs/a.yaml": text})
    assert found["message"].endswith("; write `registry.example.com/a:1.0.0`, without the `,` at its end")

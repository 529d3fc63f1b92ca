"""A chart becomes specs with an overlay for each of its values; what is not the same in a repository is named."""

from __future__ import annotations

import os
import random
import re
import tempfile
from pathlib import Path

import pytest
import yaml
from command import run_jobgen
from helm_charts import HELM, METADATA, WITHOUT_HELM, below, needs_helm, template, write_files

from jobgen.model.quantity import to_milli

pytestmark = needs_helm
WITH_HELM = os.pathsep.join((str(HELM.parent), WITHOUT_HELM))

JOBS = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: {{ .Release.Name }}
  namespace: ml
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: {{ .Values.workers }}
      restartPolicy: OnFailure
      template:
        spec:
          containers:
            - name: pytorch
              image: {{ .Values.image }}
              command: [torchrun, train.py]
              resources:
                limits: {nvidia.com/gpu: {{ .Values.gpus }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: ml}
data: {gpus: {{ .Values.gpus | quote }}}
"""
CHART = {
    "Chart.yaml": METADATA.replace("web", "train"),
    "values.yaml": "image: registry.example.com/train:1.4.0\ngpus: 1\nworkers: 2\n",
    "values-prod.yaml": "gpus: 8\nworkers: 4\n",
    "templates/job.yaml": JOBS,
}
HOOK = """\
apiVersion: batch/v1
kind: Job
metadata: {name: hook, annotations: {helm.sh/hook: pre-install}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: "a:1"}]}}}
---
apiVersion: v1
kind: Secret
metadata: {name: random}
stringData: {password: {{ randAlphaNum 20 }}}
"""


def run(root: Path, *arguments: str, path: str = WITH_HELM) -> tuple[int, str, str]:
    done = run_jobgen(root, *arguments, env={**os.environ, "PATH": path})
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def objects_of(text: str | bytes) -> list[dict]:
    found = [each for each in yaml.safe_load_all(text) if each]
    for each in found:
        annotations = each["metadata"].get("annotations", {})
        for name in [name for name in annotations if name.startswith("jobgen.dev/")]:
            del annotations[name]
        if not annotations:
            each["metadata"].pop("annotations", None)
    return sorted(found, key=lambda each: (each["kind"], each["metadata"]["name"]))


def test_the_specs_of_a_chart_render_to_what_helm_renders(tmp_path: Path) -> None:
    root = write_files(tmp_path, below("chart", CHART))
    code, _, errors = run(root, "init", "new", "--from", "chart")

    assert code == 0, errors
    assert (root / "new/overlays/prod/overlay.yaml").is_file()
    for env, values in (("default", "values.yaml"), ("prod", "values-prod.yaml")):
        _, rendered, _ = run(root / "new", "render", "-e", env)
        plain = template(root / "chart", "train", "--values", str(root / "chart" / values))
        assert objects_of(rendered) == objects_of(plain), env


KINDS = {
    "pytorch": """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: "{{ .Release.Name }}-NAME", namespace: ml, labels: {{ .Values.labels | toJson }}}
spec:
  runPolicy: {backoffLimit: {{ .Values.retries }}}
  pytorchReplicaSpecs:
    Worker:
      replicas: {{ .Values.workers }}
      restartPolicy: OnFailure
      template: {spec: {containers: [CONTAINER]}}
""",
    "job": """\
apiVersion: batch/v1
kind: Job
metadata: {name: "{{ .Release.Name }}-NAME", namespace: ml, labels: {{ .Values.labels | toJson }}}
spec:
  parallelism: {{ .Values.workers }}
  backoffLimit: {{ .Values.retries }}
  template: {spec: {restartPolicy: Never, containers: [CONTAINER]}}
""",
    "job set": """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: "{{ .Release.Name }}-NAME", namespace: ml, labels: {{ .Values.labels | toJson }}}
spec:
  replicatedJobs:
    - name: node
      replicas: 1
      template:
        spec:
          parallelism: {{ .Values.workers }}
          completions: {{ .Values.workers }}
          template: {spec: {restartPolicy: Never, containers: [CONTAINER]}}
""",
    "other": """\
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-NAME", namespace: ml, labels: {{ .Values.labels | toJson }}}
data: {text: {{ .Values.text | quote }}, workers: {{ .Values.workers | quote }}}
""",
}
CONTAINER = (
    "{name: pytorch, image: {{ .Values.image | quote }}, args: {{ .Values.arguments | toJson }}, "
    "env: [{name: TEXT, value: {{ .Values.text | quote }}}], resources: {limits: {{ .Values.limits | toJson }}}}"
)
TEXTS = ["a", "on", "1e3", "0x1F", "{{ x }}", "${HOME}", "$(A)", " a: b", "x\\ny", "null", "ä", "~", "1.10", "'", '"']


def make_values(chance: random.Random) -> dict[str, object]:
    return {
        "workers": chance.choice([1, 2, 4]),
        "retries": chance.choice([0, 3]),
        "image": f"registry.example.com/train:{chance.choice(['1.4.0', '2.0', 'v1'])}",
        "labels": {name: chance.choice(["a", "1", "true"]) for name in chance.sample(["team", "example.com/x"], 1)},
        "text": chance.choice(TEXTS),
        "arguments": chance.sample(TEXTS, 2),
        "limits": chance.choice(
            [{"nvidia.com/gpu": 8}, {"cpu": "500m", "memory": "1Gi"}, {"cpu": 2, "memory": "1.5Gi"}]
        ),
    }


def measure(node: object) -> object:
    """Return data in which equal amounts are equal: the API server writes `1.5Gi` as `1536Mi`."""
    if isinstance(node, dict):
        amounts = {name: to_milli(str(value)) for name, value in node.get("limits", {}).items()}
        return {key: measure(each) for key, each in node.items()} | ({"limits": amounts} if amounts else {})
    return list(map(measure, node)) if isinstance(node, list) else node


@pytest.mark.parametrize("seed", range(6))
def test_what_is_written_of_charts_by_chance_renders_to_what_helm_renders(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    chosen = chance.sample(sorted(KINDS), 2)
    templates = {
        f"templates/{at}.yaml": KINDS[name].replace("CONTAINER", CONTAINER).replace("NAME", str(at))
        for at, name in enumerate(chosen)
    }
    values = {"values.yaml": make_values(chance), "values-prod.yaml": make_values(chance)}
    texts = {name: yaml.safe_dump(each) for name, each in values.items()}
    root = write_files(tmp_path, below("chart", {"Chart.yaml": METADATA, **texts, **templates}))
    code, _, errors = run(root, "init", "new", "--from", "chart")

    # What cannot be the same is named; what is written is the same.
    left_out = set(re.findall(r"(?m)^.*not imported: (\w+ `[^`]+`)", errors))
    assert code == 0 or left_out, errors
    for env, name in (("default", "values.yaml"), ("prod", "values-prod.yaml")):
        _, rendered, failed = run(root / "new", "render", "-e", env)
        plain = objects_of(template(root / "chart", "web", "--values", str(root / "chart" / name)))
        wanted = [each for each in plain if f"{each['kind']} `{each['metadata']['name']}`" not in left_out]
        assert measure(objects_of(rendered)) == measure(wanted), (env, failed)


def test_what_is_not_the_same_in_a_repository_is_named_and_not_written(tmp_path: Path) -> None:
    root = write_files(tmp_path, below("chart", {**CHART, "templates/other.yaml": HOOK}))
    code, _, errors = run(root, "init", "new", "--from", "chart")

    assert code == 1
    assert "chart/templates/other.yaml:1:1: not imported: Job `hook` is a hook of helm" in errors
    assert "chart/templates/other.yaml:6:1: not imported: helm renders Secret `random` differently each time" in errors
    texts = [path.read_text() for path in (root / "new").rglob("*.yaml")]
    assert not any("hook:" in text or "random" in text for text in texts)


def test_a_value_that_is_missing_is_named(tmp_path: Path) -> None:
    required = '---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ required "give a name" .Values.name }}}\n'
    files = {**CHART, "templates/name.yaml": required, "values-prod.yaml": f"{CHART['values-prod.yaml']}name: n\n"}
    root = write_files(tmp_path, below("chart", files))
    code, _, errors = run(root, "init", "new", "--from", "chart")

    assert code == 1
    assert "chart/templates/name.yaml:4:" in errors
    assert "`.Values.name` has no value" in errors
    assert "1 of other kinds kept" in errors, errors


@pytest.mark.parametrize("is_same", [True, False])
def test_import_of_a_chart(tmp_path: Path, is_same: bool) -> None:
    files = {**CHART, "values-prod.yaml": "# Nothing.\n{}\n"} if is_same else CHART
    root = write_files(tmp_path, {**below("chart", files), "jobgen.yaml": ""})
    code, _, errors = run(root, "import", "chart", "-o", "jobs")

    assert (root / "jobs/train.yaml").is_file(), errors
    assert (root / "overlays/prod/overlay.yaml").exists() is not is_same
    # A ConfigMap is no job, which `import` leaves to the reader.
    assert (code, "the same object is in" in errors) == (int(is_same), False), errors
    assert tempfile.gettempdir() not in errors


def test_an_import_without_helm_says_so(tmp_path: Path) -> None:
    root = write_files(tmp_path, below("chart", CHART))
    for arguments in (("init", "new", "--from", "chart"), ("import", "chart", "-o", "jobs")):
        code, _, errors = run(root, *arguments, path=WITHOUT_HELM)
        assert (code, "because helm is not on PATH" in errors) == (3, True)


APPLICATION = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: NAME, namespace: argocd}
spec:
  project: default
  destination: {server: https://kubernetes.default.svc, namespace: ml}
  source:
    repoURL: https://github.com/example/gitops
    path: chart
    helm: {releaseName: train, valueFiles: [../envs/NAME.yaml]}
"""


@pytest.mark.stress
def test_the_releases_of_the_repository_are_the_environments(tmp_path: Path) -> None:
    files = {
        **below("chart", CHART),
        "apps/dev.yaml": APPLICATION.replace("NAME", "dev"),
        "apps/prod.yaml": APPLICATION.replace("NAME", "prod"),
        "envs/dev.yaml": "gpus: 2\n",
        "envs/prod.yaml": "gpus: 4\n",
    }
    root = write_files(tmp_path, files)
    code, _, errors = run(root, "init", "new", "--from", "chart")

    assert code == 0, errors
    assert sorted(path.name for path in (root / "new/overlays").iterdir()) == ["dev", "prod"]
    _, rendered, _ = run(root / "new", "render", "-e", "prod")
    plain = template(root / "chart", "train", "--values", str(root / "envs/prod.yaml"))
    assert objects_of(rendered) == objects_of(plain)

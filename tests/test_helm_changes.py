"""What a change of a chart or of values does: in `diff`, in `lint --since`, and on the pages."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from command import run_jobgen
from helm_charts import HELM, METADATA, WITHOUT_HELM, below, needs_helm, write_files
from pagedata import PageData, find_data

from jobgen.model.builtin_rules import CHANGE_RULES

pytestmark = needs_helm
WITH_HELM = os.pathsep.join((str(HELM.parent), WITHOUT_HELM))

JOB = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}
  labels: {kueue.x-k8s.io/queue-name: ml}
spec:
  suspend: true
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: train
          image: {{ .Values.image }}
          env: [{name: LEVEL, value: {{ .Values.level | quote }}}]
          resources:
            limits: {memory: {{ .Values.memory }}, cpu: 1, nvidia.com/gpu: {{ .Values.gpus }}}
"""
TRAIN = {
    "Chart.yaml": METADATA.replace("web", "train"),
    "values.yaml": "image: registry.example.com/train:1.4.0\ngpus: 8\nmemory: 64Gi\nlevel: info\n",
    "templates/job.yaml": JOB,
}
APPLICATION = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: NAME, namespace: argocd}
spec:
  project: default
  destination: {server: https://kubernetes.default.svc, namespace: ml}
  source:
    repoURL: https://github.com/example/gitops
    path: charts/train
    helm: {valueFiles: [../../envs/NAME.yaml]}
"""
FILES = {
    **below("charts/train", TRAIN),
    "apps/large.yaml": APPLICATION.replace("NAME", "large"),
    "apps/small.yaml": APPLICATION.replace("NAME", "small"),
    "envs/large.yaml": "memory: 128Gi\n",
    "envs/small.yaml": "# Small.\ngpus: 1\n",
}


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", root, "-c", "user.name=a", "-c", "user.email=a@b", *arguments], check=True)


def commit(root: Path, files: dict[str, str]) -> Path:
    """Make a repository with a commit."""
    write_files(root, files)
    git(root, "init", "-q")
    git(root, "remote", "add", "origin", "git@github.com:example/gitops.git")
    git(root, "add", ".")
    git(root, "commit", "-qm", "a")
    return root


def run(root: Path, *arguments: str, path: str = WITH_HELM) -> tuple[int, str, str]:
    done = run_jobgen(root, *arguments, env={**os.environ, "PATH": path})
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def diff(root: Path, *arguments: str) -> list[dict]:
    _, output, errors = run(root, "diff", "HEAD", "--format", "json", *arguments)
    assert output, errors
    found: list[dict] = json.loads(output)["objects"]
    return found


@pytest.mark.stress
def test_a_change_of_values_names_the_objects_of_the_releases_that_it_reaches(tmp_path: Path) -> None:
    root = commit(tmp_path, FILES)
    write_files(root, {"envs/large.yaml": "memory: 256Gi\n"})
    [changed] = diff(root)

    assert (changed["happening"], changed["effect"]) == ("changed", "rejected")
    assert changed["object"] == {"apiVersion": "batch/v1", "kind": "Job", "namespace": "ml", "name": "large"}
    assert changed["source"] == "chart charts/train with envs/large.yaml by apps/large.yaml"
    [field] = changed["fields"]
    assert (field["cause"]["file"], field["cause"]["line"]) == ("envs/large.yaml", 1)
    assert (changed["before"]["memory"], changed["after"]["memory"]) == ("128Gi", "256Gi")

    write_files(root, {"charts/train/values.yaml": TRAIN["values.yaml"].replace("gpus: 8", "gpus: 4")})
    gpus = {each["object"]["name"]: each["after"]["gpus"] for each in diff(root)}
    # The small one has its own number of GPUs.
    assert gpus == {"large": 4}


def test_the_cause_of_a_change_in_a_list_is_the_line_of_the_value_that_changed(tmp_path: Path) -> None:
    text = (
        JOB.replace("{{ .Values.image }}", "{{ .Values.repository }}:{{ .Values.tag }}")
        + "          args: {{ toJson .Values.args }}\n"
        + "      tolerations:\n        {{- toYaml .Values.tolerations | nindent 8 }}\n"
    )
    values = (
        "gpus: 8\nmemory: 64Gi\nlevel: info\nrepository: example.com/train\ntag: x1\nargs: [a, b]\n"
        "tolerations:\n  - key: gpu\n    effect: NoSchedule\n"
    )
    root = commit(tmp_path, {**TRAIN, "templates/job.yaml": text, "values.yaml": values})
    write_files(root, {"values.yaml": values.replace("x1", "x2").replace("NoSchedule", "NoExecute")})
    [changed] = diff(root)

    causes = {each["field"].rpartition(".")[2]: each["cause"]["line"] for each in changed["fields"]}
    assert causes == {"image": 5, "tolerations": 9}


def test_a_change_of_a_template_is_one_of_all_releases(tmp_path: Path) -> None:
    root = commit(tmp_path, FILES)
    write_files(root, {"charts/train/templates/job.yaml": JOB.replace("Never", "OnFailure")})
    found = diff(root)

    assert {each["object"]["name"] for each in found} == {"large", "small"}
    causes = {(each["fields"][0]["cause"]["file"], each["fields"][0]["cause"]["line"]) for each in found}
    assert causes == {("charts/train/templates/job.yaml", 10)}
    code, text, _ = run(root, "diff", "HEAD")
    assert code == 0
    assert "also affected: Job ml/small of chart charts/train with envs/small.yaml by apps/small.yaml" in text


@pytest.mark.stress
def test_a_chart_without_releases_is_compared_with_its_values(tmp_path: Path) -> None:
    root = commit(tmp_path, TRAIN)
    write_files(root, {"values.yaml": TRAIN["values.yaml"].replace("gpus: 8", "gpus: 16")})

    assert [each["source"] for each in diff(root)] == ["chart ."]
    assert diff(root)[0]["fields"][0]["cause"]["line"] == 2


def test_releases_with_the_same_names_are_told_apart(tmp_path: Path) -> None:
    other = APPLICATION.replace("name: NAME", "name: other").replace("NAME", "small")
    same = "helm: {releaseName: train, "
    files = {**FILES, "apps/small.yaml": other.replace("helm: {", same)}
    files["apps/large.yaml"] = files["apps/large.yaml"].replace("helm: {", same)
    root = commit(tmp_path, files)
    write_files(root, {"envs/small.yaml": "\n\ngpus: 2\n"})

    [changed] = diff(root)
    assert (changed["happening"], changed["source"]) == (
        "changed",
        "chart charts/train with envs/small.yaml by apps/small.yaml",
    )


def test_what_is_not_rendered_on_a_side_is_not_compared(tmp_path: Path) -> None:
    root = commit(tmp_path, FILES)
    required = '{{ required "give a name" .Values.name }}\n'
    write_files(root, {"charts/train/templates/two.yaml": f"a: {required}"})
    code, text, errors = run(root, "diff", "HEAD")

    assert (code, "removed" in text.replace("0 removed", "")) == (1, False)
    assert "not compared, because of errors in work tree: charts/train" in text
    assert "charts/train/templates/two.yaml:1:" in errors
    (root / "charts/train/templates/two.yaml").unlink()
    code, text, _ = run(root, "diff", "HEAD", path=WITHOUT_HELM)
    assert code == 0
    assert "not compared in work tree: charts/train/Chart.yaml: 1 Helm chart was not checked" in text
    code, _, errors = run(root / "charts", "diff", "HEAD", path=WITHOUT_HELM)
    assert (code, "because helm is not on PATH" in errors) == (3, True)


def test_two_versions_of_a_chart_are_compared_as_folders(tmp_path: Path) -> None:
    new = {**TRAIN, "templates/job.yaml": JOB.replace("suspend: true", "suspend: false")}
    root = write_files(tmp_path, {**below("old", TRAIN), **below("new", new)})
    _, output, _ = run(root, "diff", "--folders", "old", "new", "--format", "json")

    assert [each["fields"][0]["field"] for each in json.loads(output)["objects"]] == ["spec.suspend"]


def test_values_of_secrets_are_not_shown_wherever_a_template_writes_them(tmp_path: Path) -> None:
    secret = (
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {tone: {{ .Values.tone }}}\n"
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {text: {{ .Values.tone }}}\n"
    )
    values = "tone: Tr0ub4dor-and-3x-1\n"
    files = {"Chart.yaml": METADATA, "values.yaml": values, "templates/a.yaml": secret, "jobgen.yaml": ""}
    root = commit(tmp_path, files)
    write_files(root, {"values.yaml": values.replace("-1", "-2")})
    texts = [run(root, "diff", "HEAD", "--format", name)[1] for name in ("text", "json", "markdown", "html")]
    texts.append(run(root, "report", "-o", "-")[1])

    assert all(texts)
    assert not any("Tr0ub4dor" in text for text in texts)


def found_in(report: dict) -> list[tuple[str, str, int]]:
    return sorted((each["rule"], each["file"], each["line"]) for each in report["findings"])


@pytest.mark.parametrize(
    "change",
    [
        {"envs/large.yaml": "memory: 128Gi\ngpu: 2\nimage: registry.example.com/train\n"},
        {"charts/train/values.yaml": TRAIN["values.yaml"].replace("gpus: 8", "gpus: -1")},
        {"charts/train/templates/job.yaml": JOB.replace("suspend", "suspended")},
        {"apps/large.yaml": APPLICATION.replace("NAME", "large").replace("envs/large", "envs/none")},
    ],
    ids=["values of a release", "values", "template", "application"],
)
def test_since_reports_the_difference_of_two_lints(tmp_path: Path, change: dict[str, str]) -> None:
    before = {**FILES, "charts/train/values.yaml": TRAIN["values.yaml"].replace("level", "levels")}
    root = commit(tmp_path, before)
    old = json.loads(run(root, "lint", "--format", "json")[1])
    write_files(root, change)
    new = json.loads(run(root, "lint", "--format", "json")[1])
    since = json.loads(run(root, "lint", "--since", "HEAD", "--format", "json")[1])

    known = found_in(old)
    assert known
    assert found_in(since)
    about_findings = [each for each in found_in(since) if each[0] not in CHANGE_RULES]
    assert about_findings == [each for each in found_in(new) if each not in known]


QUEUES = """\
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: gpu}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: ml}
spec:
  namespaceSelector: {}
  resourceGroups:
    - coveredResources: [cpu, memory, nvidia.com/gpu]
      flavors:
        - name: gpu
          resources:
            - {name: cpu, nominalQuota: 100}
            - {name: memory, nominalQuota: 1Ti}
            - {name: nvidia.com/gpu, nominalQuota: 8}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: ml, namespace: ml}
spec: {clusterQueue: ml}
"""


@pytest.mark.stress
def test_the_page_shows_the_objects_of_charts_with_their_values(tmp_path: Path) -> None:
    root = commit(tmp_path, {**FILES, "queues.yaml": QUEUES, "jobgen.yaml": ""})
    code, page, _ = run(root, "report", "-o", "-")
    data = PageData(find_data(page))

    assert code == 0
    jobs = {each["name"]: each for each in data.table("jobs") if each["isJob"]}
    assert {name: each["source"] for name, each in jobs.items()} == {
        name: f"chart charts/train with envs/{name}.yaml by apps/{name}.yaml" for name in ("large", "small")
    }
    assert jobs["large"]["file"] == "charts/train/templates/job.yaml"
    decisions = {each["name"]: each["decision"] for each in data.table("workloads")}
    # Both together need more than the quota.
    assert sorted(decisions.values()) == ["admitted", "waits"]
    origins = {each["file"] for each in data.table("origins")}
    assert {"envs/large.yaml", "envs/small.yaml", "charts/train/values.yaml"} <= origins


def test_the_page_of_a_pull_request_names_chart_and_values(tmp_path: Path) -> None:
    root = commit(tmp_path, FILES)
    write_files(root, {"envs/small.yaml": "gpus: 1\nmemory: 1Gi\nimage: registry.example.com/train:latest\n"})
    _, page, _ = run(root, "diff", "HEAD", "--format", "html")
    data = PageData(find_data(page))

    assert [each["source"] for each in data.table("changes")] == [
        "chart charts/train with envs/small.yaml by apps/small.yaml"
    ]
    new = {(each["file"], each["line"]) for each in data.table("causes") if not each["old"]}
    assert new == {("envs/small.yaml", 2), ("envs/small.yaml", 3)}
    assert "mutable-image-tag" in {each["rule"] for each in data.table("findings")}

"""Charts beside the jobs of a repository: found, judged, compared and shown; nothing of them is skipped silently."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from command import run_jobgen
from helm_charts import (
    GOOD,
    HELM,
    METADATA,
    WITHOUT_HELM,
    below,
    count_helm,
    needs_helm,
    read_calls,
    write_files,
)
from pagedata import PageData, find_data
from sampling import leave

WITH_HELM = os.pathsep.join((str(HELM.parent), WITHOUT_HELM))
JOBS = {
    "jobgen.yaml": "cluster: {kubernetes: '1.32'}\n",
    "jobs/train.yaml": """\
apiVersion: batch/v1
kind: Job
metadata: {name: own, namespace: ml}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: train, image: registry.example.com/train:1.4.0, resources: {limits: {memory: 1Gi}}}]
""",
}
OVERLAY = "apiVersion: jobgen.dev/v1\nkind: Overlay\nmetadata: {name: prod}\nspec: {}\n"
BAD = below("charts/web", {**GOOD, "values.yaml": "port: 80000\n"})
PORT = ("invalid-port", "charts/web/templates/service.yaml", 6)
APPLICATION = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web, namespace: argocd}
spec:
  project: default
  destination: {server: https://kubernetes.default.svc, namespace: ml}
  source:
    repoURL: https://github.com/example/gitops
    path: charts/web
    helm: {valueFiles: [../../envs/web.yaml]}
"""


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", root, "-c", "user.name=a", "-c", "user.email=a@b", *arguments], check=True)


def commit(root: Path, files: dict[str, str]) -> Path:
    write_files(root, files)
    git(root, "init", "-q")
    git(root, "remote", "add", "origin", "git@github.com:example/gitops.git")
    git(root, "add", ".")
    git(root, "commit", "-qm", "a")
    return root


def run(root: Path, *arguments: str, path: str = WITH_HELM) -> tuple[int, str, str]:
    done = run_jobgen(root, *arguments, env={**os.environ, "PATH": path})
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def lint(root: Path, *arguments: str, path: str = WITH_HELM) -> list[tuple[str, str, int]]:
    _, output, errors = run(root, "lint", "--no-cache", "--format", "json", *arguments, path=path)
    assert output, errors
    return [(each["rule"], each["file"], each["line"]) for each in json.loads(output)["findings"]]


@needs_helm
@pytest.mark.parametrize("arguments", [(), (".",), ("charts/web/values.yaml",)])
def test_charts_beside_jobs_are_judged(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert lint(write_files(tmp_path, {**JOBS, **BAD}), *arguments) == [PORT]


@needs_helm
def test_charts_are_found_from_a_folder_below_and_not_where_nothing_belongs_to_the_repository(tmp_path: Path) -> None:
    others = ("node_modules/a", ".hidden/a", "jobs/charts/web", "overlays/a", "charts/web/charts/inner", "other")
    copies = {name: text for folder in others for name, text in below(folder, {**GOOD, "values.yaml": ""}).items()}
    root = write_files(tmp_path, {**JOBS, **BAD, **copies, "other/jobgen.yaml": ""})

    assert ("web/templates/service.yaml", 6) in {each[1:] for each in lint(root / "charts")}
    explained = run(root, "lint", "--explain-files")[1]
    assert [line.split(":")[0] for line in explained.splitlines() if "rendered Helm chart" in line] == [
        "charts/web/Chart.yaml"
    ]


@needs_helm
def test_the_jobs_alone_are_linted_if_they_are_named(tmp_path: Path) -> None:
    assert lint(write_files(tmp_path, {**JOBS, **BAD}), "jobs") == []


@needs_helm
def test_charts_that_the_settings_exclude_are_left_out(tmp_path: Path) -> None:
    excluded = {**JOBS, **BAD, "jobgen.yaml": "exclude: [charts/]\n"}

    assert lint(write_files(tmp_path, excluded)) == []


def test_without_helm_one_info_counts_the_charts(tmp_path: Path) -> None:
    root = write_files(tmp_path, {**JOBS, **BAD, **below("other/app", GOOD)})

    assert lint(root, path=WITHOUT_HELM) == [("unjudged-chart", "charts/web/Chart.yaml", 1)]
    strict = {rule for rule, _, _ in lint(root, "--strict-files", path=WITHOUT_HELM)}
    assert strict == {"unjudged-chart", "unjudged-file"}


def test_that_not_all_of_a_repository_is_searched_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobgen.repo.chart_search.MAX_SEARCHED", 3)
    root = write_files(tmp_path, {**JOBS, **BAD})

    assert lint(root, path=WITHOUT_HELM) == [("unjudged-chart", "jobgen.yaml", 1)]


@needs_helm
def test_objects_beside_jobs_say_with_which_values_a_chart_is_installed(tmp_path: Path) -> None:
    good = {**below("charts/web", GOOD), "apps/web.yaml": APPLICATION, "envs/web.yaml": "port: 80001\n"}
    root = commit(tmp_path, {**JOBS, **good})

    assert lint(root) == [PORT]
    write_files(root, {"envs/web.yaml": "port: 81\n"})
    assert lint(root, "--since", "HEAD") == []


@needs_helm
def test_a_baseline_and_a_comparison_have_the_findings_of_charts(tmp_path: Path) -> None:
    root = commit(tmp_path, {**JOBS, **below("charts/web", GOOD)})
    write_files(root, {"charts/web/values.yaml": "port: 80000\n"})

    assert lint(root, "--since", "HEAD") == [PORT]
    run(root, "lint", "--write-baseline", "--baseline", "known.json")
    assert lint(root, "--baseline", "known.json") == []


@needs_helm
def test_a_comparison_and_the_pages_have_the_objects_of_charts(tmp_path: Path) -> None:
    files = {
        **JOBS,
        **below("charts/web", GOOD),
        "overlays/prod/overlay.yaml": OVERLAY,
    }
    root = commit(tmp_path / "repository", files)
    write_files(root, {"charts/web/values.yaml": "port: 8080\n"})
    _, output, errors = run(root, "diff", "HEAD", "--format", "json")
    [changed] = json.loads(output)["objects"]

    assert (changed["happening"], changed["source"]) == ("changed", "chart charts/web"), errors
    cause = changed["fields"][0]["cause"]
    assert (cause["file"], cause["line"]) == ("charts/web/values.yaml", 1)
    code, _, errors = run(root, "report", "-o", "site", "--since", "HEAD")
    assert code == 0, errors
    page = PageData(find_data((root / "site/index.html").read_text()))
    assert {row["source"] for row in page.table("jobs")} == {"", "chart charts/web"}


@needs_helm
def test_results_of_charts_are_kept_until_something_changes(tmp_path: Path) -> None:
    path = count_helm(tmp_path / "bin")
    root = write_files(tmp_path / "repository", {**JOBS, **BAD})
    run(root, "lint", path=path)
    run(root, "lint", path=path)
    assert len(read_calls(tmp_path / "bin")) == 1
    write_files(root, below("charts/new", {**GOOD, "Chart.yaml": METADATA.replace("web", "new")}))
    run(root, "lint", path=path)
    assert len(read_calls(tmp_path / "bin")) == 2


def make_application(*names: str) -> str:
    return APPLICATION.replace("charts/web", "charts/train").replace(
        "    helm: {valueFiles: [../../envs/web.yaml]}\n", ""
    )


WORKLOADS = {
    "job": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {template: POD}\n",
    "hook": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a, annotations: {helm.sh/hook: pre-upgrade}}\n"
    "spec: {template: POD}\n",
    "deployment": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n"
    "spec: {selector: {matchLabels: {app: a}}, template: POD}\n",
    "stateful set": "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: a}\n"
    "spec: {serviceName: '{{ .Values.service }}', selector: {matchLabels: {app: a}}, template: POD}\n",
    "cron job": "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\n"
    "spec: {schedule: '0 0 * * *', jobTemplate: {spec: {template: POD}}}\n",
    "job set": "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a}\n"
    "spec: {replicatedJobs: [{name: node, template: {spec: {template: POD}}}]}\n",
    "training job": "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: a}\n"
    "spec: {pytorchReplicaSpecs: {Worker: {replicas: 1, template: POD}}}\n",
}
POD = (
    "{metadata: {labels: {app: a}}, spec: {RESTART, containers: [{name: pytorch, image: '{{ .Values.image }}', "
    "resources: {limits: {cpu: 1, memory: 1Gi}}}]}}"
)


def write_workload(name: str, fill: dict[str, str]) -> str:
    """Return a template, or what it writes with values."""
    restart = "" if name in ("deployment", "stateful set") else "restartPolicy: Never"
    text = WORKLOADS[name].replace("POD", POD).replace("RESTART, ", f"{restart}, " if restart else "")
    for key, value in fill.items():
        text = text.replace(f"{{{{ .Values.{key} }}}}", value)
    return text


@needs_helm
@pytest.mark.parametrize(
    ("name", "key"),
    # A change of the image does to each kind something of its own.
    leave(
        [(name, key) for key in ("image", "service") for name in WORKLOADS],
        lambda case: case[1] == "service" and case[0] not in ("job", "hook"),
    ),
)
def test_a_change_of_values_does_to_a_chart_what_it_does_to_the_manifest(tmp_path: Path, name: str, key: str) -> None:
    old, new = (
        {"image": "a/b:1", "service": "one"},
        {"image": "a/b:1", "service": "one"} | {key: "a/b:2" if key == "image" else "two"},
    )
    chart = below("charts/train", {"Chart.yaml": METADATA, "templates/job.yaml": write_workload(name, {})})
    effects: list[list[tuple[str, str]]] = []
    problems: list[list[tuple[str, str]]] = []
    for form in ("manifest", "chart"):
        root = tmp_path / form
        for fill in (old, new):
            values = "".join(f"{key}: {value}\n" for key, value in fill.items())
            made = {"jobs/a.yaml": write_workload(name, fill)}
            files = {**chart, "charts/train/values.yaml": values, "apps/train.yaml": make_application()}
            files = {
                "jobgen.yaml": "cluster: {platform: kubernetes}\n",
                "jobs/.keep": "",
                **(files if form == "chart" else made),
            }
            commit(root, files) if fill is old else write_files(root, files)
        found = json.loads(run(root, "diff", "HEAD", "--format", "json")[1])["objects"]
        effects.append([(field["field"], field["effect"]) for each in found for field in each["fields"]])
        _, output, _ = run(root, "lint", "--since", "HEAD", "--no-cache", "--format", "json")
        about_change = ("immutable-field-changed", "edit-without-effect")
        problems.append(
            [
                (each["rule"], each["severity"])
                for each in json.loads(output)["findings"]
                if each["rule"] in about_change
            ]
        )

    assert effects[0] == effects[1]
    assert problems[0] == problems[1]
    if name == "hook" and key == "image":
        assert [effect for _, effect in effects[1]] == ["in-place"]
    if name == "job" and key == "image":
        assert problems[1] == [("immutable-field-changed", "error")]

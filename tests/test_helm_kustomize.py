"""Charts that a kustomization changes: what is judged is what kubectl builds, on the lines that wrote it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from command import run_jobgen
from helm_charts import GOOD, HELM, WITHOUT_HELM, below, needs_helm, write_files
from kubectl import GO

from jobgen.api.tree_entries import list_tree_entries

pytestmark = needs_helm
WITH_HELM = os.pathsep.join((str(HELM.parent), WITHOUT_HELM))
KUBECTL = HELM.parent / "kubectl"
CHART = {
    **GOOD,
    "templates/job.yaml": """\
apiVersion: batch/v1
kind: Job
metadata: {name: {{ .Release.Name }}-job}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: a, image: "{{ .Values.image }}", comand: [x]}]
""",
    "values.yaml": "port: 80\nimage: registry.example.com/a:1\n",
}
CHARTS = "helmCharts:\n  - name: web\n    releaseName: a\n    valuesInline: {port: 81}\n"
PATCH = (
    "patches:\n  - target: {kind: Service}\n    patch: |\n      - {op: replace, path: /spec/ports/0/port, value: %s}\n"
)
FILES = {**below("charts/web", CHART), "kustomization.yaml": CHARTS + PATCH % 80003}


def lint(root: Path, *arguments: str, path: str = WITH_HELM) -> list[tuple[str, str, int]]:
    done = run_jobgen(root, "lint", "--no-cache", "--format", "json", *arguments, env={**os.environ, "PATH": path})
    assert done.stdout, done.stderr.decode()
    return [(each["rule"], each["file"], each["line"]) for each in json.loads(done.stdout)["findings"]]


UNKNOWN = ("unknown-field", "charts/web/templates/job.yaml", 8)


def test_what_a_patch_writes_is_judged_on_its_line_and_the_rest_in_the_template(tmp_path: Path) -> None:
    root = write_files(tmp_path, FILES)
    assert lint(root) == [UNKNOWN, ("invalid-port", "kustomization.yaml", 8)]
    write_files(root, {"kustomization.yaml": CHARTS.replace("81", "80004") + PATCH % 82})
    assert lint(root) == [UNKNOWN]
    write_files(
        root, {"kustomization.yaml": CHARTS + PATCH % 82, "charts/web/templates/job.yaml": "# {{ .Values.a.b }}\n"}
    )
    assert [each[0] for each in lint(root) if each[0] != "unread-value"] == ["chart-value-missing"]


def test_a_chart_of_a_base_is_judged_in_the_builds_of_overlays(tmp_path: Path) -> None:
    files = {f"base/{name}": text for name, text in FILES.items()} | {
        "base/kustomization.yaml": CHARTS.replace("81", "80004"),
        "good/kustomization.yaml": "resources: [../base]\n" + PATCH % 82,
        "bad/kustomization.yaml": "resources: [../base]\nnamePrefix: b-\n",
    }
    found = lint(write_files(tmp_path, files))

    assert sorted(found) == [
        ("invalid-port", "base/charts/web/templates/service.yaml", 6),
        ("unknown-field", "base/charts/web/templates/job.yaml", 8),
    ]


def test_a_comment_in_a_template_suppresses_there_as_well(tmp_path: Path) -> None:
    comment = "      # jobgen: ignore[unknown-field] -- known\n      containers"
    job = CHART["templates/job.yaml"].replace("      containers", comment)
    found = lint(write_files(tmp_path, {**FILES, "charts/web/templates/job.yaml": job}))

    assert found == [("invalid-port", "kustomization.yaml", 8)]


def test_without_helm_or_with_a_chart_that_is_not_there_it_is_said(tmp_path: Path) -> None:
    root = write_files(tmp_path, FILES)
    assert "unbuilt-kustomization" in {each[0] for each in lint(root, path=WITHOUT_HELM)}
    write_files(root, {"kustomization.yaml": CHARTS + "  - {name: other, repo: 'https://example.com'}\n" + PATCH % 82})
    assert {"unbuilt-kustomization", "unjudged-chart"} <= {each[0] for each in lint(root)}


KUSTOMIZATIONS = {
    "patch": PATCH % 82,
    "prefix": "namePrefix: x-\nlabels: [{pairs: {a: b}, includeSelectors: true}]\n",
    "image": "images: [{name: registry.example.com/a, newTag: '2'}]\n",
    "generator": "configMapGenerator: [{name: c, literals: [a=b]}]\ncommonAnnotations: {a: b}\n",
    "strategic": "patches:\n  - patch: |\n      apiVersion: v1\n      kind: Service\n      metadata: {name: a}\n"
    "      spec: {type: NodePort}\n",
}


def read_objects(text: bytes) -> list[str]:
    return sorted(json.dumps(each, sort_keys=True) for each in yaml.safe_load_all(text) if each)


@pytest.mark.skipif(not KUBECTL.exists(), reason="kubectl is not installed beside Python")
@pytest.mark.parametrize("name", KUSTOMIZATIONS)
def test_what_is_built_is_what_kubectl_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("PATH", WITH_HELM)
    root = write_files(tmp_path / "a", {**FILES, "kustomization.yaml": CHARTS + KUSTOMIZATIONS[name]})
    entries: list[Any] = list_tree_entries(root, root, None) or []
    builds = [entry.build for entry in entries if entry.build and entry.build.file == "kustomization.yaml"]
    found = [json.dumps(each.data, sort_keys=True) for build in builds for each in build().objects]
    copy = shutil.copytree(root, tmp_path / "b")
    command = [KUBECTL, "kustomize", "--enable-helm", "--helm-command", HELM, copy]
    done = subprocess.run(
        command, capture_output=True, check=False, env={"HOME": str(tmp_path), "PATH": WITH_HELM, **GO}
    )

    assert done.returncode == 0, done.stderr
    assert sorted(found) == read_objects(done.stdout)


def test_charts_that_are_hidden_or_remote_are_judged_or_counted(tmp_path: Path) -> None:
    hidden = below(".charts/a", {**GOOD, "values.yaml": "port: 80001\n"})
    text = "helmGlobals: {chartHome: .charts}\nhelmCharts: [{name: a}]\n"
    root = write_files(tmp_path, {**hidden, "kustomization.yaml": text})
    assert [each[0] for each in lint(root)] == ["invalid-port"]

    write_files(root, {"kustomization.yaml": "helmCharts: [{name: b, repo: 'https://example.com'}]\n"})
    assert [each[0] for each in lint(root)] == ["unjudged-chart"]

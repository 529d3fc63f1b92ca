"""Charts in charts: those that are off are named, and no name of one is lost."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from command import run_jobgen
from helm_charts import GOOD, HELM, METADATA, WITHOUT_HELM, below, init_repository, needs_helm, write_files
from kubectl import GO

pytestmark = needs_helm
WITH_HELM = os.pathsep.join((str(HELM.parent), WITHOUT_HELM))
DEPENDENCIES = """\
dependencies:
  - {name: cache, version: 0.1.0, condition: cache.enabled}
  - {name: store, version: 0.1.0, tags: [data]}
"""


def chart_of(name: str) -> dict[str, str]:
    bad = {**GOOD, "Chart.yaml": METADATA.replace("web", name), "values.yaml": "port: 80001\n"}
    return below(f"charts/{name}", bad)


FILES = {
    "Chart.yaml": METADATA + DEPENDENCIES,
    "values.yaml": "cache: {enabled: false}\ntags: {data: false}\n",
    **chart_of("cache"),
    **chart_of("store"),
}


def lint(root: Path, *arguments: str) -> list[dict]:
    done = run_jobgen(root, "lint", "--no-cache", "--format", "json", *arguments, env={**os.environ, "PATH": WITH_HELM})
    assert done.stdout, done.stderr.decode()
    found: list[dict] = json.loads(done.stdout)["findings"]
    return found


@pytest.mark.parametrize(
    ("files", "off", "judged"),
    [
        ({}, "`cache` (`cache.enabled`), `store` (`tags.data`)", []),
        ({"README.md": "helm install a . --set cache.enabled=true\n"}, "`store` (`tags.data`)", ["cache"]),
        (
            {"README.md": "helm install a . -f values-a.yaml\n", "values-a.yaml": "tags: {data: true}\n"},
            "`cache` (`cache.enabled`)",
            ["store"],
        ),
        ({"values.yaml": "tags: {data: true}\n"}, "", ["cache", "store"]),
    ],
    ids=["all", "option", "values", "none"],
)
def test_charts_that_no_values_turn_on_are_named_once(
    tmp_path: Path, files: dict[str, str], off: str, judged: list[str]
) -> None:
    report = lint(write_files(tmp_path, {**FILES, **files}))
    notes = [each["message"] for each in report if each["rule"] == "unjudged-chart"]

    assert sorted({each["file"].split("/")[1] for each in report if each["rule"] == "invalid-port"}) == judged
    assert [each.rpartition(": ")[2] for each in notes] == ([off] if off else [])


def test_a_strict_lint_accepts_charts_that_are_not_installed(tmp_path: Path) -> None:
    found = lint(write_files(tmp_path, FILES), "--strict-files")

    assert [(each["rule"], each["severity"]) for each in found] == [("unjudged-chart", "info")]


@pytest.mark.parametrize("name", ["on", "true", "1", "null_"])
def test_a_chart_with_an_odd_name_is_judged(tmp_path: Path, name: str) -> None:
    own = {"Chart.yaml": METADATA + f"dependencies: [{{name: {name}, version: 0.1.0}}]\n"}
    found = lint(write_files(tmp_path, {**own, **chart_of(name), "README.md": f"helm install a . --set {name}.a=b\n"}))

    assert [(each["rule"], each["file"], each["line"]) for each in found] == [
        ("invalid-port", f"charts/{name}/templates/service.yaml", 6)
    ]


def test_packaged_charts_are_counted_once(tmp_path: Path) -> None:
    root = write_files(tmp_path, below("web", GOOD))
    for folder in ("packages", "jobs"):
        (root / folder).mkdir()
    subprocess.run(
        [HELM, "package", root / "web", "-d", root / "packages"],
        check=True,
        capture_output=True,
        env={"HOME": str(root), **GO},
    )
    package = root / "packages/web-0.1.0.tgz"
    (root / "packages/web-0.2.0.tgz").write_bytes(package.read_bytes())
    (root / "packages/other-0.2.0.tgz").write_bytes(gzip.compress(b"no archive"))
    (root / "packages/cut-0.2.0.tgz").write_bytes(package.read_bytes()[:60])
    (root / "packages/bomb-0.2.0.tgz").write_bytes(gzip.compress(b"\0" * 50_000_000))
    for command in ((), (".",), ()):
        notes = [each for each in lint(root, *command) if each["rule"] == "unjudged-chart"]
        assert [(each["file"], each["line"], each["message"][:32]) for each in notes] == [
            ("packages/web-0.1.0.tgz", 0, "2 packaged Helm charts were not ")
        ]
        # The second time, all of it is no jobs repository.
        shutil.rmtree(root / "jobs", ignore_errors=True)


def test_a_finding_in_an_archive_names_the_template(tmp_path: Path) -> None:
    sub = {**GOOD, "Chart.yaml": METADATA.replace("web", "sub"), "values.yaml": "port: 80001\n"}
    files = below("sub", {**sub, "templates/other.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"})
    write_files(tmp_path / "source", files)
    write_files(tmp_path / "web", {"Chart.yaml": METADATA})
    (tmp_path / "web/charts").mkdir()
    with tarfile.open(tmp_path / "web/charts/sub-0.1.0.tgz", "w:gz") as archive:
        archive.add(tmp_path / "source/sub", "sub")
    [found] = [each for each in lint(tmp_path / "web") if each["rule"] == "invalid-port"]

    assert found["file"] == "charts/sub-0.1.0.tgz"
    assert [each["message"] for each in found["related"]] == [
        "`sub/templates/service.yaml` of the archive writes the object"
    ]


def test_a_library_chart_is_installed_by_nothing(tmp_path: Path) -> None:
    application = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web, namespace: argocd}
spec:
  project: default
  destination: {server: https://kubernetes.default.svc, namespace: ml}
  source: {repoURL: https://github.com/example/gitops, path: web}
"""
    files = below("web", {"Chart.yaml": f"{METADATA}type: library\n", "values.yaml": "port: 80\n"})
    root = init_repository(write_files(tmp_path, {**files, "app.yaml": application}))
    found = [(each["file"], each["rule"], each["severity"]) for each in lint(root, "--strict-files", ".")]

    assert found == [("app.yaml", "chart-render-fails", "error")]

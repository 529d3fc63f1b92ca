"""What works on files works on charts: baselines, the list of files, hooks, and results that are kept."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from command import run_jobgen
from helm_charts import (
    CHART,
    GOOD,
    HELM,
    METADATA,
    SERVICE,
    WITHOUT_HELM,
    below,
    count_helm,
    init_repository,
    needs_helm,
    read_calls,
    write_files,
)

pytestmark = needs_helm
WITH_HELM = os.pathsep.join((str(HELM.parent), WITHOUT_HELM))


def run(root: Path, *arguments: str, path: str = WITH_HELM) -> tuple[int, str, str]:
    done = run_jobgen(root, *arguments, env={**os.environ, "PATH": path})
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def lint(root: Path, *arguments: str) -> list[tuple[str, str, int]]:
    _, output, errors = run(root, "lint", "--no-cache", "--format", "json", *arguments)
    assert output, errors
    return [(each["rule"], each["file"], each["line"]) for each in json.loads(output)["findings"]]


def test_a_baseline_hides_what_is_known_of_a_chart_wherever_it_moves(tmp_path: Path) -> None:
    root = write_files(tmp_path, below("charts/web", CHART))
    before = lint(root)
    code, _, errors = run(root, "lint", "--write-baseline", "--baseline", "known.json")
    assert (code, bool(before)) == (0, True), errors

    assert lint(root, "--baseline", "known.json") == []
    template = root / "charts/web/templates/deployment.yaml"
    template.write_text(f"# A comment.\n{template.read_text()}")
    assert lint(root, "--baseline", "known.json") == []
    write_files(root, {"charts/web/templates/service.yaml": SERVICE})
    assert lint(root, "--baseline", "known.json") == [("invalid-port", "charts/web/templates/service.yaml", 6)]


def test_the_list_of_files_says_what_the_files_of_a_chart_are(tmp_path: Path) -> None:
    files = {
        **below("charts/web", GOOD),
        **below("charts/lib", {"Chart.yaml": METADATA.replace("web", "lib") + "type: library\n"}),
        "envs/prod.yaml": "port: 81\n",
        "README.md": "helm install web charts/web -f envs/prod.yaml\n",
    }
    _, output, _ = run(write_files(tmp_path, files), "lint", "--explain-files")
    lines = {line.split()[0].rstrip(":"): line for line in output.splitlines() if line.strip()}

    assert "helm renders it; it is checked in 2 releases" in lines["charts/web/Chart.yaml"]
    assert "values of the chart `web`" in lines["charts/web/values.yaml"]
    assert "values of the chart `web`" in lines["envs/prod.yaml"]
    assert "library chart" in lines["charts/lib/Chart.yaml"]


LIBRARY = '{{- define "lib.port" }}{{ .Values.port }}{{ end }}\n'
USES = {
    "Chart.yaml": METADATA + "dependencies: [{name: lib, version: 0.1.0, repository: 'file://../lib'}]\n",
    "values.yaml": "port: 80\n",
    "templates/service.yaml": SERVICE.replace("{{ .Values.port }}", '{{ include "lib.port" . }}'),
}
LIB = {"Chart.yaml": METADATA.replace("web", "lib") + "type: library\n", "templates/_port.tpl": LIBRARY}


@pytest.mark.parametrize(
    "change",
    [
        {"charts/lib/templates/_port.tpl": LIBRARY.replace(".Values.port", "80001")},
        {"charts/web/values.schema.json": '{"properties": {"port": {"type": "string"}}}'},
        {"charts/web/values.yaml": "port: 81\n"},
        {"charts/web/templates/_more.tpl": '{{- define "more" }}{{ end }}\n'},
        {"jobgen.yaml": "cluster: {kubernetes: '1.33'}\n"},
    ],
    ids=["library", "schema", "values", "helper", "cluster"],
)
def test_a_chart_is_rendered_again_if_something_that_it_reads_changed(tmp_path: Path, change: dict[str, str]) -> None:
    path = count_helm(tmp_path / "bin")
    files = {**below("charts/web", USES), **below("charts/lib", LIB), "jobgen.yaml": "cluster: {kubernetes: '1.32'}\n"}
    root = write_files(tmp_path / "repository", {**files, "notes.md": "Charts.\n"})

    def count() -> int:
        code, output, errors = run(root, "lint", path=path)
        assert code in (0, 1), output + errors
        return len(read_calls(tmp_path / "bin"))

    once = count()
    write_files(root, {"notes.md": "Other charts.\n"})
    assert (once, count()) == (1, 1)
    write_files(root, change)
    assert count() > 1


def test_another_helm_renders_again(tmp_path: Path) -> None:
    path = count_helm(tmp_path / "bin")
    root = write_files(tmp_path / "web", GOOD)
    run(root, "lint", ".", path=path)
    program = tmp_path / "bin/helm"
    shutil.copy(program, tmp_path / "bin/other")
    os.utime(program, (1, 1))
    run(root, "lint", ".", path=path)

    assert len(read_calls(tmp_path / "bin")) == 2


@pytest.mark.parametrize(
    "name",
    ["charts/lib/templates/_port.tpl", "charts/web/values.schema.json", "charts/web/Chart.yaml", "apps/web.yaml"],
)
def test_a_hook_lints_the_charts_that_a_file_is_a_part_of(tmp_path: Path, name: str) -> None:
    release = """\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: apps}
spec:
  interval: 1h
  chart:
    spec:
      chart: ./charts/web
      sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}
  values: {port: 80001}
"""
    files = {
        **below("charts/web", {**USES, "values.schema.json": "{}"}),
        **below("charts/lib", LIB),
        "apps/web.yaml": release,
    }
    found = lint(write_files(tmp_path, files), name)

    assert {rule for rule, _, _ in found} == {"invalid-port"}


@pytest.mark.parametrize("folder", ["", "charts"])
def test_a_helm_of_the_repository_is_not_run(tmp_path: Path, folder: str) -> None:
    root = write_files(init_repository(tmp_path / "web"), below("charts/web", GOOD))
    path = count_helm(root / "bin")
    (tmp_path / "link").symlink_to(root / "bin")
    for programs in (path, f"{tmp_path / 'link'}{os.pathsep}{WITHOUT_HELM}"):
        _, output, _ = run(root / folder, "lint", "--no-cache", path=programs)
        assert "the helm on PATH is a file of this repository" in output
    assert read_calls(root / "bin") == []


def test_what_templates_read_is_judged_as_they_write_it(tmp_path: Path) -> None:
    old = "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: a}\n"
    own = {
        "templates/a.yaml": '{{ tpl ($.Files.Get (printf "pdb/%s/a.yaml" "v1")) . }}\n'
        '---\n{{ .Files.Get "b/c.yaml" }}\n',
        "pdb/v1/a.yaml": old.replace("v1beta1", "v1") + "spec: {minAvailable: 1, selector: {matchLabels: {a: b}}}\n",
        "pdb/v1beta1/a.yaml": old,
        "b/c.yaml": SERVICE.replace("{{ .Values.port }}", "80001").replace("{{ .Release.Name }}", "a"),
        "other/a.yaml": old,
    }
    found = lint(write_files(tmp_path, below("charts/web", {**GOOD, **own})))

    assert [each[:2] for each in found if each[0] in ("old-api-version", "invalid-port")] == [
        ("old-api-version", "charts/web/other/a.yaml"),
        ("invalid-port", "charts/web/templates/a.yaml"),
    ]


@pytest.mark.parametrize("port", [80, 80001], ids=["no findings", "findings"])
def test_helm_is_started_once_for_each_chart_with_findings_or_without(tmp_path: Path, port: int) -> None:
    named = [{**GOOD, "Chart.yaml": METADATA.replace("web", f"c{at}")} for at in range(12)]
    charts = [below(f"c{at}", {**each, "values.yaml": f"port: {port}\n"}) for at, each in enumerate(named)]
    path = count_helm(tmp_path / "bin")
    root = write_files(tmp_path / "repository", {name: text for each in charts for name, text in each.items()})
    run(root, "lint", "--no-cache", path=path)

    assert len(read_calls(tmp_path / "bin")) == len(charts)

"""Objects of a chart that helm does not install: two with one name, and hooks that it does not know."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from helm_charts import GOOD, HELM, METADATA, SERVICE, below, init_repository, needs_helm, write_files
from test_helm import lint

pytestmark = needs_helm
HOOK = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  annotations:
    helm.sh/hook: {hook}
    "helm.sh/hook-delete-policy": {policy}
"""
CHART = {"Chart.yaml": METADATA, "values.yaml": "port: 80\nhook: pre-instal\n"}
OTHER = {"templates/other.yaml": SERVICE.replace("{{ .Release.Name }}", "other")}


@pytest.mark.parametrize(
    ("hook", "policy", "expected"),
    [
        ("pre-install, post-upgrade", "before-hook-creation,hook-succeeded", []),
        ("Test", "hook-failed", []),
        ("crd-install", "hook-failed", [("info", 6, "move it to `crds/`")]),
        ("pre-instal", "hook-failed", [("error", 6, "pre-install")]),
        ("{{ .Values.hook }}", "hook-failed", [("error", 6, "pre-install")]),
        ("pre-install,deploy", "hook-failed", [("error", 6, "write one of")]),
        ("test", "hook-failure", [("warning", 7, "write one of")]),
        ("test", '"hook-succeded"', [("warning", 7, "hook-succeeded")]),
    ],
)
def test_hooks_that_helm_does_not_know(
    tmp_path: Path, hook: str, policy: str, expected: list[tuple[str, int, str]]
) -> None:
    text = HOOK.replace("{hook}", hook).replace("{policy}", policy)
    report = lint(write_files(tmp_path, {**CHART, **OTHER, "templates/hook.yaml": text}))
    found = [each for each in report["findings"] if each["rule"] == "unknown-hook"]

    assert [(each["severity"], each["line"]) for each in found] == [each[:2] for each in expected]
    assert all(words in each["message"] for each, (_, _, words) in zip(found, expected, strict=True))
    # A word about when to delete a hook changes nothing of what helm prints.
    printed = subprocess.run([HELM, "template", str(tmp_path)], capture_output=True, check=True).stdout
    assert (b"kind: ConfigMap" in printed) == (not any(each[0] != "warning" for each in expected))


TWICE = f"{SERVICE}---\n{SERVICE}"


def list_conflicts(folder: Path, files: dict[str, str]) -> list[tuple[str, str, int]]:
    report = lint(write_files(folder, files))
    found = [each for each in report["findings"] if each["rule"] == "chart-object-conflict"]
    return [(each["severity"], each["file"], each["line"]) for each in found]


def test_two_objects_with_one_name_fail_for_helm(tmp_path: Path) -> None:
    files = {**CHART, "templates/a.yaml": SERVICE, "templates/b.yaml": f"# b\n{SERVICE}"}
    assert list_conflicts(tmp_path, files) == [("error", "templates/b.yaml", 5)]


@pytest.mark.parametrize(
    "text",
    [
        f"{SERVICE}---\n{SERVICE.replace('  name:', '  namespace: other' + chr(10) + '  name:')}",
        f"{SERVICE}---\n{SERVICE.replace('Service', 'Example').replace('v1', 'example.com/v1')}",
        f"{SERVICE}---\n{SERVICE.replace('  name:', '  annotations: {helm.sh/hook: test}' + chr(10) + '  name:')}",
    ],
    ids=["another namespace", "another kind", "a hook"],
)
def test_other_objects_with_the_same_name_are_no_conflict(tmp_path: Path, text: str) -> None:
    assert list_conflicts(tmp_path, {**CHART, "templates/a.yaml": text}) == []


def test_argo_cd_applies_the_last_of_two_objects(tmp_path: Path) -> None:
    application = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web, namespace: argocd}
spec:
  project: default
  destination: {server: https://kubernetes.default.svc, namespace: ml}
  source: {repoURL: https://github.com/example/gitops, path: charts/web}
"""
    chart = {**CHART, "templates/a.yaml": TWICE}
    files = {**below("charts/web", chart), "apps/web.yaml": application}
    found = list_conflicts(init_repository(tmp_path), files)

    assert found == [("warning", "charts/web/templates/a.yaml", 12)]


@pytest.mark.parametrize("kind", ["List", "ServiceList"])
def test_the_items_of_a_list_are_judged_on_their_lines(tmp_path: Path, kind: str) -> None:
    item = "- apiVersion: v1\n  kind: Service\n  metadata: {name: a}\n  spec: {ports: [{port: {{ .Values.port }}}]}\n"
    text = f"apiVersion: v1\nkind: {kind}\nitems:\n{item}{item}"
    found = lint(write_files(tmp_path, {**GOOD, "values.yaml": "port: 80001\n", "templates/service.yaml": text}))

    assert [(each["rule"], each["line"]) for each in found["findings"]] == [
        ("invalid-port", 7),
        ("chart-object-conflict", 10),
        ("invalid-port", 11),
    ]


def test_a_finding_has_the_column_of_the_text_and_of_no_action(tmp_path: Path) -> None:
    service = """\
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}, lables: {}}
spec:
  {{- toYaml .Values.spec | nindent 2 }}
  type: {{ "type" | default "type" }}
"""
    files = {"values.yaml": "spec: {ports: [{port: 2, targetPort: 99999}]}\n", "templates/service.yaml": service}
    found = lint(write_files(tmp_path, {**GOOD, **files}))["findings"]

    assert [(each["rule"], each["line"], each["column"]) for each in found] == [
        ("unknown-field", 3, 39),
        ("invalid-port", 5, 3),
        ("invalid-value", 6, 3),
    ]

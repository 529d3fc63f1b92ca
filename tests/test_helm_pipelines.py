"""The values that pipelines and tools install charts with."""

from __future__ import annotations

from pathlib import Path

import pytest
from helm_charts import GOOD, below, needs_helm, write_files
from test_helm import lint

pytestmark = needs_helm
WORKFLOW = """\
on: push
jobs:
  deploy:
    runs-on: ubuntu-latest
    steps:
      - uses: example/helm-action@v1
        with:
          name: web
          chart: ./charts/web
          INPUT
"""
AZURE = """\
steps:
  - task: HelmDeploy@0
    inputs:
      command: upgrade
      chartType: FilePath
      chartPath: charts/web
      valueFile: envs/a.yaml
"""
SKAFFOLD = """\
apiVersion: skaffold/v4beta11
kind: Config
deploy:
  helm:
    releases:
      - name: web
        chartPath: charts/web
        valuesFiles: [envs/a.yaml]
"""
HELMFILE = "releases:\n  - name: web\n    chart: ./charts/web\n    values: [envs/a.yaml, {other: 1}]\n"
TILT = "k8s_yaml(helm(\n  'charts/web',\n  name='web',  # a name\n  values=['envs/a.yaml'],\n))\n"
GITLAB = "deploy:\n  variables: {VALUES: envs/a.yaml}\n  script:\n    - helm upgrade web charts/web -f envs/a.yaml\n"
JENKINS = "pipeline { stages { stage('a') { steps { sh 'helm upgrade --install web charts/web -f envs/a.yaml' } } } }\n"
MAKE = "VALUES ?= envs/a.yaml\nCHART := charts/web\n\ninstall:\n\thelm install web $(CHART) -f $(VALUES)\n"


def list_ports(folder: Path, files: dict[str, str]) -> dict[str, str]:
    values = {"envs/a.yaml": "port: 80001\n", "charts/web/values.yaml": "port: 80\n"}
    report = lint(write_files(folder, {**below("charts/web", GOOD), **values, **files}))
    found = [each for each in report["findings"] if each["rule"] == "invalid-port"]
    return {each["message"].rpartition("got ")[2]: each["related"][0]["file"] for each in found}


@pytest.mark.parametrize(
    "files",
    [
        {".github/workflows/a.yaml": WORKFLOW.replace("INPUT", "values: envs/a.yaml")},
        {".github/workflows/a.yaml": WORKFLOW.replace("INPUT", "value-files: '[\"envs/a.yaml\"]'")},
        {".github/workflows/a.yaml": WORKFLOW.replace("INPUT", "values-files: |\n            envs/a.yaml")},
        {"azure-pipelines.yml": AZURE},
        {"skaffold.yaml": SKAFFOLD},
        {"helmfile.yaml": HELMFILE},
        {"Tiltfile": TILT},
        {".gitlab-ci.yml": GITLAB},
        {"Jenkinsfile": JENKINS},
        {"Makefile": MAKE},
        {"Makefile": MAKE, "README.md": "helm install web charts/web --set other=1\n"},
    ],
    ids=[
        *("a path", "a list in a text", "lines", "Azure", "skaffold", "helmfile", "Tilt", "GitLab", "Jenkins"),
        *("variables of make", "a command in a page as well"),
    ],
)
def test_values_files_of_pipelines_and_tools(tmp_path: Path, files: dict[str, str]) -> None:
    assert list_ports(tmp_path, files) == {"`80001`": "envs/a.yaml"}


def test_values_that_a_step_has_itself_are_named_on_their_line(tmp_path: Path) -> None:
    text = WORKFLOW.replace("INPUT", "values: |\n            port: 80002")

    assert list_ports(tmp_path, {".github/workflows/a.yaml": text}) == {"`80002`": ".github/workflows/a.yaml"}


@pytest.mark.parametrize(
    "files",
    [
        {".github/workflows/a.yaml": WORKFLOW.replace("INPUT", "values: ${{ inputs.values }}")},
        {".github/workflows/a.yaml": WORKFLOW.replace("INPUT", "values: envs/none.yaml")},
        {"Tiltfile": "helm('charts/web', values=[name + '.yaml'])\nhelm(" + "(" * 3000},
        {"skaffold.yaml": SKAFFOLD.replace("envs/a", "../../../../etc/a")},
    ],
    ids=["an expression", "no file", "a variable", "elsewhere"],
)
def test_values_that_are_not_known_are_not_guessed(tmp_path: Path, files: dict[str, str]) -> None:
    assert list_ports(tmp_path, files) == {}

"""What helm does not find: charts and templates with other names, and files of values that do not exist."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from command import run_jobgen
from helm_charts import GOOD, HELM, METADATA, WITHOUT_HELM, needs_helm, write_files

WITH_HELM = os.pathsep.join((str(HELM.parent), WITHOUT_HELM))
VALUES, SERVICE = GOOD["values.yaml"], GOOD["templates/service.yaml"]


def lint(root: Path, *arguments: str, path: str = WITH_HELM) -> list[tuple[str, int, str, str]]:
    """Return the place, severity and message of the findings about charts that were not checked."""
    write_files(root, {"objects/map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"})
    done = run_jobgen(root, "lint", "--no-cache", "--format", "json", *arguments, env={**os.environ, "PATH": path})
    found = json.loads(done.stdout)["findings"]
    listed = (each for each in found if each["rule"] == "unjudged-chart" and "not on PATH" not in each["message"])
    return [(each["file"], each["line"], each["severity"], each["message"]) for each in listed]


@pytest.mark.parametrize("path", [WITHOUT_HELM, pytest.param(WITH_HELM, marks=needs_helm)], ids=["without", "with"])
@pytest.mark.parametrize("name", ["Chart.yml", "chart.yaml"])
def test_metadata_with_another_name_is_no_chart(tmp_path: Path, name: str, path: str) -> None:
    root = write_files(tmp_path, {f"web/{name}": METADATA, "web/values.yaml": VALUES, "web/templates/a.yaml": SERVICE})

    message = f"helm reads `Chart.yaml` and no `{name}`, so the chart in this folder was not checked; rename it"
    assert lint(root, path=path) == [(f"web/{name}", 1, "warning", message)]
    assert lint(root, "--strict-files", path=path) == [(f"web/{name}", 1, "error", message)]


@pytest.mark.parametrize(
    "files",
    [
        {"web/Chart.yml": METADATA, "web/a.yaml": "a: 1\n"},
        {"web/Chart.yml": "name: a chart of songs\n", "web/templates/a.yaml": SERVICE},
        {"web/Chart.yml": METADATA, "web/Chart.yaml": METADATA, "web/templates/a.yaml": "# none\n"},
    ],
    ids=["no templates", "other fields", "a chart as well"],
)
def test_other_files_with_such_names_are_left_alone(tmp_path: Path, files: dict[str, str]) -> None:
    assert lint(write_files(tmp_path, files), path=WITHOUT_HELM) == []


@pytest.mark.parametrize("path", [WITHOUT_HELM, pytest.param(WITH_HELM, marks=needs_helm)], ids=["without", "with"])
@pytest.mark.parametrize("name", ["template", "Templates", "tempates"])
def test_helm_renders_nothing_of_a_folder_with_another_name(tmp_path: Path, name: str, path: str) -> None:
    root = write_files(tmp_path, {"Chart.yaml": METADATA, "values.yaml": VALUES, f"{name}/service.yaml": SERVICE})

    message = f"helm reads `templates/` and no `{name}/`, so it renders nothing of this; rename the folder"
    assert lint(root, path=path) == [(f"{name}/service.yaml", 1, "warning", message)]


@pytest.mark.parametrize("name", ["test", "temp", "examples"])
def test_other_folders_of_a_chart_are_left_alone(tmp_path: Path, name: str) -> None:
    files = {"Chart.yaml": METADATA, "values.yaml": VALUES, f"{name}/service.yaml": SERVICE}

    assert lint(write_files(tmp_path, files), path=WITHOUT_HELM) == []


COMMAND = "helm upgrade --install web . -f prod.yaml\n"


@pytest.mark.parametrize(
    ("files", "hint"),
    [
        ({"deploy.sh": f"#!/bin/sh\n{COMMAND}"}, "correct the path, unless something writes the file"),
        ({"Makefile": f"deploy:\n\t{COMMAND}"}, "correct the path, unless something writes the file"),
        (
            {"deploy.sh": "#!/bin/sh\nhelm template web . --values values-prd.yaml\n", "values-prod.yaml": VALUES},
            "did you mean `values-prod.yaml`?",
        ),
    ],
    ids=["script", "Makefile", "a similar name"],
)
@needs_helm
def test_values_of_a_command_that_do_not_exist_are_noted(tmp_path: Path, files: dict[str, str], hint: str) -> None:
    [(file, line, severity, message)] = lint(write_files(tmp_path, {**GOOD, **files}))

    assert (file, line, severity) == (next(iter(files)), 2, "info")
    assert message.endswith(hint)


@pytest.mark.parametrize(
    "files",
    [
        {"deploy.sh": f"envsubst < a.tpl > prod.yaml\n{COMMAND}"},
        {"prepare.sh": "sops --decrypt --output prod.yaml secret.yaml\n", "deploy.sh": COMMAND},
        {".gitignore": "prod.yaml\n", "deploy.sh": COMMAND},
        {"README.md": f"    {COMMAND}"},
        {"deploy.sh": "helm upgrade --install web . -f $VALUES -f https://example.com/a.yaml -f /etc/a.yaml -f -\n"},
        {"deploy.sh": "helm upgrade --install web bitnami/web -f prod.yaml\n"},
        {"deploy.sh": COMMAND, "prod.yaml": VALUES},
    ],
    ids=["written before", "written elsewhere", "ignored by Git", "page", "other places", "other chart", "there"],
)
@needs_helm
def test_values_that_something_may_write_are_not_noted(tmp_path: Path, files: dict[str, str]) -> None:
    assert lint(write_files(tmp_path, {**GOOD, **files})) == []

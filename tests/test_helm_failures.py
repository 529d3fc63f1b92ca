"""Charts of which helm renders nothing: what is wrong, where, and for whom it is an error."""

from __future__ import annotations

from pathlib import Path

import pytest
from helm_charts import GOOD, METADATA, SERVICE, needs_helm, write_files
from test_helm import lint

pytestmark = needs_helm
HELPERS = '{{- define "web.name" -}}\nweb\n{{- end }}\n{{- define "web.labels" }}\napp: {{ .Values.app }}\n{{- end }}\n'
FILES = {"Chart.yaml": METADATA, "values.yaml": "port: 80\napp: web\n", "templates/_helpers.tpl": HELPERS}


def lint_service(folder: Path, old: str, new: str, **files: str) -> list[dict]:
    assert old in SERVICE
    report = lint(write_files(folder, {**FILES, **files, "templates/service.yaml": SERVICE.replace(old, new)}))
    found: list[dict] = report["findings"]
    return found


def test_a_named_template_that_does_not_exist_is_an_error_if_another_one_was_meant(tmp_path: Path) -> None:
    [found] = lint_service(tmp_path, "{{ .Release.Name }}", '{{ include "web.nane" . }}')

    assert (found["rule"], found["severity"], found["line"]) == ("chart-render-fails", "error", 4)
    assert found["message"].endswith("no chart here defines the template `web.nane`; did you mean `web.name`?")


def test_a_named_template_that_another_chart_may_define_is_a_warning(tmp_path: Path) -> None:
    [found] = lint_service(tmp_path, "{{ .Release.Name }}", '{{ template "common.fullname" . }}')

    assert (found["rule"], found["severity"]) == ("unjudged-chart", "warning")


def test_a_misspelled_value_of_which_a_part_is_read_is_an_error(tmp_path: Path) -> None:
    values = {"values.yaml": "service:\n  port: 80\n"}
    found = lint_service(tmp_path, ".Values.port", ".Values.servce.port", **values)[0]

    assert (found["rule"], found["severity"], found["line"]) == ("chart-value-missing", "error", 6)
    assert "`.Values.servce` has no value" in found["message"]
    assert "did you mean `service`?" in found["message"]


def test_a_value_that_users_fill_in_is_no_error(tmp_path: Path) -> None:
    [found] = lint_service(tmp_path, ".Values.port", ".Values.web.port", **{"values.yaml": "web:\n"})

    assert (found["rule"], found["severity"]) == ("chart-value-missing", "info")


@pytest.mark.parametrize(
    ("values", "severity"), [("port: 80\n", "error"), ("port:\n", "warning")], ids=["complete", "not set"]
)
def test_a_failure_is_certain_if_all_values_are_there(tmp_path: Path, values: str, severity: str) -> None:
    [found] = lint_service(tmp_path, "{{ .Values.port }}", "{{ semver .Values.port }}", **{"values.yaml": values})[:1]

    assert (found["rule"], found["severity"]) == ("chart-render-fails", severity)


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        (
            "{{ .Release.Name }}\n",
            "a\n  labels: {{ include `web.labels` . | nindent 4 }}\n\tx: y\n",
            ("service.yaml", 6),
        ),
        (
            "{{ .Release.Name }}\n",
            "a\n  labels:\n    {{- include `bad` . | nindent 4 }}\n{{- define `bad` }}\na: b\nc: d: e\n{{- end }}\n",
            ("service.yaml", 9),
        ),
        (
            "{{ .Release.Name }}\n",
            "a\n  labels:\n{{- range list `x` `y` }}\n    {{ . }}: z\n    a b\n{{- end }}\n",
            ("service.yaml", 8),
        ),
    ],
    ids=["a tab", "a named template", "a loop"],
)
def test_what_is_not_yaml_is_on_the_line_that_writes_it(
    tmp_path: Path, old: str, new: str, place: tuple[str, int]
) -> None:
    [found] = lint_service(tmp_path, old, new)

    assert (found["file"].removeprefix("templates/"), found["line"]) == place
    assert (found["rule"], found["severity"]) == ("chart-render-fails", "error")


def test_an_empty_part_of_an_image_is_one_info(tmp_path: Path) -> None:
    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n    - name: a\n"
        '      image: "{{ .Values.repository }}:{{ .Values.tag | default .Chart.AppVersion }}"\n'
    )
    values = "repository:\ntag: x1.0\n"
    files = {"Chart.yaml": METADATA, "values.yaml": values, "templates/pod.yaml": pod}
    [found] = lint(write_files(tmp_path, files))["findings"]

    assert (found["rule"], found["severity"]) == ("unjudged-variable", "info")
    assert "`.Values.repository` is set when the chart is installed" in found["message"]


def test_a_context_that_is_not_passed_on_is_no_missing_value(tmp_path: Path) -> None:
    name = '{{ include "web.full" .Values.app }}\n{{- define "web.full" }}{{ .Chart.Name }}{{ end }}'
    [found] = lint_service(tmp_path, "{{ .Release.Name }}", name, **{"values.yaml": "port: 80\napp: {a: 1}\n"})

    assert (found["rule"], found["file"], found["line"]) == ("chart-render-fails", "templates/service.yaml", 4)
    assert "`.Chart.Name` is read where `.` is not the context of a chart" in found["message"]


def test_a_template_that_cannot_be_read_is_one_error_for_all_values(tmp_path: Path) -> None:
    files = {"values-a.yaml": "port: 81\n", "README.md": "helm install web . -f values-a.yaml\n"}
    [found] = lint_service(tmp_path, "{{ .Release.Name }}", "{{ if }}", **files)

    assert (found["rule"], found["severity"], found["line"]) == ("chart-render-fails", "error", 4)


@pytest.mark.parametrize(("path", "severity"), [("README.md", "info"), ("install.sh", "error")])
def test_a_value_that_a_command_lacks_is_an_error_in_a_script(tmp_path: Path, path: str, severity: str) -> None:
    needed = '{{ required "set it" .Values.port }}'
    files = {path: "helm install web .\n", "values.yaml": "port:\n"}
    found = lint_service(tmp_path, "{{ .Values.port }}", needed, **files)

    found = [each for each in found if each["rule"] == "chart-value-missing"]
    # The default values lack it as well.
    assert {each["severity"] for each in found} == {"info", severity}


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("values.yaml", "port: [80\n", ("yaml-syntax", 1)),
        ("values.yaml", "port: 80\nx:\n\ty: 1\n", ("yaml-syntax", 3)),
        ("values.yaml", "- port: 80\n", ("chart-render-fails", 1)),
        ("values.yaml", "port\n", ("chart-render-fails", 1)),
        ("prod.yaml", "port: [80\n", ("yaml-syntax", 1)),
        ("prod.yaml", "- port\n", ("chart-render-fails", 1)),
    ],
)
def test_values_that_helm_cannot_read_are_one_error_in_their_file(
    tmp_path: Path, name: str, text: str, expected: tuple[str, int]
) -> None:
    files = {**GOOD, name: text, "install.sh": "helm install web . -f prod.yaml\n"}
    report = lint(write_files(tmp_path, {"prod.yaml": "port: 81\n", **files}))
    found = [(each["rule"], each["line"]) for each in report["findings"] if each["file"] == name]

    assert (found, {each["file"] for each in report["findings"]}) == ([expected], {name})


def test_values_that_a_program_writes_are_not_judged_and_refused_by_a_strict_lint(tmp_path: Path) -> None:
    root = write_files(tmp_path, {**GOOD, "values.yaml": "port: {{ port }}\n"})
    found = {(each["rule"], each["severity"]) for each in lint(root, "--strict-files", ".")["findings"]}

    assert ("unjudged-chart", "error") in found


@pytest.mark.parametrize(
    ("text", "rule", "severity"),
    [
        ("{{ .Value.port }}", "chart-render-fails", "error"),
        ("{{ .values.port }}", "chart-render-fails", "error"),
        ("{{ $.Relase.Name }}", "chart-render-fails", "error"),
        ("{{ with .Values }}{{ .value.port }}{{ end }}", "chart-value-missing", "info"),
        ("{{ .Other.port }}", "chart-value-missing", "info"),
    ],
)
def test_a_misspelled_part_of_the_context_is_an_error(tmp_path: Path, text: str, rule: str, severity: str) -> None:
    found = [each for each in lint_service(tmp_path, "{{ .Release.Name }}", text) if each["rule"] != "unread-value"]

    assert [(each["rule"], each["severity"], each["line"]) for each in found] == [(rule, severity, 4)]
    assert ("did you mean `." in found[0]["message"]) == (severity == "error")


def test_a_file_of_values_that_helm_does_not_read_is_named(tmp_path: Path) -> None:
    files = {name: text for name, text in GOOD.items() if name != "values.yaml"}
    report = lint(write_files(tmp_path, {**files, "values.yml": "port: 80\n"}))
    found = [(each["file"], each["severity"]) for each in report["findings"] if each["rule"] == "unread-value"]

    assert found == [("values.yml", "warning")]
    write_files(tmp_path, {"install.sh": "helm install a . -f values.yml\n"})
    assert not [each for each in lint(tmp_path)["findings"] if each["rule"] == "unread-value"]


def test_a_chart_with_a_link_is_not_rendered_and_its_other_files_are_still_its_own(tmp_path: Path) -> None:
    removed = "apiVersion: scheduling.k8s.io/v1beta1\nkind: PriorityClass\nmetadata: {name: low}\nvalue: 1\n"
    inner = {"charts/sub/Chart.yaml": METADATA.replace("web", "sub"), "charts/sub/templates/a.yaml": "# none\n"}
    metadata = f"{METADATA}dependencies: [{{name: sub, version: 0.1.0}}]\n"
    template = '{{ .Files.Get (printf "files/%s.yaml" .Values.name) }}\n'
    files = {
        "Chart.yaml": metadata,
        "templates/low.yaml": template,
        "files/low.yaml": removed,
        "crds/a.yaml": "# none\n",
    }
    write_files(tmp_path, {**inner, **files})
    (tmp_path / "charts/sub/files").symlink_to("../../files")

    found = [(each["file"], each["rule"]) for each in lint(tmp_path)["findings"]]

    assert found == [("charts/sub/files", "unjudged-chart")]

"""The lines of values that gave a value to a template, however the template passes it on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from helm_charts import GOOD, HELM, METADATA, SERVICE, WITHOUT_HELM, below, needs_helm, write_files
from test_helm import lint

from jobgen.features.helm.charts import Chart
from jobgen.features.helm.expressions import Call, Lookup, Text, read_expression
from jobgen.features.helm.template_text import read_template
from jobgen.features.helm.value_reads import Read, ValueReads
from jobgen.kustomize.tree import FolderTree

pytestmark = needs_helm
WITH_HELM = os.pathsep.join((str(HELM.parent), WITHOUT_HELM))


def list_reads(folder: Path, text: str) -> dict[int, set[tuple[str, ...]]]:
    write_files(folder, {"Chart.yaml": METADATA, "templates/a.yaml": text})
    reads = ValueReads(Chart(FolderTree(folder), ""))
    lines = range(1, text.count("\n") + 1)
    found = {line: reads.find_all(("templates/a.yaml", line)) for line in lines}
    return {line: {each.path for each in several} for line, several in found.items() if several}


def test_reads_of_a_template(tmp_path: Path) -> None:
    text = """\
{{- $root := . }}
{{ .Values.a.b }}
{{ range $g := $root.Values.list }}
x: {{ $g.name | quote }}
y: {{ .other }}
{{ end }}
{{ with .Values.res }}{{ toYaml . | nindent 3 }}{{ end }}
{{ include "a.b" . }} {{ default ".Values.z" .Values.c }} {{ .Release.Name }}
{{- range $key, $value := .Values.m }}
{{ $key }}: {{ $value }}
{{- end }}
{{- define "part" }}
{{ .it.name }}: {{ .top.Values.d }}
{{- end }}
{{ include "part" (dict "it" (index .Values.jobs "a") "top" $) }}
{{ if eq .Values.mode "x" }}{{ else with .Values.e }}{{ .f }}{{ end }}
"""
    assert list_reads(tmp_path, text) == {
        2: {("a", "b")},
        4: {("list", "[]", "name")},
        5: {("list", "[]", "other")},
        7: {("res",)},
        8: {("c",)},
        10: {("m", "{}"), ("m", "[]")},
        13: {("jobs", "a", "name"), ("d",)},
        15: {("jobs", "a", "name"), ("d",)},
        16: {("e", "f")},
    }
    assert read_template('{{ "}}" }} {{/* }} */}} {{ `{{` }}') is not None
    assert read_template("{{ .Values.a") is None


def test_a_default_and_a_named_template_are_told_from_a_value(tmp_path: Path) -> None:
    text = '{{ define "a" }}{{ .Values.x }}{{ end }}\n{{ .Values.y | default 1 }} {{ include "a" . }}\n'
    write_files(tmp_path, {"Chart.yaml": METADATA, "templates/a.yaml": text})
    found = ValueReads(Chart(FolderTree(tmp_path), "")).find_all(("templates/a.yaml", 2))

    assert found == {Read((), ("y",), has_default=True), Read((), ("x",), is_direct=False)}


@pytest.mark.parametrize("text", ['{{ define "a" }}{{ include "a" . }}{{ .Values.x }}{{ end }}{{ include "a" . }}\n'])
def test_a_template_that_includes_itself_ends(tmp_path: Path, text: str) -> None:
    assert list_reads(tmp_path, text) == {1: {("x",)}}


def test_expressions() -> None:
    assert read_expression('(index .Values "a").b | default (printf "%d" $x.y) | quote') == Call(
        "quote",
        (
            Call(
                "default",
                (
                    Call("printf", (Text("%d"), Lookup("$x", ("y",)))),
                    Call("index", (Lookup("", ("Values",)), Text("a")), ("b",)),
                ),
            ),
        ),
    )
    assert read_expression(")((((") == Call("", ())


POD = """\
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  containers:
    - name: main
      image: registry.example.com/a:1.0
{text}"""
PORT = "      ports: [{containerPort: 80}]\n"
CASES = {
    "a block": (
        POD.format(name="a", text="      resources:\n        {{- toYaml .Values.res | nindent 8 }}\n"),
        "res:\n  limits: {memory: 1Gi}\n  requests:\n    memory: 2Gi\n    cpu: 2Gi\n",
        [4],
    ),
    "a block in a named template with a field of its argument": (
        POD.format(name="a", text='      {{- include "res" (dict "root" $ "it" .Values.main) | nindent 6 }}\n')
        + '{{- define "res" }}\nresources:\n  {{- toYaml .it.res | nindent 2 }}\n{{- end }}\n',
        (
            "other: {res: {requests: {memory: 2Gi}}}\nmain:\n  res:\n    limits: {memory: 1Gi}\n"
            "    requests:\n      memory: 2Gi\n"
        ),
        [6],
    ),
    "with": (
        POD.format(
            name="a",
            text="      {{- with .Values.res }}\n      resources: {{ toYaml . | nindent 8 }}\n      {{- end }}\n",
        ),
        "x: 2Gi\nres:\n  limits: {memory: 1Gi}\n  requests: {memory: 2Gi}\n",
        [4],
    ),
    "the item of a list whose values others have as well": (
        POD.format(
            name="a",
            text="      ports:\n        {{- range .Values.ports }}\n        - name: {{ .name }}\n"
            "          containerPort: {{ .port }}\n        {{- end }}\n",
        ),
        "ports:\n  - name: a\n    port: 80\n  - name: b\n    port: 80000\n  - name: c\n    port: 90\n",
        [5],
    ),
    "a loop that writes objects": (
        "{{- range $name, $job := .Values.jobs }}\n---\n"
        + POD.format(name="{{ $name }}", text="      ports: [{containerPort: {{ $job.port }}}]\n")
        + "{{- end }}\n",
        "jobs:\n  a:\n    port: 80000\n    like: 90000\n  b:\n    port: 90000\n",
        [3, 6],
    ),
    "a joined text": (
        POD.format(name="a", text="").replace(
            "registry.example.com/a:1.0", "{{ .Values.repository }}:{{ .Values.tag }}"
        ),
        "repository: registry.example.com/ML/a\ntag: x1.0\n",
        [1, 2],
    ),
    "a key": (POD.format(name="a", text="{{ toYaml .Values.more | indent 6 }}\n"), "more:\n  comand: [a]\n", [2]),
    "a variable": (
        "{{- $p := .Values.port | int }}\n" + POD.format(name="a", text="      ports: [{containerPort: {{ $p }}}]\n"),
        "port: 80000\n",
        [1],
    ),
    "the arguments of a command": (
        POD.format(name="a", text="      env:\n        {{- tpl (toYaml .Values.env) $ | nindent 8 }}\n"),
        "env:\n  - {name: A, value: x}\n  - name: B\n    value: 1\n",
        [4],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_finding_names_the_line_of_the_value(tmp_path: Path, case: str) -> None:
    template, values, lines = CASES[case]
    report = lint(write_files(tmp_path, {"Chart.yaml": METADATA, "values.yaml": values, "templates/a.yaml": template}))

    found = [each for each in report["findings"] if each["severity"] == "error"]
    notes = [(note["file"], note["line"]) for each in found for note in each.get("related", [])]
    assert notes == [("values.yaml", line) for line in lines], report["findings"]


SUB = {"Chart.yaml": "apiVersion: v2\nname: sub\nversion: 0.1.0\n", "values.yaml": "port: 80\n"}
PARENT = {"Chart.yaml": METADATA, **below("charts/sub", {**SUB, "templates/service.yaml": SERVICE})}


@pytest.mark.parametrize(
    ("files", "place"),
    [
        pytest.param({"values.yaml": "sub:\n  port: 80000\n"}, ("values.yaml", 2), id="of the parent"),
        pytest.param({"charts/sub/values.yaml": "\nport: 80000\n"}, ("charts/sub/values.yaml", 2), id="its own"),
        pytest.param(
            {
                "values.yaml": "global:\n  port: 80000\nsub:\n  global: {port: 1}\n",
                "charts/sub/templates/service.yaml": SERVICE.replace("Values.port", "Values.global.port"),
            },
            ("values.yaml", 2),
            id="of all charts",
        ),
        pytest.param(
            {
                "Chart.yaml": f"{METADATA}dependencies: [{{name: sub, version: 0.1.0, alias: other}}]\n",
                "values.yaml": "sub: {port: 1}\nother: {port: 80000}\n",
            },
            ("values.yaml", 2),
            id="by an alias",
        ),
    ],
)
def test_a_finding_in_a_chart_of_another_one_names_the_line_of_the_value(
    tmp_path: Path, files: dict[str, str], place: tuple[str, int]
) -> None:
    report = lint(write_files(tmp_path, {**PARENT, **files}))

    [found] = [each for each in report["findings"] if each["rule"] == "invalid-port"]
    assert [(note["file"], note["line"]) for note in found["related"]] == [place]
    assert found["related"][0]["message"] == "`80000` is set here"


def test_a_value_of_a_command_is_named_on_its_line(tmp_path: Path) -> None:
    page = "# Install\n\n```\nhelm install web . \\\n  --set port=80000\n```\n"
    files = {"Chart.yaml": METADATA, "values.yaml": "port: 80\n", "templates/service.yaml": SERVICE, "README.md": page}
    report = lint(write_files(tmp_path, files))

    [found] = [each for each in report["findings"] if each["rule"] == "invalid-port"]
    assert [(note["file"], note["line"]) for note in found["related"]] == [("README.md", 5)]


LOOP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data:
  {{- range .Values.jobs }}
  {{ .name }}: {{ include "web.job" (dict "job" . "more" $.Values.more) | quote }}
  {{- end }}
{{- define "web.job" }}{{ .job.replicas }} {{ .job.queue }} {{ toYaml .more.env }}{{ end }}
"""


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ("jobs: [{name: a, replica: 1}]\nmore: {env: {}}\n", ["`jobs[].replica`; did you mean `replicas`?"]),
        ("jobs:\n  a: {name: a, queu: 1}\nmore: {env: {}}\n", ["`jobs[].queu`; did you mean `queue`?"]),
        ("jobs: [{name: a, replicas: 1, other: 2}]\nmore: {env: {replica: 1}}\n", []),
        ("jobs: []\nmore: {evn: {}}\n", ["`more.evn`; did you mean `env`?"]),
    ],
)
def test_values_that_loops_and_named_templates_do_not_read(tmp_path: Path, values: str, expected: list[str]) -> None:
    report = lint(write_files(tmp_path, {"Chart.yaml": METADATA, "values.yaml": values, "templates/a.yaml": LOOP}))
    found = [each["message"] for each in report["findings"] if each["rule"] == "unread-value"]

    assert [message.replace(" is read by no template of the chart", "") for message in found] == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"values.yaml": "sub:\n  prot: 81\n"}, [("warning", "sub.prot", "port")]),
        ({"values.yaml": "subb:\n  port: 81\n"}, [("warning", "subb", "sub")]),
        ({"values.yaml": "sub:\n  port: 81\n  enabled: true\n"}, [("info", "sub.enabled", "")]),
        (
            {
                "values.yaml": "sub:\n  port: 81\n  enabled: true\n",
                "Chart.yaml": f"{METADATA}dependencies: [{{name: sub, version: 0.1.0, condition: sub.enabled}}]\n",
            },
            [],
        ),
        ({"values.yaml": "sub:\n  prot: 81\n", "charts/sub/templates/b.yaml": "{{- $all := .Values | toYaml }}"}, []),
        (
            {
                "values.yaml": "gone: {a: 1}\n",
                "Chart.yaml": f"{METADATA}dependencies: [{{name: gone, version: 0.1.0, repository: 'https://a.b'}}]\n",
            },
            [],
        ),
    ],
    ids=["a letter", "the chart", "no use", "a condition", "all of them", "a chart that is not there"],
)
def test_values_that_no_chart_in_a_chart_reads(
    tmp_path: Path, files: dict[str, str], expected: list[tuple[str, str, str]]
) -> None:
    report = lint(write_files(tmp_path, {**PARENT, **files}))
    found = [each for each in report["findings"] if each["rule"] == "unread-value"]

    assert [each["severity"] for each in found] == [severity for severity, _, _ in expected]
    for each, (_, name, meant) in zip(found, expected, strict=True):
        assert f"`{name}` is read by no template" in each["message"]
        assert (f"did you mean `{meant}`?" in each["message"]) == bool(meant)


def test_a_key_that_is_there_twice_is_named_on_both_lines(tmp_path: Path) -> None:
    text = SERVICE.replace("spec:\n", "spec:\n  type: ClusterIP\n  type: NodePort\n")
    files = {"Chart.yaml": METADATA, "values.yaml": "port: 80\n", "templates/service.yaml": f"# A comment.\n{text}"}
    [found] = lint(write_files(tmp_path, below("charts/web", files)))["findings"]

    assert (found["rule"], found["file"], found["line"]) == ("duplicate-key", "charts/web/templates/service.yaml", 8)
    assert [(each["file"], each["line"]) for each in found["related"]] == [("charts/web/templates/service.yaml", 7)]


def lint_values(folder: Path, files: dict[str, str]) -> list[tuple[str, str, str, int]]:
    found = lint(write_files(folder, {**GOOD, **files}))["findings"]
    return [(each["rule"], each["severity"], each["file"], each["line"]) for each in found]


def test_what_a_template_of_another_chart_gets_may_be_read(tmp_path: Path) -> None:
    remote = f"{METADATA}dependencies: [{{name: base, version: 1.0.0, repository: 'https://127.0.0.1:9'}}]\n"
    values = "port: 80\nimage: a\nreplicas: 2\nprot: 81\n"
    files = {"Chart.yaml": remote, "values.yaml": values, "templates/a.yaml": '{{ include "base.all" . }}\n'}
    found = [each for each in lint_values(tmp_path, files) if each[0] == "unread-value"]
    assert found == []

    files |= {"values.yaml": values.replace("port: 80\n", "")}
    found = [each for each in lint_values(tmp_path, files) if each[0] == "unread-value"]
    assert found == [("unread-value", "warning", "values.yaml", 3)]


def test_a_key_of_values_that_yaml_reads_as_another_is_named_as_it_is_written(tmp_path: Path) -> None:
    report = lint(write_files(tmp_path, {**GOOD, "values.yaml": "port: 80\non: a\n"}))

    [found] = [each for each in report["findings"] if each["rule"] == "unread-value"]
    assert found["severity"] == "warning"
    assert "reads `on` as `true`" in found["message"]


def test_a_key_that_is_set_twice_in_values_is_a_warning(tmp_path: Path) -> None:
    assert lint_values(tmp_path, {"values.yaml": "port: 80\nport: 81\n"}) == [
        ("duplicate-key", "warning", "values.yaml", 2)
    ]


SECRET = """\
apiVersion: v1
kind: Secret
metadata: {name: a}
stringData:
  user: a
{{- if .Values.token }}
  token: {{ .Values.token }}
{{- end }}
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers:
    - name: a
      image: registry.example.com/a:1
      env:
        - {name: A, valueFrom: {secretKeyRef: {name: a, key: KEY}}}
"""


@pytest.mark.parametrize(
    ("key", "expected"),
    [("user", []), ("token", [("unjudged-variable", "info")]), ("tokn", [("unknown-reference", "error")])],
)
def test_a_key_that_is_written_if_a_value_is_set_is_no_error(
    tmp_path: Path, key: str, expected: list[tuple[str, str]]
) -> None:
    files = {"templates/secret.yaml": SECRET, "templates/pod.yaml": POD.replace("KEY", key)}

    assert [each[:2] for each in lint_values(tmp_path, files)] == expected

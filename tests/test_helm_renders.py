"""How often helm is started, and that two renders of one chart are the same."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from command import run_jobgen
from growth import grows_with_the_square
from helm_charts import (
    CHART,
    GOOD,
    HELM,
    METADATA,
    SERVICE,
    WITHOUT_HELM,
    below,
    count_helm,
    needs_helm,
    read_calls,
    template,
    write_files,
)

from jobgen.features.helm import run_helm
from jobgen.features.helm.build import ChartBuild
from jobgen.features.helm.charts import Chart
from jobgen.features.helm.releases import list_releases
from jobgen.features.helm.run_helm import Helm
from jobgen.features.helm.stage import render_with_marks
from jobgen.features.helm.uses import Use, list_own_uses
from jobgen.kustomize import plan
from jobgen.kustomize.tree import FolderTree
from jobgen.recognize.gitops_objects import GitOpsTree
from jobgen.recognize.tree import FileTree, Surroundings

pytestmark = needs_helm
REAL = Helm(str(HELM), "")
WITH_HELM = os.pathsep.join((str(HELM.parent), WITHOUT_HELM))


def use_of(root: Path) -> Use:
    tree = FolderTree(root)
    return list_own_uses(Chart(tree, ""), FileTree(tree, []), ())[0]


def lint(folder: Path, *arguments: str, path: str = WITH_HELM) -> dict:
    done = run_jobgen(folder, "lint", "--format", "json", *arguments, env={**os.environ, "PATH": path})
    assert done.stdout, done.stderr.decode()
    report: dict = json.loads(done.stdout)
    return report


@pytest.mark.stress
def test_helm_is_started_once_for_each_chart(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    path = count_helm(programs)
    # Those with findings need the lines of their templates as well.
    charts = {f"charts/{at}": CHART if at % 2 else GOOD for at in range(20)}
    files = {name: text for folder, chart in charts.items() for name, text in below(folder, chart).items()}
    root = write_files(tmp_path / "many", files)

    report = lint(root, ".", path=path)
    assert len(read_calls(programs)) == len(charts)
    assert len({each["file"] for each in report["findings"] if each["file"].endswith("deployment.yaml")}) == 10
    # What did not change is not rendered again.
    lint(root, ".", path=path)
    assert len(read_calls(programs)) == len(charts)
    (root / "charts/3/values.yaml").write_text(CHART["values.yaml"].replace("80000", "81"))
    lint(root, ".", path=path)
    assert len(read_calls(programs)) == len(charts) + 1


RANDOM = """\
apiVersion: v1
kind: Secret
metadata:
  name: {{ .Release.Name }}
  annotations: {at: {{ now | date "2006-01-02T15:04:05.000000" | quote }}, ago: {{ ago now | quote }}}
stringData:
  {{- $ca := genCA "ca" 365 }}
  {{- $signed := genSignedCert "web" nil (list "web.svc") 365 $ca }}
  ca: {{ $ca.Cert | b64enc }}
  key: {{ $signed.Key | sha256sum }}
  own: {{ (genSelfSignedCert "web" nil nil 3).Cert | quote }}
  private: {{ genPrivateKey "ecdsa" | trunc 8 }}
  password: {{ randAlphaNum 20 | b64enc }}
  piped: {{ 7 | randAlpha }}
  digits: {{ (randNumeric 9) | quote }}
  ascii: {{ randAscii 5 | sha256sum }}
  bytes: {{ randBytes 16 }}
  id: {{ uuidv4 }}
  int: {{ randInt 3 9 | quote }}
  user: {{ htpasswd "a" "b" }}
  hash: {{ bcrypt "b" }}
  sealed: {{ encryptAES "key" "text" }}
  shuffled: {{ shuffle "abcdefghijklmnopqrst" }}
  text: {{ "now uuidv4" }} {{ .Values.now }}
"""
VALUES = "now: then\nport: 80\n"


def test_what_is_random_or_now_is_the_same_in_each_render(tmp_path: Path) -> None:
    use = use_of(write_files(tmp_path / "web", {**GOOD, "values.yaml": VALUES, "templates/secret.yaml": RANDOM}))
    one, other = (render_with_marks(use, REAL) for _ in range(2))

    assert (one[0].error, one[0].output) == ("", other[0].output)
    assert one[1] == other[1]
    plain = template(tmp_path / "web", use.release).decode().split("\n")
    lines = one[0].output.decode().split("\n")
    # The rest is what helm prints.
    assert len(lines) == len(plain)
    same = [line.partition(":")[0].strip() for line, own in zip(lines, plain, strict=True) if line == own]
    assert {"text", "name", "kind", "stringData"} <= set(same)
    by_key = {line.partition(":")[0].strip(): line.partition(": ")[2] for line in lines}
    assert [len(by_key["piped"]), len(by_key["digits"]), len(by_key["id"])] == [7, 11, 36]
    assert by_key["text"] == "now uuidv4 then"


LOOP = """\
{{- range $n := until (int .Values.count) }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c{{ $n }}}
dataa: {}
{{- end }}
"""


def test_the_work_on_a_loop_grows_with_its_documents(tmp_path: Path) -> None:
    def prepare(size: int) -> Callable[[], dict]:
        files = {**GOOD, "values.yaml": f"count: {size}\n", "templates/maps.yaml": LOOP}
        root = write_files(tmp_path / str(size), files)
        return lambda: lint(root, "--no-cache")

    [found] = [each for each in prepare(70)()["findings"] if each["rule"] == "unknown-field"]
    assert (found["file"], found["line"]) == ("templates/maps.yaml", 6)
    assert not grows_with_the_square(prepare, 60)


def test_two_calls_write_two_values(tmp_path: Path) -> None:
    text = "a: {{ randAlphaNum 8 }}\nb: {{ randAlphaNum 8 }}\nc: {{ uuidv4 }}{{ uuidv4 }}\n"
    use = use_of(write_files(tmp_path / "web", {**GOOD, "templates/a.yaml": text}))
    found = render_with_marks(use, REAL)[0].output.decode().split("\n")

    values = {line[:1]: line[3:] for line in found if line[1:3] == ": "}
    assert values["a"] != values["b"]
    assert values["c"][:36] != values["c"][36:]


def test_a_chart_whose_values_are_random_is_rendered_as_it_is_if_it_checks_them(tmp_path: Path) -> None:
    text = 'a: {{ (buildCustomCert (b64enc "a") (b64enc (genPrivateKey "ecdsa"))).Cert | quote }}\n'
    use = use_of(write_files(tmp_path / "web", {**GOOD, "templates/a.yaml": text}))

    assert "buildCustomCert" in render_with_marks(use, REAL)[0].error


TRICKS = {
    "in a named template": '{{ define "x" }}name: a\n{{ end }}a: {{ include "x" . | sha256sum }}\n',
    "trimmed": "a:   {{- 1 -}}   \nb: 2\n",
    "windows": "a: {{ .Values.port }}\r\nb: 1\r\n",
    "only white space": "\n\n   \n",
    "documents": "---\na: 1\n---\n# text\nb: 2\n---\n# only a comment\n",
    "braces": "a: |\n  b() {\n  {{- if true }}\n  c {\n  {{- end }}\n",
    "indented": "  a: {{ .Release.Name }}\n",
    "block": "a: |\n  x\n\n  y   \n   \nb: 1\n\n\n",
    "set": '{{ $_ := set .Values "seen" (add1 (.Values.seen | default 0)) }}a: {{ .Values.seen }}\n',
    "release": '{{ $_ := set .Release "Name" (print .Release.Name "x") }}a: {{ .Release.Name }}\n',
    "template": 'a: {{ .Template.Name }}\nb: {{ include (print .Template.BasePath "/service.yaml") . | sha256sum }}\n',
    "tpl": 'a: {{ tpl "{{ .Values.port }}" . }}\n{{ tpl (.Files.Get "b.txt") . }}\n',
    "not text": b"a: 1\n{{/* \xff\xfe */}}\n",
    "binary text": 'a: {{ "w6k=" | b64dec }}\n',
    "methods": "a: {{ .Values.AsMap | toJson }}\n",
    "loop": "x:\n{{ range $i := until 3 }}\n- a: {{ $i }}\n  b: {{ $i }}\n{{ end }}\n",
    "hook": 'apiVersion: v1\nkind: Zzz\nmetadata: {name: b, annotations: {"helm.sh/hook": "test,pre-install"}}\n',
    "comment": "# only\n{{/* a comment */}}\n# comments\n",
}


@pytest.mark.parametrize("name", TRICKS)
def test_marks_never_change_what_helm_prints(tmp_path: Path, name: str) -> None:
    sub = {**GOOD, "Chart.yaml": METADATA.replace("web", "sub"), "templates/b.yaml": TRICKS[name]}
    files = {**GOOD, "b.txt": "c: {{ .Release.Name }}\n", "templates/a.yaml": TRICKS[name]}
    root = write_files(tmp_path / "web", {**files, **below("charts/sub", sub)})
    use = use_of(root)
    rendered, _ = render_with_marks(use, REAL)

    plain = template(root, use.release)
    assert rendered.output == plain


def test_lines_of_charts_in_charts_are_known(tmp_path: Path) -> None:
    sub = {**GOOD, "Chart.yaml": METADATA.replace("web", "sub"), "values.yaml": "port: 80001\n"}
    depends = f"{METADATA}dependencies:\n  - {{name: sub, alias: one}}\n  - {{name: sub, alias: two, condition: no}}\n"
    files = {**GOOD, "Chart.yaml": depends, "values.yaml": "port: 80\nno: false\n", **below("charts/sub", sub)}
    root = write_files(tmp_path / "web", {**files, "templates/service.yaml": f"---\n\n{SERVICE}"})
    report = lint(root, "--no-cache", ".")

    found = [(each["file"], each["line"]) for each in report["findings"] if each["rule"] == "invalid-port"]
    assert found == [("charts/sub/templates/service.yaml", 6)]


KUSTOMIZED = {
    "override": ("valuesFile: own.yaml\n    valuesInline: {b: inline}", {"a": "own", "b": "inline", "c": "chart"}),
    "merge": (
        "valuesFile: own.yaml\n    valuesMerge: merge\n    valuesInline: {a: inline, c: inline, d: inline}",
        {"a": "own", "c": "inline", "d": "inline"},
    ),
    "merge with the chart": (
        "valuesMerge: merge\n    valuesInline: {a: inline, d: inline}",
        {"a": "chart", "d": "inline"},
    ),
    "replace": (
        "valuesFile: own.yaml\n    valuesMerge: replace\n    valuesInline: {b: inline}",
        {"a": "chart", "b": "inline", "c": "chart"},
    ),
    "more files": (
        "additionalValuesFiles: [more.yaml]\n    valuesInline: {a: inline, b: inline}",
        {"a": "more", "b": "inline"},
    ),
    "release": (
        "releaseName: rel\n    namespace: ns\n    kubeVersion: 1.30.0",
        {"name": "rel", "space": "ns", "kube": "v1.30.0"},
    ),
    "crds": ("includeCRDs: true", {"crd": "yes", "hook": "yes", "test": "yes"}),
    "no crds": ("skipTests: true", {"crd": "", "hook": "yes", "test": ""}),
    "no hooks": ("skipHooks: true", {"crd": "", "hook": "", "test": ""}),
}
SHOWN = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: shown}
data:
  a: {{ .Values.a | quote }}
  b: {{ .Values.b | quote }}
  c: {{ .Values.c | quote }}
  d: {{ .Values.d | quote }}
  name: {{ .Release.Name }}
  space: {{ .Release.Namespace }}
  kube: {{ .Capabilities.KubeVersion.Version }}
"""
HOOK = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, annotations: {helm.sh/hook: %s}}\n"
CRD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: crd}\n"


@pytest.mark.parametrize("name", KUSTOMIZED)
def test_charts_of_kustomizations_have_the_values_of_the_build(tmp_path: Path, name: str) -> None:
    entry, expected = KUSTOMIZED[name]
    chart = {
        "Chart.yaml": METADATA,
        "values.yaml": "a: chart\nb: chart\nc: chart\n",
        "templates/a.yaml": SHOWN,
        "templates/hook.yaml": HOOK % ("hook", "pre-install"),
        "templates/test.yaml": HOOK % ("test", "test"),
        "crds/a.yaml": CRD,
    }
    files = {
        **below("here/web", chart),
        "own.yaml": "a: own\nb: own\n",
        "more.yaml": "a: more\n",
        "kustomization.yaml": f"helmGlobals: {{chartHome: here}}\nhelmCharts:\n  - name: web\n    {entry}\n",
    }
    root = write_files(tmp_path, files)
    [found] = list_kustomized(root)
    objects = {each.data["metadata"]["name"]: each.data for each in ChartBuild(found, REAL)().objects}

    shown: dict[str, str] = {each: "yes" if each in objects else "" for each in ("crd", "hook", "test")}
    shown |= objects["shown"]["data"]
    assert {key: shown[key] for key in expected} == expected


def list_kustomized(root: Path) -> list[Use]:
    paths = [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]
    tree = FileTree(FolderTree(root), paths)
    around = Surroundings(tree, paths, plan(tree.source, ["kustomization.yaml"]), {}, frozenset(), "", None)
    return list_releases(GitOpsTree(around, {}, {}), ()).uses


def test_a_chart_of_a_kustomization_is_judged_once_with_its_values(tmp_path: Path) -> None:
    text = "helmCharts:\n  - name: web\n    valuesInline: {port: %s}\n"
    files = {**below("charts/web", {**GOOD, "values.yaml": "port: 80001\n"}), "kustomization.yaml": text % 80}
    root = write_files(tmp_path, files)

    # The port of the chart alone is installed nowhere, and the build leaves nothing out.
    assert lint(root, "--no-cache", ".")["findings"] == []
    (root / "kustomization.yaml").write_text(text % 80002)
    found = lint(root, "--no-cache", ".")["findings"]
    assert [(each["rule"], "`80002`" in each["message"]) for each in found] == [("invalid-port", True)]
    # It is used alone, too.
    (root / "Makefile").write_text("install:\n\thelm install web charts/web\n")
    found = lint(root, "--no-cache", ".")["findings"]
    assert sorted(each["message"].split("`")[3] for each in found) == ["80001", "80002"]


def test_only_options_that_helm_3_and_4_have_are_used(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    path = count_helm(programs)
    text = "helmCharts:\n  - {name: web, releaseName: a, namespace: b, kubeVersion: 1.31.0, valuesInline: {port: 81}}\n"
    root = write_files(tmp_path / "web", {**below("charts/web", GOOD), "kustomization.yaml": text})
    lint(root, "--no-cache", ".", path=path)

    apis = "apiregistration.k8s.io/v1,apiregistration.k8s.io/v1/APIService"
    assert read_calls(programs) == [
        f"template a chart --api-versions {apis} --kube-version 1.31.0 --namespace b --values values/0.yaml"
    ]


DEEP_VALUES = "a: " + "{a: " * 2_000 + "1" + "}" * 2_000 + "\n"
HOSTILE = {
    "loop": {"templates/a.yaml": "{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}a: 1\n"},
    "endless template": {"templates/a.yaml": '{{ define "r" }}{{ template "r" . }}{{ end }}{{ template "r" . }}\n'},
    "endless include": {"templates/a.yaml": '{{ define "r" }}{{ include "r" . }}{{ end }}{{ include "r" . }}\n'},
    "endless tpl": {"templates/a.yaml": "{{ tpl .Values.x . }}\n", "values.yaml": "x: '{{ tpl .Values.x . }}'\n"},
    "output": {"templates/a.yaml": '{{ range until 100000 }}a{{ . }}: {{ repeat 1000 "x" }}\n{{ end }}\n'},
    "memory": {"templates/a.yaml": 'a: {{ repeat 2000000000 "xxxx" | len }}\n'},
    "random": {"templates/a.yaml": "a: {{ randAlphaNum 2000000000 | len }}\n"},
    "deep values": {"values.yaml": DEEP_VALUES, "templates/a.yaml": "a: {{ toYaml .Values | quote }}\n"},
    "many templates": {f"templates/{at}.yaml": "a: 1\n" for at in range(3_000)},
    "many marks": {"templates/a.yaml": "".join(f"a{at}: {{{{ .Values.port }}}}\n" for at in range(10_000))},
    "regular expression": {"templates/a.yaml": 'a: {{ regexMatch "(a*)*b" (repeat 5000000 "a") }}\n'},
    "keys": {"templates/a.yaml": 'a: {{ range until 20 }}{{ genPrivateKey "rsa" | len }}{{ end }}\n'},
    "aliases": {
        "values.yaml": "a: &a [x,x,x,x,x,x,x,x,x]\n"
        + "".join(f"b{at}: &b{at} [{', '.join([f'*b{at - 1}' if at else '*a'] * 9)}]\n" for at in range(9))
    },
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_chart_ends_within_its_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(run_helm, "_CPU_SECONDS", 1)
    root = write_files(tmp_path / "web", {**GOOD, **HOSTILE[name]})
    before = os.times()
    report = lint(root, "--no-cache", "--strict-files", ".")
    after = os.times()

    # What is not judged is refused, and what is judged has been rendered.
    judged = report["summary"]["objects"] > 0
    errors = [each for each in report["findings"] if each["severity"] == "error"]
    assert judged or errors
    used = after.children_user + after.children_system - before.children_user - before.children_system
    # Two renders, each with the limit of the processor; a limit of the test, not of the machine.
    assert used < 3

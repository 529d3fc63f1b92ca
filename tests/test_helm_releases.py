"""Releases of Flux and Argo CD whose values come from elsewhere: Secrets, substitution, registries, generators."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import pytest
from command import run_jobgen
from helm_charts import GOOD, HELM, SERVICE, WITHOUT_HELM, below, init_repository, needs_helm, write_files

pytestmark = needs_helm
WITH_HELM = os.pathsep.join((str(HELM.parent), WITHOUT_HELM))
CHART = below("charts/web", {**GOOD, "values.yaml": "port: 80\nhost: c\nname: {tag: a}\n"})
NAMED = SERVICE.replace("app: web", "app: {{ .Values.host | quote }}").replace(
    "spec:", "  labels: {tag: {{ .Values.name.tag | quote }}}\nspec:"
)
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


def lint(root: Path, *arguments: str) -> dict:
    done = run_jobgen(
        root, "lint", "--no-cache", "--format", "json", *(arguments or (".",)), env={**os.environ, "PATH": WITH_HELM}
    )
    assert done.stdout, done.stderr
    report: dict = json.loads(done.stdout)
    return report


def found_in(report: dict) -> list[tuple[str, str, int]]:
    """Return the rule of each finding about a chart, and the first line that it is related to."""
    places = []
    for each in report["findings"]:
        note = (each.get("related") or [each])[0]
        places.append((each["rule"], note["file"], note["line"]))
    return places


def encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def holder(kind: str, name: str, **data: str) -> str:
    listed = "".join(f"  {key}: {json.dumps(value)}\n" for key, value in data.items())
    return f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: {name}, namespace: apps}}\ndata:\n{listed}"


def test_values_of_flux_are_set_at_a_path(tmp_path: Path) -> None:
    references = (
        "  valuesFrom:\n    - {kind: ConfigMap, name: one, valuesKey: port, targetPath: port}\n"
        "    - {kind: ConfigMap, name: one, valuesKey: tag, targetPath: name.tag}\n"
    )
    files = {
        **CHART,
        "charts/web/templates/service.yaml": NAMED,
        "apps/web.yaml": RELEASE + references,
        "apps/one.yaml": holder("ConfigMap", "one", port="80001", tag="a b"),
    }
    report = lint(write_files(tmp_path, files))

    assert sorted(found_in(report)) == [("invalid-label", "apps/one.yaml", 6), ("invalid-port", "apps/one.yaml", 5)]


@pytest.mark.parametrize("is_encoded", [True, False])
def test_values_of_secrets_are_used_and_never_shown(tmp_path: Path, is_encoded: bool) -> None:
    references = (
        "  valuesFrom:\n    - {kind: Secret, name: one}\n"
        "    - {kind: Secret, name: one, valuesKey: tag, targetPath: name.tag}\n"
    )
    values = {"values.yaml": "port: 80001\nhost: x9 y9\n", "tag": "k w"}
    if is_encoded:
        values = {key: encode(text) for key, text in values.items()}
    secret = holder("Secret", "one", **values)
    files = {
        **CHART,
        "charts/web/templates/service.yaml": NAMED,
        "apps/web.yaml": RELEASE + references,
        "apps/one.yaml": secret if is_encoded else secret.replace("\ndata:", "\nstringData:"),
    }
    report = lint(write_files(tmp_path, files))

    found = [each["rule"] for each in report["findings"] if each["file"].startswith("charts/")]
    assert sorted(found) == ["invalid-label", "invalid-label", "invalid-port"]
    shown = json.dumps(report["findings"])
    assert [text for text in ("80001", "x9", "k w") if text in shown] == []
    for name in ("text", "github", "concise"):
        done = run_jobgen(tmp_path, "lint", "--format", name, env={**os.environ, "PATH": WITH_HELM})
        assert [text for text in (b"80001", b"x9", b"k w") if text in done.stdout] == []


def test_values_that_are_encrypted_are_not_known(tmp_path: Path) -> None:
    secret = holder("Secret", "one", **{"values.yaml": "ENC[AES256_GCM,data:x]"}) + "sops: {version: 3.8.1}\n"
    required = 'a: {{ required "set the name" .Values.other }}\n'
    files = {
        **CHART,
        "charts/web/templates/a.yaml": required,
        "apps/web.yaml": f"{RELEASE}  valuesFrom: [{{kind: Secret, name: one}}]\n",
        "apps/one.yaml": secret,
    }
    found = [each for each in lint(write_files(tmp_path, files))["findings"] if each["rule"] == "chart-value-missing"]

    # The Secret may have it.
    assert [each["severity"] for each in found] == ["info"]


def test_variables_of_a_release_are_filled_in_by_flux(tmp_path: Path) -> None:
    sync = """\
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: flux-system}
spec:
  interval: 1h
  prune: true
  path: ./apps
  sourceRef: {kind: GitRepository, name: flux-system}
  postBuild:
    substitute: {PORT: "80001"}
"""
    files = {
        **CHART,
        "apps/web.yaml": f"{RELEASE}  values: {{port: '${{PORT}}'}}\n",
        "clusters/apps.yaml": sync,
    }
    report = lint(write_files(tmp_path, files))

    assert [each["rule"] for each in report["findings"] if each["severity"] == "error"] == ["invalid-type"] or [
        each["rule"] for each in report["findings"] if "80001" in each["message"]
    ]
    assert not [each for each in report["findings"] if each["rule"] == "unjudged-chart"]


SOURCES = """\
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: web, namespace: flux-system}
spec: {interval: 1h, url: oci://ghcr.io/example/web, ref: {tag: TAG}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: repo, namespace: flux-system}
spec: {interval: 1h, url: https://github.com/example/gitops, ref: {branch: main}}
"""


@pytest.mark.parametrize(("tag", "rules"), [("0.1.0", ["invalid-port"]), ("0.2.0", ["unjudged-chart"])])
def test_charts_of_a_registry_that_are_in_the_tree(tmp_path: Path, tag: str, rules: list[str]) -> None:
    release = (
        RELEASE.partition("  chart:\n")[0] + "  chartRef: {kind: OCIRepository, name: web, namespace: flux-system}\n"
    )
    files = {
        **CHART,
        "apps/web.yaml": f"{release}  values: {{port: 80001}}\n",
        "apps/sources.yaml": SOURCES.replace("TAG", tag),
    }
    report = lint(write_files(tmp_path, files))

    assert [each["rule"] for each in report["findings"] if each["rule"] != "unread-value"] == rules


def test_charts_of_a_repository_that_is_this_one(tmp_path: Path) -> None:
    files = {
        **CHART,
        "apps/web.yaml": RELEASE.replace("flux-system, namespace", "repo, namespace") + "  values: {port: 80001}\n",
        "apps/sources.yaml": SOURCES,
    }
    report = lint(write_files(init_repository(tmp_path), files))

    assert ("invalid-port", "apps/web.yaml", 10) in found_in(report)


OWN = "https://github.com/example/gitops.git"
SET = f"""\
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {{name: all, namespace: argocd}}
spec:
  goTemplate: true
  generators:
GENERATORS
  template:
    metadata: {{name: "web-{{{{ .name }}}}"}}
    spec:
      project: default
      destination: {{namespace: prod, server: https://kubernetes.default.svc}}
      source:
        repoURL: {OWN}
        path: charts/web
        helm: {{parameters: [{{name: port, value: "{{{{ .port }}}}"}}]}}
"""


def lint_set(root: Path, generators: str) -> list[tuple[str, bool]]:
    """Return the rules of the findings about a set, each with True if the port of a generator is shown."""
    files = {**CHART, "set.yaml": SET.replace("GENERATORS", generators), "a/port.yaml": "port: 80001\nname: a\n"}
    report = lint(write_files(init_repository(root), files))
    found = [each for each in report["findings"] if each["rule"] != "unread-value"]
    return [(each["rule"], "`8000" in each["message"]) for each in found]


def test_generators_that_merge(tmp_path: Path) -> None:
    text = """\
    - merge:
        mergeKeys: [name]
        generators:
          - list: {elements: [{name: a, port: "80"}, {name: b, port: "81"}]}
          - list: {elements: [{name: b, port: "80002"}, {name: c, port: "80003"}]}
"""
    assert lint_set(tmp_path, text) == [("invalid-port", True)]


def test_generators_of_a_matrix_use_the_parameters_before_them(tmp_path: Path) -> None:
    text = f"""\
    - matrix:
        generators:
          - list: {{elements: [{{folder: a}}]}}
          - git: {{repoURL: {OWN}, revision: HEAD, files: [{{path: "{{{{ .folder }}}}/port.yaml"}}]}}
"""
    assert lint_set(tmp_path, text) == [("invalid-port", True)]


@pytest.mark.parametrize(
    "text",
    [
        "    - clusters: {selector: {matchLabels: {env: prod}}}\n",
        "    - merge: {mergeKeys: [name], generators: [{clusters: {}}, {list: {elements: [{name: a, port: '1'}]}}]}\n",
        "    - matrix: {generators: [{clusters: {}}, {list: {elements: [{name: a}]}}]}\n",
    ],
    ids=["clusters", "merge", "matrix"],
)
def test_what_only_the_cluster_knows_is_said_once(tmp_path: Path, text: str) -> None:
    files = {
        **CHART,
        "set.yaml": SET.replace("GENERATORS\n", text).replace("parameters: [{name: port, value: ", "values: "),
    }
    files["set.yaml"] = files["set.yaml"].replace('}}"}]}', '}}"}')
    report = lint(write_files(init_repository(tmp_path), files))
    notes = [each for each in report["findings"] if each["rule"] == "unjudged-chart"]

    assert [each["severity"] for each in notes] == ["info"]
    assert "some values are filled in elsewhere" in notes[0]["message"]


def test_a_template_that_is_patched_is_said_to_be_unknown(tmp_path: Path) -> None:
    text = SET.replace("GENERATORS", "    - list: {elements: [{name: a, port: '80001'}]}")
    files = {**CHART, "set.yaml": f"{text}  templatePatch: |\n    spec: {{}}\n"}
    report = lint(write_files(init_repository(tmp_path), files))

    assert [
        each["message"].partition("because ")[2] for each in report["findings"] if each["rule"] == "unjudged-chart"
    ] == ["something else changes what helm renders"]


LIST = "list: {elements: [{name: a, port: '80'}, {name: b, port: '80001'}]}"


@pytest.mark.parametrize(
    ("selector", "is_left"),
    [
        ("{matchLabels: {name: a}}", False),
        ("{matchLabels: {name: b}}", True),
        ("{matchLabels: {other: b}}", False),
        ("{matchExpressions: [{key: name, operator: In, values: [a, b]}]}", True),
        ("{matchExpressions: [{key: name, operator: NotIn, values: [b]}]}", False),
        ("{matchExpressions: [{key: name, operator: Exists}]}", True),
        ("{matchExpressions: [{key: name, operator: DoesNotExist}]}", False),
        ("{matchExpressions: [{key: other, operator: DoesNotExist}]}", True),
    ],
)
def test_a_selector_leaves_parameters_out(tmp_path: Path, selector: str, is_left: bool) -> None:
    plain = lint_set(tmp_path / "plain", f"    - {LIST}\n      selector: {selector}\n")
    inside = f"    - matrix: {{generators: [{{list: {{elements: [{{x: a}}]}}}}, {{{LIST}, selector: {selector}}}]}}\n"

    assert plain == lint_set(tmp_path / "matrix", inside) == ([("invalid-port", True)] if is_left else [])


def test_generators_in_generators(tmp_path: Path) -> None:
    text = """\
    - matrix:
        generators:
          - list: {elements: [{zone: x}]}
          - merge:
              mergeKeys: [name]
              generators:
                - list: {elements: [{name: a, port: "80"}]}
                - matrix:
                    generators:
                      - list: {elements: [{name: a}]}
                      - list: {elements: [{port: "80001"}]}
"""
    assert lint_set(tmp_path, text) == [("invalid-port", True)]


def test_elements_that_are_text(tmp_path: Path) -> None:
    text = """\
    - list:
        elementsYaml: |
          - name: a
            port: "80001"
"""
    assert lint_set(tmp_path / "text", text) == [("invalid-port", True)]
    files = {"a/ports.yaml": "key: {ports: [{name: a, port: '80001'}]}\n"}
    text = f"""\
    - matrix:
        generators:
          - git: {{repoURL: {OWN}, revision: HEAD, files: [{{path: a/ports.yaml}}]}}
          - list: {{elementsYaml: "{{{{ .key.ports | toJson }}}}"}}
"""
    assert lint_set(write_files(tmp_path / "git", files), text) == [("invalid-port", True)]


@pytest.mark.parametrize(
    ("generators", "why"),
    [
        ("    - clusters: {}\n      selector: {matchLabels: {env: prod}}\n", "some values are filled in elsewhere"),
        ("    - list: {elementsYaml: '{{ .x | toJson }}'}\n", "some values are filled in elsewhere"),
        (
            "    - list: {elements: [{name: a}], template: {spec: {project: x}}}\n",
            "some values are filled in elsewhere",
        ),
        (f"    - list: {{elements: [{', '.join(['{name: web}'] * 201)}]}}\n", "only the first ones were read"),
    ],
    ids=["clusters", "text", "template", "many"],
)
def test_applications_that_are_not_known_are_said(tmp_path: Path, generators: str, why: str) -> None:
    text = SET.replace("GENERATORS\n", generators).replace("path: charts/web", 'path: "charts/{{ .name }}"')
    text = text.partition("        helm:")[0]
    report = lint(write_files(init_repository(tmp_path), {**CHART, "set.yaml": text}))
    notes = [each["message"] for each in report["findings"] if each["rule"] == "unjudged-chart"]

    assert len(notes) == 1
    assert why in notes[0]


APPLICATION = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web, namespace: argocd}
spec:
  project: default
  destination: {server: https://kubernetes.default.svc, namespace: ml}
  source:
    repoURL: https://github.com/example/gitops
    path: charts/web
    helm:
"""


@pytest.mark.parametrize(
    ("values", "line", "reason"),
    [("port: [80", 12, "is not closed"), ("- port: 80", 11, "they are a list"), ("port", 11, "a plain value")],
)
def test_values_in_a_text_that_cannot_be_read_are_an_error(tmp_path: Path, values: str, line: int, reason: str) -> None:
    root = init_repository(write_files(tmp_path, CHART))
    of_flux = (
        f"{RELEASE}  valuesFrom: [{{kind: ConfigMap, name: v}}]\n---\napiVersion: v1\nkind: ConfigMap\n"
        f"metadata: {{name: v, namespace: apps}}\ndata:\n  values.yaml: |\n    {values}\n"
    )
    texts = {
        "Argo CD cannot render `web`": f"{APPLICATION}      values: |\n        {values}\n",
        "Flux cannot install it": of_flux,
    }
    for then, text in texts.items():
        [found] = lint(write_files(root, {"app.yaml": text}), "app.yaml")["findings"]

        assert (found["rule"], found["severity"]) == ("chart-render-fails", "error")
        assert then in found["message"]
        assert reason in found["message"]
        assert found["line"] == line or then.startswith("Flux")


def test_values_of_a_secret_that_cannot_be_read_are_not_shown(tmp_path: Path) -> None:
    root = init_repository(write_files(tmp_path, CHART))
    text = f"{RELEASE}  valuesFrom: [{{kind: Secret, name: v}}]\n---\n" + holder(
        "Secret", "v", **{"values.yaml": encode("password: [hunter2\n")}
    )
    report = lint(write_files(root, {"app.yaml": text}))

    assert [each["rule"] for each in report["findings"] if each["severity"] == "error"] == ["chart-render-fails"]
    assert "hunter2" not in json.dumps(report)


def test_values_files_that_a_pattern_names_are_said_to_be_unknown(tmp_path: Path) -> None:
    root = init_repository(write_files(tmp_path, {**CHART, "envs/a.yaml": "port: 80001\n"}))
    text = f"{APPLICATION}      valueFiles: ['../../envs/*.yaml']\n"
    found = lint(write_files(root, {"app.yaml": text}), "app.yaml")["findings"]

    assert [(each["rule"], each["severity"]) for each in found] == [("unjudged-chart", "info")]
    assert "a pattern names some of its values files" in found[0]["message"]


def test_a_missing_file_of_a_parameter_has_no_advice_about_values_files(tmp_path: Path) -> None:
    root = init_repository(write_files(tmp_path, CHART))
    text = f"{APPLICATION}      ignoreMissingValueFiles: true\n      fileParameters: [{{name: host, path: a.txt}}]\n"
    [found] = [each for each in lint(write_files(root, {"app.yaml": text}))["findings"] if each["severity"] == "error"]

    assert found["rule"] == "gitops-path-missing"
    assert "ignoreMissing" not in found["message"]


@pytest.mark.parametrize(
    ("files", "selected", "ports"),
    [
        ({"conf/a.yaml": "- {name: a, port: 80001}\n- {name: b, port: 80002}\n"}, "{path: conf/*}", ["80001", "80002"]),
        ({"conf/a.json": '[{"name": "a", "port": 80001}]'}, "{path: conf/*}", ["80001"]),
        ({"conf/a.yaml": "name: a\nport: 80001\n---\nname: b\nport: 80002\n"}, "{path: conf/*}", ["80001"]),
        (
            {"conf/a.yaml": "name: a\nport: 80001\n", "conf/b.yaml": "name: b\nport: 80002\n"},
            "{path: conf/*}, {path: conf/b.yaml, exclude: true}",
            ["80001"],
        ),
    ],
    ids=["list", "json", "documents", "exclude"],
)
def test_files_of_a_generator(tmp_path: Path, files: dict[str, str], selected: str, ports: list[str]) -> None:
    text = f"""\
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {{name: set, namespace: argocd}}
spec:
  generators: [{{git: {{repoURL: https://github.com/example/gitops, revision: HEAD, files: [{selected}]}}}}]
  template:
    metadata: {{name: '{{{{name}}}}'}}
    spec:
      project: default
      destination: {{server: https://kubernetes.default.svc, namespace: ml}}
      source:
        repoURL: https://github.com/example/gitops
        path: charts/web
        helm: {{parameters: [{{name: port, value: '{{{{port}}}}'}}]}}
"""
    root = init_repository(write_files(tmp_path, {**CHART, **files, "set.yaml": text}))
    found = [each for each in lint(root)["findings"] if each["rule"] == "invalid-port"]

    assert [port for each in found for port in ports if f"`{port}`" in each["message"]] == ports
    assert len(found) == len(ports)


SOURCE = """\
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 1h, url: https://github.com/example/gitops, ref: {branch: main}}
---
"""


def test_a_chart_that_is_not_there_is_one_error(tmp_path: Path) -> None:
    root = init_repository(write_files(tmp_path, CHART))
    found = lint(write_files(root, {"app.yaml": SOURCE + RELEASE.replace("/web", "/wbe")}), "app.yaml")["findings"]

    assert [(each["rule"], each["severity"]) for each in found] == [("gitops-path-missing", "error")]


def test_values_of_flux_that_are_a_text_are_ignored_by_it(tmp_path: Path) -> None:
    root = init_repository(write_files(tmp_path, CHART))
    text = f"{SOURCE}{RELEASE}  values: |\n    port: 80001\n"
    found = [each for each in lint(write_files(root, {"app.yaml": text}))["findings"] if each["severity"] != "info"]

    assert [(each["rule"], each["severity"], each["line"]) for each in found] == [("unread-value", "warning", 15)]
    assert "Flux ignores" in found[0]["message"]


@pytest.mark.parametrize(
    "fields",
    [
        "  valuesFrom: [{kind: Secret, name: one}]\n",
        "  valuesFrom: [{kind: ConfigMap, name: one, optional: true}]\n",
        "  valuesFrom: [{kind: Secret, name: two, valuesKey: values.yaml, targetPath: port}]\n  values: {host: d}\n",
    ],
)
def test_a_release_whose_values_nobody_shows_is_counted_and_refused_strictly(tmp_path: Path, fields: str) -> None:
    root = write_files(tmp_path, {**CHART, "apps/web.yaml": RELEASE + fields})

    notes = [each for each in lint(root)["findings"] if each["rule"] == "unjudged-chart"]
    strict = {
        each["severity"] for each in lint(root, "--strict-files", ".")["findings"] if each["rule"] == "unjudged-chart"
    }

    assert [(each["severity"], each["file"]) for each in notes] == [("info", "apps/web.yaml")]
    assert notes[0]["message"].startswith(
        "1 Helm release of `web` was checked without some of its values, because no file"
    )
    assert strict == {"error"}

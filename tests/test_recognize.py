"""What a file is, decided before it is judged: one case for each sort, and the ways to correct a guess."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from jobgen.recognize import SORTS

DOCS = Path(__file__).parent.parent / "docs"
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: ml
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: web
          image: registry.example.com/web:1.2.3
"""
PARTIAL = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 3}\n"


def write_all(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")


def lint(folder: Path, *arguments: str) -> tuple[int, dict]:
    command = [sys.executable, "-m", "jobgen", "lint", "--no-cache", "--format", "json", *(arguments or (".",))]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def list_taken(report: dict) -> dict[str, str]:
    return {each["file"]: each["takenFor"] for each in report.get("files", ())}


def list_errors(report: dict) -> list[tuple[str, str]]:
    return [(each["file"], each["rule"]) for each in report["findings"] if each["severity"] == "error"]


NOT_JUDGED = [
    ("testdata", "internal/testdata/out.yaml", PARTIAL, "test data"),
    ("golden name", "cases/expected-web.yaml", PARTIAL, "test data"),
    ("kuttl assertion", "e2e/01-assert.yaml", PARTIAL, "test data"),
    ("matchers of a test", "cases/a.yaml", PARTIAL.replace("web}", '"$glob:web-*"}'), "test data"),
    ("Go template", "deploy/a.yaml", PARTIAL.replace("{name: web}", "{name: {{ .Name }}}"), "template"),
    ("Jinja statement", "deploy/a.yaml", f"{PARTIAL}{{% if x %}}\nb: 1\n{{% endif %}}\n", "template"),
    ("block variable", "deploy/a.yaml", f"{PARTIAL}${{EXTRA_BLOCK}}\n", "template"),
    ("template of an Ansible role", "roles/x/templates/a.yaml", PARTIAL, "template"),
    (
        "Template of OpenShift",
        "x/a.yaml",
        "apiVersion: v1\nkind: Template\nmetadata: {name: a}\nobjects: []\n",
        "template",
    ),
    ("filled by a program", "x/a.yaml", PARTIAL.replace("web}", '"FILLED_BY_THE_VALIDATOR"}'), "operator asset"),
    ("filled by the operator", "x/a.yaml", PARTIAL.replace("web}", '"FILLED BY THE OPERATOR"}'), "operator asset"),
    ("directive of a patch", "x/a.yaml", PARTIAL.replace("spec:", "$patch: delete\nspec:"), "kustomize fragment"),
    ("JSON 6902", "x/a.yaml", "- op: add\n  path: /spec/replicas\n  value: 2\n", "kustomize fragment"),
    ("tasks of Ansible", "x/a.yaml", "- hosts: all\n  tasks:\n    - kind: x\n", "config of another program"),
    ("list in JSON", "x/a.json", '[{"kind": "x", "spec": {}}]', "config of another program"),
    (
        "no metadata",
        "x/a.yaml",
        "apiVersion: config.example.org/v1\nkind: XConfig\ninit: {}\n",
        "config of another program",
    ),
    (
        "version of a program",
        "x/a.yaml",
        "apiVersion: 0.3.0\nkind: ksonnet.io/app\nname: a\n",
        "config of another program",
    ),
    (
        "IstioOperator",
        "x/a.yaml",
        "apiVersion: install.istio.io/v1alpha1\nkind: IstioOperator\nspec: {}\n",
        "config of another program",
    ),
]


@pytest.mark.parametrize(
    ("path", "text", "sort"), [case[1:] for case in NOT_JUDGED], ids=[case[0] for case in NOT_JUDGED]
)
def test_a_file_that_is_no_finished_object_is_not_judged(tmp_path: Path, path: str, text: str, sort: str) -> None:
    write_all(tmp_path, {path: text, "good.yaml": DEPLOYMENT})
    _, report = lint(tmp_path)

    assert list_taken(report) == {path: sort}
    assert list_errors(report) == []
    assert report["summary"]["skipped"] == {sort: 1}
    assert all(each["why"] for each in report["files"])


@pytest.mark.parametrize(
    "path", ["a.yaml", "deploy/web.yaml", "tests/a.yaml", "examples/b.yaml", "manifests/x.yaml", "error-pages.yaml"]
)
def test_an_object_is_judged_wherever_it_is(tmp_path: Path, path: str) -> None:
    write_all(tmp_path, {path: PARTIAL})
    code, report = lint(tmp_path)

    assert code == 1
    assert "missing-field" in {rule for _, rule in list_errors(report)}
    assert list_taken(report) == {}


@pytest.mark.parametrize(
    "text",
    [
        PARTIAL.replace("metadata:", "metdata:"),
        PARTIAL.replace("apps/v1", "apps/v1beta9"),
        PARTIAL.replace("spec: {replicas: 3}", "spec: {replicas: [}"),
        "apiVersion: v1\nkind: Pod\nspec: {containers: []}\n",
        "- apiVersion: v1\n  kind: Pod\n",
        PARTIAL.replace("apps/v1", "apps.v1"),
        f"# {{{{ x }}}}\n{PARTIAL}kind: Deployment\n",
        f"{PARTIAL}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata:\n  a: |\n    $patch: delete\n",
        f"# filled in by the operator\n{PARTIAL}",
    ],
)
def test_a_mistake_does_not_make_an_object_something_else(tmp_path: Path, text: str) -> None:
    write_all(tmp_path, {"a.yaml": text})
    code, report = lint(tmp_path)

    assert code == 1
    assert list_errors(report)


def test_assets_are_those_of_programs_in_go(tmp_path: Path) -> None:
    write_all(
        tmp_path,
        {"op/assets/a.yaml": PARTIAL, "op/Makefile": "build:\n\tgo build ./...\n", "web/assets/b.yaml": PARTIAL},
    )
    _, report = lint(tmp_path)

    assert list_taken(report) == {"op/assets/a.yaml": "operator asset"}
    assert {file for file, _ in list_errors(report)} == {"web/assets/b.yaml"}


def test_a_bundle_is_installed_by_olm(tmp_path: Path) -> None:
    metadata = {"bundle/metadata/annotations.yaml": "annotations: {a: b}\n"}
    write_all(tmp_path, {"bundle/manifests/a.yaml": PARTIAL, "a.yaml": DEPLOYMENT} | metadata)
    _, report = lint(tmp_path)

    assert list_taken(report)["bundle/manifests/a.yaml"] == "operator asset"
    assert list_errors(report) == []


def test_settings_correct_a_guess(tmp_path: Path) -> None:
    settings = "files:\n  object: [testdata/]\n  template: ['*.in.yaml']\n"
    write_all(tmp_path, {"testdata/a.yaml": PARTIAL, "b.in.yaml": PARTIAL, "jobgen.yaml": settings})
    _, report = lint(tmp_path)

    assert {file for file, _ in list_errors(report)} == {"testdata/a.yaml"}
    assert list_taken(report) == {"b.in.yaml": "template"}


def test_a_correction_must_be_a_sort(tmp_path: Path) -> None:
    write_all(tmp_path, {"a.yaml": DEPLOYMENT, "jobgen.yaml": "files: {objects: [a.yaml]}\n"})
    done = subprocess.run(
        [sys.executable, "-m", "jobgen", "lint"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.stderr.startswith("jobgen.yaml:1:9: error: `objects` is not a field of `files`; did you mean `object`?")


def test_strict_files_report_what_is_not_judged(tmp_path: Path) -> None:
    write_all(tmp_path, {"testdata/a.yaml": PARTIAL, "values.yaml": "a: 1\n", "b.yaml": DEPLOYMENT})
    code, report = lint(tmp_path, ".", "--strict-files")

    assert code == 1
    assert list_errors(report) == [("testdata/a.yaml", "unjudged-file"), ("values.yaml", "unjudged-file")]


def test_explain_files_lists_every_file(tmp_path: Path) -> None:
    write_all(tmp_path, {"testdata/a.yaml": PARTIAL, "b.yaml": DEPLOYMENT})
    command = [sys.executable, "-m", "jobgen", "lint", ".", "--explain-files", "--no-cache"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.stdout.splitlines()[-2:] == [
        "b.yaml: object: nothing says that it is anything else",
        "testdata/a.yaml: test data: it is in a folder `testdata`",
    ]
    _, report = lint(tmp_path, ".", "--explain-files")
    assert list_taken(report) == {"b.yaml": "object", "testdata/a.yaml": "test data"}


FOREIGN = {
    "policies/a.yaml": "apiVersion: example.org/v1\nkind: Rule\nmetadata: {name: a}\nspec: {}\n",
    "schemas/x/a.yaml": "a: 1\n",
    "teams/a.yaml": "members: [x]\n",
    "runtimes/a.yaml": DEPLOYMENT,
    "overlays/prod/kustomization.yaml": "resources: [../../base]\n",
    "base/kustomization.yaml": "resources: [a.yaml]\n",
    "base/a.yaml": DEPLOYMENT,
}


@pytest.mark.parametrize("more", [{}, {"jobs/a.yaml": DEPLOYMENT}])
def test_folders_that_are_not_those_of_jobgen_are_like_any_other(tmp_path: Path, more: dict[str, str]) -> None:
    write_all(tmp_path, FOREIGN | more)
    code, report = lint(tmp_path)

    assert (code, list_errors(report)) == (0, [])
    assert report["summary"]["objects"] == 3 + ("jobs/a.yaml" in more)


def test_overlays_of_kustomize_are_not_those_of_jobgen(tmp_path: Path) -> None:
    kustomize = {path: text for path, text in FOREIGN.items() if path.startswith(("base/", "overlays/"))}
    write_all(tmp_path, kustomize | {"jobgen.yaml": "rules: {missing-schema: off}\n"})
    code, report = lint(tmp_path)

    assert (code, list_errors(report)) == (0, [])
    assert report["summary"]["objects"] == 1


def test_variables_that_a_program_fills_in_are_one_info(tmp_path: Path) -> None:
    text = DEPLOYMENT.replace("namespace: ml", "namespace: ${NAMESPACE}").replace("web:1.2.3", "web:${TAG}")
    write_all(tmp_path, {"a.yaml": text})
    code, report = lint(tmp_path)

    assert code == 0
    assert [(each["rule"], each["severity"]) for each in report["findings"]] == [("unjudged-variable", "info")]
    assert "`${NAMESPACE}`" in report["findings"][0]["message"]


def test_other_faults_beside_variables_are_errors(tmp_path: Path) -> None:
    text = DEPLOYMENT.replace("namespace: ml", "namespace: ${NAMESPACE}").replace("selector:", "selektor:")
    write_all(tmp_path, {"a.yaml": text})
    code, report = lint(tmp_path)

    assert code == 1
    assert {rule for _, rule in list_errors(report)} == {"unknown-field"}


@pytest.mark.parametrize(("script", "severity"), [("deploy.sh", "info"), ("README.md", "error"), ("other.sh", "error")])
def test_a_script_that_replaces_a_placeholder(tmp_path: Path, script: str, severity: str) -> None:
    line = "sed s/OTHER_TEXT/a/ a.yaml" if script == "other.sh" else "sed -i s/your-namespace/$NS/ a.yaml"
    write_all(tmp_path, {"a.yaml": DEPLOYMENT.replace("namespace: ml", "namespace: <your-namespace>"), script: line})
    _, report = lint(tmp_path)

    assert [each["severity"] for each in report["findings"]] == [severity]


def test_the_page_lists_every_sort() -> None:
    page = (DOCS / "any_repository.md").read_text("utf-8")

    for sort in SORTS:
        assert f"| `{sort.name}` | {sort.treatment} | {sort.meaning} |\n" in page
        assert not sort.setting or f"\n  {sort.setting}: [" in page

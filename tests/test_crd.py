"""An imported CRD accepts and refuses the same objects as in a cluster."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from command import jobgen
from linting import lint_paths

from jobgen.check.checker import Checker
from jobgen.cli.commands.schema import export_schemas, import_crds, list_kinds, print_schema, write_editor_files
from jobgen.rendering import config
from jobgen.repo.layout import own_layers
from jobgen.spec.overlay import Cluster
from jobgen.yamlio.read import read

CASES = Path(__file__).parent / "crd"
OBJECTS = read((CASES / "objects.yaml").read_bytes(), "objects.yaml").documents[0].data
REFUSED = [(rule, spec) for rule, specs in OBJECTS["refused"].items() for spec in specs]


@pytest.fixture(scope="module")
def checker(tmp_path_factory: pytest.TempPathFactory) -> Checker:
    root = tmp_path_factory.mktemp("repository")
    shutil.copy(CASES / "dance.yaml", root)
    result = import_crds(root, [root / "dance.yaml"])

    assert result.code == 0
    assert result.err == "schemas/example.com/dance_v1.json written\n"
    assert [path.name for path in root.glob("schemas/example.com/*")] == ["dance_v1.json"]
    return Checker(own_layers(root), (), Cluster())


def dance(spec: dict) -> dict:
    return {"apiVersion": "example.com/v1", "kind": "Dance", "metadata": {"name": "a"}, "spec": spec}


@pytest.mark.parametrize("spec", OBJECTS["accepted"], ids=json.dumps)
def test_objects_that_the_crd_accepts_are_accepted(checker, spec):
    assert checker(dance(spec)) == []


@pytest.mark.parametrize(("rule", "spec"), REFUSED, ids=json.dumps)
def test_objects_that_the_crd_refuses_are_refused(checker, rule, spec):
    assert [problem.rule for problem in checker(dance(spec))] == [rule]


def test_schemas_that_the_api_server_refuses_are_reported(tmp_path):
    schema = "{type: object, properties: {spec: {properties: {a: {type: int}}}}}"
    head = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\n"
    spec = f"group: example.com, names: {{kind: A}}, versions: [{{name: v1, schema: {{openAPIV3Schema: {schema}}}}}]"
    (tmp_path / "crd.yaml").write_text(f"{head}spec: {{{spec}}}\n")
    result = import_crds(tmp_path, [tmp_path / "crd.yaml"])

    assert result.code == 0
    assert (
        "crd.yaml:1:1: warning: the API server refuses the schema of `v1`: the schema of `spec` requires `type`"
        in result.err
    )
    assert "`type` is `int`" in result.err


def test_file_without_a_crd_is_reported(tmp_path):
    (tmp_path / "pod.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n")
    result = import_crds(tmp_path, [tmp_path / "pod.yaml"])

    assert (result.code, "pod.yaml: 1 object skipped: not a CustomResourceDefinition" in result.err) == (3, True)
    assert list(tmp_path.iterdir()) == [tmp_path / "pod.yaml"]


def test_kinds_are_listed_and_printed(tmp_path):
    project = config.load_own(tmp_path)
    printed = json.loads(print_schema(project, "pytorchjob").out)

    listed = {tuple(line.split()) for line in list_kinds(project).out.splitlines()}
    assert listed >= {
        ("kubeflow.org/v1", "PyTorchJob", "kubeflow"),
        ("apps/v1", "Deployment", "kubernetes"),
        ("ray.io/v1", "RayJob", "ray"),
        ("ray.io/v1", "RayCluster", "kuberay"),
    }
    assert json.loads(print_schema(project, "apps/v1/deployment").out)["title"] == "Deployment"
    assert printed["title"] == "PyTorchJob"
    assert (
        print_schema(project, "PyTorchJobs").err
        == "jobgen: there is no kind `PyTorchJobs`; did you mean `PyTorchJob`?\n"
    )


def test_editor_settings_map_files_to_schemas(tmp_path):
    first = write_editor_files(tmp_path)
    settings = json.loads((tmp_path / ".vscode/settings.json").read_text())
    (tmp_path / ".vscode/settings.json").write_text("{}")
    second = write_editor_files(tmp_path)

    assert first.code == second.code == 0
    assert all((tmp_path / path).is_file() for path in settings["yaml.schemas"])
    assert (tmp_path / ".vscode/settings.json").read_text() == "{}"
    assert json.loads(second.out) == settings


def test_imported_kinds_are_listed_printed_and_exported(tmp_path):
    import_crds(tmp_path, [CASES / "dance.yaml"])
    project = config.load_own(tmp_path)
    imported = (tmp_path / "schemas/example.com/dance_v1.json").read_text()

    assert ["example.com/v1", "Dance", "repository"] in [line.split() for line in list_kinds(project).out.splitlines()]
    assert print_schema(project, "dance").out == imported
    assert export_schemas(project, tmp_path / "out", Cluster()).code == 0
    assert (tmp_path / "out/example.com/dance_v1.json").read_text() == imported
    assert (tmp_path / "out/core/pod_v1.json").is_file()


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["print", "-e", "prod", "kueue.x-k8s.io/v1beta2/LocalQueue"], 3, "exists since kueue 0.15.0"),
        (["print", "kueue.x-k8s.io/v1beta2/LocalQueue"], 0, ""),
        (["print", "-e", "prd", "Pod"], 2, "there is no environment `prd`; did you mean `prod`?"),
        (["export", "jobgen.yaml"], 2, "`jobgen.yaml` is a file; name a folder"),
        (["export", ""], 2, "the name of the folder is empty"),
    ],
)
def test_arguments_of_schema_commands(arguments, code, text, tmp_path):
    (tmp_path / "jobgen.yaml").write_text("{}\n")
    (tmp_path / "overlays/prod").mkdir(parents=True)
    overlay = "apiVersion: jobgen.dev/v1\nkind: Overlay\nmetadata: {name: prod}\n"
    overlay += "spec: {cluster: {operators: {kueue: 0.14.0}}}\n"
    (tmp_path / "overlays/prod/overlay.yaml").write_text(overlay)
    done = jobgen(tmp_path, "schema", *arguments)
    assert (done.returncode, text in done.stderr.decode()) == (code, True)


OBJECT = "apiVersion: example.com/v1\nkind: Dance\nmetadata: {name: a, namespace: b}\n"
CRD = (CASES / "dance.yaml").read_text()


@pytest.mark.parametrize(
    ("files", "hint"),
    [
        ({"jobs/core.yaml": f"{CRD}\n---\n{OBJECT}"}, "; run `jobgen schema import jobs/core.yaml`"),
        ({"jobs/a.yaml": OBJECT, "jobs/core.yaml": CRD}, "; run `jobgen schema import jobs/core.yaml`"),
        ({"jobs/a.yaml": OBJECT.replace("/v1", "/v9"), "jobs/core.yaml": CRD}, "jobgen schema import dance.yaml`"),
    ],
)
def test_a_definition_in_the_repository_is_named(files, hint, tmp_path):
    (tmp_path / "jobs").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    findings = json.loads(lint_paths(tmp_path, (), (), format_="json").out)["findings"]
    (message,) = [each["message"] for each in findings if each["rule"] == "missing-schema"]
    assert message.endswith(hint)


def test_other_objects_are_counted_and_lists_are_read(tmp_path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/core.yaml").write_text(f"{OBJECT}---\n{OBJECT}---\n{CRD}")
    result = import_crds(tmp_path, ["jobs/core.yaml"], tmp_path)
    skipped = "jobs/core.yaml: 2 objects skipped: not a CustomResourceDefinition\n"
    assert (result.code, result.err) == (0, f"{skipped}schemas/example.com/dance_v1.json written\n")

    item = CRD.replace("\n", "\n    ")
    (tmp_path / "list.yaml").write_text(f"apiVersion: v1\nkind: List\nitems:\n  -\n    {item}\n")
    assert import_crds(tmp_path, ["list.yaml"], tmp_path).err == "schemas/example.com/dance_v1.json written\n"

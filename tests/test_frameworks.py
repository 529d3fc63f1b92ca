"""Frameworks come from the kind descriptions of the catalog: a new one is one YAML file of the repository."""

import json
import re
from pathlib import Path

import pytest
from command import jobgen

from jobgen.rendering.config import complete_schemas, find_errors, load, load_frameworks
from jobgen.repo.layout import list_starter_frameworks, own_layers
from jobgen.spec.frameworks import find_default
from jobgen.yamlio.read import read

ROOT = Path(__file__).parent.parent
SHIPPED = [block.name for block in load_frameworks(own_layers(ROOT)) if not block.is_platform]
KIND = """\
apiVersion: example.com/v1
kind: HorovodJob
plural: horovodjobs
platform: kubeflow
operator: {name: horovod-operator}
frameworks:
  horovod: {}
replicas: {at: spec.replicaSpecs, shape: map}
roles:
  worker: {spelling: Worker, replicas: 1}
single: worker
container: horovod
nameSuffix: "-{role}-{index}"
defaults:
  horovod: {zeroStage: 2}
fields:
  horovod.zeroStage: {at: spec.zeroStage, type: integer, description: Stage of ZeRO}
  horovod.config: spec.config
"""
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert, namespace: ml}
spec:
  framework: horovod
  replicas: 4
  image: registry.example.com/bert:1.0.0
  horovod: {config: {fp16: {enabled: true}}}
  roles:
    worker: {replicas: 4}
"""
OVERLAY = """\
apiVersion: jobgen.dev/v1
kind: Overlay
metadata: {name: prod}
spec:
  locked: [horovod.zeroStage]
  patches:
    - match: {frameworks: [horovod]}
      merge: {horovod: {zeroStage: 3}}
"""


@pytest.fixture
def repository(tmp_path):
    for path, text in {
        "jobgen.yaml": "",
        "schemas/example.com/horovodjob_v1.yaml": KIND,
        "jobs/bert.yaml": JOB,
        "overlays/prod/overlay.yaml": OVERLAY,
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def lint(folder):
    done = jobgen(folder, "lint", "--format", "json", "--no-cache")
    findings = [finding for finding in json.loads(done.stdout)["findings"] if finding["severity"] == "error"]
    # Without a job, the overlay's patch matches nothing.
    return [(finding["rule"], finding["message"]) for finding in findings if finding["rule"] != "patch-matches-nothing"]


def rewrite(path, old, new):
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def test_a_kind_file_makes_its_framework_known_to_lint(repository):
    assert lint(repository) == []


def test_a_job_of_a_new_framework_is_rendered(repository):
    done = jobgen(repository, "render", "bert", "-e", "prod")

    assert done.stderr == b""
    [document] = read(done.stdout, "").documents
    assert (document.data["apiVersion"], document.data["kind"]) == ("example.com/v1", "HorovodJob")
    assert document.data["spec"]["zeroStage"] == 3
    assert document.data["spec"]["config"] == {"fp16": {"enabled": True}}
    assert document.data["spec"]["replicaSpecs"]["Worker"]["replicas"] == 4


def test_a_job_of_a_new_framework_is_explained(repository):
    done = jobgen(repository, "explain", "bert", "spec.zeroStage", "-e", "prod")

    lines = done.stdout.decode().splitlines()
    assert lines[0] == "spec.zeroStage = 3"
    assert any(line.strip().startswith("overlays/prod/overlay.yaml:8:") for line in lines)
    assert any(line.strip().startswith("schemas/example.com/horovodjob_v1.yaml:15:") for line in lines)


def test_editors_are_offered_the_new_framework_and_its_fields(repository):
    jobgen(repository, "schema", "editor")

    schemas = {
        name: json.loads((repository / f"schemas/jobgen.dev/{name}_v1.json").read_text())
        for name in ("trainingjob", "overlay")
    }
    fields = schemas["trainingjob"]["$defs"]["fields"]["properties"]
    assert fields["framework"]["enum"] == [*sorted([*SHIPPED, "horovod"]), None]
    assert fields["horovod"]["properties"] == {
        "config": {},
        "zeroStage": {"description": "Stage of ZeRO", "type": ["integer", "null"], "default": 2},
    }
    match = schemas["overlay"]["$defs"]["match"]["properties"]["frameworks"]
    assert match["items"]["enum"] == sorted([*SHIPPED, "horovod"])


def test_a_framework_that_no_kind_declares_is_an_error_with_a_suggestion(repository):
    rewrite(repository / "jobs/bert.yaml", "framework: horovod", "framework: horovodd")

    [(rule, message)] = lint(repository)
    assert rule == "invalid-value"
    assert "`horovodd`" in message
    assert message.endswith("did you mean `horovod`?")


def test_without_its_kind_a_framework_is_unknown(repository):
    (repository / "schemas/example.com/horovodjob_v1.yaml").unlink()

    rules = {rule for rule, _ in lint(repository)}
    assert rules == {"invalid-value", "unknown-field"}


def test_a_field_that_the_kind_does_not_describe_is_an_error(repository):
    rewrite(repository / "jobs/bert.yaml", "{config:", "{confg:")

    [(rule, message)] = lint(repository)
    assert rule == "unknown-field"
    assert message.endswith("did you mean `config`?")


def test_a_field_of_the_wrong_type_is_an_error(repository):
    rewrite(repository / "jobs/bert.yaml", "horovod: {config", 'horovod: {zeroStage: "2", config')

    [(rule, message)] = lint(repository)
    assert rule == "wrong-type"
    assert message.startswith("`zeroStage` ")


def test_a_framework_cannot_have_the_name_of_a_field(repository):
    path = repository / "schemas/example.com/horovodjob_v1.yaml"
    rewrite(path, "  horovod: {}", "  horovod: {}\n  image: {}")

    assert ("invalid-value", "`image` is a field of jobs; give the framework another name") in lint(repository)


FRAMEWORK_FIELDS = [
    (kind, path)
    for kind in load(own_layers(ROOT)).kinds
    for path in kind.fields
    if path.partition(".")[0] in kind.frameworks
]


@pytest.mark.parametrize(("kind", "path"), FRAMEWORK_FIELDS, ids=lambda value: getattr(value, "name", value))
def test_every_field_of_a_framework_has_a_type_a_description_and_a_valid_example(kind, path):
    field = kind.fields[path]

    assert field.types
    assert field.description.endswith(".")
    assert field.example is not None
    for value in filter(None, (field.example, find_default(kind, path))):
        framework, _, name = path.partition(".")
        spec = {"framework": framework, framework: {name: value}}
        job = {"apiVersion": "jobgen.dev/v1", "kind": "TrainingJob", "metadata": {"name": "bert"}, "spec": spec}
        assert find_errors(job, "trainingjob", load_frameworks(own_layers(ROOT))) == []


def test_editors_are_offered_examples_defaults_and_roles():
    fields = complete_schemas(load_frameworks(own_layers(ROOT)))["trainingjob_v1.json"]["$defs"]["fields"]["properties"]

    assert fields["framework"]["examples"] == SHIPPED
    assert fields["mpi"]["properties"]["slotsPerWorker"]["default"] == 1
    assert fields["pytorch"]["properties"]["runtime"]["default"] == "torch-distributed"
    assert fields["pytorch"]["properties"]["nprocPerNode"]["examples"] == [4]
    assert {"chief", "evaluator", "launcher", "master", "node", "ps", "scheduler", "server", "worker"} <= set(
        fields["roles"]["properties"]
    )
    # A role of another kind stays valid.
    assert fields["roles"]["additionalProperties"]["anyOf"] == [{"type": "null"}, {"$ref": "#/$defs/role"}]


def test_every_shipped_framework_has_an_example_job():
    assert list_starter_frameworks() == SHIPPED


def test_the_schemas_on_disk_name_no_framework():
    text = "".join((ROOT / f"schemas/jobgen.dev/{name}_v1.json").read_text() for name in ("trainingjob", "overlay"))

    # Ray is a platform, too.
    assert [name for name in SHIPPED if f'"{name}"' in text] == ["ray"]


def test_the_docs_list_the_shipped_frameworks():
    row = re.search(r"^\| `framework` \|.*$", (ROOT / "docs/jobs.md").read_text(), re.MULTILINE)[0]

    assert sorted(name for name in SHIPPED if f"`{name}`" in row) == SHIPPED


def test_a_kind_declares_the_blocks_of_its_own_frameworks_only():
    description = read(KIND.encode(), "").documents[0].data
    other = {**description, "defaults": {"mpi": {"slotsPerWorker": 2}}}

    assert find_errors(description, "kind") == []
    assert [problem.rule for problem in find_errors(other, "kind")] == ["unknown-field"]

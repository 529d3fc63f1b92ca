"""Go to definition and find references, in a repository with two environments."""

import os

import pytest
from navigationfiles import FILES, find_mark, write_files

from jobgen.features.editor.context import make_context
from jobgen.features.editor.cursor import find_cursor
from jobgen.features.editor.definition import find_definitions, find_references
from jobgen.features.editor.lint_workspace import WorkspaceLinter
from jobgen.features.editor.workspace import Workspace


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    folder = write_files(tmp_path_factory.mktemp("repository"))
    workspace = Workspace(folder)
    workspace.take(WorkspaceLinter(folder).lint({}, lambda *_: None))
    return workspace


def ask(workspace, find, file, marked):
    line, column = find_mark(FILES[file], marked)
    found = find(make_context(workspace, file, find_cursor(FILES[file], line, column, file)))
    return [f"{os.path.relpath(each.file, '/') if each.file[0] == '/' else each.file}:{each.line}" for each in found]


BERT, SWEEP, MANIFESTS = "jobs/nlp/bert.yaml", "jobs/sweep.yaml", "jobs/manifests.yaml"
BASE, DEV, PROD = (f"overlays/{name}/overlay.yaml" for name in ("base", "dev", "prod"))
USES = "jobs/uses.yaml"
OWN, RENDERED = "policies/own.yaml", "rendered/prod/ml-prod/pytorchjob-bert.yaml"
DEFINITIONS = [
    (BERT, "repl¦icas: 3", [f"{PROD}:10"]),
    (BERT, "replicas: ¦3", [f"{PROD}:10"]),
    (BERT, "worker: {replicas: ¦2}", [f"{PROD}:12"]),
    (BERT, "LOG_LEVEL: in¦fo", [f"{PROD}:11"]),
    (BERT, "image: regis¦try", []),
    (BERT, "name: be¦rt", [f"{RENDERED}:1"]),
    (PROD, "extends: [ba¦se]", [f"{BASE}:1"]),
    ("jobgen.yaml", "[dev, pr¦od]", [f"{PROD}:1"]),
    ("jobgen.yaml", "own-¦policy", [f"{OWN}:3"]),
    ("jobgen.yaml", "mutable-¦image", []),
    (RENDERED, "jobgen.dev/source: jobs/n¦lp", [f"{BERT}:1"]),
    (RENDERED, "jobgen.dev/so¦urce", []),
    (RENDERED, "backoffLimit: ¦3", [f"{PROD}:14"]),
    (RENDERED, "      replicas: ¦4", [f"{PROD}:12"]),
    (RENDERED, "name: be¦rt", [f"{BERT}:4"]),
    (MANIFESTS, "# jobgen: ig¦nore", []),
    (BERT, "queue: te¦am-a", [f"{USES}:1"]),
    (USES, "runtimeRef: {name: to¦rch", ["runtimes/torch.yaml:3"]),
    (USES, "secretKeyRef: {name: tok¦en", [f"{MANIFESTS}:1"]),
    (USES, "args: *wo¦rds", [f"{USES}:20"]),
    (PROD, "names: [be¦rt]", [f"{BERT}:1"]),
    (PROD, "names: [swe¦ep*]", [f"{SWEEP}:1"]),
]
REFERENCES = [
    (PROD, "merge:\n        repl¦icas: 5", [f"{BERT}:1"]),
    (PROD, "match: {na¦mes: [bert]}", [f"{BERT}:1"]),
    (PROD, "backoffLimit: ¦3", [f"{BERT}:1", f"{SWEEP}:1"]),
    (PROD, 'EXTRA: "¦1"', [f"{SWEEP}:1"]),
    (PROD, "patch¦es", []),
    (
        DEV,
        "name¦space",
        [f"{BERT}:1", f"{MANIFESTS}:1", f"{MANIFESTS}:7", f"{SWEEP}:1", *(f"{USES}:{n}" for n in (1, 6, 12))],
    ),
    (BASE, "REG¦ION: eu", [f"{BERT}:1", f"{SWEEP}:1"]),
    (BERT, "name: be¦rt", [f"{PROD}:8", f"{PROD}:13"]),
    (BERT, "framework: py¦torch", [f"{BERT}:1", f"{SWEEP}:1"]),
    (PROD, "extends: [ba¦se]", [f"{DEV}:5"]),
    (BERT, "im¦age:", []),
    (BERT, "queue: te¦am-a", [f"{USES}:3"]),
    (USES, "metadata: {name: te¦am-a", [f"{BERT}:13"]),
    (USES, "secretKeyRef: {name: tok¦en", [f"{MANIFESTS}:3"]),
    (MANIFESTS, "name: tok¦en", [f"{USES}:22"]),
    (MANIFESTS, "namespace: ml-¦prod", [f"{USES}:3", f"{USES}:8", f"{USES}:14", f"{PROD}:6"]),
    (PROD, "namespace: ml-¦prod", [f"{MANIFESTS}:3", f"{USES}:3", f"{USES}:8", f"{USES}:14"]),
]


@pytest.mark.parametrize(("file", "marked", "expected"), DEFINITIONS, ids=str)
def test_definition(workspace, file, marked, expected):
    assert ask(workspace, find_definitions, file, marked) == expected


@pytest.mark.parametrize(("file", "marked", "expected"), REFERENCES, ids=str)
def test_references(workspace, file, marked, expected):
    assert sorted(ask(workspace, find_references, file, marked)) == sorted(expected)


def test_framework_leads_to_the_kind_of_the_job(workspace):
    found = ask(workspace, find_definitions, BERT, "framework: py¦torch")

    assert [each.rpartition("/")[2] for each in found] == ["pytorchjob_v1.yaml:3"]


def test_position_in_a_document_with_broken_settings(tmp_path):
    workspace = Workspace(write_files(tmp_path))
    (tmp_path / "jobgen.yaml").write_text("rules: 3\n")

    assert ask(workspace, find_definitions, PROD, "extends: [ba¦se]") == [f"{BASE}:1"]
    assert ask(workspace, find_definitions, BERT, "repl¦icas: 3") == []
    assert ask(workspace, find_references, PROD, "repl¦icas: 5") == []


def test_framework_of_a_kind_file_leads_to_its_jobs(workspace):
    text = "kind: Run\nframeworks: {pytorch: {}}\n"
    cursor = find_cursor(text, 2, 16, "schemas/example.com/run_v1.yaml")

    found = find_references(make_context(workspace, "schemas/example.com/run_v1.yaml", cursor))

    assert sorted({each.file for each in found}) == [BERT, SWEEP]

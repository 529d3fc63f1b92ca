"""Lenses and rendered documents: the numbers of the HTML page, and the text of `jobgen render`."""

import subprocess

import pytest
from editorfiles import JOB
from lspclient import Client
from test_editor_lint import write
from test_lsp import OVERLAY

import jobgen
from jobgen.api.render import join_objects
from jobgen.features.editor.lint_workspace import WorkspaceLinter
from jobgen.features.editor.rendered import (
    BaseText,
    RenderedDocument,
    from_uri,
    list_lenses,
    render_base,
    render_document,
    to_uri,
    write_diff,
)
from jobgen.features.editor.workspace import Workspace


def make_job(name="bert", **values):
    known = {"team": "nlp", "framework": "pytorch", "tag": "1.2", "gpus": 8, "seed": 1, "replicas": 4, **values}
    return JOB.format(name=name, **known)


QUEUE = "  defaults: {queue: team-a, labels: {team: nlp}}\n"
SWEEP = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: sweep}
spec:
  framework: pytorch
  image: registry.example.com/train:1.2
  resources: {cpu: 4, memory: 16Gi, gpu: 2}
  command: [python, "train.py", "--lr=${{ matrix.lr }}"]
  matrix: {lr: [1, 2, 3]}
"""
FILES = {
    "jobgen.yaml": "environments: [dev, prod]\n",
    "overlays/dev/overlay.yaml": OVERLAY.replace("ml-prod", "ml-dev")
    + "  patches:\n    - {match: {names: [bert, gpt]}, merge: {resources: {gpu: 1}}}\n"
    + "    - {match: {names: [none]}, merge: {labels: {a: b}}}\n",
    "overlays/prod/overlay.yaml": OVERLAY.replace("  defaults: {labels: {team: nlp}}\n", QUEUE),
    "jobs/bert.yaml": make_job() + "---\n" + make_job("gpt", replicas=1),
    "jobs/paused.yaml": make_job("paused").replace("spec:\n", "spec:\n  run: {state: paused}\n"),
    "jobs/broken.yaml": make_job("broken").replace("worker:", "chief:"),
    "jobs/wrong.yaml": make_job("wrong", framework="pytorhc"),
    "jobs/quota.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n",
    "jobs/sweep.yaml": SWEEP,
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    folder = write(tmp_path_factory.mktemp("repository"), FILES)
    workspace = Workspace(folder)
    workspace.take(WorkspaceLinter(folder).lint({}, lambda *_: None))
    return workspace


def show(workspace, file):
    return [(lens.location.line, lens.text) for lens in list_lenses(workspace, file)]


def test_lenses_of_jobs(workspace):
    assert show(workspace, "jobs/bert.yaml") == [
        (1, "dev: 4 pods, 4 GPUs"),
        (1, "prod: 4 pods, 32 GPUs, queue team-a"),
        (12, "dev: 1 pod, 1 GPU"),
        (12, "prod: 1 pod, 8 GPUs, queue team-a"),
    ]
    assert show(workspace, "jobs/paused.yaml") == [(1, "dev: paused"), (1, "prod: paused")]
    assert show(workspace, "jobs/wrong.yaml") == [(1, "the job cannot be rendered; see the findings")]
    assert show(workspace, "jobs/broken.yaml")[0] == (1, "dev: cannot be rendered; see its findings")
    assert show(workspace, "jobs/quota.yaml") == []
    assert show(workspace, "jobs/sweep.yaml")[0] == (1, "dev: 3 jobs, 3 pods, 6 GPUs")


def test_lenses_of_overlays_and_patches(workspace):
    lenses = list_lenses(workspace, "overlays/dev/overlay.yaml")

    assert [(lens.location.line, lens.text) for lens in lenses] == [(8, "2 jobs"), (9, "0 jobs"), (1, "dev: 6 objects")]
    assert [place.file for place in lenses[0].jobs] == ["jobs/bert.yaml", "jobs/bert.yaml"]


def test_lenses_use_what_is_typed(workspace):
    workspace.open(workspace.root / "jobs/bert.yaml", make_job(replicas=9))
    try:
        assert show(workspace, "jobs/bert.yaml")[0] == (1, "dev: 9 pods, 9 GPUs")
    finally:
        workspace.close(workspace.root / "jobs/bert.yaml")


@pytest.mark.parametrize(
    ("file", "document", "name"),
    [("bert", 0, "bert"), ("bert", 1, "gpt"), ("sweep", 0, "sweep"), ("quota", 0, "settings")],
)
@pytest.mark.parametrize("environment", ["dev", "prod", ""])
def test_rendered_document_is_what_render_prints(workspace, file, document, name, environment):
    expected = jobgen.render(workspace.root, [name], environments=[environment] if environment else [])
    text = join_objects(expected.objects, labeled=not environment)

    assert text
    assert render_document(workspace, f"jobs/{file}.yaml", document, environment) == text


@pytest.mark.parametrize(
    ("file", "document", "environment", "text"),
    [
        ("jobs/paused.yaml", 0, "dev", "# `paused` is paused: its `run.state` is `paused` in dev\n"),
        ("jobs/broken.yaml", 0, "dev", "# `broken` has errors in dev; see its findings\n"),
        ("jobs/bert.yaml", 7, "dev", "# there is no job here, or it has errors; see its findings\n"),
        ("jobs/none.yaml", 0, "dev", "# there is no job here, or it has errors; see its findings\n"),
        ("jobs/bert.yaml", 0, "none", "# `none` is not an environment, or its overlays have errors\n"),
    ],
)
def test_document_that_cannot_be_rendered_says_why(workspace, file, document, environment, text):
    assert render_document(workspace, file, document, environment) == text


def test_uri_of_a_rendered_document():
    shown = RenderedDocument("file:///a b/ü?&=%2f.yaml", 3, "prod", True, "job")

    assert from_uri(to_uri(shown)) == shown._replace(name="")
    for wrong in ("file:///a.yaml", "jobgen-rendered:///a", "jobgen-rendered:///a?e30", "jobgen-rendered:///a?!!", ""):
        assert from_uri(wrong) is None


def git(folder, *arguments):
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


def test_diff_to_the_base(tmp_path):
    folder = write(tmp_path, FILES)
    git(folder, "init", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "a")
    workspace = Workspace(folder)
    base = render_base(folder, "jobs/bert.yaml", 0, "dev")
    assert write_diff(base, base.text) == "# the rendered objects are the same as in main\n"

    workspace.open(folder / "jobs/bert.yaml", make_job(replicas=9))
    lines = write_diff(base, render_document(workspace, "jobs/bert.yaml", 0, "dev")).splitlines()

    assert lines[:2] == ["--- main", "+++ work tree"]
    assert [line for line in lines[2:] if line[0] in "+-"] == ["-      replicas: 4", "+      replicas: 9"]
    assert render_base(folder, "jobs/new.yaml", 0, "dev").text == ""


SECRETS = """\
apiVersion: v1
kind: Secret
stringData:
  key: |
    {0}-first
    {0}-second
  other: 'it''s {0}'
---
apiVersion: v1
kind: Pod
spec:
  containers:
  - args: [--token=same-hunter]
    env:
    - name: DB_PASSWORD
      value: {0}-third
    - name: LEVEL
      value: {1}
"""


def test_diff_shows_only_that_a_secret_changed():
    base, now = BaseText("main", SECRETS.format("hunter2", "low")), SECRETS.format("swordfish", "high")
    for shown in (write_diff(base, now), write_diff(BaseText("main", ""), now)):
        assert not any(secret in shown for secret in ("hunter", "swordfish", "-first", "-second", "-third"))
        assert "+      value: high\n" in shown
    changed = [line.rstrip(" *") for line in write_diff(base, base.text.replace("third", "forth")).splitlines()[3:]]
    assert [line for line in changed if line[0] in "+-"] == ["-      value:", "+      value:"]


@pytest.mark.stress
def test_lenses_and_rendered_documents_in_an_editor(tmp_path):
    folder = write(tmp_path / "repository", FILES)
    capabilities = {
        "workspace": {
            "codeLens": {"refreshSupport": True},
            "textDocumentContent": {"dynamicRegistration": True},
        },
        "textDocument": {"codeLens": {}},
        "window": {"showDocument": {"support": True}},
        "experimental": {"commands": {"commands": ["jobgen.showReferences"]}},
    }
    overlay, job = (folder / "overlays/dev/overlay.yaml").as_uri(), (folder / "jobs/bert.yaml").as_uri()
    with Client([folder], capabilities, log=tmp_path / "log.txt") as client:
        client.wait(lambda: "workspace/codeLens/refresh" in client.asked)
        lenses = client.request("textDocument/codeLens", {"textDocument": {"uri": overlay}})["result"]
        commands = [lens["command"] for lens in lenses]
        assert [command["title"] for command in commands] == ["2 jobs", "0 jobs", "dev: 6 objects"]
        assert commands[0]["command"] == "jobgen.showReferences"
        assert [place["uri"] for place in commands[0]["arguments"][2]] == [job, job]

        client.open(job, FILES["jobs/bert.yaml"])
        [first, *_] = client.request("textDocument/codeLens", {"textDocument": {"uri": job}})["result"]
        assert first["command"]["title"] == "dev: 4 pods, 4 GPUs"
        shown = client.request("workspace/executeCommand", first["command"])["result"]
        assert "window/showDocument" in client.asked
        text = client.request("workspace/textDocumentContent", {"uri": shown["uri"]})["result"]["text"]
        expected = join_objects(jobgen.render(folder, ["bert"], environments=["dev"]).objects)
        assert text == expected == shown["text"]
        wanted = {"uri": job, "position": {"line": 0, "character": 0}, "environment": "dev"}
        assert client.request("jobgen/rendered", wanted)["result"] == shown
        diff = client.request("jobgen/rendered", wanted | {"diff": True})["result"]["text"]
        assert diff.startswith("# there is nothing to compare with: ")

        client.asked.clear()
        client.change(job, make_job(replicas=9), 2)
        client.wait(lambda: "workspace/textDocumentContent/refresh" in client.asked)
        text = client.request("workspace/textDocumentContent", {"uri": shown["uri"]})["result"]["text"]
        assert "replicas: 9" in text

        for wrong in (None, 5, {}, {"uri": 5}, {"uri": "untitled:a"}, {"uri": job, "position": {"line": -1}}):
            answer = client.request("jobgen/rendered", wrong)
            assert "result" in answer or answer["error"]["code"] == -32602
        beyond = {"uri": job, "position": {"line": 900, "character": 900}, "environment": 5}
        assert client.request("jobgen/rendered", beyond)["result"]["text"]
        assert "failed" not in client.log.read_text()


@pytest.mark.stress
def test_inlay_hints_for_editors_without_lenses(tmp_path):
    folder = write(tmp_path / "repository", FILES)
    job = (folder / "jobs/bert.yaml").as_uri()
    with Client([folder], {"textDocument": {"inlayHint": {}}}, log=tmp_path / "log.txt") as client:
        everything = {"start": {"line": 0, "character": 0}, "end": {"line": 5, "character": 0}}
        hints = client.request("textDocument/inlayHint", {"textDocument": {"uri": job}, "range": everything})["result"]

    assert [(hint["position"], hint["label"]) for hint in hints] == [
        ({"line": 0, "character": 25}, "dev: 4 pods, 4 GPUs; prod: 4 pods, 32 GPUs, queue team-a")
    ]

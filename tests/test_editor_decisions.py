"""What Kueue decides about jobs, in lenses and on hover: the decisions of `jobgen queue`."""

import io
import json
import threading
import time

import pytest
from lspclient import Client
from test_editor_lenses import QUEUE, SWEEP, make_job
from test_editor_lint import write
from test_lsp import OVERLAY

import jobgen
from jobgen.engine.workers import run_cancellable
from jobgen.features.editor.context import make_context
from jobgen.features.editor.cursor import find_cursor
from jobgen.features.editor.hover import find_hover
from jobgen.features.editor.index import DecisionsAnswer, JobDecision, describe_decisions
from jobgen.features.editor.lint_workspace import Request, Snapshot, WorkspaceLinter, encode_frame, read_frame, serve
from jobgen.features.editor.rendered import list_lenses
from jobgen.features.editor.workspace import Workspace

API = "apiVersion: kueue.x-k8s.io/v1beta1\n"
QUEUES = (
    f"{API}kind: ResourceFlavor\nmetadata: {{name: a100}}\n---\n"
    f"{API}kind: LocalQueue\nmetadata: {{name: team-a, namespace: ml-prod}}\nspec: {{clusterQueue: gpus}}\n---\n"
    f"{API}kind: ClusterQueue\nmetadata: {{name: gpus}}\n"
    "spec:\n  namespaceSelector: {}\n  resourceGroups:\n"
    "    - coveredResources: [cpu, memory, nvidia.com/gpu]\n      flavors:\n        - name: a100\n"
    "          resources:\n"
    "            - {name: cpu, nominalQuota: 1000}\n            - {name: memory, nominalQuota: 9Ti}\n"
    "            - {name: nvidia.com/gpu, nominalQuota: 36}\n"
)
FILES = {
    "jobgen.yaml": "environments: [dev, prod]\n",
    "overlays/dev/overlay.yaml": OVERLAY.replace("ml-prod", "ml-dev"),
    "overlays/prod/overlay.yaml": OVERLAY.replace("  defaults: {labels: {team: nlp}}\n", QUEUE),
    "jobs/bert.yaml": make_job() + "---\n" + make_job("gpt", replicas=1),
    "jobs/large.yaml": make_job("large", replicas=9),
    "jobs/queues.yaml": QUEUES,
    "jobs/sweep.yaml": SWEEP,
}
WANTED = {
    "jobs/bert.yaml": [
        (1, "dev: 4 pods, 32 GPUs"),
        (1, "prod: 4 pods, 32 GPUs, queue team-a (fits)"),
        (12, "dev: 1 pod, 8 GPUs"),
        (12, "prod: 1 pod, 8 GPUs, queue team-a (waits: lacks 8 of nvidia.com/gpu in flavor a100)"),
    ],
    "jobs/sweep.yaml": [
        (1, "dev: 3 jobs, 3 pods, 6 GPUs"),
        (1, "prod: 3 jobs, 3 pods, 6 GPUs, queue team-a (fits: 2, waits: 1)"),
    ],
}


def check():
    pass


def show(workspace, file, decisions):
    return [(lens.location.line, lens.text) for lens in list_lenses(workspace, file, decisions)]


def test_lenses_have_the_decisions_of_the_queue_command(tmp_path):
    folder = write(tmp_path, FILES)
    linter, workspace = WorkspaceLinter(folder), Workspace(folder)
    workspace.take(linter.lint({}, lambda *_: None))
    assert linter.has_undecided
    decisions = linter.decide({}, check)

    assert {file: show(workspace, file, decisions) for file in WANTED} == WANTED
    assert show(workspace, "jobs/large.yaml", decisions)[1][1].startswith(
        "prod: 9 pods, 72 GPUs, queue team-a (never admitted: "
    )
    expected = {
        (each.environment, (each.kind, each.namespace, each.name)): each.decision
        for each in jobgen.queue(folder).workloads
        if each.decision != "unmanaged"
    }
    found = {(env, key): each.decision for env, known in decisions.items() for key, each in known.items()}
    assert found == expected
    text = FILES["jobs/bert.yaml"]
    hover = find_hover(
        make_context(workspace, "jobs/bert.yaml", find_cursor(text, 14, 19, "jobs/bert.yaml"), decisions)
    )
    assert "| prod | waits | it lacks `8` of `nvidia.com/gpu` in flavor `a100` |" in hover.markdown


def test_decisions_follow_edits_and_are_kept_without_them(tmp_path):
    folder = write(tmp_path, FILES)
    linter = WorkspaceLinter(folder)
    assert not linter.lint({}, lambda *_: None).keeps_decisions
    first = linter.decide({}, check)
    assert linter.lint({}, lambda *_: None).keeps_decisions
    assert not linter.has_undecided

    drafts = {str((folder / "jobs/bert.yaml").resolve()): make_job("gpt", replicas=1).encode()}
    assert not linter.lint(drafts, lambda *_: None).keeps_decisions
    second = linter.decide(drafts, check)
    key = ("PyTorchJob", "ml-prod", "gpt")
    assert (first["prod"][key].decision, second["prod"][key].decision) == ("waits", "admitted")

    def stop():
        raise TimeoutError

    linter.lint({}, lambda *_: None)
    with pytest.raises(TimeoutError):
        linter.decide({}, stop)
    assert not linter.lint({}, lambda *_: None).keeps_decisions
    assert linter.decide({}, check) == first

    (folder / "jobs/queues.yaml").unlink()
    assert not linter.lint({}, lambda *_: None).keeps_decisions
    assert not linter.has_undecided


def test_texts_of_decisions():
    fits, waits = JobDecision("admitted", "", "a"), JobDecision("waits", "lacks 4", "it lacks 4")
    assert describe_decisions([]) == ""
    assert describe_decisions([fits]) == describe_decisions([fits, fits]) == "fits"
    assert describe_decisions([waits, waits]) == "waits: lacks 4"
    assert describe_decisions([waits, waits._replace(short="held")]) == "waits"
    assert describe_decisions([waits, fits, JobDecision("never", "", "")]) == "fits: 1, waits: 1, never admitted: 1"


def test_work_in_another_process_can_be_cancelled(tmp_path):
    def stop():
        raise TimeoutError

    def work():
        time.sleep(30)
        (tmp_path / "done").touch()

    assert run_cancellable(lambda: [5], 1000, check) == [5]
    with pytest.raises(TimeoutError):
        run_cancellable(work, 1000, stop)
    assert not (tmp_path / "done").exists()


def test_decisions_come_after_the_findings_and_only_when_no_request_waits(tmp_path):
    folder = write(tmp_path, FILES)
    requests = io.BytesIO(encode_frame(Request(1, {})) + encode_frame(Request(2, {})))
    written = io.BytesIO()

    class Reading:
        def read(self, size):
            content = requests.read(size)
            if not content:
                ended.wait(60)
            return content

    class Writing:
        def write(self, content):
            written.write(content)
            if isinstance(read_frame(io.BytesIO(content)), DecisionsAnswer):
                ended.set()

        def flush(self):
            pass

    ended = threading.Event()
    serve(folder, Reading(), Writing())

    written.seek(0)
    answers = list(iter(lambda: read_frame(written), None))
    assert [(type(each), each.number) for each in answers[-2:]] == [(Snapshot, 2), (DecisionsAnswer, 2)]
    assert sum(isinstance(each, DecisionsAnswer) for each in answers) == 1
    assert answers[-1].decisions["prod"]["PyTorchJob", "ml-prod", "bert"].decision == "admitted"


@pytest.mark.stress
def test_decisions_in_an_editor(tmp_path):
    folder = write(tmp_path / "repository", FILES)
    capabilities = {"workspace": {"codeLens": {"refreshSupport": True}}, "textDocument": {"codeLens": {}}}
    job = (folder / "jobs/bert.yaml").as_uri()

    def list_titles(client):
        lenses = client.request("textDocument/codeLens", {"textDocument": {"uri": job}})["result"]
        return [lens["command"]["title"] for lens in lenses]

    def wait_for(client, text):
        end = time.monotonic() + 300
        while text not in json.dumps(titles := list_titles(client)):
            assert time.monotonic() < end, titles
            client.settle(0.1)
        return titles

    with Client([folder], capabilities, log=tmp_path / "log.txt") as client:
        client.open(job, FILES["jobs/bert.yaml"])
        assert wait_for(client, "(fits)") == [text for _, text in WANTED["jobs/bert.yaml"]]
        client.change(job, make_job("gpt", replicas=1), 2)
        assert list_titles(client) == ["dev: 1 pod, 8 GPUs", "prod: 1 pod, 8 GPUs, queue team-a"]
        assert wait_for(client, "(fits)")[1] == "prod: 1 pod, 8 GPUs, queue team-a (fits)"
        assert "failed" not in client.log.read_text()

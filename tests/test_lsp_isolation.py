"""The language server in a hostile repository: it starts nothing but itself and Git, and connects to nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path

from lspclient import REAL, Client

# Python reads this module when it starts, in the server and in every process that it starts.
WATCH = """\
import json, os, sys

def watch(event, arguments):
    if event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "socket.connect", "socket.getaddrinfo"):
        with open(os.environ["WATCHED"], "a") as stream:
            stream.write(json.dumps([event, repr(arguments[:2])]) + "\\n")

sys.addaudithook(watch)
"""
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: "$(touch ran)", annotations: {a: !!python/object/apply:os.system ["touch ran"]}}
spec: {framework: pytorch, image: "`touch ran`", resources: {gpus: 1}}
"""
FINE = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: fine}
spec: {framework: pytorch, image: registry.example.com/train:1.2}
"""
FILES = {
    "jobgen.yaml": "environments: [prod]\n",
    "jobs/bad.yaml": JOB,
    "jobs/fine.yaml": FINE,
    # Only the background process reads it.
    "jobs/other.yaml": JOB.replace("$(touch ran)", "other"),
    "overlays/prod/overlay.yaml": "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {cluster: {platform: kubeflow}}\n",
    "schemas/example.com/dance_v1.json": '{"$ref": "http://127.0.0.1:9/x", "$schema": "http://127.0.0.1:9/y"}',
    # What would run if Python imported modules of the current folder, which editors set to the workspace.
    "pygls.py": "open('ran', 'w')\n",
    "jobgen/__init__.py": "open('ran', 'w')\n",
    "sitecustomize.py": "open('ran', 'w')\n",
}
REQUESTS = (
    "textDocument/hover",
    "textDocument/definition",
    "textDocument/references",
    "textDocument/completion",
    "textDocument/codeAction",
    "textDocument/codeLens",
    "textDocument/documentSymbol",
    "jobgen/rendered",
)


def ask_everything(client: Client, uri: str) -> list[dict]:
    place = {"line": 3, "character": 8}
    params = {
        "textDocument": {"uri": uri},
        "position": place,
        "range": {"start": place, "end": place},
        "context": {"includeDeclaration": True, "diagnostics": [], "triggerKind": 1},
        "uri": uri,
        "diff": True,
    }
    return [client.request(method, params) for method in REQUESTS]


def test_server_opens_no_connection_and_starts_only_itself_and_git(tmp_path: Path, monkeypatch) -> None:
    root, hooks, watched = tmp_path / "repository", tmp_path / "hooks", tmp_path / "watched"
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    hooks.mkdir()
    (hooks / "sitecustomize.py").write_text(WATCH)
    monkeypatch.chdir(root)
    monkeypatch.setenv("PYTHONPATH", str(hooks))
    monkeypatch.setenv("WATCHED", str(watched))
    with Client([root], log=tmp_path / "log", program=REAL) as client:
        answers = []
        for name in ("bad", "fine"):
            uri = (root / f"jobs/{name}.yaml").as_uri()
            client.open(uri, FILES[f"jobs/{name}.yaml"])
            answers += ask_everything(client, uri)
        client.wait(lambda: client.codes((root / "jobs/bad.yaml").as_uri()))
        client.wait(lambda: client.codes((root / "jobs/other.yaml").as_uri()))
        code = client.stop()
    events = [json.loads(line) for line in watched.read_text().splitlines()]
    allowed = ("jobgen', 'lsp', '--background'", "'git'", f"{os.sep}git'")

    assert code == 0
    assert [answer for answer in answers if "error" in answer] == []
    assert [event for event in events if "--background" in event[1]] != []
    assert [event for event in events if not any(each in event[1] for each in allowed)] == []
    assert list(tmp_path.rglob("ran")) == []

"""The language server lives and answers, whatever the client sends and whatever happens to files and processes."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from io import StringIO
from pathlib import Path

import pytest
from jobgenprocess import run_here
from lspclient import REAL, Client
from lsprotocol import types
from test_lsp import JOB, OVERLAY

from jobgen.features.editor.cursor import read_flow
from jobgen.features.editor.index import DecisionsAnswer
from jobgen.features.editor.lint_workspace import FileFindings, Snapshot
from jobgen.features.editor.server.actions import _read_range
from jobgen.features.editor.server.app import OpenWorkspace
from jobgen.features.editor.server.rendered import run_apart
from jobgen.features.editor.server.run import create_server
from jobgen.model.data import Location, value_of

BROKEN = JOB.replace("gpu: 1", "gpus: 1")
HALF_TYPED = JOB.replace("metadata: {name: bert}", "metadata: {name: bert")


def write(folder: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


REPOSITORY = {
    "jobs/bert.yaml": JOB,
    "overlays/prod/overlay.yaml": OVERLAY,
    "jobgen.yaml": "environments: [prod]\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write(tmp_path_factory.mktemp("repository"), REPOSITORY)


@pytest.fixture(scope="module")
def client(folder, tmp_path_factory):
    with Client([folder], log=tmp_path_factory.mktemp("log") / "log.txt", program=REAL) as client:
        yield client


def is_alive(client, folder):
    """Return True if the server still lints."""
    uri = (folder / "jobs/alive.yaml").as_uri()
    client.diagnostics.pop(uri, None)
    client.open(uri, BROKEN)
    client.wait(lambda: "unknown-resource" in client.codes(uri))
    client.close(uri)
    client.wait(lambda: not client.codes(uri))
    return True


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 100_000, -32700),
        (b"[]", -32600),
        (b'"text"', -32600),
        (b"{}", -32600),
        (b'{"jsonrpc": "1.0", "id": 1, "method": "shutdown"}', -32600),
        (b'{"jsonrpc": "2.0", "id": {}, "method": "shutdown"}', -32600),
    ],
)
def test_malformed_message_is_answered(client, folder, body, code):
    client.send_bytes(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    assert client.answer_without_id()["error"]["code"] == code
    assert is_alive(client, folder)


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("textDocument/unknown", {}, -32601),
        ("jobgen/unknown", None, -32601),
        ("workspace/executeCommand", {"command": "jobgen.unknown"}, -32602),
        ("workspace/executeCommand", "text", -32602),
        ("workspace/executeCommand", [], -32602),
        ("initialize", {"capabilities": {}}, -32600),
        (5, {}, -32600),
    ],
)
def test_wrong_request_is_answered(client, method, params, code):
    assert client.request(method, params)["error"]["code"] == code


@pytest.mark.parametrize(
    "sent",
    [
        b"Content-Length: 99999999999999999999999\r\n\r\n",
        b"Content-Length: many\r\n\r\n",
        b"Content-Length: -5\r\n\r\n",
        b"\r\n\r\nno header at all\r\n",
        b"x" * 10_000 + b"\n",
        b"content-length:2\r\nContent-Type: application/json\r\n\r\n{}",
    ],
)
def test_wrong_header_is_skipped(client, folder, sent):
    client.send_bytes(sent)

    assert is_alive(client, folder)


def test_long_message_is_skipped(client, folder):
    size = 65 * 1024 * 1024
    client.send_bytes(b"Content-Length: %d\r\n\r\n" % size + b"x" * size)

    assert is_alive(client, folder)
    assert f"a message of {size} bytes is skipped" in client.log.read_text()


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("textDocument/didChange", {"textDocument": {"uri": "file:///none.yaml", "version": 1}, "contentChanges": []}),
        (
            "textDocument/didChange",
            {"textDocument": {"uri": "file:///none.yaml", "version": 1}, "contentChanges": [{"text": "a: 1"}]},
        ),
        ("textDocument/didClose", {"textDocument": {"uri": "file:///none.yaml"}}),
        ("textDocument/didSave", {"textDocument": {"uri": "file:///none.yaml"}}),
        ("textDocument/didOpen", {"textDocument": 5}),
        ("textDocument/didOpen", None),
        ("workspace/didChangeWatchedFiles", {"changes": [{"uri": "file:///none.yaml", "type": 1}]}),
        ("workspace/didChangeWatchedFiles", {"changes": [{"uri": "\0", "type": 9}]}),
        (
            "workspace/didChangeWorkspaceFolders",
            {"event": {"added": [{"uri": "file:///none", "name": "x"}], "removed": [{"uri": "x:y", "name": "y"}]}},
        ),
        ("workspace/didChangeConfiguration", {"settings": 5}),
        ("$/cancelRequest", {"id": 99_999}),
        ("$/unknown", {}),
        ("unknown", [1, 2]),
    ],
)
def test_wrong_notification_is_ignored(client, folder, method, params):
    client.notify(method, params)

    assert is_alive(client, folder)


@pytest.mark.parametrize("uri", ["untitled:Untitled-1", "git:/a/b.yaml?ref", "file:///a%00b.yaml", "file:///", "", "x"])
def test_document_that_is_no_file_is_ignored(client, folder, uri):
    client.open(uri, BROKEN)
    client.change(uri, JOB, 2)
    client.save(uri)
    client.close(uri)

    assert is_alive(client, folder)
    assert not client.codes(uri)


def test_edits_beyond_the_text_and_in_wrong_order(client, folder):
    uri = (folder / "jobs/beyond.yaml").as_uri()
    client.open(uri, JOB)
    for start, end in (((500, 0), (900, 9)), ((0, 900), (1, 900)), ((5, 3), (2, 1))):
        edit = {
            "range": {
                "start": {"line": start[0], "character": start[1]},
                "end": {"line": end[0], "character": end[1]},
            },
            "text": "# x\n",
        }
        params = {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [edit]}
        client.notify("textDocument/didChange", params)
    client.change(uri, BROKEN, 3)
    client.wait(lambda: client.versions.get(uri) == 3)
    assert client.codes(uri) == ["unknown-resource"]
    client.close(uri)
    client.wait(lambda: not client.codes(uri))


def test_lines_end_as_the_protocol_says(client, folder):
    uri = (folder / "jobs/lines.yaml").as_uri()
    client.open(uri, "# form feed \f and separators \u2028 \x85\r\n" + JOB)
    line = JOB.splitlines().index("  resources: {cpu: 4, memory: 16Gi, gpu: 1}")

    for begin, end, text in (((line + 1, 36), (line + 1, 39), "gpus"), ((0, 0), (1, 0), "")):
        start = {"line": begin[0], "character": begin[1]}
        edit = {"range": {"start": start, "end": {"line": end[0], "character": end[1]}}, "text": text}
        client.notify("textDocument/didChange", {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [edit]})

    client.wait(lambda: client.codes(uri) == ["unknown-resource"])
    assert client.diagnostics[uri][0]["range"]["start"] == {"line": line, "character": 36}
    client.close(uri)
    client.wait(lambda: not client.codes(uri))


def test_huge_document_is_one_finding(client, folder):
    uri = (folder / "jobs/huge.yaml").as_uri()
    client.open(uri, JOB + "# " + "x" * 9_000_000)

    client.wait(lambda: client.codes(uri))
    assert client.codes(uri) == ["file-too-large"]
    client.close(uri)
    client.wait(lambda: not client.codes(uri))


def test_half_typed_document_keeps_findings_of_others(client, folder):
    overlay, job = (folder / "overlays/prod/overlay.yaml").as_uri(), (folder / "jobs/bert.yaml").as_uri()
    patch = "  patches:\n    - {match: {names: [bert]}, merge: {labels: {tier: gold}}}\n"
    client.open(overlay, OVERLAY + patch)
    client.open(job, JOB)
    client.wait(lambda: overlay in client.published and job in client.published)
    client.settle(1)
    assert not client.codes(overlay)
    client.change(job, JOB.replace("bert", "bart"), 2)
    client.wait(lambda: client.codes(overlay) == ["patch-matches-nothing"])
    client.published.clear()

    client.change(job, HALF_TYPED, 3)
    client.wait(lambda: client.codes(job) == ["yaml-syntax"])
    client.settle(1)
    assert overlay not in client.published
    client.change(job, JOB, 4)
    client.wait(lambda: not client.codes(overlay) and not client.codes(job))
    client.close(job)
    client.close(overlay)


def test_half_typed_document_keeps_its_own_findings(client, folder):
    uri = (folder / "jobs/typed.yaml").as_uri()
    untagged = JOB.replace("name: bert", "name: typed").replace("train:1.2", "train")
    client.open(uri, untagged)
    client.wait(lambda: "untagged-image" in client.codes(uri))
    for version, letters in enumerate(("  r", "  ro", "  roles", "  roles: w"), 2):
        client.change(uri, untagged + letters, version)
        client.wait(lambda: any(code in client.codes(uri) for code in ("yaml-syntax", "wrong-type")))
        client.settle(0.4)
        assert "untagged-image" in client.codes(uri), letters
        client.diagnostics[uri] = []
    client.change(uri, untagged, 10)
    client.wait(lambda: client.codes(uri) == ["untagged-image"])
    client.close(uri)
    client.wait(lambda: not client.codes(uri))


def test_closed_document_shows_the_file_on_disk(client, folder):
    uri = (folder / "jobs/bert.yaml").as_uri()
    client.open(uri, BROKEN)
    client.wait(lambda: client.codes(uri) == ["unknown-resource"])

    client.close(uri)
    # What the server has sent before may arrive after the document was closed.
    client.wait(lambda: client.versions[uri] is None and not client.codes(uri))

    assert client.codes(uri) == []


@pytest.mark.stress
def test_files_and_folders_that_vanish(tmp_path):
    folder = write(tmp_path / "repository", REPOSITORY | {"jobs/wrong.yaml": BROKEN.replace("bert", "wrong")})
    wrong, other = (folder / "jobs/wrong.yaml").as_uri(), (folder / "jobs/other.yaml").as_uri()
    # This client cannot report changed files, so the server looks for them.
    with Client([folder], log=tmp_path / "log.txt") as client:
        client.wait(lambda: client.codes(wrong) == ["unknown-resource"])
        (folder / "jobs/wrong.yaml").rename(folder / "jobs/other.yaml")
        client.wait(lambda: not client.codes(wrong) and client.codes(other) == ["unknown-resource"])
        (folder / "jobs/other.yaml").unlink()
        client.wait(lambda: not client.codes(other))

        (folder / "jobgen.yaml").write_text("environments: [\n")
        settings = (folder / "jobgen.yaml").as_uri()
        client.wait(lambda: client.codes(settings) == ["yaml-syntax"])

        folder.rename(tmp_path / "moved")
        client.wait(lambda: not client.codes(settings))
        (tmp_path / "moved").rename(folder)
        client.wait(lambda: client.codes(settings) == ["yaml-syntax"])
        (folder / "jobgen.yaml").write_text("environments: [prod]\n")
        client.wait(lambda: not client.codes(settings))
        assert is_alive(client, folder)
        assert client.stop() == 0


@pytest.mark.stress
def test_repository_inside_a_folder_links_and_manifests(tmp_path):
    folder = write(tmp_path / "real", {f"ml/{path}": text for path, text in REPOSITORY.items()})
    write(folder, {"manifests/pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: 5}\n"})
    write(tmp_path, {"outside/job.yaml": BROKEN, "alone/pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: 5\n"})
    (folder / "ml/jobs/link.yaml").symlink_to(tmp_path / "outside/job.yaml")
    (tmp_path / "link").symlink_to(folder)
    with Client([tmp_path / "link", tmp_path / "outside"], log=tmp_path / "log.txt") as client:
        pod = (tmp_path / "link/manifests/pod.yaml").as_uri()
        client.wait(lambda: client.codes(pod))

        job = (tmp_path / "link/ml/jobs/bert.yaml").as_uri()
        client.open(job, BROKEN)
        client.wait(lambda: client.codes(job) == ["unknown-resource"])
        link = (tmp_path / "link/ml/jobs/link.yaml").as_uri()
        client.open(link, BROKEN)
        client.wait(lambda: client.codes(link) == ["link-out-of-repository"])

        alone = (tmp_path / "alone/pod.yaml").as_uri()
        client.open(alone, "apiVersion: v1\nkind: Pod\nmetadata: 5\n")
        client.wait(lambda: client.codes(alone))
        client.settle(1)
        shown = {uri for uri, found in client.diagnostics.items() if found}
        assert shown == {pod, job, link, alone, (tmp_path / "outside/job.yaml").as_uri()}
        removed = {"event": {"added": [], "removed": [client.folders[0]]}}
        client.notify("workspace/didChangeWorkspaceFolders", removed)
        client.wait(lambda: not client.codes(pod))


def test_repositories_inside_of_folders_are_linted_while_a_folder_needs_them(tmp_path):
    repository = REPOSITORY | {"jobs/bert.yaml": BROKEN}
    for name in ("all/a", "all/deep/b", "all/node_modules/c", "other"):
        write(tmp_path / name, repository)
    a, b, c, other = (
        (tmp_path / name / "jobs/bert.yaml").as_uri() for name in ("all/a", "all/deep/b", "all/node_modules/c", "other")
    )
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: 5}\n"
    write(tmp_path, {"manifests/team/pod.yaml": pod.replace("5", "6"), "manifests/other.yaml": pod})
    folders = {name: {"uri": (tmp_path / name).as_uri(), "name": name} for name in ("all", "all/a/jobs", "manifests")}

    def change_folders(client, added, removed):
        event = {"added": [folders[each] for each in added], "removed": [folders[each] for each in removed]}
        client.notify("workspace/didChangeWorkspaceFolders", {"event": event})

    with Client([tmp_path / "all", tmp_path / "other/jobs"], log=tmp_path / "log.txt") as client:
        client.wait(lambda: client.codes(a) == client.codes(b) == client.codes(other) == ["unknown-resource"])
        change_folders(client, ["all/a/jobs"], ["all"])
        client.wait(lambda: not client.codes(b))
        assert client.codes(a)
        assert not client.codes(c)
        change_folders(client, [], ["all/a/jobs"])
        client.wait(lambda: not client.codes(a))

        # The folder of an open document is added later.
        opened, beside = ((tmp_path / "manifests" / name).as_uri() for name in ("team/pod.yaml", "other.yaml"))
        client.open(opened, pod.replace("5", "[]"))
        client.wait(lambda: client.codes(opened))
        alone = client.codes(opened)
        change_folders(client, ["manifests"], [])
        client.wait(lambda: client.codes(beside))
        client.settle(1)
        assert client.codes(opened) == alone
        assert client.codes(other)


def find_processes(parents):
    found = subprocess.run(["ps", "-eo", "pid=,ppid=,stat="], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in found.splitlines()]
    return [int(pid) for pid, parent, state in rows if int(pid) in parents and not state.startswith("Z")]


@pytest.mark.parametrize("end", ["closes", "dies", "exits without shutdown"])
def test_no_process_stays(tmp_path, end):
    folder = write(tmp_path, REPOSITORY)
    with Client([folder], log=tmp_path / "log.txt", program=REAL) as client:
        client.wait_children()
        processes = {client.process.pid, *client.list_children()}
        assert len(processes) > 1
        if end == "closes":
            client.process.stdin.close()
        elif end == "dies":
            client.process.kill()
        else:
            client.notify("exit", None)
        code = client.process.wait(60)
        assert code == {"closes": 0, "dies": -signal.SIGKILL, "exits without shutdown": 1}[end]
        deadline = time.monotonic() + 300
        while find_processes(processes) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not find_processes(processes)
    assert "Traceback" not in client.log.read_text()


def test_command_says_why_it_cannot_serve(monkeypatch):
    with monkeypatch.context() as changed:
        changed.setattr(sys, "stdin", None)
        code, _, error = run_here(["lsp"])
        assert (code, error) == (2, "jobgen: the language server needs standard input and output, and one is closed\n")
    monkeypatch.delitem(sys.modules, "jobgen.features.editor.server.run", raising=False)
    monkeypatch.setitem(sys.modules, "lsprotocol", None)
    code, _, error = run_here(["lsp"])
    assert code == 2
    assert "needs the extra `lsp` (`lsprotocol` is missing); install `jobgen[lsp]`" in error


def test_command_in_a_terminal_says_that_it_waits(tmp_path):
    terminal, stdin = os.openpty()
    command = [sys.executable, "-P", "-m", "jobgen", "lsp"]
    server = subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert "waiting for an editor" in server.stderr.readline()
    server.send_signal(signal.SIGINT)
    os.close(terminal)
    os.close(stdin)
    out, error = server.communicate(timeout=300)
    assert (out, "Traceback" in error) == ("", False)


def test_background_process_is_started_again(tmp_path):
    folder = write(tmp_path, REPOSITORY)
    with Client([folder], log=tmp_path / "log.txt", program=REAL) as client:
        for start in range(5):
            client.wait_children()
            [pid] = client.list_children()
            os.kill(pid, signal.SIGKILL)
            client.wait_log(f"has ended with code -{signal.SIGKILL:d}", start + 1)
            client.notify(
                "workspace/didChangeWatchedFiles",
                {"changes": [{"uri": (folder / "jobs/bert.yaml").as_uri(), "type": 2}]},
            )
        client.wait_log("has ended 5 times within a minute", 1)
        client.settle(1)
        assert not client.list_children()
        # A document is still linted by itself.
        assert is_alive(client, folder)


def test_exception_in_a_feature_is_logged_with_its_name():
    import asyncio
    import logging

    from jobgen.features.editor.server.app import JobgenServer

    server = JobgenServer()

    @server.feature("jobgen/fails")
    def fail(_):
        raise ZeroDivisionError

    @server.feature("jobgen/failsLater")
    async def fail_later(_):
        raise ZeroDivisionError

    @server.command("jobgen.fails")
    def fail_command(number: int, text: str):
        raise ZeroDivisionError

    handlers = server.protocol.fm
    log = StringIO()
    writer = logging.StreamHandler(log)
    logging.getLogger().addHandler(writer)
    assert handlers.features["jobgen/fails"](None) is None
    assert asyncio.run(handlers.features["jobgen/failsLater"](None)) is None
    assert handlers.commands["jobgen.fails"](1, "a") is None
    logging.getLogger().removeHandler(writer)
    for name in ("jobgen/fails", "jobgen/failsLater", "jobgen.fails"):
        assert f"`{name}` failed" in log.getvalue()
    assert log.getvalue().count("Traceback") == 3


POSITIONS = ((3, 5), (6, 900), (2**31 - 1, 2**31 - 1))
TEXTS = (
    JOB,
    "",
    "\n",
    "a: {",
    "- 1\n- 2\n",
    "\ud83d\ude00: 5\n---\n---\nkind: [",
    HALF_TYPED,
    "{{ x }}\n",
    "a: &a [*a]\n",
)
OVERLAY_FILE = "overlays/prod/overlay.yaml"


def list_requests(uri):
    """Every request about a document, and about some positions in it."""
    document = {"uri": uri}
    everything = {"start": {"line": 0, "character": 0}, "end": {"line": 2**31 - 1, "character": 0}}
    yield from ((f"textDocument/{name}", {"textDocument": document}) for name in ("documentSymbol", "codeLens"))
    yield "textDocument/inlayHint", {"textDocument": document, "range": everything}
    yield "workspace/symbol", {"query": "b"}
    for line, character in POSITIONS:
        position = {"line": line, "character": character}
        place, span = {"textDocument": document, "position": position}, {"start": position, "end": position}
        yield from ((f"textDocument/{name}", place) for name in ("hover", "completion", "definition", "declaration"))
        yield "textDocument/references", place | {"context": {"includeDeclaration": True}}
        yield "textDocument/codeAction", {"textDocument": document, "range": span, "context": {"diagnostics": []}}
        yield "jobgen/rendered", {"uri": uri, "position": position}


@pytest.mark.parametrize("file", ["jobs/bert.yaml", OVERLAY_FILE, "policies/a.yaml"])
def test_requests_about_any_text_and_position_do_not_fail(client, folder, file):
    uri = (folder / file).as_uri()
    failures = client.log.read_text().count("failed")
    for version, text in enumerate(TEXTS, 1):
        client.open(uri, text, version)
        for method, params in list_requests(uri):
            answer = client.request(method, params)
            assert "result" in answer or answer["error"]["code"] == -32601, (method, text, params, answer)
        client.close(uri)

    log = client.log.read_text()
    assert log.count("failed") == failures, log[-3000:]


@pytest.fixture
def special_files(folder):
    paths = [folder / "jobs" / f"{name}.yaml" for name in ("pipe", "device", "outside", "loop")]
    os.mkfifo(paths[0])
    for path, target in zip(paths[1:], ("/dev/zero", "/etc/passwd", "loop.yaml"), strict=True):
        path.symlink_to(target)
    yield paths
    for path in paths:
        path.unlink()


def test_files_that_are_not_open_are_read_as_lint_reads_them(client, special_files):
    for path in special_files:
        for method, params in list_requests(path.as_uri()):
            answer = client.request(method, params)
            assert method == "workspace/symbol" or not answer.get("result"), (path, method, answer)


def test_changes_in_other_repositories_start_no_process(client, folder):
    client.wait_children()
    files = [f"sub/r{number}/{name}" for number in range(5) for name in ("jobgen.yaml", "jobs/a.yaml")]
    write(folder, dict.fromkeys(files, ""))
    changes = [{"uri": (folder / file).as_uri(), "type": 1} for file in files]
    client.notify("workspace/didChangeWatchedFiles", {"changes": changes})

    assert is_alive(client, folder)
    assert len(client.list_children()) == 1


def test_cancelled_request_does_not_cancel_others(client, folder):
    from jobgen.features.editor.rendered import RenderedDocument, to_uri

    uri = to_uri(RenderedDocument((folder / "jobs/bert.yaml").as_uri(), 0, is_diff=True))
    method = "workspace/textDocumentContent"
    client.send({"jsonrpc": "2.0", "id": "first", "method": method, "params": {"uri": uri}})
    client.notify("$/cancelRequest", {"id": "first"})

    assert "there is nothing to compare with" in client.request(method, {"uri": uri})["result"]["text"]


def test_background_process_ends_when_a_request_cannot_be_read(tmp_path, caplog):
    from io import BytesIO

    from jobgen.features.editor.lint_workspace import serve

    for sent in (b"\0\0\0\4abcd", b"\xff\xff\xff\xffabc", b"\0\0\0\1", b"ab"):
        answers = BytesIO()
        serve(tmp_path, BytesIO(sent), answers)
        assert answers.getvalue() == b""
    assert caplog.text.count("could not be read") == 3


def test_process_that_reads_nothing_gets_the_newest_request_only(tmp_path):
    import asyncio

    from jobgen.features.editor.server.app import Worker

    write(tmp_path, REPOSITORY)
    draft = {os.path.realpath(tmp_path / "jobs/bert.yaml"): JOB.encode() + b"#" * 1_000_000}
    numbers = []

    async def run():
        answered = asyncio.Event()
        worker = Worker(tmp_path, lambda answer: (numbers.append(answer.number), answered.set()))
        worker.request(draft)
        await answered.wait()
        pid = worker._process.pid
        os.kill(pid, signal.SIGSTOP)
        for _ in range(20):
            worker.request(draft)
            await asyncio.sleep(0.01)
        # One task sends, and one receives.
        assert len(worker._tasks) <= 2
        answered.clear()
        os.kill(pid, signal.SIGKILL)
        await answered.wait()
        await worker.end()

    asyncio.run(asyncio.wait_for(run(), 60))
    assert set(numbers) == {1, 21}


def spin():
    while True:
        try:
            sum(range(1000))
        except Exception:  # noqa: BLE001 -- a handler of errors on the way
            continue


IS_RAISED_AGAIN = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""Code that Python calls on its own, such as that of weak references, ignores the exception of a limit."""


@IS_RAISED_AGAIN
def test_long_answer_is_interrupted():
    from jobgen.features.editor.server.app import TimeLimitError, run_limited

    with pytest.raises(TimeLimitError):
        run_limited(0.02, spin)
    with pytest.raises(TimeLimitError):
        run_limited(0.02, run_limited, 60, spin)
    with pytest.raises(ZeroDivisionError):
        run_limited(60, divmod, 1, 0)
    assert run_limited(60, divmod, 7, 2) == (3, 1)
    assert signal.getitimer(signal.ITIMER_PROF) == (0, 0)


@IS_RAISED_AGAIN
def test_request_that_takes_too_long_is_answered_with_nothing(monkeypatch, caplog):
    from jobgen.features.editor.server.app import JobgenServer

    monkeypatch.setattr("jobgen.features.editor.server.app.MAX_SECONDS", 0.02)
    server = JobgenServer()

    @server.feature("textDocument/hover")
    def hover(_):
        spin()

    for uri in ("file:///a.yaml", "file:///a.yaml", "file:///b.yaml"):
        asked = types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(0, 0))
        assert server.protocol.fm.features["textDocument/hover"](asked) is None
    # The second request about a document is not tried again so soon.
    assert caplog.text.count("`textDocument/hover` takes longer") == 2
    assert "Traceback" not in caplog.text


def test_long_text_in_quotes_takes_little_memory():
    text = "a: ['" + "b" * 500_000 + "', \"" + "c" * 500_000 + '", ' + " " * 500_000 + "d"
    tracemalloc.start()
    found = read_flow(text, 3, len(text), lambda start, end: Location("a.yaml", 1, start))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [len(value_of(each)) for each in found[0]] == [500_000, 500_000, 1]
    assert peak < 20_000_000


def test_lint_that_fails_leaves_findings_and_warns(tmp_path):
    from jobgen.features.editor.lint_workspace import Request, encode_frame, read_frame

    # The content of a document is never a number, so this is a fault of the server itself.
    drafts = {os.path.realpath(write(tmp_path, REPOSITORY) / "jobs/bert.yaml"): 5}
    command = [sys.executable, "-P", "-m", "jobgen", "lsp", "--background", tmp_path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(encode_frame(Request(7, drafts)))
        process.stdin.flush()
        failed = read_frame(process.stdout)
        process.stdin.close()
    assert (failed.number, failed.has_failed, failed.findings) == (7, True, {})
    assert "please report this bug" in failed.error

    warnings = []
    opened = OpenWorkspace(tmp_path, lambda it: warnings.append(it.warning))
    good = Snapshot(6, {"jobs/bert.yaml": FileFindings()})
    for answer in (good, failed, failed):
        opened.worker._take(answer)
    assert opened.workspace.snapshot.findings == good.findings
    assert opened.workspace.snapshot.number == 7
    assert warnings[0] == ""
    assert "was not linted, and its findings are old" in warnings[1]


def test_error_that_stays_is_logged_once(tmp_path, caplog):
    opened = OpenWorkspace(write(tmp_path, REPOSITORY), lambda _: None)
    for error in ("a", "a", "", "a", "b", "b"):
        opened.worker._take(Snapshot(error=error))
        opened.worker._take(DecisionsAnswer(error=error))
    for text in ("was not linted", "were not simulated"):
        assert [line[-1] for line in caplog.messages if text in line] == ["a", "a", "b"]


@pytest.mark.parametrize("params", [None, [], {}, {"id": None}, {"id": [1]}, {"id": {}}, {"id": 1.5}, {"id": 77}])
def test_cancel_of_no_request_is_ignored(client, params):
    before = client.log.read_text().count("Traceback")
    client.notify("$/cancelRequest", params)
    assert client.request("workspace/symbol", {"query": ""})["result"] is not None
    assert client.log.read_text().count("Traceback") == before


@pytest.mark.parametrize("number", [-1, 2**31, 10**30])
def test_action_with_a_wrong_position_is_not_known(number):
    data = {"uri": "file:///a.yaml", "version": 1, "range": [0, 0, 0, 1], "kind": "quickfix", "id": "a"}
    assert _read_range(data).end.character == 1
    for place in range(4):
        assert _read_range(data | {"range": [number if each == place else 0 for each in range(4)]}) is None


def test_thread_that_stalls_does_not_keep_the_server_from_ending():
    released, ended = threading.Event(), threading.Event()

    def stall():
        released.wait(60)
        ended.set()

    async def wait():
        assert await run_apart(lambda: 5) == 5
        with pytest.raises(ZeroDivisionError):
            await run_apart(lambda: 1 // 0)
        stalled = run_apart(stall)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(stalled), 0.01)

    asyncio.run(wait())
    assert not ended.is_set()
    released.set()


def test_address_that_cannot_be_read_is_no_file():
    assert create_server().find_workspace("file://[/jobs/a.yaml") is None


@IS_RAISED_AGAIN
def test_document_that_takes_too_long_is_left_to_the_background(tmp_path, monkeypatch, caplog):
    from jobgen.features.editor.server.app import JobgenServer, OpenWorkspace
    from jobgen.features.editor.server.diagnostics import lint_document

    jobs = "---\n".join(BROKEN.replace("bert", f"bert-{number}") for number in range(500))
    write(tmp_path, REPOSITORY | {"jobs/many.yaml": jobs})
    server, opened = JobgenServer(), OpenWorkspace(tmp_path, print)
    opened.workspace.load()
    monkeypatch.setattr("jobgen.features.editor.server.app.MAX_SECONDS", 0.02)
    for _ in range(3):
        assert lint_document(server, opened, "jobs/many.yaml") == ((), ())

    assert caplog.text.count("`jobs/many.yaml` takes longer") == 1
    monkeypatch.undo()
    assert len(opened.workspace.lint_file("jobs/bert.yaml").own) == 0

"""After random edits over the protocol, every file shows what a fresh `jobgen lint` finds."""

import re
import time
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from editorfiles import NEW_FILES, edit, make_repository
from lspclient import REAL, Client
from test_editor_lint import lint_saved, write

from jobgen.reports import Report
from jobgen.reports.entries import entries

SECONDS = 3.0
"""With --stress, two minutes."""
MAX_GROWTH = 100 * 1024
"""How many KiB of memory the server and its processes may use more at the end than after the first lints."""
REQUESTS = (
    ("textDocument/hover", {}),
    ("textDocument/completion", {}),
    ("textDocument/definition", {}),
    ("textDocument/references", {"context": {"includeDeclaration": True}}),
    ("textDocument/documentSymbol", {}),
    ("textDocument/codeAction", {"context": {"diagnostics": []}}),
    ("textDocument/codeLens", {}),
    ("textDocument/inlayHint", {}),
    ("workspace/symbol", {"query": "b"}),
)


class Editor:
    """An editor whose user opens, edits, saves and closes files at random, and other programs that change them."""

    def __init__(self, client, folder, files, random):
        self.client, self.folder, self.files, self.random = client, folder, files, random
        self.opened = {}
        self._version = 1

    def find_uri(self, path):
        return (self.folder / path).as_uri()

    def act(self):
        path = self.random.choice(sorted(self.files.keys() | self.opened.keys() | NEW_FILES.keys()))
        if not self.random.randrange(4):
            self._ask(path)
        elif path in self.opened:
            self._act_on_open(path, self.opened[path])
        elif path in self.files:
            self._act_on_closed(path)
        else:
            self._create(path)

    def _ask(self, path):
        """Ask for something, and sometimes do not wait for the answer."""
        text = self.opened.get(path) or self.files.get(path) or ""
        position = find_position(text, self.random.randrange(len(text) + 1))
        whole = {"start": {"line": 0, "character": 0}, "end": position}
        method, params = self.random.choice(REQUESTS)
        params = params | {"textDocument": {"uri": self.find_uri(path)}, "position": position, "range": whole}
        if self.random.randrange(4):
            self.client.send({"jsonrpc": "2.0", "id": "ignored", "method": method, "params": params})
        else:
            assert "error" not in self.client.request(method, params), method

    def _report(self, path, kind):
        """Report a change on disk: 1 if it was created, 2 if it was changed, 3 if it was deleted."""
        changes = [{"uri": self.find_uri(path), "type": kind}]
        self.client.notify("workspace/didChangeWatchedFiles", {"changes": changes})

    def _write(self, path, text, kind):
        write(self.folder, {path: text})
        self.files[path] = text
        self._report(path, kind)

    def _delete(self, path):
        (self.folder / path).unlink()
        del self.files[path]
        self._report(path, 3)

    def _create(self, path):
        """Create a file on disk, or a document that is not saved yet."""
        if self.random.randrange(2):
            self._write(path, NEW_FILES[path], 1)
        else:
            self.opened[path] = NEW_FILES[path]
            self.client.open(self.find_uri(path), NEW_FILES[path], self._version)

    def _act_on_closed(self, path):
        action = self.random.randrange(8)
        if action < 4:
            self.opened[path] = self.files[path]
            self.client.open(self.find_uri(path), self.files[path], self._version)
        elif action < 6:
            self._write(path, edit(self.random, path, self.files[path]), 2)
        elif path in NEW_FILES or self.random.randrange(3) == 0:
            self._delete(path)
        elif path.startswith("jobs/job"):
            text, other = self.files[path], f"jobs/job{self.random.randrange(90)}.yaml"
            self._delete(path)
            self._write(other, text, 2 if other in self.files else 1)

    def _act_on_open(self, path, text):
        action = self.random.randrange(10)
        if action == 0:
            self.client.close(self.find_uri(path))
            del self.opened[path]
        elif action == 1:
            write(self.folder, {path: text})
            self.files[path] = text
            self.client.save(self.find_uri(path))
        elif action == 2 and path in self.files:
            # The document stays open, as in most editors.
            self._delete(path)
        else:
            self._type(path, edit(self.random, path, text))

    def _type(self, path, text):
        """Send an edit as the part of the text that differs, as editors do."""
        before = self.opened[path]
        same = next(
            (n for n, (a, b) in enumerate(zip(before, text, strict=False)) if a != b), min(map(len, (before, text)))
        )
        edit_range = {"start": find_position(before, same), "end": find_position(before, len(before))}
        self._version += 1
        document = {"uri": self.find_uri(path), "version": self._version}
        changes = [{"range": edit_range, "text": text[same:]}]
        self.client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": changes})
        self.opened[path] = text


def find_position(text, offset):
    lines = text[:offset].split("\n")
    return {"line": len(lines) - 1, "character": len(lines[-1])}


def wait_until(is_done, seconds=10):
    end = time.monotonic() + seconds
    while not is_done():
        assert time.monotonic() < end
        time.sleep(0.05)


def list_expected(editor):
    """The findings of a fresh lint. A finding of several environments is shown once."""
    drafts = {str(editor.folder / path): text.encode() for path, text in editor.opened.items()}
    found = lint_saved(editor.folder, drafts)
    return {
        editor.find_uri(file): set(map(describe_entry, entries(Report(several)))) for file, several in found.items()
    }


def describe_entry(entry):
    rule, severity, location = entry.finding.rule, entry.finding.severity.value, entry.finding.location
    return rule, severity, entry.message, max(location.line - 1, 0), max(location.column - 1, 0)


def list_shown(client):
    names = {1: "error", 2: "warning", 3: "info"}
    return {
        uri: {
            (each["code"], names[each["severity"]], each["message"], *each["range"]["start"].values())
            for each in several
        }
        for uri, several in client.diagnostics.items()
        if several
    }


def list_processes(pid):
    """The ids of a process and of all that it started."""
    found = [pid]
    for each in found:
        with suppress(OSError):
            found += map(int, Path(f"/proc/{each}/task/{each}/children").read_text().split())
    return found


def measure_memory(pid):
    """The memory of a process and of all that it started, in KiB."""
    total = 0
    for each in list_processes(pid):
        with suppress(OSError):
            total += int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{each}/status").read_text())[1])
    return total


@pytest.mark.stress
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs the processes of Linux")
@pytest.mark.parametrize("seed", [1])
def test_random_edits_end_with_the_findings_of_lint(tmp_path, stress, seed):
    random = Random(seed)
    folder = tmp_path / "repository"
    files = make_repository(random, jobs=12)
    write(folder, files)
    watching = {"workspace": {"didChangeWatchedFiles": {"dynamicRegistration": True}}}
    with Client([folder], watching, log=tmp_path / "log.txt", program=REAL) as client:
        editor = Editor(client, folder, files, random)
        end = time.monotonic() + SECONDS * stress
        compared = first_memory = 0
        while time.monotonic() < end:
            for _ in range(random.randrange(1, 40)):
                editor.act()
                client.settle(random.choice((0, 0, 0.01, 0.2)))
            expected = list_expected(editor)
            with suppress(TimeoutError):
                client.wait(lambda: list_shown(client) == expected, 300)  # noqa: B023 -- called at once
            assert list_shown(client) == expected, f"after {compared} comparisons"
            compared += 1
            memory = measure_memory(client.process.pid)
            first_memory = first_memory or memory
        assert compared
        assert memory < first_memory + MAX_GROWTH
        assert "failed" not in client.log.read_text()
        processes = list_processes(client.process.pid)
        assert len(processes) == 2
        assert client.stop() == 0
        wait_until(lambda: not any(Path(f"/proc/{each}").exists() for each in processes[1:]))

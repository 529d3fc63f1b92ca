"""Measure `jobgen lsp`: how soon findings follow an edit in a large repository, and the memory of both processes.

    python benchmarks/lsp.py [--jobs 10000] [--edits 10] [--folder FOLDER]

The repository has two environments. Each edit adds a fault to a job or to an overlay, or a patch for ten jobs to the
overlay, or removes it. "File" is the time until the editor
gets the findings of the edited file, "everything" until the background process has linted all files. The targets are
100 ms, 1 s and 500 MB. CPU seconds are those of both processes for one edit, and do not depend on other programs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from repository import write_jobs
from timing import compile_modules

TICKS = os.sysconf("SC_CLK_TCK")


class Edit(NamedTuple):
    """What followed an edit."""

    file: float
    everything: float
    cpu: float


class Editor:
    """A client of the server."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "jobgen", "lsp"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        folders = [{"uri": folder.as_uri(), "name": "jobs"}]
        capabilities = {
            "workspace": {"codeLens": {"refreshSupport": True}, "didChangeWatchedFiles": {"dynamicRegistration": True}},
            "textDocument": {"codeLens": {}},
        }
        params = {"processId": None, "rootUri": None, "capabilities": capabilities, "workspaceFolders": folders}
        self._send({"id": 1, "method": "initialize", "params": params})
        self.wait(lambda message: message.get("id") == 1)
        self.notify("initialized", {})
        self.wait(is_refresh)

    def notify(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self.process.stdin.flush()

    def wait(self, is_wanted: Callable[[dict[str, Any]], bool]) -> float:
        """Read messages until one is wanted, and return the time."""
        while True:
            length = 0
            while (line := self.process.stdout.readline()).strip():
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            message = json.loads(self.process.stdout.read(length))
            if "id" in message and "method" in message:
                self._send({"id": message["id"], "result": None})
            if is_wanted(message):
                return time.monotonic()

    def list_processes(self) -> list[int]:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [self.process.pid, *map(int, children)]

    def read_cpu(self) -> float:
        """Return the CPU seconds of both processes, and of those that they waited for."""
        fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in self.list_processes()]
        return sum(int(ticks) for each in fields for ticks in each[11:15]) / TICKS

    def list_memory(self) -> list[int]:
        """The largest memory that each process had, in bytes."""
        texts = (Path(f"/proc/{pid}/status").read_text() for pid in self.list_processes())
        return [int(text.partition("VmHWM:")[2].split()[0]) * 1024 for text in texts]

    def edit(self, uri: str, version: int, text: str) -> Edit:
        """Replace the text of a document, and wait for the findings."""
        cpu, start = self.read_cpu(), time.monotonic()
        document = {"uri": uri, "version": version}
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})
        shown = self.wait(lambda message: is_published(message, uri, version))
        done = self.wait(is_refresh)
        return Edit(shown - start, done - start, self.read_cpu() - cpu)


def is_refresh(message: dict[str, Any]) -> bool:
    """Whether the server says that the background process has linted everything."""
    return message.get("method") == "workspace/codeLens/refresh"


def is_published(message: dict[str, Any], uri: str, version: int) -> bool:
    params = message.get("params") or {}
    return message.get("method") == "textDocument/publishDiagnostics" and (params["uri"], params["version"]) == (
        uri,
        version,
    )


def measure(folder: Path, edits: int) -> None:
    """Print what follows edits of a job and of an overlay."""
    start = time.monotonic()
    editor = Editor(folder)
    print(f"first lint      {time.monotonic() - start:6.1f} s, {editor.read_cpu():.1f} s of CPU")
    job = min(folder.glob("jobs/**/*.yaml"))
    overlay = folder / "overlays/dev/overlay.yaml"
    fault = ("spec:\n", "spec:\n  unknownField: 1\n")
    patch = ("patches:\n", "patches:\n    - {match: {names: [bert-00001*]}, merge: {nodeSelector: {pool: cpu}}}\n")
    for name, file, change in (("job", job, fault), ("overlay", overlay, fault), ("patch", overlay, patch)):
        text, uri = file.read_text(), file.as_uri()
        opened = {"uri": uri, "languageId": "yaml", "version": 1, "text": text}
        editor.notify("textDocument/didOpen", {"textDocument": opened})
        editor.wait(is_refresh)
        changed = text.replace(*change, 1)
        found = [
            editor.edit(uri, version, (text if version % 2 else changed) + f"\n# edit {version}\n")
            for version in range(2, 2 + edits)
        ]
        file_time, everything, cpu = (median(each[column] for each in found) for column in range(3))
        editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        editor.wait(is_refresh)
        print(f"{name:15} {file_time * 1000:6.0f} ms file, {everything:.2f} s everything, {cpu:.2f} s of CPU")
    print("memory          " + ", ".join(f"{each / 1e6:.0f} MB" for each in editor.list_memory()))
    editor.process.kill()
    editor.process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--edits", type=int, default=10)
    parser.add_argument("--folder", type=Path, help="of the repository; it is written if it does not exist")
    options = parser.parse_args()
    compile_modules()
    with tempfile.TemporaryDirectory() as home:
        folder = options.folder or Path(home, "repository")
        if not folder.exists():
            write_jobs(folder, options.jobs)
            (folder / "overlays/dev").mkdir()
            text = (folder / "overlays/prod/overlay.yaml").read_text()
            (folder / "overlays/dev/overlay.yaml").write_text(text.replace("prod", "dev"))
        measure(folder.resolve(), options.edits)


if __name__ == "__main__":
    main()

"""After random edits over the protocol, every file shows what a fresh `jobgen lint` finds."""

import time
from random import Random

import pytest
from editorfiles import edit, make_repository
from lspclient import Client
from test_editor_lint import lint_saved, write

SECONDS = 7.5
"""With --stress, five minutes."""


class Editor:
    """An editor whose user opens, edits, saves and closes files at random, and other programs that change them."""

    def __init__(self, client, folder, files, random):
        self.client, self.folder, self.files, self.random = client, folder, files, random
        self.opened = {}
        self._version = 1

    def find_uri(self, path):
        return (self.folder / path).as_uri()

    def act(self):
        path = self.random.choice(sorted(self.files))
        text = self.opened.get(path)
        if text is None:
            self._act_on_closed(path)
        else:
            self._act_on_open(path, text)

    def _act_on_closed(self, path):
        if self.random.randrange(3):
            self.opened[path] = self.files[path]
            self.client.open(self.find_uri(path), self.files[path], self._version)
            return
        self.files[path] = edit(self.random, path, self.files[path])
        (self.folder / path).write_text(self.files[path])
        changes = [{"uri": self.find_uri(path), "type": 2}]
        self.client.notify("workspace/didChangeWatchedFiles", {"changes": changes})

    def _act_on_open(self, path, text):
        action = self.random.randrange(8)
        if action == 0:
            self.client.close(self.find_uri(path))
            del self.opened[path]
        elif action == 1:
            self.files[path] = text
            (self.folder / path).write_text(text)
            self.client.save(self.find_uri(path))
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


def list_expected(editor):
    """The findings of a fresh lint. A finding of several environments is shown once."""
    drafts = {str(editor.folder / path): text.encode() for path, text in editor.opened.items()}
    found = lint_saved(editor.folder, drafts)
    return {
        editor.find_uri(file): {(each.rule, each.severity.value, max(each.location.line - 1, 0)) for each in several}
        for file, several in found.items()
    }


def list_shown(client):
    names = {1: "error", 2: "warning", 3: "info"}
    return {
        uri: {(each["code"], names[each["severity"]], each["range"]["start"]["line"]) for each in several}
        for uri, several in client.diagnostics.items()
        if several
    }


@pytest.mark.parametrize("seed", [1])
def test_random_edits_end_with_the_findings_of_lint(tmp_path, stress, seed):
    random = Random(seed)
    folder = tmp_path / "repository"
    files = make_repository(random, jobs=12)
    write(folder, files)
    watching = {"workspace": {"didChangeWatchedFiles": {"dynamicRegistration": True}}}
    with Client([folder], watching, log=tmp_path / "log.txt") as client:
        editor = Editor(client, folder, files, random)
        end = time.monotonic() + SECONDS * stress
        compared = 0
        while time.monotonic() < end:
            for _ in range(random.randrange(1, 40)):
                editor.act()
                client.settle(random.choice((0, 0, 0.01, 0.2)))
            expected = list_expected(editor)
            client.wait(lambda: list_shown(client) == expected, 30)  # noqa: B023 -- called at once
            compared += 1
        assert compared
        assert "failed" not in client.log.read_text()
        assert client.stop() == 0

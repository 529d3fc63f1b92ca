"""An editor shows the findings of `jobgen lint --format json` on the same ranges, in any position encoding."""

import json
import re

import pytest
from editorfiles import FILES, JOB, KIND, OVERLAY, POLICY
from lsprotocol import types
from test_editor_lint import write

import jobgen
from jobgen.features.editor.lint_workspace import WorkspaceLinter
from jobgen.features.editor.server.app import OpenWorkspace
from jobgen.features.editor.server.diagnostics import to_diagnostics
from jobgen.features.editor.server.positions import Texts
from jobgen.features.editor.server.run import create_server
from jobgen.reports import Report
from jobgen.reports.entries import entries
from jobgen.reports.formats import FORMATS

BROKEN = JOB.format(name="bert", team="nlp", framework="pytorch", tag="latest", gpus=1, seed=1, replicas=-1)
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: a, annotations: {note: "NOTE"}, labelz: 5}
spec: {containers: [{name: "NOTE", image: [1]}], restartPolicy: "NOTE"}
"""
EXPRESSION = "object.metadata.name.startsWith('b')"
CASES = {
    "manifest": {"jobs/pod.yaml": POD},
    "CRLF": {"jobs/pod.yaml": POD.replace("\n", "\r\n"), "jobs/job.yaml": BROKEN.replace("\n", "\r\n")},
    "BOM": {
        "jobs/job.yaml": "\ufeff" + BROKEN,
        "jobs/pod.yaml": '\ufeff{kind: Pod, apiVersion: v1, "é": 5, labelz: 5}\n',
    },
    "astral": {"jobs/pod.yaml": POD.replace("NOTE", "😀é𝒳"), "jobs/job.yaml": BROKEN.replace("nlp", '"😀", 𝒳: "é"')},
    "tabs": {
        "jobs/pod.yaml": POD.replace("NOTE", "\t").replace("spec: {", "spec:\t{\t"),
        "jobs/tab.yaml": "a:\n\tb: 1\n",
    },
    "separators": {"jobs/pod.yaml": POD.replace("NOTE", "\u2028\u2029\u0085") + "# \f é\nstatuz: 5\n"},
    "documents": {"jobs/pod.yaml": f"# é\n---\n{POD}---\n# 😀\n{POD.replace('name: a', 'name: é')}...\n---\n{BROKEN}"},
    "JSON": {
        "jobs/pod.json": json.dumps({"apiVersion": "v1", "kind": "Pod", "é😀": 1, "spec": {"x": 5}}, ensure_ascii=False)
    },
    "JSON lines": {"jobs/pod.json": json.dumps({"kind": "Pod", "apiVersion": "v1", "spec": {"😀": 1}}, indent="\t")},
    "not YAML": {"jobs/pod.yaml": 'metadata: {name: "😀é", b: ]}\n', "jobs/open.yaml": "a: [😀\n\n"},
    "not UTF-8": {"jobs/pod.yaml": b"kind: Pod\nname: \xff\xfe\n"},
    "policy": {"policies/own.yaml": POLICY.replace(EXPRESSION, "'😀' == object.metadata.nam && 1")},
    "policy in lines": {
        "policies/own.yaml": POLICY.replace(
            EXPRESSION, "|-\n        '😀é' == 'b' &&\n          object.metadata.name.startz('b')"
        )
    },
    "policy in quotes": {"policies/own.yaml": POLICY.replace(EXPRESSION, "\"'\\\\u00e9' == 'é' && objekt.metadata\"")},
    "kind": {"schemas/example.dev/dancejob_v1.yaml": KIND.replace("dance-operator}", '"😀", nam: 5}')},
    "overlay": {"overlays/prod/overlay.yaml": OVERLAY.format(env="prod", pattern="😀", gpus='"é", x: 5')},
    "settings": {"jobgen.yaml": 'rules: {mutable-image-tag: "é😀", unknown: off}\n'},
    "comments": {"jobs/job.yaml": BROKEN.replace("latest", "latest  # 😀 jobgen: ignore[unused-rule] -- é")},
}
ENCODINGS = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
UNITS = {"utf-8": 1, "utf-16": 2, "utf-32": 4}


def list_reported(folder):
    """The findings of `lint --format json`."""
    try:
        text = jobgen.lint(folder).to_text("json")
    except jobgen.JobgenError as error:
        text = FORMATS.render("json", Report(tuple(error.findings)))
    return json.loads(text)["findings"]


def to_text(content):
    return (content if isinstance(content, bytes) else content.encode()).decode("utf-8", "replace")


def to_lines(content):
    """The lines of a file as an editor shows them: without the mark of its encoding."""
    return re.split(r"\r\n|\n|\r", to_text(content).removeprefix("\ufeff"))


def to_position(lines, line, column, encoding):
    before = lines[line - 1][: column - 1] if 0 < line <= len(lines) and column else ""
    return max(line - 1, 0), len(before.encode(ENCODINGS[encoding])) // UNITS[encoding]


def list_expected(folder, files, encoding):
    expected = []
    for each in list_reported(folder):
        lines = to_lines(files.get(each["file"], ""))
        start = to_position(lines, each["line"], each["column"], encoding)
        end = to_position(lines, each["endLine"], each["endColumn"], encoding)
        if each["rule"] == "unknown-field":
            shown = lines[each["line"] - 1][each["column"] - 1 : each["endColumn"] - 1].strip("\"'")
            shown = json.loads(f'"{shown}"') if "\\u" in shown else shown
            assert shown == each["message"].split("`")[1]
        expected.append((each["file"], each["rule"], each["severity"], start, end if end != start else None))
    return sorted(expected, key=str)


def is_long(location):
    """Return True if a location has an end; without one, an editor shows one character."""
    return (location.end_line, location.end_column) not in ((0, 0), (location.line, location.column))


def make_server(encoding):
    server = create_server()
    server.protocol._workspace = Texts(None, types.TextDocumentSyncKind.Incremental, [], encoding)
    return server


def open_document(server, opened, path, text):
    uri = opened.uris[path] = (opened.workspace.root / path).as_uri()
    server.workspace.put_text_document(types.TextDocumentItem(uri, "yaml", 1, text))


def list_shown(server, opened):
    shown = []
    for file, found in opened.workspace.snapshot.findings.items():
        uri = server.find_uri(opened, file)
        for each, entry in zip(to_diagnostics(server, opened, uri, found.all), entries(Report(found.all)), strict=True):
            start, end = ((at.line, at.character) for at in (each.range.start, each.range.end))
            severity = {1: "error", 2: "warning", 3: "info"}[each.severity]
            shown.append((file, each.code, severity, start, end if is_long(entry.finding.location) else None))
    return sorted(shown, key=str)


@pytest.mark.parametrize("case", CASES)
def test_ranges_are_those_of_lint_in_any_encoding(tmp_path, case):
    files = FILES | CASES[case]
    write(tmp_path, files)
    snapshot = WorkspaceLinter(tmp_path).lint({}, lambda *_: None)
    for encoding in ENCODINGS:
        server, opened = make_server(encoding), OpenWorkspace(tmp_path, lambda _: None)
        opened.workspace.take(snapshot)
        expected = list_expected(tmp_path, files, encoding)
        assert expected
        assert list_shown(server, opened) == expected

        for path in CASES[case]:
            # An editor removes the mark at the beginning when it opens a file.
            open_document(server, opened, path, to_text(files[path]).removeprefix("\ufeff"))
        assert list_shown(server, opened) == expected


def test_ranges_count_the_mark_that_an_editor_keeps(tmp_path):
    text = CASES["BOM"]["jobs/pod.yaml"]
    write(tmp_path, {"jobs/pod.yaml": text})
    opened = OpenWorkspace(tmp_path, lambda _: None)
    opened.workspace.take(WorkspaceLinter(tmp_path).lint({}, lambda *_: None))
    for encoding, size in (("utf-8", 3), ("utf-16", 1), ("utf-32", 1)):
        server = make_server(encoding)
        without = [start for *_, start, _ in list_shown(server, opened)]
        open_document(server, opened, "jobs/pod.yaml", text)
        assert [start for *_, start, _ in list_shown(server, opened)] == [(0, at + size) for _, at in without]
        assert without
        del opened.uris["jobs/pod.yaml"]

"""Charts whose author wants that nothing is said of them, or that all of a run is lost."""

from __future__ import annotations

import io
import json
import os
import tarfile
from pathlib import Path

import pytest
from command import run_jobgen
from helm_charts import GOOD, HELM, METADATA, WITHOUT_HELM, below, needs_helm, write_files

from jobgen.features.helm.charts import Chart
from jobgen.kustomize.tree import FolderTree
from jobgen.model import budget

pytestmark = needs_helm
WITH_HELM = os.pathsep.join((str(HELM.parent), WITHOUT_HELM))
BAD = below("bad", {**GOOD, "values.yaml": "port: 80001\n"})
POD = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containrs": []}, "data": {}}'


def lint(root: Path, *arguments: str) -> list[dict]:
    done = run_jobgen(root, "lint", "--format", "json", *arguments, env={**os.environ, "PATH": WITH_HELM})
    assert done.stdout, done.stderr.decode()
    found: list[dict] = json.loads(done.stdout)["findings"]
    return found


def pack(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()


def test_no_file_of_a_chart_can_pretend_to_be_the_marks(tmp_path: Path) -> None:
    sub = below("sub", {**GOOD, "Chart.yaml": METADATA.replace("web", "sub")})
    root = write_files(tmp_path, {**GOOD, "charts/sub.tgz": pack(sub)})
    name = Chart(FolderTree(root), "").marked.name
    for text in (POD, f"---\n# Source: web/templates/+{name}.yaml\n{POD}\n"):
        write_files(root, {"charts/sub.tgz": pack({**sub, "sub/crds/a.yaml": text})})
        found = {(each["file"], each["rule"]) for each in lint(root, "--no-cache")}

        assert ("charts/sub.tgz", "unknown-field") in found


def test_what_a_run_left_out_is_judged_by_the_next_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large = below("a", {**GOOD, "templates/a.yaml": "# long\n" * 300_000})
    root = write_files(tmp_path, {**large, **BAD})
    monkeypatch.setattr(budget, "MAX_RUN_STEPS", budget.FREE_FILE_STEPS)
    stopped = [(each["file"], each["rule"]) for each in lint(root)]
    monkeypatch.undo()

    assert stopped == [("a/Chart.yaml", "too-many-steps"), ("bad/Chart.yaml", "too-many-steps")]
    for paths in (["bad"], ["a", "bad"]):
        found = [(each["file"], each["rule"]) for each in lint(root, *paths)]
        assert found == [("bad/templates/service.yaml", "invalid-port")]


def test_the_end_of_a_long_message_says_why(tmp_path: Path) -> None:
    text = '{{- define "r" }}{{ include "r" . }}{{ end }}{{ include "r" . }}\n'
    [found] = lint(write_files(tmp_path, {**GOOD, "templates/a.yaml": text}), "--no-cache")

    assert "rendering template has a nested reference name: r" in found["message"]


def test_bytes_of_an_archive_are_not_shown(tmp_path: Path) -> None:
    sub = below("sub", {**GOOD, "Chart.yaml": METADATA.replace("web", "sub"), "values.yaml": "port: 80001\n"})
    root = write_files(tmp_path, {**GOOD, "charts/sub.tgz": pack(sub)})
    done = run_jobgen(root, "lint", "--no-cache", env={**os.environ, "PATH": WITH_HELM})
    lines = done.stdout.decode().splitlines()

    assert lines[0].startswith("charts/sub.tgz:1:1: error: ")
    assert lines[1].startswith("  = note: ")

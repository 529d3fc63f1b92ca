"""What is measured is what the page says: sound repositories, as many faults as asked for, a fair race."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

import page
import pytest
import render
from promise import Row, growing
from repository import write_jobs, write_manifests

from jobgen.cli.commands.lint import lint_paths

ROOT = Path(__file__).parent.parent


def findings(folder: Path, *paths: str) -> list[dict]:
    return json.loads(lint_paths(folder, paths, (), format_="json").out)["findings"]


def test_nothing_is_wrong_with_what_is_measured(tmp_path):
    write_jobs(tmp_path, 12)
    write_manifests(tmp_path / "manifests", 14)

    assert findings(tmp_path) == []
    assert findings(tmp_path, "manifests") == []


def test_the_share_of_faults_is_what_was_asked_for(tmp_path):
    write_jobs(tmp_path, 40, faults=0.1)
    write_manifests(tmp_path / "manifests", 40, faults=0.1)

    for found in (findings(tmp_path), findings(tmp_path, "manifests")):
        assert len({finding["file"] for finding in found}) == 4
        assert {"unknown-field", "gpu-request-limit-mismatch", "moving-tag"} <= {each["rule"] for each in found}


def test_kustomize_builds_the_same_objects(tmp_path):
    write_jobs(tmp_path / "ours", 6)

    assert render.kustomize(tmp_path / "ours", tmp_path / "theirs") > 0


def test_growth_is_linear_or_missed():
    before = Row("ten", 1.0, series="lint", count=10)

    assert growing(before, Row("hundred", 14.0, count=100)).kept
    assert not growing(before, Row("hundred", 16.0, count=100)).kept
    assert not growing(before, Row("hundred", 14.0, "2x", kept=False, count=100)).kept


def test_the_page_takes_new_numbers_and_keeps_its_words():
    rows = [
        Row(f"render {count}", count / 100, peer="kustomize", other=count, series="render", count=count).record
        for count in (1, 10)
    ]
    machine = {"cpu": "abacus", "cores": 2, "system": "wood", "python": "3.11"}
    words = (ROOT / "docs/performance.md").read_text()
    filled = page.filled(words, {"date": "2027-01-31", "machine": machine, "seconds": 1.0, "rows": rows})

    assert "On 2027-01-31: abacus, 2 cores" in filled
    assert "| render 10 | 100 ms | kustomize 10.00 s | 100.0x |  |  |" in filled
    assert filled.split(page.END)[1] == words.split(page.END)[1]
    assert filled.split(page.BEGIN)[0] == words.split(page.BEGIN)[0]
    assert len(ET.fromstring(page.growth(rows)).findall("{*}circle")) == 4


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores cannot be chosen here")
def test_one_process_or_many_with_memory_or_without_say_the_same(tmp_path):
    write_jobs(tmp_path, 450, faults=0.05)
    cores = os.sched_getaffinity(0)
    one = f"import os; os.sched_setaffinity(0, {{{min(cores)}}})"
    told = set()
    for first, options in ((one, ["--no-cache"]), ("", ["--no-cache"]), ("", []), ("", [])):
        command = f"{first}\nimport sys; from jobgen.cli.main import run; sys.exit(run(sys.argv[1:]))"
        done = subprocess.run(
            [sys.executable, "-c", command, *options, "lint", "--format", "json"],
            cwd=tmp_path,
            env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
            capture_output=True,
            text=True,
            check=False,
        )
        told.add(done.stdout)

    assert len(told) == 1
    assert len(json.loads(told.pop())["findings"]) > 20

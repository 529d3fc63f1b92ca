"""Findings have the same counts wherever they are shown: in text, JSON, the page of a fleet and that of a change."""

from __future__ import annotations

import itertools
import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
from gitrepository import Repository
from jobgenprocess import run_jobgen_text
from pagedata import PageData, find_data

ROOT = Path(__file__).parent.parent
SEVERITIES = ("error", "warning", "info")
BASELINE = "jobgen-baseline.yaml"
MANIFEST = """\
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}, namespace: ml}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{{name: main, image: "registry.example.com/train:latest"}}]
"""


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """The example repository, which has environments."""
    folder = tmp_path_factory.mktemp("example") / "jobs"
    folder.mkdir()
    for name in ("jobs", "overlays"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "jobgen.yaml", folder)
    Repository(folder, folder.parent).commit()
    return folder


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A folder of manifests, with settings so that it can have a page."""
    folder = tmp_path_factory.mktemp("plain") / "manifests"
    folder.mkdir()
    (folder / "jobgen.yaml").write_text("")
    for name in ("one", "two"):
        (folder / f"{name}.yaml").write_text(MANIFEST.format(name=name))
    Repository(folder, folder.parent).commit()
    return folder


def count_text(folder, *options):
    """Count by the last line of the text: `9 warnings, 1 info`."""
    last = run_jobgen_text(folder, "lint", *options).stderr.splitlines()[-1]
    words = last.partition(";")[0].partition("(")[0].replace(",", " ").split()
    return {
        severity: next((int(number) for number, word in itertools.pairwise(words) if word in names), 0)
        for severity in SEVERITIES
        for names in ({severity, f"{severity}s"},)
    }


def count_statistics(folder, *options):
    lines = run_jobgen_text(folder, "lint", "--statistics", *options).stderr.splitlines()
    rows = (line.split() for line in lines if len(line.split()) == 3 and line.split()[1] in SEVERITIES)
    counts = Counter[str]()
    for number, severity, _ in rows:
        counts[severity] += int(number)
    return {severity: counts[severity] for severity in SEVERITIES}


def count_json(folder, *options):
    """Count the entries of the JSON output, which has a finding for each environment."""
    findings = json.loads(run_jobgen_text(folder, "lint", "--format", "json", *options).stdout)["findings"]
    fields = ("rule", "severity", "message", "file", "line", "column", "endLine", "endColumn")
    entries = {(*(each[name] for name in fields), json.dumps(each["related"])) for each in findings}
    return {severity: sum(entry[1] == severity for entry in entries) for severity in SEVERITIES}


def count_page(folder, *options):
    done = run_jobgen_text(folder, "report", "-o", "-", *options)
    page = PageData(find_data(done.stdout))
    entries = {row["entry"]: row["severity"] for row in page.table("findings")}
    total = sum(Counter(entries.values()).values())
    assert f", {total} finding{'' if total == 1 else 's'}, " in done.stderr
    return {severity: sum(found == severity for found in entries.values()) for severity in SEVERITIES}


def count_everywhere(folder, *options):
    """Return the counts of all formats, each once if they agree."""
    counters = (count_text, count_statistics, count_json, count_page)
    found = [counter(folder, *options) for counter in counters]
    return [each for number, each in enumerate(found) if each not in found[:number]]


@pytest.mark.parametrize("options", [(), ("-e", "prod"), ("-e", "dev", "-e", "prod")], ids=str)
def test_counts_of_a_repository_agree(example, options):
    (counts,) = count_everywhere(example, *options)

    assert sum(counts.values()) > 0


def test_counts_of_a_folder_agree(plain):
    (counts,) = count_everywhere(plain)

    assert sum(counts.values()) > 0


def test_what_is_suppressed_is_not_counted(example, tmp_path):
    folder = shutil.copytree(example, tmp_path / "jobs")
    before = count_text(folder)
    finding = json.loads(run_jobgen_text(folder, "lint", "--format", "json").stdout)["findings"][0]
    path = folder / finding["file"]
    path.write_text(f"# jobgen: ignore-file={finding['rule']} known\n{path.read_text()}")

    (after,) = count_everywhere(folder)

    assert after != before


def test_what_a_baseline_lists_is_not_counted(example, tmp_path):
    folder = shutil.copytree(example, tmp_path / "jobs")
    assert run_jobgen_text(folder, "lint", "--write-baseline").returncode == 0
    (name,) = (path.name for path in folder.iterdir() if "baseline" in path.name)

    (counts,) = count_everywhere(folder, "--baseline", name)

    assert counts == dict.fromkeys(SEVERITIES, 0)


def test_the_page_of_a_change_counts_new_findings_as_lint_does(example, tmp_path):
    folder = shutil.copytree(example, tmp_path / "jobs")
    spec = "apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata: {name: late}\n"
    spec += "spec: {framework: pytorch, image: registry.example.com/a:latest, command: [python, a.py],"
    spec += " roles: {worker: {}}}\n"
    (folder / "jobs/late.yaml").write_text(spec)
    Repository(folder, tmp_path).commit()

    page = PageData(find_data(run_jobgen_text(folder, "diff", "HEAD~1..HEAD", "--format", "html").stdout))

    entries = {row["entry"]: row["severity"] for row in page.table("findings")}
    counts = {severity: sum(found == severity for found in entries.values()) for severity in SEVERITIES}
    assert counts == count_text(folder, "--since", "HEAD~1")
    assert sum(counts.values()) > 0

"""A report with a filled store is the same as one with an empty store, whatever changed in between."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobgen import cache
from jobgen.features.page import report as module
from jobgen.features.page.report import ReportResult, report

JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}, namespace: ml}}
spec: {{framework: pytorch, image: "registry.example.com/bert:{tag}"}}
"""
OVERLAY = """\
apiVersion: jobgen.dev/v1
kind: Overlay
spec: {{defaults: {{env: {{STAGE: {stage}}}}}}}
"""
PRICES = "currency: {currency}\nprices: [{{resource: cpu, hourly: 1.0}}]\n"
FILES = {
    "jobgen.yaml": "",
    "jobs/bert.yaml": JOB.format(name="bert", tag="1.4.2"),
    "jobs/gpt.yaml": JOB.format(name="gpt", tag="latest"),
    "overlays/dev/overlay.yaml": OVERLAY.format(stage="dev"),
    "overlays/prod/overlay.yaml": OVERLAY.format(stage="prod"),
    "prices.yaml": PRICES.format(currency="EUR"),
}
CHANGES = [
    ("jobs/bert.yaml", JOB.format(name="bert", tag="1.5.0")),
    ("jobs/gpt.yaml", "a: [\n"),
    ("jobs/gpt.yaml", JOB.format(name="gpt", tag="2.0.0")),
    ("jobs/more.yaml", JOB.format(name="bert", tag="1.0.0")),
    ("jobs/more.yaml", None),
    ("overlays/prod/overlay.yaml", OVERLAY.format(stage="live")),
    ("overlays/test/overlay.yaml", OVERLAY.format(stage="test")),
    ("prices.yaml", PRICES.format(currency="USD")),
    ("CODEOWNERS", "jobs/ @ml\n"),
    ("policies/own.yaml", "a: [\n"),
]


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "repository"
    for path, content in FILES.items():
        change(folder, path, content)
    return folder


def change(folder: Path, path: str, content: str | None) -> None:
    if content is None:
        (folder / path).unlink()
        return
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(content, "utf-8")


def report_with(home: Path | None, folder: Path) -> ReportResult:
    if home is not None:
        cache.enable(home, "test")
    try:
        return report(folder, prices="prices.yaml")
    finally:
        cache.disable()


def test_a_report_with_a_filled_store_is_that_with_an_empty_one(folder, tmp_path):
    home = tmp_path / "cache"
    assert report_with(home, folder) == report_with(None, folder)
    for path, content in CHANGES:
        before = report_with(home, folder)
        change(folder, path, content)
        expected = report_with(None, folder)
        assert expected != before, f"{path} changes nothing"
        assert report_with(home, folder) == expected, path
        assert report_with(home, folder) == expected, path


def test_a_report_of_an_unchanged_repository_collects_nothing(folder, tmp_path, monkeypatch):
    first = report_with(tmp_path / "cache", folder)
    monkeypatch.setattr(module, "_collect_data", None)
    assert report_with(tmp_path / "cache", folder) == first


def test_a_report_after_a_lint_is_the_same_and_notices_changes(folder, tmp_path):
    """The lint is an answer of the store, and what it read belongs to the report, too."""
    home = tmp_path / "cache"
    cache.enable(home, "test")
    module.lint_request(module.LintRequest(folder))
    cache.disable()
    assert report_with(home, folder) == report_with(None, folder)
    change(folder, "policies/own.yaml", "a: [\n")
    assert report_with(home, folder) == report_with(None, folder)

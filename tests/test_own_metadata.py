"""Layer order holds for one place in an object that has two spellings: a job's own value wins over defaults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from command import run_jobgen_text

JOB: dict[str, Any] = {
    "apiVersion": "jobgen.dev/v1",
    "kind": "TrainingJob",
    "metadata": {"name": "a", "namespace": "ml"},
    "spec": {"framework": "pytorch", "image": "registry.example.com/a:1.0.0"},
}
QUEUE = "kueue.x-k8s.io/queue-name"
PLACES = [
    ("kubeflow", {"queue": "one"}, "labels", QUEUE),
    ("trainer", {"queue": "one"}, "labels", QUEUE),
    ("ray", {"queue": "one"}, "labels", QUEUE),
    ("kubeflow", {"description": "one"}, "annotations", "jobgen.dev/description"),
    ("jobset", {"jobset": {"exclusiveTopology": "one"}}, "annotations", "alpha.jobset.sigs.k8s.io/exclusive-topology"),
    ("kubernetes", {"kubernetes": {"minParallelism": 1}}, "annotations", "kueue.x-k8s.io/job-min-parallelism"),
]


def write(root: Path, platform: str, job: dict[str, Any], **overlay: Any) -> None:
    spec = {"cluster": {"platform": platform}, **overlay}
    layers = {"apiVersion": "jobgen.dev/v1", "kind": "Overlay", "metadata": {"name": "base"}, "spec": spec}
    for path, data in (("jobs/a.yaml", job), ("overlays/base/overlay.yaml", layers)):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(yaml.safe_dump(data))


def with_metadata(block: str, key: str, value: str) -> dict[str, Any]:
    return {**JOB, "metadata": {**JOB["metadata"], block: {key: value}}}


def render(root: Path) -> Any:
    done = run_jobgen_text(root, "render", "-e", "base")
    assert done.returncode == 0, done.stderr
    return next(yaml.safe_load_all(done.stdout))


@pytest.mark.parametrize(("platform", "default", "block", "key"), PLACES)
def test_a_label_of_the_job_wins_over_a_default(tmp_path, platform, default, block, key):
    write(tmp_path, platform, with_metadata(block, key, "2"), defaults=default)
    assert render(tmp_path)["metadata"][block][key] == "2"

    # What the label says without the default is what it says with it.
    with_default = render(tmp_path)
    write(tmp_path, platform, with_metadata(block, key, "2"))
    assert render(tmp_path)["metadata"] == with_default["metadata"]


def test_a_patch_wins_over_a_label_and_explain_shows_all_three(tmp_path):
    patch = {"match": {}, "merge": {"queue": "three"}}
    write(tmp_path, "kubeflow", with_metadata("labels", QUEUE, "two"), defaults={"queue": "one"}, patches=[patch])

    assert render(tmp_path)["metadata"]["labels"][QUEUE] == "three"
    shown = run_jobgen_text(tmp_path, "explain", "a", "queue").stdout
    assert [word for word in ('"one"', '"two" → "three"', '"one" → "two"') if word not in shown] == []


def test_a_field_of_the_job_is_stronger_than_its_label(tmp_path):
    job = with_metadata("labels", QUEUE, "two")
    write(tmp_path, "kubeflow", {**job, "spec": {**job["spec"], "queue": "own"}}, defaults={"queue": "one"})
    assert render(tmp_path)["metadata"]["labels"][QUEUE] == "own"


@pytest.mark.parametrize("own", [{"suspend": False}, {"runPolicy": {"suspend": False}}])
@pytest.mark.parametrize(
    "defaults",
    [
        {"suspend": True},
        {"runPolicy": {"suspend": True}},
        {"runPolicy": {"backoffLimit": 2}, "suspend": True},
        {"suspend": True, "runPolicy": {"backoffLimit": 2}},
    ],
)
def test_the_two_spellings_of_suspend_are_one_field(tmp_path, own, defaults):
    write(tmp_path, "kubeflow", {**JOB, "spec": {**JOB["spec"], **own}}, defaults=defaults)
    assert render(tmp_path)["spec"]["runPolicy"]["suspend"] is False


@pytest.mark.parametrize(("platform", "field", "block", "key"), PLACES)
def test_a_label_that_the_jobs_own_field_replaces_is_reported_at_the_label(tmp_path, platform, field, block, key):
    job = with_metadata(block, key, "2")
    write(tmp_path, platform, {**job, "spec": {**job["spec"], **field}})
    found = find_overridden(tmp_path)
    assert [(each["severity"], each["line"]) for each in found] == [("warning", find_line(tmp_path, key))]
    assert [each["line"] for each in found[0]["related"]] == [
        find_line(tmp_path, "one" if "one" in str(field) else ": 1")
    ]

    for other in (job, {**with_metadata(block, key, "one"), "spec": {**job["spec"], "queue": "one"}}):
        write(tmp_path, platform, other)
        assert [each for each in find_overridden(tmp_path) if f"`{key}:" in each["message"]] == []


def test_an_override_by_a_patch_or_a_default_is_not_reported(tmp_path):
    patch = {"match": {}, "merge": {"queue": "three"}}
    write(tmp_path, "kubeflow", with_metadata("labels", QUEUE, "two"), defaults={"queue": "one"}, patches=[patch])
    assert find_overridden(tmp_path) == []


def find_overridden(root: Path) -> list[dict[str, Any]]:
    report = json.loads(run_jobgen_text(root, "lint", "--format", "json").stdout)
    return [each for each in report["findings"] if each["rule"] == "overridden-value"]


def find_line(root: Path, text: str) -> int:
    lines = (root / "jobs/a.yaml").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


OVERLAY = "apiVersion: jobgen.dev/v1\nkind: Overlay\nmetadata: {{name: {name}}}\nspec: {spec}\n"


def write_overlay(root: Path, name: str, file: str, spec: str) -> None:
    path = root / f"overlays/{name}/{file}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(OVERLAY.format(name=name, spec=spec))


def test_the_last_namespace_of_a_folder_applies_and_the_others_are_reported(tmp_path):
    (tmp_path / "jobs").mkdir()
    job = {**JOB, "metadata": {"name": "a"}}
    (tmp_path / "jobs/a.yaml").write_text(yaml.safe_dump(job))
    write_overlay(tmp_path, "base", "overlay", "{namespace: lower}")
    for file, namespace in (("c", "last"), ("a", "first"), ("b", "last")):
        write_overlay(tmp_path, "prod", file, f"{{extends: [base], namespace: {namespace}}}")

    assert yaml.safe_load(run_jobgen_text(tmp_path, "render", "-e", "prod").stdout)["metadata"]["namespace"] == "last"
    found = find_overridden(tmp_path)
    assert [(each["file"], each["line"], each["severity"]) for each in found] == [
        ("overlays/prod/a.yaml", 4, "warning")
    ]
    assert [each["file"] for each in found[0]["related"]] == ["overlays/prod/c.yaml"]

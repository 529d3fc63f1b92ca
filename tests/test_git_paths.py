"""Formats that forges read name files from the top of the Git repository."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from linting import lint_paths

import jobgen
from jobgen.model.data import Location
from jobgen.reports import Report

SPEC = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert, namespace: ml}
spec: {framework: pytorch, image: registry.example.com/bert:1.4.2, replcias: 3}
"""
TWIN = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


def write_repository(folder: Path) -> None:
    for path, text in {"jobgen.yaml": "", "jobs/bert.yaml": SPEC, "jobs/a.yaml": TWIN, "jobs/b.yaml": TWIN}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def list_files(folder: Path, format_: str) -> list[str]:
    """The files that a report names: first those of findings, then those that findings refer to."""
    text = lint_paths(folder, (), (), format_=format_).out
    if format_ == "github":
        return [*re.findall(r"file=([^,]*),", text), *re.findall(r"%0A([^:]*):", text)]
    if format_ == "gitlab":
        items = json.loads(text)
        notes = [found for item in items for found in re.findall(r"; (\S+\.yaml):", item["description"])]
        return [*(item["location"]["path"] for item in items), *notes]
    if format_ == "sarif":
        results = json.loads(text)["runs"][0]["results"]
        places = [place for key in ("locations", "relatedLocations") for one in results for place in one.get(key, ())]
        return [place["physicalLocation"]["artifactLocation"]["uri"] for place in places]
    return re.findall(r"(?m)^\s*(\S+\.yaml):", text)


@pytest.mark.parametrize("format_", ["concise", "github", "gitlab", "sarif"])
@pytest.mark.parametrize("place", ["", "ml/training"])
def test_files_of_a_repository_below_the_top_of_git(place, format_, tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    root = tmp_path / place
    write_repository(root)
    prefix = f"{place}/" if place and format_ != "concise" else ""
    expected = [f"{prefix}jobs/{name}.yaml" for name in ("b", "bert", "a")]
    assert sorted(list_files(root, format_)) == sorted(expected)
    assert sorted(list_files(root / "jobs", format_)) == sorted(expected)


@pytest.mark.parametrize("format_", ["github", "gitlab", "sarif"])
def test_files_outside_of_git_are_those_of_the_repository(format_, tmp_path):
    write_repository(tmp_path / "ml")
    assert set(list_files(tmp_path / "ml", format_)) == {f"jobs/{name}.yaml" for name in ("a", "b", "bert")}


def test_fingerprints_do_not_depend_on_the_folder(tmp_path):
    found = []
    for place in ("", "ml"):
        subprocess.run(["git", "init", "-q", tmp_path], check=True)
        write_repository(tmp_path / place)
        items = json.loads(jobgen.lint(tmp_path / place).to_text("gitlab"))
        found.append([item["fingerprint"] for item in items])
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("jobs/a.yaml", "ml/jobs/a.yaml"),
        ("./a.yaml", "ml/a.yaml"),
        ("../other/a.yaml", "other/a.yaml"),
        ("/tmp/a.yaml", "/tmp/a.yaml"),
        ("<stdin>", "<stdin>"),
        ("built-in:policies/a.yaml", "built-in:policies/a.yaml"),
    ],
)
def test_path_from_the_top(file, expected):
    assert Report((), prefix="ml").from_top(Location(file)).file == expected

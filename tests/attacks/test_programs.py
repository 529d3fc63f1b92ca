"""No program that is a file of the linted repository is started, wherever PATH finds it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from command import run_jobgen

from jobgen.engine.programs import find_here, find_outside, is_inside
from jobgen.kustomize.tree import find_tool

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the programs are scripts")
NAMES = ("git", "kustomize", "kubectl", "helm", "kubeconform", "pre-commit")


def write_programs(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name in NAMES:
        program = folder / name
        program.write_text(f"#!/bin/sh\ntouch {folder}/started-{name}\n")
        program.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        ["lint", "--no-cache"],
        ["lint", "--no-cache", "--second-opinion"],
        ["lint", "--since", "HEAD"],
        ["doctor"],
        ["diff", "HEAD"],
    ],
    ids=" ".join,
)
def test_programs_of_the_repository_are_not_started(tmp_path: Path, arguments: list[str]) -> None:
    root = tmp_path / "repository"
    programs = write_programs(root / "bin")
    (root / "web/templates").mkdir(parents=True)
    (root / "web/Chart.yaml").write_text("apiVersion: v2\nname: web\nversion: 0.1.0\n")
    (root / "map.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    # What jobgen does not build itself.
    (root / "kustomization.yaml").write_text("resources: [map.yaml]\nhelmCharts: [{name: web}]\n")
    git = shutil.which("git")
    assert git
    subprocess.run([git, "init", "-q", str(root)], check=True)
    path = os.pathsep.join((str(programs), str(Path(git).parent)))
    run_jobgen(root, *arguments, env={**os.environ, "PATH": path})

    assert [each.name for each in programs.iterdir() if each.name.startswith("started")] == []


def test_a_program_elsewhere_is_found_behind_one_of_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, outside = write_programs(tmp_path / "repository/bin"), write_programs(tmp_path / "bin")
    (tmp_path / "repository/.git").mkdir()
    (tmp_path / "link").symlink_to(inside)
    path = os.pathsep.join((".", str(inside), str(tmp_path / "link"), str(outside)))
    monkeypatch.setenv("PATH", path)
    monkeypatch.chdir(inside)

    assert find_here("kubectl") == str(outside / "kubectl")
    assert find_outside("kubectl", str(tmp_path / "repository"), str(inside)) == ""
    assert is_inside(str(tmp_path / "link/helm"), str(tmp_path / "repository"))
    assert find_tool(str(tmp_path / "repository")) is None
    monkeypatch.setenv("PATH", str(outside))
    tool = find_tool(str(tmp_path / "repository"))
    assert tool is not None
    assert tool.path == str(outside / "kustomize")

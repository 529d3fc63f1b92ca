"""Packaging: the wheel includes its data, hooks are valid, versions agree."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import jobgen

ROOT = Path(__file__).parent.parent
_MAX_WHEEL_BYTES = 8_000_000


def test_wheel_includes_schemas_and_policies_and_works_alone(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, ROOT],
        check=True,
        capture_output=True,
    )
    wheel = next(tmp_path.glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "installed")
    (tmp_path / "repository/jobs").mkdir(parents=True)
    (tmp_path / "repository/jobs/one.yaml").write_text(
        "apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata: {name: one}\nspec: {framework: jax, image: a:1}\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "jobgen", "render"],
        cwd=tmp_path / "repository",
        env={"PYTHONPATH": str(tmp_path / "installed")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert "jobgen/data/schemas/kubeflow.org/pytorchjob_v1.yaml" in names
    assert "jobgen/data/schemas/kubernetes/core_v1.json" in names
    assert wheel.stat().st_size < _MAX_WHEEL_BYTES
    assert "jobgen/data/starter/pre-commit-config.yaml" in names
    assert "jobgen/data/time_zones.txt" in names
    assert any(name.startswith("jobgen/data/policies/") for name in names)
    assert done.returncode == 0, done.stderr
    assert "kind: JAXJob" in done.stdout


def test_pre_commit_config_is_valid():
    config = ROOT / ".pre-commit-config.yaml"
    subprocess.run([sys.executable, "-m", "pre_commit", "validate-config", config], check=True)

    assert set(re.findall(r"id: (\S+)", config.read_text())) == {
        "ruff-check",
        "ruff-format",
        "mypy",
        "jobgen-lint",
        "jobgen-policy-test",
    }


def test_changelog_has_the_version():
    assert f"## {jobgen.__version__} " in (ROOT / "CHANGELOG.md").read_text()


def test_every_dependency_is_imported_in_one_place():
    sources = {path.relative_to(ROOT / "jobgen"): path.read_text() for path in (ROOT / "jobgen").rglob("*.py")}
    importers = {
        library: {
            path.parts[0] if library == "click" else path.name
            for path, text in sources.items()
            if re.search(rf"^\s*(?:import|from) {library}\b", text, re.MULTILINE)
        }
        for library in ("click", "yaml")
    }

    assert importers == {"click": {"cli"}, "yaml": {"events.py"}}

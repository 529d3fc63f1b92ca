"""Packaging: hooks are valid, versions agree. What the wheel includes is tested in test_dist.py."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import jobgen

ROOT = Path(__file__).parent.parent


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
        for library in ("click", "ruamel", "yaml")
    }

    assert importers == {"click": {"cli", "features"}, "ruamel": {"commented.py"}, "yaml": {"events.py"}}

"""Packaging: hooks are valid, versions agree. What the wheel includes is tested in test_dist.py."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import jobgen

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import set_version  # noqa: E402 - a script, not a package

MOST_WORDS = 400
"""What one reads in two minutes."""
CHANGES = (ROOT / "CHANGELOG.md").read_text("utf-8")
RELEASES = re.findall(r"^## (\d+\.\d+\.\d+) \(\d{4}-\d\d-\d\d", CHANGES, re.MULTILINE)


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
    """Between two releases, the version is that of the next one with `.dev0`, and the changes are unreleased."""
    headings = re.findall(r"^## (.*)$", CHANGES, re.MULTILINE)
    version, is_development = jobgen.__version__.removesuffix(".dev0"), jobgen.__version__.endswith(".dev0")

    assert set_version.read_version() == jobgen.__version__
    assert headings[0] == ("Unreleased" if is_development else f"{version} {headings[0].partition(' ')[2]}")
    assert (version in RELEASES) != is_development
    assert len(headings) == len(RELEASES) + is_development


def test_every_file_that_names_a_release_names_the_last_one():
    named = set_version.find_named()

    assert {path: set(versions) for path, versions in named.items()} == {path: {RELEASES[0]} for path in named}


def test_no_other_file_names_a_release():
    listed = subprocess.run(
        ["git", "grep", "-lE", r"(rev: v|ref: v|jobgen@v|jobgen(-cmp)?:)[0-9]+\.[0-9]+\.[0-9]+"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split()
    others = {path for path in listed if not path.startswith(("tests/", "jobgen/data/", "schemas/"))}

    assert others <= {*set_version.NAMED, "tools/set_version.py"}


def test_a_release_has_notes_that_are_read_in_two_minutes():
    """The first section is short, and every heading of the release is one that it links."""
    release = re.split(r"^## ", CHANGES, flags=re.MULTILINE)[1]
    titles = re.findall(r"^### (.*)$", release, re.MULTILINE)
    short = release.partition("### In short\n")[2].partition("\n### ")[0]

    assert titles[:2] == ["In short", "What to do when you update"]
    assert len(short.split()) < MOST_WORDS
    anchors = {re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in titles}
    assert set(re.findall(r"\]\(#([^)]*)\)", short)) == anchors - {"in-short"}


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

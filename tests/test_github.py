"""GitHub: CI runs the README's test command on every supported Python and system, and issue forms are valid."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
GITHUB = ROOT / ".github"
FORMS = sorted(path for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
INPUTS = {"input", "textarea", "dropdown", "checkboxes"}


def read_workflow() -> dict:
    """Read the workflow as YAML 1.2, in which `on` is a string."""
    data = yaml.safe_load((GITHUB / "workflows/ci.yml").read_text("utf-8"))
    return {"on" if key is True else key: value for key, value in data.items()}


@pytest.fixture(scope="module")
def workflow() -> dict:
    return read_workflow()


@pytest.fixture(scope="module")
def job(workflow) -> dict:
    return workflow["jobs"]["test"]


def test_ci_covers_every_supported_python(job):
    versions = job["strategy"]["matrix"]["python"]
    listed = [re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", each) for each in PROJECT["classifiers"]]

    assert versions == ["3.11", "3.12", "3.13", "3.14"]
    assert versions == [match[1] for match in listed if match]
    assert PROJECT["requires-python"] == f">={versions[0]}"


def test_ci_covers_linux_and_macos_and_uses_the_matrix(job):
    [setup] = [step for step in job["steps"] if step.get("uses", "").startswith("actions/setup-python@")]

    assert job["strategy"]["matrix"]["system"] == ["ubuntu-latest", "macos-latest"]
    assert job["runs-on"] == "${{ matrix.system }}"
    assert setup["with"]["python-version"] == "${{ matrix.python }}"


def test_ci_runs_the_test_command_of_the_readme(job):
    fences = re.findall(r"^```\w*\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    commands = [line.partition("#")[0].strip() for fence in fences for line in fence.splitlines()]
    command = "make test"

    assert command in commands
    assert [step["run"] for step in job["steps"] if "run" in step] == [command]
    assert command in (ROOT / ".ci/run").read_text("utf-8").splitlines()


def test_a_run_goes_on_if_nothing_can_be_installed(tmp_path):
    """Tests that need another program are skipped without it; a failing package manager must not end the run."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "dirname", "env", "id", "timeout"):
        (tools / name).symlink_to(shutil.which(name))
    for name, script in {"apt-get": "exit 100", "sudo": "exit 1", "npm": "exit 1", "make": 'echo "make $@"'}.items():
        (tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (tools / name).chmod(0o755)
    done = subprocess.run(
        [ROOT / ".ci/run"], env={"PATH": str(tools)}, capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stdout) == (0, "make test\n")
    assert done.stderr.splitlines() == [
        "chromium could not be installed; the tests of the HTML page are skipped",
        "neovim could not be installed; the tests with Neovim are skipped",
        "zsh could not be installed; the tests of its completion are skipped",
        "fish could not be installed; the tests of its completion are skipped",
        "npm ci has failed; the tests of the VS Code extension are skipped",
    ]


def test_ci_runs_for_pull_requests_and_main_with_least_permissions(workflow):
    assert workflow["on"]["push"] == {"branches": ["main"]}
    assert "pull_request" in workflow["on"]
    assert "pull_request_target" not in workflow["on"]
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["group"] == "ci-${{ github.ref }}"


def test_actions_are_pinned_to_a_version(job):
    """By its digest; test_ci.py compares digests with the versions in comments."""
    uses = [step["uses"] for step in job["steps"] if "uses" in step]

    assert uses
    assert [each for each in uses if not re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", each)] == []


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_an_issue_form_is_valid(path):
    form = yaml.safe_load(path.read_text("utf-8"))
    fields = form["body"]

    assert form.keys() == {"name", "description", "title", "labels", "body"}
    assert {field["type"] for field in fields} <= INPUTS
    assert len({field["id"] for field in fields}) == len(fields)
    assert all(field["attributes"]["label"] for field in fields)
    assert all(field["attributes"]["options"] for field in fields if field["type"] == "dropdown")
    assert any(field.get("validations", {}).get("required") for field in fields)


def test_there_are_forms_for_bugs_and_features():
    assert {path.stem for path in FORMS} == {"crash", "false-positive", "feature", "missed-fault"}
    assert (GITHUB / "PULL_REQUEST_TEMPLATE.md").read_text("utf-8").count("- [ ]") >= 3


def test_the_project_names_its_pages():
    pages = PROJECT["urls"]

    assert pages.keys() == {"Homepage", "Documentation", "Source", "Issues", "Changelog"}
    assert all(url.startswith(pages["Homepage"]) for url in pages.values())


def test_site_is_built_by_make_and_published_from_main_only():
    docs = yaml.safe_load((GITHUB / "workflows/docs.yaml").read_text("utf-8"))
    build, deploy = docs["jobs"]["build"], docs["jobs"]["deploy"]
    commands = [step["run"] for step in build["steps"] if "run" in step]
    [upload] = [step for step in build["steps"] if step.get("uses", "").startswith("actions/upload-pages-artifact@")]
    settings = (ROOT / "mkdocs.yml").read_text("utf-8")

    assert commands == ["make docs", "git diff --exit-code -- docs"]
    assert f"site_dir: {upload['with']['path']}\n" in settings
    assert "strict: true\n" in settings
    assert docs["permissions"] == {"contents": "read"}
    assert deploy["permissions"] == {"pages": "write", "id-token": "write"}
    assert deploy["needs"] == "build"
    main_only = "github.event_name != 'pull_request' && github.ref == 'refs/heads/main'"
    assert (upload["if"], deploy["if"]) == (main_only, main_only)


@pytest.mark.parametrize("path", sorted((GITHUB / "workflows").glob("*.y*ml")), ids=lambda path: path.name)
def test_actions_have_versions_and_jobs_have_time_limits(path):
    jobs = yaml.safe_load(path.read_text("utf-8"))["jobs"]
    used = [step["uses"] for job in jobs.values() for step in job["steps"] if "uses" in step]

    assert [name for name in used if name != "./" and not re.search(r"@(v\d+|release/v\d+|[0-9a-f]{40})$", name)] == []
    assert [name for name, job in jobs.items() if "timeout-minutes" not in job] == []

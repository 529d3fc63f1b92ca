"""CI: the documented script is run, the action's steps are run, and templates are what their platforms read."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from gitrepository import Repository

from jobgen.yamlio.read import read

ROOT = Path(__file__).parent.parent
ACTION = read((ROOT / "action.yml").read_bytes(), "action.yml").documents[0].data
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
RECIPE = re.search(r"^```sh\n(.*?)^```$", (ROOT / "docs/ci.md").read_text(), re.MULTILINE | re.DOTALL)[1]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository as `init` makes it, with a committed tree, and a branch with a change."""
    subprocess.run([sys.executable, "-m", "jobgen", "init", tmp_path / "new"], check=True, capture_output=True)
    made = Repository(tmp_path / "new", tmp_path / "home")
    made.run("jobgen", "render", "-o", "rendered")
    assert made.commit().returncode == 0
    made.run("git", "switch", "--quiet", "--create", "change")
    change(made, "gpu: 1", "gpu: 2")
    return made


def change(repository: Repository, old: str, new: str) -> None:
    job = repository.folder / "jobs/pytorch.yaml"
    job.write_text(job.read_text().replace(old, new))
    repository.run("jobgen", "render", "-o", "rendered")
    assert repository.commit().returncode == 0


def script(repository: Repository) -> subprocess.CompletedProcess[str]:
    path = repository.folder.parent / "check.sh"
    path.write_text(RECIPE)
    return repository.run("sh", str(path), "main")


def test_documented_script_passes_for_a_valid_repository(repository: Repository) -> None:
    done = script(repository)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "pytorch-example" in (repository.folder / "jobgen-diff.md").read_text()


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("jobs/pytorch.yaml", "gpu: 2", "gpu: 500m", "fractional-device"),
        ("jobs/pytorch.yaml", "1.0.0", "1.0.1", "out of date"),
        ("policies/tests/team-label/cases.yaml", "# expect:", "# wanted:", "FAILED"),
    ],
)
def test_documented_script_fails_for_an_invalid_repository(
    repository: Repository, file: str, old: str, new: str, said: str
) -> None:
    path = repository.folder / file
    path.write_text(path.read_text().replace(old, new))
    done = script(repository)

    assert done.returncode == 1
    assert said in done.stdout + done.stderr


def step(repository: Repository, name: str, **inputs: str) -> tuple[int, str, dict[str, str]]:
    """One step of the action, with the variables that GitHub sets: exit code, log, outputs."""
    temporary = repository.folder.parent / "runner"
    (temporary / "jobgen").mkdir(parents=True, exist_ok=True)
    if not (temporary / "jobgen/bin").exists():
        (temporary / "jobgen/bin").symlink_to(Path(sys.executable).parent)
    out, summary = temporary / f"output-{name}", temporary / "summary"
    out.touch()
    environ = {
        "RUNNER_TEMP": str(temporary),
        "GITHUB_OUTPUT": str(out),
        "GITHUB_STEP_SUMMARY": str(summary),
        "GITHUB_ACTIONS": "true",
        "FAIL_ON": ACTION["inputs"]["fail-on"]["default"],
        **inputs,
    }
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", STEPS[name]["run"]],
        cwd=repository.folder,
        env={**repository.environ, **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    outputs = dict(line.split("=", 1) for line in out.read_text().splitlines())
    return done.returncode, done.stdout + done.stderr, outputs


def test_action_steps_pass_for_a_valid_change(repository: Repository) -> None:
    code, log, outputs = step(repository, "Lint", DIRECTORY=".")
    assert code == 0, log
    assert json.loads(Path(outputs["sarif"]).read_text())["version"] == "2.1.0"

    for name in ("Policies", "Rendered tree"):
        assert step(repository, name, DIRECTORY=".")[0] == 0
    code, log, outputs = step(repository, "What the change does", DIRECTORY=".", BASE="main")
    assert code == 0, log
    assert "pytorch-example" in Path(outputs["comment"]).read_text()
    assert "pytorch-example" in (repository.folder.parent / "runner/summary").read_text()
    assert step(repository, "What the change does", DIRECTORY=".", BASE="")[0] == 0


def test_action_steps_fail_for_an_invalid_change_with_annotations_and_sarif(repository: Repository) -> None:
    path = repository.folder / "jobs/pytorch.yaml"
    path.write_text(path.read_text().replace("gpu: 2", "gpu: 500m"))
    code, log, outputs = step(repository, "Lint", DIRECTORY=".")
    results = json.loads(Path(outputs["sarif"]).read_text())["runs"][0]["results"]

    assert code == 1
    assert "::error file=jobs/pytorch.yaml,line=12" in log
    assert results[0]["ruleId"] == "fractional-device"
    assert step(repository, "Rendered tree", DIRECTORY=".")[0] == 1


def test_action_fails_for_warnings_on_request(repository: Repository) -> None:
    path = repository.folder / "jobs/pytorch.yaml"
    path.write_text(re.sub(r"(image: \S+):\S+", r"\1:latest", path.read_text()))

    assert step(repository, "Lint", DIRECTORY=".")[0] == 0
    assert step(repository, "Lint", DIRECTORY=".", FAIL_ON="warning")[0] == 1


def test_action_inputs_are_not_interpolated_into_scripts(repository: Repository) -> None:
    step(repository, "What the change does", DIRECTORY=".", BASE='$(touch pwned)"; touch pwned; "')

    assert not any("${{" in each["run"] for each in STEPS.values())
    assert not (repository.folder / "pwned").exists()


def test_action_file_matches_the_github_format() -> None:
    assert ACTION["runs"]["using"] == "composite"
    assert all(each["shell"] == "bash" for each in STEPS.values())
    assert all("description" in each for each in (*ACTION["inputs"].values(), *ACTION["outputs"].values()))
    assert all(
        re.fullmatch(r"\$\{\{ steps\.(lint|diff)\.outputs\.\w+ \}\}", each["value"])
        for each in ACTION["outputs"].values()
    )


def test_gitlab_template_script(repository: Repository) -> None:
    template = read((ROOT / "ci/gitlab.yml").read_bytes(), "gitlab.yml").documents[0].data["jobgen"]
    lines, variables = template["script"], template["variables"]
    base = repository.run("git", "rev-parse", "main").stdout.strip()
    command = [
        "env",
        f"CI_MERGE_REQUEST_DIFF_BASE_SHA={base}",
        f"JOBGEN_FAIL_ON={variables['JOBGEN_FAIL_ON']}",
        "bash",
        "-e",
        "-c",
        "\n".join(lines),
    ]
    good = repository.run(*command)
    path = repository.folder / "jobs/pytorch.yaml"
    path.write_text(path.read_text().replace("gpu: 2", "gpu: 500m"))
    bad = repository.run(*command)

    assert good.returncode == 0, good.stdout + good.stderr
    assert bad.returncode == 1
    assert json.loads((repository.folder / "gl-code-quality-report.json").read_text())[0]["location"] == {
        "path": "jobs/pytorch.yaml",
        "lines": {"begin": 12},
    }
    assert os.path.getsize(repository.folder / "jobgen-diff.md")

"""The README: its job has the finding that it shows, its commands work, and its numbers are those of their sources."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest
import yaml
from command import run_jobgen_text

import jobgen

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
INSTALL = (ROOT / "docs/install.md").read_text("utf-8")
PERFORMANCE = (ROOT / "docs/performance.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def find_block(start: str) -> str:
    """Return the block that starts with a text."""
    return next(text for _, text in BLOCKS if text.startswith(start))


def test_the_job_has_the_finding_that_is_shown(tmp_path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobgen.yaml").touch()
    (tmp_path / "jobs/bert.yaml").write_text(find_block("# jobs/bert.yaml\n"))
    done = run_jobgen_text(tmp_path, "lint")
    command, _, finding = find_block("$ jobgen lint\n").partition("\n")

    assert (command, done.returncode) == ("$ jobgen lint", 1)
    assert done.stdout.startswith(finding)
    assert done.stdout.count(": error: ") == 1


def test_the_first_four_commands_work(tmp_path):
    lines = [re.sub(r" *# .*", "", line) for line in find_block("jobgen init ").splitlines()]
    first, *others = lines
    init, _, change = first.partition(" && ")
    folder = tmp_path / change.removeprefix("cd ")

    assert len(lines) == 4
    assert run_jobgen_text(tmp_path, *shlex.split(init)[1:]).returncode == 0
    for line in others:
        done = run_jobgen_text(folder, *shlex.split(line)[1:])
        # Nothing is committed in the new folder, so there is nothing to compare with.
        assert done.returncode == (2 if line == "jobgen diff HEAD" else 0), done.stderr


def test_the_start_is_one_screen():
    start = README[README.index("## Start") : README.index("![The page")]

    assert start.count("\n") < 40


@pytest.mark.parametrize("page", [README, INSTALL], ids=["README.md", "install.md"])
def test_the_hook_is_one_of_this_version(page):
    text = re.search(r"^```yaml\n(repos:\n.*?)^```$", page, re.MULTILINE | re.DOTALL)[1]
    (repo,) = yaml.safe_load(text)["repos"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    known = {hook["id"] for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))}

    assert repo["repo"] == project["urls"]["Source"]
    # Between releases, the last one is named.
    assert repo["rev"] == f"v{jobgen.__version__}" or ".dev" in jobgen.__version__
    assert {hook["id"] for hook in repo["hooks"]} <= known


def test_times_are_those_that_were_measured():
    speed = next(line for line in README.splitlines() if line.startswith("**Speed:**"))
    times = re.findall(r"[\d.]+ m?s\b", speed)

    assert len(times) == 2
    assert [time for time in times if f"| {time} |" not in PERFORMANCE] == []


def test_every_extra_for_users_is_described():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    described = re.findall(r"^\| `([\w-]+)` \| \[`jobgen ", INSTALL, re.MULTILINE)

    assert sorted(described) == sorted(extras.keys() - {"dev", "docs", "release"})

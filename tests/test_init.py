"""`jobgen init`: the new repository works at once, and existing files are kept."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command import run_jobgen_text
from findings import without_infos
from gitrepository import Repository
from sampling import sample

from jobgen.repo.layout import list_starter_frameworks
from jobgen.yamlio.read import read

REFUSED = (
    "jobgen: nothing was written, because files exist; move them, or overwrite them with --force; to add a job, run "
    "`jobgen new NAME --framework FRAMEWORK`\n"
)


def jobgen(cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run_jobgen_text(cwd, *words)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def asked(*frameworks: str) -> list[str]:
    return [word for name in frameworks for word in ("--framework", name)]


FRAMEWORKS = list_starter_frameworks()
TOGETHER = [name for name in FRAMEWORKS if name != "mxnet"]


@pytest.mark.parametrize("frameworks", [*([name] for name in FRAMEWORKS), TOGETHER], ids="+".join)
def test_new_repository_has_no_findings(tmp_path: Path, frameworks: list[str]) -> None:
    assert jobgen(tmp_path, "init", "new", *asked(*frameworks)).returncode == 0
    linted = jobgen(tmp_path / "new", "lint", "--format", "json")
    rendered = jobgen(tmp_path / "new", "render", "-o", "rendered")

    assert linted.returncode == 0, linted.stderr
    report = json.loads(linted.stdout)
    assert without_infos(report["findings"]) == []
    assert report["summary"]["suppressed"] <= 2
    # A deepspeed job has a Service beside it.
    count = 2 * (len(frameworks) + frameworks.count("deepspeed"))
    assert rendered.stderr.startswith(f"{count} objects: {count} written")


def test_policies_and_hooks_of_a_new_repository(tmp_path: Path) -> None:
    jobgen(tmp_path, "init")
    hooks = subprocess.run(
        [sys.executable, "-m", "pre_commit", "validate-config", ".pre-commit-config.yaml"], cwd=tmp_path, check=False
    )

    assert jobgen(tmp_path, "policy", "test").returncode == 0
    assert hooks.returncode == 0


def test_default_framework_is_pytorch(tmp_path: Path) -> None:
    jobgen(tmp_path, "init")

    assert [path.name for path in (tmp_path / "jobs").iterdir()] == ["pytorch.yaml"]


@pytest.mark.parametrize(("ci", "file"), [("github", ".github/workflows/jobgen.yaml"), ("gitlab", ".gitlab-ci.yml")])
def test_ci_files_match_the_host(tmp_path: Path, ci: str, file: str) -> None:
    jobgen(tmp_path, "init", "--ci", ci)

    assert (tmp_path / file).is_file()
    assert "VERSION" not in (tmp_path / file).read_text()


def test_existing_files_are_listed_and_kept(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine\n")
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/pytorch.yaml").write_text("mine: too\n")
    before = contents(tmp_path)
    refused = jobgen(tmp_path, "init")

    assert (refused.returncode, refused.stdout, refused.stderr) == (
        1,
        "",
        f"{REFUSED}README.md: exists\njobs/pytorch.yaml: exists\n",
    )
    assert contents(tmp_path) == before
    assert jobgen(tmp_path, "init", "--force").returncode == 0
    assert jobgen(tmp_path, "lint").returncode == 0


def test_symlinks_are_not_followed_even_with_force(tmp_path: Path) -> None:
    new, outside = tmp_path / "new", tmp_path / "outside"
    new.mkdir()
    outside.mkdir()
    (outside / "precious").write_text("mine\n")
    (new / "README.md").symlink_to(outside / "precious")
    (new / "jobs").symlink_to(outside)
    refused = jobgen(tmp_path, "init", "new", "--force")

    assert refused.returncode == 1
    assert "new/README.md: is not a file\n" in refused.stderr
    assert "new/jobs: is not a folder\n" in refused.stderr
    assert contents(outside) == {"precious": b"mine\n"}


def test_init_twice_changes_nothing_and_adds_another_framework(tmp_path: Path) -> None:
    jobgen(tmp_path, "init")
    before = contents(tmp_path)
    again = jobgen(tmp_path, "init")
    more = jobgen(tmp_path, "init", *asked("mpi"))

    assert (again.returncode, again.stderr.splitlines()[-1]) == (
        0,
        "0 files; next: `jobgen lint`, `git init`, `pre-commit install`",
    )
    assert more.stderr.startswith("jobs/mpi.yaml written\n1 file;")
    assert contents(tmp_path) == {**before, "jobs/mpi.yaml": (tmp_path / "jobs/mpi.yaml").read_bytes()}


def test_frameworks_without_a_common_operator_are_a_usage_error(tmp_path: Path) -> None:
    refused = jobgen(tmp_path, "init", *asked("jax", "mxnet"))

    assert (refused.returncode, list(tmp_path.iterdir())) == (2, [])


def test_hooks_refuse_an_invalid_job(tmp_path: Path) -> None:
    jobgen(tmp_path, "init", "new")
    repository = Repository(tmp_path / "new", tmp_path / "home")
    assert repository.run("pre-commit", "install").returncode == 0
    first = repository.commit()
    assert first.returncode == 0, first.stdout + first.stderr

    good = (tmp_path / "new/jobs/pytorch.yaml").read_text()
    bad = good.replace("pytorch-example", "second").replace("gpu: 1", "gpu: 500m")
    line = next(number for number, text in enumerate(bad.splitlines(), 1) if "gpu: 500m" in text)
    (tmp_path / "new/jobs/bad.yaml").write_text(bad)
    refused = repository.commit()

    assert refused.returncode == 1
    assert f"jobs/bad.yaml:{line}:" in refused.stderr
    assert "[fractional-device]" in refused.stderr
    assert repository.run("git", "log", "--oneline").stdout.count("\n") == 1


@pytest.mark.stress
@pytest.mark.parametrize("folder", sample(["teams/a b", "ml", "x: y"], 3))
def test_hooks_of_a_subfolder_work_at_the_top_of_git(tmp_path: Path, folder: str) -> None:
    top = tmp_path / "mono"
    top.mkdir()
    repository = Repository(top, tmp_path / "home")
    done = jobgen(top, "init", folder)
    workflow, hooks = done.stdout.split("---\n")
    assert not [path for path in top.rglob("*") if path.name in (".pre-commit-config.yaml", ".github")]
    assert f"{folder} is not the top of the Git repository" in done.stderr
    assert "next: `jobgen lint`, add the hooks, `pre-commit install`" in done.stderr

    (top / ".pre-commit-config.yaml").write_text(hooks)
    assert repository.run("pre-commit", "install").returncode == 0
    first = repository.commit()
    assert first.returncode == 0, first.stdout + first.stderr
    assert f"jobgen lint in {folder}" in first.stdout + first.stderr
    (top / "README.md").write_text("other\n")
    other = repository.commit()
    assert (other.returncode, "no files to check" in other.stderr) == (0, True), other
    job = top / folder / "jobs/pytorch.yaml"
    job.write_text(job.read_text().replace("gpu: 1", "gpu: 500m"))
    refused = repository.commit()
    assert (refused.returncode, "[fractional-device]" in refused.stderr) == (1, True)

    settings = read(workflow.replace("\non:", "\ntriggers:").encode(), "workflow").documents[0].data
    assert settings["jobs"]["lint"]["defaults"]["run"]["working-directory"] == folder
    assert settings["triggers"]["push"]["paths"] == settings["triggers"]["pull_request"]["paths"] == [f"{folder}/**"]
    assert settings["jobs"]["lint"]["steps"][-1]["with"]["path"] == f"{folder}/jobgen-change.html"


def test_pipeline_of_a_subfolder_runs_in_it(tmp_path: Path) -> None:
    Repository(tmp_path, tmp_path / "home")
    pipeline, _ = jobgen(tmp_path, "init", "a b", "--ci", "gitlab").stdout.split("---\n")
    [job] = read(pipeline.encode(), "pipeline").documents[0].data.values()

    assert job["script"][0] == "cd 'a b'"
    assert job["artifacts"]["paths"] == ["a b/jobgen-change.html"]
    assert job["artifacts"]["reports"] == {"codequality": "a b/gl-code-quality-report.json"}
    assert [rule["changes"] for rule in job["rules"]] == [["a b/**/*"]] * 2

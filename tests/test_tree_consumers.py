"""The rendered tree for its consumers: kustomize builds it, Git treats it as generated, mass deletion is refused."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import kubectl
import pytest
from command import run_jobgen_text

import jobgen
from jobgen.api.render import count_lost
from jobgen.repo.rendered_tree import Drift
from jobgen.yamlio.read import read

ROOT = Path(__file__).parent.parent
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}}}
spec:
  framework: pytorch
  image: registry.example.com/train:{tag}
"""
REFUSED = "jobgen: nothing was written\n"
OVERLAY = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {namespace: ml}\n"


def render(repo: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run_jobgen_text(repo, "render", *words)


def add(repo: Path, *names: str, tag: str = "1.0") -> None:
    for name in names:
        (repo / f"jobs/{name}.yaml").write_text(JOB.format(name=name, tag=tag))


def drop(repo: Path, *names: str) -> None:
    for name in names:
        (repo / f"jobs/{name}.yaml").unlink()


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def objects(text: str) -> list[object]:
    return [document.data for document in read(text.encode(), "").documents]


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Eight jobs in one environment, and their tree."""
    root = tmp_path / "repo"
    (root / "jobs").mkdir(parents=True)
    (root / "overlays/prod").mkdir(parents=True)
    (root / "overlays/prod/overlay.yaml").write_text(OVERLAY)
    (root / "jobgen.yaml").touch()
    add(root, *"abcdefgh")
    assert render(root, "-o", "rendered").returncode == 0
    return root


@pytest.mark.parametrize("env", ["dev", "prod", "t9k"])
@pytest.mark.parametrize("format_", ["yaml", "json"])
def test_kustomize_returns_exactly_the_rendered_objects(tmp_path: Path, env: str, format_: str) -> None:
    stream = render(ROOT, "-e", env)
    assert render(ROOT, "-e", env, "-o", str(tmp_path), "--format", format_).returncode == 0
    built = kubectl.run(["kustomize", str(tmp_path / env)])

    assert built.returncode == 0, built.stderr.decode()
    assert objects(built.stdout.decode()) == objects(stream.stdout)


def test_ambiguous_yaml_texts_survive_kustomize(repo: Path) -> None:
    odd = ["no", "1e3", "0o17", "2026-01-02", "~", "", " x", "a: b", "# c", "line\nline\n", "\t", "é", "1_000", "0x1F"]
    job = JOB.format(name="odd", tag="1") + f"  args: {json.dumps(odd)}\n"
    (repo / "jobs/odd.yaml").write_text(job)
    stream = render(repo)
    render(repo, "-o", "rendered")
    built = kubectl.run(["kustomize", str(repo / "rendered/prod")])

    assert objects(built.stdout.decode()) == objects(stream.stdout)


def test_lock_records_the_inputs_of_the_tree(repo: Path) -> None:
    lock = json.loads((repo / "rendered/prod/jobgen.lock.json").read_text())

    assert lock["tool"] == jobgen.__version__
    assert len(lock["layers"]) == 64
    assert list(lock["jobs"]) == [f"ml/pytorchjob-{name}.yaml" for name in "abcdefgh"]
    assert set(lock["files"]) == {*lock["jobs"], "kustomization.yaml", ".gitattributes"}


def test_edited_job_changes_its_file_and_the_lock_only(repo: Path) -> None:
    before = contents(repo / "rendered")
    add(repo, "c", tag="1.1")
    render(repo, "-o", "rendered")
    after = contents(repo / "rendered")

    assert {path for path in after if after[path] != before.get(path)} == {
        "prod/jobgen.lock.json",
        "prod/ml/pytorchjob-c.yaml",
    }


def test_comments_and_unrelated_files_change_nothing(repo: Path) -> None:
    before = contents(repo / "rendered")
    text = (repo / "jobs/c.yaml").read_text()
    drop(repo, "c")
    (repo / "jobs/other.yaml").write_text("# moved\n" + text)
    overlay = repo / "overlays/prod/overlay.yaml"
    overlay.write_text("# noted\n" + overlay.read_text())

    assert render(repo, "-o", "rendered", "--check").returncode == 0
    render(repo, "-o", "rendered")
    assert contents(repo / "rendered") == before


def test_moved_job_changes_its_path_annotation_only(repo: Path) -> None:
    overlay = repo / "overlays/prod/overlay.yaml"
    overlay.write_text(OVERLAY.replace("spec: {", "spec: {cluster: {gitops: flux}, "))
    render(repo, "-o", "rendered")
    before = contents(repo / "rendered")
    (repo / "jobs/nlp").mkdir()
    (repo / "jobs/c.yaml").rename(repo / "jobs/nlp/c.yaml")
    checked = render(repo, "-o", "rendered", "--check")
    render(repo, "-o", "rendered")
    after = contents(repo / "rendered")

    assert (checked.returncode, checked.stderr.splitlines()[:4]) == (
        1,
        [
            "rendered/prod/ml/pytorchjob-c.yaml: out of date",
            "    @@ -8 +8 @@",
            "    -    jobgen.dev/source: jobs/c.yaml",
            "    +    jobgen.dev/source: jobs/nlp/c.yaml",
        ],
    )
    # The lock has the digest of that file; of the job it has the same as before.
    assert {path for path in after if after[path] != before[path]} == {
        "prod/ml/pytorchjob-c.yaml",
        "prod/jobgen.lock.json",
    }
    jobs = [json.loads(tree["prod/jobgen.lock.json"])["jobs"] for tree in (before, after)]
    assert jobs[0] == jobs[1]
    moved = before["prod/ml/pytorchjob-c.yaml"].replace(b": jobs/c.yaml\n", b": jobs/nlp/c.yaml\n")
    assert after["prod/ml/pytorchjob-c.yaml"] == moved


def test_equal_tree_of_another_version_passes_the_check(repo: Path) -> None:
    lock = repo / "rendered/prod/jobgen.lock.json"
    written = lock.read_text()
    lock.write_text(written.replace(f'"tool": "{jobgen.__version__}"', '"tool": "0.0.1"'))
    checked = render(repo, "-o", "rendered", "--check")

    assert (checked.returncode, checked.stderr) == (
        0,
        f"the tree was written by jobgen 0.0.1; {jobgen.__version__} renders the same\n8 objects, all up to date\n",
    )
    render(repo, "-o", "rendered")
    assert lock.read_text() == written


def test_tree_of_the_first_version_is_adopted(repo: Path) -> None:
    lock = repo / "rendered/prod/jobgen.lock.json"
    files = {path: digest for path, digest in json.loads(lock.read_text())["files"].items() if "/" in path}
    expected = contents(repo / "rendered")
    lock.write_text(json.dumps({"version": 1, "files": files}))
    (repo / "rendered/prod/kustomization.yaml").unlink()
    (repo / "rendered/prod/.gitattributes").unlink()

    assert render(repo, "-o", "rendered").returncode == 0
    assert contents(repo / "rendered") == expected


def test_unmanaged_kustomization_is_not_overwritten(repo: Path) -> None:
    shutil.rmtree(repo / "rendered")
    (repo / "rendered/prod").mkdir(parents=True)
    (repo / "rendered/prod/kustomization.yaml").write_text("resources: []\n")
    done = render(repo, "-o", "rendered")

    assert done.returncode == 1
    assert "rendered/prod/kustomization.yaml: was not written by jobgen; move it" in done.stderr
    assert contents(repo / "rendered") == {"prod/kustomization.yaml": b"resources: []\n"}


def test_git_attributes_mark_the_tree_as_generated(repo: Path) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=repo, check=True)
    paths = ["rendered/prod/ml/pytorchjob-a.yaml", "rendered/prod/jobgen.lock.json", "jobs/a.yaml"]
    asked = subprocess.run(
        ["git", "check-attr", "eol", "linguist-generated", "--", *paths],
        cwd=repo,
        capture_output=True,
        text=True,
        check=True,
    )

    assert asked.stdout.splitlines() == [
        f"{paths[0]}: eol: lf",
        f"{paths[0]}: linguist-generated: set",
        f"{paths[1]}: eol: lf",
        f"{paths[1]}: linguist-generated: set",
        f"{paths[2]}: eol: unspecified",
        f"{paths[2]}: linguist-generated: unspecified",
    ]


def test_line_ends_of_a_checkout_do_not_outdate_the_tree(repo: Path, tmp_path: Path) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "core.autocrlf=true"]
    subprocess.run(["git", "init", "--quiet"], cwd=repo, check=True)
    subprocess.run([*git, "add", "."], cwd=repo, check=True, capture_output=True)
    subprocess.run([*git, "commit", "--quiet", "-m", "all"], cwd=repo, check=True)
    subprocess.run([*git, "clone", "--quiet", repo, tmp_path / "clone"], check=True)

    assert b"\r\n" in (tmp_path / "clone/jobs/a.yaml").read_bytes()
    assert render(tmp_path / "clone", "-o", "rendered", "--check").returncode == 0


def test_deleting_more_than_half_needs_confirmation(repo: Path) -> None:
    drop(repo, *"abcd")
    assert render(repo, "-o", "rendered").stderr == "4 objects: 0 written, 4 unchanged, 4 removed\n"

    add(repo, *"abcd")
    render(repo, "-o", "rendered")
    drop(repo, *"abcde")
    before = contents(repo / "rendered")
    refused = render(repo, "-o", "rendered")

    assert (refused.returncode, refused.stderr) == (
        1,
        f"rendered/prod: 5 of 8 files would be deleted; allow it with --allow-mass-delete\n{REFUSED}",
    )
    assert contents(repo / "rendered") == before
    assert render(repo, "-o", "rendered", "--allow-mass-delete").returncode == 0
    assert sorted(path.name for path in (repo / "rendered/prod/ml").iterdir()) == [
        f"pytorchjob-{name}.yaml" for name in "fgh"
    ]


def test_renaming_everything_needs_confirmation(repo: Path) -> None:
    for name in "abcdefgh":
        os.replace(repo / f"jobs/{name}.yaml", repo / f"jobs/{name}2.yaml")
        (repo / f"jobs/{name}2.yaml").write_text(JOB.format(name=f"{name}2", tag="1.0"))

    assert render(repo, "-o", "rendered").returncode == 1
    assert render(repo, "-o", "rendered", "--allow-mass-delete").returncode == 0


@pytest.mark.parametrize(
    ("stale", "missing", "lost"),
    [
        (("ml/job-a-11111111.yaml", "ml/job-b.yaml"), (), 2),
        (("ml/job-a-11111111.yaml",), ("ml/job-a-22222222.yaml",), 0),
        (("ml/job-a-11111111.yaml", "ml/service-a-11111111.yaml"), ("ml/job-a-22222222.yaml",), 1),
        (("ml/job-a-11111111.yaml", "ml/job-a-22222222.yaml"), ("ml/job-a-33333333.yaml",), 1),
        (("ml/job-a.yaml",), ("ml/job-b.yaml",), 1),
        (("ml/job-a-11111111.yaml",), ("other/job-a-22222222.yaml",), 1),
        (("kustomization.yaml",), (), 0),
    ],
)
def test_another_run_of_a_job_is_no_loss(stale: tuple[str, ...], missing: tuple[str, ...], lost: int) -> None:
    assert count_lost(Drift(missing=missing, stale=stale)) == lost


def test_small_trees_may_be_renamed_without_confirmation(repo: Path) -> None:
    drop(repo, *"abcde")
    render(repo, "-o", "rendered", "--allow-mass-delete")
    drop(repo, *"fgh")
    add(repo, *"uvw")

    assert render(repo, "-o", "rendered").stderr == "3 objects: 3 written, 0 unchanged, 3 removed\n"


def test_emptying_an_environment_needs_confirmation(repo: Path) -> None:
    shutil.copytree(repo / "overlays/prod", repo / "overlays/qa")
    render(repo, "-o", "rendered")
    (repo / "overlays/qa/overlay.yaml").write_text(OVERLAY.replace("spec: {", "spec: {jobs: {names: [none]}, "))
    before = contents(repo / "rendered")
    refused = render(repo, "-o", "rendered")

    warning, rest = refused.stderr.split("\n", 1)

    assert refused.returncode == 1
    assert warning.endswith("[empty-environment]")
    assert rest == f"rendered/qa: all 8 files would be deleted; allow it with --allow-empty\n{REFUSED}"
    assert contents(repo / "rendered") == before
    assert render(repo, "-o", "rendered", "--allow-empty").returncode == 0
    assert [path.name for path in (repo / "rendered").iterdir()] == ["prod"]


def test_repository_without_jobs_needs_confirmation(repo: Path) -> None:
    drop(repo, *"abcdefgh")

    assert render(repo).returncode == 3
    assert render(repo, "-o", "rendered").returncode == 3
    emptied = render(repo, "--allow-empty")
    assert (emptied.returncode, emptied.stdout) == (0, "")
    assert render(repo, "-o", "rendered", "--allow-empty").returncode == 0
    assert list((repo / "rendered").iterdir()) == []


def test_check_shows_the_first_lines_of_outdated_files(repo: Path) -> None:
    add(repo, "c", tag="1.1")
    checked = render(repo, "-o", "rendered", "--check")

    assert checked.returncode == 1
    assert checked.stderr.splitlines() == [
        "rendered/prod/ml/pytorchjob-c.yaml: out of date",
        "    @@ -15 +15 @@",
        "    -            image: registry.example.com/train:1.0",
        "    +            image: registry.example.com/train:1.1",
        "jobgen: the tree is not up to date; run `jobgen render -o rendered`",
    ]


def test_lint_skips_generated_files_of_a_tree(repo: Path) -> None:
    done = run_jobgen_text(repo, "lint", "rendered")

    assert "jobgen.lock.json" not in done.stdout
    assert "kustomization.yaml" not in done.stdout
    assert "in 9 files; 8 objects checked" in done.stderr

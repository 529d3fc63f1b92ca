"""`jobgen render --since` under the real Git: only what changed, and the names of what is gone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gitrepository import Repository

JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}}}
spec: {{framework: pytorch, image: "registry.example.com/train:{tag}", roles: {{master: {{}}}}}}
"""
OVERLAY = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {{namespace: ml-{env}}}\n"
NAMES = ("bert", "gpt", "llama")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    (tmp_path / "work").mkdir()
    made = Repository(tmp_path / "work", tmp_path / "home")
    write(made, {f"jobs/{name}.yaml": JOB.format(name=name, tag=1) for name in NAMES})
    write(made, {f"overlays/{env}/overlay.yaml": OVERLAY.format(env=env) for env in ("dev", "prod")})
    write(made, {"jobgen.yaml": ""})
    made.commit()
    return made


def write(repository: Repository, files: dict[str, str]) -> None:
    for path, content in files.items():
        (repository.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (repository.folder / path).write_text(content)


def list_names(out: str) -> list[tuple[str, str]]:
    items = json.loads(out)["items"]
    return [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in items]


def test_only_changed_objects_are_printed(repository: Repository) -> None:
    write(
        repository, {"jobs/bert.yaml": JOB.format(name="bert", tag=2), "jobs/new.yaml": JOB.format(name="new", tag=1)}
    )
    (repository.folder / "jobs/gpt.yaml").unlink()
    done = repository.jobgen("render", "--since", "HEAD")
    listed = repository.jobgen("render", "--since", "HEAD", "--format", "json", "-e", "prod")

    assert done.returncode == 0
    changed = repository.jobgen("render", "bert", "new")
    assert done.stdout == changed.stdout
    assert done.stderr.splitlines() == [
        "gone since HEAD: PyTorchJob ml-dev/gpt in dev",
        "gone since HEAD: PyTorchJob ml-prod/gpt in prod",
        "4 of 6 objects changed since HEAD",
    ]
    assert list_names(listed.stdout) == [("ml-prod", "bert"), ("ml-prod", "new")]


def test_nothing_changed_is_no_error(repository: Repository) -> None:
    # A comment changes no byte of an object.
    write(repository, {"jobs/bert.yaml": "# why\n" + JOB.format(name="bert", tag=1)})
    for words, out in (
        ((), ""),
        (("--format", "json"), '{\n  "apiVersion": "v1",\n  "kind": "List",\n  "items": []\n}\n'),
    ):
        done = repository.jobgen("render", "--since", "HEAD", *words)
        assert (done.returncode, done.stdout, done.stderr) == (0, out, "0 of 6 objects changed since HEAD\n")


def test_an_overlay_changes_the_objects_of_its_environment(repository: Repository) -> None:
    patched = OVERLAY.format(env="prod").replace("}", ", defaults: {env: {A: b}}}")
    write(repository, {"overlays/prod/overlay.yaml": patched, "overlays/new/overlay.yaml": OVERLAY.format(env="new")})
    done = repository.jobgen("render", "gpt", "--since", "HEAD", "--format", "json")

    assert done.stderr == "2 of 3 objects changed since HEAD\n"
    assert list_names(done.stdout) == [("ml-new", "gpt"), ("ml-prod", "gpt")]


def test_a_tree_has_only_what_changed(repository: Repository) -> None:
    write(repository, {"jobs/bert.yaml": JOB.format(name="bert", tag=2)})
    done = repository.jobgen("render", "--since", "HEAD", "-e", "dev", "-o", "../part")
    again = repository.jobgen("render", "--since", "HEAD", "-e", "dev", "-o", "../part")
    nothing = repository.jobgen("render", "gpt", "--since", "HEAD", "-o", "../none")

    part = repository.folder.parent / "part"
    assert (done.returncode, done.stderr.splitlines()[0]) == (0, "1 of 3 objects changed since HEAD")
    assert [str(path.relative_to(part)) for path in part.rglob("pytorchjob-*")] == ["dev/ml-dev/pytorchjob-bert.yaml"]
    assert again.returncode == 2
    assert "has a rendered tree; `--since` writes its part to a new folder" in again.stderr
    assert (nothing.returncode, (repository.folder.parent / "none").exists()) == (0, False)


def test_what_the_revision_cannot_render_counts_as_changed(repository: Repository) -> None:
    write(repository, {"jobs/bert.yaml": JOB.format(name="bert", tag=1).replace("framework", "framwork")})
    repository.commit()
    write(repository, {"jobs/bert.yaml": JOB.format(name="bert", tag=1)})
    done = repository.jobgen("render", "--since", "HEAD", "--format", "json", "-e", "dev")

    assert list_names(done.stdout) == [("ml-dev", "bert")]
    assert "HEAD has 1 error; the objects that it cannot render count as changed\n" in done.stderr


def test_errors_of_the_work_tree_and_of_the_arguments(repository: Repository) -> None:
    unknown = repository.jobgen("render", "--since", "nowhere")
    checked = repository.jobgen("render", "--since", "HEAD", "-o", "x", "--check")
    write(repository, {"jobs/bert.yaml": JOB.format(name="bert", tag=2).replace("framework", "framwork")})
    broken = repository.jobgen("render", "--since", "HEAD")

    assert [done.returncode for done in (unknown, checked, broken)] == [2, 2, 1]
    assert "nowhere" in unknown.stderr
    assert "`--since` renders a part of the objects; remove `--check`" in checked.stderr
    assert broken.stdout == ""


def test_a_tree_in_another_work_tree_names_the_commit_of_its_jobs(repository, tmp_path):
    """A later commit that renders the same keeps the name; changes that are not committed are told."""
    (tmp_path / "deploy").mkdir()
    deploy = Repository(tmp_path / "deploy", tmp_path / "elsewhere")
    lock = deploy.folder / "prod/jobgen.lock.json"

    def render() -> str:
        assert repository.jobgen("render", "-o", str(deploy.folder)).returncode == 0
        assert repository.jobgen("render", "-o", str(deploy.folder), "--check").returncode == 0
        return json.loads(lock.read_text())["source"]

    first = repository.run("git", "rev-parse", "HEAD").stdout.strip()
    assert render() == first
    write(repository, {"README.md": "Jobs"})
    repository.commit()
    assert render() == first
    write(repository, {"jobs/bert.yaml": JOB.format(name="bert", tag=2)})
    assert render() == repository.run("git", "rev-parse", "HEAD").stdout.strip() + "-dirty"
    repository.jobgen("render", "-o", "rendered")
    assert "source" not in json.loads((repository.folder / "rendered/prod/jobgen.lock.json").read_text())

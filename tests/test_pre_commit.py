"""Hooks in real Git repositories, run by the real pre-commit."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from gitrepository import Repository

from jobgen.yamlio.read import read

ROOT = Path(__file__).parent.parent
MANIFEST = ROOT / ".pre-commit-hooks.yaml"
HOOKS = {hook["id"]: hook for hook in read(b"hooks:\n" + MANIFEST.read_bytes(), "").documents[0].data["hooks"]}
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}}}
spec:
  framework: pytorch
  image: registry.example.com/train:1.0.0
  resources: {{cpu: 1, memory: 1Gi}}
"""
BAD = JOB.format(name="bad") + "  imagePullPolicy: Sometimes\n"
TESTS = """\
apiVersion: jobgen.dev/v1
kind: JobTests
spec:
  - name: bert runs in ml
    jobs: [bert]
    expect: {values: {metadata.namespace: ml}}
"""


def local(**changes: str) -> str:
    """The hooks of the manifest, run from where jobgen is installed."""
    lines = ["repos:", "  - repo: local", "    hooks:"]
    for hook in HOOKS.values():
        fields = {**hook, "language": "system", **changes}
        if changes.get("pass_filenames") == "true":
            fields.pop("always_run", None)
        lines += [f"      - id: {fields.pop('id')}"]
        lines += [
            f"        {name}: {str(value).lower() if isinstance(value, bool) else value}"
            for name, value in fields.items()
        ]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with hooks and a commit that they have accepted."""
    folder = tmp_path_factory.mktemp("template") / "repository"
    (folder / "jobs").mkdir(parents=True)
    (folder / "overlays/prod").mkdir(parents=True)
    (folder / "overlays/prod/overlay.yaml").write_text(
        "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {namespace: ml}\n"
    )
    (folder / "jobgen.yaml").touch()
    (folder / "jobs/bert.yaml").write_text(JOB.format(name="bert"))
    (folder / "tests").mkdir()
    (folder / "tests/bert.yaml").write_text(TESTS)
    (folder / ".pre-commit-config.yaml").write_text(local())
    made = Repository(folder, folder.with_name("home"))
    assert made.run("jobgen", "render", "-o", "rendered").returncode == 0
    assert made.run("pre-commit", "install").returncode == 0
    first = made.commit()
    assert first.returncode == 0, first.stdout + first.stderr
    return folder


@pytest.fixture
def repository(template: Path, tmp_path: Path) -> Repository:
    return Repository(Path(shutil.copytree(template, tmp_path / "repository")), tmp_path / "home")


def test_hook_manifest_is_valid() -> None:
    done = subprocess.run([sys.executable, "-m", "pre_commit", "validate-manifest", MANIFEST], check=False)

    assert done.returncode == 0
    assert list(HOOKS) == ["jobgen-lint", "jobgen-render-check", "jobgen-policy-test", "jobgen-test"]


def test_hook_refuses_an_invalid_job_on_its_line(repository: Repository) -> None:
    repository.use_installed_jobgen()
    (repository.folder / "jobs/bad.yaml").write_text(BAD)
    refused = repository.commit()

    assert refused.returncode == 1
    assert "jobs/bad.yaml:8:20: error: `imagePullPolicy` is `Sometimes`" in refused.stderr
    assert repository.run("git", "log", "--oneline").stdout.count("\n") == 1


def test_hook_refuses_an_outdated_tree(repository: Repository) -> None:
    job = repository.folder / "jobs/bert.yaml"
    job.write_text(job.read_text().replace("1.0.0", "1.0.1"))
    refused = repository.commit()

    assert refused.returncode == 1
    assert "rendered/prod/ml/pytorchjob-bert.yaml: out of date" in refused.stderr
    repository.run("jobgen", "render", "-o", "rendered")
    assert repository.commit().returncode == 0


def test_hook_notices_a_deleted_job_or_overlay(repository: Repository) -> None:
    (repository.folder / "jobs/gpt.yaml").write_text(JOB.format(name="gpt"))
    repository.run("jobgen", "render", "-o", "rendered")
    assert repository.commit().returncode == 0

    (repository.folder / "jobs/gpt.yaml").unlink()
    refused = repository.commit()
    assert refused.returncode == 1
    assert "rendered/prod/ml/pytorchjob-gpt.yaml: stale" in refused.stderr

    repository.run("git", "reset", "--quiet", "--hard")
    shutil.rmtree(repository.folder / "overlays")
    assert repository.commit().returncode == 1


def test_hook_ignores_unstaged_changes(repository: Repository) -> None:
    job = repository.folder / "jobs/bert.yaml"
    good = job.read_text()
    job.write_text(good + "  imagePullPolicy: Sometimes\n")
    (repository.folder / "README.md").write_text("notes\n")
    repository.run("git", "add", "README.md")
    done = repository.run("git", "commit", "--quiet", "-m", "notes")

    assert done.returncode == 0, done.stderr
    assert job.read_text() == good + "  imagePullPolicy: Sometimes\n"


@pytest.mark.stress
def test_hook_tests_changed_policies(repository: Repository) -> None:
    shutil.copy(ROOT / "policies/README.md", repository.folder / "README.md")
    source = next(path for path in (ROOT / "policies").glob("*.yaml") if (ROOT / "policies/tests" / path.stem).is_dir())
    (repository.folder / "policies").mkdir()
    shutil.copy(source, repository.folder / "policies")
    shutil.copytree(ROOT / "policies/tests" / source.stem, repository.folder / "policies/tests" / source.stem)
    passed = repository.commit()
    assert passed.returncode == 0, passed.stdout + passed.stderr

    case = next(
        path
        for path in (repository.folder / "policies/tests" / source.stem).iterdir()
        if "# expect:" in path.read_text()
    )
    case.write_text(case.read_text().replace("# expect:", "# expected:"))
    refused = repository.commit()
    assert refused.returncode == 1
    assert "is found but not expected" in refused.stderr


def test_hook_accepts_files_in_parallel_batches(repository: Repository) -> None:
    for number in range(60):
        (repository.folder / f"jobs/job-{number}.yaml").write_text(JOB.format(name=f"job-{number}"))
    lint = HOOKS["jobgen-lint"]["entry"]
    (repository.folder / ".pre-commit-config.yaml").write_text(
        "repos:\n  - repo: local\n    hooks:\n"
        f"      - {{id: lint, name: lint, entry: {lint}, language: system, files: ^jobs/, require_serial: false}}\n"
    )
    repository.run("git", "add", "--all")
    passed = repository.run("pre-commit", "run", "--all-files")
    assert passed.returncode == 0, passed.stdout

    (repository.folder / "jobs/job-7.yaml").write_text(BAD)
    repository.run("git", "add", "--all")
    (repository.folder / "jobs/job-9.yaml").unlink()
    repository.run("git", "add", "--all")
    refused = repository.run("pre-commit", "run", "--all-files")
    assert refused.returncode == 1
    assert refused.stdout.count("jobs/job-7.yaml:8:20: error") == 1


@pytest.mark.stress
def test_hooks_install_from_a_checkout(repository: Repository, tmp_path: Path) -> None:
    source = tmp_path / "jobgen"
    source.mkdir()
    for name in ("jobgen", "schemas", "policies"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE", "CHANGELOG.md", ".pre-commit-hooks.yaml"):
        shutil.copy(ROOT / name, source)
    origin = Repository(source, tmp_path / "home")
    assert origin.commit().returncode == 0
    revision = origin.run("git", "rev-parse", "HEAD").stdout.strip()
    (repository.folder / ".pre-commit-config.yaml").write_text(
        f"repos:\n  - repo: {source}\n    rev: {revision}\n"
        "    hooks: [{id: jobgen-lint}, {id: jobgen-render-check}]\n"
    )
    (repository.folder / "jobs/bad.yaml").write_text(BAD)
    repository.run("git", "add", "--all")
    # pip need not compile modules that are imported once.
    repository.environ["PIP_NO_COMPILE"] = "1"
    refused = repository.run("pre-commit", "run", timeout=400)

    assert refused.returncode == 1
    assert "jobs/bad.yaml:8:20: error" in refused.stdout, refused.stdout + refused.stderr

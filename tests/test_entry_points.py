"""One repository through every entry point: identical output.

Only what an entry point demands differs: a stream has `---` between documents, a tree has a file for each,
and a ResourceList has each object as an item, two columns further in.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cmpserver import Server
from gitrepository import Repository
from test_pre_commit import local

from jobgen.repo.lock import is_object_path, parse_lock

ROOT = Path(__file__).parent.parent
ENVIRONMENTS = ("dev", "prod", "t9k")
ODD = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: odd, namespace: ml-odd}
data:
  script: |
    ---
    a: 1

      b: 2
  word: 'no'
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """This repository's own jobs, and an object whose text looks like several."""
    folder = tmp_path_factory.mktemp("doors") / "repository"
    for name in ("jobs", "overlays", "schemas"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "jobgen.yaml", folder)
    (folder / "jobs/kubeflow/odd.yaml").write_text(ODD)
    made = Repository(folder, folder.parent / "home")
    assert made.run("jobgen", "render", "-o", "rendered").returncode == 0
    return made


def bodies(stream: str) -> list[str]:
    """The documents of a stream; a line of dashes inside one is indented, and no separator."""
    first, *others = f"\n{stream}".split("\n---\n")
    return [body if body.endswith("\n") else f"{body}\n" for body in (first.removeprefix("\n"), *others)]


@pytest.fixture(params=ENVIRONMENTS)
def rendered(request: pytest.FixtureRequest, repository: Repository) -> tuple[str, str]:
    done = repository.run("jobgen", "render", "-e", request.param)
    assert done.returncode == 0, done.stderr
    return request.param, done.stdout


def test_tree_holds_the_documents_of_the_stream(repository: Repository, rendered: tuple[str, str]) -> None:
    env, stream = rendered
    folder = repository.folder / "rendered" / env
    lock = parse_lock((folder / "jobgen.lock.json").read_text())
    files = [(folder / path).read_text() for path in lock.files if is_object_path(path)]

    assert sorted(files) == sorted(bodies(stream))
    assert "---\n".join(bodies(stream)) == stream


def test_argocd_plugin_prints_the_stream(repository: Repository, rendered: tuple[str, str], tmp_path: Path) -> None:
    env, stream = rendered
    answer = Server(tmp_path / "sidecar").call(repository.folder, ".", [{"name": "env", "string": env}])

    assert answer == (0, stream, "")


def test_krm_function_returns_the_documents_as_items(repository: Repository, rendered: tuple[str, str]) -> None:
    env, stream = rendered
    given = (
        "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n"
        f"functionConfig:\n  apiVersion: jobgen.dev/v1\n  kind: JobGenerator\n  spec: {{env: {env}}}\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "jobgen", "fn"],
        cwd=repository.folder,
        input=given,
        capture_output=True,
        text=True,
        check=True,
    )
    items = done.stdout.partition("\nitems:\n")[2].split("\n- ")
    outdented = ["\n".join(line.removeprefix("  ") for line in item.split("\n")) for item in items]

    assert [
        f"{item}\n" for item in (outdented[0].removeprefix("- "), *outdented[1:-1], outdented[-1].rstrip("\n"))
    ] == (bodies(stream))


def test_pre_commit_hook_accepts_the_committed_tree(repository: Repository) -> None:
    (repository.folder / ".pre-commit-config.yaml").write_text(local())
    repository.run("git", "add", "--all")
    done = repository.run("pre-commit", "run", "jobgen-render-check")

    assert done.returncode == 0, done.stdout + done.stderr

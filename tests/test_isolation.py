"""The contents of a repository cannot run programs, open connections, or read and write files outside."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kustomize_samples import PLUGIN, install_stand_ins, read_calls, write_files
from linting import lint_paths

from jobgen.cli.commands.init import Choices, init
from jobgen.cli.commands.schema import import_crds, write_editor_files
from jobgen.cli.result import ExitCode, Result
from jobgen.cli.run_lint import BASELINE
from jobgen.cli.run_render import render
from jobgen.features.convert.commands.import_ import import_manifests
from jobgen.repo import git
from jobgen.repo.root import find_files_of_other_repositories
from jobgen.reports.formats import FORMATS

ROOT = Path(__file__).parent.parent
SECRET = "hunter2"
JOB = (
    "apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata: {name: a}\nspec: {framework: pytorch, image: 'a:latest'}\n"
)
MANIFEST = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: %s, namespace: ml}
spec: {pytorchReplicaSpecs: {Master: {template: {spec: {containers: [{name: pytorch, image: 'a:1'}]}}}}}
"""
CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: x}
spec:
  group: %s
  names: {kind: %s}
  versions: [{name: %s, schema: {openAPIV3Schema: {type: object}}}]
"""


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder outside of the repository, with a secret in every file."""
    folder = tmp_path / "outside"
    (folder / "g").mkdir(parents=True)
    for name in ("secret.yaml", "jobgen-baseline.json"):
        (folder / name).write_text(f"password={SECRET}\n")
    (folder / "g/dance_v1.json").write_text(f'{{"type": "object", "required": ["{SECRET}"]}}')
    (folder / "g/overlay.yaml").write_text(f"{SECRET}: [\n")
    return folder


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return write_repository(tmp_path / "repository")


def write_repository(root: Path) -> Path:
    for folder in ("jobs", "overlays/prod", "policies", "schemas/example.com"):
        (root / folder).mkdir(parents=True)
    (root / "jobgen.yaml").write_text("")
    (root / "jobs/a.yaml").write_text(JOB)
    (root / "jobs/b.yaml").write_text("apiVersion: example.com/v1\nkind: Dance\nmetadata: {name: b}\n")
    (root / "overlays/prod/overlay.yaml").write_text("apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {}\n")
    return root


def copy_policies(root: Path) -> None:
    """Make the policies that are always on those of the repository, so that their expressions are compiled."""
    for file in (ROOT / "policies").glob("*.yaml"):
        shutil.copy(file, root / "policies")


def state(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def lint(root: Path, *paths: str, **options: Any) -> Result:
    return lint_paths(root, paths, (), **{"format_": "text", **options})


LINKS = {
    "job": ("jobs/l.yaml", "secret.yaml"),
    "folder of jobs": ("jobs/l", "g"),
    "overlay": ("overlays/prod/l.yaml", "secret.yaml"),
    "environment": ("overlays/l", "g"),
    "policy": ("policies/l.yaml", "secret.yaml"),
    "kind": ("schemas/example.com/dance_v1.yaml", "secret.yaml"),
    "schema": ("schemas/example.com/dance_v1.json", "g/dance_v1.json"),
    "settings": ("jobgen.yaml", "secret.yaml"),
    "group of schemas": ("schemas/example.com", "g"),
}
FORMS = sorted({*FORMATS.names()} - {"text"})


@pytest.mark.parametrize(("case", "form"), [*((case, "text") for case in LINKS), *(("job", form) for form in FORMS)])
def test_symlink_out_of_the_repository_is_not_read(repository: Path, outside: Path, case: str, form: str) -> None:
    path, target = LINKS[case]
    if (repository / path).is_dir():
        shutil.rmtree(repository / path)
    (repository / path).unlink(missing_ok=True)
    (repository / path).symlink_to(outside / target)
    results = [lint(repository, format_=form), lint(repository, path, format_=form)]
    results.append(render(repository, (), (), None, format_="yaml"))

    assert SECRET not in "".join(result.out + result.err for result in results)
    assert not [result.err for result in results if "internal error" in result.err]


def test_symlinked_baseline_outside_is_neither_read_nor_written(repository: Path, outside: Path) -> None:
    (repository / BASELINE).symlink_to(outside / BASELINE)
    before = state(outside)
    results = [lint(repository, baseline=BASELINE), lint(repository, baseline=BASELINE, fix="safe")]
    results.append(lint(repository, write_baseline=True))

    assert [result.code for result in results] == [ExitCode.USAGE] * 3
    assert all("out of the repository" in result.err and SECRET not in result.err for result in results)
    assert state(outside) == before


@pytest.mark.parametrize("version", ["{outside}/g/v1", "../../outside/g/v1", "//etc/v1", "\\0/v1", "a/b/c/v1"])
def test_api_version_selects_no_file_outside(repository: Path, outside: Path, version: str) -> None:
    text = f'apiVersion: "{version.format(outside=outside)}"\nkind: Dance\nmetadata: {{name: b}}\n'
    (repository / "jobs/b.yaml").write_text(text)

    assert SECRET not in lint(repository).out


@pytest.mark.parametrize("name", ["../../outside/x", "/tmp/x", "..", "a/b", ".git", "a\\0b"])
def test_object_names_do_not_leave_the_output_folder(
    repository: Path, outside: Path, tmp_path: Path, name: str
) -> None:
    before = state(outside)
    (repository / "jobs/b.yaml").write_text(MANIFEST % f'"{name}"')
    render(repository, (), (), repository / "rendered", format_="yaml")
    (tmp_path / "m.yaml").write_text(MANIFEST % f'"{name}"')
    import_manifests(repository, [str(tmp_path / "m.yaml")], "jobs", force=True)
    written = [path for path in tmp_path.rglob("*") if path.is_file() and repository not in path.parents]

    assert state(outside) == before
    assert sorted(set(written) - {Path(path) for path in before}) == [tmp_path / "m.yaml"]


@pytest.mark.parametrize(
    ("group", "kind", "version"),
    [
        ("../../outside", "Evil", "v1"),
        ("/tmp", "Evil", "v1"),
        ("a", "../../x", "v1"),
        ("a", "b", "../../v1"),
        ("..", "a", "v1"),
    ],
)
def test_imported_crd_is_written_below_schemas(
    repository: Path, tmp_path: Path, group: str, kind: str, version: str
) -> None:
    (tmp_path / "crd.yaml").write_text(CRD % (group, kind, version))
    before = state(tmp_path)

    assert import_crds(repository, [tmp_path / "crd.yaml"]).code is ExitCode.ERRORS
    assert state(tmp_path) == before


def render_tree(root: Path, _: Path) -> Result:
    return render(root, (), (), root / "l", format_="yaml")


def import_schema(root: Path, tmp_path: Path) -> Result:
    (tmp_path / "crd.yaml").write_text(CRD % ("l", "Dance", "v1"))
    shutil.rmtree(root / "schemas")
    (root / "schemas").mkdir()
    (root / "l").rename(root / "schemas/l")
    return import_crds(root, [tmp_path / "crd.yaml"])


def import_jobs(root: Path, tmp_path: Path) -> Result:
    (tmp_path / "m.yaml").write_text(MANIFEST % "new")
    return import_manifests(root, [str(tmp_path / "m.yaml")], "l", force=True)


def editor(root: Path, _: Path) -> Result:
    (root / "l").rename(root / ".vscode")
    return write_editor_files(root)


def begin(root: Path, _: Path) -> Result:
    shutil.rmtree(root / "jobs")
    (root / "l").rename(root / "jobs")
    return init(root, root, Choices(ci="none"), force=True)


@pytest.mark.parametrize("act", [render_tree, import_schema, import_jobs, editor, begin])
def test_no_command_writes_through_a_symlink(
    repository: Path, outside: Path, tmp_path: Path, act: Callable[[Path, Path], Result]
) -> None:
    (repository / "l").symlink_to(outside)
    before = state(outside)
    result = act(repository, tmp_path)

    assert result.code in (ExitCode.ERRORS, ExitCode.USAGE)
    assert state(outside) == before


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    """The lists to which events are added. Python cannot remove a hook, and calls it at each event: one is enough."""
    # Modules that are imported now do not show up as code that a repository executes.
    root = write_repository(tmp_path_factory.mktemp("first") / "repository")
    copy_policies(root)
    for options in ({}, {"fix": "unsafe", "diff": True}):
        lint(root, **options)
    render(root, (), (), None, format_="yaml")
    # What is faulty is checked by modules of its own.
    for path in ("jobs/a.yaml", "overlays/prod/overlay.yaml"):
        (root / path).write_text("apiVersion: v1\nkind: !a [b]\nspec: !a [b]\n")
        lint(root)
    lists: list[list[str]] = []
    told = ("os.exec", "os.system", "os.posix_spawn", "os.spawn", "subprocess.Popen", "socket.", "pickle.", "exec")

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if lists and event.startswith(told) and not _is_ours(event, arguments):
            lists[-1].append(f"{event} {arguments!r:.200}")

    sys.addaudithook(watch)
    return lists


@pytest.fixture
def watched(repository: Path, recorded: list[list[str]]) -> Iterator[list[str]]:
    """What the process does beyond reading and writing files, by Python's audit events."""
    copy_policies(repository)
    seen: list[str] = []
    recorded.append(seen)
    yield seen
    recorded.remove(seen)


def _is_ours(event: str, arguments: tuple[object, ...]) -> bool:
    """Git is asked for the date of a commit; modules are executed when they are imported."""
    if event == "subprocess.Popen":
        return isinstance(arguments[1], list) and arguments[1][0] == "git"
    if event == "exec":
        return str(getattr(arguments[0], "co_filename", "")).startswith(("/", "<frozen"))
    return event == "os.posix_spawn" and str(arguments[0]).endswith("git")


TAGS = (
    "!!python/object/apply:os.system",
    "!!python/object/new:os.system",
    "!!python/name:os.system",
    "!exec",
    "!!js/function",
)


@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize(
    "path", ["jobs/a.yaml", "overlays/prod/overlay.yaml", "policies/p.yaml", "schemas/example.com/k_v1.yaml"]
)
def test_yaml_tags_run_nothing(repository: Path, tmp_path: Path, watched: list[str], path: str, tag: str) -> None:
    (repository / path).write_text(
        f'apiVersion: v1\nkind: {tag} ["touch {tmp_path}/ran"]\nspec: {tag} ["touch {tmp_path}/ran"]\n'
    )
    result = lint(repository)

    assert watched == []
    assert not (tmp_path / "ran").exists()
    assert "unknown-tag" in result.out + result.err


def test_lint_opens_no_connection_and_starts_no_program(repository: Path, watched: list[str]) -> None:
    schema = '{"$ref": "http://127.0.0.1:9/x.json", "$schema": "http://127.0.0.1:9/y.json"}'
    (repository / "schemas/example.com/dance_v1.json").write_text(schema)
    (repository / "jobs/c.yaml").write_text(
        JOB.replace("name: a", "name: '$(touch ran)'").replace("a:latest", "`touch ran`")
    )
    results = [lint(repository), lint(repository, fix="unsafe"), render(repository, (), (), None, format_="yaml")]

    assert watched == []
    assert not [result.err for result in results if "internal error" in result.err]
    assert not (repository / "ran").exists()


# Python reads this module when it starts: it writes down the name of each program that jobgen starts.
WATCH = """\
import os, sys

def watch(event, arguments):
    if event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.startfile"):
        with open({file!r}, "a") as stream:
            words = arguments[1] if event == "subprocess.Popen" else arguments[:1]
            stream.write(os.path.basename(str(words[0])) + "\\n")

sys.addaudithook(watch)
"""
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}]}\n"
FETCHING = PLUGIN + "  path: http://127.0.0.1:9/patch.yaml\n"
# The fields of a kustomization, the options of a lint, and the programs on PATH that it starts beside git.
STARTS = {
    "nothing but files": ("namePrefix: a-\n", [], []),
    "a plugin of kustomize": (PLUGIN, [], ["kustomize"]),
    "a plugin of others": (PLUGIN.replace("builtin", "example.com/v1"), [], []),
    "a plugin that fetches a file": (FETCHING, [], []),
    "a remote resource": (PLUGIN + "components: ['https://127.0.0.1:9/a?ref=v1']\n", [], []),
    "a chart": (PLUGIN + "helmCharts: [{name: a, repo: 'https://127.0.0.1:9'}]\n", [], []),
    "an error": (PLUGIN + "configurations: [missing.yaml]\n", [], []),
    "a comparison with a commit": (PLUGIN, ["--since", "HEAD"], []),
    "a second opinion": ("namePrefix: a-\n", ["--second-opinion"], ["kubeconform", "kustomize"]),
    "a second opinion about a plugin": (PLUGIN, ["--second-opinion"], ["kubeconform", "kustomize"]),
    "a second opinion about a remote resource": (
        "components: ['https://127.0.0.1:9/a?ref=v1']\n",
        ["--second-opinion"],
        ["kubeconform"],
    ),
    "the old name of a second opinion": ("namePrefix: a-\n", ["--kubeconform"], ["kubeconform", "kustomize"]),
}


@pytest.mark.skipif(os.name == "nt", reason="the programs of this test are shell scripts")
@pytest.mark.parametrize("case", STARTS)
def test_lint_starts_exactly_the_programs_that_are_listed(tmp_path: Path, case: str) -> None:
    """Real programs: each that jobgen could start is on PATH and records its calls."""
    fields, options, expected = STARTS[case]
    root, watched = tmp_path / "repository", tmp_path / "watched"
    names = ("kustomize", "kubectl", "helm", "kubeconform", "curl", "docker", "ssh")
    bin_ = install_stand_ins(tmp_path / "bin", *names, built=SERVICE)
    (bin_ / "kubeconform").write_text(f"#!/bin/sh\necho kubeconform >> {bin_}/calls\necho '{{\"resources\": []}}'\n")
    (bin_ / "git").symlink_to(str(shutil.which("git")))
    files = {"web.yaml": SERVICE, "kustomization.yaml": f"resources: [web.yaml]\n{fields}"}
    write_files(tmp_path, {"hooks/sitecustomize.py": WATCH.format(file=str(watched))})
    write_files(root, files)
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "a"]):
        commit(root, *words)
    # A program of the repository is not started, even if PATH names the current folder.
    install_stand_ins(root, "kustomize", "kubectl")
    path = os.pathsep.join((".", "", str(bin_), "/usr/bin", "/bin"))
    code = os.pathsep.join((str(tmp_path / "hooks"), os.environ.get("PYTHONPATH", "")))
    done = subprocess.run(
        [sys.executable, "-m", "jobgen", "lint", "--no-cache", *options, "."],
        cwd=root,
        env={**os.environ, "PATH": path, "PYTHONPATH": code},
        capture_output=True,
        check=False,
    )
    started = watched.read_text().splitlines() if watched.exists() else []

    assert done.returncode in (ExitCode.OK, ExitCode.ERRORS), done.stderr
    assert sorted(call.split()[0] for call in read_calls(bin_)) == expected
    assert read_calls(root) == []
    # The Python package jsonschema runs in a process of its own.
    others = [Path(sys.executable).name] if {"--second-opinion", "--kubeconform"} & set(options) else []
    assert sorted(name for name in started if name != "git") == sorted(expected + others)


def test_audit_hook_records_programs_and_connections(watched: list[str]) -> None:
    subprocess.run(["true"], check=True)
    with socket.socket() as connection:
        connection.settimeout(0.1)
        connection.connect_ex(("127.0.0.1", 9))

    assert {entry.split(".")[0] for entry in watched} == {"subprocess", "socket"}


def commit(root: Path, *words: str, **named: Any) -> bytes:
    identity = {"GIT_CONFIG_GLOBAL": os.devnull, "HOME": str(root)}
    for who in ("AUTHOR", "COMMITTER"):
        identity |= {f"GIT_{who}_NAME": "a", f"GIT_{who}_EMAIL": "a@example.com"}
    done = subprocess.run(
        ["git", "-C", root, *words], check=True, capture_output=True, env={**os.environ, **identity}, **named
    )
    return done.stdout.strip()


def test_embedded_git_repository_is_ignored(repository: Path, tmp_path: Path) -> None:
    commit(repository, "init", "-q")
    commit(repository, "add", ".")
    commit(repository, "commit", "-qm", "a")
    subprocess.run(["git", "clone", "-q", "--bare", repository, repository / "bare"], check=True, capture_output=True)
    with (repository / "bare/config").open("a") as stream:
        stream.write(f"[core]\n\tfsmonitor = touch {tmp_path}/ran\n\tpager = touch {tmp_path}/ran\n")
    shutil.copytree(repository / "jobs", repository / "bare/jobs")

    assert git.read_commit_date(repository)
    assert git.read_commit_date(repository / "bare") == ""
    lint(repository / "bare")
    assert not (tmp_path / "ran").exists()


def test_security_page_names_existing_tests() -> None:
    tests = Path(__file__).parent
    page = (tests.parent / "docs/security.md").read_text()
    named = re.findall(r"`((?:\w+/)?test_\w+\.py)::(test_\w+)`", page)

    assert len(named) > 20
    assert [name for file, name in named if f"def {name}(" not in (tests / file).read_text()] == []


def test_each_guarantee_of_the_security_page_names_its_test() -> None:
    page = (Path(__file__).parent.parent / "docs/security.md").read_text()
    tables = re.findall(r"^\| guarantee \| test \|\n\|---\|---\|\n((?:\|.*\n)+)", page, re.MULTILINE)
    rows = [row for table in tables for row in table.splitlines()]

    assert len(rows) > 100
    assert [row for row in rows if "::test_" not in row.rpartition(" | ")[2]] == []


def is_of_other_repository(file: Path, root: Path) -> bool:
    """The definition: of the folders above a file, without links, the nearest that decides."""
    for folder in file.resolve().parents:
        if folder == root.resolve():
            return False
        if (folder / "jobgen.yaml").is_file() or folder.name == "jobs":
            return True
    return False


def test_files_of_other_repositories_are_found_through_links(tmp_path, monkeypatch):
    root, other, loose = (tmp_path / name for name in ("root", "other", "loose"))
    folders = [root / "jobs" / "a", root, other / "jobs" / "b" / "c", other / "docs", loose / "x", loose / "jobs" / "y"]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "one.yaml").write_text("a: 1\n")
    for repository in (root, other):
        (repository / "jobgen.yaml").write_text("")
    (loose / "to-jobs").symlink_to(other / "jobs" / "b")
    (loose / "to-docs").symlink_to(other / "docs")
    (loose / "x" / "linked.yaml").symlink_to(other / "docs" / "one.yaml")
    (other / "docs" / "away.yaml").symlink_to(loose / "x" / "one.yaml")
    (tmp_path / "alias").symlink_to(loose)
    files = [str(path) for path in tmp_path.rglob("*.yaml")]
    files += [str(tmp_path / "alias" / below) for below in ("x/one.yaml", "to-jobs/c/one.yaml", "to-docs/one.yaml")]
    files += [str(loose / "x" / ".." / "jobs" / "y" / "one.yaml"), "x/one.yaml", "to-docs/one.yaml", "./x/linked.yaml"]
    monkeypatch.chdir(loose)
    found = find_files_of_other_repositories(files, root)
    expected = {file for file in files if is_of_other_repository(Path(file), root)}
    assert found == expected
    assert 0 < len(expected) < len(files)

"""Completion in real shells, and what a hostile repository cannot make of it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from jobgenprocess import install_jobgen, run_jobgen
from shells import Shell, make_environment

from jobgen.api.project import load
from jobgen.cli.commands import SHIPPED
from jobgen.cli.group import cli
from jobgen.repo.names import list_jobs, list_policies

ROOT = Path(__file__).parent.parent
SHELLS = ["bash", "zsh", "fish"]
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}, namespace: ml}}
spec: {{framework: pytorch, image: registry.example.com/bert:1.0, roles: {{master: {{}}}}}}
"""
POLICY = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata:\n  name: max-age\n"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repository")
    for env in ("dev", "prod"):
        (root / "overlays" / env).mkdir(parents=True)
        (root / "overlays" / env / "overlay.yaml").write_text("apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {}\n")
    for folder, name, text in (
        ("jobs", "bert", JOB.format(name="bert")),
        ("jobs", "others", "---\n".join(JOB.format(name=name) for name in ("gpt", "bert-large"))),
        ("teams", "vision", ""),
        ("policies", "own", POLICY),
        ("my files", "a file", ""),
    ):
        (root / folder).mkdir(exist_ok=True)
        (root / folder / f"{name}.yaml").write_text(text)
    (root / "jobgen.yaml").write_text("")
    subprocess.run(["git", "init", "-q", "-b", "trunk"], cwd=root, check=True)
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run(["git", *identity, "commit", "-q", "--allow-empty", "-m", "empty"], cwd=root, check=True)
    return root


@pytest.fixture(scope="module", params=["bash", "zsh"])
def shell(request: pytest.FixtureRequest, repository: Path, tmp_path_factory: pytest.TempPathFactory):
    opened = Shell(request.param, repository, tmp_path_factory.mktemp("programs"))
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("jobgen li", ["lint"]),
        ("jobgen policy te", ["test"]),
        ("jobgen lint --form", ["--format"]),
        ("jobgen lint --format sa", ["sarif"]),
        ("jobgen lint --format=sa", ["--format=sarif"]),
        ("jobgen render g", ["gpt"]),
        ("jobgen render gpt -e p", ["prod"]),
        ("jobgen render gpt --env=p", ["--env=prod"]),
        ("jobgen explain mutable-im", ["mutable-image-tag"]),
        ("jobgen explain max-a", ["max-age"]),
        ("jobgen explain gpt roles.master.rep", ["roles.master.replicas"]),
        ("jobgen teams v", ["vision"]),
        ("jobgen diff tr", ["trunk"]),
        ("jobgen diff trunk..t", ["trunk..trunk"]),
        ("jobgen lint jobs/o", ["jobs/others.yaml"]),
        ("jobgen lint my", ["my files/"]),
        ("jobgen lint my\\ files/a", ["my files/a file.yaml"]),
        ("jobgen lint --baseline jobs/o", ["jobs/others.yaml"]),
        ("jobgen lint --baseline=jobs/o", ["--baseline=jobs/others.yaml"]),
        ("jobgen render -o ov", ["overlays/"]),
        ("jobgen migrate jobs/b", ["jobs/bert.yaml"]),
        ("jobgen migrate --to PyTorchT", ["PyTorchTrainingJob"]),
        ("jobgen completion f", ["fish"]),
        ("jobgen -C jobs lint o", ["others.yaml"]),
        ("jobgen -C overlays/dev render g", ["gpt"]),
        ("jobgen lint --nothing=g", ["--nothing=g"]),
    ],
)
def test_tab_completes_what_is_unambiguous(shell: Shell, line: str, words: list[str]) -> None:
    head = line.replace("\\ ", "\0").split(" ")[:-1]
    # zsh removes the last slash of a folder as soon as the line is complete.
    words = [word.rstrip("/") for word in words] if shell.name == "zsh" else words
    assert shell.complete(line) == [*head, *words]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("jobgen render ", ["bert", "bert-large", "gpt"]),
        ("jobgen render be", ["bert", "bert-large"]),
        ("jobgen render -e ", ["dev", "prod"]),
        ("jobgen lint --fail-on ", ["error", "warning", "info"]),
        ("jobgen codeowners -", ["--check", "-h", "--help"]),
        ("jobgen migrate be", ["bert", "bert-large"]),
        ("jobgen policy ", ["check", "docs", "list", "test"]),
    ],
)
def test_all_candidates_are_listed(shell: Shell, line: str, words: list[str]) -> None:
    # Each shell has an order of its own for options.
    assert sorted(shell.list_all(line)) == sorted(words)


FISH = [
    ("jobgen li", ["lint"]),
    ("jobgen render ", ["bert", "bert-large", "gpt"]),
    ("jobgen render --env=", ["--env=dev", "--env=prod"]),
    ("jobgen render -e ", ["dev", "prod"]),
    ("jobgen lint --format=sa", ["--format=sarif"]),
    ("jobgen lint --fail-on ", ["error", "warning", "info"]),
    ("jobgen lint jobs/", ["jobs/bert.yaml", "jobs/others.yaml"]),
    ("jobgen lint my", ["my files/"]),
    ("jobgen lint my\\ files/", ["my files/a file.yaml"]),
    ('jobgen lint "my files/a', ["my files/a file.yaml"]),
    ('jobgen lint "my fi', ["my files/"]),
    ("jobgen lint --baseline=jobs/o", ["--baseline=jobs/others.yaml"]),
    ("jobgen lint --baseline=my\\ files/a", ["--baseline=my files/a file.yaml"]),
    ("jobgen lint jobs/nothing", []),
    ("jobgen render -o ov", ["overlays/"]),
    ("jobgen render -o my\\ f", ["my files/"]),
    ("jobgen render -o my\\ files/", []),
    ("jobgen explain max-", ["max-age"]),
    ("jobgen explain gpt roles.master.rep", ["roles.master.replicas"]),
]


@pytest.mark.parametrize(("line", "words"), FISH, ids=[line for line, _ in FISH])
def test_fish_lists_the_same(repository: Path, tmp_path: Path, line: str, words: list[str]) -> None:
    lines = run_fish(repository, tmp_path, f"complete -C '{line}'")
    assert [line.partition("\t")[0] for line in lines] == words


def test_fish_shows_the_help_of_commands(repository: Path, tmp_path: Path) -> None:
    lines = run_fish(repository, tmp_path, "complete -C 'jobgen ren'")
    assert lines == ["render\tPrint manifests, or write them as a tree."]


def run_fish(folder: Path, programs: Path, command: str) -> list[str]:
    if subprocess.run(["which", "fish"], capture_output=True, check=False).returncode:
        pytest.skip("fish is not installed")
    install_jobgen(programs)
    done = subprocess.run(
        ["fish", "--no-config", "-c", f"jobgen completion fish | source; {command}"],
        cwd=folder,
        env=make_environment(programs, programs),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def ask(folder: Path, *words: str, shell: str = "zsh") -> subprocess.CompletedProcess[str]:
    """Ask as the scripts do."""
    done = run_jobgen(folder, *words, env={**os.environ, "_JOBGEN_COMPLETE": shell}, timeout=300)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def list_words(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert (done.returncode, done.stderr) == (0, "")
    return [line.split("\t")[1] for line in done.stdout.splitlines()]


def test_names_are_neither_commands_nor_sequences_of_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    hostile = ["$(touch ran)", "`touch ran`", "a;touch ran", "a\tb", "\\e[31m", "a b", "'", "-x"]
    for number, name in enumerate(hostile):
        (tmp_path / f"jobs/{number}.yaml").write_text(JOB.format(name=json.dumps(name)))
        (tmp_path / f"overlays/{name.replace('/', '')}").mkdir(parents=True)
        (tmp_path / f"overlays/{name.replace('/', '')}/overlay.yaml").write_text("{}")
    (tmp_path / "jobs/good.yaml").write_text(JOB.format(name="good"))

    assert list_words(ask(tmp_path, "jobgen", "render", "")) == ["good"]
    # It is an environment, and an option that the user would see on the line.
    assert list_words(ask(tmp_path, "jobgen", "render", "-e", "")) == ["-x"]


def test_a_hostile_repository_neither_hangs_nor_prints(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    os.mkfifo(tmp_path / "jobs/pipe.yaml")
    (tmp_path / "jobs/zero.yaml").symlink_to("/dev/zero")
    (tmp_path / "jobs/deep.json").write_text("[" * 100_000)
    (tmp_path / "jobs/long.yaml").write_text("kind: X\nmetadata:\n  " + "name" * 200_000)
    (tmp_path / "jobs/many.yaml").write_text("kind: X\nmetadata: {\n" * 40_000)
    (tmp_path / "jobs/binary.yaml").write_bytes(bytes(range(256)) * 100)
    (tmp_path / "jobs/good.yaml").write_text(JOB.format(name="good"))
    (tmp_path / "jobgen.yaml").write_text("{" * 1000)

    assert list_words(ask(tmp_path, "jobgen", "render", "")) == ["good"]
    assert list_words(ask(tmp_path, "jobgen", "explain", "good", "")) == []


@pytest.mark.parametrize(
    "words", [[], [""], ["jobgen"], ["jobgen", "\udcff"], ["jobgen", "-C", "/nowhere", "lint", ""]]
)
@pytest.mark.parametrize("shell", [*SHELLS, "", "bash_source", "tcsh"])
def test_nothing_is_an_error(tmp_path: Path, words: list[str], shell: str) -> None:
    done = ask(tmp_path, *words, shell=shell)
    assert (done.returncode, done.stderr) == (0, "")


def list_parameters(command: click.Command, words: list[str]) -> Iterator[tuple[list[str], click.Parameter]]:
    """Each parameter of each command, with the words before it."""
    context = click.Context(command)
    yield from ((words, parameter) for parameter in command.get_params(context))
    for name in command.list_commands(context) if isinstance(command, click.Group) else ():
        inner = command.resolve_command(context, [name])[1]
        assert inner is not None
        yield from list_parameters(inner, [*words, name])


FREE = {"DATE", "N", "NAME", "DURATION", "I/N", "NAME=FOLDER", "URL", "VERSION", "FILE"}
"""Values that have no candidates."""


def test_every_value_is_completed() -> None:
    found = list(list_parameters(cli, []))
    assert len(found) > 80
    for words, parameter in found:
        if isinstance(parameter, click.Option) and (parameter.is_flag or parameter.count or parameter.hidden):
            continue
        named = parameter.metavar in FREE or isinstance(parameter.type, click.Choice)
        assert named or parameter._custom_shell_complete, (words, parameter.opts)


@pytest.mark.parametrize("folder", [".", "tests/repositories/two-teams", "tests/repositories/one-job"])
def test_names_of_jobs_are_those_that_are_read(folder: str) -> None:
    root = (ROOT / folder).resolve()
    assert list_jobs(root) == sorted(set(load(root).job_names()))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("kind: X\nmetadata: {labels: {name: no}, name: yes-1}\n", ["yes-1"]),
        ("kind: X\nmetadata:\n  labels:\n    name: no\n  name: 'yes-1'\nspec:\n  name: no\n", ["yes-1"]),
        ("kind: X\nmetadata:  # why\n\n  # what\n  name: yes-1 # so\n", ["yes-1"]),
        ("kind: X\r\nmetadata:\r\n  name: yes-1\r\n", ["yes-1"]),
        ("kind: X\nmetadata: {\n  name: yes-1,\n}\n", ["yes-1"]),
        ("kind: X\nmetadata: {app.kubernetes.io/name: no}\n", []),
        ("kind: X\nmetadata: {name: 'a ${{ b }}'}\n", []),
        ("kind: Overlay\nmetadata: {name: no}\n", []),
        ("kind: X\nspec: {metadata: {name: no}}\n", []),
        ("- kind: X\n", []),
        (
            "kind: List\nitems:\n- kind: X\n  metadata:\n    name: yes-1\n- {kind: X, metadata: {name: yes-2}}\n",
            ["yes-1", "yes-2"],
        ),
        ("kind: PyTorchJobList\nitems: [{kind: X, metadata: {name: yes-1}}, null, 1]\n", ["yes-1"]),
        ("kind: List\nmetadata: {name: no}\nitems: []\n---\nkind: X\nmetadata: {name: yes-1}\n", ["yes-1"]),
        ("kind: List\nitems: [\n", []),
    ],
)
def test_names_in_texts(tmp_path: Path, text: str, names: list[str]) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/a.yaml").write_bytes(text.encode())
    assert list_jobs(tmp_path) == names


def test_names_in_json(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    item = {"kind": "X", "metadata": {"name": "yes-1"}}
    (tmp_path / "jobs/a.json").write_text(json.dumps({"kind": "List", "items": [item]}))
    (tmp_path / "jobs/b.json").write_text(json.dumps({"kind": "X", "metadata": {"name": "yes-2"}}))
    (tmp_path / "jobs/c.json").write_text("[1]")
    assert list_jobs(tmp_path) == ["yes-1", "yes-2"]


@pytest.mark.parametrize(
    ("settings", "environments", "teams"),
    [
        ("", ["dev", "prod"], ["vision"]),
        ("environments: [prod]\nteams: {nlp: {folders: [jobs/nlp]}}\n", ["prod"], ["nlp", "vision"]),
        ("environments: 1\nteams: [nlp]\n", ["dev", "prod"], ["vision"]),
        ("environments: [\n", ["dev", "prod"], ["vision"]),
    ],
)
def test_environments_and_teams(tmp_path: Path, settings: str, environments: list[str], teams: list[str]) -> None:
    """What other overlays extend is no environment, and the settings may hold teams."""
    for name, spec in (("base", "{}"), ("dev", "{extends: [base]}"), ("prod", "{extends: [base, prod]}")):
        (tmp_path / "overlays" / name).mkdir(parents=True)
        (tmp_path / "overlays" / name / "overlay.yaml").write_text(f"kind: Overlay\nspec: {spec}\n")
    (tmp_path / "teams").mkdir()
    (tmp_path / "teams/vision.yaml").write_text("")
    (tmp_path / "jobgen.yaml").write_text(settings)

    assert list_words(ask(tmp_path, "jobgen", "render", "-e", "")) == environments
    assert list_words(ask(tmp_path, "jobgen", "teams", "")) == teams


def test_names_of_policies_are_not_those_of_bindings(repository: Path) -> None:
    assert list_policies(repository) == ["max-age"]


def test_kinds_that_migrate_refuses_are_not_offered(repository: Path) -> None:
    words = list_words(ask(repository, "jobgen", "migrate", "--to", ""))

    assert {"TrainJob", "PyTorchJob", "jobset"} <= set(words)
    assert not {"TrainingRuntime", "ClusterTrainingRuntime"} & set(words)


def test_short_help_of_listed_commands_is_that_of_their_modules() -> None:
    context = click.Context(cli)
    listed = {name: cli.get_command(context, name) for name in cli.list_commands(context)}
    loaded = {name: cli.resolve_command(context, [name])[1] for name in listed}

    assert {name: each.get_short_help_str(200) for name, each in listed.items()} == {
        name: each.get_short_help_str(200) for name, each in loaded.items()
    }
    assert {name for commands in SHIPPED.values() for name in commands} == listed.keys()

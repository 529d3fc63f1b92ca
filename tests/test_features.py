"""Features are leaves: without the folder of one of them, everything else works, and what is missing is said."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import click
import pytest
from sampling import sample

import jobgen
from jobgen.cli.commands import SHIPPED
from jobgen.cli.group import cli
from jobgen.model.features import all_features, find_parts, list_folders

ROOT = Path(__file__).parent.parent
NAMES = list_folders()
EVERY_COMMAND = {*cli.list_commands(click.Context(cli))}
QUEUES = """
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: small}
spec:
  namespaceSelector: {}
  resourceGroups:
    - coveredResources: [cpu]
      flavors: [{name: default, resources: [{name: cpu, nominalQuota: 1}]}]
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: ml, namespace: ml}
spec: {clusterQueue: small}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: default}
---
apiVersion: batch/v1
kind: Job
metadata: {name: large, namespace: ml, labels: {kueue.x-k8s.io/queue-name: ml}}
spec:
  suspend: true
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: main
          image: registry.example.com/main:1.0.0
          resources: {requests: {cpu: 2, memory: 1Gi}, limits: {memory: 1Gi}}
"""


MISSING = "this jobgen installation does not have the feature"
COMMANDS = {
    "lint": ("lint", "--format", "concise"),
    "render": ("render", "-e", "prod"),
    "diff": ("diff", "--folders", "old", "."),
    "explain": ("explain", "pytorch-simple", "-e", "prod"),
}
"""Commands of the core, which print the same with and without a feature."""


class Installation(NamedTuple):
    """A copy of the package, and the examples of this repository, with their state before a change."""

    package: Path
    examples: Path

    def find_feature(self, name):
        return self.package / "jobgen/features" / name


@pytest.fixture(scope="module")
def installation(tmp_path_factory):
    package, examples = (tmp_path_factory.mktemp(name) for name in ("package", "examples"))
    for name in ("jobgen", "schemas", "policies"):
        shutil.copytree(ROOT / name, package / name)
    for folder in (examples, examples / "old"):
        for name in ("jobs", "overlays"):
            shutil.copytree(ROOT / name, folder / name)
        shutil.copy(ROOT / "jobgen.yaml", folder)
    changed = examples / "old/overlays/prod/overlay.yaml"
    changed.write_text(changed.read_text("utf-8").replace("replicas: ", "replicas: 1"), "utf-8")
    (examples / "queues.yaml").write_text(QUEUES)
    return Installation(package, examples)


@pytest.fixture(scope="module")
def expected(installation):
    """What the commands of the core print with all features."""
    return run_each(installation, COMMANDS)


@pytest.fixture
def without(installation, request):
    """The name of a feature, and the copy without its folder."""
    source, target = installation.find_feature(request.param), installation.package / "removed"
    source.rename(target)
    yield request.param, installation
    target.rename(source)


each_feature = pytest.mark.parametrize("without", sample(NAMES, 3), indirect=True)
lacking_kueue = pytest.mark.parametrize("without", ["kueue"], indirect=True)


def start(installation, *command):
    """Run Python in the copy."""
    left_out = ("COLUMNS", "PYTHONDONTWRITEBYTECODE")
    environ = {name: value for name, value in os.environ.items() if name not in left_out}
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        check=False,
        cwd=installation.examples,
        env={**environ, "PYTHONPATH": str(installation.package), "PYTHONSAFEPATH": "1"},
    )


def run(installation, *arguments, code=0):
    """Run jobgen in the copy, and return its output if it succeeds, else its errors."""
    done = start(installation, "-m", "jobgen", "--no-cache", *arguments)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr if code else done.stdout


RUN_EACH = """
import json, sys
from jobgen.cli.main import run
for words in json.loads(sys.argv[1]):
    try:
        code = run(words)
    except SystemExit as end:
        code = end.code
    print(end=f"\\0{code}\\0", flush=True)
"""


def run_each(installation, commands):
    """Run commands in one process in the copy, and return the output of each by its name."""
    words = json.dumps([["--no-cache", *arguments] for arguments in commands.values()])
    done = start(installation, "-c", RUN_EACH, words)
    outputs = done.stdout.split("\0")
    assert outputs[1::2] == ["0"] * len(commands), done.stderr
    return dict(zip(commands, outputs[::2], strict=False))


def list_commands(installation):
    """The commands that the help lists."""
    done = start(installation, "-m", "jobgen", "--help")
    assert done.returncode == 0, done.stderr
    _, _, groups = done.stdout.partition("Write:\n")
    machinery = re.findall(r"\b(?:cmp|fn|lsp|mcp)\b", groups.rpartition("Other programs run ")[2])
    return {*re.findall(r"^  ([a-z-]+)  ", groups, re.MULTILINE), *machinery}


@each_feature
def test_the_core_works_without_a_feature(without, expected):
    name, installation = without
    assert run_each(installation, COMMANDS) == expected
    assert all(expected.values())
    needed = {name, *(other for other, feature in all_features().items() if name in feature.needs)}
    needed |= {other for other, feature in all_features().items() if needed & {*feature.needs}}
    gone = {command for other in needed for command in SHIPPED.get(other, ())}
    assert list_commands(installation) == EVERY_COMMAND - gone
    for command in sorted(gone):
        assert f"there is no command `{command}`: {MISSING}" in run(installation, command, code=2)


@lacking_kueue
def test_a_command_of_a_missing_feature_names_it(without):
    _, installation = without
    message = "there is no command `queue`: this jobgen installation does not have the feature `kueue`"
    assert message in run(installation, "queue", code=2)
    assert message in run(installation, "queue", "--help", code=2)
    assert "does not have the feature `kueue`" in run(installation, "report", code=2)
    assert "did you mean" not in run(installation, "queue", code=2)


@lacking_kueue
def test_rules_of_a_missing_feature_are_not_run(without):
    _, installation = without
    assert "inadmissible-job" not in run(installation, "lint", "queues.yaml", "--format", "concise")
    assert "inadmissible-job" in run(installation, "explain", "inadmissible-job", code=3)


def test_rules_of_a_feature_are_run(installation):
    assert "[inadmissible-job]" in run(installation, "lint", "queues.yaml", "--format", "concise")
    assert "A job that Kueue can never admit" in run(installation, "explain", "inadmissible-job")


@pytest.mark.parametrize("without", ["second_opinion"], indirect=True)
def test_an_option_of_a_missing_feature_is_an_error(without):
    _, installation = without
    assert "does not have the feature `second_opinion`" in run(installation, "lint", "--second-opinion", code=2)


@pytest.mark.parametrize("without", ["page"], indirect=True)
def test_a_format_of_a_missing_feature_is_not_offered(without):
    _, installation = without
    assert "`html` is not a value of" in run(installation, *COMMANDS["diff"], "--format", "html", code=2)


@pytest.mark.parametrize(
    ("without", "option"), [("convert", "--from=jobs"), ("gitops", "--gitops=flux")], indirect=["without"]
)
def test_a_new_repository_says_which_feature_it_needs(without, option):
    name, installation = without
    assert f"does not have the feature `{name}`" in run(installation, "init", "new", option, code=2)


@lacking_kueue
def test_a_public_name_of_a_missing_feature_names_it(without):
    _, installation = without
    done = start(installation, "-c", "import jobgen; jobgen.QueueChanges; jobgen.queue")
    message = "module 'jobgen' has no attribute 'queue': this jobgen installation does not have the feature `kueue`"
    assert done.stderr.endswith(f"AttributeError: {message}\n")


@lacking_kueue
def test_completion_leaves_out_commands_of_a_missing_feature(without):
    _, installation = without
    program = "from jobgen.cli.group import cli; print(*cli.list_commands(None))"
    found = start(installation, "-c", program).stdout.split()
    assert "lint" in found
    assert not {"queue", "report", "lsp"} & {*found}


@each_feature
def test_no_folder_but_its_python_files_is_no_feature(without):
    """Git leaves folders with compiled modules behind when a branch without the feature is checked out."""
    name, installation = without
    (installation.find_feature(name) / "__pycache__").mkdir(parents=True)
    try:
        assert name not in start(installation, "-c", LIST).stdout.split()
    finally:
        shutil.rmtree(installation.find_feature(name))


LIST = "from jobgen.model.features import all_features; print(*all_features())"


def test_a_folder_adds_a_feature(installation):
    folder = installation.find_feature("greeting")
    (folder / "commands").mkdir(parents=True)
    (folder / "__init__.py").write_text("from jobgen.model.features import Feature\n\nFEATURE = Feature()\n")
    (folder / "commands/__init__.py").write_text("")
    (folder / "commands/say_hello.py").write_text(GREETING)
    try:
        assert "say-hello" in list_commands(installation)
        assert run(installation, "say-hello") == "hello\n"
    finally:
        shutil.rmtree(folder)


GREETING = '''
import click
from jobgen.cli.result import ExitCode, Result


@click.command("say-hello")
def command():
    """Greet."""
    return Result(ExitCode.OK, "hello\\n")
'''


@pytest.mark.parametrize("name", NAMES)
def test_a_feature_has_the_parts_that_it_names(name):
    assert all(map(find_parts, all_features()[name].parts))


@pytest.mark.parametrize("name", NAMES)
def test_every_part_is_asked_for_elsewhere(name):
    own = ROOT / "jobgen/features" / name
    others = [path.read_text("utf-8") for path in (ROOT / "jobgen").rglob("*.py") if own not in path.parents]
    for slot in all_features()[name].parts:
        asked = (f'"{slot}"', f'"{slot.rpartition(".")[0]}.{{')
        assert any(each in text for text in others for each in asked), slot


def test_every_public_name_is_there():
    assert all(getattr(jobgen, name) is not None for name in jobgen.__all__)

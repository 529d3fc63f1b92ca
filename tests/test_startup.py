"""What a process imports before it does its work: imports are most of the time of a short run.

The lists name modules, because times differ from machine to machine. Whoever adds an import sees here what it costs
every run.
"""

from __future__ import annotations

import os
import subprocess
import sys

import click
import pytest

from jobgen.cli.app import cli

RUN = """
import os, sys
from jobgen.cli.main import run
try:
    code = run(sys.argv[1:])
except SystemExit as end:
    code = end.code
sys.stdout.flush()
print(code, *sys.modules, file=sys.stderr, flush=True)
os._exit(0)
"""
HELP = {
    "jobgen",
    "jobgen.cli",
    "jobgen.cli.help_texts",
    "jobgen.cli.main",
    "jobgen.cli.result",
    "jobgen.cli.terminal",
    "jobgen.model",
    "jobgen.model.features",
    "jobgen.model.limits",
    "jobgen.model.named_tuple",
}


def list_imports(*arguments, folder=None, **environ):
    """Run jobgen in a process; return what it prints and all modules that it has imported."""
    # Processes of xdist have COLUMNS, for which click formats the help.
    inherited = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    process = subprocess.run(
        [sys.executable, "-P", "-c", RUN, *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env={**inherited, **environ},
    )
    code, *modules = process.stderr.splitlines()[-1].split()
    return int(code), process.stdout, set(modules)


def own(modules):
    return {name for name in modules if name.partition(".")[0] == "jobgen"}


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["lint", "--help"]])
def test_help_imports_neither_commands_nor_click(arguments):
    code, out, modules = list_imports(*arguments)
    assert (code, bool(out)) == (0, True)
    assert own(modules) == HELP
    assert not modules & {"click", "enum", "json", "pathlib", "re", "shutil", "signal", "typing"}


def test_version_imports_the_command_line_alone():
    code, out, modules = list_imports("--version")
    assert (code, bool(out)) == (0, True)
    assert own(modules) == HELP | {"jobgen.api", "jobgen.api.errors", "jobgen.cli.app", "jobgen.cli.commands"}
    assert not modules & {"yaml", "cel_expr_python", "json", "pathlib", "hashlib", "dataclasses"}


COMPLETION = {
    "jobgen",
    "jobgen.cli",
    "jobgen.cli.completion",
    "jobgen.cli.completion.candidates",
    "jobgen.cli.completion.commands",
    "jobgen.cli.completion.complete",
    "jobgen.cli.completion.table",
    "jobgen.cli.result",
    "jobgen.cli.terminal",
    "jobgen.model",
    "jobgen.model.features",
    "jobgen.model.limits",
    "jobgen.model.named_tuple",
}
COMPLETE = """
import os, sys
from jobgen.cli.completion.complete import complete
report = os.dup(2)
code = complete(sys.argv[1], sys.argv[2:])
os.write(report, " ".join([str(code), *sys.modules]).encode())
os._exit(0)
"""


@pytest.mark.parametrize(
    ("shell", "words"),
    [("bash", ["jobgen lint --f"]), ("zsh", ["jobgen", "lint", "--f"]), ("fish", ["jobgen", "lint", "--f"])],
)
def test_completion_imports_neither_commands_nor_click(shell, words):
    process = subprocess.run(
        [sys.executable, "-P", "-c", COMPLETE, shell, *words], capture_output=True, text=True, check=True
    )
    code, *modules = process.stderr.split()
    assert (code, "--format" in process.stdout) == ("0", True)
    assert own(modules) == COMPLETION
    assert not set(modules) & {"click", "enum", "json", "pathlib", "re", "shlex", "signal", "typing"}


def test_help_lists_every_command_as_its_module_documents_it():
    context = click.Context(cli)
    names = cli.list_commands(context)
    assert "import" in names
    for name in names:
        listed = cli.get_command(context, name)
        _, command, rest = cli.resolve_command(context, [name, "x"])
        assert (listed.name, listed.get_short_help_str(), listed.hidden, listed.deprecated, rest) == (
            command.name,
            command.get_short_help_str(),
            command.hidden,
            command.deprecated,
            ["x"],
        )
        assert listed.get_short_help_str()


MANIFEST = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: bert, namespace: ml, labels: {kueue.x-k8s.io/queue-name: ml}}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: OnFailure
      template:
        spec:
          containers:
            - name: pytorch
              image: registry.example.com/ml/bert:1.4.2
              resources: {limits: {cpu: 4, memory: 16Gi, nvidia.com/gpu: 1}}
"""
NOT_FOR_A_LINT = {
    "_hashlib",  # OpenSSL
    "calendar",
    "click",
    "dataclasses",
    "decimal",
    "inspect",
    "jobgen.check.cel.checks",  # compiles expressions; those of shipped policies are ready
    "jobgen.check.cel.tree",
    "jobgen.check.policy.mutate",
    "jobgen.repo.rendered_tree",
    "subprocess",
    "textwrap",
    "yaml",
}
MOST_MODULES = 229
"""The most modules of jobgen, beside rules, that a lint of one manifest imports. Raise it only for what all need."""
MOST_RULES = 80
"""The most modules of rules: those that read something that the manifest has. There are some 140 in all."""


@pytest.mark.parametrize("options", [(), ("--format", "concise"), ("--format=concise",)])
def test_lint_of_one_manifest_imports_what_it_needs(tmp_path, options):
    (tmp_path / "job.yaml").write_text(MANIFEST)
    code, _, modules = list_imports(
        "lint", *options, "job.yaml", folder=tmp_path, XDG_CACHE_HOME=str(tmp_path.with_name(f"{tmp_path.name}-cache"))
    )
    assert code == 0
    assert modules & NOT_FOR_A_LINT == set()
    assert len([name for name in own(modules) if not name.startswith("jobgen.check.rules.")]) <= MOST_MODULES
    assert len([name for name in modules if name.startswith("jobgen.check.rules.")]) <= MOST_RULES
    assert "jobgen.check.policy.evaluator" in modules


@pytest.mark.parametrize(
    "arguments",
    [["--format"], ["--format", "xml"], ["--format=", "job.yaml"], ["--format=concise", "--fix", "job.yaml"]],
)
def test_lint_with_other_options_is_parsed_by_click(tmp_path, arguments):
    (tmp_path / "job.yaml").write_text(MANIFEST)
    _, _, modules = list_imports(
        "lint", *arguments, folder=tmp_path, XDG_CACHE_HOME=str(tmp_path.with_name(f"{tmp_path.name}-cache"))
    )
    assert "click" in modules

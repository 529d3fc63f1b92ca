"""What a process imports before it does its work: imports are most of the time of a short run.

The lists name modules, because times differ from machine to machine. Whoever adds an import sees here what it costs
every run.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from jobgen.repo import ready

RUN = """
import os, sys
before = {*sys.modules}  # since Python 3.13, `-c` itself imports `linecache`
from jobgen.cli.main import run
try:
    code = run(sys.argv[1:])
except SystemExit as end:
    code = end.code
sys.stdout.flush()
print(code, *(sys.modules.keys() - before), file=sys.stderr, flush=True)
os._exit(0)
"""
SLOW = {
    "cel_expr_python",
    "jobgen.api.project",
    "jobgen.check",
    "jobgen.pipeline",
    "jobgen.rendering",
    "yaml",
}
"""What a list of commands, or a version, does not need."""


STANDARD_LIBRARY = set(
    "ast base64 decimal dis email fractions gettext hashlib hmac inspect linecache locale platform random shutil"
    " subprocess tempfile tokenize uuid".split()
)
"""Modules that take long to import, and that nothing on the way to a file without findings needs."""


def list_imports(*arguments, folder=None, **environ):
    """Run jobgen in a process; return what it prints and all modules that it has imported."""
    # Some processes have COLUMNS, for which click formats the help.
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


def require_ready(*tables):
    if not all(os.path.isfile(ready.find_file(table)) for table in tables):
        pytest.skip("the tables are not ready; run `make compile`")


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["--version"], []])
def test_commands_are_listed_without_importing_them(arguments):
    code, _, modules = list_imports(*arguments)
    assert code == (0 if arguments else 2)
    assert modules & SLOW == set()
    assert [name for name in modules if ".commands." in name] == []


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["--version"]])
def test_stored_help_imports_next_to_nothing(arguments):
    require_ready(ready.HELP)
    _, _, modules = list_imports(*arguments)
    own = {name for name in modules if name.partition(".")[0] == "jobgen"}
    assert modules & (STANDARD_LIBRARY | {"click", "json", "pathlib", "re", "typing"}) == set()
    assert len(own) <= 15


def test_help_of_a_command_imports_no_other():
    code, out, modules = list_imports("lint", "--help")
    assert (code, bool(out)) == (0, True)
    commands = {name for name in modules if ".commands." in name}
    assert commands == {"jobgen.cli.commands.lint"}


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
NOT_FOR_A_LINT = STANDARD_LIBRARY | {
    "click",  # for options that are not plain
    "jobgen.check.cel.checks",  # compiles expressions; those of shipped policies are ready
    "jobgen.check.policy.mutate",
    "jobgen.repo.rendered_tree",
    "ruamel",  # for `import`, `migrate` and `init`
    "yaml",
}
# Two more since sentences of problems, and objects without locations, are values with modules of their own.
MOST_MODULES = 225
"""The most modules of jobgen, beside rules, that a lint of one manifest imports. Raise it only for what all need."""


@pytest.mark.parametrize("options", [(), ("--format", "concise")])
def test_lint_of_one_manifest_imports_what_it_needs(tmp_path, options):
    require_ready(ready.DOCUMENTS, ready.EXPRESSIONS, ready.ARGUMENTS)
    (tmp_path / "job.yaml").write_text(MANIFEST)
    code, _, modules = list_imports(
        "lint", *options, "job.yaml", folder=tmp_path, XDG_CACHE_HOME=str(tmp_path.with_name(f"{tmp_path.name}-cache"))
    )
    own = {name for name in modules if name.partition(".")[0] == "jobgen"}
    assert code == 0
    assert modules & NOT_FOR_A_LINT == set()
    assert len([name for name in own if ".rules." not in name]) <= MOST_MODULES
    assert "jobgen.check.policy.evaluator" in modules


def test_render_imports_neither_click_nor_what_writes_comments(tmp_path):
    require_ready(ready.ARGUMENTS)
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/bert.yaml").write_text(MANIFEST)
    code, out, modules = list_imports("render", folder=tmp_path)
    assert (code, "kind: PyTorchJob" in out) == (0, True)
    assert modules & {"click", "ruamel"} == set()

"""Every command in every situation: a documented exit code, no traceback, and an error that says what to do."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from command import jobgen
from sampling import sample
from test_disk_failures import no_rights, run_in_trouble

from jobgen.cli.commands import GROUPS, MACHINERY
from jobgen.cli.result import ExitCode

JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert, namespace: ml}
spec:
  framework: pytorch
  image: registry.example.com/bert:1.2.3
"""
FILES = {
    "jobgen.yaml": "",
    "jobs/bert.yaml": JOB,
    "overlays/dev/overlay.yaml": "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {}\n",
}


def write(**changed: str | None) -> Callable[[Path], None]:
    """Return what writes a repository in which some files are others, or missing."""

    def write_all(root: Path) -> None:
        for path, text in {**FILES, **{name.replace("__", "/"): text for name, text in changed.items()}}.items():
            name = path if path in FILES or path.endswith(".yaml") else f"{path}.yaml"
            if text is not None:
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)

    return write_all


def write_nothing(root: Path) -> None:
    """A folder without files."""


def write_folder_as_file(root: Path) -> None:
    (root / "jobs").write_text("x")
    (root / "jobgen.yaml").write_text("")


class Situation(NamedTuple):
    write: Callable[[Path], None] = write()
    git: bool = True
    variables: Mapping[str, str] = {}


BROKEN = "spec: [\n"
SITUATIONS = {
    "good": Situation(),
    "no repository": Situation(write_nothing, git=False),
    "empty repository": Situation(write(**dict.fromkeys(FILES), jobgen="")),
    "outside of git": Situation(git=False),
    "settings are broken": Situation(write(**{"jobgen.yaml": BROKEN})),
    "settings are wrong": Situation(write(**{"jobgen.yaml": "lnt: 5\nselect: 5\n"})),
    "overlay is broken": Situation(write(**{"overlays/dev/overlay.yaml": BROKEN})),
    "job is broken": Situation(write(**{"jobs/bert.yaml": BROKEN})),
    "others are broken": Situation(
        write(policies__a=BROKEN, schemas__a=BROKEN, teams__a=BROKEN, tests__a=BROKEN, runtimes__a=BROKEN)
    ),
    "jobs is a file": Situation(write_folder_as_file),
    "without programs": Situation(variables={"PATH": "/nonexistent"}),
    "without a home": Situation(variables={"HOME": "/proc/nothing", "XDG_CACHE_HOME": "/proc/nothing"}),
    "without a network": Situation(variables=dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")),
}

COMMANDS = """
--version
--help
lint
lint --since HEAD
lint --since nothing
lint --policy-from nothing
lint --fix
lint --fix --diff
lint --write-baseline
lint --baseline nothing.json
lint nothing.yaml
lint -f nothing.yaml
lint -e nothing
lint --select nothing
lint --ignore nothing
lint --severity nothing
lint --format nothing
lint --format
lint --today soon
lint --second-opinion
lint --explain-files
lint --selct x
lint --nothing
render
render nothing
render -e nothing
render -o out
render -o out --check
render --since nothing
render --output
diff
diff nothing
diff a..b
diff a b
diff --folders old new
diff -o
diff --format html -o x.html
report
report -o site
report -o site --since nothing
report -o site --prices nothing
explain
explain bert
explain bert nothing
explain nothing
explain mutable-image-tag
init
init new
init --from nothing
init --ci nothing
new
new x
new ../x
new X_Y
new x --platform ray
new x --gpus many
import
import nothing.yaml
import jobs
import jobs -o jobs/x
migrate
migrate bert
migrate bert --to trainer
migrate bert --to nothing
migrate nothing --to trainer
migrate nothing.yaml --to trainer
migrate --all --to trainer
migrate --all bert --to trainer
test
test nothing
policy
policy list
policy check
policy test
policy docs
policy nothing
queue
queue nothing
queue --what-if x
queue --timeline
queue --history nothing --timeline
upgrade
upgrade --kubernetes 1.33
upgrade --kubernetes 1.99
upgrade --operator x
upgrade --operator x=1
upgrade --to nothing
capture --dry-run
drift --captured
doctor
doctor nothing
rules
rules nothing
exceptions
exceptions --expired
teams
teams nothing
codeowners
codeowners --check
completion
completion bash
completion nothing
gitops
gitops argocd
gitops flux
gitops nothing
schema
schema list
schema build
schema build --check
schema import nothing.yaml
schema editor
schema export schemas-out
schema update nothing
schema print
schema print Nothing
cmp
cmp generate
cmp parameters
cmp nothing
fn
fn nothing
lsp --nothing
mcp --nothing
nothing
list
lnt
fix
merge-reports
--nothing lint
--format json lint
-C nothing lint
-C
--no-cache
--traceback lint
""".strip().splitlines()
PAIRS = [(command, name) for command in COMMANDS for name in SITUATIONS]

# A value in backticks or a reason, and behind it what to do.
ADVICE = re.compile(r"; [a-z`]|: run |such as `")
FINDING = re.compile(r"^\S+?:\d+(:\d+)?: ", re.MULTILINE)


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder for each situation, from which the commands get copies."""
    found = {}
    for name, situation in SITUATIONS.items():
        root = found[name] = tmp_path_factory.mktemp("template")
        situation.write(root)
        if situation.git:
            author = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
            for words in (["init", "-qb", "main"], ["add", "-A"], [*author, "commit", "-qm", "x", "--allow-empty"]):
                subprocess.run(["git", *words], cwd=root, check=True)
    return found


def run_in(situation: Situation, template: Path, root: Path, command: str) -> subprocess.CompletedProcess[bytes]:
    shutil.copytree(template, root)
    home = {"HOME": str(root.parent / "home"), "GIT_CEILING_DIRECTORIES": str(root.parent)}
    return jobgen(root, *shlex.split(command), **{**home, **situation.variables})


def assert_end(command: str, code: int, out: str, err: str) -> None:
    """Fail if the end of a command is not documented, or says nothing that helps."""
    assert "Traceback" not in err
    assert "internal error" not in err
    assert code in (ExitCode.OK, ExitCode.ERRORS, ExitCode.USAGE, ExitCode.NOTHING_TO_DO, ExitCode.INTERNAL_ERROR)
    if code == ExitCode.OK:
        return
    assert out + err
    lines = err.splitlines()
    if err.startswith("Usage:"):
        assert "Commands:" in err
    elif code in (ExitCode.USAGE, ExitCode.NOTHING_TO_DO):
        said = next(line for line in lines if line.startswith("jobgen: "))
        assert ADVICE.search(said) or FINDING.search(err) or "not imported: " in err, said
        is_machinery = command.partition(" ")[0] in MACHINERY
        assert is_machinery or lines[-1].startswith("see: https://"), err
    else:
        # Findings, files or the next command say what to do.
        assert FINDING.search(out + err) or re.search(r"next: |: missing|: exists|run `", out + err), out + err


@pytest.mark.parametrize(("command", "name"), sample(PAIRS, 8))
def test_a_command_ends_with_advice(command: str, name: str, templates: dict[str, Path], tmp_path: Path) -> None:
    done = run_in(SITUATIONS[name], templates[name], tmp_path / "root", command)

    assert_end(command, done.returncode, done.stdout.decode(), done.stderr.decode())


def test_every_command_is_tried() -> None:
    tried = {word for command in COMMANDS for word in command.split()}

    assert {*MACHINERY, *(name for several in GROUPS.values() for name in several)} <= tried


# Commands that need a repository, and what some commands say in some situations.
ANYWHERE = ("init", "lint", "rules", "explain", "completion", "doctor", "schema", "import", "migrate", "diff")
IN_REPOSITORIES = sorted(
    {name for several in GROUPS.values() for name in several} - {*ANYWHERE, "new", "policy", "gitops"}
)
NEEDED = {"report": "-o site", "capture": "", "upgrade": "--kueue 0.19"}


@pytest.mark.parametrize(
    "command",
    [*(f"{name} {NEEDED.get(name, '')}" for name in IN_REPOSITORIES), "new x", "policy list", "gitops flux"],
)
def test_a_command_that_needs_a_repository_says_how_to_write_one(command, templates, tmp_path):
    done = run_in(SITUATIONS["no repository"], templates["no repository"], tmp_path / "root", command)

    assert done.returncode == ExitCode.USAGE
    assert "no jobs repository" in done.stderr.decode()
    assert "`jobgen init` writes one" in done.stderr.decode()


ENDS = {
    ("lint", "no repository"): (3, "nothing to lint here; name a file or folder with manifests, or run `jobgen init`"),
    ("lint", "empty repository"): (3, "there is nothing to lint here (skipped: 1 hidden); name a file"),
    ("render", "empty repository"): (3, "there is no job under jobs/; write one with `jobgen new NAME`"),
    ("diff", "outside of git"): (2, "this is not a Git repository, so it has no revisions; run `git init` and commit"),
    ("diff", "without programs"): (2, "git is not on PATH, and is needed to read revisions; install it"),
    ("diff nothing", "good"): (2, "there is no revision `nothing`; `git branch --all` and `git log` list them"),
    ("lint -f nothing.yaml", "good"): (2, "there is no file `nothing.yaml`; check the path of the values"),
    ("lint -e nothing", "good"): (2, "there is no environment `nothing`; choose one of dev"),
    ("lint -e nothing", "no repository"): (2, "there is no environment `nothing`; write overlays/nothing/overlay.yaml"),
    ("lint --selct x", "good"): (2, "there is no option `--selct`; did you mean `--select`?"),
    ("lint --disable x", "good"): (2, "there is no option `--disable`; use `--ignore` for rules, and `exclude`"),
    ("lint -e development", "good"): (2, "there is no environment `development`; did you mean `dev`?"),
    ("explain image", "good"): (3, "`image` is a category of rules; `jobgen rules image` lists them"),
    ("explain nothing", "good"): (3, "there is no job or rule `nothing`; the only job is `bert`; `jobgen rules` li"),
    ("lint --nothing", "good"): (2, "there is no option `--nothing`; `jobgen lint --help` lists the options"),
    ("--format json lint", "good"): (2, "the options; those of a command stand behind its name"),
    ("lint --severity nothing", "good"): (2, "`nothing` is not a value of `--severity`; write `error`, `warning` or"),
    ("lint --format", "good"): (2, "`--format` has no value; write one behind it"),
    ("new x --gpus many", "good"): (2, "`many` is not a value of `--gpus`; write a whole number from 0 to 1024"),
    ("new", "good"): (2, "`[FOLDER/]NAME` is missing; write `jobgen new [FOLDER/]NAME`"),
    ("completion", "good"): (2, "`{bash|zsh|fish}` is missing; write `jobgen completion bash`"),
    ("migrate bert", "good"): (2, "`--to KIND|PLATFORM` is missing; write `jobgen migrate --to KIND|PLATFORM`"),
    ("doctor nothing", "good"): (2, "`jobgen doctor` takes no further argument `nothing`; remove it"),
    ("list", "good"): (2, "there is no command `list`; use `jobgen report` for all jobs"),
    ("lnt", "good"): (2, "there is no command `lnt`; did you mean `lint`?"),
    ("nothing", "good"): (2, "there is no command `nothing`; `jobgen --help` lists the commands"),
    ("policy nothing", "good"): (2, "there is no command `nothing`; `jobgen policy --help` lists the commands"),
    ("merge-reports", "good"): (2, "there is no command `merge-reports`; it was removed"),
    ("--no-cache", "good"): (2, "a command is missing; `jobgen --help` lists the commands"),
    ("schema print Nothing", "good"): (3, "there is no kind `Nothing`; `jobgen schema list` lists the kinds"),
    ("upgrade --kubernetes 1.33", "overlay is broken"): (1, "0 environments rehearsed: 1 not rehearsed, because of er"),
    ("drift --captured", "good"): (2, "environment `dev` names no folder for the state of its cluster; set `cluster:"),
    ("drift --captured", "empty repository"): (2, "the repository names no folder for the state of its cluster; set"),
}


@pytest.mark.parametrize(("command", "name"), ENDS)
def test_an_error_says_what_to_do(command, name, templates, tmp_path):
    done = run_in(SITUATIONS[name], templates[name], tmp_path / "root", command)
    code, said = ENDS[command, name]

    assert (done.returncode, said in done.stderr.decode()) == (code, True), done.stderr.decode()


# What writes: nothing can be written to the folder, and all that is said is which file, and why.
WRITERS = ["lint --fix --write-baseline", "render -o out", "report -o site", "new x", "init new", "schema editor"]
READERS = ["lint", "render", "diff", "explain bert", "doctor", "rules", "policy list", "schema list", "exceptions"]


@pytest.mark.parametrize("command", [*sample(WRITERS, 2), *sample(READERS, 4)])
def test_a_folder_that_cannot_be_written(command, templates, tmp_path):
    root = tmp_path / "root"
    shutil.copytree(templates["good"], root)
    folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        code, said = run_in_trouble(root, no_rights, *shlex.split(command))
    finally:
        for folder in folders:
            folder.chmod(0o755)

    assert "internal error" not in said
    assert "Traceback" not in said
    if command in READERS:
        assert code == ExitCode.OK, said
    else:
        assert (code, "Permission denied" in said) == (ExitCode.INTERNAL_ERROR, True), said
        assert "change the permissions of its folder" in said, said


def test_the_current_folder_is_gone(tmp_path):
    (tmp_path / "gone").mkdir()
    script = f"cd gone && rmdir ../gone && {shlex.quote(sys.executable)} -m jobgen lint"
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (2, "jobgen: the current folder does not exist; change to another one\n")

"""`jobgen doctor` on real repositories: what it finds, and that each advice helps when it is followed."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from command import run_jobgen_text
from jobgenprocess import install_jobgen
from jsonschema import Draft202012Validator

from jobgen import __version__
from jobgen.cli.doctor.machine import EXTRAS, describe_extras

ROOT = Path(__file__).parent.parent
SCHEMA = json.loads((ROOT / "docs/doctor_v1.json").read_text("utf-8"))
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert, namespace: ml}
spec: {framework: pytorch, image: registry.example.com/bert:1.0, roles: {master: {}}}
"""
MANIFEST = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: gpt, namespace: ml}
spec:
  pytorchReplicaSpecs:
    Master:
      template: {spec: {containers: [{name: pytorch, image: registry.example.com/gpt:1.0}]}}
"""
OVERLAY = """\
apiVersion: jobgen.dev/v1
kind: Overlay
spec: {cluster: {operators: {training-operator: 1.9.0}, kubernetes: '1.33'}}
"""
IDENTITY = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com"}
IDENTITY |= {name.replace("AUTHOR", "COMMITTER"): value for name, value in IDENTITY.items()}


def write_program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


class User:
    """Someone with a repository, a home folder, and on PATH jobgen and stand-ins for what starts slowly.

    The stand-in for pre-commit prints its version and leaves all else to the real program.
    """

    def __init__(self, folder: Path) -> None:
        self.root, self.home = folder / "repository", folder / "home"
        self.root.mkdir()
        self.home.mkdir()
        install_jobgen(folder / "bin")
        write_program(folder / "bin/kubectl", "echo Client Version: v1.33.0")
        number, real = version("pre-commit"), shlex.quote(str(Path(sys.executable).with_name("pre-commit")))
        write_program(
            folder / "bin/pre-commit", f'[ "$*" = --version ] && exec echo pre-commit {number}\nexec {real} "$@"'
        )
        path = f"{folder / 'bin'}:{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
        self.environ = {"PATH": path, "HOME": str(self.home), "SHELL": "/bin/bash", **IDENTITY}

    def write(self, files: dict[str, str]) -> None:
        for path, text in files.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text)

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", command], cwd=self.root, env=self.environ, capture_output=True, text=True, check=False
        )

    def doctor(self) -> dict[str, dict[str, Any]]:
        done = run_jobgen_text(self.root, "doctor", "--format", "json", env=self.environ)
        assert done.stderr == ""
        report = json.loads(done.stdout)
        Draft202012Validator(SCHEMA).validate(report)
        assert report["ok"] == all(check["status"] != "problem" for check in report["checks"])
        assert done.returncode == (0 if report["ok"] else 1)
        # What is to be done has a command, and only that.
        assert all((check["status"] == "ok") == (check["next"] == "") for check in report["checks"])
        return {check["name"]: check for check in report["checks"]}

    def follow(self, name: str, status: str, code: int = 0) -> dict[str, Any]:
        """Do what a check advises; return the check before it."""
        check = self.doctor()[name]
        assert check["status"] == status, check
        done = self.run(check["next"])
        assert done.returncode == code, done
        return check


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path)


@pytest.fixture
def owner(user: User) -> User:
    """Someone with a job."""
    user.write({"jobgen.yaml": "", "jobs/bert.yaml": JOB, "overlays/prod/overlay.yaml": OVERLAY})
    return user


def test_a_folder_without_a_repository(user: User) -> None:
    assert "no jobgen.yaml" in user.follow("repository", "problem")["found"]
    checks = user.doctor()
    assert checks["repository"]["facts"] == {"root": str(user.root)}
    assert checks["jobs"]["facts"]["jobs"] == 1
    assert not [check for check in checks.values() if check["status"] == "problem"]


def test_what_is_found(owner: User) -> None:
    owner.write({"teams/vision.yaml": "apiVersion: jobgen.dev/v1\nkind: Team\nspec: {folders: [jobs/vision]}\n"})
    for stand_in in ("kubectl", "pre-commit"):
        (owner.home.parent / "bin" / stand_in).unlink()
    facts = {name: check["facts"] for name, check in owner.doctor().items()}

    assert facts["jobgen"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert facts["jobs"] == {"files": 1, "jobs": 1, "errors": 0}
    assert facts["environments"] == {"overlays": ["prod"], "default": ["prod"], "errors": 0}
    declared = {"platforms": ["kubeflow"], "operators": {"training-operator": "1.9.0"}, "kubernetes": "1.33"}
    assert facts["operators"] == {"environments": {"prod": declared}}
    assert facts["schemas"] == {"oldest": "1.30", "newest": "1.36", "declared": {"prod": "1.33"}}
    assert facts["teams"]["teams"] == ["vision"]
    assert facts["policies"]["ownFiles"] == 0
    git = subprocess.run(["git", "version"], capture_output=True, text=True, check=True).stdout
    assert git == f"git version {facts['git']['version']}\n"
    assert facts["hooks"]["preCommit"] == version("pre-commit")
    kubectl = owner.run("kubectl version --client").stdout
    assert facts["kubectl"]["version"] in kubectl.partition("\n")[0].split()


def test_a_repository_without_settings(user: User) -> None:
    user.write({"jobs/bert.yaml": JOB})
    user.follow("settings", "note")
    assert user.doctor()["settings"]["status"] == "ok"


# Settings that cannot be read at all are refused; other errors are findings.
@pytest.mark.parametrize(
    ("text", "code"),
    [("environments: [", 1), ("environments: [none]\n", 1), ("- 1\n", 2), ("\0", 2), ("unknown: 1\n", 1)],
)
def test_broken_settings_are_one_line(owner: User, text: str, code: int) -> None:
    owner.write({"jobgen.yaml": text})
    check = owner.follow("settings", "problem", code=code)
    assert check["facts"]["errors"] >= 1
    assert "jobgen.yaml:" in check["found"]
    done = owner.run(check["next"])
    assert "jobgen.yaml:" in (done.stdout if code == 1 else done.stderr)


def test_another_version_is_required(owner: User) -> None:
    owner.write({"jobgen.yaml": "required-version: '>=9,<10'\n"})
    checks = owner.doctor()
    assert checks["required-version"]["next"] == "pip install 'jobgen>=9,<10'"
    assert checks["settings"]["status"] == "ok"
    # What pip would install; there is no such version.
    done = owner.run(f"{checks['required-version']['next']} --no-index --dry-run")
    assert "jobgen<10,>=9" in done.stderr


@pytest.mark.parametrize(
    ("path", "text", "name", "code"),
    [
        ("overlays/prod/overlay.yaml", "kind: Overlay\nspec: {patchs: []}\n", "environments", 1),
        ("jobs/bert.yaml", JOB.replace("framework", "framwork"), "jobs", 1),
        ("teams/vision.yaml", "kind: Team\nspec: {x: 1}\n", "teams", 1),
        (
            "policies/a.yaml",
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\n",
            "policies",
            1,
        ),
    ],
)
def test_broken_layers_are_shown_by_the_command(owner: User, path: str, text: str, name: str, code: int) -> None:
    owner.write({path: text})
    check = owner.follow(name, "problem", code)
    done = owner.run(check["next"])
    assert f"{path}:" in check["found"]
    assert f"{path}:" in done.stdout + done.stderr


def test_a_repository_without_jobs(user: User) -> None:
    user.write({"jobgen.yaml": "", "manifests/a.yaml": MANIFEST})
    user.follow("jobs", "note")
    assert user.doctor()["jobs"]["facts"] == {"files": 1, "jobs": 1, "errors": 0}


def test_jobs_are_looked_for_in_all_folders(user: User) -> None:
    user.write({"jobgen.yaml": "", "charts/a.yaml": "kind: Deployment\n", "my jobs/deep/a.yaml": MANIFEST})
    assert user.follow("jobs", "note")["next"] == "jobgen import 'my jobs/' -o jobs"
    assert user.doctor()["jobs"]["facts"]["jobs"] == 1


def test_an_example_is_added_where_there_is_nothing(user: User) -> None:
    user.write({"jobgen.yaml": "# mine\n"})
    assert user.run("jobgen lint").returncode == 3
    check = user.follow("jobs", "note")
    assert user.doctor()["jobs"]["facts"]["jobs"] == 1
    assert (user.root / "jobgen.yaml").read_text() == "# mine\n"
    assert user.run("jobgen lint").returncode == 0
    shutil.rmtree(user.root / "jobs")
    # The last line names the same: `jobgen lint` would find nothing.
    assert user.run("jobgen doctor").stderr.endswith(f"; next: {check['next']}\n")


def test_extras_are_those_of_the_package(owner: User) -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    tools = {"docs", "release", "dev"}
    packages = {name: [re.match(r"[\w-]+", each)[0] for each in declared[name]] for name in declared.keys() - tools}
    assert packages == {name: [package] for name, package in EXTRAS.items()}
    check = owner.doctor()["jobgen"]
    installed = {name: find_spec(package) is not None for name, package in EXTRAS.items()}
    assert check["facts"]["extras"] == installed
    assert check["found"].endswith(describe_extras(installed))


def test_missing_extras_are_named_with_their_installation() -> None:
    found = dict.fromkeys(EXTRAS, True) | {"delta": False, "mcp": False}
    assert describe_extras(found) == "extras: lsp, second-opinion; `pip install 'jobgen[delta,mcp]'` adds delta, mcp"
    assert describe_extras(dict.fromkeys(EXTRAS, True)) == "extras: delta, lsp, mcp, second-opinion"
    assert describe_extras(dict.fromkeys(EXTRAS, False)).startswith("extras: none; `pip install 'jobgen[delta,")


@pytest.mark.parametrize(
    ("install", "pin"),
    [
        ("jobgen==0.1.0", "==0.1.0"),
        ("jobgen[lsp] == 0.1.0", "==0.1.0"),
        ("'jobgen==0.1.*'", "==0.1.*"),
        ("jobgen==0.1.0rc1", "==0.1.0rc1"),
        ("jobgen~=0.1.4", "~=0.1.4"),
        ("'jobgen >= 0.1, <0.2'", ">=0.1,<0.2"),
        ("git+https://git.example.com/tools/jobgen@v0.1.0", "==0.1.0"),
        ("git+https://git.example.com/tools/jobgen.git@0.1.0", "==0.1.0"),
        (f"jobgen=={__version__}", ""),
        (f"jobgen~={__version__}", ""),
        ("'jobgen>=0.1'", ""),
        ("jobgen", ""),
        ("jobgen # not jobgen==0.1.0", ""),
        ("my-jobgen==0.1.0 jobgen-rules==0.1.0", ""),
        ("git+https://git.example.com/tools/jobgen@main", ""),
    ],
)
def test_ci_that_installs_another_version(owner: User, install: str, pin: str) -> None:
    owner.write({".gitlab-ci.yml": f"lint:\n  script:\n    - pip install {install}\n    - jobgen lint\n"})
    check = owner.doctor()["CI"]
    assert (check["status"], check["facts"]["files"]) == ("note" if pin else "ok", [".gitlab-ci.yml"])
    assert check["next"] == (f"pip install 'jobgen{pin}'" if pin else "")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (".github/workflows/a.yaml", "jobs: {a: {steps: [{uses: your-organization/jobgen@TAG}]}}\n"),
        (".github/workflows/a.yaml", "jobs: {a: {container: registry.example.com/tools/jobgen:TAG}}\n"),
        (".gitlab-ci.yml", "a: {image: 'registry.example.com:5000/jobgen:TAG'}\n"),
        (".gitlab-ci.yml", "include: [{project: tools/jobgen, ref: TAG, file: ci/gitlab.yml}]\n"),
        (".gitlab-ci.yml", 'jobgen: {variables: {JOBGEN_VERSION: "TAG"}}\n'),
        (
            ".pre-commit-config.yaml",
            "repos:\n- repo: https://git.example.com/tools/jobgen\n  hooks: [{id: jobgen-lint}]\n  rev: TAG\n",
        ),
        (".pre-commit-config.yaml", "repos: [{rev: TAG, repo: 'git@git.example.com:jobgen.git'}]\n"),
    ],
)
def test_ci_or_hooks_at_a_tag(owner: User, file: str, text: str) -> None:
    notes, fine = ["v0.1.0", "0.1"], [f"v{__version__}", "latest", __version__[:3], "main"]
    fine.append("3f786850e387550fdab836ed7e6dc881de23001b")
    for tag in notes + fine if "steps" in text else notes[:1] + fine[:2]:
        owner.write({file: text.replace("TAG", tag)})
        check = owner.doctor()["CI"]
        assert check["status"] == ("note" if tag in notes else "ok"), check
        assert check["found"].startswith(f"{file} runs jobgen 0.1") == (tag in notes)


@pytest.mark.stress
@pytest.mark.parametrize("engine", ["argocd", "flux"])
def test_gitops_files_of_other_environments(owner: User, engine: str) -> None:
    assert "gitops" not in owner.doctor()
    path = f"gitops/{engine}.yaml"
    owner.write({path: "", "overlays/dev/overlay.yaml": OVERLAY})
    assert owner.run(f"jobgen gitops {engine} > {path}").returncode == 0
    assert owner.doctor()["gitops"]["found"] == f"{path} applies dev, prod"
    owner.write({"overlays/test/overlay.yaml": OVERLAY})
    assert owner.follow("gitops", "note")["found"] == f"{path} does not apply test"
    assert owner.doctor()["gitops"]["found"] == f"{path} applies dev, prod, test"
    shutil.rmtree(owner.root / "overlays/prod")
    assert owner.follow("gitops", "problem")["found"] == f"{path} applies prod, but there is no such environment"
    assert owner.doctor()["gitops"]["found"] == f"{path} applies dev, test"


def test_a_tree_that_was_edited(owner: User) -> None:
    assert owner.run("jobgen render -o rendered").returncode == 0
    assert owner.doctor()["rendered tree"]["status"] == "ok"
    for file in (owner.root / "rendered").rglob(".gitattributes"):
        file.unlink()
    assert ".gitattributes" in owner.follow("rendered tree", "problem")["found"]
    assert owner.doctor()["rendered tree"]["status"] == "ok"
    (owner.root / "rendered/prod/other.yaml").write_text("a: 1\n")
    check = owner.follow("rendered tree", "problem", code=1)
    assert "rendered/prod/other.yaml" in owner.run(check["next"]).stdout


@pytest.mark.stress
def test_files_for_editors(owner: User) -> None:
    owner.follow("editor files", "note")
    assert owner.doctor()["editor files"]["status"] == "ok"
    (owner.root / "schemas/jobgen.dev/trainingjob_v1.json").write_text("{}")
    assert owner.follow("editor files", "note")["facts"]["stale"] == ["schemas/jobgen.dev/trainingjob_v1.json"]
    assert owner.doctor()["editor files"]["status"] == "ok"
    (owner.root / "schemas/jobgen.dev/trainingjob_v1.json").unlink()
    found = owner.follow("editor files", "note")["found"]
    assert found == "1 file missing, such as schemas/jobgen.dev/trainingjob_v1.json"
    assert owner.doctor()["editor files"]["status"] == "ok"


def test_the_cache(owner: User) -> None:
    assert owner.doctor()["cache"]["facts"]["usable"]
    assert owner.run("jobgen lint").returncode == 0
    facts = owner.doctor()["cache"]["facts"]
    folder = Path(facts["folder"])
    assert folder == owner.home / ".cache/jobgen"
    sizes = [file.stat().st_size for file in folder.glob("*/*")]
    assert (facts["entries"], facts["bytes"]) == (len(sizes), sum(sizes))
    assert sizes

    folder.chmod(0o777)
    assert "others can write" in owner.follow("cache", "note")["found"]
    assert owner.doctor()["cache"]["status"] == "ok"

    shutil.rmtree(folder)
    folder.write_text("")
    assert "not a folder" in owner.follow("cache", "note")["found"]
    assert owner.doctor()["cache"]["status"] == "ok"

    owner.environ["XDG_CACHE_HOME"] = str(owner.root / "cache")
    check = owner.follow("cache", "note")
    assert "inside a repository" in check["found"]
    done = owner.run(f"{check['next']}; jobgen doctor --format json")
    checks = {each["name"]: each for each in json.loads(done.stdout)["checks"]}
    assert checks["cache"]["facts"]["usable"]
    shutil.rmtree(Path(checks["cache"]["facts"]["folder"]).parent)


def test_git_from_nothing_to_a_commit(owner: User) -> None:
    assert "not in Git" in owner.follow("git", "note")["found"]
    assert "without a commit" in owner.follow("git", "note")["found"]
    check = owner.doctor()["git"]
    assert (check["status"], check["facts"]["commits"]) == ("ok", True)


def test_a_git_repository_that_cannot_be_read(owner: User) -> None:
    """It is not one that is missing: `git init` would not help."""
    (owner.root / ".git").mkdir()
    (owner.root / ".git/HEAD").write_text("garbage\n")
    assert "cannot read the repository" in owner.follow("git", "problem", code=128)["found"]
    shutil.rmtree(owner.root / ".git")
    (owner.root / ".git").write_text("gitdir: /nowhere\n")
    assert "/nowhere" in owner.follow("git", "problem", code=128)["found"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every folder")
def test_workflows_that_cannot_be_read(owner: User) -> None:
    folder = owner.root / ".github/workflows"
    folder.mkdir(parents=True)
    folder.chmod(0)
    check = owner.follow("CI", "problem")
    folder.chmod(0o755)
    assert check["found"] == f"{folder} cannot be read: Permission denied"


def test_a_shallow_clone(owner: User) -> None:
    owner.run("git init -b main && git add . && git commit -m a && git commit -m b --allow-empty")
    shutil.move(owner.root, owner.root.with_name("origin"))
    clone = ["git", "clone", "-q", "--depth=1", f"file://{owner.root.with_name('origin')}", str(owner.root)]
    subprocess.run(clone, check=True)
    assert owner.follow("git", "note")["facts"]["shallow"]
    assert owner.doctor()["git"]["status"] == "ok"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a repository to another user")
def test_a_repository_of_another_user(owner: User) -> None:
    owner.run("git init && git add . && git commit -m a")
    for path in (owner.root, owner.root / ".git"):
        os.chown(path, 65534, 65534)
    assert "another user owns it" in owner.follow("git", "problem")["found"]
    assert owner.doctor()["git"]["status"] == "ok"


def test_a_machine_without_git(owner: User) -> None:
    programs = owner.home / "programs"
    programs.mkdir()
    for name in ("jobgen", "sh", "env"):
        (programs / name).symlink_to(shutil.which(name, path=owner.environ["PATH"]) or "")
    done = subprocess.run(
        [sys.executable, "-m", "jobgen", "doctor", "--format", "json"],
        cwd=owner.root,
        env={**owner.environ, "PATH": str(programs)},
        capture_output=True,
        text=True,
        check=False,
    )
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert (checks["git"]["status"], checks["git"]["facts"]["version"]) == ("note", "")


def test_hooks_are_installed(owner: User) -> None:
    assert owner.doctor()["hooks"]["found"] == "there is no .pre-commit-config.yaml"
    owner.write({".pre-commit-config.yaml": "repos: []\n"})
    assert owner.doctor()["hooks"]["found"] == "no jobgen hook in .pre-commit-config.yaml"
    config = (ROOT / "jobgen/data/starter/pre-commit-config.yaml").read_text()
    owner.write({".pre-commit-config.yaml": config})
    owner.follow("hooks", "note")  # git init
    assert owner.follow("hooks", "note")["next"] == "pre-commit install"
    check = owner.doctor()["hooks"]
    assert (check["status"], check["facts"]["installed"]) == ("ok", True)


@pytest.mark.stress
def test_hooks_and_ci_of_a_subfolder_count_at_the_top_of_git(owner: User) -> None:
    top = owner.root
    hooks = (ROOT / "jobgen/data/starter/pre-commit-config.yaml").read_text()
    owner.write({"ml/jobgen.yaml": "", "ml/jobs/bert.yaml": JOB, "ml/.pre-commit-config.yaml": hooks})
    owner.write({"ml/.github/workflows/jobgen.yaml": "jobs: {a: {steps: [{run: jobgen lint}]}}\n"})
    owner.run("rm -r jobgen.yaml jobs overlays && git init && git add . && git commit -m a")
    owner.root = top / "ml"
    for name in ("hooks", "CI"):
        assert f"is not read: the Git repository begins in {top}" in owner.follow(name, "note")["found"]
    checks = owner.doctor()
    assert checks["hooks"]["found"].startswith(f"there is no .pre-commit-config.yaml in {top}; ")
    assert checks["CI"]["found"].startswith("no workflow of GitHub or GitLab names jobgen in ml/; ")

    assert owner.run("pre-commit install").returncode == 0
    assert owner.run("git commit --allow-empty -m b").returncode == 1
    assert "every commit fails" in owner.follow("hooks", "problem")["found"]
    assert owner.run("git commit --allow-empty -m b").returncode == 0

    # These are about another folder.
    (top / ".pre-commit-config.yaml").write_text(hooks)
    (top / ".gitlab-ci.yml").write_text("a: {script: [jobgen -C nlp lint --format xml]}\n")
    checks = owner.doctor()
    assert checks["hooks"]["found"] == "no jobgen hook for ml/ in ../.pre-commit-config.yaml"
    assert checks["CI"]["facts"]["files"] == []
    (top / ".pre-commit-config.yaml").write_text(hooks.replace("jobgen lint --f", "jobgen -C ml lint --f"))
    (top / ".gitlab-ci.yml").write_text("a: {script: [jobgen -C ml lint]}\n")
    owner.follow("hooks", "note")  # pre-commit install
    checks = owner.doctor()
    assert checks["hooks"]["found"] == "pre-commit runs those of ../.pre-commit-config.yaml"
    assert checks["CI"]["found"] == "../.gitlab-ci.yml runs jobgen"
    (top / ".gitlab-ci.yml").write_text("include: ml/.gitlab-ci.yml\n")
    assert owner.doctor()["CI"]["status"] == "ok"
    assert owner.doctor()["CI"]["facts"]["files"] == []
    owner.write({".gitlab-ci.yml": "a: {script: [cd ml, jobgen lint]}\n"})
    assert owner.doctor()["CI"]["facts"]["files"] == [".gitlab-ci.yml"]


def test_programs_that_ci_uses(owner: User) -> None:
    programs = owner.home / "programs"
    programs.mkdir()
    owner.environ["PATH"] = f"{programs}:{owner.home.parent / 'bin'}:/usr/bin:/bin"
    owner.write({".github/workflows/lint.yaml": "jobs: {a: {steps: [{run: kubeconform -v && jobgen lint}]}}\n"})
    checks = owner.doctor()
    assert checks["CI"]["facts"]["files"] == [".github/workflows/lint.yaml"]
    assert (checks["kubeconform"]["status"], checks["kubeconform"]["next"]) == (
        "problem",
        "go install github.com/yannh/kubeconform/cmd/kubeconform@latest",
    )
    write_program(programs / "kubeconform", "echo v0.7.0")
    check = owner.doctor()["kubeconform"]
    assert (check["status"], check["facts"]["version"]) == ("ok", "v0.7.0")


def test_programs_of_the_repository_are_not_run(owner: User) -> None:
    write_program(owner.root / "kubeconform", "touch ran")
    owner.environ["PATH"] = f".:{owner.home.parent / 'bin'}:/usr/bin:/bin"
    assert owner.doctor()["kubeconform"]["facts"]["path"] == ""
    assert not (owner.root / "ran").exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_set_up(owner: User, shell: str) -> None:
    owner.environ["SHELL"] = f"/bin/{shell}"
    rc = {"bash": ".bashrc", "zsh": ".zshrc", "fish": ".config/fish/config.fish"}[shell]
    if shell != "fish":
        (owner.home / rc).write_text(f"# source <(jobgen completion {shell})\n")
    owner.follow("completion", "note")
    check = owner.doctor()["completion"]
    assert (check["status"], check["facts"]["shell"]) == ("ok", shell)
    if shutil.which(shell):
        loaded = {
            "bash": f"source {owner.home}/.bashrc; complete -p jobgen",
            "zsh": f"source {owner.home}/.zshrc; (( $+_comps[jobgen] ))",
            "fish": "complete -C 'jobgen li' | grep lint",
        }
        done = subprocess.run([shell, "-c", loaded[shell]], env=owner.environ, capture_output=True, check=False)
        assert done.returncode == 0, done


@pytest.mark.parametrize(
    ("shell", "file"),
    [
        ("bash", ".local/share/bash-completion/completions/jobgen"),
        ("zsh", ".zfunc/_jobgen"),
        ("zsh", ".oh-my-zsh/custom/completions/_jobgen"),
        ("fish", ".config/fish/completions/jobgen.fish"),
    ],
)
def test_completion_by_a_script_in_a_file(owner: User, shell: str, file: str) -> None:
    owner.environ["SHELL"] = f"/bin/{shell}"
    owner.run(f"mkdir -p ~/{os.path.dirname(file)} && jobgen completion {shell} > ~/{file}")
    check = owner.doctor()["completion"]
    assert (check["status"], check["facts"]["file"]) == ("ok", f"~/{file}")
    assert ("if its folder is in $fpath" in check["found"]) == (shell == "zsh")


def test_a_hostile_repository_is_a_report(owner: User) -> None:
    (owner.root / "jobgen.yaml").unlink()
    os.mkfifo(owner.root / "jobgen.yaml")
    os.mkfifo(owner.root / ".pre-commit-config.yaml")
    os.mkfifo(owner.root / "jobs/pipe.yaml")
    (owner.root / "rendered").symlink_to("/etc")
    (owner.root / "schemas").symlink_to("/dev")
    (owner.root / ".github").symlink_to("/proc")
    owner.write({"overlays/\x1b[31m/overlay.yaml": "&a [*a, *a]"})
    checks = owner.doctor()
    assert checks["repository"]["status"] == "ok"
    text = owner.run("jobgen doctor").stdout
    assert "\x1b" not in text


def test_text_is_a_table(owner: User) -> None:
    done = owner.run("jobgen doctor")
    lines = done.stdout.splitlines()
    starts = [line for line in lines if not line.startswith(" ")]
    column = starts[0].index("0.")
    assert all(line[column - 2 : column] == "  " and line[column] != " " for line in lines)
    assert [line.split()[0] for line in starts] == [check["status"] for check in owner.doctor().values()]
    assert done.stderr.endswith("; next: jobgen lint\n")


def test_a_terminal_shows_colors_and_short_lines(owner: User) -> None:
    controller, terminal = pty.openpty()
    subprocess.run(["stty", "cols", "70"], stdin=terminal, check=True)
    command = [sys.executable, "-m", "jobgen", "doctor"]
    process = subprocess.Popen(
        command, cwd=owner.root, env={**owner.environ, "TERM": "xterm"}, stdout=terminal, stderr=subprocess.DEVNULL
    )
    os.close(terminal)
    shown = b""
    try:
        while found := os.read(controller, 4096):
            shown += found
    except OSError:
        pass
    os.close(controller)
    assert process.wait() == 0
    assert b"\x1b[32mok     \x1b[0m  jobgen" in shown
    plain = re.sub(r"\x1b\[[0-9]*m", "", shown.decode()).split("\r\n")
    assert max(len(line) for line in plain if "/" not in line and "→" not in line) <= 70

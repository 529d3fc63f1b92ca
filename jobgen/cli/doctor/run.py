"""Run all checks. What is broken becomes a line of the report, never an error of the command."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from jobgen import __version__
from jobgen.cli.doctor import NOTE, PROBLEM, Check, installation, machine, repository, shell
from jobgen.cli.doctor.pins import find_other_versions
from jobgen.pipeline import config
from jobgen.repo import layout
from jobgen.repo.files import MANIFEST_SUFFIXES, read_path
from jobgen.repo.root import SETTINGS, find_root
from jobgen.repo.walk import list_paths
from jobgen.yamlio.read import read

_WORKFLOWS = ".github/workflows/"
_CI_FILES = (machine.HOOKS, ".gitlab-ci.yml")


def run_checks(directory: Path, environ: Mapping[str, str]) -> list[Check]:
    """Return what was found, in the order of the report."""
    root = find_root(directory.resolve())
    texts = _read_texts(root) if root else {}
    checks = [
        *_guard("jobgen", lambda: [installation.check_jobgen()]),
        *_guard("repository", lambda: _check_repository(directory, root)),
    ]
    checks += _guard("cache", lambda: [machine.check_cache(directory)])
    if root:
        checks += _guard("git", lambda: [machine.check_git(root)])
        checks += _guard("hooks", lambda: [machine.check_hooks(root, texts), _check_ci(texts)])
    checks += _guard("programs", lambda: installation.check_programs(texts))
    checks += _guard("completion", lambda: [shell.check_completion(environ)])
    return checks


def _guard(name: str, measure: Callable[[], Iterable[Check]]) -> list[Check]:
    """Return the checks, or a line that says that they failed."""
    try:
        return list(measure())
    except Exception as error:  # noqa: BLE001 -- the other checks go on
        message = f"could not be checked: {type(error).__name__}: {error}"
        return [Check(name, message, PROBLEM, "jobgen lint")]


def _check_repository(directory: Path, root: Path | None) -> list[Check]:
    if not directory.is_dir():
        return [Check("repository", f"there is no folder {directory}", PROBLEM, f"mkdir {directory}", {"root": ""})]
    if root is None:
        found = f"none: there is no {SETTINGS} in {directory.resolve()} or above, and no jobs/ in it"
        return [Check("repository", found, PROBLEM, "jobgen init", {"root": ""})]
    project = config.load(root)
    checks: dict[str, Callable[[], Iterable[Check]]] = {
        "settings": lambda: [repository.check_settings(root, project)],
        "required-version": lambda: [repository.check_version(project, _read_settings(root))],
        "environments": lambda: [repository.check_environments(project)],
        "jobs": lambda: [repository.check_jobs(root, project)],
        "policies": lambda: [repository.check_policies(root)],
        "teams": lambda: [repository.check_teams(project)],
        "operators": lambda: repository.check_clusters(project),
        "rendered tree": lambda: [repository.check_tree(root, project)],
        "editor files": lambda: [repository.check_editor(root)],
    }
    here = Check("repository", str(root), facts={"root": str(root)})
    return [here, *(check for name, measure in checks.items() for check in _guard(name, measure))]


def _read_settings(root: Path) -> Mapping[str, Any]:
    """The settings as they are written, also if they have errors."""
    file = layout.read_settings(root)
    documents = read(file.content, file.path).documents if file and not file.finding else ()
    return next((each.data for each in documents if isinstance(each.data, dict)), {})


def _check_ci(texts: Mapping[str, str]) -> Check:
    users = [path for path, text in texts.items() if path != machine.HOOKS and "jobgen" in text]
    facts = {"files": users}
    for path, text in texts.items():
        for pin in find_other_versions(text):
            found = f"{path} runs jobgen {pin.removeprefix('==')}, and this is {__version__}, so findings may differ"
            return Check("CI", found, NOTE, f"pip install 'jobgen{pin}'", facts)
    if users:
        return Check("CI", f"{', '.join(users)} runs jobgen", facts=facts)
    return Check("CI", "no workflow of GitHub or GitLab names jobgen; docs/ci.md has one", facts=facts)


def _read_texts(root: Path) -> dict[str, str]:
    """The files that configure CI and hooks."""
    return dict(_list_texts(root))


def _list_texts(root: Path) -> Iterator[tuple[str, str]]:
    workflows: list[str] = []
    if (root / _WORKFLOWS).is_dir():
        workflows = [path for path in list_paths(str(root), _WORKFLOWS) if path.endswith(MANIFEST_SUFFIXES)]
    for path in (*_CI_FILES, *workflows):
        if (root / path).is_file():
            yield path, read_path(root / path, path, root).content.decode("utf-8", "replace")

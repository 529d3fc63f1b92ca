"""`jobgen doctor`: run all checks, show what was found, and what to do next."""

from __future__ import annotations

import json
import os
import shlex
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import click

from jobgen import __version__
from jobgen.cli.doctor import NOTE, OK, PROBLEM, Check, machine, repository
from jobgen.cli.doctor.machine import HOOKS, ConfigFiles, find_other_versions, read_config_files, report_unread
from jobgen.cli.result import ExitCode, Result, has_color, terminal_width
from jobgen.rendering import config
from jobgen.repo.root import SETTINGS, find_root
from jobgen.reports.entries import pluralize
from jobgen.reports.escape import visible

_COLORS = {OK: 32, NOTE: 33, PROBLEM: 31}


@click.command("doctor")
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_obj
def command(directory: Path, *, format_: str) -> Result:
    """Show what is set up, and what to do next.

    It looks at this machine and this repository.

    The exit code is 1 if something must be done. Notes are advice and do not change it.
    """
    checks = run_checks(directory, os.environ)
    failed = any(check.status == PROBLEM for check in checks)
    code = ExitCode.ERRORS if failed else ExitCode.OK
    if format_ == "json":
        listed = [{**check._asdict(), "facts": dict(check.facts)} for check in checks]
        document = {"version": 1, "ok": not failed, "checks": listed}
        return Result(code, json.dumps(document, ensure_ascii=False, indent=2) + "\n")
    lines = "".join(f"{line}\n" for line in _format_lines(checks, terminal_width(), color=has_color()))
    problems = [check for check in checks if check.status == PROBLEM]
    # Without a job there is nothing to lint.
    advice = problems or [check for check in checks if check.name == "jobs" and check.status == NOTE]
    notes = pluralize(sum(1 for check in checks if check.status == NOTE), "note")
    following = visible(advice[0].next) if advice else "jobgen lint"
    return Result(code, lines, f"{pluralize(len(problems), 'problem')}, {notes}; next: {following}\n")


def _format_lines(checks: Sequence[Check], width: int | None, *, color: bool) -> Iterator[str]:
    """Yield the lines of a table; on a terminal, long texts are wrapped below their begin."""
    names = max(len(check.name) for check in checks)
    states = max(map(len, _COLORS))
    indent = " " * (states + names + 4)
    for check in checks:
        state = f"{check.status:<{states}}"
        shown = f"\033[{_COLORS[check.status]}m{state}\033[0m" if color else state
        texts = [visible(check.found)]
        if width is not None:
            room = max(width - len(indent), 40)
            texts = textwrap.wrap(texts[0], room, break_long_words=False, break_on_hyphens=False) or [""]
        first, *rest = texts
        yield f"{shown}  {check.name:<{names}}  {first}"
        yield from (f"{indent}{line}" for line in rest)
        if check.next:
            yield f"{indent}→ {visible(check.next)}"


def run_checks(directory: Path, environ: Mapping[str, str]) -> list[Check]:
    """Return what was found, in the order of the report."""
    root = find_root(directory.resolve())
    files, failed = ConfigFiles(directory, "", {}, {}), list[Check]()
    try:
        files = read_config_files(root) if root else files
    except OSError as error:
        found = f"{error.filename} cannot be read: {error.strerror}"
        failed = [Check("CI", found, PROBLEM, f"ls -ld {shlex.quote(str(error.filename))}")]
    checks = _guard("jobgen", lambda: [machine.check_jobgen()])
    checks += _guard("repository", lambda: _check_repository(directory, root))
    checks += _guard("cache", lambda: [machine.check_cache(directory)])
    if root:
        checks += _guard("git", lambda: [machine.check_git(root)])
        checks += failed or _guard("hooks", lambda: [machine.check_hooks(root, files), _check_ci(files)])
    checks += _guard("programs", lambda: machine.check_programs(files.texts))
    checks += _guard("completion", lambda: [machine.check_completion(environ)])
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
    project = config.load_own(root)
    checks: dict[str, Callable[[], Iterable[Check]]] = {
        "settings": lambda: [repository.check_settings(root, project)],
        "required-version": lambda: [repository.check_version(root, project)],
        "customized": lambda: [repository.check_customized(project)],
        "environments": lambda: [repository.check_environments(project)],
        "jobs": lambda: [repository.check_jobs(root, project)],
        "policies": lambda: [repository.check_policies(root)],
        "teams": lambda: [repository.check_teams(project)],
        "operators": lambda: repository.check_clusters(project),
        "rendered tree": lambda: [repository.check_tree(root, project)],
        "gitops": lambda: repository.check_gitops(root, project),
        "editor files": lambda: [repository.check_editor(root)],
    }
    here = Check("repository", str(root), facts={"root": str(root)})
    return [here, *(check for name, measure in checks.items() for check in _guard(name, measure))]


def _check_ci(files: ConfigFiles) -> Check:
    users = [path for path in files.texts if path != HOOKS and files.names_repository(path)]
    facts = {"files": users}
    for path in files.texts:
        is_own = not files.prefix or files.names_repository(path)
        for pin in find_other_versions(files.texts[path]) if is_own else ():
            number = pin.removeprefix("==")
            found = f"{files.show(path)} runs jobgen {number}, and this is {__version__}, so findings can differ"
            return Check("CI", found, NOTE, f"pip install 'jobgen{pin}'", facts)
    if users:
        return Check("CI", f"{', '.join(map(files.show, users))} runs jobgen", facts=facts)
    unread = [path for path in files.unread if path != HOOKS]
    if unread:
        return report_unread("CI", unread[0], files, facts)
    below = f" in {files.prefix}/" if files.prefix else ""
    page = "docs/adopt.md#jobgen-in-a-monorepo" if files.prefix else "docs/ci.md"
    return Check("CI", f"no workflow of GitHub or GitLab names jobgen{below}; {page} has one", facts=facts)

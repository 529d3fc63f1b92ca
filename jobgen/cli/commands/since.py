"""`jobgen lint --since`: what a change brought, as the difference of two whole lints, and what it does to what runs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from jobgen.cli.commands import Result
from jobgen.cli.commands.lint_run import lint
from jobgen.cli.commands.scope import LintRequest, LintResult, asked_about
from jobgen.model.finding import Finding
from jobgen.repo import git
from jobgen.report.suppress import silence


def new_since(asked: LintRequest, revision: str, now: LintResult) -> LintResult:
    """The findings that were not there at a revision, and those about the change itself."""
    if asked.stdin is not None:
        raise git.GitError("standard input has no revisions; leave out `-` or `--since`")
    from tempfile import TemporaryDirectory

    commit = git.resolve_commit(asked.directory, revision)
    top = git.find_work_tree(asked.directory)
    assert top is not None
    inside = os.path.relpath(os.path.realpath(asked.directory), os.path.realpath(top))
    paths = [os.path.relpath(os.path.join(asked.directory, path), asked.directory) for path in asked.paths]
    with TemporaryDirectory(prefix="jobgen-") as folder:
        git.extract_files(top, commit, Path(folder))
        then = Path(folder, inside)
        then.mkdir(parents=True, exist_ok=True)
        today = asked.today or git.read_commit_date(asked.directory)
        envs = [env for env in asked.envs if (then / "overlays" / env).is_dir()]
        before = lint(asked._replace(directory=then, paths=paths, envs=envs, today=today))
        changes = _changes(then, asked, (asked.today or git.read_commit_date(asked.directory, commit), today))
    was_there = not isinstance(before, Result) and (envs or not asked.envs)
    # Where nothing could be linted then, everything is new.
    findings = _less(now.findings, before.findings) if was_there and not isinstance(before, Result) else now.findings
    kept, silenced, _ = silence(changes, now.comments, now.mandatory, now.today or today)
    return now._replace(
        findings=sorted([*findings, *kept], key=lambda found: (found.location, found.rule, found.message, found.env)),
        silenced=[*now.silenced, *silenced],
    )


def _changes(then: Path, asked: LintRequest, days: tuple[str, str]) -> list[Finding]:
    """What the change does to jobs that run."""
    # Two sides are rendered and compared; whoever asks for no revision need not wait for that.
    from jobgen.diff.change_rules import check_change

    return asked_about(check_change(then, asked.directory, asked.envs, days), asked)


def _less(findings: Sequence[Finding], others: Sequence[Finding]) -> list[Finding]:
    """The findings less those that say the same of the same thing, wherever it stands by now."""
    left = Counter(_said(other) for other in others)
    new: list[Finding] = []
    for finding in findings:
        said = _said(finding)
        if left[said] > 0:
            left[said] -= 1
        else:
            new.append(finding)
    return new


def _said(finding: Finding) -> tuple[object, ...]:
    return (finding.rule, finding.severity, finding.message, finding.location.file, finding.object, finding.env)

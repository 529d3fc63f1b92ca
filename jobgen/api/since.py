"""`jobgen lint --since`: the findings that a change adds, and findings about the change itself."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence

from jobgen.api.errors import JobgenError, UsageError
from jobgen.api.lint_files import LintRequest, LintRun, select_findings
from jobgen.api.lint_run import run_lint
from jobgen.check.builtin_rules import UNREAD_RULES
from jobgen.diff.change_rules import check_change
from jobgen.model.finding import Finding
from jobgen.repo import git
from jobgen.repo.commit import open_commit
from jobgen.report.suppress import apply_suppressions


def findings_since(request: LintRequest, revision: str, now: LintRun) -> LintRun:
    """Return the lint with only the findings that were not there at a revision, and those about the change.

    Raises:
        UsageError: Standard input is linted, or there is no such revision.

    """
    if request.stdin is not None:
        raise UsageError("standard input has no revisions; remove `-` or `--since`")
    try:
        return _compare(request, revision, now)
    except git.GitError as error:
        raise UsageError(str(error)) from error


def _compare(request: LintRequest, revision: str, now: LintRun) -> LintRun:
    commit = git.resolve_commit(request.directory, revision)
    paths = [os.path.relpath(request.directory / path, request.directory) for path in request.paths]
    today = request.today or git.read_commit_date(request.directory)
    with open_commit(request.directory, commit) as old:
        envs = [env for env in request.envs if (old / "overlays" / env).is_dir()]
        then = request._replace(committed=old, paths=paths, envs=envs, today=today)
        # Where nothing can be linted at the revision, all findings are new. That a named path is not read is never old.
        known = _lint_old(then) if envs or not request.envs else []
        known = [each for each in known if each.rule not in UNREAD_RULES or each.location.file not in paths]
        days = request.today or git.read_commit_date(request.directory, commit), today
        changes = select_findings(check_change(old, request.directory, request.envs, days), request)
    kept, suppressed, _ = apply_suppressions(changes, now.comments, now.mandatory, now.today or today)
    findings = [*_subtract(now.findings, known), *kept]
    return now._replace(
        findings=sorted(findings, key=lambda found: (found.location, found.rule, found.message, found.env)),
        suppressed=[*now.suppressed, *suppressed],
    )


def _lint_old(request: LintRequest) -> list[Finding]:
    try:
        return run_lint(request).findings
    except JobgenError:
        return []


def _subtract(findings: Sequence[Finding], known: Sequence[Finding]) -> list[Finding]:
    """Return the findings without as many equal ones as are known; lines are ignored."""
    left = Counter(map(_key, known))
    new: list[Finding] = []
    for finding in findings:
        key = _key(finding)
        if left[key] > 0:
            left[key] -= 1
        else:
            new.append(finding)
    return new


def _key(finding: Finding) -> tuple[object, ...]:
    return (finding.rule, finding.severity, finding.message, finding.location.file, finding.object, finding.env)

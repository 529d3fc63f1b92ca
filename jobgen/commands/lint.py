"""`jobgen lint`: what is wrong with specs, overlays, rendered objects and raw manifests."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from jobgen import baseline, git, repo
from jobgen.commands import Code, Result, counted, stopped
from jobgen.commands.fixing import Fixed, as_diff, fixed, put_in_place
from jobgen.commands.linting import Asked, Linted, lint
from jobgen.files import replace_file
from jobgen.model import Finding, Severity
from jobgen.report import Report, RuleText, Suppressed, formats, totals
from jobgen.suppress import is_date

BASELINE = "jobgen-baseline.json"


class Terminal(NamedTuple):
    """Where the words go: how wide it is, and whether it has colours."""

    width: int = 80
    colour: bool = False


_PLAIN = Terminal()


def lint_paths(
    directory: Path,
    paths: Sequence[str],
    envs: Sequence[str],
    *,
    format_: str,
    stdin: bytes | None = None,
    second_opinion: bool = False,
    since: str = "",
    known: str = "",
    write_baseline: bool = False,
    fix: str = "",
    diff: bool = False,
    statistics: bool = False,
    show_suppressed: bool = False,
    today: str = "",
    terminal: Terminal = _PLAIN,
) -> Result:
    """Judge a whole repository, or the manifests at some paths; `fix` is `safe` or `unsafe` where faults are mended."""
    if today and not is_date(today):
        return stopped(Code.USAGE, f"`{today}` is not a date like `2027-01-31`")
    asked = Asked(directory, paths, envs, stdin, second_opinion, today)
    said = ""
    if fix or diff:
        mended = fixed(asked, unsafe=fix == "unsafe")
        if isinstance(mended, Result):
            return mended
        if diff:
            return Result(
                Code.ERRORS if mended.files else Code.FINE, as_diff(mended.files), _mended(mended, "could be")
            )
        said = _put(asked, mended)
    linted = lint(asked)
    if isinstance(linted, Result):
        return linted
    if not linted.objects and not linted.findings and not linted.silenced:
        return stopped(Code.NOTHING, "there is nothing to lint here")
    if write_baseline:
        return _write_baseline(directory / (known or BASELINE), linted)
    try:
        findings = _new_since(asked, since, linted.findings) if since else linted.findings
        findings, old = _unknown(directory, known, findings, mend=bool(fix)) if known else (findings, [])
    except (git.GitError, baseline.BaselineError) as fault:
        return stopped(Code.USAGE, str(fault))
    report = _report(linted, findings, old, directory)._replace(show_suppressed=show_suppressed)
    return _told(report, format_, terminal, said, statistics=statistics)


def _report(linted: Linted, findings: Sequence[Finding], old: Sequence[Suppressed], directory: Path) -> Report:
    silenced = [Suppressed(each.finding, each.suppression.reason) for each in linted.silenced]
    rules = {
        name: RuleText(doc.category, doc.severity, doc.summary, doc.text or doc.summary)
        for name, doc in linted.rules.items()
    }
    return Report(
        findings,
        [*silenced, *old],
        linted.files,
        linted.objects,
        linted.environments,
        rules,
        lambda file: repo.lines((linted.root, directory), file),
    )


def _put(asked: Asked, mended: Fixed) -> str:
    """Put mended files in their place, and say how many there are."""
    base = repo.find_root(asked.directory.resolve()) or asked.directory
    late = put_in_place(base, mended.files)
    return _mended(mended, "were") + "".join(
        f"{path} was changed by somebody else meanwhile; left alone\n" for path in late
    )


def _mended(mended: Fixed, words: str) -> str:
    return f"{counted(mended.findings, 'fault')} {words} mended in {counted(len(mended.files), 'file')}\n"


def _write_baseline(path: Path, linted: Linted) -> Result:
    try:
        replace_file(path, baseline.to_text(linted.findings).encode())
    except OSError as fault:
        return stopped(Code.USAGE, f"`{path}` cannot be written: {fault.strerror}")
    return Result(Code.FINE, err=f"{counted(len(linted.findings), 'finding')} written to {path}\n")


def _unknown(
    directory: Path, file: str, findings: Sequence[Finding], *, mend: bool
) -> tuple[list[Finding], list[Suppressed]]:
    """The findings that a baseline does not know, and those that it does; what was mended is taken out if asked for."""
    try:
        written = (directory / file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else "not UTF-8"
        raise baseline.BaselineError(f"`{file}` cannot be read: {reason}") from None
    new, old, left = baseline.split(findings, baseline.parse(written))
    if left and mend:
        replace_file(directory / file, baseline.without(written, left).encode())
    else:
        new += baseline.stale(left, written, file)
    return new, [Suppressed(finding, "was there before", "baseline") for finding in old]


def _new_since(asked: Asked, revision: str, findings: Sequence[Finding]) -> list[Finding]:
    """The findings that were not there at a revision: the difference of two whole lints."""
    if asked.stdin is not None:
        raise git.GitError("standard input has no revisions; leave out `-` or `--since`")
    commit = git.resolve(asked.directory, revision)
    top = git.top_of(asked.directory)
    assert top is not None
    inside = os.path.relpath(os.path.realpath(asked.directory), os.path.realpath(top))
    paths = [os.path.relpath(os.path.join(asked.directory, path), asked.directory) for path in asked.paths]
    with tempfile.TemporaryDirectory(prefix="jobgen-") as folder:
        git.extract(top, commit, Path(folder))
        then = Path(folder, inside)
        then.mkdir(parents=True, exist_ok=True)
        today = asked.today or git.commit_date(asked.directory)
        envs = [env for env in asked.envs if (then / "overlays" / env).is_dir()]
        before = lint(asked._replace(directory=then, paths=paths, envs=envs, today=today))
    if asked.envs and not envs:
        return list(findings)
    # Where nothing could be linted then, everything is new.
    return _less(findings, [] if isinstance(before, Result) else before.findings)


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
    return (finding.rule, finding.severity, finding.message, finding.mark.file, finding.object, finding.env)


def _told(report: Report, format_: str, terminal: Terminal, said: str, *, statistics: bool) -> Result:
    failed = any(finding.severity is Severity.ERROR for finding in report.findings)
    out = formats.render(format_, report, width=terminal.width, colour=terminal.colour)
    counts = totals.statistics(report) if statistics else ""
    return Result(Code.ERRORS if failed else Code.FINE, out, f"{said}{counts}{totals.closing(report)}\n", report)

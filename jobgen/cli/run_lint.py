"""Lint, fix or write a baseline, and say what was found; `jobgen lint` without its options."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jobgen.api.baseline import relative_paths, write_baseline
from jobgen.api.errors import JobgenError
from jobgen.api.lint import LintResult, check_request, lint
from jobgen.api.lint_answers import check_files
from jobgen.api.lint_files import LintRequest, resolve_files
from jobgen.cli.pages import link_rules
from jobgen.cli.result import ExitCode, Result, error_result, to_result
from jobgen.cli.terminal import has_color, read_stdin, terminal_width
from jobgen.model.finding import Severity
from jobgen.repo.root import find_root
from jobgen.reports import Report, formats
from jobgen.reports.escape import visible
from jobgen.reports.summary import count_rules, describe_files, pluralize, summarize

BASELINE = "jobgen-baseline.json"
_TEXT_FORMATS = ("text", "concise")


class Terminal(NamedTuple):
    """The terminal that text is written for."""

    width: int = 80
    color: bool = False
    link: Callable[[str], str] | None = None


_NO_TERMINAL = Terminal()


def run_lint(
    directory: Path, paths: Sequence[str], envs: Sequence[str] = (), format_: str = "text", **options: Any
) -> Result:
    """Lint, with the format, width and colors that fit the standard output."""
    try:
        stdin = read_stdin() if "-" in paths else None
    except JobgenError as error:
        return to_result(error)
    width = terminal_width()
    return lint_paths(
        directory,
        paths,
        envs,
        format_=formats.resolve(format_, os.environ),
        stdin=stdin,
        terminal=Terminal(width or 120, has_color(), link_rules(os.environ, is_terminal=width is not None)),
        environ=os.environ,
        **options,
    )


def lint_paths(
    directory: Path,
    paths: Sequence[str],
    envs: Sequence[str],
    *,
    format_: str,
    stdin: bytes | None = None,
    kubeconform: bool = False,
    second_opinion: bool = False,
    since: str = "",
    baseline: str = "",
    write_baseline: bool = False,
    fix: str = "",
    diff: bool = False,
    fail_on: str = "error",
    statistics: bool = False,
    show_suppressed: bool = False,
    explain_files: bool = False,
    strict_files: bool = False,
    today: str = "",
    shard: str = "",
    fsync: bool = True,
    terminal: Terminal = _NO_TERMINAL,
    environ: Mapping[str, str] = {},
) -> Result:
    """Lint a repository or some paths; `fix` is `safe` or `unsafe` to fix findings first."""
    fixed = Result(ExitCode.OK)
    if shard and (fix or diff or write_baseline):
        message = "`--fix`, `--diff` and `--write-baseline` concern all files; remove `--shard`"
        return error_result(ExitCode.USAGE, message)
    try:
        if fix or diff:
            request = LintRequest(directory, paths, envs, stdin, kubeconform, today, second_opinion=second_opinion)
            fixed = _fix(request, fix, diff=diff, fsync=fsync)
            if diff:
                return fixed
        result = lint(
            directory,
            paths,
            environments=envs,
            stdin=stdin,
            since="" if write_baseline else since,
            baseline="" if write_baseline else baseline,
            prune_baseline=bool(fix),
            kubeconform=kubeconform,
            second_opinion=second_opinion,
            today=today,
            shard=shard,
            strict_files=strict_files,
        )
        if write_baseline:
            return _write_baseline(LintRequest(directory, paths), baseline or BASELINE, result, fsync=fsync)
    except JobgenError as error:
        return to_result(error)
    report = result.to_report(format_, show_suppressed=show_suppressed)
    report = report._replace(
        width=terminal.width, color=terminal.color, link=terminal.link, explain_files=explain_files
    )
    if report.shard:
        report = report._replace(shard=report.shard._replace(fail_on=fail_on))
    failed = result.has_findings(Severity(fail_on))
    code = ExitCode.INTERNAL_ERROR if result.incomplete else ExitCode.ERRORS if failed else ExitCode.OK
    code = max(code, fixed.code)
    counts = count_rules(report) if statistics else ""
    errors = _write_step_summary(report, environ.get("GITHUB_STEP_SUMMARY", "")) if format_ == "github" else ""
    entries = "1 stale entry" if result.pruned == 1 else f"{result.pruned} stale entries"
    pruned = f"{visible(f'{entries} removed from {baseline}')}\n" if result.pruned else ""
    opinions = "".join(f"{opinion}\n" for opinion in result.opinions)
    text = f"{fixed.err}{pruned}{opinions}{counts}{_describe_empty_shard(result)}{summarize(report)}\n{errors}"
    listed = describe_files(report) if explain_files and format_ in _TEXT_FORMATS else ""
    return Result(code, f"{formats.FORMATS.render(format_, report)}{listed}", text)


def _describe_empty_shard(result: LintResult) -> str:
    """Return a line that says that a shard has no files, if it has none."""
    if result.shard is None or result.files:
        return ""
    shard = result.shard.shard
    rest = "it compares those of the others" if shard.is_first and shard.is_part else "there are more shards than files"
    return f"{shard} has no files: {rest}\n"


def _fix(request: LintRequest, fix: str, *, diff: bool, fsync: bool) -> Result:
    """Fix findings, or show the changes."""
    # A lint of unchanged files imports nothing that checks.
    from jobgen.api.fix import CHANGED, compute_fixes, describe_changes, format_diff, write_fixes

    check_request(request)
    check_files(request, resolve_files(request))
    fixes = compute_fixes(request._replace(kubeconform=False, second_opinion=False), unsafe=fix == "unsafe")
    skipped: dict[str, str] = {}
    if not diff:
        base = find_root(request.directory.resolve()) or request.directory
        skipped = write_fixes(base, fixes.files, fsync=fsync)
    done = [file for file in fixes.files if file.path not in skipped]
    count = pluralize(sum(file.findings for file in done), "finding")
    lines = [f"{count} {'fixable' if diff else 'fixed'} in {pluralize(len(done), 'file')}"]
    lines += [] if diff else [f"  {change}" for change in describe_changes(done)]
    for path in fixes.limited:
        revealed = f", the first: {fixes.revealed[path]}" if fixes.revealed.get(path) else ""
        lines.append(f"{path} was not fixed completely: it would have more errors than before{revealed}")
    lines += [f"{path} {reason}; it was not changed" for path, reason in (*fixes.failed, *skipped.items())]
    failed = fixes.failed or any(reason != CHANGED for reason in skipped.values())
    code = ExitCode.INTERNAL_ERROR if failed else ExitCode.ERRORS if diff and done else ExitCode.OK
    return Result(code, format_diff(fixes.files) if diff else "", "".join(f"{visible(line)}\n" for line in lines))


def _write_baseline(request: LintRequest, file: str, result: LintResult, *, fsync: bool) -> Result:
    path = request.directory / file
    paths = relative_paths(request, result.root)
    # Findings that others hide would be new as soon as the baseline suppresses these.
    findings = (*result.findings, *result.merged)
    write_baseline(path, findings, result.root, paths, fsync=fsync)
    return Result(ExitCode.OK, err=f"{pluralize(len(findings), 'finding')} written to {path}\n")


def _write_step_summary(report: Report, file: str) -> str:
    """Append the summary that GitHub shows on the page of a run; return an error, which does not change the result."""
    try:
        if file:
            with open(file, "a", encoding="utf-8") as stream:
                stream.write(formats.FORMATS.load("github").summary(report))
    except OSError as error:
        return error_result(ExitCode.OK, f"the summary cannot be written: {error.strerror}").err
    return ""

"""Lint, fix or write a baseline, and say what was found; `jobgen lint` without the description of its options."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jobgen.api.errors import JobgenError
from jobgen.api.lint import LintResult, check_request, lint_request
from jobgen.api.lint_answers import check_files
from jobgen.api.lint_files import LintRequest, find_sources, open_judge
from jobgen.cli.pages import link_rules
from jobgen.cli.result import ExitCode, Result, error_result, has_color, read_stdin, terminal_width, to_result
from jobgen.model.finding import Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo.root import BASELINE, find_root
from jobgen.reports import Report, formats
from jobgen.reports.entries import count_rules, describe_files, group_findings, pluralize, summarize
from jobgen.reports.escape import visible
from jobgen.reports.narrowing import Narrowing


class Comparison(NamedTuple):
    """What a lint is compared with, and whose rules decide."""

    since: str = ""
    policy_from: str = ""
    baseline: str = ""


class Edits(NamedTuple):
    """What a lint writes besides its report."""

    fix: str = ""
    """`safe` or `unsafe`."""
    diff: bool = False
    write_baseline: bool = False
    fsync: bool = True


class View(NamedTuple):
    """How a lint is shown."""

    format_: str = "text"
    fail_on: str = "error"
    statistics: bool = False
    show_suppressed: bool = False
    explain_files: bool = False
    quiet: bool = False
    verbose: bool = False
    width: int = 80
    color: bool = False
    link: Callable[[str], str] | None = None
    environ: Mapping[str, str] = MappingProxyType({})


Options = tuple[LintRequest, Comparison, Edits, View]


def sort_options(directory: Path, paths: Sequence[str], envs: Sequence[str], options: Mapping[str, Any]) -> Options:
    """Return what to lint, and what to do with the result, by the names of options."""
    left = dict(options)
    levels = Severity(left.pop("severity", "info"))
    narrowing = Narrowing(_split(left.pop("select", ())), _split(left.pop("ignore", ())), levels)
    request = LintRequest(directory, paths, envs, chart_values=left.pop("values", ()), narrowing=narrowing)
    groups = [{name: left.pop(name) for name in each._fields if name in left} for each in (Comparison, Edits, View)]
    return request._replace(**left), Comparison(**groups[0]), Edits(**groups[1]), View(**groups[2])


def run_command(
    directory: Path,
    /,
    paths: tuple[str, ...],
    envs: tuple[str, ...],
    format_: str,
    *,
    watch: bool,
    color: str,
    **options: Any,
) -> Result:
    """Run `jobgen lint` with the values of its parameters."""
    width = terminal_width()
    options |= {
        "format_": formats.resolve(format_, os.environ),
        "stdin": read_stdin() if "-" in paths and not watch else None,
        "width": width or 120,
        "color": has_color(color),
        "link": link_rules(os.environ, is_terminal=width is not None),
        "environ": os.environ,
        "fix": options["fix"] or "",
    }
    request, comparison, edits, view = sort_options(directory, paths, envs, options)
    run = partial(lint_paths, request, comparison, edits, view)
    if not watch:
        return run()
    if edits.fix or edits.diff or edits.write_baseline or "-" in paths:
        message = "`--watch` only reports; remove `--fix`, `--fix-unsafe`, `--diff`, `--write-baseline` and `-`"
        return error_result(ExitCode.USAGE, message)
    # Imported late, as it is rarely needed.
    from jobgen.cli.watch import watch as run_on_changes

    return run_on_changes(run, directory)


def lint_paths(request: LintRequest, comparison: Comparison, edits: Edits, view: View) -> Result:
    """Lint a repository or some paths, or fix findings first."""
    fixed = Result(ExitCode.OK)
    try:
        if edits.fix or edits.diff:
            fixed = _fix(request, edits)
            if edits.diff:
                return fixed
        if edits.write_baseline:
            return _write_baseline(request, comparison.baseline or BASELINE, fsync=edits.fsync)
        since, policy_from, baseline = comparison
        with open_judge(request, policy_from or since) as judged:
            result = lint_request(judged, since=since, baseline=baseline, prune_baseline=bool(edits.fix))
    except JobgenError as error:
        return to_result(error)
    report = result.to_report(view.format_, show_suppressed=view.show_suppressed)
    report = report._replace(width=view.width, color=view.color, link=view.link, explain_files=view.explain_files)
    if view.explain_files:
        # Imported late, as it is rarely asked for.
        from jobgen.api.explained_files import explain_files

        own = explain_files(result.root, request.directory, request.paths)
        report = report._replace(taken={**own, **result.taken})
    counts = count_rules(report) if view.statistics else ""
    shown = counts if view.quiet else _describe_run(result, report, baseline, counts, verbose=view.verbose)
    err = fixed.err + shown
    if view.format_ == "github":
        err += _write_step_summary(report, view.environ.get("GITHUB_STEP_SUMMARY", ""))
    listed = describe_files(report) if view.explain_files and view.format_ in ("text", "concise") else ""
    failed = result.has_findings(Severity(view.fail_on))
    code = ExitCode.INTERNAL_ERROR if result.incomplete else ExitCode.ERRORS if failed else ExitCode.OK
    return Result(max(code, fixed.code), f"{formats.FORMATS.render(view.format_, report)}{listed}", err)


def _write_baseline(request: LintRequest, file: str, *, fsync: bool) -> Result:
    from jobgen.api.baseline import relative_paths, write_baseline

    # Findings that others hide would be new as soon as the baseline suppresses these.
    result = lint_request(request)
    findings, path = (*result.findings, *result.merged), request.directory / file
    write_baseline(path, findings, result.root, relative_paths(request, result.root), fsync=fsync)
    # One in several environments counts once, as in the lint that they are suppressed in.
    hidden = f", and {len(group_findings(result.merged))} that they hide," if result.merged else ""
    shown = pluralize(len(group_findings(result.findings)), "finding")
    return Result(ExitCode.OK, err=f"{shown}{hidden} written to {path}\n")


def _split(options: Sequence[str]) -> tuple[str, ...]:
    """Return the names of options that may each have a list of them."""
    return tuple(name for option in options for name in option.replace(",", " ").split())


def _describe_run(result: LintResult, report: Report, baseline: str, counts: str, *, verbose: bool) -> str:
    """Say what was removed from the baseline, how much was checked, and how much was found."""
    entries = "1 stale entry" if result.pruned == 1 else f"{result.pruned} stale entries"
    text = f"{visible(f'{entries} removed from {baseline}')}\n" if result.pruned else ""
    text += "".join(f"{opinion}\n" for opinion in result.opinions)
    text += counts
    text += "".join(f"customized: {visible(each)}\n" for each in report.weaker) if verbose else ""
    return f"{text}{summarize(report)}\n"


def _fix(request: LintRequest, edits: Edits) -> Result:
    """Fix findings, or show the changes."""
    # A lint of unchanged files imports nothing that checks.
    from jobgen.api.fix import CHANGED, compute_fixes, describe_changes, format_diff, write_fixes

    check_request(request)
    check_files(request, find_sources(request))
    plain = request._replace(second_opinion=False, strict_files=False)
    fixes = compute_fixes(plain, unsafe=edits.fix == "unsafe")
    skipped: dict[str, str] = {}
    if not edits.diff:
        base = find_root(request.directory.resolve()) or request.directory
        skipped = write_fixes(base, fixes.files, fsync=edits.fsync)
    done = [file for file in fixes.files if file.path not in skipped]
    count = pluralize(sum(file.findings for file in done), "finding")
    lines = [f"{count} {'fixable' if edits.diff else 'fixed'} in {pluralize(len(done), 'file')}"]
    lines += [] if edits.diff else [f"  {change}" for change in describe_changes(done)]
    if fixes.unsafe:
        lines.append(f"`--fix-unsafe` would fix {fixes.unsafe}{' more' if done else ''}; review what it changes")
    for path in fixes.limited:
        revealed = f", the first: {fixes.revealed[path]}" if fixes.revealed.get(path) else ""
        lines.append(f"{path} was not fixed completely: it would have more errors than before{revealed}")
    lines += [f"{path} {reason}; it was not changed" for path, reason in (*fixes.failed, *skipped.items())]
    failed = fixes.failed or any(reason != CHANGED for reason in skipped.values())
    code = ExitCode.INTERNAL_ERROR if failed else ExitCode.ERRORS if edits.diff and done else ExitCode.OK
    return Result(code, format_diff(fixes.files) if edits.diff else "", "".join(f"{visible(line)}\n" for line in lines))


def _write_step_summary(report: Report, file: str) -> str:
    """Append the summary that GitHub shows on the page of a run; return an error, which does not change the result."""
    try:
        if file:
            with open(file, "a", encoding="utf-8") as stream:
                stream.write(formats.FORMATS.load("github").summary(report))
    except OSError as error:
        return error_result(ExitCode.OK, f"the summary cannot be written: {error.strerror}").err
    return ""

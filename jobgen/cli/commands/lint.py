"""`jobgen lint`: what is wrong with specs, overlays, rendered objects and raw manifests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jobgen.cli.commands import ExitCode, Result, error_result, lint_cache, pluralize
from jobgen.cli.commands.scope import LintRequest, LintResult
from jobgen.model.finding import Finding, Severity
from jobgen.repo import layout
from jobgen.report import Report, RuleText, Suppressed, formats
from jobgen.report.summary import count_rules, summarize

if TYPE_CHECKING:
    from jobgen.cli.commands.fix import Fixed

BASELINE = "jobgen-baseline.json"
# With one of these, something could not be checked at all.
_UNCHECKED = frozenset(("broken-schema", "internal-error", "invalid-policy", "policy-not-evaluated"))
_UNTOLD = RuleText("", Severity.ERROR, "", "")


class Terminal(NamedTuple):
    """Where the words go: how wide it is, and whether it has colors."""

    width: int = 80
    color: bool = False


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
    if wrong := _misuse(directory, paths, today):
        return error_result(ExitCode.USAGE, wrong)
    asked = LintRequest(directory, paths, envs, stdin, second_opinion, today)
    mended = _fixed(asked, fix, diff=diff) if fix or diff else Result(ExitCode.OK)
    if diff or mended.code is not ExitCode.OK:
        return mended
    linted = _linted(asked)
    if isinstance(linted, Result):
        return linted
    if not linted.objects and not linted.findings and not linted.silenced:
        return error_result(ExitCode.NOTHING_TO_DO, "there is nothing to lint here")
    if write_baseline:
        return _write_baseline(directory / (known or BASELINE), linted)
    if since:
        linted = _since(asked, since, linted)
        if isinstance(linted, Result):
            return linted
    told = _unknown(asked, known, linted, fix_steps=bool(fix)) if known else (linted.findings, [])
    if isinstance(told, Result):
        return told
    report = _report(linted, *told, directory)._replace(show_suppressed=show_suppressed)
    if formats.describe(format_).needs_rule_texts:
        report = _explained(report, linted.root)
    return _told(report, format_, terminal, mended.err, statistics=statistics)


# Everything below that most runs do without is imported where it is needed: a lint of unchanged files is a short one.


def _misuse(directory: Path, paths: Sequence[str], today: str) -> str:
    """What cannot be meant, or nothing."""
    if not directory.is_dir():
        return f"there is no folder `{directory}`"
    home = layout.find_root(directory.resolve())
    for path in paths:
        inside = (directory / path).resolve()
        if inside != home and (inside / layout.SETTINGS).is_file():
            return f"`{path}` is a jobs repository of its own; lint it with `jobgen -C {path} lint`"
    if today:
        from jobgen.report.suppress import is_date

        return "" if is_date(today) else f"`{today}` is not a date like `2027-01-31`"
    return ""


def _linted(asked: LintRequest) -> LintResult | Result:
    """What is said of the files as they are: remembered if nothing has changed, else found out and remembered."""
    state = lint_cache.state_of(asked)
    known = lint_cache.recalled(state)
    if known is not None:
        return known
    from jobgen.cli.commands.lint_run import lint

    linted = lint(asked, state.scope, state.layers) if state else lint(asked)
    if isinstance(linted, LintResult):
        lint_cache.keep(state, linted)
    return linted


def _since(asked: LintRequest, revision: str, linted: LintResult) -> LintResult | Result:
    """What is new since a revision."""
    from jobgen.cli.commands.since import new_since
    from jobgen.repo.git import GitError

    try:
        return new_since(asked, revision, linted)
    except GitError as fault:
        return error_result(ExitCode.USAGE, str(fault))


def _write_baseline(path: Path, linted: LintResult) -> Result:
    from jobgen.cli.commands.baseline import write_baseline

    return write_baseline(path, linted)


def _unknown(
    asked: LintRequest, file: str, linted: LintResult, *, fix_steps: bool
) -> tuple[list[Finding], list[Suppressed]] | Result:
    from jobgen.cli.commands.baseline import apply_baseline

    return apply_baseline(asked, file, linted, fix_steps=fix_steps)


def _fixed(asked: LintRequest, fix: str, *, diff: bool) -> Result:
    """Mend what can be mended, or show what that would change."""
    from jobgen.cli.commands.fix import as_diff, fixed

    mended = fixed(asked, unsafe=fix == "unsafe")
    if isinstance(mended, Result):
        return mended
    if diff:
        code = ExitCode.ERRORS if mended.files else ExitCode.OK
        return Result(code, as_diff(mended.files), _mended(mended, "could be"))
    return Result(ExitCode.OK, err=_put(asked, mended))


def _report(linted: LintResult, findings: Sequence[Finding], old: Sequence[Suppressed], directory: Path) -> Report:
    silenced = [Suppressed(each.finding, each.suppression.reason) for each in linted.silenced]
    return Report(
        findings,
        [*silenced, *old],
        linted.files,
        linted.objects,
        linted.environments,
        dict.fromkeys(sorted(linted.rules), _UNTOLD),
        lambda file: layout.read_lines((linted.root, directory), file),
    )


def _explained(report: Report, root: Path) -> Report:
    """The report with what each rule says about itself, for formats that pass it on."""
    from jobgen.check.policy_docs import all_docs

    docs = all_docs(root)
    texts = {
        name: RuleText(doc.category, doc.severity, doc.summary, doc.text or doc.summary)
        for name in report.rules
        if (doc := docs.get(name))
    }
    return report._replace(rules={**report.rules, **texts})


def _put(asked: LintRequest, mended: Fixed) -> str:
    """Put mended files in their place, and say how many there are."""
    from jobgen.cli.commands.fix import put_in_place

    base = layout.find_root(asked.directory.resolve()) or asked.directory
    late = put_in_place(base, mended.files)
    return _mended(mended, "were") + "".join(f"{path} {why}; left alone\n" for path, why in late.items())


def _mended(mended: Fixed, words: str) -> str:
    words = "was" if (words, mended.findings) == ("were", 1) else words
    said = f"{pluralize(mended.findings, 'fault')} {words} mended in {pluralize(len(mended.files), 'file')}\n"
    return said + "".join(
        f"{path} was not mended in full: it would show more errors than before\n" for path in mended.left
    )


def _told(report: Report, format_: str, terminal: Terminal, said: str, *, statistics: bool) -> Result:
    failed = any(finding.severity is Severity.ERROR for finding in report.findings)
    out = formats.render(format_, report._replace(width=terminal.width, color=terminal.color))
    counts = count_rules(report) if statistics else ""
    unchecked = any(finding.rule in _UNCHECKED for finding in report.findings)
    code = ExitCode.INTERNAL_ERROR if unchecked else ExitCode.ERRORS if failed else ExitCode.OK
    return Result(code, out, f"{said}{counts}{summarize(report)}\n", report)

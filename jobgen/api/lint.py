"""Lint jobs, overlays, rendered objects and manifests."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from jobgen.api.errors import NotFoundError, UsageError, check_date, check_format, check_names, check_severity
from jobgen.api.lint_answers import ask_findings
from jobgen.api.lint_files import Lint, LintRequest, open_judge
from jobgen.engine.inputs import record
from jobgen.engine.store import Store
from jobgen.model.finding import Finding, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.pipeline.finish import OF_REPORT, Finishing, finish
from jobgen.repo.files import EXCLUDED
from jobgen.repo.layout import own_layers
from jobgen.repo.named_paths import read_first
from jobgen.repo.root import explain_absence, find_root, find_settings, open_store
from jobgen.reports import Report, RuleText, Suppressed, formats
from jobgen.reports.entries import group_findings
from jobgen.reports.narrowing import Narrowing, describe_unknown

if TYPE_CHECKING:
    from jobgen.api.project import ProjectPath
    from jobgen.reports import Opinion

# Modules that a lint of unchanged files does not need are imported in functions: it takes a few milliseconds.

# With one of these, something could not be checked at all.
_UNCHECKED = frozenset(("broken-schema", "internal-error", "invalid-policy", "policy-not-evaluated", "too-many-steps"))


_SUPPRESSED = ("comment", "exception", "baseline")
"""Who can suppress a finding; other findings that are hidden are about a fault that is reported."""


class LintResult(NamedTuple):
    """What a lint found and how much it checked."""

    lint: Lint
    """All that was found, before what is hidden was left out."""
    findings: tuple[Finding, ...]
    """Sorted by location."""
    hidden: tuple[Suppressed, ...]
    """Findings that are not reported, and why."""
    directory: Path
    """The folder that was linted."""
    pruned: int = 0
    """The number of entries that were removed from the baseline."""

    @property
    def suppressed(self) -> tuple[Suppressed, ...]:
        """Findings that a comment, an exception of the settings, or the baseline suppresses."""
        return tuple(each for by in _SUPPRESSED for each in self.hidden if each.by == by)

    @property
    def merged(self) -> tuple[Finding, ...]:
        """Findings about a fault that one of `findings` reports already."""
        return tuple(each.finding for each in self.hidden if each.by in ("rule", "group"))

    @property
    def left_out(self) -> tuple[Finding, ...]:
        """Findings that `select`, `ignore` and `severity` leave out."""
        return tuple(each.finding for each in self.hidden if each.by == "narrowing")

    @property
    def files(self) -> int:
        """The number of files that were read."""
        return self.lint.files

    @property
    def objects(self) -> int:
        """The number of checked objects, in all environments."""
        return self.lint.objects

    @property
    def environments(self) -> tuple[str, ...]:
        """The names of the environments."""
        return tuple(self.lint.environments)

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of all rules and policies that were applied."""
        return tuple(sorted(self.lint.rules))

    @property
    def root(self) -> Path:
        """The folder that the files of findings are relative to."""
        return self.lint.root

    @property
    def skipped(self) -> Mapping[str, int]:
        """How many files and folders were not judged, by reason."""
        return self.lint.skipped

    @property
    def taken(self) -> Mapping[str, tuple[str, str]]:
        """What each file was taken for that is in no jobs repository, and why, by path."""
        return self.lint.taken

    @property
    def opinions(self) -> tuple[Opinion, ...]:
        """How much other tools checked, for `second_opinion`."""
        return tuple(self.lint.opinions)

    @property
    def weaker(self) -> tuple[str, ...]:
        """What the settings check less than jobgen does without them."""
        return tuple(self.lint.notes.weaker)

    @property
    def captures(self) -> tuple[str, ...]:
        """Of which day the captured state of each environment is."""
        return tuple(self.lint.notes.captures)

    @property
    def trees(self) -> tuple[str, ...]:
        """How much of the declared trees was compared with the sources."""
        return tuple(self.lint.notes.trees)

    @property
    def failed(self) -> bool:
        """Return True if there are errors."""
        return self.has_findings(Severity.ERROR)

    def has_findings(self, severity: Severity) -> bool:
        """Return True if there are findings of a severity, or worse ones."""
        ranks = list(Severity)
        return any(ranks.index(finding.severity) <= ranks.index(severity) for finding in self.findings)

    @property
    def incomplete(self) -> bool:
        """Return True if a broken schema or policy prevented checks."""
        return any(finding.rule in _UNCHECKED for finding in self.findings)

    def to_report(self, format: str = "text", *, show_suppressed: bool = False) -> Report:  # noqa: A002 -- the option
        """Return the report to write in a format."""

        @lru_cache(maxsize=1)
        def read(file: str) -> Sequence[str]:
            # Imported late: most runs show no line.
            from jobgen.rendering.redact import redact_file

            found = read_first((self.root, self.directory), file)
            return redact_file(found) if found else ()

        def find_line(file: str, number: int) -> str | None:
            known = self.lint.lines.get(file)
            if known is not None and number in known:
                return known[number]
            # The lint kept no line of a layer, or of a file that another file builds from.
            lines = read(file)
            return lines[number - 1] if 0 < number <= len(lines) else None

        rules = dict.fromkeys(self.rules, RuleText("", Severity.ERROR, "", ""))
        if formats.describe(format).needs_rule_texts:
            rules |= _read_rule_texts(self.root, self.rules)
        prefix = ""
        if formats.describe(format).names_files_from_top:
            # Imported late: the other formats do not need it.
            from jobgen.repo.git import find_path_from_top

            prefix = find_path_from_top(self.root)
        return Report(
            self.findings,
            self.suppressed,
            self.files,
            self.objects,
            self.environments,
            rules,
            find_line,
            show_suppressed,
            skipped=self.skipped,
            taken=self.taken,
            prefix=prefix,
            weaker=self.weaker,
            captures=self.captures,
            trees=self.trees,
            left_out=len(group_findings(self.left_out)) if self.left_out else 0,
        )

    def to_text(self, format: str = "text", *, show_suppressed: bool = False) -> str:  # noqa: A002 -- the option
        """Return the findings in one of the formats of `jobgen lint --format`.

        Raises:
            UsageError: There is no such format.

        """
        check_format(format, formats.FORMATS.names())
        return formats.FORMATS.render(format, self.to_report(format, show_suppressed=show_suppressed))


def lint(
    path: ProjectPath = ".",
    paths: Sequence[str] = (),
    *,
    environments: Sequence[str] = (),
    stdin: bytes | None = None,
    since: str = "",
    policy_from: str = "",
    baseline: str = "",
    prune_baseline: bool = False,
    kubeconform: bool = False,
    today: str = "",
    second_opinion: bool = False,
    strict_files: bool = False,
    values: Sequence[str] = (),
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    severity: str = "info",
) -> LintResult:
    """Check a jobs repository, or the manifests at some paths.

    Args:
        path: A project, or a folder in a jobs repository or anywhere else.
        paths: Files and folders below `path`; by default the whole repository, or all manifests of the folder.
        environments: Names of environments; by default those of the project.
        stdin: A manifest to check in addition.
        since: A Git revision; only findings that are new since then are returned.
        policy_from: The Git revision whose settings, teams, policies, schemas, baseline and date decide; `.` for those
            of the folder. By default that of `since`, or else the folder.
        baseline: A baseline file below `path`; the findings that it lists are suppressed.
        prune_baseline: Whether to remove entries from the baseline that no finding matches.
        kubeconform: The old name of `second_opinion`.
        today: The date by which jobs and suppressions expire, as `YYYY-MM-DD`; by default that of the commit.
        second_opinion: Whether to run jsonschema too, and kubeconform and kustomize, or else kubectl, if they are
            installed, and report disagreements.
        strict_files: Whether a file whose objects are not judged, such as a template, is an error.
        values: Files of values, below `path`, that Helm charts are rendered with instead of those of their releases.
        select: The names of rules and categories whose findings are returned, or `essential` for errors, or `all`; by
            default what the settings select. What decides about a change, and mandatory rules, are always returned.
        ignore: The names of rules and categories whose findings are left out.
        severity: The least severe findings that are returned: `error`, `warning` or `info`.

    Raises:
        UsageError: An argument or `jobgen.yaml` is wrong, or a tool is not installed.
        NotFoundError: There are no files to lint.
        ToolError: kubeconform or jsonschema failed.

    """
    check_names("paths", paths)
    check_names("environments", environments)
    check_names("values", values)
    directory = Path(path) if isinstance(path, (str, os.PathLike)) else path.root
    today = today or ("" if isinstance(path, (str, os.PathLike)) else path.today)
    if kubeconform:
        warnings.warn("`kubeconform` is deprecated; use `second_opinion`", DeprecationWarning, stacklevel=2)
    asks_others = second_opinion or kubeconform
    request = LintRequest(directory, paths, environments, stdin, today, None, asks_others, strict_files)
    for what, names in (("select", select), ("ignore", ignore)):
        check_names(what, names)
    check_severity(severity, [level.value for level in Severity])
    narrowing = Narrowing(tuple(select), tuple(ignore), Severity(severity))
    request = request._replace(chart_values=tuple(values), narrowing=narrowing)
    with open_judge(request, policy_from or since) as judged:
        return lint_request(judged, since=since, baseline=baseline, prune_baseline=prune_baseline)


def lint_request(
    request: LintRequest,
    *,
    since: str = "",
    baseline: str = "",
    prune_baseline: bool = False,
    store: Store | None = None,
) -> LintResult:
    """Check what a request names; the arguments and exceptions are those of `lint`."""
    if store is None:
        store = open_store(request.directory)
        request = request._replace(keeps_results=bool(store.is_kept or since or request.judged))
    if since:
        from jobgen.api.since import lint_since, set_day

        with record():  # what Git says is asked once
            request = set_day(request, since)
            linted = lint_since(request, since, store, lambda each: _lint_all(each, store, is_compared=True)).new
    else:
        linted = _lint_all(request, store, is_compared=False)
        if request.judged:
            from jobgen.api.since import add_governance

            linted = add_governance(request, linted, store)
    store.save()
    context = _begin_report(request, linted)
    if not baseline:
        return _to_result(request, linted, context)
    from jobgen.api.baseline import apply_baseline

    pruned = apply_baseline(request, baseline, linted, context, prune=prune_baseline, all_findings=not since)
    return _to_result(request, linted, context)._replace(pruned=len(pruned))


def lint_twice(
    request: LintRequest, since: str, store: Store | None = None, baseline: str = ""
) -> tuple[LintResult, LintResult, tuple[Finding, ...]]:
    """Check what a request names, now and at a revision, without the findings that a baseline lists.

    Returns the whole lint, that with new findings only, and the findings that are gone.
    """
    from jobgen.api.since import findings_since, set_day

    store, request = store or open_store(request.directory), set_day(request, since)
    linted = _lint_all(request, store, is_compared=True)
    now = _to_result(request, linted, _begin_with_baseline(request, linted, linted, baseline))
    shown = (*now.findings, *now.merged, *(each.finding for each in now.suppressed))
    compared = findings_since(request, since, linted, store, shown)
    store.save()
    new = _to_result(request, compared.new, _begin_with_baseline(request, linted, compared.new, baseline))
    return now, new, tuple(compared.gone)


def _begin_with_baseline(request: LintRequest, linted: Lint, some: Lint, baseline: str) -> Finishing:
    context = _begin_report(request, linted)
    if baseline:
        from jobgen.api.baseline import apply_baseline

        apply_baseline(request, baseline, some, context, prune=False, all_findings=False)
    return context


def _lint_all(request: LintRequest, store: Store, *, is_compared: bool) -> Lint:
    """Lint, or return the last result if nothing that it read has changed."""
    check_request(request)
    request = request._replace(is_compared=is_compared)
    linted = ask_findings(request, store)
    if linted.objects or linted.hidden or any(each.rule != "empty-file" for each in linted.findings):
        return linted
    # A hook may name only files that the settings exclude, or that are templates, patches and the like.
    are_others = EXCLUDED in linted.skipped or all((request.directory / path).is_file() for path in request.paths)
    if request.paths and are_others:
        return linted
    listed = ", ".join(f"{count} {reason}" for reason, count in sorted(linted.skipped.items()))
    skipped = f" (skipped: {listed})" if listed else ""
    raise NotFoundError(
        f"there is nothing to lint here{skipped}; name a file or folder with manifests, or run `jobgen init`"
    )


def _begin_report(request: LintRequest, linted: Lint) -> Finishing:
    return Finishing(linted.mandatory, narrowing=request.narrowing.override(linted.narrowing))


def _to_result(request: LintRequest, linted: Lint, context: Finishing) -> LintResult:
    """Return what is shown of a lint."""
    kept = finish(linted.findings, context, OF_REPORT)
    return LintResult(linted, tuple(kept), (*linted.hidden, *context.hidden), request.directory)


def check_request(request: LintRequest) -> None:
    """Raise a UsageError if a folder or tool does not exist, a path is in another repository, or a date is invalid."""
    if not request.directory.is_dir():
        raise UsageError(explain_absence(request.directory, request.directory))
    for path in request.chart_values:
        if not (request.directory / path).is_file():
            raise UsageError(f"there is no file `{path}`; check the path of the values")
    full = [(request.directory / path).resolve() for path in request.paths]
    root = find_root(request.directory.resolve())
    if any(find_settings(folder) not in (None, root) for folder in {*full, *(path.parent for path in full)}):
        # A path may be in another jobs repository.
        from jobgen.api.recognized_files import check_paths

        check_paths(request)
    check_date(request.today)
    _check_narrowing(request, root)
    if request.other_tools:
        from jobgen.model.features import NO_FEATURE, find_part

        find_missing = find_part("lint.other_tools.missing")
        # A second opinion needs one other tool; how much each of the others checked is listed.
        missing = find_missing(request.other_tools[0]) if find_missing else NO_FEATURE.format("second_opinion")
        if missing:
            raise UsageError(missing)


def _check_narrowing(request: LintRequest, root: Path | None) -> None:
    narrowing = request.narrowing
    if not (narrowing.select or narrowing.ignore):
        return
    from jobgen.repo.known_rules import list_known_rules

    known = list_known_rules(request.find_layers(root) if root else None)
    for names, presets in ((narrowing.select, True), (narrowing.ignore, False)):
        for name in names:
            if wrong := describe_unknown(name, known, presets=presets):
                raise UsageError(wrong)


def _read_rule_texts(root: Path, rules: Sequence[str]) -> dict[str, RuleText]:
    from jobgen.check.rule_docs import all_docs
    from jobgen.reports import name_rule_page

    docs = all_docs(own_layers(root))
    return {
        name: RuleText(doc.category, doc.severity, doc.summary, doc.text or doc.summary, name_rule_page(name))
        for name in rules
        if (doc := docs.get(name))
    }

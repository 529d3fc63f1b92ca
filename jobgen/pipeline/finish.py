"""What becomes of findings between the checks and a report: one tuple of stages, which is their order.

A stage takes findings, and returns those that are left with those that it adds. What it takes away for good goes to one
list, with the reason. Results are kept after the first two parts of the tuple: those of a run, and those of a lint.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TypeAlias

from jobgen.model.builtin_rules import TREE_RULES
from jobgen.model.data import Location
from jobgen.model.finding import Finding, FindingIdentity, sort_findings
from jobgen.reports import Suppressed
from jobgen.reports.duplicates import group_by_kind, merge_duplicates
from jobgen.reports.narrowing import EVERYTHING, Narrowing
from jobgen.reports.severities import Severities
from jobgen.reports.suppress import CommentFilter, Coverage, Suppression, find_unused

Findings: TypeAlias = Sequence[Finding]
ReadText: TypeAlias = Callable[[str], str]


class Finishing:
    """What the stages know besides the findings, and what they have taken away. By default, they change little."""

    def __init__(
        self,
        mandatory: frozenset[str] = frozenset(),
        severities: Severities | None = None,
        find_team: Callable[[Finding], str] = lambda _: "",
        *,
        comments: Iterable[Suppression] = (),
        today: str = "",
        read_text: ReadText = lambda _: "",
        narrowing: Narrowing = EVERYTHING,
    ) -> None:
        self.mandatory = mandatory
        """Rules that no comment can suppress."""
        self.severities = severities or Severities({})
        self.find_team = find_team
        """Returns the team of the job that a finding is about."""
        self.report_exceptions: Callable[[Sequence[tuple[Finding, str]]], Iterable[Finding]] = lambda _: ()
        """Returns what is wrong with the exceptions of the settings; it gets each finding with its team."""
        self.comments = CommentFilter(comments, mandatory, today)
        self.coverages: Sequence[tuple[Sequence[Suppression], Coverage]] = ()
        """Comments, with what was checked where they stand; none if the comments themselves are not judged."""
        self.rules: Sequence[str] = ()
        """The names of all rules, also of those that are turned off."""
        self.read_text = cache(read_text)
        self.setting_errors: Sequence[Finding] = ()
        """Errors because of which nothing is rendered, so that neither settings nor comments hide them."""
        self.is_selected: Callable[[Sequence[Finding]], Sequence[Finding]] = lambda findings: findings
        """Returns the findings in the files that were asked for."""
        self.known: Counter[FindingIdentity] = Counter()
        """The baseline."""
        self.stale: Sequence[Finding] = ()
        """What is wrong with the baseline."""
        self.narrowing = narrowing
        """What to show."""
        self.hidden: list[Suppressed] = []

    def hide(self, findings: Iterable[Finding], by: str, reason: str) -> None:
        """Note findings that a stage takes away."""
        self.hidden += (Suppressed(finding, reason, by) for finding in findings)

    def hide_others(self, findings: Findings, left: Findings, by: str, reason: str) -> Findings:
        """Return what a stage has left of some findings, and note the others."""
        if len(findings) != len(left) or any(map(_is_other, findings, left)):
            known = set(map(id, left))
            self.hide((each for each in findings if id(each) not in known), by, reason)
        return left


def _is_other(one: Finding, other: Finding) -> bool:
    return one is not other


Stage: TypeAlias = Callable[[Findings, Finishing], Findings]


def apply_severities(findings: Findings, context: Finishing) -> Findings:
    """Give findings the severities of the settings, and take away those that an exception accepts."""
    severities = context.severities
    if not severities.is_any:
        return [*findings, *context.report_exceptions(())]
    left: list[Finding] = []
    with_team: list[tuple[Finding, str]] = []
    for finding in findings:
        team = context.find_team(finding)
        with_team.append((finding, team))
        if exception := severities.find_exception(finding, team):
            context.hide((finding,), "exception", exception.reason)
        elif severe := severities.apply(finding, team):
            left.append(severe)
    return [*left, *context.report_exceptions(with_team)]


def list_once(findings: Findings, context: Finishing) -> Findings:
    """Leave out repetitions: the repository and its other files both report what is wrong with layers."""
    return sort_findings(dict.fromkeys(findings))


def hide_commented(findings: Findings, context: Finishing) -> Findings:
    """Take away what comments suppress, before it can stand for anything else."""
    return context.comments.keep(findings, context.hidden)


def explain_causes(findings: Findings, context: Finishing) -> Findings:
    """Say what is wrong with the text, and leave out what follows from another fault.

    Comments apply to what is said instead, too. It is read from files, so it can have secrets.
    """
    if not findings:
        return findings
    # Imported late: most runs have no finding.
    from jobgen.reports.consequences import leave_out_consequences
    from jobgen.reports.members import join_members
    from jobgen.reports.misread import explain_misread
    from jobgen.reports.unindented import join_unindented

    explained = join_unindented(explain_misread(findings, context.read_text), context.read_text)
    left = leave_out_consequences(explained, context.read_text)
    context.hide_others(explained, left, "consequence", "it follows from another fault")
    return _admit(join_members(left), findings, context)


def group_templates(findings: Findings, context: Finishing) -> Findings:
    """Report a file with unfilled placeholders once, unless that rule is off, or another one is mandatory."""
    if not findings:
        return findings
    from jobgen.reports.placeholders import group_placeholders

    left, grouped = group_placeholders(
        [each for each in findings if each.rule not in context.mandatory], context.read_text
    )
    if not grouped:
        return findings
    kept = {id(finding) for finding in left}
    shown = [finding for finding in findings if finding.rule in context.mandatory or id(finding) in kept]
    for template, replaced in grouped.items():
        severe = context.severities.apply(template, context.find_team(template))
        shown += [severe] if severe else replaced
        context.hide(replaced if severe else (), "template", "the file has unfilled placeholders")
    return sort_findings(_admit(shown, findings, context))


def _admit(findings: Findings, known: Findings, context: Finishing) -> Findings:
    """Return findings; those that are not known without the secrets of their files, unless comments suppress them."""
    old = set(map(id, known))
    new = {id(each): each for each in findings if id(each) not in old}
    if not new:
        return findings
    # Imported late: most runs have no such finding.
    from jobgen.rendering.redact import redact_findings
    from jobgen.repo.files import File

    left: list[Finding] = []
    for each in findings:
        if id(each) in new:
            file = File(each.location.file, context.read_text(each.location.file).encode())
            left += context.comments.keep(redact_findings([each], [file]), context.hidden)
        else:
            left.append(each)
    return left


def report_comments(findings: Findings, context: Finishing) -> Findings:
    """Report comments that have no effect, or name what cannot be suppressed."""
    errors = dict.fromkeys(context.comments.errors) if context.coverages else {}
    for comments, coverage in context.coverages:
        errors |= dict.fromkeys(
            find_unused(comments, context.comments.used, context.rules, coverage, context.comments.today)
        )
    severe = (context.severities.apply(each, context.find_team(each)) for each in errors)
    return [*findings, *filter(None, severe)]


def restore_setting_errors(findings: Findings, context: Finishing) -> Findings:
    """Show errors of the settings as they are: nothing is rendered with them."""
    wrong = context.setting_errors
    if not wrong:
        return findings

    def find_place(finding: Finding) -> tuple[str, Location]:
        return finding.rule, finding.location

    places = set(map(find_place, wrong))
    context.hidden = [each for each in context.hidden if find_place(each.finding) not in places]
    return [*wrong, *(each for each in findings if find_place(each) not in places)]


def select(findings: Findings, context: Finishing) -> Findings:
    """Leave out what is in other files than those that were asked for."""
    selected = set(map(id, context.is_selected([each.finding for each in context.hidden])))
    context.hidden = [each for each in context.hidden if id(each.finding) in selected]
    return context.is_selected(findings)


def leave_out_fixes(findings: Findings, context: Finishing) -> Findings:
    """Offer no fix of a text that an alias repeats: it would also change what is right elsewhere."""
    if not any(finding.fix for finding in findings):
        return findings
    # Imported late: most runs have no finding with a fix.
    from jobgen.yamlio.edit import list_repeated

    @cache
    def find_places(file: str) -> frozenset[tuple[int, int]]:
        return list_repeated(context.read_text(file).encode("utf-8", "replace"), file)

    def is_repeated(finding: Finding) -> bool:
        edits = finding.fix.edits if finding.fix else ()
        return any(edit.op != "comment" and edit.location[1:3] in find_places(edit.location.file) for edit in edits)

    return [finding._replace(fix=None) if is_repeated(finding) else finding for finding in findings]


def hide_known(findings: Findings, context: Finishing) -> Findings:
    """Take away what the baseline lists."""
    if context.known:
        # Imported late: most lints have no baseline.
        from jobgen.reports.baseline import split

        findings, known, _ = split(findings, context.known)
        context.hide(known, "baseline", "the baseline lists it")
    return [*findings, *context.stale]


def narrow(findings: Findings, context: Finishing) -> Findings:
    """Take away what is not selected, before it can stand for a fault of a selected rule."""
    left = context.narrowing.narrow(findings, context.mandatory)
    return context.hide_others(findings, left, "narrowing", "it is not selected")


def merge(findings: Findings, context: Finishing) -> Findings:
    """Report one fault once, and a kind without a schema or a tree that is not up to date once."""
    left, others = merge_duplicates(findings, context.mandatory)
    context.hide(others, "rule", "another rule reports the same fault")
    left, others = group_by_kind(left)
    context.hide(others, "group", "another finding counts it")
    if any(finding.rule in TREE_RULES for finding in left):
        # Imported late: most repositories have no tree, or nothing is wrong with it.
        from jobgen.reports.tree_groups import group_tree_faults

        left, others = group_tree_faults(left)
        context.hide(others, "group", "another finding counts it")
    return left


def join_causes(findings: Findings, context: Finishing) -> Findings:
    """Let findings that environments have for one cause say the same, so that a report shows them as one."""
    if len({finding.env for finding in findings}) < 2:
        return findings
    # Imported late: many runs have one environment.
    from jobgen.reports.environments import join_environments

    return join_environments(findings)


OF_RUN: tuple[Stage, ...] = (apply_severities,)
OF_LINT: tuple[Stage, ...] = (
    list_once,
    hide_commented,
    explain_causes,
    group_templates,
    report_comments,
    restore_setting_errors,
    select,
    leave_out_fixes,
)
OF_REPORT: tuple[Stage, ...] = (hide_known, narrow, merge, join_causes)
STAGES = OF_RUN + OF_LINT + OF_REPORT


def finish(findings: Findings, context: Finishing, stages: Sequence[Stage] = STAGES) -> list[Finding]:
    """Return what some stages leave of findings, and what they add; the context notes the others."""
    for stage in stages:
        findings = stage(findings, context)
    return list(findings)

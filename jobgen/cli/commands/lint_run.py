"""One whole lint of a repository, or of some paths: what remains to be told after severities and suppressions."""

from __future__ import annotations

from collections.abc import Sequence

from jobgen.check.builtin_rules import TWO_SIDED
from jobgen.check.rule_docs import names
from jobgen.cli.commands import ExitCode, Result, error_result, kubeconform
from jobgen.cli.commands.environments import environments
from jobgen.cli.commands.scope import LintRequest, LintResult, Scope, asked_about, resolve_files
from jobgen.model.data import Data
from jobgen.model.finding import Finding
from jobgen.pipeline import config
from jobgen.pipeline.environment import EnvironmentRunner
from jobgen.pipeline.read_jobs import collect_suppressions
from jobgen.pipeline.run import Run, discard_object
from jobgen.repo import git, layout
from jobgen.report.suppress import Silenced, Suppression, idle, silence


def lint(asked: LintRequest, scope: Scope | None = None, layers: bytes = b"") -> LintResult | Result:
    """Judge a whole repository, or the manifests at some paths.

    `scope` if the files have been looked for already; `layers` is what names the layers, if anything is remembered.
    """
    if asked.second_opinion and not kubeconform.installed():
        return error_result(ExitCode.USAGE, kubeconform.MISSING)
    scope = scope or resolve_files(asked)
    runs = _runs(asked, scope, layers)
    if isinstance(runs, Result):
        return runs
    try:
        objects = sum(_walked(run, second_opinion=asked.second_opinion) for run in runs)
    except kubeconform.FailedError as fault:
        return error_result(ExitCode.INTERNAL_ERROR, f"kubeconform could not be run: {fault}")
    comments = _comments(runs)
    today = asked.today or (git.read_commit_date(asked.directory) if comments else "")
    findings, silenced = _heard(runs, comments, today)
    heard = set(asked_about((each.finding for each in silenced), asked))
    return LintResult(
        asked_about(findings, asked),
        [each for each in silenced if each.finding in heard],
        sum(run.files for run in runs),
        objects,
        [name for run in runs for name in run.environments if name],
        _rules(runs),
        scope.root or asked.directory,
        comments,
        runs[0].project.mandatory,
        today,
        lasting=not comments and all(run.lasting for run in runs),
    )


def _runs(asked: LintRequest, scope: Scope, layers: bytes) -> list[Run] | Result:
    keep = _as_it_is if asked.second_opinion else discard_object
    runs: list[Run] = []
    if scope.whole and scope.root is not None:
        project = config.load(scope.root, today=asked.today)
        chosen = environments(project, asked.envs)
        if isinstance(chosen, Result):
            return chosen
        runs.append(Run(project, chosen, finish=keep, checked=True, layers=layers, jobs=scope.jobs))
    if scope.loose is not None:
        project = config.load(scope.root or asked.directory, today=asked.today)
        runs.append(Run(project, [""], finish=keep, checked=True, layers=layers, entries=scope.loose))
    return runs


def _comments(runs: Sequence[Run]) -> list[Suppression]:
    """The comments that silence findings, of jobs and of layers."""
    comments = [comment for run in runs for comment in run.comments]
    for run in runs:
        if run.entries is None:
            for file in layout.read_layers(run.project.root):
                collect_suppressions(file, comments, run.findings)
    return comments


def _heard(runs: Sequence[Run], comments: Sequence[Suppression], today: str) -> tuple[list[Finding], list[Silenced]]:
    """What remains after the comments that silence findings have been heard, and those were judged themselves."""
    findings = [finding for run in runs for finding in run.findings]
    if not comments:
        return findings, []
    project = runs[0].project
    kept, silenced, faults = silence(findings, comments, project.mandatory, today)
    # Of an environment that was not looked at nobody can say that a comment is of no use there.
    whole = all(run.entries is not None or set(run.environments) >= set(project.environments()) for run in runs)
    spared = project.mandatory | TWO_SIDED
    judged = [*faults, *idle(comments, silenced, sorted(_rules(runs)), spared, today, whole=whole)]
    kept += filter(None, map(project.severities.of, judged))
    return sorted(kept, key=lambda found: (found.location, found.rule, found.message, found.env)), silenced


def _rules(runs: Sequence[Run]) -> frozenset[str]:
    """Every rule and policy that was applied."""
    return names().union(*(run.policies for run in runs)) - runs[0].project.severities.off


def _walked(run: Run, *, second_opinion: bool) -> int:
    """The number of objects that were judged, by kubeconform too if it was asked for."""
    if not second_opinion:
        return sum(1 for _ in run)
    checkers = {name: EnvironmentRunner(run.project, name).checker for name in run.environments}
    objects = [(made, checkers[made.env].schema_file(checkers[made.env].manifest(made.object))) for made in run]
    run.findings += kubeconform.disagreements(run.project.root, objects, run.findings)
    return len(objects)


def _as_it_is(made: Data) -> Data:
    return made

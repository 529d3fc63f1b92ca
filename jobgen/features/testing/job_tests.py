"""Run the tests of jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from jobgen.api.errors import NotFoundError, UsageError, check_format, check_names, check_shard
from jobgen.api.lint import lint
from jobgen.api.merge_reports import MergedReport
from jobgen.api.project import Project, ProjectPath, open_project, select_environments
from jobgen.features.testing import formats
from jobgen.features.testing.cases import JobTest, read_tests
from jobgen.features.testing.evaluate import FindingSource, TestRun
from jobgen.features.testing.shards import TEST, CaseResult, join_results, merge_tests, pack_tests, select_tests
from jobgen.features.testing.subjects import Subject, collect_jobs
from jobgen.features.testing.summary import summarize
from jobgen.model.data import Location
from jobgen.model.finding import Finding, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.progress import notify
from jobgen.pipeline.environment_checker import EnvironmentChecker
from jobgen.render.build import identity_of
from jobgen.render.environment import EnvironmentRunner
from jobgen.repo.named_paths import read_first

_REPORTED = (Severity.ERROR, Severity.WARNING)


class JobTestOutcome(NamedTuple):
    """The result of one expectation of a test, for one object."""

    test: str
    """The name of the test."""
    environment: str
    job: str
    expectation: str
    """What was compared: `values`, `cel`, `findings`, `effect`, `rendered`, `snapshot` or `jobs`."""
    message: str
    """What is wrong; empty if it is as expected."""
    location: Location
    """The line of the expectation."""
    sources: tuple[str, ...]
    """Who set the value."""


class JobTestsResult(NamedTuple):
    """The outcomes of tests."""

    outcomes: tuple[JobTestOutcome, ...]
    text: str
    """The outcomes in the requested format."""
    findings: tuple[Finding, ...]
    """Errors of tests, settings, overlays and jobs that tests name."""
    snapshots: Mapping[str, str]
    """The snapshots as they are now, by path."""
    summary: str = ""
    """How many expectations there were, and how many are not met."""

    @property
    def failed(self) -> bool:
        """Whether an expectation is not met, or something cannot be read."""
        is_wrong = any(finding.severity is Severity.ERROR for finding in self.findings)
        return is_wrong or any(each.message for each in self.outcomes)


def run_tests(
    project: ProjectPath,
    names: Sequence[str] = (),
    *,
    environments: Sequence[str] = (),
    format: str = "text",  # noqa: A002 -- the name of the option
    shard: str = "",
) -> JobTestsResult:
    """Run the tests of a repository. Nothing is written: `JobTestsResult.snapshots` are what `--update` writes.

    Args:
        project: A project, or a path in one.
        names: Names of tests as shell patterns, or their files; by default all tests.
        environments: Names of environments; by default those of the project.
        format: The format of `JobTestsResult.text`: `text`, `json` or `junit`.
        shard: Which share of the tests to run, such as `1/4`; `merge_reports` merges the reports of all.

    Raises:
        UsageError: `jobgen.yaml` has errors, or an argument is wrong.
        NotFoundError: There is no such test.
        TypeError: `names` or `environments` is not a list of strings.

    """
    check_names("names", names)
    check_names("environments", environments)
    check_format(format, formats.format_names())
    share = check_shard(shard) if shard else None
    opened = open_project(project)
    selected = select_environments(opened.config, environments)
    findings = [each for each in opened.findings if each.severity is Severity.ERROR]
    known = list(read_tests(opened.root, opened.config.frameworks, findings))
    tests = _select(known, names)
    missing = [name for name in names if not _select(known, [name])]
    if (missing or not tests) and not findings:
        message = f"there is no test `{missing[0]}`" if missing else "there are no tests"
        raise NotFoundError(f"{message}; write `tests/<name>.yaml` with `kind: JobTests`", findings)
    jobs = collect_jobs(opened.config, tests, findings)
    run = TestRun(opened.config, selected, jobs, _list_rules(opened, selected), lambda path: _read(opened, path))
    numbers = select_tests(tests, share) if share else range(len(tests))
    results = []
    for done, number in enumerate(numbers):
        notify(done, len(numbers), "tests")
        results.append(_run_test(run, number, tests[number]))
    if share and not share.is_first:
        # The first shard reports what concerns all tests.
        findings = []
    part = pack_tests(share, tests, findings, results) if share else None
    outcomes, findings = join_results(findings, results)
    errors = [each for each in findings if each.severity is Severity.ERROR]
    shown = tuple(JobTestOutcome(each.test.name, *each[1:]) for each in outcomes)
    text, summary = formats.render(format, outcomes, errors, part), summarize(outcomes, errors, part)
    return JobTestsResult(shown, text, tuple(findings), run.snapshots, summary)


def merge_test_reports(parts: Sequence[Mapping[str, Any]], format: str) -> MergedReport:  # noqa: A002 -- as above
    """Merge what the reports of all shards hold.

    Raises:
        UsageError: There is no such format for tests.
        BrokenPartError: The shards ran different tests, or did not run each of them.

    """
    if format not in formats.format_names():
        raise UsageError(f"there is no format `{format}` for tests (known: json, junit)")
    outcomes, errors = merge_tests(parts)
    failed = bool(errors) or any(outcome.message for outcome in outcomes)
    text = formats.render(format, outcomes, errors)
    return MergedReport(TEST, text, failed, summary=summarize(outcomes, errors), findings=tuple(errors))


def _run_test(run: TestRun, number: int, test: JobTest) -> CaseResult:
    findings: list[Finding] = []
    return CaseResult(number, list(run.run(test, findings)), findings)


def _select(tests: list[JobTest], names: Sequence[str]) -> list[JobTest]:
    return [
        test for test in tests if not names or any(fnmatchcase(test.name, name) or test.file == name for name in names)
    ]


def _read(project: Project, path: str) -> str | None:
    file = read_first((project.root,), path)
    return file.content.decode("utf-8", "surrogateescape") if file and not file.finding else None


def _list_rules(project: Project, environments: Sequence[str]) -> FindingSource:
    """Return a function that says which rules find something in a job. The repository is linted at most once."""

    @cache
    def lint_once() -> tuple[Finding, ...]:
        return lint(project.root, environments=[env for env in environments if env], today=project.today).findings

    def list_rules(subject: Subject) -> frozenset[str]:
        if subject.test.given is not None or subject.test.change is not None:
            runner = EnvironmentRunner(project.config, subject.environment)
            checker = EnvironmentChecker(runner).find_checker(subject.job.file.path)
            problems = (problem for made in subject.made for problem in checker(made.object))
            return frozenset(problem.rule for problem in problems if problem.severity in _REPORTED)
        identities = {identity_of(made.object) for made in subject.made}
        return frozenset(
            each.rule
            for each in lint_once()
            if each.env == subject.environment and each.object in identities and each.severity in _REPORTED
        )

    return list_rules

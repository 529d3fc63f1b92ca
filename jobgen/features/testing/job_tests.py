"""Run the tests of jobs, and write the outcomes: text for people, JSON for programs, JUnit for CI systems."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import groupby

from jobgen.api.errors import NotFoundError, check_format, check_names
from jobgen.api.project import Project, ProjectPath, open_project, select_environments
from jobgen.features.testing.draft_lint import DraftLinter
from jobgen.features.testing.evaluate import (
    JobTest,
    Outcome,
    TestRun,
    collect_jobs,
    read_tests,
    summarize,
)
from jobgen.model.data import Location
from jobgen.model.finding import Finding, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.progress import notify
from jobgen.rendering.redact_results import redact_shared
from jobgen.repo.named_paths import read_first
from jobgen.reports.escape import dump_json, relative_path, visible

_TABLE = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": "&#10;", "\t": "&#9;"})


def render_junit(outcomes: Sequence[Outcome], errors: Sequence[Finding]) -> str:
    """Return XML with a failure for each expectation that is not met, and what kept tests from running as errors."""
    suites: list[tuple[str, list[list[Outcome]]]] = []
    for file, group in groupby(outcomes, key=lambda each: each.test.file):
        cases: dict[tuple[str, str, str], list[Outcome]] = {}
        for each in group:
            cases.setdefault((each.test.name, each.environment, each.job), []).append(each)
        suites.append((file, list(cases.values())))
    count = sum(len(several) for _, several in suites)
    failed = sum(_has_failed(case) for _, several in suites for case in several)
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    broken = f' errors="{len(errors)}"' if errors else ""
    lines.append(f'<testsuites name="jobgen test" tests="{count + len(errors)}" failures="{failed}"{broken}>')
    lines += (line for file, several in suites for line in _list_suite(file, several))
    lines += (line for error in errors for line in _list_error(error))
    return "\n".join([*lines, "</testsuites>"]) + "\n"


def _has_failed(case: Sequence[Outcome]) -> bool:
    return any(each.is_failed for each in case)


def _list_suite(file: str, cases: Sequence[Sequence[Outcome]]) -> Iterator[str]:
    name, failed = _xml(relative_path(file)), sum(map(_has_failed, cases))
    yield f'  <testsuite name="{name}" tests="{len(cases)}" failures="{failed}">'
    for case in cases:
        first = case[0]
        title = ", ".join(filter(None, (first.test.name, first.job, first.environment)))
        yield f'    <testcase classname="{name}" name="{_xml(title)}" file="{name}" line="{first.test.location.line}">'
        for each in case:
            if each.is_failed:
                text = "\n".join((str(each.location), *each.sources))
                yield f'      <failure message="{_xml(each.message)}">{_xml(text)}</failure>'
        yield "    </testcase>"
    yield "  </testsuite>"


def _list_error(error: Finding) -> Iterator[str]:
    name = _xml(relative_path(error.location.file))
    yield f'  <testsuite name="{name}" tests="1" failures="0" errors="1">'
    yield f'    <testcase classname="{name}" name="{_xml(error.rule)}" file="{name}" line="{error.location.line}">'
    yield f'      <error message="{_xml(error.message)}">{_xml(str(error.location))}</error>'
    yield "    </testcase>"
    yield "  </testsuite>"


def _xml(text: str) -> str:
    # Invisible characters are escaped: XML forbids most of them, even as references.
    return "\n".join(map(visible, text.split("\n"))).translate(_TABLE)


def render_text(outcomes: Sequence[Outcome], errors: Sequence[Finding]) -> str:
    """Write the failures, and how many expectations there were."""
    summary = f"{summarize(outcomes, errors)}\n"
    groups: dict[tuple[object, ...], list[Outcome]] = {}
    for each in (each for each in outcomes if each.is_failed):
        groups.setdefault((each.location, each.job, each.message, each.sources), []).append(each)
    lines: list[str] = []
    for outcome, *others in groups.values():
        # A failure may be equal in several environments.
        environments = ", ".join(filter(None, (each.environment for each in (outcome, *others))))
        where = f" (in {environments})" if environments else ""
        job = f"{outcome.job}: " if outcome.job else ""
        lines.append(f"{outcome.location}: failed: {outcome.test.name}: {job}{outcome.message}{where}")
        lines += (f"    {source}" for source in outcome.sources)
    return "".join(f"{visible(line)}\n" for line in lines) + summary


def render_json(outcomes: Sequence[Outcome], errors: Sequence[Finding]) -> str:
    """Write all outcomes, and the errors that kept tests from running."""
    document: dict[str, object] = {
        "version": 1,
        "failed": sum(each.is_failed for each in outcomes),
        "outcomes": [
            {
                "test": each.test.name,
                "file": each.location.file,
                "line": each.location.line,
                "environment": each.environment,
                "job": each.job,
                "expectation": each.expectation,
                "passed": not each.is_failed,
                "message": each.message,
                "sources": list(each.sources),
            }
            for each in outcomes
        ],
        "errors": [
            {"rule": each.rule, "file": each.location.file, "line": each.location.line, "message": each.message}
            for each in errors
        ],
    }
    return dump_json(document) + "\n"


FORMATS: dict[str, Callable[[Sequence[Outcome], Sequence[Finding]], str]] = {
    "json": render_json,
    "junit": render_junit,
    "text": render_text,
}


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

    @property
    def is_failed(self) -> bool:
        """True if something is not as expected."""
        return bool(self.message)


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
        """Return True if an expectation is not met, or something cannot be read."""
        is_wrong = any(finding.severity is Severity.ERROR for finding in self.findings)
        return is_wrong or any(each.is_failed for each in self.outcomes)


def run_tests(
    project: ProjectPath,
    names: Sequence[str] = (),
    *,
    environments: Sequence[str] = (),
    format: str = "text",  # noqa: A002 -- the name of the option
) -> JobTestsResult:
    """Run the tests of a repository. Nothing is written: `JobTestsResult.snapshots` are what `--update` writes.

    Args:
        project: A project, or a path in one.
        names: Names of tests as shell patterns, or their files; by default all tests.
        environments: Names of environments; by default those of the project.
        format: The format of `JobTestsResult.text`: `text`, `json` or `junit`.

    Raises:
        UsageError: `jobgen.yaml` has errors, or an argument is wrong.
        NotFoundError: There is no such test.
        TypeError: `names` or `environments` is not a list of strings.

    """
    check_names("names", names)
    check_names("environments", environments)
    check_format(format, list(FORMATS))
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
    linter = DraftLinter(opened.root, selected, opened.today)
    run = TestRun(opened.config, selected, jobs, linter.list_rules, lambda path: _read(opened, path))
    outcomes: list[Outcome] = []
    for done, test in enumerate(tests):
        notify(done, len(tests), "tests")
        outcomes += run.run(test, findings)
    findings = redact_shared(opened.config, findings)
    errors = [each for each in findings if each.severity is Severity.ERROR]
    shown = tuple(JobTestOutcome(each.test.name, *each[1:]) for each in outcomes)
    text, summary = FORMATS[format](outcomes, errors), summarize(outcomes, errors)
    return JobTestsResult(shown, text, tuple(findings), run.snapshots, summary)


def _select(tests: list[JobTest], names: Sequence[str]) -> list[JobTest]:
    return [
        test for test in tests if not names or any(fnmatchcase(test.name, name) or test.file == name for name in names)
    ]


def _read(project: Project, path: str) -> str | None:
    file = read_first((project.root,), path)
    return file.content.decode("utf-8", "surrogateescape") if file and not file.finding else None

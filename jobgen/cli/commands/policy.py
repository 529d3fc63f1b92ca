"""`jobgen policy`: the policies of a repository: tested, listed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import click

from jobgen.api.project import find_repository
from jobgen.check.policy import ClusterFacts, Policies, PolicyEvaluator
from jobgen.cli.result import ExitCode, Result, error_result
from jobgen.model.data import Data, untraced, value_of
from jobgen.model.finding import Finding, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.pipeline import config
from jobgen.pipeline.config import ProjectConfig
from jobgen.pipeline.load_policies import PolicyFiles, load_policies
from jobgen.pipeline.locate import locate
from jobgen.pipeline.read_jobs import read_jobs
from jobgen.pipeline.trace import Job, Tracer
from jobgen.repo import layout
from jobgen.report.escape import visible
from jobgen.report.summary import format_findings, pluralize

_EXPECT = lazy_pattern(r"# expect: *(.+)")
_ACTIONS = {Severity.ERROR: "Deny", Severity.WARNING: "Warn", Severity.INFO: "Audit"}


@click.group("policy")
def command() -> None:
    """Test and list policies."""


@command.command("test")
@click.argument("folder", required=False, metavar="[DIR]")
@click.pass_obj
def _test_command(directory: Path, folder: str | None) -> Result:
    """Run the test cases of the policies, in policies/tests/ or in DIR."""
    return run_cases(find_repository(directory), directory, folder)


@command.command("list")
@click.pass_obj
def _list_command(directory: Path) -> Result:
    """List the policies with their actions and resources."""
    return list_policies(find_repository(directory))


def run_cases(root: Path, directory: Path, folder: str | None) -> Result:
    """Judge every case by the policies of its folder, and compare with what its lines expect."""
    book = load_policies(root)
    if any(finding.severity is Severity.ERROR for finding in book.findings):
        return error_result(
            ExitCode.INTERNAL_ERROR, "the policies have faults, so nothing was tested", format_findings(book.findings)
        )
    entries = list(layout.find_policy_tests(root) if folder is None else layout.find_manifests(directory, folder))
    if not entries:
        return error_result(
            ExitCode.NOTHING_TO_DO, "there are no cases: put manifests with `# expect: <policy>` under policies/tests/"
        )
    project = config.load(root)
    cases = [_case(entry, book, project) for entry in entries]
    said = "".join(_shown(case) for case in cases)
    failed = sum(1 for case in cases if case.wrong)
    summary = f"{pluralize(len(cases), 'file')} tested: {f'{failed} failed' if failed else 'all ok'}\n"
    told = _untested(book, root, entries) if folder is None else ""
    return Result(ExitCode.ERRORS if failed else ExitCode.OK, said, told + summary)


class _Case(NamedTuple):
    """A file of cases, and the lines on which it is not as expected."""

    path: str
    wrong: list[str]


def _case(entry: layout.FileEntry, book: PolicyFiles, project: ProjectConfig) -> _Case:
    findings: list[Finding] = []
    file = layout.read_file(entry)
    expected = Counter(_expected(file.content.decode("utf-8", "replace")))
    found: dict[tuple[int, str], str] = {}
    count: Counter[tuple[int, str]] = Counter()
    for line, rule, message in _found(entry, _of_folder(entry, book), project, findings):
        found[line, rule] = message
        count[line, rule] += 1
    wrong = [f"{finding.location}: {finding.message}" for finding in findings]
    for line, rule in sorted(expected.keys() | count.keys()):
        if expected[line, rule] > count[line, rule]:
            wrong.append(f"line {line}: `{rule}` is expected, and not found")
        elif expected[line, rule] < count[line, rule]:
            wrong.append(f"line {line}: `{rule}` is found, and not expected: {found[line, rule]}")
    return _Case(entry.path, wrong)


def _expected(content: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(content.splitlines(), 1):
        match = _EXPECT.search(line)
        yield from ((number, rule.strip()) for rule in match[1].split(",")) if match else ()


def _of_folder(entry: layout.FileEntry, book: PolicyFiles) -> Policies:
    """The policies that a case is about: those of the name of its folder, or of the file of that name."""
    folder = PurePosixPath(entry.path).parent.name
    wanted = tuple(
        (policy, bindings)
        for policy, bindings in book.policies.policies
        if folder in (policy.name, PurePosixPath(book.files[policy.name]).stem)
    )
    return book.policies._replace(policies=wanted)


def _found(
    entry: layout.FileEntry, policies: Policies, project: ProjectConfig, findings: list[Finding]
) -> Iterator[tuple[int, str, str]]:
    """What the policies say of the jobs of a file; its params and namespaces are on the shelf for them."""
    tracer = Tracer(project)
    beside: list[Data] = []
    jobs: list[Job] = []
    names = {policy.name for policy, _ in policies.policies}
    kinds = {("v1", "Namespace"), *(policy.param_kind for policy, _ in policies.policies)}
    for job in read_jobs([entry], project.frameworks, findings):
        traced = tracer.trace(job, "")
        for found in (locate(problem, entry.path, job.location) for problem in traced.problems):
            # Rendering holds a spec against some policies itself.
            if found.rule in names:
                yield found.location.line, found.rule, found.message
            else:
                findings.append(found)
        if (value_of(job.document.data.get("apiVersion")), value_of(job.document.data.get("kind"))) in kinds:
            beside.append(untraced(job.document.data))
        elif traced.object is not None and not traced.problems:
            jobs.append(job)
    evaluator = PolicyEvaluator(policies._replace(param_store=policies.param_store.plus(beside)), ClusterFacts())
    for job in jobs:
        for finding in tracer.findings(job, "", lambda made: list(evaluator.find_problems(made))):
            yield finding.location.line, finding.rule, finding.message


def _shown(case: _Case) -> str:
    if not case.wrong:
        return f"{case.path}: ok\n"
    return f"{case.path}: FAILED\n" + "".join(f"  {visible(line)}\n" for line in case.wrong)


def _untested(book: PolicyFiles, root: Path, entries: Sequence[layout.FileEntry]) -> str:
    """The repository's own policies that have no cases."""
    folders = {PurePosixPath(entry.path).parent.name for entry in entries}
    own = {file.path for file in layout.read_own_policies(root)}
    return "".join(
        f"{path}: policy `{name}` has no cases; put some into policies/tests/{name}/\n"
        for name, path in book.files.items()
        if path in own and not folders & {name, PurePosixPath(path).stem}
    )


def list_policies(root: Path) -> Result:
    """Every policy with its actions, its file and the resources that it is for."""
    book = load_policies(root)
    told = format_findings(book.findings)
    rows = [
        (
            policy.name,
            ", ".join(dict.fromkeys(_ACTIONS[binding.severity] for binding in bindings)) or "unbound",
            book.files[policy.name],
            ", ".join(dict.fromkeys(name for rule in policy.match.rules for name in sorted(rule.resources))),
        )
        for policy, bindings in book.policies.policies
    ]
    if not rows:
        return error_result(ExitCode.NOTHING_TO_DO, "there are no policies", told)
    width = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = ("  ".join(f"{cell:<{size}}" for cell, size in zip(row, [*width, 0], strict=True)) for row in rows)
    return Result(ExitCode.OK, "".join(f"{line}\n" for line in lines), told)

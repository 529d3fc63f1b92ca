"""`jobgen policy`: check, test, list and describe the policies of a repository."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import click

from jobgen.api.project import find_repository
from jobgen.check.policy import ClusterFacts, PolicyEvaluator
from jobgen.check.policy.expectations import Observed, find_differences, parse_expectations
from jobgen.check.policy.parse import BINDING, MUTATING_BINDING, is_mutating, is_policy
from jobgen.check.policy.policy_page import PolicyDocument, format_page
from jobgen.cli.complete import complete_folders
from jobgen.cli.result import ExitCode, Result, error_result
from jobgen.k8s.redaction import hide_credentials
from jobgen.model.data import location_of, untraced, value_of
from jobgen.model.finding import Finding, Severity, add_failures
from jobgen.pipeline.environment_checker import EnvironmentChecker
from jobgen.pipeline.placed_findings import locate_problems
from jobgen.pipeline.policies import PolicyFiles, load_policies, read_plain_documents
from jobgen.pipeline.policy_types import find_policy_type_findings
from jobgen.rendering import config
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import EnvironmentRunner
from jobgen.rendering.locate import locate
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.redact import redact_findings
from jobgen.rendering.trace import Job, Tracer
from jobgen.repo import layout
from jobgen.repo.files import FileEntry, read_file
from jobgen.repo.named_paths import find_manifests
from jobgen.repo.root import SETTINGS
from jobgen.reports.entries import format_findings, pluralize
from jobgen.reports.escape import visible
from jobgen.reports.formats import junit

_ACTIONS = {Severity.ERROR: "Deny", Severity.WARNING: "Warn", Severity.INFO: "Audit"}


@click.group("policy")
def command() -> None:
    """Check, test, list and describe policies."""


@command.command("test")
@click.argument("folder", required=False, metavar="[DIR]", shell_complete=complete_folders)
@click.option("--format", "format_", type=click.Choice(["text", "junit"]), default="text", show_default=True)
@click.pass_obj
def _test_command(directory: Path, folder: str | None, format_: str) -> Result:
    """Run the test cases of the policies, in policies/tests/ or in DIR."""
    return run_cases(find_repository(directory), directory, folder, format_)


@command.command("docs")
@click.pass_obj
def _docs_command(directory: Path) -> Result:
    """Print a page in Markdown about what the policies enforce, and where."""
    return write_page(find_repository(directory))


@command.command("list")
@click.pass_obj
def _list_command(directory: Path) -> Result:
    """List the policies with their actions and resources, and the packs that can be turned on."""
    return list_policies(find_repository(directory))


@command.command("check")
@click.pass_obj
def _check_command(directory: Path) -> Result:
    """Report mistakes in policies, and expressions that do not fit the kinds they match."""
    return check_policies(find_repository(directory))


def _load_policies(project: ProjectConfig, *, all_packs: bool = False) -> PolicyFiles:
    """Load the policies with the errors of the settings, which name the packs."""
    book = load_policies(project.layers, all_packs=all_packs)
    errors = [each for each in project.findings if each.location.file == SETTINGS and each.severity is Severity.ERROR]
    return book._replace(findings=(*errors, *book.findings))


def check_policies(root: Path) -> Result:
    """Report the errors of policies, and the warnings that the API server writes to their status."""
    project = config.load_own(root)
    book = _load_policies(project)
    findings = [*book.findings, *find_policy_type_findings(project)]
    failed = any(finding.severity is Severity.ERROR for finding in findings)
    result = pluralize(len(findings), "finding") if findings else "all ok"
    summary = f"{len(book.policies.policies)} policies checked: {result}\n"
    return Result(ExitCode.ERRORS if failed else ExitCode.OK, format_findings(findings), summary)


def run_cases(root: Path, directory: Path, folder: str | None, format_: str = "text") -> Result:
    """Check every test case with the policies of its folder, and compare the findings with its comments."""
    project = config.load_own(root)
    book = _load_policies(project, all_packs=layout.is_home(root))
    if any(finding.severity is Severity.ERROR for finding in book.findings):
        return error_result(
            ExitCode.INTERNAL_ERROR,
            "policies or settings have errors; nothing was tested",
            format_findings(book.findings),
        )
    entries = list(layout.find_policy_tests(root) if folder is None else find_manifests(directory, folder))
    if not entries:
        return error_result(
            ExitCode.NOTHING_TO_DO,
            "there are no test cases; add manifests with `# expect: <policy>` to policies/tests/",
        )
    cases: list[tuple[str, list[str]]] = []
    for entry in entries:
        findings: list[Finding] = []
        expected = parse_expectations(read_file(entry).content.decode("utf-8", "replace"))
        observed = list(_check_file(entry, book, project, findings))
        shown = redact_findings(findings, [read_file(entry)])
        errors = [f"{finding.location}: {finding.message}" for finding in shown]
        cases.append((entry.path, [*errors, *find_differences(expected, observed)]))
    lines = "".join(
        f"{path}: {'FAILED' if errors else 'ok'}\n" + "".join(f"  {visible(line)}\n" for line in errors)
        for path, errors in cases
    )
    if format_ == "junit":
        lines = junit.render_tests("jobgen policy test", cases)
    failed = sum(1 for _, errors in cases if errors)
    summary = f"{pluralize(len(cases), 'file')} tested: {f'{failed} failed' if failed else 'all ok'}\n"
    untested = ""
    if folder is None:
        folders = {PurePosixPath(entry.path).parent.name for entry in entries}
        own = {file.path for file in layout.read_own_policies(layout.own_layers(root))}
        validating = {policy.name for policy, _ in book.policies.policies}
        untested = "".join(
            f"{path}: policy `{name}` has no test cases; add some to policies/tests/{name}/\n"
            for name, path in book.files.items()
            if name in validating and path in own and not folders & {name, PurePosixPath(path).stem}
        )
    return Result(ExitCode.ERRORS if failed else ExitCode.OK, lines, untested + summary)


def _check_file(
    entry: FileEntry, book: PolicyFiles, project: ProjectConfig, findings: list[Finding]
) -> Iterator[Observed]:
    """Check the jobs of a file with the policies whose name, or whose file's name, its folder has.

    Its params and namespaces are available to them.
    """
    folder = PurePosixPath(entry.path).parent.name
    pairs = book.policies.policies
    wanted = [pair for pair in pairs if folder in (pair[0].name, PurePosixPath(book.files[pair[0].name]).stem)]
    policies = book.policies._replace(policies=tuple(wanted))
    tracer = Tracer(project)
    extra: list[Any] = []
    jobs: list[Job] = []
    names = {policy.name for policy, _ in policies.policies}
    every = (*(policy for policy, _ in policies.policies), *(each.policy for each, _ in policies.mutating))
    kinds = {("v1", "Namespace"), *(policy.param_kind for policy in every)}
    for job in read_jobs([entry], project.kinds, findings):
        traced = tracer.trace(job, "")
        for found in (locate(problem, entry.path, job.location) for problem in traced.problems):
            # Rendering itself checks a spec with some policies.
            if found.rule in names:
                yield _observe(found)
            else:
                findings.append(found)
        if (value_of(job.document.data.get("apiVersion")), value_of(job.document.data.get("kind"))) in kinds:
            extra.append(untraced(job.document.data))
        elif traced.object is not None and not traced.problems:
            jobs.append(job)
    evaluator = PolicyEvaluator(policies._replace(param_store=policies.param_store.plus(extra)), ClusterFacts())
    checker = EnvironmentChecker(EnvironmentRunner(project, "")).checker.with_policies(evaluator)
    for job in jobs:
        plain: Any = untraced(tracer.trace(job, "").object)
        mutated = checker.mutate(plain)
        problems = add_failures(mutated.failures, checker.evaluate_policies(mutated.object))
        for finding in locate_problems(problems, mutated.object, tracer, job, "", mutate=checker.mutate):
            location = finding.location
            if location.file != entry.path:
                # What a mutating policy sets is located in the policy; the case expects it at the name of the object.
                metadata = job.traced_document().data.get("metadata")
                location = location_of(metadata.get("name") if isinstance(metadata, dict) else None) or job.start()
            yield _observe(finding._replace(location=location))


def _observe(finding: Finding) -> Observed:
    return Observed(finding.location.line, finding.rule, finding.severity, finding.message)


def write_page(root: Path) -> Result:
    """The page about all policies that are valid."""
    project = config.load_own(root)
    book = _load_policies(project)
    files = (*layout.read_shipped_policies(project.layers), *layout.read_own_policies(project.layers))
    valid = {policy.name for policy, _ in book.policies.policies}
    valid |= {each.policy.name for each, _ in book.policies.mutating}
    documents: list[PolicyDocument] = []
    for document in map(PolicyDocument._make, read_plain_documents(files)):
        data = document.data
        if is_policy(data) or is_mutating(data):
            # The policy that the document is, or to which it binds.
            is_binding = data["kind"] in (BINDING, MUTATING_BINDING)
            owner = data.get("spec") if is_binding else data.get("metadata")
            name = owner.get("policyName" if is_binding else "name") if isinstance(owner, dict) else None
            documents += [document] if str(name) in valid else []
    page = hide_credentials(format_page(documents, project.severities.off))
    failed = any(finding.severity is Severity.ERROR for finding in book.findings)
    return Result(ExitCode.INTERNAL_ERROR if failed else ExitCode.OK, page, format_findings(book.findings))


def list_policies(root: Path) -> Result:
    """List every policy with its actions, its file and its resources."""
    book = _load_policies(config.load_own(root))
    findings = format_findings(book.findings)
    actions = [
        (policy, ", ".join(dict.fromkeys(_ACTIONS[binding.severity] for binding in bindings)))
        for policy, bindings in book.policies.policies
    ]
    actions += [(each.policy, "Mutate" if bindings else "") for each, bindings in book.policies.mutating]
    rows: list[tuple[str, ...]] = []
    for policy, action in actions:
        resources = dict.fromkeys(name for rule in policy.match.rules for name in sorted(rule.resources))
        rows.append((policy.name, action or "unbound", book.files[policy.name], ", ".join(resources)))
    if not rows:
        return error_result(ExitCode.NOTHING_TO_DO, "there are no policies", findings)
    failed = any(finding.severity is Severity.ERROR for finding in book.findings)
    code = ExitCode.INTERNAL_ERROR if failed else ExitCode.OK
    on = layout.find_packs(layout.own_layers(root))
    included = {pack.includes for pack in layout.PACKS if pack.name in on}
    packs: list[tuple[str, ...]] = []
    for pack in layout.PACKS:
        state = "on" if pack.name in on else "included" if pack.name in included else "off"
        packs.append(("pack", pack.name, state, pack.description))
    return Result(code, f"{_format_rows(rows)}\n{_format_rows(packs)}", findings)


def _format_rows(rows: Sequence[tuple[str, ...]]) -> str:
    width = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    return "".join(
        "  ".join(f"{cell:<{size}}" for cell, size in zip(row, [*width, 0], strict=True)) + "\n" for row in rows
    )

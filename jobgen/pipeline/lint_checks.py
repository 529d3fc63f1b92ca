"""What a lint does with the jobs and objects that a run renders: it checks each, and all of them together."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import groupby
from typing import TYPE_CHECKING, Any

from jobgen.check.checker import NO_CHECKS, Checker
from jobgen.engine.store import Query, keep
from jobgen.k8s.kinds import BUILTIN_GROUPS
from jobgen.model.data import Location, location_of, value_of
from jobgen.model.finding import (
    BROKEN_KIND,
    UNCHECKED,
    Finding,
    Problem,
    Related,
    Severity,
    is_failed_evaluation,
    quoted_values,
)
from jobgen.model.suggest import find_closest
from jobgen.pipeline.decoded_results import decode_result
from jobgen.pipeline.encoded_results import decode_findings, encode_findings, encode_result
from jobgen.pipeline.environment_checker import EnvironmentChecker, PolicySource
from jobgen.pipeline.severities import apply_severities
from jobgen.rendering import config
from jobgen.rendering.build import is_spec, split_list
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import EnvironmentRunner, Rendered
from jobgen.rendering.file_result import FileResult
from jobgen.rendering.locate import locate
from jobgen.rendering.process_files import drop_repeated
from jobgen.rendering.run_state import RunState, discard_object
from jobgen.rendering.trace import Job, JobRef, Tracer
from jobgen.repo import layout
from jobgen.repo.files import File, FileEntry, read_file
from jobgen.reports.coverage import NO_SCHEMA_RULES
from jobgen.spec.overlay import Cluster
from jobgen.spec.teams import Teams

_CUTOFF = 0.9


def find_unowned(job: Job, teams: Teams) -> Iterator[Finding]:
    """Report a job that no team owns, in a repository with teams. No limit of a team applies to it."""
    path = job.file.path
    # If a team could not be read, this may follow from it.
    if teams.all and teams.is_complete and teams.find(path) is None:
        message = f"no team owns `{path}`, so no limit of a team applies; add its folder to a team{_hint(path, teams)}"
        problem = Problem("job-without-team", message, category="team", evidence=(path,))
        yield locate(problem, path, job.start())


def _hint(path: str, teams: Teams) -> str:
    """A folder of a team that is almost that of a file: one of them may be misspelled."""
    owners = {folder: team.name for team in teams.all for folder in team.folders}
    close = find_closest(path.rpartition("/")[0], list(owners), _CUTOFF)
    return f"; `{owners[close]}` owns `{close}`" if close else ""


class Membership:
    """Decides which jobs belong to no environment. A run may be limited to some, so all of them are looked at."""

    def __init__(self, project: ProjectConfig, runners: Sequence[EnvironmentRunner]) -> None:
        names = {runner.name for runner in runners}
        others = [name for name in project.environments() if name not in names]
        self._project = project
        self._runners = [*runners, *(EnvironmentRunner(project, name) for name in others)]
        # What an overlay or a team with errors selects is not known.
        self.takes_all = not project.teams.is_complete or any(
            not runner.expander.environment.jobs or runner.is_broken for runner in self._runners
        )

    def describe(self) -> str:
        """Return what decides which jobs environments select."""
        return repr([(runner.name, runner.expander.environment.jobs) for runner in self._runners])

    def selects(self, job: Job) -> bool:
        """Return True if an environment selects a job."""
        return self.takes_all or any(runner.patches_for(job) is not None for runner in self._runners)

    def findings(self, job: Job, tracer: Tracer) -> list[Finding]:
        """Report a job that no environment selects. A raw manifest is checked by its schema at least."""
        if self.selects(job):
            return []
        name = job.document.sweep or job.document.name
        message = (
            f"no environment selects `{name}`, so it is not rendered; change `jobs` of an overlay, or remove the job"
        )
        found = [locate(Problem("job-without-environment", message), job.file.path, job.start())]
        if is_spec(job.document.data):
            return found
        checker = self._checker()
        return (
            found + tracer.findings(job, "", checker)
            if checker.has_problems(checker.manifest(job.document.data))
            else found
        )

    def _checker(self) -> Checker:
        return Checker(self._project.root, self._project.kinds, Cluster())


if TYPE_CHECKING:
    from jobgen.k8s.objects import Manifest
    from jobgen.pipeline.policies import PolicyFiles
    from jobgen.rendering.run_state import AllJobs

CHECKED: Query[FileResult] = Query("checked", encode_result, decode_result)
"""What a lint found in a file: by itself, or in one environment."""
CHECKED_SCOPE = f"jobs {discard_object.__name__}"
"""The scope of the results of jobs."""
ACROSS: Query[list[Finding]] = Query("across", encode_findings, decode_findings)
"""What a lint found in all files together."""
_CHECKED_WHOLE: Query[FileResult] = Query("checked with objects")


class LintChecks:
    """The checks of one lint."""

    across = ACROSS

    def __init__(self, *, keeps_objects: bool = False) -> None:
        """Start a lint. Results with objects are not kept on disk."""
        self.query = _CHECKED_WHOLE if keeps_objects else CHECKED
        self.environments: Mapping[str, EnvironmentChecker] = {}
        self.policy_files: PolicyFiles | None = None
        """The policies, unless the store says that nothing is wrong with them."""
        self._policies: PolicySource | None = None
        self._membership: Membership | None = None

    def prepare(self, run: RunState) -> None:
        """Load the policies, and add what is wrong with them to the findings.

        If the store says that they are valid, they are compiled only if an object has to be checked.
        """
        files = tuple(layout.read_shipped_policies(run.project.root)), tuple(layout.read_own_policies(run.project.root))
        kinds = [kind for kind in run.project.kinds if kind.plural]
        resources = tuple((*str(value_of(kind.api_version)).split("/", 1), kind.plural) for kind in kinds)
        compile_all = functools.cache(lambda: _compile_policies(*files, resources))
        parts = [
            part for several in files for file in several for part in (file.path, repr(file.finding), file.content)
        ]
        names = keep("policies", (*parts, repr(resources)), lambda: _name_valid(compile_all()))
        self._policies = lambda: compile_all().policies
        if names is not None:
            run.policies = tuple(names.decode().split("\n"))
            return
        self.policy_files = compile_all()
        run.findings += (*self.policy_files.findings, *self.policy_files.unused)
        run.policies = tuple(self.policy_files.files)

    def select(self, run: RunState, runners: Sequence[EnvironmentRunner], *, is_all: bool) -> None:
        """Prepare to check the objects of the environments that can be rendered, of which these may be all."""
        self.environments = {runner.name: EnvironmentChecker(runner, self._policies, run.entries) for runner in runners}
        self._membership = Membership(run.project, runners) if run.entries is None and is_all else None

    def forget_shared(self) -> None:
        """Forget what other files define; they may have changed since the last run."""
        for environment in self.environments.values():
            environment.forget_shared()

    def describe_membership(self, jobs: Callable[[], Sequence[Job]]) -> str:
        """Return a text that changes if environments do not select all jobs of a file, and then with what they do."""
        if self._membership is None or self._membership.takes_all or all(map(self._membership.selects, jobs())):
            return "selected"
        return self._membership.describe()

    def check_job(self, run: RunState, tracer: Tracer, job: Job) -> Iterator[Finding]:
        """Report a job that no environment selects, or that no team owns."""
        if self._membership is not None:
            yield from self._membership.findings(job, tracer)
        if run.entries is None:
            yield from find_unowned(job, run.project.teams)

    def check_objects(
        self, run: RunState, env: str, tracer: Tracer, made: Sequence[tuple[Job, FileResult, Rendered]]
    ) -> list[Any]:
        """Check objects without locations first, and those with a problem again with locations.

        Returns what is kept of each object: its summary, if only its results are kept.
        """
        environment = self.environments[env]
        checkers = [environment.find_checker(job.file.path) for job, _, _ in made]
        mutated = [checker.mutate(rendered.object) for checker, (_, _, rendered) in zip(checkers, made, strict=True)]
        manifests = [checker.manifest(each.object) for checker, each in zip(checkers, mutated, strict=True)]
        alone = zip(checkers, manifests, mutated, made, strict=True) if not run.is_outline else ()
        for checker, manifest, each, (job, part, rendered) in alone:
            key = _digest_built(job, manifest)
            reporting = checker.find_reporting(manifest) if not key or key not in environment.clean else NO_CHECKS
            if each.failures or reporting.is_any:
                check = functools.partial(checker, reporting=reporting)
                found = tracer.findings(job, env, check, rendered.companion, checker.mutate)
                part.findings.extend(drop_repeated(job, part, found))
            elif key:
                environment.clean.add(key)
            if environment.take_shared_use():
                part.dependent.append(job.document.name)
        if run.entries is not None:
            # Standalone files are not one environment, so rules over all its objects do not apply.
            if not run.is_outline:
                _check_files(env, tracer, made)
            return [run.finish(rendered.object) for _, _, rendered in made]
        from jobgen.pipeline.object_summary import summarize_object

        kept: list[Any] = []
        for checker, manifest, (job, part, rendered) in zip(checkers, manifests, made, strict=True):
            where = JobRef(env, job.file.path, job.position, job.item, rendered.companion)
            problems: list[Problem] = []
            part.rows.extend((rule, row._replace(job=where)) for rule, row in checker.collect_facts(manifest, problems))
            part.findings.extend(locate(problem, job.file.path, job.location) for problem in problems)
            if run.finish is discard_object:
                is_same = manifest.object is rendered.object
                summarized = manifest if is_same else checker.manifest(rendered.object)
                kept.append(summarize_object(checker, rendered.object, summarized))
            else:
                kept.append(run.finish(rendered.object))
            if environment.take_shared_use():
                part.dependent.append(job.document.name)
        return kept

    def find_across(self, jobs: AllJobs, *, is_complete: bool) -> Iterator[Finding]:
        """Report what only all jobs together show: conflicts, refusals of a cluster, and entries without effect."""
        from jobgen.pipeline.lint_across import find_across

        yield from find_across(jobs, self.environments, self.policy_files, is_complete=is_complete)

    def finish(self, run: RunState, jobs: AllJobs, shared: Sequence[Finding]) -> None:
        """Give findings the severities that they have in this repository, and note what was checked."""
        run.rendered = run.complete and not any("" in part.unchecked for part in jobs.parts) and not _has_errors(shared)
        if any(finding.rule in NO_SCHEMA_RULES for finding in run.findings):
            run.findings[:] = _name_definitions(run, jobs)
        if run.project.findings:
            run.findings[:] = name_broken_kinds(run.findings, run.project)
        _name_failed_policies(run)
        is_part = run.shard is not None and run.shard.is_part
        covers_all = run.complete and not is_part and set(run.environments) >= set(run.project.environments())
        run.findings[:], run.accepted = apply_severities(jobs, run.findings, covers_all=covers_all)


def _name_valid(found: PolicyFiles) -> bytes | None:
    """Return the names of policies with which nothing is wrong, so that they need not be compiled."""
    return None if found.findings or found.unused or found.unmatched else "\n".join(found.files).encode()


def _compile_policies(shipped: tuple[File, ...], own: tuple[File, ...], resources: tuple[Any, ...]) -> PolicyFiles:
    # Imported late: a lint of stored results does not need CEL.
    from jobgen.pipeline.policies import compile_policy_files

    return compile_policy_files(shipped, own, resources)


def _digest_built(job: Job, manifest: Manifest) -> bytes:
    """Return a digest of an object that several builds may share, and that depends on no other file; else nothing."""
    if job.built is None or manifest.group not in BUILTIN_GROUPS:
        return b""
    return blake2b(json.dumps(job.built.data, sort_keys=True, default=str).encode(), digest_size=16).digest()


def _check_files(env: str, tracer: Tracer, made: Sequence[tuple[Job, FileResult, Rendered]]) -> None:
    """Report what only the objects of a file together show."""
    for _, several in groupby(made, key=lambda each: each[0].file.path):
        objects = list(several)
        if any(rendered.identity.kind == "Service" for _, _, rendered in objects):
            # Imported late: most files have no such objects.
            from jobgen.pipeline.lint_across import find_file_problems

            pairs = [(job, rendered) for job, _, rendered in objects]
            for number, finding in find_file_problems(pairs, tracer, env):
                objects[number][1].findings.append(finding)


def _name_definitions(run: RunState, jobs: AllJobs) -> list[Finding]:
    """Return the findings, with what the files of the run say about kinds without a schema."""
    # Imported late: most objects have a schema.
    if run.entries is None:
        return suggest_own_definitions(run.findings, jobs.list_made(), jobs.entries)
    from jobgen.pipeline.lint_across import report_broken_definitions

    return report_broken_definitions(run.findings)


def _has_errors(findings: Sequence[Finding]) -> bool:
    """Return True if there are errors in findings about several jobs, besides those of rules about objects."""
    from jobgen.check.rules import all_rules

    rules = {rule.name for rule in all_rules()}
    return any(finding.severity is Severity.ERROR and finding.rule not in rules for finding in findings)


def _name_failed_policies(run: RunState) -> None:
    """Give each finding about a policy that could not be evaluated the location of the policy."""
    failed = [finding for finding in run.findings if is_failed_evaluation(finding)]
    if not failed:
        return
    from jobgen.pipeline.policies import locate_policies

    places = locate_policies(layout.read_own_policies(run.project.root))
    for number, finding in enumerate(run.findings):
        if is_failed_evaluation(finding) and finding.rule in places:
            related = (*finding.related, Related(places[finding.rule], f"policy `{finding.rule}`"))
            run.findings[number] = finding._replace(related=related)


def name_broken_kinds(findings: Sequence[Finding], project: ProjectConfig) -> list[Finding]:
    """Return the findings; those about a framework that a broken kind description declares refer to the description."""
    broken = {found.location.file for found in project.findings if found.severity is Severity.ERROR}
    if not broken or not any(map(_name_framework, findings)):
        return list(findings)
    declared: dict[str, Location] = {}
    for file in layout.read_kinds(project.root):
        for document in config.read_traced(file) if file.path in broken and not file.finding else ():
            names = document.data.get("frameworks") if isinstance(document.data, dict) else None
            for name in names if isinstance(names, dict) else ():
                declared.setdefault(str(name), location_of(name) or document.location)
    return [_refer_to_kind(finding, declared) for finding in findings]


def _name_framework(finding: Finding) -> str:
    """The framework of a job that no kind has; empty if the finding is about something else."""
    field, name = (*finding.values[:2], "", "")[:2]
    return name if finding.rule == "invalid-value" and field == "framework" else ""


def _refer_to_kind(finding: Finding, declared: dict[str, Location]) -> Finding:
    location = declared.get(_name_framework(finding))
    if location is None:
        return finding
    return finding._replace(related=(*finding.related, Related(location, BROKEN_KIND)))


_CRD = "CustomResourceDefinition"


def suggest_own_definitions(
    findings: Sequence[Finding], made: Iterable[Rendered], entries: Sequence[FileEntry]
) -> list[Finding]:
    """Return the findings; those about a kind that a file of the run defines say how to import that file."""
    if not any(finding.rule == "missing-schema" for finding in findings):
        return list(findings)
    paths = {one.location.file for one in made if one.identity.kind == _CRD}
    defined: dict[tuple[str, ...], str] = {}
    for entry in entries:
        if entry.path in paths and entry.content is None:
            for kind in _list_defined_kinds(entry):
                defined.setdefault(kind, entry.path)
    return [_name_file(finding, defined) for finding in findings]


def _list_defined_kinds(entry: FileEntry) -> Iterator[tuple[str, str]]:
    """The kinds that the CustomResourceDefinitions of a file define, each with its apiVersion."""
    for document in config.read_documents(read_file(entry), [], shared=True).documents:
        for data in split_list(document.data):
            if isinstance(data, dict) and data.get("kind") == _CRD:
                yield from _list_versions(data.get("spec"))


def _list_versions(spec: Any) -> Iterator[tuple[str, str]]:
    names = spec.get("names") if isinstance(spec, dict) else None
    versions = spec.get("versions") if isinstance(names, dict) else None
    for version in versions if isinstance(versions, list) else ():
        if isinstance(version, dict):
            yield str(spec["names"].get("kind")), f"{spec.get('group')}/{version.get('name')}"


def _name_file(finding: Finding, defined: dict[tuple[str, ...], str]) -> Finding:
    path = defined.get(quoted_values(finding.message)[:2], "") if finding.rule == "missing-schema" else ""
    if not path:
        return finding
    start = finding.message.partition(UNCHECKED)[0]
    return finding._replace(message=f"{start}{UNCHECKED}; run `jobgen schema import {path}`")

"""What a lint does with the jobs and objects that a run renders: it checks each, and all of them together."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from jobgen.check.checker import Checker
from jobgen.check.rules import all_rules
from jobgen.engine.store import Query, keep
from jobgen.k8s.kinds import BUILTIN_GROUPS, Release, parse_release
from jobgen.k8s.nodes import as_mapping
from jobgen.k8s.object_paths import is_app_wrapper
from jobgen.model.budget import RUN
from jobgen.model.data import Location, location_of, value_of
from jobgen.model.digest import blake2b
from jobgen.model.finding import (
    BROKEN_KIND,
    Finding,
    Identity,
    Problem,
    Related,
    Severity,
    add_failures,
)
from jobgen.model.mutated import Mutated
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import find_closest
from jobgen.pipeline.decoded_results import decode_result
from jobgen.pipeline.encoded_results import decode_findings, encode_findings, encode_result
from jobgen.pipeline.environment_checker import EnvironmentChecker, PolicySource
from jobgen.pipeline.finish import OF_RUN, Finishing, finish
from jobgen.pipeline.run_steps import limit_run, note_excesses
from jobgen.rendering import config
from jobgen.rendering.build import is_spec, split_list
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import EnvironmentRunner, Rendered
from jobgen.rendering.expand import find_overridden
from jobgen.rendering.file_result import FileResult, SameFiles
from jobgen.rendering.locate import locate
from jobgen.rendering.process_files import drop_repeated
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.result_inputs import COMPARED_DAY
from jobgen.rendering.run_values import FileResults, Finished, RunRequest
from jobgen.rendering.trace import Job, JobRef, Tracer
from jobgen.repo import layout
from jobgen.repo.files import FileEntry, read_file
from jobgen.reports.suppress import NO_SCHEMA_RULES
from jobgen.spec.overlay import Cluster

if TYPE_CHECKING:
    from jobgen.k8s.objects import Manifest
    from jobgen.pipeline.policies import PolicyFiles
    from jobgen.rendering.mended_jobs import MendedJob
    from jobgen.rendering.result_inputs import DescribeMembership

CHECKED: Query[FileResult] = Query("checked", encode_result, decode_result)
"""What a lint found in a file: by itself, or in one environment."""
_FACTS: Query[FileResult] = Query("facts", encode_result, decode_result)
"""What a lint found in a file whose objects it did not check."""
_SCOPE = "checked"
CHECKED_SCOPE = f"jobs {_SCOPE}"
"""The scope of what a lint found in files of jobs."""
ACROSS: Query[list[Finding]] = Query("across", encode_findings, decode_findings)
"""What a lint found in all files together."""
_CHECKED_WHOLE: Query[FileResult] = Query("checked with objects")
_LINKED_KINDS = frozenset(
    """ConfigMap HorizontalPodAutoscaler Kafka KafkaConnect LocalQueue PersistentVolumeClaim PodDisruptionBudget Queue
    RoleBinding ScaledObject Secret Service TrainJob""".split()
)
"""Kinds of which a file has an object if objects of the file are checked together."""


class LintTask(NamedTuple):
    """Checks objects, and all of them together."""

    keeps_objects: bool = False
    """True if the objects are kept. Results with objects are not kept on disk."""
    mutates: bool = True
    """False to check objects as they are rendered, whatever mutating policies change."""

    def start(self) -> LintChecks:
        """Start a lint."""
        return LintChecks(self)


class LintChecks:
    """The checks of one lint."""

    facts, is_lint = _FACTS, True

    def __init__(self, task: LintTask) -> None:
        self.across: Query[list[Finding]] | None = ACROSS
        self.describe_membership: DescribeMembership | None = self._describe_membership
        self._task = task
        self.query = _CHECKED_WHOLE if task.keeps_objects else CHECKED
        self.scope = f"{_SCOPE} with objects" if task.keeps_objects else _SCOPE
        self.environments: Mapping[str, EnvironmentChecker] = {}
        self.policy_files: PolicyFiles | None = None
        """The policies, unless the store says that nothing is wrong with them."""
        self._policies: PolicySource | None = None
        self._selecting: list[EnvironmentRunner] | None = None
        """All environments, if a job may belong to none of them."""

    def prepare(self, request: RunRequest) -> tuple[Sequence[Finding], tuple[str, ...]]:
        """Load the policies; return what is wrong with them, and their names.

        If the store says that they are valid, they are compiled only if an object has to be checked.
        """
        project = request.project
        files = tuple(layout.read_shipped_policies(project.layers)), tuple(layout.read_own_policies(project.layers))
        kinds = [kind for kind in project.kinds if kind.plural]
        resources = tuple((*str(value_of(kind.api_version)).split("/", 1), kind.plural) for kind in kinds)
        releases = _list_releases(project)

        @functools.cache
        def compile_all() -> PolicyFiles:
            # Imported late: a lint of stored results does not need CEL.
            from jobgen.pipeline.policies import compile_policy_files

            found = compile_policy_files(*files, resources, releases)
            return found if self._task.mutates else found._replace(policies=found.policies._replace(mutating=()))

        def name_valid() -> bytes | None:
            """Return the names of policies with which nothing is wrong, so that they need not be compiled."""
            found = compile_all()
            is_wrong = found.findings or found.unused or found.unmatched
            return None if is_wrong else "\n".join(found.files).encode()

        parts = [
            part for several in files for file in several for part in (file.path, repr(file.finding), file.content)
        ]
        findings = list(_find_wrong_defects(project))
        names = keep("policies", (*parts, repr(resources), repr(releases)), name_valid)
        self._policies = lambda: compile_all().policies
        if names is not None:
            return findings, tuple(names.decode().split("\n"))
        self.policy_files = compile_all()
        findings += (*self.policy_files.findings, *self.policy_files.unused)
        return findings, tuple(self.policy_files.files)

    def select(self, request: RunRequest, runners: Sequence[EnvironmentRunner], *, is_all: bool) -> None:
        """Prepare to check the objects of the environments that can be rendered, of which these may be all."""
        files, project = request.files, request.project
        self.environments = {runner.name: EnvironmentChecker(runner, self._policies, files) for runner in runners}
        self._selecting = None
        for runner in runners if not files.are_loose else ():
            if any(each.overlay for each in runner.expander.environment.defaults):
                # Imported late: many repositories have no defaults.
                from jobgen.pipeline.idle_defaults import DefaultUses

                runner.expander.find_default_uses = DefaultUses(runner.expander.environment)
        if is_all and not files.are_loose:
            # A run may be limited to some environments, so all of them are looked at.
            names = {runner.name for runner in runners}
            others = [name for name in project.environments() if name not in names]
            every = [*runners, *(EnvironmentRunner(project, name) for name in others)]
            # What an overlay or a team with errors selects is not known.
            is_unknown = any(not runner.expander.environment.jobs or runner.is_broken for runner in every)
            self._selecting = every if project.teams.is_complete and not is_unknown else None

    def list_defects(self) -> set[str]:
        """The names of the known defects of the declared versions."""
        return {rule.name for environment in self.environments.values() for rule in environment.defects}

    def forget_shared(self) -> None:
        """Forget what other files define; they may have changed since the last run."""
        for environment in self.environments.values():
            environment.forget_shared()

    def _describe_membership(self, jobs: Callable[[], Sequence[Job]]) -> str:
        """Return a text that changes if environments do not select all jobs of a file, and then with what they do."""
        if self._selecting is None or all(map(self._is_selected, jobs())):
            return "selected"
        return repr([(runner.name, runner.expander.environment.jobs) for runner in self._selecting])

    def _is_selected(self, job: Job) -> bool:
        return self._selecting is None or any(runner.patches_for(job) is not None for runner in self._selecting)

    def check_job(self, request: RunRequest, tracer: Tracer, job: Job) -> Iterator[Finding]:
        """Report a job that no environment selects, or that no team owns."""
        if not self._is_selected(job):
            name = job.document.sweep or job.document.name
            advice = "so it is not rendered; change `jobs` of an overlay, or remove the job"
            problem = Problem("job-without-environment", Sentence("no environment selects `{}`, {}", name, advice))
            yield locate(problem, job.file.path, job.start())
            if not is_spec(job.document.data):
                # A raw manifest is checked by its schema at least.
                checker = Checker(request.project.layers, request.project.kinds, Cluster())
                from jobgen.pipeline.placed_findings import locate_placed

                obj = job.document.data
                yield from locate_placed(checker(obj), obj, tracer, job, "")
        teams, path = request.project.teams, job.file.path
        # If a team could not be read, this may follow from it.
        if not request.files.are_loose and teams.all and teams.is_complete and teams.find(path) is None:
            owners = {folder: team.name for team in teams.all for folder in team.folders}
            # A folder that is almost that of a team: one of them may be misspelled.
            close = find_closest(path.rpartition("/")[0], list(owners), 0.9)
            hint = f"; `{owners[close]}` owns `{close}`" if close else ""
            message = Sentence(
                "no team owns `{}`, so no limit of a team applies; add its folder to a team{}", path, hint
            )
            problem = Problem("job-without-team", message, category="team", evidence=(path,))
            yield locate(problem, path, job.start())

    def read(
        self, entry: FileEntry, project: ProjectConfig, part: FileResult, faulty: list[MendedJob]
    ) -> Iterator[Job]:
        """Read the jobs of a file, with comments, and with what is left of those that have errors."""
        return read_jobs([entry], project.kinds, part.findings, part.comments, part.skipped, faulty)

    def finish_job(
        self, runner: EnvironmentRunner, _: Tracer, job: Job, objects: list[Rendered]
    ) -> tuple[list[Rendered], list[Finding]]:
        """Return the objects of a job, and what its own fields replace."""
        is_replaced = is_spec(job.document.data) and {"labels", "annotations"} & job.document.data["metadata"].keys()
        return objects, _find_overridden(runner, job, objects[0].identity) if is_replaced else []

    def check_objects(
        self, request: RunRequest, env: str, tracer: Tracer, rendered: Sequence[tuple[Job, FileResult, Rendered]]
    ) -> list[Any]:
        """Add what is found in objects of an environment to their results.

        Returns what is kept of each object: its summary, if only its results are kept.
        """
        same = request.same
        if not same.pairs:
            return self._check_objects(request, env, tracer, rendered)
        is_same = [(job.file.path, env) in same.pairs for job, _, _ in rendered]
        others = [each for each, is_other in zip(rendered, is_same, strict=True) if not is_other]
        kept = iter(self._check_objects(request, env, tracer, others))
        if same.list_rules(env):
            wanted = [each for each, is_wanted in zip(rendered, is_same, strict=True) if is_wanted]
            environment, mutated = self._prepare(env, tracer, wanted)
            alike = [(checker, manifest, each) for (checker, manifest, _), each in zip(mutated, wanted, strict=True)]
            self._collect_facts(environment, alike, same)
        return [None if is_known else next(kept) for is_known in is_same]

    def _prepare(
        self, env: str, tracer: Tracer, made: Sequence[tuple[Job, FileResult, Rendered]]
    ) -> tuple[EnvironmentChecker, list[tuple[Checker, Manifest, Mutated]]]:
        """Return objects as the cluster changes them, each with its checker."""
        environment = self.environments[env]
        environment.tracer = tracer
        checkers = [environment.find_checker(job.file.path) for job, _, _ in made]
        mutated: list[Mutated] = []
        for checker, (job, part, rendered) in zip(checkers, made, strict=True):
            environment.reads = part.used.reads
            mutated.append(_mutate(checker, env, job, part, rendered))
        manifests = [checker.manifest(each.object) for checker, each in zip(checkers, mutated, strict=True)]
        return environment, list(zip(checkers, manifests, mutated, strict=True))

    def _check_objects(
        self, request: RunRequest, env: str, tracer: Tracer, made: Sequence[tuple[Job, FileResult, Rendered]]
    ) -> list[Any]:
        environment, mutated = self._prepare(env, tracer, made)
        for (checker, manifest, each), (job, part, rendered) in zip(mutated, made, strict=True):
            RUN.open(job.file.path, env)
            environment.reads = part.used.reads
            key = b""
            if job.built is not None and manifest.group in BUILTIN_GROUPS:
                # Several builds may share the object, and it depends on no other file.
                plain = json.dumps(job.built.data, sort_keys=True, default=str).encode()
                key = blake2b(plain, digest_size=16).digest()
            problems = checker.find_problems(manifest) if not key or key not in environment.clean else []
            if problems or each.failures:
                # Imported late: most objects have no problems.
                from jobgen.model.placed import place_problems
                from jobgen.pipeline.placed_findings import locate_placed

                problems = add_failures(place_problems(each.failures, each.object), problems)
                whole = checker.mutate_all(rendered.object).object if is_app_wrapper(each.object) else each.object
                where = tracer, job, env, rendered.companion, checker.mutate_all
                part.findings.extend(drop_repeated(job, part, locate_placed(problems, whole, *where)))
            is_excessive = note_excesses(env, job, part, rendered)
            if key and not (is_excessive or problems):
                environment.clean.add(key)
        if not _LINKED_KINDS.isdisjoint([rendered.identity.kind for _, _, rendered in made]):
            # Imported late: most files have no such objects.
            from jobgen.pipeline.lint_across import find_file_problems

            for _, several in groupby(made, key=lambda each: each[0].file.path):
                objects = list(several)
                pairs = [(job, rendered) for job, _, rendered in objects]
                for number, finding in find_file_problems(pairs, tracer, env, is_alone=request.files.are_loose):
                    objects[number][1].findings.append(finding)
        if not request.files.are_loose:
            checked = [(checker, manifest, each) for (checker, manifest, _), each in zip(mutated, made, strict=True)]
            self._collect_facts(environment, checked)
            return self._summarize(environment, checked)
        # Standalone files are not one environment, so rules over all its objects do not apply.
        return [self._keep(rendered.object) for _, _, rendered in made]

    def _collect_facts(
        self,
        environment: EnvironmentChecker,
        checked: Sequence[tuple[Checker, Manifest, tuple[Job, FileResult, Rendered]]],
        same: SameFiles | None = None,
    ) -> None:
        """Collect what rules about several jobs compare: all of them, or those that may find something else."""
        env = environment.runner.name
        dated, select = {rule.name for rule in all_rules() if rule.needs_project}, _select_rules(same, env)
        for checker, manifest, (job, part, rendered) in checked:
            RUN.open(job.file.path, env)
            environment.reads = part.used.reads
            where = JobRef(env, job.file.path, job.position, job.item, rendered.companion)
            problems: list[Problem] = []
            names = select(manifest)
            rows = [(rule, row._replace(job=where)) for rule, row in checker.collect_facts(manifest, problems, names)]
            part.rows.extend(rows)
            # Rules that receive the project compare its date.
            part.used.reads.update(COMPARED_DAY for rule, _ in rows if rule in dated)
            part.findings.extend(locate(problem, job.file.path, job.location) for problem in problems)

    def _keep(self, obj: Any) -> Any:
        """Return an object if objects are kept, or else nothing, to save memory."""
        return obj if self._task.keeps_objects else None

    def _summarize(
        self,
        environment: EnvironmentChecker,
        checked: Sequence[tuple[Checker, Manifest, tuple[Job, FileResult, Rendered]]],
    ) -> list[Any]:
        """Return what is kept of objects: a summary for comparisons, if their data is not."""
        if self._task.keeps_objects:
            return [rendered.object for _, _, (_, _, rendered) in checked]
        from jobgen.pipeline.object_summary import summarize_object

        kept: list[Any] = []
        for checker, manifest, (job, part, rendered) in checked:
            RUN.open(job.file.path, environment.runner.name)
            environment.reads = part.used.reads
            is_same = manifest.object is rendered.object
            summarized = manifest if is_same else checker.manifest(rendered.object)
            kept.append(summarize_object(checker, rendered.object, summarized))
        return kept

    def find_across(self, results: FileResults, *, is_complete: bool) -> Iterator[Finding]:
        """Report what only all jobs together show: conflicts, refusals of a cluster, and entries without effect."""
        from jobgen.pipeline.lint_across import find_across

        yield from find_across(results, self.environments, self.policy_files, is_complete=is_complete)

    def finish(self, results: FileResults, findings: list[Finding], shared: Sequence[Finding]) -> Finished:
        """Return findings with the severities that they have in this repository."""
        request, layers = results.request, results.layers
        rules = {rule.name for rule in all_rules()}
        # An error of a rule about objects does not prevent a render.
        is_wrong = any(found.severity is Severity.ERROR and found.rule not in rules for found in shared)
        rendered = layers.complete and not any(part.unrendered for part in results.parts) and not is_wrong
        if any(finding.rule in NO_SCHEMA_RULES for finding in findings):
            if not request.files.are_loose:
                _suggest_own_definitions(findings, results)
            else:
                from jobgen.pipeline.lint_across import report_broken_definitions

                findings = report_broken_definitions(findings)
        if request.project.findings:
            _name_broken_kinds(findings, request.project)
        findings, unchecked = limit_run(findings, [each for part in results.parts for each in part.excesses], layers)
        _name_failed_policies(findings, request.project)
        covers_all = layers.complete and set(layers.environments) >= set(request.project.environments())
        context = _make_context(results, covers_all=covers_all)
        findings = finish(findings, context, OF_RUN)
        return Finished(findings, context.hidden, rendered, unchecked)


def _select_rules(same: SameFiles | None, env: str) -> Callable[[Manifest], frozenset[str] | None]:
    """Return what tells the rules about several jobs that an object counts for; None for all, if it is checked."""
    if same is None:
        return lambda _: None
    rules, teams = same.list_rules(env), same.teams
    kinds = {rule.name: rule.across_teams for rule in all_rules() if rule.across_teams}
    others = rules.difference(kinds)

    def select(manifest: Manifest) -> frozenset[str]:
        if teams is None or (manifest.team is not None and manifest.team.team in teams):
            return rules
        return others.union(name for name in rules - others if manifest.kind_name in kinds[name])

    return select


def _find_overridden(runner: EnvironmentRunner, job: Job, identity: Identity) -> list[Finding]:
    """Return findings about labels and annotations of a job that its own fields replace."""
    kinds = (each for each in runner.project.kinds if each.describes(identity.api_version, identity.kind))
    kind = next(kinds, None)
    if kind is None or not any(find_overridden(job.document.data, kind)):
        return []
    problems = find_overridden(job.traced_document().data, kind)
    return [locate(each, job.file.path)._replace(object=identity, env=runner.name) for each in problems]


def _make_context(results: FileResults, *, covers_all: bool) -> Finishing:
    """Return what decides about the severities of a run's findings."""
    project = results.request.project
    if not (project.settings.get("exceptions") or project.date):
        # No entry of the settings expires.
        return Finishing(severities=project.severities)
    files = {(made.env, made.identity): made.location.file for made in results.list_objects()}

    def find_team(finding: Finding) -> str:
        # A finding in an overlay is about a job of a team.
        file = files.get((finding.env, finding.object)) if finding.object else None
        return project.teams.find_name(file or finding.location.file)

    context = Finishing(severities=project.severities, find_team=find_team)
    if not results.request.files.are_loose:
        from jobgen.pipeline.exceptions import find_wrong_exceptions

        context.report_exceptions = functools.partial(
            find_wrong_exceptions, results.layers.tracer, covers_all=covers_all
        )
    return context


def _mutate(checker: Checker, env: str, job: Job, part: FileResult, rendered: Rendered) -> Mutated:
    RUN.open(job.file.path, env)
    mutated = checker.mutate(rendered.object)
    note_excesses(env, job, part, rendered)
    return mutated


def _find_wrong_defects(project: ProjectConfig) -> tuple[Finding, ...]:
    """What is wrong with the defects that a repository adds."""
    files = tuple(layout.read_own_defects(project.layers))
    if not files:
        return ()
    # Imported late: most repositories add none.
    from jobgen.check.defects import read_own

    return read_own(files, project.kinds)[1]


def _name_failed_policies(findings: list[Finding], project: ProjectConfig) -> None:
    """Give each finding about a policy that could not be evaluated the location of the policy."""
    failed = [number for number, finding in enumerate(findings) if finding.cause == "not evaluated"]
    if not failed:
        return
    from jobgen.pipeline.policies import locate_policies

    places = locate_policies(layout.read_own_policies(project.layers))
    for number in failed:
        finding = findings[number]
        if finding.rule in places:
            related = (*finding.related, Related(places[finding.rule], f"policy `{finding.rule}`"))
            findings[number] = finding._replace(related=related)


def _name_broken_kinds(findings: list[Finding], project: ProjectConfig) -> None:
    """Let findings about a framework that a broken kind description declares refer to the description."""
    broken = {found.location.file for found in project.findings if found.severity is Severity.ERROR}
    unknown = {
        number: finding.values[1]
        for number, finding in enumerate(findings)
        if broken and finding.rule == "invalid-value" and finding.values[:1] == ("framework",) and finding.values[1:]
    }
    declared: dict[str, Location] = {}
    for file in layout.read_kinds(project.layers) if unknown else ():
        for document in config.read_traced(file) if file.path in broken and not file.finding else ():
            names = document.data.get("frameworks") if isinstance(document.data, dict) else None
            for name in names if isinstance(names, dict) else ():
                declared.setdefault(str(name), location_of(name) or document.location)
    for number, name in unknown.items():
        if name in declared:
            related = (*findings[number].related, Related(declared[name], BROKEN_KIND))
            findings[number] = findings[number]._replace(related=related)


_CRD = "CustomResourceDefinition"


def _suggest_own_definitions(findings: list[Finding], results: FileResults) -> None:
    """Let findings about a kind that a file of the run defines say how to import that file."""
    missing = [number for number, finding in enumerate(findings) if finding.rule == "missing-schema"]
    paths = {one.location.file for one in results.list_objects() if one.identity.kind == _CRD} if missing else set()
    defined: dict[tuple[str, ...], str] = {}
    for entry in results.request.files.entries if paths else ():
        if entry.path not in paths:
            continue
        documents = config.read_documents(read_file(entry), [], shared=True).documents
        for data in (data for document in documents for data in split_list(document.data)):
            spec = as_mapping(data.get("spec")) if isinstance(data, dict) and data.get("kind") == _CRD else {}
            names, versions = spec.get("names"), spec.get("versions")
            for version in versions if isinstance(versions, list) else ():
                if isinstance(names, dict) and isinstance(version, dict):
                    kind = str(names.get("kind")), f"{spec.get('group')}/{version.get('name')}"
                    defined.setdefault(kind, entry.path)
    for number in missing:
        path = defined.get(findings[number].values[:2])
        if path:
            message = f"{findings[number].without_advice}; run `jobgen schema import {path}`"
            findings[number] = findings[number]._replace(message=message)


def _list_releases(project: ProjectConfig) -> tuple[Release, ...]:
    """The releases of Kubernetes that the environments of a repository declare."""
    clusters = (project.environment(name, []).cluster for name in project.environments())
    return tuple(sorted({parse_release(each.kubernetes) for each in clusters if each.kubernetes}))

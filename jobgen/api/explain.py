"""Explain where the values of a job come from, or what a rule checks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from jobgen.api.errors import NotFoundError, UsageError, check_names
from jobgen.api.project import Project, ProjectPath, check_date, load, select_environments
from jobgen.check.rule_docs import all_docs, policy_example, rule_example
from jobgen.check.rule_names import canonical_rule_name, former_rule_names
from jobgen.k8s.secrets import find_secrets, redact_tree
from jobgen.model.data import Location, Node, Plain, untraced
from jobgen.model.finding import Finding, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.path import InvalidPathError, Step, format_dotted, parse_path
from jobgen.model.suggest import did_you_mean
from jobgen.pipeline.config import ProjectConfig
from jobgen.pipeline.environment import EnvironmentRunner
from jobgen.pipeline.provenance import ExplainedValue, NoSuchFieldError, explain_path
from jobgen.pipeline.read_jobs import read_jobs
from jobgen.pipeline.run import Run
from jobgen.pipeline.trace import Job, Traced, Tracer
from jobgen.render.build import identity_of, job_attributes
from jobgen.repo import layout
from jobgen.report.summary import pluralize

# A name that ends in the hash of a run.
_RUN_NAME = lazy_pattern(r"(.+)-[0-9a-f]{8}\Z")
_MAX_LISTED = 5


class ValueSource(NamedTuple):
    """A layer that sets a value."""

    value: Plain
    layer: str
    """For example `job`, `patch of prod` or `kind PyTorchJob`."""
    location: Location | None
    """None if the value is not written in a file."""


class ExplainedField(NamedTuple):
    """A field of a rendered object, with every layer that sets it."""

    environment: str
    field: str
    """A dotted path into the object."""
    value: Plain
    sources: tuple[ValueSource, ...]
    """The layers that set it; the first one wins."""


class RuleExplanation(NamedTuple):
    """The documentation of a rule or a policy."""

    name: str
    category: str
    severity: Severity
    summary: str
    text: str
    bad: str
    """An example with a finding; empty if there is none."""
    good: str
    """The example without the finding; empty if there is none."""
    former_names: tuple[str, ...]
    """Names of earlier versions, which still work in settings and suppressions."""


class Explanation(NamedTuple):
    """The fields of a job, or a rule."""

    fields: tuple[ExplainedField, ...]
    """The fields in each environment; empty for a rule, and if there are errors."""
    rule: RuleExplanation | None = None
    findings: tuple[Finding, ...] = ()
    """Findings about the job; errors prevent the explanation."""
    environments: tuple[str, ...] = ()
    """The environments that have the job."""

    @property
    def failed(self) -> bool:
        """Whether errors prevent the explanation."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)


def explain(
    path: ProjectPath, name: str, field: str = "", *, environments: Sequence[str] = (), today: str = ""
) -> Explanation:
    """Explain the fields of a job, or a rule. A job takes precedence over a rule of the same name.

    Args:
        path: A project, or a folder in one; rules can be explained in any folder.
        name: The name of a job, of a run, of a rule or of a policy.
        field: A dotted path or a JSON pointer into the rendered object; by default all fields.
        environments: Names of environments; by default those of the project.
        today: The date by which jobs expire, as `YYYY-MM-DD`; by default that of the commit.

    Raises:
        UsageError: An argument or `jobgen.yaml` is wrong.
        NotFoundError: There is no such job, rule or field.

    """
    check_names("environments", environments)
    check_date(today)
    project = _find_project(path, field, today)
    root = project.root if project else None
    if project and (canonical_rule_name(name) not in all_docs(root) or _is_job(project, name)):
        return _explain_job(project, name, field, environments)
    if field:
        raise UsageError(f"`{name}` is a rule, and a rule has no field `{field}`")
    return Explanation((), _explain_rule(root, name))


def _find_project(path: ProjectPath, field: str, today: str) -> Project | None:
    if isinstance(path, Project):
        return path
    folder = Path(path)
    outside = not field and folder.is_dir() and layout.find_root(folder.resolve()) is None
    return None if outside else load(folder, today=today)


def _is_job(project: Project, name: str) -> bool:
    jobs = read_jobs(layout.find_jobs(project.root), project.config.frameworks, [])
    return any(name in (job.document.name, job.document.sweep) for job in jobs)


def _explain_rule(root: Path | None, name: str) -> RuleExplanation:
    docs = all_docs(root)
    current = canonical_rule_name(name)
    if current not in docs:
        hint = did_you_mean(name, list(docs)) or ", and this is not a jobs repository"
        raise NotFoundError(f"there is no rule `{name}`{hint}")
    doc = docs[current]
    bad, good = rule_example(current) or policy_example(root, current) or ("", "")
    former = tuple(former_rule_names(current))
    return RuleExplanation(doc.name, doc.category, doc.severity, doc.summary, doc.text, bad, good, former)


def _explain_job(project: Project, name: str, field: str, environments: Sequence[str]) -> Explanation:
    selected = select_environments(project.config, environments)
    try:
        path = parse_path(field)
    except InvalidPathError as error:
        raise UsageError(str(error)) from error
    run = Run(project.config, selected)
    tracer = Tracer(project.config)
    run.findings += _find_layer_errors(project.config, selected, tracer)
    if run.failed:
        return Explanation((), findings=tuple(run.findings))
    traces = _trace_job(run, tracer, name)
    if not traces:
        _check_known(run, name)
    if not traces or any(traced.problems for _, traced in traces):
        return Explanation((), findings=tuple(run.findings))
    if all(traced.object is None for _, traced in traces):
        raise NotFoundError("; ".join(_explain_inactive(run, name)) or f"`{name}` is not rendered", run.findings)
    fields, missing = _explain_fields(traces, path)
    if missing and not fields:
        hint = did_you_mean(missing.step, missing.known)
        raise NotFoundError(f"the rendered object has no `{field}`{hint}", run.findings)
    return Explanation(tuple(fields), None, tuple(run.findings), tuple(env for env, _ in traces))


def _explain_inactive(run: Run, name: str) -> Iterator[str]:
    """Explain why a job is not rendered: it is paused, done or expired."""
    runners = [EnvironmentRunner(run.project, env) for env in run.environments]
    jobs = read_jobs(layout.find_jobs(run.project.root), run.project.frameworks, [])
    found = [runner.explain_inactive(job) for job in jobs if job.document.name == name for runner in runners]
    yield from dict.fromkeys(f"`{name}` {reason}" for reason in found if reason)


def _find_layer_errors(project: ProjectConfig, environments: Sequence[str], tracer: Tracer) -> list[Finding]:
    """Return findings about overlays and kinds: if one is missing, explanations would be wrong."""
    findings = tracer.traced_project().findings if project.findings else ()
    composed = (EnvironmentRunner(project, env).overlay_findings(tracer) for env in environments)
    return [*findings, *(finding for found in composed for finding in found)]


def _trace_job(run: Run, tracer: Tracer, name: str) -> list[tuple[str, Traced]]:
    """Render a job with locations in each of its environments; its problems become findings of the run."""
    every = list(read_jobs(layout.find_jobs(run.project.root), run.project.frameworks, run.findings))
    run.names.update(job.document.name for job in every)
    jobs = [job for job in every if job.document.name == name] or _find_run(every, run.environments, tracer, name)
    if jobs:
        # Findings in other files do not matter here.
        files = {job.file.path for job in jobs}
        run.findings[:] = [finding for finding in run.findings if finding.location.file in files]
    traces: list[tuple[str, Traced]] = []
    for job in jobs:
        for env in run.environments:
            expander = tracer.expander(env)
            if expander.environment.matches(job_attributes(job.document, expander)):
                traces.append((env, tracer.trace(job, env)))
                run.findings += tracer.findings(job, env)
    return traces


def _find_run(every: Sequence[Job], environments: Sequence[str], tracer: Tracer, name: str) -> list[Job]:
    """Return the job of a run, by the name that its object has in the cluster."""
    match = _RUN_NAME.match(name)
    candidates = [job for job in every if match and job.document.name.startswith(match[1])]
    return [job for job in candidates if any(_has_name(tracer.trace(job, env), name) for env in environments)]


def _has_name(traced: Traced, name: str) -> bool:
    return isinstance(traced.object, dict) and identity_of(traced.object).name == name


def _check_known(run: Run, name: str) -> None:
    """Raise a NotFoundError for a job that is not rendered, unless a file with errors may contain it."""
    every = read_jobs(layout.find_jobs(run.project.root), run.project.frameworks, [])
    members = sorted(job.document.name for job in every if job.document.sweep == name)
    if members:
        listed = ", ".join(f"`{member}`" for member in members[:_MAX_LISTED]) + " …" * (len(members) > _MAX_LISTED)
        message = f"`{name}` is a sweep of {pluralize(len(members), 'job')}; explain one of them: {listed}"
    elif name in run.names:
        message = f"`{name}` is not in {' or '.join(run.environments)}"
    elif run.failed:
        return
    else:
        message = f"there is no job or rule `{name}`"
        message += did_you_mean(name, [*sorted(run.names), *all_docs(run.project.root)])
    raise NotFoundError(message, run.findings)


def _find_secrets(obj: Node, found: Sequence[ExplainedValue]) -> frozenset[str]:
    """The secrets of an object, and the values of lower layers that a secret overrides."""
    secrets = find_secrets(obj)
    overridden = (
        str(untraced(each.value))
        for explained in found
        if str(untraced(explained.assignments[0].value)) in secrets
        for each in explained.assignments
    )
    return secrets.union(filter(None, overridden))


def _explain_fields(
    traces: list[tuple[str, Traced]], path: tuple[Step, ...]
) -> tuple[list[ExplainedField], NoSuchFieldError | None]:
    """Explain a field in every environment that has it; and return the last failure to find it."""
    fields: list[ExplainedField] = []
    failure = None
    for env, traced in traces:
        if traced.object is None:
            continue
        try:
            found = list(explain_path(traced.object, path))
            secrets = _find_secrets(traced.object, found)
            for explained in found:
                sources = tuple(
                    ValueSource(redact_tree(untraced(each.value), secrets), each.layer or "jobgen", each.location)
                    for each in explained.assignments
                )
                fields.append(ExplainedField(env, format_dotted(explained.path), sources[0].value, sources))
        except NoSuchFieldError as error:
            failure = error
    return fields, failure

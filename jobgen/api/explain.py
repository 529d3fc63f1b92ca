"""Explain where the values of a job come from, or what a rule checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from jobgen.api.cluster_changes import (
    ClusterChange,
    explain_mutated,
    find_mutations,
    list_cluster_changes,
)
from jobgen.api.errors import NotFoundError, UsageError, check_names
from jobgen.api.project import Project, ProjectPath, check_date, load, select_environments
from jobgen.check.mutated import Mutated
from jobgen.check.rule_docs import all_docs, policy_example, rule_example
from jobgen.check.rule_names import canonical_rule_name, former_rule_names
from jobgen.k8s.secrets import find_secrets, redact_tree
from jobgen.model.data import Location, Node, Plain, untraced
from jobgen.model.finding import Finding, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import InvalidPathError, Step, format_dotted, parse_path
from jobgen.model.suggest import did_you_mean
from jobgen.pipeline.config import ProjectConfig
from jobgen.pipeline.environment import EnvironmentRunner
from jobgen.pipeline.mutations import ClusterMutations
from jobgen.pipeline.provenance import Assignment, NoSuchFieldError, explain_path
from jobgen.pipeline.read_jobs import read_jobs
from jobgen.pipeline.run import Run
from jobgen.pipeline.trace import Job, Traced, Tracer
from jobgen.render.build import identity_of, is_spec, job_attributes
from jobgen.repo import layout
from jobgen.repo.root import find_root
from jobgen.report.summary import pluralize
from jobgen.spec.normalize import FIELDS

# A name that ends in the hash of a run.
_RUN_NAME = lazy_pattern(r"(.+)-[0-9a-f]{8}\Z")
_MAX_LISTED = 5
# A path that starts with one of these leads into the object, any other one into the spec of the job.
_OBJECT_FIELDS = frozenset(("apiVersion", "kind", "metadata", "spec"))

_NOT_MUTATED = Mutated(None)


class ValueSource(NamedTuple):
    """A layer that sets a value."""

    value: Plain
    layer: str
    """For example `job`, `patch of prod` or `kind PyTorchJob`."""
    location: Location | None
    """None if the value is not written in a file."""
    removed: bool = False
    """Whether the layer removes the value, as a mutating policy may."""


class RenderedValue(NamedTuple):
    """A field of the rendered object that comes from a field of the job spec."""

    field: str
    """A dotted path into the object."""
    value: Plain


class ExplainedField(NamedTuple):
    """A field of a rendered object or of a job spec, with every layer that sets it."""

    environment: str
    field: str
    """A dotted path into the object, or into the spec of the job."""
    value: Plain
    sources: tuple[ValueSource, ...]
    """The layers that set it; the first one wins."""
    rendered: tuple[RenderedValue, ...] | None = None
    """For a field of the job spec: the fields of the object that come from it. None for a field of the object."""
    mutated: tuple[tuple[str, ValueSource], ...] = ()
    """For a field of the job spec: the fields in `rendered` that mutating policies set in the cluster."""


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
    changes: tuple[ClusterChange, ...] = ()
    """What mutating policies change in the cluster, in their order; all of the object, whatever field is explained."""

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
        field: A dotted path or a JSON pointer into the rendered object, or into the spec of the job, such as `image` or
            `roles.worker.replicas`; by default all fields of the object. A path that starts with `apiVersion`, `kind`,
            `metadata` or `spec` is one of the object.
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
    return Explanation((), explain_rule(root, name))


def list_fields(path: ProjectPath, name: str, environments: Sequence[str] = ()) -> list[str]:
    """List the fields of a job that can be explained: those of its spec, then those of its object."""
    from jobgen.pipeline.marked_spec import build_marked
    from jobgen.pipeline.spec_provenance import list_spec_paths

    check_names("environments", environments)
    project = path if isinstance(path, Project) else load(path)
    tracer = Tracer(project.config)
    traces = _trace_job(Run(project.config, select_environments(project.config, environments)), tracer, name)
    specs = [trace for trace in traces if is_spec(trace.job.document.data) and not trace.traced.problems]
    marked = filter(None, (build_marked(trace.job, trace.env, tracer) for trace in specs))
    found = [
        *(steps for spec in marked for steps in list_spec_paths(spec)),
        *(leaf.path for trace in traces for leaf in explain_path(trace.traced.object or {}, ())),
    ]
    return [format_dotted(steps) for steps in dict.fromkeys(found) if steps]


def _find_project(path: ProjectPath, field: str, today: str) -> Project | None:
    if isinstance(path, Project):
        return path
    folder = Path(path)
    outside = not field and folder.is_dir() and find_root(folder.resolve()) is None
    return None if outside else load(folder, today=today)


def _is_job(project: Project, name: str) -> bool:
    jobs = read_jobs(layout.find_jobs(project.root), project.config.frameworks, [])
    return any(name in (job.document.name, job.document.sweep) for job in jobs)


def explain_rule(root: Path | None, name: str) -> RuleExplanation:
    """Explain a rule or a policy.

    Raises:
        NotFoundError: There is no such rule.

    """
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
    if not traces or any(trace.traced.problems for trace in traces):
        return Explanation((), findings=tuple(run.findings))
    if all(trace.traced.object is None for trace in traces):
        raise NotFoundError("; ".join(_explain_inactive(run, name)) or f"`{name}` is not rendered", run.findings)
    mutations = ClusterMutations(project.config)
    traces = [_mutate(mutations, trace) for trace in traces]
    fields = _explain_fields(traces, path, tracer)
    if path and not fields:
        last = [trace for trace in traces if trace.traced.object is not None][-1]
        raise NotFoundError(_explain_missing(last, path, field, tracer), run.findings)
    changes = [
        change
        for trace in traces
        if trace.traced.object is not None
        for change in list_cluster_changes(trace.env, trace.mutated)
    ]
    environments = tuple(trace.env for trace in traces)
    return Explanation(tuple(fields), None, tuple(run.findings), environments, tuple(changes))


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


class _Trace(NamedTuple):
    """A job in one of its environments."""

    env: str
    job: Job
    traced: Traced
    mutated: Mutated = _NOT_MUTATED
    """The object with what mutating policies change in the cluster; None if that is not asked for."""


def _mutate(mutations: ClusterMutations, trace: _Trace) -> _Trace:
    obj = trace.traced.object
    return trace if obj is None else trace._replace(mutated=mutations.mutate(trace.env, obj))


def _trace_job(run: Run, tracer: Tracer, name: str) -> list[_Trace]:
    """Render a job with locations in each of its environments; its problems become findings of the run."""
    every = list(read_jobs(layout.find_jobs(run.project.root), run.project.frameworks, run.findings))
    run.names.update(job.document.name for job in every)
    jobs = [job for job in every if job.document.name == name] or _find_run(every, run.environments, tracer, name)
    if jobs:
        # Findings in other files do not matter here.
        files = {job.file.path for job in jobs}
        run.findings[:] = [finding for finding in run.findings if finding.location.file in files]
    traces: list[_Trace] = []
    for job in jobs:
        for env in run.environments:
            expander = tracer.expander(env)
            if expander.environment.matches(job_attributes(job.document, expander)):
                traces.append(_Trace(env, job, tracer.trace(job, env)))
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


def _find_secrets(objects: Sequence[Node], found: Iterable[Sequence[Assignment]]) -> frozenset[str]:
    """The secrets of some objects, and those in values of lower layers that a value with a secret overrides."""
    secrets = frozenset(secret for obj in objects for secret in find_secrets(obj))
    overridden: set[str] = set()
    for assignments in found:
        values = [untraced(each.value) for each in assignments]
        if str(values[0]) in secrets:
            overridden.update(map(str, values))
        elif any(secret in str(values[0]) for secret in secrets):
            overridden.update(secret for value in values for secret in find_secrets(value))
    return secrets.union(filter(None, overridden))


def _list_sources(assignments: Iterable[Assignment], secrets: frozenset[str]) -> tuple[ValueSource, ...]:
    return tuple(
        ValueSource(redact_tree(untraced(each.value), secrets), each.layer or "jobgen", each.location, each.is_removed)
        for each in assignments
    )


def explain_for_job(
    tracer: Tracer, job: Job, environments: Iterable[str], path: tuple[Step, ...]
) -> list[ExplainedField]:
    """Explain a field of a job in those of some environments that have the job and the field."""
    expanders = {env: tracer.expander(env) for env in environments}
    own = [env for env, each in expanders.items() if each.environment.matches(job_attributes(job.document, each))]
    mutations = ClusterMutations(tracer.project)
    traced = (_Trace(env, job, made) for env, made in zip(own, tracer.trace_each(job, own), strict=True))
    traces = (_mutate(mutations, trace) for trace in traced)
    return _explain_fields((trace for trace in traces if not trace.traced.problems), path, tracer)


def _explain_fields(traces: Iterable[_Trace], path: tuple[Step, ...], tracer: Tracer) -> list[ExplainedField]:
    """Explain a field in every environment that has it."""
    fields: list[ExplainedField] = []
    for trace in traces:
        if trace.traced.object is None:
            continue
        try:
            if _is_spec_path(trace, path):
                fields += _explain_spec_field(trace, path, tracer)
            else:
                fields += _explain_object_field(trace.env, trace.traced.object, path, trace.mutated)
        except NoSuchFieldError:
            continue
    return fields


def _is_spec_path(trace: _Trace, path: tuple[Step, ...]) -> bool:
    """Whether a path leads into the spec of a job rather than into its object."""
    return bool(path) and path[0] not in _OBJECT_FIELDS and is_spec(trace.job.document.data)


def _explain_object_field(
    env: str, obj: Mapping[str, Node], path: tuple[Step, ...], mutated: Mutated = _NOT_MUTATED
) -> Iterator[ExplainedField]:
    is_mutated = bool(mutated.changes)
    found = explain_mutated(obj, mutated, path) if is_mutated else list(explain_path(obj, path))
    objects = [obj, mutated.object] if is_mutated else [obj]
    secrets = _find_secrets(objects, [explained.assignments for explained in found])
    for explained in found:
        sources = _list_sources(explained.assignments, secrets)
        yield ExplainedField(env, format_dotted(explained.path), sources[0].value, sources)


def _explain_spec_field(trace: _Trace, path: tuple[Step, ...], tracer: Tracer) -> Iterator[ExplainedField]:
    # Imported late: paths of the object do not need it.
    from jobgen.pipeline.marked_spec import build_marked
    from jobgen.pipeline.spec_provenance import explain_spec_path

    marked = build_marked(trace.job, trace.env, tracer)
    if marked is None:
        return
    try:
        found = list(explain_spec_path(marked, path))
    except NoSuchFieldError as missing:
        # A patch may add a field to the object that no kind has.
        if path[0] not in marked.object:
            raise missing from None
        yield from _explain_object_field(trace.env, marked.object, path)
        return
    # A ConfigMap whose content is in the job may hold secrets.
    objects = [marked.object, *trace.traced.objects, trace.mutated.object]
    secrets = _find_secrets(objects, [explained.assignments for explained in found])
    for explained in found:
        sources = _list_sources(explained.assignments, secrets)
        rendered = tuple(
            RenderedValue(format_dotted(place), redact_tree(untraced(node), secrets))
            for place, node in explained.rendered
        )
        places = [place for place, _ in explained.rendered]
        mutated = tuple(
            (format_dotted(place), _list_sources([assignment], secrets)[0])
            for place, assignment in find_mutations(trace.traced.object or {}, trace.mutated, places)
        )
        yield ExplainedField(trace.env, format_dotted(explained.path), sources[0].value, sources, rendered, mutated)


def _explain_missing(trace: _Trace, path: tuple[Step, ...], field: str, tracer: Tracer) -> str:
    """The message for a field that is missing, with the field of the job or of the object that is probably meant."""
    obj = trace.traced.object or {}
    failures = [_find_failure(_explain_object_field(trace.env, obj, path))]
    if _is_spec_path(trace, path):
        if path[0] == "matrix" and trace.job.document.sweep:
            return "a job of a sweep has no `matrix`, only the values; explain the fields that use them"
        is_field = path[0] in {*FIELDS, *(framework.name for framework in tracer.project.frameworks)}
        message = f"no layer sets `{field}`" if is_field else f"neither the job nor its object has `{field}`"
        failures.insert(0, _find_failure(_explain_spec_field(trace, path, tracer)))
        meant = ("spec", *path)
        is_meant = not _find_failure(_explain_object_field(trace.env, obj, meant))
    else:
        message, meant = f"the rendered object has no `{field}`", path[1:]
        is_meant = path[0] == "spec" and _is_spec_path(trace, meant)
        is_meant = is_meant and not _find_failure(_explain_spec_field(trace, meant, tracer))
    if is_meant:
        return f"{message}; did you mean `{format_dotted(meant)}`?"
    step = next((failure.step for failure in failures if failure), "")
    known = [name for failure in failures if failure for name in failure.known if name != step]
    return message + did_you_mean(step, known)


def _find_failure(explained: Iterator[ExplainedField]) -> NoSuchFieldError | None:
    """The reason why a field cannot be explained."""
    try:
        next(explained, None)
    except NoSuchFieldError as error:
        return error
    return None

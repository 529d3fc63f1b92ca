"""Explain where the values of a job come from: the traced form of its object, in each of its environments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from jobgen.k8s.redaction import is_secret_at, redact_at, redact_path
from jobgen.k8s.secrets import find_secrets
from jobgen.model.data import Location, Node, Plain, untraced
from jobgen.model.finding import Finding
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.mutated import POLICY_LAYER, Mutated, list_changed_paths
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import Step, format_dotted
from jobgen.model.suggest import find_closest
from jobgen.rendering.build import identity_of, is_spec, job_attributes
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import EnvironmentRunner
from jobgen.rendering.provenance import Assignment, ExplainedValue, NoSuchFieldError, explain_path
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.redact_results import redact_shared
from jobgen.rendering.trace import Job, Traced, Tracer
from jobgen.repo import layout
from jobgen.spec.normalize import FIELDS


class ClusterChange(NamedTuple):
    """A field that a mutating policy changes; the values are not shown, because they may be secrets."""

    environment: str
    policy: str
    field: str
    """A JSON pointer; empty if the policy fails."""
    action: str
    """`adds`, `changes`, `removes`, or `fails: ` with the reason."""
    location: Location | None = None
    """Where the mutation is written."""


def list_cluster_changes(env: str, mutated: Mutated) -> Iterator[ClusterChange]:
    """The changes of an object in the order in which the policies make them."""
    for change in mutated.changes:
        policy, location = change.source
        if change.error:
            yield ClusterChange(env, policy, "", f"fails: {change.error}", location)
        for pointer, action in list_changed_paths(change.before, change.after):
            yield ClusterChange(env, policy, pointer, action, location)


def explain_mutated(obj: Mapping[str, Node], mutated: Mutated, path: tuple[Step, ...]) -> list[ExplainedValue]:
    """Explain every leaf at or below a path: a mutation is the last layer that sets, changes or removes it.

    Raises:
        NoSuchFieldError: Neither the rendered object nor the one in the cluster has the field.

    """
    try:
        found, missing = list(explain_path(mutated.object, path)), None
    except NoSuchFieldError as error:
        found, missing = [], error
    if not mutated.removals and missing is None:
        return found
    try:
        rendered = {each.path for each in explain_path(obj, path)} - {each.path for each in found}
    except NoSuchFieldError:
        rendered = set()
    for removal in mutated.removals if rendered else ():
        for leaf in explain_path(removal.node, ()):
            place = (*removal.path, *leaf.path)
            if place in rendered:
                rendered.remove(place)
                removed = Assignment(None, removal.source.layer, removal.source.location, is_removed=True)
                found.append(ExplainedValue(place, (removed, *leaf.assignments)))
    if missing is not None and not found:
        raise missing
    return found


def find_mutations(
    obj: Mapping[str, Node], mutated: Mutated, places: Iterable[tuple[Step, ...]]
) -> Iterator[tuple[tuple[Step, ...], Assignment]]:
    """The places of an object whose values mutations set or remove, each with the last mutation."""
    if not mutated.changes:
        return
    for place in places:
        try:
            found = explain_mutated(obj, mutated, place)
        except NoSuchFieldError:
            continue
        for each in found:
            if each.assignments[0].layer.startswith(POLICY_LAYER):
                yield each.path, each.assignments[0]


# A name that ends in the hash of a run.
_RUN_NAME = lazy_pattern(r"(.+)-[0-9a-f]{8}\Z")
# A path that starts with one of these leads into the object, any other one into the spec of the job.
_OBJECT_FIELDS = frozenset(("apiVersion", "kind", "metadata", "spec"))

_NOT_MUTATED = Mutated(None)

Mutate = Callable[[str, Mapping[str, Node]], Mutated]
"""Returns an object of an environment with what mutating policies change in its cluster."""


class ValueSource(NamedTuple):
    """A layer that sets a value."""

    value: Plain
    layer: str
    """For example `job`, `patch of prod` or `kind PyTorchJob`."""
    location: Location | None
    """None if the value is not written in a file."""
    removed: bool = False
    """True if the layer removes the value, as a mutating policy may."""


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


class TracedJob(NamedTuple):
    """A job in one of its environments."""

    env: str
    job: Job
    traced: Traced
    mutated: Mutated = _NOT_MUTATED
    """The object with what mutating policies change in the cluster; None if that is not asked for."""

    def has_spec_path(self, path: tuple[Step, ...]) -> bool:
        """Return True if a path leads into the spec of the job rather than into its object."""
        return bool(path) and path[0] not in _OBJECT_FIELDS and is_spec(self.job.document.data)

    def mutate(self, mutate: Mutate) -> TracedJob:
        """Return the job with what mutating policies change in its object, if it has one."""
        obj = self.traced.object
        return self if obj is None else self._replace(mutated=mutate(self.env, obj))


class FoundJob(NamedTuple):
    """A job that was looked for by its name, in each of its environments."""

    traces: Sequence[TracedJob]
    """Empty if there is no such job."""
    findings: Sequence[Finding]
    """What is wrong with the files of the job; if there is none, with all files and layers."""
    names: frozenset[str]
    """The names of all jobs."""


def find_job(
    project: ProjectConfig, environments: Sequence[str], tracer: Tracer, name: str, known: Sequence[Finding] = ()
) -> FoundJob:
    """Find a job, or the job of a run, and render it with locations in each of its environments.

    `known` is what is wrong with the layers.
    """
    findings = list(known)
    every = list(read_jobs(layout.find_jobs(project.root), project.kinds, findings))
    jobs = [job for job in every if job.document.name == name]
    if not jobs and (match := _RUN_NAME.match(name)):
        # The job of a run, by the name that its object has in the cluster.
        for job in (job for job in every if job.document.name.startswith(match[1])):
            objects = (tracer.trace(job, env).object for env in environments)
            if any(isinstance(obj, dict) and identity_of(obj).name == name for obj in objects):
                jobs.append(job)
    if jobs:
        # Findings in other files do not matter here.
        files = {job.file.path for job in jobs}
        findings = [finding for finding in findings if finding.location.file in files]
    traces: list[TracedJob] = []
    for job in jobs:
        for env in environments:
            expander = tracer.expander(env)
            if expander.environment.matches(job_attributes(job.document, expander)):
                traces.append(TracedJob(env, job, tracer.trace(job, env)))
                findings += tracer.findings(job, env)
    return FoundJob(traces, redact_shared(project, findings), frozenset(job.document.name for job in every))


def find_layer_errors(project: ProjectConfig, environments: Sequence[str], tracer: Tracer) -> list[Finding]:
    """Return findings about overlays and kinds: if one is missing, explanations would be wrong."""
    findings = tracer.traced_project().findings if project.findings else ()
    composed = (EnvironmentRunner(project, env).overlay_findings(tracer) for env in environments)
    return redact_shared(project, [*findings, *(finding for found in composed for finding in found)])


def explain_inactive(project: ProjectConfig, environments: Sequence[str], name: str) -> Iterator[str]:
    """Explain why a job is not rendered: it is paused, done or expired."""
    runners = [EnvironmentRunner(project, env) for env in environments]
    jobs = read_jobs(layout.find_jobs(project.root), project.kinds, [])
    found = [runner.explain_inactive(job) for job in jobs if job.document.name == name for runner in runners]
    yield from dict.fromkeys(f"`{name}` {reason}" for reason in found if reason)


def list_field_paths(traces: Sequence[TracedJob], tracer: Tracer) -> list[str]:
    """List the fields of a job that can be explained: those of its spec, then those of its object."""
    # Imported late: most explanations are about fields of the object.
    from jobgen.rendering.provenance import build_marked
    from jobgen.rendering.spec_provenance import list_spec_paths

    specs = [trace for trace in traces if is_spec(trace.job.document.data) and not trace.traced.problems]
    marked = filter(None, (build_marked(trace.job, trace.env, tracer) for trace in specs))
    found = [
        *(steps for spec in marked for steps in list_spec_paths(spec)),
        *(leaf.path for trace in traces for leaf in explain_path(trace.traced.object or {}, ())),
    ]
    return [format_dotted(steps) for steps in dict.fromkeys(found) if steps]


def explain_for_job(
    tracer: Tracer, job: Job, environments: Iterable[str], path: tuple[Step, ...], mutate: Mutate
) -> list[ExplainedField]:
    """Explain a field of a job in those of some environments that have the job and the field."""
    expanders = {env: tracer.expander(env) for env in environments}
    own = [env for env, each in expanders.items() if each.environment.matches(job_attributes(job.document, each))]
    traced = (TracedJob(env, job, made) for env, made in zip(own, tracer.trace_each(job, own), strict=True))
    traces = (trace.mutate(mutate) for trace in traced)
    return explain_fields((trace for trace in traces if not trace.traced.problems), path, tracer)


def explain_fields(traces: Iterable[TracedJob], path: tuple[Step, ...], tracer: Tracer) -> list[ExplainedField]:
    """Explain a field in every environment that has it."""
    fields: list[ExplainedField] = []
    for trace in traces:
        if trace.traced.object is None:
            continue
        try:
            if trace.has_spec_path(path):
                fields += _explain_spec_field(trace, path, tracer)
            else:
                fields += _explain_object_field(trace.env, trace.traced.object, path, trace.mutated)
        except NoSuchFieldError:
            continue
    return fields


def _explain_object_field(
    env: str, obj: Mapping[str, Node], path: tuple[Step, ...], mutated: Mutated = _NOT_MUTATED
) -> Iterator[ExplainedField]:
    is_mutated = bool(mutated.changes)
    found = explain_mutated(obj, mutated, path) if is_mutated else list(explain_path(obj, path))
    objects = [obj, mutated.object] if is_mutated else [obj]
    secrets = _find_secrets(objects, [explained.assignments for explained in found])
    for explained in found:
        sources = _list_sources(explained.assignments, obj, explained.path, secrets)
        shown = redact_path(obj, explained.path, secrets)
        yield ExplainedField(env, format_dotted(shown), sources[0].value, sources)


def _find_secrets(objects: Sequence[Node], found: Iterable[Sequence[Assignment]]) -> frozenset[str]:
    """The secrets of some objects, and those in values of lower layers that a value with a secret overrides."""
    secrets = frozenset(secret for obj in objects for secret in find_secrets(untraced(obj)))
    overridden: set[str] = set()
    for assignments in found:
        values = [untraced(each.value) for each in assignments]
        if str(values[0]) in secrets:
            overridden.update(map(str, values))
        elif any(secret in str(values[0]) for secret in secrets):
            overridden.update(secret for value in values for secret in find_secrets(value))
    return secrets.union(filter(None, overridden))


def _list_sources(
    assignments: Iterable[Assignment], obj: Node, path: Sequence[Step], secrets: frozenset[str]
) -> tuple[ValueSource, ...]:
    """Return the layers that set a value of an object, or of a job, the last first."""
    shown = ((each, redact_at(untraced(each.value), obj, path, secrets)) for each in assignments)
    return tuple(ValueSource(value, each.layer or "jobgen", each.location, each.is_removed) for each, value in shown)


def _explain_spec_field(trace: TracedJob, path: tuple[Step, ...], tracer: Tracer) -> Iterator[ExplainedField]:
    # Imported late: paths of the object do not need it.
    from jobgen.rendering.provenance import build_marked
    from jobgen.rendering.spec_provenance import explain_spec_path

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
        sources = _list_sources(explained.assignments, {}, explained.path, secrets)
        # The name of a secret may be known only where it is rendered.
        secret = next((place for place, _ in explained.rendered if is_secret_at(marked.object, place)), ())
        if secret:
            shown = (redact_at(each.value, marked.object, secret, secrets) for each in sources)
            sources = tuple(each._replace(value=value) for each, value in zip(sources, shown, strict=True))
        rendered = tuple(
            RenderedValue(
                format_dotted(redact_path(marked.object, place, secrets)),
                redact_at(untraced(node), marked.object, place, secrets),
            )
            for place, node in explained.rendered
        )
        places = [place for place, _ in explained.rendered]
        mutated = tuple(
            (format_dotted(place), _list_sources([assignment], trace.mutated.object, place, secrets)[0])
            for place, assignment in find_mutations(trace.traced.object or {}, trace.mutated, places)
        )
        field = format_dotted(redact_path({}, explained.path, secrets))
        yield ExplainedField(trace.env, field, sources[0].value, sources, rendered, mutated)


def explain_missing(trace: TracedJob, path: tuple[Step, ...], field: str, tracer: Tracer) -> str:
    """The message for a field that is missing, with the field of the job or of the object that is probably meant."""
    obj = trace.traced.object or {}
    failures = [_find_failure(_explain_object_field(trace.env, obj, path))]
    if trace.has_spec_path(path):
        if path[0] == "matrix" and trace.job.document.sweep:
            return "a job of a sweep has no `matrix`, only the values; explain the fields that use them"
        is_field = path[0] in {*FIELDS, *(framework.name for framework in tracer.project.frameworks)}
        message = f"no layer sets `{field}`" if is_field else f"neither the job nor its object has `{field}`"
        failures.insert(0, _find_failure(_explain_spec_field(trace, path, tracer)))
        places = [(top, *path) for top in ("spec", "metadata")]
        found = [each for each in places if not _find_failure(_explain_object_field(trace.env, obj, each))]
        meant, is_meant = (found or places)[0], bool(found)
    else:
        message, meant = f"the rendered object has no `{field}`", path[1:]
        is_meant = path[0] == "spec" and trace.has_spec_path(meant)
        is_meant = is_meant and not _find_failure(_explain_spec_field(trace, meant, tracer))
    if is_meant:
        return f"{message}; did you mean `{format_dotted(meant)}`?"
    step = next((failure.step for failure in failures if failure), "")
    known = [name for failure in failures if failure for name in failure.known if name != step]
    known += FIELDS if step == path[0] and trace.has_spec_path(path) else ()
    known += ("cpu", "memory", "gpu") if path[-2:-1] == ("resources",) else ()
    meant = tuple(find_closest(str(each), known) if each == step else each for each in path)
    if all(meant) and meant != path:
        return f"{message}; did you mean `{format_dotted(meant)}`?"
    return f"{message}; `jobgen explain {trace.job.document.name}` lists what has a value"


def _find_failure(explained: Iterator[ExplainedField]) -> NoSuchFieldError | None:
    """The reason why a field cannot be explained."""
    try:
        next(explained, None)
    except NoSuchFieldError as error:
        return error
    return None

"""Explain where the values of a job come from, or what a rule checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from jobgen.api.errors import NotFoundError, UsageError, check_date, check_names
from jobgen.api.project import Project, ProjectPath, load, select_environments
from jobgen.explanation.explain import (
    ClusterChange,
    ExplainedField,
    FoundJob,
    TracedJob,
    ValueSource,
    explain_fields,
    explain_inactive,
    explain_missing,
    find_job,
    find_layer_errors,
    list_cluster_changes,
    list_field_paths,
)
from jobgen.model.builtin_rules import canonical_rule_name, former_rule_names
from jobgen.model.data import untraced
from jobgen.model.features import find_part
from jobgen.model.finding import Finding, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.origins import Origins
from jobgen.model.path import InvalidPathError, parse_path
from jobgen.model.suggest import did_you_mean, list_alternatives, list_jobs, suggest_or
from jobgen.pipeline.policies import ClusterMutations
from jobgen.rendering.provenance import list_assignments
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.trace import Tracer
from jobgen.repo import layout
from jobgen.repo.known_rules import list_known_rules
from jobgen.repo.root import find_root
from jobgen.reports import name_rule_page
from jobgen.reports.entries import pluralize
from jobgen.reports.narrowing import CATEGORIES

_MAX_LISTED = 5
LAUNCH = "launch"
"""The name of a field that no job has: what it launches."""


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
    page: str = ""
    """The address of the same text; empty for a policy that does not come with jobgen."""
    incidents: tuple[str, ...] = ()
    """Public incidents that it finds, each with its source, versions and consequence."""
    translation: str = ""
    """The summary in the language that was asked for; empty for English, and without a translation."""


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
        """Return True if errors prevent the explanation."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)


def explain(
    path: ProjectPath,
    name: str,
    field: str = "",
    *,
    environments: Sequence[str] = (),
    today: str = "",
    language: str = "",
) -> Explanation:
    """Explain the fields of a job, or a rule. A job takes precedence over a rule of the same name.

    Args:
        path: A project, or a folder in one; rules can be explained in any folder.
        name: The name of a job, of a run, of a rule or of a policy.
        field: A dotted path or a JSON pointer into the rendered object, or into the spec of the job, such as `image` or
            `roles.worker.replicas`; by default all fields of the object. A path that starts with `apiVersion`, `kind`,
            `metadata` or `spec` is one of the object. `launch` is what the job launches: the command of each role as it
            runs, processes, parallel sizes and batch sizes.
        environments: Names of environments; by default those of the project.
        today: The date by which jobs expire, as `YYYY-MM-DD`; by default that of the commit.
        language: The language in which the summary of a rule is repeated: `zh` for Chinese.

    Raises:
        UsageError: An argument or `jobgen.yaml` is wrong.
        NotFoundError: There is no such job, rule or field.

    """
    check_names("environments", environments)
    check_date(today)
    project: Project | None = None
    if isinstance(path, Project):
        project = path
    elif field or not Path(path).is_dir() or find_root(Path(path).resolve()) is not None:
        project = load(path, today=today)
    if project:
        jobs = read_jobs(layout.find_jobs(project.root), project.config.kinds, [])
        is_rule = canonical_rule_name(name) in list_known_rules(project.config.layers)
        if not is_rule or any(name in (job.document.name, job.document.sweep) for job in jobs):
            return _explain_job(project, name, field, environments)
    if field:
        raise UsageError(f"`{name}` is a rule, and a rule has no field `{field}`; run `jobgen explain {name}`")
    return Explanation((), explain_rule(project.root if project else None, name, language))


def list_fields(path: ProjectPath, name: str, environments: Sequence[str] = ()) -> list[str]:
    """List the fields of a job that can be explained: those of its spec, then those of its object."""
    check_names("environments", environments)
    project = path if isinstance(path, Project) else load(path)
    tracer = Tracer(project.config)
    selected = select_environments(project.config, environments)
    return list_field_paths(find_job(project.config, selected, tracer, name).traces, tracer)


def explain_rule(root: Path | None, name: str, language: str = "") -> RuleExplanation:
    """Explain a rule or a policy, or raise a NotFoundError."""
    # Imported late: most explanations are about jobs.
    from jobgen.check.rule_docs import (
        all_docs,
        all_incidents,
        defect_example,
        policy_example,
        rule_example,
        translate_summary,
    )

    layers = layout.own_layers(root) if root else None
    docs = all_docs(layers)
    current = canonical_rule_name(name)
    if current not in docs:
        advice = ", and this is not a jobs repository; `jobgen rules` lists the rules"
        raise NotFoundError(f"there is no rule `{name}`{did_you_mean(name, list(docs)) or advice}")
    doc = docs[current]
    bad, good = rule_example(current) or policy_example(layers, current) or defect_example(layers, current) or ("", "")
    former, page = tuple(former_rule_names(current)), name_rule_page(current)
    known = all_incidents().get(current, ())
    incidents = tuple(f"{each.source} ({each.versions}): {each.consequence}" for each in known)
    translation = translate_summary(current, language)
    return RuleExplanation(
        doc.name, doc.category, doc.severity, doc.summary, doc.text, bad, good, former, page, incidents, translation
    )


def _explain_job(project: Project, name: str, field: str, environments: Sequence[str]) -> Explanation:
    selected = select_environments(project.config, environments)
    try:
        path = parse_path(field)
    except InvalidPathError as error:
        raise UsageError(str(error)) from error
    tracer = Tracer(project.config)
    broken = Explanation((), findings=tuple(find_layer_errors(project.config, selected, tracer)))
    if broken.failed:
        return broken
    found = find_job(project.config, selected, tracer, name, broken.findings)
    if not found.traces:
        message = _explain_unknown(project, found, selected, name)
        if message:
            raise NotFoundError(message, found.findings)
    if not found.traces or any(trace.traced.problems for trace in found.traces):
        return Explanation((), findings=tuple(found.findings))
    if all(trace.traced.object is None for trace in found.traces):
        reasons = "; ".join(explain_inactive(project.config, selected, name))
        raise NotFoundError(reasons or f"`{name}` is not rendered", found.findings)
    if field == LAUNCH and (describe := find_part("job.launch")) is not None:
        launched = tuple(each for trace in found.traces for each in _explain_launch(project, trace, describe))
        if not launched:
            raise NotFoundError(
                f"`{name}` starts no launcher, script or server that jobgen can read; name a field", found.findings
            )
        return Explanation(launched, None, tuple(found.findings), tuple(trace.env for trace in found.traces))
    mutations = ClusterMutations(project.config)
    traces = [trace.mutate(mutations.mutate) for trace in found.traces]
    fields = explain_fields(traces, path, tracer)
    rendered = [trace for trace in traces if trace.traced.object is not None]
    if path and not fields:
        raise NotFoundError(explain_missing(rendered[-1], path, field, tracer), found.findings)
    changes = [change for trace in rendered for change in list_cluster_changes(trace.env, trace.mutated)]
    return Explanation(tuple(fields), None, tuple(found.findings), tuple(trace.env for trace in traces), tuple(changes))


def _explain_launch(project: Project, trace: TracedJob, describe: Callable[..., Any]) -> Iterator[ExplainedField]:
    """Explain the command of each role as it runs, and its numbers, with the layers that set them."""
    # Imported late: most explanations are about fields.
    from jobgen.pipeline.environment_checker import EnvironmentChecker
    from jobgen.rendering.environment import EnvironmentRunner

    if trace.traced.object is None:
        return
    checker = EnvironmentChecker(EnvironmentRunner(project.config, trace.env)).find_checker(trace.job.file.path)
    origins = Origins([trace.traced.object])
    for launch in describe(checker.manifest(origins.objects[0]), origins.follow):
        title = f"{LAUNCH} of {', '.join(launch.roles)}" if launch.roles else LAUNCH
        for name, value, source, node in (("command", launch.command, "as it runs", None), *launch.rows):
            layers = list(list_assignments(node))
            # A number in a command is a part of the value that is written.
            is_whole = not layers or str(layers[0].value) == value
            shown = [(untraced(each.value), each) for each in layers] if is_whole else [(value, layers[0])]
            sources = [ValueSource(part, f"{each.layer}, {source}", each.location) for part, each in shown]
            given = tuple(sources) or (ValueSource(value, source, None),)
            yield ExplainedField(trace.env, f"{title}: {name}", given[0].value, given)


def _explain_unknown(project: Project, found: FoundJob, environments: Sequence[str], name: str) -> str:
    """Return why a job is not rendered; empty if a file with errors may contain it."""
    every = read_jobs(layout.find_jobs(project.root), project.config.kinds, [])
    members = sorted(job.document.name for job in every if job.document.sweep == name)
    if members:
        listed = ", ".join(f"`{member}`" for member in members[:_MAX_LISTED]) + " …" * (len(members) > _MAX_LISTED)
        return f"`{name}` is a sweep of {pluralize(len(members), 'job')}; explain one of them: {listed}"
    if name in found.names:
        return f"`{name}` is not in {list_alternatives(environments)}"
    if any(finding.severity is Severity.ERROR for finding in found.findings):
        return ""
    if name in CATEGORIES:
        return f"`{name}` is a category of rules; `jobgen rules {name}` lists them"
    jobs = sorted(found.names)
    known = [*jobs, *list_known_rules(project.config.layers)]
    hint = suggest_or(name, known, f"{list_jobs(jobs)}; `jobgen rules` lists the rules")
    return f"there is no job or rule `{name}`{hint}"

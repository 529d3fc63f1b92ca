"""Hover: what a field means, what its value is in every environment and who sets it, and what a name stands for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from jobgen.api.errors import NotFoundError
from jobgen.api.explain import explain_rule
from jobgen.features.editor import reach
from jobgen.features.editor.completion.manifests import describe_deprecation
from jobgen.features.editor.completion.names import JOB, TEAM
from jobgen.features.editor.context import (
    Context,
    find_framework_name,
    find_kind_name,
    find_overlay_name,
    find_rule_name,
)
from jobgen.features.editor.cursor import Part
from jobgen.features.editor.decisions import find_decision
from jobgen.features.editor.definition import list_indexed_jobs
from jobgen.features.editor.field_docs import describe_field
from jobgen.features.editor.index import LABEL
from jobgen.features.editor.markdown import block, code, escape, escape_text, link, table
from jobgen.features.editor.named import count_files, find_name, list_definitions
from jobgen.features.editor.references import list_reached
from jobgen.features.editor.tenancy import describe_pack, describe_team
from jobgen.features.editor.value_table import describe_values, list_distinct, list_reached_values
from jobgen.k8s.kueue import QUEUE_LABEL
from jobgen.model.data import Location, value_of
from jobgen.model.named_tuple import NamedTuple
from jobgen.report.summary import pluralize
from jobgen.spec.overlay import list_ancestors

_MAX_DECISIONS = 8
_MAX_JOBS = 5
_PATCHES = ("patches",)


class Hover(NamedTuple):
    """What an editor shows about a position."""

    markdown: str
    location: Location
    """The range that it is about."""


def find_hover(context: Context) -> Hover | None:
    """Return what is known about a position; None if there is nothing to show."""
    cursor = context.cursor
    if not cursor.text:
        return None
    with context.workspace.reading():
        page = next(_describe_rule(context), None)
        parts = [page] if page else [part for describe in _PARTS for part in describe(context)]
    return Hover("\n\n".join(parts), cursor.location) if parts else None


def _describe_rule(context: Context) -> Iterator[str]:
    """Yield the page of a rule."""
    name = find_rule_name(context)
    if not name:
        return
    try:
        rule = explain_rule(context.workspace.root if context.workspace.is_repository else None, name)
    except NotFoundError:
        return
    parts = [f"**{escape(rule.name)}**: {rule.severity} ({rule.category})", escape_text(rule.summary)]
    parts += (escape_text(" ".join(paragraph.split())) for paragraph in rule.text.split("\n\n"))
    if rule.bad:
        parts += ["Reported:", block("yaml", rule.bad)]
    if rule.good:
        parts += ["Not reported:", block("yaml", rule.good)]
    if rule.former_names:
        parts.append(f"Former names: {', '.join(map(code, rule.former_names))}")
    yield "\n\n".join(filter(None, parts))


def _describe_environment(context: Context) -> Iterator[str]:
    """Describe the overlay that a value names."""
    name, ready = find_overlay_name(context), context.ready
    if not name or ready is None or name not in ready.run.project.overlays:
        return
    project = ready.run.project
    environment = project.environment(name, [])
    cluster = environment.cluster
    below = [other for other in list_ancestors(name, project.overlays) if other != name]
    extends = f", extends {', '.join(map(code, below))}" if below else ""
    yield f"**overlay {code(name)}**{extends}"
    versions = [f"{escape(each)} {escape(str(version))}" for each, version in cluster.operators.items()]
    kubernetes = [f"Kubernetes {escape(cluster.kubernetes)}"] if cluster.kubernetes else []
    yield ", ".join([f"platform {code(cluster.platform)}", *kubernetes, *versions])
    names = reach.list_environments(project, list(ready.prepared.environments), name)
    jobs = reach.list_jobs_in(context.workspace.index, names)
    counts = [
        pluralize(len(jobs), "job"),
        f"{len(environment.patches)} patch{'' if len(environment.patches) == 1 else 'es'}",
    ]
    yield ", ".join(counts) + (f" in {', '.join(map(code, names))}" if names != [name] else "")


def _describe_framework(context: Context) -> Iterator[str]:
    """Describe what a framework is rendered as."""
    name, ready = find_framework_name(context), context.ready
    if not name or ready is None:
        return
    rows: dict[tuple[str, str, str], list[str]] = {}
    for runner in ready.prepared.runners:
        platforms = runner.expander.environment.cluster.list_platforms()
        kinds = [kind for kind in runner.expander.kinds if name in kind.frameworks and kind.platform in platforms]
        for kind in kinds[:1]:
            roles = ", ".join(map(code, kind.frameworks[name].roles or tuple(kind.roles)))
            rows.setdefault((code(kind.name), escape(kind.operator), roles), []).append(runner.name)
    if rows:
        cells = ((", ".join(map(escape, names)) or "all", *row) for row, names in rows.items())
        yield f"**framework {code(name)}**"
        yield table(("environment", "rendered as", "operator", "roles"), cells)


def _describe_kind(context: Context) -> Iterator[str]:
    """Describe the kind of objects that a value names."""
    name, ready = find_kind_name(context), context.ready
    if ready is None:
        return
    for kind in ready.run.project.kinds if name else ():
        if name in (kind.name, *kind.aliases):
            deprecated = describe_deprecation(kind, ready.clusters)
            facts = [f"operator {escape(kind.operator)}", *([f"**{escape(deprecated)}**"] if deprecated else [])]
            yield f"**{escape(kind.name)}** of {code(str(value_of(kind.api_version)))}: {', '.join(facts)}"


def _describe_name(context: Context) -> Iterator[str]:
    """Say where an object is defined, and how many files use its name."""
    name = find_name(context)
    if name is None or not context.workspace.index or name.kind == TEAM or name.kind.startswith(LABEL):
        return
    if name.kind == JOB:
        jobs = [*list_definitions(context, name)]
        yield f"Matches {pluralize(len(jobs), 'job')}"
        return
    places = [*dict.fromkeys(list_definitions(context, name))][:_MAX_JOBS]
    defined = ", ".join(link(context.workspace.root, place) for place in places)
    where = f"defined in {defined}" if defined else "not defined in this repository"
    count = count_files(context, name)
    uses = f"; named in {pluralize(count, 'file')}" if count else ""
    yield f"**{escape(name.kind)} {code(name.text)}**: {where}{uses}"


def _describe_decisions(context: Context) -> Iterator[str]:
    """Say what Kueue decides about the job whose name or queue is at the position."""
    path = context.cursor.path
    if path not in (("metadata", "name"), ("spec", "queue"), ("metadata", "labels", QUEUE_LABEL)):
        return
    rows: dict[tuple[str, str], dict[str, int]] = {}
    for job in list_indexed_jobs(context):
        for each in job.environments:
            found = find_decision(context.decisions, each.environment, each.objects)
            if found:
                counts = rows.setdefault((found.word, escape_text(found.reason)), {})
                counts[each.environment] = counts.get(each.environment, 0) + 1
    cells = [
        (", ".join(escape(env) + (f" ({count} jobs)" if count > 1 else "") for env, count in counts.items()), *row)
        for row, counts in rows.items()
    ]
    if cells:
        yield table(("environment", "Kueue", "why"), cells[:_MAX_DECISIONS])
    if len(cells) > _MAX_DECISIONS:
        yield f"and {len(cells) - _MAX_DECISIONS} more"


def _describe_reach(context: Context) -> Iterator[str]:
    """Say how many jobs a line of an overlay reaches, and what values they get."""
    is_field = context.cursor.part is not Part.COMMENT and len(context.cursor.path) > 1
    if not is_field or context.cursor.path[0] != "spec" or not reach.find_overlay(context.file):
        return
    if not context.workspace.index or context.cursor.path[1:2] == ("extends",) or context.cursor.path[1:] == _PATCHES:
        return
    jobs = list_reached(context)
    values = list_reached_values(context, jobs)
    if values:
        yield f"Reaches {pluralize(len(jobs), 'job')}"
        yield values
        return
    distinct = list_distinct(jobs)
    shown = [link(context.workspace.root, job.location, job.sweep or job.name) for job in distinct[:_MAX_JOBS]]
    more = f" and {len(distinct) - _MAX_JOBS} more" if len(distinct) > _MAX_JOBS else ""
    yield f"Reaches {pluralize(len(jobs), 'job')}" + (f": {', '.join(shown)}{more}" if jobs else "")


_PARTS: Sequence[Callable[[Context], Iterator[str]]] = (
    describe_field,
    _describe_environment,
    _describe_framework,
    _describe_kind,
    _describe_name,
    describe_team,
    describe_pack,
    describe_values,
    _describe_decisions,
    _describe_reach,
)

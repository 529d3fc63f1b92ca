"""Hover: what a field means, what its value is in every environment and who sets it, and what a name stands for."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

from jobgen.api.errors import NotFoundError
from jobgen.api.explain import explain_rule
from jobgen.explanation.explain import ExplainedField, ValueSource
from jobgen.features.editor import definition
from jobgen.features.editor.completion.candidates import find_forms, list_known_values, read_document
from jobgen.features.editor.completion.names import JOB, TEAM, Known
from jobgen.features.editor.completion.schemas import (
    Field,
    SchemaNode,
    describe_deprecation,
    describe_framework,
    describe_kind,
    list_fields,
    list_forms,
    list_types,
    list_values,
    walk_path,
)
from jobgen.features.editor.context import Context
from jobgen.features.editor.cursor import Part, Path, get_path, read_text
from jobgen.features.editor.definition import (
    find_name,
    list_definitions,
    list_files,
    list_indexed_jobs,
    list_reached,
    locate_team,
)
from jobgen.features.editor.index import LABEL, IndexedJob, find_decision
from jobgen.features.editor.values import (
    ExplainedValue,
    block,
    code,
    escape,
    escape_text,
    explain_indexed,
    explain_value,
    link,
    table,
    value_code,
)
from jobgen.k8s.kueue import QUEUE_LABEL
from jobgen.k8s.nodes import as_list, as_mapping
from jobgen.model.data import API_VERSION, Location, TracedScalar, text_of, value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import InvalidPathError, Step, parse_path
from jobgen.rendering import config
from jobgen.rendering.build import split_list
from jobgen.repo import layout
from jobgen.repo.layout import PACKS, SETTING
from jobgen.repo.root import SETTINGS
from jobgen.reports.entries import pluralize
from jobgen.spec.overlay import Cluster, list_ancestors
from jobgen.spec.sweeps import MATRIX
from jobgen.yamlio.write import to_inline_yaml

# The documentation of a field: its type, its default, its values and what it means, from the schema of its format.

_MAX_LISTED = 12
_MAX_EXAMPLE = 60
_TYPE_WORDS = {"array": "list", "object": "mapping"}


def describe_field(context: Context) -> Iterator[str]:
    """Yield the documentation of the field at a position: of a key, or of the key before a value."""
    cursor = context.cursor
    is_list = str(value_of(get_path(cursor.tree, ("kind",)))).endswith("List")
    if is_list and cursor.path[:1] == ("items",) and len(cursor.path) > 1 and isinstance(cursor.path[1], int):
        # The field is one of the object that it is in.
        cursor = cursor._replace(path=cursor.path[2:], tree=get_path(cursor.tree, cursor.path[:2]))
    path = list(cursor.path)
    while path and isinstance(path[-1], int):
        path.pop()
    if not path or cursor.part is Part.COMMENT or path[-1] == "<<":
        return
    # While the settings have errors, the kinds and clusters are those of the newest releases.
    root, ready = pathlib.Path(context.workspace.root), context.ready
    project = ready.project if ready else config.load_own(root)
    known = Known(root, project.kinds, project.frameworks, ready.clusters if ready else (Cluster(),))
    document = read_document(cursor, context.file)
    fields = list_fields(find_forms(path[:-1], document, known))
    field = next((each for each in fields if each.name == path[-1]), None)
    if field is not None:
        yield from _describe(field, tuple(path))
    elif forms := find_forms(path, document, known):
        # A key that users choose, such as the name of a variable.
        yield _join_facts(str(path[-1]), [_name_types(forms)])


def _describe(field: Field, path: Path) -> Iterator[str]:
    forms = (field.node, *list_forms(field.node))
    facts = [_name_types(forms), "required" if field.is_required else ""]
    default = next((form.schema["default"] for form in forms if "default" in form.schema), None)
    facts.append(f"default {code(to_inline_yaml(default))}" if default is not None else "")
    if any(form.schema.get("deprecated") is True for form in forms):
        facts.append("deprecated")
    yield _join_facts(field.name, facts)
    if field.description:
        yield escape_text(" ".join(field.description.split()))
    values: list[str] = []
    if field.types != ("boolean",):
        items = walk_path(forms, (0,))
        listed = (*list_values(forms), *list_known_values(path, forms))
        listed += (*list_values(items), *list_known_values((*path, 0), items))
        # Any field of a job may be `null`, which removes what a lower layer sets.
        values = [value.text for value in listed if value.text != "null"]
    if len(values) > 1:
        more = " …" if len(values) > _MAX_LISTED else ""
        yield f"One of {', '.join(map(code, values[:_MAX_LISTED]))}{more}"
    examples: Iterator[Any] = (each for form in forms for each in as_list(form.schema.get("examples")))
    texts = (to_inline_yaml({field.name: each})[1:-1] for each in examples)
    example = next((text for text in texts if len(text) <= _MAX_EXAMPLE), "")
    if example and not values:
        yield f"Example: {code(example)}"


def _name_types(forms: Sequence[SchemaNode]) -> str:
    """Return the types of forms: `string`, `list of string`."""
    names = []
    for name in list_types(forms):
        items = [item for form in forms for item in walk_path([form], (0,))] if name == "array" else []
        below = " or ".join(_TYPE_WORDS.get(each, each) for each in list_types(items))
        names.append(_TYPE_WORDS.get(name, name) + (f" of {below}" if below else ""))
    return " or ".join(names)


def _join_facts(name: str, facts: Sequence[str]) -> str:
    known = ", ".join(filter(None, facts))
    return f"**{code(name)}**" + (f": {known}" if known else "")


class Deprecation(NamedTuple):
    """A value that is deprecated."""

    location: Location
    hint: str
    """Since when, and what to use instead."""


def list_deprecated(text: str, file: str, known: Known) -> Iterator[Deprecation]:
    """Yield the deprecated values of a file: kinds and versions of manifests, and frameworks of jobs."""
    documents = [each.data for each in read_text(text, file).documents if isinstance(each.data, dict)]
    for fields in (as_mapping(each) for data in documents for each in split_list(data)):
        version, kind = fields.get("apiVersion"), fields.get("kind")
        if text_of(version) == API_VERSION:
            node = as_mapping(fields.get("spec")).get("framework")
            reason = describe_framework(text_of(node), known.kinds, known.clusters)
        else:
            reason = describe_kind(text_of(version), text_of(kind), known.kinds, known.clusters)
            # The version is at fault if another one of the kind is served, which the reason then names.
            node = version if "use `" in reason else kind
        if reason and isinstance(node, TracedScalar):
            yield Deprecation(node.location, reason)


_MAX_TEAMS = 8
_MAX_DECISIONS = 8
_MAX_JOBS = 5
_MAX_ROWS = 30
_MAX_ROWS_OF_FIELDS = 8
"""Rows of a mapping or list, whose fields are shown one by one, and of a field that differs in the jobs of a sweep."""
_MAX_VALUES = 3
"""Values of a field in one row, if the jobs of a sweep have several."""
_MAX_OVERRIDDEN = 3
_ITEM = lazy_pattern(r"(.*)\[(\d+)\]")


def _describe_team(context: Context) -> Iterator[str]:
    """Describe the team that a value names, or list those that a pattern matches."""
    name = find_name(context)
    if name is None or name.kind != TEAM or context.ready is None:
        return
    project = context.ready.layers.tracer.traced_project()
    found = [team for team in project.teams.all if fnmatchcase(team.name, name.text)]
    if [team.name for team in found] != [name.text]:
        shown = ", ".join(code(team.name) for team in found[:_MAX_TEAMS])
        more = f" and {len(found) - _MAX_TEAMS} more" if len(found) > _MAX_TEAMS else ""
        yield f"Matches {pluralize(len(found), 'team')}" + (f": {shown}{more}" if found else "")
        return
    [team] = found
    owners = f"; reviewed by {', '.join(map(code, team.owners))}" if team.owners else ""
    where = link(context.workspace.root, locate_team(team, project))
    yield f"**team {code(team.name)}**: owns {', '.join(map(code, team.folders))}{owners}; defined in {where}"
    rows: dict[str, list[str]] = {}
    for runner in context.ready.layers.runners:
        allowed = project.teams.find_scope(team, runner.name).allowed
        cell = "; ".join(f"{name} {', '.join(map(code, patterns))}" for name, patterns in allowed.items() if patterns)
        rows.setdefault(cell, []).append(runner.name)
    limits = [(", ".join(map(escape, names)) or "all", cell) for cell, names in rows.items() if cell]
    if limits:
        yield table(("environment", "may use"), limits)


def _describe_pack(context: Context) -> Iterator[str]:
    cursor = context.cursor
    if context.file != SETTINGS or cursor.path[:1] != (SETTING,) or cursor.part is not Part.VALUE:
        return
    for pack in PACKS:
        if pack.name == cursor.text:
            yield f"**pack {code(pack.name)}**: {escape(pack.description)}"
            yield f"Policies: {', '.join(map(code, layout.list_pack_policies(pack.name)))}"


def _describe_values(context: Context) -> Iterator[str]:
    """Show the value in every environment, and the layers that set it."""
    if context.ready is None:
        return
    found = explain_value(context.workspace, context.ready, context.file, context.cursor)
    if not found:
        return
    # Values of a manifest that are what its file says in all environments are left out: nothing is to be explained.
    changed = {field.field for field in found.fields if [source.layer for source in field.sources] != ["manifest"]}
    fields = _join_items([field for field in found.fields if field.field in changed])
    if not fields:
        if found.broken and {*found.broken} >= {*context.ready.project.environments()}:
            yield "The job cannot be rendered, so its values are not known; see its findings"
        return
    if found.job.document.sweep:
        first = f"the first {found.explained} of " if found.explained < found.jobs else ""
        yield f"In {first}the {pluralize(found.jobs, 'job')} of the sweep:"
    rows, has_fields, has_jobs = _list_rows(context, found, fields)
    names = ", ".join(map(escape, found.broken)) or "all"
    broken = [(names, *[""] * has_fields, "cannot be rendered", *[""] * has_jobs, "")] if found.broken else []
    head = ("environment", *["field"] * has_fields, "value", *["jobs"] * has_jobs, "set by")
    shown = _MAX_ROWS_OF_FIELDS if has_fields or has_jobs else _MAX_ROWS
    yield table(head, [*rows[:shown], *broken])
    if len(rows) > shown:
        yield f"and {len(rows) - shown} more"


def _list_rows(
    context: Context, found: ExplainedValue, fields: Sequence[ExplainedField]
) -> tuple[list[tuple[str, ...]], bool, bool]:
    """Return the rows about fields, and whether they have a column for the field, and one for the number of jobs."""
    names = list(dict.fromkeys(field.field for field in fields))
    has_fields = names != [found.field]
    # A mapping of a sweep has one row for all values of a field.
    is_joined = has_fields and bool(found.job.document.sweep)
    rows: dict[tuple[str, str, str], dict[str, list[str]]] = {}
    for field in sorted(fields, key=lambda field: names.index(field.field)):
        value = value_code(field.value)
        row = (code(_shorten(field.field, found.field)), "" if is_joined else value, _format_sources(context, field))
        rows.setdefault(row, {}).setdefault(field.environment, []).append(value)
    has_jobs = any(len(values) < found.explained for envs in rows.values() for values in envs.values())
    cells: dict[tuple[str, ...], list[str]] = {}
    for (name, value, sources), envs in rows.items():
        for env, values in envs.items():
            distinct = list(dict.fromkeys(values))
            more = f" and {len(distinct) - _MAX_VALUES} more" if len(distinct) > _MAX_VALUES else ""
            shown = value or ", ".join(distinct[:_MAX_VALUES]) + more
            jobs = [str(len(values))] if has_jobs else []
            cells.setdefault((*([name] if has_fields else []), shown, *jobs, sources), []).append(env)
    listed = [(", ".join(map(escape, envs)) or "all", *row) for row, envs in cells.items()]
    return listed, has_fields, has_jobs


def _shorten(field: str, start: str) -> str:
    """Return the path of a field from another one, if it is inside of it."""
    rest = field.removeprefix(start)
    if rest == field or rest[:1] not in (".", "["):
        return field
    return rest[1:] if rest[0] == "." else f"{start.rpartition('.')[2]}{rest}"


def _join_items(fields: Sequence[ExplainedField]) -> list[ExplainedField]:
    """Return fields with one field for all items of a list of scalars that one layer sets."""
    lists: list[list[ExplainedField]] = []
    for field in fields:
        match, last = _ITEM.fullmatch(field.field), lists[-1] if lists else []
        is_next = bool(last) and match and last[0].field == f"{match[1]}[0]" and len(last) == int(match[2])
        if is_next and last[0].environment == field.environment:
            last.append(field)
        else:
            lists.append([field])
    joined: list[ExplainedField] = []
    for items in lists:
        first = items[0]
        layers = {tuple(source.layer for source in item.sources) for item in items}
        if len(items) > 1 and len(layers) == 1 and len(first.sources) == 1:
            name = first.field.rpartition("[")[0]
            joined.append(first._replace(field=name, value=[item.value for item in items]))
        else:
            joined += items
    return joined


def list_reached_values(context: Context, jobs: Sequence[IndexedJob]) -> str:
    """Return a table of the values that jobs get where an overlay has a scalar; empty without values."""
    path = _find_reached_path(context)
    is_scalar = not isinstance(get_path(context.cursor.tree, context.cursor.path), (dict, list))
    if context.ready is None or not path or not is_scalar:
        return ""
    patch = definition.find_patch(context.ready, context.file, context.cursor)
    overlay, project = definition.find_overlay(context.file), context.ready.project
    names = [runner.name for runner in context.ready.layers.runners]
    own = definition.list_environments(project, names, overlay)
    rows: dict[tuple[str, ...], list[str]] = {}
    distinct = list_distinct(jobs)
    for job in distinct[:_MAX_JOBS]:
        known = (each for each in job.environments if patch is None or patch in each.patches)
        environments = [each.environment for each in known if each.environment in own]
        for field in explain_indexed(context.workspace, context.ready, job, environments, path):
            row = (link(context.workspace.root, job.location, job.sweep or job.name), value_code(field.value))
            rows.setdefault((*row, _format_sources(context, field)), []).append(field.environment)
    cells = [(job, ", ".join(map(escape, dict.fromkeys(envs))) or "all", *rest) for (job, *rest), envs in rows.items()]
    if not cells:
        return ""
    more = f"\n\nand {len(distinct) - _MAX_JOBS} more" if len(distinct) > _MAX_JOBS else ""
    return table(("job", "environment", "value", "set by"), cells[: 2 * _MAX_JOBS]) + more


def list_distinct(jobs: Sequence[IndexedJob]) -> list[IndexedJob]:
    """Return jobs that are written in different places: of a sweep, the first one."""
    return list({job.location: job for job in reversed(jobs)}.values())[::-1]


def _find_reached_path(context: Context) -> tuple[Step, ...]:
    """Return the path in jobs or in their objects that a line of an overlay sets; empty if it sets nothing."""
    match context.cursor.path:
        case ("spec", "defaults", *rest) | ("spec", "patches", int(), "merge" | "manifest", *rest):
            return tuple(rest)
        case ("spec", "patches", int() as number, "jsonPatch", int() as place, _):
            pointer = value_of(get_path(context.cursor.tree, ("spec", "patches", number, "jsonPatch", place, "path")))
            try:
                return parse_path(pointer) if isinstance(pointer, str) else ()
            except InvalidPathError:
                return ()
        case _:
            return ()


def _format_sources(context: Context, field: ExplainedField) -> str:
    first, *others = field.sources
    matrix = [f" with {_format_source(context, each)}" for each in others if each.layer == MATRIX]
    rest = list({each.location or each: each for each in others if each.layer != MATRIX}.values())
    # What an alias repeats overrides itself.
    rest = [each for each in rest if each.location is None or each.location != first.location]
    shown = [f"{_format_value(each)} of {_format_source(context, each)}" for each in rest[:_MAX_OVERRIDDEN]]
    overrides = f", overrides {', '.join(shown)}" if shown else ""
    # Many fields of the object may come from one of the spec.
    changes = dict.fromkeys(
        f", in the cluster {_format_value(source)} of {_format_source(context, source)}" for _, source in field.mutated
    )
    return _format_source(context, first) + "".join(dict.fromkeys(matrix)) + overrides + "".join(changes)


def _format_value(source: ValueSource) -> str:
    return "removed" if source.removed else value_code(source.value)


def _format_source(context: Context, source: ValueSource) -> str:
    if source.location is None:
        return escape(source.layer)
    return link(context.workspace.root, source.location, source.layer)


class Hover(NamedTuple):
    """What an editor shows about a range."""

    markdown: str
    location: Location


def find_hover(context: Context) -> Hover | None:
    """Return what is known about a position; None if there is nothing to show."""
    cursor = context.cursor
    if not cursor.text:
        return None
    with context.workspace.reading():
        page = _describe_rule(context)
        parts = [page] if page else [part for describe in _PARTS for part in describe(context)]
    return Hover("\n\n".join(parts), cursor.location) if parts else None


def _describe_rule(context: Context) -> str:
    """Return the page of the rule that a value names; empty if it names none."""
    name = context.find_rule_name()
    if not name:
        return ""
    try:
        rule = explain_rule(context.workspace.root if context.workspace.is_repository else None, name)
    except NotFoundError:
        return ""
    parts = [f"**{escape(rule.name)}**: {rule.severity} ({rule.category})", escape_text(rule.summary)]
    parts += (escape_text(" ".join(paragraph.split())) for paragraph in rule.text.split("\n\n"))
    if rule.bad:
        parts += ["Reported:", block("yaml", rule.bad)]
    if rule.good:
        parts += ["Not reported:", block("yaml", rule.good)]
    if rule.former_names:
        parts.append(f"Former names: {', '.join(map(code, rule.former_names))}")
    return "\n\n".join(filter(None, parts))


def _describe_environment(context: Context) -> Iterator[str]:
    name, ready = context.find_overlay_name(), context.ready
    if not name or ready is None or name not in ready.project.overlays:
        return
    project = ready.project
    environment = project.environment(name, [])
    cluster = environment.cluster
    below = [other for other in list_ancestors(name, project.overlays) if other != name]
    extends = f", extends {', '.join(map(code, below))}" if below else ""
    yield f"**overlay {code(name)}**{extends}"
    versions = [f"{escape(each)} {escape(str(version))}" for each, version in cluster.operators.items()]
    kubernetes = [f"Kubernetes {escape(cluster.kubernetes)}"] if cluster.kubernetes else []
    yield ", ".join([f"platform {code(cluster.platform)}", *kubernetes, *versions])
    names = definition.list_environments(project, list(ready.layers.environments), name)
    jobs = definition.list_jobs_in(context.workspace.index, names)
    patches = f"{len(environment.patches)} patch{'' if len(environment.patches) == 1 else 'es'}"
    where = f" in {', '.join(map(code, names))}" if names != [name] else ""
    yield f"{pluralize(len(jobs), 'job')}, {patches}{where}"


def _describe_framework(context: Context) -> Iterator[str]:
    name, ready = context.find_framework_name(), context.ready
    if not name or ready is None:
        return
    rows: dict[tuple[str, str, str], list[str]] = {}
    for runner in ready.layers.runners:
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
    name, ready = context.find_kind_name(), context.ready
    if ready is None:
        return
    for kind in ready.project.kinds if name else ():
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
        yield f"Matches {pluralize(len([*list_definitions(context, name)]), 'job')}"
        return
    places = [*dict.fromkeys(list_definitions(context, name))][:_MAX_JOBS]
    defined = ", ".join(link(context.workspace.root, place) for place in places)
    where = f"defined in {defined}" if defined else "not defined in this repository"
    count = len(list_files(context, name))
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
    if not is_field or context.cursor.path[0] != "spec" or not definition.find_overlay(context.file):
        return
    below = context.cursor.path[1:]
    if not context.workspace.index or below[:1] == ("extends",) or below == ("patches",):
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
    *(describe_field, _describe_environment, _describe_framework, _describe_kind, _describe_name),
    *(_describe_team, _describe_pack, _describe_values, _describe_decisions, _describe_reach),
)

"""Tables of values: in every environment, in all jobs of a sweep, and in the jobs that an overlay reaches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobgen.explain.explain import ExplainedField, ValueSource
from jobgen.features.editor import reach
from jobgen.features.editor.context import Context
from jobgen.features.editor.cursor import get_path
from jobgen.features.editor.index import IndexedJob
from jobgen.features.editor.markdown import code, escape, link, table, value_code
from jobgen.features.editor.values import ExplainedValue, explain_indexed, explain_value
from jobgen.model.data import value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import InvalidPathError, Step, parse_path
from jobgen.report.summary import pluralize
from jobgen.spec.sweeps import MATRIX

_MAX_ROWS = 30
_MAX_ROWS_OF_FIELDS = 8
"""Rows of a mapping or list, whose fields are shown one by one, and of a field that differs in the jobs of a sweep."""
_MAX_VALUES = 3
"""Values of a field in one row, if the jobs of a sweep have several."""
_MAX_JOBS = 5
_MAX_OVERRIDDEN = 3
_ITEM = lazy_pattern(r"(.*)\[(\d+)\]")


class _Table(NamedTuple):
    """The rows about fields, whether they have a column for the field, and one for the number of jobs."""

    rows: list[tuple[str, ...]]
    has_fields: bool
    has_jobs: bool


def describe_values(context: Context) -> Iterator[str]:
    """Show the value in every environment, and the layers that set it."""
    if context.ready is None:
        return
    found = explain_value(context.workspace, context.ready, context.file, context.cursor)
    fields = _join_items(_drop_written(found.fields)) if found else []
    if not found or not (fields or found.broken):
        return
    if not fields:
        if {*found.broken} >= {*context.ready.run.project.environments()}:
            yield "The job cannot be rendered, so its values are not known; see its findings"
        return
    if found.job.document.sweep:
        yield _describe_sweep(found)
    rows, has_fields, has_jobs = _list_rows(context, found, fields)
    names = ", ".join(map(escape, found.broken)) or "all"
    broken = [(names, *[""] * has_fields, "cannot be rendered", *[""] * has_jobs, "")] if found.broken else []
    head = ("environment", *["field"] * has_fields, "value", *["jobs"] * has_jobs, "set by")
    shown = _MAX_ROWS_OF_FIELDS if has_fields or has_jobs else _MAX_ROWS
    yield table(head, [*rows[:shown], *broken])
    if len(rows) > shown:
        yield f"and {len(rows) - shown} more"


def _describe_sweep(found: ExplainedValue) -> str:
    first = f"the first {found.explained} of " if found.explained < found.jobs else ""
    return f"In {first}the {pluralize(found.jobs, 'job')} of the sweep:"


def _list_rows(context: Context, found: ExplainedValue, fields: Sequence[ExplainedField]) -> _Table:
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
            shown = value or _join_values(values)
            jobs = [str(len(values))] if has_jobs else []
            cells.setdefault((*([name] if has_fields else []), shown, *jobs, sources), []).append(env)
    listed = [(", ".join(map(escape, envs)) or "all", *row) for row, envs in cells.items()]
    return _Table(listed, has_fields, has_jobs)


def _shorten(field: str, start: str) -> str:
    """Return the path of a field from another one, if it is inside of it."""
    rest = field.removeprefix(start)
    if rest == field or rest[:1] not in (".", "["):
        return field
    return rest[1:] if rest[0] == "." else f"{start.rpartition('.')[2]}{rest}"


def _join_values(values: Sequence[str]) -> str:
    """Return the different values of a field in one cell."""
    distinct = list(dict.fromkeys(values))
    more = f" and {len(distinct) - _MAX_VALUES} more" if len(distinct) > _MAX_VALUES else ""
    return ", ".join(distinct[:_MAX_VALUES]) + more


def _drop_written(fields: Sequence[ExplainedField]) -> list[ExplainedField]:
    """Leave out values of a manifest that are what its file says in all environments: nothing is to be explained."""
    changed = {field.field for field in fields if [source.layer for source in field.sources] != ["manifest"]}
    return [field for field in fields if field.field in changed]


def _join_items(fields: Sequence[ExplainedField]) -> list[ExplainedField]:
    """Return fields with one field for all items of a list of scalars that one layer sets."""
    joined: list[ExplainedField] = []
    for items in _split_lists(fields):
        first = items[0]
        layers = {tuple(source.layer for source in item.sources) for item in items}
        if len(items) > 1 and len(layers) == 1 and len(first.sources) == 1:
            name = first.field.rpartition("[")[0]
            joined.append(first._replace(field=name, value=[item.value for item in items]))
        else:
            joined += items
    return joined


def _split_lists(fields: Sequence[ExplainedField]) -> Iterator[list[ExplainedField]]:
    """Yield the items of each list together, and every other field by itself."""
    items: list[ExplainedField] = []
    for field in fields:
        match = _ITEM.fullmatch(field.field)
        is_next = bool(items) and match and items[0].field == f"{match[1]}[0]" and len(items) == int(match[2])
        if items and not (is_next and items[0].environment == field.environment):
            yield items
            items = []
        items.append(field)
    if items:
        yield items


def list_reached_values(context: Context, jobs: Sequence[IndexedJob]) -> str:
    """Return a table of the values that jobs get where an overlay has a scalar; empty without values."""
    path = _find_reached_path(context)
    if (
        context.ready is None
        or not path
        or isinstance(get_path(context.cursor.tree, context.cursor.path), (dict, list))
    ):
        return ""
    patch = reach.find_patch(context.ready, context.file, context.cursor)
    overlay, project = reach.find_overlay(context.file), context.ready.run.project
    names = [runner.name for runner in context.ready.prepared.runners]
    own = reach.list_environments(project, names, overlay)
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

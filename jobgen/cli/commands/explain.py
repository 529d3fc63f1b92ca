"""`jobgen explain`: show where values come from, or what a rule checks."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import click

from jobgen.api.errors import JobgenError
from jobgen.api.explain import Explanation, RuleExplanation, explain
from jobgen.api.project import ProjectPath
from jobgen.cli.options import env_option, today_option
from jobgen.cli.result import ExitCode, Result, error_result, to_result
from jobgen.explain.cluster_changes import ClusterChange
from jobgen.explain.explain import ExplainedField, ValueSource
from jobgen.model.data import Location
from jobgen.report.escape import visible
from jobgen.report.summary import count_severities, format_findings


@click.command("explain")
@click.argument("name", metavar="JOB|RULE")
@click.argument("field", default="")
@env_option
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--no-pager", is_flag=True, help="Print long output at once, also on a terminal.")
@today_option
@click.pass_obj
def command(
    directory: Path, name: str, field: str, envs: tuple[str, ...], format_: str, no_pager: bool, today: str
) -> Result:
    """Show where the values of a job come from, or what a rule checks.

    JOB: file, line and layer of every value, the one that wins first. FIELD is a dotted path or a JSON pointer into the
    rendered object, or a field of the job such as `image`; the default is all fields of the object.

    RULE or policy: what it finds and why, with a bad and a good example. A job of the same name takes precedence.
    """
    return explain_name(directory, name, field, envs, format_, today)._replace(paged=not no_pager)


def explain_name(
    path: ProjectPath, name: str, field: str, envs: Sequence[str], format_: str, today: str = ""
) -> Result:
    """Explain a job or a rule."""
    try:
        found = explain(path, name, field, environments=envs, today=today)
    except JobgenError as error:
        return to_result(error)
    findings = format_findings(found.findings)
    if found.failed:
        message = f"{count_severities(found.findings)}; nothing can be explained"
        return error_result(ExitCode.ERRORS, message, findings)
    return Result(ExitCode.OK, _to_json(found) if format_ == "json" else _to_text(found), findings)


def _to_text(found: Explanation) -> str:
    if found.rule:
        return _format_rule(found.rule)
    groups = [(env, list(fields)) for env, fields in groupby(found.fields, key=lambda field: field.environment)]
    blocks = []
    for env, fields in groups:
        heading = f"# {env}\n" if len(found.environments) > 1 else ""
        blocks.append(heading + "".join(line for field in fields for line in _format_field(field)))
    if found.changes:
        blocks.append("".join(_format_change(change) for change in found.changes))
    return "\n".join(blocks)


def _format_change(change: ClusterChange) -> str:
    where = f" in {change.environment}" if change.environment else ""
    written = f" ({change.location})" if change.location else ""
    action = f"{change.action} {change.field}".rstrip()
    return visible(f"in the cluster{where}, policy {change.policy}{written} {action}") + "\n"


def _format_field(field: ExplainedField) -> Iterator[str]:
    values = [_format_value(source) for source in field.sources]
    locations = [str(source.location) if source.location else "-" for source in field.sources]
    width = max(map(len, locations))
    yield visible(f"{field.field} = {values[0]}") + "\n"
    for location, source, value, old in zip(locations, field.sources, values, (*values[1:], None), strict=True):
        change = value if old is None else f"{old} → {value}"
        yield visible(f"  {location:<{width}}  {source.layer}: {change}") + "\n"
    for rendered in field.rendered or ():
        value = "" if rendered.value == field.value else f" = {json.dumps(rendered.value, ensure_ascii=False)}"
        yield visible(f"  rendered as {rendered.field}{value}") + "\n"
    for place, source in field.mutated:
        yield visible(f"  in the cluster {place} = {_format_value(source)}") + "\n"
        yield visible(f"    {source.location or '-'}  {source.layer}") + "\n"
    if field.rendered == ():
        yield "  not in the rendered object\n"


def _format_value(source: ValueSource) -> str:
    return "(removed)" if source.removed else json.dumps(source.value, ensure_ascii=False)


def _format_rule(rule: RuleExplanation) -> str:
    parts = [f"{rule.name} ({rule.category}, {rule.severity.value})\n", f"{rule.summary}\n"]
    if rule.former_names:
        parts.append(f"Former name{'s' if len(rule.former_names) > 1 else ''}: {', '.join(rule.former_names)}\n")
    if rule.text:
        parts.append(f"{rule.text}\n")
    for title, text in (("Bad", rule.bad), ("Good", rule.good)):
        if text:
            parts.append(f"{title}:\n\n{textwrap.indent(text.rstrip(), '  ')}\n")
    return "\n".join(map(visible, "\n".join(parts).split("\n")))


def _to_json(found: Explanation) -> str:
    document: dict[str, object] = {"version": 1}
    if found.rule:
        rule = {**found.rule._asdict(), "severity": found.rule.severity.value}
        document["rule"] = {name: value for name, value in rule.items() if name != "former_names"}
    else:
        document["fields"] = [_field_to_json(field) for field in found.fields]
        if found.changes:
            document["changes"] = [_change_to_json(change) for change in found.changes]
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _change_to_json(change: ClusterChange) -> dict[str, object]:
    known = {name: value for name, value in change._asdict().items() if name != "location"}
    return {**known, **_location_to_json(change.location)}


def _field_to_json(field: ExplainedField) -> dict[str, object]:
    explained: dict[str, object] = {
        "env": field.environment,
        "field": field.field,
        "value": field.value,
        "chain": [_source_to_json(source) for source in field.sources],
    }
    if field.rendered is not None:
        explained["rendered"] = [rendered._asdict() for rendered in field.rendered]
    if field.mutated:
        explained["mutated"] = [{"field": place, **_source_to_json(source)} for place, source in field.mutated]
    return explained


def _source_to_json(source: ValueSource) -> dict[str, object]:
    removed = {"removed": True} if source.removed else {}
    return {"value": source.value, **removed, "layer": source.layer, **_location_to_json(source.location)}


def _location_to_json(location: Location | None) -> dict[str, object]:
    return {"file": location.file, "line": location.line, "column": location.column} if location else {}

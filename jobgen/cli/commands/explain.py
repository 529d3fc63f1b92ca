"""`jobgen explain`: show where values come from, or what a rule checks; long output in a pager, as Git does."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from shutil import get_terminal_size

import click

from jobgen.api.errors import JobgenError
from jobgen.api.explain import LAUNCH, Explanation, RuleExplanation, explain, list_fields
from jobgen.api.project import ProjectPath
from jobgen.cli.complete import complete_jobs_and_rules
from jobgen.cli.options import env_option, today_option
from jobgen.cli.result import ExitCode, Result, error_result, to_result
from jobgen.explanation.explain import ExplainedField, ValueSource
from jobgen.model.data import Location
from jobgen.reports.entries import count_severities, format_findings
from jobgen.reports.escape import visible

_LESS = "FRX"
"""Options of less: end if it fits on the screen, show colors, and leave the text there."""
_SIGNALED = 128
_IF_ANY = ("page", "incidents", "translation")
"""Fields of a rule that JSON has only if they have a value."""


def _complete_fields(context: click.Context, _: click.Parameter, __: str) -> list[str]:
    """Complete a field of the job that is named before it; a rule has none."""
    directory, envs = context.find_root().params.get("directory") or ".", context.params.get("envs")
    try:
        return list(list_fields(Path(directory), context.params["name"], envs or ()))
    except JobgenError:
        return []


@click.command("explain")
@click.argument("name", metavar="JOB|RULE", shell_complete=complete_jobs_and_rules)
@click.argument("field", default="", shell_complete=_complete_fields)
@env_option
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--no-pager", is_flag=True, help="Print long output at once, also on a terminal.")
@today_option
@click.pass_obj
def command(
    directory: Path, name: str, field: str, envs: tuple[str, ...], format_: str, no_pager: bool, today: str
) -> Result:
    """Show where values come from, or explain a rule.

    For JOB, it shows the file, line and layer of each value, with the winning layer first. FIELD is a dotted path or a
    JSON pointer into the rendered object, or a field of the job such as `image`. The default is all fields of the
    object. `launch` shows the command of each role as it runs, with processes, parallel sizes and batch sizes.

    For RULE, or the name of a policy, it shows what the rule finds and why, when to turn it off, and a bad and a good
    example. In a Chinese locale, its summary is also in Chinese. A job of the same name takes precedence.
    """
    return explain_name(directory, name, field, envs, format_, today)._replace(pager=None if no_pager else show_paged)


def explain_name(
    path: ProjectPath, name: str, field: str, envs: Sequence[str], format_: str, today: str = ""
) -> Result:
    """Explain a job or a rule."""
    try:
        found = explain(path, name, field, environments=envs, today=today, language=find_language(os.environ))
    except JobgenError as error:
        return to_result(error)
    findings = format_findings(found.findings)
    if found.failed:
        message = f"{count_severities(found.findings)}; nothing can be explained"
        return error_result(ExitCode.ERRORS, message, findings)
    if format_ == "json":
        return Result(ExitCode.OK, json.dumps(_to_plain(found), ensure_ascii=False, indent=2) + "\n", findings)
    if found.rule:
        return Result(ExitCode.OK, _format_rule(found.rule), findings)
    blocks: list[str] = []
    for env, fields in groupby(found.fields, key=lambda field: field.environment):
        heading = f"# {env}\n" if len(found.environments) > 1 else ""
        format_fields = _format_launch if field == LAUNCH else _format_fields
        blocks.append(heading + "".join(format_fields(list(fields))))
    changes = ""
    for change in found.changes:
        where = f" in {change.environment}" if change.environment else ""
        written = f" ({change.location})" if change.location else ""
        action = f"{change.action} {change.field}".rstrip()
        changes += visible(f"in the cluster{where}, policy {change.policy}{written} {action}") + "\n"
    return Result(ExitCode.OK, "\n".join([*blocks, changes] if changes else blocks), findings)


def _format_fields(fields: Sequence[ExplainedField]) -> Iterator[str]:
    return (line for field in fields for line in _format_field(field))


def _format_launch(fields: Sequence[ExplainedField]) -> Iterator[str]:
    """Yield what roles launch: each number in a line, with the layers that set it."""
    names = [field.field.partition(": ") for field in fields]
    width = max(len(name) for _, _, name in names)
    for (title, _, name), field in zip(names, fields, strict=True):
        first, *others = field.sources
        if name == "command":
            yield visible(title) + "\n"
            yield visible(f"  {name:<{width}}  {first.value}") + "\n"
            continue
        value = " → ".join(str(source.value) for source in (*reversed(others), first))
        where = f" ({first.location})" if first.location else ""
        yield visible(f"  {name:<{width}}  {value}: {first.layer}{where}") + "\n"


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
    parts = [f"{rule.name} ({rule.category}, {rule.severity.value})\n"]
    parts += [f"{rule.translation}\n"] if rule.translation else []
    parts.append(f"{rule.summary}\n")
    if rule.former_names:
        parts.append(f"Former name{'s' if len(rule.former_names) > 1 else ''}: {', '.join(rule.former_names)}\n")
    if rule.text:
        parts.append(f"{rule.text}\n")
    for title, text in (("Bad", rule.bad), ("Good", rule.good)):
        if text:
            parts.append(f"{title}:\n\n{textwrap.indent(text.rstrip(), '  ')}\n")
    if rule.incidents:
        parts.append("Incidents:\n\n" + "".join(f"  {each}\n" for each in rule.incidents))
    return "\n".join(map(visible, "\n".join(parts).split("\n")))


def _to_plain(found: Explanation) -> dict[str, object]:
    if found.rule:
        rule = {**found.rule._asdict(), "severity": found.rule.severity.value}
        left_out = {"former_names", *(each for each in _IF_ANY if not rule[each])}
        return {"version": 1, "rule": {name: value for name, value in rule.items() if name not in left_out}}
    fields: list[dict[str, object]] = []
    for field in found.fields:
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
        fields.append(explained)
    changes: list[dict[str, object]] = []
    for change in found.changes:
        known = {name: value for name, value in change._asdict().items() if name != "location"}
        changes.append({**known, **_location_to_json(change.location)})
    return {"version": 1, "fields": fields, **({"changes": changes} if changes else {})}


def _source_to_json(source: ValueSource) -> dict[str, object]:
    removed = {"removed": True} if source.removed else {}
    return {"value": source.value, **removed, "layer": source.layer, **_location_to_json(source.location)}


def _location_to_json(location: Location | None) -> dict[str, object]:
    return {"file": location.file, "line": location.line, "column": location.column} if location else {}


def find_language(environ: Mapping[str, str]) -> str:
    """Return the language of messages, such as `zh`; empty if none is set, as programs of GNU decide it."""
    locale = next((environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environ.get(name)), "")
    return locale.partition("_")[0].partition(".")[0]


def show_paged(text: str, environ: Mapping[str, str]) -> bool:
    """Show a text that is longer than the screen in a pager; return whether it was shown."""
    command = find_pager(environ)
    columns, lines = get_terminal_size()
    needed = sum(max(1, -(-len(line) // max(columns, 1))) for line in text.splitlines())
    # The screen also shows the prompt.
    if not command or needed < lines:
        return False
    # A signal before the pager is known would leave it without an owner. Ctrl-C is for the pager.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)

    def restore_signals() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    try:
        try:
            pager = subprocess.Popen(  # noqa: S603 -- the user's own program
                command,
                stdin=subprocess.PIPE,
                env={"LESS": _LESS, **environ},
                preexec_fn=restore_signals,  # noqa: PLW1509 -- there are no threads
            )
        except (OSError, subprocess.SubprocessError):
            return False
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            # Who ends the pager has read enough.
            with suppress(BrokenPipeError):
                pager.communicate(text.encode("utf-8", "surrogateescape"))
        finally:
            if pager.poll() is None:
                pager.terminate()
            pager.wait()
    finally:
        signal.signal(signal.SIGINT, previous)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    # One that fails may have shown nothing. Codes above 128 are those of signals, with which a user ends it.
    return not 0 < pager.returncode < _SIGNALED


def find_pager(environ: Mapping[str, str]) -> list[str]:
    """Return the words of the pager command; none if the user wants no pager."""
    named = next((environ[name] for name in ("JOBGEN_PAGER", "PAGER") if name in environ), "less -FRX")
    try:
        words = shlex.split(named)
    except ValueError:
        return []
    return [] if words == ["cat"] else words

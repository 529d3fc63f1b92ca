"""List the exceptions of a repository."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from jobgen.api.errors import UsageError, check_format
from jobgen.api.project import ProjectPath, open_project, select_environments
from jobgen.model.data import Location, Node, Plain, location_of
from jobgen.rendering import config
from jobgen.reports.escape import dump_json, markdown_text, visible
from jobgen.reports.severities import (
    SeverityException,
    is_expired,
    list_expiring,
    list_temporary,
    parse_exception,
    parse_temporary,
)

_FORMATS = ("json", "markdown", "text")
_SCOPES = ("teams", "jobs", "environments", "namespaces", "paths")


class AcceptedFindings(NamedTuple):
    """An exception, or an entry of `rules` or `categories` that expires: findings that are accepted for some time."""

    rule: str
    """The rule, or the category."""
    scope: Mapping[str, tuple[str, ...]]
    """Patterns by the field of the settings; empty for all findings of the rule."""
    reason: str
    owner: str
    expires: str
    expired: bool
    location: Location
    severity: str = "off"
    """The severity that the findings have meanwhile: `off`, or that of the entry of `rules`."""


class ExceptionsResult(NamedTuple):
    """The exceptions of a repository, those that expire first at the top."""

    exceptions: tuple[AcceptedFindings, ...]
    text: str
    """The exceptions in the requested format."""


def exceptions(project: ProjectPath, *, expired: bool = False, format: str = "text") -> ExceptionsResult:  # noqa: A002
    """List the exceptions in the settings, and entries of `rules` and `categories` that expire.

    Args:
        project: A project, or a path in one.
        expired: Only those that have expired.
        format: The format of `ExceptionsResult.text`: `text`, `markdown` or `json`.

    Raises:
        UsageError: `jobgen.yaml` has errors, or an argument is wrong.

    """
    check_format(format, list(_FORMATS))
    opened = open_project(project)
    select_environments(opened.config, ())
    traced = config.load(opened.root, traced=True, today=opened.today)
    if expired and not traced.date and any(list_expiring(traced.settings)):
        raise UsageError("which exceptions have expired is unknown without a commit; set the date with `--today`")
    entries = traced.settings.get("exceptions", ())
    found = [_describe(parse_exception(entry), entry["rule"], entry, traced.date) for entry in entries]
    temporary = list_temporary(traced.settings)
    found += (
        _describe(parse_temporary(name, entry), entry["expires"], entry, traced.date) for name, entry in temporary
    )
    chosen = sorted((each for each in found if each.expired or not expired), key=lambda each: each.expires)
    if format == "text" and not chosen and found:
        return ExceptionsResult((), "no exception has expired\n")
    return ExceptionsResult(tuple(chosen), _WRITERS[format](chosen))


def _describe(parsed: SeverityException, node: Node, entry: Mapping[str, Any], today: str) -> AcceptedFindings:
    scope = {name: patterns for name in _SCOPES if (patterns := getattr(parsed.scope, name))}
    location, is_old = location_of(node) or Location("jobgen.yaml"), is_expired(entry, today)
    details = (parsed.reason, parsed.owner, parsed.expires, is_old, location, parsed.scope.severity)
    return AcceptedFindings(parsed.rule, scope, *details)


def _show_scope(each: AcceptedFindings) -> str:
    return "; ".join(f"{name} {' '.join(patterns)}" for name, patterns in each.scope.items()) or "everywhere"


def _write_text(found: list[AcceptedFindings]) -> str:
    return "".join(f"{visible(_write_line(each))}\n" for each in found) or "there are no exceptions\n"


def _write_line(each: AcceptedFindings) -> str:
    parts = [str(each.location), each.rule, f"{_show_severity(each)}{_show_scope(each)}", each.reason]
    owner = f"{each.owner}, " if each.owner else ""
    until = f"{'expired' if each.expired else 'until'} {each.expires}"
    return f"{': '.join(filter(None, parts))} ({owner}{until})"


def _show_severity(each: AcceptedFindings) -> str:
    return f"{each.severity} " if each.severity != "off" else ""


def _write_markdown(found: list[AcceptedFindings]) -> str:
    head = "| rule | where | reason | owner | expires |\n|---|---|---|---|---|\n"
    rows = (
        (
            each.rule,
            f"{_show_severity(each)}{_show_scope(each)}",
            each.reason,
            each.owner,
            f"{each.expires}{' (expired)' if each.expired else ''}",
        )
        for each in found
    )
    return head + "".join(f"| {' | '.join(map(markdown_text, row))} |\n" for row in rows)


def _write_json(found: list[AcceptedFindings]) -> str:
    rows: list[Plain] = [
        {
            "rule": each.rule,
            "severity": each.severity,
            "scope": {name: list(patterns) for name, patterns in each.scope.items()},
            "reason": each.reason,
            "owner": each.owner,
            "expires": each.expires,
            "expired": each.expired,
            "file": each.location.file,
            "line": each.location.line,
        }
        for each in found
    ]
    return dump_json({"version": 1, "exceptions": rows}) + "\n"


_WRITERS = {"json": _write_json, "markdown": _write_markdown, "text": _write_text}

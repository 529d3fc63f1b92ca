"""List the exceptions of a repository."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobgen.api.errors import UsageError, check_format
from jobgen.api.project import ProjectPath, open_project, select_environments
from jobgen.k8s.redaction import hide_credentials
from jobgen.model.data import Location, Node, Plain, location_of
from jobgen.model.named_tuple import NamedTuple
from jobgen.rendering import config
from jobgen.repo import layout
from jobgen.reports.escape import dump_json, markdown_text, visible
from jobgen.reports.severities import (
    SeverityException,
    is_expired,
    list_expiring,
    list_temporary,
    parse_exception,
    parse_temporary,
)

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
    check_format(format, list(_WRITERS))
    opened = open_project(project)
    select_environments(opened.config, ())
    traced = config.load(layout.own_layers(opened.root), traced=True, today=opened.today)
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
    details = (hide_credentials(parsed.reason), parsed.owner, parsed.expires, is_old, location, parsed.scope.severity)
    return AcceptedFindings(parsed.rule, scope, *details)


def _show_where(each: AcceptedFindings) -> str:
    scope = "; ".join(f"{name} {' '.join(patterns)}" for name, patterns in each.scope.items()) or "everywhere"
    return scope if each.severity == "off" else f"{each.severity} {scope}"


def _write_text(found: list[AcceptedFindings]) -> str:
    lines: list[str] = []
    for each in found:
        parts = [str(each.location), each.rule, _show_where(each), each.reason]
        owner = f"{each.owner}, " if each.owner else ""
        until = f"{'expired' if each.expired else 'until'} {each.expires}"
        lines.append(visible(f"{': '.join(filter(None, parts))} ({owner}{until})") + "\n")
    return "".join(lines) or "there are no exceptions\n"


def _write_markdown(found: list[AcceptedFindings]) -> str:
    text = "| rule | where | reason | owner | expires |\n|---|---|---|---|---|\n"
    for each in found:
        expires = f"{each.expires}{' (expired)' if each.expired else ''}"
        row = (each.rule, _show_where(each), each.reason, each.owner, expires)
        text += f"| {' | '.join(map(markdown_text, row))} |\n"
    return text


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

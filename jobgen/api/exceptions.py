"""List the exceptions of a repository."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from jobgen.api.errors import UsageError, check_format
from jobgen.api.project import ProjectPath, open_project, select_environments
from jobgen.model.data import Location, Plain, location_of
from jobgen.pipeline import config
from jobgen.report.escape import dump_json, markdown_text, visible
from jobgen.report.severities import is_expired, parse_exception

_FORMATS = ("json", "markdown", "text")
_SCOPES = ("teams", "jobs", "environments", "namespaces", "paths")


class AcceptedFindings(NamedTuple):
    """An exception: findings that are accepted for some time."""

    rule: str
    scope: Mapping[str, tuple[str, ...]]
    """Patterns by the field of the settings; empty for all findings of the rule."""
    reason: str
    owner: str
    expires: str
    expired: bool
    location: Location


class ExceptionsResult(NamedTuple):
    """The exceptions of a repository, those that expire first at the top."""

    exceptions: tuple[AcceptedFindings, ...]
    text: str
    """The exceptions in the requested format."""


def exceptions(project: ProjectPath, *, expired: bool = False, format: str = "text") -> ExceptionsResult:  # noqa: A002
    """List the exceptions in the settings.

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
    if expired and not traced.date and traced.settings.get("exceptions"):
        raise UsageError("which exceptions have expired is unknown without a commit; set the date with `--today`")
    found = [_describe(entry, traced.date) for entry in traced.settings.get("exceptions", ())]
    chosen = sorted((each for each in found if each.expired or not expired), key=lambda each: each.expires)
    return ExceptionsResult(tuple(chosen), _WRITERS[format](chosen))


def _describe(entry: dict[str, object], today: str) -> AcceptedFindings:
    parsed = parse_exception(entry)
    scope = {name: patterns for name in _SCOPES if (patterns := getattr(parsed.scope, name))}
    location = location_of(entry["rule"]) or Location("jobgen.yaml")  # type: ignore[arg-type]
    is_old = is_expired(entry, today)
    return AcceptedFindings(parsed.rule, scope, parsed.reason, parsed.owner, parsed.expires, is_old, location)


def _show_scope(each: AcceptedFindings) -> str:
    return "; ".join(f"{name} {' '.join(patterns)}" for name, patterns in each.scope.items()) or "everywhere"


def _write_text(found: list[AcceptedFindings]) -> str:
    rows = (
        f"{each.location}: {each.rule}: {_show_scope(each)}: {each.reason} "
        f"({each.owner}, {'expired' if each.expired else 'until'} {each.expires})"
        for each in found
    )
    return "".join(f"{visible(row)}\n" for row in rows) or "there are no exceptions\n"


def _write_markdown(found: list[AcceptedFindings]) -> str:
    head = "| rule | where | reason | owner | expires |\n|---|---|---|---|---|\n"
    rows = (
        (each.rule, _show_scope(each), each.reason, each.owner, f"{each.expires}{' (expired)' if each.expired else ''}")
        for each in found
    )
    return head + "".join(f"| {' | '.join(map(markdown_text, row))} |\n" for row in rows)


def _write_json(found: list[AcceptedFindings]) -> str:
    rows: list[Plain] = [
        {
            "rule": each.rule,
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

"""Report exceptions in the settings that have expired, or that except nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from jobgen.model.data import Node, value_of
from jobgen.model.finding import Finding, Problem, Severity
from jobgen.model.sentence import Sentence
from jobgen.rendering.locate import locate
from jobgen.rendering.trace import Tracer
from jobgen.repo.root import SETTINGS
from jobgen.reports.severities import is_expired, list_expiring, parse_exception


def find_wrong_exceptions(
    tracer: Tracer, findings: Sequence[tuple[Finding, str]], *, covers_all: bool
) -> Iterator[Finding]:
    """Report exceptions that have expired; if every environment was checked, also those that no finding needs."""
    yield from find_expired(tracer)
    yield from find_unused_exceptions(tracer, findings) if covers_all else ()


def find_expired(tracer: Tracer) -> Iterator[Finding]:
    """Report entries of the settings that have expired: they have no effect any more."""
    project = tracer.traced_project()
    for entry in list_expiring(project.settings):
        if not project.date:
            message = Sentence("whether `{}` has passed is unknown without a commit", value_of(entry["expires"]))
            problem = Problem(
                "unknown-current-date",
                Sentence("{}; set the date with `--today`", message),
                entry["expires"],
                severity=Severity.WARNING,
            )
            yield locate(problem, SETTINGS)
        elif is_expired(entry, project.date):
            owner = f"; ask {value_of(entry['owner'])}" if "owner" in entry else ""
            message = Sentence(
                "the entry expired on `{}`{}; fix the findings, or change the date", value_of(entry["expires"]), owner
            )
            yield locate(Problem("expired-exception", message, entry["expires"], category="meta"), SETTINGS)


def find_unused_exceptions(tracer: Tracer, findings: Iterable[tuple[Finding, str]]) -> Iterator[Finding]:
    """Report exceptions that no finding needs. Each finding comes with the team of its job."""
    project = tracer.traced_project()
    found: dict[str, list[tuple[Finding, str]]] = {}
    for each in findings:
        found.setdefault(each[0].rule, []).append(each)
    for entry in project.settings.get("exceptions", ()):
        exception = parse_exception(entry)
        concerned = found.get(exception.rule, ())
        if not is_expired(entry, project.date) and not any(exception.matches(*each) for each in concerned):
            message = Sentence("`{}` finds nothing that this exception is for; remove it", exception.rule)
            names = [team.name for team in project.teams.all]
            unknown = _find_unknown_team(entry.get("teams", ()), names) if project.teams.is_complete else None
            if unknown is not None:
                # Imported late: most exceptions name teams that exist.
                from jobgen.model.suggest import suggest_name

                hint = suggest_name(str(value_of(unknown)), names) or f"; add it as `teams/{value_of(unknown)}.yaml`"
                message = Sentence("there is no team `{}`, so this exception has no effect{}", value_of(unknown), hint)
            node = entry["rule"] if unknown is None else unknown
            problem = Problem("unused-exception", message, node, category="meta", severity=Severity.WARNING)
            yield locate(problem, SETTINGS)


def _find_unknown_team(patterns: Sequence[Node], names: Sequence[str]) -> Node | None:
    """Return the first name in the teams of an exception if no team of the repository is among them."""
    if any(fnmatchcase(name, str(value_of(pattern))) for name in names for pattern in patterns):
        return None
    return next((each for each in patterns if not any(sign in str(value_of(each)) for sign in "*?[")), None)

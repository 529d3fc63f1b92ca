"""Findings in SARIF 2.1.0, within the limits of GitHub code scanning."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from jobgen import __version__
from jobgen.model.data import Location
from jobgen.model.finding import Severity
from jobgen.reports import Report, RuleText
from jobgen.reports.entries import RANK, ReportEntry, entries, fingerprints, summarize, suppressed_entries
from jobgen.reports.escape import dump_json, dump_json_list, escape_surrogates, file_uri
from jobgen.reports.formats import FormatInfo

FORMAT = FormatInfo(
    "GitHub code scanning, editors",
    "one result",
    "with `--show-suppressed`",
    needs_rule_texts=True,
    names_files_from_top=True,
)
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
MAX_RESULTS = 25_000
"""GitHub rejects a run with more results, and keeps the 5,000 worst of them."""
_MAX_LOCATIONS = 100
"""Locations of a result that GitHub keeps."""
_MAX_DESCRIPTION = 1024
"""Characters of a description that GitHub keeps."""
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_PROBLEMS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "recommendation"}
# An error fails, a warning is a risk, an info is advice.
_PRECISION = {Severity.ERROR: "very-high", Severity.WARNING: "high", Severity.INFO: "medium"}
_SECURITY = {Severity.ERROR: "8.0", Severity.WARNING: "5.0", Severity.INFO: "2.0"}
_BASE = "%SRCROOT%"


def render(report: Report) -> str:
    """Return one run. Suppressed results are included only on request, because GitHub opens alerts for them too."""
    found = [*entries(report), *(suppressed_entries(report) if report.show_suppressed else ())]
    # Every rule that was applied, and those known only from findings.
    rules = dict(report.rules)
    for entry in found:
        name, category, severity, *_ = entry.finding
        if name not in rules:
            rules[name] = RuleText(category, severity, name.replace("-", " "), "")
    ordered = tuple(sorted(rules.items()))
    index = {name: number for number, (name, _) in enumerate(ordered)}
    pairs = sorted(
        zip(found, fingerprints(found), strict=True),
        key=lambda pair: (bool(pair[0].by), RANK[pair[0].finding.severity]),
    )
    results = [
        _result(report, entry, index[entry.finding.rule], fingerprint) for entry, fingerprint in pairs[:MAX_RESULTS]
    ]
    run = dump_json({"$schema": SCHEMA, "version": "2.1.0", "runs": [_run(report, len(pairs) - len(results))]})
    # Results and rules take one line each; the small rest is indented.
    run = run.replace('"rules": []', f'"rules": {_dump_rules(ordered)}', 1)
    return run.replace('"results": []', f'"results": {dump_json_list(results, " " * 8)}', 1) + "\n"


def _run(report: Report, left: int) -> dict[str, Any]:
    text = f"{left} results were left out: the limit is {MAX_RESULTS}"
    notifications = [{"level": "warning", "message": {"text": text}}] if left else []
    return {
        "tool": {"driver": {"name": "jobgen", "version": __version__, "semanticVersion": __version__, "rules": []}},
        "automationDetails": {"id": "jobgen/"},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_BASE: {"description": {"text": "the root of the repository"}}},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notifications}],
        "results": [],
        "properties": {
            "checked": summarize(report),
            "files": report.files,
            "objects": report.objects,
            "environments": [name for name in report.environments if name],
        },
    }


@lru_cache(maxsize=16)
def _dump_rules(rules: tuple[tuple[str, RuleText], ...]) -> str:
    """Return the rules as JSON: most reports of a process have the same, and they are longer than most results."""
    return dump_json_list([_rule(name, rule) for name, rule in rules], " " * 12)


def _rule(name: str, rule: RuleText) -> dict[str, Any]:
    def shorten(text: str) -> str:
        return text if len(text) <= _MAX_DESCRIPTION else text[: _MAX_DESCRIPTION - 1] + "…"

    summary = rule.summary or name
    guide = rule.help or summary
    properties: dict[str, Any] = {
        "tags": [rule.category],
        "precision": _PRECISION[rule.severity],
        "problem.severity": _PROBLEMS[rule.severity],
    }
    if rule.category == "security":
        properties["security-severity"] = _SECURITY[rule.severity]
    return {
        "id": name,
        "name": name[:255],
        "shortDescription": {"text": shorten(summary)},
        "fullDescription": {"text": shorten(guide.partition("\n\n")[0])},
        "help": {"text": guide, "markdown": guide},
        **({"helpUri": rule.page} if rule.page else {}),
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": properties,
    }


def _result(report: Report, entry: ReportEntry, index: int, fingerprint: str) -> dict[str, Any]:
    finding = entry.finding
    location: dict[str, Any] = {"physicalLocation": _physical(report.from_top(finding.location))}
    if entry.objects:
        location["logicalLocations"] = [
            {"name": one.name, "fullyQualifiedName": "/".join(filter(None, one)), "kind": "resource"}
            for one in entry.objects[:_MAX_LOCATIONS]
        ]
    # A bracket and a parenthesis together would be an unintended link.
    # Braces stay: the message has no arguments, and GitHub does not unescape doubled braces.
    text = (entry.message or finding.rule).replace("](", "] (")
    links: list[str] = []
    related: list[dict[str, Any]] = []
    for number, (other, message) in enumerate(finding.related[:_MAX_LOCATIONS], 1):
        place = report.from_top(other)
        shown = message or str(place)
        related.append({"id": number, "message": {"text": shown}, "physicalLocation": _physical(place)})
        escaped = escape_surrogates(shown).replace("\\", r"\\").replace("[", r"\[").replace("]", r"\]")
        links.append(f"[{escaped}]({number})")
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": _LEVELS[finding.severity],
        # GitHub shows only those related locations that are linked.
        "message": {"text": f"{text}; {', '.join(links)}" if links else text},
        "locations": [location],
        "partialFingerprints": {"primaryLocationLineHash": fingerprint},
        "properties": {
            "category": finding.category,
            "environments": entry.environments,
            "pointers": entry.pointers,
            "fixable": finding.fixable,
        },
    }
    if related:
        result["relatedLocations"] = related
    if entry.by:
        justification = {"justification": entry.reason} if entry.reason else {}
        result["suppressions"] = [{"kind": {"comment": "inSource"}.get(entry.by, "external"), **justification}]
    return result


def _physical(location: Location) -> dict[str, Any]:
    """Return the file and the range from the first character to after the last; without an end, it is one character."""
    uri = file_uri(location.file)
    base = {} if uri.startswith("file:") else {"uriBaseId": _BASE}
    line, column = max(location.line, 1), max(location.column, 1)
    end_line = max(location.end_line, line)
    end_column = max(location.end_column, 1) if end_line > line else max(location.end_column, column + 1)
    region = {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}
    return {"artifactLocation": {"uri": uri, **base}, "region": region}

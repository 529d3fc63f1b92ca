"""Findings as objects of the Policy Working Group: a PolicyReport for each namespace, and one for the rest."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from jobgen.model.finding import Identity, Severity
from jobgen.reports import Report
from jobgen.reports.entries import ReportEntry, entries, suppressed_entries
from jobgen.reports.escape import dump_json
from jobgen.reports.formats import FormatInfo
from jobgen.reports.summary import describe_scope

FORMAT = FormatInfo("Policy Reporter, dashboards", "one result", "results with `skip`")

_API_VERSION = "wgpolicyk8s.io/v1alpha2"
_RESULTS = {Severity.ERROR: "fail", Severity.WARNING: "warn", Severity.INFO: "warn"}
_SEVERITIES = {Severity.ERROR: "high", Severity.WARNING: "medium", Severity.INFO: "info"}
_COUNTED = ("pass", "fail", "warn", "error", "skip")


def render(report: Report) -> str:
    """Return a list of reports that can be applied to a cluster: errors fail, and suppressed findings are skipped."""
    found = sorted([*entries(report), *suppressed_entries(report)], key=lambda entry: entry.finding.location)
    by_namespace: defaultdict[str, list[dict[str, object]]] = defaultdict(list)
    for entry in found:
        for namespace, objects in _group_objects(entry):
            by_namespace[namespace].append(_to_result(entry, objects))
    scope = describe_scope(report)
    # One without findings shows that something was checked.
    namespaces = sorted(by_namespace) or [""]
    items = [_to_report(namespace, by_namespace[namespace], scope) for namespace in namespaces]
    return dump_json({"apiVersion": "v1", "kind": "List", "items": items}) + "\n"


def _group_objects(entry: ReportEntry) -> Iterator[tuple[str, list[Identity]]]:
    """The objects of a finding by namespace; a finding without objects is about the cluster."""
    groups: defaultdict[str, list[Identity]] = defaultdict(list)
    for one in entry.objects:
        groups[one.namespace].append(one)
    yield from groups.items() or [("", [])]


def _to_report(namespace: str, results: list[dict[str, object]], scope: str) -> dict[str, object]:
    counts = Counter(result["result"] for result in results)
    place = {"namespace": namespace} if namespace else {}
    return {
        "apiVersion": _API_VERSION,
        "kind": "PolicyReport" if namespace else "ClusterPolicyReport",
        "metadata": {"name": "jobgen", **place, "annotations": {"jobgen.dev/checked": scope}},
        "summary": {name: counts[name] for name in _COUNTED},
        "results": results,
    }


def _to_result(entry: ReportEntry, objects: list[Identity]) -> dict[str, object]:
    finding, location = entry.finding, entry.finding.location
    properties = {
        "file": location.file,
        "line": str(location.line),
        "environments": ", ".join(entry.environments),
        "pointer": ", ".join(entry.pointers),
        "suppressed": entry.suppression_note if entry.by else "",
    }
    result: dict[str, object] = {
        "source": "jobgen",
        "policy": finding.rule,
        "category": finding.category,
        "severity": _SEVERITIES[finding.severity],
        "result": "skip" if entry.by else _RESULTS[finding.severity],
        "message": finding.message,
        "scored": finding.severity is Severity.ERROR and not entry.by,
        "properties": {name: value for name, value in properties.items() if value},
    }
    return {**result, "resources": list(map(_to_reference, objects))} if objects else result


def _to_reference(one: Identity) -> dict[str, str]:
    fields = {"apiVersion": one.api_version, "kind": one.kind, "namespace": one.namespace, "name": one.name}
    return {name: value for name, value in fields.items() if value}

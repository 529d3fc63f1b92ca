"""Findings as objects of the Policy Working Group: a PolicyReport for each namespace, and one for the rest."""

from __future__ import annotations

from collections import Counter, defaultdict

from jobgen.model.finding import Identity, Severity
from jobgen.reports import Report, to_plain_identity
from jobgen.reports.entries import ReportEntry, describe_scope, entries, suppressed_entries
from jobgen.reports.escape import dump_json
from jobgen.reports.formats import FormatInfo

FORMAT = FormatInfo("Policy Reporter, dashboards", "one result", "results with `skip`")

_RESULTS = {Severity.ERROR: "fail", Severity.WARNING: "warn", Severity.INFO: "warn"}
_SEVERITIES = {Severity.ERROR: "high", Severity.WARNING: "medium", Severity.INFO: "info"}


def render(report: Report) -> str:
    """Return a list of reports that can be applied to a cluster: errors fail, and suppressed findings are skipped."""
    found = sorted([*entries(report), *suppressed_entries(report)], key=lambda entry: entry.finding.location)
    by_namespace: defaultdict[str, list[dict[str, object]]] = defaultdict(list)
    for entry in found:
        groups: defaultdict[str, list[Identity]] = defaultdict(list)
        for one in entry.objects:
            groups[one.namespace].append(one)
        # A finding without objects is about the cluster.
        for namespace, objects in groups.items() or [("", [])]:
            by_namespace[namespace].append(_to_result(entry, objects))
    items: list[dict[str, object]] = []
    # One without findings shows that something was checked.
    for namespace in sorted(by_namespace) or [""]:
        results = by_namespace[namespace]
        counts = Counter(result["result"] for result in results)
        place = {"namespace": namespace} if namespace else {}
        items.append(
            {
                "apiVersion": "wgpolicyk8s.io/v1alpha2",
                "kind": "PolicyReport" if namespace else "ClusterPolicyReport",
                "metadata": {"name": "jobgen", **place, "annotations": {"jobgen.dev/checked": describe_scope(report)}},
                "summary": {name: counts[name] for name in ("pass", "fail", "warn", "error", "skip")},
                "results": results,
            }
        )
    return dump_json({"apiVersion": "v1", "kind": "List", "items": items}) + "\n"


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
    if objects:
        plain = ((to_plain_identity(one) or {}).items() for one in objects)
        result["resources"] = [{name: value for name, value in fields if value} for fields in plain]
    return result

"""The JSON format, for programs: one versioned document; docs/queue_v1.json is its schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobgen.features.kueue.answers import Answer, Outside, Total
from jobgen.features.kueue.queues.change_sections import describe_queues
from jobgen.features.kueue.queues.comparison import Comparison
from jobgen.features.kueue.queues.report import EnvironmentReport
from jobgen.features.kueue.quota import show_amount
from jobgen.features.kueue.workloads import PodSet, PodSetAdmission
from jobgen.model.data import Plain
from jobgen.rendering.left_out import LeftOutFile
from jobgen.reports.escape import dump_json


def render(reports: Sequence[EnvironmentReport], left_out: Sequence[LeftOutFile] = ()) -> str:
    """Write all workloads and totals."""
    document: dict[str, Plain] = {"version": 1, "environments": [describe_report(report) for report in reports]}
    if left_out:
        document["leftOut"] = [each.to_plain() for each in left_out]
    return dump_json(document) + "\n"


def describe_report(report: EnvironmentReport) -> dict[str, Plain]:
    """Return the decision about an environment as plain data."""
    decision = report.decision
    by_cluster: dict[str, list[Plain]] = {}
    for name, total in decision.cluster_totals:
        by_cluster.setdefault(name, []).append(_describe_total(total))
    clusters: list[Plain] = [{"cluster": name, "totals": totals} for name, totals in by_cluster.items()]
    return {
        "environment": report.environment,
        "kueue": {"version": report.version, "fairSharing": report.is_fair},
        "running": report.running,
        "settles": decision.settles,
        "complete": decision.is_complete,
        "assumptions": list(decision.assumptions),
        "notSimulated": list(report.left_out),
        "summary": dict(report.count_decisions()),
        "workloads": [_describe_answer(answer) for answer in decision.answers],
        "totals": [_describe_total(total) for total in decision.totals],
        **({"clusterTotals": clusters} if clusters else {}),
        **({"outside": _describe_outside(decision.outside)} if decision.outside.workloads else {}),
        **({} if report.comparison is None else {"comparison": _describe_comparison(report.comparison)}),
    }


def _describe_outside(outside: Outside) -> dict[str, Plain]:
    used: list[Plain] = [
        {"flavor": pair.flavor, "resource": pair.resource, "amount": show_amount(pair.resource, amount)}
        for pair, amount in outside.used
    ]
    return {"workloads": outside.workloads, "used": used}


def _describe_comparison(comparison: Comparison) -> dict[str, Plain]:
    found = describe_queues(comparison.changes)
    names = ("settles", "complete", "summary", "workloads", "quota", "objects", "balance")
    suggestion = comparison.suggestion
    document: dict[str, Plain] = {
        "changes": [dict(each._asdict()) for each in comparison.applied],
        "unchanged": comparison.unchanged,
        **{name: found.get(name, []) for name in names},
    }
    if suggestion is not None:
        document["suggestion"] = {
            "quotas": [
                {
                    "change": each.change,
                    "clusterQueue": "" if each.kind == "Cohort" else each.queue,
                    **({"cohort": each.queue} if each.kind == "Cohort" else {}),
                    **({"cluster": each.cluster} if each.cluster else {}),
                    "flavor": each.flavor,
                    "resource": each.resource,
                    "field": each.field,
                    "before": show_amount(each.resource, each.before),
                    "after": show_amount(each.resource, each.after),
                    "neededBy": each.needed_by,
                }
                for each in suggestion.quotas
            ],
            "impossible": [{"workload": key, "reason": reason} for key, reason in suggestion.impossible],
            "untried": suggestion.untried,
        }
    return document


def _describe_answer(answer: Answer) -> dict[str, Plain]:
    workload, obstacle = answer.workload, answer.obstacle
    admitted = {each.name: each for each in workload.admission} if workload else {}
    return {
        "workload": answer.key,
        "kind": answer.job.kind,
        "namespace": answer.job.namespace,
        "name": answer.job.name,
        "queue": answer.job.queue,
        "clusterQueue": answer.cluster_queue,
        "priority": workload.priority if workload else 0,
        "decision": answer.decision,
        "reason": answer.reason,
        "obstacle": None
        if obstacle is None
        else {"podSet" if name == "pod_set" else name: value for name, value in obstacle._asdict().items()},
        "podSets": [
            _describe_pod_set(each, admitted.get(each.name)) for each in (workload.pod_sets if workload else ())
        ],
        "borrows": [
            {
                "from": loan.lender,
                "kind": "Cohort" if loan.is_from_cohort else "ClusterQueue",
                "flavor": loan.pair.flavor,
                "resource": loan.pair.resource,
                "amount": show_amount(loan.pair.resource, loan.amount),
            }
            for loan in answer.loans
        ],
        "lacks": [
            {"flavor": each.flavor, "resource": each.resource, "amount": show_amount(each.resource, each.missing)}
            for each in answer.shortages
        ],
        "behind": list(answer.blockers),
        "evicts": [{"workload": each.workload, "rule": each.reason} for each in answer.evictions],
        "evictedBy": answer.evicted_by,
        **({"clusters": [each._asdict() for each in answer.clusters]} if answer.clusters else {}),
    }


def _describe_pod_set(pod_set: PodSet, admitted: PodSetAdmission | None) -> dict[str, Plain]:
    return {
        "name": pod_set.name,
        "count": pod_set.count,
        "minCount": pod_set.min_count,
        "requests": _show_amounts(pod_set.requests),
        "total": _show_amounts(pod_set.total()),
        "admittedCount": None if admitted is None else admitted.count,
        "flavors": {} if admitted is None else dict(admitted.flavors),
        "domains": [
            {"values": list(values), "count": count} for values, count in (admitted.domains if admitted else ())
        ],
    }


def _show_amounts(amounts: Mapping[str, int]) -> dict[str, Plain]:
    return {name: show_amount(name, amount) for name, amount in sorted(amounts.items())}


def _describe_total(total: Total) -> dict[str, Plain]:
    amounts = ("nominal", "used", "borrowed", "lent", "waiting")
    return {
        "kind": total.kind,
        "name": total.name,
        "flavor": total.flavor,
        "resource": total.resource,
        **{name: show_amount(total.resource, getattr(total, name)) for name in amounts},
    }

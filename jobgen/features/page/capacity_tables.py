"""The tables of the capacity view: quotas, workloads, notes and costs."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.features.kueue.decision.answers import Answer
from jobgen.features.page.capacity import Capacity, QueueState
from jobgen.features.page.encode import NONE, Table
from jobgen.features.page.fleet import Fleet

Row = tuple[str | int, ...]

_ERROR, _NOTE = "error", "note"
_ENVIRONMENT = "environment:environments"
QUOTA = (
    *(_ENVIRONMENT, "kind:text", "name:text", "cohort:text", "flavor:text", "resource:text"),
    *("nominal", "used", "borrowed", "lent", "waiting", "borrowingLimit", "lendingLimit"),
)
WORKLOAD = (
    *(_ENVIRONMENT, "cell:cells", "kind:text", "namespace:text", "name:text", "queue:text", "clusterQueue:text"),
    *("decision:text", "reason:text", "change:text", "behind:text", "evictedBy:text", "obstacle:text"),
)
_LIMIT = (*(_ENVIRONMENT, "kind:text", "owner:text", "name:text", "resource:text", "used:text", "limit:text", "share"),)
_COST = (_ENVIRONMENT, "by:text", "name:text", "jobs", "bounded", "priced", "scheduled", "gpuSeconds", "cost")


def list_capacity(capacity: Capacity, fleet: Fleet) -> Iterator[Table]:
    """List the tables of the capacity view."""
    environments = {env: number for number, env in enumerate(fleet.environments)}
    cells = {(cell.environment, cell.kind, cell.namespace, cell.name): at for at, cell in enumerate(fleet.cells)}
    quotas: list[Row] = []
    workloads: list[Row] = []
    notes: list[Row] = [(environments[env], _ERROR, message) for env, message in capacity.errors]
    for state in capacity.queues:
        env = state.report.environment
        quotas += ((environments[env], *row) for row in _list_quotas(state))
        for answer in state.report.decision.answers:
            cell = cells.get((env, answer.job.kind, answer.job.namespace, answer.job.name), NONE)
            workloads.append((environments[env], cell, *_describe_answer(answer)))
        notes += ((environments[env], _NOTE, note) for note in state.report.list_notes())
    yield Table("quotas", QUOTA, quotas)
    yield Table("workloads", WORKLOAD, workloads)
    yield Table("notes", (_ENVIRONMENT, "level:text", "text:text"), notes)
    yield Table("limits", _LIMIT, [(environments[each.environment], *each[1:]) for each in capacity.limits])
    yield Table("costs", _COST, [(environments[each.environment], *each[1:]) for each in capacity.costs])
    counted = ((number, run) for number, run in enumerate(capacity.runs) if run.is_counted)
    yield Table("runs", ("cell:cells", "scheduled"), [(number, int(run.is_scheduled)) for number, run in counted])


def _list_quotas(state: QueueState) -> Iterator[Row]:
    for total in state.report.decision.totals:
        cohort, quota = state.find_owner(total)
        limits = (NONE if limit is None else limit for limit in (quota.borrowing_limit, quota.lending_limit))
        amounts = (total.nominal, total.used, total.borrowed, total.lent, total.waiting)
        yield (total.kind, total.name, cohort, total.flavor, total.resource, *amounts, *limits)


def _describe_answer(answer: Answer) -> Row:
    job = answer.job
    obstacle, change = (answer.obstacle.code, answer.obstacle.change) if answer.obstacle else ("", "")
    names = (job.kind, job.namespace, job.name, job.queue, answer.cluster_queue)
    return (*names, answer.decision, answer.reason, change, ", ".join(answer.blockers), answer.evicted_by, obstacle)

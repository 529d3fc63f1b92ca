"""The tables of the fleet view: environments, jobs, cells, totals, findings, capacity, and the pages of jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from jobgen.check.rule_docs import RuleDoc
from jobgen.features.page.capacity import Capacity
from jobgen.features.page.fleet import Fleet, FleetFinding
from jobgen.features.page.job_pages import JobPages
from jobgen.features.page.page import NONE, Table
from jobgen.model.finding import Finding, Severity

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
_LAUNCH = ("cell:cells", "roles:text", "command:text", "name:text", "value:text", "source:text")
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
        for total in state.report.decision.totals:
            cohort, quota = state.find_owner(total)
            names = (total.kind, total.name, cohort, total.flavor, total.resource)
            amounts = (total.nominal, total.used, total.borrowed, total.lent, total.waiting)
            limits = (NONE if limit is None else limit for limit in (quota.borrowing_limit, quota.lending_limit))
            quotas.append((environments[env], *names, *amounts, *limits))
        for answer in state.report.decision.answers:
            job = (answer.job.kind, answer.job.namespace, answer.job.name)
            obstacle, change = (answer.obstacle.code, answer.obstacle.change) if answer.obstacle else ("", "")
            behind = (", ".join(answer.blockers), answer.evicted_by, obstacle)
            row = (*job, answer.job.queue, answer.cluster_queue, answer.decision, answer.reason, change, *behind)
            workloads.append((environments[env], cells.get((env, *job), NONE), *row))
        notes += ((environments[env], _NOTE, note) for note in state.report.list_notes())
    yield Table("quotas", QUOTA, quotas)
    yield Table("workloads", WORKLOAD, workloads)
    yield Table("notes", (_ENVIRONMENT, "level:text", "text:text"), notes)
    yield Table("limits", _LIMIT, [(environments[each.environment], *each[1:]) for each in capacity.limits])
    yield Table("costs", _COST, [(environments[each.environment], *each[1:]) for each in capacity.costs])
    counted = ((number, run) for number, run in enumerate(capacity.runs) if run.is_counted)
    yield Table("runs", ("cell:cells", "scheduled"), [(number, int(run.is_scheduled)) for number, run in counted])


Row = tuple[str | int, ...]

_FINDING = (
    *("rule:text", "category:text", "severity:text", "message:text", "job:jobs", "environment:environments"),
    *("team:text", "status:text", "file:files", "line", "column"),
)
ERROR = (
    *("rule:text", "category:text", "severity:text", "message:text", "file:files", "line", "column"),
    "environment:environments",
)


class FleetData(NamedTuple):
    """Everything that the fleet view shows."""

    fleet: Fleet
    findings: Sequence[FleetFinding]
    fixed: Sequence[FleetFinding]
    rules: Mapping[str, RuleDoc]
    capacity: Capacity
    pages: JobPages
    errors: tuple[Finding, ...] = ()
    """What cannot be read or rendered, so that it is not in the page, or broken there."""


def list_tables(data: FleetData) -> list[Table]:
    """List all tables."""
    fleet = data.fleet
    environments = {env: number for number, env in enumerate(fleet.environments)}
    specs = {file: number for number, file in enumerate(data.pages.specs)}
    jobs = [(*job[:3], int(job.is_job), job.file, job.line, specs.get(job.file, NONE)) for job in fleet.jobs]
    totals = [
        (environments[total.env], total.by, total.name, *list_amounts(total.after.amounts)) for total in fleet.totals
    ]
    names = sorted({each.finding.rule for each in (*data.findings, *data.fixed)})
    docs = [(name, data.rules[name]) for name in names if name in data.rules]
    rules = [(name, doc.category, doc.severity.value, doc.summary) for name, doc in docs]
    return [
        Table("environments", ("name:text",), [(env,) for env in fleet.environments]),
        Table("jobs", ("name:text", "sweep:text", "framework:text", "isJob", "file:files", "line", "spec:specs"), jobs),
        _list_cells(data, environments),
        Table("totals", (_ENVIRONMENT, "by:text", "name:text", "gpus", "cpu", "memory"), totals),
        Table("findings", _FINDING, [_list_finding(each, environments) for each in data.findings]),
        Table("fixed", _FINDING, [_list_finding(each, environments) for each in data.fixed]),
        Table("errors", ERROR, list_errors(data.errors, environments)),
        Table("rules", ("name:text", "category:text", "severity:text", "summary:text"), rules),
        *list_capacity(data.capacity, fleet),
        Table("launches", _LAUNCH, [(at, *row) for at, cell in enumerate(fleet.cells) for row in cell.launches]),
        Table("omitted", ("what:text", "shown", "total"), data.pages.omitted),
        Table("specs", ("file:files",), [(file,) for file in data.pages.specs], list(data.pages.specs.values())),
        Table(
            "manifests",
            ("cell:cells", "base:manifests"),
            [(each.cell, each.base) for each in data.pages.manifests],
            [each.changes for each in data.pages.manifests],
        ),
    ]


def _list_cells(data: FleetData, environments: Mapping[str, int]) -> Table:
    columns = (
        *("job:jobs", "environment:environments", "state:text", "reason:text", "kind:text", "namespace:text"),
        *("name:text", "queue:text", "team:text", "owner:text", "pods", "gpus", "cpu", "memory"),
        *("errors", "warnings", "infos", "decision:text", "deadline", "gpuSeconds", "cost", "manifest:manifests"),
    )
    counts = Counter((each.job, each.finding.env, each.finding.severity) for each in data.findings)
    # The decision about its first workload, if a job has several.
    decisions: dict[tuple[str, ...], str] = {}
    for state in data.capacity.queues:
        for answer in state.report.decision.answers:
            key = (state.report.environment, answer.job.kind, answer.job.namespace, answer.job.name)
            decisions.setdefault(key, answer.decision)
    manifests = {each.cell: number for number, each in enumerate(data.pages.manifests)}
    rows: list[Row] = []
    for number, (cell, run) in enumerate(zip(data.fleet.cells, data.capacity.runs, strict=True)):
        found = [sum(counts[cell.job, env, severity] for env in {cell.environment, ""}) for severity in Severity]
        decision = decisions.get((cell.environment, cell.kind, cell.namespace, cell.name), "")
        amounts = (cell.pods, *list_amounts(cell.resources.amounts), *found)
        longest = (run.deadline, run.gpu_seconds, run.cost, manifests.get(number, NONE))
        rows.append((cell.job, environments[cell.environment], *cell[2:10], *amounts, decision, *longest))
    return Table("cells", columns, rows)


def _list_finding(each: FleetFinding, environments: Mapping[str, int]) -> Row:
    finding = each.finding
    fault = (finding.rule, finding.category, finding.severity.value, finding.message)
    place = (each.job, environments.get(finding.env, NONE), each.team, each.status)
    return (*fault, *place, *finding.location[:3])


def list_errors(findings: Iterable[Finding], environments: Mapping[str, int]) -> list[Row]:
    """Return the rows of findings that no job is known for."""
    return [
        (
            each.rule,
            each.category,
            each.severity.value,
            each.message,
            *each.location[:3],
            environments.get(each.env, NONE),
        )
        for each in findings
    ]


def list_amounts(amounts: Sequence[int]) -> tuple[int, int, int]:
    """Return GPUs, thousandths of CPUs, and bytes."""
    gpus, cpu, memory = amounts
    return gpus, cpu, -(-memory // 1000)

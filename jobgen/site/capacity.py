"""Capacity: the queues of each environment, and the longest time and the highest cost of jobs with a deadline.

Git does not know how long jobs run. Only a deadline limits it; jobs without one are counted, and nothing else is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from jobgen.diff.snapshot import Snapshot
from jobgen.k8s.kueue import DOMAIN
from jobgen.k8s.nodes import get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import value_of
from jobgen.model.finding import Finding, Severity
from jobgen.queues.load import collect_environment, decide_environment
from jobgen.queues.report import EnvironmentReport
from jobgen.site.fleet import ACTIVE, Fleet, FleetCell

_MAX_TIME_LABEL = DOMAIN + "max-exec-time-seconds"
_DEADLINES = (("runPolicy", "activeDeadlineSeconds"), ("activeDeadlineSeconds",))
UNKNOWN = -1
"""A cost or a time that is not known."""


class Prices(NamedTuple):
    """What an hour of a GPU costs, in thousandths: by queue, else by environment, else in general."""

    currency: str
    default: int | None
    environments: Mapping[str, int]
    queues: Mapping[str, int]

    def find(self, cell: FleetCell) -> int | None:
        """Return the price for a job; None if there is none."""
        return self.queues.get(cell.queue, self.environments.get(cell.environment, self.default))


NO_PRICES = Prices("", None, {}, {})


class LongestRun(NamedTuple):
    """The most that one run of a job can take."""

    deadline: int = 0
    """In seconds; 0 if it has none."""
    gpu_seconds: int = UNKNOWN
    cost: int = UNKNOWN
    """In thousandths of the currency."""


class CostTotal(NamedTuple):
    """The most that the runs of all jobs with a deadline can take."""

    environment: str
    by: str
    name: str
    jobs: int
    """Active jobs with GPUs."""
    bounded: int
    """Those of them with a deadline."""
    gpu_seconds: int
    cost: int


class QueueState(NamedTuple):
    """The queues of an environment: the decision about its jobs, and the cohort of each queue and cohort."""

    report: EnvironmentReport
    cohorts: Mapping[tuple[str, str], str]
    """By kind and name."""


class Capacity(NamedTuple):
    """The queues of environments that have any, and the longest run of each cell."""

    queues: tuple[QueueState, ...]
    runs: tuple[LongestRun, ...]
    costs: tuple[CostTotal, ...]
    errors: tuple[tuple[str, str], ...]
    """Environments whose queues could not be read, and why."""


def build_capacity(snapshot: Snapshot, fleet: Fleet, prices: Prices = NO_PRICES) -> Capacity:
    """Decide about the jobs of each environment as `jobgen queue` does, and sum up deadlines."""
    queues: list[QueueState] = []
    errors: list[tuple[str, str]] = []
    for env in snapshot.environments:
        findings: list[Finding] = []
        objects = [each.object for each in snapshot.objects if each.env == env]
        cluster = snapshot.project.environment(env, []).cluster
        if not cluster.state and not any(each.get("kind") == "ClusterQueue" for each in objects):
            continue
        queued = collect_environment(objects, snapshot.project, cluster, findings)
        failed = [finding.message for finding in findings if finding.severity is Severity.ERROR]
        if failed:
            errors.append((env, failed[0]))
        elif queued.context.queues:
            cohorts = {("ClusterQueue", each.name): each.cohort for each in queued.context.queues.values()}
            for cohort in queued.context.cluster.list_objects("Cohort"):
                name, parent = (str(get_path(cohort, *path) or "") for path in (("metadata", "name"), _PARENT))
                cohorts["Cohort", name] = parent
            queues.append(QueueState(decide_environment(env, queued, lambda _: False), cohorts))
    runs = tuple(_find_longest_run(snapshot, cell, prices) for cell in fleet.cells)
    return Capacity(tuple(queues), runs, tuple(_sum_costs(fleet, runs, prices)), tuple(errors))


_PARENT = ("spec", "parentName")


def find_deadline(manifest: Manifest) -> int:
    """Return after how many seconds a job is stopped at the latest; 0 if it has no deadline."""
    found = [get_path(manifest.spec, *path) for path in _DEADLINES]
    seconds = [value_of(value) for value in found]
    label = value_of(manifest.labels.get(_MAX_TIME_LABEL))
    if isinstance(label, str) and label.isascii() and label.isdigit():
        seconds.append(int(label))
    return min((value for value in seconds if type(value) is int and value > 0), default=0)


def _find_longest_run(snapshot: Snapshot, cell: FleetCell, prices: Prices) -> LongestRun:
    deadline = find_deadline(snapshot.manifest(cell.objects[0])) if cell.objects else 0
    if not deadline:
        return LongestRun()
    used, price = deadline * cell.resources.gpus, prices.find(cell)
    return LongestRun(deadline, used, UNKNOWN if price is None else -(-used * price // 3600))


def _sum_costs(fleet: Fleet, runs: Iterable[LongestRun], prices: Prices) -> Iterable[CostTotal]:
    sums: dict[tuple[str, str, str], list[int]] = {}
    for cell, run in zip(fleet.cells, runs, strict=True):
        if cell.state != ACTIVE or not cell.resources.gpus:
            continue
        bounded = run.deadline > 0
        amounts = (1, int(bounded), max(run.gpu_seconds, 0), max(run.cost, 0))
        for by, name in (("environment", cell.environment), ("team", cell.team), ("queue", cell.queue)):
            if name or by == "environment":
                known = sums.setdefault((cell.environment, by, name), [0, 0, 0, 0])
                sums[cell.environment, by, name] = [one + other for one, other in zip(known, amounts, strict=True)]
    has_prices = prices != NO_PRICES
    for (env, by, name), (jobs, limited, seconds, cost) in sums.items():
        yield CostTotal(env, by, name, jobs, limited, seconds, cost if has_prices else UNKNOWN)

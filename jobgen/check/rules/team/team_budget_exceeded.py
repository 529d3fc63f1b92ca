"""Budgets of teams."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Fact, FactViolation, rule
from jobgen.check.team_limits import measure_use
from jobgen.k8s.objects import Manifest
from jobgen.k8s.resources import sum_gpus
from jobgen.spec.overlay import Cluster
from jobgen.spec.teams import count_units

_MAX_RELATED = 5


def collect(manifest: Manifest) -> Iterator[Fact]:
    """Yield what a job requests of each limit of its team's budget."""
    team = manifest.team
    if team is None:
        return
    for name, limit, amount, shared in measure_use(manifest, team.budget):
        if amount or shared:
            yield Fact((team.team, name, limit, amount, manifest.name, shared), ("metadata", "name"))


@rule("fleet", ERROR, collect=collect)
def team_budget_exceeded(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """A team's jobs that together exceed its budget.

    A team's file declares its `budget`: GPUs, devices of some types, jobs and pods, also for single environments.
    All jobs in the team's folders count, except suspended jobs that no queue starts.

    Suspend, shrink or remove some of the jobs, or raise the budget in the team's file.
    """
    by_line: dict[tuple[str, str], list[Fact]] = {}
    for fact in facts:
        by_line.setdefault(fact.value[:2], []).append(fact)
    for (team, name), jobs in by_line.items():
        limit = jobs[0].value[2]
        total = sum_gpus((fact.value[3], fact.value[5]) for fact in jobs)
        if total > limit:
            # Reported once, on the largest job.
            largest, *others = sorted(jobs, key=lambda fact: (-fact.value[3], fact.value[4]))
            named = others[:_MAX_RELATED]
            related = tuple((fact, f"`{fact.value[4]}`: {count_units(fact.value[3], name)}") for fact in named)
            what = f"{'has' if name == 'jobs' else 'requests'} {count_units(total, name)}"
            message = f"team `{team}` {what}, above its budget of {limit}; suspend, shrink or remove some of its jobs"
            yield FactViolation(largest, message, related, evidence=(team, name))

"""GPU budgets of namespaces and teams."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Fact, FactViolation, rule
from jobgen.k8s.kueue import is_suspended
from jobgen.k8s.objects import Manifest, as_text
from jobgen.model.finding import pluralize
from jobgen.spec.overlay import Cluster

_MAX_RELATED = 5


def collect(manifest: Manifest) -> Iterator[Fact]:
    """Yield the GPUs that a job takes from the budget of its namespace and of its team."""
    budgets = manifest.cluster.budgets
    if not budgets or is_suspended(manifest):
        return
    owners = {"namespaces": manifest.namespace, "teams": as_text(manifest.labels.get("team"))}
    for group, name in owners.items():
        if name in budgets.get(group, ()) and manifest.gpus:
            yield Fact(((group, name), manifest.gpus, manifest.name), ("metadata", "name"))


@rule("fleet", WARNING, collect=collect)
def gpu_budget_exceeded(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """Jobs of a namespace or team that together request more GPUs than its budget allows.

    The overlay declares the budgets under `cluster.budgets`: for namespaces, and for teams by the label `team`. Above
    the budget some jobs wait, or other jobs get no GPUs. Suspended jobs do not count.

    Suspend or shrink some of the jobs, or raise the budget.
    """
    by_budget: dict[tuple[str, str], list[Fact]] = {}
    for fact in facts:
        by_budget.setdefault(fact.value[0], []).append(fact)
    for (group, name), jobs in by_budget.items():
        budget = cluster.budgets[group][name].get("gpus")
        total = sum(fact.value[1] for fact in jobs)
        if budget is not None and total > budget:
            # Reported once, on the largest job.
            largest, *others = sorted(jobs, key=lambda fact: (-fact.value[1], fact.value[2]))
            related = tuple((fact, f"requests {pluralize(fact.value[1], 'GPU')}") for fact in others[:_MAX_RELATED])
            share = f" ({largest.value[1]} of them for this job)" if others else ""
            owner = f"{group.removesuffix('s')} `{name}`"
            message = f"the jobs of {owner} request {pluralize(total, 'GPU')}{share}, above its budget of {budget}"
            yield FactViolation(largest, f"{message}; suspend or shrink some of them", related)

"""More GPUs than a namespace or a team may hold."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Fact, Violation, rule
from jobgen.k8s.kueue import is_suspended
from jobgen.k8s.objects import Manifest, as_text
from jobgen.spec.overlay import Cluster

_TOLD = 5


def collect(manifest: Manifest) -> Iterator[Fact]:
    """The GPUs that a job takes from its namespace's budget, and from its team's."""
    budgets = manifest.cluster.budgets
    if not budgets or is_suspended(manifest):
        return
    whose = {"namespaces": manifest.namespace, "teams": as_text(manifest.labels.get("team"))}
    for group, name in whose.items():
        if name in budgets.get(group, ()) and manifest.gpus:
            yield Fact(((group, name), manifest.gpus, manifest.name), ("metadata", "name"))


@rule("fleet", WARNING, collect=collect)
def gpu_budget_exceeded(rows: list[Fact], cluster: Cluster) -> Iterator[Violation]:
    """Jobs of a namespace or a team that together take more GPUs than it may hold.

    The overlay says under `cluster.budgets` what namespaces, and teams by the label `team`, may hold. Beyond it some
    jobs wait, or others starve. Suspend or shrink some of the jobs, or raise the budget.
    """
    by_budget: dict[tuple[str, str], list[Fact]] = {}
    for row in rows:
        by_budget.setdefault(row.fact[0], []).append(row)
    for (group, name), jobs in by_budget.items():
        most = cluster.budgets[group][name].get("gpus")
        total = sum(row.fact[1] for row in jobs)
        if most is not None and total > most:
            # Told once, on the largest job.
            largest, *others = sorted(jobs, key=lambda row: (-row.fact[1], row.fact[2]))
            related = tuple((row, f"takes {row.fact[1]} more") for row in others[:_TOLD])
            share = f"; this one takes {largest.fact[1]}" if others else ""
            whose = f"{group.removesuffix('s')} `{name}`"
            yield Violation(largest, f"the jobs of {whose} take {total} GPUs, and may take {most}{share}", related)

"""A sweep that takes more GPUs than it may."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Fact, Violation, rule
from jobgen.k8s.kueue import is_suspended
from jobgen.k8s.objects import Manifest, as_text
from jobgen.spec.overlay import Cluster
from jobgen.spec.sweeps import GPUS, SWEEP


def collect(manifest: Manifest) -> Iterator[Fact]:
    """The GPUs of a member, and what its sweep may take at most by its own word."""
    sweep = as_text(manifest.labels.get(SWEEP))
    if sweep and not is_suspended(manifest):
        own = as_text(manifest.annotations.get(GPUS))
        way = ("metadata", "annotations", GPUS) if own else ("metadata", "name")
        yield Fact(((manifest.namespace, sweep), manifest.gpus, int(own) if own.isdecimal() else None), way)


@rule("fleet", ERROR, collect=collect)
def sweep_too_large(rows: list[Fact], cluster: Cluster) -> Iterator[Violation]:
    """A sweep whose members together take more GPUs than its `limit.gpus`, or than `cluster.budgets.sweeps`, allows.

    A value more in a matrix is quickly written, and may be a hundred jobs more. Take values out, exclude combinations,
    or raise the limit.
    """
    sweeps: dict[tuple[str, str], list[Fact]] = {}
    for row in rows:
        sweeps.setdefault(row.fact[0], []).append(row)
    allowed = cluster.budgets.get("sweeps", {}).get("gpus")
    for (_, sweep), members in sweeps.items():
        total, first = sum(row.fact[1] for row in members), members[0]
        limits = [limit for limit in (first.fact[2], allowed) if limit is not None]
        if limits and total > min(limits):
            message = f"the {len(members)} jobs of sweep `{sweep}` take {total} GPUs, and may take {min(limits)}"
            yield Violation(first, message)

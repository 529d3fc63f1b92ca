"""GPU limits of sweeps."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Fact, FactViolation, rule
from jobgen.k8s.kueue import is_suspended
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Manifest
from jobgen.k8s.resources import sum_gpus
from jobgen.model.finding import pluralize
from jobgen.spec.overlay import Cluster
from jobgen.spec.sweeps import GPUS, SWEEP


def collect(manifest: Manifest) -> Iterator[Fact]:
    """Yield the GPUs of a sweep member, and the limit that the sweep itself declares."""
    sweep = as_text(manifest.labels.get(SWEEP))
    if sweep and not is_suspended(manifest):
        own = as_text(manifest.annotations.get(GPUS))
        way = ("metadata", "annotations", GPUS) if own else ("metadata", "name")
        shared = tuple(tuple(each) for each in manifest.shared_devices)
        limit = int(own) if own.isdecimal() else None
        yield Fact(((manifest.namespace, sweep), manifest.gpus, limit, shared), way)


@rule("fleet", ERROR, collect=collect)
def sweep_too_large(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """A sweep whose members together request more GPUs than `limit.gpus` or `cluster.budgets.sweeps` allows.

    One more value in a matrix is quickly written and can add a hundred jobs. The limit stops that from reaching the
    cluster unnoticed. Suspended jobs do not count.

    Remove values, exclude combinations, or raise the limit.
    """
    sweeps: dict[tuple[str, str], list[Fact]] = {}
    for fact in facts:
        sweeps.setdefault(fact.value[0], []).append(fact)
    allowed = cluster.budgets.get("sweeps", {}).get("gpus")
    for (_, sweep), members in sweeps.items():
        total, first = sum_gpus((fact.value[1], fact.value[3]) for fact in members), members[0]
        limits = [limit for limit in (first.value[2], allowed) if limit is not None]
        if limits and total > min(limits):
            message = f"sweep `{sweep}` ({pluralize(len(members), 'job')}) requests {pluralize(total, 'GPU')}"
            yield FactViolation(first, f"{message}, above its limit of {min(limits)}; remove values or raise the limit")

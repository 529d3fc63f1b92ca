"""More than an environment, a queue or a sweep may have."""

from collections.abc import Iterator, Sequence
from functools import partial

from jobgen.check.rules import ERROR, WARNING, Fact, FactViolation, Violation, rule
from jobgen.k8s.kueue import can_be_queued, find_queue, get_queue, is_suspended
from jobgen.k8s.nodes import as_text
from jobgen.k8s.object_paths import path_to_role
from jobgen.k8s.objects import Manifest
from jobgen.k8s.resources import count_gpus, find_shared_devices, sum_gpus
from jobgen.model.data import Plain
from jobgen.model.finding import Problem, pluralize
from jobgen.model.sentence import Sentence
from jobgen.spec.overlay import Cluster
from jobgen.spec.replicas import find_count
from jobgen.spec.sweeps import GPUS, SWEEP

_MAX_RELATED = 5
_MAX_NAMED = 2


def collect_gpus(manifest: Manifest) -> Iterator[Fact]:
    """Yield the GPUs that a job takes from the budget of its namespace and of its team."""
    budgets = manifest.cluster.budgets
    if not budgets or is_suspended(manifest):
        return
    owners = {"namespaces": manifest.namespace, "teams": as_text(manifest.labels.get("team"))}
    for group, name in owners.items():
        if name in budgets.get(group, ()) and (gpus := count_gpus(manifest)):
            shared = tuple(tuple(each) for each in find_shared_devices(manifest))
            counts = tuple(_list_counts(manifest))
            yield Fact(((group, name), gpus, manifest.name, counts, shared), ("metadata", "name"))


def _list_counts(manifest: Manifest) -> Iterator[tuple[tuple[str | int, ...], int]]:
    """The paths of the numbers of replicas of roles with GPUs. An overlay may have set them."""
    layout = manifest.kind.replicas if manifest.kind and manifest.kind.shape != "one" else None
    for role in manifest.roles if layout else ():
        if layout and role.gpus and find_count(role.replica_spec, layout) is not None:
            yield (*path_to_role(role), *map(str, layout.counts[0])), role.count


@rule("fleet", WARNING, collect=collect_gpus)
def gpu_budget_exceeded(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """Jobs of a namespace or team that together request more GPUs than its budget allows.

    The overlay declares the budgets under `cluster.budgets`: for namespaces, and for teams by the label `team`. Above
    the budget some jobs wait, or other jobs get no GPUs. Suspended jobs do not count. A ResourceClaim that several jobs
    share counts once.

    Suspend or shrink some of the jobs, or raise the budget.

    When to turn it off: for jobs that are known never to run together, set `suspend` on the ones that wait, or
    raise the budget in the overlay for this time.
    """
    by_budget: dict[tuple[str, str], list[Fact]] = {}
    for fact in facts:
        by_budget.setdefault(fact.value[0], []).append(fact)
    for (group, name), jobs in by_budget.items():
        budget = cluster.budgets[group][name].get("gpus")
        total = sum_gpus((fact.value[1], fact.value[4]) for fact in jobs)
        if budget is not None and total > budget:
            # Reported once, on the largest job.
            largest, *others = sorted(jobs, key=lambda fact: (-fact.value[1], fact.value[2]))
            related = tuple(
                (fact, f"`{fact.value[2]}` requests {pluralize(fact.value[1], 'GPU')}")
                for fact in others[:_MAX_RELATED]
            )
            # A job may be inside another object.
            root = largest.path[:-2]
            related += tuple(
                (largest._replace(path=(*root, *path)), f"{count} replicas of `{largest.value[2]}`")
                for path, count in largest.value[3]
            )
            jobs_of = ", ".join(f"`{fact.value[2]}` {fact.value[1]}" for fact in (largest, *others[:_MAX_NAMED]))
            more = f" and {len(others) - _MAX_NAMED} more" if len(others) > _MAX_NAMED else ""
            owner = f"{group.removesuffix('s')} `{name}`"
            message = Sentence(
                "the jobs of {} request {} ({}{}), above its budget of {}",
                owner,
                pluralize(total, "GPU"),
                jobs_of,
                more,
                budget,
            )
            yield FactViolation(
                largest,
                Sentence("{}; suspend or shrink some of them", message),
                related,
                evidence=(name,),
                is_amount=True,
            )


@rule("manifest", ERROR)
def queue_quota_exceeded(manifest: Manifest) -> Iterator[Violation]:
    """A job that requests more GPUs than its queue can ever provide.

    The job waits in the queue forever, without an error.

    Request fewer GPUs, use a larger queue, or correct the quota that the overlay declares under `cluster.queues`.

    When to turn it off: correct `cluster.queues` if the queue has grown. For a job that is meant to wait until it
    does, accept it by name with an end date.
    """
    queues = manifest.cluster.queues
    if not queues or not can_be_queued(manifest):
        return
    queue: Plain = get_queue(manifest)
    quota = queues.get(as_text(queue), {}).get("gpus")
    gpus = count_gpus(manifest) if quota is not None else 0
    if quota is not None and gpus > quota:
        # Imported late: most jobs fit.
        from jobgen.check.raised_amounts import list_gpu_factors

        message = Sentence(
            "the job requests {}, but queue `{}` has only {}", pluralize(gpus, "GPU"), as_text(queue), quota
        )
        factors = list_gpu_factors(manifest)
        # Compared values, without a text, keep the finding in the job if its queue is a default.
        asked = tuple((place, "") for place, _ in factors)
        advice = "so it is never admitted; request fewer or use a larger queue"
        finish = partial(_name_raised, [*(text for _, text in factors), f"queue `{as_text(queue)}`"])
        yield Violation(find_queue(manifest), Sentence("{}, {}", message, advice), asked, finish=finish)


def _name_raised(texts: Sequence[str], problem: Problem, _: bool) -> Problem:
    """Return a problem at the factor that a patch raised, if one did, with the other factors."""
    from jobgen.check.raised_amounts import find_raised, relate_factors

    nodes = [node for node, _ in problem.related]
    raised = find_raised(nodes)
    if raised is None:
        return problem
    factors = zip((*nodes, problem.node), texts, strict=True)
    return problem._replace(at=raised, related=relate_factors(raised, factors))


def collect_sweeps(manifest: Manifest) -> Iterator[Fact]:
    """Yield the GPUs of a sweep member, and the limit that the sweep itself declares."""
    sweep = as_text(manifest.labels.get(SWEEP))
    if sweep and not is_suspended(manifest):
        own = as_text(manifest.annotations.get(GPUS))
        way = ("metadata", "annotations", GPUS) if own else ("metadata", "name")
        shared = tuple(tuple(each) for each in manifest.shared_devices)
        limit = int(own) if own.isdecimal() else None
        yield Fact(((manifest.namespace, sweep), manifest.gpus, limit, shared), way)


@rule("fleet", ERROR, collect=collect_sweeps)
def sweep_too_large(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """A sweep whose members together request more GPUs than `limit.gpus` or `cluster.budgets.sweeps` allows.

    One more value in a matrix is quickly written and can add a hundred jobs. The limit stops that from reaching the
    cluster unnoticed. Suspended jobs do not count.

    Remove values, exclude combinations, or raise the limit.

    When to turn it off: the limit is yours: raise `limit.gpus` in the job for a sweep that was approved, so that
    the number is in the history.
    """
    sweeps: dict[tuple[str, str], list[Fact]] = {}
    for fact in facts:
        sweeps.setdefault(fact.value[0], []).append(fact)
    allowed = cluster.budgets.get("sweeps", {}).get("gpus")
    for (_, sweep), members in sweeps.items():
        total, first = sum_gpus((fact.value[1], fact.value[3]) for fact in members), members[0]
        limits = [limit for limit in (first.value[2], allowed) if limit is not None]
        if limits and total > min(limits):
            message = Sentence(
                "sweep `{}` ({}) requests {}", sweep, pluralize(len(members), "job"), pluralize(total, "GPU")
            )
            message += f", above its limit of {min(limits)}; remove values or raise the limit"
            yield FactViolation(first, message, is_amount=True)

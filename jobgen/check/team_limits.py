"""Compare what an object uses with what its team may use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jobgen.check.rules import Violation
from jobgen.k8s.kueue import QUEUE_LABEL, is_managed_by_kueue, stays_suspended
from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.object_paths import is_app_wrapper, list_wrapped_objects
from jobgen.k8s.objects import Manifest, Pod, replace_object
from jobgen.k8s.resources import list_amounts
from jobgen.k8s.team_uses import NAMESPACES
from jobgen.k8s.workloads import REPLICA_TYPES, find_pods
from jobgen.model.data import Plain
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.sentence import Sentence
from jobgen.spec.kinds import parse_version
from jobgen.spec.teams import Budget, DeviceLimit, TeamScope

_MAX_NAMED = 4


def find_foreign_uses(manifest: Manifest, what: str, noun: str, *, always: tuple[str, ...] = ()) -> Iterator[Violation]:
    """Report the names of one list of a team that an object uses, and that its team may not use."""
    team = manifest.team
    if team is None:
        return
    for use in manifest.uses:
        if use.what == what and use.value not in always and not team.allows(what, use.value):
            owner = team.find_owner(what, use.value)
            whose = f"belongs to team `{owner}`" if owner else f"is not allowed for team `{team.team}`"
            yield Violation(
                use.place, Sentence("{} `{}` {}; {}", noun, use.value, whose, advise(team, what)), evidence=(use.value,)
            )


def reaches_others(team: TeamScope) -> bool:
    """Return True if namespaces that a team may not use are among all namespaces."""
    patterns = team.allowed.get(NAMESPACES)
    if patterns is not None:
        return "*" not in patterns
    others = (allowed for name, allowed in team.claims.allowed.items() if name != team.team)
    return any(pattern.strip("*") for allowed in others for pattern in allowed.get(NAMESPACES, ()))


def advise(team: TeamScope, what: str) -> str:
    """Say what a team may use instead."""
    allowed = team.allowed.get(what)
    if allowed is None:
        return "use another one"
    if not allowed:
        return "remove it"
    listed = ", ".join(f"`{pattern}`" for pattern in allowed[:_MAX_NAMED])
    more = f" and {len(allowed) - _MAX_NAMED} more" if len(allowed) > _MAX_NAMED else ""
    return f"team `{team.team}` can use {listed}{more}"


def requires_queue(team: TeamScope) -> bool:
    """Return True if a team lists queues, so that its accelerators must wait in one of them."""
    return any(pattern.strip("*") for pattern in team.allowed.get("queues", ()))


def find_accelerated_pods(manifest: Manifest) -> Iterator[tuple[Manifest, list[Pod]]]:
    """Yield an object with its pods that will hold accelerators, and each object with such pods that it creates.

    The pods of the objects inside an AppWrapper wait in its own queue.
    """
    manifest = manifest.judged
    if stays_suspended(manifest) or (manifest.kind and manifest.kind.completed_by):
        return
    # Imported late: most repositories have no teams.
    from jobgen.check.created_pods import find_created_pods

    owners = {id(manifest): (manifest, list[Pod]())}
    for inner in _list_inside(manifest) if is_app_wrapper(manifest.object) else (manifest,):
        created = find_created_pods(inner)
        described = find_pods(
            inner.object, REPLICA_TYPES.get((inner.group, inner.kind_name), ()) if inner is not manifest else ()
        )
        others = [(Pod(as_mapping(each.template), created.manifest), each.total) for each in described]
        for pod, count in (*created.pods, *others):
            if count and any(pod.devices.values()):
                owner = manifest if pod.manifest is created.manifest else pod.manifest
                owners.setdefault(id(owner), (owner, []))[1].append(pod)
    yield from ((owner, pods) for owner, pods in owners.values() if pods)


def _list_inside(manifest: Manifest) -> Iterator[Manifest]:
    """Yield the objects inside an AppWrapper, with pods where their kinds have them."""
    for _, each in list_wrapped_objects(manifest.object):
        yield Manifest(each, None, manifest.cluster, manifest.read_catalog, manifest.team, manifest.find_config)


class BudgetUse(NamedTuple):
    """What a job requests of a line of a budget."""

    name: str
    limit: int
    amount: int
    shared: tuple[tuple[object, ...], ...]
    """The devices of claims that jobs may share."""
    base: int = 0
    """What it requests without the replicas that another object may set."""
    each: int = 0
    """What one of these replicas requests."""
    advice: str = ""
    """What to write so that the amount has a limit; empty if it has one."""


class BudgetLine(NamedTuple):
    """One limit of a budget."""

    name: str
    limit: int
    device: DeviceLimit | None = None


def list_lines(budget: Budget) -> Iterator[BudgetLine]:
    """Yield the limits of a budget."""
    for name in ("gpus", "jobs", "replicas"):
        limit = getattr(budget, name)
        if limit is not None:
            yield BudgetLine(name, limit)
    for device in budget.devices:
        labels = "".join(f", {key}={value}" for key, value in device.labels)
        yield BudgetLine(f"{device.resource}{labels}", device.max, device)


def measure_use(manifest: Manifest, budget: Budget) -> Iterator[BudgetUse]:
    """Yield what an object requests of each limit; nothing if it runs no pods, or stays suspended."""
    # Imported late: most repositories have no teams.
    from jobgen.check.scaling import run_template, set_replicas

    template = run_template(manifest)
    if template is not None:
        # It requests nothing by itself, and all of it for each use.
        for use in _measure(replace_object(manifest, template), budget):
            yield use._replace(amount=0, shared=(), each=use.amount)
        return
    uses = list(_measure(manifest, budget))
    without = set_replicas(manifest, 0)
    single = set_replicas(manifest, 1)
    if without is None or single is None or not uses:
        yield from uses
        return
    base, one = (
        {use.name: use.amount for use in _measure(replace_object(manifest, obj), budget)} for obj in (without, single)
    )
    for use in uses:
        least = base.get(use.name, 0)
        yield use if use.name == "jobs" else use._replace(base=least, each=max(one.get(use.name, 0) - least, 0))


def admit_by_default(manifest: Manifest) -> Manifest | None:
    """Return a suspended job as Kueue starts it if its namespace has a LocalQueue `default`; None if it does not."""
    version = manifest.cluster.find_version("kueue")
    since = _DEFAULT_QUEUE_SINCE
    if (
        not stays_suspended(manifest)
        or not is_managed_by_kueue(manifest)
        or (version and parse_version(version) < since)
    ):
        return None
    labels = {**manifest.labels, QUEUE_LABEL: DEFAULT_QUEUE}
    return replace_object(manifest, {**manifest.object, "metadata": {**manifest.metadata, "labels": labels}})


_DEFAULT_QUEUE_SINCE = (0, 12)
"""The first version of Kueue that does so by default."""
DEFAULT_QUEUE = "default"


def _measure(manifest: Manifest, budget: Budget) -> Iterator[BudgetUse]:
    from jobgen.check.created_pods import find_created_pods

    created = find_created_pods(manifest)
    manifest, pods, hidden, runs = created.manifest, created.pods, created.hidden, created.runs
    if not pods:
        return
    # Of these the object has as many, however many pods share them.
    shared_devices = manifest.list_shared_devices(pod for pod, count in created.described if count)
    shared = tuple(map(tuple, shared_devices))
    for line in list_lines(budget):
        if line.device is not None:
            amount = _count_devices(manifest, line.device, hidden) * runs
            yield BudgetUse(line.name, line.limit, amount, (), advice=created.advice)
        elif line.name == "gpus":
            gpus = sum(count * pod.gpus for pod, count in (*created.described, *hidden) if count)
            amount = gpus * runs + sum(each.gpus for each in shared_devices)
            yield BudgetUse(line.name, line.limit, amount, shared, advice=created.advice)
        else:
            count = 1 if line.name == "jobs" else sum(count for _, count in pods)
            yield BudgetUse(line.name, line.limit, count, (), advice="" if line.name == "jobs" else created.advice)


def _count_devices(manifest: Manifest, limit: DeviceLimit, hidden: Sequence[tuple[Pod, int]]) -> int:
    wanted = dict(limit.labels)
    amounts = (each for each in list_amounts(manifest) if each.resource == limit.resource)
    found = int(sum(each.amount for each in amounts if _selects(each.pod.spec, wanted)))
    return found + sum(
        count * pod.devices.get(limit.resource, 0) for pod, count in hidden if _selects(pod.spec, wanted)
    )


def _selects(spec: Mapping[str, Plain], wanted: Mapping[str, str]) -> bool:
    """Return True if a pod selects nodes with these labels, by its selector or by what its affinity requires."""
    selector = as_mapping(spec.get("nodeSelector"))
    left = {key: value for key, value in wanted.items() if as_text(selector.get(key)) != value}
    if not left or any(key in selector for key in left):
        return not left
    required = get_path(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    # A pod runs on the nodes of any of the terms.
    for term in as_list(as_mapping(required).get("nodeSelectorTerms")):
        expressions = [as_mapping(each) for each in as_list(as_mapping(term).get("matchExpressions"))]
        if all(_permits(expressions, key, value) for key, value in left.items()):
            return True
    return False


def _permits(expressions: Sequence[Mapping[str, Plain]], key: str, value: str) -> bool:
    """Return True if expressions are about a label, and permit a value of it."""
    own = [each for each in expressions if as_text(each.get("key")) == key]
    for each in own:
        is_listed = value in map(as_text, as_list(each.get("values")))
        if not {"Exists": True, "In": is_listed, "NotIn": not is_listed}.get(as_text(each.get("operator")), False):
            return False
    return bool(own)

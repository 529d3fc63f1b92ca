"""Flavor assignment: which flavor each pod set of a workload gets for each resource, and whether that fits now."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

from jobgen.kueue.amounts import add, subtract, to_quantity
from jobgen.kueue.match import find_untolerated_taint, matches_affinity
from jobgen.kueue.objects import ClusterQueue, Flavor, Fungibility, ResourceGroup
from jobgen.kueue.quota import FlavorResource, QuotaNode, Usage, find_borrowing_level
from jobgen.kueue.requests import Amounts, multiply, sum_amounts
from jobgen.kueue.topology.request import Placement
from jobgen.kueue.workloads import PodSet

PODS = "pods"


class Mode(IntEnum):
    """How well a flavor suits, the worst first."""

    NO_FIT = 0
    NO_CANDIDATES = 1
    PREEMPT = 2
    RECLAIM = 3
    FIT = 4


NO_MATCHING_FLAVOR, EXCEEDS_MAX_QUOTA = "NoMatchingFlavor", "ExceedsMaxQuota"
WAITING_FOR_QUOTA, TOPOLOGY_FAILED = "WaitingForQuota", "TopologyPlacementFailed"
_SEVERITY = (TOPOLOGY_FAILED, WAITING_FOR_QUOTA, EXCEEDS_MAX_QUOTA, NO_MATCHING_FLAVOR)

Oracle = Callable[[FlavorResource, int], tuple[Mode, int]]
"""Simulates preemption for one resource in one flavor: what is possible, and the borrowing level afterwards."""


class Attempt(NamedTuple):
    """A flavor that was tried for the resources of a group."""

    flavor: str
    mode: Mode
    level: int
    reasons: tuple[str, ...] = ()
    no_fit: str = ""
    modes: Mapping[str, Mode] = {}


class Choice(NamedTuple):
    """The flavor of one resource."""

    flavor: str
    mode: Mode
    level: int
    tried: int
    """The index of the last flavor that was tried; -1 if none is left to try."""


@dataclass(frozen=True, slots=True)
class PodSetAssignment:
    """The flavors of one pod set."""

    name: str
    count: int
    requests: Amounts
    flavors: Mapping[str, Choice]
    reasons: tuple[str, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    error: str = ""
    placement: Placement | None = None
    delayed: str = ""
    """`Pending` or `Ready` if its pods are placed after admission checks."""

    @property
    def mode(self) -> Mode:
        """The worst mode of its resources."""
        if self.error:
            return Mode.NO_FIT
        if not self.reasons and not self.flavors:
            return Mode.FIT
        if not self.flavors and self.requests:
            return Mode.NO_FIT
        return min((choice.mode for choice in self.flavors.values()), default=Mode.FIT)


class Assignment(NamedTuple):
    """The flavors of a workload."""

    pod_sets: tuple[PodSetAssignment, ...]
    usage: Usage
    level: int = 0
    no_fit: str = ""

    @property
    def mode(self) -> Mode:
        """The worst mode of its pod sets."""
        return min((each.mode for each in self.pod_sets), default=Mode.FIT)

    @property
    def message(self) -> str:
        """Why it does not fit, as Kueue says it."""
        parts = [
            f"couldn't assign flavors to pod set {each.name}: {each.error or ', '.join(sorted(each.reasons))}"
            for each in self.pod_sets
            if each.reasons or each.error
        ]
        return "; ".join(parts)


class QueueFacts(NamedTuple):
    """What flavor assignment needs to know of a queue."""

    queue: ClusterQueue
    node: QuotaNode
    flavors: Mapping[str, Flavor]
    topologies: Mapping[str, Sequence[str]]
    """Levels of topologies by name."""
    oracle: Oracle
    is_fair: bool = False
    allowed: frozenset[str] | None = None
    """The flavors that the workload may have; None if all."""
    replaced: Mapping[str, Mapping[str, str]] = {}
    """Flavors of the workload that this one replaces, by pod set and resource."""
    replaced_usage: Mapping[FlavorResource, int] = {}
    progress: Mapping[tuple[str, str], int] = {}
    """The last flavor that was tried in an earlier cycle, by pod set and resource."""
    ignores_undeclared: bool = False
    nominated: Mapping[str, Mapping[str, str]] | None = None
    """The only flavors to try, by pod set and resource: those of an earlier try in the same cycle."""
    place: Callable[[Assignment], Assignment] | None = None
    """Places the pod sets of an assignment in the topologies of its flavors."""

    @property
    def is_topology_only(self) -> bool:
        """Whether all flavors of the queue have a topology."""
        names = [name for group in self.queue.groups for name in group.flavors]
        return all(name in self.flavors and self.flavors[name].topology for name in names)


def assign_flavors(pod_sets: Sequence[PodSet], facts: QueueFacts, counts: Sequence[int] | None = None) -> Assignment:
    """Assign flavors to the pod sets of a workload; with `counts`, to fewer pods of each."""
    sizes = [pod_set.count for pod_set in pod_sets] if counts is None else list(counts)
    done: dict[int, PodSetAssignment] = {}
    usage: Usage = {}
    level = 0
    no_fit: list[str] = []
    for members in _group_pod_sets(pod_sets):
        chosen = [(pod_sets[index], sizes[index]) for index in members]
        result = _assign_group(chosen, usage, facts)
        done.update(zip(members, result.assignments, strict=True))
        level = max(level, result.level)
        no_fit += result.no_fit
        for pair, amount in result.usage.items():
            usage[pair] = add(usage.get(pair, 0), amount)
        if any(each.mode is Mode.NO_FIT for each in result.assignments):
            break
    ordered = tuple(done[index] for index in sorted(done))
    reason = max(no_fit, key=_SEVERITY.index, default="")
    assignment = Assignment(ordered, usage, level, reason)
    return assignment if facts.place is None else facts.place(assignment)


def _group_pod_sets(pod_sets: Sequence[PodSet]) -> list[list[int]]:
    """The indexes of pod sets that get their flavors together."""
    groups: dict[str, list[int]] = {}
    for index, pod_set in enumerate(pod_sets):
        name = pod_set.topology.group if pod_set.topology else ""
        groups.setdefault(name or f"\0{index}", []).append(index)
    return list(groups.values())


class _GroupResult(NamedTuple):
    assignments: list[PodSetAssignment]
    usage: Usage
    level: int
    no_fit: list[str]


def _assign_group(members: list[tuple[PodSet, int]], used: Usage, facts: QueueFacts) -> _GroupResult:
    totals = [_list_requests(pod_set, count, facts) for pod_set, count in members]
    requests: Amounts = {}
    for total in totals:
        requests = sum_amounts(requests, total)
    chosen: dict[str, Choice] = {}
    attempts: list[Attempt] = []
    reasons: list[str] = []
    level, no_fit = 0, list[str]()
    for resource in sorted(requests, key=_hash_name):
        if resource in chosen:
            continue
        group = facts.queue.find_group(resource)
        if group is None:
            if not requests[resource] or facts.ignores_undeclared:
                continue
            reasons, chosen = [*reasons, f"resource {resource} unavailable in ClusterQueue"], {}
            no_fit.append(NO_MATCHING_FLAVOR)
            break
        found, tried, skipped = _find_flavor(resource, group, requests, members, used, facts)
        attempts += tried
        if not found or any(choice.mode is not Mode.FIT for choice in found.values()):
            reasons += skipped
            reasons += (reason for attempt in tried for reason in attempt.reasons)
        if not found:
            no_fit.append(min((attempt.no_fit for attempt in tried if attempt.no_fit), key=_SEVERITY.index, default=""))
            chosen = {}
            break
        chosen.update(found)
        level = max(level, *(choice.level for choice in found.values()))
    return _GroupResult(
        [
            _build_assignment(pod_set, count, total, chosen, reasons, attempts, facts)
            for (pod_set, count), total in zip(members, totals, strict=True)
        ],
        _sum_usage(requests, chosen),
        level,
        [reason for reason in no_fit if reason],
    )


def _list_requests(pod_set: PodSet, count: int, facts: QueueFacts) -> Amounts:
    total = multiply(pod_set.requests, count)
    if any(PODS in group.resources for group in facts.queue.groups):
        total[PODS] = count
    return total


def _build_assignment(
    pod_set: PodSet,
    count: int,
    total: Amounts,
    chosen: Mapping[str, Choice],
    reasons: Sequence[str],
    attempts: Sequence[Attempt],
    facts: QueueFacts,
) -> PodSetAssignment:
    own = {resource: choice for resource, choice in chosen.items() if resource in total}
    if not total and pod_set.topology is not None and pod_set.topology.group:
        # A leader that requests nothing goes where its workers go.
        own = {resource: choice for resource, choice in chosen.items() if facts.flavors[choice.flavor].topology}
    with_topology = sorted({each.flavor for each in own.values() if facts.flavors[each.flavor].topology})
    error = f"more than one TAS flavor assigned: {', '.join(with_topology)}" if len(with_topology) > 1 else ""
    return PodSetAssignment(pod_set.name, count, total, own, tuple(reasons), tuple(attempts), error)


def _sum_usage(requests: Amounts, chosen: Mapping[str, Choice]) -> Usage:
    return {FlavorResource(choice.flavor, resource): requests[resource] for resource, choice in chosen.items()}


def _hash_name(name: str) -> int:
    """The order in which Kueue looks at resources: a hash of their names."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def _find_flavor(
    resource: str,
    group: ResourceGroup,
    requests: Amounts,
    members: list[tuple[PodSet, int]],
    used: Usage,
    facts: QueueFacts,
) -> tuple[dict[str, Choice], list[Attempt], list[str]]:
    """Find the flavor for the resources of a group: the first that ends the search, or the preferred of those tried.

    Return the choices by resource, the attempts, and why other flavors were not tried.
    """
    resources = [name for name in requests if name in group.resources]
    start = _find_start(resources, members, facts)
    attempts: list[Attempt] = []
    skipped: list[str] = []
    best: Attempt | None = None
    last = -1
    for index in range(start, len(group.flavors)):
        last, name = index, group.flavors[index]
        if not _is_nominated(name, resource, members, facts):
            skipped.append(
                f"skipping flavor {name} as it is not found in the nomination mapping for resource {resource}"
            )
            continue
        attempt = _try_flavor(name, resources, requests, members, used, facts)
        attempts.append(attempt)
        if best is None or is_preferred(attempt.mode, attempt.level, best.mode, best.level, facts.queue.fungibility):
            best = attempt
        if not _keeps_searching(attempt, facts.queue.fungibility):
            best = attempt
            break
    if best is None or best.mode is Mode.NO_FIT:
        return {}, attempts, skipped
    tried = last if last < len(group.flavors) - 1 else -1
    found = {each: Choice(best.flavor, best.modes[each], best.level, tried) for each in resources}
    return found, attempts, skipped


def _is_nominated(flavor: str, resource: str, members: list[tuple[PodSet, int]], facts: QueueFacts) -> bool:
    if not facts.nominated:
        return True
    return any(facts.nominated.get(pod_set.name, {}).get(resource) == flavor for pod_set, _ in members)


def _find_start(resources: Sequence[str], members: list[tuple[PodSet, int]], facts: QueueFacts) -> int:
    name = members[0][0].name
    return next((facts.progress[name, each] + 1 for each in resources if (name, each) in facts.progress), 0)


def is_preferred(mode: Mode, level: int, other_mode: Mode, other_level: int, fungibility: Fungibility) -> bool:
    """Return whether a flavor with this mode and borrowing level is better than another."""
    if mode is Mode.NO_FIT:
        return False
    if other_mode is Mode.NO_FIT:
        return True
    if (mode is Mode.NO_CANDIDATES) != (other_mode is Mode.NO_CANDIDATES):
        return other_mode is Mode.NO_CANDIDATES
    if fungibility.preference == "PreemptionOverBorrowing":
        return (level, -mode) < (other_level, -other_mode)
    return (-mode, level) < (-other_mode, other_level)


def _keeps_searching(attempt: Attempt, fungibility: Fungibility) -> bool:
    if attempt.mode in (Mode.NO_FIT, Mode.NO_CANDIDATES):
        return True
    if attempt.mode in (Mode.PREEMPT, Mode.RECLAIM) and fungibility.when_can_preempt == "TryNextFlavor":
        return True
    return attempt.level > 0 and fungibility.when_can_borrow == "TryNextFlavor"


def _try_flavor(
    name: str,
    resources: Sequence[str],
    requests: Amounts,
    members: list[tuple[PodSet, int]],
    used: Usage,
    facts: QueueFacts,
) -> Attempt:
    mismatch = next(_find_mismatches(name, resources, members, facts), "")
    if mismatch:
        return Attempt(name, Mode.NO_FIT, 0, (mismatch,), NO_MATCHING_FLAVOR)
    mode, level, highest = Mode.FIT, 0, 0
    modes: dict[str, Mode] = {}
    reasons: list[str] = []
    no_fit = ""
    for resource in resources:
        pair = FlavorResource(name, resource)
        found, at, reason, why = _check_quota(pair, used.get(pair, 0), requests[resource], facts)
        modes[resource] = found
        reasons += [reason] if reason else []
        highest = max(highest, at)
        if len(modes) == 1 or found is Mode.NO_FIT or is_preferred(mode, level, found, at, facts.queue.fungibility):
            mode, level = (found, at) if mode is not Mode.NO_FIT or len(modes) == 1 else (mode, level)
        if found is Mode.NO_FIT:
            no_fit = max((why, no_fit), key=lambda word: _SEVERITY.index(word) if word else -1)
    return Attempt(name, mode, highest, tuple(reasons), no_fit, modes)


def _check_quota(pair: FlavorResource, used: int, wanted: int, facts: QueueFacts) -> tuple[Mode, int, str, str]:
    """Return the mode and borrowing level of one resource in one flavor, and why it does not fit."""
    node, value = facts.node, add(used, wanted)
    value = subtract(value, facts.replaced_usage.get(pair, 0))
    potential = node.potential(pair)
    where = f"{pair.resource} in flavor {pair.flavor}"
    if value > potential:
        shown = [_show(pair.resource, amount) for amount in (used, wanted, potential)]
        message = (
            f"insufficient quota for {where}, previously considered podsets requests ({shown[0]}) + "
            f"current podset request ({shown[1]}) > maximum capacity ({shown[2]})"
        )
        return Mode.NO_FIT, 0, message, EXCEEDS_MAX_QUOTA
    level, may_reclaim = find_borrowing_level(node, pair, value)
    available = max(0, node.available(pair))
    if value <= available:
        return Mode.FIT, level, "", ""
    message = f"insufficient unused quota for {where}, {_show(pair.resource, value - available)} more needed"
    if node.find_quota(pair).nominal >= value or may_reclaim or _preempts_while_borrowing(facts):
        mode, after = facts.oracle(pair, value)
        return mode, after if mode is not Mode.NO_CANDIDATES else level, message, ""
    return Mode.NO_FIT, level, message, WAITING_FOR_QUOTA


def _preempts_while_borrowing(facts: QueueFacts) -> bool:
    preemption = facts.queue.preemption
    return preemption.borrow != "Never" or (facts.is_fair and preemption.reclaim != "Never")


_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def _show(resource: str, amount: int) -> str:
    """An amount as Kubernetes prints it."""
    if resource not in ("memory", "ephemeral-storage") or not amount:
        return to_quantity(resource, amount)
    power = 0
    while amount % 1024 == 0 and power < len(_UNITS) - 1:
        amount, power = amount // 1024, power + 1
    return f"{amount}{_UNITS[power]}"


def _find_mismatches(
    name: str, resources: Sequence[str], members: list[tuple[PodSet, int]], facts: QueueFacts
) -> Iterator[str]:
    flavor = facts.flavors.get(name)
    if flavor is None:
        yield f"flavor {name} not found"
        return
    if facts.allowed is not None and name not in facts.allowed:
        yield f"skipping flavor {name} due to WorkloadAllowedResourceFlavorAnnotation annotation"
    for pod_set, _ in members:
        before = facts.replaced.get(pod_set.name, {})
        other = next((before[each] for each in resources if before.get(each, name) != name), "")
        if other:
            yield f"could not assign {name} flavor since the original workload is assigned: {other}"
    for pod_set, _ in members:
        yield from _find_topology_mismatch(flavor, resources, pod_set, facts)
    for pod_set, _ in members:
        taint = find_untolerated_taint(flavor, pod_set.spec)
        if taint is not None:
            shown = f"{{{taint.get('key', '')} {taint.get('value', '')} {taint.get('effect', '')} <nil>}}"
            yield f"untolerated taint {shown} in flavor {name}"
        if not matches_affinity(flavor.labels, pod_set.spec):
            yield f"flavor {name} doesn't match node affinity"


def _find_topology_mismatch(
    flavor: Flavor, resources: Sequence[str], pod_set: PodSet, facts: QueueFacts
) -> Iterator[str]:
    request = pod_set.topology if pod_set.topology and pod_set.topology.is_explicit else None
    if request is None:
        if flavor.topology and not facts.is_topology_only:
            yield f'Flavor "{flavor.name}" supports only TopologyAwareScheduling'
        return
    own = pod_set.exact or {}
    if not flavor.topology:
        if own.keys() & set(resources):
            yield f'Flavor "{flavor.name}" does not support TopologyAwareScheduling'
        return
    levels = facts.topologies.get(flavor.topology, ())
    wanted = [request.required, request.preferred, *(level for level, _ in request.slices)]
    if any(level and level not in levels for level in wanted):
        yield f'Flavor "{flavor.name}" does not contain the requested level'


def search_counts(
    pod_sets: Sequence[PodSet], fits: Callable[[Sequence[int]], Any | None]
) -> tuple[tuple[int, ...], Any] | None:
    """Search the largest numbers of pods that fit, between `min_count` and `count` of each pod set."""
    deltas = [
        pod_set.count - (pod_set.count if pod_set.min_count is None else pod_set.min_count) for pod_set in pod_sets
    ]
    total = sum(deltas)
    if not total:
        return None

    def scale(step: int) -> tuple[int, ...]:
        pairs = zip(pod_sets, deltas, strict=True)
        return tuple(pod_set.count - delta * step // total for pod_set, delta in pairs)

    low, high, found = 0, total, None
    while low <= high:
        middle = (low + high) // 2
        result = fits(scale(middle))
        if result is not None:
            found, high = (scale(middle), result), middle - 1
        else:
            low = middle + 1
    return found

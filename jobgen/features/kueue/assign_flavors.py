"""Flavor assignment: which flavor each pod set of a workload gets for each resource, and whether that fits now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from jobgen.features.kueue.assignment import (
    EXCEEDS_MAX_QUOTA,
    NO_MATCHING_FLAVOR,
    WAITING_FOR_QUOTA,
    Assignment,
    Attempt,
    Choice,
    Mode,
    PodSetAssignment,
    find_no_fit_reason,
    is_preferred,
    merge_attempts,
    most_severe,
)
from jobgen.features.kueue.match import find_node_mismatch, find_topology_mismatch
from jobgen.features.kueue.objects import ClusterQueue, Flavor, ResourceGroup
from jobgen.features.kueue.quota import (
    FlavorResource,
    QuotaNode,
    Usage,
    add,
    find_borrowing_level,
    show_amount,
    show_number,
    subtract,
)
from jobgen.features.kueue.requests import Amounts, multiply, sum_amounts
from jobgen.features.kueue.workloads import PodSet, PodSetAdmission
from jobgen.model.named_tuple import NamedTuple

PODS = "pods"


Oracle = Callable[[FlavorResource, int], tuple[Mode, int]]
"""Simulates preemption for one resource in one flavor: what is possible, and the borrowing level afterwards."""


class QueueFacts(NamedTuple):
    """What flavor assignment needs to know of a queue, and of what was decided about the workload before."""

    queue: ClusterQueue
    node: QuotaNode
    flavors: Mapping[str, Flavor]
    topologies: Mapping[str, Sequence[str]]
    """Levels of topologies by name."""
    oracle: Oracle
    is_fair: bool = False
    allowed: frozenset[str] | None = None
    """The flavors that the workload may have; None if all."""
    replaced: Sequence[PodSetAdmission] = ()
    """The pod sets of the workload that this one replaces: it keeps their flavors, and needs only what is new."""
    progress: Mapping[tuple[str, str], int] = {}
    """The last flavor that was tried in an earlier cycle, by pod set and resource."""
    ignores_undeclared: bool = False
    """True if resources that the queue does not cover need no quota."""
    nominated: Mapping[str, Mapping[str, str]] | None = None
    """The only flavors to try, by pod set and resource: those of an earlier try in the same cycle."""
    place: Callable[[Assignment], Assignment] | None = None
    """Places the pod sets of an assignment in the topologies of its flavors."""
    uses_topologies: bool = True
    """The gate TopologyAwareScheduling."""
    is_fungible: bool = True
    """The gate FlavorFungibility. Without it the first flavor that fits is taken."""

    @property
    def is_topology_only(self) -> bool:
        """Return True if all flavors of the queue have a topology."""
        names = [name for group in self.queue.groups for name in group.flavors]
        return all(name in self.flavors and self.flavors[name].topology for name in names)


class _Member(NamedTuple):
    """A pod set that gets its flavors together with others, and what it requests."""

    number: int
    pod_set: PodSet
    size: int
    total: Amounts


class _Option(NamedTuple):
    """A flavor that pod sets can get for the resources of a group."""

    flavor: str
    mismatch: str
    """Why it does not match the pods; empty if it does."""
    needs: tuple[tuple[FlavorResource, int, int], ...]
    """What the pod sets request of it, and the most that the queue can ever use."""


class _Step(NamedTuple):
    """The choice of a flavor for the resources of a group."""

    resource: str
    """The first of them."""
    group: ResourceGroup
    options: tuple[_Option, ...]


class _Part(NamedTuple):
    """Pod sets that get their flavors together: the same flavor for the sum of what they request."""

    members: tuple[_Member, ...]
    steps: tuple[_Step, ...]
    uncovered: str
    """The resource after the steps that no group covers; empty if there is none."""


Plan = tuple[_Part, ...]
"""What of an assignment follows from the pod sets and the queue alone, whatever is used."""

_Layout = tuple[list[tuple[str, ResourceGroup, list[tuple[str, list[tuple[FlavorResource, int]]]]]], str]
"""The steps for some resources: of each flavor, what can be used at most. And the resource that is not covered."""

_PLACEMENT = frozenset(("affinity", "nodeSelector", "tolerations"))


class Planner:
    """Plans assignments: what many of them share is computed once. The groups of a queue stay as they are."""

    def __init__(self) -> None:
        self._plans: dict[int, tuple[Sequence[PodSet], Sequence[ResourceGroup], Plan]] = {}
        self._layouts: dict[tuple[int, tuple[str, ...]], tuple[Sequence[ResourceGroup], _Layout]] = {}
        self._mismatches: dict[tuple[int, str], str] = {}

    def plan(self, pod_sets: Sequence[PodSet], facts: QueueFacts) -> Plan:
        """Plan the assignment of flavors to the pod sets of a workload."""
        groups = facts.queue.groups
        known = self._plans.get(id(pod_sets))
        if known is None or known[1] is not groups:
            # What is known by its identity is kept.
            known = self._plans[id(pod_sets)] = pod_sets, groups, self.plan_counts(pod_sets, facts)
        return known[2]

    def plan_counts(self, pod_sets: Sequence[PodSet], facts: QueueFacts, counts: Sequence[int] | None = None) -> Plan:
        """Plan the assignment of flavors to pod sets; with `counts`, to fewer pods of each."""
        counts_pods = facts.queue.find_group(PODS) is not None
        # A number is the key of a pod set without a group, as in Kueue.
        groups: dict[str, list[_Member]] = {}
        for number, pod_set in enumerate(pod_sets):
            size = pod_set.count if counts is None else counts[number]
            total = multiply(pod_set.requests, size)
            if counts_pods:
                total[PODS] = size
            key = (pod_set.topology.group if pod_set.topology else "") or str(number)
            groups.setdefault(key, []).append(_Member(number, pod_set, size, total))
        return tuple(self._plan_part(members, facts) for members in groups.values())

    def _plan_part(self, members: list[_Member], facts: QueueFacts) -> _Part:
        requests = members[0].total
        for member in members[1:]:
            requests = sum_amounts(requests, member.total)
        key = id(facts.queue.groups), tuple(requests)
        known = self._layouts.get(key)
        if known is None or 0 in requests.values():
            known = self._layouts[key] = facts.queue.groups, _lay_out(requests, facts)
        steps, uncovered = known[1]
        pod_sets = [member.pod_set for member in members]
        is_plain = not any(each.topology or not _PLACEMENT.isdisjoint(each.spec) for each in pod_sets)
        return _Part(
            tuple(members),
            tuple(
                _Step(
                    resource,
                    group,
                    tuple(
                        _Option(
                            flavor,
                            self._find_mismatch(flavor, group, pod_sets, facts, is_plain=is_plain),
                            tuple((pair, requests[pair.resource], most) for pair, most in needs),
                        )
                        for flavor, needs in options
                    ),
                )
                for resource, group, options in steps
            ),
            uncovered,
        )

    def _find_mismatch(
        self, name: str, group: ResourceGroup, pod_sets: Sequence[PodSet], facts: QueueFacts, *, is_plain: bool
    ) -> str:
        """Find why a flavor does not match; pods that ask for nothing are all alike. The layouts keep the group."""
        found = self._mismatches.get((id(group), name)) if is_plain else None
        if found is None:
            found = find_flavor_mismatch(name, group, pod_sets, facts)
            if is_plain:
                self._mismatches[id(group), name] = found
        return found


def _lay_out(requests: Amounts, facts: QueueFacts) -> _Layout:
    ordered = sorted(requests, key=_hash_name)
    steps: dict[int, tuple[str, ResourceGroup, list[tuple[str, list[tuple[FlavorResource, int]]]]]] = {}
    for resource in ordered:
        group = facts.queue.find_group(resource)
        if group is None:
            if requests[resource] and not facts.ignores_undeclared:
                return list(steps.values()), resource
        elif id(group) not in steps:
            options = []
            for name in group.flavors:
                pairs = [FlavorResource(name, each) for each in ordered if each in group.resources]
                options.append((name, [(pair, facts.node.potential(pair)) for pair in pairs]))
            steps[id(group)] = resource, group, options
    return list(steps.values()), ""


def can_fit(plan: Plan) -> bool:
    """Return True if pod sets that get their flavors together certainly have quota when nothing is used."""
    return (
        len(plan) == 1
        and not plan[0].uncovered
        and all(
            any(
                not option.mismatch and all(amount <= potential for _, amount, potential in option.needs)
                for option in step.options
            )
            for step in plan[0].steps
        )
    )


def assign_flavors(plan: Plan, facts: QueueFacts) -> Assignment:
    """Assign flavors to the pod sets of a workload."""
    done: list[PodSetAssignment] = []
    usage: Usage = {}
    level = 0
    for part in plan:
        assigned = _assign_part(part, usage, facts)
        done += assigned
        for member, each in zip(part.members, assigned, strict=True):
            # Without what the workload that it replaces uses already.
            before = next((old.usage for old in facts.replaced if old.name == each.name), {})
            for resource, choice in each.flavors.items():
                level = max(level, choice.level)
                pair = FlavorResource(choice.flavor, resource)
                usage[pair] = add(usage.get(pair, 0), subtract(member.total.get(resource, 0), before.get(resource, 0)))
        if any(each.requests and not each.flavors for each in assigned):
            break
    found = Assignment(tuple(done), usage, level)
    if facts.place is not None and len(done) == sum(len(part.members) for part in plan) and found.mode > Mode.NO_FIT:
        found = facts.place(found)
    reason = find_no_fit_reason(found, facts.queue)
    return found._replace(no_fit=reason) if reason else found


def _assign_part(part: _Part, used: Usage, facts: QueueFacts) -> list[PodSetAssignment]:
    chosen: dict[str, Choice] = {}
    reasons: list[str] = []
    attempts: dict[str, Attempt] = {}
    for step in part.steps:
        choices, more, tried = _search_flavor(step, part.members, used, facts)
        merge_attempts(attempts, tried, step.resource, step.group)
        if not choices:
            chosen, reasons = {}, more
            break
        chosen |= choices
        reasons += more
    else:
        if part.uncovered:
            chosen, reasons = {}, [f"resource {part.uncovered} unavailable in ClusterQueue"]
    why, every = tuple(reasons), tuple(attempts[name] for name in sorted(attempts))
    return [
        PodSetAssignment(member.pod_set.name, member.size, member.total, _select(member, chosen, facts), why, every)
        for member in part.members
    ]


def _select(member: _Member, chosen: Mapping[str, Choice], facts: QueueFacts) -> dict[str, Choice]:
    """The flavors of a pod set; one that requests nothing is placed in the topology of its group."""
    if member.total:
        return {resource: choice for resource, choice in chosen.items() if resource in member.total}
    if member.pod_set.topology is None or not member.pod_set.topology.group:
        return {}
    return {
        resource: choice
        for resource, choice in chosen.items()
        if choice.flavor in facts.flavors and facts.flavors[choice.flavor].topology
    }


@lru_cache(maxsize=4096)
def _hash_name(name: str) -> tuple[int, str]:
    """The order in which Kueue looks at resources: a hash of their names."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value, name


class _Trial(NamedTuple):
    """How well one flavor suits the resources of a group."""

    mode: Mode
    level: int
    """The borrowing level of the resource that suits worst."""
    choices: list[tuple[str, Mode, int]]
    """The mode and the level of each resource."""
    reasons: list[str]
    attempt: Attempt


def _search_flavor(
    step: _Step, members: Sequence[_Member], used: Usage, facts: QueueFacts
) -> tuple[dict[str, Choice], list[str], list[Attempt]]:
    """Find the flavor for the resources of a group: the first that ends the search, or the preferred of those tried.

    Return the choices, why they are not better, and what was tried.
    """
    attempts: list[Attempt] = []
    reasons: list[str] = []
    best: _Trial | None = None
    start = facts.progress.get((members[0].pod_set.name, step.resource), -1) + 1 if facts.is_fungible else 0
    last = -1
    for last in range(start, len(step.options)):
        option = step.options[last]
        skipped = _find_skip(option.flavor, step.resource, members, facts)
        if skipped:
            reasons.append(skipped)
            continue
        trial = _try_flavor(option, members, used, facts)
        attempts.append(trial.attempt)
        reasons += trial.reasons
        is_last = _ends_search(trial, facts)
        if best is None:
            is_better = trial.mode is not Mode.NO_FIT
        elif facts.is_fungible:
            is_better = is_preferred(trial.mode, trial.level, best.mode, best.level, facts.queue.fungibility)
        else:
            is_better = trial.mode > best.mode
        if is_last or is_better:
            best = trial
        if is_last:
            break
    if best is None or best.mode is Mode.NO_FIT:
        return {}, reasons, attempts
    tried = -1
    if not facts.is_fungible or last != len(step.options) - 1:
        tried = last if facts.is_fungible else 0
    flavor = best.attempt.flavor
    choices = {name: Choice(flavor, mode, level, tried) for name, mode, level in best.choices}
    return choices, [] if best.mode is Mode.FIT else reasons, attempts


def _find_skip(name: str, resource: str, members: Sequence[_Member], facts: QueueFacts) -> str:
    """Why a flavor is not tried at all."""
    nominated = facts.nominated
    if nominated and all(nominated.get(member.pod_set.name, {}).get(resource) != name for member in members):
        return f"skipping flavor {name} as it is not found in the nomination mapping for resource {resource}"
    if facts.allowed is not None and name not in facts.allowed:
        return f"skipping flavor {name} due to WorkloadAllowedResourceFlavorAnnotation annotation"
    return ""


def _ends_search(trial: _Trial, facts: QueueFacts) -> bool:
    if not facts.is_fungible:
        return trial.mode is Mode.FIT
    fungibility = facts.queue.fungibility
    if trial.mode in (Mode.NO_FIT, Mode.NO_CANDIDATES):
        return False
    if trial.mode in (Mode.PREEMPT, Mode.RECLAIM) and fungibility.when_can_preempt == "TryNextFlavor":
        return False
    return trial.level == 0 or fungibility.when_can_borrow != "TryNextFlavor"


def _try_flavor(option: _Option, members: Sequence[_Member], used: Usage, facts: QueueFacts) -> _Trial:
    """Try a flavor for the resources of a group. It suits as well as it does for the resource that suits worst."""
    name, mismatch, needs = option
    if mismatch:
        return _Trial(Mode.NO_FIT, 0, [], [mismatch], Attempt(name, Mode.NO_FIT, 0, (mismatch,), NO_MATCHING_FLAVOR))
    mode, level, highest, no_fit = Mode.FIT, 0, 0, ""
    choices: list[tuple[str, Mode, int]] = []
    reasons: list[str] = []
    for pair, requested, potential in needs:
        amount, other = requested, None
        if facts.replaced:
            amount, other = _subtract_replaced(pair, requested, members, facts)
        if other is not None:
            reasons.append(f"could not assign {name} flavor since the original workload is assigned: {other}")
            mode, no_fit = Mode.NO_FIT, NO_MATCHING_FLAVOR
        own_mode, own_level, reason, why = _check_quota(pair, used.get(pair, 0), amount, potential, facts)
        if reason:
            reasons.append(reason)
            no_fit = most_severe(no_fit, why)
        highest = max(highest, own_level)
        if is_preferred(mode, level, own_mode, own_level, facts.queue.fungibility):
            mode, level = own_mode, own_level
        if mode is not Mode.NO_FIT:
            choices.append((pair.resource, own_mode, own_level))
    possibility = mode if mode not in (Mode.NO_FIT, Mode.FIT) else None
    attempt = Attempt(name, mode, highest, tuple(sorted(reasons)), no_fit, possibility)
    return _Trial(mode, level, choices, reasons, attempt)


def _subtract_replaced(
    pair: FlavorResource, amount: int, members: Sequence[_Member], facts: QueueFacts
) -> tuple[int, str | None]:
    """Subtract what a replaced workload uses already; also return its flavor if that is another one."""
    for member in members:
        before = facts.replaced[member.number] if member.number < len(facts.replaced) else None
        flavor = before.flavors.get(pair.resource, "") if before else ""
        if flavor != pair.flavor:
            return amount, flavor
        amount -= before.usage.get(pair.resource, 0) if before else 0
    return amount, None


def _check_quota(
    pair: FlavorResource, used: int, wanted: int, potential: int, facts: QueueFacts
) -> tuple[Mode, int, str, str]:
    """Return how well a resource fits in a flavor, the borrowing level, and why it does not: message and reason."""
    node, value = facts.node, add(used, wanted)
    if value > potential:
        before, most = (show_amount(pair.resource, amount) for amount in (used, potential))
        message = (
            f"insufficient quota for {pair.resource} in flavor {pair.flavor}, "
            f"previously considered podsets requests ({before}) + "
            f"current podset request ({show_number(pair.resource, wanted)}) > maximum capacity ({most})"
        )
        return Mode.NO_FIT, 0, message, EXCEEDS_MAX_QUOTA
    level, may_reclaim = find_borrowing_level(node, pair, value)
    available = max(0, node.available(pair))
    if value <= available:
        return Mode.FIT, level, "", ""
    missing = show_amount(pair.resource, subtract(value, available))
    message = f"insufficient unused quota for {pair.resource} in flavor {pair.flavor}, {missing} more needed"
    policies = facts.queue.preemption
    borrows = policies.borrow != "Never" or (facts.is_fair and policies.reclaim != "Never")
    if node.find_quota(pair).nominal >= value or may_reclaim or borrows:
        return *facts.oracle(pair, value), message, ""
    return Mode.NO_FIT, level, message, WAITING_FOR_QUOTA


def find_flavor_mismatch(name: str, group: ResourceGroup, pod_sets: Iterable[PodSet], facts: QueueFacts) -> str:
    """Return why a flavor of a group does not match the pods; empty if it does."""
    flavor = facts.flavors.get(name)
    if flavor is None:
        return f"flavor {name} not found"
    levels = facts.topologies.get(flavor.topology)
    for pod_set in pod_sets:
        mismatch = ""
        if facts.uses_topologies:
            mismatch = find_topology_mismatch(flavor, pod_set, group.resources, levels)
        # If all flavors have a topology, pods are placed even if they do not ask for it.
        if mismatch and (pod_set.asks_for_placement or not facts.is_topology_only):
            return mismatch
        mismatch = find_node_mismatch(flavor, pod_set)
        if mismatch:
            return mismatch
    return ""


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

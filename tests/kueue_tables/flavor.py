"""Tables: Flavor assignment, its reasons and partial admission."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from jobgen.features.kueue.assign_flavors import (
    Oracle,
    Planner,
    QueueFacts,
    assign_flavors,
    search_counts,
)
from jobgen.features.kueue.assignment import (
    Assignment,
    Attempt,
    Choice,
    Mode,
    Placements,
    PodSetAssignment,
    is_preferred,
)
from jobgen.features.kueue.objects import as_list, as_mapping, parse_fungibility, parse_topologies
from jobgen.features.kueue.quota import FlavorResource
from jobgen.features.kueue.requests import read_amounts
from jobgen.features.kueue.workloads import PodSetAdmission, Workload, parse_workload
from kueue_tables import Table
from kueue_tables.given import (
    Given,
    is_enabled,
    is_fair,
    read_controllers,
    read_state,
    sum_requests,
    to_quantity,
    write_usage,
)

_POSSIBILITIES = {"NoCandidates": Mode.NO_CANDIDATES, "Preempt": Mode.PREEMPT, "Reclaim": Mode.RECLAIM}
_MODES = {"NoFit": Mode.NO_FIT, "NoPreemptionCandidates": Mode.NO_CANDIDATES, "Fit": Mode.FIT, **_POSSIBILITIES}
_ALLOWED = "kueue.x-k8s.io/workload-allowed-resource-flavors"


def _answer_assignment(given: Given) -> dict[str, Any]:
    assignment = _assign(given)
    return {"assignment": _write_assignment(assignment), "representativeMode": _write_mode(assignment.mode)}


def _assign(given: Given) -> Assignment:
    workload = _read_workload(given)
    facts = _read_facts(given, workload)
    return assign_flavors(Planner().plan(workload.pod_sets, facts), facts)


def _read_workload(given: Given) -> Workload:
    """The workload of a case, or one of its pod sets; pods that have finished need no quota."""
    status = {"reclaimablePods": given.get("reclaimablePods")}
    obj = given.get("workload") or {"spec": {"podSets": given["podSets"]}, "status": status}
    return parse_workload(obj, reclaims=is_enabled(given, "ReclaimablePods", default=True))


def _read_facts(given: Given, workload: Workload) -> QueueFacts:
    snapshot = read_state(given)
    name = given["clusterQueue"]
    allowed = workload.annotations.get(_ALLOWED) if is_enabled(given, "ConcurrentAdmission", default=False) else None
    levels = parse_topologies(as_list(given.get("topologies")))
    placements = Placements(snapshot.queues, snapshot.flavors, snapshot.topologies, read_controllers(given))
    placer = placements.make_placer(workload, name)
    uses_topologies = is_enabled(given, "TopologyAwareScheduling", default=True)
    ignores = given.get("quotaCheckStrategy") == "IgnoreUndeclared"
    return QueueFacts(
        snapshot.queues[name],
        snapshot.nodes[name],
        snapshot.flavors,
        levels,
        _read_oracle(given),
        is_fair(given),
        None if allowed is None else frozenset(part.strip() for part in allowed.split(",")),
        _read_replaced(given) if is_enabled(given, "ElasticJobsViaWorkloadSlices", default=True) else (),
        ignores_undeclared=ignores and is_enabled(given, "QuotaCheckStrategy", default=True),
        uses_topologies=uses_topologies,
        is_fungible=is_enabled(given, "FlavorFungibility", default=True),
        place=placer.place if placer and uses_topologies else None,
    )


def _read_oracle(given: Given) -> Oracle:
    """The answers that a case has in place of a search for workloads to preempt."""
    stub = as_mapping(given.get("preemptionOracle"))
    default = _read_simulation(as_mapping(stub.get("default")))
    answers = {
        FlavorResource(each["flavor"], each["resource"]): _read_simulation(each)
        for each in as_list(stub.get("overrides"))
    }
    return lambda pair, _amount: answers.get(pair, default)


def _read_simulation(raw: Given) -> tuple[Mode, int]:
    return _POSSIBILITIES[raw.get("possibility", "NoCandidates")], int(raw.get("borrowingLevelAfter", 0))


def _read_replaced(given: Given) -> tuple[PodSetAdmission, ...]:
    return tuple(
        PodSetAdmission(
            each["name"], each["count"], as_mapping(each.get("flavors")), read_amounts(each["totalRequests"])
        )
        for each in as_list(as_mapping(given.get("replacedSlice")).get("podSets"))
    )


def _write_assignment(assignment: Assignment) -> dict[str, Any]:
    found = {
        "borrowingLevel": assignment.level,
        "noFitReason": assignment.no_fit,
        "podSets": [_write_pod_set(each) for each in assignment.pod_sets],
    }
    return {**found, "usage": write_usage(assignment.usage)} if assignment.usage else found


def _write_pod_set(assigned: PodSetAssignment) -> dict[str, Any]:
    found: dict[str, Any] = {
        "attempts": [_write_attempt(each) for each in assigned.attempts],
        "count": assigned.count,
        "flavors": {name: _write_choice(choice) for name, choice in assigned.flavors.items()},
        "name": assigned.name,
        "requests": {name: to_quantity(name, amount) for name, amount in assigned.requests.items()},
    }
    if assigned.reasons:
        found["reasons"] = list(assigned.reasons)
    return {**found, "error": assigned.error} if assigned.error else found


def _write_choice(choice: Choice) -> dict[str, Any]:
    return {"flavor": choice.flavor, "lastTriedFlavorIdx": choice.tried, "mode": _write_mode(choice.mode)}


def _write_attempt(attempt: Attempt) -> dict[str, Any]:
    found: dict[str, Any] = {
        "borrowingLevel": attempt.level,
        "flavor": attempt.flavor,
        "mode": _write_mode(attempt.mode),
        "noFitReason": attempt.no_fit,
    }
    if attempt.reasons:
        found["reasons"] = list(attempt.reasons)
    names = {mode: name for name, mode in _POSSIBILITIES.items()}
    return found if attempt.possibility is None else {**found, "preemptionPossibility": names[attempt.possibility]}


def _write_mode(mode: Mode) -> str:
    return {Mode.NO_FIT: "NoFit", Mode.FIT: "Fit"}.get(mode, "Preempt")


def _answer_allowed(given: Given) -> dict[str, Any]:
    assignment = _assign(given)
    flavors = [choice.flavor for each in assignment.pod_sets for choice in each.flavors.values()]
    found = {"representativeMode": _write_mode(assignment.mode)}
    return {**found, "flavor": flavors[0]} if flavors else found


def _answer_leader_worker(given: Given) -> dict[str, Any]:
    assignment = _assign(given)
    return {
        "podSetErrors": {each.name: each.error for each in assignment.pod_sets if each.error},
        "podSetFlavors": {
            each.name: {name: _write_choice(choice) for name, choice in each.flavors.items()}
            for each in assignment.pod_sets
        },
        "representativeMode": _write_mode(assignment.mode),
    }


def _answer_flavors(given: Given) -> dict[str, Any]:
    assignment = _assign(given)
    flavors = {name: choice.flavor for each in assignment.pod_sets for name, choice in each.flavors.items()}
    return {"flavors": flavors, "representativeMode": _write_mode(assignment.mode)}


def _answer_no_fit(given: Given) -> dict[str, Any]:
    assignment = _assign(given)
    tried = [attempt for each in assignment.pod_sets for attempt in each.attempts]
    return {
        **_answer_assignment(given),
        "flavorAttempts": {attempt.flavor: attempt.no_fit for attempt in tried},
        "noFitReason": assignment.no_fit,
    }


def _answer_total_requests(given: Given) -> dict[str, Any]:
    workload = parse_workload(given["workload"])
    assigned = [
        PodSetAssignment(each["name"], each["count"], {}, dict(_read_choices(each["flavors"])))
        for each in given["assignedPodSets"]
    ]
    return {"usage": write_usage(sum_requests(workload.pod_sets, assigned, _read_replaced(given)))}


def _read_choices(flavors: Given) -> Iterable[tuple[str, Choice]]:
    for name, raw in flavors.items():
        yield name, Choice(raw["flavor"], _MODES[raw["mode"]], 0, raw.get("lastTriedFlavorIdx", -1))


def _answer_preference(given: Given) -> dict[str, Any]:
    one, other = ((_MODES[given[side]["mode"]], int(given[side].get("borrowingLevel", 0))) for side in ("a", "b"))
    return {"aPreferred": is_preferred(*one, *other, parse_fungibility(as_mapping(given.get("flavorFungibility"))))}


def _answer_partial_admission(given: Given) -> dict[str, Any]:
    limit = given["fitsWhenTotalCountAtMost"]
    found = search_counts(_read_workload(given).pod_sets, lambda counts: sum(counts) if sum(counts) <= limit else None)
    return {"found": found is not None, "totalCount": 0 if found is None else found[1]}


TABLES: Final[dict[str, Table]] = {
    "assign_flavors": _answer_assignment,
    "assign_flavors_allowed": _answer_allowed,
    "assign_flavors_leader_worker": _answer_leader_worker,
    "assignment_total_requests": _answer_total_requests,
    "flavor_assign_hierarchical": _answer_flavors,
    "flavor_mode_preference": _answer_preference,
    "no_fit_reasons": _answer_no_fit,
    "partial_admission_search": _answer_partial_admission,
    "reclaim_before_priority_preemption": _answer_flavors,
}

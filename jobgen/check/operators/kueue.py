"""What the webhooks of Kueue reject: queues, cohorts, flavors, and jobs with a queue; and queues that admit nothing.

Each fault of a queue or a flavor is found once, as a path, a code and values. The checks of a lint and
`describe_faults` add the messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from jobgen.check.admission.fields import Validation, is_set, iter_mappings
from jobgen.check.admission.metadata import describe_label_key
from jobgen.check.admission.names import LABEL_KEY, LABEL_VALUE, is_label_key, is_label_value
from jobgen.check.admission.scheduling import validate_label_selector
from jobgen.check.operators.checks import (
    ADMITS_NOTHING,
    NEVER_STARTS,
    REJECTED,
    Check,
    Checks,
    FindViolations,
    Violations,
    is_gate_on,
    is_since,
)
from jobgen.check.rules import Violation
from jobgen.k8s.kueue import DOMAIN, get_kueue_queue
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.k8s.pod_sets import RAY_CLUSTERS, count_job_pods
from jobgen.model.data import Node, value_of
from jobgen.model.finding import Problem
from jobgen.model.quantity import parse_quantity
from jobgen.model.suggest import did_you_mean, find_key

OPERATOR = "kueue"

_MAX_FLAVORS, _MAX_RESOURCES, _MAX_COMBINATIONS = 256, 256, 512
_MAX_CONCURRENT_FLAVORS = 16
_SMALLEST_POWER = -9
_QUOTAS = ("nominalQuota", "borrowingLimit", "lendingLimit")
_LIMITS = ("borrowingLimit", "lendingLimit")
_NEXT_FLAVOR = "TryNextFlavor"

Object: TypeAlias = Mapping[str, Node]
Path: TypeAlias = tuple[str | int, ...]


class Fault(NamedTuple):
    """What a webhook rejects, and where."""

    path: Path
    code: str
    values: Mapping[str, Any] = {}


Faults: TypeAlias = Iterator[Fault]


class _Text(NamedTuple):
    """How a fault is reported, and by which versions of Kueue."""

    message: str
    since: str = ""
    until: str = ""
    is_in_schema: bool = False
    """Whether a CEL rule of the CRD reports it in a lint."""
    is_at_key: bool = False


_TEXTS: Final[Mapping[str, _Text]] = {
    "resource-name": _Text(f"`{{name}}` is not a valid name of a resource; {LABEL_KEY}"),
    "resource-twice": _Text("`{name}` is covered more than once; remove it here, or in the other group"),
    "flavor-twice": _Text("flavor `{name}` is in an earlier resource group, too; remove one of them"),
    "order": _Text("`{name}` is where `coveredResources` has `{covered}`; use the same names and order"),
    "negative": _Text("`{field}` of `{name}` must not be negative, got `{value}`"),
    "lends-too-much": _Text(
        "`lendingLimit` of `{name}` is `{value}`, but `nominalQuota` is `{most}`; use at most that"
    ),
    "no-parent": _Text("`{field}` of `{name}` requires `{parent}`; set it, or remove the limit"),
    "no-cohort": _Text("`{field}` of `{name}` requires `{parent}`; set it, or remove the limit", is_in_schema=True),
    "preemption": _Text(
        "`borrowWithinCohort` has the policy `{value}`, but `reclaimWithinCohort` is `Never`; change one of them",
        is_in_schema=True,
    ),
    "preference": _Text(
        f"`preference` requires `{_NEXT_FLAVOR}` as `whenCanBorrow` and `whenCanPreempt`; set both, or remove it",
        is_in_schema=True,
    ),
    "weight-negative": _Text("`weight` must not be negative, got `{value}`"),
    "weight-small": _Text("`weight` is `{value}`, but must be 0 or more than 1n; use a larger number", since="0.14"),
    "too-many": _Text("`resourceGroups` has {found} {what}; use at most {most}", since="0.14", is_at_key=True),
    "too-many-quotas": _Text(
        "a group of `resourceGroups` has {found} quotas; use at most {most}", since="0.14", is_at_key=True
    ),
    "both-checks": _Text(
        "`admissionChecks` cannot be set beside `admissionChecksStrategy`; move its items there",
        until="0.15",
        is_at_key=True,
    ),
    "check-flavor": _Text("the queue has no flavor `{name}`{hint}", since="0.18"),
    "concurrent-groups": _Text(
        "`concurrentAdmissionPolicy` requires one item in `resourceGroups`, got {found}; keep one",
        since="0.18",
        is_at_key=True,
    ),
    "concurrent-flavors": _Text(
        "`concurrentAdmissionPolicy` requires at most {most} flavors, got {found}", since="0.18", is_at_key=True
    ),
    "constraints": _Text(
        "`constraints` requires `mode: TryPreferredFlavors`; remove it, or change the mode",
        since="0.18",
        is_at_key=True,
    ),
    "last-flavor": _Text("the queue has no flavor `{name}`{hint}", since="0.18"),
    "strict-order": _Text(
        "`StrictFIFO` is not supported with `concurrentAdmissionPolicy`; use `BestEffortFIFO`", since="0.18"
    ),
    "label-key": _Text("{text}", is_at_key=True),
    "label-value": _Text(f"label `{{key}}` has the invalid value `{{value}}`; {LABEL_VALUE}"),
    "taint-key": _Text(f"`{{key}}` is not a valid key of a taint; {LABEL_KEY}"),
    "taint-value": _Text(f"`{{value}}` is not a valid value of a taint; {LABEL_VALUE}"),
    "taint-twice": _Text("`{key}` with effect `{effect}` is an earlier taint; remove one of them"),
}


def find_cluster_queue_faults(obj: Object, *, has_concurrent_admission: bool = False) -> Faults:
    """Yield what is rejected of a ClusterQueue; the gate ConcurrentAdmission is off by default."""
    spec = as_mapping(obj.get("spec"))
    groups = _list_groups(spec)
    yield from _find_group_faults(groups)
    # Newer versions convert `admissionChecks`, and ignore the other list.
    if as_list(spec.get("admissionChecks")) and is_set(spec.get("admissionChecksStrategy")):
        yield Fault(("spec", "admissionChecks"), "both-checks")
    parent = "cohort" if as_text(obj.get("apiVersion")).endswith("/v1beta1") else "cohortName"
    for path, quota in _iter_quotas(groups):
        limit, nominal = _parse(quota.get("lendingLimit")), _parse(quota.get("nominalQuota"))
        if limit is not None and nominal is not None and limit > nominal >= 0:
            most = value_of(quota["nominalQuota"])
            yield _make_quota_fault("lends-too-much", path, quota, "lendingLimit", most=most)
        if not as_text(spec.get(parent)):
            for field, code in zip(_LIMITS, ("no-cohort", "no-parent"), strict=True):
                if is_set(quota.get(field)):
                    yield _make_quota_fault(code, path, quota, field, parent=parent)
    yield from _find_policy_faults(spec)
    yield from _find_weight_faults(spec)
    yield from _find_totals(groups)
    yield from _find_admission_check_faults(spec, _list_flavor_names(groups))
    if has_concurrent_admission and isinstance(spec.get("concurrentAdmissionPolicy"), dict):
        # Without the gate, Kueue ignores the policy.
        yield from _find_concurrent_faults(spec, groups)


def find_cohort_faults(obj: Object) -> Faults:
    """Yield what is rejected of a Cohort."""
    spec = as_mapping(obj.get("spec"))
    groups = _list_groups(spec)
    yield from _find_group_faults(groups)
    if not as_text(spec.get("parentName")) and not as_text(spec.get("parent")):
        for path, quota in _iter_quotas(groups):
            for field in _LIMITS:
                if is_set(quota.get(field)):
                    yield _make_quota_fault("no-parent", path, quota, field, parent="parentName")
    yield from _find_weight_faults(spec)


def find_flavor_faults(obj: Object) -> Faults:
    """Yield what is rejected of a ResourceFlavor."""
    spec = as_mapping(obj.get("spec"))
    for key, value in as_mapping(spec.get("nodeLabels")).items():
        if not is_label_key(key):
            yield Fault(("spec", "nodeLabels", key), "label-key", {"text": describe_label_key(key), "key": str(key)})
        elif not is_label_value(as_text(value)):
            yield Fault(("spec", "nodeLabels", key), "label-value", {"key": key, "value": as_text(value)})
    seen: set[tuple[str, str]] = set()
    for index, taint in _enumerate(spec.get("nodeTaints")):
        path = ("spec", "nodeTaints", index)
        yield from _find_taint_faults(path, taint)
        known = (as_text(taint.get("key")), as_text(taint.get("effect")))
        if known in seen:
            yield Fault((*path, "key"), "taint-twice", {"key": known[0], "effect": known[1]})
        seen.add(known)
    for index, toleration in _enumerate(spec.get("tolerations")):
        if as_text(toleration.get("key")):
            yield from _find_taint_faults(("spec", "tolerations", index), toleration)


FAULTS: Final[Mapping[str, Callable[..., Faults]]] = {
    "ClusterQueue": find_cluster_queue_faults,
    "Cohort": find_cohort_faults,
    "ResourceFlavor": find_flavor_faults,
}


class _Group(NamedTuple):
    """A resource group: the resources that it covers, and its flavors with their paths."""

    path: Path
    resources: list[tuple[int, str]]
    flavors: list[tuple[Path, Object]]


def _enumerate(node: Node) -> Iterator[tuple[int, Object]]:
    """Yield the mappings in a list, with their indexes."""
    return ((index, item) for index, item in enumerate(as_list(node)) if isinstance(item, dict))


def _enumerate_strings(node: Node) -> Iterator[tuple[int, str]]:
    """Yield the strings in a list, with their indexes."""
    return ((index, as_text(item)) for index, item in enumerate(as_list(node)) if isinstance(value_of(item), str))


def _list_groups(spec: Object) -> list[_Group]:
    return [
        _Group(
            (path := ("spec", "resourceGroups", number)),
            list(_enumerate_strings(group.get("coveredResources"))),
            [((*path, "flavors", index), flavor) for index, flavor in _enumerate(group.get("flavors"))],
        )
        for number, group in _enumerate(spec.get("resourceGroups"))
    ]


def _list_flavor_names(groups: list[_Group]) -> list[str]:
    return [as_text(flavor.get("name")) for group in groups for _, flavor in group.flavors]


def _iter_quotas(groups: list[_Group]) -> Iterator[tuple[Path, Object]]:
    for group in groups:
        for path, flavor in group.flavors:
            yield from (((*path, "resources", index), quota) for index, quota in _enumerate(flavor.get("resources")))


def _make_quota_fault(code: str, path: Path, quota: Object, field: str, **values: Any) -> Fault:
    values |= {"field": field, "name": as_text(quota.get("name")), "value": value_of(quota[field])}
    return Fault((*path, field), code, values)


def _find_group_faults(groups: list[_Group]) -> Faults:
    covered: set[str] = set()
    flavors: set[str] = set()
    for group in groups:
        for index, name in group.resources:
            path = (*group.path, "coveredResources", index)
            if not is_label_key(name):
                yield Fault(path, "resource-name", {"name": name})
            elif name in covered:
                yield Fault(path, "resource-twice", {"name": name})
            covered.add(name)
        for path, flavor in group.flavors:
            if (name := as_text(flavor.get("name"))) in flavors:
                yield Fault((*path, "name"), "flavor-twice", {"name": name})
            yield from _find_order_fault(path, flavor, group.resources)
        # The schema reports what is twice in one group.
        flavors.update(as_text(flavor.get("name")) for _, flavor in group.flavors)
    for path, quota in _iter_quotas(groups):
        for field in _QUOTAS:
            parsed = _parse(quota.get(field))
            if parsed is not None and parsed < 0:
                yield _make_quota_fault("negative", path, quota, field)


def _find_order_fault(path: Path, flavor: Object, resources: list[tuple[int, str]]) -> Faults:
    """Yield the first resource of a flavor that is not where its group has it."""
    for index, (item, (_, covered)) in enumerate(zip(as_list(flavor.get("resources")), resources, strict=False)):
        name = as_text(as_mapping(item).get("name"))
        if name and name != covered:
            yield Fault((*path, "resources", index, "name"), "order", {"name": name, "covered": covered})
            return


def _parse(node: Node) -> int | None:
    """Return a quantity in nanos; None if it is not one."""
    found = value_of(node)
    if type(found) not in (int, str):
        return None
    parsed = parse_quantity(str(found))
    if parsed is None or parsed.power < _SMALLEST_POWER or parsed.power > 100:
        return None
    nanos: int = parsed.amount * 10 ** (parsed.power - _SMALLEST_POWER)
    return nanos


def _find_policy_faults(spec: Object) -> Faults:
    preemption = as_mapping(spec.get("preemption"))
    borrow = as_text(get_path(preemption, "borrowWithinCohort", "policy")) or "Never"
    if borrow != "Never" and (as_text(preemption.get("reclaimWithinCohort")) or "Never") == "Never":
        yield Fault(("spec", "preemption"), "preemption", {"value": borrow})
    fungibility = as_mapping(spec.get("flavorFungibility"))
    preference = value_of(fungibility.get("preference"))
    if preference is not None and any(
        as_text(fungibility.get(name)) != _NEXT_FLAVOR for name in ("whenCanBorrow", "whenCanPreempt")
    ):
        yield Fault(("spec", "flavorFungibility", "preference"), "preference", {"value": preference})


def _find_weight_faults(spec: Object) -> Faults:
    node = get_path(spec, "fairSharing", "weight")
    weight = _parse(node)
    if weight is not None and (weight < 0 or weight == 1):
        code = "weight-small" if weight == 1 else "weight-negative"
        yield Fault(("spec", "fairSharing", "weight"), code, {"value": value_of(node)})


def _find_totals(groups: list[_Group]) -> Faults:
    totals = {
        "flavors": (sum(len(group.flavors) for group in groups), _MAX_FLAVORS),
        "covered resources": (sum(len(group.resources) for group in groups), _MAX_RESOURCES),
    }
    for what, (found, most) in totals.items():
        if found > most:
            yield Fault(("spec", "resourceGroups"), "too-many", {"found": found, "what": what, "most": most})
    for group in groups:
        found = sum(len(as_list(flavor.get("resources"))) for _, flavor in group.flavors)
        if found > _MAX_COMBINATIONS:
            yield Fault((*group.path, "flavors"), "too-many-quotas", {"found": found, "most": _MAX_COMBINATIONS})


def _find_admission_check_faults(spec: Object, flavors: list[str]) -> Faults:
    for number, check in _enumerate(get_path(spec, "admissionChecksStrategy", "admissionChecks")):
        for index, name in _enumerate_strings(check.get("onFlavors")):
            if name not in flavors:
                path = ("spec", "admissionChecksStrategy", "admissionChecks", number, "onFlavors", index)
                yield Fault(path, "check-flavor", _miss_flavor(name, flavors))


def _find_concurrent_faults(spec: Object, groups: list[_Group]) -> Faults:
    path: Path = ("spec", "concurrentAdmissionPolicy")
    if len(groups) != 1:
        yield Fault(path, "concurrent-groups", {"found": len(groups)})
    elif len(groups[0].flavors) > _MAX_CONCURRENT_FLAVORS:
        values = {"found": len(groups[0].flavors), "most": _MAX_CONCURRENT_FLAVORS}
        yield Fault(path, "concurrent-flavors", values)
    migration = as_mapping(get_path(spec, "concurrentAdmissionPolicy", "migration"))
    last = as_text(as_mapping(migration.get("constraints")).get("lastAcceptableFlavorName"))
    mode, flavors = as_text(migration.get("mode")), _list_flavor_names(groups)
    path = (*path, "migration", "constraints")
    if is_set(migration.get("constraints")) and mode not in ("", "TryPreferredFlavors"):
        yield Fault(path, "constraints", {"mode": mode})
    elif last and last not in flavors:
        yield Fault((*path, "lastAcceptableFlavorName"), "last-flavor", _miss_flavor(last, flavors))
    if as_text(spec.get("queueingStrategy")) == "StrictFIFO":
        yield Fault(("spec", "queueingStrategy"), "strict-order")


def _miss_flavor(name: str, flavors: list[str]) -> dict[str, Any]:
    return {"name": name, "hint": did_you_mean(name, flavors), "flavors": flavors}


def _find_taint_faults(path: Path, taint: Object) -> Faults:
    key, value = as_text(taint.get("key")), as_text(taint.get("value"))
    if is_set(taint.get("key")) and not is_label_key(key):
        yield Fault((*path, "key"), "taint-key", {"key": key})
    if not is_label_value(value):
        yield Fault((*path, "value"), "taint-value", {"value": value})


def describe_faults(kind: str, obj: Object) -> Iterator[str]:
    """Yield what the newest version of Kueue rejects of an object, each as one sentence."""
    for fault in FAULTS[kind](obj) if kind in FAULTS else ():
        if not _TEXTS[fault.code].until:
            yield _TEXTS[fault.code].message.format_map(fault.values)
    if kind == "ClusterQueue":
        yield from (problem.message for problem in find_selector_problems(as_mapping(obj.get("spec"))))


def find_selector_problems(spec: Object) -> list[Problem]:
    """Find what Kubernetes rejects of the selector of namespaces."""
    run = Validation({}, spec, [])
    selector = spec.get("namespaceSelector")
    if isinstance(selector, dict):
        validate_label_selector("namespaceSelector", selector, spec, run)
    return run.problems


def _check_webhook(manifest: Manifest) -> Violations:
    gates: dict[str, Any] = {}
    if manifest.kind_name == "ClusterQueue":
        gates["has_concurrent_admission"] = is_gate_on(manifest, "ConcurrentAdmission")
    version = str(manifest.cluster.operators.get(OPERATOR, ""))
    for fault in FAULTS[manifest.kind_name](manifest.object, **gates):
        text = _TEXTS[fault.code]
        if not text.is_in_schema and Check(REJECTED, _check_webhook, text.since, text.until).applies_to(version):
            node = _find_node(manifest.object, fault.path, is_key=text.is_at_key)
            yield Violation(node, text.message.format_map(fault.values))


def _find_node(obj: Node, path: Path, *, is_key: bool) -> Node:
    """Return the node at a path: the value, or the key that it has in its mapping."""
    *steps, last = path
    for step in steps:
        obj = as_list(obj)[step] if isinstance(step, int) else as_mapping(obj).get(step)
    if isinstance(last, int):
        return as_list(obj)[last]
    value = as_mapping(obj).get(last)
    return find_key(as_mapping(obj), last) if is_key or value is None else value


def _check_selector(manifest: Manifest) -> Violations:
    for problem in find_selector_problems(manifest.spec):
        yield Violation(problem.node, problem.message, evidence=problem.evidence)


def _check_namespaces(manifest: Manifest) -> Violations:
    if not is_set(manifest.spec.get("namespaceSelector")):
        node = find_key(manifest.spec, "namespaceSelector") or find_key(manifest.object, "spec")
        message = "a ClusterQueue without `namespaceSelector` admits no workload; set it, or `{}` for all namespaces"
        yield Violation(node or manifest.object.get("kind"), message)


def _check_quota(manifest: Manifest) -> Violations:
    """Check that a queue has quota: its own, or that of a cohort."""
    quotas = [_parse(quota.get("nominalQuota")) for _, quota in _iter_quotas(_list_groups(manifest.spec))]
    is_alone = not any(as_text(manifest.spec.get(name)) for name in ("cohort", "cohortName"))
    if is_alone and not any(quota is None or quota > 0 for quota in quotas):
        node = find_key(manifest.spec, "resourceGroups") or find_key(manifest.object, "spec")
        message = "the queue has no quota above 0 and no cohort, so it admits only workloads that request nothing"
        yield Violation(node or manifest.object.get("kind"), f"{message}; set `nominalQuota`")


def _check_own_parent(manifest: Manifest) -> Violations:
    """Check that a Cohort is not below itself: Kueue accepts a cycle, and then admits nothing in it."""
    parent = manifest.spec.get("parentName") or manifest.spec.get("parent")
    if as_text(parent) and as_text(parent) == manifest.name:
        yield Violation(parent, f"cohort `{manifest.name}` is its own parent, so nothing in it is admitted; remove it")


_WEBHOOK = Check(REJECTED, _check_webhook)


_ELASTIC = DOMAIN + "elastic-job"
_MIN_PARALLELISM = DOMAIN + "job-min-parallelism"
_EQUAL_COMPLETIONS = DOMAIN + "job-completions-equal-parallelism"
# What Go's strconv.ParseBool accepts.
_BOOLEANS = {**dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True)}
_BOOLEANS |= dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False)


def _if_queued(find: FindViolations) -> FindViolations:
    """Make a check apply only to objects with a queue; Kueue ignores the others."""

    def find_if_queued(manifest: Manifest) -> Violations:
        if get_kueue_queue(manifest) is not None:
            yield from find(manifest)

    return find_if_queued


def _max_pod_sets(manifest: Manifest) -> int:
    """Return the number of pod sets that a workload can have."""
    return 18 if is_since(manifest, OPERATOR, "0.19") else 10 if is_since(manifest, OPERATOR, "0.18") else 8


def _is_elastic(manifest: Manifest) -> bool:
    return as_text(manifest.annotations.get(_ELASTIC)) == "true"


def _check_ray_job(manifest: Manifest) -> Violations:
    """Check a RayJob that has a cluster of its own; Kueue does not manage one that only selects a cluster."""
    has_cluster = is_set(manifest.spec.get("rayClusterSpec"))
    if has_cluster and as_mapping(manifest.spec.get("clusterSelector")):
        message = "a RayJob with a queue cannot have `clusterSelector` beside `rayClusterSpec`; remove one of them"
        yield Violation(find_key(manifest.spec, "clusterSelector"), message)
    elif has_cluster and value_of(manifest.spec.get("shutdownAfterJobFinishes")) is not True:
        node = manifest.spec.get("shutdownAfterJobFinishes") or get_kueue_queue(manifest)
        message = "a RayJob with a queue requires `shutdownAfterJobFinishes: true`, to return its quota; set it"
        yield Violation(node, message)


def _check_ray_cluster(manifest: Manifest) -> Violations:
    cluster = as_mapping(get_path(manifest.object, *RAY_CLUSTERS[manifest.kind_name]))
    groups = list(iter_mappings(cluster.get("workerGroupSpecs")))
    if value_of(cluster.get("enableInTreeAutoscaling")) is True and not _is_elastic(manifest):
        message = f'a {manifest.kind_name} with a queue can scale only with the annotation `{_ELASTIC}: "true"`'
        yield Violation(cluster["enableInTreeAutoscaling"], f"{message}; add it, or remove autoscaling")
    if 1 + len(groups) > _max_pod_sets(manifest):
        message = f"`workerGroupSpecs` has {len(groups)} groups, but a workload of Kueue has room for"
        yield Violation(find_key(cluster, "workerGroupSpecs"), f"{message} {_max_pod_sets(manifest) - 1}")
    for group in groups:
        if as_text(group.get("groupName")) == "head":
            yield Violation(group["groupName"], "Kueue names the pods of the head `head`; rename this group")


def _check_replicated_jobs(manifest: Manifest) -> Violations:
    jobs = list(iter_mappings(manifest.spec.get("replicatedJobs")))
    if len(jobs) > _max_pod_sets(manifest):
        message = f"`replicatedJobs` has {len(jobs)} items, but a workload of Kueue has room for"
        yield Violation(find_key(manifest.spec, "replicatedJobs"), f"{message} {_max_pod_sets(manifest)}")


def _check_min_parallelism(manifest: Manifest) -> Violations:
    node = manifest.annotations.get(_MIN_PARALLELISM)
    found = as_text(node)
    if not found:
        return
    most = count_job_pods(manifest.spec) - 1
    if not (found.isascii() and found.isdigit() and 0 < int(found[:10]) <= most):
        message = f"`{_MIN_PARALLELISM}` is `{found}`, but must be a number above 0 and below the number of pods"
        yield Violation(node, f"{message}, which is {most + 1}")


def _check_equal_completions(manifest: Manifest) -> Violations:
    node = manifest.annotations.get(_EQUAL_COMPLETIONS)
    found = as_text(node)
    if not found:
        return
    parallelism, completions = (as_integer(manifest.spec.get(name)) for name in ("parallelism", "completions"))
    if found not in _BOOLEANS:
        yield Violation(node, f'`{_EQUAL_COMPLETIONS}` is `{found}`, but must be `"true"` or `"false"`')
    elif _BOOLEANS[found] and as_text(manifest.spec.get("completionMode")) != "Indexed":
        yield Violation(node, f"`{_EQUAL_COMPLETIONS}` requires `completionMode: Indexed`; set it")
    elif _BOOLEANS[found] and completions != (1 if parallelism is None else parallelism):
        message = f"`{_EQUAL_COMPLETIONS}` requires `completions` to equal `parallelism`; set both to the same number"
        yield Violation(node, message)


def _queued(rule: str, *checks: FindViolations) -> tuple[Check, ...]:
    return tuple(Check(rule, _if_queued(check)) for check in checks)


CHECKS: Checks = {
    "ClusterQueue": (
        _WEBHOOK,
        Check(REJECTED, _check_selector),
        Check(ADMITS_NOTHING, _check_namespaces),
        Check(ADMITS_NOTHING, _check_quota),
    ),
    "Cohort": (_WEBHOOK, Check(ADMITS_NOTHING, _check_own_parent)),
    "ResourceFlavor": (_WEBHOOK,),
    "Job": _queued(REJECTED, _check_min_parallelism, _check_equal_completions),
    "JobSet": _queued(NEVER_STARTS, _check_replicated_jobs),
    "RayCluster": _queued(REJECTED, _check_ray_cluster),
    "RayJob": _queued(REJECTED, _check_ray_job, _check_ray_cluster),
    "RayService": (Check(REJECTED, _if_queued(_check_ray_cluster), since="0.17"),),
}

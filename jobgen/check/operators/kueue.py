"""What the webhooks of Kueue reject: queues, cohorts, flavors, and jobs with a queue; and queues that admit nothing.

Each fault of a queue or a flavor is found once, as a path, a code and values. The checks of a lint and
`describe_faults` add the messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from jobgen.check.admission.fields import Validation, enumerate_mappings, is_set, iter_mappings
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
    spec_place,
)
from jobgen.check.rules import Violation
from jobgen.k8s.kueue import DOMAIN, QUEUE_LABEL, get_kueue_queue
from jobgen.k8s.kueue_integrations import SELECTOR_SINCE, is_release_since, parse_release
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.k8s.workloads import RAY_CLUSTERS, count_job_pods
from jobgen.model.data import Plain
from jobgen.model.finding import Problem
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, find_at
from jobgen.model.quantity import parse_quantity
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import did_you_mean

OPERATOR = "kueue"

_SMALLEST_POWER = -9
_LIMITS = ("borrowingLimit", "lendingLimit")
_NEXT_FLAVOR = "TryNextFlavor"

Object: TypeAlias = Mapping[str, Plain]
Path: TypeAlias = tuple[str | int, ...]
_ELASTIC = DOMAIN + "elastic-job"
_ELASTIC_GATE = "ElasticJobsViaWorkloadSlices"
_ELASTIC_SINCE = {"RayCluster": "0.14", "RayJob": "0.15.2"}
_MIN_PARALLELISM = DOMAIN + "job-min-parallelism"
_EQUAL_COMPLETIONS = DOMAIN + "job-completions-equal-parallelism"
# What Go's strconv.ParseBool accepts.
_BOOLEANS = {
    **dict.fromkeys("1 t T TRUE true True".split(), True),
    **dict.fromkeys("0 f F FALSE false False".split(), False),
}


class Fault(NamedTuple):
    """What a webhook rejects, and where."""

    path: Path
    code: str
    values: Mapping[str, Any] = {}


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
            most = quota["nominalQuota"]
            yield _make_quota_fault("lends-too-much", path, quota, "lendingLimit", most=most)
        if not as_text(spec.get(parent)):
            for field, code in zip(_LIMITS, ("no-cohort", "no-parent"), strict=True):
                if is_set(quota.get(field)):
                    yield _make_quota_fault(code, path, quota, field, parent=parent)
    yield from _find_policy_faults(spec)
    yield from _find_weight_faults(spec)
    yield from _find_totals(groups)
    flavors = [as_text(flavor.get("name")) for group in groups for _, flavor in group.flavors]
    yield from _find_check_faults(spec, flavors)
    if has_concurrent_admission and isinstance(spec.get("concurrentAdmissionPolicy"), dict):
        # Without the gate, Kueue ignores the policy.
        yield from _find_concurrent_faults(spec, groups, flavors)


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
    for index, taint in enumerate_mappings(spec.get("nodeTaints")):
        path = ("spec", "nodeTaints", index)
        yield from _find_taint_faults(path, taint)
        known = (as_text(taint.get("key")), as_text(taint.get("effect")))
        if known in seen:
            yield Fault((*path, "key"), "taint-twice", {"key": known[0], "effect": known[1]})
        seen.add(known)
    for index, toleration in enumerate_mappings(spec.get("tolerations")):
        if as_text(toleration.get("key")):
            yield from _find_taint_faults(("spec", "tolerations", index), toleration)


class _Group(NamedTuple):
    """A resource group: the resources that it covers, and its flavors with their paths."""

    path: Path
    resources: list[tuple[int, str]]
    flavors: list[tuple[Path, Object]]


def _enumerate_strings(node: Plain) -> Iterator[tuple[int, str]]:
    return ((index, as_text(item)) for index, item in enumerate(as_list(node)) if isinstance(item, str))


def _list_groups(spec: Object) -> list[_Group]:
    return [
        _Group(
            (path := ("spec", "resourceGroups", number)),
            list(_enumerate_strings(group.get("coveredResources"))),
            [((*path, "flavors", index), flavor) for index, flavor in enumerate_mappings(group.get("flavors"))],
        )
        for number, group in enumerate_mappings(spec.get("resourceGroups"))
    ]


def _iter_quotas(groups: list[_Group]) -> Iterator[tuple[Path, Object]]:
    for group in groups:
        for path, flavor in group.flavors:
            yield from (
                ((*path, "resources", index), quota) for index, quota in enumerate_mappings(flavor.get("resources"))
            )


def _make_quota_fault(code: str, path: Path, quota: Object, field: str, **values: Any) -> Fault:
    values |= {"field": field, "name": as_text(quota.get("name")), "value": quota[field]}
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
        for field in ("nominalQuota", *_LIMITS):
            if (_parse(quota.get(field)) or 0) < 0:
                yield _make_quota_fault("negative", path, quota, field)


def _find_order_fault(path: Path, flavor: Object, resources: list[tuple[int, str]]) -> Faults:
    """Yield the first resource of a flavor that is not where its group has it."""
    if len(as_list(flavor.get("resources"))) != len(resources):
        # A rule of the CRD says which one is missing.
        return
    for index, (item, (_, covered)) in enumerate(zip(as_list(flavor.get("resources")), resources, strict=False)):
        name = as_text(as_mapping(item).get("name"))
        if name and name != covered:
            yield Fault((*path, "resources", index, "name"), "order", {"name": name, "covered": covered})
            return


def _parse(node: Plain) -> int | None:
    """Return a quantity in nanos; None if it is not one."""
    parsed = parse_quantity(str(node)) if type(node) in (int, str) else None
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
    preference = fungibility.get("preference")
    if preference is not None and any(
        as_text(fungibility.get(name)) != _NEXT_FLAVOR for name in ("whenCanBorrow", "whenCanPreempt")
    ):
        yield Fault(("spec", "flavorFungibility", "preference"), "preference", {"value": preference})


def _find_weight_faults(spec: Object) -> Faults:
    node = get_path(spec, "fairSharing", "weight")
    weight = _parse(node)
    if weight is not None and (weight < 0 or weight == 1):
        code = "weight-small" if weight == 1 else "weight-negative"
        yield Fault(("spec", "fairSharing", "weight"), code, {"value": node})


def _find_totals(groups: list[_Group]) -> Faults:
    totals = {
        "flavors": sum(len(group.flavors) for group in groups),
        "covered resources": sum(len(group.resources) for group in groups),
    }
    for what, found in totals.items():
        if found > 256:
            yield Fault(("spec", "resourceGroups"), "too-many", {"found": found, "what": what, "most": 256})
    for group in groups:
        found = sum(len(as_list(flavor.get("resources"))) for _, flavor in group.flavors)
        if found > 512:
            yield Fault((*group.path, "flavors"), "too-many-quotas", {"found": found, "most": 512})


def _find_check_faults(spec: Object, flavors: list[str]) -> Faults:
    for number, check in enumerate_mappings(get_path(spec, "admissionChecksStrategy", "admissionChecks")):
        for index, name in _enumerate_strings(check.get("onFlavors")):
            if name not in flavors:
                path = ("spec", "admissionChecksStrategy", "admissionChecks", number, "onFlavors", index)
                yield _miss_flavor("check-flavor", path, name, flavors)


def _find_concurrent_faults(spec: Object, groups: list[_Group], flavors: list[str]) -> Faults:
    path: Path = ("spec", "concurrentAdmissionPolicy")
    if len(groups) != 1:
        yield Fault(path, "concurrent-groups", {"found": len(groups)})
    elif len(flavors) > 16:
        yield Fault(path, "concurrent-flavors", {"found": len(flavors), "most": 16})
    migration = as_mapping(get_path(spec, "concurrentAdmissionPolicy", "migration"))
    last = as_text(as_mapping(migration.get("constraints")).get("lastAcceptableFlavorName"))
    mode, path = as_text(migration.get("mode")), (*path, "migration", "constraints")
    if is_set(migration.get("constraints")) and mode not in ("", "TryPreferredFlavors"):
        yield Fault(path, "constraints", {"mode": mode})
    elif last and last not in flavors:
        yield _miss_flavor("last-flavor", (*path, "lastAcceptableFlavorName"), last, flavors)
    if as_text(spec.get("queueingStrategy")) == "StrictFIFO":
        yield Fault(("spec", "queueingStrategy"), "strict-order")


def _miss_flavor(code: str, path: Path, name: str, flavors: list[str]) -> Fault:
    return Fault(path, code, {"name": name, "hint": did_you_mean(name, flavors), "flavors": flavors})


def _find_taint_faults(path: Path, taint: Object) -> Faults:
    key, value = as_text(taint.get("key")), as_text(taint.get("value"))
    if is_set(taint.get("key")) and not is_label_key(key):
        yield Fault((*path, "key"), "taint-key", {"key": key})
    if not is_label_value(value):
        yield Fault((*path, "value"), "taint-value", {"value": value})


def describe_faults(kind: str, obj: Object) -> Iterator[str]:
    """Yield what the newest version of Kueue rejects of an object, each as one sentence."""
    for fault in FAULTS[kind](obj) if kind in FAULTS else ():
        if not _VERSIONS.get(fault.code, ("", ""))[1]:
            yield _MESSAGES[fault.code].format_map(fault.values)
    if kind == "ClusterQueue":
        yield from (str(problem.sentence) for problem in find_selector_problems(as_mapping(obj.get("spec"))))


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
        for problem in find_selector_problems(manifest.spec):
            yield Violation(problem.node, problem.sentence, evidence=problem.evidence)
    version = str(manifest.cluster.operators.get(OPERATOR, ""))
    for fault in FAULTS[manifest.kind_name](manifest.object, **gates):
        check = Check(REJECTED, _check_webhook, *_VERSIONS.get(fault.code, ("", "")))
        if fault.code not in _IN_SCHEMA and check.applies_to(version):
            place = _find_place(manifest.object, fault.path, is_key=fault.code in _AT_KEY)
            yield Violation(place, _MESSAGES[fault.code].format_map(fault.values))


def _find_place(obj: Plain, path: Path, *, is_key: bool) -> At | None:
    """Return the place at a path: the value, or the key that it has in its mapping; None if nothing is there."""
    *steps, last = path
    for step in steps:
        obj = as_list(obj)[step] if isinstance(step, int) else as_mapping(obj).get(step)
    if isinstance(last, int):
        return At(obj, last)
    return find_at(obj, last, is_key=is_key)


def _check_quota(manifest: Manifest) -> Violations:
    """Check that a queue is for some namespaces, and has quota: its own, or that of a cohort."""
    if not is_set(manifest.spec.get("namespaceSelector")):
        message = "a ClusterQueue without `namespaceSelector` admits no workload; set it, or `{}` for all namespaces"
        yield Violation(spec_place(manifest, "namespaceSelector"), message)
    quotas = [_parse(quota.get("nominalQuota")) for _, quota in _iter_quotas(_list_groups(manifest.spec))]
    is_alone = not any(as_text(manifest.spec.get(name)) for name in ("cohort", "cohortName"))
    if is_alone and not any(quota is None or quota > 0 for quota in quotas):
        message = "the queue has no quota above 0 and no cohort, so it admits only workloads that request nothing"
        yield Violation(spec_place(manifest, "resourceGroups"), Sentence("{}; set `nominalQuota`", message))


def _check_own_parent(manifest: Manifest) -> Violations:
    """Check that a Cohort is not below itself: Kueue accepts a cycle, and then admits nothing in it."""
    key = "parentName" if manifest.spec.get("parentName") else "parent"
    if manifest.name and as_text(manifest.spec.get(key)) == manifest.name:
        yield Violation(
            At(manifest.spec, key),
            Sentence("cohort `{}` is its own parent, so nothing in it is admitted; remove it", manifest.name),
        )


def _queued(rule: str, *checks: FindViolations, since: str = "") -> tuple[Check, ...]:
    """Return checks that apply only to objects with a queue; Kueue ignores the others."""

    def find_if_queued(manifest: Manifest) -> Violations:
        for find in checks if get_kueue_queue(manifest) is not None else ():
            yield from find(manifest)

    return (Check(rule, find_if_queued, since),)


def _max_pod_sets(manifest: Manifest) -> int:
    return 18 if is_since(manifest, OPERATOR, "0.19") else 10 if is_since(manifest, OPERATOR, "0.18") else 8


def _is_release_since(manifest: Manifest, since: str) -> bool:
    return is_release_since(parse_release(str(manifest.cluster.operators.get(OPERATOR, ""))), since)


def _check_ray_job(manifest: Manifest) -> Violations:
    """Check a RayJob that has a cluster of its own; Kueue does not manage one that only selects a cluster."""
    has_cluster = is_set(manifest.spec.get("rayClusterSpec"))
    selects = bool(as_mapping(manifest.spec.get("clusterSelector")))
    if selects and not has_cluster and not _is_release_since(manifest, SELECTOR_SINCE):
        message = Sentence(
            "Kueue before {} rejects a RayJob with a queue and `clusterSelector`; remove the queue", SELECTOR_SINCE
        )
        yield Violation(At(manifest.spec, "clusterSelector", is_key=True), Sentence("{}, or update Kueue", message))
    elif has_cluster and selects:
        message = Sentence(
            "a RayJob with a queue cannot have `clusterSelector` beside `rayClusterSpec`; remove one of them"
        )
        yield Violation(At(manifest.spec, "clusterSelector", is_key=True), message)
    elif has_cluster and manifest.spec.get("shutdownAfterJobFinishes") is not True:
        place = find_at(manifest.spec, "shutdownAfterJobFinishes") or At(manifest.labels, QUEUE_LABEL)
        message = Sentence(
            "a RayJob with a queue requires `shutdownAfterJobFinishes: true`, to return its quota; set it"
        )
        yield Violation(place, message)


def _check_ray_cluster(manifest: Manifest) -> Violations:
    cluster = as_mapping(get_path(manifest.object, *RAY_CLUSTERS[manifest.kind_name]))
    groups = list(iter_mappings(cluster.get("workerGroupSpecs")))
    is_marked = as_text(manifest.annotations.get(_ELASTIC)) == "true"
    scales = cluster.get("enableInTreeAutoscaling") is True
    is_supported = _is_release_since(manifest, _ELASTIC_SINCE.get(manifest.kind_name, "0"))
    if scales and not (is_marked and is_supported):
        message = Sentence(
            'a {} with a queue can scale only with the annotation `{}: "true"`', manifest.kind_name, _ELASTIC
        )
        change = "add it, or remove autoscaling"
        if not is_supported:
            declared = manifest.cluster.operators.get(OPERATOR, "")
            message = Sentence("Kueue {} rejects a {} with a queue that scales", declared, manifest.kind_name)
            change = f"remove autoscaling, or update Kueue to {_ELASTIC_SINCE[manifest.kind_name]} or later"
        elif not is_since(manifest, OPERATOR, "0.18") and not is_gate_on(manifest, _ELASTIC_GATE):
            message += f" and the feature gate `{_ELASTIC_GATE}`, which is off by default before Kueue 0.18"
            change = "remove autoscaling, or turn the gate on and add the annotation"
        yield Violation(At(cluster, "enableInTreeAutoscaling"), Sentence("{}; {}", message, change))
    # KubeRay submits with a Job of its own, unless another mode is set.
    mode = as_text(manifest.spec.get("submissionMode")) if manifest.kind_name == "RayJob" else "none"
    others = ["head", *(["submitter"] if mode in ("", "K8sJobMode") else [])]
    most = _max_pod_sets(manifest)
    if len(groups) + len(others) > most:
        message = Sentence(
            "`workerGroupSpecs` has {} groups, but a Kueue workload can have at most {} pod sets", len(groups), most
        )
        message += f", with those of the {' and the '.join(others)}; use at most {most - len(others)} groups"
        yield Violation(At(cluster, "workerGroupSpecs", is_key=True), message)
    for group in groups:
        if as_text(group.get("groupName")) == "head":
            yield Violation(At(group, "groupName"), "Kueue names the pods of the head `head`; rename this group")


def _check_replicated_jobs(manifest: Manifest) -> Violations:
    jobs = list(iter_mappings(manifest.spec.get("replicatedJobs")))
    if len(jobs) > _max_pod_sets(manifest):
        message = Sentence("`replicatedJobs` has {} items, but a Kueue workload can have at most", len(jobs))
        yield Violation(
            At(manifest.spec, "replicatedJobs", is_key=True), Sentence("{} {}", message, _max_pod_sets(manifest))
        )


def _check_min_parallelism(manifest: Manifest) -> Violations:
    node = manifest.annotations.get(_MIN_PARALLELISM)
    found = as_text(node)
    if not found:
        return
    most = count_job_pods(manifest.spec) - 1
    if not (found.isascii() and found.isdigit() and 0 < int(found[:10]) <= most):
        message = Sentence(
            "`{}` is `{}`, but must be a number above 0 and below the number of pods", _MIN_PARALLELISM, found
        )
        yield Violation(At(manifest.annotations, _MIN_PARALLELISM), Sentence("{}, which is {}", message, most + 1))


def _check_equal_completions(manifest: Manifest) -> Violations:
    found = as_text(manifest.annotations.get(_EQUAL_COMPLETIONS))
    if not found:
        return
    place = At(manifest.annotations, _EQUAL_COMPLETIONS)
    parallelism, completions = (as_integer(manifest.spec.get(name)) for name in ("parallelism", "completions"))
    if found not in _BOOLEANS:
        yield Violation(
            place,
            Sentence('`{}` is `{}`, but must be `"true"` or `"false"`', _EQUAL_COMPLETIONS, found),
        )
    elif _BOOLEANS[found] and as_text(manifest.spec.get("completionMode")) != "Indexed":
        yield Violation(
            place,
            Sentence("`{}` requires `completionMode: Indexed`; set it", _EQUAL_COMPLETIONS),
        )
    elif _BOOLEANS[found] and completions != (1 if parallelism is None else parallelism):
        message = Sentence(
            "`{}` requires `completions` to equal `parallelism`; set both to the same number", _EQUAL_COMPLETIONS
        )
        yield Violation(place, message)


Faults: TypeAlias = Iterator[Fault]
_MESSAGES: Final[Mapping[str, str]] = {
    "resource-name": f"`{{name}}` is not a valid name of a resource; {LABEL_KEY}",
    "resource-twice": "`{name}` is covered more than once; remove it here, or in the other group",
    "flavor-twice": "flavor `{name}` is also in an earlier resource group; remove one of them",
    "order": "`{name}` is listed where `coveredResources` has `{covered}`; use the same names in the same order",
    "negative": "`{field}` of `{name}` must not be negative, got `{value}`",
    "lends-too-much": "`lendingLimit` of `{name}` is `{value}`, but `nominalQuota` is `{most}`; use at most that",
    "no-parent": "`{field}` of `{name}` requires `{parent}`; set it, or remove the limit",
    "no-cohort": "`{field}` of `{name}` requires `{parent}`; set it, or remove the limit",
    "preemption": (
        "`borrowWithinCohort` has the policy `{value}`, but `reclaimWithinCohort` is `Never`; change one of them"
    ),
    "preference": (
        f"`preference` requires `{_NEXT_FLAVOR}` as `whenCanBorrow` and `whenCanPreempt`; set both, or remove it"
    ),
    "weight-negative": "`weight` must not be negative, got `{value}`",
    "weight-small": "`weight` is `{value}`, but must be 0 or more than 1n; use a larger number",
    "too-many": "`resourceGroups` has {found} {what}; use at most {most}",
    "too-many-quotas": "a group of `resourceGroups` has {found} quotas; use at most {most}",
    "both-checks": "`admissionChecks` cannot be set beside `admissionChecksStrategy`; move its items there",
    "check-flavor": "the queue has no flavor `{name}`{hint}",
    "concurrent-groups": "`concurrentAdmissionPolicy` requires one item in `resourceGroups`, got {found}; keep one",
    "concurrent-flavors": "`concurrentAdmissionPolicy` requires at most {most} flavors, got {found}",
    "constraints": "`constraints` requires `mode: TryPreferredFlavors`; remove it, or change the mode",
    "last-flavor": "the queue has no flavor `{name}`{hint}",
    "strict-order": "`StrictFIFO` is not supported with `concurrentAdmissionPolicy`; use `BestEffortFIFO`",
    "label-key": "{text}",
    "label-value": f"label `{{key}}` has the invalid value `{{value}}`; {LABEL_VALUE}",
    "taint-key": f"`{{key}}` is not a valid key of a taint; {LABEL_KEY}",
    "taint-value": f"`{{value}}` is not a valid value of a taint; {LABEL_VALUE}",
    "taint-twice": "two taints have the key `{key}` and the effect `{effect}`; remove one of them",
}
# The first version of Kueue that reports a fault, and the first that does not.
_VERSIONS: Final[Mapping[str, tuple[str, str]]] = {
    **dict.fromkeys(("weight-small", "too-many", "too-many-quotas"), ("0.14", "")),
    **dict.fromkeys(("check-flavor", "concurrent-groups", "concurrent-flavors", "constraints"), ("0.18", "")),
    **dict.fromkeys(("last-flavor", "strict-order"), ("0.18", "")),
    "both-checks": ("", "0.15"),
}
# A CEL rule of the CRD reports these in a lint.
_IN_SCHEMA = ("no-cohort", "preemption", "preference")
_AT_KEY = tuple(
    "too-many too-many-quotas both-checks concurrent-groups concurrent-flavors constraints label-key".split()
)
FAULTS: Final[Mapping[str, Callable[..., Faults]]] = {
    "ClusterQueue": find_cluster_queue_faults,
    "Cohort": find_cohort_faults,
    "ResourceFlavor": find_flavor_faults,
}

CHECKS: Checks = {
    "ClusterQueue": (Check(REJECTED, _check_webhook), Check(ADMITS_NOTHING, _check_quota)),
    "Cohort": (Check(REJECTED, _check_webhook), Check(ADMITS_NOTHING, _check_own_parent)),
    "ResourceFlavor": (Check(REJECTED, _check_webhook),),
    "Job": _queued(REJECTED, _check_min_parallelism, _check_equal_completions),
    "JobSet": _queued(NEVER_STARTS, _check_replicated_jobs),
    "RayCluster": _queued(REJECTED, _check_ray_cluster),
    "RayJob": _queued(REJECTED, _check_ray_job, _check_ray_cluster),
    "RayService": _queued(REJECTED, _check_ray_cluster, since="0.17"),
}

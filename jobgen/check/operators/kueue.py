"""What the webhooks of Kueue reject: ClusterQueues, Cohorts and ResourceFlavors; and queues that admit nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobgen.check.admission.fields import Validation, is_set, iter_mappings, iter_strings
from jobgen.check.admission.metadata import describe_label_key
from jobgen.check.admission.names import LABEL_KEY, LABEL_VALUE, is_label_key, is_label_value
from jobgen.check.admission.scheduling import validate_label_selector
from jobgen.check.operators.checks import ADMITS_NOTHING, REJECTED, Check, Checks, Violations, field_node, is_gate_on
from jobgen.check.rules import Violation
from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Node, value_of
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.quantity import parse_quantity
from jobgen.model.suggest import did_you_mean, find_key

OPERATOR = "kueue"

_MAX_FLAVORS, _MAX_RESOURCES, _MAX_COMBINATIONS = 256, 256, 512
_MAX_CONCURRENT_FLAVORS = 16
_SMALLEST_POWER = -9
_QUOTAS = ("nominalQuota", "borrowingLimit", "lendingLimit")
_LIMITS = ("borrowingLimit", "lendingLimit")


class _Group(NamedTuple):
    """A resource group: the resources that it covers, and its flavors."""

    data: Mapping[str, Node]
    resources: list[tuple[str, Node]]
    flavors: list[Mapping[str, Node]]


def _list_groups(manifest: Manifest) -> list[_Group]:
    return [
        _Group(group, list(iter_strings(group.get("coveredResources"))), list(iter_mappings(group.get("flavors"))))
        for group in iter_mappings(manifest.spec.get("resourceGroups"))
    ]


def _list_flavors(manifest: Manifest) -> list[str]:
    return [as_text(flavor.get("name")) for group in _list_groups(manifest) for flavor in group.flavors]


def _check_covered_resources(manifest: Manifest) -> Violations:
    seen: set[str] = set()
    for group in _list_groups(manifest):
        for name, node in group.resources:
            if not is_label_key(name):
                yield Violation(node, f"`{name}` is not a valid name of a resource; {LABEL_KEY}")
            elif name in seen:
                yield Violation(node, f"`{name}` is covered more than once; remove it here, or in the other group")
            seen.add(name)


def _check_flavors(manifest: Manifest) -> Violations:
    seen: set[str] = set()
    for group in _list_groups(manifest):
        own = [as_text(flavor.get("name")) for flavor in group.flavors]
        for flavor, name in zip(group.flavors, own, strict=True):
            if name in seen:
                message = f"flavor `{name}` is in an earlier resource group, too; remove one of them"
                yield Violation(flavor["name"], message)
            yield from _check_order(flavor, group)
        # The schema reports what is twice in one group.
        seen.update(own)


def _check_order(flavor: Mapping[str, Node], group: _Group) -> Violations:
    """Check that the resources of a flavor are those that the group covers, in the same order."""
    for item, (covered, _) in zip(as_list(flavor.get("resources")), group.resources, strict=False):
        name = as_mapping(item).get("name")
        if as_text(name) and as_text(name) != covered:
            message = f"`{as_text(name)}` is where `coveredResources` has `{covered}`; use the same names and order"
            yield Violation(name, message)
            return


def _iter_quotas(manifest: Manifest) -> Iterator[Mapping[str, Node]]:
    for group in _list_groups(manifest):
        for flavor in group.flavors:
            yield from iter_mappings(flavor.get("resources"))


def _check_quotas(manifest: Manifest) -> Violations:
    for quota in _iter_quotas(manifest):
        for name in _QUOTAS:
            parsed = _parse(quota.get(name))
            if parsed is not None and parsed < 0:
                message = f"`{name}` of `{as_text(quota.get('name'))}` must not be negative, got"
                yield Violation(quota[name], f"{message} `{value_of(quota[name])}`")


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


def _check_lending_limits(manifest: Manifest) -> Violations:
    for quota in _iter_quotas(manifest):
        limit, nominal = _parse(quota.get("lendingLimit")), _parse(quota.get("nominalQuota"))
        if limit is not None and nominal is not None and limit > nominal >= 0:
            message = f"`lendingLimit` of `{as_text(quota.get('name'))}` is `{value_of(quota['lendingLimit'])}`, but"
            yield Violation(
                quota["lendingLimit"],
                f"{message} `nominalQuota` is `{value_of(quota['nominalQuota'])}`; use at most that",
            )


def _check_lending_cohort(manifest: Manifest) -> Violations:
    """Check that a ClusterQueue that lends is in a cohort; the schema checks this for borrowing."""
    field = "cohort" if as_text(manifest.object.get("apiVersion")).endswith("/v1beta1") else "cohortName"
    if not as_text(manifest.spec.get(field)):
        yield from _report_limits(manifest, ("lendingLimit",), field)


def _check_cohort_parent(manifest: Manifest) -> Violations:
    if not as_text(manifest.spec.get("parentName")) and not as_text(manifest.spec.get("parent")):
        yield from _report_limits(manifest, _LIMITS, "parentName")


def _report_limits(manifest: Manifest, names: tuple[str, ...], field: str) -> Violations:
    for quota in _iter_quotas(manifest):
        for name in names:
            if is_set(quota.get(name)):
                message = f"`{name}` of `{as_text(quota.get('name'))}` requires `{field}`; set it, or remove the limit"
                yield Violation(quota[name], message)


def _check_selector(manifest: Manifest) -> Violations:
    selector = manifest.spec.get("namespaceSelector")
    if isinstance(selector, dict):
        run = Validation(manifest.metadata, manifest.spec, [], category="schema")
        validate_label_selector("namespaceSelector", selector, manifest.spec, run)
        for problem in run.problems:
            yield Violation(problem.node, problem.message, evidence=problem.evidence)


def _check_fair_sharing(manifest: Manifest) -> Violations:
    node = get_path(manifest.spec, "fairSharing", "weight")
    weight = _parse(node)
    if weight is None:
        return
    if weight < 0:
        yield Violation(node, f"`weight` must not be negative, got `{value_of(node)}`")


def _check_small_weight(manifest: Manifest) -> Violations:
    node = get_path(manifest.spec, "fairSharing", "weight")
    if _parse(node) == 1:
        yield Violation(node, f"`weight` is `{value_of(node)}`, but must be 0 or more than 1n; use a larger number")


def _check_totals(manifest: Manifest) -> Violations:
    groups, node = _list_groups(manifest), find_key(manifest.spec, "resourceGroups")
    totals = {
        "flavors": (sum(len(group.flavors) for group in groups), _MAX_FLAVORS),
        "covered resources": (sum(len(group.resources) for group in groups), _MAX_RESOURCES),
    }
    for what, (found, most) in totals.items():
        if found > most:
            yield Violation(node, f"`resourceGroups` has {found} {what}; use at most {most}")
    for group in groups:
        found = sum(len(as_list(flavor.get("resources"))) for flavor in group.flavors)
        if found > _MAX_COMBINATIONS:
            message = f"a group of `resourceGroups` has {found} quotas; use at most {_MAX_COMBINATIONS}"
            yield Violation(find_key(group.data, "flavors"), message)


def _check_admission_checks(manifest: Manifest) -> Violations:
    flavors = _list_flavors(manifest)
    for check in iter_mappings(get_path(manifest.spec, "admissionChecksStrategy", "admissionChecks")):
        for name, node in iter_strings(check.get("onFlavors")):
            if name not in flavors:
                yield Violation(node, f"the queue has no flavor `{name}`{did_you_mean(name, flavors)}")


def _check_both_admission_checks(manifest: Manifest) -> Violations:
    """Check that a queue has one of both lists; newer versions convert `admissionChecks`, and ignore the other one."""
    if as_list(manifest.spec.get("admissionChecks")) and is_set(manifest.spec.get("admissionChecksStrategy")):
        message = "`admissionChecks` cannot be set beside `admissionChecksStrategy`; move its items there"
        yield Violation(find_key(manifest.spec, "admissionChecks"), message)


def _check_concurrent_admission(manifest: Manifest) -> Violations:
    policy = as_mapping(manifest.spec.get("concurrentAdmissionPolicy"))
    if not policy or not is_gate_on(manifest, "ConcurrentAdmission"):
        # Without the gate, Kueue ignores the policy.
        return
    node = find_key(manifest.spec, "concurrentAdmissionPolicy")
    groups = _list_groups(manifest)
    if len(groups) != 1:
        message = f"`concurrentAdmissionPolicy` requires one item in `resourceGroups`, got {len(groups)}"
        yield Violation(node, f"{message}; keep one")
    elif len(groups[0].flavors) > _MAX_CONCURRENT_FLAVORS:
        message = f"`concurrentAdmissionPolicy` requires at most {_MAX_CONCURRENT_FLAVORS} flavors"
        yield Violation(node, f"{message}, got {len(groups[0].flavors)}")
    migration = as_mapping(policy.get("migration"))
    constraints = as_mapping(migration.get("constraints"))
    if is_set(migration.get("constraints")) and as_text(migration.get("mode")) not in ("", "TryPreferredFlavors"):
        message = "`constraints` requires `mode: TryPreferredFlavors`; remove it, or change the mode"
        yield Violation(find_key(migration, "constraints"), message)
    elif (last := as_text(constraints.get("lastAcceptableFlavorName"))) and last not in _list_flavors(manifest):
        message = f"the queue has no flavor `{last}`{did_you_mean(last, _list_flavors(manifest))}"
        yield Violation(constraints["lastAcceptableFlavorName"], message)
    if as_text(manifest.spec.get("queueingStrategy")) == "StrictFIFO":
        message = "`StrictFIFO` is not supported with `concurrentAdmissionPolicy`; use `BestEffortFIFO`"
        yield Violation(manifest.spec["queueingStrategy"], message)


def _check_namespaces(manifest: Manifest) -> Violations:
    if not is_set(manifest.spec.get("namespaceSelector")):
        node = find_key(manifest.spec, "namespaceSelector") or find_key(manifest.object, "spec")
        message = "a ClusterQueue without `namespaceSelector` admits no workload; set it, or `{}` for all namespaces"
        yield Violation(node or manifest.object.get("kind"), message)


def _check_quota(manifest: Manifest) -> Violations:
    """Check that a queue has quota: its own, or that of a cohort."""
    quotas = [_parse(quota.get("nominalQuota")) for quota in _iter_quotas(manifest)]
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


def _check_node_labels(manifest: Manifest) -> Violations:
    for key, value in as_mapping(manifest.spec.get("nodeLabels")).items():
        if not is_label_key(key):
            yield Violation(key, describe_label_key(key))
        elif not is_label_value(as_text(value)):
            yield Violation(value, f"label `{key}` has the invalid value `{as_text(value)}`; {LABEL_VALUE}")


def _check_taints(manifest: Manifest) -> Violations:
    seen: set[tuple[str, str]] = set()
    for taint in iter_mappings(manifest.spec.get("nodeTaints")):
        yield from _check_taint(taint)
        known = (as_text(taint.get("key")), as_text(taint.get("effect")))
        if known in seen:
            message = f"`{known[0]}` with effect `{known[1]}` is an earlier taint; remove one of them"
            yield Violation(field_node(taint, "key"), message)
        seen.add(known)
    for toleration in iter_mappings(manifest.spec.get("tolerations")):
        if as_text(toleration.get("key")):
            yield from _check_taint(toleration)


def _check_taint(taint: Mapping[str, Node]) -> Violations:
    key, value = as_text(taint.get("key")), as_text(taint.get("value"))
    if is_set(taint.get("key")) and not is_label_key(key):
        yield Violation(taint["key"], f"`{key}` is not a valid key of a taint; {LABEL_KEY}")
    if not is_label_value(value):
        yield Violation(taint["value"], f"`{value}` is not a valid value of a taint; {LABEL_VALUE}")


CHECKS: Checks = {
    "ClusterQueue": (
        Check(REJECTED, _check_covered_resources),
        Check(REJECTED, _check_flavors),
        Check(REJECTED, _check_quotas),
        Check(REJECTED, _check_lending_limits),
        Check(REJECTED, _check_lending_cohort),
        Check(REJECTED, _check_selector),
        Check(REJECTED, _check_fair_sharing),
        Check(REJECTED, _check_small_weight, since="0.14"),
        Check(REJECTED, _check_totals, since="0.14"),
        Check(REJECTED, _check_both_admission_checks, until="0.15"),
        Check(REJECTED, _check_admission_checks, since="0.18"),
        Check(REJECTED, _check_concurrent_admission, since="0.18"),
        Check(ADMITS_NOTHING, _check_namespaces),
        Check(ADMITS_NOTHING, _check_quota),
    ),
    "Cohort": (
        Check(REJECTED, _check_covered_resources),
        Check(REJECTED, _check_flavors),
        Check(REJECTED, _check_quotas),
        Check(REJECTED, _check_cohort_parent),
        Check(ADMITS_NOTHING, _check_own_parent),
        Check(REJECTED, _check_fair_sharing),
        Check(REJECTED, _check_small_weight, since="0.14"),
    ),
    "ResourceFlavor": (
        Check(REJECTED, _check_node_labels),
        Check(REJECTED, _check_taints),
    ),
}

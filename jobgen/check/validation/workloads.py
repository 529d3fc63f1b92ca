"""Validate the workloads that run forever, the budgets for disruptions of their pods, and autoscalers."""

from __future__ import annotations

import re
from collections.abc import Mapping

from jobgen.check.admission.fields import (
    Check,
    Entry,
    Fields,
    Kind,
    Table,
    Validation,
    Validator,
    choice,
    count,
    dns_label,
    fields,
    find_entry,
    find_mapping,
    is_empty,
    is_set,
    items,
    iter_mappings,
    join_names,
    list_set_keys,
    mapping,
    number,
    one_of,
    path_segment,
    require_set,
    required_spec,
    since,
    spec,
    valid_text,
)
from jobgen.check.admission.metadata import validate_annotation_keys, validate_finalizers, validate_labels
from jobgen.check.admission.names import (
    DNS_LABEL,
    GENERATED_NAME,
    LABEL_NAME,
    PATH_SEGMENT_NAME,
    SUBDOMAIN_NAME,
    is_dns_label,
)
from jobgen.check.admission.scheduling import is_container_resource, validate_label_selector, validate_quantity
from jobgen.check.admission.volumes import validate_claim_spec
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.model.data import Plain
from jobgen.model.place import At, Place
from jobgen.model.quantity import to_milli
from jobgen.model.sentence import Sentence

_NO_PROGRESS = "`maxUnavailable` and `maxSurge` cannot both be 0; raise one of them"
_retention = one_of("", "Retain", "Delete")
_REPLICAS: Table = {"replicas": count, "minReadySeconds": count}
_segment = path_segment("invalid-object-name", "path segment")


def validate_selector(key: str, value: Plain, owner: Fields, run: Validation) -> bool:
    """Validate a label selector and return whether it is valid."""
    before = len(run.problems)
    validate_label_selector(key, value, owner, run)
    return isinstance(value, dict) and len(run.problems) == before


def find_unmatched(selector: Fields, labels: Fields) -> At | None:
    """Return the place of the first requirement of a valid selector that the labels do not meet, or None."""
    selected = as_mapping(selector.get("matchLabels"))
    for key, value in selected.items():
        if key not in labels or _read_label(labels[key]) != _read_label(value):
            return At(selected, key, is_key=True)
    for item in iter_mappings(selector.get("matchExpressions")):
        key, operator = as_text(item.get("key")), as_text(item.get("operator"))
        is_met = key in labels
        if operator in ("In", "NotIn"):
            is_met = is_met and _read_label(labels[key]) in map(_read_label, as_list(item.get("values")))
        if is_met is not (operator in ("In", "Exists")):
            return At(item, "key")
    return None


def _read_label(value: Plain) -> object:
    """Return the value of a label; null is an empty string."""
    found: object = value
    return "" if found is None else found


def _check_selector(workload: Fields, entry: Entry, run: Validation) -> None:
    selector = workload.get("selector")
    if not is_set(selector):
        run.report_missing("`spec`", workload, "selector", (workload, None))
    elif isinstance(selector, dict) and validate_selector("selector", selector, workload, run):
        parts = ("matchLabels", "matchExpressions")
        if all(is_empty(selector.get(name)) for name in parts) and all(name in parts for name in selector):
            message = "`selector` is empty; select the labels of the template"
            given = next((At(selector, name) for name in parts if name in selector), None)
            run.report("invalid-selector", message, given or (workload, "selector"))
        else:
            validate_match(selector, run)


def validate_match(selector: Fields, run: Validation) -> None:
    """Validate that a selector matches the labels of the template."""
    template = run.spec.get("template")
    metadata = as_mapping(get_path(template, "metadata"))
    labels = as_mapping(metadata.get("labels"))
    unmatched = find_unmatched(selector, labels) if isinstance(template, dict) else None
    if unmatched is None:
        return
    # The probable fault: the template without labels, or the label that differs from that of the object.
    place: Place | Entry = unmatched
    name = as_text(unmatched.node)
    own = as_mapping(run.metadata.get("labels")).get(name)
    if not labels:
        parent = (template, "metadata") if "metadata" in as_mapping(template) else (run.spec, "template")
        place = (metadata, "labels") if "labels" in metadata else parent
    elif name in labels and own is not None and own == get_path(selector, "matchLabels", name):
        place = At(labels, name)
    message = Sentence("`selector` does not match the labels of the template: `{}` differs; align them", unmatched.node)
    run.report("invalid-selector", message, place)


def _check_template(workload: Fields, entry: Entry, run: Validation) -> None:
    """Check that the pods of a template run forever."""
    template = workload.get("template")
    if not is_set(template):
        run.report_missing("`spec`", workload, "template", (workload, None))
        return
    pod_spec = as_mapping(get_path(template, "spec"))
    policy = pod_spec.get("restartPolicy")
    # The validation of pods reports other values.
    if policy in ("OnFailure", "Never"):
        run.invalid(Sentence("`restartPolicy` is `{}`, but must be `Always`", policy), At(pod_spec, "restartPolicy"))
    if is_set(pod_spec.get("activeDeadlineSeconds")):
        key = "activeDeadlineSeconds"
        run.invalid(
            Sentence("`{}` cannot be set in the template of this kind, whose pods run forever; delete it", key),
            (pod_spec, "activeDeadlineSeconds"),
        )


def validate_count_or_percentage(key: str, value: Plain, owner: Fields, run: Validation) -> None:
    """Validate a number of pods, or a percentage of any size."""
    found = value
    if type(found) is str and _read_percentage(found) is None:
        run.invalid(
            Sentence("`{}` is `{}`; write an integer such as `1` or a percentage: `25%`", key, found), At(owner, key)
        )
    elif type(found) is int and found < 0:
        run.report("out-of-range", Sentence("`{}` must be at least 0, got `{}`", key, found), At(owner, key))


def validate_count_or_share(key: str, value: Plain, owner: Fields, run: Validation) -> None:
    """Validate a number of pods, or a percentage up to 100%."""
    validate_count_or_percentage(key, value, owner, run)
    found = value
    if type(found) is str and (_read_percentage(found) or 0) > 100:
        run.report("out-of-range", Sentence("`{}` must be at most 100%, got `{}`", key, found), At(owner, key))


def _read_count(value: Plain, default: int) -> int | None:
    """Return the number of pods or the percentage; None if the value is neither."""
    if value is None:
        return default
    return value if type(value) is int else _read_percentage(value) if type(value) is str else None


def _read_percentage(written: str) -> int | None:
    digits = written[:-1]
    if not (written.endswith("%") and digits.isascii() and digits.isdigit()):
        return None
    # Python limits the digits of an integer.
    return int(digits.lstrip("0")[:20] or "0")


def _strategy(other: str, table: Table, *also: Check, forbids_update: bool = True) -> Validator:
    """Return a validator for a strategy: a rolling update with these fields, or another without."""
    check_update = fields("`rollingUpdate`", table, *also)

    def validate(key: str, value: Plain, owner: Fields, run: Validation) -> None:
        strategy = as_mapping(value)
        name, update = as_text(strategy.get("type")), strategy.get("rollingUpdate")
        if name not in ("", "RollingUpdate", other):
            run.report_unsupported("type", At(strategy, "type"), ("RollingUpdate", other))
        elif name != other:
            if isinstance(update, dict):
                check_update(update, (strategy, "rollingUpdate"), run)
        elif forbids_update and is_set(update):
            message = Sentence("`rollingUpdate` cannot be set if `type` is `{}`; delete it", other)
            run.invalid(message, (strategy, "rollingUpdate"))

    return validate


def _check_daemon_progress(update: Fields, entry: Entry, run: Validation) -> None:
    """Check that an update either deletes pods first or creates them first."""
    unavailable, surge = _read_count(update.get("maxUnavailable"), 1), _read_count(update.get("maxSurge"), 0)
    if unavailable and surge:
        message = "`maxSurge` requires `maxUnavailable: 0`; set it, or delete `maxSurge`"
        run.report("out-of-range", message, At(update, "maxSurge"))
    elif unavailable == 0 and surge == 0:
        run.report("out-of-range", _NO_PROGRESS, At(update, "maxUnavailable"))


def _check_progress(update: Fields, entry: Entry, run: Validation) -> None:
    """Check that a rollout can replace a pod; the default of both numbers is 25%."""
    if all(_read_count(update.get(field), 25) == 0 for field in ("maxUnavailable", "maxSurge")):
        run.report("out-of-range", _NO_PROGRESS, At(update, "maxUnavailable"))


def _check_deployment(obj: Fields, entry: Entry, run: Validation) -> None:
    """Check that a rollout can be ready before it counts as failed, after 600 seconds by default."""
    deadline, ready = (run.spec.get(field) for field in ("progressDeadlineSeconds", "minReadySeconds"))
    seconds = as_integer(deadline) if is_set(deadline) else 600
    if seconds is not None and seconds >= 0 and seconds <= (as_integer(ready) or 0):
        message = Sentence("`progressDeadlineSeconds` is `{}`, but must be greater than `minReadySeconds`", seconds)
        field = "progressDeadlineSeconds" if is_set(deadline) else "minReadySeconds"
        run.report("out-of-range", message, At(run.spec, field))


def _integer_annotation(name: str, low: int | None = None) -> Check:
    """Return a check of an annotation that older versions of a kind had as a field, if it is set."""

    def check(obj: Fields, entry: Entry, run: Validation) -> None:
        value = as_mapping(run.metadata.get("annotations")).get(name)
        if type(value) is not str or (low is not None and not value):
            return
        least = -(2**63) if low is None else low
        if re.fullmatch(r"[-+]?[0-9]{1,30}", value) is None or not least <= int(value) < 2**63:
            bound = "" if low is None else f" from {low}"
            run.report(
                "invalid-annotation",
                Sentence("`{}` is `{}`, but must be an integer{}; delete it", name, value, bound),
                At(as_mapping(run.metadata.get("annotations")), name),
            )

    return check


_claim_metadata = mapping(
    {"labels": validate_labels, "annotations": validate_annotation_keys, "finalizers": validate_finalizers}
)


def _check_claim(claim: Fields, entry: Entry, run: Validation) -> None:
    """Check the template of a claim, which is also a volume of the pods, by its name."""
    name = as_text(get_path(claim, "metadata", "name"))
    if not name:
        run.report_missing("a volume claim", claim, "metadata.name", entry)
    elif not is_dns_label(name):
        message = Sentence("`{}` is not a valid volume name; {}", name, DNS_LABEL)
        run.report("invalid-volume-name", message, At(claim["metadata"], "name"))
    # The controller copies the metadata to the claims.
    _claim_metadata("metadata", claim.get("metadata"), claim, run)
    if run.release < (1, 34):
        return
    if is_set(claim.get("spec")):
        validate_claim_spec("spec", claim["spec"], claim, run)
    elif name:
        run.report_missing("a volume claim", claim, "spec", entry)


def _check_controller_selector(workload: Fields, entry: Entry, run: Validation) -> None:
    labels = as_mapping(get_path(workload.get("template"), "metadata", "labels"))
    if not is_empty(workload.get("selector")):
        validate_match({"matchLabels": workload["selector"]}, run)
    elif is_set(workload.get("template")) and not labels:
        # The default is the labels of the template.
        run.report_missing("`spec`", workload, "selector", (workload, None))


def _check_revision_data(obj: Fields, entry: Entry, run: Validation) -> None:
    data = obj.get("data")
    if not is_set(data):
        run.report("missing-field", "a ControllerRevision requires `data`; set it", find_entry(obj, "data", entry))
    elif not isinstance(data, dict) and run.release >= (1, 31):
        # Before, any data was valid.
        run.report("wrong-type", "`data` must be a mapping", At(obj, "data"))


def _require_template(obj: Fields, entry: Entry, run: Validation) -> None:
    """Check that there is a template; its pods are validated as those of other kinds."""
    if not is_set(obj.get("template")):
        run.report("missing-field", "a PodTemplate requires `template`; set it", find_entry(obj, "template", entry))


def _check_budget(budget: Fields, entry: Entry, run: Validation) -> None:
    given = list_set_keys(budget, ("minAvailable", "maxUnavailable"))
    if len(given) > 1:
        run.invalid(
            "`minAvailable` and `maxUnavailable` are mutually exclusive; delete one of them", (budget, given[1])
        )


def _reference(*, allows_core: bool) -> Validator:
    """Return a validator for a reference; a kind without a group is in the core group, which has nothing to scale."""

    def check_version(reference: Fields, entry: Entry, run: Validation) -> None:
        written = as_text(reference.get("apiVersion"))
        # A ReplicationController is the only kind without a group that can be scaled.
        needs_group = not allows_core and as_text(reference.get("kind")) != "ReplicationController"
        if run.release < (1, 34):
            return
        if written.count("/") > 1:
            message = Sentence("`apiVersion` is `{}`; write a group and a version, such as `apps/v1`", written)
            run.invalid(message, At(reference, "apiVersion"))
        elif needs_group and not written.rpartition("/")[0]:
            if written:
                message = Sentence("`apiVersion` is `{}`, which has no group; write both, such as `apps/v1`", written)
                run.invalid(message, At(reference, "apiVersion"))
            elif reference:
                run.report(
                    "missing-field",
                    Sentence("`{}` requires `apiVersion`, such as `apps/v1`; set it", entry[1]),
                    reference,
                )

    return mapping({"kind": _segment, "name": _segment}, "kind", "name", check_version)


def _validate_amount(key: str, value: Plain, owner: Fields, run: Validation) -> None:
    milli = to_milli(value)
    if milli is not None and milli <= 0:
        run.report("out-of-range", Sentence("`{}` must be more than 0, got `{}`", key, value), At(owner, key))


def _target(*targets: str, only_one: bool = False) -> Check:
    """Return a check of the value that a metric should have, which is in one of these fields of `target`."""

    def check(source: Fields, entry: Entry, run: Validation) -> None:
        target = source.get("target")
        if not is_set(target):
            run.report_missing(f"`{entry[1]}`", source, "target", entry)
        if not isinstance(target, dict):
            return
        given = list_set_keys(target, targets)
        if not given:
            message = Sentence("`target` of `{}` requires {}; set it", entry[1], join_names(list(targets), "or"))
            run.report("missing-field", message, find_mapping(target, (source, "target")))
        elif only_one and len(given) > 1:
            run.invalid(
                Sentence("{} of a target are mutually exclusive; delete one of them", join_names(given, "and")),
                (target, given[1]),
            )

    return check


def _check_metric(metric: Fields, entry: Entry, run: Validation) -> None:
    metric_type = as_text(metric.get("type"))
    field = _SOURCES[metric_type][0] if metric_type in _SOURCES else ""
    given = list_set_keys(metric, [name for name, _ in _SOURCES.values()])
    if field and field not in given:
        run.report(
            "missing-field",
            Sentence("a metric of type `{}` requires `{}`; set it", metric_type, field),
            At(metric, "type"),
        )
    for other in given if field and len(given) > 1 else ():
        if other != field:
            run.invalid(
                Sentence("`{}` cannot be set in a metric of type `{}`; delete it", other, metric_type), (metric, other)
            )
    # The field of the type, or else the first one.
    validated = field if field in given else "".join(given[:1])
    for name, validate in _SOURCES.values():
        if name == validated:
            validate(name, metric[name], metric, run)


def _check_policies(rules: Fields, entry: Entry, run: Validation) -> None:
    if isinstance(rules.get("policies"), list) and not rules["policies"]:
        run.report_missing(f"`{entry[1]}`", rules, "policies", entry)


def _check_bounds(autoscaler: Fields, entry: Entry, run: Validation) -> None:
    most, least = as_integer(autoscaler.get("maxReplicas")), as_integer(autoscaler.get("minReplicas"))
    if most is not None and least is not None and 1 <= most < least:
        message = Sentence("`maxReplicas` is `{}`, less than `minReplicas`, which is `{}`; raise it", most, least)
        run.report("out-of-range", message, At(autoscaler, "maxReplicas"))


_CHECKS = (_check_selector, _check_template)
_UPDATE: Table = {"maxUnavailable": validate_count_or_share, "maxSurge": validate_count_or_percentage}
_DAEMON_UPDATE: Table = {**_UPDATE, "maxSurge": validate_count_or_share}
_DAEMON_SET: Table = {
    "minReadySeconds": count,
    "revisionHistoryLimit": count,
    "updateStrategy": _strategy("OnDelete", _DAEMON_UPDATE, _check_daemon_progress, forbids_update=False),
}
_DEPLOYMENT: Table = {
    **_REPLICAS,
    "progressDeadlineSeconds": count,
    "revisionHistoryLimit": count,
    "strategy": _strategy("Recreate", _UPDATE, _check_progress),
}
_STATEFUL_SET: Table = {
    **_REPLICAS,
    "ordinals": mapping({"start": count}),
    "persistentVolumeClaimRetentionPolicy": mapping({"whenDeleted": _retention, "whenScaled": _retention}),
    "podManagementPolicy": one_of("", "OrderedReady", "Parallel"),
    "serviceName": since((1, 33), dns_label("invalid-object-name", "name of a Service")),
    # Without `maxUnavailable`: the API server drops it, because its feature gate is off by default.
    "updateStrategy": _strategy("OnDelete", {"partition": count}),
    "volumeClaimTemplates": items("a volume claim", {}, _check_claim),
}
_BUDGET: Table = {
    "maxUnavailable": validate_count_or_share,
    "minAvailable": validate_count_or_share,
    "selector": validate_label_selector,
    "unhealthyPodEvictionPolicy": one_of("IfHealthyBudget", "AlwaysAllow"),
}
_TARGET: Table = {
    "averageUtilization": number(1),
    "averageValue": _validate_amount,
    "type": one_of("", "Utilization", "Value", "AverageValue"),
    "value": _validate_amount,
}
_RESOURCE: Table = {"target": mapping(_TARGET, "type")}
_SOURCE: Table = {**_RESOURCE, "metric": mapping({"name": path_segment("invalid-value", "name of a metric")}, "name")}
_OBJECT: Table = {**_SOURCE, "describedObject": _reference(allows_core=True)}
_CONTAINER_RESOURCE: Table = {
    **_RESOURCE,
    "container": dns_label("invalid-container-name", "container name"),
    "name": valid_text(
        "unknown-resource",
        "containers cannot request the resource `{found}`; write one such as `cpu`",
        is_container_resource,
    ),
}
_share_of_request = _target("averageUtilization", "averageValue", only_one=True)
_SOURCES: Mapping[str, tuple[str, Validator]] = {
    "Object": (
        "object",
        mapping(_OBJECT, require_set("", "describedObject", "metric"), _target("value", "averageValue")),
    ),
    "External": (
        "external",
        mapping(_SOURCE, require_set("", "metric"), _target("value", "averageValue", only_one=True)),
    ),
    "Pods": ("pods", mapping(_SOURCE, require_set("", "metric"), _target("averageValue"))),
    "Resource": ("resource", mapping(_RESOURCE, "name", _share_of_request)),
    "ContainerResource": ("containerResource", mapping(_CONTAINER_RESOURCE, "name", "container", _share_of_request)),
}
"""The types of metrics: each has a field, which the others do not have."""

_SCALING_POLICY: Table = {"periodSeconds": number(1, 1800), "type": one_of("", "Pods", "Percent"), "value": number(1)}
_SCALING_RULES: Table = {
    "policies": items("a policy", _SCALING_POLICY, "type", "value", "periodSeconds"),
    "selectPolicy": one_of("Max", "Min", "Disabled"),
    "stabilizationWindowSeconds": number(0, 3600),
    "tolerance": since((1, 35), validate_quantity),
}
_scaling_rules = mapping(_SCALING_RULES, _check_policies)
_AUTOSCALER: Table = {
    "behavior": mapping({"scaleDown": _scaling_rules, "scaleUp": _scaling_rules}),
    "maxReplicas": number(1),
    "metrics": items("a metric", {}, choice("a metric", "type", *_SOURCES), _check_metric),
    "minReplicas": number(1),
    "scaleTargetRef": _reference(allows_core=False),
    "targetCPUUtilizationPercentage": number(1),
}

KINDS = {
    "ControllerRevision": Kind(fields("a ControllerRevision", {"revision": count}, _check_revision_data)),
    "DaemonSet": Kind(
        fields(
            "a DaemonSet",
            {},
            required_spec("`spec`", _DAEMON_SET, *_CHECKS),
            _integer_annotation("deprecated.daemonset.template.generation"),
        )
    ),
    "Deployment": Kind(
        fields(
            "a Deployment",
            {},
            required_spec("`spec`", _DEPLOYMENT, *_CHECKS),
            _check_deployment,
            _integer_annotation("deprecated.deployment.rollback.to", low=0),
        )
    ),
    "PodDisruptionBudget": Kind(spec("a PodDisruptionBudget", _BUDGET, _check_budget), PATH_SEGMENT_NAME),
    "PodTemplate": Kind(_require_template),
    "ReplicaSet": Kind(required_spec("`spec`", _REPLICAS, *_CHECKS)),
    "ReplicationController": Kind(
        required_spec("`spec`", _REPLICAS, _check_template, _check_controller_selector),
        GENERATED_NAME,
        older_name_format=((1, 35), SUBDOMAIN_NAME),
    ),
    "StatefulSet": Kind(required_spec("`spec`", _STATEFUL_SET, *_CHECKS), LABEL_NAME),
    "HorizontalPodAutoscaler": Kind(
        required_spec("`spec`", _AUTOSCALER, require_set("`spec`", "maxReplicas", "scaleTargetRef"), _check_bounds)
    ),
}

"""Validate what the workloads that run forever have in common: selector, template and numbers of pods."""

from __future__ import annotations

import re
from collections.abc import Mapping

from jobgen.check.admission.fields import (
    Validation,
    ValidatorTable,
    find_key,
    get_key,
    is_set,
    report_missing,
    validate_fields,
    validate_number,
)
from jobgen.check.validation.selectors import find_unmatched, validate_selector
from jobgen.k8s.nodes import as_mapping, as_text, get_path
from jobgen.model.data import Node, locatable, value_of

validate_count = validate_number(0)
REPLICAS: ValidatorTable = {"replicas": validate_count, "minReadySeconds": validate_count}


def validate_workload(obj: Mapping[str, Node], table: ValidatorTable, run: Validation) -> None:
    """Validate the spec of a workload: its fields by the table, its selector and its template."""
    if not run.spec:
        report_missing_spec(obj, run)
        return
    validate_fields(run.spec, table, run)
    _validate_workload_selector(run)
    validate_template(run)


def report_missing_spec(obj: Mapping[str, Node], run: Validation) -> None:
    """Report an object without `spec`, or with an empty one; the schema reports one of another type."""
    if not isinstance(obj.get("spec"), dict) and is_set(obj.get("spec")):
        return
    node = find_key(obj, "spec", obj)
    run.report("missing-field", "the object requires `spec`; set it", node)


def _validate_workload_selector(run: Validation) -> None:
    selector = run.spec.get("selector")
    if not is_set(selector):
        report_missing("`spec`", run.spec, "selector", run.spec, run)
        return
    key = get_key(run.spec, "selector")
    if not isinstance(selector, dict) or not validate_selector(key, selector, run.spec, run):
        return
    if not as_mapping(selector.get("matchLabels")) and not selector.get("matchExpressions"):
        fields = (selector.get("matchLabels"), selector.get("matchExpressions"))
        message = "`selector` is empty; select the labels of the template"
        run.report("invalid-selector", message, locatable(*fields, key))
    else:
        validate_match(selector, run)


def validate_match(selector: Mapping[str, Node], run: Validation) -> None:
    """Validate that a selector matches the labels of the template."""
    template = run.spec.get("template")
    if not isinstance(template, dict):
        return
    labels = as_mapping(get_path(template, "metadata", "labels"))
    unmatched = find_unmatched(selector, labels)
    if unmatched is not None:
        message = f"`selector` does not match the labels of the template: `{value_of(unmatched)}` differs; align them"
        run.report("invalid-selector", message, _locate_mismatch(unmatched, selector, labels, run))


def _locate_mismatch(
    unmatched: Node, selector: Mapping[str, Node], labels: Mapping[str, Node], run: Validation
) -> Node:
    """Return the probable fault: the template without labels, or the label that differs from that of the object."""
    template = as_mapping(run.spec.get("template"))
    if not labels:
        metadata = as_mapping(template.get("metadata"))
        parent = get_key(template, "metadata") if "metadata" in template else get_key(run.spec, "template")
        return get_key(metadata, "labels") if "labels" in metadata else parent
    name = as_text(unmatched)
    own = value_of(as_mapping(run.metadata.get("labels")).get(name))
    wanted = value_of(as_mapping(selector.get("matchLabels")).get(name))
    return labels[name] if name in labels and own is not None and own == wanted else unmatched


def validate_template(run: Validation) -> None:
    """Validate that the pods of a template run forever."""
    template = run.spec.get("template")
    if not is_set(template):
        report_missing("`spec`", run.spec, "template", run.spec, run)
        return
    pod_spec = as_mapping(get_path(template, "spec"))
    policy = pod_spec.get("restartPolicy")
    # The validation of pods reports other values.
    if value_of(policy) in ("OnFailure", "Never"):
        run.report("invalid-value", f"`restartPolicy` is `{value_of(policy)}`, but must be `Always`", policy)
    for key in pod_spec:
        if key == "activeDeadlineSeconds" and is_set(pod_spec[key]):
            message = f"`{key}` cannot be set in the template of this kind, whose pods run forever; delete it"
            run.report("invalid-value", message, key)


def validate_integer_annotation(name: str, run: Validation, low: int = -(2**63)) -> None:
    """Validate an annotation that older versions of a kind had as a field, if it is set."""
    value = as_mapping(run.metadata.get("annotations")).get(name)
    found = value_of(value)
    if type(found) is not str:
        return
    if re.fullmatch(r"[-+]?[0-9]{1,30}", found) is None or not low <= int(found) < 2**63:
        bound = f" from {low}" if low == 0 else ""
        run.report("invalid-annotation", f"`{name}` is `{found}`, but must be an integer{bound}; delete it", value)

"""Validate StorageClasses."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, find_key, iter_items, iter_texts, report_missing, validate_enum
from jobgen.check.admission.metadata import describe_label_key
from jobgen.check.admission.names import is_label_key
from jobgen.check.validation.storage._parameters import validate_parameters, validate_provisioner
from jobgen.k8s.nodes import as_text
from jobgen.model.data import Node

_validate_reclaim_policy = validate_enum("", "Delete", "Retain")
_validate_binding_mode = validate_enum("Immediate", "WaitForFirstConsumer")
_Topology = dict[str, frozenset[str]]


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the driver, its parameters, and where volumes can be created."""
    validate_provisioner(obj, "provisioner", run)
    validate_parameters(obj, run, required=False)
    _validate_reclaim_policy("reclaimPolicy", obj.get("reclaimPolicy"), obj, run)
    _validate_binding_mode("volumeBindingMode", obj.get("volumeBindingMode"), obj, run)
    seen: list[_Topology] = []
    for term, node in iter_items("allowedTopologies", obj.get("allowedTopologies")):
        topology = _validate_term(term, run)
        if not topology:
            report_missing("a topology", term, "matchLabelExpressions", node, run)
        elif topology in seen:
            place = find_key(term, "matchLabelExpressions", node)
            run.report("duplicate-item", "two topologies are equal; delete one of them", place)
        seen.append(topology)


def _validate_term(term: Mapping[str, Node], run: Validation) -> _Topology:
    """Validate the labels of a topology and return their values by key."""
    topology: _Topology = {}
    for item, node in iter_items("matchLabelExpressions", term.get("matchLabelExpressions")):
        key = as_text(item.get("key"))
        if not key:
            report_missing("a topology", item, "key", node, run)
        elif not is_label_key(key):
            run.report("invalid-label", describe_label_key(key), item["key"])
        elif key in topology:
            run.report("duplicate-item", f"the topology has the key `{key}` twice; delete one of them", item["key"])
        values: set[str] = set()
        for value, place in iter_texts(item.get("values")):
            if value in values:
                run.report("duplicate-item", f"`{value}` is in `values` twice; delete one of them", place)
            values.add(value)
        if not values:
            report_missing("a topology", item, "values", node, run)
        topology[key] = frozenset(values)
    return topology
